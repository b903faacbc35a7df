/* files.c: the files of a store as they stand: found, measured, walked.  What of it is right is for check.c to say. */
#include "files.h"
#include "../base/err.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "lock.h"
#include "scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

enum { INDEX_NAME = 17 };

static struct misfit *misfit(struct mqstore_files *f, char *path, bool harmless, const char *text)
{
	struct misfit *m;

	f->misfits = mem_realloc(f->misfits, (f->misfits_n + 1) * sizeof(*f->misfits));
	m = &f->misfits[f->misfits_n++];
	*m = (struct misfit){ .path = path, .harmless = harmless };
	snprintf(m->text, sizeof(m->text), "%s", text);
	return m;
}

/* ---- The log --------------------------------------------------------------------------------------------------------- */

static void add_segment(struct segments *run, int64_t start, int64_t bytes)
{
	struct segment *g = mem_alloc(sizeof(*g));

	g->start = start;
	g->size = bytes;
	run->v = mem_realloc(run->v, (run->n + 1) * sizeof(*run->v));
	run->v[run->n++] = g;
}

/* Size that most files have: one that was cut short shall not decide. */
static int64_t usual_size(const char *dir, char **names, size_t n)
{
	char path[SEGMENT_PATH];
	int64_t usual = 0;
	struct stat st;
	size_t votes = 0;

	for (size_t i = 0; i < n; i++) {
		if (segment_name(names[i]) < 0 || sys.stat(segment_path(dir, segment_name(names[i]), path), &st) < 0)
			continue;
		if (st.st_size == usual) {
			votes++;
		} else if (votes == 0 && st.st_size > 0) {
			usual = st.st_size;
			votes = 1;
		} else if (votes > 0) {
			votes--;
		}
	}
	return usual;
}

static int load_log(struct mqstore_files *f, struct mq_error *err)
{
	struct segments *run = &f->log.run;
	char path[SEGMENT_PATH], **names, text[200];
	struct stat st;
	size_t n;
	int rc = sys_list(f->log_dir, &names, &n);

	if (rc < 0)
		return rc == -ENOENT ? err_set(err, MQ_ENOTFOUND, "no store here: '%s' is missing", f->log_dir) :
				       err_sys(err, rc, "list '%s'", f->log_dir);
	run->dir = mem_strdup(f->log_dir);
	run->max_maps = 64;
	run->keep = INT64_MAX;
	run->size = usual_size(f->log_dir, names, n);
	for (size_t i = 0; i < n; i++) {
		int64_t start = segment_name(names[i]);
		char *name = mem_printf("commitlog/%s", names[i]);

		snprintf(path, sizeof(path), "%s/%s", f->log_dir, names[i]);
		if (sys.stat(path, &st) < 0 || start < 0) {
			if (start < 0)
				misfit(f, name, true, "no segment, left alone");
			else
				free(name);
			continue;
		}
		if (st.st_size == run->size && run->n && start < segments_end(run)) {
			misfit(f, name, false, "begins inside of the segment before it: a start refuses");
			continue;
		}
		if (st.st_size != run->size) {
			snprintf(text, sizeof(text), "has %lld bytes, the others have %lld: a start refuses", (long long)st.st_size,
				 (long long)run->size);
			if (st.st_size == 0 && i + 1 == n) {
				misfit(f, name, true, "empty, removed by a start");
				continue;
			}
			misfit(f, name, false, text)->grow = st.st_size < run->size ? run->size : 0;
			if (st.st_size > 0 && st.st_size < run->size)
				add_segment(run, start, st.st_size);
			continue;
		}
		free(name);
		add_segment(run, start, st.st_size);
	}
	free(names);
	f->log.max = run->n ? run->v[run->n - 1]->start + run->v[run->n - 1]->size : 0;
	return 0;
}

/* ---- Queues ---------------------------------------------------------------------------------------------------------- */

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
			misfit(f, name, true, "no file of a queue, left alone");
			continue;
		}
		if (sys.stat(files_queue_path(f, q, start, path), &st) < 0) {
			free(name);
			continue;
		}
		if (f->queue_bytes == 0 && st.st_size > 0 && st.st_size % CQ_ENTRY == 0)
			f->queue_bytes = st.st_size;
		if (st.st_size == f->queue_bytes && st.st_size > 0 && start % f->queue_bytes == 0) {
			free(name);
			q->starts[q->n++] = start;
			f->queue_files++;
			continue;
		}
		snprintf(text, sizeof(text), "has %lld bytes and begins at %lld, the files of queues have %lld: cannot be read",
			 (long long)st.st_size, (long long)start, (long long)f->queue_bytes);
		if (st.st_size == 0 && i + 1 == n)
			misfit(f, name, true, "empty, removed by a start");
		else
			misfit(f, name, false, text)->queue = q;
	}
	free(names);
}

static int load_queues(struct mqstore_files *f, struct mq_error *err)
{
	char dir[SEGMENT_PATH], **topics, **ids;
	size_t n, m;
	int rc = sys_list(f->queue_dir, &topics, &n);

	if (rc < 0)
		return rc == -ENOENT ? 0 : err_sys(err, rc, "list '%s'", f->queue_dir);
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
	return rc;
}

/* ---- Index and checkpoint -------------------------------------------------------------------------------------------- */

