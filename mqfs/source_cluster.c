/* source_cluster.c: see source_cluster.h.  Messages are pulled as the tools do: in the name of the group TOOLS_CONSUMER, which every
 * broker knows and which stores no offsets. */
#include "source_cluster.h"
#include "answer.h"
#include "cluster.h"
#include "fail.h"
#include "feed.h"
#include "task.h"
#include "../bin/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PULL_AHEAD = 256, PULL_SUBSCRIPTION = 4 };

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

/* The key of an offset table: a queue, as JSON text. */
static bool queue_of_key(const char *key, struct queue_name *q)
{
	json_t *o = json_loads(key, 0, NULL);
	bool good = o != NULL;

	snprintf(q->broker, sizeof(q->broker), "%s", member_text(o, "brokerName", ""));
	q->id = (int32_t)member_i64(o, "queueId", 0);
	json_decref(o);
	return good;
}

static int queues(const char *topic, struct queue_states *out)
{
	struct question q = { .code = 202 };
	struct cluster_route_queue *route;
	struct answer *a;
	const char **to, *key;
	json_t *o, *v;
	size_t n;
	int rc = cluster_route(topic, &route, &n), bad = 0;

	*out = (struct queue_states){ 0 };
	if (rc)
		return rc;
	a = calloc(n + 1, sizeof(*a));
	to = calloc(n + 1, sizeof(*to));
	if (!a || !to)
		cli_die(CLI_SYSTEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		to[i] = route[i].addr;
	question_str(&q, "topic", topic);
	answer_ask_all(to, n, &q, a);
	for (size_t i = 0; i < n; i++) {
		rc = answer_rc(&a[i], "queues", NULL);
		if (rc && rc != -ENOENT)
			bad = rc;
		o = rc ? NULL : answer_json(&a[i]);
		json_object_foreach(json_object_get(o, "offsetTable"), key, v) {
			struct queue_state s = { .min = member_i64(v, "minOffset", 0), .max = member_i64(v, "maxOffset", 0),
			                         .last_ms = member_i64(v, "lastUpdateTimestamp", 0) };
			if (queue_of_key(key, &s.q) && s.q.broker[0])
				queue_states_add(out, &s);
		}
		json_decref(o);
		answer_free(&a[i]);
	}
	free(a);
	free(to);
	free(route);
	queue_states_sort(out);
	if (bad)
		queue_states_free(out);
	return bad;
}

static int has_queue(const char *topic, const struct queue_name *q)
{
	struct cluster_route_queue *route;
	size_t n;
	int rc = cluster_route(topic, &route, &n);

	if (rc)
		return rc;
	rc = -ENOENT;
	for (size_t i = 0; i < n; i++)
		if (strcmp(route[i].broker, q->broker) == 0 && q->id >= 0 &&
		    (q->id < route[i].read || q->id < route[i].write))
			rc = 0;
	free(route);
	return rc;
}

static int ask_offset(int code, const char *topic, const struct queue_name *qn, int64_t ms, int64_t *out)
{
	struct question q = { .code = code };
	struct answer a;
	char addr[300];
	int rc = cluster_addr(qn->broker, 0, addr);

	if (rc)
		return rc;
	question_str(&q, "topic", topic);
	question_int(&q, "queueId", qn->id);
	if (code == 29)
		question_int(&q, "timestamp", ms);
	answer_ask(addr, &q, &a);
	rc = answer_rc(&a, "offset", NULL);
	*out = a.offset;
	answer_free(&a);
	return rc;
}

static int range(const char *topic, const struct queue_name *q, int64_t *min, int64_t *max)
{
	int rc = ask_offset(31, topic, q, 0, min);

	return rc ? rc : ask_offset(30, topic, q, 0, max);
}

static int at_time(const char *topic, const struct queue_name *q, int64_t ms, int64_t *off)
{
	return ask_offset(29, topic, q, ms, off);
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* The last place that was asked for: who goes through a queue one by one gets many at once. */
static struct {
	char topic[256];
	struct queue_name q;
	int64_t off;
} before;

static int64_t how_many(const char *topic, const struct queue_name *q, int64_t off)
{
	bool next = strcmp(before.topic, topic) == 0 && strcmp(before.q.broker, q->broker) == 0 && before.q.id == q->id &&
	            off > before.off && off <= before.off + PULL_AHEAD + 1;

	snprintf(before.topic, sizeof(before.topic), "%s", topic);
	before.q = *q;
	before.off = off;
	return next ? PULL_AHEAD : 1;
}

static int message(const char *topic, const struct queue_name *qn, int64_t off, struct message **out)
{
	struct question q = { .code = 11 };
	struct answer a;
	char addr[300];
	int rc;

	*out = message_find(topic, qn->broker, qn->id, off);
	if (*out) {
		if (before.q.id == qn->id && off == before.off + 1)
			before.off = off;
		return 0;
	}
	rc = cluster_addr(qn->broker, 0, addr);
	if (rc)
		return rc;
	question_str(&q, "consumerGroup", "TOOLS_CONSUMER");
	question_str(&q, "topic", topic);
	question_int(&q, "queueId", qn->id);
	question_int(&q, "queueOffset", off);
	question_int(&q, "maxMsgNums", how_many(topic, qn, off));
	question_int(&q, "sysFlag", PULL_SUBSCRIPTION);
	question_int(&q, "commitOffset", 0);
	question_int(&q, "suspendTimeoutMillis", 0);
	question_int(&q, "subVersion", 0);
	question_str(&q, "subscription", "*");
	question_str(&q, "expressionType", "TAG");
	answer_ask(addr, &q, &a);
	/* 19: nothing there yet; 20, 21: elsewhere. */
	rc = answer_rc(&a, "message", (const int[]){ 19, 20, 21, 0 });
	if (rc == 0 && a.code)
		rc = a.min_off >= 0 && off < a.min_off ? -ESTALE : -ENOENT;
	for (size_t at = 0; rc == 0 && at < a.body.n;) {
		struct message *m = message_take(topic, qn->broker, (struct mq_str){ a.body.p + at, a.body.n - at });
		if (!m)
			break;
		at += (size_t)m->m.size;
		if (m->m.queue_off == off && !*out)
			*out = m;
		else
			message_unref(m);
	}
	answer_free(&a);
	return rc ? rc : *out ? 0 : -ENOENT;
}

static bool has_key(const struct mq_message *m, const char *key)
{
	struct mq_str id = mq_prop_get(m->props, "UNIQ_KEY"), keys = mq_prop_get(m->props, "KEYS");
	size_t n = strlen(key);

	if (id.n == n && memcmp(id.p, key, n) == 0)
		return true;
	while (keys.n) {
		const char *blank = memchr(keys.p, ' ', keys.n);
		size_t word = blank ? (size_t)(blank - keys.p) : keys.n;
		if (word == n && memcmp(keys.p, key, n) == 0)
			return true;
		keys.p += word + (blank ? 1 : 0);
		keys.n -= word + (blank ? 1 : 0);
	}
	return false;
}

/* The index knows hashes only: what comes is looked at. */
static void take_found(const struct answer *a, const char *topic, const char *broker, const char *key, struct message **out,
                       size_t max, size_t *n)
{
	for (size_t at = 0; at < a->body.n && *n < max;) {
		struct message *m = message_take(topic, broker, (struct mq_str){ a->body.p + at, a->body.n - at });
		if (!m)
			return;
		at += (size_t)m->m.size;
		if (has_key(&m->m, key) && m->m.topic.n == strlen(topic) && memcmp(m->m.topic.p, topic, m->m.topic.n) == 0)
			out[(*n)++] = m;
		else
			message_unref(m);
	}
}

static int by_key(const char *topic, const char *key, struct message **out, size_t max, size_t *n)
{
	struct question q = { .code = 12 };
	struct cluster_route_queue *route;
	size_t nroute;
	int rc = cluster_route(topic, &route, &nroute), bad = 0;

	*n = 0;
	if (rc)
		return rc;
	question_str(&q, "topic", topic);
	question_str(&q, "key", key);
	question_int(&q, "maxNum", (int64_t)max);
	question_int(&q, "beginTimestamp", 0);
	question_int(&q, "endTimestamp", INT64_MAX);
	for (size_t i = 0; i < nroute; i++) {
		struct answer a;
		answer_ask(route[i].addr, &q, &a);
		rc = answer_rc(&a, "by-key", (const int[]){ 22, 0 });
		if (rc)
			bad = rc;
		else
			take_found(&a, topic, route[i].broker, key, out, max, n);
		answer_free(&a);
	}
	free(route);
	return *n ? 0 : bad;
}

/* Name of the broker that is reached at this address. */
static int broker_at(const char *addr, char out[256])
{
	const struct cluster_brokers *b;
	int rc = cluster_brokers(&b);

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (strcmp(b->v[i].addr, addr) == 0 || strncmp(b->v[i].addr, "unix:", 5) == 0) {
			snprintf(out, 256, "%s", b->v[i].name);
			return 0;
		}
	return rc ? rc : -ENOENT;
}

/* An offset id names a broker and a byte of its log; only brokers that the name server knows are asked. */
static int by_offset_id(const char *id, struct message **out)
{
	struct question q = { .code = 33 };
	struct mq_host host;
	struct mq_message m;
	struct answer a;
	char addr[300], broker[256], topic[300];
	int64_t off;
	int rc;

	if (mq_offset_id_parse((struct mq_str){ id, strlen(id) }, &host, &off) < 0)
		return -ENOENT;
	mq_host_text(&host, addr);
	rc = broker_at(addr, broker);
	if (rc == 0)
		rc = cluster_addr(broker, 0, addr);
	if (rc)
		return rc;
	question_int(&q, "offset", off);
	answer_ask(addr, &q, &a);
	rc = a.rc ? a.rc : a.code ? -ENOENT : 0;
	if (rc == 0 && mq_message_decode(a.body.p, a.body.n, false, &m) > 0) {
		snprintf(topic, sizeof(topic), MQ_STR_FMT, MQ_STR_ARG(m.topic));
		*out = message_take(topic, broker, a.body);
	}
	answer_free(&a);
	return rc ? rc : *out ? 0 : -ENOENT;
}

static int by_id(const char *id, struct message **out)
{
	*out = NULL;
	return by_offset_id(id, out);
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

struct stream {
	struct mqclient_consumer *k;
	struct feed *feed;              /* NULL: closed, and only leaving */
	struct queue_states at;
	bool end;
};

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct stream *s = arg;

	if (s->feed)
		feed_push(s->feed, body);
}

static int64_t on_start(void *arg, struct mq_str topic, const struct mqclient_queue *q)
{
	struct stream *s = arg;

	if (!s->end)
		return -1;
	for (size_t i = 0; i < s->at.n; i++)
		if (s->at.v[i].q.id == q->id && strcmp(s->at.v[i].q.broker, q->broker) == 0)
			return s->at.v[i].max;
	return 0; /* a queue that was not there at open: all of it is new */
}

static void on_trouble(void *arg, const struct mq_error *err, bool fatal)
{
	struct stream *s = arg;

	if (s->feed)
		feed_trouble(s->feed, fail_error("stream", err), fatal);
}

static int stream_open(struct stream **out, struct feed *f, const struct stream_want *want)
{
	static const struct mqclient_consume_ops ops = { .message = on_message, .start_at = on_start, .trouble = on_trouble };
	struct mq_str topic = { want->topic, strlen(want->topic) };
	struct mqclient_consume_opt opt = { .topics = &topic, .ntopics = 1, .start = want->start,
	                                    .start_value = want->value, .batch = 1024 };
	struct stream *s = calloc(1, sizeof(*s));
	struct mq_error err;

	if (!s)
		cli_die(CLI_SYSTEM, "out of memory");
	if (want->queue)
		opt.queue = (struct mqclient_queue){ want->queue->broker, want->queue->id };
	s->feed = f;
	s->end = want->start == MQCLIENT_END;
	for (size_t i = 0; i < want->at.n; i++)
		queue_states_add(&s->at, &want->at.v[i]);
	if (mqclient_consume(cluster_client(), &s->k, &opt, &ops, s, &err) < 0) {
		queue_states_free(&s->at);
		free(s);
		return fail_error(want->topic, &err);
	}
	*out = s;
	return 0;
}

static void stream_pause(struct stream *s, bool on) { mqclient_pause(s->k, on); }

static void on_left(void *arg, int rc, const struct mq_error *err)
{
	struct stream *s = arg;

	queue_states_free(&s->at);
	free(s);
}

static void stream_close(struct stream *s)
{
	s->feed = NULL;
	mqclient_consumer_leave(s->k, 0, on_left, s);
}

const struct source source_cluster = {
	.cluster = true,
	.topics = cluster_topics,
	.has_topic = cluster_has_topic,
	.queues = queues,
	.has_queue = has_queue,
	.range = range,
	.message = message,
	.at_time = at_time,
	.by_key = by_key,
	.by_id = by_id,
	.stream = stream_open,
	.stream_pause = stream_pause,
	.stream_close = stream_close,
	.close = cluster_close,
};
