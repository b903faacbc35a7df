/* exit_map.h: what an exit code of a command means for its message. */
#ifndef BIN_EXIT_MAP_H
#define BIN_EXIT_MAP_H

#include "child.h"

enum exit_what {
	EXIT_OK,        /* consumed */
	EXIT_RETRY,     /* again later */
	EXIT_DEAD,      /* to the dead letters */
	EXIT_STOP,      /* end the program, leave the message */
};

struct exit_action {
	enum exit_what what;
	int32_t level;          /* of EXIT_RETRY: delay level; 0 = later with each time */
	int64_t ms;             /* the same as a time; 0 = not said */
};

struct exit_map {
	struct exit_action code[256], on_signal, on_timeout;
};

/* 0 consumed; 75 and what is not named here retried; 100 dead; 126, 127 stop; killed: retried. */
void exit_map_init(struct exit_map *m);
/* CODES=ACTION[,...]: CODES is N, N-M, signal, timeout or other (codes not named before in this text); ACTION ok, retry,
 * retry:level:N, retry:DURATION (one of the levels), dead, stop.  What is wrong ends the program with exit 2. */
void exit_map_change(struct exit_map *m, const char *text);
const struct exit_action *exit_map_of(const struct exit_map *m, const struct child_end *end);

#endif
