/* interrupt.h: SIGINT, SIGTERM, SIGHUP of a tool: the first asks it to end in order, the second ends it at once. */
#ifndef BIN_INTERRUPT_H
#define BIN_INTERRUPT_H

#include <uv.h>

struct interrupt {
	void (*cb)(void *arg);  /* the first came */
	void *arg;
	int got;                /* its number; 0 = none yet */
	/* --- own matters below --- */
	uv_signal_t signal[3];
};

/* cb and arg are set before. */
void interrupt_catch(struct interrupt *i, uv_loop_t *loop);
/* The program's last act: if a signal came it ends by that signal, as who sent it expects. */
void interrupt_end(const struct interrupt *i);

#endif
