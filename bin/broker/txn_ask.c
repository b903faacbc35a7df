/* txn_ask.c: the rounds in which producers are asked what became of their pending halves. */
#include "txn_private.h"
#include "broker.h"
#include "client_table.h"
#include "record.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/log.h>
#include <base/str.h>
#include <codec/message.h>
#include <codec/property.h>
#include <stdio.h>

#define LOG_MODULE "txn"

enum {
	TURN_ASKED = 64,        /* halves that are asked about in one turn of the loop */
	TURN_SEEN = 1 << 16,    /* halves that are looked at in one */
	WINDOW_MAX = 1 << 16,   /* places behind the first pending half before one with time of grace is moved out of the way */
};

static int32_t times_of(const struct mq_message *m)
{
	int32_t n;

	return str_i32(mq_prop_get(m->props, PROP_TXN_TIMES), &n) == 0 && n > 0 ? n : 0;
}

/* A record of the half topic by its log offset. */
static bool read_half(const struct txn *t, int64_t log_off, struct mq_message *m)
{
	struct mq_str r;

	return mqstore_at(t->b->store, log_off, &r) == 0 && mq_message_decode(r.p, r.n, false, m) > 0 && str_is(m->topic, TOPIC_HALF);
}

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
	int64_t first = txn_half_first(m);
	int rc;

	t->props.n = 0;
	property_copy_without(&t->props, m->props, replaced);
	if (times > 0)
		buf_printf(&t->props, PROP_TXN_TIMES "\001%d\002", (int)times);
	buf_printf(&t->props, PROP_TXN_FIRST "\001%lld\002", (long long)first);
	*r = record_again(m);
	r->queue = t->halves;
	r->props[0] = buf_view(&t->props);
	rc = due <= clock_now_ms() ? txn_store_with_op(t, r, off, -1, place, e) : mqstore_append(t->b->store, r, 1, place, e);
	if (rc < 0)
		return rc;
	txn_add_half(t, &place[0], due);
	txn_half_set_moved(t, first, place[0].queue_off);
	txn_end_place(t, txn_half_at(t, off));
	return 0;
}

static int give_up(struct txn *t, int64_t off, const struct mq_message *m, struct mq_error *e)
{
	struct topic *topic = topic_table_need(t->b->topics, MQ_STR(TOPIC_GIVEN_UP), 1);
	struct mqstore_record r = record_again(m);
	struct mqstore_place place[2];
	struct moved *moved = txn_half_moved(t, txn_half_first(m));
	int rc;

	r.queue = topic_queue(t->b->topics, topic, 0, true);
	r.props[0] = m->props;
	rc = txn_store_with_op(t, &r, off, -1, place, e);
	if (rc < 0)
		return rc;
	log_warn("half given up after %d questions topic=" MQ_STR_FMT " key=" MQ_STR_FMT " group=" MQ_STR_FMT, (int)times_of(m),
		 MQ_STR_ARG(mq_prop_get(m->props, PROP_REAL_TOPIC)), MQ_STR_ARG(mq_prop_get(m->props, PROP_UNIQ_KEY)),
		 MQ_STR_ARG(mq_prop_get(m->props, PROP_PGROUP)));
	if (moved)
		txn_half_drop_moved(t, moved);
	txn_end_place(t, txn_half_at(t, off));
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

	if (!due && (off != t->base || t->half.n < WINDOW_MAX))
		return 0;
	if (!read_half(t, h->log_off, &m)) {
		log_error("half at queue offset %lld cannot be read: it is lost", (long long)off);
		t->b->metrics.halves_lost++;
		txn_end_place(t, h);
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

void txn_ask_round(uv_timer_t *timer)
{
	struct txn *t = timer->data;
	struct mq_error e = { 0 };
	int asked = 0, seen = 0;

	clock_refresh();
	if (!t->asking) {
		t->asking = true;
		t->next = t->base;
		t->end = t->base + (int64_t)t->half.n;
	}
	for (; t->next < t->end && asked < TURN_ASKED && seen < TURN_SEEN; seen++) {
		struct half *h;
		int rc;

		if (t->next < t->base)
			t->next = t->base;
		h = txn_half_at(t, t->next);
		if (!h)
			break;
		rc = h->due == TXN_DONE ? 0 : look_at(t, t->next, h, &e);
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
	t->asking = t->next < t->end && txn_half_at(t, t->next);
	uv_timer_start(&t->round_timer, txn_ask_round, t->asking ? 0 : (uint64_t)t->b->conf->transactionCheckInterval, 0);
}
