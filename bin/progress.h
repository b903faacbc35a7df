/* progress.h: how far a tool is, on stderr: on a terminal a line that is drawn again, else a line a second (--progress). */
#ifndef BIN_PROGRESS_H
#define BIN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool on;
	/* --- own matters below --- */
	bool terminal;
	int64_t started_ms, told_ms, told_count;
};

/* `wanted`: --progress was given; else only if stderr is a terminal and `quiet_fd` (where people type or read) is none. */
void progress_open(struct progress *p, bool wanted, int quiet_fd);
/* Call often: at most once a second something is shown.  `more` goes behind it, may be "". */
void progress_tick(struct progress *p, int64_t now_ms, int64_t count, const char *done, const char *more);
void progress_close(struct progress *p);

#endif
