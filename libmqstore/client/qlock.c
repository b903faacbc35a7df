/* qlock.c: see qlock.h.
 *
 * A round asks each broker, in one request, for all of its queues that are read or being given up: it grants new locks and renews
 * old ones.  Rounds come every 20 s, and every half second while a lock is missing. */
#include "qlock.h"
#include "balance.h"
#include "link.h"
#include "offset.h"
#include "pull.h"
#include "pull_start.h"
#include "../codec/body_offset.h"

struct lock_round {
	struct mqclient *c;
	struct mqclient_consumer *k;    /* NULL: it is gone */
	struct broker *broker;
	int64_t asked_ms;
	LIST_ENTRY(lock_round) entry;
};

bool qlock_valid(const struct pull *p)
{
	return p->locked && client_now() - p->locked_ms < QLOCK_VALID_MS;
}

/* Is the queue still being given up by us?  Then it is not taken up anew before that is over. */
static bool draining(const struct pull *p)
{
	const struct pull *g;

	TAILQ_FOREACH(g, &p->k->gone, entry)
		if (g->draining && g->broker == p->broker && g->topic == p->topic && g->q.id == p->q.id)
			return true;
	return false;
}

static struct body_queue queue_of(const struct pull *p)
{
	return (struct body_queue){ { p->topic->name, p->topic->name_n }, str_of(p->broker->name), p->q.id };
}

/* ---- What the broker says -------------------------------------------------------------------------------------------- */

/* Another has it now, or may have had it meanwhile: begin anew, with what is stored. */
static void lost(struct pull *p)
{
	struct sub *s = p->sub;
	struct mqclient_consumer *k = p->k;
	struct broker *b = p->broker;
	int32_t id = p->q.id;

	client_log(k->c, 1, "lock of topic '%s' queue %s:%d was lost", p->topic->name, b->name, id);
	p->locked = false;
	p->lock_asked_ms = 0;
	pull_drop(p);
	balance_tell(s);
	pull_add(s, b, id);
	balance_tell(s);
}

static void granted(struct pull *p, int64_t asked_ms)
{
	bool lapsed = p->locked && !qlock_valid(p);

	if (lapsed) {
		lost(p);
		return;
	}
	p->locked = true;
	p->locked_ms = asked_ms;
	if (p->dropped)
		return;
	if (!p->started)
		pull_start(p);
	else
		pull_resume(p);
}

static bool among(const struct body_locked *l, const struct pull *p)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->queue[i].id == p->q.id && str_is(l->queue[i].topic, p->topic->name) &&
		    str_is(l->queue[i].broker, p->broker->name))
			return true;
	return false;
}

static void take_locks(struct mqclient_consumer *k, struct broker *b, int64_t asked_ms, const struct body_locked *l)
{
	struct pull *p, *next;

	for (p = TAILQ_FIRST(&k->pulls); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (p->broker != b || p->lock_asked_ms != asked_ms)
			continue;
		if (among(l, p))
			granted(p, asked_ms);
		else if (p->locked)
			lost(p);
		if (k->dead)
			return;
	}
	TAILQ_FOREACH(p, &k->gone, entry)
		if (p->broker == b && p->draining && among(l, p))
			p->locked_ms = asked_ms;
}

static void round_end(struct mqclient_consumer *k)
{
	struct pull *p;
	bool missing = false;

	if (--k->locking > 0 || k->phase == CONSUME_LEAVING)
		return;
	TAILQ_FOREACH(p, &k->pulls, entry)
		missing |= !qlock_valid(p);
	client_timer_start(k->c, &k->lock_timer, missing ? QLOCK_AGAIN_MS : QLOCK_RENEW_MS);
}

static void on_locked(void *arg, int rc, struct frame *f)
{
	struct lock_round *r = arg;
	struct mqclient_consumer *k = r->k;
	struct body_locked l;
	struct mq_error e;

	if (!k) {
		free(r);
		return;
	}
	LIST_REMOVE(r, entry);
	if (rc == 0 && f->code == RESP_SUCCESS && k->phase == CONSUME_RUNNING) {
		if (body_locked_decode(f->body, &l, &e) < 0) {
			client_log(k->c, 1, "locks of group '%s': %s", k->group, e.text);
		} else {
			take_locks(k, r->broker, r->asked_ms, &l);
			body_locked_free(&l);
		}
	} else if (rc == 0) {
		client_log(k->c, 1, "locks of group '%s': %s", k->group, response_name(f->code));
	}
	free(r);
	round_end(k);
}

/* ---- Asking ---------------------------------------------------------------------------------------------------------- */

