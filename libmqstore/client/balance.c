/* balance.c: see balance.h.
 *
 * A round of a member: for each topic ask one of its brokers who is in the group (38), sort the ids, take the share that every
 * member works out in the same way, give up what is not in it and take up what is new.  Rounds come every 20 s, when a broker
 * says that members came or went, when a route changes, and a second after a round in which something was missing. */
#include "balance.h"
#include "heartbeat.h"
#include "link.h"
#include "offset.h"
#include "pop.h"
#include "pull.h"
#include "../codec/body_heartbeat.h"

enum { BALANCE_PAUSE_MS = 100 /* between rounds: many members that come together cause few of them */ };

/* ---- Shares ---------------------------------------------------------------------------------------------------------- */

void balance_share(size_t queues, size_t members, size_t at, size_t *first, size_t *n)
{
	size_t each = queues / members, more = queues % members;

	/* The first `more` members get one more; with fewer queues than members the rest get none. */
	*n = each + (at < more ? 1 : 0);
	*first = at < more ? at * (each + 1) : at * each + more;
	if (*first > queues)
		*first = queues;
}

static bool in_list(const struct route_queue *v, size_t n, const struct pull *p)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].broker == p->broker && v[i].id == p->q.id)
			return true;
	return false;
}

void balance_tell(struct sub *s)
{
	struct mqclient_consumer *k = s->k;
	struct mqclient_queue *v;
	struct pull *p;
	size_t n = 0;

	if (!k->ops.assigned)
		return;
	TAILQ_FOREACH(p, &k->pulls, entry)
		n += p->sub == s;
	v = mem_alloc((n + 1) * sizeof *v);
	n = 0;
	TAILQ_FOREACH(p, &k->pulls, entry)
		if (p->sub == s)
			v[n++] = p->q;
	k->ops.assigned(k->arg, (struct mq_str){ s->topic->name, s->topic->name_n }, v, n);
	free(v);
}

/* Read exactly these queues of a topic. */
static void assign(struct sub *s, const struct route_queue *v, size_t n)
{
	struct mqclient_consumer *k = s->k;
	struct pull *p, *next;
	bool changed = !s->balanced;

	for (p = TAILQ_FIRST(&k->pulls); p; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (p->sub != s || in_list(v, n, p))
			continue;
		client_log(k->c, 2, "give up queue %s:%d of topic '%s'", p->broker->name, p->q.id, s->topic->name);
		pull_drop(p);
		changed = true;
	}
	for (size_t i = 0; i < n; i++) {
		bool have = false;
		TAILQ_FOREACH(p, &k->pulls, entry)
			have |= p->sub == s && p->broker == v[i].broker && p->q.id == v[i].id;
		if (have)
			continue;
		client_log(k->c, 2, "take up queue %s:%d of topic '%s'", v[i].broker->name, v[i].id, s->topic->name);
		pull_add(s, v[i].broker, v[i].id);
		changed = true;
	}
	s->balanced = true;
	if (changed && !s->k->pop_ms) /* who pops has no queues of its own */
		balance_tell(s);
}

/* ---- All queues, or the one that was given --------------------------------------------------------------------------- */

static void assign_all(struct sub *s)
{
	struct mqclient_consumer *k = s->k;
	struct topic *t = s->topic;
	struct mq_error e;
	size_t i;

	if (!t->known || t->made_up)
		return;
	if (!k->only_broker) {
		assign(s, t->read, t->nread);
		return;
	}
	for (i = 0; i < t->nread; i++)
		if (strcmp(t->read[i].broker->name, k->only_broker) == 0 && t->read[i].id == k->only_id)
			break;
	if (i < t->nread) {
		assign(s, &t->read[i], 1);
	} else if (!s->balanced) {
		err_set(&e, MQ_ENOTFOUND, "topic '%s' has no queue %s:%d to read", t->name, k->only_broker, k->only_id);
		consume_trouble(k, &e, true);
	}
}

/* ---- Members --------------------------------------------------------------------------------------------------------- */

static void round_done(struct mqclient_consumer *k)
{
	bool again = k->balance_again;

	k->balance_again = false;
	k->balanced_ms = client_now();
	client_timer_start(k->c, &k->balance_timer,
	                   again ? BALANCE_PAUSE_MS : k->unbalanced ? CLIENT_BALANCE_AGAIN_MS : CLIENT_BALANCE_MS);
	consume_check_end(k);
}

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct mq_str *)a, *(const struct mq_str *)b);
}

