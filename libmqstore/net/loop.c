/* loop.c: the turn of a loop and the times at which something must happen.
 *
 * Knows the order in which libuv calls: timers, prepare, (wait), input, check.  What a connection does is in conn.c. */
#include "loop.h"
#include "conn_private.h"
#include "../base/clock.h"
#include "../base/mem.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, net) registry = LIST_HEAD_INITIALIZER(registry);

void net_turn(struct net *n)
{
	if (!n->clock_is_fresh) {
		clock_refresh();
		n->clock_is_fresh = true;
	}
}

static void on_check(uv_check_t *h)
{
	net_turn(h->data);
}

static void on_idle(uv_idle_t *h)
{
	/* It exists so that the loop goes on without waiting. */
}

void net_soon(struct net *n)
{
	uv_idle_start(&n->idle, on_idle);
}

/* ---- Looking again instead of waiting -------------------------------------------------------------------------------- */

void net_heard(struct net *n)
{
	if (!n->spin_us || n->heard)
		return;
	n->heard = true;
	n->heard_us = clock_mono_us();
}

static void note_gap(struct net *n, int64_t gap)
{
	int64_t most = (int64_t)LOOP_GAP_PART * n->spin_us;

	n->gap_us += ((gap < most ? gap : most) - n->gap_us) / LOOP_GAP_PART;
}

/* A peer at work on another processor sends its next sooner than a sleep and its end take.  A gap in which the loop slept is longer by
 * that, so it is tried when gaps are up to twice spin_us.  In vain once, and it is left for a while: so where the peer needs this
 * processor, or input comes too rarely, little is lost. */
static bool spin_on(struct net *n)
{
	int64_t now;

	if (!n->spin_us || (!n->heard && !n->spinning))
		return false;
	now = clock_mono_us();
	if (n->heard) {
		note_gap(n, n->heard_us - n->quiet_us);
		n->quiet_us = now;
		n->look_us = n->spin_as_worked && now - n->heard_us < n->spin_us ? now - n->heard_us : n->spin_us;
		n->heard = false;
		n->spinning = n->gap_us < 2 * n->spin_us;
	} else if (now - n->quiet_us >= n->look_us) {
		n->spinning = false;
		n->gap_us = (int64_t)LOOP_GAP_PART * n->spin_us;
	}
	return n->spinning;
}

void conn_spin(uv_loop_t *loop, int us, bool as_worked)
{
	struct net *n = net_get(loop);

	n->spin_us = us;
	n->spin_as_worked = as_worked;
	n->gap_us = (int64_t)LOOP_GAP_PART * us;
	n->spinning = false;
	net_put(n);
}

/* ---- The turn -------------------------------------------------------------------------------------------------------- */

/* The last thing before the loop waits: nothing that was written may be left behind, whoever wrote it. */
static void on_prepare(uv_prepare_t *h)
{
	struct net *n = h->data;
	struct conn_list now = TAILQ_HEAD_INITIALIZER(now);
	struct conn *c;

	net_turn(n);
	n->users++; /* these callbacks may drop the last connection */
	if (n->before_send)
		n->before_send(n->before_send_arg);
	TAILQ_CONCAT(&now, &n->dirty, turn);
	while ((c = TAILQ_FIRST(&now))) {
		TAILQ_REMOVE(&now, c, turn);
		c->is_dirty = false;
		conn_flush(c);
		conn_unref(c);
	}
	while ((c = TAILQ_FIRST(&n->gone))) {
		TAILQ_REMOVE(&n->gone, c, end);
		conn_tell_gone(c);
	}
	call_tell_lost(n);
	/* What these callbacks wrote leaves in the next turn, which comes at once. */
	if (spin_on(n))
		net_soon(n);
	else if (TAILQ_EMPTY(&n->dirty) && TAILQ_EMPTY(&n->gone) && TAILQ_EMPTY(&n->lost))
		uv_idle_stop(&n->idle);
	n->clock_is_fresh = false;
	net_put(n);
}

void conn_before_send(uv_loop_t *loop, void (*cb)(void *arg), void *arg)
{
	struct net *n = net_get(loop);

	if (!n->before_send == !cb)
		net_put(n);
	else if (!cb)
		n->users--;
	n->before_send = cb;
	n->before_send_arg = arg;
	if (!cb)
		net_put(n);
}

