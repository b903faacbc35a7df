/* cqueue.c: one consume queue: its end, its entries, its buffer.  What is done to files is in cqueue_file.c, what changes a queue
 * other than by its next entry in cqueue_fix.c. */
#include "bqueue.h"
#include "cqueue_ext.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "segment.h"

#include <errno.h>
#include <stdlib.h>

#define LOG_MODULE "store"
enum { TAIL_FILES = 3, BUF_MIN = 8 * CQ_ENTRY, BUF_MAX = 1024 * CQ_ENTRY, READ_ON = 1024 };

void cqueue_drop_buf(struct mqstore_queue *q)
{
	if (q->buf)
		q->all->buf_bytes -= q->buf_end - q->buf_from;
	free(q->buf);
	q->buf = NULL;
	q->buf_from = q->buf_end = 0;
}

void cqueue_free(struct mqstore_queue *q)
{
	cqueues_unmap(q);
	cqueue_drop_buf(q);
	cqueue_ext_free(q);
	bqueue_free(q);
	free(q);
}

void cqueue_reset(struct mqstore_queue *q)
{
	cqueues_unmap(q);
	cqueue_drop_buf(q);
	cqueue_ext_free(q);
	q->first = q->pos = q->written = q->flushed = q->log_end = q->min = 0;
	q->min_for = -1;
	q->made = q->named = q->lost = false;
	if (q->loaded)
		q->all->unloaded++;
	q->loaded = false;
}

void cqueue_mark_dirty(struct mqstore_queue *q)
{
	if (!q->all->write)
		return;
	q->dirty = true;
	TAILQ_INSERT_TAIL(&q->all->dirty, q, to_flush);
	q->all->dirty_n++;
	q->all->dirtied++;
}

/* ---- Looking --------------------------------------------------------------------------------------------------------- */

int cqueue_map(struct mqstore_queue *q, int64_t start)
{
	char path[SEGMENT_PATH];
	int rc;

	q->map.used = true;
	if (q->map.p && q->map.start == start)
		return 0;
	cqueues_unmap(q);
	cqueue_path(q, start, path);
	rc = segment_file_map(path, q->all->file_bytes, false, &q->map.p);
	if (rc == -ENOMEM) {
		cqueues_shed(q->all);
		rc = segment_file_map(path, q->all->file_bytes, false, &q->map.p);
	}
	if (rc < 0)
		return rc;
	q->map.start = start;
	/* Behind the end of the newest file there is a hole. */
	if (start + q->all->file_bytes > q->written)
		segment_expect(q->map.p, q->all->file_bytes, true);
	cqueues_mapped(q);
	return 0;
}

const uint8_t *cqueue_entries(struct mqstore_queue *q, int64_t off, int64_t *n)
{
	int64_t b = off * CQ_ENTRY, fb = q->all->file_bytes, start, end;
	int rc = cqueue_ready(q);

	*n = rc;
	if (rc < 0 || off < q->first / CQ_ENTRY || off >= q->pos / CQ_ENTRY)
		return NULL;
	if (q->buf && b >= q->buf_from) {
		*n = (q->pos - b) / CQ_ENTRY;
		return q->buf + (b - q->buf_from);
	}
	start = b / fb * fb;
	end = q->written < start + fb ? q->written : start + fb;
	rc = cqueue_map(q, start);
	if (rc < 0) {
		*n = rc;
		return NULL;
	}
	*n = (end - b) / CQ_ENTRY;
	return q->map.p + (b - start);
}

/* ---- Loading --------------------------------------------------------------------------------------------------------- */

/* Valid slots from the front of a file.  Most files are nearly empty, so the end is looked for from the front in growing steps:
 * what lies far behind it is a hole, and reading that would fill the memory with zeros.  After an unclean stop a zero may stand
 * anywhere, so each slot is looked at.
 * compat: the peer leaves the slots behind a cut as they are; such old ones show by pointing back. */
