/* namesrv.h: the name server: which broker serves which topic, and small settings.  As a program (mq-namesrv) and as a part of
 * an embedded broker, which hands it the requests that are its own.
 *
 * One libuv loop owns everything here.  Files come in two shapes, seen from the name: *_table.c own state and know no
 * network; handle_*.c turn a request into calls on the tables and an answer, and own nothing. */
#ifndef NAMESRV_NAMESRV_H
#define NAMESRV_NAMESRV_H

#include "namesrv_conf.h"
#include <net/server.h>

struct namesrv;
struct route_table;
struct kv_table;

struct namesrv_opt {
	const struct namesrv_conf *conf;        /* borrowed; may change while we run */
	struct conf *rows; /* what conf came from, borrowed; NULL: requests about the configuration are refused */
	/* Reads the configuration anew, for namesrv_reload(); NULL: it cannot be. */
	struct conf *(*load)(void *arg, struct namesrv_conf *c, struct mq_error *e);
	void *load_arg;
};

/* Reads kvConfigPath (if it is not empty).  Expired brokers are looked for on the loop; that alone does not keep the loop alive.
 * NULL with err. */
struct namesrv *namesrv_new(uv_loop_t *loop, const struct namesrv_opt *opt, struct mq_error *err);

/* Is this a request for the name server?  (103, 105, ...; false for codes that nobody serves) */
bool namesrv_serves(int32_t code);
/* Handle a request of c and write the answer to conn_out(c).  A code that is not served is answered with code 3.  Returns 0. */
int namesrv_request(struct namesrv *ns, struct conn *c, struct frame *f);
/* c is gone: brokers that registered over it leave the routes. */
void namesrv_closed(struct namesrv *ns, struct conn *c);

/* Listen on conf's bindAddress and listenPort.  0 or a code with err. */
int namesrv_listen(struct namesrv *ns, struct mq_error *err);
int namesrv_port(const struct namesrv *ns);
/* Read the configuration again; what may change while running is changed. */
void namesrv_reload(struct namesrv *ns);
/* The values of conf changed: make them felt where they do not act by themselves. */
void namesrv_changed(struct namesrv *ns);
/* Numbers of what is in the tables, to the log. */
void namesrv_dump(struct namesrv *ns);

/* Stop listening, let answers leave (at most grace_ms), free everything; then done(arg), on the loop. */
void namesrv_stop(struct namesrv *ns, int grace_ms, void (*done)(void *arg), void *arg);

struct route_table *namesrv_routes(struct namesrv *ns);
struct kv_table *namesrv_kv(struct namesrv *ns);

#endif
