/* produce.h: sends that are under way.  mqclient_send() is defined in produce.c. */
#ifndef CLIENT_PRODUCE_H
#define CLIENT_PRODUCE_H

#include "link.h"

/* The bytes of the one-way sends of a link have left (rc 0), or never will. */
void produce_drained(struct link *l, int rc);
/* Those that wait for something are told MQ_ECANCELLED. */
void produce_cancel_all(struct mqclient *c);
void produce_free(struct mqclient *c);

#endif
