/* popper.c: see popper.h. */
#include "popper.h"
#include "base/str.h"
#include "base/mem.h"
#include "codec/message.h"
#include "codec/property.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct popper *w = arg;
	struct popper_got *g = &w->got[w->ngot];

	assert_true(w->ngot < GOT_MAX);
	assert_string_equal(q->broker, "a");
	snprintf(g->topic, sizeof g->topic, MQ_STR_FMT, MQ_STR_ARG(m->topic));
	snprintf(g->body, sizeof g->body, MQ_STR_FMT, MQ_STR_ARG(body));
	snprintf(g->retry_topic, sizeof g->retry_topic, MQ_STR_FMT, MQ_STR_ARG(mq_prop_get(m->props, PROP_RETRY_TOPIC)));
	g->queue = q->id;
	g->off = m->queue_off;
	g->log_off = m->log_off;
	w->ngot++;
	if (w->settle)
		mqclient_settle(w->k, m->topic, q, m->queue_off, w->commit);
	if (w->pause_at && w->ngot == w->pause_at)
		mqclient_pause(w->k, true);
}

static void on_assigned(void *arg, struct mq_str topic, const struct mqclient_queue *q, size_t n)
{
}

static void on_ended(void *arg)
{
	((struct popper *)arg)->ended++;
}

static void on_trouble(void *arg, const struct mq_error *e, bool fatal)
{
	struct popper *w = arg;

	w->troubles++;
	w->fatal += fatal;
	w->trouble = *e;
}

static const struct mqclient_consume_ops ops = {
	.message = on_message, .assigned = on_assigned, .ended = on_ended, .trouble = on_trouble,
};

int popper_start(void **state)
{
	struct popper *w = calloc(1, sizeof *w);

	uv_loop_init(&w->loop);
	w->a = fake_start(&w->loop, "a");
	fake_topic(w->a, "t", 2);
	*state = w;
	return 0;
}

int popper_stop(void **state)
{
	struct popper *w = *state;

	mqclient_free(w->c, 300);
	fake_free(w->a);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w);
	return 0;
}

void popper_consume(struct popper *w, int timeout_ms, struct mqclient_consume_opt *more)
{
	struct mqclient_opt opt = { .addr = w->a->addr, .loop = &w->loop, .timeout_ms = timeout_ms };
	struct mqclient_consume_opt o = more ? *more : (struct mqclient_consume_opt){ 0 };
	struct mq_str topic = MQ_STR("t");

	o.group = "g";
	o.pop = true;
	o.topics = &topic;
	o.ntopics = 1;
	if (mqclient_open(&w->c, &opt, &w->e) < 0 || mqclient_consume(w->c, &w->k, &o, &ops, w, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

void popper_put(struct popper *w, int queue, int n)
{
	char body[32];

	for (int i = 0; i < n; i++) {
		snprintf(body, sizeof body, "%d-%d", queue, (int)w->a->topic[0].queue[queue].max);
		fake_put(w->a, "t", queue, body, NULL);
	}
}

void popper_put_retried(struct popper *w, const char *topic, const char *ck)
{
	struct fake_queue *q = &w->a->topic[0].queue[0];
	struct message_parts m = { .topic = str_of(topic), .body = MQ_STR("again"), .queue_off = q->max, .log_off = 77, .reconsume_times = 1,
				   .born_ms = 1700000000000, .store_ms = 1700000000001 };
	struct buf props = { 0 }, b = { 0 };
	int64_t n;

	m.born_host = m.store_host = (struct mq_host){ .ip = { 127, 0, 0, 1 }, .len = 4, .port = 1 };
	property_put(&props, MQ_STR(PROP_POP_CK), str_of(ck));
	m.props[0] = buf_view(&props);
	n = message_size(&m);
	message_encode(&m, buf_room(&b, (size_t)n));
	b.n += (size_t)n;
	fake_put_record(w->a, "t", 0, b.p, b.n);
	buf_free(&b);
	buf_free(&props);
}

void popper_settle(struct popper *w, int i, bool commit)
{
	struct mqclient_queue q = { "a", w->got[i].queue };

	mqclient_settle(w->k, str_of(w->got[i].topic), &q, w->got[i].off, commit);
}

/* ---- Waiting: for a number to be reached ---------------------------------------------------------------------------- */

static const int *what;
static int wanted;

static bool reached(void *arg)
{
	return *what >= wanted;
}

void popper_wait_for(struct popper *w, const int *n, int least)
{
	what = n;
	wanted = least;
	if (!fake_until(&w->loop, reached, NULL, 20000))
		fail_msg("%d instead of %d; %d messages came; last trouble: %s", *n, least, w->ngot, w->trouble.text);
}

void popper_wait_got(struct popper *w, int n)
{
	popper_wait_for(w, &w->ngot, n);
	fake_run(&w->loop, 20);
	assert_int_equal(w->ngot, n);
}

const int *popper_count(struct popper *w, int code)
{
	return &w->a->count[fake_slot(code)];
}

void popper_wait_count(struct popper *w, int code, int n)
{
	popper_wait_for(w, popper_count(w, code), n);
	fake_run(&w->loop, 5);
}

static bool lends_as_wanted(void *arg)
{
	return strcmp(fake_lent(((struct popper *)arg)->a, false), (const char *)(const void *)what) == 0;
}

void popper_wait_lent(struct popper *w, const char *offsets)
{
	what = (const int *)(const void *)offsets;
	if (!fake_until(&w->loop, lends_as_wanted, w, 20000))
		fail_msg("lent: '%s' instead of '%s'", fake_lent(w->a, false), offsets);
}
