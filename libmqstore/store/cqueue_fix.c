/* cqueue_fix.c: what changes a consume queue other than by the next entry: found again, cut, repaired, trimmed, followed. */
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "cqueue_ext.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define LOG_MODULE "store"
static const int64_t off_max = INT64_MAX / CQ_ENTRY / 2;

static int unlink_file(struct mqstore_queue *q, int64_t start)
{
	char path[SEGMENT_PATH];
	int rc;

	if (q->map.p && q->map.start == start)
		cqueues_unmap(q);
	rc = sys.unlink(cqueue_path(q, start, path));
	return rc == -ENOENT ? 0 : rc;
}

/* ---- Found in the log again ------------------------------------------------------------------------------------------ */

static int put(struct mqstore_queue *q, int64_t log_off, int32_t size, int64_t tags_code)
{
	int rc = cqueue_room(q, 1);

	if (rc < 0)
		return rc;
	q->lost = false;
	cqueue_put(q, log_off, size, tags_code);
	q->log_end = cqueue_end(log_off, size);
	return 1;
}

/* The queue holds nothing and its next entry is number `off`: everything before it in its file becomes fillers. */
static int begin_at(struct mqstore_queue *q, int64_t off)
{
	int64_t b = off * CQ_ENTRY, start = b / q->all->file_bytes * q->all->file_bytes;
	int rc = 1;

	cqueue_drop_buf(q);
	q->first = q->pos = q->written = q->flushed = q->all->write ? start : b;
	while (rc >= 0 && q->pos < b)
		rc = put(q, 0, CQ_FILLER_SIZE, 0);
	q->min = off;
	q->min_for = -1;
	return rc < 0 ? rc : 0;
}

