/* recv_store.c: reads the queues of a store directory as a consumer would.
 *
 * In each turn of the loop some messages are handed out: always the one that lies first in the log among the next ones of all
 * queues.  When all is handed out a timer looks for more, or the end is told. */
#include "recv_store.h"
#include "cli.h"

#include <inttypes.h>
#include <mqstore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_MESSAGES 256
#define LOOK_EVERY_MS 100
#define INFLATED_MAX ((size_t)64 << 20)  /* a body after inflating */

struct store_queue {
	struct mqstore_queue *q;
	struct mqclient_queue name;
	int64_t next, end;          /* end: as of the last look; with stop_at_end as of the first */
	int64_t log_off;            /* of `next`; valid if known */
	bool known;
};

struct recv_store {
	struct mqstore *store;
	struct mqclient_consume_ops ops;
	void *arg;
	enum mqclient_start start;
	int64_t start_value;
	int32_t only_id;            /* -1 = all queues */
	bool stop_at_end, paused, ended, first_look;
	struct mq_str *topics;      /* borrowed texts */
	size_t ntopics;
	char *tags;                 /* NULL = all; else names, NUL behind each, an empty one at the end */
	struct store_queue *queues;
	size_t n;
	void *scratch;
	size_t scratch_cap;
	uv_timer_t timer;
};

static void trouble(struct recv_store *s, int code, const char *fmt, ...) MQ_PRINTF(3, 4);
static void trouble(struct recv_store *s, int code, const char *fmt, ...)
{
	struct mq_error err = { .code = code };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.text, sizeof(err.text), fmt, ap);
	va_end(ap);
	s->ops.trouble(s->arg, &err, false);
}

/* ---- Queues ----------------------------------------------------------------------------------------------------------- */

static int64_t start_of(const struct recv_store *s, struct store_queue *q, struct mq_str topic)
{
	int64_t min = mqstore_queue_min(q->q), max = mqstore_queue_max(q->q), off = -1;

	if (s->ops.start_at)
		off = s->ops.start_at(s->arg, topic, &q->name);
	if (off >= 0)
		return off < min ? min : off;
	if (!s->first_look) /* it came into being while we were reading */
		return min;
	switch (s->start) {
	case MQCLIENT_BEGIN:
	case MQCLIENT_STORED:
		return min;
	case MQCLIENT_END:
		return max;
	case MQCLIENT_AT_OFFSET:
		off = s->start_value;
		break;
	case MQCLIENT_LAST_N:
		off = max - s->start_value;
		break;
	case MQCLIENT_AT_TIME:
		off = mqstore_search_time(s->store, q->q, s->start_value, false);
		break;
	}
	return off < min ? min : off > max ? max : off;
}

static bool wanted_topic(const struct recv_store *s, struct mq_str topic)
{
	for (size_t i = 0; i < s->ntopics; i++)
		if (s->topics[i].n == topic.n && memcmp(s->topics[i].p, topic.p, topic.n) == 0)
			return true;
	return false;
}

/* A queue that exists: new ones are taken up, of old ones the end is seen. */
static int on_queue(void *arg, struct mqstore_queue *mq)
{
	struct recv_store *s = arg;
	struct store_queue *q;
	struct mq_str topic = mqstore_queue_topic(mq);

	if (!wanted_topic(s, topic) || (s->only_id >= 0 && mqstore_queue_id(mq) != s->only_id))
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->queues[i].q == mq) {
			if (!s->stop_at_end)
				s->queues[i].end = mqstore_queue_max(mq);
			return 0;
		}
	if (s->stop_at_end && !s->first_look)
		return 0;
	s->queues = realloc(s->queues, (s->n + 1) * sizeof(*s->queues));
	if (!s->queues)
		cli_die(CLI_SYSTEM, "out of memory");
	q = &s->queues[s->n++];
	*q = (struct store_queue){ .q = mq, .name = { RECV_STORE_BROKER, mqstore_queue_id(mq) }, .end = mqstore_queue_max(mq) };
	q->next = start_of(s, q, topic);
	return 0;
}

void recv_store_progress(const struct recv_store *s, void (*cb)(void *arg, const struct mqclient_progress *p), void *arg)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct store_queue *q = &s->queues[i];
		struct mqclient_progress p = { .topic = mqstore_queue_topic(q->q), .queue = q->name, .min_off = mqstore_queue_min(q->q),
		                               .max_off = q->end, .next_off = q->next, .committed_off = -1 };

		cb(arg, &p);
	}
}

/* ---- Handing out ------------------------------------------------------------------------------------------------------ */

/* Where in the log the queue's next message lies; what retention has taken is passed over. */
static bool find_next(struct recv_store *s, struct store_queue *q)
{
	struct mqstore_entry e;
	int64_t min;

	while (!q->known && q->next < q->end) {
		if (mqstore_entry(q->q, q->next, &e) == 0) {
			q->log_off = e.log_off;
			q->known = true;
			break;
		}
		min = mqstore_queue_min(q->q);
		q->next = min > q->next ? min : q->next + 1;
	}
	return q->known;
}

static struct store_queue *first_in_log(struct recv_store *s)
{
	struct store_queue *first = NULL;

	for (size_t i = 0; i < s->n; i++) {
		struct store_queue *q = &s->queues[i];

		if (find_next(s, q) && (!first || q->log_off < first->log_off))
			first = q;
	}
	return first;
}

