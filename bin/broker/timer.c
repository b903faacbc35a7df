/* timer.c: messages for a given time: what they ask for, where they wait, and that the wheel is saved.  The turns of it: timer_turn.c. */
#include "broker.h"
#include "timer_private.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "timer"

enum {
	FLUSHED_MS = 100,       /* between looks whether the log is on the disk */
	STILL_MS = 10000,       /* how old the check-point may get while timers wait and nothing else happens */
	SLOTS_AHEAD = 7 * 86400, BLANK_SLOTS = 60, /* of the peer: how far the wheel can look ahead */
};

/* ---- Putting off --------------------------------------------------------------------------------------------------------- */

/* When it is to come; false: no number, or beyond all bounds. */
static bool deliver_time(const struct timer *t, struct mq_str props, int64_t *ms)
{
	struct mq_str sec = mq_prop_get(props, PROP_TIMER_DELAY_SEC), delay = mq_prop_get(props, PROP_TIMER_DELAY_MS);
	int64_t v, max = (int64_t)t->b->conf->timerMaxDelaySec * 1000;

	if (!sec.n && !delay.n)
		return str_i64(mq_prop_get(props, PROP_TIMER_DELIVER_MS), ms) == 0;
	if (str_i64(sec.n ? sec : delay, &v) < 0 || v > (sec.n ? max / 1000 : max))
		return false;
	*ms = v <= 0 ? 0 : clock_now_ms() + (sec.n ? v * 1000 : v);
	return true;
}

/* The step in which it is due: its end is never before that time.  compat: an exact multiple counts for the step before. */
static int64_t step_of(const struct timer *t, int64_t ms)
{
	return ms % t->step == 0 ? ms - t->step : ms / t->step * t->step;
}

static bool is_congested(struct timer *t, int64_t due_ms)
{
	int64_t most = t->b->conf->timerCongestNumEachSlot;
	struct wheel_slot s;

	if (most == INT32_MAX || !wheel_slot(t->wheel, due_ms, &s) || s.num <= most)
		return false;
	return s.num >= 2 * most || rand() % 1000 > 1000 * (s.num - most) / ((double)most + 0.1);
}

enum timer_answer timer_asked(struct timer *t, struct mq_str props, int64_t *due_ms)
{
	int64_t ms, now = clock_now_ms();

	if (mq_prop_get(props, PROP_TIMER_OUT_MS).n) /* compat: it was one, and was delivered */
		return TIMER_NONE;
	if (t->off)
		return TIMER_OFF;
	if (!deliver_time(t, props, &ms))
		return TIMER_ILLEGAL;
	if (ms <= now)
		return mq_prop_get(props, PROP_TIMER_DELETE).n ? TIMER_ILLEGAL : TIMER_NONE;
	if (ms - now > (int64_t)t->b->conf->timerMaxDelaySec * 1000)
		return TIMER_ILLEGAL;
	*due_ms = step_of(t, ms);
	return is_congested(t, *due_ms) ? TIMER_CONGESTED : TIMER_WAITS;
}

int32_t timer_refusal(const struct timer *t, enum timer_answer a, char *remark, size_t cap)
{
	long long max = t->b->conf->timerMaxDelaySec, most = t->b->conf->timerCongestNumEachSlot;

	switch (a) {
	case TIMER_ILLEGAL:
		snprintf(remark, cap, "timer message illegal, the delay time should not be bigger than the max delay %lldms; or if "
			 "set del msg, the delay time should be bigger than the current time", max * 1000);
		return RESP_MESSAGE_ILLEGAL;
	case TIMER_CONGESTED:
		snprintf(remark, cap, "timer message is under flow control, max num limit is %lld or the current value is greater "
			 "than %lld and less than %lld, trigger random flow control", most * 2, most, most * 2);
		return RESP_SYSTEM_ERROR;
	default:
		snprintf(remark, cap, "accurate timer message is not enabled, timerWheelEnable is %s",
			 t->b->conf->timerWheelEnable ? "true" : "false");
		return RESP_SYSTEM_ERROR;
	}
}

void timer_props(struct buf *out, int64_t due_ms, struct mq_str topic, int32_t queue_id)
{
	char text[16];

	buf_printf(out, PROP_TIMER_OUT_MS "\001%lld\002", (long long)due_ms);
	property_put(out, MQ_STR(PROP_REAL_TOPIC), topic);
	property_put(out, MQ_STR(PROP_REAL_QID), (struct mq_str){ text, (size_t)snprintf(text, sizeof text, "%d", queue_id) });
}

