/* store.c: open, look after, close: the order in which the parts of a store come and go. */
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "../codec/layout.h"
#include "bqueue.h"
#include "derive.h"
#include "flush.h"
#include "lock.h"
#include "recover.h"
#include "replica.h"
#include "retain.h"
#include "scan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_MODULE "store"
enum { LOG_SEGMENT_MIN = 1024, QUEUE_EXT_MIN = 4096, QUEUES_A_TURN = 100 };

void mqstore_defaults(struct mqstore_opt *opt)
{
	*opt = (struct mqstore_opt){
		.log_segment_bytes = 1 << 30,
		.queue_segment_bytes = 6000000,
		.queue_ext_bytes = 48 << 20,
		.index_slots = 5000000,
		.index_entries = 20000000,
		.index_enable = true,
		.check_crc = true,
		.max_body_bytes = MQ_BODY_MAX,
		.reserved_hours = 72,
		.delete_when = "04",
		.disk_max_used = 75,
		.disk_clean_forcibly = 85,
		.disk_warning = 90,
		.clean_forcibly = true,
		.delay_levels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
		.memory_ratio = 40,
	};
}

static int check_options(const struct mqstore_opt *o, struct mq_error *err)
{
	if (!o->dir || !o->dir[0])
		return err_set(err, MQ_EINVAL, "no directory given");
	if (o->log_dir && strchr(o->log_dir, ','))
		return err_set(err, MQ_EUNSUPPORTED, "storePathCommitLog '%s': one directory only", o->log_dir);
	if (o->log_segment_bytes < LOG_SEGMENT_MIN)
		return err_set(err, MQ_EINVAL, "mappedFileSizeCommitLog %lld is less than %d",
			(long long)o->log_segment_bytes, LOG_SEGMENT_MIN);
	if (o->queue_segment_bytes < CQ_ENTRY || o->index_slots < 1 || o->index_entries < 2 || o->max_body_bytes < 1)
		return err_set(err, MQ_EINVAL, "mappedFileSizeConsumeQueue, maxHashSlotNum, maxIndexNum, maxMessageSize must be positive");
	if (o->queue_ext_bytes < QUEUE_EXT_MIN)
		return err_set(err, MQ_EINVAL, "mappedFileSizeConsumeQueueExt %lld is less than %d", (long long)o->queue_ext_bytes,
			       QUEUE_EXT_MIN);
	return 0;
}

static int make_dirs(struct mqstore *s, struct mq_error *err)
{
	const char *const dirs[] = { s->dir, s->log_dir, s->queue_dir };
	int rc = 0;

	for (size_t i = 0; i < 3 && rc == 0; i++) {
		rc = sys_mkdir_all(dirs[i]);
		if (rc < 0)
			err_sys(err, rc, "make directory '%s'", dirs[i]);
	}
	return rc;
}

static char *inside(const struct mqstore *s, const char *name, char out[SEGMENT_PATH])
{
	snprintf(out, SEGMENT_PATH, "%s/%s", s->dir, name);
	return out;
}

/* While this file is there the store is open, or was not closed in order. */
static int mark_open(struct mqstore *s, struct mq_error *err)
{
	char path[SEGMENT_PATH], text[24];
	int fd = sys.open(inside(s, "abort", path), O_RDWR | O_CREAT, 0644), rc;

	if (fd < 0)
		return err_sys(err, fd, "make '%s'", path);
	snprintf(text, sizeof(text), "%d", (int)getpid());
	rc = sys.ftruncate(fd, 0);
	if (rc == 0)
		rc = sys_write_all(fd, text, strlen(text), 0);
	if (rc == 0)
		rc = sys.fsync(fd);
	sys.close(fd);
	if (rc == 0)
		rc = sys_sync_dir(s->dir);
	if (rc < 0) {
		/* Nothing has changed yet: the next open need not take it for a crash. */
		if (!s->unclean)
			sys.unlink(path);
		return err_sys(err, rc, "write '%s'", path);
	}
	return 0;
}

static int load(struct mqstore *s, const struct mqstore_opt *o, struct mq_error *err)
{
	char path[SEGMENT_PATH];
	bool write = !o->read_only;
	int rc = checkpoint_open(&s->check, inside(s, "checkpoint", path), o->read_only, err);

	if (rc < 0)
		return rc;
	rc = segments_open(&s->log.run, s->log_dir, o->log_segment_bytes, write, o->adopt_sizes, err);
	if (rc < 0)
		return rc;
	rc = cqueues_open(&s->queues, s->dir, (o->queue_segment_bytes + CQ_ENTRY - 1) / CQ_ENTRY * CQ_ENTRY, write, o->adopt_sizes,
			  o->max_maps, &s->log, err);
	s->queues.ext = o->queue_ext && write;
	s->queues.ext_bytes = o->queue_ext_bytes;
	return rc;
}

