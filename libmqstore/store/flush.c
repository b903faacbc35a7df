/* flush.c: begin, run, end: what is dirty is noted by the owner, synced by any thread, taken as done by the owner.
 *
 * Queues wait in a list, the one that became dirty first at its head.  A job takes some from there; when all that were in the
 * list at one moment are done, every entry made before that moment is on the disk (a pass), and the checkpoint moves to the
 * newest message of that moment.  So a hundred thousand dirty queues cost many small jobs and never one that a sender waits for. */
#include "flush.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "cqueue_ext.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "store"
/* A pass over the queues begins so long after the last.  Writing them takes so much of a job, and no more than QUEUES_HURRY_US of one
 * for whose end somebody waits. */
enum { PASS_EVERY_MS = 5000, QUEUES_US = 200000, QUEUES_HURRY_US = 20000 };
/* More files than QUEUES_AT_ONCE are synced by one call for all of the file system.  Each fdatasync() is a transaction of the file
 * system's own: 0.4 to 7 ms on the disks that were measured (ext4), 1 to 4 s for 1,000 files, where syncfs() takes 20 to 40 ms.
 * Fewer files are not worth it to write what others have left in memory, the index above all. */
enum { PAGE = 4096, QUEUES_MIN = 2048, QUEUES_PART = 16, QUEUES_AT_ONCE = 16 };
enum mode { LOG_ONLY, SOME, EVERYTHING };

struct log_range {
	struct segment *g;
	int64_t from, to;       /* within the segment */
	bool fresh;
};

struct queue_range {
	struct mqstore_queue *q;
	int64_t from, to;       /* to be on the disk */
	int64_t write_from;     /* from here on to be written first: a copy of the queue's buffer */
	uint8_t *bytes;
	bool name;
	bool done;
	bool cancelled;         /* under job->guard: q is deleted, nothing is written any more */
};

struct flush_job {
	const char *log_dir, *queue_dir;
	struct log_range *log;
	struct queue_range *queue;
	size_t log_n, queue_n;
	pthread_mutex_t guard;  /* held by the thread while it writes a queue */
	int64_t log_to;
	struct index_flush index;
	bool indexed;           /* the index was asked */
	struct checkpoint was, check;
	bool save, pass_done;
	bool full;              /* entries could not be written for want of room: they stay in memory */
	bool bounded;           /* leave queues for the next job when it takes long */
	bool hurry;             /* set while it runs: somebody waits for its end */
	struct segment **doomed;
	size_t doomed_n;
	int rc;
	struct mq_error err;
};

static void note_log(struct mqstore *s, struct flush_job *j)
{
	struct commitlog *log = &s->log;
	int64_t at = log->flushed;

	j->log_to = log->max;
	while (at < log->max) {
		struct segment *g = segments_at(&log->run, at);
		int64_t end;

		if (!g) {
			g = segments_behind(&log->run, at + 1);
			if (!g)
				break;
			at = g->start;
		}
		end = g->start + g->size;
		j->log = mem_realloc(j->log, (j->log_n + 1) * sizeof(*j->log));
		j->log[j->log_n++] = (struct log_range){ g, at - g->start, (end < log->max ? end : log->max) - g->start, g->fresh };
		g->pins++;
		at = end;
	}
}

static struct queue_range range_of(struct mqstore_queue *q)
{
	struct queue_range r = { .q = q, .from = q->flushed, .to = q->pos, .write_from = q->written, .name = !q->named };

	cqueue_ext_write_out(q);
	if (q->written < q->pos) {
		r.bytes = mem_alloc((size_t)(q->pos - q->written));
		memcpy(r.bytes, q->buf + (q->written - q->buf_from), (size_t)(q->pos - q->written));
		r.name |= cqueue_makes_file(q, q->written, q->pos);
	}
	return r;
}

