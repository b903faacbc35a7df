/* cqueue.c: one consume queue: its files, its end, its entries.  Feeding is derive.c's, cutting and repairing cqueue_fix.c's. */
#include "cqueue.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "cqueues.h"
#include "segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "store"
enum { STEP_MIN = 4096, STEP_MAX = 64 * 1024, TAIL_FILES = 3, MORE_MIN = 32 };

char *cqueue_dir(const struct mqstore_queue *q, char *out)
{
	snprintf(out, SEGMENT_PATH, "%s/%s/%d", q->all->dir, q->topic->name, (int)q->id);
	return out;
}

static char *file_path(const struct mqstore_queue *q, int64_t start, char *out)
{
	char dir[SEGMENT_PATH];

	return segment_path(cqueue_dir(q, dir), start, out);
}

void cqueue_unmap(struct mqstore_queue *q)
{
	if (q->tail.p)
		cqueues_unmap(q->all, &q->tail);
	if (q->old.p)
		cqueues_unmap(q->all, &q->old);
	q->room = 0;
}

void cqueue_free(struct mqstore_queue *q)
{
	cqueue_unmap(q);
	free(q->more);
	free(q);
}

void cqueue_reset(struct mqstore_queue *q)
{
	cqueue_unmap(q);
	free(q->more);
	q->more = NULL;
	q->more_cap = 0;
	q->first = q->pos = q->reserved = q->flushed = q->log_end = q->min = 0;
	q->min_for = -1;
	q->made = q->named = q->lost = false;
	if (q->loaded)
		q->all->unloaded++;
	q->loaded = false;
}

void cqueue_mark_dirty(struct mqstore_queue *q)
{
	q->dirty = true;
	TAILQ_INSERT_TAIL(&q->all->dirty, q, to_flush);
	q->all->dirty_n++;
	q->all->dirtied++;
}

/* ---- Maps ------------------------------------------------------------------------------------------------------------ */

static int map_file(struct mqstore_queue *q, struct cqmap *m, int64_t start)
{
	char path[SEGMENT_PATH];
	int rc;

	if (m->p && m->start == start)
		return 0;
	if (m->p)
		cqueues_unmap(q->all, m);
	file_path(q, start, path);
	rc = segment_file_map(path, q->all->file_bytes, q->all->write, &m->p);
	if (rc == -ENOMEM) {
		cqueues_shed(q->all);
		rc = segment_file_map(path, q->all->file_bytes, q->all->write, &m->p);
	}
	if (rc < 0)
		return rc;
	m->start = start;
	cqueues_mapped(q->all, m);
	return 0;
}

/* End of what is in files. */
static int64_t files_end(const struct mqstore_queue *q)
{
	return q->more ? q->more_from : q->pos;
}

/* The map that shows the file at `start`; it stays good until another file of this or any queue is mapped. */
static struct cqmap *map_for(struct mqstore_queue *q, int64_t start, int *rc)
{
	int64_t fb = q->all->file_bytes, end = files_end(q);
	struct cqmap *m = &q->old;

	*rc = 0;
	if (q->tail.p && q->tail.start == start)
		m = &q->tail;
	else if (!q->tail.p && end > 0 && start == (end - CQ_ENTRY) / fb * fb)
		m = &q->tail;
	*rc = map_file(q, m, start);
	m->used = true;
	return *rc < 0 ? NULL : m;
}

const uint8_t *cqueue_entries(struct mqstore_queue *q, int64_t off, int64_t *n)
{
	int64_t b = off * CQ_ENTRY, fb = q->all->file_bytes, end, start;
	struct cqmap *m;
	int rc;

	*n = 0;
	rc = cqueue_ready(q);
	if (rc < 0) {
		*n = rc;
		return NULL;
	}
	if (off < q->first / CQ_ENTRY || off >= q->pos / CQ_ENTRY)
		return NULL;
	end = files_end(q);
	if (b >= end) {
		*n = (q->pos - b) / CQ_ENTRY;
		return q->more + (b - q->more_from);
	}
	start = b / fb * fb;
	m = map_for(q, start, &rc);
	if (!m) {
		*n = rc;
		return NULL;
	}
	*n = ((end < start + fb ? end : start + fb) - b) / CQ_ENTRY;
	return m->p + (b - start);
}

