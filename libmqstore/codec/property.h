/* property.h: the properties text: name 0x01 value 0x02 ...  mq_prop_get() and mq_prop_next() (mq.h) are defined here.
 *
 * No escaping exists: a name or value with 0x01 or 0x02 is refused by property_put(). */
#ifndef CODEC_PROPERTY_H
#define CODEC_PROPERTY_H

#include "../base/buf.h"

#define PROP_KEYS "KEYS"
#define PROP_TAGS "TAGS"
#define PROP_WAIT "WAIT"
#define PROP_DELAY "DELAY"
#define PROP_UNIQ_KEY "UNIQ_KEY"
#define PROP_RETRY_TOPIC "RETRY_TOPIC"
#define PROP_REAL_TOPIC "REAL_TOPIC"
#define PROP_REAL_QID "REAL_QID"
#define PROP_TRAN_MSG "TRAN_MSG"
#define PROP_PGROUP "PGROUP"
#define PROP_TRANSACTION_ID "__transactionId__"
#define PROP_TXN_FIRST "TRAN_PREPARED_QUEUE_OFFSET"
#define PROP_TXN_TIMES "TRANSACTION_CHECK_TIMES"
#define PROP_TXN_IMMUNITY "CHECK_IMMUNITY_TIME_IN_SECONDS"
#define PROP_MSG_REGION "MSG_REGION"
#define PROP_TRACE_ON "TRACE_ON"
#define PROP_CLUSTER "CLUSTER"
#define PROP_POP_CK "POP_CK"
#define PROP_CORRELATION_ID "CORRELATION_ID"
#define PROP_REPLY_TO "REPLY_TO_CLIENT"
#define PROP_TTL "TTL"
#define PROP_ORIGIN_ID "ORIGIN_MESSAGE_ID"
#define PROP_RECONSUME_TIME "RECONSUME_TIME"
#define PROP_MAX_RECONSUME "MAX_RECONSUME_TIMES"

/* Append name and value.  0, or MQ_EINVAL (separator byte inside, empty name). */
int property_put(struct buf *b, struct mq_str name, struct mq_str value);
/* Append all of `props` but those named in `drop` (NULL-ended). */
void property_copy_without(struct buf *b, struct mq_str props, const char *const *drop);

/* What the broker and the store want of a message, found in one pass. */
struct property_scan {
	struct mq_str uniq_key, keys, tags;
	int32_t delay_level;    /* 0 = none */
	bool wait;              /* false only for WAIT=false */
	bool tran_msg;          /* TRAN_MSG=true */
	bool timer;             /* one of TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS */
	bool has_pop_ck;
	bool has_cluster, has_region, has_trace;
	bool ends_open;         /* no 0x02 at the end */
};
void property_scan(struct mq_str props, struct property_scan *s);

/* Names that are looked for together, in one pass over the text. */
enum { PROPERTY_SET_MAX = 256, PROPERTY_SET_HASH = 64 };
struct property_set {
	uint32_t n;
	struct mq_str name[PROPERTY_SET_MAX];   /* borrowed */
	uint16_t first[PROPERTY_SET_HASH];      /* by hash: 1 + number of the name, 0 = none */
	uint16_t next[PROPERTY_SET_MAX];        /* of the same hash, likewise */
};
/* Its number, the same for the same name; -1 when the set is full. */
int property_set_add(struct property_set *s, struct mq_str name);
/* value[i] of name[i], for all n; as mq_prop_get(). */
void property_set_find(const struct property_set *s, struct mq_str props, struct mq_str *value);

#endif
