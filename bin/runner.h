/* runner.h: mq-recv -x: a command per message.
 *
 * Messages of one lane (a queue) run one after the other, lanes beside each other, at most `jobs` at a time.  The command gets
 * the body on stdin and MQ_* in its environment (mq-recv(1), ENVIRONMENT OF THE COMMAND); stdout and stderr are ours.  The first
 * command that does not exit with 0 stops the runner: nothing is started any more, those that run may finish. */
#ifndef BIN_RUNNER_H
#define BIN_RUNNER_H

#include "record_out.h"

#include <uv.h>

struct runner_job;

/* Owned by the caller, zeroed; one per queue. */
struct runner_lane {
	struct runner_job *first, **last;
	struct runner_lane *next;   /* in runner.ready */
	bool busy, queued;
};

struct runner {
	int jobs;
	/* The command of a message ended; ok: with exit code 0.  Else `why` says how. */
	void (*done)(void *arg, void *queue, int64_t off, bool ok, const char *why);
	void *arg;
	/* --- own matters below --- */
	uv_loop_t *loop;
	const char *command;
	char **argv;        /* to execute directly; NULL = through the shell */
	struct runner_lane *ready, **ready_last;
	int running;
	size_t waiting_bytes, waiting;
	bool stopped;
};

/* Look whether the command can be started at all.  If not the program ends: 126 not executable, 127 not there, 2 no command. */
void runner_open(struct runner *r, uv_loop_t *loop, const char *command);

/* Run the command for a message; everything is copied. */
void runner_put(struct runner *r, struct runner_lane *lane, void *queue, int64_t off, const struct shown *s);

/* Too much waits: stop the flow. */
bool runner_full(const struct runner *r);
bool runner_idle(const struct runner *r);  /* nothing runs or will */
/* Start nothing more. */
void runner_stop(struct runner *r);
/* Free what waits in a lane. */
void runner_lane_free(struct runner *r, struct runner_lane *lane);
void runner_close(struct runner *r);

#endif
