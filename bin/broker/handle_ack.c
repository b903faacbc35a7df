/* handle_ack.c: ACK_MESSAGE, BATCH_ACK_MESSAGE, CHANGE_MESSAGE_INVISIBLETIME: what became of popped messages.
 *
 * An answer of success waits until what it says is safe: for the log under SYNC_FLUSH, for consumerOrderInfo.json with ordered pops.
 * compat: the peer answers success whatever it finds; here an ack that comes after its message was revived gets NO_MESSAGE: the
 * message is delivered again. */
#include "broker.h"
#include "ha_master.h"
#include "handle.h"
#include "offset_table.h"
#include "order_table.h"
#include "pop.h"
#include "pop_hold.h"
#include "revive.h"
#include "settle.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/mem.h>
#include <base/str.h>

enum { TOO_LATE_TEXT = 160 };

/* ---- Answers that wait for consumerOrderInfo.json ------------------------------------------------------------------------- */

struct waiting {
	struct broker *b;
	struct later to;
	bool changed;           /* of 200053: with the fields below */
	int64_t pop_ms, invisible_ms;
};

static void changed_fields(struct req *q, int64_t pop_ms, int64_t invisible_ms, int32_t queue)
{
	struct frame_out o;

	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_i64(&o, "popTime", pop_ms);
	frame_i64(&o, "invisibleTime", invisible_ms);
	frame_i64(&o, "reviveQid", queue);
	reply_end(q, &o);
}

static void on_saved(void *arg, int rc)
{
	struct waiting *w = arg;
	struct req q = later_req(w->b, &w->to);

	if (rc < 0)
		reply(&q, RESP_SYSTEM_ERROR, "config/consumerOrderInfo.json cannot be written: %s", mq_strerror(rc));
	else if (w->changed)
		changed_fields(&q, w->pop_ms, w->invisible_ms, RECEIPT_ORDER_QUEUE);
	else
		reply(&q, RESP_SUCCESS, NULL);
	later_drop(&w->to);
	free(w);
}

static void answer_when_saved(struct req *q, bool changed, int64_t pop_ms, int64_t invisible_ms)
{
	struct waiting *w = mem_alloc(sizeof *w);

	*w = (struct waiting){ .b = q->b, .changed = changed, .pop_ms = pop_ms, .invisible_ms = invisible_ms };
	later_take(&w->to, q);
	table_file_when_saved(&q->b->orders->file, on_saved, w);
}

/* ---- What is acked -------------------------------------------------------------------------------------------------------- */

/* True: answered. */
static bool is_slave(struct req *q)
{
	if (q->b->conf->brokerRole != ROLE_SLAVE)
		return false;
	reply(q, RESP_SYSTEM_ERROR, "the broker[%s] is a slave: acks are taken by the master", q->b->conf->brokerIP1);
	return true;
}

struct place {
	struct topic *topic;
	int64_t min, max;
};

/* False: answered. */
static bool find_place(struct req *q, struct mq_str topic, int32_t queue_id, struct place *p)
{
	struct mqstore_queue *queue;

	if (is_slave(q))
		return false;
	p->topic = topic_table_find(q->b->topics, topic);
	if (!p->topic) {
		reply(q, RESP_TOPIC_NOT_EXIST, "topic[" MQ_STR_FMT "] not exist, apply first please!", MQ_STR_ARG(topic));
		return false;
	}
	if (queue_id < 0 || queue_id >= p->topic->conf.read) {
		reply(q, RESP_MESSAGE_ILLEGAL, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[%s]", queue_id,
		      p->topic->name, p->topic->conf.read, conn_name(q->c));
		return false;
	}
	queue = topic_queue(q->b->topics, p->topic, queue_id, false);
	p->min = queue ? mqstore_queue_min(queue) : 0;
	p->max = queue ? mqstore_queue_max(queue) : 0;
	return true;
}

static bool offset_fits(struct req *q, const struct place *p, int32_t queue_id, int64_t off)
{
	if (off >= p->min && off <= p->max)
		return true;
	reply(q, RESP_NO_MESSAGE, "offset is illegal, key:%s@%d, commit:%lld, store:%lld~%lld", p->topic->name, queue_id, (long long)off,
	      (long long)p->min, (long long)p->max);
	return false;
}

/* Can there have been a pop with these times and this queue of the revive log? */
static bool possible(const struct req *q, int64_t pop_ms, int64_t invisible_ms, int32_t revive_queue)
{
	if (invisible_ms < 0 || pop_ms < 0 || pop_ms > clock_now_ms() + POP_INVISIBLE_MAX_MS)
		return false;
	return revive_queue == RECEIPT_ORDER_QUEUE ||
	       (invisible_ms <= POP_INVISIBLE_MAX_MS && revive_has_queue(q->b->revive, revive_queue));
}