static int open_index(struct mqstore *s, const struct mqstore_opt *o, struct mq_error *err)
{
	char dir[SEGMENT_PATH];
	struct index_opt io = {
		.dir = inside(s, "index", dir), .slots = o->index_slots, .entries = o->index_entries, .read_only = o->read_only,
		.adopt_sizes = o->adopt_sizes, .abnormal = s->unclean, .checkpoint_ms = s->check.index_ms,
		.source = derive_index_source, .source_arg = s,
	};
	int rc;

	if (!o->index_enable)
		return 0;
	rc = index_open(&s->index, &io, err);
	if (rc == 0)
		rc = index_log(s->index, commitlog_min(&s->log), s->log.max, err);
	return rc;
}

static struct mqstore *store_new(const struct mqstore_opt *o)
{
	struct mqstore *s = mem_alloc(sizeof(*s));
	int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	size_t n = strlen(o->dir);

	s->opt = *o;
	while (n > 1 && o->dir[n - 1] == '/')
		n--;
	s->dir = mem_strndup(o->dir, n);
	s->log_dir = o->log_dir ? mem_strdup(o->log_dir) : mem_printf("%s/commitlog", s->dir);
	s->queue_dir = mem_printf("%s/consumequeue", s->dir);
	s->opt.dir = s->opt.log_dir = s->opt.delay_levels = NULL;
	s->lock_fd = -1;
	s->check.fd = -1;
	s->log.fd = -1;
	s->log.last_off = -1;
	s->pass_target = -1;
	s->memory_bytes = pages > 0 && page > 0 ? pages / 100 * page * o->memory_ratio : INT64_MAX;
	return s;
}

static void store_free(struct mqstore *s)
{
	if (s->queues.dir)
		cqueues_close(&s->queues);
	commitlog_close(&s->log);
	checkpoint_close(&s->check);
	lock_release(s->lock_fd);
	free(s->damage);
	free(s->dead);
	free(s->dir);
	free(s->log_dir);
	free(s->queue_dir);
	free(s);
}

int mqstore_open(struct mqstore **out, const struct mqstore_opt *opt, struct mq_error *err)
{
	char path[SEGMENT_PATH];
	struct mqstore *s;
	struct stat st;
	int rc = check_options(opt, err);

	*out = NULL;
	if (rc < 0)
		return rc;
	s = store_new(opt);
	rc = derive_levels(opt->delay_levels, s->level_ms, &s->levels, err);
	if (rc < 0)
		goto fail;
	if (opt->read_only) {
		rc = sys.stat(s->log_dir, &st);
		if (rc < 0) {
			rc = err_set(err, MQ_ENOTFOUND, "no store here: '%s' is missing", s->log_dir);
			goto fail;
		}
	} else {
		rc = make_dirs(s, err);
		if (rc == 0)
			rc = lock_take(inside(s, "lock", path), &s->lock_fd, err);
		if (rc < 0)
			goto fail;
	}
	s->unclean = sys.stat(inside(s, "abort", path), &st) == 0;
	s->distrust = s->unclean && st.st_size == 0;
	rc = load(s, opt, err);
	if (rc == 0 && !opt->read_only)
		rc = mark_open(s, err);
	if (rc == 0)
		rc = recover_run(s, err);
	if (rc == 0)
		rc = open_index(s, opt, err);
	if (rc < 0)
		goto fail;
	s->queues.rebuild = recover_queue;
	s->trimmed_min = commitlog_min(&s->log);
	*out = s;
	return 0;
fail:
	err_wrap(err, "open store '%s'", s->dir);
	if (s->index)
		index_close(s->index, NULL);
	store_free(s);
	return rc;
}

int mqstore_close(struct mqstore *s, struct mq_error *err)
{
	char path[SEGMENT_PATH];
	int rc = 0, rc2;

	assert(!s->job);
	if (!s->opt.read_only) {
		replica_tidy(s);
		rc = s->broken ? err_set(err, MQ_EBROKEN, "%s", s->why) : flush_all(s, err);
		if (rc == 0 && recover_check_queues(s, INT_MAX) != 0)
			rc = err_set(err, MQ_ECORRUPT, "a queue in '%s' cannot be loaded", s->queue_dir);
		if (rc == 0)
			rc = flush_all(s, err);
		segments_drop_ahead(&s->log.run);
		if (rc == 0)
			rc = recover_note_queues(s, err);
	}
	if (s->index) {
		rc2 = index_close(s->index, rc < 0 ? NULL : err);
		rc = rc < 0 ? rc : rc2;
	}
	if (!s->opt.read_only && rc == 0) {
		rc = sys.unlink(inside(s, "abort", path));
		if (rc == 0)
			rc = sys_sync_dir(s->dir);
		if (rc < 0)
			err_sys(err, rc, "remove '%s'", path);
	}
	store_free(s);
	return rc;
}

bool mqstore_tend(struct mqstore *s)
{
	bool more = false;

	if (!s->opt.read_only && !s->broken && !s->full) {
		commitlog_tend(&s->log);
		more = recover_check_queues(s, QUEUES_A_TURN) > 0;
		more |= retain_tend(s);
	}
	if (s->index)
		more |= index_tend(s->index);
	if (s->log.run.mapped > s->log.run.max_maps)
		segments_shed(&s->log.run);
	return more;
}

/* ---- Queues ---------------------------------------------------------------------------------------------------------- */

