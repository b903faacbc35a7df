/* timer_turn.c: the turns of the wheel: messages of the queue go into it, and those of a step that is over go where they were sent to.
 *
 * A step is delivered the oldest message first, when its whole chain has been followed back; cancellations of the step are known by
 * then.  Both kinds of work come in small parts, so that others have their turns.  What cannot be stored is tried again until it
 * can; what can never be stored is dropped, counted and said. */
#include "broker.h"
#include "flush.h"
#include "record.h"
#include "timer_private.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "timer"

enum {
	TURN_TAKEN = 512,       /* messages taken in, */
	TURN_FOLLOWED = 8192,   /* units followed back, */
	TURN_DELIVERED = 256,   /* and messages delivered in one turn of the loop */
	SOON_MS = 5,            /* how long messages gather in the queue before they are taken in */
	RETRY_MS = 100,         /* after one that could not be stored, doubled up to ... */
	RETRY_MAX_MS = 2000,
	KEEP = 4096,            /* places of units that are kept room for */
};

struct timer_cancel {
	UT_hash_handle hh;
	bool hit;
	int32_t topic_hash;
	size_t n;
	char key[];
};

static int64_t floor_to(const struct timer *t, int64_t ms)
{
	return ms / t->step * t->step;
}

static bool is_over(const struct timer *t, int64_t step_ms)
{
	return step_ms + t->step <= clock_now_ms();
}

/* ---- Delivery ------------------------------------------------------------------------------------------------------------ */

static void drop(struct timer *t, int64_t log_off, const char *why)
{
	log_error("timer at log offset=%lld: not delivered: %s", (long long)log_off, why);
	t->b->metrics.timers_lost++;
}

/* With the properties that the peer adds. */
static struct mq_str props_of(struct timer *t, const struct mq_message *m, int64_t enqueue_ms, bool roll)
{
	static const char *const replaced[] = { PROP_TIMER_ENQUEUE_MS, PROP_TIMER_DEQUEUE_MS, NULL };
	static const char *const rolled[] = { PROP_TIMER_ENQUEUE_MS, PROP_TIMER_DEQUEUE_MS, PROP_TIMER_ROLL_TIMES, NULL };
	int32_t times = 0;

	t->props.n = 0;
	property_copy_without(&t->props, m->props, roll ? rolled : replaced);
	buf_printf(&t->props, PROP_TIMER_ENQUEUE_MS "\001%lld\002" PROP_TIMER_DEQUEUE_MS "\001%lld\002", (long long)enqueue_ms,
		   (long long)clock_now_ms());
	if (roll) {
		str_i32(mq_prop_get(m->props, PROP_TIMER_ROLL_TIMES), &times);
		buf_printf(&t->props, PROP_TIMER_ROLL_TIMES "\001%d\002", times < 0 || times == INT32_MAX ? 1 : times + 1);
	}
	return buf_view(&t->props);
}

/* 1: stored, or not needed; 0: dropped; negative: it could not be stored now. */
static int deliver(struct timer *t, const struct mq_message *m, int64_t enqueue_ms, bool roll, struct mq_error *e)
{
	struct mq_str topic = mq_prop_get(m->props, PROP_REAL_TOPIC);
	struct mqstore_record r = record_again(m);
	struct mqstore_place place;
	int32_t queue_id = -1;
	int rc;

	if (timer_was_done(t, m, roll))
		return 1;
	if (roll) {
		r.queue = t->queue;
	} else if (str_is(topic, TOPIC_TIMER) || str_is(topic, TOPIC_SCHEDULE) || str_is(topic, TOPIC_HALF)) {
		drop(t, m->log_off, "REAL_TOPIC is a topic of the system");
		return 0;
	} else if (topic.n && str_i32(mq_prop_get(m->props, PROP_REAL_QID), &queue_id) == 0) {
		r.queue = topic_table_queue(t->b->topics, topic, queue_id);
	}
	if (!r.queue) {
		drop(t, m->log_off, "REAL_TOPIC and REAL_QID are no queue");
		return 0;
	}
	r.props[0] = props_of(t, m, enqueue_ms, roll); /* compat: with REAL_TOPIC and REAL_QID */
	rc = mqstore_append(t->b->store, &r, 1, &place, e);
	if (rc == MQ_ETOOBIG && !roll) { /* it is full of properties */
		r.props[0] = m->props;
		rc = mqstore_append(t->b->store, &r, 1, &place, e);
	}
	if (rc == MQ_ETOOBIG || rc == MQ_EINVAL || rc == MQ_EUNSUPPORTED) {
		drop(t, m->log_off, e->text);
		return 0;
	}
	if (rc < 0)
		return rc;
	t->delivered = true;
	if (roll)
		t->b->metrics.timers_rolled++;
	else
		t->b->metrics.timers_out++;
	return 1;
}

