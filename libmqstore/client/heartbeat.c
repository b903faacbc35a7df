/* heartbeat.c: see heartbeat.h. */
#include "heartbeat.h"
#include "consume.h"
#include "link.h"
#include "route.h"
#include "../codec/body_heartbeat.h"

enum {
	HEARTBEAT_BROKER_MS = 120000,   /* a broker that no route named for so long is no longer told */
	HEARTBEAT_AGAIN_MS = 1000,      /* while a consumer cannot start without */
};

/* ---- What is said ---------------------------------------------------------------------------------------------------- */

static void put_sub(const struct sub *s, struct body_sub *out, struct body_keep *keep)
{
	*out = (struct body_sub){
		.topic = { s->topic->name, s->topic->name_n },
		.expression = str_of(s->expr),
		.type = s->sql ? MQ_STR("SQL92") : MQ_STR("TAG"),
		.version = s->version,
	};
	if (s->sql || s->tags.all)
		return;
	out->ntags = out->ncodes = s->tags.n;
	out->tag = body_alloc(keep, s->tags.n * sizeof *out->tag);
	out->code = body_alloc(keep, s->tags.n * sizeof *out->code);
	for (size_t i = 0; i < s->tags.n; i++) {
		out->tag[i] = s->tags.tag[i];
		out->code[i] = (int32_t)s->tags.code[i];
	}
}

static enum body_from from_of(const struct mqclient_consumer *k)
{
	if (k->start == MQCLIENT_BEGIN)
		return FROM_FIRST_OFFSET;
	return k->start == MQCLIENT_AT_TIME ? FROM_TIMESTAMP : FROM_LAST_OFFSET;
}

static void build(struct mqclient *c)
{
	struct body_heartbeat h = { .client_id = str_of(c->id) };
	struct body_keep keep = { 0 };
	struct mqclient_consumer *k;
	struct producer *p, *tmp;
	size_t i;

	h.producer = body_alloc(&keep, (HASH_COUNT(c->producers) + 1) * sizeof *h.producer);
	HASH_ITER(hh, c->producers, p, tmp) {
		h.producer[h.nproducers++] = (struct mq_str){ p->name, p->name_n };
		p->told = true;
	}
	LIST_FOREACH(k, &c->consumers, entry)
		h.nconsumers += k->member && k->phase != CONSUME_LEAVING;
	h.consumer = body_alloc(&keep, (h.nconsumers + 1) * sizeof *h.consumer);
	i = 0;
	LIST_FOREACH(k, &c->consumers, entry) {
		struct body_consumer *out = &h.consumer[i];
		if (!k->member || k->phase == CONSUME_LEAVING)
			continue;
		i++;
		*out = (struct body_consumer){ .group = str_of(k->group), .type = CONSUME_PASSIVELY,
		                              .model = k->broadcast ? MODEL_BROADCASTING : MODEL_CLUSTERING,
			                       .from = from_of(k), .nsubs = k->nsubs };
		out->sub = body_alloc(&keep, k->nsubs * sizeof *out->sub);
		for (size_t s = 0; s < k->nsubs; s++)
			put_sub(&k->subs[s], &out->sub[s], &keep);
	}
	c->beat_body.n = 0;
	body_heartbeat_encode(&h, &c->beat_body);
	body_free(&keep);
	c->beat_stale = false;
}

static bool have_members(const struct mqclient *c)
{
	const struct mqclient_consumer *k;

	LIST_FOREACH(k, &c->consumers, entry)
		if (k->member)
			return true;
	return false;
}

/* ---- Saying it ------------------------------------------------------------------------------------------------------- */

static void beat(struct link *l);

/* Said once for each broker, until it lets us in. */
static void denied(struct link *l, const struct frame *f)
{
	struct mqclient_consumer *k;
	struct mq_error e;
	char show[300];

	err_set(&e, MQ_EREFUSED, "join the group at %s: %s: %s", l->addr, response_name(f->code), str_show(f->remark, show, sizeof show));
	e.response = f->code;
	if (l->denied)
		return;
	LIST_FOREACH(k, &l->c->consumers, entry)
		if (k->member && k->phase != CONSUME_LEAVING)
			l->denied |= consume_denied(k, &e);
}

static void on_beat(void *arg, int rc, struct frame *f)
{
	struct link *l = arg;
	struct mqclient *c = l->c;
	char show[200];

	l->beating = false;
	c->beats_open--;
	if (rc == 0 && f->code == RESP_SUCCESS) {
		l->known = true;
		l->denied = false;
		consume_link_known(l);
	} else if (rc == 0) {
		client_log(c, 1, "heartbeat to %s: %s: %s", l->addr, response_name(f->code),
		           str_show(f->remark, show, sizeof show));
		if (f->code == RESP_GO_AWAY)
			link_reset(l);
		denied(l, f);
	} else {
		client_log(c, 2, "heartbeat to %s: %s", l->addr, mq_strerror(rc));
	}
	if (l->beat_again && !c->closing)
		beat(l);
	if (c->beats_open == 0)
		consume_beat_done(c);
}

