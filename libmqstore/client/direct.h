/* direct.h: CONSUME_MESSAGE_DIRECTLY: an administrator hands one message to one member, and wants to know what it makes of it. */
#ifndef CLIENT_DIRECT_H
#define CLIENT_DIRECT_H

#include "consume.h"

struct link;

/* Hand it to the user, who answers later.  False: this consumer does not take such messages. */
bool direct_begin(struct mqclient_consumer *k, struct link *l, struct frame *f);

#endif
