/* files_queue.c: the files of consume queues as they stand: found, measured, read entry by entry. */
#include "../base/err.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "cqueue_ext.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZES_ENOUGH = 64, UNITS_MAX = 1 << 30 };

static struct fqueue *find_queue(struct mqstore_files *f, const char *key)
{
	struct fqueue *q;

	HASH_FIND(hh, f->queues, key, strlen(key), q);
	return q;
}

struct fqueue *files_queue(struct mqstore_files *f, struct mq_str topic, int32_t id, bool create)
{
	char key[512];
	struct fqueue *q;

	if (topic.n > 400)
		return NULL;
	/* One allocation: the key's first part is the topic's name. */
	snprintf(key, sizeof(key), MQ_STR_FMT "/%d", MQ_STR_ARG(topic), (int)id);
	q = find_queue(f, key);
	if (q || !create)
		return q;
	q = mem_alloc(sizeof(*q));
	q->topic = mem_strdup(key);
	q->id = id;
	q->bad = INT64_MAX;
	HASH_ADD_KEYPTR(hh, f->queues, q->topic, strlen(q->topic), q);
	return q;
}

bool files_batch_topic(const struct mqstore_files *f, struct mq_str topic)
{
	for (size_t i = 0; i < f->batch_n; i++)
		if (str_is(topic, f->batch[i]))
			return true;
	return false;
}

static size_t topic_length(const struct fqueue *q)
{
	return (size_t)(strrchr(q->topic, '/') - q->topic);
}

static int by_place(const struct fqueue *a, const struct fqueue *b)
{
	int c = str_cmp((struct mq_str){ a->topic, topic_length(a) }, (struct mq_str){ b->topic, topic_length(b) });

	return c ? c : (a->id > b->id) - (a->id < b->id);
}

void files_sort_queues(struct mqstore_files *f)
{
	HASH_SORT(f->queues, by_place);
}

char *files_queue_path(const struct mqstore_files *f, const struct fqueue *q, int64_t start, char out[SEGMENT_PATH])
{
	snprintf(out, SEGMENT_PATH, "%s/%s/%020lld", f->queue_dir, q->topic, (long long)start);
	return out;
}

static void load_queue(struct mqstore_files *f, struct fqueue *q, const char *dir)
{
	char path[SEGMENT_PATH], **names, text[200];
	struct stat st;
	size_t n;

	q->there = true;
	f->queue_n++;
	if (sys_list(dir, &names, &n) < 0)
		return;
	q->starts = mem_alloc((n + 1) * sizeof(*q->starts));
	for (size_t i = 0; i < n; i++) {
		int64_t start = segment_name(names[i]);
		char *name = mem_printf("consumequeue/%s/%s", q->topic, names[i]);

		if (start < 0) {
			files_misfit(f, name, true, "no file of a queue, left alone");
			continue;
		}
		if (sys.stat(files_queue_path(f, q, start, path), &st) < 0) {
			free(name);
			continue;
		}
		if (st.st_size == f->queue_bytes && f->queue_bytes > 0 && start % f->queue_bytes == 0) {
			free(name);
			q->starts[q->n++] = start;
			f->queue_files++;
			continue;
		}
		snprintf(text, sizeof(text), "has %lld bytes and begins at %lld, the files of queues have %lld: cannot be read",
			 (long long)st.st_size, (long long)start, (long long)f->queue_bytes);
		if (st.st_size == 0 && i + 1 == n)
			files_misfit(f, name, true, "empty, removed by a start");
		else
			files_misfit(f, name, false, text)->queue = q;
	}
	free(names);
}