static void put_off(struct timer *t, const struct mq_error *e)
{
	t->retry_ms = !t->retry_ms ? RETRY_MS : t->retry_ms * 2 < RETRY_MAX_MS ? t->retry_ms * 2 : RETRY_MAX_MS;
	t->b->metrics.timers_retries++;
	if (strncmp(t->trouble, e->text, sizeof t->trouble - 1))
		log_error("timers: cannot be stored, tried again: %s", e->text);
	snprintf(t->trouble, sizeof t->trouble, "%.*s", (int)sizeof t->trouble - 1, e->text);
}

/* ---- Taking in ----------------------------------------------------------------------------------------------------------- */

/* A moment that was done with comes again, because the clock was set back: what lies in its step was delivered. */
static void go_back(struct timer *t, int64_t ms)
{
	for (int64_t s = wheel_next(t->wheel, ms, t->read_ms); s >= 0; s = wheel_next(t->wheel, s + t->step, t->read_ms))
		wheel_empty(t->wheel, s);
	t->read_ms = floor_to(t, ms);
}

/* How far the wheel looks ahead.  Where messages are kept for a shorter time than that, one is put into the queue again before its
 * record goes. */
static int64_t window_of(const struct timer *t)
{
	int64_t kept = (int64_t)t->b->conf->fileReservedTime * 3600000;

	return kept > t->window || kept < 4 * t->step ? t->window : kept / 2 / t->step * t->step;
}

static int put_in(struct timer *t, const struct mq_message *m, int64_t due_ms, struct mq_error *e)
{
	struct mq_str topic = mq_prop_get(m->props, PROP_REAL_TOPIC);
	struct wheel_unit u = {
		.magic = WHEEL_NORMAL, .write_ms = floor_to(t, clock_now_ms()), .due_ms = due_ms, .log_off = m->log_off, .size = m->size,
		.topic_hash = str_java_hash(topic),
	};
	int64_t wait = due_ms - u.write_ms, window = window_of(t);
	bool cancels = mq_prop_get(m->props, PROP_TIMER_DELETE).n > 0;
	int rc;

	if (wait >= window) {
		u.magic |= WHEEL_ROLL;
		u.due_ms = u.write_ms + window;
		if (wait - window < window / t->step / 3 * t->step) /* give the next one time enough */
			u.due_ms = u.write_ms + window / t->step / 2 * t->step;
	}
	if (cancels)
		u.magic |= WHEEL_DELETE;
	if (u.due_ms < t->read_ms)
		go_back(t, u.due_ms);
	rc = wheel_add(t->wheel, &u, e);
	if (rc < 0)
		return rc;
	if (floor_to(t, u.due_ms) < t->soonest)
		t->soonest = floor_to(t, u.due_ms);
	waiting_add(&t->counts, topic, cancels ? -1 : 1);
	return 0;
}