/* ---- Deadlines ------------------------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *h);

static void arm(struct net *n)
{
	const struct heap_node *top = heap_top(&n->deadlines);
	int64_t due = top ? top->due : INT64_MAX, wait;

	/* Earlier than needed is harmless, and saves moving the timer with every call that is answered. */
	if (due >= n->armed_ms)
		return;
	n->armed_ms = due;
	uv_update_time(n->loop);
	wait = due - clock_mono_us() / 1000;
	uv_timer_start(&n->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void on_timer(uv_timer_t *h)
{
	struct net *n = h->data;
	struct heap_node *top;

	clock_refresh();
	n->clock_is_fresh = true;
	n->armed_ms = INT64_MAX;
	while ((top = heap_top(&n->deadlines)) && top->due <= clock_mono_ms()) {
		struct deadline *d = (struct deadline *)top;

		heap_remove(&n->deadlines, top);
		d->fire(d);
	}
	arm(n);
}

void deadline_set(struct net *n, struct deadline *d, int64_t ms_from_now, void (*fire)(struct deadline *d))
{
	net_turn(n);
	d->fire = fire;
	heap_push(&n->deadlines, &d->node, clock_mono_ms() + ms_from_now);
	arm(n);
}

void deadline_clear(struct net *n, struct deadline *d)
{
	heap_remove(&n->deadlines, &d->node);
	if (!n->deadlines.n && n->armed_ms != INT64_MAX) {
		/* An armed timer keeps the loop alive. */
		uv_timer_stop(&n->timer);
		n->armed_ms = INT64_MAX;
	}
}

static void on_tick(struct deadline *d)
{
	struct net *n = (struct net *)((char *)d - offsetof(struct net, tick));
	struct conn *c, *next;

	for (c = TAILQ_FIRST(&n->conns); c; c = next) {
		next = TAILQ_NEXT(c, all);
		conn_tick(c, clock_mono_ms());
	}
	buf_free(&n->nowhere);
	if (!TAILQ_EMPTY(&n->conns))
		deadline_set(n, &n->tick, n->tick_ms, on_tick);
}

void net_tick_within(struct net *n, int64_t ms)
{
	if (ms < n->tick_ms || !n->tick.node.at) {
		n->tick_ms = ms < n->tick_ms ? ms : n->tick_ms;
		deadline_set(n, &n->tick, n->tick_ms, on_tick);
	}
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

static void init(struct net *n, uv_loop_t *loop)
{
	n->loop = loop;
	n->armed_ms = INT64_MAX;
	n->tick_ms = LOOP_TICK_MS;
	TAILQ_INIT(&n->conns);
	TAILQ_INIT(&n->dirty);
	TAILQ_INIT(&n->gone);
	TAILQ_INIT(&n->lost);
	TAILQ_INIT(&n->unused);
	n->in = mem_alloc(LOOP_READ);
	uv_prepare_init(loop, &n->prepare);
	uv_check_init(loop, &n->check);
	uv_idle_init(loop, &n->idle);
	uv_timer_init(loop, &n->timer);
	n->prepare.data = n->check.data = n->idle.data = n->timer.data = n;
	n->handles = 4;
	uv_prepare_start(&n->prepare, on_prepare);
	uv_check_start(&n->check, on_check);
	/* They serve connections; without one they do not keep the loop alive. */
	uv_unref((uv_handle_t *)&n->prepare);
	uv_unref((uv_handle_t *)&n->check);
}

struct net *net_get(uv_loop_t *loop)
{
	struct net *n;

	pthread_mutex_lock(&registry_lock);
	LIST_FOREACH(n, &registry, all)
		if (n->loop == loop)
			break;
	if (!n) {
		n = mem_alloc(sizeof(*n));
		LIST_INSERT_HEAD(&registry, n, all);
		init(n, loop);
	}
	n->users++;
	pthread_mutex_unlock(&registry_lock);
	return n;
}

static void on_closed(uv_handle_t *h)
{
	struct net *n = h->data;

	if (--n->handles)
		return;
	call_free_unused(n);
	heap_free(&n->deadlines);
	buf_free(&n->nowhere);
	free(n->in);
	free(n);
}

void net_put(struct net *n)
{
	pthread_mutex_lock(&registry_lock);
	if (--n->users) {
		pthread_mutex_unlock(&registry_lock);
		return;
	}
	LIST_REMOVE(n, all);
	pthread_mutex_unlock(&registry_lock);
	uv_close((uv_handle_t *)&n->prepare, on_closed);
	uv_close((uv_handle_t *)&n->check, on_closed);
	uv_close((uv_handle_t *)&n->idle, on_closed);
	uv_close((uv_handle_t *)&n->timer, on_closed);
}
