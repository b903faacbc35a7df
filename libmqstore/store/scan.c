/* scan.c: what in the log is a record, and where the next one is when something is none.
 *
 * What a power cut leaves: any page written since the last flush may hold old bytes, in practice zeros.  Sizes and the body's
 * checksum find most of that; topic and properties have no checksum, so zeros there count as damage too:
 *   - a topic holds no zero byte;
 *   - properties hold no run of more than 20 zeros (compat: the peer reserves 20 bytes there and may leave them as they are);
 *   - properties that end in zero are believed only if a record or a blank follows. */
#include "scan.h"
#include "../base/byte.h"
#include "../codec/layout.h"
#include "../codec/message.h"

enum { ZEROS_MAX = 20, BEFORE_MAGIC = 4 };

static bool has_zero_run(struct mq_str s, size_t run)
{
	const char *p = s.p, *end = s.p + s.n;

	while (p < end && (p = memchr(p, 0, (size_t)(end - p)))) {
		const char *q = p;

		while (q < end && *q == 0)
			q++;
		if ((size_t)(q - p) > run)
			return true;
		p = q;
	}
	return false;
}

int32_t scan_at(struct commitlog *log, int64_t off, bool check_crc, struct mq_message *m)
{
	int64_t n;
	const uint8_t *p = commitlog_view(log, off, &n);
	int32_t size = p ? mq_message_decode(p, (size_t)n, check_crc, m) : 0;

	if (size <= 0 || m->log_off != off || m->topic.n == 0 || memchr(m->topic.p, 0, m->topic.n) ||
	    has_zero_run(m->props, ZEROS_MAX))
		return 0;
	return size;
}

static bool is_blank(struct commitlog *log, int64_t off)
{
	int64_t n;
	const uint8_t *p = commitlog_view(log, off, &n);

	return p && n >= BLANK_BYTES && be32(p + 4) == RECORD_MAGIC_BLANK && be32(p) == n;
}

static int64_t segment_end(struct commitlog *log, int64_t off)
{
	struct segment *g = segments_at(&log->run, off);

	return g ? g->start + g->size : off;
}

/* A record at off that may stand behind what has been seen so far. */
static bool follows(struct scan *sc, int64_t off)
{
	struct mq_message m;

	return scan_at(sc->log, off, true, &m) > 0 && m.store_ms >= sc->last_ms;
}

/* First record in [from, end of its segment) whatever it takes, or -1. */
static int64_t search(struct scan *sc, struct segment *g, int64_t from)
{
	static const uint8_t magic[3] = { RECORD_MAGIC_V1 >> 24 & 0xff, RECORD_MAGIC_V1 >> 16 & 0xff, RECORD_MAGIC_V1 >> 8 & 0xff };
	int64_t at = from - g->start, end = g->start + g->size < sc->log->max ? g->size : sc->log->max - g->start;
	const uint8_t *bytes = segments_bytes(&sc->log->run, g), *hit;

	if (!bytes)
		return -1;
	while (at < end) {
		int64_t stop;

		/* Holes are passed over; data is looked at in pieces so that the next hole is not missed by much. */
		at = segment_data(g, sc->log->run.dir, at, end);
		stop = end - at > (16 << 20) ? at + (16 << 20) : end;
		for (; at < stop; at++) {
			hit = memmem(bytes + at, (size_t)(stop - at), magic, sizeof(magic));
			if (!hit) {
				at = stop - (stop < end ? (int64_t)sizeof(magic) - 1 : 0);
				break;
			}
			at = hit - bytes;
			if (g->start + at - BEFORE_MAGIC >= from && follows(sc, g->start + at - BEFORE_MAGIC))
				return g->start + at - BEFORE_MAGIC;
		}
	}
	return -1;
}

