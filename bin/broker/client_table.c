/* client_table.c: who is connected: members of groups, their subscriptions, and the notices when they change. */
#include "client_table.h"
#include "broker.h"
#include "filter_table.h"
#include "group_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <utlist.h>

#define LOG_MODULE "client"

enum {
	SCAN_MS = 10000,                /* how often, at least, members without heartbeat are looked for */
	GROUP_SUBS_MAX = 10000,         /* topics of one group: bounds what a client can make us hold */
};

static struct channel *channel_of(struct conn *c)
{
	return conn_public(c)->user;
}

/* ---- Groups ------------------------------------------------------------------------------------------------------------ */

static struct client_group **table_of(struct client_table *t, bool producer)
{
	return producer ? &t->producers : &t->consumers;
}

static struct client_group *find(struct client_group *all, struct mq_str name)
{
	struct client_group *g;

	HASH_FIND(hh, all, name.p, name.n, g);
	return g;
}

struct client_group *client_table_consumers(struct client_table *t, struct mq_str group)
{
	return find(t->consumers, group);
}

struct client_group *client_table_producers(struct client_table *t, struct mq_str group)
{
	return find(t->producers, group);
}

static struct client_group *need(struct client_table *t, struct mq_str name, bool producer)
{
	struct client_group **all = table_of(t, producer), *g = find(*all, name);

	if (g)
		return g;
	g = mem_alloc(sizeof *g + name.n + 1);
	memcpy(g->name, name.p, name.n);
	g->name_n = name.n;
	g->producer = producer;
	g->last_notice_ms = INT64_MIN / 2;
	HASH_ADD_KEYPTR(hh, *all, g->name, g->name_n, g);
	return g;
}

static void drop_sub(struct client_table *t, struct client_group *g, struct group_sub *s)
{
	if (s->sub->sql)
		filter_table_end(t->b->filters, (struct mq_str){ g->name, g->name_n }, str_of(s->sub->topic));
	HASH_DEL(g->subs, s);
	sub_put(s->sub);
	free(s);
}

static void drop_group(struct client_table *t, struct client_group *g)
{
	struct group_sub *s, *tmp;

	HASH_ITER(hh, g->subs, s, tmp)
		drop_sub(t, g, s);
	sub_put(g->inline_sub);
	heap_remove(&t->notices, &g->notice);
	if (g->producer)
		HASH_DEL(t->producers, g);
	else
		HASH_DEL(t->consumers, g);
	free(g);
}

static struct group_sub *find_sub(struct client_group *g, struct mq_str topic)
{
	struct group_sub *s;

	HASH_FIND(hh, g->subs, topic.p, topic.n, s);
	return s;
}

struct sub *client_group_sub(struct client_group *g, struct mq_str topic)
{
	struct group_sub *s = find_sub(g, topic);

	return s ? s->sub : NULL;
}

struct member *client_group_member(struct client_group *g, struct mq_str client_id)
{
	struct member *m, *found = NULL;

	DL_FOREACH(g->members, m)
		if (str_is(client_id, m->client_id))
			found = m; /* new ones stand at the end */
	return found;
}

/* ---- Notices ----------------------------------------------------------------------------------------------------------- */

static void arm(struct client_table *t);

static void notify(struct client_table *t, struct client_group *g)
{
	struct member *m;

	g->last_notice_ms = clock_mono_ms();
	DL_FOREACH(g->members, m) {
		struct frame_out o;

		conn_call(m->c, &o, REQ_NOTIFY_CONSUMER_IDS_CHANGED, FRAME_JSON, 0, NULL, NULL);
		frame_str(&o, "consumerGroup", (struct mq_str){ g->name, g->name_n });
		frame_end(&o);
		conn_kick(m->c);
		t->b->metrics.notices++;
	}
}

static void on_notice_timer(uv_timer_t *timer)
{
	struct client_table *t = timer->data;
	struct heap_node *n;

	clock_refresh();
	while ((n = heap_top(&t->notices)) && n->due <= clock_mono_ms()) {
		struct client_group *g = (struct client_group *)((char *)n - offsetof(struct client_group, notice));

		heap_remove(&t->notices, n);
		notify(t, g);
	}
	arm(t);
}

static void arm(struct client_table *t)
{
	struct heap_node *n = heap_top(&t->notices);
	int64_t ms = n ? n->due - clock_mono_ms() : 0;

	if (n)
		uv_timer_start(&t->notice_timer, on_notice_timer, ms > 0 ? ms : 0, 0);
	else
		uv_timer_stop(&t->notice_timer);
}

/* The members of g, or its topics, are not what they were. */
static void changed(struct client_table *t, struct client_group *g)
{
	struct group *conf = group_table_look(t->b->groups, (struct mq_str){ g->name, g->name_n });
	int64_t now = clock_mono_ms(), due = g->last_notice_ms + NOTICE_GAP_MS;

	if (g->producer || !t->b->conf->notifyConsumerIdsChangedEnable || (conf && !conf->conf.notify_ids_changed))
		return;
	if (g->notice.at) {
		t->b->metrics.notices_merged++;
		return;
	}
	heap_push(&t->notices, &g->notice, due > now ? due : now);
	arm(t);
}

