/* wheel_slots.c: the slots of the wheel.  Knows where the slot of a moment lies; what a unit is, wheel_log.c knows.
 *
 * slot: i64 moment / step | i64 first unit | i64 last unit | i32 messages | i32 0.  The slot of a moment is moment / step modulo their
 * number, so one that names another moment is empty. */
#include "wheel_slots.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define LOG_MODULE "store"

enum { BYTES = WHEEL_SLOTS * WHEEL_SLOT_BYTES, PER_PAGE = WHEEL_PAGE / WHEEL_SLOT_BYTES, PART = 256 * 1024 };

static bool is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* Pages of the part at `at` that hold something. */
static void take(struct wheel_slots *s, const uint8_t *part, size_t at, size_t n)
{
	for (size_t i = 0; i + WHEEL_PAGE <= n; i += WHEEL_PAGE)
		if (!is_zero(part + i, WHEEL_PAGE)) {
			memcpy(s->p + at + i, part + i, WHEEL_PAGE);
			s->used[(at + i) / WHEEL_PAGE] = 1;
		}
}

static int load(struct wheel_slots *s, int fd)
{
	uint8_t *part = mem_alloc(PART);
	int rc = 0;

	for (off_t at = 0; at < BYTES; ) {
		off_t data = sys.seek_data(fd, at);
		ssize_t got;

		if (data == -ENXIO)
			break;
		if (data > at)
			at = data / WHEEL_PAGE * WHEEL_PAGE;
		got = sys.pread(fd, part, BYTES - at < PART ? (size_t)(BYTES - at) : PART, at);
		if (got < WHEEL_PAGE) {
			rc = got < 0 ? (int)got : -EIO;
			break;
		}
		take(s, part, (size_t)at, (size_t)got);
		at += got / WHEEL_PAGE * WHEEL_PAGE;
	}
	free(part);
	return rc;
}

int wheel_slots_open(struct wheel_slots *s, const char *path, struct mq_error *err)
{
	int fd = sys.open(path, O_RDONLY, 0), rc;
	struct stat st;

	*s = (struct wheel_slots){ .p = mem_alloc(BYTES) };
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_sys(err, fd, "open '%s'", path);
	rc = sys.fstat(fd, &st);
	if (rc == 0 && st.st_size == BYTES) {
		rc = load(s, fd);
		s->found = rc == 0;
	} else if (rc == 0)
		log_warn("the timer wheel has %lld bytes, not %d: it is made again from the timer log file=%s", (long long)st.st_size,
			 BYTES, path);
	sys.close(fd);
	return rc < 0 ? err_sys(err, rc, "read '%s'", path) : 0;
}

void wheel_slots_close(struct wheel_slots *s)
{
	free(s->p);
	s->p = NULL;
}

static size_t index_of(const struct wheel_slots *s, int64_t ms)
{
	return (size_t)(ms / s->step % WHEEL_SLOTS);
}

static void take_slot(const struct wheel_slots *s, const uint8_t *p, struct wheel_slot *out)
{
	out->ms = be64(p) > (uint64_t)(INT64_MAX / s->step) ? -1 : (int64_t)be64(p) * s->step;
	out->first = (int64_t)be64(p + 8);
	out->last = (int64_t)be64(p + 16);
	out->num = (int32_t)be32(p + 24);
}

bool wheel_slots_get(const struct wheel_slots *s, int64_t ms, struct wheel_slot *out)
{
	size_t i = index_of(s, ms);

	if (!s->used[i / PER_PAGE])
		return false;
	take_slot(s, s->p + i * WHEEL_SLOT_BYTES, out);
	return out->ms == ms / s->step * s->step && out->last >= 0;
}

static void put(struct wheel_slots *s, size_t i, const struct wheel_slot *slot)
{
	uint8_t *p = s->p + i * WHEEL_SLOT_BYTES;
	size_t page = i / PER_PAGE;

	put_be64(p, (uint64_t)(slot->ms / s->step));
	put_be64(p + 8, (uint64_t)slot->first);
	put_be64(p + 16, (uint64_t)slot->last);
	put_be32(p + 24, (uint32_t)slot->num);
	s->used[page] = 1;
	s->ndirty += !s->dirty[page];
	s->dirty[page] = 1;
}

void wheel_slots_add(struct wheel_slots *s, int64_t ms, int64_t pos, int32_t by)
{
	struct wheel_slot slot = { 0 };
	int64_t moment = ms / s->step * s->step;
	size_t i = index_of(s, ms);

	take_slot(s, s->p + i * WHEEL_SLOT_BYTES, &slot);
	if (slot.ms > moment)
		return;
	if (slot.ms < moment)
		slot = (struct wheel_slot){ .ms = moment, .first = pos, .last = -1 };
	if (slot.last >= pos)
		return;
	if (slot.last < 0)
		slot.first = pos;
	slot.last = pos;
	if (__builtin_add_overflow(slot.num, by, &slot.num)) /* damaged: no count of anything */
		slot.num = 0;
	put(s, i, &slot);
}

void wheel_slots_empty(struct wheel_slots *s, int64_t ms)
{
	struct wheel_slot slot;

	if (wheel_slots_get(s, ms, &slot))
		put(s, index_of(s, ms), &(struct wheel_slot){ .ms = 0, .first = -1, .last = -1 });
}

void wheel_slots_clear(struct wheel_slots *s)
{
	for (int page = 0; page < WHEEL_PAGES; page++)
		if (s->used[page]) {
			memset(s->p + (size_t)page * WHEEL_PAGE, 0, WHEEL_PAGE);
			s->ndirty += !s->dirty[page];
			s->dirty[page] = 1;
			s->used[page] = 0;
		}
}

int wheel_slots_each(const struct wheel_slots *s, int (*cb)(void *arg, const struct wheel_slot *slot), void *arg)
{
	struct wheel_slot slot;
	int rc;

	for (size_t i = 0; i < WHEEL_SLOTS; i++) {
		if (!s->used[i / PER_PAGE]) {
			i += PER_PAGE - 1; /* the loop adds one: pages are not begun in the middle */
			continue;
		}
		take_slot(s, s->p + i * WHEEL_SLOT_BYTES, &slot);
		if (slot.ms <= 0 || slot.last < 0)
			continue;
		rc = cb(arg, &slot);
		if (rc)
			return rc;
	}
	return 0;
}

int64_t wheel_slots_next(const struct wheel_slots *s, int64_t from, int64_t to)
{
	int64_t ms = from < 0 ? 0 : from / s->step * s->step, end = ms + (int64_t)WHEEL_SLOTS * s->step;
	struct wheel_slot slot;

	if (to < end)
		end = to;
	while (ms < end) {
		size_t i = index_of(s, ms);

		if (!s->used[i / PER_PAGE])
			ms += (int64_t)(PER_PAGE - i % PER_PAGE) * s->step;
		else if (wheel_slots_get(s, ms, &slot))
			return ms;
		else
			ms += s->step;
	}
	return -1;
}
