/* wheel.c: the timer files as one: opened, gone back to the last check-point, and changed in memory.
 *
 * The slots can be made again from the timer log, as long as the moments are cut into the same steps; that is done whenever they are
 * missing or point beyond its end.  The timer log itself can be made again only from the messages, by the caller (WHEEL_LOST). */
#include "wheel.h"
#include "wheel_private.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include <stdlib.h>

#define LOG_MODULE "store"

enum { DAY_MS = 86400000, NEAR_MS = 16 * DAY_MS };
#define LOST_POS (INT64_MAX / 2) /* no place in any timer log */

int32_t wheel_precision(int32_t ms)
{
	static const int32_t steps[] = { 100, 200, 500, 1000 };
	int32_t step = steps[0];

	for (size_t i = 0; i < sizeof steps / sizeof steps[0] && steps[i] <= ms; i++)
		step = steps[i];
	return step;
}

static int32_t sign_of(const struct wheel_unit *u)
{
	return u->magic & WHEEL_DELETE ? -1 : 1;
}

/* ---- Recovery -------------------------------------------------------------------------------------------------------------- */

struct moments {
	const struct wheel *w;
	int64_t near, far;      /* slots whose moment is likely, unlikely */
	int64_t beyond;         /* that point behind the end of the timer log */
};

static int look_at_slot(void *arg, const struct wheel_slot *s)
{
	struct moments *m = arg;
	int64_t d = s->ms - m->w->check.read_ms;

	if (d > -NEAR_MS && d < NEAR_MS)
		m->near++;
	else
		m->far++;
	if (s->ms >= m->w->check.read_ms && s->last >= m->w->log.end)
		m->beyond++;
	return 0;
}

static struct moments look_at_slots(struct wheel *w)
{
	struct moments m = { .w = w };

	wheel_slots_each(&w->slots, look_at_slot, &m);
	return m;
}

/* The step that most slots were made with. */
static void find_step(struct wheel *w)
{
	static const int32_t steps[] = { 1000, 500, 200, 100 };
	int64_t best = 0;

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct moments m;
		int64_t was = w->slots.step;

		w->slots.step = steps[i];
		m = look_at_slots(w);
		if (m.near > best)
			best = m.near;
		else if (i)
			w->slots.step = was;
	}
}

static void revise(struct wheel *w, const struct wheel_unit *u)
{
	if (u->due_ms >= w->check.read_ms)
		wheel_slots_add(&w->slots, u->due_ms, u->pos, sign_of(u));
}

/* The units from `from` on go into their slots, up to the first that is none, has lost its message, or is not what the check-point
 * speaks of.  Returns where that is. */
static int64_t walk(struct wheel *w, const struct wheel_opt *o, int64_t from, int64_t end)
{
	int64_t pos = from, last = from;
	struct wheel_unit u;

	while (pos < end && wheel_log_next(&w->log, &pos, &u) == 1 && pos < end) {
		if (u.log_off + u.size > o->log_max) {
			w->cut++;
			break;
		}
		/* Behind the check-point the peer's may still be good. */
		if (pos >= w->check.flush_pos && (w->check.ours || o->queue_off(o->arg, &u) >= w->check.master_off))
			break;
		revise(w, &u);
		pos += WHEEL_UNIT_BYTES;
		last = pos;
	}
	return last;
}

static int64_t count_units(struct wheel *w, int64_t from)
{
	struct wheel_unit u;
	int64_t n = 0;

	for (; wheel_log_next(&w->log, &from, &u) == 1; from += WHEEL_UNIT_BYTES)
		n++;
	return n;
}

/* The slots from all of the timer log. */
static int64_t rebuild(struct wheel *w, const struct wheel_opt *o, int64_t end)
{
	wheel_slots_clear(&w->slots);
	w->cut = 0;
	return walk(w, o, segments_min(&w->log.run), end);
}

static int64_t walk_begin(struct wheel *w)
{
	struct segment *g;
	int64_t from = w->check.flush_pos;

	if (w->check.ours)
		return from;
	from -= w->log.run.size; /* as the peer: its slots reach the disk later than its check-point */
	g = segments_at(&w->log.run, from < 0 ? 0 : from);
	return g ? g->start : segments_min(&w->log.run);
}

