/* index_file.c: one file of the index: a hash table of chains that grow at the front.
 *
 *   header 40   i64 begin ms | i64 end ms | i64 begin log offset | i64 end log offset | i32 used slots | i32 count
 *   slots       i32 each: newest entry of the chain, 0 = none
 *   entries 20  i32 hash | i64 log offset | i32 seconds since begin | i32 previous entry of the chain, 0 = none
 *
 * An entry is written before its slot, the slot before the count, so that a killed process leaves a file in which only what
 * lies behind the count is wrong.  A power cut may leave any mixture of old and new pages: index_file_repair() trusts the
 * sequence of entries as far as it is possible, and nothing else, because slots and chains follow from it. */
#include "index_file.h"
#include "cold.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "../codec/layout.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

enum { AT_BEGIN_MS = 0, AT_END_MS = 8, AT_BEGIN_OFF = 16, AT_END_OFF = 24, AT_USED = 32, AT_COUNT = 36 };
enum { E_HASH = 0, E_OFF = 4, E_SECONDS = 12, E_PREV = 16 };

static inline uint8_t *slot_at(const struct index_file *f, uint32_t slot)
{
	return f->map + INDEX_HEADER + (size_t)slot * INDEX_SLOT;
}

static inline uint8_t *entry_at(const struct index_file *f, int32_t i)
{
	return f->map + INDEX_HEADER + (size_t)f->slots * INDEX_SLOT + (size_t)i * INDEX_ENTRY;
}

/* hash % slots by two multiplications (D. Lemire: fastmod); exact for 32-bit numbers. */
static inline uint32_t slot_of(const struct index_file *f, int32_t hash)
{
	return (uint32_t)(((__uint128_t)(f->slots_inverse * (uint32_t)hash) * (uint32_t)f->slots) >> 64);
}

/* Store time of entry i, rounded down to the second.  compat: what the first entry says counts from the file before.  The header
 * may be damaged, so it is kept in a range where sums do not overflow. */
static inline int64_t time_of(const struct index_file *f, int32_t i)
{
	int64_t begin = f->begin_ms < 0 ? 0 : f->begin_ms > INT64_MAX / 2 ? INT64_MAX / 2 : f->begin_ms;
	int32_t seconds = (int32_t)be32(entry_at(f, i) + E_SECONDS);
	return begin + (i == 1 || seconds < 0 ? 0 : (int64_t)seconds * 1000);
}

/* A link to another entry: 0 unless it names one that can be. */
static inline int32_t link_at(const uint8_t *p, int32_t count)
{
	int32_t v = (int32_t)be32(p);
	return v > 0 && v <= count ? v : 0;
}

int64_t index_file_bytes(int32_t slots, int32_t entries)
{
	return INDEX_HEADER + (int64_t)slots * INDEX_SLOT + (int64_t)entries * INDEX_ENTRY;
}

static void set_layout(struct index_file *f, int32_t slots, int32_t entries)
{
	f->slots = slots;
	f->entries = entries;
	f->slots_inverse = UINT64_MAX / (uint32_t)slots + 1;
}

void index_file_look(struct index_file *f)
{
	f->begin_ms = (int64_t)be64(f->map + AT_BEGIN_MS);
	f->end_ms = (int64_t)be64(f->map + AT_END_MS);
	f->begin_off = (int64_t)be64(f->map + AT_BEGIN_OFF);
	f->end_off = (int64_t)be64(f->map + AT_END_OFF);
	f->used_slots = (int32_t)be32(f->map + AT_USED);
	f->count = (int32_t)be32(f->map + AT_COUNT);
	if (f->count <= 0)
		f->count = 1;
	if (f->count > f->entries)
		f->count = f->entries;
}

static void write_header(struct index_file *f)
{
	put_be64(f->map + AT_BEGIN_MS, (uint64_t)f->begin_ms);
	put_be64(f->map + AT_END_MS, (uint64_t)f->end_ms);
	put_be64(f->map + AT_BEGIN_OFF, (uint64_t)f->begin_off);
	put_be64(f->map + AT_END_OFF, (uint64_t)f->end_off);
	put_be32(f->map + AT_USED, (uint32_t)f->used_slots);
	put_be32(f->map + AT_COUNT, (uint32_t)f->count);
	f->dirty = true;
}

