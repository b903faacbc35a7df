/* done.h: requests to a broker whose answer is yes or no: send back, end a transaction, reply. */
#ifndef CLIENT_DONE_H
#define CLIENT_DONE_H

#include "link.h"
#include "route.h"

/* Begin a request to the broker's master.  0: write fields to *o, perhaps a body, then link_send(*l, o); cb comes exactly once, never
 * before this returns, unless it is NULL.  Else why not, and cb will not come.  fmt says what is asked for: "send back ...". */
int done_call(struct mqclient *c, struct broker *b, int code, int32_t timeout_ms, struct link **l, struct frame_out *o,
              mqclient_done_cb *cb, void *arg, struct mq_error *e, const char *fmt, ...) MQ_PRINTF(10, 11);

#endif
