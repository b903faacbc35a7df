/* timer_count.c: how many timers wait, by the topic that they go to: config/timermetrics.  At a start that was not clean they are
 * counted again. */
#include "broker.h"
#include "timer_private.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

static struct timer_topic *find(const struct timer *t, struct mq_str name)
{
	struct timer_topic *x;

	HASH_FIND(hh, t->topics, name.p, name.n, x);
	return x;
}

static struct timer_topic *need(struct timer *t, struct mq_str name)
{
	struct timer_topic *x = find(t, name);

	if (x)
		return x;
	x = mem_alloc(sizeof *x + name.n + 1);
	memcpy(x->name, name.p, name.n);
	x->n = name.n;
	x->hash = str_java_hash(name);
	HASH_ADD_KEYPTR(hh, t->topics, x->name, x->n, x);
	return x;
}

static void changed(struct timer *t, struct timer_topic *x, int64_t by)
{
	x->count += by;
	x->stamp_ms = clock_now_ms();
	body_version_next(&t->counts_version, x->stamp_ms, 0);
	table_file_changed(&t->counts);
}

void timer_count_add(struct timer *t, struct mq_str topic, int64_t by)
{
	if (topic.n)
		changed(t, need(t, topic), by);
}

void timer_count_lost(struct timer *t, int32_t topic_hash)
{
	for (struct timer_topic *x = t->topics; x; x = x->hh.next)
		if (x->hash == topic_hash && x->count > 0) {
			changed(t, x, -1);
			return;
		}
}

int64_t timer_count(const struct timer *t, struct mq_str topic)
{
	const struct timer_topic *x = find(t, topic);

	return x && x->count > 0 ? x->count : 0;
}

void timer_write_counts(struct timer *t, struct buf *out)
{
	struct json_out j = json_to(out);

	json_open(&j, '{');
	body_version_put(&j, "dataVersion", &t->counts_version);
	json_key(&j, "timingCount");
	json_open(&j, '{');
	for (struct timer_topic *x = t->topics; x; x = x->hh.next) {
		json_key(&j, x->name);
		json_open(&j, '{');
		json_member_i64(&j, "count", x->count > 0 ? x->count : 0); /* a cancellation may come before what it cancels is known */
		json_member_i64(&j, "timeStamp", x->stamp_ms);
		json_close(&j, '}');
	}
	json_close(&j, '}');
	json_close(&j, '}');
}

static void write_file(void *table, struct buf *out)
{
	timer_write_counts(table, out);
}

static int count_unit(void *arg, const struct wheel_unit *u)
{
	struct timer *t = arg;
	struct timer_topic *x = t->topics;
	struct mq_message m;

	while (x && x->hash != u->topic_hash)
		x = x->hh.next;
	if (!x && timer_read(t, u->log_off, &m))
		x = need(t, mq_prop_get(m.props, PROP_REAL_TOPIC));
	if (x)
		changed(t, x, u->magic & WHEEL_DELETE ? -1 : 1);
	return 0;
}

static void load(struct timer *t, const json_t *json, bool trust)
{
	const char *key;
	json_t *v;

	body_version_get(json_object_at(json, "dataVersion"), &t->counts_version);
	json_object_foreach((json_t *)json_object_at(json, "timingCount"), key, v) {
		struct timer_topic *x = need(t, str_of(key));

		x->count = trust ? json_i64(v, "count", 0) : 0;
		x->stamp_ms = json_i64(v, "timeStamp", 0);
	}
}

int timer_counts_open(struct timer *t, bool trust, struct mq_error *e)
{
	json_t *json;
	int rc = table_file_open_as(&t->counts, t->b, "timermetrics", "timermetrics", write_file, t, &json, e);

	if (rc < 0)
		return rc;
	t->counts.later = true;
	if (json)
		load(t, json, trust);
	json_decref(json);
	return trust ? 0 : wheel_each(t->wheel, t->read_ms, INT64_MAX, count_unit, t);
}

void timer_counts_free(struct timer *t)
{
	struct timer_topic *x, *next;

	if (t->counts.path)
		table_file_close(&t->counts);
	HASH_ITER(hh, t->topics, x, next) {
		HASH_DEL(t->topics, x);
		free(x);
	}
}