/* The members; false if we are not among them. */
static bool take_share(struct sub *s, struct mq_str body)
{
	struct mqclient_consumer *k = s->k;
	struct body_consumer_list l;
	size_t n = 0, at = SIZE_MAX, first, share;
	struct mq_error e;

	if (body_consumer_list_decode(body, &l, &e) < 0) {
		client_log(k->c, 1, "members of group '%s': %s", k->group, e.text);
		return false;
	}
	qsort(l.id, l.n, sizeof *l.id, by_text);
	/* A connection that is gone but not yet forgotten leaves its id there twice. */
	for (size_t i = 0; i < l.n; i++)
		if (n == 0 || !str_eq(l.id[i], l.id[n - 1]))
			l.id[n++] = l.id[i];
	for (size_t i = 0; i < n; i++)
		if (str_is(l.id[i], k->c->id))
			at = i;
	if (at != SIZE_MAX) {
		balance_share(s->topic->nread, n, at, &first, &share);
		assign(s, s->topic->read + first, share);
	}
	body_consumer_list_free(&l);
	return at != SIZE_MAX;
}

struct round {
	struct mqclient *c;
	struct mqclient_consumer *k;    /* NULL: it is gone */
	struct sub *s;
	struct link *link;
	LIST_ENTRY(round) entry;
};

static void on_members(void *arg, int rc, struct frame *f)
{
	struct round *r = arg;
	struct mqclient_consumer *k = r->k;

	if (!k) {
		free(r);
		return;
	}
	LIST_REMOVE(r, entry);
	if (rc < 0) {
		k->unbalanced = true;
		route_refresh(r->s->topic);
	} else if (f->code != RESP_SUCCESS || !take_share(r->s, f->body)) {
		/* It does not know us; what we have we keep until it says otherwise. */
		k->unbalanced = true;
		if (f->code == RESP_GO_AWAY)
			link_reset(r->link);
		else
			heartbeat_now(r->link);
	}
	free(r);
	if (--k->balancing == 0)
		round_done(k);
}

static void ask_members(struct sub *s)
{
	struct mqclient_consumer *k = s->k;
	struct topic *t = s->topic;
	struct broker *b = t->read[client_random((uint32_t)t->nread)].broker;
	struct link *l = broker_link(b, 0);
	struct round *r;
	struct frame_out o;

	r = mem_alloc(sizeof *r);
	*r = (struct round){ .c = k->c, .k = k, .s = s, .link = l };
	if (!l || link_call(l, &o, REQ_GET_CONSUMER_LIST_BY_GROUP, k->c->timeout_ms, on_members, r, NULL) < 0) {
		free(r);
		k->unbalanced = true;
		return;
	}
	LIST_INSERT_HEAD(&k->rounds, r, entry);
	k->balancing++;
	frame_cstr(&o, "consumerGroup", k->group);
	frame_cstr(&o, "bname", b->name);
	link_send(l, &o);
}

static void round_start(struct mqclient_consumer *k)
{
	k->unbalanced = false;
	client_timer_stop(k->c, &k->balance_timer);
	for (size_t i = 0; i < k->nsubs; i++) {
		struct sub *s = &k->subs[i];
		struct topic *t = s->topic;
		if (t->known && !t->made_up && t->nread) {
			ask_members(s);
			continue;
		}
		if (t->known && !t->made_up)
			assign(s, NULL, 0);
		/* Not there yet.  The retry topic comes with our first heartbeat; look for it at once, then now and then. */
		s->balanced = true;
		if (client_now() - k->started_ms < 5000)
			k->unbalanced = true;
		route_refresh(t);
	}
	if (k->balancing == 0)
		round_done(k);
}

/* ---- What sets it off ------------------------------------------------------------------------------------------------ */

void balance_kick(struct mqclient_consumer *k)
{
	if (k->phase != CONSUME_RUNNING || k->dead)
		return;
	if (!k->member || k->broadcast || k->pop_ms) {
		for (size_t i = 0; i < k->nsubs && !k->dead; i++) {
			if (k->pop_ms)
				pop_assign(&k->subs[i], assign);
			else
				assign_all(&k->subs[i]);
		}
		consume_check_end(k);
		return;
	}
	if (k->balancing)
		k->balance_again = true;
	else if (client_now() - k->balanced_ms < BALANCE_PAUSE_MS)
		client_timer_start(k->c, &k->balance_timer, BALANCE_PAUSE_MS);
	else
		round_start(k);
}

void balance_group_changed(struct mqclient *c, struct mq_str group)
{
	struct mqclient_consumer *k;

	LIST_FOREACH(k, &c->consumers, entry) {
		if (!k->member || !str_is(group, k->group))
			continue;
		/* A member that joins asks for our offsets in a moment: what it does not find it does again. */
		offset_commit_all(k);
		balance_kick(k);
	}
}

void balance_route_changed(struct topic *t)
{
	struct mqclient_consumer *k;

	if (!t->subscribed)
		return;
	LIST_FOREACH(k, &t->c->consumers, entry)
		for (size_t i = 0; i < k->nsubs; i++)
			if (k->subs[i].topic == t) {
				balance_kick(k);
				break;
			}
}

void balance_stop(struct mqclient_consumer *k)
{
	struct round *r;

	client_timer_stop(k->c, &k->balance_timer);
	while ((r = LIST_FIRST(&k->rounds))) {
		LIST_REMOVE(r, entry);
		r->k = NULL;
	}
	k->balancing = 0;
}
