/* wheel_private.h: the open wheel, as wheel.c, wheel_check.c and wheel_flush.c share it. */
#ifndef STORE_WHEEL_PRIVATE_H
#define STORE_WHEEL_PRIVATE_H

#include "wheel_log.h"
#include "wheel_slots.h"

struct wheel {
	char *path, *check_path;
	bool read_only;
	enum wheel_state state;
	struct wheel_slots slots;
	struct wheel_log log;
	struct wheel_check check;
	int64_t cut;
	int64_t synced;         /* the timer log is on the disk up to here */
	bool flushing;
};

/* Missing or short: zeros, and *found is false. */
int wheel_check_load(struct wheel_check *c, const char *path, bool *found, struct mq_error *err);
/* Write and sync. */
int wheel_check_save(const struct wheel_check *c, const char *path);

#endif
