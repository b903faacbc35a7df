/* embedded.h: the broker that belongs to file:DIR: start it when nobody serves DIR/mq.sock.
 *
 * The broker is `mq-broker --embedded DIR`, looked for beside our own program and then in $PATH; it runs detached from us,
 * its stderr goes to DIR/mq-broker.log, and it ends by itself when it has had no client for a while.  Two starters are kept
 * apart by a lock on DIR/mq-start.lock: the second finds the first one's broker serving. */
#ifndef CLIENT_EMBEDDED_H
#define CLIENT_EMBEDDED_H

#include "client.h"

enum { EMBEDDED_WAIT_MS = 5000 };

/* "unix:DIR/mq.sock" into out.  MQ_EINVAL if it is too long for a socket's address. */
int embedded_address(const char *dir, char *out, size_t cap, struct mq_error *e);

/* Make sure that somebody serves DIR/mq.sock.  Blocks, at most EMBEDDED_WAIT_MS, shorter when *stop becomes true; any
 * thread. */
int embedded_ensure(const char *dir, const volatile bool *stop, struct mq_error *e);

/* The same on a worker.  c->ns_wait is set meanwhile; then nameserver_ready() is called.  No-op while one runs. */
void embedded_start(struct mqclient *c);
void embedded_stop(struct mqclient *c);

#endif
