/* controller_node.h: a controller as a server: its port, the brokers that live, elections by the clock, one request judged at a time.
 *
 * Beside the name server in the same program, on the same loop, with a port of its own (that of controllerDLegerPeers): the same
 * codes mean other things here (904). */
#ifndef NAMESRV_CONTROLLER_NODE_H
#define NAMESRV_CONTROLLER_NODE_H

#include "namesrv_conf.h"
#include <uv.h>

struct controller_node;

struct controller_node_opt {
	const struct namesrv_conf *conf;        /* borrowed; may change while we run */
	struct conf *rows;                      /* what conf came from, borrowed */
	void (*changed)(void *arg);             /* rows were changed by a request */
	void *arg;
};
/* NULL with err. */
struct controller_node *controller_node_start(uv_loop_t *loop, const struct controller_node_opt *opt, struct mq_error *err);
void controller_node_stop(struct controller_node *n, int grace_ms, void (*stopped)(void *arg), void *arg);
/* What it knows, to the log. */
void controller_node_dump(const struct controller_node *n);

#endif