/* ---- Members ----------------------------------------------------------------------------------------------------------- */

static struct member *member_of(struct client_group *g, struct conn *c)
{
	struct channel *ch = channel_of(c);
	struct member *m;

	DL_FOREACH2(ch->members, m, conn_next)
		if (m->group == g)
			return m;
	return NULL;
}

struct member *client_table_producer(struct client_table *t, struct mq_str client_id)
{
	struct member *m;

	HASH_FIND(by_id, t->producer_ids, client_id.p, client_id.n, m);
	return m;
}

static void unhash(struct client_table *t, struct member *m)
{
	if (m->hashed)
		HASH_DELETE(by_id, t->producer_ids, m);
	m->hashed = false;
}

/* m is who is found for its client id; a member on an older connection is found again with its next heartbeat after m has left. */
static void hash(struct client_table *t, struct member *m)
{
	struct member *old = client_table_producer(t, str_of(m->client_id));

	if (old)
		unhash(t, old);
	HASH_ADD_KEYPTR(by_id, t->producer_ids, m->client_id, strlen(m->client_id), m);
	m->hashed = true;
}

/* Its group may be gone afterwards. */
static void leave(struct client_table *t, struct member *m, const char *why)
{
	struct client_group *g = m->group;
	struct channel *ch = channel_of(m->c);

	log_debug("%s left group=%s client=%s conn=%s why=%s", g->producer ? "producer" : "consumer", g->name, m->client_id,
		  conn_name(m->c), why);
	DL_DELETE(g->members, m);
	DL_DELETE2(ch->members, m, conn_prev, conn_next);
	g->nmembers--;
	if (m->hashed) {
		struct member *other;

		unhash(t, m);
		DL_FOREACH2(ch->members, other, conn_next)
			if (other->group->producer && !strcmp(other->client_id, m->client_id)) {
				hash(t, other);
				break;
			}
	}
	free(m->client_id);
	free(m);
	if (g->nmembers == 0)
		drop_group(t, g);
	else
		changed(t, g);
}

/* A heartbeat of c for g.  True if it is a new member. */
static bool seen(struct client_table *t, struct client_group *g, struct conn *c, struct mq_str client_id, uint8_t language,
                 int32_t version)
{
	struct member *m = member_of(g, c);
	bool is_new = !m;

	if (m && !str_is(client_id, m->client_id)) {
		unhash(t, m);
		free(m->client_id);
		m->client_id = str_dup(client_id);
	} else if (!m) {
		struct channel *ch = channel_of(c);

		m = mem_alloc(sizeof *m);
		m->group = g;
		m->c = c;
		m->client_id = str_dup(client_id);
		DL_APPEND(g->members, m);
		DL_APPEND2(ch->members, m, conn_prev, conn_next);
		g->nmembers++;
		log_debug("%s joined group=%s client=%s conn=%s", g->producer ? "producer" : "consumer", g->name, m->client_id,
			  conn_name(c));
	}
	if (g->producer && (is_new || !client_table_producer(t, client_id)))
		hash(t, m);
	m->language = language;
	m->version = version;
	m->seen_ms = clock_mono_ms();
	m->seen_wall_ms = clock_now_ms();
	return is_new;
}

/* The subscriptions of a consumer as its heartbeat tells them.  True if a topic came or went.  An expression that is newer replaces
 * the old one, but is no reason to tell the others. */
static int subscribe(struct client_table *t, struct client_group *g, const struct body_consumer *d, bool *topics_changed,
                     struct mq_error *e)
{
	struct group_sub *s, *tmp;
	int rc;

	for (size_t i = 0; i < d->nsubs; i++) {
		struct sub *made;

		s = find_sub(g, d->sub[i].topic);
		if (s && s->sub->version >= d->sub[i].version)
			continue;
		if (!s && HASH_COUNT(g->subs) >= GROUP_SUBS_MAX)
			return err_set(e, MQ_ETOOBIG, "group '%s' subscribes to more than %d topics", g->name, GROUP_SUBS_MAX);
		if ((rc = sub_from_body(&made, &d->sub[i], e)) < 0)
			return err_wrap(e, "subscription of group '%s' to '" MQ_STR_FMT "'", g->name, MQ_STR_ARG(d->sub[i].topic));
		if (s)
			HASH_DEL(g->subs, s);
		else {
			s = mem_alloc(sizeof *s);
			*topics_changed = true;
		}
		if (made->sql || (s->sub && s->sub->sql))
			filter_table_use(t->b->filters, (struct mq_str){ g->name, g->name_n }, made);
		sub_put(s->sub);
		s->sub = made;
		HASH_ADD_KEYPTR(hh, g->subs, made->topic, strlen(made->topic), s);
	}
	HASH_ITER(hh, g->subs, s, tmp) {
		bool there = false;

		for (size_t i = 0; i < d->nsubs && !there; i++)
			there = str_is(d->sub[i].topic, s->sub->topic);
		if (!there) {
			drop_sub(t, g, s);
			*topics_changed = true;
		}
	}
	return 0;
}

