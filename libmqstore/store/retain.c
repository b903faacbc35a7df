/* retain.c: what may be deleted, and whether the disk is full.
 *
 * Segments of the log go, oldest first; consume queues and index files follow when the log's start has moved.  A file that
 * cannot be removed is passed over, said once a round, and tried again in the next. */
#include "retain.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/str.h"
#include "../base/sys.h"
#include "bqueue.h"
#include "flush.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOG_MODULE "store"
/* Work of a turn: so many queues that are loaded; loading one takes as long as LOADING of them, removing a file (2 to 40 ms) far longer. */
enum { BATCH = 10, QUEUES_A_TURN = 1000, LOADING = 20, REMOVING = 500, FILES_AT_ONCE = 2 };
static const double GIB = 1024.0 * 1024 * 1024;

int retain_disk(const char *dir, double *used, int64_t *total, int64_t *avail)
{
	int64_t unused;
	int rc = sys.statfs(dir, total, avail, &unused);

	if (rc < 0)
		return rc;
	*used = *total - unused + *avail > 0 ? (double)(*total - unused) / (double)(*total - unused + *avail) : 0;
	return 0;
}

/* compat: percent, rounded up. */
static int percent(double used)
{
	int p = (int)(used * 100);

	return p < used * 100 ? p + 1 : p;
}

