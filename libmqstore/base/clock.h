/* clock.h: the only caller of the clock.
 *
 * Wall time only for stamps that people and peers see; monotonic time for every wait (a stepped clock must not matter).
 * clock_refresh() is called once at the start of each loop turn; the _now functions are then free. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

int64_t clock_wall_ms(void);            /* reads the clock */
int64_t clock_mono_us(void);            /* reads the clock */
void clock_refresh(void);
extern int64_t clock_cached_wall_ms, clock_cached_mono_ms;
static inline int64_t clock_now_ms(void) { return clock_cached_wall_ms; }   /* wall, as of the last refresh */
static inline int64_t clock_mono_ms(void) { return clock_cached_mono_ms; }  /* monotonic, as of the last refresh */

/* Tests: shift wall time by this much from now on. */
void clock_shift_wall(int64_t ms);
/* The same for monotonic time, which only ever goes forward. */
void clock_shift_mono(int64_t us);

#endif
