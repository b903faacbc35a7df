/* tree_waiting.c: what waits for its time: delayed messages, and halves of transactions.
 *
 * Names are TIME_BROKER:QUEUE:OFFSET: when it is due (of a transaction: when it was begun), and where it waits.  In front of the
 * broker stands timer@ if it waits in the timer's topic rather than in a level's queue. */
#include "answer.h"
#include "cluster.h"
#include "options.h"
#include "tree_nodes.h"
#include "when.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Names of the peer: TopicValidator, MixAll. */
#define LEVELS "SCHEDULE_TOPIC_XXXX"
#define TIMER "rmq_sys_wheel_timer"
#define HALF "RMQ_SYS_TRANS_HALF_TOPIC"
#define DONE "RMQ_SYS_TRANS_OP_HALF_TOPIC"
#define TRANS_GROUP "CID_RMQ_SYS_TRANS"

enum { LEVELS_MAX = 64, TIME_CHARS = 23 };

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static void add(struct names *out, int64_t due_ms, const char *where, const struct queue_name *q, int64_t off)
{
	char when[40];

	names_printf(out, "%s_%s%s:%d:%lld", when_text(due_ms, when, sizeof(when)), where, q->broker, q->id, (long long)off);
}

static bool parse(const char *name, bool *timer, struct queue_name *q, int64_t *off)
{
	char text[300];
	char *colon;

	*timer = false;
	if (strlen(name) < TIME_CHARS + 2 || name[TIME_CHARS] != '_')
		return false;
	name += TIME_CHARS + 1;
	if (strncmp(name, "timer@", 6) == 0) {
		*timer = true;
		name += 6;
	}
	if (strlen(name) >= sizeof(text))
		return false;
	strcpy(text, name);
	colon = strrchr(text, ':');
	if (!colon || !tree_offset(colon + 1, off))
		return false;
	*colon = '\0';
	return tree_queue_name(text, q);
}

static int link_to(const char *topic, const struct queue_name *q, int64_t off, struct bytes *out)
{
	bytes_printf(out, "../topics/%s/queues/%s:%d/messages/%lld", topic, q->broker, q->id, (long long)off);
	return 0;
}

/* ---- Delayed ----------------------------------------------------------------------------------------------------- */

/* "1s 5s 10s 30s 1m ...": ms of each level, from level 1. */
static size_t levels_of(const char *text, size_t len, int64_t ms[LEVELS_MAX])
{
	size_t n = 0;

	for (const char *p = text, *end = text + len; p < end && n < LEVELS_MAX;) {
		char *unit;
		int64_t v = strtoll(p, &unit, 10);
		if (unit == p)
			break;
		ms[n++] = v * (*unit == 'd' ? 86400000 : *unit == 'h' ? 3600000 : *unit == 'm' ? 60000 : 1000);
		for (p = unit; p < end && *p != ' '; p++)
			;
		while (p < end && *p == ' ')
			p++;
	}
	return n;
}

/* Of one broker: the levels in ms, and how far each was delivered. */
static int levels_at(const char *addr, int64_t ms[LEVELS_MAX], int64_t done[LEVELS_MAX], size_t *n)
{
	static const char usual[] = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";
	struct question config = { .code = 26 }, delay = { .code = 45 };
	struct answer a;
	const char *key, *p;
	json_t *o, *v;
	int rc;

	memset(done, 0, LEVELS_MAX * sizeof(*done));
	answer_ask(addr, &config, &a);
	rc = answer_rc(&a, "delayed", NULL);
	if (rc == 0) {
		p = a.body.n ? memmem(a.body.p, a.body.n, "messageDelayLevel=", 18) : NULL;
		*n = p ? levels_of(p + 18, strcspn(p + 18, "\r\n"), ms) : levels_of(usual, sizeof(usual) - 1, ms);
	}
	answer_free(&a);
	if (rc)
		return rc;
	answer_ask(addr, &delay, &a);
	rc = answer_rc(&a, "delayed", NULL);
	o = rc || a.code ? NULL : answer_json(&a);
	json_object_foreach(json_object_get(o, "offsetTable"), key, v) {
		int level = atoi(key);
		if (level >= 1 && level <= LEVELS_MAX)
			done[level - 1] = json_is_integer(v) ? json_integer_value(v) : 0;
	}
	json_decref(o);
	answer_free(&a);
	return rc;
}

