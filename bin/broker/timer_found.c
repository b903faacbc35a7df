/* timer_found.c: what was delivered, or rolled on, between the last check-point and a kill.
 *
 * Such copies lie in the log behind the place that the check-point notes; of a store of the peer, behind the time up to which it says
 * that all is done.  They are told by what a copy has in common with the message that waited; of two that are alike in all of that
 * (a send that was tried again) each copy counts for one. */
#include "broker.h"
#include "timer_private.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <sodium.h>
#include <stdlib.h>

#define LOG_MODULE "timer"

enum { GRACE_MS = 3000 };

/* roll: it was put into the queue once more, having been there for the n-th time. */
static uint64_t mark_of(struct timer *t, const struct mq_message *m, bool roll, int32_t times)
{
	struct mq_str id = mq_prop_get(m->props, PROP_UNIQ_KEY), due = mq_prop_get(m->props, PROP_TIMER_OUT_MS);
	struct mq_str topic = mq_prop_get(m->props, PROP_REAL_TOPIC), queue = mq_prop_get(m->props, PROP_REAL_QID);
	unsigned char out[crypto_shorthash_BYTES];
	uint64_t mark;

	t->props.n = 0;
	buf_printf(&t->props, "%d %d %lld %u %zu %d %d ", roll, times, (long long)m->born_ms, m->body_crc, m->body.n, m->flag,
		   m->reconsume_times);
	buf_str(&t->props, due);
	buf_char(&t->props, 0);
	buf_str(&t->props, id);
	buf_char(&t->props, 0);
	buf_str(&t->props, topic);
	buf_char(&t->props, 0);
	buf_str(&t->props, queue);
	crypto_shorthash(out, (const unsigned char *)t->props.p, t->props.n, t->found_key);
	memcpy(&mark, out, sizeof mark);
	return mark;
}

static int32_t times_of(const struct mq_message *m)
{
	int32_t n;

	return str_i32(mq_prop_get(m->props, PROP_TIMER_ROLL_TIMES), &n) == 0 && n > 0 ? n : 0;
}

static void add(struct timer *t, uint64_t mark)
{
	struct timer_found *x;

	HASH_FIND(hh, t->found, &mark, sizeof mark, x);
	if (!x) {
		x = mem_alloc(sizeof *x);
		x->mark = mark;
		HASH_ADD(hh, t->found, mark, sizeof x->mark, x);
	}
	x->n++;
}

bool timer_was_done(struct timer *t, const struct mq_message *m, bool roll)
{
	struct timer_found *x;
	uint64_t mark;

	if (!t->found)
		return false;
	mark = mark_of(t, m, roll, times_of(m));
	HASH_FIND(hh, t->found, &mark, sizeof mark, x);
	if (!x)
		return false;
	if (--x->n == 0) {
		HASH_DEL(t->found, x);
		free(x);
	}
	t->b->metrics.timers_found++;
	return true;
}

void timer_found_free(struct timer *t)
{
	struct timer_found *x, *next;

	HASH_ITER(hh, t->found, x, next) {
		HASH_DEL(t->found, x);
		free(x);
	}
}

static int see(void *arg, int64_t log_off, struct mq_str record)
{
	struct timer *t = arg;
	struct mq_message m;

	if (mq_message_decode(record.p, record.n, false, &m) <= 0 || !mq_prop_get(m.props, PROP_TIMER_DEQUEUE_MS).n)
		return 0;
	if (!str_is(m.topic, TOPIC_TIMER)) {
		if (str_eq(m.topic, mq_prop_get(m.props, PROP_REAL_TOPIC)))
			add(t, mark_of(t, &m, false, times_of(&m)));
	} else if (!t->redo_queue && times_of(&m) > 0) {
		add(t, mark_of(t, &m, true, times_of(&m) - 1));
	}
	return 0;
}

/* The wheel is made again: of a message that was rolled on only the last record counts. */
static void see_rolled(struct timer *t)
{
	struct mqstore_entry entry;
	struct mq_message m;

	for (int64_t off = t->next; t->queue && off < mqstore_queue_max(t->queue); off++)
		if (mqstore_entry(t->queue, off, &entry) == 0 && timer_read(t, entry.log_off, &m) && times_of(&m) > 0)
			add(t, mark_of(t, &m, true, times_of(&m) - 1));
}

/* A place in the log before everything that was stored at `ms` or later: by the queue of the timers, in which times grow. */
static int64_t place_of_time(struct timer *t, int64_t ms)
{
	struct mqstore_entry entry;
	int64_t off;

	if (!t->queue)
		return mqstore_log_min(t->b->store);
	off = mqstore_search_time(t->b->store, t->queue, ms, true);
	while (off > mqstore_queue_min(t->queue) && mqstore_time_at(t->b->store, t->queue, off) >= ms)
		off--;
	if (mqstore_entry(t->queue, off, &entry) < 0 || mqstore_time_at(t->b->store, t->queue, off) >= ms)
		return mqstore_log_min(t->b->store);
	return entry.log_off;
}

int timer_find_done(struct timer *t, bool checked, struct mq_error *e)
{
	const struct wheel_check *c = wheel_check(t->wheel);
	int64_t from = mqstore_log_min(t->b->store), end = mqstore_log_max(t->b->store), begun = clock_mono_us();
	int rc;

	randombytes_buf(t->found_key, sizeof t->found_key);
	if (c->ours)
		from = c->log_off;
	else if (checked && c->read_ms > GRACE_MS)
		from = place_of_time(t, c->read_ms - GRACE_MS);
	if (t->redo_queue)
		see_rolled(t);
	rc = from < end ? mqstore_walk(t->b->store, from, see, t, e) : 0;
	if (rc < 0)
		return rc;
	t->found_from = from;
	t->found_queue = t->queue ? mqstore_queue_max(t->queue) : 0;
	t->found_ms = clock_now_ms();
	log_info("timers: looked for deliveries since the last check-point bytes=%lld found=%u ms=%lld",
		 (long long)(end > from ? end - from : 0), HASH_COUNT(t->found), (long long)(clock_mono_us() - begun) / 1000);
	return 0;
}