static void beat(struct link *l)
{
	struct mqclient *c = l->c;
	struct frame_out o;

	/* What is on its way may say less than we want to say now. */
	l->beat_again = l->beating;
	/* Dialling greets by itself. */
	if (l->beating || link_connect(l, NULL) < 0 || l->beating)
		return;
	if (c->beat_stale)
		build(c);
	if (link_call(l, &o, REQ_HEART_BEAT, c->timeout_ms, on_beat, l, NULL) < 0)
		return;
	l->beating = true;
	c->beats_open++;
	frame_body(&o);
	buf_put(o.buf, c->beat_body.p, c->beat_body.n);
	link_send(l, &o);
}

void heartbeat_greet(struct link *l)
{
	if (have_members(l->c))
		beat(l);
}

void heartbeat_now(struct link *l)
{
	if (!l->c->closing)
		beat(l);
}

/* To masters, and to slaves too if there are consumers, who may be sent to them. */
static void beat_all(struct mqclient *c)
{
	bool members = have_members(c);
	int64_t now = client_now();
	struct broker *b, *tmp;

	HASH_ITER(hh, c->brokers, b, tmp) {
		if (now - b->seen_ms > HEARTBEAT_BROKER_MS)
			continue;
		for (size_t i = 0; i < b->naddrs; i++)
			if (b->addr[i].id == 0 || members)
				beat(b->addr[i].link);
	}
	if (c->beats_open == 0)
		consume_beat_done(c);
}

static void on_timer(struct client_timer *t)
{
	struct mqclient *c = client_container(t, struct mqclient, beat_timer);

	struct mqclient_consumer *k;
	bool waiting = false;

	if (!c->producers && LIST_EMPTY(&c->consumers))
		return;
	beat_all(c);
	/* No broker could be told, and somebody waits for just that. */
	LIST_FOREACH(k, &c->consumers, entry)
		waiting |= k->phase == CONSUME_BEAT;
	client_timer_start(c, &c->beat_timer, waiting && !c->beats_open ? HEARTBEAT_AGAIN_MS : CLIENT_HEARTBEAT_MS);
}

void heartbeat_changed(struct mqclient *c)
{
	int64_t in = have_members(c) ? 1 : 1000;

	c->beat_stale = true;
	if (c->closing || (!c->producers && LIST_EMPTY(&c->consumers)))
		return;
	if (client_timer_on(&c->beat_timer) && c->beat_timer.node.due <= client_now() + in)
		return;
	client_timer_start(c, &c->beat_timer, in);
}

struct producer *heartbeat_producer(struct mqclient *c, const char *group)
{
	struct producer *p = c->last_producer;

	if (p && strcmp(p->name, group) == 0)
		return p;
	HASH_FIND_STR(c->producers, group, p);
	if (!p) {
		p = mem_alloc(sizeof *p);
		p->name = mem_strdup(group);
		p->name_n = strlen(group);
		HASH_ADD_KEYPTR(hh, c->producers, p->name, p->name_n, p);
		heartbeat_changed(c);
	}
	c->last_producer = p;
	return p;
}

/* ---- Leaving --------------------------------------------------------------------------------------------------------- */

static void on_unregistered(void *arg, int rc, struct frame *f)
{
	struct mqclient *c = arg;

	c->leaves_open--;
}

static void unregister(struct link *l, const char *key, const char *group)
{
	struct mqclient *c = l->c;
	struct frame_out o;

	if (link_call(l, &o, REQ_UNREGISTER_CLIENT, c->timeout_ms, on_unregistered, c, NULL) < 0)
		return;
	c->leaves_open++;
	frame_cstr(&o, "clientID", c->id);
	frame_cstr(&o, key, group);
	link_send(l, &o);
}

void heartbeat_unregister(struct mqclient *c, const char *consumer_group)
{
	struct producer *p, *tmp;
	struct link *l, *next;

	c->beat_stale = true;
	for (l = c->links; l; l = next) {
		next = l->hh.next;
		/* Who does not know us need not hear that we go. */
		if (!l->is_broker || !l->conn || !l->known)
			continue;
		if (consumer_group)
			unregister(l, "consumerGroup", consumer_group);
		else
			HASH_ITER(hh, c->producers, p, tmp)
				if (p->told)
					unregister(l, "producerGroup", p->name);
	}
}

void heartbeat_leave(struct mqclient *c, int timeout_ms)
{
	int64_t until = client_now() + timeout_ms;
	int64_t left;

	client_timer_stop(c, &c->beat_timer);
	heartbeat_unregister(c, NULL);
	/* One turn at least, so that it leaves. */
	mqclient_run(c, 0);
	while (c->leaves_open > 0 && (left = until - client_now()) > 0)
		mqclient_run(c, (int)left);
}

void heartbeat_init(struct mqclient *c)
{
	c->beat_timer.cb = on_timer;
	c->beat_stale = true;
}

void heartbeat_free(struct mqclient *c)
{
	struct producer *p, *tmp;

	HASH_ITER(hh, c->producers, p, tmp) {
		HASH_DEL(c->producers, p);
		free(p->name);
		free(p);
	}
	buf_free(&c->beat_body);
}
