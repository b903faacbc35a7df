/* body_pop.c: check-points, acks, modes and assignments as JSON. */
#include "body_pop.h"
#include "../base/err.h"
#include "../base/str.h"

enum { OFFS_MAX = 4096, BITS_MAX = 64 * 1024 };

/* A member by its short name, or by its long one, which old brokers and clients wrote. */
static const char *either(const json_t *o, const char *name, const char *alias)
{
	return json_object_get(o, name) ? name : alias;
}

/* ---- Check-points ---------------------------------------------------------------------------------------------------- */

int body_ck_decode(struct body_keep *k, struct mq_str body, struct body_ck *c, struct mq_error *e)
{
	int rc = body_parse(k, body, "check-point", e);
	json_t *diff;

	if (rc < 0)
		return rc;
	*c = (struct body_ck){
		.start = json_i64(k->json, "so", 0), .pop_ms = json_i64(k->json, "pt", 0), .invisible_ms = json_i64(k->json, "it", 0),
		.queue_id = body_i32(k->json, "q", 0), .n = body_i32(k->json, "n", 0), .acked = (uint32_t)json_i64(k->json, "bm", 0),
		.topic = json_str(k->json, "t"), .group = json_str(k->json, "c"), .broker = json_str(k->json, "bn"),
	};
	diff = json_array_at(k->json, "d");
	for (int32_t i = 0; i < RECEIPT_POP_MAX; i++) /* without: as old brokers wrote it */
		c->diff[i] = diff ? (int32_t)json_integer_value(json_array_get(diff, (size_t)i)) : i;
	if (c->topic.n && c->group.n && c->n >= 0 && c->n <= RECEIPT_POP_MAX && c->start >= 0 && c->queue_id >= 0 &&
	    (!diff || json_array_size(diff) >= (size_t)c->n))
		return 0;
	body_free(k);
	return err_set(e, MQ_EINVAL, "check-point: topic (t) and group (c), 0 to %d messages (n) with their offsets (d) are wanted",
		       RECEIPT_POP_MAX);
}

void body_ck_encode(const struct body_ck *c, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_member_i64(&o, "bm", (int32_t)c->acked);
	json_member_str(&o, "bn", c->broker);
	json_member_str(&o, "c", c->group);
	json_key(&o, "d");
	json_open(&o, '[');
	for (int32_t i = 0; i < c->n; i++)
		json_put_i64(&o, c->diff[i]);
	json_close(&o, ']');
	json_member_i64(&o, "it", c->invisible_ms);
	json_member_i64(&o, "n", c->n);
	json_member_i64(&o, "pt", c->pop_ms);
	json_member_i64(&o, "q", c->queue_id);
	json_member_i64(&o, "reviveTime", c->pop_ms + c->invisible_ms);
	json_member_i64(&o, "ro", 0);
	json_member_i64(&o, "so", c->start);
	json_member_str(&o, "t", c->topic);
	json_close(&o, '}');
}

int body_ck_index(const struct body_ck *c, int64_t off)
{
	for (int32_t i = 0; i < c->n; i++)
		if (c->start + c->diff[i] == off)
			return i;
	return -1;
}

/* ---- Acks ------------------------------------------------------------------------------------------------------------ */

int body_ack_decode(struct body_keep *k, struct mq_str body, struct body_ack *a, struct mq_error *e)
{
	int rc = body_parse(k, body, "ack", e);
	const json_t *o = k->json;
	json_t *offs;

	if (rc < 0)
		return rc;
	*a = (struct body_ack){
		.start = json_i64(o, either(o, "so", "startOffset"), 0), .pop_ms = json_i64(o, either(o, "pt", "popTime"), 0),
		.queue_id = body_i32(o, either(o, "q", "queueId"), 0), .topic = json_str(o, either(o, "t", "topic")),
		.group = json_str(o, either(o, "c", "consumerGroup")), .broker = json_str(o, either(o, "bn", "brokerName")),
	};
	offs = json_array_at(o, either(o, "aol", "ackOffsetList"));
	a->n = offs ? json_array_size(offs) : 1;
	if (!a->topic.n || !a->group.n || a->n > OFFS_MAX) {
		body_free(k);
		return err_set(e, MQ_EINVAL, "ack: topic (t), group (c) and at most %d offsets (ao, aol) are wanted", OFFS_MAX);
	}
	a->off = body_alloc(k, (a->n + 1) * sizeof *a->off);
	if (!offs)
		a->off[0] = json_i64(o, either(o, "ao", "ackOffset"), -1);
	for (size_t i = 0; offs && i < a->n; i++)
		a->off[i] = json_integer_value(json_array_get(offs, i));
	return 0;
}

void body_ack_encode(const struct body_ack *a, bool batch, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_member_i64(&o, "ao", batch ? -1 : a->off[0]);
	if (batch) {
		json_key(&o, "aol");
		json_open(&o, '[');
		for (size_t i = 0; i < a->n; i++)
			json_put_i64(&o, a->off[i]);
		json_close(&o, ']');
	}
	json_member_str(&o, "bn", a->broker);
	json_member_str(&o, "c", a->group);
	json_member_i64(&o, "pt", a->pop_ms);
	json_member_i64(&o, "q", a->queue_id);
	json_member_i64(&o, "so", a->start);
	json_member_str(&o, "t", a->topic);
	json_close(&o, '}');
}

