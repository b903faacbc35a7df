/* cold.c: which parts of the log are in memory, as far as a reader has to know. */
#include "cold.h"
#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "cqueue.h"
#include "store.h"

#include <fcntl.h>
#include <stdlib.h>

enum {
	HOT = 64 << 20,         /* the newest part of the log: just written, so it is in memory */
	BELIEVE_MS = 1000,      /* how long an answer of the kernel holds */
	AHEAD = 4,              /* windows that are fetched for one who reads on and on */
	LOOK_MAX = 1024,        /* entries looked at */
	PIECE = 256 * 1024,
};

static struct warm_window *slot_of(struct mqstore *s, int64_t window)
{
	return &s->warm[window % WARM_WINDOWS];
}

static bool believed(struct mqstore *s, int64_t window)
{
	const struct warm_window *w = slot_of(s, window);

	return w->until_ms && w->window == window && w->until_ms > clock_mono_ms();
}

/* The part of a window that is in this segment and below the log's end. */
static int64_t clip(const struct mqstore *s, const struct segment *g, int64_t *from, int64_t n)
{
	int64_t end = *from + n, last = g->start + g->size;

	end = end < last ? end : last;
	end = end < s->log.max ? end : s->log.max;
	*from = *from > g->start ? *from : g->start;
	return end - *from;
}

static bool in_memory(struct mqstore *s, int64_t window)
{
	int64_t from = window * WARM_BYTES, n;
	struct segment *g;

	if (believed(s, window))
		return true;
	g = segments_at(&s->log.run, from);
	if (!g) /* a window may begin before its segment does */
		g = segments_at(&s->log.run, from + WARM_BYTES - 1);
	if (!g || !segments_bytes(&s->log.run, g))
		return true; /* what is not there need not be waited for */
	n = clip(s, g, &from, WARM_BYTES);
	if (!segment_resident(g, from - g->start, n))
		return false;
	*slot_of(s, window) = (struct warm_window){ window, clock_mono_ms() + BELIEVE_MS };
	return true;
}

static void to_fetch(struct mqstore *s, int64_t window, const struct mqstore_entry *e, struct cold_range *r)
{
	int64_t from = window * WARM_BYTES, n = window > 0 && believed(s, window - 1) ? AHEAD * WARM_BYTES : WARM_BYTES;
	int64_t need = e->log_off + e->size - from;
	struct segment *g = segments_at(&s->log.run, e->log_off);

	n = clip(s, g, &from, n > need ? n : need);
	segment_path(s->log_dir, g->start, r->path);
	r->from = from - g->start;
	r->n = n;
}

int32_t cold_look(struct mqstore *s, struct mqstore_queue *q, int64_t off, const struct mqstore_get_opt *opt, struct cold_range *r)
{
	int64_t hot = s->log.max - HOT, last = -1, n, window;
	const uint8_t *p = q && !q->topic->batch && hot > 0 ? cqueue_entries(q, off, &n) : NULL;
	struct mqstore_entry e;
	int32_t seen = 0;

	for (int64_t i = 0; p && i < n && i < LOOK_MAX && seen < opt->max_messages; i++, p += CQ_ENTRY) {
		cqueue_read(p, &e);
		if (e.log_off >= hot)
			break;
		if (cqueue_void(&e) || e.size < 1 || !segments_at(&s->log.run, e.log_off))
			continue;
		if (opt->filter && e.tags_code >= INT32_MIN && !opt->filter(opt->filter_arg, e.tags_code, NULL))
			continue;
		for (window = e.log_off / WARM_BYTES; window <= (e.log_off + e.size - 1) / WARM_BYTES; window++) {
			if (window == last || in_memory(s, window)) {
				last = window;
				continue;
			}
			if (seen == 0)
				to_fetch(s, window, &e, r);
			return seen;
		}
		seen++;
	}
	return opt->max_messages;
}

void cold_fetch(const struct cold_range *r)
{
	char *piece = mem_alloc(PIECE);
	int fd = sys.open(r->path, O_RDONLY, 0);

	for (int64_t at = 0; fd >= 0 && at < r->n; at += PIECE) {
		size_t n = r->n - at < PIECE ? (size_t)(r->n - at) : PIECE;

		if (sys.pread(fd, piece, n, r->from + at) <= 0)
			break;
	}
	if (fd >= 0)
		sys.close(fd);
	free(piece);
}
