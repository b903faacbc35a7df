/* request.h: a message that asks for a reply, and the reply that a broker pushes. */
#ifndef CLIENT_REQUEST_H
#define CLIENT_REQUEST_H

#include "client.h"

struct link;

/* PUSH_REPLY_MESSAGE_TO_CLIENT came. */
void request_pushed(struct link *l, struct frame *f);
/* Those that wait for a reply are told MQ_ECANCELLED. */
void request_cancel_all(struct mqclient *c);

#endif