static int load_index(struct mqstore_files *f, struct mq_error *err)
{
	struct mqstore_opt usual;
	char path[SEGMENT_PATH], **names;
	struct stat st;
	size_t n;
	int rc;

	mqstore_defaults(&usual);
	f->index = (struct index_files){
		.dir = mem_printf("%s/index", f->dir), .slots = usual.index_slots, .entries = usual.index_entries, .read_only = true,
		.adopt_sizes = true, .told = true,
	};
	rc = sys_list(f->index.dir, &names, &n);
	if (rc < 0)
		return rc == -ENOENT ? 0 : err_sys(err, rc, "list '%s'", f->index.dir);
	rc = index_files_load(&f->index, err);
	for (size_t i = 0; i < n && rc == 0; i++) {
		bool open = false;

		for (size_t k = 0; k < f->index.n; k++)
			open |= strcmp(strrchr(f->index.v[k]->path, '/') + 1, names[i]) == 0;
		if (open)
			continue;
		snprintf(path, sizeof(path), "%s/%s", f->index.dir, names[i]);
		if (strlen(names[i]) != INDEX_NAME)
			misfit(f, mem_printf("index/%s", names[i]), true, "no index file, left alone");
		else if (sys.stat(path, &st) == 0 && st.st_size == 0)
			misfit(f, mem_printf("index/%s", names[i]), true, "empty, removed by a start");
		else
			misfit(f, mem_printf("index/%s", names[i]), false, "cannot be read: slots and entries do not fit its size");
	}
	f->index_there = n > 0;
	free(names);
	return rc;
}

int mqstore_files_index(struct mqstore_files *f, mqstore_file_index_cb *cb, void *arg, struct mq_error *err)
{
	int rc = 0;

	(void)err;
	for (size_t i = 0; i < f->index.n && rc == 0; i++) {
		struct index_file *x = f->index.v[i];
		struct mqstore_file_index e = {
			.file = strrchr(x->path, '/') + 1, .slots = x->slots, .entries = x->entries,
		};

		index_file_look(x);
		e.begin_ms = x->begin_ms;
		e.end_ms = x->end_ms;
		e.begin_off = x->begin_off;
		e.end_off = x->end_off;
		e.used_slots = x->used_slots;
		e.count = x->count;
		rc = cb(arg, &e);
		for (e.n = 1; e.n < e.count && rc == 0; e.n++) {
			const uint8_t *p = x->map + INDEX_HEADER + (size_t)x->slots * INDEX_SLOT + (size_t)e.n * INDEX_ENTRY;

			e.hash = (int32_t)be32(p);
			e.log_off = (int64_t)be64(p + 4);
			e.seconds = (int32_t)be32(p + 12);
			e.previous = (int32_t)be32(p + 16);
			rc = cb(arg, &e);
		}
	}
	return rc;
}

/* ---- Opening --------------------------------------------------------------------------------------------------------- */

int mqstore_files_open(struct mqstore_files **out, const struct mqstore_opt *opt, struct mq_error *err)
{
	struct mqstore_files *f = mem_alloc(sizeof(*f));
	char path[SEGMENT_PATH];
	struct stat st;
	int rc;

	*out = NULL;
	f->check.fd = -1;
	f->dir = mem_strdup(opt->dir ? opt->dir : "");
	f->log_dir = opt->log_dir ? mem_strdup(opt->log_dir) : mem_printf("%s/commitlog", f->dir);
	f->queue_dir = mem_printf("%s/consumequeue", f->dir);
	snprintf(path, sizeof(path), "%s/abort", f->dir);
	f->abort = sys.stat(path, &st) == 0;
	snprintf(path, sizeof(path), "%s/lock", f->dir);
	f->in_use = lock_held(path);
	snprintf(path, sizeof(path), "%s/checkpoint", f->dir);
	f->check_bytes = sys.stat(path, &st) == 0 ? st.st_size : -1;
	/* Where the log ends first: a writer that is at work is then ahead in the queues, never behind. */
	rc = load_log(f, err);
	if (rc == 0)
		rc = checkpoint_open(&f->check, path, true, err);
	if (rc == 0)
		rc = load_queues(f, err);
	if (rc == 0)
		rc = load_index(f, err);
	if (rc < 0) {
		mqstore_files_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

void mqstore_files_close(struct mqstore_files *f)
{
	struct fqueue *q, *next;

	if (!f)
		return;
	HASH_ITER(hh, f->queues, q, next) {
		HASH_DEL(f->queues, q);
		free(q->topic);
		free(q->starts);
		free(q->window);
		free(q->faults);
		free(q);
	}
	for (size_t i = 0; i < f->misfits_n; i++)
		free(f->misfits[i].path);
	free(f->misfits);
	free(f->batch);
	index_files_close(&f->index);
	segments_close(&f->log.run);
	free(f->dir);
	free(f->log_dir);
	free(f->queue_dir);
	free(f);
}

void mqstore_files_info(struct mqstore_files *f, struct mqstore_files_info *info)
{
	*info = (struct mqstore_files_info){
		.log_min = segments_min(&f->log.run), .log_max = f->log.max, .segments = (int64_t)f->log.run.n, .queues = f->queue_n,
		.queue_files = f->queue_files, .index_files = (int64_t)f->index.n, .abort = f->abort, .in_use = f->in_use,
		.checkpoint_bytes = f->check_bytes, .log_ms = f->check.log_ms, .queue_ms = f->check.queue_ms,
		.index_ms = f->check.index_ms, .master_flushed_off = f->check.master_flushed_off, .confirm_off = f->check.confirm_off,
	};
	for (size_t i = 0; i < f->log.run.n; i++)
		info->log_bytes += f->log.run.v[i]->size;
}
