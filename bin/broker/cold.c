/* cold.c: pulls that wait for the disk, first come, first served. */
#include "cold.h"
#include "broker.h"
#include <base/clock.h>
#include <base/mem.h>
#include <stdlib.h>
#include <utlist.h>

enum { AT_ONCE = 2 };

struct cold_pull {
	struct cold_pull *prev, *next;
	struct cold *all;               /* NULL: the broker has stopped, and it is answered */
	uv_work_t work;
	struct cold_range range;
	bool running;
	struct later to;
	struct pull p;                  /* topic, sub: references; group: below */
	char group[];
};

struct cold {
	struct broker *b;
	struct cold_pull *pulls;        /* those that run first */
	size_t n;
	int running;
	bool stopped;
};

static void drop(struct cold *c, struct cold_pull *w)
{
	DL_DELETE(c->pulls, w);
	c->n--;
	later_drop(&w->to);
	topic_put(w->p.topic);
	sub_put(w->p.sub);
	w->all = NULL;
	if (!w->running)
		free(w);
}

static void answer(struct cold *c, struct cold_pull *w)
{
	struct req q = later_req(c->b, &w->to);

	w->p.fetched = true;
	if (w->p.topic->deleted)
		reply(&q, RESP_TOPIC_NOT_EXIST, "topic[%s] was deleted", w->p.topic->name);
	else if (!pull_try(&q, &w->p))
		pull_nothing(&q, &w->p);
	drop(c, w);
}

static void run(uv_work_t *work)
{
	cold_fetch(&((struct cold_pull *)work->data)->range);
}

static void go_on(struct cold *c);

static void done(uv_work_t *work, int status)
{
	struct cold_pull *w = work->data;
	struct cold *c = w->all;

	clock_refresh();
	w->running = false;
	if (!c) {
		free(w);
		return;
	}
	c->running--;
	answer(c, w);
	go_on(c);
}

static void go_on(struct cold *c)
{
	struct cold_pull *w, *tmp;

	DL_FOREACH_SAFE(c->pulls, w, tmp) {
		if (c->running == AT_ONCE)
			return;
		if (w->running)
			continue;
		if (!conn_alive(w->to.c)) {
			drop(c, w);
			continue;
		}
		w->running = true;
		c->running++;
		w->work.data = w;
		uv_queue_work(c->b->loop, &w->work, run, done);
	}
}

bool cold_park(struct cold *c, struct req *q, const struct pull *p, const struct cold_range *r)
{
	struct cold_pull *w;

	if (c->stopped || c->n >= (size_t)c->b->conf->maxHeldPulls)
		return false;
	w = mem_alloc(sizeof *w + p->group.n);
	memcpy(w->group, p->group.p, p->group.n);
	w->all = c;
	w->range = *r;
	w->p = *p;
	w->p.group = (struct mq_str){ w->group, p->group.n };
	topic_get(p->topic);
	sub_get(p->sub);
	later_take(&w->to, q);
	DL_APPEND(c->pulls, w);
	c->n++;
	c->b->metrics.pulls_fetched++;
	go_on(c);
	return true;
}

struct cold *cold_new(struct broker *b)
{
	struct cold *c = mem_alloc(sizeof *c);

	c->b = b;
	return c;
}

void cold_stop(struct cold *c)
{
	struct cold_pull *w, *tmp;

	c->stopped = true;
	DL_FOREACH_SAFE(c->pulls, w, tmp) {
		struct req q = later_req(c->b, &w->to);

		pull_nothing(&q, &w->p);
		drop(c, w);
	}
}

void cold_free(struct cold *c)
{
	free(c);
}