static bool is_lost(struct wheel *w)
{
	struct segments *run = &w->log.run;
	int64_t pos = w->check.flush_pos;
	struct wheel_unit u;
	struct moments m;

	if (!run->n)
		return pos > 0;
	if (pos < segments_min(run) || pos > segments_end(run) || segments_end(run) - segments_min(run) != (int64_t)run->n * run->size)
		return true;
	w->log.end = pos;
	if (pos > segments_min(run) && !wheel_log_last(&w->log, &u))
		return true;
	if (!w->slots.found)
		return false;
	m = look_at_slots(w);
	return m.far > 0 && m.near == 0; /* made with another step */
}

static int recover(struct wheel *w, const struct wheel_opt *o, bool checked, struct mq_error *err)
{
	bool clean = w->check.ours && w->check.clean && w->slots.found;
	struct wheel_unit u;
	int64_t end, from;

	if (!checked && w->log.run.n) {
		log_warn("the timers' check-point is missing: how far they had come is found out file=%s", w->check_path);
		w->check.flush_pos = segments_end(&w->log.run);
		w->check.master_off = INT64_MAX;
	}
	if (checked && is_lost(w)) {
		w->state = WHEEL_LOST;
		return 0;
	}
	w->state = w->log.run.n ? WHEEL_WHOLE : WHEEL_NEW;
	if (!w->log.run.n) {
		wheel_slots_clear(&w->slots);
		return wheel_log_cut(&w->log, 0, !w->read_only, err);
	}
	from = w->slots.found && checked ? walk_begin(w) : segments_min(&w->log.run);
	if (!w->slots.found || !checked)
		wheel_slots_clear(&w->slots);
	end = walk(w, o, from, INT64_MAX);
	w->log.end = end;
	/* Behind a clean stop nothing is amiss unless the log of messages was cut. */
	if (!clean || (wheel_log_last(&w->log, &u) && u.log_off + u.size > o->log_max)) {
		if (look_at_slots(w).beyond || (wheel_log_last(&w->log, &u) && u.log_off + u.size > o->log_max)) {
			end = rebuild(w, o, end);
			w->log.end = end;
		}
	}
	if (w->cut) {
		w->cut = count_units(w, end);
		log_warn("timers removed whose messages are no longer in the log count=%lld", (long long)w->cut);
	}
	if (!checked) {
		w->check.master_off = wheel_log_last(&w->log, &u) ? o->queue_off(o->arg, &u) + 1 : 0;
		w->check.queue_off = w->check.master_off;
	}
	w->synced = w->check.ours && w->check.flush_pos <= end ? w->check.flush_pos : 0;
	return wheel_log_cut(&w->log, end, !w->read_only, err);
}

/* ---- Opening --------------------------------------------------------------------------------------------------------------- */

/* Nothing of what is there can be used. */
static int begin_anew(struct wheel *w, struct mq_error *err)
{
	int rc;

	log_error("the timer log is lost, or was made with another timerPrecisionMs: it is made again from the messages dir=%s",
		  w->log.run.dir);
	wheel_slots_clear(&w->slots);
	if (w->read_only)
		return 0;
	w->check.flush_pos = LOST_POS; /* until the next check-point all of this is to be done again */
	rc = wheel_check_save(&w->check, w->check_path);
	if (rc < 0)
		return err_sys(err, rc, "write '%s'", w->check_path);
	while (w->log.run.n) {
		rc = segments_drop(&w->log.run, w->log.run.n - 1);
		if (rc < 0)
			return err_sys(err, rc, "remove files of '%s'", w->log.run.dir);
	}
	return wheel_log_cut(&w->log, 0, true, err);
}

