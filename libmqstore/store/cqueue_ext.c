/* cqueue_ext.c: units beside a consume queue. */
#include "cqueue_ext.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "store"
enum { BUF = 4096, TO_SPARE = 4, LOOK_BACK = 3 * 300000 };

struct cqueue_ext {
	int64_t *start;         /* of the files, n of them, in order */
	size_t n;
	int64_t file_bytes;
	/* Known from the first unit that is put: */
	int64_t pos;            /* where the next unit goes; INT64_MAX before */
	int64_t written;        /* the files hold everything below; buf has [written, pos) */
	uint8_t buf[BUF];
	bool failed;            /* the last write failed, and that was told */
};

static char *dir_of(const struct mqstore_queue *q, char *out)
{
	return cqueue_dir_in(q->all->ext_dir, q, out);
}

static char *path_of(const struct mqstore_queue *q, int64_t start, char *out)
{
	return cqueue_path_in(q->all->ext_dir, q, start, out);
}

/* ---- The files ------------------------------------------------------------------------------------------------------------ */

static void unmap(struct cqueues *all)
{
	if (all->ext_map.p)
		sys.munmap(all->ext_map.p, (size_t)all->ext_map.size);
	all->ext_map.p = NULL;
}

static void add_file(struct cqueue_ext *x, int64_t start)
{
	x->start = mem_realloc(x->start, (x->n + 1) * sizeof(*x->start));
	x->start[x->n++] = start;
}

/* Names that continue each other; the length of the first is that of all. */
static int list_files(struct mqstore_queue *q, struct cqueue_ext *x)
{
	char dir[SEGMENT_PATH], path[SEGMENT_PATH], **names;
	struct stat st;
	size_t n;
	int rc = sys_list(dir_of(q, dir), &names, &n);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 0; i < n; i++) {
		int64_t start = segment_name(names[i]);

		if (start < 0 || sys.stat(segment_path(dir, start, path), &st) < 0 || st.st_size < CQ_UNIT)
			continue;
		if (x->n == 0)
			x->file_bytes = st.st_size;
		if (st.st_size == x->file_bytes && start % x->file_bytes == 0)
			add_file(x, start);
		else
			log_warn("foreign file left alone dir=%s file=%s", dir, names[i]);
	}
	free(names);
	return 0;
}

/* The file that holds `at`, to be read; NULL: none. */
static const uint8_t *map_at(struct mqstore_queue *q, const struct cqueue_ext *x, int64_t at)
{
	struct cqueues *all = q->all;
	int64_t start = at / x->file_bytes * x->file_bytes;
	char path[SEGMENT_PATH];

	if (all->ext_map.p && all->ext_map.q == q && all->ext_map.start == start)
		return all->ext_map.p;
	unmap(all);
	if (segment_file_map(path_of(q, start, path), x->file_bytes, false, &all->ext_map.p) < 0) {
		all->ext_map.p = NULL;
		return NULL;
	}
	all->ext_map.q = q;
	all->ext_map.start = start;
	all->ext_map.size = x->file_bytes;
	return all->ext_map.p;
}

/* Where the units of the last file end. */
static int64_t walk_last(struct mqstore_queue *q, const struct cqueue_ext *x)
{
	int64_t start = x->start[x->n - 1], at = 0, n;
	const uint8_t *p = map_at(q, x, start);

	while (p && (n = cqueue_unit_size(p + at, x->file_bytes - at)) > 0)
		at += n;
	return start + at;
}

