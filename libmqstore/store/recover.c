/* recover.c: after a stop: find the end of the log, cut what is behind, derive again, mend what damage touched.
 *
 * 1. Where to begin.  After a clean stop: at the last record, as the checkpoint has it, else three segments from the end.
 *    After an unclean one: at the newest record of which our checkpoint says that it is on the disk with its entry; else, where
 *    the peer was at work, at the newest segment whose first record is older than what the checkpoint says was on disk.
 * 2. From there record by record to the end; each is derived again, which changes nothing for those that are in their queue.
 *    When a queue lacks records from before that place, its files were lost: then all is done again from the log's start.
 *    So it is when there are fewer queues than at the last clean stop.
 * 3. Cut the log; cut every queue that points beyond it.  Opening a hundred thousand queues takes long: after a clean stop that
 *    ends where it says that is left out, and after a crash of ours it is done in the background, or when a queue is used.
 * 4. Entries of records that are damaged are taken out of the way of readers. */
#include "recover.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../base/sys.h"
#include "../codec/layout.h"
#include "../codec/message.h"
#include "bqueue.h"
#include "derive.h"
#include "scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOG_MODULE "store"
enum { TAIL_SEGMENTS = 3 };

bool store_damaged(const struct mqstore *s, int64_t off)
{
	for (int i = 0; i < s->damage_n; i++)
		if (off >= s->damage[i].from && off < s->damage[i].to)
			return true;
	return false;
}

void store_note_damage(struct mqstore *s, int64_t from, int64_t to, bool hole)
{
	if (hole)
		log_warn("part of the log is missing, readers go on behind it from=%" PRId64 " to=%" PRId64, from, to);
	else
		log_warn("damaged part of the log, readers go on behind it from=%" PRId64 " to=%" PRId64, from, to);
	if (store_damaged(s, from) || s->damage_n == DAMAGE_MAX)
		return;
	s->damage = mem_realloc(s->damage, (size_t)(s->damage_n + 1) * sizeof(*s->damage));
	s->damage[s->damage_n++] = (struct damage){ from, to, hole };
}

/* ---- Where to begin -------------------------------------------------------------------------------------------------- */

/* Start of the newest segment that begins with a record not newer than `ms`; else of the oldest segment. */
static int64_t last_safe_segment(struct mqstore *s, int64_t ms)
{
	struct segments *run = &s->log.run;
	struct mq_message m;

	for (size_t i = run->n; i-- > 0;)
		if (scan_at(&s->log, run->v[i]->start, false, &m) > 0 && m.store_ms > 0 && m.store_ms <= ms)
			return run->v[i]->start;
	return segments_min(run);
}

/* `exact`: the place of the last record, as the stop before left word. */
static int64_t begin_at(struct mqstore *s, bool *exact)
{
	struct segments *run = &s->log.run;
	int64_t tail = run->v[run->n > TAIL_SEGMENTS ? run->n - TAIL_SEGMENTS : 0]->start, confirm = s->check.confirm_off;
	bool believe = !s->unclean || s->opt.read_only || (s->check.whole_off == confirm && !s->distrust);
	struct mq_message m;

	*exact = false;
	if (s->queues.count == 0)
		return segments_min(run);
	if (!s->unclean && s->check.whole_off == confirm && s->queues.count < s->check.queues) {
		log_warn("queues are gone since the last stop, all are compared with the log were=%" PRId64 " are=%" PRId64,
			 s->check.queues, s->queues.count);
		return segments_min(run);
	}
	/* compat: the peer leaves the last record of the start before; from there the log is walked as well. */
	if (believe && confirm >= tail && scan_at(&s->log, confirm, true, &m) > 0) {
		*exact = true;
		return confirm;
	}
	return s->unclean ? last_safe_segment(s, checkpoint_min_ms(&s->check)) : tail;
}

/* ---- The walk -------------------------------------------------------------------------------------------------------- */

struct walk {
	int64_t from, end, last_off, last_ms, records;
	bool fill;
};

/* Damaged records whose head is whole have used up numbers: they shall not be given again. */
static int derive_damaged(struct mqstore *s, int64_t from, int64_t to)
{
	struct mq_message m;
	int32_t size;
	int rc = 0;

	for (; from < to && rc >= 0 && (size = scan_at(&s->log, from, false, &m)) > 0; from += size) {
		struct mqstore_queue *q = cqueues_get(&s->queues, m.topic, m.queue_id, true);

		if (q && derive_listed(m.sys_flag) && !q->topic->batch && !(m.sys_flag & MQ_SYS_INNER_BATCH))
			rc = cqueue_derive(q, m.queue_off, from, CQ_FILLER_SIZE, 0, false);
	}
	return rc < 0 ? rc : 0;
}

