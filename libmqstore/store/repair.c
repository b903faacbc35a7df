/* repair.c: mend what a check has found.
 *
 * The log decides.  What is in doubt in queues and index is saved and taken away; then the store is opened as after a crash with
 * nothing known to be on the disk, so that recovery walks the whole log and writes it again.  So there is one program that
 * derives, and every step on the way leaves what any start, ours or the Java broker's, recovers from. */
#include "../base/err.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "check.h"
#include "lock.h"
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { COPY_BYTES = 256 * 1024 };

struct repair {
	const struct mqstore_repair_opt *how;
	struct mqstore_files *f;
	struct check check;
	struct mqstore_checked sum;
	struct mq_error *err;
	int64_t mendable;
	int acts;
	char **deleted;         /* topics that are not to come back */
	size_t deleted_n;
};

static void act(struct repair *r, const char *fmt, ...) MQ_PRINTF(2, 3);

static void act(struct repair *r, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->acts++;
	if (r->how->step)
		r->how->step(r->how->arg, text);
}

/* ---- Saving ------------------------------------------------------------------------------------------------------------ */

static int make_parent(const char *path)
{
	char dir[SEGMENT_PATH], *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	return sys_mkdir_all(dir);
}

/* Bytes [from, to) of a file, as SAVE_DIR/NAME, known to be on the disk. */
static int save_part(struct repair *r, const char *path, int64_t from, int64_t to, const char *name)
{
	char *copy = mem_printf("%s/%s", r->how->save_dir, name), *buf = mem_alloc(COPY_BYTES), *slash;
	int in = sys.open(path, O_RDONLY, 0), out = -1, rc = in < 0 ? in : make_parent(copy);

	if (rc == 0)
		rc = out = sys.open(copy, O_WRONLY | O_CREAT | O_EXCL, 0644);
	for (int64_t at = from; rc >= 0 && at < to;) {
		ssize_t got = sys.pread(in, buf, (size_t)(to - at < COPY_BYTES ? to - at : COPY_BYTES), at);

		if (got <= 0) {
			rc = (int)got;
			break;
		}
		/* Zeros stay a hole: index files are large and mostly empty. */
		if (buf[0] || memcmp(buf, buf + 1, (size_t)got - 1) != 0)
			rc = sys_write_all(out, buf, (size_t)got, at - from);
		at += got;
	}
	if (rc >= 0)
		rc = sys.ftruncate(out, to - from);
	if (rc >= 0)
		rc = sys.fsync(out);
	if (out >= 0)
		sys.close(out);
	if (in >= 0)
		sys.close(in);
	slash = strrchr(copy, '/');
	*slash = '\0';
	if (rc >= 0)
		rc = sys_sync_dir(copy);
	*slash = '/';
	if (rc < 0)
		err_sys(r->err, rc, "save '%s' as '%s'", path, copy);
	free(copy);
	free(buf);
	return rc < 0 ? rc : 0;
}

static int save_file(struct repair *r, const char *path, const char *name)
{
	struct stat st;
	int rc = sys.stat(path, &st);

	return rc < 0 ? err_sys(r->err, rc, "look at '%s'", path) : save_part(r, path, 0, st.st_size, name);
}

/* A whole directory changes its place. */
static int save_dir(struct repair *r, const char *path, const char *name)
{
	char *to = mem_printf("%s/%s", r->how->save_dir, name), *slash;
	int rc = make_parent(to);

	if (rc == 0)
		rc = sys.rename(path, to);
	slash = strrchr(to, '/');
	*slash = '\0';
	if (rc == 0)
		rc = sys_sync_dir(to);
	*slash = '/';
	if (rc < 0)
		err_sys(r->err, rc, "move '%s' to '%s'", path, to);
	free(to);
	return rc;
}

/* ---- Cutting ----------------------------------------------------------------------------------------------------------- */

static int zero(struct repair *r, const char *path, int64_t from, int64_t to)
{
	char *zeros = mem_alloc(COPY_BYTES);
	int fd = sys.open(path, O_WRONLY, 0), rc = fd < 0 ? fd : 0;

	for (int64_t at = from; rc == 0 && at < to; at += COPY_BYTES)
		rc = sys_write_all(fd, zeros, (size_t)(to - at < COPY_BYTES ? to - at : COPY_BYTES), at);
	if (rc == 0)
		rc = sys.fsync(fd);
	if (fd >= 0)
		sys.close(fd);
	free(zeros);
	return rc < 0 ? err_sys(r->err, rc, "write '%s'", path) : 0;
}

