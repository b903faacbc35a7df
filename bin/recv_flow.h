/* recv_flow.h: messages from where they come (a cluster or a store directory) to where they go (stdout or a command), and back the
 * word that they arrived.
 *
 * Promise R1: what is settled with commit, and what --resume remembers, is exactly what stdout accepted (sink.h) or whose command
 * exited with 0. */
#ifndef BIN_RECV_FLOW_H
#define BIN_RECV_FLOW_H

#include "record_out.h"
#include "recv_resume.h"
#include "recv_store.h"
#include "runner.h"
#include "sink.h"

#include <mqclient.h>

struct recv_flow {
	uv_loop_t *loop;
	struct record_out out;
	int64_t count;                    /* take so many; 0 = no end */
	bool run;                         /* a command per message, else stdout */
	struct sink sink;
	struct runner runner;
	struct recv_resume resume;
	struct mqclient_consumer *consumer;
	struct recv_store *store;         /* one of the two */
	/* Results. */
	int64_t taken, accepted;
	int64_t last_ms;                  /* when the last message came, or was accepted (uv_now()) */
	bool ended;                       /* the source has no more */
	int broken;                       /* stdout: -errno */
	bool fatal;                       /* the source failed; why below */
	bool command_failed;
	struct mq_error why;
	/* --- own matters below --- */
	bool stopped, paused;
	struct recv_queue *queues, *last;
};

extern const struct mqclient_consume_ops recv_flow_ops; /* arg: the flow */

/* Where messages go: with `command` NULL to stdout.  Zeroed, out and sink.one_by_one set before.  A command that cannot be started
 * ends the program (runner.h).  0 or -errno. */
int recv_flow_open(struct recv_flow *f, uv_loop_t *loop, const char *command, int jobs);

/* After each turn of the loop: write what came, stop or start the flow. */
void recv_flow_turn(struct recv_flow *f);
/* Take no more messages. */
void recv_flow_stop(struct recv_flow *f);
/* Nothing is under way between source and destination. */
bool recv_flow_idle(const struct recv_flow *f);
/* Note where each queue stands, for --resume, before the source is closed. */
void recv_flow_note(struct recv_flow *f);
/* Messages that are in the queues and were not taken. */
int64_t recv_flow_lag(struct recv_flow *f);
void recv_flow_free(struct recv_flow *f);

#endif
