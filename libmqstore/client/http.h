/* http.h: the address server: fetch a list of name servers at the start and every two minutes. */
#ifndef CLIENT_HTTP_H
#define CLIENT_HTTP_H

#include "client.h"

/* Start polling c->addr.  Each list goes to nameserver_list(). */
int http_start(struct mqclient *c, struct mq_error *e);
/* Abort a transfer that runs; c->open_handles counts it until it is gone. */
void http_stop(struct mqclient *c);
void http_free(struct mqclient *c);

#endif
