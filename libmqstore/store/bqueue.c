/* bqueue.c: a batch consume queue.  The entry:
 *
 *	off  size                     off  size
 *	  0     8  log offset          28     8  number of the first message
 *	  8     4  record size         36     2  messages
 *	 12     8  tags code           38     4  compacted offset, -1
 *	 20     8  store time          42     4  0 */
#include "bqueue.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "store"
enum { FILE_MAX = 1 << 30 };

static char *dir_of(const struct mqstore_queue *q, char *out)
{
	return cqueue_dir_in(q->all->batch_dir, q, out);
}

static char *path_of(const struct mqstore_queue *q, int64_t start, char *out)
{
	return cqueue_path_in(q->all->batch_dir, q, start, out);
}

static void keep(struct bqueue *b, const struct bentry *e)
{
	if (b->n == b->cap) {
		b->cap = b->cap ? b->cap * 2 : 16;
		b->v = mem_realloc(b->v, (size_t)b->cap * sizeof(*b->v));
	}
	b->v[b->n++] = *e;
	b->pos += BATCH_CQ_ENTRY;
}

static bool base_possible(int64_t base)
{
	return base >= 0 && base <= INT64_MAX - INT16_MAX;
}

bool bqueue_decode(const uint8_t *p, struct bentry *e)
{
	e->log_off = (int64_t)be64(p);
	e->size = (int32_t)be32(p + 8);
	e->tags_code = (int64_t)be64(p + 12);
	e->store_ms = (int64_t)be64(p + 20);
	e->base = (int64_t)be64(p + 28);
	e->count = (int16_t)be16(p + 36);
	return e->log_off >= 0 && e->size > 0 && base_possible(e->base) && e->count > 0;
}

/* Entries of one file; false when it is not full. */
static bool read_file(struct mqstore_queue *q, struct bqueue *b, const uint8_t *p, size_t n)
{
	struct bentry e;

	for (size_t at = 0; at + BATCH_CQ_ENTRY <= n; at += BATCH_CQ_ENTRY) {
		if (!bqueue_decode(p + at, &e) || e.log_off > q->all->log_end_at_open - e.size)
			return false;
		if (b->n && e.base < b->v[b->n - 1].base + b->v[b->n - 1].count)
			return false;
		keep(b, &e);
	}
	return true;
}

static int load(struct mqstore_queue *q, struct bqueue *b)
{
	char dir[SEGMENT_PATH], path[SEGMENT_PATH], **names, *p;
	size_t n, size;
	int rc = sys_list(dir_of(q, dir), &names, &n);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 0; i < n; i++) {
		int64_t start = segment_name(names[i]);
		bool more;

		if (start < 0)
			continue;
		rc = sys_read_file(segment_path(dir, start, path), FILE_MAX, &p, &size);
		if (rc < 0)
			break;
		if (b->file_bytes == 0) {
			b->file_bytes = (int64_t)size / BATCH_CQ_ENTRY * BATCH_CQ_ENTRY;
			b->first = b->pos = start;
		}
		more = size > 0 && start == b->pos && read_file(q, b, (uint8_t *)p, size);
		free(p);
		if (!more)
			break;
	}
	free(names);
	return rc;
}

int bqueue_ready(struct mqstore_queue *q)
{
	int rc;

	if (q->loaded)
		return 0;
	q->batch = mem_alloc(sizeof(*q->batch));
	rc = load(q, q->batch);
	if (rc < 0) {
		log_error("cannot load batch queue topic=%s queue=%d reason=\"%s\"", q->topic->name, (int)q->id, mq_strerror(rc));
		bqueue_free(q);
		return rc;
	}
	q->loaded = true;
	q->all->unloaded--;
	return 0;
}

void bqueue_free(struct mqstore_queue *q)
{
	if (q->batch)
		free(q->batch->v);
	free(q->batch);
	q->batch = NULL;
}

int64_t bqueue_max(struct mqstore_queue *q)
{
	const struct bqueue *b;

	if (bqueue_ready(q) < 0)
		return 0;
	b = q->batch;
	return b->n ? b->v[b->n - 1].base + b->v[b->n - 1].count : 0;
}