static bool exists(const struct mqstore_queue *q)
{
	return q->made || q->pos > 0;
}

struct mqstore_queue *mqstore_queue(struct mqstore *s, struct mq_str topic, int32_t id, bool create)
{
	struct mqstore_queue *q = cqueues_get(&s->queues, topic, id, false);

	if (q && (create || exists(q)))
		return q;
	if (!create || id < 0 || mq_check_topic(topic, NULL) < 0)
		return NULL;
	return cqueues_get(&s->queues, topic, id, true);
}

int64_t mqstore_queue_min(const struct mqstore_queue *q)
{
	struct mqstore_queue *w = (struct mqstore_queue *)(uintptr_t)q;

	return (w->topic->batch ? bqueue_min : cqueue_min)(w, commitlog_min(w->all->log));
}

int64_t mqstore_queue_max(const struct mqstore_queue *q)
{
	struct mqstore_queue *w = (struct mqstore_queue *)(uintptr_t)q;

	return q->topic->batch ? bqueue_max(w) : cqueue_max(w);
}

int mqstore_delay_levels(const struct mqstore *s, const int64_t **ms)
{
	*ms = s->level_ms;
	return s->levels;
}

struct mq_str mqstore_queue_topic(const struct mqstore_queue *q)
{
	return (struct mq_str){ q->topic->name, q->topic->n };
}

int32_t mqstore_queue_id(const struct mqstore_queue *q)
{
	return q->id;
}

struct each {
	mqstore_queue_cb *cb;
	void *arg;
};

static int if_exists(void *arg, struct mqstore_queue *q)
{
	struct each *e = arg;

	return exists(q) ? e->cb(e->arg, q) : 0;
}

int mqstore_each_queue(struct mqstore *s, mqstore_queue_cb *cb, void *arg)
{
	struct each e = { cb, arg };

	return cqueues_each(&s->queues, if_exists, &e);
}

/* ---- Looking at ------------------------------------------------------------------------------------------------------ */

int64_t mqstore_log_min(const struct mqstore *s)
{
	return commitlog_min(&s->log);
}

int64_t mqstore_log_max(const struct mqstore *s)
{
	return s->log.max;
}

static int count_queue(void *arg, struct mqstore_queue *q)
{
	*(int64_t *)arg += exists(q);
	return 0;
}

static int add_bytes(void *arg, struct mqstore_queue *q)
{
	if (q->topic->batch)
		bqueue_ready(q);
	else
		cqueue_ready(q);
	*(int64_t *)arg += q->topic->batch ? bqueue_bytes(q) : cqueue_bytes(q);
	return 0;
}

int64_t mqstore_queue_bytes(struct mqstore *s)
{
	int64_t sum = 0;

	cqueues_each(&s->queues, add_bytes, &sum);
	return sum;
}

bool mqstore_why_not_writable(struct mqstore *s, char *why, size_t n)
{
	int64_t total = -1, avail = -1;
	double used;

	if (n)
		why[0] = '\0';
	if (s->broken || s->full)
		snprintf(why, n, "%s", s->why);
	else if (s->no_space) {
		if (retain_disk(s->log_dir, &used, &total, &avail) < 0)
			total = avail = -1;
		snprintf(why, n,
			 "disk of '%.150s' is full: %lld bytes free of %lld (lower fileReservedTime or set maxStoreBytes)", s->log_dir,
			 (long long)avail, (long long)total);
	} else if (s->follower)
		snprintf(why, n, "it follows a master, which is where messages go");
	else if (s->opt.read_only)
		snprintf(why, n, "'%.200s' is open for reading only", s->dir);
	return s->full || s->no_space;
}

void mqstore_stat(struct mqstore *s, struct mqstore_stat *st)
{
	struct scan sc = { .log = &s->log, .off = commitlog_min(&s->log) };
	enum scan_kind kind;
	int64_t total, avail;

	*st = (struct mqstore_stat){
		.log_min = commitlog_min(&s->log), .log_max = s->log.max, .log_flushed = s->log.flushed,
		.log_bytes = s->log.max - commitlog_min(&s->log), .index_bytes = s->index ? index_bytes(s->index) : 0,
		.segments = (int64_t)s->log.run.n, .earliest_ms = -1,
		.latest_ms = s->log.last_off >= 0 ? s->log.last_ms : -1, .log_disk_used = -1, .queue_disk_used = -1,
		.appended = s->appended, .refused = s->refused, .disk_full = s->full || s->no_space, .broken = s->broken,
		.recovered = s->unclean,
	};
	cqueues_each(&s->queues, count_queue, &st->queues);
	while ((kind = scan_next(&sc)) == SCAN_HOLE || kind == SCAN_DAMAGED)
		;
	if (kind == SCAN_RECORD)
		st->earliest_ms = sc.m.store_ms;
	retain_disk(s->queue_dir, &st->queue_disk_used, &total, &avail);
	if (retain_disk(s->log_dir, &st->log_disk_used, &st->disk_total, &st->disk_free) < 0)
		st->disk_total = st->disk_free = -1;
	mqstore_why_not_writable(s, st->why_not_writable, sizeof(st->why_not_writable));
}
