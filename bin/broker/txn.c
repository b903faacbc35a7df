/* txn.c: transactional messages from the half that is stored to its end, and what is kept of them over a restart. */
#include "txn_private.h"
#include "broker.h"
#include "delay.h"
#include "flush.h"
#include "offset_table.h"
#include "record.h"
#include "timer.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/message.h>
#include <codec/property.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "txn"
#define GROUP MQ_STR("CID_RMQ_SYS_TRANS")

enum {
	SAVE_MS = 1000,
	OP_TEXT = 48,           /* two numbers with their commas */
};

/* ---- Storing ------------------------------------------------------------------------------------------------------------- */

int64_t txn_immunity(struct mq_str props)
{
	struct mq_str text = mq_prop_get(props, PROP_TXN_IMMUNITY);
	int64_t s;

	return text.n && str_i64(text, &s) == 0 && s >= 0 && s < INT64_MAX / 2000 ? s * 1000 : -1;
}

struct mqstore_queue *txn_queue(struct txn *t)
{
	return t->halves;
}

void txn_props(struct buf *out, struct mq_str topic, int32_t queue_id, struct mq_str uniq_key)
{
	char text[16];

	property_put(out, MQ_STR(PROP_REAL_TOPIC), topic);
	property_put(out, MQ_STR(PROP_REAL_QID), (struct mq_str){ text, (size_t)snprintf(text, sizeof text, "%d", queue_id) });
	property_put(out, MQ_STR(PROP_TRANSACTION_ID), uniq_key);
}

void txn_add_half(struct txn *t, const struct mqstore_place *place, int64_t due)
{
	assert(place->queue_off == t->base + (int64_t)t->half.n); /* nobody else writes there */
	*txn_half_push(t) = (struct half){ place->log_off, due };
	t->pending++;
}

void txn_stored(struct txn *t, struct mq_str topic, const struct mqstore_place *place, int64_t born_ms, int64_t immunity_ms)
{
	waiting_add(&t->counts, topic, 1);
	txn_add_half(t, place, txn_half_due(t, born_ms, place->store_ms, immunity_ms));
	t->b->metrics.halves_in++;
}

/* The record that says that these places of the half topic are over; second: -1, or another. */
static struct mqstore_record op_record(struct txn *t, char text[OP_TEXT], int64_t first, int64_t second)
{
	int n = snprintf(text, OP_TEXT, "%lld,", (long long)first);

	if (second >= 0)
		n += snprintf(text + n, OP_TEXT - (size_t)n, "%lld,", (long long)second);
	return (struct mqstore_record){
		.queue = t->ops, .body = { text, (size_t)n }, .props = { MQ_STR("TAGS\001d\002WAIT\001true\002") }, .parsed = true,
		.tags = MQ_STR("d"), .born_ms = clock_now_ms(), .born_host = t->b->store_host, .store_host = t->b->store_host,
	};
}

/* Record r, unless NULL, and the one that says that the half at `off` is over: both, or none. */
int txn_store_with_op(struct txn *t, const struct mqstore_record *r, int64_t off, int64_t first, struct mqstore_place place[2],
                         struct mq_error *e)
{
	struct mqstore_record both[2];
	char text[OP_TEXT];
	size_t n = 0;
	int rc;

	if (r)
		both[n++] = *r;
	both[n++] = op_record(t, text, off, first != off && first >= t->base ? first : -1);
	rc = mqstore_append(t->b->store, both, n, place, e);
	if (rc < 0)
		return rc;
	if (n == 1)
		place[1] = place[0];
	txn_half_push_op(t, off);
	return 0;
}

/* The half at off is over: committed, rolled back, given up, or appended again. */
void txn_end_place(struct txn *t, struct half *h)
{
	if (h->due == TXN_DONE)
		return;
	h->due = TXN_DONE;
	t->pending--;
	txn_half_shrink(t);
}

/* ---- The end ------------------------------------------------------------------------------------------------------------- */

/* The place at which this half, or what it has become, is pending; -1: it is not. */
static int64_t pending_place(struct txn *t, const struct mq_message *half)
{
	struct half *h = txn_half_at(t, half->queue_off);
	struct moved *m;

	if (h && h->due != TXN_DONE && h->log_off == half->log_off)
		return half->queue_off;
	m = txn_half_moved(t, txn_half_first(half));
	return m ? m->now : -1;
}

