/* cold.c: which parts of the log are in memory, as far as a reader has to know. */
#include "cold.h"
#include "../base/clock.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "../codec/layout.h"
#include "cqueue_ext.h"
#include "index.h"
#include "store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	HOT = 64 << 20,         /* the newest part of the log: just written, so it is in memory */
	BELIEVE_MS = 1000,      /* how long an answer of the kernel holds */
	AHEAD = 4,              /* windows that are fetched for one who reads on and on */
	LOOK_MAX = 1024,        /* entries looked at */
	PIECE = 256 * 1024,
	PAGE = 4096,
	AROUND = 64 * 1024,     /* of a file in which one thing is looked for: what is fetched with it */
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
	r->entries = false;
}

/* ---- Files of any kind ---------------------------------------------------------------------------------------------------- */

static bool pages_in_memory(const uint8_t *p, int64_t n)
{
	const uint8_t *first = p - (uintptr_t)p % PAGE;
	unsigned char in[64];

	for (int64_t left = p + n - first; left > 0; left -= (int64_t)sizeof(in) * PAGE, first += sizeof(in) * PAGE) {
		int64_t step = left < (int64_t)sizeof(in) * PAGE ? left : (int64_t)sizeof(in) * PAGE;

		if (sys.mincore((void *)(uintptr_t)first, (size_t)step, in) < 0)
			return true; /* not a map: it cannot be waited for */
		for (int64_t i = 0; i < (step + PAGE - 1) / PAGE; i++)
			if (!(in[i] & 1))
				return false;
	}
	return true;
}

/* From the page of `at` on, at least n bytes. */
static void range_at(struct cold_range *r, const char *path, int64_t size, int64_t at, int64_t n)
{
	int64_t end = at + n;

	r->from = at / PAGE * PAGE;
	end = end > r->from + AROUND ? end : r->from + AROUND;
	r->n = (end < size ? end : size) - r->from;
	r->entries = false;
	snprintf(r->path, sizeof(r->path), "%s", path);
}

bool cold_bytes(struct cold_guard *g, const char *path, const uint8_t *map, int64_t size, int64_t at, int64_t n)
{
	if (!g || at < 0 || n < 1 || at + n > size || pages_in_memory(map + at, n))
		return false;
	if (!cold_full(g))
		range_at(&g->range[g->n++], path, size, at, n);
	return true;
}

static bool in_map(const struct mqstore_queue *q, const uint8_t *entry)
{
	return q->map.p && entry >= q->map.p && entry < q->map.p + q->all->file_bytes;
}

bool cold_entry(struct mqstore *s, struct mqstore_queue *q, const uint8_t *entry)
{
	char path[SEGMENT_PATH];

	if (!s->guard || !in_map(q, entry) || pages_in_memory(entry, CQ_ENTRY))
		return false;
	return cold_bytes(s->guard, cqueue_path(q, q->map.start, path), q->map.p, q->all->file_bytes, entry - q->map.p, CQ_ENTRY);
}

bool cold_record(struct mqstore *s, int64_t log_off)
{
	char path[SEGMENT_PATH];
	struct segment *g;
	const uint8_t *p;
	int64_t at, size;

	if (!s->guard || log_off >= s->log.max - HOT)
		return false;
	g = segments_at(&s->log.run, log_off);
	p = g ? segments_bytes(&s->log.run, g) : NULL;
	if (!p)
		return false;
	at = log_off - g->start;
	segment_path(s->log_dir, g->start, path);
	if (cold_bytes(s->guard, path, p, g->size, at, g->size - at < RECORD_MIN ? g->size - at : RECORD_MIN))
		return true;
	size = (int32_t)be32(p + at);
	if (size < RECORD_MIN || size > g->size - at)
		return false;
	return cold_bytes(s->guard, path, p, g->size, at, size);
}

void cold_guard(struct mqstore *s, struct cold_guard *g)
{
	if (g)
		g->n = 0;
	s->guard = g;
	if (s->index)
		index_guard(s->index, g);
}

bool cold_is_far(const struct mqstore *s, int64_t log_off)
{
	return log_off < s->log.max - s->memory_bytes;
}

/* ---- A queue ---------------------------------------------------------------------------------------------------------------- */

/* Entries of a file that one who reads on will want: each page of them is asked for once in a while. */
static bool entries_in_memory(struct mqstore *s, struct mqstore_queue *q, const uint8_t *p, int64_t n, struct cold_range *r)
{
	char path[SEGMENT_PATH];

	for (const uint8_t *at = p - (uintptr_t)p % PAGE; in_map(q, p) && at < p + n * CQ_ENTRY; at += PAGE) {
		struct warm_page *w = &s->warm_page[(uintptr_t)at / PAGE % WARM_PAGES];

		if (w->p == at && w->until_ms > clock_mono_ms())
			continue;
		if (!pages_in_memory(at > q->map.p ? at : q->map.p, 1)) {
			range_at(r, cqueue_path(q, q->map.start, path), q->all->file_bytes, (at > q->map.p ? at : q->map.p) - q->map.p, 1);
			r->entries = true;
			return false;
		}
		*w = (struct warm_page){ at, clock_mono_ms() + BELIEVE_MS };
	}
	return true;
}

/* What the filter would be asked for; false: only the record knows. */
static bool tags_of(struct mqstore_queue *q, const struct mqstore_entry *e, int64_t *tags)
{
	*tags = cqueue_ext_is_address(e->tags_code) ? cqueue_ext_tags(q, e->tags_code) : e->tags_code;
	return !cqueue_ext_is_address(*tags);
}

int32_t cold_look(struct mqstore *s, struct mqstore_queue *q, int64_t off, const struct mqstore_get_opt *opt, struct cold_range *r)
{
	int64_t hot = s->log.max - HOT, last = -1, n, window, tags;
	const uint8_t *p = q && !q->topic->batch && hot > 0 ? cqueue_entries(q, off, &n) : NULL;
	struct mqstore_entry e;
	int32_t seen = 0;

	if (p && !entries_in_memory(s, q, p, n < opt->max_messages ? n : opt->max_messages, r))
		return 0;
	for (int64_t i = 0; p && i < n && i < LOOK_MAX && seen < opt->max_messages; i++, p += CQ_ENTRY) {
		cqueue_read(p, &e);
		if (e.log_off >= hot)
			break;
		if (cqueue_void(&e) || e.size < 1 || !segments_at(&s->log.run, e.log_off))
			continue;
		if (opt->filter && tags_of(q, &e, &tags) && !opt->filter(opt->filter_arg, tags, NULL))
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
