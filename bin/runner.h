/* runner.h: mq-recv -x: a command per message.
 *
 * Messages of one lane (a queue) run one after the other, lanes beside each other, at most `jobs` at a time.  The command gets the
 * message on stdin and MQ_* in its environment (mq-recv(1), ENVIRONMENT); stdout is ours unless it is wanted as a reply.  When it
 * has ended the owner decides: runner_end() makes room for the next of the lane, runner_later() comes back to the message. */
#ifndef BIN_RUNNER_H
#define BIN_RUNNER_H

#include "child.h"

#include <sys/queue.h>

/* Owned by the caller, zeroed; one per queue. */
struct runner_lane {
	struct runner_job *first, **last;
	struct runner_lane *next;   /* in runner.ready */
	struct runner_job *at;      /* whose turn it is; the next waits for its end */
	bool queued;
};

/* A message and its command. */
struct runner_job {
	void *queue;                /* the caller's */
	int64_t off, log_off;
	int32_t reconsumed;         /* how often it was sent back before */
	int32_t runs;               /* how often the command has run here */
	int32_t refused;            /* the caller's count */
	struct bytes topic, props;  /* of the message */
	struct bytes body;          /* what the command gets */
	char id[MQ_ID_TEXT];
	/* --- own matters below --- */
	struct runner *r;
	struct runner_lane *lane;
	struct runner_job *next;
	struct child_env env;
	uv_timer_t timer;
	void (*later)(struct runner_job *j);
	bool waits, over;
	LIST_ENTRY(runner_job) timed;
};

struct runner {
	int jobs;
	bool capture;               /* output is wanted */
	int64_t timeout_ms;         /* of a command; 0 = none */
	void (*done)(void *arg, struct runner_job *j, const struct child_end *end);
	/* A message is left as it was, because its lane went or everything ends. */
	void (*dropped)(void *arg, void *queue, int64_t off);
	void *arg;
	/* --- own matters below --- */
	uv_loop_t *loop;
	struct command command;
	struct runner_lane *ready, **ready_last;
	int running;                /* commands */
	int held;                   /* jobs between the start of their command and runner_end() */
	LIST_HEAD(, runner_job) timed;  /* those that wait for runner_later() */
	size_t waiting_bytes, waiting;
	bool stopped;
};

/* Look whether the command can be started at all (child.h).  opt: the option that named it. */
void runner_open(struct runner *r, uv_loop_t *loop, const char *opt, const char *command);

/* Run the command for a message; everything is copied.  input: what it gets, NULL = the body. */
void runner_put(struct runner *r, struct runner_lane *lane, void *queue, const struct shown *s, const struct mq_str *input);

/* The message is dealt with. */
void runner_end(struct runner_job *j);
/* It is not: leave it as it was. */
void runner_drop(struct runner_job *j);
/* Come back in so many ms: then(j), or dropped() if everything ends before. */
void runner_later(struct runner_job *j, int64_t ms, void (*then)(struct runner_job *j));
/* Run its command again, when there is room. */
void runner_again(struct runner_job *j);

/* Too much waits: stop the flow. */
bool runner_full(const struct runner *r);
bool runner_idle(const struct runner *r);  /* nothing runs or will */
/* Start nothing more. */
void runner_stop(struct runner *r);
/* Drop what waits in a lane. */
void runner_lane_free(struct runner *r, struct runner_lane *lane);
void runner_close(struct runner *r);

#endif
