/* hold.c: pulls that wait.
 *
 * A pull is in one of two lists, and in the heap of deadlines:
 *	waiting		of its queue's hold_queue; the store watches the queue
 *	ready		of the hold: to be looked at again by hold_run()
 * waiting -> ready: a message arrived that its filter wants, or somebody says so (reset, topic deleted).
 * ready -> answered and freed; or back to waiting, when there was nothing after all; or it stays ready under SYNC_FLUSH, until
 * what has arrived is on the disk.  The deadline answers from either. */
#include "hold.h"
#include "broker.h"
#include "flush.h"
#include <base/clock.h>
#include <base/mem.h>
#include <base/str.h>
#include <utlist.h>

struct hold_queue {
	UT_hash_handle hh;                          /* by pointer */
	struct mqstore_queue *q;
	struct hold_pull *pulls;
	struct hold_watch *watches;
};

struct hold_pull {
	struct hold_pull *prev, *next;              /* waiting on the queue, or ready */
	struct hold_pull *conn_prev, *conn_next;    /* of the connection */
	struct hold_queue *queue;                   /* NULL: ready */
	struct heap_node due;                       /* monotonic ms */
	uint64_t round;                             /* of hold_run() that looked last */
	struct later to;
	struct pull p;                              /* topic, sub: references; group: below */
	char group[];
};

struct hold {
	struct broker *b;
	struct hold_queue *queues;                  /* uthash */
	struct hold_pull *ready;
	struct heap due;
	uv_timer_t timer;
	int64_t armed_ms;                           /* when the timer fires; INT64_MAX: not armed */
	size_t n;
	uint64_t round;
	bool stopped;
};

static struct hold_queue *need_queue(struct hold *h, struct mqstore_queue *q)
{
	struct hold_queue *hq;

	HASH_FIND_PTR(h->queues, &q, hq);
	if (!hq) {
		hq = mem_alloc(sizeof *hq);
		hq->q = q;
		HASH_ADD_PTR(h->queues, q, hq);
		mqstore_queue_watch(q, true);
	}
	return hq;
}

/* Nobody waits on it any more? */
static void left_queue(struct hold *h, struct hold_queue *hq)
{
	if (hq->pulls || hq->watches)
		return;
	mqstore_queue_watch(hq->q, false);
	HASH_DEL(h->queues, hq);
	free(hq);
}

static void set_waiting(struct hold *h, struct hold_pull *w, struct mqstore_queue *q)
{
	w->queue = need_queue(h, q);
	DL_APPEND(w->queue->pulls, w);
}

void hold_watch(struct hold *h, struct hold_watch *w, struct mqstore_queue *q)
{
	w->queue = need_queue(h, q);
	DL_APPEND(w->queue->watches, w);
}

void hold_unwatch(struct hold *h, struct hold_watch *w)
{
	struct hold_queue *hq = w->queue;

	if (!hq)
		return;
	DL_DELETE(hq->watches, w);
	w->queue = NULL;
	left_queue(h, hq);
}

struct mqstore_queue *hold_watched(const struct hold_watch *w)
{
	return w->queue ? w->queue->q : NULL;
}

static void unlink_pull(struct hold *h, struct hold_pull *w)
{
	struct hold_queue *hq = w->queue;

	if (!hq) {
		DL_DELETE(h->ready, w);
		return;
	}
	DL_DELETE(hq->pulls, w);
	w->queue = NULL;
	left_queue(h, hq);
}

static void set_ready(struct hold *h, struct hold_pull *w)
{
	if (!w->queue)
		return;
	unlink_pull(h, w);
	DL_APPEND(h->ready, w);
	broker_want_turn(h->b);
}

/* Out of all lists, and gone. */
static void drop(struct hold *h, struct hold_pull *w)
{
	struct channel *ch = conn_public(w->to.c)->user;

	unlink_pull(h, w);
	heap_remove(&h->due, &w->due);
	if (ch)
		DL_DELETE2(ch->pulls, w, conn_prev, conn_next);
	later_drop(&w->to);
	topic_put(w->p.topic);
	sub_put(w->p.sub);
	free(w);
	h->n--;
}

static void arm(struct hold *h);

static void expire(struct hold *h, struct hold_pull *w)
{
	struct req q = later_req(h->b, &w->to);

	if (w->p.topic->deleted)
		reply(&q, RESP_TOPIC_NOT_EXIST, "topic[%s] was deleted", w->p.topic->name);
	else if (!pull_try(&q, &w->p))
		pull_nothing(&q, &w->p);
	h->b->metrics.pulls_expired++;
	drop(h, w);
}

static void on_timer(uv_timer_t *timer)
{
	struct hold *h = timer->data;
	struct heap_node *n;

	clock_refresh();
	h->armed_ms = INT64_MAX;
	while ((n = heap_top(&h->due)) && n->due <= clock_mono_ms())
		expire(h, (struct hold_pull *)((char *)n - offsetof(struct hold_pull, due)));
	arm(h);
}

/* The timer is set for the earliest deadline; it is not put off when that pull is answered before: it then finds nothing. */
static void arm(struct hold *h)
{
	struct heap_node *n = heap_top(&h->due);
	int64_t ms;

	if (!n || n->due >= h->armed_ms)
		return;
	ms = n->due - clock_mono_ms();
	h->armed_ms = n->due;
	uv_update_time(h->b->loop);
	uv_timer_start(&h->timer, on_timer, ms > 0 ? ms : 0, 0);
}

