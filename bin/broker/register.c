/* register.c: keeps this broker known to the name servers.
 *
 * One connection to each, kept open: a name server drops a broker whose connection ends.  The first registration over a connection
 * and those of every period carry all topics, those between only what changed; after a topic was deleted it is all again.
 * While one is on its way to a name server, changes only mark it, and one more follows with all of them.  A name server that cannot be
 * reached is tried again after 1 s, 2 s, 4 s, ... registerNameServerPeriod. */
#include "register.h"
#include "broker.h"
#include "fence.h"
#include "ha_replica.h"
#include "member.h"
#include "nsaddr.h"
#include "settle.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/crc.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_register.h>
#include <codec/body_stats.h>
#include <stdlib.h>
#include <utlist.h>

#define LOG_MODULE "register"

enum {
	CONNECT_MS = 3000,
	RETRY_MS = 1000,
	HOMELESS_MS = 2000,
	PLAIN_MAX = 4 * 1024 * 1024,    /* larger bodies are compressed: a frame has 16 MiB */
};

struct ns {
	struct ns *prev, *next;
	struct registrar *r;
	char *addr;
	struct conn *c;         /* NULL: not connected, nor on the way */
	bool opened;
	bool lost;              /* taken off the list: goes when its connection ends */
	bool asking;            /* whether another broker is master now */
	bool calling;           /* a registration is on its way */
	bool wanted;            /* one more is to follow it */
	bool failed;            /* the last try did not succeed: nobody waits for this one */
	bool whole;             /* it has had all topics over this connection */
	uint64_t sent, version; /* of the topics: sent, answered */
	int64_t retry_ms;       /* delay before the next try, 0: none yet */
	int64_t due_ms;         /* of the next try or registration; monotonic */
};

struct registrar {
	struct broker *b;
	struct nsaddr *addrs;
	struct ns *all;         /* also lost ones */
	struct buf body;        /* all topics: made once per change, for all */
	uint64_t body_version;
	bool compressed;
	struct buf changes;     /* a few topics */
	uv_timer_t timer;
	bool soon;
	int waits;              /* stop: answers and ends of connections that are to come */
	bool stopping;
	void (*stopped)(void *arg);
	void *stopped_arg;
};

static void plan(struct registrar *r);
static void send_registration(struct ns *s);

/* Under a controller: not before it has said what this broker is. */
static bool fenced(const struct broker *b)
{
	return b->opt.member && member_fenced(b->opt.member);
}

/* ---- What is sent ------------------------------------------------------------------------------------------------------- */

static void make_body(struct registrar *r)
{
	struct broker *b = r->b;
	struct body_register reg = { 0 };

	if (r->body.n && r->body_version == b->topics->file.version)
		return;
	r->body_version = b->topics->file.version;
	r->body.n = 0;
	topic_table_body(b->topics, topic_table_perm_mask(b->conf->brokerPermission), &reg.topics);
	body_register_encode(&reg, &r->body);
	r->compressed = r->body.n > PLAIN_MAX;
	if (r->compressed) {
		r->body.n = 0;
		body_register_encode_compressed(&reg, &r->body);
	}
	free(reg.topics.topic);
}

/* What changed since s heard last.  False: that is no less than all. */
static bool make_changes(struct ns *s)
{
	struct registrar *r = s->r;
	struct broker *b = r->b;
	struct body_register reg = { 0 };

	if (!s->whole || !s->version || s->version < b->topics->whole)
		return false;
	r->changes.n = 0;
	topic_table_changes(b->topics, s->version, topic_table_perm_mask(b->conf->brokerPermission), &reg.topics);
	body_register_encode(&reg, &r->changes);
	free(reg.topics.topic);
	return r->changes.n <= PLAIN_MAX;
}

static bool asks_for_master(const struct broker *b)
{
	return b->replica && !b->opt.member && ha_replica_homeless(b->replica);
}

/* What became of a try: the next one is due later and later while it fails. */
static void tried(struct ns *s, bool ok)
{
	int64_t period = s->r->b->conf->registerNameServerPeriod;

	s->failed = !ok;
	if (ok) {
		s->retry_ms = 0;
		/* A slave that is not told of a master asks again soon. */
		s->due_ms = clock_mono_ms() + (asks_for_master(s->r->b) ? HOMELESS_MS : period);
	} else {
		s->r->b->metrics.registration_failures++;
		s->retry_ms = s->retry_ms ? s->retry_ms * 2 : RETRY_MS;
		if (s->retry_ms > period)
			s->retry_ms = period;
		s->due_ms = clock_mono_ms() + s->retry_ms;
	}
	if (s->r->b->settle)
		settle_check(s->r->b->settle, NULL);
	plan(s->r);
}

static void order_topics(struct broker *b, const struct frame *f)
{
	struct body_kv kv;
	struct mq_error e;

	if (!f->body.n)
		return;
	if (body_kv_decode(f->body, &kv, &e) < 0) {
		log_warn("answer to the registration: %s", e.text);
		return;
	}
	topic_table_order(b->topics, kv.pair, kv.n);
	body_kv_free(&kv);
}