static int set_size(struct repair *r, const char *path, int64_t size)
{
	int fd = sys.open(path, O_WRONLY, 0), rc = fd < 0 ? fd : sys.ftruncate(fd, size);

	if (rc == 0)
		rc = sys.fsync(fd);
	if (fd >= 0)
		sys.close(fd);
	return rc < 0 ? err_sys(r->err, rc, "set the size of '%s'", path) : 0;
}

static int mend_segments(struct repair *r)
{
	int rc = 0;

	for (size_t i = 0; i < r->f->misfits_n && rc == 0; i++) {
		const struct misfit *m = &r->f->misfits[i];
		char *path;

		if (!m->grow)
			continue;
		act(r, "%s was cut short: given its length of %lld bytes again", m->path, (long long)m->grow);
		path = mem_printf("%s%s", r->f->log_dir, strrchr(m->path, '/'));
		if (!r->how->dry_run)
			rc = set_size(r, path, m->grow);
		free(path);
	}
	for (size_t i = 0; i < r->check.stretches_n && rc == 0; i++) {
		const struct stretch *t = &r->check.stretches[i];
		struct segment *g = segments_at(&r->f->log.run, t->from);
		char path[SEGMENT_PATH], name[64];

		if (t->kind != MQSTORE_TORN || !g)
			continue;
		snprintf(name, sizeof(name), "commitlog/%020lld", (long long)t->from);
		act(r, "%lld bytes at %lld behind the last whole message cut, saved as %s", (long long)(t->to - t->from),
		    (long long)t->from, name);
		if (r->how->dry_run)
			continue;
		segment_path(r->f->log_dir, g->start, path);
		rc = save_part(r, path, t->from - g->start, t->to - g->start, name);
		if (rc == 0)
			rc = zero(r, path, t->from - g->start, t->to - g->start);
	}
	return rc;
}

/* Every entry from number q->bad on goes. */
static int cut_queue(struct repair *r, struct fqueue *q)
{
	int64_t b = q->bad * CQ_ENTRY, fb = r->f->queue_bytes;
	char path[SEGMENT_PATH], name[600];
	int rc = 0;

	for (size_t i = q->n; i-- > 0 && rc == 0 && q->starts[i] + fb > b;) {
		int64_t start = q->starts[i], from = b > start ? b - start : 0;

		files_queue_path(r->f, q, start, path);
		snprintf(name, sizeof(name), "consumequeue/%s/%020lld", q->topic, (long long)start);
		rc = q->lost ? 0 : save_file(r, path, name);
		/* The first file stays, if only to keep the numbers. */
		if (rc == 0 && from == 0 && i > 0) {
			rc = sys.unlink(path);
			if (rc < 0)
				err_sys(r->err, rc, "remove '%s'", path);
		} else if (rc == 0) {
			rc = zero(r, path, from, fb);
		}
	}
	return rc;
}

/* Recovery puts others in the place of entries of damaged messages. */
static int save_queue(struct repair *r, const struct fqueue *q)
{
	char path[SEGMENT_PATH], name[600];
	int rc = 0;

	act(r, "entries of queue %s whose messages are damaged give way, the old files saved as consumequeue/%s", q->topic, q->topic);
	for (size_t i = 0; i < q->n && rc == 0 && !r->how->dry_run; i++) {
		snprintf(name, sizeof(name), "consumequeue/%s/%020lld", q->topic, (long long)q->starts[i]);
		rc = save_file(r, files_queue_path(r->f, q, q->starts[i], path), name);
	}
	return rc;
}

