/* txn.c: which halves are pending, and the rounds in which their producers are asked. */
#include "txn.h"
#include "broker.h"
#include "client_table.h"
#include "delay.h"
#include "flush.h"
#include "offset_table.h"
#include "record.h"
#include "timer.h"
#include "topic_table.h"
#include "waiting.h"
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
#define DONE INT64_MIN

enum {
	TURN_ASKED = 64,        /* halves that are asked about in one turn of the loop */
	TURN_SEEN = 1 << 16,    /* halves that are looked at in one */
	WINDOW_MAX = 1 << 16,   /* places behind the first pending half before one with time of grace is moved out of the way */
	SAVE_MS = 1000,
	OP_TEXT = 48,           /* two numbers with their commas */
};

/* A place of the half topic's queue, from the first pending one on. */
struct half {
	int64_t log_off;
	int64_t due;            /* wall ms from which on it may be asked about; DONE: over, or moved */
};

/* A pending half that was appended again: where it was first, where it is now. */
struct moved {
	UT_hash_handle hh;
	int64_t first, now;
};

struct txn {
	struct broker *b;
	struct mqstore_queue *halves, *ops;
	struct half *half;      /* a ring; cap is a power of two */
	int64_t base;           /* queue offset of the first */
	size_t at, n, cap;
	size_t pending;
	struct moved *moved;    /* uthash, by first */
	int64_t *op;            /* a ring: highest half that each record of the op queue speaks of */
	int64_t op_base;
	size_t op_at, op_n, op_cap;
	uv_timer_t round_timer, save_timer;
	int closed;
	bool asking;            /* a round is under way: */
	int64_t next, end;      /* next to look at; it ends here */
	bool marked;
	int64_t mark_base, mark_op, mark_end;
	uint32_t turn;          /* whose turn it is among the producers of a group */
	bool stopped;
	bool slave;             /* its master does all this */
	char trouble[200];      /* of the last round, said once */
	struct buf props;       /* of one record */
	struct waiting counts;  /* pending by topic: config/transactionMetrics */
	int64_t counted_ms;     /* monotonic: when they were last saved */
};

/* ---- The rings ----------------------------------------------------------------------------------------------------------- */

static struct half *place_of(struct txn *t, int64_t off)
{
	if (off < t->base || off - t->base >= (int64_t)t->n)
		return NULL;
	return &t->half[(t->at + (size_t)(off - t->base)) & (t->cap - 1)];
}

static struct half *push_half(struct txn *t)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		struct half *v = mem_alloc(cap * sizeof *v);

		for (size_t i = 0; i < t->n; i++)
			v[i] = t->half[(t->at + i) & (t->cap - 1)];
		free(t->half);
		t->half = v;
		t->cap = cap;
		t->at = 0;
	}
	return &t->half[(t->at + t->n++) & (t->cap - 1)];
}

static void push_op(struct txn *t, int64_t highest)
{
	if (t->op_n == t->op_cap) {
		size_t cap = t->op_cap ? t->op_cap * 2 : 256;
		int64_t *v = mem_alloc(cap * sizeof *v);

		for (size_t i = 0; i < t->op_n; i++)
			v[i] = t->op[(t->op_at + i) & (t->op_cap - 1)];
		free(t->op);
		t->op = v;
		t->op_cap = cap;
		t->op_at = 0;
	}
	t->op[(t->op_at + t->op_n++) & (t->op_cap - 1)] = highest;
}

/* What is over at the front leaves. */
static void shrink(struct txn *t)
{
	while (t->n && t->half[t->at].due == DONE) {
		t->at = (t->at + 1) & (t->cap - 1);
		t->n--;
		t->base++;
	}
	while (t->op_n && t->op[t->op_at] < t->base) {
		t->op_at = (t->op_at + 1) & (t->op_cap - 1);
		t->op_n--;
		t->op_base++;
	}
}

static struct moved *moved_of(const struct txn *t, int64_t first)
{
	struct moved *m;

	HASH_FIND(hh, t->moved, &first, sizeof first, m);
	return m;
}

static void set_moved(struct txn *t, int64_t first, int64_t now)
{
	struct moved *m = moved_of(t, first);

	if (!m) {
		m = mem_alloc(sizeof *m);
		m->first = first;
		HASH_ADD(hh, t->moved, first, sizeof m->first, m);
	}
	m->now = now;
}

