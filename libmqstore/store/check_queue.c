/* check_queue.c: does each queue list the messages of the log, and nothing else?
 *
 * While the log is walked each record is looked up in its queue: a run of numbers whose entry is missing or wrong is a fault.
 * At the end the entries are counted: if more of them point into the log than were found right, each is looked at.  What looks
 * like damage and is none:
 *   - messages of a deleted topic; a queue that begins anew with number 0, since its topic was made again;
 *   - an entry that is the same as the next one, or void: recovery has put it for a message that was lost;
 *   - entries behind the last one, from before an earlier end of the log (compat: the peer leaves them). */
#include "check.h"
#include "../base/err.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../codec/message.h"
#include "../codec/property.h"
#include "../codec/tag.h"
#include "cqueue_ext.h"
#include "derive.h"
#include "scan.h"

#include <stdlib.h>

static const char *const fault_kinds[FAULT_KINDS] = { "entries-missing", "entries-wrong", "entries-tag" };
static const char *const fault_texts[FAULT_KINDS] = {
	"messages of the log are not listed: consumers do not get them",
	"entries do not point at the messages with these numbers: consumers do not get them",
	"entries have another tag code than the messages: filters miss them",
};

static struct mq_str topic_of(const struct fqueue *q)
{
	return (struct mq_str){ q->topic, (size_t)(strrchr(q->topic, '/') - q->topic) };
}

static void add_fault(struct fqueue *q, enum fault_kind kind, int64_t off)
{
	struct fault *last = q->faults_n ? &q->faults[q->faults_n - 1] : NULL;

	if (last && last->kind == kind && last->to == off) {
		last->to++;
		return;
	}
	if (q->faults_n == q->faults_cap) {
		q->faults_cap = q->faults_cap ? q->faults_cap * 2 : 4;
		q->faults = mem_realloc(q->faults, q->faults_cap * sizeof(*q->faults));
	}
	q->faults[q->faults_n++] = (struct fault){ kind, off, off + 1 };
}

static bool in_faults(const struct fqueue *q, int64_t off)
{
	for (size_t i = 0; i < q->faults_n; i++)
		if (off >= q->faults[i].from && off < q->faults[i].to)
			return true;
	return false;
}

/* Is m number `off` of the queue? */
static bool belongs(const struct fqueue *q, const struct mq_message *m, int64_t off)
{
	struct mq_str topic = topic_of(q), names, offs, name, text;
	int64_t v;

	if (str_eq(m->topic, topic) && m->queue_id == q->id)
		return m->queue_off == off;
	if (q->id != 0 || !str_starts(topic, "%LMQ%"))
		return false;
	names = mq_prop_get(m->props, "INNER_MULTI_DISPATCH");
	offs = mq_prop_get(m->props, "INNER_MULTI_QUEUE_OFFSET");
	while (names.n && str_split(&names, ',', &name) && str_split(&offs, ',', &text))
		if (str_eq(name, topic) && str_i64(text, &v) == 0 && v == off)
			return true;
	return false;
}

/* ---- From the log to the queue ----------------------------------------------------------------------------------------- */

/* compat: a tag code below every int is an address in consumequeue_ext; that of a delayed message is when it is due.  A unit that is not
 * there does no harm: whoever wants it looks at the record. */
static bool code_fits(struct mqstore_files *f, const struct fqueue *q, const struct mq_message *m, int64_t have, int64_t want)
{
	if (cqueue_ext_is_address(have) && !files_unit(f, q, have, &have))
		return true;
	if (have == want)
		return true;
	return str_is(topic_of(q), "SCHEDULE_TOPIC_XXXX") && have >= m->store_ms;
}

static void check_entry(struct check *c, struct fqueue *q, const struct mq_message *m, int64_t off, int64_t code)
{
	struct mqstore_entry e;
	struct mq_message other;

	if (off < 0)
		return;
	if (off == 0 && q->listed > 0) {
		q->listed = q->matched = q->log_end = 0;
		q->faults_n = 0;
	}
	q->listed++;
	if (off >= q->log_end)
		q->log_end = off + 1;
	if (!q->there)
		return;
	for (int again = 0;; again++) {
		if (files_entry(c->f, q, off, &e) < 0)
			e = (struct mqstore_entry){ 0 };
		if (e.log_off == m->log_off && e.size == m->size) {
			q->matched++;
			if (!code_fits(c->f, q, m, e.tags_code, code))
				add_fault(q, FAULT_CODE, off);
			return;
		}
		if (!c->f->in_use || again)
			break;
		/* The writer may have put it since. */
		q->win_n = 0;
	}
	if (e.size <= 0)
		add_fault(q, FAULT_MISSING, off);
	else if (e.log_off < 0 || scan_at(&c->f->log, e.log_off, true, &other) != e.size || !belongs(q, &other, off))
		add_fault(q, FAULT_WRONG, off);
}

