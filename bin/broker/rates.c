/* rates.c: rings of samples of the counters.  Knows nothing of requests. */
#include "rates.h"
#include "broker.h"
#include "offset_table.h"
#include <base/clock.h>
#include <base/mem.h>
#include <time.h>

enum { RING = 601, GROUP_SAMPLE_S = 10, GROUP_RING = 7 };

/* How far a group had got in a topic, every ten seconds. */
struct group_rate {
	UT_hash_handle hh;
	int64_t passed[GROUP_RING];
	int64_t samples;
	bool seen;
	char name[];            /* "topic@group" */
};

struct rates {
	struct broker *b;
	uv_timer_t timer;
	int64_t sample[RATES][RING];
	int64_t samples;
	int yday;               /* day of the year of the last sample */
	struct rates_day puts, gets;
	struct group_rate *groups;
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

static void sample_group(void *arg, struct offsets *o)
{
	struct rates *r = arg;
	struct group_rate *g;
	int64_t sum = 0;

	HASH_FIND(hh, r->groups, o->name, o->name_n, g);
	if (!g) {
		g = mem_alloc(sizeof *g + o->name_n + 1);
		memcpy(g->name, o->name, o->name_n);
		HASH_ADD_KEYPTR(hh, r->groups, g->name, o->name_n, g);
	}
	for (int32_t i = 0; i < o->n; i++)
		sum += o->slot[i].pulled > 0 ? o->slot[i].pulled : 0;
	g->passed[g->samples++ % GROUP_RING] = sum;
	g->seen = true;
}

static void sample_groups(struct rates *r)
{
	struct group_rate *g, *next;

	offset_table_each(r->b->offsets, (struct mq_str){ 0 }, (struct mq_str){ 0 }, sample_group, r);
	HASH_ITER(hh, r->groups, g, next) {
		if (!g->seen) {
			HASH_DEL(r->groups, g);
			free(g);
		} else {
			g->seen = false;
		}
	}
}

static void on_second(uv_timer_t *t)
{
	struct rates *r = t->data;
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm tm;

	for (int i = 0; i < RATES; i++)
		r->sample[i][r->samples % RING] = counter(r->b, (enum rate)i);
	r->samples++;
	localtime_r(&now, &tm);
	if (tm.tm_yday != r->yday) {
		r->yday = tm.tm_yday;
		day_turns(&r->puts, counter(r->b, RATE_PUT));
		day_turns(&r->gets, counter(r->b, RATE_TRANSFERRED));
	}
	if (r->samples % GROUP_SAMPLE_S == 0)
		sample_groups(r);
}

struct rates *rates_new(struct broker *b)
{
	struct rates *r = mem_alloc(sizeof *r);
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm tm;

	localtime_r(&now, &tm);
	r->b = b;
	r->yday = tm.tm_yday;
	uv_timer_init(b->loop, &r->timer);
	r->timer.data = r;
	uv_timer_start(&r->timer, on_second, 0, 1000);
	return r;
}

static void on_closed(uv_handle_t *h)
{
	struct rates *r = h->data;
	struct group_rate *g, *next;

	HASH_ITER(hh, r->groups, g, next) {
		HASH_DEL(r->groups, g);
		free(g);
	}
	free(r);
}

void rates_stop(struct rates *r)
{
	uv_timer_stop(&r->timer);
}

void rates_free(struct rates *r)
{
	if (r)
		uv_close((uv_handle_t *)&r->timer, on_closed);
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

double rates_consume(const struct rates *r, struct mq_str topic, struct mq_str group)
{
	struct group_rate *g;
	char name[600];
	int n = snprintf(name, sizeof name, MQ_STR_FMT "@" MQ_STR_FMT, MQ_STR_ARG(topic), MQ_STR_ARG(group));
	int64_t span;

	if (n >= (int)sizeof name)
		return 0;
	HASH_FIND(hh, r->groups, name, (size_t)n, g);
	if (!g || g->samples < 2)
		return 0;
	span = g->samples - 1 < GROUP_RING - 1 ? g->samples - 1 : GROUP_RING - 1;
	int64_t passed = g->passed[(g->samples - 1) % GROUP_RING] - g->passed[(g->samples - 1 - span) % GROUP_RING];
	return passed > 0 ? (double)passed / (double)(span * GROUP_SAMPLE_S) : 0;
}
