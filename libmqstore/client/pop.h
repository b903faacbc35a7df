/* pop.h: a consumer that pops: the broker lends it messages for a time.
 *
 * In the place of queues there is one struct pull for each broker that has the topic, with queue number -1; it asks for any queue of
 * that broker.  What was lent is kept in a table (pop_lent.h) until the user says what became of it: settled with commit is an ack,
 * without it the message is given back at once; a message sent back gets another time.  What the user takes long for is renewed
 * before its time is over.  An ack that finds no broker is sent again until the time is over: then the message comes again. */
#ifndef CLIENT_POP_H
#define CLIENT_POP_H

#include "consume.h"

enum {
	POP_INVISIBLE_MS = 60000,
	POP_INVISIBLE_MIN_MS = 1000,
	POP_INVISIBLE_MAX_MS = 259200000,       /* what a broker takes */
	POP_BATCH_MAX = 32,                     /* what it gives */
	POP_AGAIN_MS = 500,                     /* before an ack that failed is sent again */
};

/* One place for each broker that has the topic. */
void pop_assign(struct sub *s, void (*assign)(struct sub *s, const struct route_queue *v, size_t n));
/* Pop if nothing speaks against it. */
void pop_go(struct pull *p);
/* Hand out what came while paused, then pop. */
void pop_resume(struct mqclient_consumer *k);
/* As mqclient_settle() and mqclient_send_back(). */
void pop_settle(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q, int64_t off, bool commit);
int pop_send_back(struct mqclient_consumer *k, const struct mqclient_back *b, mqclient_done_cb *cb, void *arg, struct mq_error *e);

#endif
