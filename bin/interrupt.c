/* interrupt.c: see interrupt.h. */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

enum { SIGNALS = sizeof(((struct interrupt *)NULL)->signal) / sizeof(uv_signal_t) };

static void on_signal(uv_signal_t *h, int sig)
{
	struct interrupt *i = h->data;

	i->got = sig;
	for (int n = 0; n < SIGNALS; n++)
		uv_signal_stop(&i->signal[n]);
	i->cb(i->arg);
}

void interrupt_catch(struct interrupt *i, uv_loop_t *loop)
{
	static const int numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

	for (int n = 0; n < SIGNALS; n++) {
		uv_signal_init(loop, &i->signal[n]);
		i->signal[n].data = i;
		uv_signal_start(&i->signal[n], on_signal, numbers[n]);
	}
}

void interrupt_end(const struct interrupt *i)
{
	if (!i->got)
		return;
	signal(i->got, SIG_DFL);
	raise(i->got);
}