int wheel_open(struct wheel **out, const struct wheel_opt *o, struct mq_error *err)
{
	struct wheel *w = mem_alloc(sizeof *w);
	char *dir = mem_printf("%s/timerlog", o->dir);
	bool checked;
	int rc;

	*out = NULL;
	w->path = mem_printf("%s/timerwheel", o->dir);
	w->check_path = mem_printf("%s/config/timercheck", o->dir);
	w->read_only = o->read_only;
	if ((rc = wheel_check_load(&w->check, w->check_path, &checked, err)) < 0 ||
	    (rc = wheel_log_open(&w->log, dir, o->log_file_bytes, !o->read_only, err)) < 0 ||
	    (rc = wheel_slots_open(&w->slots, w->path, err)) < 0)
		goto failed;
	w->slots.step = o->precision_ms;
	if (!o->precision_ms) {
		w->slots.step = 1000;
		find_step(w);
	}
	rc = recover(w, o, checked, err);
	if (rc == 0 && w->state == WHEEL_LOST)
		rc = begin_anew(w, err);
	if (rc < 0)
		goto failed;
	free(dir);
	*out = w;
	return 0;
failed:
	err_wrap(err, "timers");
	free(dir);
	wheel_close(w);
	return rc;
}

void wheel_close(struct wheel *w)
{
	if (!w)
		return;
	wheel_log_close(&w->log);
	wheel_slots_close(&w->slots);
	free(w->path);
	free(w->check_path);
	free(w);
}

enum wheel_state wheel_state(const struct wheel *w)
{
	return w->state;
}

int32_t wheel_step(const struct wheel *w)
{
	return (int32_t)w->slots.step;
}

struct wheel_check *wheel_check(struct wheel *w)
{
	return &w->check;
}

int64_t wheel_cut(const struct wheel *w)
{
	return w->cut;
}

/* ---- Units and slots ------------------------------------------------------------------------------------------------------- */

int wheel_add(struct wheel *w, struct wheel_unit *u, struct mq_error *err)
{
	struct wheel_slot slot;
	int rc;

	u->prev = wheel_slots_get(&w->slots, u->due_ms, &slot) ? slot.last : -1;
	rc = wheel_log_add(&w->log, u, err);
	if (rc == 0)
		wheel_slots_add(&w->slots, u->due_ms, u->pos, sign_of(u));
	return rc;
}

bool wheel_slot(const struct wheel *w, int64_t ms, struct wheel_slot *s)
{
	return wheel_slots_get(&w->slots, ms, s);
}

void wheel_empty(struct wheel *w, int64_t ms)
{
	wheel_slots_empty(&w->slots, ms);
}

int64_t wheel_next(const struct wheel *w, int64_t from, int64_t to)
{
	return wheel_slots_next(&w->slots, from, to);
}

int wheel_read(struct wheel *w, int64_t pos, struct wheel_unit *u)
{
	return wheel_log_read(&w->log, pos, u);
}

struct sum {
	int64_t from, num;
};

static int add_num(void *arg, const struct wheel_slot *s)
{
	struct sum *sum = arg;

	if (s->ms >= sum->from)
		sum->num += s->num;
	return 0;
}

int64_t wheel_pending(const struct wheel *w, int64_t from)
{
	struct sum sum = { from, 0 };

	wheel_slots_each(&w->slots, add_num, &sum);
	return sum.num;
}

int wheel_each(struct wheel *w, int64_t ms, int64_t before, wheel_unit_cb *cb, void *arg)
{
	for (ms = wheel_next(w, ms, INT64_MAX); ms >= 0; ms = wheel_next(w, ms + w->slots.step, INT64_MAX)) {
		struct wheel_slot slot;
		struct wheel_unit u;
		int64_t pos = wheel_slot(w, ms, &slot) ? slot.last : -1;

		for (; pos >= 0 && wheel_read(w, pos, &u) == 0; pos = u.prev) {
			int rc = u.pos < before ? cb(arg, &u) : 0;

			if (rc)
				return rc;
		}
		before = INT64_MAX;
	}
	return 0;
}

int wheel_drop(struct wheel *w, int64_t log_min, struct mq_error *err)
{
	while (w->log.run.n > 1 && !w->flushing) { /* the last one says where the log goes on */
		int64_t end = w->log.run.v[1]->start, was = w->log.end;
		struct wheel_unit u;
		struct segment **v;
		bool any;
		size_t n;
		int rc;

		w->log.end = end;
		any = wheel_log_last(&w->log, &u);
		w->log.end = was;
		if (any && u.log_off >= log_min)
			break;
		rc = segments_drop(&w->log.run, 0);
		if (rc < 0)
			return err_sys(err, rc, "remove old files of '%s'", w->log.run.dir);
		v = segments_take_doomed(&w->log.run, &n);
		segments_bury(v, n);
	}
	return 0;
}
