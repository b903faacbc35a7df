/* conn_private.h: a connection as the files of net/ see it. */
#ifndef NET_CONN_PRIVATE_H
#define NET_CONN_PRIVATE_H

#include "conn.h"
#include "loop.h"

enum {
	CONN_STASH = 4096,              /* less than this left of a read is copied back in front of the next one */
	CONN_FLUSH = 256 * 1024,        /* answers of one turn beyond this leave before the turn ends */
	CONN_OUT_KEEP = 1024 * 1024,    /* a larger out buffer is given back as soon as it is empty */
	CONN_LINGER_MS = 3000,          /* how long a peer may take to read the rest and close, once we want to close */
};

enum conn_state {
	CONN_DIALING,       /* what is written waits */
	CONN_OPEN,
	CONN_FINISHING,     /* close when everything is written; input is thrown away */
	CONN_DEAD,
};

struct dial;
struct server;

struct conn {
	struct conn_public pub;
	const struct conn_ops *ops;
	struct net *net;
	int refs;
	enum conn_state state;
	int why;                        /* for closed() */
	int fd;                         /* -1 = none */
	uv_poll_t poll;
	enum { HANDLE_NONE, HANDLE_OPEN, HANDLE_CLOSING } handle;
	int interest;                   /* what poll waits for */

	struct buf in;                  /* what is left of a read: part of a frame, or frames that have to wait */
	struct buf out;                 /* out.p[out_at..n) is not sent yet */
	size_t out_at;
	bool busy;                      /* handling its input: a flush follows */
	bool is_dirty;                  /* in net->dirty */
	bool blocked;                   /* the socket takes no more: wait until it does */
	bool paused;                    /* the peer does not read: nor do we */
	bool write_dead;                /* the peer is gone for writing; what it sent before is still read */
	bool eof;                       /* the peer has closed its half */
	bool shut;                      /* FINISHING: our half is closed */
	void (*drain)(struct conn *c);

	struct deadline deadline;       /* of the dial, or of FINISHING */
	struct dial *dial;              /* while DIALING */
	struct server *server;          /* if accepted, until its owner has been told of the end */
	TAILQ_ENTRY(conn) all, turn, end, of_server;    /* net->conns, net->dirty, net->gone; the server's list */

	struct call **calls;            /* open addressing by opaque; calls_cap is a power of two */
	uint32_t calls_n, calls_cap;
	char *name;
};

/* One reference, one user of the net. */
struct conn *conn_new(uv_loop_t *loop, const struct conn_ops *ops, void *owner);
/* The descriptor is connected: fill in the addresses, start reading, call opened(). */
void conn_opened(struct conn *c, int fd);
/* Start or stop waiting on fd.  0 or a libuv code. */
int conn_wait(struct conn *c, int events, uv_poll_cb cb);
/* Dead from now on; closed(why) follows from the loop. */
void conn_end(struct conn *c, int why);
/* Prepare for another descriptor: the old one is closed, dial_next() follows. */
void conn_drop_fd(struct conn *c);
/* From net: write what there is.  Tell the owner that it is gone.  Look for idleness. */
void conn_flush(struct conn *c);
void conn_tell_gone(struct conn *c);
void conn_tick(struct conn *c, int64_t now_ms);

/* call.c */
void call_answered(struct conn *c, struct frame *f);
void call_lose_all(struct conn *c);
void call_tell_lost(struct net *n);
void call_free_unused(struct net *n);

/* dial.c */
void dial_next(struct conn *c);
void dial_give_up(struct conn *c);

/* server.c: a connection of it is dead; its owner has been told; the idle limit (0 = none). */
void server_forget(struct conn *c);
void server_told(struct conn *c);
int server_idle_ms(const struct server *s);

/* addr.c */
struct sockaddr;
void addr_host(const struct sockaddr *a, struct mq_host *h);
/* Where a Unix socket is.  A path that does not fit in the address is reached through its directory: *dir is then a descriptor
 * to be closed after use, else -1.  Returns the length of the address or -errno. */
struct sockaddr_un;
int addr_unix(const char *path, struct sockaddr_un *a, int *dir);

#endif
