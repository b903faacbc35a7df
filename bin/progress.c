/* progress.c: counts and rates for people. */
#include "progress.h"
#include "cli.h"

#include <inttypes.h>
#include <unistd.h>

#define EVERY_MS 1000

void progress_open(struct progress *p, bool wanted, int quiet_fd)
{
	*p = (struct progress){ .terminal = isatty(STDERR_FILENO) };
	p->on = wanted || (p->terminal && !isatty(quiet_fd));
}

void progress_tick(struct progress *p, int64_t now_ms, int64_t count, const char *done, const char *more)
{
	char text[200];
	int64_t rate;

	if (!p->on)
		return;
	if (p->started_ms == 0)
		p->started_ms = p->told_ms = now_ms;
	if (now_ms - p->told_ms < EVERY_MS)
		return;
	rate = (count - p->told_count) * 1000 / (now_ms - p->told_ms);
	snprintf(text, sizeof(text), "%" PRId64 " %s, %" PRId64 "/s%s", count, done, rate, more);
	p->told_ms = now_ms;
	p->told_count = count;
	if (p->terminal)
		cli_status_line(text);
	else
		cli_warn("%s", text);
}

void progress_close(struct progress *p)
{
	if (p->on && p->terminal)
		cli_status_line("");
}
