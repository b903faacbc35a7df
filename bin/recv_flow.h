/* recv_flow.h: messages from where they come (a cluster or a store directory) to where they go (stdout or a command), and back the
 * word that they arrived, or what else is to become of them.
 *
 * Promise R1: what is settled with commit, and what --resume remembers, is exactly what stdout accepted (sink.h) or whose command
 * exited with 0; or what the servers took back, to bring it again or to keep it as a dead letter. */
#ifndef BIN_RECV_FLOW_H
#define BIN_RECV_FLOW_H

#include "exit_map.h"
#include "record_out.h"
#include "recv_resume.h"
#include "recv_store.h"
#include "runner.h"
#include "seal.h"
#include "sink.h"

#include <mqclient.h>

struct recv_flow {
	uv_loop_t *loop;
	struct record_out out;
	int64_t count;                    /* take so many; 0 = no end */
	bool run;                         /* a command per message, else stdout */
	bool reply;                       /* what the command writes goes back to who asked */
	bool json_input;                  /* a command gets the message as a JSON line */
	bool broadcast;
	bool in_place;                    /* what is to be retried waits at its place in the queue */
	int32_t max_attempts;             /* then to the dead letters; 0 = as the group is configured, in place: never */
	struct exit_map on_exit;
	struct seal seal;                 /* keys to open and to verify with */
	const char *group;                /* NULL = none */
	struct mqclient *client;
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
	bool command_failed;              /* in a way that ends the program; why below */
	int64_t retried, dead;            /* messages of `accepted` that were sent back, or buried */
	struct mq_error why;
	/* --- own matters below --- */
	bool stopped, paused;
	struct bytes line;
	struct recv_queue *queues, *last;
};

extern const struct mqclient_consume_ops recv_flow_ops; /* arg: the flow */

/* Where messages go: with `command` NULL to stdout.  Zeroed, out, sink.one_by_one and runner.jobs set before; opt: what named the
 * command.   A command that cannot be started
 * ends the program (runner.h).  0 or -errno. */
int recv_flow_open(struct recv_flow *f, uv_loop_t *loop, const char *opt, const char *command);

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
