/* hold.h: pulls that wait for a message: long polling.
 *
 * Each waits on one queue.  The store's arrival callback looks only at queues on which somebody waits, and marks the pulls whose
 * filter wants the message; they are answered when the turn's input has been handled, so that one answer carries all that
 * arrived in that turn.  Under SYNC_FLUSH they are answered when the message is on the disk.
 * No wake-up is lost: the look at the queue and the parking happen in one turn, with nothing between. */
#ifndef BROKER_HOLD_H
#define BROKER_HOLD_H

#include "client_table.h"
#include "dispatch.h"
#include "topic_table.h"

struct hold;

/* What it takes to try a pull again. */
struct hold_pull {
	struct hold_pull *next, *prev;              /* waiting on the queue */
	struct hold_pull *ready_next;               /* in the ready list */
	struct hold_pull *conn_next, *conn_prev;    /* of the connection */
	struct hold_queue *queue;                   /* NULL while ready */
	struct heap_node due;                       /* monotonic ms */
	bool ready, gone;
	struct later to;
	struct topic *topic;                        /* reference */
	struct sub *sub;                            /* reference */
	int32_t queue_id, max_messages, max_bytes, version;
	int64_t off;
	bool lite;
	uint32_t group_n;
	char group[256];
};

struct hold *hold_new(struct broker *b);
void hold_stop(struct hold *h, void (*done)(void *arg), void *arg);     /* answers all that wait: nothing new */
void hold_free(struct hold *h);

/* An unused one, zeroed; hold_park() or hold_discard() follows. */
struct hold_pull *hold_make(struct hold *h);
void hold_discard(struct hold *h, struct hold_pull *p);
/* Wait on queue q for at most ms.  The fields from `to` on are filled in, references taken. */
void hold_park(struct hold *h, struct hold_pull *p, struct mqstore_queue *q, int64_t ms);
/* End of a turn, or of a flush: answer what is ready. */
void hold_run(struct hold *h);
bool hold_has_ready(const struct hold *h);
/* The connection is gone: its pulls go too. */
void hold_conn_closed(struct hold *h, struct channel *ch);
/* Answer now all that wait on this topic (it was deleted, or a reset waits for them): group p == NULL means any. */
void hold_wake_topic(struct hold *h, struct topic *t, struct mq_str group);
size_t hold_count(const struct hold *h);

#endif