static void on_registered(void *arg, int rc, struct frame *f)
{
	struct ns *s = arg;
	struct broker *b = s->r->b;

	s->calling = false;
	if (rc == MQ_ECLOSED)
		return; /* on_closed_conn() goes on from here */
	if (rc < 0)
		log_warn("register at %s: %s", s->addr, mq_strerror(rc));
	else if (f->code != RESP_SUCCESS)
		log_warn("register at %s: code %d %s: " MQ_STR_FMT, s->addr, f->code, response_name(f->code), MQ_STR_ARG(f->remark));
	else {
		if (!s->version)
			log_info("registered name=%s addr=%s at=%s", b->conf->brokerName, b->addr, s->addr);
		b->metrics.registrations++;
		s->version = s->sent;
		if (b->replica && !b->opt.member)
			ha_replica_master(b->replica, frame_get(f, "haServerAddr"), frame_get(f, "masterAddr"));
		if (s == s->r->all) /* one of them is enough; two might say different things for ever */
			order_topics(b, f);
	}
	if (s->r->stopping || s->lost)
		return;
	if (rc < 0 || f->code != RESP_SUCCESS)
		s->whole = false;
	if (rc == 0 && s->wanted)
		send_registration(s);
	tried(s, rc == 0 && f->code == RESP_SUCCESS);
}

static void send_registration(struct ns *s)
{
	struct broker *b = s->r->b;
	struct buf *body = &s->r->changes;
	struct frame_out o;
	bool whole;

	if (fenced(b) || b->deposed || s->asking)
		return;
	if (s->calling) {
		s->wanted = true;
		return;
	}
	whole = !make_changes(s);
	if (whole) {
		make_body(s->r);
		body = &s->r->body;
	}
	s->calling = true;
	s->wanted = false;
	s->sent = b->topics->file.version;
	s->whole = true; /* until it fails */
	conn_call(s->c, &o, REQ_REGISTER_BROKER, FRAME_JSON, b->conf->registerBrokerTimeoutMills, on_registered, s);
	frame_cstr(&o, "brokerAddr", b->addr);
	frame_i64(&o, "brokerId", b->conf->brokerId);
	frame_cstr(&o, "brokerName", b->conf->brokerName);
	frame_cstr(&o, "clusterName", b->conf->brokerClusterName);
	frame_cstr(&o, "haServerAddr", b->ha_addr);
	frame_bool(&o, "compressed", whole && s->r->compressed);
	frame_bool(&o, "enableActingMaster", false);
	frame_bool(&o, "fullTable", whole);
	frame_i64(&o, "bodyCrc32", crc32_peer(body->p, body->n));
	frame_body(&o);
	buf_str(o.buf, buf_view(body));
	frame_end(&o);
	conn_kick(s->c);
}

static void on_fence(void *arg, bool closed)
{
	struct ns *s = arg;

	s->asking = false;
	if (closed || s->r->stopping || s->lost)
		return;
	if (!s->r->b->deposed) {
		send_registration(s);
		return;
	}
	tried(s, true);
	s->due_ms = clock_mono_ms() + HOMELESS_MS;
	plan(s->r);
}

/* Registers, after a master has asked whether it still is one. */
static void begin(struct ns *s)
{
	if (!fence_applies(s->r->b)) {
		send_registration(s);
	} else if (!s->asking) {
		s->asking = true;
		fence_ask(s->r->b, s->c, on_fence, s);
	}
}

/* ---- Connections -------------------------------------------------------------------------------------------------------- */

static void waited(struct registrar *r)
{
	if (r->stopping && --r->waits == 0)
		r->stopped(r->stopped_arg);
}

static void ns_free(struct ns *s)
{
	DL_DELETE(s->r->all, s);
	free(s->addr);
	free(s);
}

static int on_request(struct conn *c, struct frame *f)
{
	struct ns *s = conn_public(c)->owner;

	return dispatch_request(s->r->b, c, f, false);
}

static void on_opened(struct conn *c)
{
	struct ns *s = conn_public(c)->owner;

	s->opened = true;
	broker_conn_opened(s->r->b, c);
	if (!s->lost && !s->r->stopping)
		begin(s);
}

static void on_closed_conn(struct conn *c, int why)
{
	struct ns *s = conn_public(c)->owner;
	bool opened = s->opened;

	if (opened)
		broker_conn_closed(s->r->b, c, why);
	s->c = NULL;
	s->opened = s->calling = s->asking = s->whole = false;
	if (s->r->stopping) {
		waited(s->r);
		return;
	}
	if (s->lost) {
		ns_free(s);
		return;
	}
	if (!s->failed)
		log_warn("name server %s: %s", s->addr, opened ? "connection ended" : mq_strerror(why));
	tried(s, false);
}

static const struct conn_ops ns_ops = { .request = on_request, .opened = on_opened, .closed = on_closed_conn };