static int mend_queue(struct repair *r, struct fqueue *q)
{
	char path[SEGMENT_PATH], name[600];
	bool all;
	int rc = 0;

	if (q->bad == INT64_MAX)
		return q->lost ? save_queue(r, q) : 0;
	if (!q->there) {
		act(r, "queue %s is made again from the log", q->topic);
		return 0;
	}
	if (q->bad < q->gone_end)
		q->bad = q->gone_end;
	all = q->n == 0 || q->bad * CQ_ENTRY < q->starts[0];
	for (size_t i = 0; i < r->f->misfits_n; i++)
		all |= r->f->misfits[i].queue == q && !r->f->misfits[i].harmless;
	if (q->lost && !all)
		rc = save_queue(r, q);
	act(r, "queue %s is written again from the log from entry %lld on, the old files saved as consumequeue/%s", q->topic,
	    (long long)(all ? 0 : q->bad), q->topic);
	if (rc < 0 || r->how->dry_run)
		return rc;
	if (!all)
		return cut_queue(r, q);
	snprintf(path, sizeof(path), "%.3000s/%s", r->f->queue_dir, q->topic);
	snprintf(name, sizeof(name), "consumequeue/%s", q->topic);
	return save_dir(r, path, name);
}

static int mend_queues(struct repair *r)
{
	struct fqueue *q, *next;
	int rc = 0;

	HASH_ITER(hh, r->f->queues, q, next)
		if (rc == 0)
			rc = mend_queue(r, q);
	return rc;
}

/* ---- Making anew --------------------------------------------------------------------------------------------------------- */

/* From here on every start takes the store for one that crashed before anything was flushed. */
static int forget_flushes(struct repair *r)
{
	char path[SEGMENT_PATH];
	int fd, rc;

	/* Empty: nothing that the stop before says of itself is believed. */
	snprintf(path, sizeof(path), "%s/abort", r->f->dir);
	fd = sys.open(path, O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		return err_sys(r->err, fd, "make '%s'", path);
	rc = sys.ftruncate(fd, 0);
	if (rc == 0)
		rc = sys.fsync(fd);
	sys.close(fd);
	if (rc == 0)
		rc = sys_sync_dir(r->f->dir);
	if (rc < 0)
		return err_sys(r->err, rc, "write '%s'", path);
	if (r->f->check_bytes < 0)
		return 0;
	snprintf(path, sizeof(path), "%s/checkpoint", r->f->dir);
	rc = save_file(r, path, "checkpoint");
	if (rc == 0)
		rc = zero(r, path, CHECKPOINT_LOG_MS, CHECKPOINT_MASTER_FLUSHED);
	if (rc == 0)
		rc = zero(r, path, CHECKPOINT_CONFIRM, CHECKPOINT_WHOLE + 8);
	return rc;
}

static void note_deleted(struct repair *r)
{
	struct fqueue *q, *next;

	HASH_ITER(hh, r->f->queues, q, next)
		if (!q->there && q->listed > 0 && q->bad == INT64_MAX) {
			r->deleted = mem_realloc(r->deleted, (r->deleted_n + 1) * sizeof(*r->deleted));
			r->deleted[r->deleted_n++] = mem_strndup(q->topic, (size_t)(strrchr(q->topic, '/') - q->topic));
		}
}

static int open_again(struct repair *r, const struct mqstore_opt *opt)
{
	struct mqstore *s;
	int rc = mqstore_open(&s, opt, r->err), rc2;

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < r->deleted_n && rc == 0; i++)
		rc = mqstore_delete_topic(s, str_of(r->deleted[i]), r->err);
	for (int64_t left = r->sum.records / 1000 + 100; rc == 0 && s->index && index_behind(s->index) >= 0; left--) {
		if (left == 0)
			rc = err_set(r->err, MQ_EFULL, "the index in '%s' cannot be written: is the disk full?", s->dir);
		index_tend(s->index);
	}
	rc2 = mqstore_close(s, rc < 0 ? NULL : r->err);
	return rc < 0 ? rc : rc2;
}

/* ---- All of it --------------------------------------------------------------------------------------------------------- */

static void on_finding(void *arg, const struct mqstore_finding *f)
{
	struct repair *r = arg;

	r->mendable += f->mendable && f->grade != MQSTORE_NOTE;
}

static bool topic_exists(void *arg, struct mq_str topic)
{
	struct repair *r = arg;

	return r->how->topic_exists && r->how->topic_exists(r->how->arg, topic);
}

static int hopeless(struct repair *r)
{
	for (size_t i = 0; i < r->f->misfits_n; i++) {
		const struct misfit *m = &r->f->misfits[i];

		if (!m->harmless && !m->grow && str_starts(str_of(m->path), "commitlog/"))
			return err_set(r->err, MQ_EMISMATCH, "'%s/%s' %s: move it away first", r->f->dir, m->path, m->text);
	}
	return 0;
}

