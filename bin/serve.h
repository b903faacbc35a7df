/* serve.h: manners that the two servers share: their options, how they say that they are ready, and which
 * signals mean what. */
#ifndef BIN_SERVE_H
#define BIN_SERVE_H

#include "cli.h"
#include <base/conf.h>
#include <uv.h>

/* Options that both have. */
enum { SERVE_PRINT_CONFIG = 256, SERVE_READY_FD, SERVE_OWN /* a server's own begin here */ };
#define SERVE_OPTIONS { 'c', "config", true }, { 'p', "property", true }, { SERVE_PRINT_CONFIG, "print-config", false }, \
	{ SERVE_READY_FD, "ready-fd", true }
struct serve_options {
	const char *file;               /* of the configuration; NULL = none */
	char **property;                /* KEY=VALUE; these win */
	size_t nproperties;
	int ready_fd;                   /* -1 = none */
	bool print;
};
#define SERVE_OPTIONS_INIT { .ready_fd = -1 }
/* Takes an option of SERVE_OPTIONS, its value in optarg. */
void serve_option(struct serve_options *o, int id);
/* Read the file and the properties into rows: 0, or a negative code. */
int serve_configure(const struct serve_options *o, struct conf *rows, struct mq_error *e);
/* --print-config: exit status. */
int serve_print_config(const struct conf *rows);
void serve_options_free(struct serve_options *o);

/* What a server does on a signal; NULL: the signal is ignored. */
struct serve_ops {
	void (*stop)(void *arg);        /* SIGTERM, SIGINT: once, however many come */
	void (*reload)(void *arg);      /* SIGHUP */
	void (*dump)(void *arg);        /* SIGUSR1: state to the log */
};
/* Catches the signals on the loop; SIGPIPE is ignored from here on. */
void serve_signals(uv_loop_t *loop, const struct serve_ops *ops, void *arg);
/* Lets go of them, so that the loop can end. */
void serve_signals_close(void);

/* The server answers now.  "PORT\n" goes to fd (-1: none), which is closed; systemd is told (READY=1) if it waits for that. */
void serve_ready(int fd, int port);
/* The server is about to leave (STOPPING=1). */
void serve_stopping(void);

#endif