static void ask(struct mqclient_consumer *k, struct broker *b)
{
	struct body_lock body = { .client_id = str_of(k->c->id), .group = str_of(k->group) };
	struct lock_round *r = mem_alloc(sizeof *r);
	struct link *l = broker_master(b);
	struct frame_out o;
	struct pull *p;
	size_t n = 0;

	*r = (struct lock_round){ .c = k->c, .k = k, .broker = b, .asked_ms = client_now() };
	TAILQ_FOREACH(p, &k->pulls, entry)
		n += p->broker == b;
	TAILQ_FOREACH(p, &k->gone, entry)
		n += p->broker == b;
	body.queue = body_alloc(&body.keep, n * sizeof *body.queue);
	TAILQ_FOREACH(p, &k->pulls, entry)
		if (p->broker == b && !draining(p)) {
			p->lock_asked_ms = r->asked_ms;
			body.queue[body.n++] = queue_of(p);
		}
	TAILQ_FOREACH(p, &k->gone, entry)
		if (p->broker == b && p->draining)
			body.queue[body.n++] = queue_of(p);
	if (!body.n || !l || link_call(l, &o, REQ_LOCK_BATCH_MQ, k->c->timeout_ms, on_locked, r, NULL) < 0) {
		free(r);
	} else {
		LIST_INSERT_HEAD(&k->lock_rounds, r, entry);
		k->locking++;
		frame_body(&o);
		body_lock_encode(&body, o.buf);
		link_send(l, &o);
	}
	body_free(&body.keep);
}

static bool asked_before(const struct mqclient_consumer *k, const struct pull *p, const struct pull_list *list)
{
	const struct pull *q;

	TAILQ_FOREACH(q, &k->pulls, entry) {
		if (q == p)
			return false;
		if (q->broker == p->broker)
			return true;
	}
	if (list == &k->pulls)
		return false;
	TAILQ_FOREACH(q, &k->gone, entry) {
		if (q == p)
			return false;
		if (q->draining && q->broker == p->broker)
			return true;
	}
	return false;
}

static void on_timer(struct client_timer *t)
{
	struct mqclient_consumer *k = client_container(t, struct mqclient_consumer, lock_timer);
	struct pull *p, *next;

	/* A commit that failed is tried again. */
	for (p = TAILQ_FIRST(&k->gone); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		qlock_settled(p);
	}
	if (k->locking) {
		client_timer_start(k->c, t, QLOCK_AGAIN_MS);
		return;
	}
	k->locking++; /* a round that nobody answers ends, too */
	TAILQ_FOREACH(p, &k->pulls, entry)
		if (!asked_before(k, p, &k->pulls))
			ask(k, p->broker);
	TAILQ_FOREACH(p, &k->gone, entry)
		if (p->draining && !asked_before(k, p, &k->gone))
			ask(k, p->broker);
	round_end(k);
}

void qlock_ask(struct pull *p)
{
	/* All queues that are taken up in this turn in one request. */
	client_timer_start(p->c, &p->k->lock_timer, 0);
}

/* ---- Giving back ----------------------------------------------------------------------------------------------------- */

/* It is ours, or may be: the broker has been asked, and the answer may be on its way.  What is not ours it leaves as it is. */
static bool may_be_ours(const struct pull *p)
{
	return p->locked || p->lock_asked_ms;
}

static void unlock(struct mqclient_consumer *k, struct pull *p)
{
	struct body_lock body = { .client_id = str_of(k->c->id), .group = str_of(k->group) };
	struct body_queue q = queue_of(p);
	struct link *l = broker_master(p->broker);
	struct frame_out o;

	p->locked = false;
	p->lock_asked_ms = 0;
	if (!l || link_call(l, &o, REQ_UNLOCK_BATCH_MQ, 0, NULL, NULL, NULL) < 0)
		return;
	body.queue = &q;
	body.n = 1;
	frame_body(&o);
	body_lock_encode(&body, o.buf);
	link_send(l, &o);
}

void qlock_settled(struct pull *p)
{
	if (!p->draining || p->window.open || p->committing)
		return;
	if (offset_due(p)) {
		offset_commit(p);
		if (p->committing)
			return;
	}
	p->draining = false;
	if (may_be_ours(p))
		unlock(p->k, p);
	if (p->k->phase == CONSUME_RUNNING)
		client_timer_start(p->c, &p->k->lock_timer, 0);
	pull_unref(p);
}

void qlock_stop(struct mqclient_consumer *k)
{
	struct lock_round *r;

	client_timer_stop(k->c, &k->lock_timer);
	while ((r = LIST_FIRST(&k->lock_rounds))) {
		LIST_REMOVE(r, entry);
		r->k = NULL;
	}
	k->locking = 0;
}

void qlock_unlock_all(struct mqclient_consumer *k)
{
	struct pull *p;

	TAILQ_FOREACH(p, &k->gone, entry)
		if (may_be_ours(p))
			unlock(k, p);
}

void qlock_init(struct mqclient_consumer *k)
{
	k->lock_timer.cb = on_timer;
	LIST_INIT(&k->lock_rounds);
}
