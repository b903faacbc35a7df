/* serve.h: manners that the two servers share: how they say that they are ready, and which signals mean what. */
#ifndef BIN_SERVE_H
#define BIN_SERVE_H

#include <uv.h>

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