/* The handle.  False: answered. */
static bool parse(struct req *q, struct mq_str text, struct receipt *r)
{
	struct mq_error e;

	if (receipt_parse(text, r, &e) < 0) {
		reply(q, RESP_MESSAGE_ILLEGAL, "%s", e.text);
		return false;
	}
	if (possible(q, r->pop_ms, r->invisible_ms, r->revive_queue))
		return true;
	reply(q, RESP_MESSAGE_ILLEGAL, "handle '" MQ_STR_FMT "': no pop of this broker has such times or reviveQueue", MQ_STR_ARG(text));
	return false;
}

static void too_late(struct req *q, struct mq_str topic, int32_t queue_id, int64_t off)
{
	q->b->metrics.pops_acked_late++;
	reply(q, RESP_NO_MESSAGE, "too late: the invisible time of message %lld of %.*s@%d is over, it is delivered again", (long long)off,
	      (int)(topic.n < TOO_LATE_TEXT ? topic.n : TOO_LATE_TEXT), topic.p, queue_id);
}

/* An ordered pop: the offset moves on with what is acked from the front. */
static bool ack_in_order(struct req *q, struct topic *t, struct mq_str group, int32_t queue_id, int64_t off, int64_t pop_ms, int64_t max)
{
	struct broker *b = q->b;
	struct mq_str topic = t->conf.name;
	int64_t next;

	if (off < offset_table_get(b->offsets, topic, group, queue_id))
		return true; /* acked before */
	next = order_table_ack(b->orders, topic, group, queue_id, off, pop_ms);
	if (next == ORDER_UNKNOWN) {
		reply(q, RESP_MESSAGE_ILLEGAL, "offset is illegal, key:%s@" MQ_STR_FMT "@%d, commit:%lld: not in the batch that was popped",
		      t->name, MQ_STR_ARG(group), queue_id, (long long)off);
		return false;
	}
	if (next >= 0) {
		if (!offset_table_has_reset(b->offsets, topic, group, queue_id))
			offset_table_commit(b->offsets, topic, group, queue_id, next, max, conn_name(q->c));
		pop_hold_wake(b->pops, t, group);
	}
	offset_table_inflight(b->offsets, topic, group, queue_id, pop_ms >= b->boot_ms ? -1 : 0);
	b->metrics.pops_acked++;
	return true;
}

/* Room again under popInflightMessageThreshold? */
static void acked(struct broker *b, struct topic *t, struct mq_str group)
{
	if (b->conf->enablePopMessageThreshold)
		pop_hold_wake(b->pops, t, group);
}

static void answer_safe(struct req *q, int64_t end_off)
{
	struct send_done done = { .end_off = 0 };

	settle_promise(q->b->settle, &done, end_off, ha_master_need(q->b->ha));
	settle_plain(q->b->settle, q, &done);
}

/* ---- 200051, 200151, 200053 ------------------------------------------------------------------------------------------------ */

void handle_ack(struct req *q)
{
	const struct ack_header *h = q->h;
	struct broker *b = q->b;
	int64_t off = h->offset, end_off;
	struct body_ack a;
	struct receipt r;
	struct place p;
	struct mq_error e;
	int rc;

	if (!find_place(q, h->topic, h->queueId, &p) || !offset_fits(q, &p, h->queueId, off) || !parse(q, h->extraInfo, &r))
		return;
	if (r.revive_queue == RECEIPT_ORDER_QUEUE) {
		if (ack_in_order(q, p.topic, h->consumerGroup, h->queueId, off, r.pop_ms, p.max))
			answer_when_saved(q, false, 0, 0);
		return;
	}
	a = (struct body_ack){ .start = r.start, .pop_ms = r.pop_ms, .queue_id = h->queueId, .n = 1, .off = &off, .topic = h->topic,
			       .group = h->consumerGroup, .broker = r.broker };
	rc = revive_ack(b->revive, r.revive_queue, &a, r.invisible_ms, false, &end_off, &e);
	acked(b, p.topic, h->consumerGroup);
	if (rc > 0)
		answer_safe(q, end_off);
	else if (rc == 0)
		too_late(q, h->topic, h->queueId, off);
	else
		reply(q, RESP_SYSTEM_ERROR, "the ack cannot be stored: %s", e.text);
}

/* One of a batch.  1: done; 0: nothing of it could be done; negative: not stored. */
static int ack_some(struct req *q, const struct body_acks *all, const struct body_ack_request *r, bool *ordered, int64_t *end_off,
                    struct mq_error *e)
{
	char name[RECEIPT_TOPIC_MAX + 1];
	struct mq_str topic = receipt_topic(name, r->retry, r->topic, r->group);
	struct topic *t = topic.p ? topic_table_find(q->b->topics, topic) : NULL;
	bool is_queue = t && r->queue_id >= 0 && r->queue_id < t->conf.read;
	struct mqstore_queue *queue = is_queue ? topic_queue(q->b->topics, t, r->queue_id, false) : NULL;
	struct body_ack a = { .start = r->start, .pop_ms = r->pop_ms, .queue_id = r->queue_id, .topic = topic, .group = r->group,
			      .broker = all->broker };
	bool in_order = r->revive_queue == RECEIPT_ORDER_QUEUE;
	int rc = 1;

