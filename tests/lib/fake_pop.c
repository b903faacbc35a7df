/* fake_pop.c: pops, acks and changes of a fake broker: see fake.h.
 *
 * Times are not kept: what was popped comes again when a test says so. */
#include "fake_private.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/receipt.h"
#include "codec/request.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static struct fake_lent *find_lent(struct fake *f, int topic, int queue, int64_t off)
{
	for (int i = 0; i < f->nlent; i++)
		if (f->lent[i].topic == topic && f->lent[i].queue == queue && f->lent[i].off == off)
			return &f->lent[i];
	return NULL;
}

static void lend(struct fake *f, int topic, int queue, int64_t off)
{
	struct fake_lent *l = find_lent(f, topic, queue, off);

	if (!l) {
		assert(f->nlent < FAKE_LENT);
		l = &f->lent[f->nlent++];
	}
	*l = (struct fake_lent){ topic, queue, off, f->pop_ms, false };
}

/* False: there is nothing.  First what comes again, one at a time: its pop begins elsewhere. */
bool fake_answer_pop(struct fake *f, struct conn *c, struct frame_id id, struct fake_topic *t, int queue, int max)
{
	int topic = (int)(t - f->topic);
	struct fake_queue *q = NULL;
	int64_t from = 0, to = 0;
	struct frame_out o;
	char text[64];

	for (int i = 0; i < f->nlent && !q; i++)
		if (f->lent[i].here && f->lent[i].topic == topic && (queue < 0 || f->lent[i].queue == queue)) {
			q = &t->queue[f->lent[i].queue];
			from = f->lent[i].off;
			to = from + 1;
		}
	for (int i = 0; i < t->nqueues && !q; i++)
		if ((queue < 0 || queue == i) && t->queue[i].popped < t->queue[i].max) {
			q = &t->queue[i];
			from = q->popped;
			to = q->popped = from + max < q->max ? from + max : q->max;
		}
	if (!q)
		return false;
	f->pop_ms = f->pop_ms ? f->pop_ms + 1 : 1700000000000;
	queue = (int)(q - t->queue);
	snprintf(text, sizeof text, "0 %d %lld", queue, (long long)from);
	frame_answer(&o, conn_out(c), id, RESP_SUCCESS, (struct mq_str){ 0 });
	if (!f->pop_no_handles) {
		frame_i64(&o, "popTime", f->pop_ms);
		frame_i64(&o, "invisibleTime", 60000);
		frame_i64(&o, "reviveQid", 1);
		frame_cstr(&o, "startOffsetInfo", text);
	}
	frame_body(&o);
	for (int64_t i = from; i < to; i++) {
		lend(f, topic, queue, i);
		if (i >= q->first && (size_t)(i - q->first) < q->nrecords)
			buf_str(o.buf, buf_view(&q->record[i - q->first]));
	}
	frame_end(&o);
	return true;
}

void fake_on_pop(struct fake *f, struct conn *c, struct frame *in)
{
	struct fake_topic *t = fake_find_topic(f, frame_get(in, "topic"));
	int32_t queue = 0, max = 0, poll = 0;
	struct fake_parked *p;

	str_i32(frame_get(in, "queueId"), &queue);
	str_i32(frame_get(in, "maxMsgNums"), &max);
	str_i32(frame_get(in, "pollTime"), &poll);
	if (f->pop_max && max > f->pop_max)
		max = f->pop_max;
	if (!t || queue >= t->nqueues) {
		fake_answer(c, frame_id_of(in), RESP_TOPIC_NOT_EXIST, "topic not exist");
	} else if (!fake_answer_pop(f, c, frame_id_of(in), t, queue, max)) {
		if (poll <= 0 || f->no_hold) {
			fake_answer(c, frame_id_of(in), RESP_POLLING_TIMEOUT, "nothing");
			return;
		}
		p = mem_alloc(sizeof *p);
		*p = (struct fake_parked){ f->parked, c, frame_id_of(in), (int)(t - f->topic), queue, -1, max };
		conn_ref(c);
		f->parked = p;
	}
}

/* An ack, or another time. */
void fake_on_settled(struct fake *f, struct conn *c, struct frame *in)
{
	struct mq_str name = frame_get(in, "topic");
	struct fake_topic *t = fake_find_topic(f, receipt_retry_of(name) ? receipt_normal_topic(name, frame_get(in, "consumerGroup")) : name);
	struct fake_lent *l = NULL;
	struct receipt r = { 0 };
	int64_t off = -1, ms = -1;
	int32_t queue = -1;
	struct frame_out o;

	str_i32(frame_get(in, "queueId"), &queue);
	str_i64(frame_get(in, "offset"), &off);
	str_i64(frame_get(in, "invisibleTime"), &ms);
	if (t)
		l = find_lent(f, (int)(t - f->topic), queue, off);
	if (!l || receipt_parse(frame_get(in, "extraInfo"), &r, NULL) < 0 || r.pop_ms != l->pop_ms || r.off != off || r.queue_id != queue ||
	    !str_is(r.broker, f->broker)) {
		fake_answer(c, frame_id_of(in), RESP_NO_MESSAGE, "no such message is lent");
		return;
	}
	if (in->code == REQ_ACK_MESSAGE) {
		*l = f->lent[--f->nlent];
		fake_answer(c, frame_id_of(in), RESP_SUCCESS, NULL);
		return;
	}
	l->pop_ms = ++f->pop_ms;
	l->here = ms == 0;
	frame_answer(&o, conn_out(c), frame_id_of(in), RESP_SUCCESS, (struct mq_str){ 0 });
	if (!f->pop_no_handles) {
		frame_i64(&o, "popTime", l->pop_ms);
		frame_i64(&o, "invisibleTime", ms);
		frame_i64(&o, "reviveQid", 2);
	}
	frame_end(&o);
	fake_wake(f);
}

void fake_pop_again(struct fake *f, const char *topic, int queue, int64_t off)
{
	struct fake_lent *l = find_lent(f, (int)(fake_find_topic(f, str_of(topic)) - f->topic), queue, off);

	assert(l);
	l->here = true;
	l->pop_ms = 0; /* whatever handle there is: it is too late */
	fake_wake(f);
}

static int by_offset(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

const char *fake_lent(struct fake *f, bool here)
{
	static char text[FAKE_LENT * 21];
	int64_t off[FAKE_LENT];
	size_t at = 0, n = 0;

	for (int i = 0; i < f->nlent; i++)
		if (!here || f->lent[i].here)
			off[n++] = f->lent[i].off;
	qsort(off, n, sizeof *off, by_offset);
	text[0] = 0;
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? " " : "", (long long)off[i]);
	return text;
}
