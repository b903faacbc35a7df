/* flush.h: when messages are on the disk, and the answers that wait for it.
 *
 * ASYNC_FLUSH: the log every flushIntervalCommitLog, queues, index and checkpoint every flushIntervalConsumeQueue.
 * SYNC_FLUSH: a flush starts at the end of each turn that stored something; while it runs in a worker the next group
 * gathers.  A send is answered when mqstore_flushed() has passed the end of its record, or with code 10 after
 * syncFlushTimeout.  Both: a send that made its topic is answered when config/topics.json holds it.
 *
 * A flush that fails is not tried again: the store takes no more messages, waiting sends get code 10, and the log says why. */
#ifndef BROKER_FLUSH_H
#define BROKER_FLUSH_H

#include "dispatch.h"
#include <mqstore.h>

struct flush;

/* Answer to a send: what has to be written, now or when it is on the disk. */
struct send_done {
	int64_t end_off;            /* on the disk when mqstore_flushed() >= end_off; 0 = do not wait for the log */
	uint64_t topics_version;    /* of topic_table's file; 0 = do not wait for it */
	int64_t log_off;            /* of the (first) record */
	int64_t queue_off;
	int32_t queue_id;
	int32_t nids;               /* batch: number of ids, in `ids`; single: 0, made from log_off */
	struct mq_str ids;          /* comma-separated offset ids of a batch */
	struct mq_str uniq_key;     /* transactionId */
};

struct flush *flush_new(struct broker *b);
void flush_stop(struct flush *f, void (*done)(void *arg), void *arg);   /* answers what waits after a last flush */
void flush_free(struct flush *f);
/* Answer the send when d says so; views in d are copied when it has to wait. */
void flush_answer(struct flush *f, struct req *q, const struct send_done *d);
void flush_turn(struct flush *f);                                       /* end of a turn */
/* Something else that waiters look at has changed (topics.json was saved). */
void flush_check(struct flush *f);
/* Next offset of the queue that readers may see: all of it, or under SYNC_FLUSH what is on the disk. */
int64_t flush_visible_max(struct broker *b, struct mqstore_queue *q);

#endif
