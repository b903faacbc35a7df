/* clock.c: the only caller of the clock; knows nothing of who waits for it. */
#include "clock.h"

#include <time.h>

int64_t clock_cached_wall_ms, clock_cached_mono_ms;
static int64_t shift_ms, shift_us;

int64_t clock_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + shift_ms;
}

int64_t clock_mono_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + shift_us;
}

/* Also before main, so that a program without a loop never sees time 0. */
__attribute__((constructor)) void clock_refresh(void)
{
	clock_cached_wall_ms = clock_wall_ms();
	clock_cached_mono_ms = clock_mono_us() / 1000;
}

void clock_shift_wall(int64_t ms)
{
	shift_ms += ms;
	clock_refresh();
}

void clock_shift_mono(int64_t us)
{
	shift_us += us;
}
