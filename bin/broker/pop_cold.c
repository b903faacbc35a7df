/* pop_cold.c: pops that wait for the disk. */
#include "pop_cold.h"
#include "broker.h"
#include <base/mem.h>

struct cold_pop {
	struct cold_wait w;
	struct pop p;           /* topic, sub: references; texts: below */
	char text[];            /* group, attempt */
};

static void ready(struct req *q, struct cold_wait *w, bool stopped)
{
	struct pop *p = &((struct cold_pop *)w)->p;
	struct pop_wait wait;

	if (!stopped && p->topic->deleted)
		reply(q, RESP_TOPIC_NOT_EXIST, "topic[%s] was deleted", p->topic->name);
	else if (stopped || !pop_try(q, p, &wait))
		pop_nothing(q, p, RESP_POLLING_TIMEOUT);
}

static void forget(struct cold_wait *w)
{
	struct pop *p = &((struct cold_pop *)w)->p;

	topic_put(p->topic);
	sub_put(p->sub);
}

void pop_cold_park(struct req *q, const struct pop *p, const struct cold_range *r, int n)
{
	struct cold_pop *c = mem_alloc(sizeof *c + p->group.n + p->attempt.n);

	memcpy(c->text, p->group.p, p->group.n);
	if (p->attempt.n)
		memcpy(c->text + p->group.n, p->attempt.p, p->attempt.n);
	c->p = *p;
	c->p.group.p = c->text;
	c->p.attempt.p = p->attempt.p ? c->text + p->group.n : NULL;
	c->p.fetches++;
	c->w.ready = ready;
	c->w.drop = forget;
	topic_get(p->topic);
	if (p->sub)
		sub_get(p->sub);
	cold_park(q->b->cold, q, &c->w, r, n);
}