/* The message at t->next.  Negative: it cannot go on now. */
static int take_in_one(struct timer *t, struct mq_error *e)
{
	struct mqstore_entry entry = { .log_off = -1 };
	struct mq_message m;
	int64_t due;
	int rc;

	if (mqstore_entry(t->queue, t->next, &entry) < 0 || !timer_read(t, entry.log_off, &m)) {
		drop(t, entry.log_off, "its record cannot be read");
		return 0;
	}
	if (str_i64(mq_prop_get(m.props, PROP_TIMER_OUT_MS), &due) < 0 || due < 0 || due > INT64_MAX / 2) {
		drop(t, m.log_off, "its TIMER_OUT_MS is no time");
		return 0;
	}
	if (t->next < t->redo_queue && floor_to(t, due) < t->redo_ms)
		return 0; /* was done with before the wheel was lost */
	if (t->redo_queue && timer_was_done(t, &m, true))
		return 0; /* rolled on */
	if (!is_over(t, floor_to(t, due)))
		return put_in(t, &m, due, e);
	if (mq_prop_get(m.props, PROP_TIMER_DELETE).n) {
		log_warn("a timer was to be cancelled, and its time is over key=" MQ_STR_FMT,
			 MQ_STR_ARG(mq_prop_get(m.props, PROP_TIMER_DELETE)));
		return 0;
	}
	rc = deliver(t, &m, INT64_MAX, false, e); /* compat: the mark of one that was never in the wheel */
	if (rc > 0)
		t->b->metrics.timers_late++;
	return rc;
}

/* True: there is more. */
static bool take_in(struct timer *t, struct mq_error *e)
{
	if (!t->queue)
		t->queue = mqstore_queue(t->b->store, MQ_STR(TOPIC_TIMER), 0, false);
	if (!t->queue || t->b->conf->timerStopEnqueue)
		return false;
	if (t->next < mqstore_queue_min(t->queue)) {
		log_warn("timers: messages %lld to %lld are gone from the log: they are not delivered", (long long)t->next,
			 (long long)mqstore_queue_min(t->queue) - 1);
		t->b->metrics.timers_lost += (uint64_t)(mqstore_queue_min(t->queue) - t->next);
		t->next = mqstore_queue_min(t->queue);
	}
	for (int left = TURN_TAKEN; left > 0 && t->next < mqstore_queue_max(t->queue); left--) {
		if (take_in_one(t, e) < 0) {
			put_off(t, e);
			return false;
		}
		t->next++;
	}
	return t->next < mqstore_queue_max(t->queue);
}

/* ---- A step that is over --------------------------------------------------------------------------------------------------- */

void timer_slot_free(struct timer_slot *s)
{
	struct timer_cancel *c, *next;

	HASH_ITER(hh, s->cancel, c, next) {
		HASH_DEL(s->cancel, c);
		free(c);
	}
	if (s->cap > KEEP) {
		free(s->unit);
		s->unit = NULL;
		s->cap = 0;
	}
	s->active = false;
	s->n = 0;
}

static void remember_cancel(struct timer *t, const struct wheel_unit *u)
{
	struct timer_cancel *c;
	struct mq_message m;
	struct mq_str key;

	if (!timer_read(t, u->log_off, &m)) {
		drop(t, u->log_off, "the record of a cancellation cannot be read");
		return;
	}
	key = mq_prop_get(m.props, PROP_TIMER_DELETE);
	HASH_FIND(hh, t->slot.cancel, key.p, key.n, c);
	if (c || !key.n)
		return;
	c = mem_alloc(sizeof *c + key.n + 1);
	memcpy(c->key, key.p, key.n);
	c->n = key.n;
	c->topic_hash = u->topic_hash;
	HASH_ADD_KEYPTR(hh, t->slot.cancel, c->key, c->n, c);
}