static bool is_stored(struct txn *t, struct mq_str topic, struct mq_str key)
{
	int64_t off;

	return topic.n && key.n && mqstore_query(t->b->store, topic, key, 1, 0, INT64_MAX, &off, NULL, NULL) > 0;
}

enum txn_state txn_state(struct txn *t, const struct mq_message *half)
{
	struct mq_str key = mq_prop_get(half->props, PROP_UNIQ_KEY);

	if (pending_place(t, half) >= 0)
		return TXN_PENDING;
	if (is_stored(t, MQ_STR(TOPIC_GIVEN_UP), key) && !is_stored(t, mq_prop_get(half->props, PROP_REAL_TOPIC), key))
		return TXN_GIVEN_UP;
	return TXN_ENDED;
}

/* The message itself.  *level: of its delay, or 0; *timed: it waits for a given time. */
static int real_record(struct txn *t, const struct mq_message *half, struct mqstore_record *r, int32_t *level, bool *timed,
                       struct mq_error *e)
{
	struct mq_str topic = mq_prop_get(half->props, PROP_REAL_TOPIC);
	struct property_scan s;
	int32_t queue_id = -1;
	int64_t due_ms;

	*r = record_again(half);
	*level = 0;
	*timed = false;
	if (str_i32(mq_prop_get(half->props, PROP_REAL_QID), &queue_id) == 0 && !str_is(topic, TOPIC_HALF))
		r->queue = topic_table_queue(t->b->topics, topic, queue_id);
	if (!r->queue)
		return err_set(e, MQ_EINVAL, "REAL_TOPIC '" MQ_STR_FMT "' and REAL_QID %d of the half are no queue",
			       MQ_STR_ARG(topic), queue_id);
	r->props[0] = half->props; /* compat: with TRAN_MSG, REAL_TOPIC and REAL_QID */
	r->sys_flag = (half->sys_flag & ~MQ_SYS_TRAN_MASK) | MQ_SYS_TRAN_COMMIT;
	r->prepared_off = half->log_off;
	property_scan(half->props, &s);
	if (s.delay_level > 0)
		*level = delay_level(t->b->delay, s.delay_level);
	if (*level) {
		static const char *const replaced[] = { DELAY_PROPS, NULL };

		t->props.n = 0;
		property_copy_without(&t->props, half->props, replaced);
		delay_props(&t->props, *level, topic, queue_id);
		r->props[0] = buf_view(&t->props);
		r->queue = delay_queue(t->b->delay, *level);
	} else if (s.timer) {
		static const char *const replaced[] = { TIMER_PROPS, NULL };
		enum timer_answer a = timer_asked(t->b->timer, half->props, &due_ms);
		char why[256];

		if (a > TIMER_WAITS) {
			timer_refusal(t->b->timer, a, why, sizeof why);
			return err_set(e, MQ_EINVAL, "%s", why);
		}
		*timed = a == TIMER_WAITS;
		if (*timed) {
			t->props.n = 0;
			property_copy_without(&t->props, half->props, replaced);
			timer_props(&t->props, due_ms, topic, queue_id);
			r->props[0] = buf_view(&t->props);
			r->queue = timer_queue(t->b->timer);
		}
	}
	return 0;
}

static void count_message(struct txn *t, const struct mq_message *half, const struct mqstore_place *place)
{
	struct topic *topic = topic_table_find(t->b->topics, mq_prop_get(half->props, PROP_REAL_TOPIC));

	t->b->metrics.messages_in++;
	t->b->metrics.bytes_in += (uint64_t)place->size;
	if (topic)
		tally_add(&t->b->tallies, &topic->put, 1, 1, place->size);
}

