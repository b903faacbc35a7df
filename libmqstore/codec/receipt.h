/* receipt.h: the handle of a popped message, and the topics that popped messages come back by.
 *
 * A handle (property POP_CK, extraInfo of ACK and CHANGE_INVISIBLETIME) is text, separated by blanks:
 *	start popTime invisibleTime reviveQueue retry broker [queueId [offset [logOffset]]]
 * start is the first offset of the pop in its queue, retry a number of enum receipt_retry; the last is added by a proxy, for itself.
 * Source: the peer's ExtraInfoUtil. */
#ifndef CODEC_RECEIPT_H
#define CODEC_RECEIPT_H

#include "../base/buf.h"

enum receipt_retry {
	RECEIPT_NORMAL,                 /* the topic itself */
	RECEIPT_RETRY_V1,               /* %RETRY%group_topic */
	RECEIPT_RETRY_V2,               /* %RETRY%group+topic */
};
enum {
	RECEIPT_ORDER_QUEUE = 999,      /* reviveQueue of an ordered pop: it has no check-point */
	RECEIPT_TOPIC_MAX = 255,        /* bytes of a retry topic's name: a record holds no longer one */
	RECEIPT_POP_MAX = 32,           /* messages of one pop: bits of a check-point */
};

struct receipt {
	int64_t start, pop_ms, invisible_ms;    /* times: wall ms; duration */
	int64_t off;                            /* of the message in its queue; -1: not in the text */
	int32_t revive_queue;
	int32_t queue_id;                       /* -1: not in the text */
	enum receipt_retry retry;
	struct mq_str broker;                   /* a view into the text */
};

/* 0, or MQ_EINVAL with what is wrong. */
int receipt_parse(struct mq_str text, struct receipt *r, struct mq_error *e);
void receipt_write(const struct receipt *r, struct buf *out);

/* What a topic's name says. */
enum receipt_retry receipt_retry_of(struct mq_str topic);
/* The name of the topic for retries, or of the topic itself (RECEIPT_NORMAL), in `out`, NUL-terminated.  p == NULL: the two names
 * together are too long. */
struct mq_str receipt_topic(char out[RECEIPT_TOPIC_MAX + 1], enum receipt_retry retry, struct mq_str topic, struct mq_str group);
/* And back: the topic that the group popped; p == NULL: `topic` is a retry topic, but not of this group. */
struct mq_str receipt_normal_topic(struct mq_str topic, struct mq_str group);

#endif
