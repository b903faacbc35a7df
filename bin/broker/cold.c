/* cold.c: requests that wait for the disk, first come, first served. */
#include "cold.h"
#include "broker.h"
#include <base/clock.h>
#include <base/mem.h>
#include <stdlib.h>
#include <utlist.h>

enum {
	AT_ONCE = 2,
	AHEAD_MAX = 8,          /* nothing is fetched ahead when so many wait */
	ROUNDS_MAX = 200,       /* a search looks at one message after the other; behind that it waits on the loop */
};

struct cold {
	struct broker *b;
	struct cold_wait *list;         /* those that run first */
	size_t n;
	int running;
	bool stopped;
	struct cold_guard guard;        /* of the request that is being handled */
};

/* A request that is handled again: a copy of its frame. */
struct cold_request {
	struct cold_wait w;
	struct frame f;
	int rounds;
	char text[];                    /* of the fields */
};

static void let_go(struct cold_wait *w)
{
	free(w->range);
	free(w);
}

/* Whatever is done about it may bring another one. */
static void take_out(struct cold *c, struct cold_wait *w)
{
	DL_DELETE(c->list, w);
	c->n--;
}

static void drop(struct cold_wait *w)
{
	later_drop(&w->to);
	if (w->drop)
		w->drop(w);
	w->all = NULL;
	if (!w->running)
		let_go(w);
}

static void answer(struct cold *c, struct cold_wait *w, bool stopped)
{
	struct req q = later_req(c->b, &w->to);

	take_out(c, w);
	if (w->ready)
		w->ready(&q, w, stopped);
	drop(w);
}

static void run(uv_work_t *work)
{
	struct cold_wait *w = work->data;

	for (int i = 0; i < w->n; i++)
		cold_fetch(&w->range[i]);
}

static void go_on(struct cold *c);

static void done(uv_work_t *work, int status)
{
	struct cold_wait *w = work->data;
	struct cold *c = w->all;

	clock_refresh();
	w->running = false;
	if (!c) {
		let_go(w);
		return;
	}
	c->running--;
	answer(c, w, false);
	go_on(c);
}

static void go_on(struct cold *c)
{
	struct cold_wait *w, *tmp;

	DL_FOREACH_SAFE(c->list, w, tmp) {
		if (c->running == AT_ONCE)
			return;
		if (w->running)
			continue;
		if (w->ready && !conn_alive(w->to.c)) {
			take_out(c, w);
			drop(w);
			continue;
		}
		w->running = true;
		c->running++;
		w->work.data = w;
		uv_queue_work(c->b->loop, &w->work, run, done);
	}
}

bool cold_may_wait(const struct cold *c)
{
	return !c->stopped && c->n < (size_t)c->b->conf->maxHeldPulls;
}

static void add(struct cold *c, struct cold_wait *w, const struct cold_range *r, int n)
{
	w->all = c;
	w->n = n;
	w->range = mem_alloc((size_t)n * sizeof *r);
	memcpy(w->range, r, (size_t)n * sizeof *r);
	DL_APPEND(c->list, w);
	c->n++;
	go_on(c);
}

void cold_park(struct cold *c, struct req *q, struct cold_wait *w, const struct cold_range *r, int n)
{
	later_take(&w->to, q);
	c->b->metrics.pulls_fetched++;
	add(c, w, r, n);
}

void cold_ahead(struct cold *c, const struct cold_range *r, int n)
{
	if (!c->stopped && c->n < AHEAD_MAX)
		add(c, mem_alloc(sizeof(struct cold_wait)), r, n);
}

/* ---- Requests that are handled again -------------------------------------------------------------------------------------- */

static struct mq_str keep(char **to, struct mq_str s)
{
	struct mq_str kept = { s.p ? *to : NULL, s.n };

	if (s.n)
		memcpy(*to, s.p, s.n);
	*to += s.n;
	return kept;
}

static struct cold_request *copy_of(const struct frame *f)
{
	struct cold_request *r;
	size_t n = 0;
	char *to;

	for (uint32_t i = 0; i < f->nfields; i++)
		n += f->field[i].key.n + f->field[i].value.n;
	r = mem_alloc(sizeof *r + n);
	to = r->text;
	r->f = *f;
	r->f.remark = r->f.body = (struct mq_str){ 0 };
	for (uint32_t i = 0; i < f->nfields; i++) {
		r->f.field[i].key = keep(&to, f->field[i].key);
		r->f.field[i].value = keep(&to, f->field[i].value);
	}
	return r;
}

static void handle_again(struct req *q, struct cold_wait *w, bool stopped)
{
	q->again = (struct cold_request *)w;
	if (stopped)
		reply(q, RESP_SERVICE_NOT_AVAILABLE, "service not available now. The broker is stopping");
	else
		dispatch_again(q, &q->again->f);
}

void cold_begin(struct req *q)
{
	struct cold *c = q->b->cold;

	if (cold_may_wait(c) && (!q->again || q->again->rounds < ROUNDS_MAX))
		cold_guard(q->b->store, &c->guard);
}

bool cold_waits(struct req *q)
{
	struct cold *c = q->b->cold;
	struct cold_guard *g = &c->guard;
	struct cold_request *r;
	int n = g->n;

	cold_guard(q->b->store, NULL);
	g->n = 0;
	if (!n)
		return false;
	r = copy_of(q->again ? &q->again->f : q->f);
	r->rounds = q->again ? q->again->rounds + 1 : 1;
	r->w.ready = handle_again;
	cold_park(c, q, &r->w, g->range, n);
	return true;
}

/* ---- Start and stop ------------------------------------------------------------------------------------------------------- */

struct cold *cold_new(struct broker *b)
{
	struct cold *c = mem_alloc(sizeof *c);

	c->b = b;
	return c;
}

void cold_stop(struct cold *c)
{
	struct cold_wait *w, *tmp;

	c->stopped = true;
	DL_FOREACH_SAFE(c->list, w, tmp)
		answer(c, w, true);
}

void cold_free(struct cold *c)
{
	free(c);
}
