/* nameserver.h: one request to any name server: start at random, stay with the one that works, go round on failure. */
#ifndef CLIENT_NAMESERVER_H
#define CLIENT_NAMESERVER_H

#include "client.h"

/* f is the answer when rc is 0, else NULL and e says why the last server failed. */
typedef void nameserver_cb(void *arg, int rc, struct frame *f, const struct mq_error *e);

/* Everything is copied.  cb is called exactly once, never before return.  timeout_ms is for each server; 0 = the client's. */
void nameserver_call(struct mqclient *c, int code, const struct mqclient_field *fields, size_t nfields,
                     struct mq_str body, int32_t timeout_ms, nameserver_cb *cb, void *arg);

/* Replace the list (copied).  Calls that waited for one go out. */
void nameserver_list(struct mqclient *c, char *const *list, size_t n);
/* What was waited for is there (e == NULL), or will not come. */
void nameserver_ready(struct mqclient *c, const struct mq_error *e);
void nameserver_free(struct mqclient *c);

#endif