static int mend(struct repair *r)
{
	char path[SEGMENT_PATH];
	struct stat st;
	int rc = hopeless(r);

	if (rc == 0 && sys.stat(r->how->save_dir, &st) == 0)
		rc = err_set(r->err, MQ_EINVAL, "'%s' exists: what is cut is saved in a directory of its own", r->how->save_dir);
	if (rc == 0 && !r->how->dry_run) {
		rc = sys_mkdir_all(r->how->save_dir);
		if (rc < 0)
			err_sys(r->err, rc, "make '%s'", r->how->save_dir);
		if (rc == 0)
			rc = forget_flushes(r);
	}
	if (rc == 0)
		rc = mend_segments(r);
	if (rc == 0)
		rc = mend_queues(r);
	if (rc == 0 && r->check.index_bad) {
		act(r, "the index is made again from the log, the old one saved as index");
		snprintf(path, sizeof(path), "%s/index", r->f->dir);
		if (!r->how->dry_run)
			rc = save_dir(r, path, "index");
	}
	for (size_t i = 0; i < r->f->index.n && rc == 0 && !r->check.index_bad; i++) {
		const struct index_file *x = r->f->index.v[i];
		char name[64];

		if (index_file_empty(x) || x->end_off < r->check.end)
			continue;
		snprintf(name, sizeof(name), "index/%s", strrchr(x->path, '/') + 1);
		act(r, "entries of %s beyond the end of the log taken back, the old file saved as %s", name, name);
		if (!r->how->dry_run)
			rc = save_file(r, x->path, name);
	}
	return rc;
}

static int look(struct repair *r, const struct mqstore_opt *opt)
{
	const struct mqstore_check_opt look = { .finding = on_finding, .topic_exists = topic_exists, .arg = r };
	int rc = mqstore_files_open(&r->f, opt, r->err);

	if (rc < 0)
		return rc;
	if (r->how->dry_run && r->f->in_use)
		return err_set(r->err, MQ_EBUSY, "'%s' is in use by a broker: stop it first", r->f->dir);
	/* The lock is ours. */
	r->f->in_use = false;
	r->check = (struct check){ .f = r->f, .opt = &look, .sum = &r->sum };
	rc = check_run(&r->check, r->err);
	r->check.opt = NULL;
	return rc;
}

int mqstore_repair(const struct mqstore_opt *opt, const struct mqstore_repair_opt *how, struct mq_error *err)
{
	struct repair r = { .how = how, .err = err };
	struct mqstore_opt again = *opt;
	char path[SEGMENT_PATH];
	struct stat st;
	int lock = -1, rc = 0;

	again.read_only = false;
	again.adopt_sizes = true;
	snprintf(path, sizeof(path), "%s/commitlog", opt->dir);
	if (sys.stat(opt->log_dir ? opt->log_dir : path, &st) < 0)
		return err_set(err, MQ_ENOTFOUND, "no store here: '%s' is missing", opt->log_dir ? opt->log_dir : path);
	snprintf(path, sizeof(path), "%s/lock", opt->dir);
	if (!how->dry_run)
		rc = lock_take(path, &lock, err);
	if (rc == 0)
		rc = look(&r, opt);
	if (rc == 0 && r.mendable) {
		again.index_enable = r.f->index_there;
		if (r.f->index.n) {
			again.index_slots = r.f->index.v[0]->slots;
			again.index_entries = r.f->index.v[0]->entries;
		}
		note_deleted(&r);
		rc = mend(&r);
	}
	check_done(&r.check);
	mqstore_files_close(r.f);
	lock_release(lock);
	if (rc == 0 && r.mendable && !how->dry_run) {
		rc = open_again(&r, &again);
		if (rc < 0)
			err_wrap(err, "repair '%s'", opt->dir);
	}
	if (rc == 0 && r.mendable)
		act(&r, "recovered as after a crash: the log read from its start, the checkpoint written");
	for (size_t i = 0; i < r.deleted_n; i++)
		free(r.deleted[i]);
	free(r.deleted);
	return rc < 0 ? rc : r.acts;
}