/* ---- Opening --------------------------------------------------------------------------------------------------------- */

/* Reserve blocks for [off, off + n).  Where the file system cannot reserve, each part is written as it is read. */
static int reserve_bytes(int fd, int64_t off, int64_t n)
{
	int rc = sys.fallocate(fd, off, n);
	if (rc != -EOPNOTSUPP)
		return rc < 0 ? rc : 0;
	char part[16384];
	for (int64_t end = off + n; off < end;) {
		size_t want = end - off < (int64_t)sizeof(part) ? (size_t)(end - off) : sizeof(part);
		ssize_t got = sys.pread(fd, part, want, off);
		if (got <= 0)
			return got < 0 ? (int)got : -EIO;
		rc = sys_write_all(fd, part, (size_t)got, off);
		if (rc < 0)
			return rc;
		off += got;
	}
	return 0;
}

int index_file_reserve(struct index_file *f, int32_t upto)
{
	if (upto > f->entries)
		upto = f->entries;
	if (upto <= f->reserved)
		return 0;
	int64_t first = index_file_bytes(f->slots, f->reserved);
	int rc = reserve_bytes(f->fd, first, index_file_bytes(f->slots, upto) - first);
	if (rc == 0)
		f->reserved = upto;
	return rc;
}

/* Header and slots get their blocks when they are first written: a store with few messages stays small. */
enum { GROUP_SHIFT = 17, GROUP_BYTES = 1 << GROUP_SHIFT };

static int make_ready(struct index_file *f, size_t group)
{
	int64_t off = (int64_t)group << GROUP_SHIFT, left = (int64_t)f->bytes - off;
	int rc = reserve_bytes(f->fd, off, left < GROUP_BYTES ? left : GROUP_BYTES);
	if (rc == 0)
		f->ready[group / 64] |= 1ull << group % 64;
	return rc;
}

static inline int ready(struct index_file *f, const uint8_t *p)
{
	size_t group = (size_t)(p - f->map) >> GROUP_SHIFT;
	return __builtin_expect(f->ready[group / 64] >> group % 64 & 1, 1) ? 0 : make_ready(f, group);
}

static struct index_file *new_file(const char *path, int64_t name, int fd, bool writable)
{
	struct index_file *f = mem_alloc(sizeof(*f));
	f->path = mem_strdup(path);
	f->name = name;
	f->fd = fd;
	f->writable = writable;
	f->count = 1;
	return f;
}

static int map_file(struct index_file *f, size_t bytes)
{
	void *p;
	int rc = sys.mmap(f->fd, bytes, f->writable, &p);
	if (rc < 0)
		return rc;
	f->map = p;
	f->bytes = bytes;
	if (f->writable)
		f->ready = mem_alloc(((bytes >> GROUP_SHIFT) / 64 + 1) * sizeof(*f->ready));
	return 0;
}

void index_file_close(struct index_file *f)
{
	if (f == NULL)
		return;
	if (f->map)
		sys.munmap(f->map, f->bytes);
	sys.close(f->fd);
	free(f->ready);
	free(f->path);
	free(f);
}

/* The name is final from the start, because the peer takes every name in the directory for an index file; a crash in between
 * leaves a file without length, which the next open removes. */