/* Behind the unit of the newest entry that has one: the unit itself may be lost, its place is not given again. */
static int64_t behind_entries(struct mqstore_queue *q, const struct cqueue_ext *x)
{
	int64_t off = q->pos / CQ_ENTRY, least = q->first / CQ_ENTRY, n, at, size;
	struct mqstore_entry e;
	const uint8_t *p;

	if (off - least > LOOK_BACK)
		least = off - LOOK_BACK;
	while (off > least && (p = cqueue_entries(q, --off, &n))) {
		cqueue_read(p, &e);
		if (!cqueue_ext_is_address(e.tags_code))
			continue;
		at = e.tags_code - INT64_MIN;
		if (at > INT64_MAX - x->file_bytes * 2)
			return 0;
		p = map_at(q, x, at);
		size = p ? cqueue_unit_size(p + at % x->file_bytes, x->file_bytes - at % x->file_bytes) : 0;
		/* Who knows how long it was: the next file is out of its way. */
		return size ? at + size : (at / x->file_bytes + 1) * x->file_bytes;
	}
	return 0;
}

static struct cqueue_ext *ready(struct mqstore_queue *q)
{
	struct cqueue_ext *x = q->ext;
	int rc;

	if (x || cqueue_ready(q) < 0)
		return x;
	x = mem_alloc(sizeof(*x));
	x->file_bytes = q->all->ext_bytes;
	rc = list_files(q, x);
	if (rc < 0) {
		log_warn("cannot look at units topic=%s queue=%d reason=\"%s\"", q->topic->name, (int)q->id, mq_strerror(rc));
		free(x);
		return NULL;
	}
	x->pos = x->written = INT64_MAX;
	q->ext = x;
	return x;
}

/* Not while entries are being read: it looks at others. */
static struct cqueue_ext *ready_to_put(struct mqstore_queue *q)
{
	struct cqueue_ext *x = ready(q);
	int64_t used, end;

	if (x && x->pos == INT64_MAX) {
		end = x->n ? walk_last(q, x) : 0;
		used = behind_entries(q, x);
		x->pos = x->written = used > end ? used : end;
	}
	return x;
}

/* ---- Writing -------------------------------------------------------------------------------------------------------------- */

