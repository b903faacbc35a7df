/* offset.h: how far a queue is settled, and telling the broker.
 *
 * Promises:
 *  1. An offset is committed only when all messages before it that were handed out are settled with commit.
 *  2. What is committed never goes back, but where the broker itself moved us; never below zero.
 *  3. A queue that was given up is committed at once and then no more: its new reader may be ahead of us by then.  In ordered
 *     consumption it has none before the lock is given back: until then what is settled is committed. */
#ifndef CLIENT_OFFSET_H
#define CLIENT_OFFSET_H

#include "consume.h"

enum { WINDOW_OPEN, WINDOW_DONE, WINDOW_BACK };

void window_push(struct window *w, int64_t off);
/* False if that offset is not in the window or was settled before. */
bool window_settle(struct window *w, int64_t off, bool commit);
void window_clear(struct window *w);
void window_free(struct window *w);

/* The offset that may be committed now. */
int64_t offset_point(const struct pull *p);
/* Is there something to tell the broker? */
bool offset_due(const struct pull *p);
/* Tell it, unless an answer is awaited. */
void offset_commit(struct pull *p);
void offset_commit_all(struct mqclient_consumer *k);

#endif