/* compat: the key alone, as 5.2, or TOPIC+KEY, as 5.3 makes it. */
static bool is_cancelled(struct timer *t, const struct mq_message *m)
{
	struct mq_str key = mq_prop_get(m->props, PROP_UNIQ_KEY);
	struct timer_cancel *c;

	if (!t->slot.cancel || !key.n)
		return false;
	HASH_FIND(hh, t->slot.cancel, key.p, key.n, c);
	if (!c) {
		t->props.n = 0;
		buf_str(&t->props, mq_prop_get(m->props, PROP_REAL_TOPIC));
		buf_char(&t->props, '+');
		buf_str(&t->props, key);
		HASH_FIND(hh, t->slot.cancel, t->props.p, t->props.n, c);
	}
	if (!c)
		return false;
	if (c->hit) /* the count went down for one of them when the cancellation came */
		waiting_add(&t->counts, mq_prop_get(m->props, PROP_REAL_TOPIC), -1);
	c->hit = true;
	t->b->metrics.timers_cancelled++;
	return true;
}

static void begin_slot(struct timer *t, int64_t ms, int64_t last, int64_t stop)
{
	struct timer_slot *s = &t->slot;

	if (!s->active)
		s->log_off = mqstore_log_max(t->b->store);
	s->active = s->collecting = true;
	s->ms = ms;
	s->at = s->head = last;
	s->stop = stop;
	t->read_ms = ms;
}

static void follow(struct timer *t)
{
	struct timer_slot *s = &t->slot;
	struct wheel_unit u;

	for (int left = TURN_FOLLOWED; left > 0 && s->at > s->stop; left--) {
		if (wheel_read(t->wheel, s->at, &u) < 0 || floor_to(t, u.due_ms) != s->ms) {
			log_error("timers of %lld: the chain in the timer log is broken at %lld: what is before it is not delivered",
				  (long long)s->ms, (long long)s->at);
			t->b->metrics.timers_lost++;
			s->at = -1;
			break;
		}
		if ((u.magic & WHEEL_DELETE) && !(u.magic & WHEEL_ROLL)) {
			remember_cancel(t, &u);
		} else {
			if (s->n == s->cap) {
				s->cap = s->cap ? s->cap * 2 : KEEP;
				s->unit = mem_realloc(s->unit, s->cap * sizeof *s->unit);
			}
			s->unit[s->n++] = u.pos;
		}
		s->at = u.prev;
	}
	s->collecting = s->at > s->stop;
}

static int deliver_unit(struct timer *t, int64_t pos, struct mq_error *e)
{
	bool roll;
	struct wheel_unit u;
	struct mq_message m;
	int64_t due;
	int rc;

	if (wheel_read(t->wheel, pos, &u) < 0)
		return 0;
	roll = u.magic & WHEEL_ROLL;
	if (!timer_read(t, u.log_off, &m) || m.size != u.size || str_i64(mq_prop_get(m.props, PROP_TIMER_OUT_MS), &due) < 0 ||
	    (roll ? due < u.due_ms : floor_to(t, due) != floor_to(t, u.due_ms))) {
		drop(t, u.log_off, "its record is gone from the log");
		timer_count_lost(t, u.topic_hash);
		return 0;
	}
	if (!roll && is_cancelled(t, &m))
		return 1;
	rc = deliver(t, &m, u.write_ms, roll, e);
	if (rc >= 0)
		waiting_add(&t->counts, mq_prop_get(m.props, PROP_REAL_TOPIC), u.magic & WHEEL_DELETE ? 1 : -1);
	return rc;
}

static void look_for_soonest(struct timer *t)
{
	int64_t ms = wheel_next(t->wheel, t->read_ms, INT64_MAX);

	t->soonest = ms < 0 ? INT64_MAX : ms;
}

static void end_slot(struct timer *t)
{
	struct timer_slot *s = &t->slot;
	struct wheel_slot now;
	struct waiting_topic *x;

	if (wheel_slot(t->wheel, s->ms, &now) && now.last > s->head) { /* the clock was set back meanwhile */
		begin_slot(t, s->ms, now.last, s->head);
		return;
	}
	for (struct timer_cancel *c = s->cancel; c; c = c->hh.next) {
		x = c->hit ? NULL : waiting_of_hash(&t->counts, c->topic_hash);
		if (x)
			waiting_add(&t->counts, (struct mq_str){ x->name, x->n }, 1); /* it cancelled nothing */
	}
	timer_slot_free(s);
	t->read_ms = s->ms + t->step;
	t->delivered = true;
	look_for_soonest(t);
}

