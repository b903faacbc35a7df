/* hold.h: pulls that wait for a message: long polling; and who else wants to know of messages that arrive.
 *
 * Each waits on one queue.  The store's arrival callback looks only at queues on which somebody waits, and marks the pulls whose
 * filter wants the message; they are answered when the turn's input has been handled, so that one answer carries all that
 * arrived in that turn.  Under SYNC_FLUSH they are answered when the message is on the disk.
 * No wake-up is lost: the look at the queue and the parking happen in one turn, with nothing between. */
#ifndef BROKER_HOLD_H
#define BROKER_HOLD_H

#include "client_table.h"
#include "pull.h"

struct hold;
struct hold_queue;

/* To be called for each message that arrives in a queue, inside of mqstore_append(): append nothing there. */
struct hold_watch {
	struct hold_watch *prev, *next;         /* of the queue */
	struct hold_queue *queue;               /* NULL: not watching */
	void (*arrived)(struct hold_watch *w);
};
void hold_watch(struct hold *h, struct hold_watch *w, struct mqstore_queue *q);
void hold_unwatch(struct hold *h, struct hold_watch *w);        /* no-op if not watching */
struct mqstore_queue *hold_watched(const struct hold_watch *w);

struct hold *hold_new(struct broker *b);
void hold_stop(struct hold *h);         /* answers all that wait: nothing new */
void hold_free(struct hold *h);         /* ends with the next turns of the loop */

/* Let the request of q wait for at most ms; p is copied, references are taken.  False: too many wait already. */
bool hold_park(struct hold *h, struct req *q, const struct pull *p, int64_t ms);
/* Answer what is ready: at the end of a turn, and after a flush. */
void hold_run(struct hold *h);
/* The connection is gone: its pulls go too. */
void hold_conn_closed(struct hold *h, struct channel *ch);
/* Look again, at the end of this turn: at all that wait on the topic for the group (p == NULL: any group); at everything. */
void hold_wake_topic(struct hold *h, struct topic *t, struct mq_str group);
void hold_wake_all(struct hold *h);
size_t hold_count(const struct hold *h);

#endif
