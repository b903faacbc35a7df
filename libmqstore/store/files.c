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

struct misfit *files_misfit(struct mqstore_files *f, char *path, bool harmless, const char *text)
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

static void sizes_add(struct sizes *s, int64_t size)
{
	int i = 0;

	while (i < s->n && s->size[i] != size)
		i++;
	if (size <= 0 || i == SIZES)
		return;
	s->n = i == s->n ? i + 1 : s->n;
	s->size[i] = size;
	s->count[i]++;
	s->seen++;
}

int64_t files_usual_size(const struct sizes *s)
{
	int best = 0;

	for (int i = 1; i < s->n; i++)
		if (s->count[i] > s->count[best] || (s->count[i] == s->count[best] && s->size[i] > s->size[best]))
			best = i;
	return s->n ? s->size[best] : 0;
}

void files_add_sizes(struct sizes *s, const char *dir, char **names, size_t n)
{
	char path[SEGMENT_PATH];
	struct stat st;

	for (size_t i = 0; i < n; i++)
		if (segment_name(names[i]) >= 0 && sys.stat(segment_path(dir, segment_name(names[i]), path), &st) == 0)
			sizes_add(s, st.st_size);
}

static int load_log(struct mqstore_files *f, struct mq_error *err)
{
	struct segments *run = &f->log.run;
	char path[SEGMENT_PATH], **names, text[200];
	struct sizes sizes = { 0 };
	struct stat st;
	size_t n;
	int rc = sys_list(f->log_dir, &names, &n);

	if (rc < 0)
		return rc == -ENOENT ? err_set(err, MQ_ENOTFOUND, "no store here: '%s' is missing", f->log_dir) :
				       err_sys(err, rc, "list '%s'", f->log_dir);
	run->dir = mem_strdup(f->log_dir);
	run->max_maps = 64;
	run->keep = INT64_MAX;
	files_add_sizes(&sizes, f->log_dir, names, n);
	run->size = files_usual_size(&sizes);
	for (size_t i = 0; i < n; i++) {
		int64_t start = segment_name(names[i]);
		char *name = mem_printf("commitlog/%s", names[i]);

		snprintf(path, sizeof(path), "%s/%s", f->log_dir, names[i]);
		if (sys.stat(path, &st) < 0 || start < 0) {
			if (start < 0)
				files_misfit(f, name, true, "no segment, left alone");
			else
				free(name);
			continue;
		}
		if (st.st_size == run->size && run->n && start < segments_end(run)) {
			files_misfit(f, name, false, "begins inside of the segment before it: a start refuses");
			continue;
		}
		if (st.st_size != run->size) {
			snprintf(text, sizeof(text), "has %lld bytes, the others have %lld: a start refuses", (long long)st.st_size,
				 (long long)run->size);
			if (st.st_size == 0 && i + 1 == n) {
				files_misfit(f, name, true, "empty, removed by a start");
				continue;
			}
			files_misfit(f, name, false, text)->grow = st.st_size < run->size ? run->size : 0;
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
			files_misfit(f, mem_printf("index/%s", names[i]), true, "no index file, left alone");
		else if (sys.stat(path, &st) == 0 && st.st_size == 0)
			files_misfit(f, mem_printf("index/%s", names[i]), true, "empty, removed by a start");
		else
			files_misfit(f, mem_printf("index/%s", names[i]), false, "cannot be read: slots and entries do not fit its size");
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
		rc = files_load_queues(f, err);
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
	free(f->units.path);
	free(f->units.p);
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
