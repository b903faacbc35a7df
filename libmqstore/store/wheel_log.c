/* wheel_log.c: units in files.  What their slots are, wheel_slots.c knows.
 *
 * unit: i32 52 | i64 unit before it in the slot | i32 magic | i64 write time | i32 due - write time | i64 log offset | i32 size |
 * i32 hash of the topic | i64 0.  One that does not fit in its file, with 16 bytes behind it, goes to the next; 16 bytes say so:
 * i32 bytes left | i64 0 | i32 magic of a blank. */
#include "wheel_log.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/sys.h"
#include "../codec/layout.h"
#include <errno.h>
#include <fcntl.h>

enum { BLANK = 16, MAGIC = 12, ALL_MAGIC = WHEEL_NORMAL | WHEEL_ROLL | WHEEL_DELETE };

int wheel_log_open(struct wheel_log *l, const char *dir, int64_t size, bool write, struct mq_error *err)
{
	*l = (struct wheel_log){ .end = 0 };
	return segments_open(&l->run, dir, size, write, true, err);
}

void wheel_log_close(struct wheel_log *l)
{
	if (l->run.dir)
		segments_close(&l->run);
}

static bool take(const uint8_t *p, int64_t pos, struct wheel_unit *u)
{
	u->pos = pos;
	u->prev = (int64_t)be64(p + 4);
	u->magic = (int32_t)be32(p + MAGIC);
	u->write_ms = (int64_t)be64(p + 16);
	u->due_ms = u->write_ms;
	u->log_off = (int64_t)be64(p + 28);
	u->size = (int32_t)be32(p + 36);
	u->topic_hash = (int32_t)be32(p + 40);
	if (be32(p) != WHEEL_UNIT_BYTES || u->magic <= 0 || (u->magic & ~ALL_MAGIC) || u->prev < -1 || u->prev >= pos ||
	    u->log_off < 0 || u->log_off > INT64_MAX - INT32_MAX || u->size <= 0 || u->write_ms < 0 || u->write_ms > INT64_MAX / 2)
		return false;
	u->due_ms += (int32_t)be32(p + 24);
	return u->due_ms >= 0;
}

/* Bytes of the file at pos that a unit may lie in; NULL: none. */
static const uint8_t *bytes_at(struct wheel_log *l, int64_t pos, struct segment **g)
{
	const uint8_t *p;

	*g = pos >= 0 ? segments_at(&l->run, pos) : NULL;
	if (!*g || pos - (*g)->start > (*g)->size - WHEEL_UNIT_BYTES)
		return NULL;
	p = segments_bytes(&l->run, *g);
	return p ? p + (pos - (*g)->start) : NULL;
}

int wheel_log_read(struct wheel_log *l, int64_t pos, struct wheel_unit *u)
{
	struct segment *g;
	const uint8_t *p = pos < l->end ? bytes_at(l, pos, &g) : NULL;

	return p && (pos - g->start) % WHEEL_UNIT_BYTES == 0 && take(p, pos, u) ? 0 : MQ_ENOTFOUND;
}

int wheel_log_next(struct wheel_log *l, int64_t *pos, struct wheel_unit *u)
{
	struct segment *g = segments_at(&l->run, *pos), *next;
	const uint8_t *p;

	if (!g) {
		next = segments_behind(&l->run, *pos);
		if (!next)
			return 0;
		*pos = next->start;
	}
	for (;;) {
		p = bytes_at(l, *pos, &g);
		if (p && take(p, *pos, u))
			return 1;
		if (!g || (p && be32(p + MAGIC) != RECORD_MAGIC_BLANK))
			return 0;
		next = segments_behind(&l->run, g->start + g->size);
		if (!next)
			return 0;
		*pos = next->start;
	}
}

bool wheel_log_last(struct wheel_log *l, struct wheel_unit *u)
{
	struct segment *g = segments_at(&l->run, l->end - 1);
	int64_t n = g ? (l->end - g->start) / WHEEL_UNIT_BYTES : 0;

	while (g && n-- > 0)
		if (wheel_log_read(l, g->start + n * WHEEL_UNIT_BYTES, u) == 0)
			return true;
	if (!g || g->start <= segments_min(&l->run))
		return false;
	g = segments_at(&l->run, g->start - 1); /* l->end is the begin of a file */
	for (n = g ? g->size / WHEEL_UNIT_BYTES : 0; n-- > 0;)
		if (wheel_log_read(l, g->start + n * WHEEL_UNIT_BYTES, u) == 0)
			return true;
	return false;
}

