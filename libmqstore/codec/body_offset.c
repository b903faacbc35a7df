/* body_offset.c: offsets of groups, delay levels and resets; sets of locked queues. */
#include "body_offset.h"
#include "../base/str.h"

#include <stdio.h>

/* ---- Queue number → offset --------------------------------------------------------------------------------------- */

static size_t offsets_get(struct body_keep *k, const json_t *object, struct body_queue_offset **v)
{
	json_t *o = (json_t *)(uintptr_t)object, *one;
	const char *key;
	size_t n = 0;

	*v = body_alloc(k, json_object_size(object) * sizeof(**v));
	json_object_foreach(o, key, one)
		if (str_i32(str_of(key), &(*v)[n].id) == 0)
			(*v)[n++].off = json_i64(object, key, 0);
	return n;
}

static void offsets_put(struct json_out *o, const struct body_queue_offset *v, size_t n)
{
	json_open(o, '{');
	for (size_t i = 0; i < n; i++) {
		char key[16];

		json_key_raw(o, key, (size_t)snprintf(key, sizeof(key), "%d", v[i].id));
		json_put_i64(o, v[i].off);
	}
	json_close(o, '}');
}

/* ---- ConsumerOffsetSerializeWrapper ------------------------------------------------------------------------------ */

int body_offset_table_decode(struct mq_str body, struct body_offset_table *t, struct mq_error *e)
{
	json_t *table, *one;
	const char *key;
	int rc;

	*t = (struct body_offset_table){ 0 };
	rc = body_parse(&t->keep, body, "offset table", e);
	if (rc)
		return rc;
	body_version_get(json_object_at(t->keep.json, "dataVersion"), &t->version);
	table = json_object_at(t->keep.json, "offsetTable");
	t->entry = body_alloc(&t->keep, body_size(table) * sizeof(*t->entry));
	json_object_foreach(table, key, one) {
		struct body_group_offsets *g = &t->entry[t->n++];

		g->key = str_of(key);
		g->n = offsets_get(&t->keep, one, &g->queue);
	}
	return 0;
}

void body_offset_table_encode(const struct body_offset_table *t, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	body_version_put(&o, "dataVersion", &t->version);
	json_key(&o, "offsetTable");
	json_open(&o, '{');
	for (size_t i = 0; i < t->n; i++) {
		json_key_str(&o, t->entry[i].key);
		offsets_put(&o, t->entry[i].queue, t->entry[i].n);
	}
	json_close(&o, '}');
	json_close(&o, '}');
}

void body_offset_table_free(struct body_offset_table *t)
{
	body_free(&t->keep);
}

/* ---- DelayOffsetSerializeWrapper --------------------------------------------------------------------------------- */

int body_delay_table_decode(struct mq_str body, struct body_delay_table *t, struct mq_error *e)
{
	int rc;

	*t = (struct body_delay_table){ 0 };
	rc = body_parse(&t->keep, body, "delay offsets", e);
	if (rc)
		return rc;
	body_version_get(json_object_at(t->keep.json, "dataVersion"), &t->version);
	t->n = offsets_get(&t->keep, json_object_at(t->keep.json, "offsetTable"), &t->level);
	return 0;
}

void body_delay_table_encode(const struct body_delay_table *t, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	body_version_put(&o, "dataVersion", &t->version);
	json_key(&o, "offsetTable");
	offsets_put(&o, t->level, t->n);
	json_close(&o, '}');
}

void body_delay_table_free(struct body_delay_table *t)
{
	body_free(&t->keep);
}

/* ---- ResetOffsetBody, ResetOffsetBodyForC ------------------------------------------------------------------------ */

/* {{queue}:offset,...} */
static void queue_offsets_get(struct body_keep *k, json_t *table, struct body_reset *r)
{
	const char *key;
	json_t *one;

	r->queue = body_alloc(k, body_size(table) * sizeof(*r->queue));
	json_object_foreach(table, key, one) {
		body_queue_get_key(k, key, &r->queue[r->n].queue);
		r->queue[r->n++].off = json_i64(table, key, 0);
	}
}

static void queue_offsets_put(struct json_out *o, const struct body_reset *r)
{
	json_open(o, '{');
	for (size_t i = 0; i < r->n; i++) {
		body_queue_put_key(o, &r->queue[i].queue);
		json_put_i64(o, r->queue[i].off);
	}
	json_close(o, '}');
}

int body_reset_decode(struct mq_str body, struct body_reset *r, struct mq_error *e)
{
	json_t *table, *one;
	size_t i;
	int rc;

	*r = (struct body_reset){ 0 };
	rc = body_parse(&r->keep, body, "reset offsets", e);
	if (rc)
		return rc;
	table = json_object_get(r->keep.json, "offsetTable");
	if (json_is_array(table)) {
		r->queue = body_alloc(&r->keep, body_size(table) * sizeof(*r->queue));
		json_array_foreach(table, i, one) {
			body_queue_get(one, &r->queue[r->n].queue);
			r->queue[r->n++].off = json_i64(one, "offset", 0);
		}
	} else {
		queue_offsets_get(&r->keep, table, r);
	}
	return 0;
}

