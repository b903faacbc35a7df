/* balance.h: which queues a consumer reads: its share as a member, or all of them. */
#ifndef CLIENT_BALANCE_H
#define CLIENT_BALANCE_H

#include "consume.h"

/* A round now, or after the one that runs.  Only for a running consumer. */
void balance_kick(struct mqclient_consumer *k);
/* The broker says that members came or went (code 40). */
void balance_group_changed(struct mqclient *c, struct mq_str group);
void balance_route_changed(struct topic *t);
/* Tell the user which queues of a topic are read. */
void balance_tell(struct sub *s);
/* The consumer goes: answers to come are ignored. */
void balance_stop(struct mqclient_consumer *k);

/* The peer's AllocateMessageQueueAveragely: member `at` of `members` gets n queues from *first on, of `queues`. */
void balance_share(size_t queues, size_t members, size_t at, size_t *first, size_t *n);

#endif
