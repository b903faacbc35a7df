/* netlab.h: a loop with a server under test, and raw sockets that speak to it from the same thread. */
#ifndef TEST_NETLAB_H
#define TEST_NETLAB_H

#include "base/buf.h"
#include "net/server.h"

/* One per test.  The server answers each request with its own body, or:
 *	field "size"	an answer with a body of so many bytes
 *	field "mute"	no answer
 *	field "close"	closes the connection */
struct lab {
	uv_loop_t loop;
	struct server *server;
	int port;
	int requests, opened, closed, last_why;
	struct conn *conn;          /* the one opened last; no reference */
};
int lab_start(void **state);        /* cmocka setup: *state is the lab */
int lab_stop(void **state);         /* fails if a handle, descriptor or connection is left */
/* Without a server; lab_listen() makes one. */
int lab_start_empty(void **state);
void lab_listen(struct lab *l, struct server_opt o);
extern const struct conn_ops lab_ops;

/* Turn the loop until *n >= want (fails after 10 s), or for so long. */
void lab_until(struct lab *l, const int *n, int want);
void lab_for(struct lab *l, int ms);
void lab_once(struct lab *l);       /* what is ready, without waiting */

/* Raw sockets, not blocking. */
int raw_connect(struct lab *l);
/* Turns the loop while the socket takes no more. */
void raw_send(struct lab *l, int fd, const void *p, size_t n);
/* Reads until `b` holds n bytes, or the end of the stream (false).  Turns the loop. */
bool raw_recv(struct lab *l, int fd, struct buf *b, size_t n);
/* Next whole frame: its bytes in b, parsed in f.  false at the end of the stream. */
bool raw_frame(struct lab *l, int fd, struct buf *b, struct frame *f);
bool raw_ended(struct lab *l, int fd);      /* the end of the stream comes next */

/* Append a request with this opaque; key may be NULL. */
void lab_request(struct buf *b, int opaque, const char *key, int64_t value, struct mq_str body);
int lab_descriptors(void);                  /* open in this process */

#endif