/* 0, CQUEUE_GAP, or a negative code. */
static int walk(struct mqstore *s, struct walk *w, struct mqstore_queue *only)
{
	struct scan sc = {
		.log = &s->log, .off = w->from, .end = w->from, .last_off = -1, .check_crc = s->opt.check_crc && !only,
		.torn = s->unclean, .live = s->opt.read_only,
	};
	enum scan_kind kind;
	int rc = 0;

	w->records = 0;
	while (rc == 0 && (kind = scan_next(&sc)) != SCAN_END) {
		if (kind == SCAN_RECORD) {
			rc = derive_again(s, &sc.m, only, w->fill);
			w->records++;
		} else if (kind == SCAN_FAILED) {
			rc = s->log.run.map_rc;
		} else {
			store_note_damage(s, sc.from, sc.to, kind == SCAN_HOLE);
			if (kind == SCAN_DAMAGED && !only)
				rc = derive_damaged(s, sc.from, sc.to);
		}
		if (s->log.run.mapped > s->log.run.max_maps)
			segments_shed(&s->log.run);
	}
	w->end = sc.end;
	w->last_off = sc.last_off;
	w->last_ms = sc.last_ms;
	return rc;
}

int recover_queue(void *arg, struct mqstore_queue *q)
{
	struct mqstore *s = arg;
	struct walk w = { .from = commitlog_min(&s->log), .fill = true };
	int rc;

	if (s->opening || (s->opt.read_only && s->unclean))
		return 0;
	rc = walk(s, &w, q);
	log_info("queue read from the log again topic=%s queue=%d max=%" PRId64, q->topic->name, (int)q->id, cqueue_max(q));
	return rc;
}

static int walk_all(struct mqstore *s, struct walk *w, struct mq_error *err)
{
	int64_t min = segments_min(&s->log.run);
	int rc;

	w->fill = w->from == min;
	rc = walk(s, w, NULL);
	if (rc == CQUEUE_GAP) {
		log_warn("a queue lacks entries of older messages, all queues are compared with the log from=%" PRId64, min);
		w->from = min;
		w->fill = true;
		rc = walk(s, w, NULL);
	}
	return rc < 0 ? err_sys(err, rc, "derive queues from the log") : 0;
}

/* Say what is left out behind the end. */
static void report_rest(struct mqstore *s, int64_t end)
{
	int64_t from = end, last, n;
	const uint8_t *p = commitlog_view(&s->log, end, &n);

	if (p && n >= BLANK_BYTES && be32(p + 4) == RECORD_MAGIC_BLANK)
		from += BLANK_BYTES;
	n = scan_rubbish(&s->log, from, segments_end(&s->log.run), &last);
	if (n > 0)
		log_warn("bytes behind the last whole record are no record and are left out "
			 "from=%" PRId64 " to=%" PRId64 " nonzero=%" PRId64,
			 from, last, n);
}

/* ---- Queues ---------------------------------------------------------------------------------------------------------- */

struct cut {
	int64_t end, lost;
	bool load;
};

static int cut_queue(void *arg, struct mqstore_queue *q)
{
	struct cut *c = arg;
	int rc = 0;

	if (!q->loaded && !c->load)
		return 0;
	if (q->topic->batch)
		return bqueue_cut(q, c->end);
	rc = cqueue_ready(q);
	if (rc == 0 && q->log_end > c->end)
		rc = cqueue_cut(q, c->end);
	c->lost += rc == 0 && q->lost;
	return rc;
}

/* The handle stays good: it is a queue that has never held a message. */
static int forget_queue(void *arg, struct mqstore_queue *q)
{
	int rc = q->topic->batch ? bqueue_cut(q, 0) : cqueue_remove(q);

	if (!q->topic->batch)
		cqueue_reset(q);
	return rc;
}

int recover_cut_queues(struct mqstore *s, int64_t end)
{
	struct cut cut = { .end = end, .load = true };

	return end < 0 ? cqueues_each(&s->queues, forget_queue, s) : cqueues_each(&s->queues, cut_queue, &cut);
}

static int mend_queue(void *arg, struct mqstore_queue *q)
{
	struct mqstore *s = arg;
	int rc = 0;

	for (int i = 0; i < s->damage_n && rc == 0 && !q->topic->batch; i++) {
		const struct damage *d = &s->damage[i];
		int64_t lo, hi, max = cqueue_max(q);

		if (d->hole)
			continue;
		lo = cqueue_find(q, q->first / CQ_ENTRY, max, d->from);
		hi = lo < 0 ? lo : cqueue_find(q, lo, max, d->to);
		if (hi < 0)
			return (int)hi;
		while (hi > lo && rc == 0)
			rc = cqueue_skip(q, --hi);
	}
	return rc;
}

static bool any_damage(const struct mqstore *s)
{
	for (int i = 0; i < s->damage_n; i++)
		if (!s->damage[i].hole)
			return true;
	return false;
}

