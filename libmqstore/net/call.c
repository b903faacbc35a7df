/* call.c: our own requests over a connection, matched with their answers by opaque.
 *
 * Each connection has a table with open addressing by opaque.  A deadline per call stands in the
 * loop's heap.  Nothing is allocated per call once the table and the list of unused calls have grown. */
#include "conn_private.h"
#include "../base/mem.h"

#include <stdlib.h>

struct call {
	struct deadline deadline;   /* first: on_late() finds the call by it */
	struct conn *c;             /* not a reference: the connection loses its calls before it goes */
	int32_t opaque;
	conn_answer_cb *cb;
	void *arg;
	TAILQ_ENTRY(call) link;     /* net->unused, net->lost */
};

static struct call *call_new(struct net *n)
{
	struct call *k = TAILQ_FIRST(&n->unused);

	if (!k)
		return mem_alloc(sizeof(*k));
	TAILQ_REMOVE(&n->unused, k, link);
	return k;
}

/* Take what the caller needs first: from here on the call may be used again. */
static void call_done(struct net *n, struct call *k, int rc, struct frame *f)
{
	conn_answer_cb *cb = k->cb;
	void *arg = k->arg;

	TAILQ_INSERT_HEAD(&n->unused, k, link);
	cb(arg, rc, f);
}

void call_free_unused(struct net *n)
{
	struct call *k;

	while ((k = TAILQ_FIRST(&n->unused))) {
		TAILQ_REMOVE(&n->unused, k, link);
		free(k);
	}
}

/* ---- The table ------------------------------------------------------------------------------------------------------- */

/* How far what lies at `at` is from where its opaque belongs.  Along a run of full slots nobody is farther from home than the one
 * behind him would be in his place ("Robin Hood"): so a search ends early, also in one long run, which is what opaques that count
 * up make of this table. */
static uint32_t away(const struct conn *c, uint32_t at)
{
	return (at - (uint32_t)c->calls[at]->opaque) & (c->calls_cap - 1);
}

static bool find(const struct conn *c, int32_t opaque, uint32_t *at)
{
	uint32_t mask = c->calls_cap - 1, d = 0;

	if (!c->calls_n)
		return false;
	for (*at = (uint32_t)opaque & mask; c->calls[*at] && away(c, *at) >= d; *at = (*at + 1) & mask, d++)
		if (c->calls[*at]->opaque == opaque)
			return true;
	return false;
}

static void insert(struct conn *c, struct call *k)
{
	uint32_t mask = c->calls_cap - 1, at = (uint32_t)k->opaque & mask, d = 0;

	for (; c->calls[at]; at = (at + 1) & mask, d++) {
		uint32_t theirs = away(c, at);

		if (theirs < d) {
			struct call *other = c->calls[at];

			c->calls[at] = k;
			k = other;
			d = theirs;
		}
	}
	c->calls[at] = k;
	c->calls_n++;
}

static void grow(struct conn *c)
{
	struct call **old = c->calls;
	uint32_t cap = c->calls_cap;

	c->calls_cap = cap ? cap * 2 : 16;
	c->calls = mem_alloc(c->calls_cap * sizeof(struct call *));
	c->calls_n = 0;
	for (uint32_t i = 0; i < cap; i++)
		if (old[i])
			insert(c, old[i]);
	free(old);
}

/* Those behind who are not at home move up, so that no search stops at the hole. */
static struct call *take(struct conn *c, uint32_t at)
{
	struct call *k = c->calls[at];
	uint32_t mask = c->calls_cap - 1, next = (at + 1) & mask;

	for (; c->calls[next] && away(c, next) > 0; at = next, next = (next + 1) & mask)
		c->calls[at] = c->calls[next];
	c->calls[at] = NULL;
	c->calls_n--;
	deadline_clear(c->net, &k->deadline);
	return k;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------------- */

static void on_late(struct deadline *d)
{
	struct call *k = (struct call *)d;
	struct conn *c = k->c;
	uint32_t at;

	if (find(c, k->opaque, &at))
		call_done(c->net, take(c, at), MQ_ETIMEOUT, NULL);
}

static int32_t next_opaque(struct conn *c)
{
	uint32_t at;

	do
		c->net->opaque = c->net->opaque == INT32_MAX ? 0 : c->net->opaque + 1;
	while (find(c, c->net->opaque, &at));
	return c->net->opaque;
}

void conn_call(struct conn *c, struct frame_out *o, int32_t code, int type, int timeout_ms, conn_answer_cb *cb, void *arg)
{
	int32_t opaque = next_opaque(c);
	struct call *k;

	frame_request(o, conn_out(c), type, code, opaque, cb ? 0 : FRAME_ONEWAY);
	if (!cb)
		return;
	k = call_new(c->net);
	k->c = c;
	k->opaque = opaque;
	k->cb = cb;
	k->arg = arg;
	if (c->state == CONN_DEAD) {
		TAILQ_INSERT_TAIL(&c->net->lost, k, link);
		net_soon(c->net);
		return;
	}
	if (c->calls_n * 2 >= c->calls_cap)
		grow(c);
	insert(c, k);
	if (timeout_ms > 0)
		deadline_set(c->net, &k->deadline, timeout_ms, on_late);
}

void call_answered(struct conn *c, struct frame *f)
{
	uint32_t at;

	if (find(c, f->opaque, &at))
		call_done(c->net, take(c, at), 0, f);
	else if (c->ops->answer)
		c->ops->answer(c, f);
}

void call_lose_all(struct conn *c)
{
	uint32_t at = 0;

	while (c->calls_n) {
		while (!c->calls[at & (c->calls_cap - 1)])
			at++;
		call_done(c->net, take(c, at & (c->calls_cap - 1)), MQ_ECLOSED, NULL);
	}
}

void call_tell_lost(struct net *n)
{
	struct call_list now = TAILQ_HEAD_INITIALIZER(now);
	struct call *k;

	TAILQ_CONCAT(&now, &n->lost, link);
	while ((k = TAILQ_FIRST(&now))) {
		TAILQ_REMOVE(&now, k, link);
		call_done(n, k, MQ_ECLOSED, NULL);
	}
}
