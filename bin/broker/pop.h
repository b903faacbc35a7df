/* pop.h: one look into the queues of a topic for a pop, and the answer to it.
 *
 * What is found is taken: a check-point is stored (revive.h), or the batch noted (order_table.h), and the group's offset moves on,
 * all in the turn of the answer.  One in five looks goes to the group's retry topic first, the others last; each begins with another
 * queue. */
#ifndef BROKER_POP_H
#define BROKER_POP_H

#include "dispatch.h"
#include "sub.h"
#include "topic_table.h"
#include <codec/receipt.h>

enum { POP_INIT_MIN = 0, POP_INIT_MAX = 1 };
enum { POP_INVISIBLE_MAX_MS = 259200000 }; /* of a pop, and of a change: what the timer takes */

/* What to look for; all borrowed. */
struct pop {
	struct topic *topic;
	struct sub *sub;                /* NULL: everything */
	struct mq_str group;
	struct mq_str attempt;          /* ordered: p == NULL: none */
	int32_t queue_id;               /* -1: any */
	int32_t max_messages;           /* 1..RECEIPT_POP_MAX */
	int32_t init_mode;
	int64_t invisible_ms;
	bool order;
	bool notify;                    /* NOTIFICATION: say whether there is something, and take nothing */
	bool peek;                      /* PEEK_MESSAGE: show what there is, and take nothing */
	int fetches;                    /* times that it has waited for the disk (pop_cold.h) */
};

/* Why there was nothing. */
struct pop_wait {
	int64_t again_ms;               /* wall time at which a queue is no longer blocked; 0: none is */
	bool flush;                     /* something is there, but not on the disk yet */
	int64_t rest;                   /* messages left in the queues looked at; when found, too */
};

/* Look; answer when there is something.  False: nothing, and nothing answered. */
bool pop_try(struct req *q, const struct pop *p, struct pop_wait *w);
/* Nothing: code 209 or 210; for a notification: none there; for a peek: 19, whatever the code. */
void pop_nothing(struct req *q, const struct pop *p, int32_t code);

/* The queues that a pop looks at: cb for each, those that have never held a message are made. */
void pop_each_queue(struct broker *b, const struct pop *p, void (*cb)(void *arg, struct mqstore_queue *queue), void *arg);

#endif
