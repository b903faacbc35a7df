/* cqueue_fix.c: what changes a consume queue other than by the next entry: found again, cut, repaired, trimmed, followed. */
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "cqueues.h"
#include "segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "store"
enum { MORE_MIN = 32 };
static const int64_t off_max = INT64_MAX / CQ_ENTRY / 2;

static int unlink_file(struct mqstore_queue *q, int64_t start)
{
	char dir[SEGMENT_PATH], path[SEGMENT_PATH];
	int rc;

	if (q->tail.p && q->tail.start == start) {
		cqueues_unmap(q->all, &q->tail);
		q->room = 0;
	}
	if (q->old.p && q->old.start == start)
		cqueues_unmap(q->all, &q->old);
	rc = sys.unlink(segment_path(cqueue_dir(q, dir), start, path));
	if (rc == 0)
		q->all->bytes -= q->all->file_bytes;
	return rc == -ENOENT ? 0 : rc;
}

/* ---- Found in the log again ------------------------------------------------------------------------------------------ */

/* Read-only queues grow in memory. */
static void put_more(struct mqstore_queue *q, int64_t log_off, int32_t size, int64_t tags_code)
{
	int64_t used;
	uint8_t *p;

	if (!q->more)
		q->more_from = q->pos;
	used = q->pos - q->more_from;
	if (used + CQ_ENTRY > q->more_cap) {
		q->more_cap = q->more_cap ? q->more_cap * 2 : MORE_MIN * CQ_ENTRY;
		q->more = mem_realloc(q->more, (size_t)q->more_cap);
	}
	p = q->more + used;
	put_be64(p, (uint64_t)log_off);
	put_be32(p + 8, (uint32_t)size);
	put_be64(p + 12, (uint64_t)tags_code);
	q->pos += CQ_ENTRY;
	q->log_end = log_off + size;
}

static int put(struct mqstore_queue *q, int64_t log_off, int32_t size, int64_t tags_code)
{
	int rc = 0;

	q->lost = false;
	if (!q->all->write)
		put_more(q, log_off, size, tags_code);
	else
		rc = cqueue_put(q, log_off, size, tags_code);
	return rc < 0 ? rc : 1;
}

/* The queue holds nothing and its next entry is number `off`: everything before it in its file becomes fillers. */
static int begin_at(struct mqstore_queue *q, int64_t off)
{
	int64_t b = off * CQ_ENTRY, start = b / q->all->file_bytes * q->all->file_bytes;
	int rc;

	q->first = q->pos = start;
	q->reserved = q->flushed = start;
	q->room = 0;
	if (!q->all->write) {
		q->first = q->pos = b;
		q->min = off;
		return 0;
	}
	cqueue_unmap(q);
	rc = cqueue_room(q, (b - start) / CQ_ENTRY + 1);
	while (rc == 0 && q->pos < b)
		rc = cqueue_put(q, 0, CQ_FILLER_SIZE, 0);
	q->min = off;
	q->min_for = -1;
	return rc;
}

/* Throw away all entries: the queue begins anew. */
static int empty(struct mqstore_queue *q)
{
	int64_t fb = q->all->file_bytes;
	int rc = 0;

	for (int64_t start = q->first / fb * fb; q->all->write && start < q->pos && rc == 0; start += fb)
		rc = unlink_file(q, start);
	free(q->more);
	q->more = NULL;
	q->more_cap = 0;
	q->first = q->pos = q->room = q->reserved = q->flushed = q->min = q->log_end = 0;
	q->min_for = -1;
	return rc;
}

