/* pop_cold.h: pops whose messages are on the disk only, in all of their queues: a worker fetches them, then the pop looks again.
 *
 * A queue whose next message is not in memory is passed over while others have some; it is fetched meanwhile. */
#ifndef BROKER_POP_COLD_H
#define BROKER_POP_COLD_H

#include "cold.h"
#include "pop.h"

enum {
	POP_COLD_QUEUES = 8,            /* so many are fetched at once */
	POP_COLD_FETCHES = 3,           /* then it waits for the disk on the loop: entries, messages, and what has gone again */
};

/* Needs cold_may_wait(): let the request of q wait for the n ranges; p is copied, references are taken. */
void pop_cold_park(struct req *q, const struct pop *p, const struct cold_range *r, int n);

#endif
