/* half.h: transactions: ending a half, and the question of a broker what became of one. */
#ifndef CLIENT_HALF_H
#define CLIENT_HALF_H

#include "client.h"

struct link;

/* CHECK_TRANSACTION_STATE came: it goes to who answers for the group of the half. */
void half_asked(struct link *l, struct frame *f);
void half_free(struct mqclient *c);

#endif
