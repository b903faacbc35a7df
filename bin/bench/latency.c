/* latency.c: one message at a time, from the call of send to the moment it is here again, brought by a pull that waited for it. */
#include "bench.h"
#include <base/clock.h>
#include <base/str.h>
#include <codec/request.h>
#include <string.h>

enum { WAIT_MS = 15000, SEND_SLOT = 0, PULL_SLOT = 1 };

struct latency_state {
	struct conn *producer, *consumer;
	struct template template;
	uv_timer_t pause;
	uint32_t ids;
	int64_t next, sent_us;
	bool answered, received, sending;
	int up;
};

static void send_next(struct bench *b)
{
	struct latency_state *st = b->state;
	char opaque[10];

	if (b->stopping) {
		bench_finished(b);
		return;
	}
	st->answered = st->received = false;
	st->sending = true;
	template_opaque(SEND_SLOT, opaque);
	st->sent_us = bench_clock(b);
	template_put(&st->template, conn_out(st->producer), opaque, clock_now_ms(), &st->ids);
}

static void on_pause_over(uv_timer_t *t)
{
	send_next(t->data);
}

static void both_done(struct bench *b)
{
	struct latency_state *st = b->state;

	if (!st->answered || !st->received)
		return;
	st->sending = false;
	/* A pause, so that the pull waits already when the message comes, and the system is at rest. */
	uv_timer_start(&st->pause, on_pause_over, (uint64_t)b->o.interval_ms, 0);
}

static void on_sent(struct conn *c, struct frame *f)
{
	struct bench *b = conn_public(c)->owner;
	struct latency_state *st = b->state;

	if (f->opaque != BENCH_OPAQUE + SEND_SLOT || !st->sending || st->answered)
		return;
	if (f->code != RESP_SUCCESS)
		cli_die(CLI_REFUSED, "send to topic '%s': %s: " MQ_STR_FMT, b->o.topic, response_name(f->code), MQ_STR_ARG(f->remark));
	st->answered = true;
	both_done(b);
}

static void on_pulled(struct conn *c, struct frame *f)
{
	struct bench *b = conn_public(c)->owner;
	struct latency_state *st = b->state;
	int64_t messages = 0, bytes = 0;

	if (f->opaque != BENCH_OPAQUE + PULL_SLOT)
		return;
	if (f->code == RESP_SUCCESS)
		bench_count_records(f->body, &messages, &bytes);
	str_i64(frame_get(f, "nextBeginOffset"), &st->next);
	if (messages && st->sending && !st->received) {
		bench_answer(b, f, true, 1, bytes, st->sent_us);
		st->received = true;
	}
	bench_pull(b, c, BENCH_OPAQUE + PULL_SLOT, 0, st->next, WAIT_MS);
	if (messages && st->received)
		both_done(b);
}

static void on_up(struct conn *c)
{
	((struct latency_state *)((struct bench *)conn_public(c)->owner)->state)->up++;
}

static void on_closed(struct conn *c, int why)
{
	bench_lost(conn_public(c)->owner, c, why);
}

static void stop(struct bench *b)
{
	struct latency_state *st = b->state;

	if (!st->sending) {
		uv_timer_stop(&st->pause);
		bench_finished(b);
	}
}

/* The first message makes the topic, if it is new; where the queue ends after it is where reading begins. */
static void find_end(struct bench *b)
{
	struct latency_state *st = b->state;
	struct max_offset_header h = { .topic = str_of(b->o.topic) };
	struct bench_reply r = { 0 };

	send_next(b);
	st->received = true;
	while (st->sending)
		uv_run(&b->loop, UV_RUN_ONCE);
	uv_timer_stop(&st->pause);
	bench_ask(b, st->producer, REQ_GET_MAX_OFFSET, &max_offset_header_desc, &h, &r);
	if (r.code != RESP_SUCCESS)
		cli_die(CLI_REFUSED, "offset of queue 0 of topic '%s': %s: %s", b->o.topic, response_name(r.code), r.remark);
	st->next = r.number;
	buf_free(&r.body);
}

void bench_latency(struct bench *b)
{
	static const struct conn_ops producer_ops = { .opened = on_up, .closed = on_closed, .answer = on_sent };
	static const struct conn_ops consumer_ops = { .opened = on_up, .closed = on_closed, .answer = on_pulled };
	struct latency_state st = { 0 };

	b->state = &st;
	b->stop = stop;
	template_send(&st.template, b, 0);
	uv_timer_init(&b->loop, &st.pause);
	st.pause.data = b;
	st.producer = bench_connect(b, b->addr, &producer_ops, b);
	st.consumer = bench_connect(b, b->addr, &consumer_ops, b);
	while (st.up < 2)
		uv_run(&b->loop, UV_RUN_ONCE);
	find_end(b);
	bench_pull(b, st.consumer, BENCH_OPAQUE + PULL_SLOT, 0, st.next, WAIT_MS);
	uv_timer_start(&st.pause, on_pause_over, (uint64_t)b->o.interval_ms, 0);
	bench_run(b);
	template_free(&st.template);
}
