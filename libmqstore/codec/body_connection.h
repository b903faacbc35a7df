/* body_connection.h: who is connected: consumers of a group (203), producers of a group (204), all producers (328).
 * Source: the peer's ConsumerConnection, ProducerConnection, ProducerTableInfo. */
#ifndef CODEC_BODY_CONNECTION_H
#define CODEC_BODY_CONNECTION_H

#include "body_heartbeat.h"

struct body_connection {
	struct mq_str client_id, addr;  /* addr "ip:port" */
	uint8_t language;               /* frame_language_name(); 255 = unknown */
	int32_t version;
	int64_t last_ms;                /* last heartbeat; only in 328 */
};

struct body_consumer_connection {
	struct body_keep keep;
	enum body_consume_type type;
	enum body_model model;
	enum body_from from;
	size_t n, nsubs;
	struct body_connection *connection;
	struct body_sub *sub;
};
int body_consumer_connection_decode(struct mq_str body, struct body_consumer_connection *c, struct mq_error *e);
void body_consumer_connection_encode(const struct body_consumer_connection *c, struct buf *out);
void body_consumer_connection_free(struct body_consumer_connection *c);

struct body_producer_connection {
	struct body_keep keep;
	size_t n;
	struct body_connection *connection;
};
int body_producer_connection_decode(struct mq_str body, struct body_producer_connection *c, struct mq_error *e);
void body_producer_connection_encode(const struct body_producer_connection *c, struct buf *out);
void body_producer_connection_free(struct body_producer_connection *c);

struct body_producer_group {
	struct mq_str group;
	size_t n;
	struct body_connection *connection;
};
struct body_producer_table {            /* ProducerTableInfo */
	struct body_keep keep;
	size_t n;
	struct body_producer_group *group;
};
int body_producer_table_decode(struct mq_str body, struct body_producer_table *t, struct mq_error *e);
void body_producer_table_encode(const struct body_producer_table *t, struct buf *out);
void body_producer_table_free(struct body_producer_table *t);

#endif
