/* body_stats.c: numbers about queues, groups, counters. */
#include "body_stats.h"
#include "../base/str.h"

/* ---- TopicStatsTable --------------------------------------------------------------------------------------------- */

int body_topic_stats_decode(struct mq_str body, struct body_topic_stats *s, struct mq_error *e)
{
	json_t *table, *one;
	const char *key;
	int rc;

	*s = (struct body_topic_stats){ 0 };
	rc = body_parse(&s->keep, body, "topic stats", e);
	if (rc)
		return rc;
	table = json_object_at(s->keep.json, "offsetTable");
	s->queue = body_alloc(&s->keep, body_size(table) * sizeof(*s->queue));
	json_object_foreach(table, key, one) {
		struct body_queue_stats *q = &s->queue[s->n++];

		body_queue_get_key(&s->keep, key, &q->queue);
		q->min_off = json_i64(one, "minOffset", 0);
		q->max_off = json_i64(one, "maxOffset", 0);
		q->last_ms = json_i64(one, "lastUpdateTimestamp", 0);
	}
	return 0;
}

void body_topic_stats_encode(const struct body_topic_stats *s, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "offsetTable");
	json_open(&o, '{');
	for (size_t i = 0; i < s->n; i++) {
		body_queue_put_key(&o, &s->queue[i].queue);
		json_open(&o, '{');
		json_member_i64(&o, "lastUpdateTimestamp", s->queue[i].last_ms);
		json_member_i64(&o, "maxOffset", s->queue[i].max_off);
		json_member_i64(&o, "minOffset", s->queue[i].min_off);
		json_close(&o, '}');
	}
	json_close(&o, '}');
	json_close(&o, '}');
}

void body_topic_stats_free(struct body_topic_stats *s)
{
	body_free(&s->keep);
}

/* ---- ConsumeStats ------------------------------------------------------------------------------------------------ */

static void consume_stats_get(struct body_keep *k, const json_t *o, struct body_consume_stats *s)
{
	json_t *table = json_object_at(o, "offsetTable"), *one;
	const char *key;

	s->tps = json_double(o, "consumeTps", 0);
	s->queue = body_alloc(k, body_size(table) * sizeof(*s->queue));
	json_object_foreach(table, key, one) {
		struct body_queue_progress *q = &s->queue[s->n++];

		body_queue_get_key(k, key, &q->queue);
		q->broker_off = json_i64(one, "brokerOffset", 0);
		q->consumer_off = json_i64(one, "consumerOffset", 0);
		q->pull_off = json_i64(one, "pullOffset", 0);
		q->last_ms = json_i64(one, "lastTimestamp", 0);
	}
}

static void consume_stats_put(struct json_out *o, const struct body_consume_stats *s)
{
	json_open(o, '{');
	json_member_double(o, "consumeTps", s->tps);
	json_key(o, "offsetTable");
	json_open(o, '{');
	for (size_t i = 0; i < s->n; i++) {
		const struct body_queue_progress *q = &s->queue[i];

		body_queue_put_key(o, &q->queue);
		json_open(o, '{');
		json_member_i64(o, "brokerOffset", q->broker_off);
		json_member_i64(o, "consumerOffset", q->consumer_off);
		json_member_i64(o, "lastTimestamp", q->last_ms);
		json_member_i64(o, "pullOffset", q->pull_off);
		json_close(o, '}');
	}
	json_close(o, '}');
	json_close(o, '}');
}

int body_consume_stats_decode(struct mq_str body, struct body_consume_stats *s, struct mq_error *e)
{
	int rc;

	*s = (struct body_consume_stats){ 0 };
	rc = body_parse(&s->keep, body, "consume stats", e);
	if (rc)
		return rc;
	consume_stats_get(&s->keep, s->keep.json, s);
	return 0;
}

void body_consume_stats_encode(const struct body_consume_stats *s, struct buf *out)
{
	struct json_out o = json_to(out);

	consume_stats_put(&o, s);
}

void body_consume_stats_free(struct body_consume_stats *s)
{
	body_free(&s->keep);
}

/* ---- ConsumeStatsList -------------------------------------------------------------------------------------------- */

static void group_progress_get(struct body_keep *k, const char *group, const json_t *list,
                               struct body_group_progress *g)
{
	json_t *one;
	size_t i;

