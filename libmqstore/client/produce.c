/* produce.c: sending.
 *
 *      mqclient_send -> produce_try -> (wait for a route) -> request -> answer -> callback
 *                           ^                                  |
 *                           `------ pause, next queue ---------'
 *
 * What is tried again, until the deadline:
 *   - the connection broke, and codes 17 14 1 16 204 205: on another queue, of another broker if there is one; costs a try
 *   - the connection could not be made, and code 1500 (the broker stops): the same, but nothing was stored, so it costs none
 *   - code 2: the broker asks us to slow down and has stored nothing: after 50, 100, 200 ... ms, costs no try.  The
 *     peer's producer gives up here; ours keeps its promise to the pipe.
 *   - no queue to choose because a broker that allows writing has no master now: with each new route; costs no try.  A topic
 *     that allows no writing, or that nobody serves, is told at once.
 * A send with a given queue or a sharding key stays with its queue.  Silence until the deadline is no reason to send
 * again: that would only make duplicates.  Each send has exactly one callback, and never before mqclient_send() has returned.
 *
 * A send costs no allocation once the list of free ones is warm: its bytes are copied into its own buffer, which it keeps. */
#include "produce.h"
#include "heartbeat.h"
#include "produce_pack.h"
#include "route.h"
#include "../codec/property.h"

enum {
	SEND_RETRIES = 2,
	SEND_PAUSE_MS = 50,
	SEND_PAUSE_MAX_MS = 1000,
	SEND_KEEP_BYTES = 64 * 1024,    /* a bigger buffer is not kept in the list of free sends */
	SEND_KEEP = 8192,               /* sends kept */
};
#define SEND_GROUP "mq-send"

static void send_try(struct send *s, int64_t now);

/* ---- Life of a send -------------------------------------------------------------------------------------------------- */

static void on_timer(struct client_timer *t);
static void on_route(struct route_wait *w, int rc, const struct mq_error *e);

static struct send *send_new(struct mqclient *c)
{
	struct send *s = TAILQ_FIRST(&c->free_sends);

	if (s) {
		TAILQ_REMOVE(&c->free_sends, s, entry);
		c->nfree_sends--;
		return s;
	}
	s = mem_alloc(sizeof *s);
	s->c = c;
	s->timer.cb = on_timer;
	s->wait.cb = on_route;
	s->wait.for_write = true;
	return s;
}

static void send_release(struct send *s)
{
	struct mqclient *c = s->c;

	free(s->why);
	s->why = NULL;
	if (c->nfree_sends >= SEND_KEEP || c->closing) {
		buf_free(&s->data);
		free(s);
		return;
	}
	if (s->data.cap > SEND_KEEP_BYTES)
		buf_free(&s->data);
	TAILQ_INSERT_HEAD(&c->free_sends, s, entry);
	c->nfree_sends++;
}

static void send_unwait(struct send *s)
{
	if (!s->waiting)
		return;
	s->waiting = false;
	TAILQ_REMOVE(&s->c->waiting_sends, s, entry);
	client_timer_stop(s->c, &s->timer);
	route_unwait(s->topic, &s->wait);
}

static void send_wait(struct send *s, int64_t ms)
{
	int64_t left = s->deadline_ms - client_now();

	if (!s->waiting)
		TAILQ_INSERT_TAIL(&s->c->waiting_sends, s, entry);
	s->waiting = true;
	client_timer_start(s->c, &s->timer, ms < left ? ms : left);
}

static struct mq_error *send_why(struct send *s)
{
	if (!s->why)
		s->why = mem_alloc(sizeof *s->why);
	return s->why;
}

/* The one callback. */
static void send_end(struct send *s, int rc, struct frame *f)
{
	struct mqclient *c = s->c;
	struct mqclient_sent r;

	send_unwait(s);
	r.rc = rc;
	r.status = 0;
	r.queue = (struct mqclient_queue){ s->broker ? s->broker->name : NULL, s->queue_id };
	r.queue_off = -1;
	r.offset_id = (struct mq_str){ 0 };
	r.uniq_key = (struct mq_str){ s->uniq, s->uniq_n };
	r.n = s->n;
	r.err.code = rc;
	r.err.response = 0;
	r.err.text[0] = 0;
	if (rc < 0 && s->why)
		r.err = *s->why;
	if (f) {
		r.status = f->code;
		r.offset_id = frame_get(f, "msgId");
		str_i64(frame_get(f, "queueOffset"), &r.queue_off);
		str_i32(frame_get(f, "queueId"), &r.queue.id);
	}
	c->in_flight--;
	s->cb(s->arg, &r);
	send_release(s);
}

