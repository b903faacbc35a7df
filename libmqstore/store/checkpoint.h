/* checkpoint.h: the file `checkpoint`: how far each part of the store is known to be on the disk.
 *
 * Times are store times (ms).  A missing or short file counts as zeros, which makes recovery start at the oldest segment. */
#ifndef STORE_CHECKPOINT_H
#define STORE_CHECKPOINT_H

#include <mq.h>

struct checkpoint {
	int fd;                     /* -1 = read-only or closed */
	int64_t log_ms;             /* physicMsgTimestamp: newest message of the log on disk */
	int64_t queue_ms;           /* logicsMsgTimestamp: newest message whose queue entry is on disk */
	int64_t index_ms;           /* indexMsgTimestamp: end of the last full index file on disk */
	int64_t master_flushed_off; /* masterFlushedOffset: kept as found */
	int64_t confirm_off;        /* confirmPhyOffset: start of the last valid record */
	int64_t whole_off;          /* ours: start of the newest record that is on disk together with its queue entry and with
	                             * everything before it; good only while it equals confirm_off, for the peer changes that one */
	int64_t queues;             /* ours: consume queues that have a directory; good after a clean stop and under the same condition */
};

/* Read the file; when writable create it.  0 or -errno. */
int checkpoint_open(struct checkpoint *c, const char *path, bool read_only, struct mq_error *err);
void checkpoint_close(struct checkpoint *c);

/* Write the values and sync.  Touches nothing but *c: a flush job gives a copy to its thread. */
int checkpoint_save(const struct checkpoint *c, struct mq_error *err);

/* Recovery may begin with a segment whose first record is not newer than this (peer: 3 s of grace, never negative). */
int64_t checkpoint_min_ms(const struct checkpoint *c);
int64_t checkpoint_min_index_ms(const struct checkpoint *c);   /* the same, the index taken into account */

#endif