/* Zeros from `end` on: units of another time would look like new ones. */
static int wipe(struct wheel_log *l, struct segment *g, int64_t end)
{
	char path[SEGMENT_PATH];
	int fd, rc;

	if (g->p)
		l->run.mapped--;
	segment_unmap(g);
	fd = sys.open(segment_path(l->run.dir, g->start, path), O_RDWR, 0);
	if (fd < 0)
		return fd;
	rc = sys.ftruncate(fd, end - g->start);
	if (rc == 0)
		rc = sys.ftruncate(fd, g->size);
	sys.close(fd);
	return rc;
}

int wheel_log_cut(struct wheel_log *l, int64_t end, bool write, struct mq_error *err)
{
	struct segment *g;
	int rc = 0;

	l->end = end;
	l->tail = NULL;
	if (!write)
		return 0;
	rc = segments_cut(&l->run, end);
	g = rc >= 0 ? segments_at(&l->run, end) : NULL;
	if (g) {
		rc = wipe(l, g, end);
		if (rc == 0 && !segments_bytes(&l->run, g))
			rc = -EIO;
		g->reserved = end - g->start;
	}
	if (rc < 0)
		return err_sys(err, rc, "cut '%s' at %lld", l->run.dir, (long long)end);
	l->tail = g;
	l->run.keep = end;
	return 0;
}

static int room(struct wheel_log *l, int64_t to, struct mq_error *err)
{
	struct segment *g = l->tail;
	int64_t rel = to - g->start;
	int rc = segment_reserve(g, l->run.dir, l->end - g->start, rel, rel - rel % l->run.step + l->run.step);

	return rc < 0 ? err_sys(err, rc, "reserve room in '%s/%020lld'", l->run.dir, (long long)g->start) : 0;
}

static int next_file(struct wheel_log *l, struct mq_error *err)
{
	int64_t start = l->tail ? l->tail->start + l->run.size : l->end;
	struct segment *old = l->tail, *g;
	int rc = old ? room(l, l->end + BLANK, err) : sys_mkdir_all(l->run.dir);

	if (rc < 0)
		return old ? rc : err_sys(err, rc, "make directory '%s'", l->run.dir);
	rc = segments_add(&l->run, start, &g);
	if (rc < 0)
		return err_sys(err, rc, "make '%s/%020lld'", l->run.dir, (long long)start);
	if (old) {
		uint8_t *p = old->p + (l->end - old->start);

		put_be32(p, (uint32_t)(start - l->end));
		put_be64(p + 4, 0);
		put_be32(p + MAGIC, RECORD_MAGIC_BLANK);
	}
	l->tail = g;
	l->end = start;
	l->run.keep = start;
	return 0;
}

int wheel_log_add(struct wheel_log *l, struct wheel_unit *u, struct mq_error *err)
{
	uint8_t *p;
	int rc = 0;

	if (!l->tail || l->end + WHEEL_UNIT_BYTES + BLANK > l->tail->start + l->tail->size)
		rc = next_file(l, err);
	if (rc == 0 && l->end + WHEEL_UNIT_BYTES + BLANK > l->tail->start + l->tail->reserved)
		rc = room(l, l->end + WHEEL_UNIT_BYTES + BLANK, err);
	if (rc < 0)
		return rc;
	u->pos = l->end;
	p = l->tail->p + (l->end - l->tail->start);
	put_be32(p, WHEEL_UNIT_BYTES);
	put_be64(p + 4, (uint64_t)u->prev);
	put_be32(p + MAGIC, (uint32_t)u->magic);
	put_be64(p + 16, (uint64_t)u->write_ms);
	put_be32(p + 24, (uint32_t)(u->due_ms - u->write_ms));
	put_be64(p + 28, (uint64_t)u->log_off);
	put_be32(p + 36, (uint32_t)u->size);
	put_be32(p + 40, (uint32_t)u->topic_hash);
	put_be64(p + 44, 0);
	l->end += WHEEL_UNIT_BYTES;
	return 0;
}
