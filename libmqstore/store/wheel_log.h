/* wheel_log.h: the directory timerlog: units of 52 bytes in files of one size. */
#ifndef STORE_WHEEL_LOG_H
#define STORE_WHEEL_LOG_H

#include "segments.h"
#include "wheel.h"

enum { WHEEL_UNIT_BYTES = 52 };

struct wheel_log {
	struct segments run;
	struct segment *tail;   /* where is written; NULL: a new file comes first */
	int64_t end;            /* place of the next unit */
};

int wheel_log_open(struct wheel_log *l, const char *dir, int64_t size, bool write, struct mq_error *err);
void wheel_log_close(struct wheel_log *l);
/* The first unit at or behind *pos: 1 and *pos is its place; 0: no whole unit is there, and *pos is where one would be. */
int wheel_log_next(struct wheel_log *l, int64_t *pos, struct wheel_unit *u);
/* The last unit before l->end; false: none. */
bool wheel_log_last(struct wheel_log *l, struct wheel_unit *u);
int wheel_log_read(struct wheel_log *l, int64_t pos, struct wheel_unit *u);
/* From here on it is written; what lies behind goes (with `write`). */
int wheel_log_cut(struct wheel_log *l, int64_t end, bool write, struct mq_error *err);
int wheel_log_add(struct wheel_log *l, struct wheel_unit *u, struct mq_error *err);

#endif
