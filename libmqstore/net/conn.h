/* conn.h: one connection: bytes in, frames out, answers back.
 *
 * Reading goes into one growing buffer per connection; every whole frame in it is parsed in place and handed up before the next
 * read.  What is written is gathered in the connection's out buffer during a loop turn and leaves in one write when the
 * turn's input is used up (or, for answers that come later, at the end of that turn).
 * A peer that does not read: beyond CONN_OUT_PAUSE unread bytes we stop reading from it, beyond CONN_OUT_MAX it is dropped.
 *
 * A conn is reference counted: conn_ref() while an answer may come later; the owner's `closed` is called once, on the loop,
 * when the connection is gone, never from within conn_close(); from conn_close() on conn_alive() is false and what is written
 * goes nowhere.  All on the loop's thread.  clock_now_ms() is fresh in every callback from here and from timers; callbacks of
 * other handles (uv_async, finished work) call clock_refresh() first if they need it to the millisecond. */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "../codec/frame.h"
#include <uv.h>

enum { CONN_OUT_PAUSE = 8 * 1024 * 1024, CONN_OUT_MAX = 256 * 1024 * 1024, CONN_IN_KEEP = 64 * 1024 };

struct conn;

/* What the owner does with a connection. */
struct conn_ops {
	/* A request.  f and its views are good until return.  Returning non-zero closes the connection. */
	int (*request)(struct conn *c, struct frame *f);
	void (*opened)(struct conn *c);                 /* accepted, or connected; may be NULL */
	void (*closed)(struct conn *c, int why);        /* why: 0 the peer or we closed in order; may be NULL */
	/* An answer that no conn_call() waits for (too late, or the owner counts opaques itself); may be NULL. */
	void (*answer)(struct conn *c, struct frame *f);
};

/* Fields for the owner. */
struct conn_public {
	void *owner;                /* as given to listen / dial */
	void *user;                 /* the owner's, e.g. its client record */
	struct mq_host peer, local; /* len 0 on a Unix socket */
	int64_t last_read_ms, last_write_ms; /* monotonic */
};
struct conn_public *conn_public(struct conn *c);

void conn_ref(struct conn *c);
void conn_unref(struct conn *c);
bool conn_alive(const struct conn *c);
int conn_why(const struct conn *c);                     /* of a dead one: what closed() says; its calls hear of the end before */
void conn_close(struct conn *c);                        /* at once; what is not written is lost */
void conn_close_after_write(struct conn *c);            /* not alive from now on; what is written leaves within 3 s */
const char *conn_name(struct conn *c);                  /* "1.2.3.4:567", "unix", or what was dialled; lives as long as c */

/* The out buffer: append whole frames to it (frame_answer() etc.); never NULL, also when not alive.  Bytes leave at the end of
 * the turn.  Ask anew in every turn.  conn_kick() is for who kept the pointer. */
struct buf *conn_out(struct conn *c);
void conn_kick(struct conn *c);
size_t conn_unsent(const struct conn *c);
/* Called when all that was written has left; for senders that stream. NULL = off. */
void conn_on_drain(struct conn *c, void (*cb)(struct conn *c));

/* Our own requests over a connection (also server to client).  The answer is matched by opaque.  Exactly one callback: answer,
 * or rc MQ_ETIMEOUT / MQ_ECLOSED with f == NULL. */
typedef void conn_answer_cb(void *arg, int rc, struct frame *f);
/* Starts a request frame in the out buffer; the caller adds fields and ends it with frame_end(), then conn_kick().
 * cb == NULL: oneway. */
void conn_call(struct conn *c, struct frame_out *o, int32_t code, int type, int timeout_ms, conn_answer_cb *cb, void *arg);
int conn_calls_open(const struct conn *c);

/* Called before bytes leave on any connection of the loop, and before it waits: for who gathers the work of many requests and
 * must have done it before their answers leave.  One per loop; cb NULL takes it back.  It must not write to connections. */
void conn_before_send(uv_loop_t *loop, void (*cb)(void *arg), void *arg);

/* While input comes in quick succession, the loop looks for more for up to `us` before it waits: for servers, where a sleep and its
 * end for every few requests would cost more than these do.  0 (as it begins): it waits at once.  as_worked: and no longer than it
 * has just worked on input, so that looking never costs more than what was done.  For as long as the loop has connections, a
 * server or conn_before_send(). */
void conn_spin(uv_loop_t *loop, int us, bool as_worked);

/* Connect to "host:port" (names are resolved), "[v6]:port" or "unix:PATH".  opened or closed follows; never before return.
 * Returns the conn (one reference, dropped after `closed`) or NULL with e. */
struct conn *conn_dial(uv_loop_t *loop, const char *addr, int timeout_ms, const struct conn_ops *ops, void *owner,
                       struct mq_error *e);

#endif