/* compat: Go reads this by cutting the text: compact, {queue}:offset, nothing else. */
void body_reset_encode(const struct body_reset *r, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "offsetTable");
	queue_offsets_put(&o, r);
	json_close(&o, '}');
}

void body_reset_encode_list(const struct body_reset *r, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "offsetTable");
	json_open(&o, '[');
	for (size_t i = 0; i < r->n; i++) {
		json_open(&o, '{');
		json_member_str(&o, "brokerName", r->queue[i].queue.broker);
		json_member_i64(&o, "offset", r->queue[i].off);
		json_member_i64(&o, "queueId", r->queue[i].queue.id);
		json_member_str(&o, "topic", r->queue[i].queue.topic);
		json_close(&o, '}');
	}
	json_close(&o, ']');
	json_close(&o, '}');
}

void body_reset_free(struct body_reset *r)
{
	body_free(&r->keep);
}

/* ---- Of each client ---------------------------------------------------------------------------------------------- */

int body_consumer_status_decode(struct mq_str body, struct body_consumer_status *s, struct mq_error *e)
{
	json_t *table, *one;
	const char *id;
	int rc;

	*s = (struct body_consumer_status){ 0 };
	rc = body_parse(&s->keep, body, "consumer status", e);
	if (rc)
		return rc;
	queue_offsets_get(&s->keep, json_object_at(s->keep.json, "messageQueueTable"), &s->own);
	table = json_object_at(s->keep.json, "consumerTable");
	s->client = body_alloc(&s->keep, body_size(table) * sizeof(*s->client));
	json_object_foreach(table, id, one) {
		s->client[s->n].client_id = str_of(id);
		queue_offsets_get(&s->keep, one, &s->client[s->n++].at);
	}
	return 0;
}

void body_consumer_status_encode(const struct body_consumer_status *s, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "consumerTable");
	json_open(&o, '{');
	for (size_t i = 0; i < s->n; i++) {
		json_key_str(&o, s->client[i].client_id);
		queue_offsets_put(&o, &s->client[i].at);
	}
	json_close(&o, '}');
	json_key(&o, "messageQueueTable");
	queue_offsets_put(&o, &s->own);
	json_close(&o, '}');
}

void body_consumer_status_free(struct body_consumer_status *s)
{
	body_free(&s->keep);
}

/* ---- Sets of queues ---------------------------------------------------------------------------------------------- */

static size_t queues_get(struct body_keep *k, const json_t *array, struct body_queue **v)
{
	size_t n = 0, i;
	json_t *one;

	*v = body_alloc(k, body_size(array) * sizeof(**v));
	json_array_foreach(array, i, one)
		if (json_is_object(one))
			body_queue_get(one, &(*v)[n++]);
	return n;
}

static void queues_put(struct json_out *o, const char *key, const struct body_queue *v, size_t n)
{
	json_key(o, key);
	json_open(o, '[');
	for (size_t i = 0; i < n; i++)
		body_queue_put(o, &v[i]);
	json_close(o, ']');
}

int body_lock_decode(struct mq_str body, struct body_lock *l, struct mq_error *e)
{
	int rc;

	*l = (struct body_lock){ 0 };
	rc = body_parse(&l->keep, body, "lock request", e);
	if (rc)
		return rc;
	l->client_id = json_str(l->keep.json, "clientId");
	l->group = json_str(l->keep.json, "consumerGroup");
	l->only_this_broker = json_bool(l->keep.json, "onlyThisBroker", false);
	l->n = queues_get(&l->keep, json_array_at(l->keep.json, "mqSet"), &l->queue);
	return 0;
}

void body_lock_encode(const struct body_lock *l, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_member_str(&o, "clientId", l->client_id);
	json_member_str(&o, "consumerGroup", l->group);
	queues_put(&o, "mqSet", l->queue, l->n);
	json_member_bool(&o, "onlyThisBroker", l->only_this_broker);
	json_close(&o, '}');
}

void body_lock_free(struct body_lock *l)
{
	body_free(&l->keep);
}

int body_locked_decode(struct mq_str body, struct body_locked *l, struct mq_error *e)
{
	int rc;

	*l = (struct body_locked){ 0 };
	rc = body_parse(&l->keep, body, "lock answer", e);
	if (rc)
		return rc;
	l->n = queues_get(&l->keep, json_array_at(l->keep.json, "lockOKMQSet"), &l->queue);
	return 0;
}

void body_locked_encode(const struct body_locked *l, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	queues_put(&o, "lockOKMQSet", l->queue, l->n);
	json_close(&o, '}');
}

void body_locked_free(struct body_locked *l)
{
	body_free(&l->keep);
}
