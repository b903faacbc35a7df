/* flush.c: flushes the store in a worker, by the clock and on demand. */
#include "flush.h"
#include "broker.h"
#include "ha_replica.h"
#include "hold.h"
#include "member.h"
#include "pop_hold.h"
#include "settle.h"
#include <base/clock.h>
#include <base/log.h>
#include <base/mem.h>
#include <stdlib.h>

#define LOG_MODULE "flush"

struct flush {
	struct broker *b;
	uv_timer_t timer;
	uv_work_t work;
	struct mqstore_flush job;
	bool running, broken, wanted;
	int64_t begun_us;
	int64_t all_ms;                 /* monotonic: last flush of everything */
	void (*stopped)(void *arg);
	void *stopped_arg;
};

int64_t flush_visible_max(struct broker *b, const struct mqstore_queue *q)
{
	int64_t lo = mqstore_queue_min(q), hi = mqstore_queue_max(q), end, good = INT64_MAX;

	if (b->conf->flushDiskType != FLUSH_SYNC && !b->opt.member)
		return hi;
	end = mqstore_log_max(b->store);
	if (b->conf->flushDiskType == FLUSH_SYNC)
		good = mqstore_flushed(b->store);
	if (b->opt.member) {
		int64_t confirmed = member_visible(b->opt.member, end);

		good = confirmed < good ? confirmed : good;
	}
	if (good >= end)
		return hi;
	while (lo < hi) { /* first entry whose record is not whole on the disk, or not on all machines that have to have it */
		int64_t mid = lo + (hi - lo) / 2;
		struct mqstore_entry e;

		if (mqstore_entry((struct mqstore_queue *)q, mid, &e) == 0 && e.log_off > good - e.size)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void run(uv_work_t *work)
{
	struct flush *f = work->data;

	mqstore_flush_run(&f->job);
}

static void done(uv_work_t *work, int status)
{
	struct flush *f = work->data;
	struct mq_error e;
	int rc;

	clock_refresh();
	f->running = false;
	rc = mqstore_flush_end(f->b->store, &f->job, &e);
	f->b->metrics.flushes++;
	f->b->metrics.flush_us += clock_mono_us() - f->begun_us;
	if (rc < 0) {
		f->broken = true;
		f->b->metrics.flush_failures++;
		log_error("flush failed: %s; no more messages are taken until the broker is started again", e.text);
	}
	settle_check(f->b->settle, rc < 0 ? e.text : NULL);
	hold_run(f->b->hold);
	pop_hold_run(f->b->pops);
	ha_replica_flushed(f->b->replica);
	if (f->stopped)
		f->stopped(f->stopped_arg);
	else
		flush_turn(f);
}

static void begin(struct flush *f, bool all)
{
	if (f->running || f->broken || f->stopped || mqstore_flush_begin(f->b->store, all, &f->job) < 0)
		return;
	if (all)
		f->all_ms = clock_mono_ms();
	f->wanted = false;
	f->running = true;
	f->begun_us = clock_mono_us();
	f->work.data = f;
	uv_queue_work(f->b->loop, &f->work, run, done);
}

static void on_timer(uv_timer_t *timer)
{
	struct flush *f = timer->data;

	clock_refresh();
	begin(f, clock_mono_ms() - f->all_ms >= f->b->conf->flushIntervalConsumeQueue);
	uv_timer_start(&f->timer, on_timer, f->b->conf->flushIntervalCommitLog, 0);
}

void flush_turn(struct flush *f)
{
	if (!f->wanted && !settle_wants_flush(f->b->settle))
		return;
	if (f->running)
		mqstore_flush_hurry(&f->job);
	else
		begin(f, false);
}

void flush_soon(struct flush *f)
{
	f->wanted = true;
	broker_want_turn(f->b);
}

bool flush_idle(const struct flush *f)
{
	return !f->running;
}

void flush_last(struct flush *f)
{
	begin(f, true);
}

struct flush *flush_new(struct broker *b)
{
	struct flush *f = mem_alloc(sizeof *f);

	f->b = b;
	f->all_ms = clock_mono_ms();
	uv_timer_init(b->loop, &f->timer);
	f->timer.data = f;
	uv_timer_start(&f->timer, on_timer, b->conf->flushIntervalCommitLog, 0);
	return f;
}

void flush_stop(struct flush *f, void (*stopped)(void *arg), void *arg)
{
	uv_timer_stop(&f->timer);
	f->stopped = stopped;
	f->stopped_arg = arg;
	if (!f->running)
		stopped(arg);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void flush_free(struct flush *f)
{
	if (f)
		uv_close((uv_handle_t *)&f->timer, on_closed);
}