/* Some files tell the size of all. */
static int64_t queue_file_bytes(const struct mqstore_files *f, char **topics, size_t n)
{
	char dir[SEGMENT_PATH], **ids, **names;
	struct sizes sizes = { 0 };
	int64_t usual;
	size_t m, files;

	for (size_t i = 0; i < n && sizes.seen < SIZES_ENOUGH; i++) {
		snprintf(dir, sizeof(dir), "%s/%s", f->queue_dir, topics[i]);
		if (sys_list(dir, &ids, &m) < 0)
			continue;
		for (size_t k = 0; k < m && sizes.seen < SIZES_ENOUGH; k++) {
			snprintf(dir, sizeof(dir), "%s/%s/%s", f->queue_dir, topics[i], ids[k]);
			if (sys_list(dir, &names, &files) < 0)
				continue;
			files_add_sizes(&sizes, dir, names, files);
			free(names);
		}
		free(ids);
	}
	usual = files_usual_size(&sizes);
	return usual % CQ_ENTRY ? 0 : usual;
}

int files_load_queues(struct mqstore_files *f, struct mq_error *err)
{
	char dir[SEGMENT_PATH], **topics, **ids;
	size_t n, m;
	int rc = sys_list(f->queue_dir, &topics, &n);

	if (rc < 0)
		return rc == -ENOENT ? 0 : err_sys(err, rc, "list '%s'", f->queue_dir);
	f->queue_bytes = queue_file_bytes(f, topics, n);
	for (size_t i = 0; i < n; i++) {
		snprintf(dir, sizeof(dir), "%s/%s", f->queue_dir, topics[i]);
		if (sys_list(dir, &ids, &m) < 0)
			continue;
		for (size_t k = 0; k < m; k++) {
			struct fqueue *q;
			int32_t id;

			if (str_i32(str_of(ids[k]), &id) < 0 || id < 0 || (ids[k][0] == '0' && ids[k][1]))
				continue;
			q = files_queue(f, str_of(topics[i]), id, true);
			snprintf(dir, sizeof(dir), "%s/%s/%s", f->queue_dir, topics[i], ids[k]);
			if (q)
				load_queue(f, q, dir);
		}
		f->any_lmq |= str_starts(str_of(topics[i]), "%LMQ%");
		free(ids);
	}
	free(topics);
	snprintf(dir, sizeof(dir), "%s/batchconsumequeue", f->dir);
	if (sys_list(dir, &f->batch, &f->batch_n) < 0)
		f->batch = NULL;
	files_sort_queues(f);
	return 0;
}

/* The file that holds byte b of the queue, or -1. */
static int64_t file_of(const struct mqstore_files *f, const struct fqueue *q, int64_t b)
{
	size_t lo = 0, hi = q->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (q->starts[mid] <= b)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > 0 && b - q->starts[lo - 1] < f->queue_bytes ? q->starts[lo - 1] : -1;
}

static int read_at(const char *path, uint8_t *p, size_t n, int64_t off)
{
	int fd = sys.open(path, O_RDONLY, 0);
	ssize_t got = 0;

	if (fd < 0)
		return fd;
	for (size_t have = 0; have < n; have += (size_t)got) {
		got = sys.pread(fd, p + have, n - have, off + (int64_t)have);
		if (got <= 0)
			break;
	}
	sys.close(fd);
	return got < 0 ? (int)got : 0;
}

int files_entry(struct mqstore_files *f, struct fqueue *q, int64_t off, struct mqstore_entry *e)
{
	int64_t b = off * CQ_ENTRY, start, n;
	char path[SEGMENT_PATH];
	const uint8_t *p;
	int rc;

	*e = (struct mqstore_entry){ 0 };
	if (off < 0 || off > INT64_MAX / CQ_ENTRY / 2)
		return 0;
	if (!q->window || b < q->win_from || b >= q->win_from + q->win_n) {
		start = file_of(f, q, b);
		if (start < 0)
			return 0;
		if (!q->window)
			q->window = mem_alloc(FQUEUE_WINDOW);
		n = start + f->queue_bytes - b;
		q->win_n = n < FQUEUE_WINDOW ? n : FQUEUE_WINDOW;
		q->win_from = b;
		memset(q->window, 0, FQUEUE_WINDOW);
		rc = read_at(files_queue_path(f, q, start, path), q->window, (size_t)q->win_n, b - start);
		if (rc < 0) {
			q->win_n = 0;
			return rc;
		}
	}
	p = q->window + (b - q->win_from);
	e->log_off = (int64_t)be64(p);
	e->size = (int32_t)be32(p + 8);
	e->tags_code = (int64_t)be64(p + 12);
	return 1;
}