/* True: there is more to do now. */
static bool turn_slot(struct timer *t, int *left, struct mq_error *e)
{
	struct timer_slot *s = &t->slot;
	struct wheel_slot slot;

	if (t->b->conf->timerStopDequeue)
		return false;
	if (!s->active) {
		if (t->soonest == INT64_MAX || !is_over(t, t->soonest))
			return false;
		if (!wheel_slot(t->wheel, t->soonest, &slot)) {
			look_for_soonest(t);
			return true;
		}
		begin_slot(t, t->soonest, slot.last, -1);
	}
	if (s->collecting) {
		follow(t);
		if (s->collecting) {
			*left = 0; /* others have their turn */
			return true;
		}
	}
	for (; s->n && *left > 0; --*left) {
		int rc = deliver_unit(t, s->unit[s->n - 1], e);

		if (rc < 0) {
			put_off(t, e);
			return false;
		}
		s->n--;
	}
	if (!s->n)
		end_slot(t);
	return true;
}

/* ---- The clock ------------------------------------------------------------------------------------------------------------- */

static void on_turn(uv_timer_t *timer)
{
	timer_run(timer->data);
}

static void arm_at(struct timer *t, int64_t mono)
{
	if (mono >= t->armed || t->stopped)
		return;
	t->armed = mono;
	uv_update_time(t->b->loop);
	uv_timer_start(&t->turn, on_turn, mono > clock_mono_ms() ? (uint64_t)(mono - clock_mono_ms()) : 0, 0);
}

void timer_arm(struct timer *t)
{
	int64_t wait;

	if (t->queue && t->next < mqstore_queue_max(t->queue) && !t->b->conf->timerStopEnqueue)
		arm_at(t, clock_mono_ms() + SOON_MS);
	if (t->soonest == INT64_MAX)
		return;
	wait = t->soonest + t->step - clock_now_ms() + 1; /* both clocks are cut to whole ms: never early */
	if (wait > 0 || !t->b->conf->timerStopDequeue)
		arm_at(t, clock_mono_ms() + (wait > 0 ? wait : 0));
}

/* What was done before the start has been passed by everything. */
static void forget_found(struct timer *t)
{
	if (t->next < t->found_queue)
		return;
	t->redo_queue = 0;
	if (t->found && !t->slot.active && t->read_ms > t->found_ms)
		timer_found_free(t);
}

void timer_run(struct timer *t)
{
	struct mq_error e = { 0 };
	int left = TURN_DELIVERED;
	bool more, delivered = t->delivered;
	int64_t upto;

	clock_refresh();
	t->armed = INT64_MAX;
	if (t->off || t->stopped)
		return;
	t->delivered = false;
	upto = floor_to(t, clock_now_ms());
	more = take_in(t, &e);
	/* A step is begun when all that is to be in it is: what is in the queue yet may belong there.  But it does not wait for long. */
	while (e.code == 0 && (!more || t->soonest + 2 * t->step <= clock_now_ms()) && left > 0 && turn_slot(t, &left, &e))
		;
	if (e.code == 0 && !t->slot.active && t->read_ms < upto)
		t->read_ms = t->soonest < upto ? t->soonest : upto;
	forget_found(t);
	if (t->delivered) {
		t->trouble[0] = 0;
		if (t->b->conf->flushDiskType == FLUSH_SYNC)
			flush_soon(t->b->flush); /* readers see it when it is on the disk */
	}
	t->delivered |= delivered;
	if (e.code == 0) {
		t->retry_ms = 0;
		if (more || left <= 0 || (t->slot.active && !t->b->conf->timerStopDequeue))
			arm_at(t, clock_mono_ms());
		timer_arm(t);
	} else {
		arm_at(t, clock_mono_ms() + t->retry_ms);
	}
}
