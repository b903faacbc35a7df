/* rates.h: messages a second over the last 10, 60 and 600 seconds, and totals of yesterday and today, from the counters in
 * metrics.h; of each group and topic how fast it consumes.  A look at the counters every second is all it costs. */
#ifndef BROKER_RATES_H
#define BROKER_RATES_H

#include <base/buf.h>

struct broker;
struct rates;

enum rate { RATE_PUT, RATE_GET_FOUND, RATE_GET_MISS, RATE_GET_TOTAL, RATE_TRANSFERRED, RATES };

struct rates *rates_new(struct broker *b);
void rates_stop(struct rates *r);
void rates_free(struct rates *r);       /* ends with the next turns of the loop */

/* "10s 60s 600s" as the peer writes them: three numbers divided by blanks. */
void rates_text(const struct rates *r, enum rate which, struct buf *out);

struct rates_day {
	int64_t yesterday_morning, today_morning, now;  /* totals since the start of the broker */
};
void rates_puts(const struct rates *r, struct rates_day *d);
void rates_gets(const struct rates *r, struct rates_day *d);

/* Offsets of a group and topic that went by a second, over the last minute (filtered messages count: the group passed them). */
double rates_consume(const struct rates *r, struct mq_str topic, struct mq_str group);

#endif