void check_queue_record(struct check *c, const struct mq_message *m)
{
	struct mq_str names, offs, name, text;
	struct property_scan props;
	int64_t off, code;

	property_scan(m->props, &props);
	code = tag_code(props.tags);
	if (derive_listed(m->sys_flag) && !(m->sys_flag & MQ_SYS_INNER_BATCH) && !files_batch_topic(c->f, m->topic)) {
		struct fqueue *q = files_queue(c->f, m->topic, m->queue_id, true);

		if (q)
			check_entry(c, q, m, m->queue_off, code);
	}
	if (!c->f->any_lmq)
		return;
	names = mq_prop_get(m->props, "INNER_MULTI_DISPATCH");
	offs = mq_prop_get(m->props, "INNER_MULTI_QUEUE_OFFSET");
	while (names.n && str_split(&names, ',', &name) && str_split(&offs, ',', &text)) {
		struct fqueue *q = str_starts(name, "%LMQ%") ? files_queue(c->f, name, 0, false) : NULL;

		if (q && str_i64(text, &off) == 0)
			check_entry(c, q, m, off, code);
	}
}

/* ---- From the queue to the log ----------------------------------------------------------------------------------------- */

enum entry_kind { ENTRY_FINE, ENTRY_ZERO, ENTRY_BEYOND, ENTRY_STALE, ENTRY_LOST, ENTRY_GONE, ENTRY_WRONG, ENTRY_KINDS };
static const struct {
	const char *kind, *text;
	enum mqstore_grade grade;
} entry_kinds[ENTRY_KINDS] = {
	[ENTRY_ZERO] = { "entries-zero", "entries are zero and there are more behind them", MQSTORE_DAMAGE },
	[ENTRY_BEYOND] = { "entries-beyond", "entries point at or beyond the end of the log: a start cuts them", MQSTORE_DAMAGE },
	[ENTRY_STALE] = { "entries-old", "old entries behind the last one: nobody reads them", MQSTORE_NOTE },
	[ENTRY_LOST] = { "entries-lost", "the messages of these entries are damaged: readers go on behind them", MQSTORE_FOLLOWS },
	[ENTRY_GONE] = { "entries-lost", "the messages of these entries are not there any more", MQSTORE_FOLLOWS },
	[ENTRY_WRONG] = { "entries-wrong", "entries point at no message of the queue: consumers get nothing there", MQSTORE_DAMAGE },
};

struct sweep {
	struct fqueue *q;
	enum entry_kind kind;   /* of the run [from, to) */
	int64_t from, to;
	int64_t inside;         /* entries that point into the log */
	bool closely;           /* look at each */
};

static enum entry_kind kind_of(struct check *c, struct sweep *w, int64_t off, const struct mqstore_entry *e,
			       const struct mqstore_entry *next)
{
	struct mq_message m;

	if (e->log_off == 0 && e->size == 0 && e->tags_code == 0)
		return in_faults(w->q, off) || off < w->q->gone_end || off >= w->q->log_end ? ENTRY_FINE :
		       c->any_damage ? ENTRY_GONE : ENTRY_ZERO;
	if (cqueue_void(e))
		return ENTRY_FINE;
	if (e->log_off < 0 || e->size <= 0)
		return in_faults(w->q, off) || off < w->q->gone_end ? ENTRY_FINE : ENTRY_WRONG;
	if (e->log_off < segments_min(&c->f->log.run)) {
		if (w->q->gone_end <= off)
			w->q->gone_end = off + 1;
		return ENTRY_FINE;
	}
	if (e->log_off > c->end - e->size)
		return w->closely && off < w->q->gone_end ? ENTRY_FINE : ENTRY_BEYOND;
	w->inside++;
	if (!w->closely || in_faults(w->q, off) || off < w->q->gone_end)
		return ENTRY_FINE;
	if (scan_at(&c->f->log, e->log_off, true, &m) > 0 && m.size == e->size && belongs(w->q, &m, off))
		return ENTRY_FINE;
	if (next && next->log_off == e->log_off && next->size == e->size)
		return ENTRY_FINE;
	if (check_on_damage(c, e->log_off))
		return segments_at(&c->f->log.run, e->log_off) ? ENTRY_LOST : ENTRY_GONE;
	return off >= w->q->log_end ? ENTRY_STALE : ENTRY_WRONG;
}

static void tell_run(struct check *c, struct sweep *w)
{
	struct mqstore_finding f = {
		.grade = entry_kinds[w->kind].grade, .kind = entry_kinds[w->kind].kind, .topic = topic_of(w->q), .queue_id = w->q->id,
		.from = w->from, .to = w->to, .count = w->to - w->from,
	};

	if (w->kind == ENTRY_FINE || w->to == w->from)
		return;
	f.mendable = w->kind != ENTRY_STALE && w->kind != ENTRY_GONE;
	w->q->lost |= w->kind == ENTRY_LOST;
	if (w->kind == ENTRY_BEYOND) {
		c->beyond += f.count;
		if (c->stretches_n && f.grade == MQSTORE_DAMAGE)
			f.grade = MQSTORE_FOLLOWS;
	}
	if (c->f->in_use && (w->kind == ENTRY_BEYOND || w->kind == ENTRY_WRONG))
		f.grade = MQSTORE_NOTE;
	if (f.mendable && w->kind != ENTRY_LOST && w->from < w->q->bad)
		w->q->bad = w->from;
	check_tell(c, f, "%s", entry_kinds[w->kind].text);
}