int client_table_heartbeat(struct client_table *t, struct conn *c, uint8_t language, int32_t version,
                           const struct body_heartbeat *h, bool *any, struct mq_error *e)
{
	*any = false;
	for (size_t i = 0; i < h->nconsumers; i++) {
		const struct body_consumer *d = &h->consumer[i];
		struct client_group *g = need(t, d->group, false);
		bool topics = false, joined;
		int rc;

		g->type = d->type;
		g->model = d->model;
		g->from = d->from;
		joined = seen(t, g, c, h->client_id, language, version);
		rc = h->without_sub ? 0 : subscribe(t, g, d, &topics, e);
		if (joined || topics) {
			*any = true;
			changed(t, g);
		}
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < h->nproducers; i++)
		if (seen(t, need(t, h->producer[i], true), c, h->client_id, language, version))
			*any = true;
	return 0;
}

void client_table_unregister(struct client_table *t, struct conn *c, struct mq_str producer, struct mq_str consumer)
{
	struct client_group *p = find(t->producers, producer), *k = find(t->consumers, consumer);
	struct member *m;

	if (p && (m = member_of(p, c)))
		leave(t, m, "unregistered");
	if (k && (m = member_of(k, c)))
		leave(t, m, "unregistered");
}

void client_table_opened(struct client_table *t, struct conn *c)
{
	conn_public(c)->user = mem_alloc(sizeof(struct channel));
}

void client_table_closed(struct client_table *t, struct conn *c)
{
	struct channel *ch = channel_of(c);

	while (ch->members)
		leave(t, ch->members, "closed");
	conn_public(c)->user = NULL;
	free(ch);
}

/* ---- Members that say nothing ------------------------------------------------------------------------------------------- */

/* Connections left without a member are closed afterwards: that may touch any group. */
static void scan(struct client_table *t, struct client_group *all, struct buf *left)
{
	int64_t oldest = clock_mono_ms() - t->b->conf->channelExpiredTimeout;
	struct client_group *g, *gtmp;
	struct member *m, *mtmp;

	HASH_ITER(hh, all, g, gtmp) {
		DL_FOREACH_SAFE(g->members, m, mtmp) {
			struct conn *c = m->c;

			if (m->seen_ms > oldest)
				continue;
			log_info("client expired group=%s client=%s conn=%s", g->name, m->client_id, conn_name(c));
			t->b->metrics.clients_expired++;
			leave(t, m, "no heartbeat");
			if (!channel_of(c)->members) {
				conn_ref(c);
				buf_put(left, &c, sizeof c);
			}
			if (!mtmp)
				break; /* the group may be gone with its last member */
		}
	}
}

static void plan_scan(struct client_table *t);

static void on_scan(uv_timer_t *timer)
{
	struct client_table *t = timer->data;

	struct buf left = { 0 };

	clock_refresh();
	scan(t, t->consumers, &left);
	scan(t, t->producers, &left);
	for (size_t i = 0; i < left.n / sizeof(struct conn *); i++) {
		struct conn *c = ((struct conn **)(void *)left.p)[i];

		t->b->metrics.conns_expired_closed++;
		conn_close_after_write(c); /* as the peer does: the client has to come anew */
		conn_unref(c);
	}
	buf_free(&left);
	plan_scan(t);
}

/* Often enough for a short channelExpiredTimeout too. */
static void plan_scan(struct client_table *t)
{
	int32_t ms = t->b->conf->channelExpiredTimeout / 4;

	uv_timer_start(&t->scan_timer, on_scan, ms < SCAN_MS ? ms : SCAN_MS, 0);
}

/* ---- Life -------------------------------------------------------------------------------------------------------------- */

struct client_table *client_table_new(struct broker *b)
{
	struct client_table *t = mem_alloc(sizeof *t);

	t->b = b;
	uv_timer_init(b->loop, &t->notice_timer);
	uv_timer_init(b->loop, &t->scan_timer);
	t->notice_timer.data = t->scan_timer.data = t;
	plan_scan(t);
	return t;
}

void client_table_stop(struct client_table *t)
{
	uv_timer_stop(&t->notice_timer);
	uv_timer_stop(&t->scan_timer);
}

static void on_timer_closed(uv_handle_t *h)
{
	struct client_table *t = h->data;

	if (++t->closed == 2) {
		heap_free(&t->notices);
		free(t);
	}
}

void client_table_free(struct client_table *t)
{
	struct client_group *g, *tmp;

	if (!t)
		return;
	HASH_ITER(hh, t->consumers, g, tmp)
		drop_group(t, g);
	HASH_ITER(hh, t->producers, g, tmp)
		drop_group(t, g);
	uv_close((uv_handle_t *)&t->notice_timer, on_timer_closed);
	uv_close((uv_handle_t *)&t->scan_timer, on_timer_closed);
}
