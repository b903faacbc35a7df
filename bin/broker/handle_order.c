/* handle_order.c: LOCK_BATCH_MQ and UNLOCK_BATCH_MQ: members of a group take queues for themselves, to consume them in order. */
#include "broker.h"
#include "handle.h"
#include "lock_table.h"
#include <base/clock.h>
#include <codec/body_offset.h>

static bool decode(struct req *q, struct body_lock *l)
{
	struct mq_error e;

	if (body_lock_decode(q->f->body, l, &e) == 0)
		return true;
	reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
	return false;
}

void handle_lock(struct req *q)
{
	struct body_locked got = { 0 };
	struct body_lock l;
	struct frame_out o;

	if (!decode(q, &l))
		return;
	got.queue = body_alloc(&got.keep, l.n * sizeof *got.queue);
	for (size_t i = 0; i < l.n; i++)
		if (lock_table_take(q->b->locks, l.group, &l.queue[i], l.client_id, clock_mono_ms()))
			got.queue[got.n++] = l.queue[i];
	q->b->metrics.locks_granted += got.n;
	q->b->metrics.locks_refused += l.n - got.n;
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	body_locked_encode(&got, o.buf);
	reply_end(q, &o);
	body_free(&got.keep);
	body_lock_free(&l);
}

void handle_unlock(struct req *q)
{
	struct body_lock l;

	if (!decode(q, &l))
		return;
	for (size_t i = 0; i < l.n; i++)
		lock_table_release(q->b->locks, l.group, &l.queue[i], l.client_id);
	body_lock_free(&l);
	reply(q, RESP_SUCCESS, NULL);
}