static int make_file(const struct mqstore_queue *q, struct cqueue_ext *x, int64_t start)
{
	char dir[SEGMENT_PATH], path[SEGMENT_PATH];
	int fd, rc;

	snprintf(dir, sizeof(dir), "%s/%s", q->all->ext_dir, q->topic->name);
	sys.mkdir(q->all->ext_dir, 0755);
	sys.mkdir(dir, 0755);
	sys.mkdir(dir_of(q, dir), 0755);
	fd = sys.open(path_of(q, start, path), O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		return fd;
	rc = sys.ftruncate(fd, x->file_bytes);
	if (rc < 0) {
		sys.close(fd);
		sys.unlink(path);
		return rc;
	}
	add_file(x, start);
	return fd;
}

void cqueue_ext_write_out(struct mqstore_queue *q)
{
	struct cqueue_ext *x = q->ext;
	char path[SEGMENT_PATH];
	int64_t start;
	int fd, rc;

	if (!x || x->written == x->pos)
		return;
	start = x->written / x->file_bytes * x->file_bytes;
	fd = x->n && x->start[x->n - 1] == start ? sys.open(path_of(q, start, path), O_RDWR, 0) : make_file(q, x, start);
	rc = fd < 0 ? fd : sys_write_all(fd, x->buf, (size_t)(x->pos - x->written), x->written - start);
	if (fd >= 0)
		sys.close(fd);
	if (rc < 0 && !x->failed)
		log_warn("cannot write units, entries do without topic=%s queue=%d reason=\"%s\"", q->topic->name, (int)q->id,
			 mq_strerror(rc));
	x->failed = rc < 0;
	if (rc == 0)
		x->written = x->pos;
}

/* The rest of the file is given up. */
static void next_file(struct mqstore_queue *q, struct cqueue_ext *x)
{
	put_be16(x->buf + (x->pos - x->written), (uint16_t)-1);
	x->pos += 2;
	cqueue_ext_write_out(q);
	if (x->written == x->pos)
		x->pos = x->written = (x->pos / x->file_bytes + 1) * x->file_bytes;
	else
		x->pos -= 2;
}

int64_t cqueue_ext_put(struct mqstore_queue *q, int64_t tags_code, int64_t store_ms, struct mq_str bits)
{
	struct cqueue_ext *x = q->all->write ? ready_to_put(q) : NULL;
	int64_t n = CQ_UNIT + (int64_t)bits.n, at;
	uint8_t *p;

	if (!x || n > BUF / 2 || n + TO_SPARE > x->file_bytes)
		return tags_code;
	if (x->pos - x->written + n + TO_SPARE > BUF)
		cqueue_ext_write_out(q);
	if (x->pos - x->written + n + TO_SPARE <= BUF && x->pos % x->file_bytes + n + TO_SPARE > x->file_bytes)
		next_file(q, x);
	at = x->pos;
	if (at - x->written + n + TO_SPARE > BUF || at % x->file_bytes + n + TO_SPARE > x->file_bytes)
		return tags_code;
	p = x->buf + (at - x->written);
	put_be16(p, (uint16_t)n);
	put_be64(p + 2, (uint64_t)tags_code);
	put_be64(p + 10, (uint64_t)store_ms);
	put_be16(p + 18, (uint16_t)bits.n);
	memcpy(p + CQ_UNIT, bits.p, bits.n);
	x->pos += n;
	return at + INT64_MIN;
}

/* ---- Reading -------------------------------------------------------------------------------------------------------------- */

bool cqueue_ext_get(struct mqstore_queue *q, int64_t address, struct cqueue_unit *u)
{
	struct cqueue_ext *x = cqueue_ext_is_address(address) ? ready(q) : NULL;
	int64_t at = address - INT64_MIN, room;
	const uint8_t *p;

	if (!x)
		return false;
	if (q->all->write && at >= x->pos)
		return false;
	if (q->all->write && at >= x->written) {
		p = x->buf + (at - x->written);
		room = x->pos - at;
	} else {
		p = map_at(q, x, at);
		p = p ? p + at % x->file_bytes : NULL;
		room = x->file_bytes - at % x->file_bytes;
	}
	if (!p || cqueue_unit_size(p, room) == 0)
		return false;
	u->tags_code = (int64_t)be64(p + 2);
	u->store_ms = (int64_t)be64(p + 10);
	u->bits = (struct mq_str){ (const char *)p + CQ_UNIT, be16(p + 18) };
	return true;
}

int64_t cqueue_ext_tags(struct mqstore_queue *q, int64_t tags_code)
{
	struct cqueue_unit u;

	return cqueue_ext_get(q, tags_code, &u) ? u.tags_code : tags_code;
}

/* ---- Removing ------------------------------------------------------------------------------------------------------------- */

void cqueue_ext_trim(struct mqstore_queue *q, int64_t address)
{
	struct cqueue_ext *x = cqueue_ext_is_address(address) ? ready(q) : NULL;
	char path[SEGMENT_PATH];

	while (x && x->n > 1 && x->start[0] + x->file_bytes <= address - INT64_MIN) {
		int rc = sys.unlink(path_of(q, x->start[0], path));

		if (rc < 0 && rc != -ENOENT) {
			log_warn("cannot remove '%s': %s", path, mq_strerror(rc));
			return;
		}
		memmove(x->start, x->start + 1, --x->n * sizeof(*x->start));
	}
}

int cqueue_ext_remove(const struct mqstore_queue *q)
{
	char dir[SEGMENT_PATH];
	int rc = sys_remove_tree(dir_of(q, dir));

	if (rc < 0)
		return rc;
	*strrchr(dir, '/') = '\0';
	sys.rmdir(dir);
	return 0;
}

void cqueue_ext_free(struct mqstore_queue *q)
{
	if (q->all->ext_map.q == q)
		unmap(q->all);
	if (q->ext)
		free(q->ext->start);
	free(q->ext);
	q->ext = NULL;
}
