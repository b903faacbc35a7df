/* pop_lent.h: messages that brokers lent to a consumer, from the pop that brought them until the broker knows what became of them.
 *
 * pop.c asks for them and hands them out; here is what is acked, given back, renewed and sent again until the time is over. */
#ifndef CLIENT_POP_LENT_H
#define CLIENT_POP_LENT_H

#include "consume.h"
#include "pull.h"

enum popped_state {
	POPPED_HELD,                    /* came while the consumer was paused: `record` */
	POPPED_OUT,                     /* in the user's hands */
	POPPED_ACK,                     /* to be acked, or an answer is awaited */
	POPPED_BACK,                    /* to be given back */
	POPPED_AWAY,                    /* put off by mqclient_send_back(): when the user settles it nothing is left to do */
};

/* A message that was lent. */
struct popped {
	UT_hash_handle hh;              /* by key */
	TAILQ_ENTRY(popped) entry;      /* in order of arrival */
	struct mqclient_consumer *k;
	struct broker *broker;
	struct mqclient_queue q;
	enum popped_state state;
	bool calling;                   /* an answer is awaited */
	char *topic;                    /* in which it lies: its own, or a retry topic */
	char *handle;
	struct buf record;
	int64_t off, log_off;
	int32_t times;                  /* that it came before */
	int64_t until;                  /* monotonic ms: its time is over */
	int64_t renew, again;           /* when to renew, to send an ack anew */
	size_t key_n;
	char key[];                     /* topic@broker@queue@offset */
};
TAILQ_HEAD(popped_list, popped);

struct pop_state {
	struct popped *all;             /* uthash */
	struct popped_list list;
	LIST_HEAD(, pop_call) calls;
	size_t open;                    /* handed out or held, not settled */
};

/* Made when it is asked for the first time. */
struct pop_state *pop_lent_state(struct mqclient_consumer *k);
/* NULL: not (or no longer) lent.  topic: in which it lies. */
struct popped *pop_lent_find(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q, int64_t off);
/* It came, in state HELD; one that was there under the same name is forgotten. */
struct popped *pop_lent_add(struct mqclient_consumer *k, struct pull *p, struct mq_str topic, int32_t id, int64_t off);
void pop_lent_drop(struct popped *m);
void pop_lent_set(struct popped *m, enum popped_state state);
/* It is ours for ms from asked_ms (monotonic) on. */
void pop_lent_for(struct popped *m, int64_t asked_ms, int64_t ms);
/* ms < 0: an ack.  Else another time from now on.  cb may be NULL.  0, or why it cannot be asked. */
int pop_lent_ask(struct popped *m, int64_t ms, mqclient_done_cb *cb, void *arg, struct mq_error *e);
/* Ack it, or give it back, as its state says; again later if that cannot be done now. */
void pop_lent_finish(struct popped *m);

/* Acks and renewals that are due. */
void pop_lent_tick(struct mqclient_consumer *k);
/* The consumer leaves: what it has and did not settle is given back. */
void pop_lent_give_back(struct mqclient_consumer *k);
/* Are answers awaited, or acks to be sent? */
bool pop_lent_busy(const struct mqclient_consumer *k);
void pop_lent_free_all(struct mqclient_consumer *k);

#endif