struct mqstore_queue *timer_queue(struct timer *t)
{
	if (!t->queue)
		t->queue = mqstore_queue(t->b->store, MQ_STR(TOPIC_TIMER), 0, true);
	return t->queue;
}

void timer_stored(struct timer *t, size_t n)
{
	t->b->metrics.timers_in += n;
	if (!t->retry_ms)
		timer_arm(t);
}

int timer_put(struct timer *t, const struct mqstore_record *r, struct mq_str topic, int32_t queue_id, int64_t deliver_ms,
              struct mqstore_place *place, struct mq_error *e)
{
	static const char *const replaced[] = { TIMER_PROPS, PROP_TIMER_DELIVER_MS, NULL };
	struct mqstore_record own = *r;
	int rc;

	if (t->off)
		return err_set(e, MQ_EUNSUPPORTED, "messages for a given time are not taken: timerWheelEnable=false");
	if (deliver_ms <= clock_now_ms()) {
		own.queue = topic_table_queue(t->b->topics, topic, queue_id);
		return own.queue ? mqstore_append(t->b->store, &own, 1, place, e) :
		       err_set(e, MQ_EINVAL, "topic '" MQ_STR_FMT "' has no queue %d", MQ_STR_ARG(topic), queue_id);
	}
	t->props.n = 0;
	property_copy_without(&t->props, r->props[0], replaced);
	property_copy_without(&t->props, r->props[1], replaced);
	buf_printf(&t->props, PROP_TIMER_DELIVER_MS "\001%lld\002", (long long)deliver_ms);
	timer_props(&t->props, step_of(t, deliver_ms), topic, queue_id);
	own.queue = timer_queue(t);
	own.props[0] = buf_view(&t->props);
	own.props[1] = (struct mq_str){ 0 };
	rc = mqstore_append(t->b->store, &own, 1, place, e);
	if (rc == 0)
		timer_stored(t, 1);
	return rc;
}

/* ---- Saving --------------------------------------------------------------------------------------------------------------- */

/* While the wheel is made again, the last check-point says what is done with. */
static bool is_changed(const struct timer *t)
{
	return !t->redo_queue && (wheel_dirty(t->wheel) || t->next != t->saved_next || t->delivered ||
	       (t->soonest != INT64_MAX && clock_mono_ms() - t->saved_ms >= STILL_MS));
}

/* How everything stands now; it goes to the disk when the log is there up to here: a copy that a power cut takes back must not count as
 * delivered. */
static void note(struct timer *t, bool stop)
{
	struct wheel_check *c = wheel_check(t->wheel);

	c->read_ms = t->slot.active ? t->slot.ms : t->read_ms;
	c->queue_off = c->master_off = t->next;
	c->stamp_ms = clock_now_ms();
	c->counter++;
	t->flush_end = mqstore_log_max(t->b->store);
	c->log_off = t->found ? t->found_from : t->slot.active ? t->slot.log_off : t->flush_end;
	c->ours = true;
	t->flush = wheel_flush_begin(t->wheel, stop && !t->slot.active && !t->found);
	t->saved_next = t->next;
	t->saved_ms = clock_mono_ms();
	t->delivered = false;
}

static void run_flush(uv_work_t *work)
{
	struct timer *t = work->data;

	wheel_flush_run(t->flush);
}

static int end_flush(struct timer *t)
{
	struct mq_error e;
	int rc = wheel_flush_end(t->wheel, t->flush, &e);

	t->flush = NULL;
	t->flushing = false;
	if (rc < 0) {
		t->saved_next = -1; /* again */
		t->b->metrics.table_failures++;
		log_error("timers: not saved, tried again: %s", e.text);
	}
	return rc;
}

static void on_flushed(uv_work_t *work, int status)
{
	end_flush(work->data);
}

static void flush(struct timer *t)
{
	if (!t->flush || t->flushing || mqstore_flushed(t->b->store) < t->flush_end)
		return;
	t->flushing = true;
	t->work.data = t;
	uv_queue_work(t->b->loop, &t->work, run_flush, on_flushed);
}

static void on_save(uv_timer_t *timer)
{
	struct timer *t = timer->data;
	uint64_t next = (uint64_t)t->b->conf->timerFlushIntervalMs;
	struct mq_error e;

	timer_run(t); /* wall time may have jumped ahead of the clock: a machine that slept */
	if (!t->flush && is_changed(t))
		note(t, false);
	flush(t);
	if (t->flush && !t->flushing && next > FLUSHED_MS)
		next = FLUSHED_MS;
	table_file_save(&t->counts.file);
	if (wheel_drop(t->wheel, mqstore_log_min(t->b->store), &e) < 0)
		log_warn("timers: %s", e.text);
	uv_timer_start(&t->save, on_save, next, 0);
}

