/* cold.h: requests whose messages are on the disk only: a worker fetches them, then the request is answered.
 *
 * Meanwhile the loop goes on with others: one consumer that reads what is long past does not hold up producers.  Few are fetched at
 * once: flushes use the same workers. */
#ifndef BROKER_COLD_H
#define BROKER_COLD_H

#include "dispatch.h"
#include <store/cold.h>

struct cold;

struct cold *cold_new(struct broker *b);
void cold_stop(struct cold *c);         /* answers all that wait */
void cold_free(struct cold *c);

/* A request that waits; the first member of what its owner has to remember of it, which is malloc'd. */
struct cold_wait {
	struct cold_wait *prev, *next;
	struct cold *all;               /* NULL: out of the list, the worker still has it */
	uv_work_t work;
	struct cold_range *range;
	int n;
	bool running;
	struct later to;
	/* What was asked for is in memory now, or cannot be had (stopped: the broker stops): answer.  NULL: nobody waits. */
	void (*ready)(struct req *q, struct cold_wait *w, bool stopped);
	/* Let go of what is held; the memory of w is freed by the caller. */
	void (*drop)(struct cold_wait *w);
};

/* Can one more wait? */
bool cold_may_wait(const struct cold *c);
/* Needs cold_may_wait().  Fetch the n ranges of r, which are copied, then w->ready(); w is the callee's from now on. */
void cold_park(struct cold *c, struct req *q, struct cold_wait *w, const struct cold_range *r, int n);
/* Fetch them so that the next one who looks finds them; nobody waits, and when there is much to do nothing is done. */
void cold_ahead(struct cold *c, const struct cold_range *r, int n);

/* A handler that only looks, at messages anywhere in the log, and answers from its header alone (not from q->f):
 *
 *	cold_begin(q);
 *	... mqstore_at(), mqstore_query(), mqstore_search_time(), mqstore_time_at() ...
 *	if (cold_waits(q))
 *		return;         // what was found is worth nothing; the handler will be called again
 *	... answer ... */
void cold_begin(struct req *q);
bool cold_waits(struct req *q);

#endif
