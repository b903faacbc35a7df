/* route.c: see route.h. */
#include "route.h"
#include "balance.h"
#include "heartbeat.h"
#include "link.h"
#include "nameserver.h"
#include "../codec/body_route.h"
#include "../codec/body_topic.h"

/* ---- Brokers --------------------------------------------------------------------------------------------------------- */

struct broker *broker_get(struct mqclient *c, struct mq_str name)
{
	struct broker *b;

	HASH_FIND(hh, c->brokers, name.p, name.n, b);
	if (b)
		return b;
	b = mem_alloc(sizeof *b);
	b->c = c;
	b->name = str_dup(name);
	HASH_ADD_KEYPTR(hh, c->brokers, b->name, name.n, b);
	return b;
}

static int by_id(const void *a, const void *b)
{
	int64_t x = ((const struct broker_addr *)a)->id, y = ((const struct broker_addr *)b)->id;

	return x < y ? -1 : x > y;
}

/* Take the addresses of a route.  True if they are new to us. */
static bool broker_set(struct broker *b, const struct body_broker *in)
{
	struct broker_addr *v = mem_alloc((in->naddrs ? in->naddrs : 1) * sizeof *v);
	size_t n = 0;
	bool same;
	char addr[300];

	for (size_t i = 0; i < in->naddrs; i++) {
		if (!in->addr[i].addr.n || in->addr[i].addr.n >= sizeof addr)
			continue;
		memcpy(addr, in->addr[i].addr.p, in->addr[i].addr.n);
		addr[in->addr[i].addr.n] = 0;
		v[n++] = (struct broker_addr){ in->addr[i].id, link_get(b->c, addr) };
	}
	qsort(v, n, sizeof *v, by_id);
	b->seen_ms = client_now();
	same = n == b->naddrs && (n == 0 || memcmp(v, b->addr, n * sizeof *v) == 0);
	if (same) {
		free(v);
		return false;
	}
	free(b->addr);
	b->addr = v;
	b->naddrs = n;
	for (size_t i = 0; i < n; i++)
		v[i].link->is_broker = true;
	return true;
}

struct link *broker_master(const struct broker *b)
{
	return b->naddrs && b->addr[0].id == 0 ? b->addr[0].link : NULL;
}

struct link *broker_link(const struct broker *b, int64_t id)
{
	for (size_t i = 0; i < b->naddrs; i++)
		if (b->addr[i].id == id && link_usable(b->addr[i].link))
			return b->addr[i].link;
	for (size_t i = 0; i < b->naddrs; i++)
		if (link_usable(b->addr[i].link))
			return b->addr[i].link;
	return b->naddrs ? b->addr[0].link : NULL;
}

void broker_failed(struct broker *b)
{
	/* A thousand sends fail together when a connection breaks: that is one failure. */
	if (client_now() < b->avoid_until)
		return;
	b->avoid_until = client_now() + client_pause_ms(b->fails++, ROUTE_AVOID_MS, ROUTE_AVOID_MAX_MS);
}

void broker_worked(struct broker *b)
{
	b->fails = 0;
	b->avoid_until = 0;
}

/* ---- Topics ---------------------------------------------------------------------------------------------------------- */

static void topic_ask(struct topic *t);

static void on_refresh(struct client_timer *timer)
{
	struct topic *t = client_container(timer, struct topic, refresh);

	if (t->known && !t->used && !t->subscribed && TAILQ_EMPTY(&t->waits)) {
		t->stale = true;
		return;
	}
	topic_ask(t);
}

struct topic *route_topic(struct mqclient *c, struct mq_str name)
{
	struct topic *t = c->last_topic;

	if (t && t->name_n == name.n && memcmp(t->name, name.p, name.n) == 0)
		return t;
	HASH_FIND(hh, c->topics, name.p, name.n, t);
	if (!t) {
		t = mem_alloc(sizeof *t);
		t->c = c;
		t->name = str_dup(name);
		t->name_n = name.n;
		t->next = client_random(1024);
		t->refresh.cb = on_refresh;
		TAILQ_INIT(&t->waits);
		HASH_ADD_KEYPTR(hh, c->topics, t->name, t->name_n, t);
	}
	c->last_topic = t;
	return t;
}

/* ---- Taking a route -------------------------------------------------------------------------------------------------- */

static int by_broker(const void *a, const void *b)
{
	const struct route_queue *x = a, *y = b;
	int r = strcmp(x->broker->name, y->broker->name);

	return r ? r : (x->id > y->id) - (x->id < y->id);
}