static int fit_queues(struct mqstore *s, struct walk *w, bool load, struct mq_error *err)
{
	struct cut cut = { .end = w->end, .load = load };
	int64_t end = w->end, last_off = w->last_off, last_ms = w->last_ms;
	int rc = cqueues_each(&s->queues, cut_queue, &cut);

	if (rc == 0 && cut.lost > 0 && w->from > segments_min(&s->log.run)) {
		log_warn("queues have lost their newest file, all queues are compared with the log queues=%" PRId64, cut.lost);
		w->from = segments_min(&s->log.run);
		w->fill = true;
		rc = walk(s, w, NULL);
		if (rc == 0 && w->end == end)
			rc = cqueues_each(&s->queues, cut_queue, &cut);
		w->end = end;
		w->last_off = last_off;
		w->last_ms = last_ms;
	}
	if (rc == 0 && any_damage(s))
		rc = cqueues_each(&s->queues, mend_queue, s);
	return rc < 0 ? err_sys(err, rc, "repair queues in '%s'", s->queue_dir) : 0;
}

/* Is the record of this entry really one of the queue? */
static bool matches(void *arg, struct mqstore_queue *q, int64_t off, const struct mqstore_entry *e)
{
	struct mqstore *s = arg;
	struct mq_message m;

	/* compat: light queues list records of other topics. */
	return q->topic->lmq || (scan_at(&s->log, e->log_off, false, &m) == e->size && m.queue_id == q->id && m.queue_off >= off &&
				 m.topic.n == q->topic->n && memcmp(m.topic.p, q->topic->name, m.topic.n) == 0);
}

static int check_queue(void *arg, struct mqstore_queue *q)
{
	int *left = arg;

	if (q->loaded || q->topic->batch)
		return 0;
	if ((*left)-- == 0)
		return 1;
	return cqueue_ready(q) < 0 ? -1 : 0;
}

/* 1 = there are more, 0 = all are cut to the end of the log, -1 = one cannot be loaded. */
int recover_check_queues(struct mqstore *s, int max)
{
	int rc;

	if (!s->check_queues)
		return 0;
	rc = s->queues.unloaded ? cqueues_each(&s->queues, check_queue, &max) : 0;
	if (rc == 0) {
		s->check_queues = s->queues.abnormal = false;
		s->queues.matches = NULL;
	}
	return rc;
}

static int count_made(void *arg, struct mqstore_queue *q)
{
	*(int64_t *)arg += q->made;
	return 0;
}

int recover_note_queues(struct mqstore *s, struct mq_error *err)
{
	int64_t made = 0;

	cqueues_each(&s->queues, count_made, &made);
	if (made == s->check.queues)
		return 0;
	s->check.queues = made;
	return checkpoint_save(&s->check, err);
}

/* Without a log its queues mean nothing. */
static int drop_queues(struct mqstore *s, struct mq_error *err)
{
	struct topic *t, *next;
	int rc = s->opt.read_only ? 0 : sys_remove_tree(s->queues.batch_dir);

	HASH_ITER(hh, s->queues.topics, t, next)
		while (t->count > 0 && rc == 0) {
			struct mqstore_queue *q = t->v[t->count - 1];

			if (!s->opt.read_only && !q->topic->batch)
				rc = cqueue_remove(q);
			cqueues_forget(&s->queues, q);
			cqueue_free(q);
		}
	return rc < 0 ? err_sys(err, rc, "remove queues in '%s'", s->queue_dir) : 0;
}

/* ---- All of it ------------------------------------------------------------------------------------------------------- */

int recover_run(struct mqstore *s, struct mq_error *err)
{
	struct walk w = { 0 };
	bool exact, clean_end;
	int rc;

	s->queues.abnormal = s->unclean;
	if (s->log.run.n == 0) {
		if (s->queues.count)
			log_warn("there is no log, its queues are dropped dir=%s queues=%" PRId64, s->log_dir, s->queues.count);
		s->log.last_off = -1;
		s->queues.abnormal = false;
		return drop_queues(s, err);
	}
	s->opening = true;
	s->log.max = segments_end(&s->log.run);
	w.from = begin_at(s, &exact);
	if (s->unclean && !s->opt.read_only)
		log_info("the last stop was not clean, the log is walked from=%" PRId64, w.from);
	s->queues.arg = s;
	s->queues.matches = exact && s->unclean ? matches : NULL;
	s->queues.verify_from = w.from;
	rc = walk_all(s, &w, err);
	if (rc < 0)
		goto out;
	clean_end = exact && !s->unclean && w.records == 1 && s->damage_n == 0;
	s->check_queues = exact && s->unclean && s->damage_n == 0 && !s->opt.read_only;
	rc = fit_queues(s, &w, !clean_end && !s->check_queues && !s->opt.read_only, err);
	if (rc < 0)
		goto out;
	if (!clean_end)
		report_rest(s, w.end);
	if (s->opt.read_only)
		s->log.max = s->log.flushed = w.end;
	else
		rc = commitlog_cut(&s->log, w.end, err);
	/* What a process that was killed has written may still wait in memory for the disk. */
	if (s->unclean && !s->opt.read_only)
		s->log.flushed = s->log.run.keep = w.from < w.end ? w.from : w.end;
	s->log.last_off = w.last_off;
	s->log.last_ms = w.last_ms;
	s->queues.log_end_at_open = w.end;
	if (!s->check_queues)
		s->queues.matches = NULL;
	s->queues.abnormal = s->check_queues || (s->opt.read_only && s->unclean);
out:
	s->opening = false;
	return rc;
}
