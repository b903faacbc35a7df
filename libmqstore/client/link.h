/* link.h: one connection per address, made when needed, kept, made again after a pause that grows.
 *
 * A link lives as long as the client; its connection comes and goes.  Requests may be written as soon as dialling began: they
 * leave when the connection is there, or fail with it. */
#ifndef CLIENT_LINK_H
#define CLIENT_LINK_H

#include "client.h"

struct link {
	struct mqclient *c;
	char *addr;                     /* "host:port" or "unix:PATH" */
	struct conn *conn;              /* NULL = none */
	bool opened;                    /* this connection came up */
	bool is_broker;                 /* heartbeats go here */
	bool known;                     /* a heartbeat was answered on this connection */
	bool denied;                    /* a heartbeat was refused, which was told */
	bool beating;                   /* a heartbeat is on its way */
	bool beat_again;                /* and another is wanted after it */
	int fails;                      /* in a row */
	int64_t opened_ms;
	int64_t opened_read;            /* last_read_ms of the connection at that time */
	int64_t retry_at;               /* no new attempt before */
	struct mq_error why;            /* of the last failure; code 0 = none */
	struct send_list drain;         /* one-way sends whose bytes have not left */
	UT_hash_handle hh;
};

struct link *link_get(struct mqclient *c, const char *addr);

/* Can a request be written now (perhaps after dialling)?  False in the pause after a failure. */
bool link_usable(const struct link *l);

/* Connect if there is no connection and no pause: 0, or why not. */
int link_connect(struct link *l, struct mq_error *e);

/* Begin a request.  0: write fields to *o, perhaps a body, then link_send().  Else why not, with a text; nothing was
 * begun and cb will not be called.  cb is called exactly once, never before this returns; cb == NULL: oneway. */
int link_call(struct link *l, struct frame_out *o, int code, int32_t timeout_ms, conn_answer_cb *cb, void *arg,
              struct mq_error *e);
void link_send(struct link *l, struct frame_out *o);

/* Why a call on this link failed with rc, in words: "broker-a (1.2.3.4:10911): connection closed". */
int link_error(const struct link *l, int rc, const char *name, struct mq_error *e);

/* The peer asked us to go (code 1500), or it behaves oddly: connect anew. */
void link_reset(struct link *l);
/* Forget the pause: there is news that the peer is back. */
void link_retry_now(struct link *l);

/* Tell produce_drained() when what was written has left. */
void link_watch_drain(struct link *l);

/* Close all.  Their calls fail; c->links is empty afterwards when the loop has turned. */
void link_close_all(struct mqclient *c);
void link_free_all(struct mqclient *c);

#endif