static void add_to_run(struct check *c, struct sweep *w, enum entry_kind kind, int64_t off)
{
	if (kind == w->kind && off == w->to) {
		w->to++;
		return;
	}
	tell_run(c, w);
	w->kind = kind;
	w->from = off;
	w->to = off + 1;
}

static int sweep(struct check *c, struct sweep *w, struct mq_error *err)
{
	struct fqueue *q = w->q;
	char path[SEGMENT_PATH];
	int rc = 0;

	w->inside = 0;
	for (size_t i = 0; i < q->n && rc == 0; i++) {
		bool last = i + 1 == q->n;
		int64_t used;
		uint8_t *p;

		rc = files_queue_file(c->f, q, q->starts[i], &p, &used);
		if (rc < 0)
			err_sys(err, rc, "read '%s'", files_queue_path(c->f, q, q->starts[i], path));
		if (!last && used == 0)
			used = c->f->queue_bytes;
		for (int64_t at = 0; at < (last ? used : c->f->queue_bytes) && rc == 0; at += CQ_ENTRY) {
			struct mqstore_entry e, next;
			enum entry_kind kind;

			cqueue_read(p + at, &e);
			if (at + CQ_ENTRY < used)
				cqueue_read(p + at + CQ_ENTRY, &next);
			kind = kind_of(c, w, (q->starts[i] + at) / CQ_ENTRY, &e, at + CQ_ENTRY < used ? &next : NULL);
			if (w->closely)
				add_to_run(c, w, kind, (q->starts[i] + at) / CQ_ENTRY);
			else if (kind != ENTRY_FINE)
				w->kind = kind;
			c->sum->queue_entries += !w->closely && e.size > 0;
		}
		free(p);
	}
	if (w->closely)
		tell_run(c, w);
	return rc;
}

/* ---- What came of it ------------------------------------------------------------------------------------------------------ */

static bool topic_has_queues(struct check *c, struct mq_str topic)
{
	struct fqueue *q, *next;

	HASH_ITER(hh, c->f->queues, q, next)
		if (q->there && str_eq(topic_of(q), topic))
			return true;
	return false;
}

static void tell_absent(struct check *c, struct fqueue *q)
{
	struct mqstore_finding f = {
		.grade = MQSTORE_NOTE, .kind = "queue-missing", .topic = topic_of(q), .queue_id = q->id, .to = q->log_end,
		.count = q->listed,
	};
	bool exists = topic_has_queues(c, f.topic);

	if (!exists && c->opt && c->opt->topic_exists)
		exists = c->opt->topic_exists(c->opt->arg, f.topic);
	if (!exists) {
		check_tell(c, f, "messages of a topic that was deleted");
		return;
	}
	if (!c->f->in_use) {
		f.grade = MQSTORE_DAMAGE;
		f.mendable = true;
		q->bad = 0;
	}
	check_tell(c, f, "there is no such queue, but messages of it in the log");
}

static void tell_faults(struct check *c, struct fqueue *q)
{
	for (size_t i = 0; i < q->faults_n; i++) {
		const struct fault *t = &q->faults[i];
		bool behind = c->f->in_use && t->kind == FAULT_MISSING && t->to == q->log_end;
		struct mqstore_finding f = {
			.grade = behind ? MQSTORE_NOTE : MQSTORE_DAMAGE, .kind = fault_kinds[t->kind], .topic = topic_of(q),
			.queue_id = q->id, .from = t->from, .to = t->to, .count = t->to - t->from, .mendable = true,
		};

		if (t->from < q->bad)
			q->bad = t->from;
		check_tell(c, f, "%s", behind ? "messages that are not listed yet" : fault_texts[t->kind]);
	}
}

int check_queue_end(struct check *c, struct mq_error *err)
{
	struct fqueue *q, *next;
	int rc = 0;

	files_sort_queues(c->f);
	HASH_ITER(hh, c->f->queues, q, next) {
		struct sweep w = { .q = q };

		if (!q->there) {
			if (q->listed)
				tell_absent(c, q);
			continue;
		}
		tell_faults(c, q);
		rc = sweep(c, &w, err);
		if (rc == 0 && (w.kind != ENTRY_FINE || w.inside != q->matched)) {
			w = (struct sweep){ .q = q, .closely = true };
			rc = sweep(c, &w, err);
		}
		if (rc < 0)
			break;
	}
	return rc;
}
