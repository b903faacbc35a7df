/* pop_hold.c: lines of pops that wait. */
#include "pop_hold.h"
#include "broker.h"
#include "hold.h"
#include <base/clock.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

enum { KEY_MAX = RECEIPT_TOPIC_MAX + MQ_GROUP_MAX + 32 };

struct watch {
	struct hold_watch w;
	struct pop_line *line;
};

struct pop_line {
	UT_hash_handle hh;              /* by key */
	struct pop_line *prev, *next;   /* woken */
	struct pop_hold *h;
	struct pop_waiter *waiters;
	size_t n;
	struct watch *watch;
	size_t nwatch, cap;
	struct heap_node again;         /* wall ms */
	bool woken;
	struct topic *topic;            /* borrowed: the waiters hold it */
	uint32_t key_n, topic_n, group_n;
	char key[];                     /* topic@group@queue */
};

struct pop_waiter {
	struct pop_waiter *prev, *next;             /* in the line */
	struct pop_waiter *conn_prev, *conn_next;   /* of the connection */
	struct pop_line *line;
	struct heap_node due;                       /* monotonic ms */
	struct later to;
	struct pop p;                               /* topic, sub: references; texts: below */
	char text[];                                /* group, attempt */
};

struct pop_hold {
	struct broker *b;
	struct pop_line *lines;         /* uthash */
	struct pop_line *woken;
	struct heap due, again;
	uv_timer_t timer;
	size_t n;
	bool stopped;
};

static size_t make_key(char key[KEY_MAX], struct mq_str topic, struct mq_str group, int32_t queue_id)
{
	if (topic.n + group.n + 16 > KEY_MAX)
		return 0;
	return (size_t)snprintf(key, KEY_MAX, MQ_STR_FMT "@" MQ_STR_FMT "@%d", MQ_STR_ARG(topic), MQ_STR_ARG(group), (int)queue_id);
}

static struct pop_line *find(const struct pop_hold *h, const char *key, size_t n)
{
	struct pop_line *l;

	HASH_FIND(hh, h->lines, key, n, l);
	return l;
}

/* To be served by the next pop_hold_run(), whenever that is. */
static void set_woken(struct pop_line *l)
{
	if (l->woken)
		return;
	l->woken = true;
	DL_APPEND(l->h->woken, l);
}

static void wake(struct pop_line *l)
{
	set_woken(l);
	broker_want_turn(l->h->b);
}

static void arrived(struct hold_watch *w)
{
	wake(((struct watch *)(void *)w)->line);
}

static void unwatch(struct pop_line *l)
{
	for (size_t i = 0; i < l->nwatch; i++)
		hold_unwatch(l->h->b->hold, &l->watch[i].w);
	l->nwatch = 0;
}

/* First how many, then each: the watches must not move. */
static void count_queue(void *arg, struct mqstore_queue *queue)
{
	(void)queue;
	((struct pop_line *)arg)->cap++;
}

static void watch_queue(void *arg, struct mqstore_queue *queue)
{
	struct pop_line *l = arg;
	struct watch *w;

	if (l->nwatch == l->cap)
		return;
	w = &l->watch[l->nwatch++];
	*w = (struct watch){ .line = l, .w = { .arrived = arrived } };
	hold_watch(l->h->b->hold, &w->w, queue);
}

static void watch(struct pop_line *l, const struct pop *p)
{
	unwatch(l);
	l->cap = 0;
	pop_each_queue(l->h->b, p, count_queue, l);
	free(l->watch);
	l->watch = mem_alloc((l->cap + 1) * sizeof *l->watch);
	pop_each_queue(l->h->b, p, watch_queue, l);
}

static void drop_line(struct pop_hold *h, struct pop_line *l)
{
	unwatch(l);
	if (l->woken)
		DL_DELETE(h->woken, l);
	heap_remove(&h->again, &l->again);
	HASH_DEL(h->lines, l);
	free(l->watch);
	free(l);
}