static void note_queues(struct mqstore *s, struct flush_job *j, enum mode mode)
{
	struct cqueues *c = &s->queues;
	int64_t n = c->dirty_n / QUEUES_PART;
	struct mqstore_queue *q;

	if (s->pass_target < 0 && mode == SOME && clock_mono_us() / 1000 - s->pass_end_ms < PASS_EVERY_MS)
		return;
	if (s->pass_target < 0) {
		s->pass_target = c->dirtied;
		s->pass_ms = s->log.last_ms;
		s->pass_off = s->log.last_off;
	}
	n = n < QUEUES_MIN ? QUEUES_MIN : n;
	n = mode == EVERYTHING || n > c->dirty_n ? c->dirty_n : n;
	j->queue = n ? mem_alloc((size_t)n * sizeof(*j->queue)) : NULL;
	while ((int64_t)j->queue_n < n && (q = TAILQ_FIRST(&c->dirty))) {
		TAILQ_REMOVE(&c->dirty, q, to_flush);
		c->dirty_n--;
		q->dirty = false;
		j->queue[j->queue_n++] = range_of(q);
	}
	j->bounded = mode == SOME;
	j->pass_done = c->flushed + (int64_t)j->queue_n >= s->pass_target;
}

static void job_free(struct flush_job *j)
{
	for (size_t i = 0; i < j->queue_n; i++)
		free(j->queue[i].bytes);
	pthread_mutex_destroy(&j->guard);
	free(j->log);
	free(j->queue);
	free(j);
}

static int begin(struct mqstore *s, enum mode mode, struct mqstore_flush *job)
{
	struct checkpoint was = s->check;
	struct flush_job *j;

	assert(!s->job);
	if (s->opt.read_only || s->broken)
		return s->broken ? MQ_EBROKEN : MQ_ENOTFOUND;
	if (mode == LOG_ONLY && s->log.flushed == s->log.max && !s->log.run.doomed_n)
		return MQ_ENOTFOUND;
	j = mem_alloc(sizeof(*j));
	pthread_mutex_init(&j->guard, NULL);
	j->log_dir = s->log.run.dir;
	j->queue_dir = s->queue_dir;
	commitlog_write_out(&s->log);
	note_log(s, j);
	j->was = j->check = s->check;
	j->check.log_ms = s->log.last_ms > was.log_ms ? s->log.last_ms : was.log_ms;
	if (mode != LOG_ONLY) {
		note_queues(s, j, mode);
		j->indexed = s->index != NULL;
		if (j->indexed)
			index_flush_begin(s->index, mode == EVERYTHING, &j->index);
		if (j->pass_done && !s->check_queues) {
			j->check.queue_ms = s->pass_ms > was.queue_ms ? s->pass_ms : was.queue_ms;
			j->check.confirm_off = j->check.whole_off = s->pass_off < 0 ? 0 : s->pass_off;
		}
		j->save = j->check.log_ms != was.log_ms || j->check.queue_ms != was.queue_ms ||
			  j->check.confirm_off != was.confirm_off || j->index.n > 0;
	}
	j->doomed = segments_take_doomed(&s->log.run, &j->doomed_n);
	if (!j->log_n && !j->queue_n && !j->save && !j->doomed_n && !j->index.doomed_n) {
		if (j->indexed)
			index_flush_end(s->index, &j->index, NULL);
		s->pass_target = mode != LOG_ONLY && j->pass_done ? -1 : s->pass_target;
		job_free(j);
		return MQ_ENOTFOUND;
	}
	s->job = j;
	job->impl = j;
	return 0;
}

int mqstore_flush_begin(struct mqstore *s, bool all, struct mqstore_flush *job)
{
	return begin(s, all ? SOME : LOG_ONLY, job);
}

void mqstore_flush_hurry(struct mqstore_flush *job)
{
	struct flush_job *j = job->impl;

	__atomic_store_n(&j->hurry, true, __ATOMIC_RELAXED);
}

static int sync_log(struct flush_job *j)
{
	char path[SEGMENT_PATH];
	int rc = 0;

	for (size_t i = 0; i < j->log_n && rc == 0; i++) {
		struct log_range *r = &j->log[i];
		int64_t from = r->from / PAGE * PAGE;

		segment_path(j->log_dir, r->g->start, path);
		rc = r->fresh ? segment_file_sync(path, true) : sys.msync(r->g->p + from, (size_t)(r->to - from));
		if (rc < 0)
			err_sys(&j->err, rc, "flush '%s'", path);
	}
	return rc;
}

