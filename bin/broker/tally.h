/* tally.h: what a topic took in, what a group took out of it, what the broker did: over the last minute, hour and day
 * (VIEW_BROKER_STATS_DATA).
 *
 * A tally is part of the struct that the hot path has in hand anyway; adding to it costs three additions.  Points to compare with
 * are kept only for tallies that were added to within the last day. */
#ifndef BROKER_TALLY_H
#define BROKER_TALLY_H

#include <codec/body_stats.h>

enum { TALLY_TICK_MS = 10000 };

struct tally_ring;
struct tallies;

struct tally {
	int64_t times, num, size;       /* requests, messages, bytes of their records */
	struct tally_ring *ring;        /* NULL: nothing was added for a day */
};

/* All that count. */
struct tallies {
	struct tally_ring *rings;
	int64_t ticks;
};

void tally_begin(struct tallies *all, struct tally *t);
/* The owner of the tally goes. */
void tally_end(struct tally *t);
static inline void tally_add(struct tallies *all, struct tally *t, int64_t times, int64_t num, int64_t size)
{
	if (!t->ring)
		tally_begin(all, t);
	t->times += times;
	t->num += num;
	t->size += size;
}
/* Every TALLY_TICK_MS. */
void tally_tick(struct tallies *all);

/* How much was added lately.  size: bytes instead of messages.  False: nothing for a day. */
bool tally_view(const struct tally *t, bool size, struct body_broker_stats *out);

#endif
