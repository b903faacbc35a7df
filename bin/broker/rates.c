/* rates.c: rings of samples of the counters.  Knows nothing of requests. */
#include "rates.h"
#include "broker.h"
#include <base/clock.h>
#include <base/mem.h>
#include <time.h>

enum { RING = 601 };

struct rates {
	struct broker *b;
	uv_timer_t timer;
	uv_prepare_t turn;
	int closed;             /* of these two */
	int64_t longest_ms;     /* turn of the loop */
	int64_t sample[RATES][RING];
	int64_t samples;
	int yday;               /* day of the year of the last sample */
	struct rates_day puts, gets;
	struct metrics seen;    /* at the last look */
	struct tally put, get;  /* of the whole broker */
};

static int64_t counter(const struct broker *b, enum rate which)
{
	const struct metrics *m = &b->metrics;

	switch (which) {
	case RATE_PUT:
		return (int64_t)m->messages_in;
	case RATE_GET_FOUND:
		return (int64_t)m->pulls_found;
	case RATE_GET_MISS:
		return (int64_t)(m->pull_requests - m->pulls_found);
	case RATE_GET_TOTAL:
		return (int64_t)m->pull_requests;
	case RATE_TIMERS_IN:
		return (int64_t)m->timers_in;
	case RATE_TIMERS_OUT:
		return (int64_t)m->timers_out;
	case RATE_TRANSFERRED:
	case RATES:
		break;
	}
	return (int64_t)m->messages_out;
}

static void day_turns(struct rates_day *d, int64_t now)
{
	d->yesterday_morning = d->today_morning;
	d->today_morning = now;
}

static void look(struct rates *r)
{
	const struct metrics *m = &r->b->metrics;
	struct metrics *seen = &r->seen;

	if (m->messages_in != seen->messages_in)
		tally_add(&r->b->tallies, &r->put, (int64_t)(m->send_requests - seen->send_requests),
			  (int64_t)(m->messages_in - seen->messages_in), (int64_t)(m->bytes_in - seen->bytes_in));
	if (m->messages_out != seen->messages_out)
		tally_add(&r->b->tallies, &r->get, (int64_t)(m->pulls_found - seen->pulls_found),
			  (int64_t)(m->messages_out - seen->messages_out), (int64_t)(m->bytes_out - seen->bytes_out));
	r->seen = *m;
}

static void on_second(uv_timer_t *t)
{
	struct rates *r = t->data;
	time_t now;
	struct tm tm;

	clock_refresh();
	now = (time_t)(clock_now_ms() / 1000);
	for (int i = 0; i < RATES; i++)
		r->sample[i][r->samples % RING] = counter(r->b, (enum rate)i);
	r->samples++;
	localtime_r(&now, &tm);
	if (tm.tm_yday != r->yday) {
		r->yday = tm.tm_yday;
		day_turns(&r->puts, counter(r->b, RATE_PUT));
		day_turns(&r->gets, counter(r->b, RATE_TRANSFERRED));
	}
	if (r->samples % (TALLY_TICK_MS / 1000) == 0) {
		look(r);
		tally_tick(&r->b->tallies);
	}
}

/* The loop is about to wait: all that was done since the clock was read in this turn was done for this turn's requests. */
static void on_turn_end(uv_prepare_t *p)
{
	struct rates *r = p->data;
	int64_t took = clock_mono_us() / 1000 - clock_mono_ms();

	if (took > r->longest_ms)
		r->longest_ms = took;
}

struct rates *rates_new(struct broker *b)
{
	struct rates *r = mem_alloc(sizeof *r);
	time_t now;
	struct tm tm;

	clock_refresh(); /* what came before is no turn of the loop */
	now = (time_t)(clock_now_ms() / 1000);
	localtime_r(&now, &tm);
	r->b = b;
	r->yday = tm.tm_yday;
	uv_timer_init(b->loop, &r->timer);
	r->timer.data = r;
	uv_timer_start(&r->timer, on_second, 0, 1000);
	uv_prepare_init(b->loop, &r->turn);
	r->turn.data = r;
	uv_prepare_start(&r->turn, on_turn_end);
	return r;
}

static void on_closed(uv_handle_t *h)
{
	struct rates *r = h->data;

	if (++r->closed == 2)
		free(r);
}

void rates_stop(struct rates *r)
{
	uv_timer_stop(&r->timer);
	uv_prepare_stop(&r->turn);
}

void rates_free(struct rates *r)
{
	if (!r)
		return;
	tally_end(&r->put);
	tally_end(&r->get);
	uv_close((uv_handle_t *)&r->timer, on_closed);
	uv_close((uv_handle_t *)&r->turn, on_closed);
}

/* Per second over the last n samples, or over what there is. */
static double per_second(const struct rates *r, enum rate which, int64_t n)
{
	int64_t last = r->samples - 1, from = last - n > 0 ? last - n : 0;

	if (last <= 0)
		return 0;
	return (double)(r->sample[which][last % RING] - r->sample[which][from % RING]) / (double)(last - from);
}

void rates_text(const struct rates *r, enum rate which, struct buf *out)
{
	buf_printf(out, "%g %g %g", per_second(r, which, 10), per_second(r, which, 60), per_second(r, which, 600));
}

double rates_now(const struct rates *r, enum rate which)
{
	return per_second(r, which, 10);
}

void rates_puts(const struct rates *r, struct rates_day *d)
{
	*d = r->puts;
	d->now = counter(r->b, RATE_PUT);
}

void rates_gets(const struct rates *r, struct rates_day *d)
{
	*d = r->gets;
	d->now = counter(r->b, RATE_TRANSFERRED);
}

int64_t rates_longest_turn_ms(const struct rates *r) { return r->longest_ms; }

const struct tally *rates_tally(struct rates *r, bool put)
{
	look(r);
	return put ? &r->put : &r->get;
}
