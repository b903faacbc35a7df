/* body.c: memory of decoded bodies, and the small objects that many bodies have. */
#include "body.h"
#include "../base/err.h"
#include "../base/mem.h"
#include "../base/str.h"

#include <stdlib.h>

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

struct body_chunk {
	struct body_chunk *next;
	size_t used, size;
	max_align_t bytes[];
};

enum { BODY_CHUNK_FIRST = 512, BODY_CHUNK_MAX = 64 * 1024 };

void *body_alloc(struct body_keep *k, size_t n)
{
	struct body_chunk *c = k->chunks;
	char *p;

	n = (n + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (!c || c->size - c->used < n) {
		size_t size = !c ? BODY_CHUNK_FIRST : c->size < BODY_CHUNK_MAX ? c->size * 2 : BODY_CHUNK_MAX;

		if (size < n)
			size = n;
		c = mem_alloc(sizeof(*c) + size);
		c->size = size;
		c->next = k->chunks;
		k->chunks = c;
	}
	p = (char *)c->bytes + c->used;
	c->used += n;
	return p;
}

struct mq_str body_copy(struct body_keep *k, struct mq_str s)
{
	char *p;

	if (!s.p)
		return s;
	p = body_alloc(k, s.n + 1);
	memcpy(p, s.p, s.n);
	return (struct mq_str){ p, s.n };
}

void body_free(struct body_keep *k)
{
	while (k->chunks) {
		struct body_chunk *next = k->chunks->next;

		free(k->chunks);
		k->chunks = next;
	}
	if (k->json)
		json_decref(k->json);
	k->json = NULL;
}

int body_parse(struct body_keep *k, struct mq_str body, const char *what, struct mq_error *e)
{
	if (!body.n)
		return err_set(e, MQ_EINVAL, "%s: there is no body", what);
	k->json = json_parse(body, e);
	if (!k->json) {
		err_wrap(e, "%s", what);
		return MQ_EINVAL;
	}
	if (!json_is_object(k->json)) {
		body_free(k);
		return err_set(e, MQ_EINVAL, "%s: the body is no JSON object", what);
	}
	return 0;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------- */

size_t body_size(const json_t *v)
{
	return json_is_array(v) ? json_array_size(v) : json_object_size(v);
}

int body_enum(const json_t *o, const char *key, const char *const *names, int n, int otherwise)
{
	const json_t *v = json_object_get(o, key);
	int64_t number;

	for (int i = 0; i < n && json_is_string(v); i++)
		if (str_is(json_text(v), names[i]))
			return i;
	number = json_i64(o, key, -1);
	return number >= 0 && number < n ? (int)number : otherwise;
}

size_t body_strings_get(struct body_keep *k, const json_t *array, struct mq_str **v)
{
	size_t n = 0, i;
	json_t *one;

	*v = NULL;
	if (!json_is_array(array) || !json_array_size(array))
		return 0;
	*v = body_alloc(k, json_array_size(array) * sizeof(**v));
	json_array_foreach(array, i, one)
		if (json_is_string(one))
			(*v)[n++] = json_text(one);
	return n;
}

void body_strings_put(struct json_out *o, const char *key, const struct mq_str *v, size_t n)
{
	json_key(o, key);
	json_open(o, '[');
	for (size_t i = 0; i < n; i++)
		json_put_str(o, v[i]);
	json_close(o, ']');
}

size_t body_pairs_get(struct body_keep *k, const json_t *object, struct body_pair **v)
{
	json_t *o = (json_t *)(uintptr_t)object, *one;
	size_t n = 0;
	const char *key;

	*v = NULL;
	if (!json_is_object(object) || !json_object_size(object))
		return 0;
	*v = body_alloc(k, json_object_size(object) * sizeof(**v));
	json_object_foreach(o, key, one) {
		struct mq_str text = json_str(object, key);

		if (text.p)
			(*v)[n++] = (struct body_pair){ str_of(key), text };
	}
	return n;
}

void body_pairs_put(struct json_out *o, const char *key, const struct body_pair *v, size_t n)
{
	json_key(o, key);
	json_open(o, '{');
	for (size_t i = 0; i < n; i++) {
		json_key_str(o, v[i].key);
		json_put_str(o, v[i].value);
	}
	json_close(o, '}');
}

/* ---- DataVersion ------------------------------------------------------------------------------------------------- */

void body_version_next(struct body_version *v, int64_t now_ms, int64_t state)
{
	v->timestamp = now_ms;
	v->state = state;
	v->counter++;
}

void body_version_get(const json_t *o, struct body_version *v)
{
	v->state = json_i64(o, "stateVersion", 0);
	v->timestamp = json_i64(o, "timestamp", 0);
	v->counter = json_i64(o, "counter", 0);
}

static void version_value(struct json_out *o, const struct body_version *v)
{
	json_open(o, '{');
	json_member_i64(o, "counter", v->counter);
	json_member_i64(o, "stateVersion", v->state);
	json_member_i64(o, "timestamp", v->timestamp);
	json_close(o, '}');
}

void body_version_put(struct json_out *o, const char *key, const struct body_version *v)
{
	json_key(o, key);
	version_value(o, v);
}

int body_version_decode(struct mq_str body, struct body_version *v, struct mq_error *e)
{
	struct body_keep k = { 0 };
	int rc = body_parse(&k, body, "data version", e);

	if (rc)
		return rc;
	body_version_get(k.json, v);
	body_free(&k);
	return 0;
}

void body_version_encode(const struct body_version *v, struct buf *out)
{
	struct json_out o = json_to(out);

	version_value(&o, v);
}

/* ---- MessageQueue ------------------------------------------------------------------------------------------------ */

void body_queue_get(const json_t *o, struct body_queue *q)
{
	q->topic = json_str(o, "topic");
	q->broker = json_str(o, "brokerName");
	q->id = body_i32(o, "queueId", 0);
}

void body_queue_put(struct json_out *o, const struct body_queue *q)
{
	json_open(o, '{');
	if (q->broker.p)
		json_member_str(o, "brokerName", q->broker);
	json_member_i64(o, "queueId", q->id);
	if (q->topic.p)
		json_member_str(o, "topic", q->topic);
	json_close(o, '}');
}

void body_queue_put_key(struct json_out *o, const struct body_queue *q)
{
	body_queue_put(o, q);
	buf_char(o->b, ':');
	o->comma = false;
}

void body_queue_get_key(struct body_keep *k, const char *key, struct body_queue *q)
{
	json_t *o = json_parse(str_of(key), NULL);

	body_queue_get(o, q);
	q->topic = body_copy(k, q->topic);
	q->broker = body_copy(k, q->broker);
	if (o)
		json_decref(o);
}