/* A message for a queue that somebody waits on: inside of mqstore_append(). */
static void on_arrival(void *arg, struct mqstore_queue *q, int64_t queue_off, int64_t code, struct mq_str props)
{
	struct hold *h = arg;
	struct hold_queue *hq;
	struct hold_pull *w, *tmp;
	struct hold_watch *other, *next;

	HASH_FIND_PTR(h->queues, &q, hq);
	if (!hq)
		return;
	DL_FOREACH_SAFE(hq->watches, other, next)
		other->arrived(other);
	DL_FOREACH_SAFE(hq->pulls, w, tmp) { /* hq goes with its last pull, and is not looked at after it */
		if (sub_match(w->p.sub, code) && sub_match_props(w->p.sub, props))
			set_ready(h, w);
		else if (w->p.off == queue_off)
			w->p.off++;
	}
}

bool hold_park(struct hold *h, struct req *q, const struct pull *p, int64_t ms)
{
	struct channel *ch = conn_public(q->c)->user;
	struct mqstore_queue *queue;
	struct hold_pull *w;

	if (h->stopped || !ch || h->n >= (size_t)h->b->conf->maxHeldPulls)
		return false;
	queue = topic_queue(h->b->topics, p->topic, p->queue_id, true);
	if (!queue)
		return false;
	w = mem_alloc(sizeof *w + p->group.n);
	memcpy(w->group, p->group.p, p->group.n);
	w->p = *p;
	w->p.group = (struct mq_str){ w->group, p->group.n };
	topic_get(p->topic);
	sub_get(p->sub);
	later_take(&w->to, q);
	DL_APPEND2(ch->pulls, w, conn_prev, conn_next);
	heap_push(&h->due, &w->due, clock_mono_ms() + ms);
	h->n++;
	h->b->metrics.pulls_held++;
	if (flush_visible_max(h->b, queue) < mqstore_queue_max(queue))
		DL_APPEND(h->ready, w); /* something is there: wait for the disk, not for more */
	else
		set_waiting(h, w, queue);
	arm(h);
	return true;
}

static bool run_one(struct hold *h, struct hold_pull *w)
{
	struct req q = later_req(h->b, &w->to);
	struct mqstore_queue *queue;

	if (w->p.topic->deleted) {
		reply(&q, RESP_TOPIC_NOT_EXIST, "topic[%s] was deleted", w->p.topic->name);
		return true;
	}
	if (pull_try(&q, &w->p)) {
		h->b->metrics.pulls_woken++;
		return true;
	}
	queue = topic_queue(h->b->topics, w->p.topic, w->p.queue_id, true);
	if (!queue) {
		pull_nothing(&q, &w->p);
		return true;
	}
	if (flush_visible_max(h->b, queue) == mqstore_queue_max(queue)) {
		unlink_pull(h, w);
		set_waiting(h, w, queue);
	}
	return false;
}

void hold_run(struct hold *h)
{
	struct hold_pull *w;

	/* Those that stay ready go to the end; the run is over when the first of them comes up again. */
	for (h->round++; (w = h->ready) && w->round != h->round; ) {
		w->round = h->round;
		if (run_one(h, w))
			drop(h, w);
		else if (!w->queue) {
			DL_DELETE(h->ready, w);
			DL_APPEND(h->ready, w);
		}
	}
}

void hold_conn_closed(struct hold *h, struct channel *ch)
{
	while (ch->pulls)
		drop(h, ch->pulls);
}

void hold_wake_topic(struct hold *h, struct topic *t, struct mq_str group)
{
	struct hold_queue *hq, *hqtmp;
	struct hold_pull *w, *tmp;

	HASH_ITER(hh, h->queues, hq, hqtmp) {
		if (!hq->pulls || hq->pulls->p.topic != t)
			continue;
		DL_FOREACH_SAFE(hq->pulls, w, tmp)
			if (!group.p || str_eq(group, w->p.group))
				set_ready(h, w);
	}
}

void hold_wake_all(struct hold *h)
{
	for (struct heap_node **n = h->due.v; n < h->due.v + h->due.n; n++)
		set_ready(h, (struct hold_pull *)((char *)*n - offsetof(struct hold_pull, due)));
}

size_t hold_count(const struct hold *h)
{
	return h->n;
}

struct hold *hold_new(struct broker *b)
{
	struct hold *h = mem_alloc(sizeof *h);

	h->b = b;
	h->armed_ms = INT64_MAX;
	uv_timer_init(b->loop, &h->timer);
	h->timer.data = h;
	mqstore_on_arrival(b->store, on_arrival, h);
	return h;
}

void hold_stop(struct hold *h)
{
	struct heap_node *n;

	h->stopped = true;
	while ((n = heap_top(&h->due)))
		expire(h, (struct hold_pull *)((char *)n - offsetof(struct hold_pull, due)));
	uv_timer_stop(&h->timer);
}

static void on_closed(uv_handle_t *handle)
{
	struct hold *h = handle->data;

	heap_free(&h->due);
	free(h);
}

void hold_free(struct hold *h)
{
	if (h)
		uv_close((uv_handle_t *)&h->timer, on_closed);
}