int txn_end(struct txn *t, const struct mq_message *half, bool commit, struct mqstore_place *last, struct mq_error *e)
{
	int64_t off = pending_place(t, half), first = txn_half_first(half);
	struct mqstore_place place[2];
	struct mqstore_record r;
	struct moved *m;
	int32_t level = 0;
	bool timed = false;
	int rc = commit ? real_record(t, half, &r, &level, &timed, e) : 0;

	if (rc == 0)
		rc = txn_store_with_op(t, commit ? &r : NULL, off >= 0 ? off : half->queue_off, first, place, e);
	if (rc < 0)
		return rc;
	*last = place[1];
	if (commit)
		count_message(t, half, &place[0]);
	if (level)
		delay_stored(t->b->delay, level, 1);
	if (timed)
		timer_stored(t->b->timer, 1);
	m = txn_half_moved(t, first);
	if (m)
		txn_half_drop_moved(t, m);
	if (off >= 0) {
		txn_end_place(t, txn_half_at(t, off));
		waiting_add(&t->counts, mq_prop_get(half->props, PROP_REAL_TOPIC), -1);
	}
	if (commit)
		t->b->metrics.commits++;
	else
		t->b->metrics.rollbacks++;
	if (t->b->conf->flushDiskType == FLUSH_SYNC)
		flush_soon(t->b->flush); /* readers see it when it is on the disk */
	return 0;
}

int64_t txn_count(const struct txn *t, struct mq_str topic)
{
	return waiting_count(&t->counts, topic);
}

size_t txn_pending(const struct txn *t)
{
	return t->pending;
}

/* ---- What is kept -------------------------------------------------------------------------------------------------------- */

static void mark(struct txn *t)
{
	t->marked = true;
	t->mark_base = t->base;
	t->mark_op = t->op_base;
	t->mark_end = mqstore_log_max(t->b->store);
}

static void keep(struct txn *t, const char *topic, int64_t off, const struct mqstore_queue *q)
{
	int64_t have = offset_table_get(t->b->offsets, str_of(topic), GROUP, 0);

	/* compat: as long as it has got nowhere it is no group of this topic */
	if (have != off && (have >= 0 || off != mqstore_queue_min(q)))
		offset_table_commit(t->b->offsets, str_of(topic), GROUP, 0, off, mqstore_queue_max(q), "transactions");
}

/* The mark goes into the table of offsets when the log is on the disk up to there: a commit that a power cut takes back must be
 * pending again. */
static void take_mark(struct txn *t)
{
	if (!t->marked || mqstore_flushed(t->b->store) < t->mark_end)
		return;
	t->marked = false;
	keep(t, TOPIC_HALF, t->mark_base, t->halves);
	keep(t, TOPIC_OP_HALF, t->mark_op, t->ops);
}

static void on_save(uv_timer_t *timer)
{
	struct txn *t = timer->data;

	take_mark(t);
	if (!t->marked)
		mark(t);
	if (clock_mono_ms() - t->counted_ms >= t->b->conf->transactionMetricFlushInterval) {
		t->counted_ms = clock_mono_ms();
		table_file_save(&t->counts.file);
	}
}

bool txn_idle(const struct txn *t)
{
	return table_file_idle(&t->counts.file);
}