/* ---- Loading --------------------------------------------------------------------------------------------------------- */

/* Valid slots from the front of a file.  After an unclean stop a zero may stand anywhere, so each is looked at.
 * compat: the peer leaves the slots behind a cut as they are; such old ones show by pointing back. */
static int64_t count_valid(const uint8_t *p, int64_t slots, bool each)
{
	int64_t lo = 0, hi = slots;

	if (each) {
		while (lo < slots && cqueue_valid(p + lo * CQ_ENTRY) &&
		       (lo == 0 || be64(p + lo * CQ_ENTRY) >= be64(p + (lo - 1) * CQ_ENTRY)))
			lo++;
		return lo;
	}
	while (lo < hi) {
		int64_t mid = (lo + hi) / 2;

		if (cqueue_valid(p + mid * CQ_ENTRY))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
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
	return 0;
}

/* Where the entries end, going over files [i, n): to the first slot that is none. */
static int find_end(struct mqstore_queue *q, const int64_t *starts, size_t i, size_t n)
{
	int64_t fb = q->all->file_bytes, slots = fb / CQ_ENTRY, got;
	int rc;

	for (; i < n; i++) {
		rc = map_file(q, &q->tail, starts[i]);
		if (rc < 0)
			return rc;
		got = count_valid(q->tail.p, slots, q->all->abnormal);
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
	q->log_end = cqueue_void(&e) ? e.log_off : e.log_off + e.size;
}

static int load_files(struct mqstore_queue *q, const int64_t *starts, size_t n)
{
	int64_t fb = q->all->file_bytes;
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
	q->lost = q->pos <= starts[n - 1];
	q->all->bytes += (int64_t)n * fb;
	for (i = n; q->all->write && i-- > 1 && starts[i] > q->pos;) {
		sys.unlink(file_path(q, starts[i], path));
		q->all->bytes -= fb;
	}
	return 0;
}

int cqueue_load(struct mqstore_queue *q)
{
	struct cqueues *all = q->all;
	int64_t *starts, lost_at;
	size_t n;
	int rc;

	q->first = q->pos = q->room = q->reserved = q->log_end = 0;
	rc = list_files(q, &starts, &n);
	if (rc == 0 && n)
		rc = load_files(q, starts, n);
	free(starts);
	if (rc < 0) {
		log_error("cannot load queue topic=%s queue=%d reason=\"%s\"", q->topic->name, (int)q->id, mq_strerror(rc));
		cqueue_unmap(q);
		return rc;
	}
	q->loaded = true;
	all->unloaded--;
	q->named = n > 0 && !all->abnormal;
	note_end(q);
	lost_at = q->pos;
	if (q->log_end > all->log_end_at_open)
		cqueue_cut(q, all->log_end_at_open);
	q->min = q->first / CQ_ENTRY;
	q->min_for = -1;
	q->reserved = q->pos;
	/* What a process that was killed has written may still wait in memory for the disk. */
	q->flushed = all->abnormal ? q->first : q->pos;
	if (all->write && q->flushed < q->pos && !q->dirty)
		cqueue_mark_dirty(q);
	if (q->lost) {
		log_warn("entries of a queue are lost topic=%s queue=%d from=%lld", q->topic->name, (int)q->id,
			 (long long)(lost_at / CQ_ENTRY));
		if (all->rebuild)
			rc = all->rebuild(all->rebuild_arg, q);
	}
	return rc;
}

/* ---- Room ------------------------------------------------------------------------------------------------------------ */

static int make_dirs(struct mqstore_queue *q)
{
	char dir[SEGMENT_PATH];
	int rc;

	if (q->made)
		return 0;
	snprintf(dir, sizeof(dir), "%s/%s", q->all->dir, q->topic->name);
	rc = sys.mkdir(dir, 0755);
	if (rc == 0 || rc == -EEXIST)
		rc = sys.mkdir(cqueue_dir(q, dir), 0755);
	if (rc < 0 && rc != -EEXIST)
		return rc == -ENOSPC || rc == -EDQUOT ? MQ_EFULL : rc;
	q->made = true;
	return 0;
}

/* Blocks up to `to` in the file at `start`, more if there is room: as much again as the queue has, at most STEP_MAX. */
static int64_t wish(const struct mqstore_queue *q, int64_t start, int64_t to)
{
	int64_t step = q->pos - start, end = start + q->all->file_bytes;

	step = step < STEP_MIN ? STEP_MIN : step > STEP_MAX ? STEP_MAX : step;
	to = start + (to - start + step - 1) / step * step;
	to = start + (to - start + STEP_MIN - 1) / STEP_MIN * STEP_MIN;
	return to < end ? to : end;
}

static int make_file(struct mqstore_queue *q, int64_t start, int64_t to, struct cqmap *m)
{
	int64_t fb = q->all->file_bytes;
	char path[SEGMENT_PATH];
	struct stat st;
	bool there;
	int rc = make_dirs(q);

	if (rc < 0)
		return rc;
	file_path(q, start, path);
	there = sys.stat(path, &st) == 0 && st.st_size > 0;
	to = wish(q, start, to);
	rc = segment_file_make(path, fb, to - start, m ? &m->p : NULL);
	if (rc == -ENOMEM) {
		cqueues_shed(q->all);
		rc = segment_file_make(path, fb, to - start, m ? &m->p : NULL);
	}
	if (rc < 0)
		return rc;
	if (!there)
		q->all->bytes += fb;
	q->named = false;
	q->reserved = to;
	if (m) {
		m->start = start;
		cqueues_mapped(q->all, m);
	}
	return 0;
}

static int reserve(struct mqstore_queue *q, int64_t start, int64_t to)
{
	int64_t from = q->reserved > q->pos ? q->reserved : q->pos, want = wish(q, start, to);
	char path[SEGMENT_PATH];
	int rc;

	if (q->reserved >= to)
		return 0;
	file_path(q, start, path);
	rc = segment_file_reserve(path, from - start, want - start);
	if (rc == MQ_EFULL && want > to) {
		want = to;
		rc = segment_file_reserve(path, from - start, want - start);
	}
	if (rc == 0)
		q->reserved = want;
	return rc;
}

int cqueue_room_slow(struct mqstore_queue *q, int64_t n)
{
	int64_t fb = q->all->file_bytes, end, start, to;
	int rc = cqueue_ready(q);

	if (rc < 0)
		return rc;
	start = q->pos / fb * fb;
	end = q->pos + n * CQ_ENTRY;
	to = end < start + fb ? end : start + fb;
	if (q->tail.p && q->tail.start != start) {
		cqueues_unmap(q->all, &q->tail);
		q->room = 0;
	}
	/* The file may be there already: made for an append that was then mostly in the file before it. */
	if (!q->tail.p && q->old.p && q->old.start == start)
		cqueues_move(q->all, &q->old, &q->tail);
	else if (!q->tail.p && q->pos == start)
		rc = make_file(q, start, to, &q->tail);
	else
		rc = map_file(q, &q->tail, start);
	if (rc == 0)
		rc = reserve(q, start, to);
	if (rc < 0)
		return rc;
	q->tail.used = true;
	q->room = q->reserved < start + fb ? q->reserved : start + fb;
	/* The rest of what is asked for lies in files to come; the first of them is mapped, so that going on there cannot fail. */
	for (start += fb; start < end && rc == 0; start += fb) {
		bool next = q->tail.start + fb == start;

		if (next && q->old.p && q->old.start != start)
			cqueues_unmap(q->all, &q->old);
		to = end < start + fb ? end : start + fb;
		rc = make_file(q, start, to, next && !q->old.p ? &q->old : NULL);
	}
	return rc;
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

int cqueue_sync(const char *dir, int64_t fb, int64_t from, int64_t to, bool name)
{
	char path[SEGMENT_PATH], *slash;
	int rc = 0;

	for (int64_t start = from / fb * fb; start < to && rc == 0; start += fb)
		rc = segment_file_sync(segment_path(dir, start, path), name);
	/* A new queue is known only when the names of its directory and its topic's are on the disk too. */
	for (int up = 0; up < 2 && name && rc == 0; up++) {
		if (up == 0)
			snprintf(path, sizeof(path), "%s", dir);
		slash = strrchr(path, '/');
		if (!slash)
			break;
		*slash = '\0';
		rc = sys_sync_dir(path);
		if (rc == -ENOENT)
			rc = 0;
	}
	return rc;
}