static void drop_moved(struct txn *t, struct moved *m)
{
	HASH_DEL(t->moved, m);
	free(m);
}

/* ---- What a half says ---------------------------------------------------------------------------------------------------- */

/* Where it was when its producer sent it. */
static int64_t first_of(const struct mq_message *m)
{
	int64_t off;

	return str_i64(mq_prop_get(m->props, PROP_TXN_FIRST), &off) == 0 && off >= 0 && off < m->queue_off ? off : m->queue_off;
}

static int32_t times_of(const struct mq_message *m)
{
	int32_t n;

	return str_i32(mq_prop_get(m->props, PROP_TXN_TIMES), &n) == 0 && n > 0 ? n : 0;
}

int64_t txn_immunity(struct mq_str props)
{
	struct mq_str text = mq_prop_get(props, PROP_TXN_IMMUNITY);
	int64_t s;

	return text.n && str_i64(text, &s) == 0 && s >= 0 && s < INT64_MAX / 2000 ? s * 1000 : -1;
}

/* The producer's clock counts, as with the peer, but not one that runs ahead of ours. */
static int64_t due_of(const struct txn *t, int64_t born_ms, int64_t store_ms, int64_t immunity)
{
	int64_t from = born_ms < store_ms ? born_ms : store_ms, due = from + (immunity >= 0 ? immunity : t->b->conf->transactionTimeOut);

	return due > DONE ? due : DONE + 1;
}

/* A record of the half topic by its log offset. */
static bool read_half(const struct txn *t, int64_t log_off, struct mq_message *m)
{
	struct mq_str r;

	return mqstore_at(t->b->store, log_off, &r) == 0 && mq_message_decode(r.p, r.n, false, m) > 0 && str_is(m->topic, TOPIC_HALF);
}

/* ---- Storing ------------------------------------------------------------------------------------------------------------- */

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

static void add_half(struct txn *t, const struct mqstore_place *place, int64_t due)
{
	assert(place->queue_off == t->base + (int64_t)t->n); /* nobody else writes there */
	*push_half(t) = (struct half){ place->log_off, due };
	t->pending++;
}