/* Fails, but not from within mqclient_send(). */
static void send_end_soon(struct send *s)
{
	s->final = true;
	send_wait(s, 0);
}

/* ---- Which queue ----------------------------------------------------------------------------------------------------- */

static bool choose_given(struct send *s)
{
	struct topic *t = s->topic;

	for (size_t i = 0; i < t->nwrite; i++) {
		if (t->write[i].id != s->fixed_id || t->write[i].broker != s->fixed)
			continue;
		s->broker = s->fixed;
		s->queue_id = s->fixed_id;
		return true;
	}
	return false;
}

static bool choose(struct send *s, int64_t now)
{
	struct topic *t = s->topic;
	struct broker *failed = s->broker;
	struct route_queue *q;

	if (s->fixed)
		return choose_given(s);
	if (!t->nwrite)
		return false;
	if (s->keyed) {
		/* compat: remainder first, then the absolute value, as SelectMessageQueueByHash since 4.5. */
		int64_t at = (int64_t)s->key_hash % (int64_t)t->nwrite;
		q = &t->write[at < 0 ? -at : at];
		s->broker = q->broker;
		s->queue_id = q->id;
		return true;
	}
	/* The next one; if it is of a broker that failed lately, the next of another. */
	for (size_t i = 0; i < t->nwrite; i++) {
		q = &t->write[t->next++ % t->nwrite];
		if (q->broker == failed)
			continue;
		if (q->broker->avoid_until <= now)
			goto found;
	}
	for (size_t i = 0; i < t->nwrite; i++) {
		q = &t->write[t->next++ % t->nwrite];
		if (q->broker != failed)
			goto found;
	}
	q = &t->write[t->next++ % t->nwrite];
found:
	s->broker = q->broker;
	s->queue_id = q->id;
	return true;
}

/* ---- Trying ---------------------------------------------------------------------------------------------------------- */

static void on_sent(void *arg, int rc, struct frame *f);

static void put_request(struct send *s, struct frame_out *o)
{
	frame_str(o, "a", (struct mq_str){ s->producer->name, s->producer->name_n });
	frame_str(o, "b", (struct mq_str){ s->topic->name, s->topic->name_n });
	frame_str(o, "c", MQ_STR(ROUTE_TEMPLATE));
	frame_i64(o, "d", ROUTE_DEFAULT_QUEUES);
	frame_i64(o, "e", s->queue_id);
	frame_i64(o, "f", s->sys_flag);
	frame_i64(o, "g", s->born_ms);
	frame_i64(o, "h", s->flag);
	frame_str(o, "i", (struct mq_str){ s->data.p, s->props_n });
	frame_i64(o, "j", 0);
	frame_bool(o, "k", false);
	frame_bool(o, "m", s->batch);
	frame_cstr(o, "n", s->broker->name);
	frame_body(o);
	buf_put(o->buf, s->data.p + s->props_n, s->data.n - s->props_n);
}

/* No connection: another broker at once, else when this one may be tried again.  Nothing was stored, so no try is lost. */
static void no_connection(struct send *s, struct link *l)
{
	int64_t now = client_now(), in;

	if (l && l->fails)
		broker_failed(s->broker);
	if (now >= s->deadline_ms) {
		send_end_soon(s);
		return;
	}
	in = l && l->retry_at > now ? l->retry_at - now : SEND_PAUSE_MS;
	if (!s->fixed && !s->keyed)
		for (size_t i = 0; i < s->topic->nwrite; i++) {
			struct broker *b = s->topic->write[i].broker;
			struct link *other = broker_master(b);
			if (b != s->broker && b->avoid_until <= now && other && link_usable(other))
				in = 1;
		}
	route_refresh(s->topic);
	send_wait(s, in);
}

/* The route has no queue for it.  Waits for another route where that may come by itself, else ends. */
static void no_queue(struct send *s, int64_t left)
{
	struct topic *t = s->topic;
	struct mq_error *why = send_why(s);
	bool masterless = t->masterless && (!s->fixed || (s->fixed->naddrs && !broker_master(s->fixed)));

	if (s->fixed)
		err_set(why, MQ_ENOTFOUND, "topic '%s' has no queue %s:%d to write", t->name, s->fixed->name, s->fixed_id);
	else
		err_set(why, MQ_ENOROUTE, "topic '%s': no queue may be written", t->name);
	if (!masterless) {
		send_end_soon(s);
		return;
	}
	err_set(why, MQ_ENOROUTE, "topic '%s': no queue can be written: broker %s has no master", t->name,
	        (s->fixed ? s->fixed : t->masterless)->name);
	send_wait(s, left);
	route_wait_again(t, &s->wait);
}