static int write_queue(struct flush_job *j, struct queue_range *r)
{
	int rc = 0;

	pthread_mutex_lock(&j->guard);
	if (r->bytes && !r->cancelled)
		rc = cqueue_write(r->q, r->write_from, r->to, r->bytes);
	pthread_mutex_unlock(&j->guard);
	return rc;
}

/* So many files are on the disk sooner when all of the file system is. */
static int sync_all_files(struct flush_job *j)
{
	int fd = sys.open(j->queue_dir, O_RDONLY | O_DIRECTORY, 0), rc;

	if (fd < 0)
		return err_sys(&j->err, fd, "open '%s'", j->queue_dir);
	rc = sys.syncfs(fd);
	sys.close(fd);
	for (size_t i = 0; i < j->queue_n; i++)
		j->queue[i].done &= rc == 0;
	return rc < 0 ? err_sys(&j->err, rc, "flush the file system of '%s'", j->queue_dir) : 0;
}

static bool long_enough(const struct flush_job *j, int64_t begin_us)
{
	int64_t us = j->bounded ? clock_mono_us() - begin_us : 0;

	return us > QUEUES_US || (us > QUEUES_HURRY_US && __atomic_load_n(&j->hurry, __ATOMIC_RELAXED));
}

static int sync_queues(struct flush_job *j)
{
	bool at_once = j->queue_n > QUEUES_AT_ONCE;
	int64_t begin = clock_mono_us();
	char dir[SEGMENT_PATH];
	int rc = 0;

	for (size_t i = 0; i < j->queue_n && rc == 0; i++) {
		struct queue_range *r = &j->queue[i];

		if (long_enough(j, begin))
			break;
		rc = write_queue(j, r);
		if (rc == MQ_EFULL) {
			/* No harm done: the log holds all that the entries say. */
			j->full = true;
			rc = 0;
			break;
		}
		if (rc == 0 && !at_once)
			rc = cqueue_sync(r->q, r->from, r->to, r->name);
		if (rc < 0)
			err_sys(&j->err, rc, "flush queue '%s'", cqueue_dir(r->q, dir));
		r->done = rc == 0;
	}
	return rc == 0 && at_once ? sync_all_files(j) : rc;
}

static bool all_done(const struct flush_job *j)
{
	for (size_t i = 0; i < j->queue_n; i++)
		if (!j->queue[i].done && !j->queue[i].cancelled)
			return false;
	return true;
}

void mqstore_flush_run(struct mqstore_flush *job)
{
	struct flush_job *j = job->impl;

	j->rc = sync_log(j);
	if (j->rc == 0)
		j->rc = sync_queues(j);
	if (j->rc == 0 && j->index.n) {
		index_flush_run(&j->index);
		if (j->index.rc < 0)
			j->rc = err_sys(&j->err, j->index.rc, "flush the index");
		else if (j->index.full_ms > j->check.index_ms)
			j->check.index_ms = j->index.full_ms;
	}
	j->pass_done &= all_done(j);
	if (j->rc == 0 && !j->pass_done) {
		j->check.queue_ms = j->was.queue_ms;
		j->check.confirm_off = j->was.confirm_off;
		j->check.whole_off = j->was.whole_off;
	}
	if (j->rc == 0 && j->save)
		j->rc = checkpoint_save(&j->check, &j->err);
	segments_bury(j->doomed, j->doomed_n);
	j->doomed = NULL;
	index_flush_bury(&j->index);
}

static void queue_done(struct queue_range *r)
{
	struct mqstore_queue *q = r->q;

	if (r->cancelled)
		return;
	if (q->written < r->to)
		q->written = r->to;
	if (q->flushed < r->to)
		q->flushed = r->to;
	q->made = true;
	if (r->name && (q->written - 1) / q->all->file_bytes == (r->to - 1) / q->all->file_bytes)
		q->named = true;
	/* Memory is for queues that are written to; half of what may be used is left to them. */
	if (q->written == q->pos && q->all->buf_bytes > q->all->buf_max / 2)
		cqueue_drop_buf(q);
}

