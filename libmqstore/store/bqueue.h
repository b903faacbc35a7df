/* bqueue.h: a batch consume queue (topics with queue.type=BatchCQ): one entry for each record, which may hold many messages.
 *
 * compat: written by the peer for clients of a kind that we do not serve; ours are read, kept whole after a crash, and trimmed,
 * but nothing new is appended.  So all entries of a queue that is looked at are kept in memory. */
#ifndef STORE_BQUEUE_H
#define STORE_BQUEUE_H

#include "cqueues.h"

struct bentry {
	int64_t log_off, store_ms;
	int64_t base;           /* number of the first message */
	int64_t tags_code;
	int32_t size;           /* of the record */
	int32_t count;          /* of messages */
};

struct bqueue {
	struct bentry *v;       /* n of them, by number */
	int64_t n, cap;
	int64_t first, pos;     /* bytes: start of the first file, end of the entries */
	int64_t file_bytes;     /* 0 = not known, there is no file */
};

/* One entry of BATCH_CQ_ENTRY bytes; false if it is none. */
bool bqueue_decode(const uint8_t *p, struct bentry *e);
/* Read the entries whose records end at or before all->log_end_at_open.  0 or -errno. */
int bqueue_ready(struct mqstore_queue *q);
void bqueue_free(struct mqstore_queue *q);

int64_t bqueue_min(struct mqstore_queue *q, int64_t log_min);
int64_t bqueue_max(struct mqstore_queue *q);
/* Place of the entry that holds message `off`, or n. */
int64_t bqueue_find(struct mqstore_queue *q, int64_t off);

/* A record that was found in the log: nothing if it is in already.  Written queues: also into the file. */
int bqueue_derive(struct mqstore_queue *q, const struct mq_message *m, int64_t tags_code);
int bqueue_cut(struct mqstore_queue *q, int64_t log_end);
/* Remove files whose last entry lies before log_min, never the last one. */
void bqueue_trim(struct mqstore_queue *q, int64_t log_min);
int64_t bqueue_bytes(const struct mqstore_queue *q);

#endif
