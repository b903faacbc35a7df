/* route.c: routes of topics, asked of a name server and kept for a while. */
#include "route.h"
#include "broker.h"
#include "hash.h"
#include "register.h"
#include <base/clock.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/request.h>
#include <stdlib.h>

enum { ASK_MS = 3000, TOPICS_MAX = 10000 };

struct asker {
	struct asker *next;
	void (*cb)(void *arg, const struct body_route *route);
	void *arg;
};

struct known {
	UT_hash_handle hh;              /* by name */
	struct route *r;                /* NULL: the broker stops */
	struct body_route route;
	bool there, asking;
	int64_t until_ms;               /* monotonic */
	struct asker *askers;
	uint32_t name_n;
	char name[];
};

struct route {
	struct broker *b;
	struct known *all;              /* uthash */
};

static void forget_route(struct known *k)
{
	if (k->there)
		body_route_free(&k->route);
	k->there = false;
}

static void tell(struct known *k)
{
	struct asker *a;

	while ((a = k->askers)) {
		k->askers = a->next;
		a->cb(a->arg, k->there ? &k->route : NULL);
		free(a);
	}
}

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct known *k = arg;
	struct body_route fresh;

	k->asking = false;
	if (!k->r) {
		free(k);
		return;
	}
	if (rc == 0 && f->code == RESP_SUCCESS && body_route_decode(f->body, &fresh, NULL) == 0) {
		forget_route(k);
		k->route = fresh;
		k->there = true;
	} else if (rc == 0)
		forget_route(k);
	k->until_ms = clock_mono_ms() + k->r->b->conf->loadBalancePollNameServerInterval;
	tell(k);
}

static void drop(struct route *r, struct known *k)
{
	HASH_DEL(r->all, k);
	forget_route(k);
	tell(k);
	if (k->asking)
		k->r = NULL; /* goes with its answer */
	else
		free(k);
}

/* Those that nobody waits for. */
static void forget_some(struct route *r)
{
	struct known *k, *tmp;

	HASH_ITER(hh, r->all, k, tmp)
		if (!k->asking)
			drop(r, k);
}

static struct known *need(struct route *r, struct mq_str topic)
{
	struct known *k;

	HASH_FIND(hh, r->all, topic.p, topic.n, k);
	if (k)
		return k;
	if (HASH_COUNT(r->all) >= TOPICS_MAX)
		forget_some(r);
	k = mem_alloc(sizeof *k + topic.n + 1);
	memcpy(k->name, topic.p, topic.n);
	k->name_n = (uint32_t)topic.n;
	k->r = r;
	k->until_ms = INT64_MIN;
	HASH_ADD_KEYPTR(hh, r->all, k->name, k->name_n, k);
	return k;
}

static void ask(struct known *k, struct conn *c)
{
	struct frame_out o;

	k->asking = true;
	conn_call(c, &o, REQ_GET_ROUTEINFO_BY_TOPIC, FRAME_JSON, ASK_MS, on_answer, k);
	frame_str(&o, "topic", (struct mq_str){ k->name, k->name_n });
	frame_end(&o);
	conn_kick(c);
}

void route_ask(struct route *r, struct mq_str topic, void (*cb)(void *, const struct body_route *), void *arg)
{
	struct known *k = need(r, topic);
	struct conn *c = register_conn(r->b->reg);
	struct asker *a;

	if (k->until_ms > clock_mono_ms() || (!k->asking && !c)) {
		cb(arg, k->there ? &k->route : NULL);
		return;
	}
	a = mem_alloc(sizeof *a);
	*a = (struct asker){ k->askers, cb, arg };
	k->askers = a;
	if (!k->asking)
		ask(k, c);
}

struct route *route_new(struct broker *b)
{
	struct route *r = mem_alloc(sizeof *r);

	r->b = b;
	return r;
}

void route_free(struct route *r)
{
	struct known *k, *tmp;

	if (!r)
		return;
	HASH_ITER(hh, r->all, k, tmp)
		drop(r, k);
	free(r);
}