struct queues {
	struct route_queue *v;
	size_t n, cap;
};

static void queues_add(struct queues *q, struct broker *b, int32_t n)
{
	for (int32_t i = 0; i < n && q->n < ROUTE_QUEUES_MAX; i++) {
		if (q->n == q->cap) {
			q->cap = q->cap ? q->cap * 2 : 16;
			q->v = mem_realloc(q->v, q->cap * sizeof *q->v);
		}
		q->v[q->n++] = (struct route_queue){ b, i };
	}
}

/* orderTopicConf "broker:queues;broker:queues": the queues to write to, if it is set. */
static void queues_ordered(struct mqclient *c, struct mq_str conf, struct queues *q)
{
	struct mq_str part, name;
	int32_t n;

	while (str_split(&conf, ';', &part)) {
		struct broker *b = NULL;
		if (!str_split(&part, ':', &name) || str_i32(str_trim(part), &n) < 0)
			continue;
		name = str_trim(name);
		HASH_FIND(hh, c->brokers, name.p, name.n, b);
		if (b)
			queues_add(q, b, n);
	}
}

static bool queues_same(const struct route_queue *a, size_t an, const struct route_queue *b, size_t bn)
{
	if (an != bn)
		return false;
	for (size_t i = 0; i < an; i++)
		if (a[i].broker != b[i].broker || a[i].id != b[i].id)
			return false;
	return true;
}

/* Enter the route of t.  made_up: it is that of TBW102, of which a new topic gets at most ROUTE_DEFAULT_QUEUES queues. */
static void topic_take(struct topic *t, const struct body_route *r, bool made_up)
{
	struct mqclient *c = t->c;
	struct queues write = { 0 }, read = { 0 };
	bool moved = false;

	t->masterless = NULL;
	for (size_t i = 0; i < r->nbrokers; i++)
		if (r->broker[i].name.n && broker_set(broker_get(c, r->broker[i].name), &r->broker[i]))
			moved = true;
	if (r->order_conf.n)
		queues_ordered(c, r->order_conf, &write);
	for (size_t i = 0; i < r->nqueues; i++) {
		const struct body_queues_of *q = &r->queue[i];
		struct broker *b = NULL;
		int32_t nr = q->read, nw = q->write;
		HASH_FIND(hh, c->brokers, q->broker.p, q->broker.n, b);
		if (!b)
			continue;
		if (made_up)
			nr = nw = nr < ROUTE_DEFAULT_QUEUES ? nr : ROUTE_DEFAULT_QUEUES;
		if (q->perm & PERM_READ)
			queues_add(&read, b, nr);
		if (!(q->perm & PERM_WRITE) || nw <= 0 || r->order_conf.n)
			continue;
		/* Slaves take no messages. */
		if (broker_master(b))
			queues_add(&write, b, nw);
		else
			t->masterless = b;
	}
	if (write.n)
		qsort(write.v, write.n, sizeof *write.v, by_broker);
	if (read.n)
		qsort(read.v, read.n, sizeof *read.v, by_broker);
	if (!queues_same(read.v, read.n, t->read, t->nread))
		moved = true;
	free(t->write);
	free(t->read);
	t->write = write.v;
	t->nwrite = write.n;
	t->read = read.v;
	t->nread = read.n;
	t->known = true;
	t->made_up = made_up;
	t->why.code = 0;
	if (moved) {
		heartbeat_changed(c);
		balance_route_changed(t);
	}
}

/* ---- Asking ---------------------------------------------------------------------------------------------------------- */

/* Tell those who wait now, in order; who begins to wait meanwhile waits for the next answer. */
static void topic_tell(struct topic *t, int rc, bool only_read)
{
	uint64_t last = t->wait_seq;
	struct mq_error why = t->why;
	struct route_wait *w;

	for (;;) {
		/* A callback may end other waits, so begin at the front each time. */
		TAILQ_FOREACH(w, &t->waits, entry)
			if (w->seq <= last && !(only_read && w->for_write))
				break;
		if (!w)
			return;
		route_unwait(t, w);
		w->cb(w, rc, rc < 0 ? &why : NULL);
	}
}

static bool wants_to_write(const struct topic *t)
{
	const struct route_wait *w;

	TAILQ_FOREACH(w, &t->waits, entry)
		if (w->for_write)
			return true;
	return false;
}

static void topic_done(struct topic *t, int rc)
{
	struct mqclient *c = t->c;

	t->asking = false;
	t->used = false;
	if (!c->closing)
		client_timer_start(c, &t->refresh, CLIENT_ROUTE_MS);
	topic_tell(t, rc, false);
}

