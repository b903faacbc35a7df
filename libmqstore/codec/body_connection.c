/* body_connection.c: connections of consumers and producers. */
#include "body_connection.h"
#include "frame.h"
#include "../base/str.h"

static void connection_get(const json_t *o, struct body_connection *c, const char *addr)
{
	*c = (struct body_connection){
		.client_id = json_str(o, "clientId"),
		.addr = json_str(o, addr),
		.language = frame_language_code(json_str(o, "language")),
		.version = body_i32(o, "version", 0),
		.last_ms = json_i64(o, "lastUpdateTimestamp", 0),
	};
	if (c->addr.n && c->addr.p[0] == '/') {
		c->addr.p++;
		c->addr.n--;
	}
}

static void connection_put(struct json_out *o, const struct body_connection *c)
{
	json_open(o, '{');
	json_member_str(o, "clientAddr", c->addr);
	json_member_str(o, "clientId", c->client_id);
	if (c->language != 255)
		json_member_cstr(o, "language", frame_language_name(c->language));
	json_member_i64(o, "version", c->version);
	json_close(o, '}');
}

static size_t connections_get(struct body_keep *k, const json_t *array, struct body_connection **v, const char *addr)
{
	size_t n = 0, i;
	json_t *one;

	*v = body_alloc(k, body_size(array) * sizeof(**v));
	json_array_foreach(array, i, one)
		if (json_is_object(one))
			connection_get(one, &(*v)[n++], addr);
	return n;
}

static void connections_put(struct json_out *o, const struct body_connection *v, size_t n)
{
	json_key(o, "connectionSet");
	json_open(o, '[');
	for (size_t i = 0; i < n; i++)
		connection_put(o, &v[i]);
	json_close(o, ']');
}

/* ---- ConsumerConnection ------------------------------------------------------------------------------------------ */

int body_consumer_connection_decode(struct mq_str body, struct body_consumer_connection *c, struct mq_error *e)
{
	json_t *subs, *one;
	const char *key;
	int rc;

	*c = (struct body_consumer_connection){ 0 };
	rc = body_parse(&c->keep, body, "consumer connection", e);
	if (rc)
		return rc;
	body_how_get(c->keep.json, &c->type, &c->model, &c->from);
	c->n = connections_get(&c->keep, json_array_at(c->keep.json, "connectionSet"), &c->connection, "clientAddr");
	subs = json_object_at(c->keep.json, "subscriptionTable");
	c->sub = body_alloc(&c->keep, body_size(subs) * sizeof(*c->sub));
	json_object_foreach(subs, key, one) {
		struct body_sub *s = &c->sub[c->nsubs];

		if (!json_is_object(one))
			continue;
		body_sub_get(&c->keep, one, s);
		if (!s->topic.p)
			s->topic = str_of(key);
		c->nsubs++;
	}
	return 0;
}

void body_consumer_connection_encode(const struct body_consumer_connection *c, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	connections_put(&o, c->connection, c->n);
	json_member_cstr(&o, "consumeFromWhere", body_from_name(c->from));
	json_member_cstr(&o, "consumeType", body_consume_type_name(c->type));
	json_member_cstr(&o, "messageModel", body_model_name(c->model));
	json_key(&o, "subscriptionTable");
	json_open(&o, '{');
	for (size_t i = 0; i < c->nsubs; i++) {
		json_key_str(&o, c->sub[i].topic);
		body_sub_put(&o, &c->sub[i]);
	}
	json_close(&o, '}');
	json_close(&o, '}');
}

void body_consumer_connection_free(struct body_consumer_connection *c)
{
	body_free(&c->keep);
}

/* ---- ProducerConnection ------------------------------------------------------------------------------------------ */

int body_producer_connection_decode(struct mq_str body, struct body_producer_connection *c, struct mq_error *e)
{
	int rc;

	*c = (struct body_producer_connection){ 0 };
	rc = body_parse(&c->keep, body, "producer connection", e);
	if (rc)
		return rc;
	c->n = connections_get(&c->keep, json_array_at(c->keep.json, "connectionSet"), &c->connection, "clientAddr");
	return 0;
}

void body_producer_connection_encode(const struct body_producer_connection *c, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	connections_put(&o, c->connection, c->n);
	json_close(&o, '}');
}

void body_producer_connection_free(struct body_producer_connection *c)
{
	body_free(&c->keep);
}

/* ---- ProducerTableInfo ------------------------------------------------------------------------------------------- */

int body_producer_table_decode(struct mq_str body, struct body_producer_table *t, struct mq_error *e)
{
	json_t *groups, *one;
	const char *key;
	int rc;

	*t = (struct body_producer_table){ 0 };
	rc = body_parse(&t->keep, body, "producer table", e);
	if (rc)
		return rc;
	groups = json_object_at(t->keep.json, "data");
	t->group = body_alloc(&t->keep, body_size(groups) * sizeof(*t->group));
	json_object_foreach(groups, key, one) {
		struct body_producer_group *g = &t->group[t->n++];

		g->group = str_of(key);
		g->n = connections_get(&t->keep, json_is_array(one) ? one : NULL, &g->connection, "remoteIP");
	}
	return 0;
}

void body_producer_table_encode(const struct body_producer_table *t, struct buf *out)
{
	struct json_out o = json_to(out);
	char addr[128];         /* host and port */

	json_open(&o, '{');
	json_key(&o, "data");
	json_open(&o, '{');
	for (size_t i = 0; i < t->n; i++) {
		json_key_str(&o, t->group[i].group);
		json_open(&o, '[');
		for (size_t k = 0; k < t->group[i].n; k++) {
			const struct body_connection *c = &t->group[i].connection[k];

			json_open(&o, '{');
			json_member_str(&o, "clientId", c->client_id);
			if (c->language != 255)
				json_member_cstr(&o, "language", frame_language_name(c->language));
			json_member_i64(&o, "lastUpdateTimestamp", c->last_ms);
			snprintf(addr, sizeof(addr), "/" MQ_STR_FMT, MQ_STR_ARG(c->addr)); /* compat: only here */
			json_member_cstr(&o, "remoteIP", addr);
			json_member_i64(&o, "version", c->version);
			json_close(&o, '}');
		}
		json_close(&o, ']');
	}
	json_close(&o, '}');
	json_close(&o, '}');
}

void body_producer_table_free(struct body_producer_table *t)
{
	body_free(&t->keep);
}
