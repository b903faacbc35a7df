/* dispatch.h: request code -> handler, and how handlers answer.
 *
 * To serve a further request: (1) its row in codec/request.h if there is none, (2) a handler in a handle_*.c, (3) a row in
 * dispatch.c.  A handler finds its header decoded and checked in q->h, appends its answer to the connection with the reply_
 * functions below, and keeps no state; it calls tables and the store, never another handler.
 *
 *	void handle_min_offset(struct req *q)
 *	{
 *		const struct min_offset_header *h = q->h;
 *		struct frame_out o;
 *
 *		reply_begin(q, &o, RESP_SUCCESS, NULL);
 *		frame_i64(&o, "offset", ...);
 *		reply_end(q, &o);
 *	}
 */
#ifndef BROKER_DISPATCH_H
#define BROKER_DISPATCH_H

#include <codec/request.h>
#include <net/conn.h>

struct broker;

/* One request on its way through a handler.  Views in f and h are good until the handler returns. */
struct req {
	struct broker *b;
	struct conn *c;
	struct frame *f;            /* NULL when an answer is given later (later_req) */
	struct frame_id id;
	const void *h;              /* the header struct of the request's row in codec/request.h */
	bool vip;                   /* came in by the fast port */
	struct cold_request *again; /* handled again, now that the disk has been read (cold.h); NULL: for the first time */
};
typedef void handler_fn(struct req *q);

enum {
	DISPATCH_MAIN_ONLY = 1,     /* not on the fast port: code 3 there, as with the peer */
};
struct dispatch_row {
	int32_t code;
	handler_fn *handler;
	int flags;
};
const struct dispatch_row *dispatch_find(int32_t code); /* NULL: not served */

/* Decode the header, call the handler, or answer why not.  Always 0 (the connection stays), as struct conn_ops wants. */
int dispatch_request(struct broker *b, struct conn *c, struct frame *f, bool vip);

/* Decode the header of f, a copy of a frame that was dispatched before, and call the handler once more. */
void dispatch_again(struct req *q, struct frame *f);

/* ---- Answers ----------------------------------------------------------------------------------------------------------- */

/* A whole answer: code and remark (fmt NULL: none), no fields. */
void reply(struct req *q, int32_t code, const char *fmt, ...) MQ_PRINTF(3, 4);
/* Code 0 with this body and no fields. */
void reply_body(struct req *q, struct mq_str body);
/* The same; the buffer is freed. */
void reply_buf(struct req *q, struct buf *b);
/* In pieces: reply_begin, frame_str() ..., [frame_body(), bytes to o->buf,] reply_end.  remark may be NULL; it is
 * borrowed until reply_end.  For a one-way request the pieces go nowhere. */
void reply_begin(struct req *q, struct frame_out *o, int32_t code, const char *remark);
void reply_end(struct req *q, struct frame_out *o);

/* Whom to answer later: holds the connection.  */
struct later {
	struct conn *c;
	struct frame_id id;
};
void later_take(struct later *l, const struct req *q);
/* A req to reply with.  After the reply: later_drop(). */
struct req later_req(struct broker *b, const struct later *l);
void later_drop(struct later *l);

#endif
