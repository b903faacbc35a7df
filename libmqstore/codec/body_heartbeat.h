/* body_heartbeat.h: what a client says of itself: its groups and subscriptions (34, 46), and who consumes (38).
 * Source: the peer's HeartbeatData; clients in other languages leave members out and send enums as numbers. */
#ifndef CODEC_BODY_HEARTBEAT_H
#define CODEC_BODY_HEARTBEAT_H

#include "body.h"

/* Values are the peer's ordinals. */
enum body_consume_type { CONSUME_ACTIVELY, CONSUME_PASSIVELY, CONSUME_POP };
enum body_model { MODEL_BROADCASTING, MODEL_CLUSTERING };
enum body_from {
	FROM_LAST_OFFSET, FROM_LAST_OFFSET_AND_MIN_WHEN_BOOT_FIRST, FROM_MIN_OFFSET, FROM_MAX_OFFSET, FROM_FIRST_OFFSET,
	FROM_TIMESTAMP,
};
const char *body_consume_type_name(enum body_consume_type t);   /* "CONSUME_PASSIVELY" */
const char *body_model_name(enum body_model m);                 /* "CLUSTERING" */
const char *body_from_name(enum body_from f);                   /* "CONSUME_FROM_LAST_OFFSET" */

/* The members consumeType, messageModel, consumeFromWhere of o: names or numbers; defaults as below. */
void body_how_get(const json_t *o, enum body_consume_type *type, enum body_model *model, enum body_from *from);

struct body_sub {                       /* SubscriptionData */
	struct mq_str topic, expression;
	struct mq_str type;             /* "TAG" if absent */
	int64_t version;
	bool class_filter;
	size_t ntags, ncodes;
	struct mq_str *tag;
	int32_t *code;                  /* not to be trusted: Go hashes UTF-8 bytes */
};
void body_sub_get(struct body_keep *k, const json_t *o, struct body_sub *s);
void body_sub_put(struct json_out *o, const struct body_sub *s);

struct body_consumer {                  /* ConsumerData */
	struct mq_str group;
	enum body_consume_type type;    /* default passively */
	enum body_model model;          /* default clustering */
	enum body_from from;            /* default last offset */
	bool unit_mode;
	size_t nsubs;
	struct body_sub *sub;
};
struct body_heartbeat {
	struct body_keep keep;
	struct mq_str client_id;
	int32_t fingerprint;            /* 0: version 1 of heartbeats */
	bool without_sub;
	size_t nproducers, nconsumers;
	struct mq_str *producer;        /* group names */
	struct body_consumer *consumer;
};
int body_heartbeat_decode(struct mq_str body, struct body_heartbeat *h, struct mq_error *e);
void body_heartbeat_encode(const struct body_heartbeat *h, struct buf *out);
void body_heartbeat_free(struct body_heartbeat *h);

struct body_client_check {              /* CHECK_CLIENT_CONFIG */
	struct body_keep keep;
	struct mq_str client_id, group, namespace;      /* namespace: p == NULL: none */
	struct body_sub sub;
};
int body_client_check_decode(struct mq_str body, struct body_client_check *c, struct mq_error *e);
void body_client_check_encode(const struct body_client_check *c, struct buf *out);
void body_client_check_free(struct body_client_check *c);

struct body_consumer_list {
	struct body_keep keep;
	size_t n;
	struct mq_str *id;
};
int body_consumer_list_decode(struct mq_str body, struct body_consumer_list *l, struct mq_error *e);
void body_consumer_list_encode(const struct body_consumer_list *l, struct buf *out);
void body_consumer_list_free(struct body_consumer_list *l);

#endif
