/* recv_store.h: receive from a store directory, without a server: mq-recv -n store:DIR.
 *
 * The same callbacks as from a cluster (mqclient.h), in the order in which the messages were stored, over all queues.  Nothing in
 * the directory is changed; what a running broker adds is followed.  The name of the broker of every queue is "store". */
#ifndef BIN_RECV_STORE_H
#define BIN_RECV_STORE_H

#include <mqclient.h>
#include <uv.h>

#define RECV_STORE_BROKER "store"

struct recv_store;

/* opt->group must be NULL.  0, or a failure with its reason (MQ_ENOTFOUND: no store, no such topic). */
int recv_store_open(struct recv_store **s, const char *dir, uv_loop_t *loop, const struct mqclient_consume_opt *opt,
                    const struct mqclient_consume_ops *ops, void *arg, struct mq_error *err);
void recv_store_pause(struct recv_store *s, bool on);
/* As mqclient_progress(). */
void recv_store_progress(const struct recv_store *s, void (*cb)(void *arg, const struct mqclient_progress *p), void *arg);
void recv_store_close(struct recv_store *s);

#endif
