/* body_offset.h: tables of offsets (43, 45), offsets per queue (220, 222, 221, 223), and sets of queues that are locked (41, 42).
 * Source: the peer's remoting.protocol.body.  The files config/consumerOffset.json and delayOffset.json have the shape of
 * the tables. */
#ifndef CODEC_BODY_OFFSET_H
#define CODEC_BODY_OFFSET_H

#include "body.h"

struct body_queue_offset {
	int32_t id;                     /* of the queue; the delay level in 45 */
	int64_t off;
};
struct body_group_offsets {
	struct mq_str key;              /* "topic@group" */
	size_t n;
	struct body_queue_offset *queue;
};
struct body_offset_table {              /* ConsumerOffsetSerializeWrapper */
	struct body_keep keep;
	struct body_version version;
	size_t n;
	struct body_group_offsets *entry;
};
int body_offset_table_decode(struct mq_str body, struct body_offset_table *t, struct mq_error *e);
void body_offset_table_encode(const struct body_offset_table *t, struct buf *out);
void body_offset_table_free(struct body_offset_table *t);

struct body_delay_table {               /* DelayOffsetSerializeWrapper */
	struct body_keep keep;
	struct body_version version;
	size_t n;
	struct body_queue_offset *level;
};
int body_delay_table_decode(struct mq_str body, struct body_delay_table *t, struct mq_error *e);
void body_delay_table_encode(const struct body_delay_table *t, struct buf *out);
void body_delay_table_free(struct body_delay_table *t);

struct body_reset_queue {
	struct body_queue queue;
	int64_t off;
};
struct body_reset {                     /* ResetOffsetBody */
	struct body_keep keep;
	size_t n;
	struct body_reset_queue *queue;
};
int body_reset_decode(struct mq_str body, struct body_reset *r,
                      struct mq_error *e); /* object keys, or the list for C++ */
void body_reset_encode(const struct body_reset *r, struct buf *out);
void body_reset_encode_list(const struct body_reset *r, struct buf *out);              /* ResetOffsetBodyForC */
void body_reset_free(struct body_reset *r);

struct body_client_offsets {
	struct mq_str client_id;
	struct body_reset at;           /* its keep is not used */
};
struct body_consumer_status {           /* GetConsumerStatusBody: how far the clients of a group have got */
	struct body_keep keep;
	struct body_reset own;          /* messageQueueTable: of the client that answers 221 */
	size_t n;
	struct body_client_offsets *client; /* consumerTable: of all, in the answer to 223 */
};
int body_consumer_status_decode(struct mq_str body, struct body_consumer_status *s, struct mq_error *e);
void body_consumer_status_encode(const struct body_consumer_status *s, struct buf *out);
void body_consumer_status_free(struct body_consumer_status *s);

struct body_lock {                      /* Lock-, UnlockBatchRequestBody */
	struct body_keep keep;
	struct mq_str client_id, group;
	bool only_this_broker;
	size_t n;
	struct body_queue *queue;
};
int body_lock_decode(struct mq_str body, struct body_lock *l, struct mq_error *e);
void body_lock_encode(const struct body_lock *l, struct buf *out);
void body_lock_free(struct body_lock *l);

struct body_locked {                    /* LockBatchResponseBody: what was locked */
	struct body_keep keep;
	size_t n;
	struct body_queue *queue;
};
int body_locked_decode(struct mq_str body, struct body_locked *l, struct mq_error *e);
void body_locked_encode(const struct body_locked *l, struct buf *out);
void body_locked_free(struct body_locked *l);

#endif