bool timer_idle(const struct timer *t)
{
	return t->off || (!t->flushing && table_file_idle(&t->counts.file));
}

int timer_save(struct timer *t, struct mq_error *e)
{
	int rc, rc2;

	if (t->off)
		return 0;
	if (t->flush)
		wheel_flush_forget(t->wheel, t->flush);
	t->flush = NULL;
	rc2 = table_file_flush(&t->counts.file, e);
	if (mqstore_flushed(t->b->store) < mqstore_log_max(t->b->store))
		return rc2; /* the log could not be flushed: what was delivered since the last save is found in it */
	if (!t->queue || !mqstore_queue_max(t->queue) || t->redo_queue)
		return rc2;
	note(t, true);
	wheel_flush_run(t->flush);
	rc = wheel_flush_end(t->wheel, t->flush, e);
	t->flush = NULL;
	return rc < 0 ? rc : rc2;
}

/* ---- Looking at ------------------------------------------------------------------------------------------------------------ */

void timer_stat(struct timer *t, struct timer_stat *st)
{
	*st = (struct timer_stat){ 0 };
	if (t->off)
		return;
	st->read_ms = t->read_ms;
	st->behind = t->queue ? mqstore_queue_max(t->queue) - t->next : 0;
	st->pending = wheel_pending(t->wheel, t->read_ms);
}

int64_t timer_done_ms(struct timer *t)
{
	int64_t done = clock_now_ms();
	struct mqstore_entry entry;
	struct mq_message m;

	if (t->off)
		return done;
	/* What lies in a step is due after its begin, see step_of(). */
	if (t->slot.active && t->slot.ms < done)
		done = t->slot.ms;
	if (t->soonest < done)
		done = t->soonest;
	/* One that waits to be taken in was due after it came. */
	if (t->queue && t->next < mqstore_queue_max(t->queue) && mqstore_entry(t->queue, t->next, &entry) == 0 &&
	    timer_read(t, entry.log_off, &m) && m.store_ms < done)
		done = m.store_ms;
	return done;
}

void timer_write_check(struct timer *t, struct buf *out)
{
	struct wheel_check c = { 0 };

	if (!t->off) {
		c = *wheel_check(t->wheel);
		c.read_ms = t->slot.active ? t->slot.ms : t->read_ms;
		c.queue_off = c.master_off = t->next;
	}
	wheel_check_put(&c, (uint8_t *)buf_room(out, WHEEL_CHECK_BYTES));
	out->n += WHEEL_CHECK_BYTES;
}

int timer_each(struct timer *t, int64_t from_ms, int64_t before, int (*cb)(void *arg, const struct wheel_unit *u), void *arg)
{
	if (t->off)
		return 0;
	if (from_ms < t->read_ms) {
		from_ms = t->read_ms;
		before = INT64_MAX;
	}
	return wheel_each(t->wheel, from_ms, before, cb, arg);
}