/* Where the log goes on behind `bad`, or -1. */
static int64_t resume(struct scan *sc, int64_t bad)
{
	struct commitlog *log = sc->log;
	int64_t n, next, at = bad + 1;
	const uint8_t *p = commitlog_view(log, bad, &n);
	struct segment *g;

	/* If its head is whole, the next one is where it says. */
	if (p && n >= RECORD_MIN && (int64_t)be64(p + RECORD_AT_LOG_OFF) == bad) {
		next = bad + (int32_t)be32(p);
		if (next > bad && next - bad < n && (follows(sc, next) || is_blank(log, next)))
			return next;
	}
	for (g = segments_at(&log->run, bad); g; g = segments_behind(&log->run, g->start + g->size)) {
		next = search(sc, g, at > g->start ? at : g->start);
		if (next >= 0)
			return next;
	}
	return -1;
}

static enum scan_kind take(struct scan *sc, int32_t size)
{
	int64_t n;

	sc->record = (struct mq_str){ (const char *)commitlog_view(sc->log, sc->off, &n), (size_t)size };
	sc->last_off = sc->off;
	sc->last_ms = sc->m.store_ms;
	sc->off += size;
	sc->end = sc->off;
	return SCAN_RECORD;
}

/* Its properties end in zero: was it written whole? */
static bool believed(struct scan *sc, int32_t size)
{
	struct mq_str props = sc->m.props;
	struct mq_message m;

	if (!sc->torn || props.n == 0 || props.p[props.n - 1] != 0)
		return true;
	return scan_at(sc->log, sc->off + size, true, &m) > 0 || is_blank(sc->log, sc->off + size);
}

static enum scan_kind next_kind(struct scan *sc)
{
	for (;;) {
		int64_t n, next;
		const uint8_t *p = commitlog_view(sc->log, sc->off, &n);
		struct segment *g;
		int32_t size;

		if (!p) {
			if (sc->off >= sc->log->max)
				return SCAN_END;
			g = segments_behind(&sc->log->run, sc->off + 1);
			if (!g)
				return SCAN_END;
			sc->from = sc->off;
			sc->to = sc->off = g->start;
			return SCAN_HOLE;
		}
		size = scan_at(sc->log, sc->off, sc->check_crc, &sc->m);
		if (size > 0 && believed(sc, size))
			return take(sc, size);
		if (n >= BLANK_BYTES && be32(p + 4) == RECORD_MAGIC_BLANK) {
			next = segment_end(sc->log, sc->off);
			sc->off = next;
			/* With no segment behind it the blank is no more than the room it stands for. */
			if (segments_at(&sc->log->run, next))
				sc->end = next;
			continue;
		}
		if (sc->quick && n >= BLANK_BYTES && be64(p) == 0)
			return SCAN_END;
		next = resume(sc, sc->off);
		if (next < 0)
			return SCAN_END;
		/* It may have been written meanwhile. */
		if (sc->live && (size = scan_at(sc->log, sc->off, sc->check_crc, &sc->m)) > 0 && believed(sc, size))
			continue;
		sc->from = sc->off;
		sc->to = sc->off = next;
		return SCAN_DAMAGED;
	}
}

enum scan_kind scan_next(struct scan *sc)
{
	enum scan_kind kind;
	int64_t at = sc->off;

	sc->log->run.map_rc = 0;
	kind = next_kind(sc);
	/* A file that cannot be mapped now is not a file without records. */
	if (kind != SCAN_RECORD && sc->log->run.map_rc < 0) {
		sc->off = at;
		return SCAN_FAILED;
	}
	return kind;
}

int64_t scan_rubbish(struct commitlog *log, int64_t from, int64_t to, int64_t *last)
{
	int64_t count = 0;

	*last = from;
	while (from < to) {
		struct segment *g = segments_at(&log->run, from);
		const uint8_t *p = g ? segments_bytes(&log->run, g) : NULL;
		int64_t at, end;

		if (!p) {
			g = segments_behind(&log->run, from + 1);
			if (!g)
				break;
			from = g->start;
			continue;
		}
		end = (to < g->start + g->size ? to - g->start : g->size);
		for (at = from - g->start; at < end;) {
			int64_t stop;

			at = segment_data(g, log->run.dir, at, end);
			stop = end - at > (1 << 20) ? at + (1 << 20) : end;
			for (; at < stop; at++)
				if (p[at]) {
					count++;
					*last = g->start + at + 1;
				}
		}
		from = g->start + end;
	}
	return count;
}
