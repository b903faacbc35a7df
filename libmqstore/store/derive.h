/* derive.h: a record of the log becomes an entry of its queue and words in the index: the only feeder of both.
 *
 * While appending this happens in the same call (append.c, derive_new); after a stop the log is walked and whatever is missing
 * is put in again (derive_again), which is harmless for what is there. */
#ifndef STORE_DERIVE_H
#define STORE_DERIVE_H

#include "store.h"

enum { DELAY_LEVELS_MAX = MQSTORE_DELAY_LEVELS_MAX };
/* Milliseconds per level from "1s 5s 10s 30s 1m ... 2h"; MQ_EINVAL names the bad word. */
int derive_levels(const char *text, int64_t ms[DELAY_LEVELS_MAX], int *n, struct mq_error *err);

/* Tags code of an entry: hash of the tags, or when the message is due. */
int64_t derive_tags_code(const struct mqstore *s, const struct topic *t, struct mq_str tags, int32_t delay_level,
			 int64_t store_ms);

/* With units (cqueue_ext.h): put one for a message of q and return its address, which the entry has instead of its tags code. */
int64_t derive_entry_code(struct mqstore *s, struct mqstore_queue *q, int64_t tags_code, int64_t store_ms, struct mq_str props);

/* Does a record of this kind get a queue entry (and use up an offset)? */
static inline bool derive_listed(int32_t sys_flag)
{
	int32_t tran = sys_flag & MQ_SYS_TRAN_MASK;

	return tran != MQ_SYS_TRAN_PREPARED && tran != MQ_SYS_TRAN_ROLLBACK;
}

/* A record that was found in the log, for queue `only` or (NULL) whichever it belongs to.  0, CQUEUE_GAP (nothing done:
 * records before it are missing in its queue, and `fill` is false), or a negative code. */
int derive_again(struct mqstore *s, const struct mq_message *m, struct mqstore_queue *only, bool fill);

/* index_source_cb: the index catches up. */
int derive_index_source(void *arg, int64_t log_off, struct index_record *r);

#endif
