/* order_table.h: pops in order: which messages of a queue a group has in hand: config/consumerOrderInfo.json.
 *
 * At most one batch per queue: until each of its messages is acked, or its time is over, the queue is blocked for the group, but for
 * the attempt that took it (a client that asks again since the answer was lost).  The file is saved at the end of a turn in which
 * something changed.  Entries that nobody touched for ORDER_KEEP_MS are left out of it. */
#ifndef BROKER_ORDER_TABLE_H
#define BROKER_ORDER_TABLE_H

#include "hash.h"
#include "table_file.h"

enum { ORDER_KEEP_MS = 24 * 3600 * 1000, ORDER_BATCH_MAX = 64 /* bits of `acked` */ };

/* Message i of a batch. */
struct order_message {
	int64_t off;
	int64_t visible_ms;             /* wall time from which it may come again; 0: as the batch */
	int32_t times;                  /* that it was taken before */
};

struct order_batch {
	int64_t pop_ms, invisible_ms;   /* wall ms; duration */
	int64_t touched_ms;             /* wall ms of the last pop */
	uint64_t acked;                 /* bit i: message i */
	char *attempt;                  /* NULL: none */
	size_t n;
	struct order_message message[];
};

/* Of one group on one topic. */
struct orders {
	UT_hash_handle hh;
	int32_t n;                      /* of batch: highest queue id seen + 1 */
	struct order_batch **batch;     /* NULL: none */
	uint32_t topic_n, name_n;
	char name[];                    /* "topic@group", NUL-terminated */
};

struct order_table {
	struct broker *b;
	struct orders *all;             /* uthash */
	struct table_file file;
};

/* Offsets of groups that are behind what was acked move on. */
int order_table_open(struct order_table **t, struct broker *b, struct mq_error *e);
void order_table_free(struct order_table *t);

/* Wall time until which the queue is blocked for who asks; 0: it is not.  invisible_ms: for batches that do not say. */
int64_t order_table_blocked(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, struct mq_str attempt,
                            int64_t invisible_ms);
/* The group takes these n messages.  How often each was taken before is appended to *counts, as orderCountInfo wants it. */
void order_table_take(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, struct mq_str attempt,
                      int64_t pop_ms, int64_t invisible_ms, const int64_t *off, size_t n, struct buf *counts);

enum { ORDER_UNKNOWN = -1, ORDER_OTHER_POP = -2 };
/* Acked.  The offset that the group is to go on from, or ORDER_UNKNOWN (no such message in the batch), ORDER_OTHER_POP (the batch is
 * of another pop: nothing to do). */
int64_t order_table_ack(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t off, int64_t pop_ms);
/* The message is to come again at visible_ms. */
void order_table_set_visible(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t off,
                             int64_t pop_ms, int64_t visible_ms);
/* Nothing is in hand any more: the offset was reset. */
void order_table_clear(struct order_table *t, struct mq_str topic, struct mq_str group, int32_t queue_id);

#endif
