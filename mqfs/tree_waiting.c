/* tree_waiting.c: what waits for its time: delayed messages, and halves of transactions.
 *
 * Names are TIME_BROKER:QUEUE:OFFSET: when it is due (of a transaction: when it was begun), and where it waits; they are links there.
 * What waits for a given time lies where no client may look: our brokers tell it (LIST_TIMERS), and it is a file,
 * TIME_timer@OFFSET-ID. */
#include "answer.h"
#include "cluster.h"
#include "options.h"
#include "tree_nodes.h"
#include "when.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Names of the peer: TopicValidator, MixAll. */
#define LEVELS "SCHEDULE_TOPIC_XXXX"
#define HALF "RMQ_SYS_TRANS_HALF_TOPIC"
#define DONE "RMQ_SYS_TRANS_OP_HALF_TOPIC"
#define TRANS_GROUP "CID_RMQ_SYS_TRANS"

enum { LEVELS_MAX = 64, TIME_CHARS = 23, TIMERS_MAX = 1024 };

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static void add(struct names *out, int64_t due_ms, const struct queue_name *q, int64_t off)
{
	char when[40];

	names_printf(out, "%s_%s:%d:%lld", when_text(due_ms, when, sizeof(when)), q->broker, q->id, (long long)off);
}

static bool parse(const char *name, struct queue_name *q, int64_t *off)
{
	char text[300];
	char *colon;

	if (strlen(name) < TIME_CHARS + 2 || name[TIME_CHARS] != '_')
		return false;
	name += TIME_CHARS + 1;
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

static void list_level(struct names *out, const struct queue_name *q, int64_t from, int64_t to, int64_t level_ms)
{
	for (int64_t off = from; off < to && out->n < (size_t)options.list; off++) {
		struct message *m;

		if (source->message(LEVELS, q, off, &m))
			continue;
		add(out, m->m.store_ms + level_ms, q, off);
		message_unref(m);
	}
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
			list_level(out, &q->q, done[q->q.id] > q->min ? done[q->q.id] : q->min, q->max, ms[q->q.id]);
	}
	if (rc == 0)
		queue_states_free(&s);
	return rc == -ENOENT ? 0 : rc;
}

int waiting_delayed(struct node *dir, struct names *out)
{
	int rc = list_levels(out);

	names_sort(out);
	return rc;
}

static int find(const char *name, const char *topic)
{
	struct queue_name q;
	struct message *m;
	int64_t off;
	int rc;

	if (!parse(name, &q, &off))
		return -ENOENT;
	rc = source->message(topic, &q, off, &m);
	if (rc == 0)
		message_unref(m);
	return rc == -ESTALE ? -ENOENT : rc;
}

static int link_of(const char *name, const char *topic, struct bytes *out)
{
	struct queue_name q;
	int64_t off;

	return parse(name, &q, &off) ? link_to(topic, &q, off, out) : -ENOENT;
}

int waiting_find_delayed(struct node *dir, const char *name) { return find(name, LEVELS); }
int waiting_delayed_link(struct node *n, struct bytes *out) { return link_of(n->name, LEVELS, out); }

/* ---- For a given time ------------------------------------------------------------------------------------------------ */

static int64_t due_of(const struct mq_message *m)
{
	struct mq_str at = mq_prop_get(m->props, "TIMER_OUT_MS");
	char text[24];

	snprintf(text, sizeof(text), MQ_STR_FMT, MQ_STR_ARG(at));
	return atoll(text);
}

/* By those that take others back, by UNIQ_KEY or, as clients of 5.3 do it, TOPIC+UNIQ_KEY. */
static bool taken_back(const struct mq_message *m, const struct names *back)
{
	struct mq_str key = mq_prop_get(m->props, "UNIQ_KEY"), topic = mq_prop_get(m->props, "REAL_TOPIC");
	char text[600];

	snprintf(text, sizeof(text), MQ_STR_FMT "+" MQ_STR_FMT, MQ_STR_ARG(topic), MQ_STR_ARG(key));
	return names_has(back, text) || names_has(back, text + topic.n + 1);
}

static void list_records(struct mq_str all, struct names *out)
{
	struct names back = { 0 };

	for (int pass = 0; pass < 2; pass++) {
		struct mq_str rest = all;
		struct mq_message m;
		int32_t n;

		for (; rest.n && (n = mq_message_decode(rest.p, rest.n, false, &m)) > 0; rest.p += n, rest.n -= (size_t)n) {
			struct mq_str other = mq_prop_get(m.props, "TIMER_DEL_UNIQKEY");
			char when[40], id[MQ_ID_TEXT];

			if (pass == 0 && other.n)
				names_printf(&back, MQ_STR_FMT, MQ_STR_ARG(other));
			if (pass == 0 || other.n || taken_back(&m, &back))
				continue;
			mq_offset_id(&m.store_host, m.log_off, id);
			names_printf(out, "%s_timer@%s", when_text(due_of(&m), when, sizeof(when)), id);
		}
		names_sort(&back);
	}
	names_free(&back);
}

int waiting_timers(struct node *dir, struct names *out)
{
	char **addrs;
	size_t n;
	int rc = cluster_masters(&addrs, &n);

	if (rc)
		return rc;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct question q = { .code = 900370 };
		struct answer a;

		question_int(&q, "maxMsgNums", options.list < TIMERS_MAX ? options.list : TIMERS_MAX);
		answer_ask(addrs[i], &q, &a);
		/* The Java broker has no such request. */
		rc = answer_rc(&a, "delayed", (const int[]){ 3, 0 });
		if (rc == 0 && a.code == 0)
			list_records(a.body, out);
		answer_free(&a);
	}
	cluster_masters_free(addrs, n);
	names_sort(out);
	return rc;
}

static int timer_of(const char *name, struct message **m)
{
	char when[40];
	int rc;

	if (strlen(name) < TIME_CHARS + 8 || strncmp(name + TIME_CHARS, "_timer@", 7) != 0)
		return -ENOENT;
	rc = source->by_id(name + TIME_CHARS + 7, m);
	if (rc)
		return rc == -ESTALE ? -ENOENT : rc;
	if (strncmp(when_text(due_of(&(*m)->m), when, sizeof(when)), name, TIME_CHARS) == 0)
		return 0;
	message_unref(*m);
	return -ENOENT;
}

int waiting_find_timer(struct node *dir, const char *name)
{
	struct message *m;
	int rc = timer_of(name, &m);

	if (rc == 0)
		message_unref(m);
	return rc;
}

int waiting_timer_body(struct node *n, struct bytes *out)
{
	struct message *m;
	int rc = timer_of(n->name, &m);

	if (rc)
		return rc;
	bytes_add(out, m->body.p, m->body.n);
	message_unref(m);
	return 0;
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
		add(out, m->m.born_ms, &s->q, off);
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

int waiting_find_transaction(struct node *dir, const char *name) { return find(name, HALF); }
int waiting_transaction_link(struct node *n, struct bytes *out) { return link_of(n->name, HALF, out); }