static void send_try(struct send *s, int64_t now)
{
	struct topic *t = s->topic;
	struct frame_out o;
	struct mq_error e;
	struct link *l;
	int64_t left = s->deadline_ms - now;
	int code = s->batch ? REQ_SEND_BATCH_MESSAGE : REQ_SEND_MESSAGE_V2;
	bool have;

	t->used = true;
	if (t->stale)
		route_refresh(t);
	have = t->known && choose(s, now);
	if (!have && !s->looked) {
		s->looked = true;
		send_wait(s, left);
		route_wait(t, &s->wait);
		return;
	}
	if (!have) {
		no_queue(s, left);
		return;
	}
	l = broker_master(s->broker);
	if (!l)
		err_set(&e, MQ_ENOROUTE, "broker %s has no master", s->broker->name);
	else if (s->introduce && (!l->known || s->c->beat_stale))
		heartbeat_now(l);
	if (!l || link_call(l, &o, code, left > 0 ? (int32_t)left : 1, s->oneway ? NULL : on_sent, s, &e) < 0) {
		*send_why(s) = e;
		err_wrap(s->why, "send to topic '%s'", t->name);
		no_connection(s, l);
		return;
	}
	s->link = l;
	put_request(s, &o);
	link_send(l, &o);
	if (s->oneway) {
		TAILQ_INSERT_TAIL(&l->drain, s, entry);
		link_watch_drain(l);
	}
}

/* ---- What comes back ------------------------------------------------------------------------------------------------- */

static bool may_retry(int32_t code)
{
	switch (code) {
	case RESP_TOPIC_NOT_EXIST:
	case RESP_SERVICE_NOT_AVAILABLE:
	case RESP_SYSTEM_ERROR:
	case RESP_NO_PERMISSION:
	case 204: /* NO_BUYER_ID, NOT_IN_CURRENT_UNIT: reserved, but in the peer's list */
	case 205:
		return true;
	default:
		return false;
	}
}

static int64_t next_pause(struct send *s)
{
	return client_pause_ms(s->pauses++, SEND_PAUSE_MS, SEND_PAUSE_MAX_MS);
}

static void send_refused(struct send *s, struct frame *f)
{
	struct mq_error *why = send_why(s);
	char show[300];

	err_set(why, MQ_EREFUSED, "send to topic '%s' queue %s:%d: %s: %s", s->topic->name, s->broker->name,
	        s->queue_id, response_name(f->code), str_show(f->remark, show, sizeof show));
	why->response = f->code;
	if (client_now() >= s->deadline_ms || s->c->closing) {
		send_end(s, MQ_EREFUSED, NULL);
		return;
	}
	switch (f->code) {
	case RESP_GO_AWAY:
		broker_failed(s->broker);
		link_reset(s->link);
		no_connection(s, s->link);
		return;
	case RESP_SYSTEM_BUSY:
		send_wait(s, next_pause(s));
		return;
	}
	if (!may_retry(f->code) || s->tries == 0) {
		send_end(s, MQ_EREFUSED, NULL);
		return;
	}
	s->tries--;
	if (f->code == RESP_SERVICE_NOT_AVAILABLE)
		broker_failed(s->broker);
	if (f->code != RESP_SYSTEM_ERROR)
		route_refresh(s->topic);
	/* Another broker at once; the same one not. */
	if (s->topic->nwrite && (s->topic->write[0].broker != s->broker ||
	                         s->topic->write[s->topic->nwrite - 1].broker != s->broker))
		send_try(s, client_now());
	else
		send_wait(s, next_pause(s));
}

static void send_failed(struct send *s, int rc)
{
	struct mq_error *why = send_why(s);
	/* Without a connection the request never left. */
	bool left = s->link->opened;

	rc = link_error(s->link, rc, s->broker->name, why);
	err_wrap(why, "send to topic '%s'", s->topic->name);
	broker_failed(s->broker);
	if (rc == MQ_ETIMEOUT || s->c->closing || client_now() >= s->deadline_ms || (left && s->tries == 0)) {
		route_refresh(s->topic);
		send_end(s, rc, NULL);
		return;
	}
	if (left)
		s->tries--;
	no_connection(s, s->link);
}

static void on_sent(void *arg, int rc, struct frame *f)
{
	struct send *s = arg;

	if (rc < 0) {
		send_failed(s, rc);
		return;
	}
	switch (f->code) {
	case RESP_SUCCESS:
	case RESP_FLUSH_DISK_TIMEOUT:
	case RESP_SLAVE_NOT_AVAILABLE:
	case RESP_FLUSH_SLAVE_TIMEOUT:
		if (s->broker->fails)
			broker_worked(s->broker);
		/* It exists now: with how many queues, a name server knows soon. */
		if (s->topic->made_up)
			route_refresh(s->topic);
		send_end(s, 0, f);
		return;
	default:
		send_refused(s, f);
	}
}

