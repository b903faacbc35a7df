/* fetch.h: GET a small text over http, on a worker thread: lists of name servers from an address server.
 *
 * libcurl is loaded with the first fetch, so that programs which never fetch do not pay for it. */
#ifndef NET_FETCH_H
#define NET_FETCH_H

#include <mq.h>
#include <uv.h>

struct fetch;

/* rc 0: status 200 and this body (good until return); else why not, in e.  Comes exactly once, on the loop, also after fetch_stop()
 * (MQ_ECANCELLED); the fetch is gone when it returns. */
typedef void fetch_cb(void *arg, int rc, const struct mq_error *e, struct mq_str body);

/* At most `max` bytes are taken.  NULL with e when libcurl is not there. */
struct fetch *fetch_start(uv_loop_t *loop, const char *url, int timeout_ms, size_t max, fetch_cb *cb, void *arg, struct mq_error *e);
void fetch_stop(struct fetch *f);

#endif
