/* consume.c: all queues of a topic, read from their beginning to what was their end when the run began: one pull per queue is always
 * on its way.  With a time limit it begins again at the end. */
#include "bench.h"
#include <base/clock.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/request.h>
#include <stdlib.h>
#include <string.h>

struct queue {
	struct conn *c;
	int64_t min, max, next, sent_us;
	bool busy;
};

struct consume_state {
	struct conn **conn;
	struct queue *queue;
	int busy;
};

static void pull(struct bench *b, int i)
{
	struct consume_state *st = b->state;
	struct queue *q = &st->queue[i];

	q->sent_us = bench_now_us(b);
	q->busy = true;
	st->busy++;
	bench_pull(b, q->c, BENCH_OPAQUE + i, i, q->next, 0);
}

static void on_answer(struct conn *c, struct frame *f)
{
	struct bench *b = conn_public(c)->owner;
	struct consume_state *st = b->state;
	int i = f->opaque - BENCH_OPAQUE;
	int64_t messages = 0, bytes = 0, next;
	struct queue *q;

	if (i < 0 || i >= b->read_queues || !st->queue[i].busy)
		return;
	q = &st->queue[i];
	q->busy = false;
	st->busy--;
	if (f->code == RESP_SUCCESS)
		bench_count_records(f->body, &messages, &bytes);
	bench_answer(b, f, f->code == RESP_SUCCESS || f->code == RESP_PULL_NOT_FOUND || f->code == RESP_PULL_RETRY_IMMEDIATELY ||
			      f->code == RESP_PULL_OFFSET_MOVED, messages, bytes, q->sent_us);
	next = q->max;
	str_i64(frame_get(f, "nextBeginOffset"), &next);
	/* An answer that does not move on would be asked for again for ever. */
	q->next = f->code == RESP_PULL_NOT_FOUND || next <= q->next ? q->max : next;
	if (q->next >= q->max && b->o.time_ms)
		q->next = q->min;
	if (!b->stopping && q->next < q->max)
		pull(b, i);
	else if (!st->busy)
		bench_finished(b);
}

static void on_closed(struct conn *c, int why)
{
	bench_lost(conn_public(c)->owner, c, why);
}

static void stop(struct bench *b)
{
	if (!((struct consume_state *)b->state)->busy)
		bench_finished(b);
}

static int64_t offset_of(struct bench *b, struct conn *c, int queue, bool max)
{
	struct max_offset_header h = { .topic = str_of(b->o.topic), .queueId = queue };
	struct min_offset_header m = { .topic = str_of(b->o.topic), .queueId = queue };
	struct bench_reply r = { 0 };

	if (max)
		bench_ask(b, c, REQ_GET_MAX_OFFSET, &max_offset_header_desc, &h, &r);
	else
		bench_ask(b, c, REQ_GET_MIN_OFFSET, &min_offset_header_desc, &m, &r);
	if (r.code != RESP_SUCCESS)
		cli_die(CLI_REFUSED, "offset of queue %d of topic '%s': %s: %s", queue, b->o.topic, response_name(r.code), r.remark);
	buf_free(&r.body);
	return r.number;
}

void bench_consume(struct bench *b)
{
	static const struct conn_ops ops = { .closed = on_closed, .answer = on_answer };
	struct consume_state st = { 0 };
	int64_t there = 0;

	st.conn = mem_alloc((size_t)b->o.conns * sizeof *st.conn);
	st.queue = mem_alloc((size_t)b->read_queues * sizeof *st.queue);
	b->state = &st;
	b->stop = stop;
	for (int i = 0; i < b->o.conns; i++)
		st.conn[i] = bench_connect(b, b->addr, &ops, b);
	for (int i = 0; i < b->read_queues; i++) {
		struct queue *q = &st.queue[i];

		q->c = st.conn[i % b->o.conns];
		q->next = q->min = offset_of(b, q->c, i, false);
		q->max = offset_of(b, q->c, i, true);
		there += q->max - q->min;
	}
	if (there <= 0)
		cli_die(CLI_NONE, "topic '%s' holds no message", b->o.topic);
	bench_clock(b);
	for (int i = 0; i < b->read_queues; i++)
		if (st.queue[i].next < st.queue[i].max)
			pull(b, i);
	bench_run(b);
	free(st.queue);
	free(st.conn);
}
