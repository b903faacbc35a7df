/* compose_json.h: a JSON line as mq-recv -J prints it, read again (mq-send(1), JSON LINES). */
#ifndef BIN_COMPOSE_JSON_H
#define BIN_COMPOSE_JSON_H

#include "compose.h"

/* What a line says.  All texts are copied into the buffers. */
struct compose_json {
	struct bytes *topic, *body, *keys, *tag, *props, *when, *sharding;
	char broker[256];
	int32_t queue_id;             /* -1 = none */
	int32_t flag;
	bool has_topic, has_body, has_keys, has_tag, has_when, has_sharding;
};

/* 0 or MQ_EINVAL with the reason. */
int compose_json_read(struct compose_json *j, struct mq_str line, struct mq_error *err);

#endif
