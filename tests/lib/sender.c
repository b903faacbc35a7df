/* sender.c: see sender.h. */
#include "sender.h"
#include "base/clock.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

int64_t sender_now_ms(void)
{
	return clock_mono_us() / 1000;
}

void sender_on_sent(void *arg, const struct mqclient_sent *r)
{
	struct sender *w = arg;

	w->sent++;
	if (r->rc == 0)
		w->ok++;
	else
		w->failed++;
	w->last = *r;
	w->sent_ms = sender_now_ms();
	snprintf(w->last_broker, sizeof w->last_broker, "%s", r->queue.broker ? r->queue.broker : "");
	snprintf(w->last_id, sizeof w->last_id, MQ_STR_FMT, MQ_STR_ARG(r->uniq_key));
}

static int wanted;

static bool enough(void *arg)
{
	return ((struct sender *)arg)->sent >= wanted;
}

void sender_wait(struct sender *w, int n)
{
	wanted = n;
	if (!fake_until(&w->loop, enough, w, 20000))
		fail_msg("%d of %d sends were told their end", w->sent, n);
	assert_int_equal(w->sent, n);
}

void sender_open(struct sender *w, const char *addr)
{
	struct mqclient_opt opt = { .addr = addr, .loop = &w->loop };

	if (mqclient_open(&w->c, &opt, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

int sender_start(void **state)
{
	struct sender *w = calloc(1, sizeof *w);

	uv_loop_init(&w->loop);
	w->a = fake_start(&w->loop, "a");
	fake_topic(w->a, "t", 4);
	sender_open(w, w->a->addr);
	*state = w;
	return 0;
}

void sender_second_broker(struct sender *w)
{
	w->b = fake_start(&w->loop, "b");
	fake_topic(w->b, "t", 4);
	w->a->more[w->a->nmore++] = w->b;
}

int sender_stop(void **state)
{
	struct sender *w = *state;

	mqclient_free(w->c, 100);
	fake_free(w->a);
	if (w->b)
		fake_free(w->b);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w);
	return 0;
}

int sender_send(struct sender *w, const char *topic, const char *body, const struct mqclient_send_opt *opt)
{
	struct mq_message m = { .topic = str_of(topic), .body = str_of(body) };

	return mqclient_send(w->c, &m, 1, opt, sender_on_sent, w, &w->e);
}

void sender_text(struct sender *w, const char *body)
{
	assert_int_equal(sender_send(w, "t", body, NULL), 0);
}