/* ---- Acks in batches: the bits are base64 ------------------------------------------------------------------------------ */

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static bool bits_get(struct body_keep *k, struct mq_str text, struct body_ack_request *a)
{
	uint8_t *to;
	uint32_t v = 0;
	int have = 0;

	while (text.n && text.p[text.n - 1] == '=')
		text.n--;
	if (text.n > BITS_MAX)
		return false;
	a->bits = to = body_alloc(k, text.n + 1);
	for (size_t i = 0; i < text.n; i++) {
		const char *at = text.p[i] ? strchr(base64, text.p[i]) : NULL;

		if (!at)
			return false;
		v = v << 6 | (uint32_t)(at - base64);
		have += 6;
		if (have >= 8) {
			have -= 8;
			to[a->nbits++] = (uint8_t)(v >> have);
		}
	}
	return true;
}

static void bits_put(struct json_out *o, const struct body_ack_request *a)
{
	char text[4];

	json_key(o, "b");
	buf_char(o->b, '"');
	for (size_t i = 0; i < a->nbits; i += 3) {
		uint32_t v = (uint32_t)a->bits[i] << 16;

		if (i + 1 < a->nbits)
			v |= (uint32_t)a->bits[i + 1] << 8;
		if (i + 2 < a->nbits)
			v |= a->bits[i + 2];
		text[0] = base64[v >> 18];
		text[1] = base64[v >> 12 & 63];
		text[2] = i + 1 < a->nbits ? base64[v >> 6 & 63] : '=';
		text[3] = i + 2 < a->nbits ? base64[v & 63] : '=';
		buf_put(o->b, text, sizeof text);
	}
	buf_char(o->b, '"');
	o->comma = true;
}

int body_acks_decode(struct mq_str body, struct body_acks *a, struct mq_error *e)
{
	json_t *list, *o;
	size_t i;
	int rc;

	*a = (struct body_acks){ 0 };
	rc = body_parse(&a->keep, body, "batch of acks", e);
	if (rc < 0)
		return rc;
	a->broker = json_str(a->keep.json, "brokerName");
	list = json_array_at(a->keep.json, "acks");
	a->ack = body_alloc(&a->keep, (body_size(list) + 1) * sizeof *a->ack);
	json_array_foreach(list, i, o) {
		struct body_ack_request *r = &a->ack[a->n++];
		int32_t retry = -1;

		*r = (struct body_ack_request){
			.topic = json_str(o, either(o, "t", "topic")), .group = json_str(o, either(o, "c", "consumerGroup")),
			.start = json_i64(o, either(o, "so", "startOffset"), 0), .pop_ms = json_i64(o, either(o, "pt", "popTime"), 0),
			.invisible_ms = json_i64(o, either(o, "it", "invisibleTime"), 0),
			.queue_id = body_i32(o, either(o, "q", "queueId"), -1),
			.revive_queue = body_i32(o, either(o, "rq", "reviveQueueId"), -1),
		};
		if (str_i32(json_str(o, either(o, "r", "retry")), &retry) < 0 || retry < RECEIPT_NORMAL || retry > RECEIPT_RETRY_V2 ||
		    !r->topic.n || !r->group.n || !bits_get(&a->keep, json_str(o, either(o, "b", "bitSet")), r)) {
			body_free(&a->keep);
			return err_set(e, MQ_EINVAL, "batch of acks: %zu: topic (t), group (c), retry (r: 0 to 2) and bits in base64 (b) "
				       "are wanted", i);
		}
		r->retry = (enum receipt_retry)retry;
	}
	return 0;
}

void body_acks_encode(const struct body_acks *a, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "acks");
	json_open(&o, '[');
	for (size_t i = 0; i < a->n; i++) {
		const struct body_ack_request *r = &a->ack[i];
		char retry[2] = { (char)('0' + (int)r->retry), 0 };

		json_open(&o, '{');
		bits_put(&o, r);
		json_member_str(&o, "c", r->group);
		json_member_i64(&o, "it", r->invisible_ms);
		json_member_i64(&o, "pt", r->pop_ms);
		json_member_i64(&o, "q", r->queue_id);
		json_member_cstr(&o, "r", retry);
		json_member_i64(&o, "rq", r->revive_queue);
		json_member_i64(&o, "so", r->start);
		json_member_str(&o, "t", r->topic);
		json_close(&o, '}');
	}
	json_close(&o, ']');
	json_member_str(&o, "brokerName", a->broker);
	json_close(&o, '}');
}

/* ---- Modes ----------------------------------------------------------------------------------------------------------- */

static const char *const mode_names[] = { "PULL", "POP" };

static void mode_get(const json_t *o, struct body_mode *m)
{
	*m = (struct body_mode){ .topic = json_str(o, "topic"), .group = json_str(o, "consumerGroup"),
				 .pop = body_enum(o, "mode", mode_names, 2, 0) == 1, .share = body_i32(o, "popShareQueueNum", 0) };
}