static int clamp(int v, int lo, int hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

struct limits {
	bool expired;           /* segments past their time may go at this hour */
	bool now;               /* the oldest go at once */
	bool full;
};

static bool hour_to_delete(const struct mqstore *s, int64_t now_ms)
{
	struct mq_str rest = str_of(s->opt.delete_when), word;
	time_t t = now_ms / 1000;
	struct tm tm;
	int32_t hour;

	localtime_r(&t, &tm);
	while (rest.n && str_split(&rest, ';', &word))
		if (str_i32(str_trim(word), &hour) == 0 && hour == tm.tm_hour)
			return true;
	return false;
}

static void look_at(struct mqstore *s, const char *dir, struct limits *l)
{
	int64_t total, avail, floor = s->opt.min_free_bytes;
	double used;
	int pct, rc = retain_disk(dir, &used, &total, &avail);

	if (rc < 0) {
		log_warn("cannot ask how full the disk is dir=%s reason=\"%s\"", dir, mq_strerror(rc));
		return;
	}
	pct = percent(used);
	if (floor > 0) {
		l->now |= avail < floor + s->log.run.size;
		if (avail < floor) {
			snprintf(s->why, sizeof(s->why),
				"disk of '%.100s' has %.2f GiB free of %.2f, used %d %%; kept free: %.2f GiB (minFreeBytes)",
				 dir, (double)avail / GIB, (double)total / GIB, pct, (double)floor / GIB);
			l->full = true;
		}
		return;
	}
	l->expired |= pct > clamp(s->opt.disk_max_used, 10, 95);
	l->now |= pct > clamp(s->opt.disk_clean_forcibly, 30, 85);
	if (pct > clamp(s->opt.disk_warning, 35, 90)) {
		snprintf(s->why, sizeof(s->why),
			 "disk of '%.100s' is %d %% full, limit %d %% (diskSpaceWarningLevelRatio); "
			 "%.2f GiB free of %.2f: set minFreeBytes to keep a number of bytes instead",
			 dir, pct, clamp(s->opt.disk_warning, 35, 90), (double)avail / GIB, (double)total / GIB);
		l->full = l->now = true;
	}
}

static bool past_its_time(struct mqstore *s, const struct segment *g, int64_t now_ms)
{
	char path[SEGMENT_PATH];
	struct stat st;

	if (sys.stat(segment_path(s->log_dir, g->start, path), &st) < 0)
		return false;
	return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 + (int64_t)s->opt.reserved_hours * 3600 * 1000 <= now_ms;
}

static int drop_segments(struct mqstore *s, const struct limits *l, int64_t now_ms)
{
	struct segments *run = &s->log.run;
	int64_t limit = s->opt.max_total_bytes;
	size_t i = 0;
	int n = 0, rc;

	while (n < BATCH && i + 1 < run->n) {
		struct segment *g = run->v[i];
		int64_t start = g->start;
		bool too_large = limit > 0 && s->log.max - segments_min(run) > limit;

		if (g == s->log.tail || g->start + g->size > s->log.flushed)
			break;
		if (!too_large && !(l->now && s->opt.clean_forcibly) && !((l->expired || l->now) && past_its_time(s, g, now_ms)))
			break;
		rc = segments_drop(run, i);
		if (rc < 0) {
			log_warn("cannot remove a segment, trying again later file=%s/%020" PRId64 " reason=\"%s\"", s->log_dir, start,
				 mq_strerror(rc));
			i++;
			continue;
		}
		log_info("segment removed file=%s/%020" PRId64 "%s", s->log_dir, start, too_large ? " reason=maxStoreBytes" :
			 l->now ? " reason=\"disk nearly full\"" : "");
		n++;
	}
	return n;
}

/* ---- Queues follow --------------------------------------------------------------------------------------------------- */

struct turn {
	int64_t log_min;
	int left;
};

static int trim_queue(void *arg, struct mqstore_queue *q)
{
	struct turn *t = arg;
	int n = 0;

	if (q->trimmed_for == t->log_min)
		return 0;
	if (t->left <= 0)
		return 1;
	t->left -= q->loaded ? 1 : LOADING;
	if (q->topic->batch)
		bqueue_trim(q, t->log_min);
	else
		n = cqueue_trim(q, t->log_min, FILES_AT_ONCE);
	t->left -= n > 0 ? n * REMOVING : 0;
	if (n >= 0 && n < FILES_AT_ONCE)
		q->trimmed_for = t->log_min;
	return n == FILES_AT_ONCE;
}

bool retain_tend(struct mqstore *s)
{
	struct turn t = { commitlog_min(&s->log), QUEUES_A_TURN };

	if (s->trimmed_min == t.log_min)
		return false;
	if (cqueues_each(&s->queues, trim_queue, &t) != 0)
		return true;
	s->trimmed_min = t.log_min;
	return false;
}

int mqstore_trim(struct mqstore *s, int64_t now_ms, bool force, struct mq_error *err)
{
	struct limits l = { .expired = force || hour_to_delete(s, now_ms), .now = s->no_space };

	if (s->opt.read_only)
		return err_set(err, MQ_EREADONLY, "store '%s' is open for reading only", s->dir);
	if (!s->broken)
		s->why[0] = '\0';
	look_at(s, s->log_dir, &l);
	if (!l.full)
		look_at(s, s->queue_dir, &l);
	if (l.full != s->full && l.full)
		log_warn("no more messages are taken reason=\"%s\"", s->why);
	else if (l.full != s->full)
		log_info("messages are taken again dir=%s", s->dir);
	s->full = l.full;
	if (drop_segments(s, &l, now_ms) > 0 && s->index)
		index_trim(s->index, commitlog_min(&s->log));
	retain_tend(s);
	return 0;
}

/* ---- Whole queues ---------------------------------------------------------------------------------------------------- */

static bool system_topic(const struct topic *t)
{
	static const char *const names[] = {
		"TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(t->name, names[i]) == 0)
			return true;
	return strncasecmp(t->name, "rmq_sys_", 8) == 0;
}

static int clean_queue(void *arg, struct mqstore_queue *q)
{
	struct mqstore *s = arg;
	struct mqstore_entry e;
	const uint8_t *p;
	int64_t n;
	int rc;

	if (system_topic(q->topic) || q->topic->batch || cqueue_ready(q) < 0 || q->pos == 0)
		return 0;
	p = cqueue_entries(q, q->pos / CQ_ENTRY - 1, &n);
	if (p)
		cqueue_read(p, &e);
	if (!p || e.log_off >= commitlog_min(&s->log))
		return 0;
	log_info("queue without messages removed topic=%s queue=%d", q->topic->name, (int)q->id);
	flush_cancel_queue(s, q);
	rc = cqueue_remove(q);
	/* The handle stays good: it is a queue that has never held a message. */
	cqueue_reset(q);
	return rc;
}

int mqstore_clean_queues(struct mqstore *s, struct mq_error *err)
{
	int rc;

	if (s->opt.read_only)
		return err_set(err, MQ_EREADONLY, "store '%s' is open for reading only", s->dir);
	rc = cqueues_each(&s->queues, clean_queue, s);
	return rc < 0 ? err_sys(err, rc, "remove queues in '%s'", s->queue_dir) : 0;
}

int mqstore_delete_topic(struct mqstore *s, struct mq_str name, struct mq_error *err)
{
	static const char *const beside[] = { "consumequeue", "consumequeue_ext", "batchconsumequeue" };
	struct topic *t;
	int rc = 0;

	if (s->opt.read_only)
		return err_set(err, MQ_EREADONLY, "store '%s' is open for reading only", s->dir);
	t = cqueues_topic(&s->queues, name);
	if (!t)
		return 0;
	while (t->count > 0) {
		struct mqstore_queue *q = t->v[t->count - 1];
		int rc2;

		flush_cancel_queue(s, q);
		rc2 = cqueue_remove(q);
		rc = rc ? rc : rc2;
		cqueues_forget(&s->queues, q);
		flush_bury_queue(s, q);
	}
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		char path[SEGMENT_PATH];
		int rc2;

		snprintf(path, sizeof(path), "%s/%s/%s", s->dir, beside[i], t->name);
		rc2 = sys_remove_tree(path);
		rc = rc ? rc : rc2;
	}
	return rc < 0 ? err_sys(err, rc, "remove queues of topic '%s'", t->name) : 0;
}

void mqstore_retention(struct mqstore *s, const struct mqstore_opt *o)
{
	s->opt.max_total_bytes = o->max_total_bytes;
	s->opt.min_free_bytes = o->min_free_bytes;
	s->opt.reserved_hours = o->reserved_hours;
	memcpy(s->opt.delete_when, o->delete_when, sizeof s->opt.delete_when);
	s->opt.disk_max_used = o->disk_max_used;
	s->opt.disk_clean_forcibly = o->disk_clean_forcibly;
	s->opt.disk_warning = o->disk_warning;
	s->opt.clean_forcibly = o->clean_forcibly;
}
