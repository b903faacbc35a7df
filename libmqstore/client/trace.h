/* trace.h: each frame as one line on stderr: > sent, < received, name of the code, fields. */
#ifndef CLIENT_TRACE_H
#define CLIENT_TRACE_H

#include "link.h"

/* The request that was just ended in *o. */
void trace_out(struct link *l, const struct frame_out *o);
/* A frame that came: a request of the peer. */
void trace_in(struct link *l, const struct frame *f);
/* Our own answer to a peer's request, just ended. */
void trace_answered(struct link *l, int32_t code, const struct frame *request);
/* Put the tracer before cb: returns the callback to use and changes *arg. */
conn_answer_cb *trace_answer(struct link *l, int code, conn_answer_cb *cb, void **arg);

#endif
