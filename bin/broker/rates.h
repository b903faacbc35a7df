/* rates.h: messages a second over the last 10, 60 and 600 seconds, and totals of yesterday and today, from the counters in
 * metrics.h.  A look at the counters every second is all it costs; the tallies (tally.h) get their tick from here. */
#ifndef BROKER_RATES_H
#define BROKER_RATES_H

#include "tally.h"

struct broker;
struct rates;

enum rate { RATE_PUT, RATE_GET_FOUND, RATE_GET_MISS, RATE_GET_TOTAL, RATE_TRANSFERRED, RATE_TIMERS_IN, RATE_TIMERS_OUT, RATES };

struct rates *rates_new(struct broker *b);
void rates_stop(struct rates *r);
void rates_free(struct rates *r);       /* ends with the next turns of the loop */

/* "10s 60s 600s" as the peer writes them: three numbers divided by blanks. */
void rates_text(const struct rates *r, enum rate which, struct buf *out);

/* The first of them. */
double rates_now(const struct rates *r, enum rate which);

struct rates_day {
	int64_t yesterday_morning, today_morning, now;  /* totals since the start of the broker */
};
void rates_puts(const struct rates *r, struct rates_day *d);
void rates_gets(const struct rates *r, struct rates_day *d);

/* The longest that the loop was busy at a stretch, so far: no send or pull has taken longer by itself. */
int64_t rates_longest_turn_ms(const struct rates *r);
/* Messages that all topics took in (put), or that were delivered from all. */
const struct tally *rates_tally(struct rates *r, bool put);

#endif