	g->group = str_of(group);
	g->stats = body_alloc(k, body_size(list) * sizeof(*g->stats));
	json_array_foreach(list, i, one)
		consume_stats_get(k, one, &g->stats[g->n++]);
}

int body_broker_progress_decode(struct mq_str body, struct body_broker_progress *p, struct mq_error *e)
{
	json_t *list, *groups, *one;
	const char *key;
	size_t i, n = 0;
	int rc;

	*p = (struct body_broker_progress){ 0 };
	rc = body_parse(&p->keep, body, "consume stats of a broker", e);
	if (rc)
		return rc;
	p->broker_addr = json_str(p->keep.json, "brokerAddr");
	p->total_diff = json_i64(p->keep.json, "totalDiff", 0);
	p->total_inflight_diff = json_i64(p->keep.json, "totalInflightDiff", 0);
	list = json_array_at(p->keep.json, "consumeStatsList");
	json_array_foreach(list, i, groups)
		n += json_object_size(groups);
	p->group = body_alloc(&p->keep, n * sizeof(*p->group));
	json_array_foreach(list, i, groups)
		json_object_foreach(groups, key, one)
			group_progress_get(&p->keep, key, json_is_array(one) ? one : NULL, &p->group[p->n++]);
	return 0;
}

void body_broker_progress_encode(const struct body_broker_progress *p, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_member_str(&o, "brokerAddr", p->broker_addr);
	json_key(&o, "consumeStatsList");
	json_open(&o, '[');
	for (size_t i = 0; i < p->n; i++) {
		json_open(&o, '{');
		json_key_str(&o, p->group[i].group);
		json_open(&o, '[');
		for (size_t k = 0; k < p->group[i].n; k++)
			consume_stats_put(&o, &p->group[i].stats[k]);
		json_close(&o, ']');
		json_close(&o, '}');
	}
	json_close(&o, ']');
	json_member_i64(&o, "totalDiff", p->total_diff);
	json_member_i64(&o, "totalInflightDiff", p->total_inflight_diff);
	json_close(&o, '}');
}

void body_broker_progress_free(struct body_broker_progress *p)
{
	body_free(&p->keep);
}

/* ---- BrokerStatsData --------------------------------------------------------------------------------------------- */

static void rate_get(const json_t *o, struct body_rate *r)
{
	r->sum = json_i64(o, "sum", 0);
	r->tps = json_double(o, "tps", 0);
	r->average = json_double(o, "avgpt", 0);
}

static void rate_put(struct json_out *o, const char *key, const struct body_rate *r)
{
	json_key(o, key);
	json_open(o, '{');
	json_member_double(o, "avgpt", r->average);
	json_member_i64(o, "sum", r->sum);
	json_member_double(o, "tps", r->tps);
	json_close(o, '}');
}

int body_broker_stats_decode(struct mq_str body, struct body_broker_stats *s, struct mq_error *e)
{
	struct body_keep k = { 0 };
	int rc = body_parse(&k, body, "broker stats", e);

	if (rc)
		return rc;
	rate_get(json_object_at(k.json, "statsMinute"), &s->minute);
	rate_get(json_object_at(k.json, "statsHour"), &s->hour);
	rate_get(json_object_at(k.json, "statsDay"), &s->day);
	body_free(&k);
	return 0;
}

void body_broker_stats_encode(const struct body_broker_stats *s, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	rate_put(&o, "statsDay", &s->day);
	rate_put(&o, "statsHour", &s->hour);
	rate_put(&o, "statsMinute", &s->minute);
	json_close(&o, '}');
}

/* ---- KVTable ----------------------------------------------------------------------------------------------------- */

int body_kv_decode(struct mq_str body, struct body_kv *t, struct mq_error *e)
{
	int rc;

	*t = (struct body_kv){ 0 };
	rc = body_parse(&t->keep, body, "key-value table", e);
	if (rc)
		return rc;
	t->n = body_pairs_get(&t->keep, json_object_at(t->keep.json, "table"), &t->pair);
	return 0;
}

void body_kv_encode(const struct body_kv *t, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	body_pairs_put(&o, "table", t->pair, t->n);
	json_close(&o, '}');
}

void body_kv_free(struct body_kv *t)
{
	body_free(&t->keep);
}

struct mq_str body_kv_get(const struct body_kv *t, const char *key)
{
	for (size_t i = 0; i < t->n; i++)
		if (str_is(t->pair[i].key, key))
			return t->pair[i].value;
	return (struct mq_str){ NULL, 0 };
}