	if (!queue || r->start < 0 || !possible(q, r->pop_ms, r->invisible_ms, r->revive_queue))
		return 0;
	a.off = mem_alloc((r->nbits * 8 + 1) * sizeof *a.off);
	for (size_t i = 0; i < r->nbits * 8; i++) {
		int64_t off = r->start + (int64_t)i;

		if (r->bits[i / 8] >> (i % 8) & 1 && off >= mqstore_queue_min(queue) && off <= mqstore_queue_max(queue))
			a.off[a.n++] = off;
	}
	if (in_order) {
		for (size_t i = 0; i < a.n && rc > 0; i++)
			rc = ack_in_order(q, t, r->group, r->queue_id, a.off[i], r->pop_ms, mqstore_queue_max(queue)) ? 1 : MQ_EINVAL;
		*ordered = *ordered || a.n;
	} else if (a.n) {
		rc = revive_ack(q->b->revive, r->revive_queue, &a, r->invisible_ms, true, end_off, e);
		acked(q->b, t, r->group);
	} else
		rc = 0;
	free(a.off);
	return rc;
}

void handle_batch_ack(struct req *q)
{
	struct body_acks acks;
	struct mq_error e = { 0 };
	int64_t end_off = 0, end;
	bool ordered = false, any = false;
	int rc = 0;

	if (is_slave(q))
		return;
	if (!q->f->body.n || body_acks_decode(q->f->body, &acks, &e) < 0) {
		reply(q, RESP_NO_MESSAGE, "%s", e.code ? e.text : "batch of acks: there is no body");
		return;
	}
	for (size_t i = 0; i < acks.n && rc >= 0; i++) {
		end = 0;
		rc = ack_some(q, &acks, &acks.ack[i], &ordered, &end, &e);
		any = any || rc > 0;
		end_off = end > end_off ? end : end_off;
	}
	body_free(&acks.keep);
	if (rc == MQ_EINVAL && ordered)
		return; /* answered */
	if (rc < 0)
		reply(q, RESP_SYSTEM_ERROR, "the acks cannot be stored: %s", e.text);
	else if (!any)
		reply(q, RESP_NO_MESSAGE, acks.n ? "too late, or no such pop: none of these messages is popped" :
		      "batch of acks: it is empty");
	else if (ordered)
		answer_when_saved(q, false, 0, 0);
	else
		answer_safe(q, end_off);
}

static void change_in_order(struct req *q, const struct change_invisible_header *h, const struct receipt *r, struct topic *t)
{
	struct broker *b = q->b;
	int64_t visible = clock_now_ms() + h->invisibleTime;

	if (h->offset < offset_table_get(b->offsets, h->topic, h->consumerGroup, h->queueId)) {
		reply(q, RESP_SUCCESS, NULL); /* compat: acked before; without fields */
		return;
	}
	order_table_set_visible(b->orders, h->topic, h->consumerGroup, h->queueId, h->offset, r->pop_ms, visible);
	pop_hold_wake(b->pops, t, h->consumerGroup);
	answer_when_saved(q, true, r->pop_ms, visible - r->pop_ms);
}

void handle_change_invisible(struct req *q)
{
	const struct change_invisible_header *h = q->h;
	struct broker *b = q->b;
	int64_t off = h->offset, end_off;
	struct body_ack a;
	struct body_ck ck;
	struct receipt r;
	struct place p;
	struct mq_error e;
	int rc;

	if (!find_place(q, h->topic, h->queueId, &p) || !offset_fits(q, &p, h->queueId, off) || !parse(q, h->extraInfo, &r))
		return;
	if (h->invisibleTime < 0 || h->invisibleTime > POP_INVISIBLE_MAX_MS) {
		reply(q, RESP_SYSTEM_ERROR, "invisibleTime %lld: 0 to %d ms would be right", (long long)h->invisibleTime,
		      POP_INVISIBLE_MAX_MS);
		return;
	}
	if (r.revive_queue == RECEIPT_ORDER_QUEUE) {
		change_in_order(q, h, &r, p.topic);
		return;
	}
	a = (struct body_ack){ .start = r.start, .pop_ms = r.pop_ms, .queue_id = h->queueId, .n = 1, .off = &off, .topic = h->topic,
			       .group = h->consumerGroup, .broker = r.broker };
	ck = (struct body_ck){ .start = off, .pop_ms = clock_now_ms(), .invisible_ms = h->invisibleTime, .queue_id = h->queueId, .n = 1,
			       .topic = h->topic, .group = h->consumerGroup, .broker = r.broker };
	if (ck.pop_ms <= r.pop_ms)
		ck.pop_ms = r.pop_ms + (r.start == off); /* the clock was set back, or all of it is within one ms: a pop of its own */
	rc = revive_change(b->revive, r.revive_queue, &ck, &a, r.invisible_ms, &end_off, &e);
	if (rc == 0)
		too_late(q, h->topic, h->queueId, off);
	else if (rc < 0)
		reply(q, RESP_SYSTEM_ERROR, "the new time cannot be stored: %s", e.text);
	else
		changed_fields(q, ck.pop_ms, h->invisibleTime, r.revive_queue);
}
