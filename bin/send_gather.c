/* send_gather.c: see send_gather.h.  What goes together: one topic, one queue or none, no sharding key, nothing to compress. */
#include "send_gather.h"
#include "cli.h"

#include <string.h>

#define BATCH_BYTES ((size_t)256 * 1024)  /* bodies of one batch; a bigger message goes alone */

/* A record that is no message. */
static void refuse(struct send_gather *g, struct input_place at, const struct mq_error *err)
{
	flight_refuse(g->flight, at.file, at.record, err);
	if (g->strict)
		g->flight->stop = true;
}

static void input_failed(struct send_gather *g, const struct mq_error *err)
{
	cli_warn("%s", err->text);
	flight_status(g->flight, cli_exit_code(err->code));
	g->ended = true;
}

/* The next message of the input, in g->next.  False: none now, or none any more. */
static bool take(struct send_gather *g)
{
	static const struct mq_error empty = { MQ_EINVAL, 13, "empty body: brokers refuse it (--skip-empty leaves it out)" };
	struct mq_error err = { 0 };
	struct mq_str rec;
	int rc;

	while (!g->flight->stop) {
		g->next_at = send_input_place(g->input);
		switch (send_input_next(g->input, &rec, &err)) {
		case INPUT_RECORD:
			break;
		case INPUT_BAD:
			refuse(g, send_input_place(g->input), &err);
			continue;
		case INPUT_WAIT:
			return false;
		case INPUT_END:
			g->ended = true;
			return false;
		case INPUT_FAILED:
			input_failed(g, &err);
			return false;
		}
		if (g->next_at.file != g->input->file) /* the first of another FILE */
			g->next_at = (struct input_place){ g->input->file, 0, 0 };
		if (g->resume->ndone && send_resume_done(g->resume, g->input->file, g->input->frames.number))
			continue;
		if (g->with_id)
			mqclient_new_id(g->flight->client, g->next_id);
		rc = compose_record(g->compose, g->framing, rec, g->with_id ? g->next_id : NULL, &g->next, &err);
		if (rc == 0 && g->flight->topic_per_record)
			rc = mq_check_topic(g->next.m.topic, &err);
		if (rc == 0)
			return true;
		if (rc != COMPOSE_EMPTY)
			refuse(g, send_input_place(g->input), &err);
		else if (!g->skip_empty)
			refuse(g, send_input_place(g->input), &empty);
	}
	return false;
}

static bool same(const char *text, struct mq_str s)
{
	return strlen(text) == s.n && memcmp(text, s.p, s.n) == 0;
}

/* May the message at hand go with those in the batch? */
static bool fits(const struct send_gather *g, const struct flight_batch *b)
{
	const struct mq_message *m = &g->next.m;
	size_t over = (size_t)g->flight->opt.compress_over;

	if (b->n == 0)
		return true;
	if (b->alone || g->alone || g->next.delayed)
		return false;
	if (over && (m->body.n >= over || b->part[0].body_n >= over))
		return false; /* in a batch nothing is compressed */
	return b->body_bytes + m->body.n + m->props.n <= BATCH_BYTES && b->part[0].start.file == g->next_at.file &&
	       same(b->topic, m->topic) && b->queue_id == m->queue_id && strcmp(b->broker, g->next.broker) == 0 &&
	       !b->has_sharding && !g->next.sharding_key.p;
}

static void add(struct send_gather *g, struct flight_batch *b)
{
	const struct mq_message *m = &g->next.m;
	struct flight_part *part = &b->part[b->n];

	if (b->n == 0) {
		memcpy(b->topic, m->topic.p, m->topic.n);
		b->topic[m->topic.n] = '\0';
		memcpy(b->broker, g->next.broker, strlen(g->next.broker) + 1);
		b->queue_id = m->queue_id;
		b->sharding.n = 0;
		b->has_sharding = g->next.sharding_key.p != NULL;
		b->alone = g->alone || g->next.delayed;
		if (b->has_sharding)
			bytes_add(&b->sharding, g->next.sharding_key.p, g->next.sharding_key.n);
	}
	*part = (struct flight_part){ .body = b->bytes.n, .body_n = m->body.n, .flag = m->flag, .start = g->next_at };
	bytes_add(&b->bytes, m->body.p, m->body.n);
	part->props = b->bytes.n;
	part->props_n = m->props.n;
	bytes_add(&b->bytes, m->props.p, m->props.n);
	if (g->flight->verbose)
		memcpy(b->ids[b->n], g->next_id, sizeof(b->ids[0]));
	b->body_bytes += m->body.n + m->props.n;
	b->n++;
}

void send_gather(struct send_gather *g, struct flight_batch *b, size_t max)
{
	/* Retry topics take no batches. */
	if (g->compose->topic.n > 7 && memcmp(g->compose->topic.p, "%RETRY%", 7) == 0)
		max = 1;
	if (max > g->batch_max)
		max = g->batch_max;
	while (b->n < max) {
		if (!g->have_next && !take(g))
			return;
		g->have_next = true;
		if (!fits(g, b))
			return;
		add(g, b);
		g->have_next = false;
	}
}

struct input_place send_gather_place(const struct send_gather *g)
{
	return g->have_next ? g->next_at : send_input_place(g->input);
}