static void drop(struct pop_hold *h, struct pop_waiter *w)
{
	struct channel *ch = conn_public(w->to.c)->user;
	struct pop_line *l = w->line;

	DL_DELETE(l->waiters, w);
	l->n--;
	h->n--;
	heap_remove(&h->due, &w->due);
	if (ch)
		DL_DELETE2(ch->pops, w, conn_prev, conn_next);
	later_drop(&w->to);
	if (!l->waiters)
		drop_line(h, l);
	topic_put(w->p.topic);
	sub_put(w->p.sub);
	free(w);
}

static void arm(struct pop_hold *h);

static bool gone(struct req *q, const struct pop *p)
{
	if (p->topic->deleted)
		reply(q, RESP_TOPIC_NOT_EXIST, "topic[%s] was deleted", p->topic->name);
	return p->topic->deleted;
}

static void expire(struct pop_hold *h, struct pop_waiter *w)
{
	struct req q = later_req(h->b, &w->to);
	struct pop_wait wait;

	if (!gone(&q, &w->p) && !pop_try(&q, &w->p, &wait))
		pop_nothing(&q, &w->p, RESP_POLLING_TIMEOUT);
	h->b->metrics.pulls_expired++;
	drop(h, w);
}

static void on_timer(uv_timer_t *timer)
{
	struct pop_hold *h = timer->data;
	struct heap_node *n;

	clock_refresh();
	while ((n = heap_top(&h->due)) && n->due <= clock_mono_ms())
		expire(h, (struct pop_waiter *)(void *)((char *)n - offsetof(struct pop_waiter, due)));
	while ((n = heap_top(&h->again)) && n->due <= clock_now_ms()) {
		struct pop_line *l = (struct pop_line *)(void *)((char *)n - offsetof(struct pop_line, again));

		heap_remove(&h->again, n);
		wake(l);
	}
	arm(h);
}

static void arm(struct pop_hold *h)
{
	struct heap_node *due = heap_top(&h->due), *again = heap_top(&h->again);
	int64_t ms = INT64_MAX;

	if (due)
		ms = due->due - clock_mono_ms();
	if (again && again->due - clock_now_ms() < ms)
		ms = again->due - clock_now_ms();
	if (h->stopped || (!due && !again)) {
		uv_timer_stop(&h->timer);
		return;
	}
	uv_update_time(h->b->loop);
	uv_timer_start(&h->timer, on_timer, ms > 0 ? (uint64_t)ms : 0, 0);
}

static void look_again(struct pop_hold *h, struct pop_line *l, const struct pop_wait *w)
{
	heap_remove(&h->again, &l->again);
	if (w->flush)
		set_woken(l); /* the end of the flush comes by here */
	else if (w->again_ms)
		heap_push(&h->again, &l->again, w->again_ms);
}

int32_t pop_hold_park(struct pop_hold *h, struct req *q, const struct pop *p, const struct pop_wait *wait, int64_t ms)
{
	struct channel *ch = conn_public(q->c)->user;
	char key[KEY_MAX];
	size_t n = make_key(key, p->topic->conf.name, p->group, p->queue_id);
	struct pop_line *l = find(h, key, n);
	struct pop_waiter *w;

	if (h->stopped || !ch || ms <= 0)
		return RESP_POLLING_TIMEOUT;
	if (!n || h->n >= (size_t)h->b->conf->maxPopPollingSize || (l && l->n > (size_t)h->b->conf->popPollingSize))
		return RESP_POLLING_FULL;
	if (!l) {
		l = mem_alloc(sizeof *l + n + 1);
		memcpy(l->key, key, n);
		l->key_n = (uint32_t)n;
		l->topic_n = (uint32_t)p->topic->conf.name.n;
		l->group_n = (uint32_t)p->group.n;
		l->h = h;
		l->topic = p->topic;
		HASH_ADD_KEYPTR(hh, h->lines, l->key, l->key_n, l);
		watch(l, p);
	}
	w = mem_alloc(sizeof *w + p->group.n + p->attempt.n + 1);
	memcpy(w->text, p->group.p, p->group.n);
	if (p->attempt.n)
		memcpy(w->text + p->group.n, p->attempt.p, p->attempt.n);
	w->p = *p;
	w->p.group.p = w->text;
	w->p.attempt.p = p->attempt.p ? w->text + p->group.n : NULL;
	w->line = l;
	topic_get(p->topic);
	if (p->sub)
		sub_get(p->sub);
	later_take(&w->to, q);
	DL_APPEND(l->waiters, w);
	DL_APPEND2(ch->pops, w, conn_prev, conn_next);
	heap_push(&h->due, &w->due, clock_mono_ms() + ms);
	l->n++;
	h->n++;
	h->b->metrics.pulls_held++;
	look_again(h, l, wait);
	arm(h);
	return 0;
}