void txn_stored(struct txn *t, struct mq_str topic, const struct mqstore_place *place, int64_t born_ms, int64_t immunity_ms)
{
	waiting_add(&t->counts, topic, 1);
	add_half(t, place, due_of(t, born_ms, place->store_ms, immunity_ms));
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
static int store_with_op(struct txn *t, const struct mqstore_record *r, int64_t off, int64_t first, struct mqstore_place place[2],
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
	push_op(t, off);
	return 0;
}

/* The half at off is over: committed, rolled back, given up, or appended again. */
static void end_place(struct txn *t, struct half *h)
{
	if (h->due == DONE)
		return;
	h->due = DONE;
	t->pending--;
	shrink(t);
}

/* ---- Asking -------------------------------------------------------------------------------------------------------------- */

static struct member *producer_of(struct txn *t, struct mq_str group)
{
	struct client_group *g = client_table_producers(t->b->clients, group);
	struct member *m = g ? g->members : NULL;

	for (uint32_t i = m ? t->turn++ % (uint32_t)g->nmembers : 0; i > 0; i--)
		m = m->next;
	return m;
}

/* CHECK_TRANSACTION_STATE: the message as it would be in its own topic. */
static void ask(struct txn *t, const struct mq_message *m, const struct mqstore_record *r, const struct mqstore_place *place)
{
	struct mq_str uniq = mq_prop_get(m->props, PROP_UNIQ_KEY);
	struct member *to = producer_of(t, mq_prop_get(m->props, PROP_PGROUP));
	struct message_parts parts = {
		.topic = mq_prop_get(m->props, PROP_REAL_TOPIC), .body = r->body, .props = { r->props[0] }, .flag = r->flag,
		.sys_flag = r->sys_flag, .reconsume_times = r->reconsume_times, .queue_off = place->queue_off, .log_off = place->log_off,
		.born_ms = r->born_ms, .store_ms = place->store_ms, .born_host = r->born_host, .store_host = r->store_host,
	};
	char id[MQ_ID_TEXT];
	struct frame_out o;
	int64_t size;

	if (!to) {
		t->b->metrics.checks_unheard++;
		return;
	}
	str_i32(mq_prop_get(m->props, PROP_REAL_QID), &parts.queue_id);
	size = message_size(&parts);
	if (size < 0)
		return;
	conn_call(to->c, &o, REQ_CHECK_TRANSACTION_STATE, FRAME_JSON, 0, NULL, NULL);
	frame_i64(&o, "tranStateTableOffset", place->queue_off);
	frame_i64(&o, "commitLogOffset", place->log_off);
	frame_str(&o, "msgId", uniq);
	frame_str(&o, "transactionId", uniq);
	frame_str(&o, "offsetMsgId", (struct mq_str){ id, mq_offset_id(&r->store_host, place->log_off, id) });
	frame_cstr(&o, "bname", t->b->conf->brokerName);
	frame_body(&o);
	message_encode(&parts, buf_room(o.buf, (size_t)size));
	o.buf->n += (size_t)size;
	frame_end(&o);
	conn_kick(to->c);
	t->b->metrics.checks_sent++;
}

/* Append the half again, with so many questions asked.  One that is not due yet is moved from the front of the ring, which then begins
 * behind it; it gets no op: to the peer that would say that the transaction has ended. */
static int again(struct txn *t, int64_t off, const struct mq_message *m, int32_t times, int64_t due, struct mqstore_record *r,
                 struct mqstore_place place[2], struct mq_error *e)
{
	static const char *const replaced[] = { PROP_TXN_FIRST, PROP_TXN_TIMES, NULL };
	int64_t first = first_of(m);
	int rc;

	t->props.n = 0;
	property_copy_without(&t->props, m->props, replaced);
	if (times > 0)
		buf_printf(&t->props, PROP_TXN_TIMES "\001%d\002", (int)times);
	buf_printf(&t->props, PROP_TXN_FIRST "\001%lld\002", (long long)first);
	*r = record_again(m);
	r->queue = t->halves;
	r->props[0] = buf_view(&t->props);
	rc = due <= clock_now_ms() ? store_with_op(t, r, off, -1, place, e) : mqstore_append(t->b->store, r, 1, place, e);
	if (rc < 0)
		return rc;
	add_half(t, &place[0], due);
	set_moved(t, first, place[0].queue_off);
	end_place(t, place_of(t, off));
	return 0;
}

static int give_up(struct txn *t, int64_t off, const struct mq_message *m, struct mq_error *e)
{
	struct topic *topic = topic_table_need(t->b->topics, MQ_STR(TOPIC_GIVEN_UP), 1);
	struct mqstore_record r = record_again(m);
	struct mqstore_place place[2];
	struct moved *moved = moved_of(t, first_of(m));
	int rc;

	r.queue = topic_queue(t->b->topics, topic, 0, true);
	r.props[0] = m->props;
	rc = store_with_op(t, &r, off, -1, place, e);
	if (rc < 0)
		return rc;
	log_warn("half given up after %d questions topic=" MQ_STR_FMT " key=" MQ_STR_FMT " group=" MQ_STR_FMT, (int)times_of(m),
		 MQ_STR_ARG(mq_prop_get(m->props, PROP_REAL_TOPIC)), MQ_STR_ARG(mq_prop_get(m->props, PROP_UNIQ_KEY)),
		 MQ_STR_ARG(mq_prop_get(m->props, PROP_PGROUP)));
	if (moved)
		drop_moved(t, moved);
	end_place(t, place_of(t, off));
	waiting_add(&t->counts, mq_prop_get(m->props, PROP_REAL_TOPIC), -1);
	t->b->metrics.halves_given_up++;
	return 0;
}

/* One pending half, in a round.  1: it cost something; 0: it is left as it is; negative: it could not be done now. */
static int look_at(struct txn *t, int64_t off, struct half *h, struct mq_error *e)
{
	bool due = h->due <= clock_now_ms();
	struct mqstore_record r;
	struct mqstore_place place[2];
	struct mq_message m;
	int rc;

	if (!due && (off != t->base || t->n < WINDOW_MAX))
		return 0;
	if (!read_half(t, h->log_off, &m)) {
		log_error("half at queue offset %lld cannot be read: it is lost", (long long)off);
		t->b->metrics.halves_lost++;
		end_place(t, h);
		return 1;
	}
	if (!due)
		rc = again(t, off, &m, times_of(&m), h->due, &r, place, e);
	else if (times_of(&m) >= t->b->conf->transactionCheckMax)
		rc = give_up(t, off, &m, e);
	else {
		rc = again(t, off, &m, times_of(&m) + 1, h->due, &r, place, e);
		if (rc == 0)
			ask(t, &m, &r, &place[0]);
	}
	return rc < 0 ? rc : 1;
}

static void on_round(uv_timer_t *timer)
{
	struct txn *t = timer->data;
	struct mq_error e = { 0 };
	int asked = 0, seen = 0;

	clock_refresh();
	if (!t->asking) {
		t->asking = true;
		t->next = t->base;
		t->end = t->base + (int64_t)t->n;
	}
	for (; t->next < t->end && asked < TURN_ASKED && seen < TURN_SEEN; seen++) {
		struct half *h;
		int rc;

		if (t->next < t->base)
			t->next = t->base;
		h = place_of(t, t->next);
		if (!h)
			break;
		rc = h->due == DONE ? 0 : look_at(t, t->next, h, &e);
		if (rc < 0) { /* the disk is full: the next round begins anew */
			if (strncmp(t->trouble, e.text, sizeof t->trouble - 1))
				log_error("producers of pending transactions are not asked: %s", e.text);
			snprintf(t->trouble, sizeof t->trouble, "%.*s", (int)sizeof t->trouble - 1, e.text);
			t->next = t->end;
			break;
		}
		if (rc > 0)
			t->trouble[0] = 0;
		asked += rc;
		t->next++;
	}
	t->asking = t->next < t->end && place_of(t, t->next);
	uv_timer_start(&t->round_timer, on_round, t->asking ? 0 : (uint64_t)t->b->conf->transactionCheckInterval, 0);
}

/* ---- The end ------------------------------------------------------------------------------------------------------------- */

/* The place at which this half, or what it has become, is pending; -1: it is not. */
static int64_t pending_place(struct txn *t, const struct mq_message *half)
{
	struct half *h = place_of(t, half->queue_off);
	struct moved *m;

	if (h && h->due != DONE && h->log_off == half->log_off)
		return half->queue_off;
	m = moved_of(t, first_of(half));
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
	int64_t off = pending_place(t, half), first = first_of(half);
	struct mqstore_place place[2];
	struct mqstore_record r;
	struct moved *m;
	int32_t level = 0;
	bool timed = false;
	int rc = commit ? real_record(t, half, &r, &level, &timed, e) : 0;

	if (rc == 0)
		rc = store_with_op(t, commit ? &r : NULL, off >= 0 ? off : half->queue_off, first, place, e);
	if (rc < 0)
		return rc;
	*last = place[1];
	if (commit)
		count_message(t, half, &place[0]);
	if (level)
		delay_stored(t->b->delay, level, 1);
	if (timed)
		timer_stored(t->b->timer, 1);
	m = moved_of(t, first);
	if (m)
		drop_moved(t, m);
	if (off >= 0) {
		end_place(t, place_of(t, off));
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
				h = place_of(t, v);
				if (h)
					h->due = DONE;
				highest = v > highest ? v : highest;
			}
		push_op(t, highest);
	}
}

