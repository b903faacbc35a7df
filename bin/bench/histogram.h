/* histogram.h: times in us, counted in steps of at most 3.2 %. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_FINE = 64, HISTOGRAM_STEPS = 64 * 40 };

struct histogram {
	int64_t n, max;
	int64_t count[HISTOGRAM_STEPS];
};

static inline int histogram_step(int64_t us)
{
	int shift;

	if (us < HISTOGRAM_FINE)
		return us < 0 ? 0 : (int)us;
	/* The upper half of 64 steps for each power of two. */
	shift = 63 - __builtin_clzll((uint64_t)us) - 5;
	return shift * (HISTOGRAM_FINE / 2) + (int)(us >> shift);
}

static inline void histogram_add(struct histogram *h, int64_t us)
{
	int step = histogram_step(us);

	h->count[step < HISTOGRAM_STEPS ? step : HISTOGRAM_STEPS - 1]++;
	h->n++;
	if (us > h->max)
		h->max = us;
}

/* The time that so many of 1000 are not slower than (the upper end of its step); -1 if there are none. */
static inline int64_t histogram_permille(const struct histogram *h, double permille)
{
	int64_t want = (int64_t)((double)h->n * permille / 1000.0 + 0.999999), seen = 0;

	if (!h->n)
		return -1;
	if (want < 1)
		want = 1;
	for (int i = 0; i < HISTOGRAM_STEPS; i++) {
		seen += h->count[i];
		if (seen >= want) {
			int shift = i < HISTOGRAM_FINE ? 0 : i / (HISTOGRAM_FINE / 2) - 1;
			int64_t first = i - shift * (HISTOGRAM_FINE / 2), top = ((first + 1) << shift) - 1;

			return top < h->max ? top : h->max;
		}
	}
	return h->max;
}

#endif