/* Files of a queue's units are as long as each other: the first one's name tells in which an address lies. */
static char *unit_path(const struct mqstore_files *f, const struct fqueue *q, int64_t at, int64_t *start)
{
	char *dir = mem_printf("%s/consumequeue_ext/%.*s/%d", f->dir, (int)topic_length(q), q->topic, (int)q->id), *path = NULL;
	char **names, out[SEGMENT_PATH];
	size_t n;

	*start = -1;
	if (sys_list(dir, &names, &n) == 0) {
		for (size_t i = 0; i < n; i++) {
			int64_t from = segment_name(names[i]);

			if (from >= 0 && from <= at && from > *start)
				*start = from;
		}
		free(names);
		if (*start >= 0)
			path = mem_strdup(segment_path(dir, *start, out));
	}
	free(dir);
	return path;
}

bool files_unit(struct mqstore_files *f, const struct fqueue *q, int64_t address, int64_t *tags_code)
{
	int64_t at = address - INT64_MIN, start;
	char *path = unit_path(f, q, at, &start);

	if (!path)
		return false;
	if (!f->units.path || f->in_use || strcmp(path, f->units.path)) {
		free(f->units.path);
		free(f->units.p);
		f->units.path = path;
		f->units.p = NULL;
		f->units.n = 0;
		if (sys_read_file(path, UNITS_MAX, &f->units.p, &f->units.n) < 0)
			f->units.p = NULL;
	} else {
		free(path);
	}
	if (!f->units.p || at - start >= (int64_t)f->units.n)
		return false;
	if (!cqueue_unit_size((uint8_t *)f->units.p + (at - start), (int64_t)f->units.n - (at - start)))
		return false;
	*tags_code = (int64_t)be64(f->units.p + (at - start) + 2);
	return true;
}

int files_queue_file(struct mqstore_files *f, const struct fqueue *q, int64_t start, uint8_t **p, int64_t *used)
{
	char path[SEGMENT_PATH];
	int64_t n = f->queue_bytes;
	int rc;

	*p = mem_alloc((size_t)n);
	rc = read_at(files_queue_path(f, q, start, path), *p, (size_t)n, 0);
	while (n > 0 && (*p)[n - 1] == 0)
		n--;
	*used = (n + CQ_ENTRY - 1) / CQ_ENTRY * CQ_ENTRY;
	return rc;
}

int mqstore_files_queues(struct mqstore_files *f, mqstore_file_entry_cb *cb, void *arg, struct mq_error *err)
{
	char path[SEGMENT_PATH];
	struct fqueue *q, *next;
	int rc = 0;

	HASH_ITER(hh, f->queues, q, next)
		for (size_t i = 0; i < q->n && rc == 0; i++) {
			struct mqstore_file_entry e = { .topic = { q->topic, topic_length(q) }, .queue_id = q->id };
			int64_t used;
			uint8_t *p;

			rc = files_queue_file(f, q, q->starts[i], &p, &used);
			if (rc < 0)
				err_sys(err, rc, "read '%s'", files_queue_path(f, q, q->starts[i], path));
			for (int64_t at = 0; at < used && rc == 0; at += CQ_ENTRY) {
				e.off = (q->starts[i] + at) / CQ_ENTRY;
				cqueue_read(p + at, &e.e);
				rc = cb(arg, &e);
			}
			free(p);
		}
	return rc ? rc : files_batch_entries(f, cb, arg, err);
}