/* Serve the line until there is nothing for the one in front. */
static void run_line(struct pop_hold *h, struct pop_line *l)
{
	struct pop_waiter *w;
	struct pop_wait wait;

	while ((w = l->waiters)) {
		struct req q = later_req(h->b, &w->to);
		bool last = !w->next;

		wait = (struct pop_wait){ 0 };
		if (!gone(&q, &w->p) && !pop_try(&q, &w->p, &wait)) {
			if (!l->nwatch)
				watch(l, &w->p);
			look_again(h, l, &wait);
			return;
		}
		h->b->metrics.pulls_woken++;
		drop(h, w);
		if (last)
			return; /* and l with it */
	}
}

void pop_hold_run(struct pop_hold *h)
{
	struct pop_line *l, *first = h->woken;

	if (!first || h->stopped)
		return;
	h->woken = NULL; /* those that are woken from here on come next time */
	while ((l = first)) {
		DL_DELETE(first, l);
		l->woken = false;
		run_line(h, l);
	}
	arm(h);
}

void pop_hold_conn_closed(struct pop_hold *h, struct channel *ch)
{
	while (ch->pops)
		drop(h, ch->pops);
	arm(h);
}

/* Is the topic of this queue t? */
static bool watches(const struct pop_line *l, const struct topic *t)
{
	for (size_t i = 0; i < l->nwatch; i++) {
		struct mqstore_queue *q = hold_watched(&l->watch[i].w);

		if (q && str_eq(mqstore_queue_topic(q), t->conf.name))
			return true;
	}
	return false;
}

void pop_hold_wake(struct pop_hold *h, struct topic *t, struct mq_str group)
{
	struct pop_line *l, *tmp;

	HASH_ITER(hh, h->lines, l, tmp) {
		if ((l->topic != t && !watches(l, t)) ||
		    (group.p && !str_eq((struct mq_str){ l->key + l->topic_n + 1, l->group_n }, group)))
			continue;
		unwatch(l);
		wake(l);
	}
}

void pop_hold_wake_all(struct pop_hold *h)
{
	struct pop_line *l, *tmp;

	HASH_ITER(hh, h->lines, l, tmp) {
		unwatch(l);
		wake(l);
	}
}

size_t pop_hold_count(const struct pop_hold *h, struct mq_str topic, struct mq_str group, int32_t queue_id)
{
	char key[KEY_MAX];
	struct pop_line *l = find(h, key, make_key(key, topic, group, queue_id));

	return l ? l->n : 0;
}

struct pop_hold *pop_hold_new(struct broker *b)
{
	struct pop_hold *h = mem_alloc(sizeof *h);

	h->b = b;
	uv_timer_init(b->loop, &h->timer);
	h->timer.data = h;
	return h;
}

void pop_hold_stop(struct pop_hold *h)
{
	struct heap_node *n;

	while ((n = heap_top(&h->due))) {
		struct pop_waiter *w = (struct pop_waiter *)(void *)((char *)n - offsetof(struct pop_waiter, due));
		struct req q = later_req(h->b, &w->to);

		pop_nothing(&q, &w->p, RESP_POLLING_TIMEOUT);
		drop(h, w);
	}
	h->stopped = true;
	uv_timer_stop(&h->timer);
}

static void on_closed(uv_handle_t *handle)
{
	struct pop_hold *h = handle->data;

	heap_free(&h->due);
	heap_free(&h->again);
	free(h);
}

void pop_hold_free(struct pop_hold *h)
{
	if (h)
		uv_close((uv_handle_t *)&h->timer, on_closed);
}