static int topic_decode(struct topic *t, int rc, struct frame *f, const struct mq_error *e, bool made_up)
{
	struct body_route r;
	char show[200];

	if (rc < 0) {
		t->why = *e;
		err_wrap(&t->why, "route of topic '%s'", t->name);
		return rc;
	}
	if (f->code == RESP_TOPIC_NOT_EXIST)
		return err_set(&t->why, MQ_ENOROUTE, "topic '%s': no broker serves it%s", t->name,
		               made_up ? ", and none creates topics" : "");
	if (f->code != 0) {
		err_set(&t->why, MQ_EREFUSED, "route of topic '%s': %s: %s", t->name, response_name(f->code),
		        str_show(f->remark, show, sizeof show));
		t->why.response = f->code;
		return MQ_EREFUSED;
	}
	rc = body_route_decode(f->body, &r, &t->why);
	if (rc < 0) {
		err_wrap(&t->why, "route of topic '%s'", t->name);
		t->why.code = MQ_EPROTO;
		return MQ_EPROTO;
	}
	topic_take(t, &r, made_up);
	body_route_free(&r);
	return 0;
}

static void on_template(void *arg, int rc, struct frame *f, const struct mq_error *e)
{
	struct topic *t = arg;

	topic_done(t, topic_decode(t, rc, f, e, true));
}

static void on_route(void *arg, int rc, struct frame *f, const struct mq_error *e)
{
	static const struct mqclient_field field = { "topic", MQ_STR(ROUTE_TEMPLATE) };
	struct topic *t = arg;

	rc = topic_decode(t, rc, f, e, false);
	if (rc == MQ_ENOROUTE && !t->c->closing && wants_to_write(t)) {
		/* Readers know enough; writers may create it.  A topic that was known keeps its queues: a broker that
		 * is away for a while is no reason to forget them. */
		topic_tell(t, rc, true);
		nameserver_call(t->c, REQ_GET_ROUTEINFO_BY_TOPIC, &field, 1, (struct mq_str){ 0 }, 0, on_template, t);
		return;
	}
	topic_done(t, rc);
}

static void topic_ask(struct topic *t)
{
	struct mqclient_field field = { "topic", { t->name, t->name_n } };

	if (t->asking)
		return;
	t->asking = true;
	t->stale = false;
	t->asked_ms = client_now();
	client_timer_stop(t->c, &t->refresh);
	nameserver_call(t->c, REQ_GET_ROUTEINFO_BY_TOPIC, &field, 1, (struct mq_str){ 0 }, 0, on_route, t);
}

void route_refresh(struct topic *t)
{
	int64_t since = client_now() - t->asked_ms;

	t->used = true;
	if (t->asking || t->c->closing)
		return;
	if (t->asked_ms && since < ROUTE_AGAIN_MS)
		client_timer_start(t->c, &t->refresh, ROUTE_AGAIN_MS - since);
	else
		topic_ask(t);
}

static void wait_add(struct topic *t, struct route_wait *w)
{
	w->on = true;
	w->seq = ++t->wait_seq;
	TAILQ_INSERT_TAIL(&t->waits, w, entry);
}

void route_wait(struct topic *t, struct route_wait *w)
{
	wait_add(t, w);
	topic_ask(t);
}

void route_wait_again(struct topic *t, struct route_wait *w)
{
	wait_add(t, w);
	route_refresh(t);
}

void route_unwait(struct topic *t, struct route_wait *w)
{
	if (w->on)
		TAILQ_REMOVE(&t->waits, w, entry);
	w->on = false;
}

void route_cancel_all(struct mqclient *c)
{
	struct topic *t, *tmp;

	HASH_ITER(hh, c->topics, t, tmp) {
		client_timer_stop(c, &t->refresh);
		err_set(&t->why, MQ_ECANCELLED, "topic '%s': given up", t->name);
		topic_tell(t, MQ_ECANCELLED, false);
	}
}

void route_free_all(struct mqclient *c)
{
	struct topic *t, *tt;
	struct broker *b, *bt;

	HASH_ITER(hh, c->topics, t, tt) {
		HASH_DEL(c->topics, t);
		free(t->name);
		free(t->write);
		free(t->read);
		free(t);
	}
	HASH_ITER(hh, c->brokers, b, bt) {
		HASH_DEL(c->brokers, b);
		free(b->name);
		free(b->addr);
		free(b);
	}
}