static int64_t count_valid(uint8_t *p, int64_t slots, bool each)
{
	int64_t lo = 0, hi = 1;

	segment_expect(p, slots * CQ_ENTRY, true);
	while (each && lo < slots && cqueue_valid(p + lo * CQ_ENTRY) &&
	       (lo == 0 || be64(p + lo * CQ_ENTRY) >= be64(p + (lo - 1) * CQ_ENTRY)))
		if (++lo == READ_ON)
			segment_expect(p, slots * CQ_ENTRY, false);
	if (each)
		return lo;
	while (hi < slots && cqueue_valid(p + (hi - 1) * CQ_ENTRY)) {
		lo = hi;
		hi *= 2;
	}
	hi = hi < slots ? hi : slots;
	while (lo < hi) {
		int64_t mid = (lo + hi) / 2;

		if (cqueue_valid(p + mid * CQ_ENTRY))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int remove_unusable(const char *path)
{
	int rc = sys.unlink(path);

	if (rc == -EISDIR || rc == -EPERM)
		rc = sys.rmdir(path);
	return rc == -ENOENT ? 0 : rc;
}

/* What is no file of the right size, or lies behind one that is missing, cannot be used: it goes, and the log is asked for it. */
static int drop_unusable(struct mqstore_queue *q, const int64_t *starts, size_t *n)
{
	char path[SEGMENT_PATH];
	struct stat st;
	size_t good = 0;
	int rc = 0;

	for (; good < *n; good++) {
		if (good > 0 && starts[good] != starts[good - 1] + q->all->file_bytes)
			break;
		rc = sys.stat(cqueue_path(q, starts[good], path), &st);
		if (rc < 0)
			return rc;
		if (!S_ISREG(st.st_mode) || st.st_size != q->all->file_bytes)
			break;
	}
	if (good == *n)
		return 0;
	q->lost = true;
	log_warn("files of a queue are missing or have a wrong size topic=%s queue=%d from=%020lld", q->topic->name, (int)q->id,
		 (long long)(good > 0 ? starts[good - 1] + q->all->file_bytes : starts[0]));
	for (size_t i = good; i < *n && rc == 0 && q->all->write; i++)
		rc = remove_unusable(cqueue_path(q, starts[i], path));
	*n = good;
	return rc;
}

/* Starts of the queue's files in order; *n of them, malloc'd. */
static int list_files(struct mqstore_queue *q, int64_t **starts, size_t *n)
{
	char dir[SEGMENT_PATH], path[SEGMENT_PATH], **names;
	struct stat st;
	size_t count;
	int rc = sys_list(cqueue_dir(q, dir), &names, &count);

	*n = 0;
	*starts = NULL;
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	q->made = true;
	*starts = mem_alloc((count + 1) * sizeof(**starts));
	for (size_t i = 0; i < count; i++) {
		int64_t start = segment_name(names[i]);

		if (start < 0 || start % q->all->file_bytes) {
			log_warn("foreign file left alone dir=%s file=%s", dir, names[i]);
			continue;
		}
		/* Made but not yet given its length when its maker died. */
		if (i + 1 == count && sys.stat(segment_path(dir, start, path), &st) == 0 && st.st_size == 0) {
			if (q->all->write)
				sys.unlink(path);
			continue;
		}
		(*starts)[(*n)++] = start;
	}
	free(names);
	return drop_unusable(q, *starts, n);
}

/* Where the entries end, going over files [i, n): to the first slot that is none. */
static int find_end(struct mqstore_queue *q, const int64_t *starts, size_t i, size_t n)
{
	int64_t fb = q->all->file_bytes, slots = fb / CQ_ENTRY, got;
	int rc;

	for (; i < n; i++) {
		rc = cqueue_map(q, starts[i]);
		if (rc < 0)
			return rc;
		got = count_valid(q->map.p, slots, q->all->abnormal);
		q->pos = starts[i] + got * CQ_ENTRY;
		if (got < slots || (i + 1 < n && starts[i + 1] != starts[i] + fb))
			break;
	}
	return 0;
}

static void note_end(struct mqstore_queue *q)
{
	struct mqstore_entry e;
	const uint8_t *p;
	int64_t n;

	q->log_end = 0;
	p = q->pos > q->first ? cqueue_entries(q, q->pos / CQ_ENTRY - 1, &n) : NULL;
	if (!p)
		return;
	cqueue_read(p, &e);
	q->log_end = cqueue_void(&e) ? e.log_off : cqueue_end(e.log_off, e.size);
}

static int load_files(struct mqstore_queue *q, const int64_t *starts, size_t n)
{
	char path[SEGMENT_PATH];
	size_t i = n - 1;
	int rc = 0;

	q->first = starts[0];
	q->pos = starts[0];
	if (q->all->abnormal)
		i = n > TAIL_FILES ? n - TAIL_FILES : 0;
	for (;; i--) {
		rc = find_end(q, starts, i, n);
		if (rc < 0 || q->pos > starts[i] || i == 0)
			break;
	}
	if (rc < 0)
		return rc;
	/* The newest file is made for an entry: if it has none, entries were lost. */
	q->lost |= q->pos <= starts[n - 1];
	for (i = n; q->all->write && i-- > 1 && starts[i] > q->pos;)
		sys.unlink(cqueue_path(q, starts[i], path));
	return 0;
}

/* The newest entries that are not those of their records go. */
static int cut_strangers(struct mqstore_queue *q)
{
	int rc = 0;

	while (rc == 0 && q->pos > q->first) {
		int64_t off = q->pos / CQ_ENTRY - 1, n;
		const uint8_t *p = cqueue_entries(q, off, &n);
		struct mqstore_entry e;

		if (!p)
			return (int)n;
		cqueue_read(p, &e);
		if (e.log_off <= q->all->verify_from || cqueue_void(&e) || q->all->matches(q->all->arg, q, off, &e))
			break;
		rc = cqueue_cut(q, e.log_off);
	}
	return rc;
}

int cqueue_load(struct mqstore_queue *q)
{
	struct cqueues *all = q->all;
	int64_t *starts, lost_at;
	size_t n;
	int rc;

	q->first = q->pos = q->written = q->flushed = q->log_end = 0;
	q->lost = false;
	rc = list_files(q, &starts, &n);
	if (rc == 0 && n)
		rc = load_files(q, starts, n);
	free(starts);
	if (rc < 0) {
		log_error("cannot load queue topic=%s queue=%d reason=\"%s\"", q->topic->name, (int)q->id, mq_strerror(rc));
		cqueues_unmap(q);
		return rc;
	}
	q->loaded = true;
	all->unloaded--;
	q->named = n > 0 && !all->abnormal;
	q->written = q->pos;
	/* What a process that was killed has written may still wait in memory for the disk. */
	q->flushed = all->abnormal ? q->first : q->pos;
	q->min = q->first / CQ_ENTRY;
	q->min_for = -1;
	note_end(q);
	lost_at = q->pos;
	if (q->log_end > all->log_end_at_open)
		rc = cqueue_cut(q, all->log_end_at_open);
	if (rc == 0 && all->matches && q->log_end > all->verify_from)
		rc = cut_strangers(q);
	if (q->flushed < q->pos && !q->dirty)
		cqueue_mark_dirty(q);
	if (q->lost) {
		log_warn("entries of a queue are lost topic=%s queue=%d from=%lld", q->topic->name, (int)q->id,
			 (long long)(lost_at / CQ_ENTRY));
		if (all->rebuild)
			rc = all->rebuild(all->arg, q);
	}
	return rc;
}

/* ---- Room ------------------------------------------------------------------------------------------------------------ */

static void resize(struct mqstore_queue *q, int64_t bytes)
{
	if (!q->buf)
		q->buf_from = q->buf_end = q->pos;
	q->buf = mem_realloc(q->buf, (size_t)bytes);
	q->all->buf_bytes += bytes - (q->buf_end - q->buf_from);
	q->buf_end = q->buf_from + bytes;
}

/* Forget all but the newest `keep` bytes, which readers will ask for next. */
static void shift(struct mqstore_queue *q, int64_t keep)
{
	int64_t used = q->pos - q->buf_from, cap = q->buf_end - q->buf_from;

	if (keep >= used)
		return;
	memmove(q->buf, q->buf + (used - keep), (size_t)keep);
	q->buf_from = q->pos - keep;
	q->buf_end = q->buf_from + cap;
}

/* Grow while there is little, then write and go on in the same place. */
int cqueue_room_slow(struct mqstore_queue *q, int64_t n)
{
	int64_t need = n * CQ_ENTRY, cap, grown;
	int rc = cqueue_ready(q);

	if (rc < 0)
		return rc;
	cap = q->buf ? q->buf_end - q->buf_from : 0;
	grown = cap ? cap * 2 : BUF_MIN;
	if (!q->all->write || (grown <= BUF_MAX && q->all->buf_bytes + grown - cap <= q->all->buf_max)) {
		resize(q, grown);
	} else if (q->buf) {
		rc = cqueue_spill(q);
		if (rc < 0)
			return rc;
		shift(q, cap / CQ_ENTRY / 2 * CQ_ENTRY);
	}
	if (!q->buf)
		resize(q, need > BUF_MIN ? need : BUF_MIN);
	else if (q->pos + need > q->buf_end)
		resize(q, q->pos - q->buf_from + need);
	return 0;
}

/* ---- Limits ---------------------------------------------------------------------------------------------------------- */

int64_t cqueue_find(struct mqstore_queue *q, int64_t lo, int64_t hi, int64_t log_off)
{
	while (lo < hi) {
		int64_t mid = (lo + hi) / 2, n;
		const uint8_t *p = cqueue_entries(q, mid, &n);
		struct mqstore_entry e = { -1, 0, 0 };

		if (p)
			cqueue_read(p, &e);
		else if (n < 0 && n != -ENOENT && n != MQ_EMISMATCH)
			return n;
		/* Fillers and what cannot be read stand before everything. */
		if (p && !(cqueue_void(&e) && e.log_off == 0) && e.log_off >= log_off)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

int64_t cqueue_min(struct mqstore_queue *q, int64_t log_min)
{
	int64_t first, max, min;

	if (cqueue_ready(q) < 0)
		return 0;
	max = q->pos / CQ_ENTRY;
	if (q->min_for == log_min && q->min <= max)
		return q->min;
	first = q->first / CQ_ENTRY;
	if (q->min < first)
		q->min = first;
	min = cqueue_find(q, q->min, max, log_min);
	if (min >= 0) {
		q->min = min;
		q->min_for = log_min;
	}
	return q->min;
}

int64_t cqueue_bytes(const struct mqstore_queue *q)
{
	int64_t fb = q->all->file_bytes;

	return q->written > q->first ? ((q->written - 1) / fb - q->first / fb + 1) * fb : 0;
}
