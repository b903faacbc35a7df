/* offset.c: see offset.h. */
#include "offset.h"
#include "link.h"
#include "qlock.h"
#include "pull.h"

/* ---- Window ---------------------------------------------------------------------------------------------------------- */

static void window_grow(struct window *w)
{
	uint32_t cap = w->cap ? w->cap * 2 : 64;
	int64_t *off = mem_alloc(cap * sizeof *off);
	uint8_t *state = mem_alloc(cap);

	for (uint32_t i = 0; i < w->n; i++) {
		off[i] = w->off[(w->head + i) & (w->cap - 1)];
		state[i] = w->state[(w->head + i) & (w->cap - 1)];
	}
	free(w->off);
	free(w->state);
	w->off = off;
	w->state = state;
	w->cap = cap;
	w->head = 0;
}

void window_push(struct window *w, int64_t off)
{
	uint32_t at;

	if (w->n == w->cap)
		window_grow(w);
	at = (w->head + w->n) & (w->cap - 1);
	w->off[at] = off;
	w->state[at] = WINDOW_OPEN;
	w->n++;
	w->open++;
}

bool window_settle(struct window *w, int64_t off, bool commit)
{
	uint32_t mask = w->cap - 1, lo = 0, hi = w->n, at;

	if (!w->n)
		return false;
	/* Nearly always it is the first. */
	if (w->off[w->head] != off) {
		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;
			if (w->off[(w->head + mid) & mask] < off)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo == w->n || w->off[(w->head + lo) & mask] != off)
			return false;
	}
	at = (w->head + lo) & mask;
	if (w->state[at] != WINDOW_OPEN)
		return false;
	w->state[at] = commit ? WINDOW_DONE : WINDOW_BACK;
	w->open--;
	while (w->n && w->state[w->head] == WINDOW_DONE) {
		w->head = (w->head + 1) & mask;
		w->n--;
	}
	return true;
}

void window_clear(struct window *w)
{
	w->head = w->n = w->open = 0;
}

void window_free(struct window *w)
{
	free(w->off);
	free(w->state);
	*w = (struct window){ 0 };
}

/* ---- Committing ------------------------------------------------------------------------------------------------------ */

int64_t offset_point(const struct pull *p)
{
	return p->window.n ? p->window.off[p->window.head] : p->handed;
}

bool offset_due(const struct pull *p)
{
	int64_t point = offset_point(p);

	return p->k && p->k->group && !p->k->broadcast && p->started && point >= 0 && (p->moved ? point != p->stored : point > p->stored);
}

static void on_committed(void *arg, int rc, struct frame *f)
{
	struct pull *p = arg;
	struct mqclient_consumer *k = p->k;
	struct mq_error e;
	char show[200];

	p->committing = false;
	if (rc == 0 && f->code == RESP_SUCCESS) {
		p->stored = p->commit_sent;
		p->moved = false;
		/* More was settled while this was under way, and there will be no later time for it. */
		if (p->dropped)
			offset_commit(p);
	} else if (k) {
		if (rc < 0) {
			rc = link_error(p->commit_link, rc, p->broker->name, &e);
		} else {
			rc = err_set(&e, MQ_EREFUSED, "%s: %s", response_name(f->code),
			             str_show(f->remark, show, sizeof show));
			e.response = f->code;
		}
		err_wrap(&e, "store offset %lld of group '%s' in topic '%s' queue %s:%d", (long long)p->commit_sent,
		         k->group, p->topic->name, p->broker->name, p->q.id);
		k->commit_rc = rc;
		k->commit_why = e;
		client_log(p->c, 1, "%s", e.text);
	}
	if (rc == 0 && k && k->orderly)
		qlock_settled(p);
	pull_unref(p);
}

void offset_commit(struct pull *p)
{
	struct frame_out o;
	struct link *l;

	if (p->committing || !offset_due(p))
		return;
	/* Offsets live at the master. */
	l = broker_master(p->broker);
	if (!l)
		l = broker_link(p->broker, 0);
	if (!l || link_call(l, &o, REQ_UPDATE_CONSUMER_OFFSET, p->c->timeout_ms, on_committed, p,
	                    &p->k->commit_why) < 0) {
		p->k->commit_rc = p->k->commit_why.code ? p->k->commit_why.code : MQ_ECLOSED;
		return;
	}
	p->commit_link = l;
	p->commit_sent = offset_point(p);
	p->commit_next = p->commit_sent + CONSUME_COMMIT_SPAN;
	p->committing = true;
	p->calls++;
	frame_cstr(&o, "consumerGroup", p->k->group);
	frame_str(&o, "topic", (struct mq_str){ p->topic->name, p->topic->name_n });
	frame_i64(&o, "queueId", p->q.id);
	frame_i64(&o, "commitOffset", p->commit_sent);
	frame_cstr(&o, "bname", p->broker->name);
	link_send(l, &o);
}

void offset_commit_all(struct mqclient_consumer *k)
{
	struct pull *p;

	TAILQ_FOREACH(p, &k->pulls, entry)
		offset_commit(p);
}
