/* source_store.c: see source_store.h.  A broker may be writing it: what is new is looked for at most every REFRESH_MS. */
#include "source_store.h"
#include "fail.h"
#include "feed.h"
#include "options.h"
#include "task.h"
#include "../bin/cli.h"

#include <mqstore.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REFRESH_MS = 200, TURN_BYTES = 1024 * 1024, ID_NONE = -1 };

static struct {
	struct mqstore *s;
	uv_loop_t *loop;
	int64_t refreshed_ms;
} st;

int source_store_open(const char *dir, uv_loop_t *loop, struct mq_error *err)
{
	struct mqstore_opt opt;

	mqstore_defaults(&opt);
	opt.dir = dir;
	opt.read_only = true;
	opt.adopt_sizes = true;
	st.loop = loop;
	st.refreshed_ms = task_now_ms();
	return mqstore_open(&st.s, &opt, err);
}

static void refresh(void)
{
	int64_t now = task_now_ms();

	if (now - st.refreshed_ms < REFRESH_MS)
		return;
	st.refreshed_ms = now;
	mqstore_refresh(st.s);
}

static struct mqstore_queue *queue_of(const char *topic, const struct queue_name *q)
{
	if (strcmp(q->broker, SOURCE_STORE_BROKER) != 0)
		return NULL;
	return mqstore_queue(st.s, (struct mq_str){ topic, strlen(topic) }, q->id, false);
}

/* ---- Topics and queues ------------------------------------------------------------------------------------------- */

static int add_topic(void *arg, struct mqstore_queue *q)
{
	char name[300];

	snprintf(name, sizeof(name), MQ_STR_FMT, MQ_STR_ARG(mqstore_queue_topic(q)));
	names_add(arg, name);
	return 0;
}

static int topics(struct names *out)
{
	*out = (struct names){ 0 };
	refresh();
	mqstore_each_queue(st.s, add_topic, out);
	names_sort(out);
	return 0;
}

struct want {
	const char *topic;
	struct queue_states *out;
};

static int add_queue(void *arg, struct mqstore_queue *q)
{
	struct want *w = arg;
	struct mq_str topic = mqstore_queue_topic(q);
	struct queue_state s = { .q = { SOURCE_STORE_BROKER, mqstore_queue_id(q) }, .min = mqstore_queue_min(q),
	                         .max = mqstore_queue_max(q) };

	if (strlen(w->topic) != topic.n || memcmp(w->topic, topic.p, topic.n) != 0)
		return 0;
	s.last_ms = s.max > s.min ? mqstore_time_at(st.s, q, s.max - 1) : 0;
	queue_states_add(w->out, &s);
	return 0;
}

static int queues(const char *topic, struct queue_states *out)
{
	struct want w = { topic, out };

	*out = (struct queue_states){ 0 };
	refresh();
	mqstore_each_queue(st.s, add_queue, &w);
	queue_states_sort(out);
	return out->n ? 0 : -ENOENT;
}

static int has_name(void *arg, struct mqstore_queue *q)
{
	const char *topic = arg;
	struct mq_str name = mqstore_queue_topic(q);

	return strlen(topic) == name.n && memcmp(topic, name.p, name.n) == 0;
}

static int has_topic(const char *topic)
{
	refresh();
	/* Nearly always there is a queue 0. */
	if (mqstore_queue(st.s, (struct mq_str){ topic, strlen(topic) }, 0, false))
		return 0;
	return mqstore_each_queue(st.s, has_name, (void *)topic) ? 0 : -ENOENT;
}

static int has_queue(const char *topic, const struct queue_name *q)
{
	refresh();
	return queue_of(topic, q) ? 0 : -ENOENT;
}