int cqueue_derive(struct mqstore_queue *q, int64_t off, int64_t log_off, int32_t size, int64_t tags_code, bool fill)
{
	int64_t next;
	int rc = cqueue_ready(q);

	if (rc < 0)
		return rc;
	if (off < 0 || off > off_max) {
		log_error("impossible queue offset in a record topic=%s queue=%d offset=%lld at=%lld", q->topic->name, (int)q->id,
			  (long long)off, (long long)log_off);
		return 0;
	}
	if (log_off + size <= q->log_end)
		return 0;
	next = q->pos / CQ_ENTRY;
	if (off < next && off == 0) {
		/* The topic was deleted and made again: what came before is gone for good. */
		log_info("queue begins anew topic=%s queue=%d at=%lld", q->topic->name, (int)q->id, (long long)log_off);
		rc = empty(q);
		if (rc < 0)
			return rc;
		next = 0;
	}
	if (off < next) {
		log_warn("queue offset given twice, the later record is not listed topic=%s queue=%d offset=%lld at=%lld",
			 q->topic->name, (int)q->id, (long long)off, (long long)log_off);
		return 0;
	}
	if (off > next && !fill)
		return CQUEUE_GAP;
	if (off > next && (q->pos == q->first || off - next > q->all->file_bytes / CQ_ENTRY)) {
		if (q->pos > q->first)
			log_warn("too many entries are lost, the queue begins behind them topic=%s queue=%d from=%lld to=%lld",
				 q->topic->name, (int)q->id, (long long)next, (long long)off);
		rc = empty(q);
		if (rc == 0)
			rc = begin_at(q, off);
		if (rc < 0)
			return rc;
	} else if (off > next) {
		log_warn("entries are lost topic=%s queue=%d from=%lld to=%lld", q->topic->name, (int)q->id, (long long)next,
			 (long long)off);
		while (q->pos / CQ_ENTRY < off) {
			rc = put(q, log_off, size, tags_code);
			if (rc < 0)
				return rc;
		}
	}
	return put(q, log_off, size, tags_code);
}

/* ---- Cutting and repairing ------------------------------------------------------------------------------------------- */

/* The last entry is no good. */
static bool beyond(const struct mqstore_entry *e, int64_t log_end)
{
	return e->log_off > 0 ? e->log_off + (cqueue_void(e) ? 1 : e->size) > log_end : !cqueue_void(e) && e->size > log_end;
}

static void drop_last(struct mqstore_queue *q, uint8_t *p)
{
	if (q->all->write)
		memset(p, 0, CQ_ENTRY);
	q->pos -= CQ_ENTRY;
	if (q->more && q->pos <= q->more_from) {
		free(q->more);
		q->more = NULL;
		q->more_cap = 0;
	}
}

int cqueue_cut(struct mqstore_queue *q, int64_t log_end)
{
	int64_t fb = q->all->file_bytes, was = q->pos, n, start;
	struct mqstore_entry e;
	const uint8_t *p;
	int rc = 0;

	q->log_end = 0;
	while (q->pos > q->first && rc == 0) {
		p = cqueue_entries(q, q->pos / CQ_ENTRY - 1, &n);
		if (!p) {
			rc = -EIO;
			break;
		}
		cqueue_read(p, &e);
		if (!beyond(&e, log_end)) {
			q->log_end = cqueue_void(&e) ? e.log_off : e.log_off + e.size;
			break;
		}
		start = (q->pos - CQ_ENTRY) / fb * fb;
		drop_last(q, (uint8_t *)(uintptr_t)p);
		/* A file without entries goes, but one is kept if the numbering would be lost with it. */
		if (q->all->write && q->pos == start && (start == 0 || start > q->first))
			rc = unlink_file(q, start);
	}
	if (was == q->pos)
		return rc;
	log_debug("queue cut topic=%s queue=%d from=%lld to=%lld", q->topic->name, (int)q->id, (long long)(was / CQ_ENTRY),
		  (long long)(q->pos / CQ_ENTRY));
	q->room = 0;
	if (q->reserved > q->pos)
		q->reserved = q->pos;
	if (q->flushed > q->pos)
		q->flushed = q->pos > q->first ? q->pos - CQ_ENTRY : q->pos;
	if (q->min > q->pos / CQ_ENTRY)
		q->min = q->pos / CQ_ENTRY;
	q->min_for = -1;
	if (q->all->write && !q->dirty && q->pos > q->first)
		cqueue_mark_dirty(q);
	return rc;
}