void txn_save(struct txn *t)
{
	struct mq_error e;

	if (t->slave)
		return;
	mark(t);
	take_mark(t);
	if (table_file_flush(&t->counts.file, &e) < 0)
		log_error("%s", e.text);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

static int64_t begin_of(struct txn *t, const char *topic, const struct mqstore_queue *q)
{
	int64_t off = offset_table_get(t->b->offsets, str_of(topic), GROUP, 0), min = mqstore_queue_min(q), max = mqstore_queue_max(q);

	return off < min ? min : off > max ? max : off;
}

static bool read_at(struct txn *t, struct mqstore_queue *q, int64_t off, struct mq_message *m)
{
	struct mqstore_entry e;
	struct mq_str r;

	return mqstore_entry(q, off, &e) == 0 && mqstore_at(t->b->store, e.log_off, &r) == 0 && mq_message_decode(r.p, r.n, false, m) > 0;
}

/* Places that are over, by the records of the op queue.  An op may name many, or the number alone, as older brokers wrote it. */
static void load_ops(struct txn *t)
{
	int64_t max = mqstore_queue_max(t->ops);

	t->op_base = begin_of(t, TOPIC_OP_HALF, t->ops);
	for (int64_t off = t->op_base; off < max; off++) {
		int64_t highest = -1, v;
		struct mq_message m;
		struct mq_str rest, piece;

		if (read_at(t, t->ops, off, &m) && str_is(mq_prop_get(m.props, PROP_TAGS), "d"))
			for (rest = m.body; str_split(&rest, ',', &piece);) {
				struct half *h;

				if (str_i64(piece, &v) < 0)
					continue;
				h = txn_half_at(t, v);
				if (h)
					h->due = TXN_DONE;
				highest = v > highest ? v : highest;
			}
		txn_half_push_op(t, highest);
	}
}

static void load(struct txn *t)
{
	int64_t max = mqstore_queue_max(t->halves);

	t->base = begin_of(t, TOPIC_HALF, t->halves);
	for (int64_t off = t->base; off < max; off++)
		*txn_half_push(t) = (struct half){ -1, 0 };
	load_ops(t);
	for (int64_t off = t->base; off < max; off++) {
		struct half *h = txn_half_at(t, off), *old;
		struct mq_message m;
		struct moved *was;

		if (h->due == TXN_DONE)
			continue;
		if (!read_at(t, t->halves, off, &m)) {
			h->due = TXN_DONE;
			continue;
		}
		*h = (struct half){ m.log_off, txn_half_due(t, m.born_ms, m.store_ms, txn_immunity(m.props)) };
		t->pending++;
		waiting_add(&t->counts, mq_prop_get(m.props, PROP_REAL_TOPIC), 1);
		if (txn_half_first(&m) == off)
			continue;
		was = txn_half_moved(t, txn_half_first(&m));
		old = txn_half_at(t, was ? was->now : txn_half_first(&m)); /* it has an op, or a crash came between */
		if (old && old->due != TXN_DONE) {
			old->due = TXN_DONE;
			t->pending--;
			waiting_add(&t->counts, mq_prop_get(m.props, PROP_REAL_TOPIC), -1);
		}
		txn_half_set_moved(t, txn_half_first(&m), off);
	}
	txn_half_shrink(t);
	if (t->pending)
		log_info("halves pending=%zu from=%lld to=%lld", t->pending, (long long)t->base, (long long)max);
}

int txn_open(struct txn **out, struct broker *b, struct mq_error *e)
{
	struct txn *t = mem_alloc(sizeof *t);
	int rc;

	*out = NULL;
	t->b = b;
	t->halves = mqstore_queue(b->store, MQ_STR(TOPIC_HALF), 0, true);
	t->ops = mqstore_queue(b->store, MQ_STR(TOPIC_OP_HALF), 0, true);
	if (!t->halves || !t->ops) {
		free(t);
		return err_set(e, MQ_EINVAL, "queues of " TOPIC_HALF " and " TOPIC_OP_HALF " cannot be made");
	}
	rc = waiting_open(&t->counts, b, "transactionMetrics", "transactionCount", false, e);
	if (rc < 0) {
		free(t);
		return rc;
	}
	t->slave = b->conf->brokerRole == ROLE_SLAVE;
	if (!t->slave)
		load(t);
	uv_timer_init(b->loop, &t->round_timer);
	uv_timer_init(b->loop, &t->save_timer);
	t->round_timer.data = t->save_timer.data = t;
	if (!t->slave) {
		uv_timer_start(&t->round_timer, txn_ask_round, (uint64_t)b->conf->transactionCheckInterval, 0);
		uv_timer_start(&t->save_timer, on_save, SAVE_MS, SAVE_MS);
	}
	*out = t;
	return 0;
}

void txn_stop(struct txn *t)
{
	uv_timer_stop(&t->round_timer);
	uv_timer_stop(&t->save_timer);
}

static void on_closed(uv_handle_t *handle)
{
	struct txn *t = handle->data;
	struct moved *m, *tmp;

	if (++t->closed < 2)
		return;
	HASH_ITER(hh, t->moved, m, tmp)
		txn_half_drop_moved(t, m);
	buf_free(&t->props);
	ring_free(&t->half);
	ring_free(&t->op);
	free(t);
}

void txn_free(struct txn *t)
{
	if (!t)
		return;
	waiting_close(&t->counts);
	uv_close((uv_handle_t *)&t->round_timer, on_closed);
	uv_close((uv_handle_t *)&t->save_timer, on_closed);
}
