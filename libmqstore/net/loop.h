/* loop.h: what all connections of one uv loop share.  Private to net/.
 *
 * A turn of the loop, as net sees it: the clock is read once; each connection with input reads once, handles every whole frame
 * of it and writes once; what was written to other connections (and by timers, workers, other check handles) leaves just before
 * the loop waits again. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "../base/heap.h"
#include "../codec/frame.h"
#include <sys/queue.h>
#include <uv.h>

struct conn;
struct call;

enum {
	LOOP_READ = 256 * 1024,     /* shared buffer into which every connection reads */
	LOOP_GAP_PART = 8,          /* of a gap goes into the average; what counts as much too long, in times of spin_us */
	LOOP_TICK_MS = 5000,        /* how often idle connections are looked for; less if a server closes them sooner */
};

/* Something that happens at a monotonic time unless it is cleared before. */
struct deadline {
	struct heap_node node;
	void (*fire)(struct deadline *d);
};

TAILQ_HEAD(conn_list, conn);
TAILQ_HEAD(call_list, call);

struct net {
	uv_loop_t *loop;
	LIST_ENTRY(net) all;
	size_t users;               /* connections (also dead ones that are referenced), servers */
	int handles;                /* open handles below */
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t idle;
	uv_timer_t timer;
	bool clock_is_fresh;
	struct heap deadlines;
	int64_t armed_ms;           /* timer runs for this due time; INT64_MAX = it does not */

	struct conn_list conns;     /* alive; least recently opened first */
	struct conn_list dirty;     /* with output that has not been tried; the list holds a reference */
	struct conn_list gone;      /* dead, `closed` not yet called, and no handle whose closing would do it */
	struct call_list lost;      /* calls on dead connections, to be told */
	struct call_list unused;
	int32_t opaque;
	void (*before_send)(void *arg); /* NULL = nobody asks */
	void *before_send_arg;
	struct deadline tick;
	int64_t tick_ms;

	/* conn_spin() */
	int spin_us;                /* 0 = the loop waits at once */
	bool spin_as_worked;
	int64_t look_us;            /* how long at most it looks after the input that came last */
	bool heard, spinning;       /* input came in this turn; the loop looks again and again */
	int64_t heard_us;           /* when it came */
	int64_t quiet_us;           /* when it had been dealt with */
	int64_t gap_us;             /* how long input lets wait for itself: a moving average */

	struct frame frame;         /* the one being handled */
	char *in;                   /* LOOP_READ bytes */
	struct buf nowhere;         /* what is written to connections that are gone */
};

/* The net of a loop, made when first used; every get is one user. */
struct net *net_get(uv_loop_t *loop);
void net_put(struct net *n);

/* Call first in every callback of libuv. */
void net_turn(struct net *n);
/* Something stands in dirty, gone or lost: the loop must not wait, nor end, before it has been looked at. */
void net_soon(struct net *n);
/* A connection has input. */
void net_heard(struct net *n);
/* Look for idle connections at least this often. */
void net_tick_within(struct net *n, int64_t ms);

void deadline_set(struct net *n, struct deadline *d, int64_t ms_from_now, void (*fire)(struct deadline *d));
void deadline_clear(struct net *n, struct deadline *d);

#endif
