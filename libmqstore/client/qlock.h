/* qlock.h: ordered consumption: a queue is read by the member that holds its lock, and by nobody else.
 *
 * Promises:
 *  1. Nothing is handed out of a queue without a lock that is younger than QLOCK_VALID_MS.
 *  2. Where to start is asked after the lock was granted.
 *  3. A queue that is given up is unlocked when all that was handed out of it is settled and the offset is stored; its lock is renewed
 *     until then.  So the next reader starts where this one ended, and not while a message is still being worked on. */
#ifndef CLIENT_QLOCK_H
#define CLIENT_QLOCK_H

#include "consume.h"

enum {
	QLOCK_VALID_MS = 30000,         /* the peer's: half of the broker's lease */
	QLOCK_RENEW_MS = 20000,
	QLOCK_AGAIN_MS = 500,           /* a queue that another member has */
};

/* A queue was taken up: lock it, then pull_start(). */
void qlock_ask(struct pull *p);
bool qlock_valid(const struct pull *p);
/* A queue that was given up may be ready to be unlocked: after each settling and each commit. */
void qlock_settled(struct pull *p);
/* The consumer leaves: no more renewals; unlock everything. */
void qlock_stop(struct mqclient_consumer *k);
void qlock_unlock_all(struct mqclient_consumer *k);
void qlock_init(struct mqclient_consumer *k);

#endif
