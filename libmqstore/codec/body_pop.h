/* body_pop.h: what is written to the revive log (check-points and acks), acks in batches (151 + 200000), and which group reads which
 * topic in which mode (400, 401, 402).  Source: the peer's remoting.protocol.body, and its records in the store.
 * The file config/messageRequestMode.json has the shape of the answer to 402. */
#ifndef CODEC_BODY_POP_H
#define CODEC_BODY_POP_H

#include "body.h"
#include "receipt.h"

struct body_ck {                        /* PopCheckPoint: tag ck */
	int64_t start, pop_ms, invisible_ms;
	int32_t queue_id;
	int32_t n;                      /* messages; 0..RECEIPT_POP_MAX */
	uint32_t acked;                 /* bit i: message i */
	int32_t diff[RECEIPT_POP_MAX];  /* of message i: its offset - start */
	struct mq_str topic, group, broker;
};
/* Views are good until body_free(k).  0, or MQ_EINVAL: also without topic or group, or with impossible numbers. */
int body_ck_decode(struct body_keep *k, struct mq_str body, struct body_ck *c, struct mq_error *e);
void body_ck_encode(const struct body_ck *c, struct buf *out);
/* Which message has this offset in the queue; -1: none. */
int body_ck_index(const struct body_ck *c, int64_t off);

struct body_ack {                       /* AckMsg, BatchAckMsg: tags ack, bAck */
	int64_t start, pop_ms;
	int32_t queue_id;
	size_t n;
	int64_t *off;                   /* what was acked */
	struct mq_str topic, group, broker;
};
int body_ack_decode(struct body_keep *k, struct mq_str body, struct body_ack *a, struct mq_error *e);
void body_ack_encode(const struct body_ack *a, bool batch, struct buf *out);   /* not batch: off[0] alone */

struct body_ack_request {               /* one of a BatchAckMessageRequestBody */
	struct mq_str topic, group;
	enum receipt_retry retry;
	int64_t start, pop_ms, invisible_ms;
	int32_t queue_id, revive_queue;
	size_t nbits;                   /* bytes */
	const uint8_t *bits;            /* bit i, from the lowest of byte 0: offset start + i */
};
struct body_acks {
	struct body_keep keep;
	struct mq_str broker;
	size_t n;
	struct body_ack_request *ack;
};
int body_acks_decode(struct mq_str body, struct body_acks *a, struct mq_error *e);
void body_acks_encode(const struct body_acks *a, struct buf *out);

/* ---- Modes ----------------------------------------------------------------------------------------------------------- */

struct body_mode {                      /* SetMessageRequestModeRequestBody */
	struct mq_str topic, group;
	bool pop;                       /* else pull */
	int32_t share;                  /* popShareQueueNum */
};
struct body_modes {                     /* MessageRequestModeSerializeWrapper */
	struct body_keep keep;
	size_t n;
	struct body_mode *mode;         /* encoding: those of one topic stand together */
};
int body_mode_decode(struct body_keep *k, struct mq_str body, struct body_mode *m, struct mq_error *e);
void body_mode_encode(const struct body_mode *m, struct buf *out);
int body_modes_decode(struct mq_str body, struct body_modes *m, struct mq_error *e);
void body_modes_get(const json_t *o, struct body_modes *m);     /* of a parsed file; keep->chunks holds the array */
void body_modes_encode(const struct body_modes *m, struct buf *out);

struct body_assignment_query {          /* QueryAssignmentRequestBody */
	struct mq_str topic, group, client_id, strategy;
	bool broadcasting;
};
int body_assignment_query_decode(struct body_keep *k, struct mq_str body, struct body_assignment_query *q, struct mq_error *e);
void body_assignment_query_encode(const struct body_assignment_query *q, struct buf *out);

struct body_assignment {                /* QueryAssignmentResponseBody */
	struct body_keep keep;
	bool known;                     /* else: what the client has is to stay */
	bool pop;
	size_t n;
	struct body_queue *queue;       /* id -1: any queue of that broker */
};
int body_assignment_decode(struct mq_str body, struct body_assignment *a, struct mq_error *e);
void body_assignment_encode(const struct body_assignment *a, struct buf *out);

#endif