static void attempt(struct ns *s)
{
	struct mq_error e;

	s->whole = false;
	if (s->c) {
		if (s->opened)
			begin(s);
		return;
	}
	s->c = conn_dial(s->r->b->loop, s->addr, CONNECT_MS, &ns_ops, s, &e);
	if (!s->c) {
		if (!s->failed)
			log_error("name server '%s': %s", s->addr, e.text);
		tried(s, false);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct registrar *r = timer->data;
	struct ns *s, *tmp;

	clock_refresh();
	DL_FOREACH_SAFE(r->all, s, tmp)
		if (!s->lost && s->due_ms <= clock_mono_ms()) {
			s->due_ms = clock_mono_ms() + r->b->conf->registerNameServerPeriod;
			attempt(s);
		}
	plan(r);
}

/* The timer goes to the earliest due time. */
static void plan(struct registrar *r)
{
	int64_t due = INT64_MAX, ms;
	struct ns *s;

	DL_FOREACH(r->all, s)
		if (!s->lost && s->due_ms < due)
			due = s->due_ms;
	if (due == INT64_MAX || r->stopping) {
		uv_timer_stop(&r->timer);
		return;
	}
	ms = due - clock_mono_ms();
	uv_timer_start(&r->timer, on_timer, ms > 0 ? ms : 0, 0);
}

/* ---- The list ------------------------------------------------------------------------------------------------------------ */

static void on_list(void *arg, char *const *addr, size_t n)
{
	struct registrar *r = arg;
	struct ns *s, *tmp;

	DL_FOREACH_SAFE(r->all, s, tmp) {
		bool there = false;

		for (size_t i = 0; i < n && !there; i++)
			there = strcmp(addr[i], s->addr) == 0;
		if (there || s->lost)
			continue;
		log_info("name server gone from the list: %s", s->addr);
		s->lost = true;
		if (s->c)
			conn_close(s->c);
		else
			ns_free(s);
	}
	for (size_t i = 0; i < n; i++) {
		bool there = false;

		DL_FOREACH(r->all, s)
			there = there || (!s->lost && strcmp(addr[i], s->addr) == 0);
		if (there)
			continue;
		s = mem_alloc(sizeof *s);
		s->r = r;
		s->addr = mem_strdup(addr[i]);
		s->due_ms = clock_mono_ms();
		DL_APPEND(r->all, s);
	}
	plan(r);
}

uint64_t register_version(const struct registrar *r)
{
	uint64_t version = UINT64_MAX;
	struct ns *s;

	DL_FOREACH(r->all, s)
		if (!s->lost && !s->failed && s->version < version)
			version = s->version;
	return version;
}

void register_soon(struct registrar *r)
{
	r->soon = true;
	broker_want_turn(r->b);
}

void register_turn(struct registrar *r)
{
	struct ns *s;

	if (!r->soon || r->stopping)
		return;
	r->soon = false;
	DL_FOREACH(r->all, s)
		if (!s->lost && s->opened)
			send_registration(s);
}

struct conn *register_conn(const struct registrar *r)
{
	for (const struct ns *s = r->all; s; s = s->next)
		if (s->opened && !s->lost && conn_alive(s->c))
			return s->c;
	return NULL;
}

void register_reload(struct registrar *r)
{
	nsaddr_reload(r->addrs);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

struct registrar *register_new(struct broker *b)
{
	struct registrar *r = mem_alloc(sizeof *r);

	r->b = b;
	uv_timer_init(b->loop, &r->timer);
	r->timer.data = r;
	r->addrs = nsaddr_new(b, on_list, r);
	return r;
}

static void on_unregistered(void *arg, int rc, struct frame *f)
{
	struct ns *s = arg;

	if (s->c)
		conn_close(s->c);
	waited(s->r);
}

static void on_addrs_stopped(void *arg)
{
	waited(arg);
}

void register_stop(struct registrar *r, int timeout_ms, void (*done)(void *arg), void *arg)
{
	struct broker *b = r->b;
	struct ns *s;

	r->stopping = true;
	r->stopped = done;
	r->stopped_arg = arg;
	r->waits = 2; /* the list, and this function */
	uv_timer_stop(&r->timer);
	DL_FOREACH(r->all, s) {
		struct frame_out o;

		if (!s->c)
			continue;
		r->waits++; /* its end */
		if (!s->opened || s->lost || fenced(b) || b->deposed) { /* what is registered under its name is another's */
			conn_close(s->c);
			continue;
		}
		r->waits++; /* its answer */
		conn_call(s->c, &o, REQ_UNREGISTER_BROKER, FRAME_JSON, timeout_ms, on_unregistered, s);
		frame_cstr(&o, "brokerAddr", b->addr);
		frame_i64(&o, "brokerId", b->conf->brokerId);
		frame_cstr(&o, "brokerName", b->conf->brokerName);
		frame_cstr(&o, "clusterName", b->conf->brokerClusterName);
		frame_end(&o);
		conn_kick(s->c);
	}
	nsaddr_stop(r->addrs, on_addrs_stopped, r);
	waited(r);
}

static void on_closed(uv_handle_t *handle)
{
	struct registrar *r = handle->data;

	while (r->all)
		ns_free(r->all);
	buf_free(&r->body);
	buf_free(&r->changes);
	free(r);
}

void register_free(struct registrar *r)
{
	if (!r)
		return;
	nsaddr_free(r->addrs);
	uv_close((uv_handle_t *)&r->timer, on_closed);
}