static void list_queue(struct names *out, const char *topic, const char *where, const struct queue_name *q, int64_t from, int64_t to,
                       int64_t level_ms, int64_t now_ms)
{
	for (int64_t off = from; off < to && out->n < (size_t)options.list; off++) {
		struct message *m;
		struct mq_str at;
		int64_t due;
		if (source->message(topic, q, off, &m))
			continue;
		at = mq_prop_get(m->m.props, "TIMER_OUT_MS");
		due = level_ms ? m->m.store_ms + level_ms : at.n ? strtoll(at.p, NULL, 10) : 0;
		if (level_ms || due > now_ms)
			add(out, due, where, q, off);
		message_unref(m);
	}
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int list_levels(struct names *out)
{
	struct queue_states s;
	int64_t ms[LEVELS_MAX], done[LEVELS_MAX];
	char addr[300], of[256] = "";
	size_t n = 0;
	int rc = source->queues(LEVELS, &s);

	for (size_t i = 0; rc == 0 && i < s.n; i++) {
		const struct queue_state *q = &s.v[i];
		if (strcmp(of, q->q.broker) != 0) {
			snprintf(of, sizeof(of), "%s", q->q.broker);
			rc = cluster_addr(of, 0, addr);
			if (rc == 0)
				rc = levels_at(addr, ms, done, &n);
		}
		if (rc == 0 && (size_t)q->q.id < n)
			list_queue(out, LEVELS, "", &q->q, done[q->q.id] > q->min ? done[q->q.id] : q->min, q->max, ms[q->q.id], 0);
	}
	if (rc == 0)
		queue_states_free(&s);
	return rc == -ENOENT ? 0 : rc;
}

int waiting_delayed(struct node *dir, struct names *out)
{
	struct queue_states s;
	int rc = list_levels(out);

	if (rc)
		return rc;
	rc = source->queues(TIMER, &s);
	for (size_t i = 0; rc == 0 && i < s.n; i++) {
		int64_t from = s.v[i].max - options.list;
		list_queue(out, TIMER, "timer@", &s.v[i].q, from > s.v[i].min ? from : s.v[i].min, s.v[i].max, 0, now_ms());
	}
	if (rc == 0)
		queue_states_free(&s);
	names_sort(out);
	return rc == -ENOENT ? 0 : rc;
}

static int find(const char *name, const char *topic, const char *timer_topic)
{
	struct queue_name q;
	struct message *m;
	int64_t off;
	bool timer;
	int rc;

	if (!parse(name, &timer, &q, &off) || (timer && !timer_topic))
		return -ENOENT;
	rc = source->message(timer ? timer_topic : topic, &q, off, &m);
	if (rc == 0)
		message_unref(m);
	return rc == -ESTALE ? -ENOENT : rc;
}

int waiting_find_delayed(struct node *dir, const char *name) { return find(name, LEVELS, TIMER); }

int waiting_delayed_link(struct node *n, struct bytes *out)
{
	struct queue_name q;
	int64_t off;
	bool timer;

	return parse(n->name, &timer, &q, &off) ? link_to(timer ? TIMER : LEVELS, &q, off, out) : -ENOENT;
}

/* ---- Transactions ------------------------------------------------------------------------------------------------ */

/* Where the broker's own group stands in a queue of its; `otherwise` if nowhere. */
static int committed(const char *topic, const struct queue_name *qn, int64_t otherwise, int64_t *off)
{
	struct question q = { .code = 14 };
	struct answer a;
	char addr[300];
	int rc = cluster_addr(qn->broker, 0, addr);

	if (rc)
		return rc;
	question_str(&q, "consumerGroup", TRANS_GROUP);
	question_str(&q, "topic", topic);
	question_int(&q, "queueId", qn->id);
	answer_ask(addr, &q, &a);
	rc = answer_rc(&a, "transactions", (const int[]){ 22, 0 });
	*off = rc || a.code || a.offset < 0 ? otherwise : a.offset;
	answer_free(&a);
	return rc;
}

/* Offsets of halves that are decided: "17,18,": bodies of the other queue. */
static int decided(const struct queue_name *q, struct names *out)
{
	int64_t min, max, from, rc;

	rc = source->range(DONE, q, &min, &max);
	if (rc == 0)
		rc = committed(DONE, q, min, &from);
	for (int64_t off = rc ? 0 : from > min ? from : min; rc == 0 && off < max; off++) {
		struct message *m;
		if (source->message(DONE, q, off, &m))
			continue;
		for (size_t i = 0; i < m->body.n;) {
			size_t n = 0;
			while (i + n < m->body.n && m->body.p[i + n] >= '0' && m->body.p[i + n] <= '9')
				n++;
			if (n && n < 20)
				names_printf(out, "%.*s", (int)n, m->body.p + i);
			i += n + 1;
		}
		message_unref(m);
	}
	names_sort(out);
	return rc == -ENOENT ? 0 : (int)rc;
}

static int list_halves(const struct queue_state *s, struct names *out)
{
	struct names done = { 0 };
	int64_t from;
	int rc = committed(HALF, &s->q, s->min, &from);

	if (rc == 0)
		rc = decided(&s->q, &done);
	for (int64_t off = from > s->min ? from : s->min; rc == 0 && off < s->max && out->n < (size_t)options.list; off++) {
		char text[24];
		struct message *m;
		snprintf(text, sizeof(text), "%lld", (long long)off);
		if (names_has(&done, text) || source->message(HALF, &s->q, off, &m))
			continue;
		add(out, m->m.born_ms, "", &s->q, off);
		message_unref(m);
	}
	names_free(&done);
	return rc;
}

int waiting_transactions(struct node *dir, struct names *out)
{
	struct queue_states s;
	int rc = source->queues(HALF, &s);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 0; rc == 0 && i < s.n; i++)
		rc = list_halves(&s.v[i], out);
	queue_states_free(&s);
	names_sort(out);
	return rc;
}

int waiting_find_transaction(struct node *dir, const char *name) { return find(name, HALF, NULL); }

int waiting_transaction_link(struct node *n, struct bytes *out)
{
	struct queue_name q;
	int64_t off;
	bool timer;

	return parse(n->name, &timer, &q, &off) ? link_to(HALF, &q, off, out) : -ENOENT;
}
