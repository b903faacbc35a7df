/* compose.h: from a record of the input to a message that can be sent, as the options say. */
#ifndef BIN_COMPOSE_H
#define BIN_COMPOSE_H

#include "bytes.h"
#include "frame_in.h"

struct composed {
	struct mq_message m;          /* queue_id -1, or that of the record's queue */
	char broker[256];             /* of the record's queue; "" = none given */
	struct mq_str sharding_key;   /* of the record; p == NULL = none given */
	bool delayed;                 /* it goes in a request of its own */
};

struct compose {
	struct mq_str topic;          /* of every message; p NULL = as the record says */
	bool queue_from_record;       /* else a record's queue is not looked at */
	struct mq_str key_delim;      /* -K; n 0 = none */
	size_t max_body;
	/* --- own matters below --- */
	struct bytes keys;            /* -k, joined with blanks */
	struct bytes tag;
	struct bytes fixed;           /* -H */
	struct bytes when;            /* -d or --at */
	struct bytes all;             /* fixed, tag and keys: what every message gets if nothing comes from the record */
	struct bytes props, body, sharding, topic_text, own_keys, own_tag, own_props, own_when; /* of the message at hand */
};

void compose_init(struct compose *c);
void compose_free(struct compose *c);

/* What every message gets.  0 or MQ_EINVAL with the reason. */
int compose_key(struct compose *c, const char *key, struct mq_error *err);
int compose_tag(struct compose *c, const char *tag, struct mq_error *err);
int compose_property(struct compose *c, const char *name_value, struct mq_error *err);   /* NAME=VALUE */
/* When every message is delivered that does not say it itself: a delay ("10s", "level:3") or a time (cli_time_ms()). */
int compose_delay(struct compose *c, const char *delay, struct mq_error *err);
int compose_at(struct compose *c, const char *time, struct mq_error *err);
/* Such a property, appended to b. */
int compose_put_delay(struct bytes *b, const char *delay, struct mq_error *err);
int compose_put_at(struct bytes *b, const char *time, struct mq_error *err);

/* Make a message of a record.  `id` is the unique id to give it, or NULL for one from the client.  Views in *out are good until
 * the record's bytes go or the next call.  Returns 0, COMPOSE_EMPTY (no body), MQ_EINVAL or MQ_ETOOBIG with the reason. */
#define COMPOSE_EMPTY 1
int compose_record(struct compose *c, enum frame_mode mode, struct mq_str record, const char *id, struct composed *out,
                   struct mq_error *err);

#endif