int cqueue_skip(struct mqstore_queue *q, int64_t off)
{
	uint8_t next[CQ_ENTRY];
	const uint8_t *p;
	bool last;
	int64_t n;

	p = cqueue_entries(q, off + 1, &n);
	last = !p;
	if (p)
		memcpy(next, p, CQ_ENTRY);
	p = cqueue_entries(q, off, &n);
	if (!p || (!q->all->write && !(q->more && off * CQ_ENTRY >= q->more_from)))
		return 0;
	if (last)
		put_be32((uint8_t *)(uintptr_t)p + 8, CQ_FILLER_SIZE);
	else
		memcpy((uint8_t *)(uintptr_t)p, next, CQ_ENTRY);
	if (q->flushed > off * CQ_ENTRY)
		q->flushed = off * CQ_ENTRY;
	if (q->all->write && !q->dirty)
		cqueue_mark_dirty(q);
	return 0;
}

/* ---- Retention ------------------------------------------------------------------------------------------------------- */

int cqueue_trim(struct mqstore_queue *q, int64_t log_min)
{
	int64_t fb = q->all->file_bytes, newest, n;
	struct mqstore_entry e;
	const uint8_t *p;
	int removed = 0, rc = cqueue_ready(q);

	if (rc < 0 || q->pos == q->first)
		return rc;
	newest = (q->pos - CQ_ENTRY) / fb * fb;
	while (q->first + fb <= newest) {
		p = cqueue_entries(q, (q->first + fb) / CQ_ENTRY - 1, &n);
		if (p) {
			cqueue_read(p, &e);
			if (e.log_off >= log_min)
				break;
		}
		rc = unlink_file(q, q->first);
		if (rc < 0)
			log_warn("cannot remove a file topic=%s queue=%d file=%020lld reason=\"%s\"", q->topic->name, (int)q->id,
				 (long long)q->first, mq_strerror(rc));
		else
			removed++;
		q->first += fb;
	}
	if (q->min < q->first / CQ_ENTRY)
		q->min = q->first / CQ_ENTRY;
	return removed;
}

int cqueue_remove(struct mqstore_queue *q)
{
	int64_t fb = q->all->file_bytes;
	char dir[SEGMENT_PATH];
	int rc;

	if (cqueue_ready(q) == 0)
		for (int64_t start = q->first / fb * fb; start < q->pos; start += fb)
			unlink_file(q, start);
	cqueue_unmap(q);
	rc = sys_remove_tree(cqueue_dir(q, dir));
	if (rc < 0)
		return rc;
	*strrchr(dir, '/') = '\0';
	/* The topic's directory goes with its last queue. */
	sys.rmdir(dir);
	return 0;
}

/* ---- Following a writer ---------------------------------------------------------------------------------------------- */

void cqueue_follow(struct mqstore_queue *q, int64_t log_end)
{
	int64_t fb = q->all->file_bytes, at = q->more ? q->more_from : q->pos, start;
	char dir[SEGMENT_PATH], path[SEGMENT_PATH];
	struct mqstore_entry e;
	struct stat st;

	if (!q->loaded)
		return;
	if (q->pos == q->first && !q->more) {
		/* Nothing seen so far: it may begin anywhere. */
		q->loaded = false;
		q->all->unloaded++;
		return;
	}
	for (;;) {
		start = at / fb * fb;
		if (!q->tail.p || q->tail.start != start) {
			uint8_t *p;

			/* Its maker may not have given it its length yet. */
			if (sys.stat(segment_path(cqueue_dir(q, dir), start, path), &st) < 0 || st.st_size != fb)
				break;
			if (q->tail.p)
				cqueues_unmap(q->all, &q->tail);
			if (segment_file_map(path, fb, false, &p) < 0)
				break;
			q->tail.p = p;
			q->tail.start = start;
			cqueues_mapped(q->all, &q->tail);
		}
		cqueue_read(q->tail.p + (at - start), &e);
		if (e.log_off < 0 || e.size <= 0 || beyond(&e, log_end))
			break;
		at += CQ_ENTRY;
		if (at > q->pos) {
			q->pos = at;
			q->log_end = cqueue_void(&e) ? e.log_off : e.log_off + e.size;
		}
	}
	if (q->more && at >= q->pos) {
		free(q->more);
		q->more = NULL;
		q->more_cap = 0;
	} else if (q->more && at > q->more_from) {
		memmove(q->more, q->more + (at - q->more_from), (size_t)(q->pos - at));
		q->more_from = at;
	}
}