static void load(struct txn *t)
{
	int64_t max = mqstore_queue_max(t->halves);

	t->base = begin_of(t, TOPIC_HALF, t->halves);
	for (int64_t off = t->base; off < max; off++)
		*push_half(t) = (struct half){ -1, 0 };
	load_ops(t);
	for (int64_t off = t->base; off < max; off++) {
		struct half *h = place_of(t, off), *old;
		struct mq_message m;
		struct moved *was;

		if (h->due == DONE)
			continue;
		if (!read_at(t, t->halves, off, &m)) {
			h->due = DONE;
			continue;
		}
		*h = (struct half){ m.log_off, due_of(t, m.born_ms, m.store_ms, txn_immunity(m.props)) };
		t->pending++;
		waiting_add(&t->counts, mq_prop_get(m.props, PROP_REAL_TOPIC), 1);
		if (first_of(&m) == off)
			continue;
		was = moved_of(t, first_of(&m));
		old = place_of(t, was ? was->now : first_of(&m)); /* it has an op, or a crash came between */
		if (old && old->due != DONE) {
			old->due = DONE;
			t->pending--;
			waiting_add(&t->counts, mq_prop_get(m.props, PROP_REAL_TOPIC), -1);
		}
		set_moved(t, first_of(&m), off);
	}
	shrink(t);
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
		uv_timer_start(&t->round_timer, on_round, (uint64_t)b->conf->transactionCheckInterval, 0);
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
		drop_moved(t, m);
	buf_free(&t->props);
	free(t->half);
	free(t->op);
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