static bool wanted_tag(const struct recv_store *s, const struct mq_message *m)
{
	struct mq_str tag;

	if (!s->tags)
		return true;
	tag = mq_prop_get(m->props, "TAGS");
	for (const char *t = s->tags; *t; t += strlen(t) + 1)
		if (strlen(t) == tag.n && memcmp(t, tag.p, tag.n) == 0)
			return true;
	return false;
}

static void hand_out(struct recv_store *s, struct store_queue *q)
{
	struct mq_str record, body;
	struct mq_message m;
	int64_t off = q->next++;

	q->known = false;
	if (mqstore_at(s->store, q->log_off, &record) != 0 || mq_message_decode(record.p, record.n, true, &m) <= 0) {
		trouble(s, MQ_ECORRUPT, "queue %d offset %" PRId64 ": no whole message at %" PRId64 " in the log; passed over", q->name.id,
		        off, q->log_off);
		return;
	}
	if (!wanted_tag(s, &m))
		return;
	if (mq_message_body(&m, INFLATED_MAX, &s->scratch, &s->scratch_cap, &body) != 0) {
		trouble(s, MQ_ECORRUPT, "queue %d offset %" PRId64 ": the compressed body is damaged; passed over", q->name.id, off);
		return;
	}
	m.queue_id = q->name.id;
	m.queue_off = off;
	s->ops.message(s->arg, &m, body, &q->name);
}

static void on_timer(uv_timer_t *t)
{
	struct recv_store *s = t->data;
	struct store_queue *q;

	for (int i = 0; i < TURN_MESSAGES; i++) {
		if (s->paused)
			return;
		q = first_in_log(s);
		if (!q)
			break;
		hand_out(s, q);
	}
	if (first_in_log(s)) {
		uv_timer_start(&s->timer, on_timer, 0, 0);
		return;
	}
	if (s->stop_at_end) {
		if (!s->ended)
			s->ops.ended(s->arg);
		s->ended = true;
		return;
	}
	mqstore_refresh(s->store);
	mqstore_each_queue(s->store, on_queue, s);
	uv_timer_start(&s->timer, on_timer, first_in_log(s) ? 0 : LOOK_EVERY_MS, 0);
}

void recv_store_pause(struct recv_store *s, bool on)
{
	if (s->paused == on)
		return;
	s->paused = on;
	if (!on)
		uv_timer_start(&s->timer, on_timer, 0, 0);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

/* A||B as names one after the other. */
static char *parse_tags(const char *filter)
{
	char *tags, *to, *word, *save = NULL, *copy;

	if (!filter || strcmp(filter, "*") == 0)
		return NULL;
	copy = strdup(filter);
	tags = calloc(1, strlen(filter) + 2);
	if (!copy || !tags)
		cli_die(CLI_SYSTEM, "out of memory");
	to = tags;
	for (word = strtok_r(copy, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
		size_t n;

		word += strspn(word, " ");
		n = strlen(word);
		while (n > 0 && word[n - 1] == ' ')
			n--;
		if (n == 0)
			continue;
		memcpy(to, word, n);
		to += n + 1;
	}
	free(copy);
	return tags;
}

int recv_store_open(struct recv_store **out, const char *dir, uv_loop_t *loop, const struct mqclient_consume_opt *opt,
                    const struct mqclient_consume_ops *ops, void *arg, struct mq_error *err)
{
	struct recv_store *s = calloc(1, sizeof(*s));
	struct mqstore_opt store_opt = { 0 };
	int rc;

	if (!s)
		cli_die(CLI_SYSTEM, "out of memory");
	mqstore_defaults(&store_opt);
	store_opt.dir = dir;
	store_opt.read_only = true;
	store_opt.adopt_sizes = true;
	rc = mqstore_open(&s->store, &store_opt, err);
	if (rc != 0) {
		free(s);
		return rc;
	}
	s->ops = *ops;
	s->arg = arg;
	s->start = opt->start;
	s->start_value = opt->start_value;
	s->only_id = opt->queue.broker ? opt->queue.id : -1;
	s->stop_at_end = opt->stop_at_end;
	s->topics = calloc(opt->ntopics, sizeof(*s->topics));
	if (!s->topics)
		cli_die(CLI_SYSTEM, "out of memory");
	memcpy(s->topics, opt->topics, opt->ntopics * sizeof(*s->topics));
	s->ntopics = opt->ntopics;
	s->tags = parse_tags(opt->filter);
	s->first_look = true;
	uv_timer_init(loop, &s->timer);
	s->timer.data = s;
	mqstore_each_queue(s->store, on_queue, s);
	s->first_look = false;
	if (s->n == 0 && s->stop_at_end) {
		err->code = MQ_ENOTFOUND;
		err->response = 0;
		snprintf(err->text, sizeof(err->text), "topic '" MQ_STR_FMT "' has no message in store '%.200s'",
		         MQ_STR_ARG(s->topics[0]), dir);
		recv_store_close(s);
		return MQ_ENOTFOUND;
	}
	uv_timer_start(&s->timer, on_timer, 0, 0);
	*out = s;
	return 0;
}

static void on_closed(uv_handle_t *h)
{
	struct recv_store *s = h->data;

	free(s->topics);
	free(s->tags);
	free(s->queues);
	free(s->scratch);
	free(s);
}

void recv_store_close(struct recv_store *s)
{
	mqstore_close(s->store, NULL);
	uv_close((uv_handle_t *)&s->timer, on_closed);
}