/* It was not this one's turn: it will be the first of the next job.  If it has become dirty again it counts once. */
static void left_over(struct cqueues *c, struct mqstore_queue *q)
{
	if (q->dirty) {
		TAILQ_REMOVE(&c->dirty, q, to_flush);
	} else {
		q->dirty = true;
		c->dirty_n++;
		c->flushed--;
	}
	TAILQ_INSERT_HEAD(&c->dirty, q, to_flush);
}

static void done(struct mqstore *s, struct flush_job *j)
{
	struct cqueues *c = &s->queues;

	s->log.flushed = j->log_to;
	s->log.run.keep = j->log_to;
	for (size_t i = 0; i < j->log_n; i++)
		if (j->log[i].fresh)
			j->log[i].g->fresh = false;
	for (size_t i = j->queue_n; i-- > 0;) {
		if (j->queue[i].done || j->queue[i].cancelled)
			queue_done(&j->queue[i]);
		else
			left_over(c, j->queue[i].q);
	}
	c->flushed += (int64_t)j->queue_n;
	if (j->pass_done) {
		s->pass_target = -1;
		s->pass_end_ms = clock_mono_us() / 1000;
	}
	s->no_space |= j->full;
	s->check = j->check;
}

int mqstore_flush_end(struct mqstore *s, struct mqstore_flush *job, struct mq_error *err)
{
	struct flush_job *j = job->impl;
	int rc = j->rc, rc2;

	assert(s->job == j);
	for (size_t i = 0; i < j->log_n; i++)
		j->log[i].g->pins--;
	if (j->indexed) {
		rc2 = index_flush_end(s->index, &j->index, NULL);
		if (rc == 0 && rc2 < 0)
			rc = err_sys(&j->err, rc2, "flush the index");
	}
	if (rc == 0) {
		done(s, j);
	} else {
		s->broken = true;
		snprintf(s->why, sizeof(s->why), "%.200s: open the store again when the disk is in order", j->err.text);
		log_error("flush failed, the store takes no more messages reason=\"%s\"", j->err.text);
		err_set(err, rc, "%s", j->err.text);
	}
	for (size_t i = 0; i < s->dead_n; i++)
		cqueue_free(s->dead[i]);
	s->dead_n = 0;
	s->job = NULL;
	job->impl = NULL;
	job_free(j);
	return rc;
}

int flush_all(struct mqstore *s, struct mq_error *err)
{
	struct mqstore_flush job;
	int rc = 0;

	/* The second time the checkpoint catches up with what the first one has put on the disk. */
	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = begin(s, EVERYTHING, &job);
		if (rc == 0) {
			mqstore_flush_run(&job);
			rc = mqstore_flush_end(s, &job, err);
		}
	}
	if (rc == MQ_ENOTFOUND)
		rc = 0;
	if (rc == 0 && s->queues.dirty_n)
		rc = err_set(err, MQ_EFULL, "no space for the files of %lld queues in '%s'", (long long)s->queues.dirty_n, s->queue_dir);
	return rc;
}

int mqstore_flush(struct mqstore *s, struct mq_error *err)
{
	if (s->broken)
		return err_set(err, MQ_EBROKEN, "%s", s->why);
	return flush_all(s, err);
}

void flush_cancel_queue(struct mqstore *s, struct mqstore_queue *q)
{
	struct flush_job *j = s->job;

	if (!j)
		return;
	pthread_mutex_lock(&j->guard);
	for (size_t i = 0; i < j->queue_n; i++)
		j->queue[i].cancelled |= j->queue[i].q == q;
	pthread_mutex_unlock(&j->guard);
}

void flush_bury_queue(struct mqstore *s, struct mqstore_queue *q)
{
	if (!s->job) {
		cqueue_free(q);
		return;
	}
	s->dead = mem_realloc(s->dead, (s->dead_n + 1) * sizeof(*s->dead));
	s->dead[s->dead_n++] = q;
}

int64_t mqstore_flushed(const struct mqstore *s)
{
	return s->log.flushed;
}
