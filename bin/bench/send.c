/* send.c: as many sends, or batches of sends, as answers come back: a fixed number is always on its way.
 *
 * With a rate, a request goes out when it is due and a slot is free; its latency counts from when it was due, so that a server
 * that stops for a moment is charged for everything that had to wait. */
#include "bench.h"
#include <base/clock.h>
#include <base/mem.h>
#include <codec/request.h>
#include <stdlib.h>
#include <string.h>

struct slot {
	int64_t sent_us;
	char opaque[10];
	bool busy;
};

struct sender {
	struct bench *b;
	struct conn *c;
	int first;                  /* of its slots */
};

struct send_state {
	struct sender *sender;
	struct slot *slot;
	struct template *template;  /* one per queue */
	int queue;                  /* next to be sent to */
	uint32_t ids;
	int per_request;
	int64_t asked;              /* messages, since counting began; for --count */
	int busy;

	/* With a rate. */
	uv_idle_t pace;
	int *free, free_n;          /* slots that nothing is on its way in */
	int64_t paced_from_us, paced;   /* messages due since then that were sent */
};

static void send_one(struct bench *b, struct sender *s, int slot)
{
	struct send_state *st = b->state;
	struct slot *at = &st->slot[slot];

	at->sent_us = bench_now_us(b);
	at->busy = true;
	st->busy++;
	template_put(&st->template[st->queue], conn_out(s->c), at->opaque, clock_now_ms(), &st->ids);
	if (++st->queue == b->write_queues)
		st->queue = 0;
	if (b->counting)
		st->asked += st->per_request;
}

static void on_pace(uv_idle_t *h)
{
	struct bench *b = h->data;
	struct send_state *st = b->state;
	int64_t now = bench_clock(b);

	while (st->free_n && !b->stopping) {
		int64_t due = st->paced_from_us + st->paced * 1000000 / b->o.rate;
		int slot;

		if (due > now || (b->o.count && b->counting && st->asked >= b->o.count))
			return;
		slot = st->free[--st->free_n];
		send_one(b, &st->sender[slot / b->o.in_flight], slot);
		st->slot[slot].sent_us = due;
		st->paced += st->per_request;
	}
}

static void on_answer(struct conn *c, struct frame *f)
{
	struct sender *s = conn_public(c)->owner;
	struct bench *b = s->b;
	struct send_state *st = b->state;
	int slot = f->opaque - BENCH_OPAQUE;

	if (slot < s->first || slot >= s->first + b->o.in_flight || !st->slot[slot].busy)
		return;
	st->slot[slot].busy = false;
	st->busy--;
	bench_answer(b, f, f->code == RESP_SUCCESS, st->per_request, (int64_t)st->per_request * b->o.size, st->slot[slot].sent_us);
	if (b->o.rate)
		st->free[st->free_n++] = slot;
	if (!b->o.rate && !b->stopping && (!b->o.count || !b->counting || st->asked < b->o.count))
		send_one(b, s, slot);
	else if (!st->busy && (b->stopping || !b->o.rate))
		bench_finished(b);
}

static void on_opened(struct conn *c)
{
	struct sender *s = conn_public(c)->owner;
	struct bench *b = s->b;
	struct send_state *st = b->state;

	for (int i = 0; i < b->o.in_flight && !b->stopping; i++)
		if (b->o.rate)
			st->free[st->free_n++] = s->first + i;
		else if (!b->o.count || st->asked < b->o.count)
			send_one(b, s, s->first + i);
}

static void on_closed(struct conn *c, int why)
{
	struct sender *s = conn_public(c)->owner;

	bench_lost(s->b, c, why);
}

static void stop(struct bench *b)
{
	if (!((struct send_state *)b->state)->busy)
		bench_finished(b);
}

void bench_send(struct bench *b)
{
	static const struct conn_ops ops = { .opened = on_opened, .closed = on_closed, .answer = on_answer };
	struct send_state st = { .per_request = b->o.mode == BENCH_BATCH ? b->o.batch : 1 };
	int slots = b->o.conns * b->o.in_flight;

	st.sender = mem_alloc((size_t)b->o.conns * sizeof *st.sender);
	st.slot = mem_alloc((size_t)slots * sizeof *st.slot);
	st.template = mem_alloc((size_t)b->write_queues * sizeof *st.template);
	for (int i = 0; i < slots; i++)
		template_opaque(i, st.slot[i].opaque);
	for (int i = 0; i < b->write_queues; i++)
		template_send(&st.template[i], b, i);
	b->state = &st;
	b->stop = stop;
	st.free = mem_alloc((size_t)slots * sizeof *st.free);
	if (b->o.rate) {
		/* Not a timer: it would be late by a millisecond. */
		uv_idle_init(&b->loop, &st.pace);
		st.pace.data = b;
		st.paced_from_us = bench_clock(b);
		uv_idle_start(&st.pace, on_pace);
	}
	for (int i = 0; i < b->o.conns; i++) {
		st.sender[i] = (struct sender){ .b = b, .first = i * b->o.in_flight };
		st.sender[i].c = bench_connect(b, b->addr, &ops, &st.sender[i]);
	}
	bench_run(b);
	for (int i = 0; i < b->write_queues; i++)
		template_free(&st.template[i]);
	free(st.free);
	free(st.template);
	free(st.slot);
	free(st.sender);
}