int64_t bqueue_min(struct mqstore_queue *q, int64_t log_min)
{
	int64_t lo = 0, hi;

	if (bqueue_ready(q) < 0)
		return 0;
	for (hi = q->batch->n; lo < hi;) {
		int64_t mid = (lo + hi) / 2;

		if (q->batch->v[mid].log_off >= log_min)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo < q->batch->n ? q->batch->v[lo].base : bqueue_max(q);
}

int64_t bqueue_find(struct mqstore_queue *q, int64_t off)
{
	int64_t lo = 0, hi;

	if (bqueue_ready(q) < 0)
		return 0;
	for (hi = q->batch->n; lo < hi;) {
		int64_t mid = (lo + hi) / 2;

		if (q->batch->v[mid].base + q->batch->v[mid].count > off)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* One entry into the file that it belongs to. */
static int write_entry(struct mqstore_queue *q, int64_t pos, const uint8_t *p)
{
	int64_t start = pos / q->batch->file_bytes * q->batch->file_bytes;
	char path[SEGMENT_PATH];
	int fd = sys.open(path_of(q, start, path), O_RDWR | O_CREAT, 0644), rc;

	if (fd < 0)
		return fd;
	rc = pos == start && start > 0 ? sys.ftruncate(fd, q->batch->file_bytes) : 0;
	if (rc == 0)
		rc = sys_write_all(fd, p, BATCH_CQ_ENTRY, pos - start);
	if (rc == 0)
		rc = sys.fdatasync(fd);
	sys.close(fd);
	return rc;
}

int bqueue_derive(struct mqstore_queue *q, const struct mq_message *m, int64_t tags_code)
{
	struct bentry e = { m->log_off, m->store_ms, m->queue_off, tags_code, m->size, 1 };
	struct mq_str num = mq_prop_get(m->props, "INNER_NUM");
	uint8_t p[BATCH_CQ_ENTRY] = { 0 };
	const struct bentry *last;
	int rc = bqueue_ready(q);

	if (rc < 0)
		return rc;
	last = q->batch->n ? &q->batch->v[q->batch->n - 1] : NULL;
	if (!base_possible(e.base))
		return 0;
	if ((m->sys_flag & MQ_SYS_INNER_BATCH) && (str_i32(num, &e.count) < 0 || e.count < 1 || e.count > INT16_MAX))
		return 0;
	if (last && (e.log_off <= last->log_off || e.base < last->base + last->count))
		return 0;
	if (q->all->write && q->batch->file_bytes > 0) {
		put_be64(p, (uint64_t)e.log_off);
		put_be32(p + 8, (uint32_t)e.size);
		put_be64(p + 12, (uint64_t)e.tags_code);
		put_be64(p + 20, (uint64_t)e.store_ms);
		put_be64(p + 28, (uint64_t)e.base);
		put_be16(p + 36, (uint16_t)e.count);
		put_be32(p + 38, UINT32_MAX);
		rc = write_entry(q, q->batch->pos, p);
	}
	if (rc == 0)
		keep(q->batch, &e);
	return rc;
}

int bqueue_cut(struct mqstore_queue *q, int64_t log_end)
{
	static const uint8_t zeros[BATCH_CQ_ENTRY];
	struct bqueue *b = q->batch;
	int rc = bqueue_ready(q);

	b = q->batch;
	while (rc == 0 && b->n && b->v[b->n - 1].log_off + b->v[b->n - 1].size > log_end) {
		b->n--;
		b->pos -= BATCH_CQ_ENTRY;
		if (q->all->write)
			rc = write_entry(q, b->pos, zeros);
	}
	return rc;
}

void bqueue_trim(struct mqstore_queue *q, int64_t log_min)
{
	char path[SEGMENT_PATH];
	struct bqueue *b;
	int64_t per_file;

	if (bqueue_ready(q) < 0 || q->batch->file_bytes == 0)
		return;
	b = q->batch;
	per_file = b->file_bytes / BATCH_CQ_ENTRY;
	while (b->n > per_file && b->v[per_file - 1].log_off < log_min) {
		int rc = sys.unlink(path_of(q, b->first, path));

		if (rc < 0 && rc != -ENOENT)
			log_warn("cannot remove '%s': %s", path, mq_strerror(rc));
		memmove(b->v, b->v + per_file, (size_t)(b->n - per_file) * sizeof(*b->v));
		b->n -= per_file;
		b->first += b->file_bytes;
	}
}

int64_t bqueue_bytes(const struct mqstore_queue *q)
{
	const struct bqueue *b = q->batch;

	return b && b->file_bytes && b->pos > b->first ? ((b->pos - 1) / b->file_bytes - b->first / b->file_bytes + 1) * b->file_bytes : 0;
}
