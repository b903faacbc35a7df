/* answer.h: requests that brokers send to clients. */
#ifndef CLIENT_ANSWER_H
#define CLIENT_ANSWER_H

#include "link.h"

/* Returns non-zero to close the connection. */
int answer_request(struct link *l, struct frame *f);

#endif