int index_file_create(struct index_file **out, const char *path, int64_t name, int32_t slots, int32_t entries)
{
	int64_t bytes = index_file_bytes(slots, entries);
	int fd = sys.open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return fd;
	struct index_file *f = new_file(path, name, fd, true);
	set_layout(f, slots, entries);
	int rc = sys.ftruncate(fd, bytes);
	if (rc == 0)
		rc = map_file(f, (size_t)bytes);
	if (rc == 0)
		rc = ready(f, f->map);
	if (rc < 0) {
		sys.unlink(path);
		index_file_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

/* Does a file that is not empty look as if it had this layout?  Its first entry is the one the header speaks of, and its last
 * is the newest of its chain. */
static bool layout_fits(const struct index_file *file, int32_t slots, int32_t entries)
{
	struct index_file f = *file;
	set_layout(&f, slots, entries);
	int32_t count = (int32_t)be32(f.map + AT_COUNT);
	if (count <= 1)
		return true;
	if (count > entries)
		return false;
	const uint8_t *first = entry_at(&f, 1), *last = entry_at(&f, count - 1);
	int32_t hash = (int32_t)be32(last + E_HASH);
	/* A writer that was killed, or is at work, may have counted the last entry but not noted its offset, and may have set
	 * its slot to the entry that it was about to count. */
	if (be64(first + E_OFF) != be64(f.map + AT_BEGIN_OFF) || be32(first + E_PREV) != 0 || hash <= 0 ||
	    (int64_t)be64(last + E_OFF) < (int64_t)be64(f.map + AT_END_OFF))
		return false;
	int32_t newest = (int32_t)be32(slot_at(&f, slot_of(&f, hash)));
	return newest == count - 1 || newest == count;
}

/* slots and entries so that the size and the contents agree. */
static int find_layout(struct index_file *f)
{
	int64_t rest = (int64_t)f->bytes - INDEX_HEADER;
	if (rest % 4 || rest < INDEX_SLOT + 2 * INDEX_ENTRY || (int32_t)be32(f->map + AT_COUNT) <= 1)
		return MQ_EMISMATCH;
	for (int64_t slots = rest / 4 % 5 ? rest / 4 % 5 : 5; rest - slots * 4 >= 2 * INDEX_ENTRY; slots += 5) {
		int64_t entries = (rest - slots * 4) / INDEX_ENTRY;
		if (slots > INT32_MAX || entries > INT32_MAX)
			continue;
		if (layout_fits(f, (int32_t)slots, (int32_t)entries)) {
			set_layout(f, (int32_t)slots, (int32_t)entries);
			return 0;
		}
	}
	return MQ_EMISMATCH;
}

int index_file_open(struct index_file **out, const char *path, int64_t name, int32_t slots, int32_t entries, bool write,
		    bool adopt)
{
	struct stat st;
	int fd = sys.open(path, write ? O_RDWR : O_RDONLY, 0);
	if (fd < 0)
		return fd;
	struct index_file *f = new_file(path, name, fd, write);
	int rc = sys.fstat(fd, &st);
	if (rc == 0 && st.st_size == 0)
		rc = MQ_ENOTFOUND;
	if (rc == 0 && st.st_size < INDEX_HEADER)
		rc = MQ_EMISMATCH;
	if (rc == 0)
		rc = map_file(f, (size_t)st.st_size);
	if (rc == 0) {
		set_layout(f, slots, entries);
		bool sized = index_file_bytes(slots, entries) == st.st_size;
		f->suspect = sized && !layout_fits(f, slots, entries);
		if (!sized || f->suspect) {
			/* The same size may come from another layout; if none fits better it is damage. */
			bool other = (adopt || sized) && find_layout(f) == 0;
			if (adopt && other)
				f->suspect = false;
			else if (other || !sized)
				rc = MQ_EMISMATCH;
		}
	}
	if (rc < 0) {
		index_file_close(f);
		return rc;
	}
	index_file_look(f);
	*out = f;
	return 0;
}

/* ---- Writing --------------------------------------------------------------------------------------------------------- */

void index_file_follow(struct index_file *f, const struct index_file *old)
{
	if (old->end_off > 0)
		f->begin_off = f->end_off = old->end_off;
	if (old->end_ms > 0)
		f->begin_ms = f->end_ms = old->end_ms;
	write_header(f);
}

/* compat: for the first entry of a file that follows another the peer counts from the old file's end, and sets begin only
 * then.  Copied for the sake of equal bytes; index_file_find() knows. */
static inline int32_t seconds_since(int64_t begin_ms, int64_t store_ms)
{
	if (begin_ms <= 0 || store_ms < begin_ms)
		return 0;
	int64_t s = (store_ms - begin_ms) / 1000;
	return s > INT32_MAX ? INT32_MAX : (int32_t)s;
}

static inline void put_one(struct index_file *f, uint8_t *slot, const struct index_entry *e)
{
	uint8_t *p = entry_at(f, f->count);
	int32_t prev = link_at(slot, f->count);
	put_be32(p + E_HASH, (uint32_t)e->hash);
	put_be64(p + E_OFF, (uint64_t)e->log_off);
	put_be32(p + E_SECONDS, (uint32_t)seconds_since(f->begin_ms, e->store_ms));
	put_be32(p + E_PREV, (uint32_t)prev);
	__atomic_signal_fence(__ATOMIC_RELEASE);
	put_be32(slot, (uint32_t)f->count);
	__atomic_signal_fence(__ATOMIC_RELEASE);
	if (f->count <= 1) {
		f->begin_off = e->log_off;
		f->begin_ms = e->store_ms;
		put_be64(f->map + AT_BEGIN_OFF, (uint64_t)f->begin_off);
		put_be64(f->map + AT_BEGIN_MS, (uint64_t)f->begin_ms);
	}
	if (prev == 0)
		put_be32(f->map + AT_USED, (uint32_t)++f->used_slots);
	f->end_off = e->log_off;
	f->end_ms = e->store_ms;
	put_be32(f->map + AT_COUNT, (uint32_t)++f->count);
	put_be64(f->map + AT_END_OFF, (uint64_t)f->end_off);
	put_be64(f->map + AT_END_MS, (uint64_t)f->end_ms);
}

size_t index_file_put(struct index_file *f, const struct index_entry *e, size_t n)
{
	enum { AHEAD = 16 };
	int64_t room = (int64_t)f->reserved - f->count;
	f->rc = ready(f, f->map);
	if (room <= 0 || f->rc < 0)
		return 0;
	if (n > (size_t)room)
		n = (size_t)room;
	/* Slots lie anywhere in 20 MB: ask for them early enough, and the memory answers many at once. */
	for (size_t i = 0; i < n && i < AHEAD; i++)
		__builtin_prefetch(slot_at(f, slot_of(f, e[i].hash)), 1);
	for (size_t i = 0; i < n; i++) {
		if (i + AHEAD < n)
			__builtin_prefetch(slot_at(f, slot_of(f, e[i + AHEAD].hash)), 1);
		uint8_t *slot = slot_at(f, slot_of(f, e[i].hash));
		f->rc = ready(f, slot);
		if (__builtin_expect(f->rc < 0, 0)) {
			n = i;
			break;
		}
		put_one(f, slot, &e[i]);
	}
	f->dirty |= n > 0;
	return n;
}

/* End values of the header when the last entry is not the one that set them: the time is known to the second. */
static void end_at_last_entry(struct index_file *f)
{
	if (index_file_empty(f)) {
		f->end_off = f->begin_off;
		f->end_ms = f->begin_ms;
		return;
	}
	int64_t off = (int64_t)be64(entry_at(f, f->count - 1) + E_OFF);
	if (off == f->end_off)
		return;
	f->end_off = off;
	f->end_ms = time_of(f, f->count - 1);
}

void index_file_cut(struct index_file *f, int64_t log_off)
{
	int32_t was = f->count;
	while (!index_file_empty(f)) {
		int32_t i = f->count - 1;
		uint8_t *p = entry_at(f, i), *slot = slot_at(f, slot_of(f, (int32_t)be32(p + E_HASH)));
		if ((int64_t)be64(p + E_OFF) < log_off)
			break;
		if ((int32_t)be32(slot) == i) {
			int32_t prev = link_at(p + E_PREV, i - 1);
			put_be32(slot, (uint32_t)prev);
			f->used_slots -= prev == 0;
		}
		memset(p, 0, INDEX_ENTRY);
		f->count = i;
	}
	if (f->count != was) {
		end_at_last_entry(f);
		write_header(f);
	}
}

/* ---- Mending --------------------------------------------------------------------------------------------------------- */

/* A sector that did not reach the disk is zeros, and entries cross the borders of sectors: if the first part of an entry is
 * missing its hash is 0; if the last part is, the next entry's hash is 0, and index.c takes back the last record before a cut.
 * (A key whose hash is 0 in truth is cut too, and read again from the log.) */
static bool possible(const uint8_t *p, int64_t last_off)
{
	return (int32_t)be32(p + E_HASH) > 0 && (int64_t)be64(p + E_OFF) >= last_off && (int32_t)be32(p + E_SECONDS) >= 0;
}

/* Write only what differs: a file that is whole stays clean, page by page. */
static void set_be32(struct index_file *f, uint8_t *p, int32_t v)
{
	if ((int32_t)be32(p) != v) {
		put_be32(p, (uint32_t)v);
		f->dirty = true;
	}
}

int index_file_repair(struct index_file *f)
{
	int rc = index_file_reserve(f, f->count);
	if (rc == 0)
		rc = ready(f, f->map);
	if (rc < 0)
		return rc;
	int32_t *newest = mem_alloc((size_t)f->slots * sizeof(*newest)), used = 0, i, count = f->count;
	int64_t last_off = 0;
	for (i = 1; i < count; i++) {
		uint8_t *p = entry_at(f, i);
		if (!possible(p, last_off))
			break;
		last_off = (int64_t)be64(p + E_OFF);
		uint32_t s = slot_of(f, (int32_t)be32(p + E_HASH));
		set_be32(f, p + E_PREV, newest[s]);
		used += newest[s] == 0;
		newest[s] = i;
	}
	for (uint32_t s = 0; s < (uint32_t)f->slots && rc == 0; s++)
		if ((int32_t)be32(slot_at(f, s)) != newest[s]) {
			rc = ready(f, slot_at(f, s));
			if (rc == 0)
				set_be32(f, slot_at(f, s), newest[s]);
		}
	free(newest);
	if (rc < 0)
		return rc;
	if (i < count)
		memset(entry_at(f, i), 0, (size_t)(count - i) * INDEX_ENTRY);
	f->count = i;
	f->used_slots = used;
	if (!index_file_empty(f))
		f->begin_off = (int64_t)be64(entry_at(f, 1) + E_OFF);
	end_at_last_entry(f);
	if ((int32_t)be32(f->map + AT_COUNT) != f->count || (int32_t)be32(f->map + AT_USED) != used ||
	    (int64_t)be64(f->map + AT_END_OFF) != f->end_off || (int64_t)be64(f->map + AT_BEGIN_OFF) != f->begin_off)
		write_header(f);
	return 0;
}

/* ---- Finding --------------------------------------------------------------------------------------------------------- */

/* The page that was looked at last is not asked for again: neighbours in a chain often lie in one. */
static bool is_cold(const struct index_file *f, const uint8_t *p, int64_t n, struct cold_guard *guard, int64_t *page)
{
	enum { PAGE = 4096 };
	int64_t at = p - f->map, first = at / PAGE, last = (at + n - 1) / PAGE;

	if (!guard || (first == *page && last == *page))
		return false;
	*page = last;
	return cold_bytes(guard, f->path, f->map, (int64_t)f->bytes, at, n);
}

int index_file_find(struct index_file *f, int32_t hash, int64_t begin_ms, int64_t end_ms, int64_t *steps, struct cold_guard *guard,
		    int (*cb)(void *arg, int64_t log_off), void *arg)
{
	enum { SECOND = 999 }; /* the part of a second that an entry does not tell */
	const uint8_t *slot = slot_at(f, slot_of(f, hash));
	int64_t page = -1;
	int32_t i;

	if (is_cold(f, slot, INDEX_SLOT, guard, &page))
		return 0;
	i = link_at(slot, f->count - 1);
	while (i > 0 && (*steps)-- > 0) {
		const uint8_t *p = entry_at(f, i);

		if (is_cold(f, p, INDEX_ENTRY, guard, &page))
			break;
		int64_t at = time_of(f, i);
		if (at + SECOND < begin_ms || (int32_t)be32(p + E_SECONDS) < 0)
			break;
		if ((int32_t)be32(p + E_HASH) == hash && at <= end_ms) {
			int rc = cb(arg, (int64_t)be64(p + E_OFF));
			if (rc)
				return rc;
		}
		/* Chains lead to lower numbers only; anything else is damage and would be a circle. */
		i = link_at(p + E_PREV, i - 1);
	}
	return 0;
}
