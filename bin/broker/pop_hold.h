/* pop_hold.h: pops and notifications that wait for a message.
 *
 * Those of one group for one queue of a topic, or for any of them, stand in one line.  A message that arrives wakes the line, not its
 * members: at the end of the turn they are served one after the other as long as there is something for them, so that nothing costs
 * more for a message than one look.  A line whose queues are blocked (ordered pops) is looked at again when the block ends. */
#ifndef BROKER_POP_HOLD_H
#define BROKER_POP_HOLD_H

#include "client_table.h"
#include "pop.h"

struct pop_hold;

struct pop_hold *pop_hold_new(struct broker *b);
void pop_hold_stop(struct pop_hold *h);         /* answers all that wait: nothing */
void pop_hold_free(struct pop_hold *h);         /* ends with the next turns of the loop */

/* Let the request of q wait for at most ms; p is copied, references are taken; w is what the look before has said.  0, or the code to
 * answer with when too many wait already. */
int32_t pop_hold_park(struct pop_hold *h, struct req *q, const struct pop *p, const struct pop_wait *w, int64_t ms);
/* Serve the lines that were woken: at the end of a turn, and after a flush. */
void pop_hold_run(struct pop_hold *h);
void pop_hold_conn_closed(struct pop_hold *h, struct channel *ch);
/* Look again at the end of this turn: for the topic and the group (p == NULL: any); all queue handles of the topic are let go, it may
 * be about to be deleted. */
void pop_hold_wake(struct pop_hold *h, struct topic *t, struct mq_str group);
void pop_hold_wake_all(struct pop_hold *h);
/* How many wait in one line. */
size_t pop_hold_count(const struct pop_hold *h, struct mq_str topic, struct mq_str group, int32_t queue_id);

#endif
