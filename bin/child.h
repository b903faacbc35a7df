/* child.h: a command that is run for a message: what it gets, and how it ended. */
#ifndef BIN_CHILD_H
#define BIN_CHILD_H

#include "record_out.h"

#include <uv.h>

enum { CHILD_OUTPUT_MAX = MQ_BODY_MAX };

struct command {
	const char *opt;    /* the option that named it, for errors */
	const char *text;
	char **argv;        /* to execute directly; NULL = through the shell */
};

/* Look whether the command can be started at all.  If not the program ends: 126 not executable, 127 not there, 2 no command. */
void command_open(struct command *c, const char *opt, const char *text);
void command_close(struct command *c);

/* Variables for a command, besides the environment of the program. */
struct child_env {
	struct bytes text;  /* "NAME=VALUE" NUL ... */
	size_t n;
};
/* MQ_TOPIC and all the others of ENVIRONMENT in mq-recv(1). */
void child_env_message(struct child_env *e, const struct shown *s);
void child_env_str(struct child_env *e, const char *name, struct mq_str value);
void child_env_int(struct child_env *e, const char *name, int64_t v);

struct child_end {
	int code;               /* exit code; -1 if a signal ended it, or its output was too long */
	int sig;                /* 0 = none */
	bool timed_out;
	struct mq_str output;   /* if it was wanted; good until the callback returns */
	char why[64];           /* "exit code 3", for people */
};
typedef void child_done(void *arg, const struct child_end *end);

/* Run it, with `input` on its standard input (copied).  capture: its standard output is wanted, else it is ours; stderr is ours.
 * timeout_ms: then it is killed; 0 = never.  done comes once, later.  0, or -errno and done does not come. */
int child_start(uv_loop_t *loop, const struct command *cmd, const struct child_env *env, struct mq_str input, bool capture,
                int64_t timeout_ms, child_done *done, void *arg);

#endif