static void mode_put(struct json_out *o, const struct body_mode *m)
{
	json_open(o, '{');
	json_member_str(o, "consumerGroup", m->group);
	json_member_cstr(o, "mode", mode_names[m->pop]);
	json_member_i64(o, "popShareQueueNum", m->share);
	json_member_str(o, "topic", m->topic);
	json_close(o, '}');
}

int body_mode_decode(struct body_keep *k, struct mq_str body, struct body_mode *m, struct mq_error *e)
{
	int rc = body_parse(k, body, "mode of consumption", e);

	if (rc < 0)
		return rc;
	mode_get(k->json, m);
	if (m->topic.n && m->group.n)
		return 0;
	body_free(k);
	return err_set(e, MQ_EINVAL, "mode of consumption: topic and consumerGroup are wanted");
}

void body_mode_encode(const struct body_mode *m, struct buf *out)
{
	struct json_out o = json_to(out);

	mode_put(&o, m);
}

void body_modes_get(const json_t *o, struct body_modes *m)
{
	json_t *topics = json_object_at(o, "messageRequestModeMap"), *groups, *one;
	const char *topic, *group;
	size_t n = 0;

	json_object_foreach(topics, topic, groups)
		n += body_size(groups);
	m->mode = body_alloc(&m->keep, (n + 1) * sizeof *m->mode);
	json_object_foreach(topics, topic, groups)
		json_object_foreach(groups, group, one) {
			mode_get(one, &m->mode[m->n]);
			m->mode[m->n].topic = str_of(topic);
			m->mode[m->n++].group = str_of(group);
		}
}

int body_modes_decode(struct mq_str body, struct body_modes *m, struct mq_error *e)
{
	int rc;

	*m = (struct body_modes){ 0 };
	rc = body_parse(&m->keep, body, "modes of consumption", e);
	if (rc == 0)
		body_modes_get(m->keep.json, m);
	return rc;
}

void body_modes_encode(const struct body_modes *m, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "messageRequestModeMap");
	json_open(&o, '{');
	for (size_t i = 0; i < m->n; i++) {
		if (i == 0 || !str_eq(m->mode[i].topic, m->mode[i - 1].topic)) {
			if (i)
				json_close(&o, '}');
			json_key_str(&o, m->mode[i].topic);
			json_open(&o, '{');
		}
		json_key_str(&o, m->mode[i].group);
		mode_put(&o, &m->mode[i]);
	}
	if (m->n)
		json_close(&o, '}');
	json_close(&o, '}');
	json_close(&o, '}');
}

/* ---- Assignments ----------------------------------------------------------------------------------------------------- */

static const char *const model_names[] = { "BROADCASTING", "CLUSTERING" };

int body_assignment_query_decode(struct body_keep *k, struct mq_str body, struct body_assignment_query *q, struct mq_error *e)
{
	int rc = body_parse(k, body, "query of an assignment", e);

	if (rc < 0)
		return rc;
	*q = (struct body_assignment_query){
		.topic = json_str(k->json, "topic"), .group = json_str(k->json, "consumerGroup"),
		.client_id = json_str(k->json, "clientId"),
		.strategy = json_str(k->json, "strategyName"), .broadcasting = body_enum(k->json, "messageModel", model_names, 2, 1) == 0,
	};
	if (q->topic.n && q->group.n)
		return 0;
	body_free(k);
	return err_set(e, MQ_EINVAL, "query of an assignment: topic and consumerGroup are wanted");
}

void body_assignment_query_encode(const struct body_assignment_query *q, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_member_str(&o, "clientId", q->client_id);
	json_member_str(&o, "consumerGroup", q->group);
	json_member_cstr(&o, "messageModel", model_names[!q->broadcasting]);
	json_member_str(&o, "strategyName", q->strategy);
	json_member_str(&o, "topic", q->topic);
	json_close(&o, '}');
}

int body_assignment_decode(struct mq_str body, struct body_assignment *a, struct mq_error *e)
{
	json_t *list, *one;
	size_t i;
	int rc;

	*a = (struct body_assignment){ 0 };
	rc = body_parse(&a->keep, body, "assignment", e);
	if (rc < 0)
		return rc;
	list = json_array_at(a->keep.json, "messageQueueAssignments");
	a->known = list != NULL;
	a->queue = body_alloc(&a->keep, (body_size(list) + 1) * sizeof *a->queue);
	json_array_foreach(list, i, one) {
		body_queue_get(json_object_at(one, "messageQueue"), &a->queue[a->n++]);
		a->pop = body_enum(one, "mode", mode_names, 2, 0) == 1;
	}
	return 0;
}

void body_assignment_encode(const struct body_assignment *a, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	if (a->known) {
		json_key(&o, "messageQueueAssignments");
		json_open(&o, '[');
		for (size_t i = 0; i < a->n; i++) {
			json_open(&o, '{');
			json_key(&o, "messageQueue");
			body_queue_put(&o, &a->queue[i]);
			json_member_cstr(&o, "mode", mode_names[a->pop]);
			json_close(&o, '}');
		}
		json_close(&o, ']');
	}
	json_close(&o, '}');
}