static int range(const char *topic, const struct queue_name *qn, int64_t *min, int64_t *max)
{
	struct mqstore_queue *q;

	refresh();
	q = queue_of(topic, qn);
	if (!q)
		return -ENOENT;
	*min = mqstore_queue_min(q);
	*max = mqstore_queue_max(q);
	return 0;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static int message(const char *topic, const struct queue_name *qn, int64_t off, struct message **out)
{
	struct mqstore_queue *q;
	struct mqstore_entry e;
	struct mq_str record;

	*out = message_find(topic, qn->broker, qn->id, off);
	if (*out)
		return 0;
	refresh();
	q = queue_of(topic, qn);
	if (!q)
		return -ENOENT;
	if (off < mqstore_queue_min(q))
		return -ESTALE;
	if (mqstore_entry(q, off, &e) || mqstore_at(st.s, e.log_off, &record))
		return -ENOENT;
	*out = message_take(topic, SOURCE_STORE_BROKER, record);
	return *out ? 0 : -ENOENT;
}

static int at_time(const char *topic, const struct queue_name *qn, int64_t ms, int64_t *off)
{
	struct mqstore_queue *q;

	refresh();
	q = queue_of(topic, qn);
	if (!q)
		return -ENOENT;
	*off = mqstore_search_time(st.s, q, ms, false);
	return 0;
}

static int by_key(const char *topic, const char *key, struct message **out, size_t max, size_t *n)
{
	int64_t *log_off = calloc(max, sizeof(*log_off));
	int found;

	*n = 0;
	if (!log_off)
		return -ENOMEM;
	refresh();
	found = mqstore_query(st.s, (struct mq_str){ topic, strlen(topic) }, (struct mq_str){ key, strlen(key) }, (int)max, 0, INT64_MAX,
	                      log_off, NULL, NULL);
	for (int i = 0; i < found; i++) {
		struct mq_str record;
		struct message *m = mqstore_at(st.s, log_off[i], &record) ? NULL : message_take(topic, SOURCE_STORE_BROKER, record);
		if (m)
			out[(*n)++] = m;
	}
	free(log_off);
	return 0;
}

static int by_id(const char *id, struct message **out)
{
	struct mq_host host;
	struct mq_message m;
	struct mq_str record;
	char topic[300];
	int64_t off;

	refresh();
	if (mq_offset_id_parse((struct mq_str){ id, strlen(id) }, &host, &off) < 0 || mqstore_at(st.s, off, &record) ||
	    mq_message_decode(record.p, record.n, false, &m) <= 0)
		return -ENOENT;
	snprintf(topic, sizeof(topic), MQ_STR_FMT, MQ_STR_ARG(m.topic));
	*out = message_take(topic, SOURCE_STORE_BROKER, record);
	return *out ? 0 : -ENOENT;
}

/* ---- Streams: messages of all queues in the order in which they were stored -------------------------------------- */

struct place {
	int32_t id;
	int64_t next;
};

struct stream {
	uv_timer_t timer;
	struct feed *feed;
	char topic[256];
	struct place *q;
	size_t n;
	int32_t only;                   /* ID_NONE = all queues */
	bool paused;
	void *scratch;
	size_t scratch_cap;
};

static int64_t start_of(const struct stream_want *w, const struct queue_state *s)
{
	struct mqstore_queue *q = queue_of(w->topic, &s->q);
	int64_t off = s->min;

	if (w->start == MQCLIENT_END)
		off = s->max;
	else if (w->start == MQCLIENT_AT_OFFSET)
		off = w->value;
	else if (w->start == MQCLIENT_LAST_N)
		off = s->max - w->value;
	else if (w->start == MQCLIENT_AT_TIME && q)
		off = mqstore_search_time(st.s, q, w->value, false);
	return off < s->min ? s->min : off > s->max ? s->max : off;
}

/* The queue whose next message is the oldest in the log; NULL: there is none. */
static struct place *oldest(struct stream *s, struct mqstore_entry *e)
{
	struct place *best = NULL;

	for (size_t i = 0; i < s->n; i++) {
		struct queue_name name = { SOURCE_STORE_BROKER, s->q[i].id };
		struct mqstore_queue *q = queue_of(s->topic, &name);
		struct mqstore_entry one;
		if (!q)
			continue;
		if (s->q[i].next < mqstore_queue_min(q))
			s->q[i].next = mqstore_queue_min(q);
		if (mqstore_entry(q, s->q[i].next, &one) == 0 && (!best || one.log_off < e->log_off)) {
			best = &s->q[i];
			*e = one;
		}
	}
	return best;
}

static void push(struct stream *s, const struct mqstore_entry *e)
{
	struct mq_str record, body;
	struct mq_message m;

	if (mqstore_at(st.s, e->log_off, &record) || mq_message_decode(record.p, record.n, false, &m) <= 0)
		return;
	if (mq_message_body(&m, 64 * 1024 * 1024, &s->scratch, &s->scratch_cap, &body) < 0)
		body = m.body;
	feed_push(s->feed, body);
}

/* Queues that came since. */
static void find_queues(struct stream *s)
{
	struct queue_states now;
	size_t had = s->n;

	if (s->only != ID_NONE || queues(s->topic, &now))
		return;
	for (size_t i = 0; i < now.n; i++) {
		size_t k = 0;
		while (k < had && s->q[k].id != now.v[i].q.id)
			k++;
		if (k < had)
			continue;
		s->q = realloc(s->q, (s->n + 1) * sizeof(*s->q));
		if (!s->q)
			cli_die(CLI_SYSTEM, "out of memory");
		s->q[s->n++] = (struct place){ now.v[i].q.id, 0 };
	}
	queue_states_free(&now);
}

static void on_timer(uv_timer_t *t)
{
	struct stream *s = t->data;
	struct mqstore_entry e;
	struct place *p = NULL;
	int64_t bytes = 0;

	refresh();
	while (!s->paused && bytes < TURN_BYTES && (p = oldest(s, &e))) {
		push(s, &e);
		p->next++;
		bytes += e.size;
	}
	if (s->paused)
		return;
	if (!p)
		find_queues(s);
	uv_timer_start(t, on_timer, p ? 0 : REFRESH_MS, 0);
}

static int stream_open(struct stream **out, struct feed *f, const struct stream_want *want)
{
	struct queue_states all;
	struct stream *s;
	int rc = queues(want->topic, &all);

	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		cli_die(CLI_SYSTEM, "out of memory");
	s->feed = f;
	s->only = want->queue ? want->queue->id : ID_NONE;
	snprintf(s->topic, sizeof(s->topic), "%s", want->topic);
	s->q = calloc(all.n, sizeof(*s->q));
	if (!s->q)
		cli_die(CLI_SYSTEM, "out of memory");
	for (size_t i = 0; i < all.n; i++)
		if (s->only == ID_NONE || s->only == all.v[i].q.id)
			s->q[s->n++] = (struct place){ all.v[i].q.id, start_of(want, &all.v[i]) };
	queue_states_free(&all);
	s->timer.data = s;
	uv_timer_init(st.loop, &s->timer);
	uv_timer_start(&s->timer, on_timer, 0, 0);
	*out = s;
	return 0;
}

static void stream_pause(struct stream *s, bool on)
{
	s->paused = on;
	if (!on)
		uv_timer_start(&s->timer, on_timer, 0, 0);
}

static void on_closed(uv_handle_t *h)
{
	struct stream *s = h->data;

	free(s->q);
	free(s->scratch);
	free(s);
}

static void stream_close(struct stream *s)
{
	uv_close((uv_handle_t *)&s->timer, on_closed);
}

static void close_store(int timeout_ms)
{
	mqstore_close(st.s, NULL);
	st.s = NULL;
}

const struct source source_store = {
	.topics = topics,
	.has_topic = has_topic,
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
	.close = close_store,
};