static void on_route(struct route_wait *w, int rc, const struct mq_error *e)
{
	struct send *s = client_container(w, struct send, wait);

	send_unwait(s);
	/* While a master is elected no answer is the last one. */
	if (rc < 0 && (rc == MQ_ECANCELLED || !s->topic->masterless)) {
		*send_why(s) = *e;
		err_wrap(s->why, "send to topic '%s'", s->topic->name);
		send_end(s, rc, NULL);
		return;
	}
	send_try(s, client_now());
}

/* A pause is over, or the deadline came: of this one, and of all others that are due, in the order in which they were sent. */
static void on_timer(struct client_timer *t)
{
	struct mqclient *c = client_container(t, struct send, timer)->c;
	struct send_list due = TAILQ_HEAD_INITIALIZER(due);
	int64_t now = client_now();
	struct send *s, *next;

	for (s = TAILQ_FIRST(&c->waiting_sends); s; s = next) {
		next = TAILQ_NEXT(s, entry);
		if (client_timer_on(&s->timer) && s->timer.node.due > now)
			continue;
		send_unwait(s);
		TAILQ_INSERT_TAIL(&due, s, entry);
	}
	while ((s = TAILQ_FIRST(&due))) {
		TAILQ_REMOVE(&due, s, entry);
		if (!s->final && now < s->deadline_ms) {
			send_try(s, now);
			continue;
		}
		if (!s->why)
			err_set(send_why(s), MQ_ETIMEOUT, "send to topic '%s': no answer in time", s->topic->name);
		send_end(s, s->why->code, NULL);
	}
}

void produce_drained(struct link *l, int rc)
{
	struct send_list now = TAILQ_HEAD_INITIALIZER(now);
	struct send *s;

	TAILQ_CONCAT(&now, &l->drain, entry);
	while ((s = TAILQ_FIRST(&now))) {
		TAILQ_REMOVE(&now, s, entry);
		if (rc < 0) {
			link_error(l, rc, s->broker->name, send_why(s));
			err_wrap(s->why, "send to topic '%s'", s->topic->name);
		}
		send_end(s, rc, NULL);
	}
}

/* ---- The call -------------------------------------------------------------------------------------------------------- */

int mqclient_send(struct mqclient *c, const struct mq_message *m, size_t n, const struct mqclient_send_opt *opt,
                  mqclient_sent_cb *cb, void *arg, struct mq_error *err)
{
	static const struct mqclient_send_opt none = { .retries = -1 };
	int64_t now = client_now();
	struct send *s;
	int rc;

	if (!opt)
		opt = &none;
	s = send_new(c);
	s->born_ms = client_wall(c, now);
	rc = produce_pack(s, m, n, opt, err);
	if (rc < 0) {
		send_release(s);
		return rc;
	}
	s->cb = cb;
	s->arg = arg;
	s->n = (uint32_t)n;
	s->topic = route_topic(c, m->topic);
	s->producer = heartbeat_producer(c, opt->group ? opt->group : SEND_GROUP);
	s->deadline_ms = now + (opt->timeout_ms > 0 ? opt->timeout_ms : c->timeout_ms);
	s->oneway = opt->oneway;
	s->half = opt->half;
	s->introduce = opt->introduce || opt->half;
	s->tries = opt->retries >= 0 ? opt->retries : SEND_RETRIES;
	s->pauses = 0;
	s->final = false;
	s->broker = NULL;
	s->queue_id = -1;
	s->looked = false;
	s->fixed = opt->queue.broker ? broker_get(c, str_of(opt->queue.broker)) : NULL;
	s->fixed_id = opt->queue.id;
	s->keyed = opt->sharding_key.p != NULL;
	if (s->keyed)
		s->key_hash = str_java_hash(opt->sharding_key);
	c->in_flight++;
	send_try(s, now);
	return 0;
}

void produce_cancel_all(struct mqclient *c)
{
	struct send *s;

	while ((s = TAILQ_FIRST(&c->waiting_sends))) {
		if (!s->why)
			err_set(send_why(s), MQ_ECANCELLED, "send to topic '%s': given up", s->topic->name);
		send_end(s, s->why->code, NULL);
	}
}

void produce_free(struct mqclient *c)
{
	struct send *s;

	while ((s = TAILQ_FIRST(&c->free_sends))) {
		TAILQ_REMOVE(&c->free_sends, s, entry);
		buf_free(&s->data);
		free(s);
	}
	c->nfree_sends = 0;
}
