/* wheel_slots.h: the file timerwheel, in memory: slots by moment. */
#ifndef STORE_WHEEL_SLOTS_H
#define STORE_WHEEL_SLOTS_H

#include "wheel.h"

enum { WHEEL_SLOTS = 7 * 86400 * 2, WHEEL_PAGE = 4096, WHEEL_SLOT_BYTES = 32,
       WHEEL_PAGES = WHEEL_SLOTS * WHEEL_SLOT_BYTES / WHEEL_PAGE };

struct wheel_slots {
	int64_t step;                   /* ms; may be set later, before any other use */
	uint8_t *p;
	uint8_t used[WHEEL_PAGES];      /* there may be slots in the page */
	uint8_t dirty[WHEEL_PAGES];
	int32_t ndirty;
	bool found;                     /* the file was there and had the right length */
};

int wheel_slots_open(struct wheel_slots *s, const char *path, struct mq_error *err);
void wheel_slots_close(struct wheel_slots *s);
bool wheel_slots_get(const struct wheel_slots *s, int64_t ms, struct wheel_slot *out);
/* A unit at pos is the last of the slot of `ms` now, unless the slot belongs to a later moment or knows it; by: 1, or -1. */
void wheel_slots_add(struct wheel_slots *s, int64_t ms, int64_t pos, int32_t by);
void wheel_slots_empty(struct wheel_slots *s, int64_t ms);
void wheel_slots_clear(struct wheel_slots *s);
/* Each slot that was ever used, whatever its moment, in no order. */
int wheel_slots_each(const struct wheel_slots *s, int (*cb)(void *arg, const struct wheel_slot *slot), void *arg);
int64_t wheel_slots_next(const struct wheel_slots *s, int64_t from, int64_t to);

#endif
