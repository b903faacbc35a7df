/* tally.c: points in time of tallies, and the differences between now and them. */
#include "tally.h"
#include <base/clock.h>
#include <base/mem.h>
#include <stdlib.h>

enum { MINUTE = 6, HOUR = 6, DAY = 24 };        /* points: every 10 s, 10 min, 60 min */
enum { HOUR_TICKS = 60, DAY_TICKS = 360 };

struct tally_point {
	int64_t ms, times, num, size;
};

/* n points were taken; the last of them are in the rings. */
struct tally_ring {
	struct tally_ring *next, **from;
	struct tally *of;
	int64_t began_ms;
	int64_t nminute, nhour, nday;
	struct tally_point minute[MINUTE], hour[HOUR];
	struct tally_point *day;        /* NULL in the first hour */
};

void tally_begin(struct tallies *all, struct tally *t)
{
	struct tally_ring *r = mem_alloc(sizeof *r);

	/* Counted from 0: what is older than a day is of no interest. */
	*t = (struct tally){ .ring = r };
	r->of = t;
	r->began_ms = clock_mono_ms();
	r->next = all->rings;
	r->from = &all->rings;
	if (r->next)
		r->next->from = &r->next;
	all->rings = r;
}

void tally_end(struct tally *t)
{
	struct tally_ring *r = t->ring;

	if (!r)
		return;
	*r->from = r->next;
	if (r->next)
		r->next->from = r->from;
	free(r->day);
	free(r);
	t->ring = NULL;
}

void tally_tick(struct tallies *all)
{
	struct tally_ring *next;
	int64_t now = clock_mono_ms();

	all->ticks++;
	for (struct tally_ring *r = all->rings; r; r = next) {
		const struct tally *t = r->of;
		struct tally_point p = { now, t->times, t->num, t->size };

		next = r->next;
		r->minute[r->nminute++ % MINUTE] = p;
		if (all->ticks % HOUR_TICKS == 0)
			r->hour[r->nhour++ % HOUR] = p;
		if (all->ticks % DAY_TICKS == 0) {
			if (r->nday >= DAY && r->day[r->nday % DAY].times == p.times) {
				tally_end(r->of);
				continue;
			}
			if (!r->day)
				r->day = mem_alloc(DAY * sizeof *r->day);
			r->day[r->nday++ % DAY] = p;
		}
	}
}

/* Since the oldest of the points, or since the beginning.  compat: a rate is never taken over less than one tick. */
static void since(const struct tally *t, const struct tally_point *ring, int64_t n, int64_t cap, bool size, struct body_rate *out)
{
	struct tally_point first = n >= cap ? ring[n % cap] : (struct tally_point){ .ms = t->ring->began_ms };
	int64_t span = clock_mono_ms() - first.ms;
	int64_t times = t->times - first.times;

	out->sum = size ? t->size - first.size : t->num - first.num;
	out->tps = (double)out->sum * 1000 / (double)(span > TALLY_TICK_MS ? span : TALLY_TICK_MS);
	out->average = times > 0 ? (double)out->sum / (double)times : 0;
}

bool tally_view(const struct tally *t, bool size, struct body_broker_stats *out)
{
	const struct tally_ring *r = t->ring;

	*out = (struct body_broker_stats){ .minute = { 0 } };
	if (!r)
		return false;
	since(t, r->minute, r->nminute, MINUTE, size, &out->minute);
	since(t, r->hour, r->nhour, HOUR, size, &out->hour);
	since(t, r->day, r->nday, DAY, size, &out->day);
	return true;
}