bool timer_read(struct timer *t, int64_t log_off, struct mq_message *m)
{
	struct mq_str r;

	return mqstore_at(t->b->store, log_off, &r) == 0 && mq_message_decode(r.p, r.n, false, m) > 0 && str_is(m->topic, TOPIC_TIMER);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

static int64_t queue_off(void *arg, const struct wheel_unit *u)
{
	struct mq_message m;

	return timer_read(arg, u->log_off, &m) ? m.queue_off : -1;
}

static int open_wheel(struct timer *t, struct mq_error *e)
{
	const struct broker_conf *c = t->b->conf;
	struct wheel_opt o = {
		.dir = c->storePathRootDir, .precision_ms = wheel_precision(c->timerPrecisionMs),
		.log_file_bytes = c->mappedFileSizeTimerLog,
		.log_max = mqstore_log_max(t->b->store), .queue_off = queue_off, .arg = t,
	};
	int64_t slots = c->timerRollWindowSlot;

	t->step = o.precision_ms;
	if (slots > SLOTS_AHEAD - BLANK_SLOTS || slots < 2)
		slots = SLOTS_AHEAD - BLANK_SLOTS;
	t->window = slots * t->step;
	return wheel_open(&t->wheel, &o, e);
}

/* Where to go on. */
static int begin(struct timer *t, struct mq_error *e)
{
	struct wheel_check *c = wheel_check(t->wheel);
	bool checked = c->read_ms || c->master_off || c->flush_pos;
	bool trust = c->ours && c->clean && wheel_state(t->wheel) != WHEEL_LOST && !wheel_cut(t->wheel);
	int64_t min = t->queue ? mqstore_queue_min(t->queue) : 0, max = t->queue ? mqstore_queue_max(t->queue) : 0, ms;
	int64_t oldest = (clock_now_ms() / t->step - SLOTS_AHEAD + BLANK_SLOTS) * t->step;
	int rc = 0;

	t->next = c->master_off;
	t->read_ms = c->read_ms / t->step * t->step;
	if (wheel_state(t->wheel) == WHEEL_LOST || (wheel_state(t->wheel) == WHEEL_NEW && !checked && max > 0)) {
		t->redo_queue = wheel_state(t->wheel) == WHEEL_LOST ? c->master_off : max;
		t->redo_ms = c->read_ms;
		t->next = 0;
		if (t->redo_queue > max)
			t->redo_queue = max;
	}
	t->next = t->next < min ? min : t->next > max ? max : t->next;
	if (t->read_ms < oldest)
		t->read_ms = oldest; /* what is older has lost its slot to later ones */
	ms = wheel_next(t->wheel, t->read_ms, INT64_MAX);
	t->soonest = ms < 0 ? INT64_MAX : ms;
	t->b->metrics.timers_lost += (uint64_t)wheel_cut(t->wheel);
	if (!trust && (t->next < max || t->soonest != INT64_MAX))
		rc = timer_find_done(t, checked, e);
	if (rc == 0)
		rc = timer_counts_open(t, trust, e);
	t->saved_next = t->redo_queue || wheel_cut(t->wheel) ? -1 : t->next;
	return rc;
}

/* On a slave the master delivers.  A wheel from before would say, to a master that starts here one day, that nothing of that has
 * happened; without one all is made again from the queue, and what was delivered is found in the log. */
static int forget_wheel(struct broker *b, struct mq_error *e)
{
	static const char *const name[] = { "timerwheel", "timerlog", "config/timercheck" };
	int rc = 0;

	for (size_t i = 0; i < sizeof name / sizeof name[0] && rc == 0; i++) {
		char *path = mem_printf("%s/%s", b->conf->storePathRootDir, name[i]);
		struct stat st;

		rc = sys.stat(path, &st);
		rc = rc == -ENOENT ? 0 : rc < 0 ? rc : S_ISDIR(st.st_mode) ? sys_remove_tree(path) : sys.unlink(path);
		if (rc < 0)
			err_sys(e, rc, "remove '%s'", path);
		free(path);
	}
	return rc;
}

int timer_open(struct timer **out, struct broker *b, struct mq_error *e)
{
	struct timer *t = mem_alloc(sizeof *t);
	int rc;

	*out = NULL;
	t->b = b;
	t->off = !b->conf->timerWheelEnable || b->conf->brokerRole == ROLE_SLAVE;
	if (b->conf->brokerRole == ROLE_SLAVE && (rc = forget_wheel(b, e)) < 0) {
		free(t);
		return rc;
	}
	t->step = wheel_precision(b->conf->timerPrecisionMs);
	t->armed = t->soonest = INT64_MAX;
	if (!t->off) {
		t->queue = mqstore_queue(b->store, MQ_STR(TOPIC_TIMER), 0, false);
		rc = open_wheel(t, e);
		if (rc == 0)
			rc = begin(t, e);
		if (rc < 0) {
			waiting_close(&t->counts);
			timer_found_free(t);
			wheel_close(t->wheel);
			buf_free(&t->props);
			free(t);
			return rc;
		}
	}
	uv_timer_init(b->loop, &t->turn);
	uv_timer_init(b->loop, &t->save);
	t->turn.data = t->save.data = t;
	if (!t->off) {
		uv_timer_start(&t->save, on_save, (uint64_t)b->conf->timerFlushIntervalMs, 0);
		timer_arm(t);
	}
	*out = t;
	return 0;
}

void timer_stop(struct timer *t)
{
	t->stopped = true;
	uv_timer_stop(&t->turn);
	uv_timer_stop(&t->save);
}

static void on_closed(uv_handle_t *handle)
{
	struct timer *t = handle->data;

	if (++t->closed == 2)
		free(t);
}

void timer_free(struct timer *t)
{
	if (!t)
		return;
	if (!t->off) {
		if (t->flush)
			wheel_flush_forget(t->wheel, t->flush);
		timer_slot_free(&t->slot);
		free(t->slot.unit);
		waiting_close(&t->counts);
		timer_found_free(t);
		wheel_close(t->wheel);
	}
	buf_free(&t->props);
	uv_close((uv_handle_t *)&t->turn, on_closed);
	uv_close((uv_handle_t *)&t->save, on_closed);
}
