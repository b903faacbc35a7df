/* controller_private.h: a controller's parts, for controller_node.c (when) and handle_controller.c (what). */
#ifndef NAMESRV_CONTROLLER_PRIVATE_H
#define NAMESRV_CONTROLLER_PRIVATE_H

#include "controller_live.h"
#include "controller_node.h"
#include "controller_raft.h"
#include <net/server.h>
#include <sys/queue.h>

enum { CONTROLLER_HEADER_BYTES = 256 };         /* of the largest header struct */

/* A request that waits, or is being judged.  Without a connection: an election that we want ourselves. */
struct controller_ask {
	TAILQ_ENTRY(controller_ask) all;
	struct conn *c;                 /* a reference; NULL */
	int32_t code;
	struct frame_id id;
	char *bytes;                    /* what the views of header and body point to */
	struct mq_str body;
	_Alignas(16) char header[CONTROLLER_HEADER_BYTES];
	struct controller_verdict v;
};

struct controller_node {
	uv_loop_t *loop;
	struct controller_node_opt opt;
	const struct namesrv_conf *conf;
	struct controller_peers peers;
	struct controller *state;
	struct controller_lives *lives;
	struct controller_eyes eyes;
	struct controller_raft *raft;
	struct server *server;
	uv_timer_t scan;
	int64_t start_ms;               /* monotonic */
	TAILQ_HEAD(, controller_ask) waiting;
	size_t waiting_n;
	struct controller_ask *judged;  /* its event is on its way to the others */
	bool stopping;
	int closing;
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* ---- handle_controller.c --------------------------------------------------------------------------------------------- */

/* Requests that need no leader: 904, 1005, 1009, 1010.  false: it is none of them. */
bool handle_controller_here(struct controller_node *n, struct conn *c, struct frame *f);
/* Is it one of those that only the leader judges? */
bool handle_controller_led(int32_t code);
/* Fill a->v. */
void handle_controller_judge(struct controller_node *n, struct controller_ask *a);
/* What was judged has happened, if it was to: answer, and tell the brokers. */
void handle_controller_answer(struct controller_node *n, struct controller_ask *a);
/* Code and remark only. */
void handle_controller_refuse(struct controller_ask *a, int32_t code, const char *remark);

#endif
