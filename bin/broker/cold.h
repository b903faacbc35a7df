/* cold.h: pulls whose messages are on the disk only: a worker fetches them, then the pull is answered.
 *
 * Meanwhile the loop goes on with others: one consumer that reads what is long past does not hold up producers.  Few are fetched at once:
 * flushes use the same workers. */
#ifndef BROKER_COLD_H
#define BROKER_COLD_H

#include "pull.h"
#include <store/cold.h>

struct cold;

struct cold *cold_new(struct broker *b);
void cold_stop(struct cold *c);         /* answers all that wait: nothing new */
void cold_free(struct cold *c);
/* Fetch r, then look again for the request of q; p is copied, references are taken.  False: it cannot wait. */
bool cold_park(struct cold *c, struct req *q, const struct pull *p, const struct cold_range *r);

#endif
