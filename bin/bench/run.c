/* run.c: the course of a measured run: connect, warm up, count, stop; and what is counted on the way. */
#include "bench.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/str.h>
#include <codec/request.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- The clock ------------------------------------------------------------------------------------------------------- */

int64_t bench_clock(struct bench *b)
{
	b->fresh = true;
	return b->now_us = clock_mono_us();
}

static void on_turn(uv_prepare_t *h)
{
	((struct bench *)h->data)->fresh = false;
}

static int64_t own_cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000LL + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static void start_counting(struct bench *b)
{
	b->messages = b->bytes = b->errors = 0;
	memset(&b->latency, 0, sizeof b->latency);
	b->began_us = bench_clock(b);
	b->cpu_began_us = bench_cpu_us(b->o.pid);
	b->own_cpu_began_us = own_cpu_us();
	b->counting = true;
}

static void stop_counting(struct bench *b)
{
	if (!b->counting)
		return;
	b->counting = false;
	b->ended_us = bench_clock(b);
	b->cpu_ended_us = bench_cpu_us(b->o.pid);
	b->own_cpu_ended_us = own_cpu_us();
	b->rss_kb = bench_rss_kb(b->o.pid);
}

/* ---- The course ------------------------------------------------------------------------------------------------------ */

void bench_init(struct bench *b)
{
	uv_loop_init(&b->loop);
	b->turn.data = b->warmup.data = b->end.data = b->watch.data = b->interrupt.data = b;
	uv_prepare_init(&b->loop, &b->turn);
	uv_prepare_start(&b->turn, on_turn);
	uv_timer_init(&b->loop, &b->warmup);
	uv_timer_init(&b->loop, &b->end);
	uv_timer_init(&b->loop, &b->watch);
	uv_signal_init(&b->loop, &b->interrupt);
}

void bench_stop(struct bench *b)
{
	if (b->stopping)
		return;
	b->stopping = true;
	uv_timer_stop(&b->warmup);
	uv_timer_stop(&b->end);
	b->stop(b);
}

void bench_finished(struct bench *b)
{
	stop_counting(b);
	uv_stop(&b->loop);
}

static void on_time_up(uv_timer_t *t)
{
	/* What is still on its way is waited for but not counted. */
	stop_counting(t->data);
	bench_stop(t->data);
}

static void on_interrupt(uv_signal_t *s, int signum)
{
	stop_counting(s->data);
	bench_stop(s->data);
}

static void on_warm(uv_timer_t *t)
{
	struct bench *b = t->data;

	start_counting(b);
	if (b->o.time_ms)
		uv_timer_start(&b->end, on_time_up, (uint64_t)b->o.time_ms, 0);
}

static void on_watch(uv_timer_t *t)
{
	struct bench *b = t->data;

	if (b->answers == b->answers_seen)
		cli_die(CLI_SYSTEM, "%s: no answer for %d s", b->addr, BENCH_STALL_MS / 1000);
	b->answers_seen = b->answers;
}

void bench_run(struct bench *b)
{
	b->answers_seen = -1;
	if (b->o.warmup_ms)
		uv_timer_start(&b->warmup, on_warm, (uint64_t)b->o.warmup_ms, 0);
	else
		on_warm(&b->warmup);
	uv_timer_start(&b->watch, on_watch, BENCH_STALL_MS, BENCH_STALL_MS);
	uv_signal_start(&b->interrupt, on_interrupt, SIGINT);
	uv_run(&b->loop, UV_RUN_DEFAULT);
}

void bench_answer(struct bench *b, const struct frame *f, bool ok, int64_t messages, int64_t bytes, int64_t sent_us)
{
	b->answers++;
	if (!b->counting)
		return;
	if (!ok) {
		char shown[200];

		if (!b->errors++)
			snprintf(b->remark, sizeof b->remark, "%s: %s", response_name(f->code), str_show(f->remark, shown, sizeof shown));
		return;
	}
	b->messages += messages;
	b->bytes += bytes;
	histogram_add(&b->latency, bench_now_us(b) - sent_us);
	if (b->o.count && b->messages >= b->o.count) {
		stop_counting(b);
		bench_stop(b);
	}
}

/* ---- Connections ----------------------------------------------------------------------------------------------------- */

_Noreturn void bench_lost(struct bench *b, struct conn *c, int why)
{
	cli_die(CLI_SYSTEM, "%s: %s", conn_name(c), mq_strerror(why ? why : MQ_ECLOSED));
}

struct waiting {
	struct bench_reply *reply;
	bool done;
	int rc;
};

static void on_reply(void *arg, int rc, struct frame *f)
{
	struct waiting *w = arg;

	w->done = true;
	w->rc = rc;
	if (rc < 0)
		return;
	w->reply->code = f->code;
	str_show(f->remark, w->reply->remark, sizeof w->reply->remark);
	w->reply->body.n = 0;
	buf_str(&w->reply->body, f->body);
	w->reply->number = -1;
	str_i64(frame_get(f, "offset"), &w->reply->number);
}

void bench_ask(struct bench *b, struct conn *c, int32_t code, const struct header_desc *d, const void *header,
	       struct bench_reply *r)
{
	struct waiting w = { .reply = r };
	struct frame_out o;

	conn_call(c, &o, code, FRAME_JSON, 5000, on_reply, &w);
	header_encode(d, header, false, &o);
	frame_end(&o);
	while (!w.done)
		uv_run(&b->loop, UV_RUN_ONCE);
	if (w.rc < 0)
		bench_lost(b, c, w.rc);
}

struct conn *bench_connect(struct bench *b, const char *addr, const struct conn_ops *ops, void *owner)
{
	struct mq_error e;
	struct conn *c = conn_dial(&b->loop, addr, 5000, ops, owner, &e);

	if (!c)
		cli_die(CLI_USAGE, "%s", e.text);
	conn_spin(&b->loop, b->o.spin_us, false);
	return c;
}