/* Throw away all entries: the queue begins anew. */
static int empty(struct mqstore_queue *q)
{
	int64_t fb = q->all->file_bytes;
	int rc = 0;

	for (int64_t start = q->first / fb * fb; q->all->write && start < q->written && rc == 0; start += fb)
		rc = unlink_file(q, start);
	cqueues_unmap(q);
	cqueue_drop_buf(q);
	q->first = q->pos = q->written = q->flushed = q->min = q->log_end = 0;
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
	if (cqueue_end(log_off, size) <= q->log_end)
		return 0;
	next = q->pos / CQ_ENTRY;
	/* Of a damaged record only the expected number is believed. */
	if (size == CQ_FILLER_SIZE && off != next)
		return 0;
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

/* The entry is no good when the log ends there. */
static bool beyond(const struct mqstore_entry *e, int64_t log_end)
{
	return cqueue_end(e->log_off, e->size) > log_end;
}

/* Overwrite entries that are in a file. */
static int rewrite(struct mqstore_queue *q, int64_t from, int64_t to, const uint8_t *p)
{
	int64_t start = from / q->all->file_bytes * q->all->file_bytes;
	char path[SEGMENT_PATH];
	int fd = sys.open(cqueue_path(q, start, path), O_RDWR, 0), rc;

	if (fd < 0)
		return fd;
	rc = sys_write_all(fd, p, (size_t)(to - from), from - start);
	sys.close(fd);
	return rc;
}

/* The files shall hold nothing behind q->pos. */
static int cut_files(struct mqstore_queue *q)
{
	int64_t fb = q->all->file_bytes, start = (q->written - 1) / fb * fb, n;
	uint8_t *zeros;
	int rc = 0;

	/* A file without entries goes, but one is kept if the numbering would be lost with it. */
	for (; start >= q->pos && (start > q->first || start == 0) && rc == 0; start -= fb)
		rc = unlink_file(q, start);
	if (rc < 0 || start < 0)
		return rc;
	n = (q->written < start + fb ? q->written : start + fb) - q->pos;
	if (n <= 0)
		return 0;
	zeros = mem_alloc((size_t)n);
	rc = rewrite(q, q->pos, q->pos + n, zeros);
	free(zeros);
	return rc;
}

int cqueue_cut(struct mqstore_queue *q, int64_t log_end)
{
	int64_t was = q->pos, n;
	struct mqstore_entry e;
	const uint8_t *p;
	int rc = 0;

	q->log_end = 0;
	while (q->pos > q->first) {
		p = cqueue_entries(q, q->pos / CQ_ENTRY - 1, &n);
		if (!p) {
			rc = n < 0 ? (int)n : -EIO;
			break;
		}
		cqueue_read(p, &e);
		if (!beyond(&e, log_end)) {
			q->log_end = cqueue_end(e.log_off, e.size);
			break;
		}
		q->pos -= CQ_ENTRY;
	}
	if (was == q->pos || rc < 0)
		return rc;
	log_debug("queue cut topic=%s queue=%d from=%lld to=%lld", q->topic->name, (int)q->id, (long long)(was / CQ_ENTRY),
		  (long long)(q->pos / CQ_ENTRY));
	if (q->pos < q->written && q->all->write)
		rc = cut_files(q);
	if (q->buf && q->pos < q->buf_from)
		cqueue_drop_buf(q);
	if (q->written > q->pos)
		q->written = q->pos;
	if (q->flushed >= q->pos)
		q->flushed = q->pos > q->first ? q->pos - CQ_ENTRY : q->pos;
	if (q->min > q->pos / CQ_ENTRY)
		q->min = q->pos / CQ_ENTRY;
	q->min_for = -1;
	if (!q->dirty && q->pos > q->first)
		cqueue_mark_dirty(q);
	return rc;
}

int cqueue_skip(struct mqstore_queue *q, int64_t off)
{
	int64_t b = off * CQ_ENTRY, n;
	uint8_t entry[CQ_ENTRY];
	const uint8_t *p = cqueue_entries(q, off + 1, &n);
	bool last = !p;
	int rc = 0;

	if (last)
		p = cqueue_entries(q, off, &n);
	if (!p)
		return 0;
	memcpy(entry, p, CQ_ENTRY);
	if (last)
		put_be32(entry + 8, CQ_FILLER_SIZE);
	if (q->buf && b >= q->buf_from)
		memcpy(q->buf + (b - q->buf_from), entry, CQ_ENTRY);
	if (b < q->written && q->all->write)
		rc = rewrite(q, b, b + CQ_ENTRY, entry);
	if (q->flushed > b)
		q->flushed = b;
	if (!q->dirty)
		cqueue_mark_dirty(q);
	return rc;
}

/* ---- Retention ------------------------------------------------------------------------------------------------------- */

int cqueue_trim(struct mqstore_queue *q, int64_t log_min, int max)
{
	int64_t fb = q->all->file_bytes, newest, n;
	struct mqstore_entry e;
	const uint8_t *p;
	int removed = 0, rc = cqueue_ready(q);

	if (rc < 0 || q->written == q->first)
		return rc;
	newest = (q->written - CQ_ENTRY) / fb * fb;
	while (q->first + fb <= newest && removed < max) {
		p = cqueue_entries(q, (q->first + fb) / CQ_ENTRY - 1, &n);
		if (!p && n < 0 && n != -ENOENT && n != MQ_EMISMATCH)
			return (int)n;
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
	if (removed && (p = cqueue_entries(q, cqueue_min(q, log_min), &n))) {
		cqueue_read(p, &e);
		cqueue_ext_trim(q, e.tags_code);
	}
	return removed;
}

/* ---- Following a writer ---------------------------------------------------------------------------------------------- */

void cqueue_follow(struct mqstore_queue *q, int64_t log_end)
{
	int64_t fb = q->all->file_bytes;
	struct mqstore_entry e;

	if (!q->loaded)
		return;
	if (q->pos == q->first) {
		/* Nothing seen so far: it may begin anywhere. */
		cqueue_reset(q);
		q->made = true;
		return;
	}
	/* A file that is not there or has not its length yet is for the next time. */
	while (cqueue_map(q, q->written / fb * fb) == 0) {
		cqueue_read(q->map.p + (q->written - q->map.start), &e);
		if (e.log_off < 0 || e.size <= 0 || beyond(&e, log_end))
			break;
		q->written += CQ_ENTRY;
		if (q->written > q->pos) {
			q->pos = q->written;
			q->log_end = cqueue_end(e.log_off, e.size);
			cqueue_drop_buf(q);
		}
	}
	if (q->written == q->pos)
		cqueue_drop_buf(q);
}
