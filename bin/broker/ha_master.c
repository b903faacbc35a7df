/* ha_master.c: the slaves of this master, as a set: who may come, when they are fed, what they have between them. */
#include "ha_master.h"
#include "broker.h"
#include "ha_door.h"
#include "ha_feed.h"
#include "hold.h"
#include "member.h"
#include "pop_hold.h"
#include "settle.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>
#include <utlist.h>

#define LOG_MODULE "ha"

enum {
	TICK_MS = 1000,         /* heartbeats, silence, speeds */
	GATHER_MS = 2,          /* ASYNC_MASTER: what is new waits so long ... */
	GATHER_BYTES = 128 << 10, /* ... or until it is so much */
	REFUSED = 8,            /* kept for haStatus */
	SAY_AGAIN_MS = 60000,   /* one that comes again and again is told of so often */
};

struct refused {
	char addr[64], why[200];
	int64_t at_ms, said_ms;
	int64_t times;
};

struct ha_master_impl {
	struct ha_master pub;
	struct broker *b;
	struct ha_door *door;           /* NULL: stopped */
	int port;
	struct ha_feed *feeds;
	int n;
	struct ha_limits limits;
	struct ha_wish wish;
	uv_prepare_t ship;      /* before the loop waits: runs while there are slaves */
	uv_timer_t tick, gather;
	bool gathering;
	int64_t acked[HA_SLAVES_MAX];
	struct refused refused[REFUSED];
	int closed;
};

/* ---- What they have ------------------------------------------------------------------------------------------------------ */

/* Under a controller that is who is in its set. */
static bool is_in_sync(const struct ha_master_impl *m, const struct ha_feed *f, const struct ha_log *log)
{
	if (f->switched)
		return f->sw.base.known && body_sync_set_has(member_set(m->b->opt.member), f->sw.hello.id);
	return ha_slave_in_sync(&f->sw.base, log, &m->limits);
}

static int in_sync(const struct ha_master_impl *m)
{
	struct ha_log log = ha_log_now(m->b);
	struct ha_feed *f;
	int n = 0;

	DL_FOREACH(m->feeds, f)
		n += is_in_sync(m, f, &log);
	return n;
}

/* After a report, or when one has come or gone. */
static void look(struct ha_master_impl *m)
{
	int64_t end = mqstore_log_max(m->b->store);
	struct ha_feed *f;
	size_t n = 0;

	if (m->b->opt.member) { /* its rules count, not ours */
		m->pub.need = member_need(m->b->opt.member);
		for (int32_t i = 2; i <= HA_LEVELS; i++)
			m->pub.level[i] = member_level(m->b->opt.member);
		return;
	}
	m->pub.need = m->wish.sync ? ha_wish_acks(&m->wish, 1 + in_sync(m)) : 1;
	DL_FOREACH(m->feeds, f)
		m->acked[n++] = f->sw.base.acked;
	for (int32_t i = 2; i <= HA_LEVELS; i++)
		m->pub.level[i] = (size_t)i <= n + 1 ? ha_replicated(m->acked, n, i, end) : -1;
}

void ha_master_look(struct ha_master *h)
{
	struct ha_master_impl *m = h->impl;

	look(m);
	settle_check(m->b->settle, NULL);
	/* What is confirmed may be seen. */
	hold_run(m->b->hold);
	pop_hold_run(m->b->pops);
}

int ha_master_slaves(const struct ha_master *h)
{
	struct ha_feed *f;
	int n = 0;

	if (h)
		DL_FOREACH(h->impl->feeds, f)
			n += f->sw.base.known;
	return n;
}

/* ---- Coming and going ---------------------------------------------------------------------------------------------------- */

/* For haStatus, and for the log: once, then once a minute. */
static void note_refused(struct ha_master_impl *m, const struct mq_host *peer, const char *why)
{
	char addr[MQ_HOST_TEXT];
	struct mq_host host = *peer;
	struct refused *r = &m->refused[0];
	int64_t now = clock_now_ms();

	host.port = 0;
	mq_host_text(&host, addr);
	for (int i = 0; i < REFUSED; i++) {
		struct refused *x = &m->refused[i];

		if (strcmp(x->addr, addr) == 0 && strncmp(x->why, why, 12) == 0) {
			r = x;
			break;
		}
		if (x->at_ms < r->at_ms)
			r = x;
	}
	if (strcmp(r->addr, addr) != 0 || strncmp(r->why, why, 12) != 0)
		*r = (struct refused){ .times = 0 };
	snprintf(r->addr, sizeof r->addr, "%s", addr);
	snprintf(r->why, sizeof r->why, "%s", why);
	r->at_ms = now;
	r->times++;
	m->b->metrics.ha_refused++;
	if (now - r->said_ms < SAY_AGAIN_MS)
		return;
	r->said_ms = now;
	log_warn("slave turned away addr=%s times=%lld reason=\"%s\"", addr, (long long)r->times, why);
}

static void end(struct ha_master_impl *m, struct ha_feed *f, int rc, const char *why)
{
	if (rc == MQ_EPROTO || rc == MQ_ENOTFOUND)
		note_refused(m, stream_peer(f->s), why);
	else if (f->sw.base.known)
		log_info("slave gone addr=%s acked=%lld reason=\"%s\"", stream_name(f->s), (long long)f->sw.base.acked, why);
	if (f->switched)
		member_slave_lost(m->b->opt.member, f->number);
	DL_DELETE(m->feeds, f);
	m->n--;
	ha_feed_free(f);
	if (!m->n) {
		uv_prepare_stop(&m->ship);
		uv_timer_stop(&m->gather);
		m->gathering = false;
	}
	look(m);
}

static void push(struct ha_master_impl *m, struct ha_feed *f)
{
	struct mq_error why;
	int64_t before = f->bytes;
	int rc = ha_feed_push(f, &m->limits, &why);

	m->b->metrics.ha_bytes_out += (uint64_t)(f->bytes - before);
	if (rc < 0)
		end(m, f, rc, why.text);
}

static void on_writable(struct stream *s)
{
	struct ha_feed *f = stream_owner(s);

	push(f->b->ha->impl, f);
}

static void go_on(struct ha_feed *f)
{
	push(f->b->ha->impl, f);
}

static void on_readable(struct stream *s)
{
	struct ha_feed *f = stream_owner(s);
	struct ha_master_impl *m = f->b->ha->impl;
	bool known = f->sw.base.known;
	struct mq_error why;
	int rc = ha_feed_read(f, &why);

	if (rc < 0) {
		end(m, f, rc, why.text);
		settle_check(m->b->settle, NULL);
		return;
	}
	if (f->switched && f->sw.base.known)
		member_slave_report(m->b->opt.member, f->number, f->sw.hello.id, f->sw.hello.learner, f->sw.base.acked,
				    ha_switch_caught_up(&f->sw), f->sw.caught_up_ms);
	if (!known && f->sw.base.known) {
		log_info("slave follows addr=%s from=%lld end=%lld", stream_name(s), (long long)f->sw.base.next,
			 (long long)mqstore_log_max(m->b->store));
		push(m, f);
	} else if (f->switched && f->sw.greeted && !f->sw.answered)
		push(m, f);
	if (m->b->opt.member) {
		ha_master_look(&m->pub);
		return;
	}
	look(m);
	settle_check(m->b->settle, NULL);
}

static const struct stream_ops feed_ops = { .readable = on_readable, .writable = on_writable };

static void on_ship(uv_prepare_t *prepare);

static void on_entered(void *owner, struct stream *s)
{
	struct ha_master_impl *m = owner;
	struct ha_feed *f;

	if (m->n == HA_SLAVES_MAX) {
		note_refused(m, stream_peer(s), "there are too many connections");
		stream_close(s);
		return;
	}
	f = ha_feed_new(m->b, s);
	stream_hand_over(s, &feed_ops, f);
	DL_APPEND(m->feeds, f);
	if (m->n++ == 0)
		uv_prepare_start(&m->ship, on_ship);
	look(m);
}

static void on_refused(void *owner, const struct mq_host *peer, const char *why)
{
	note_refused(owner, peer, why);
}

static const struct ha_door_ops door_ops = { .entered = on_entered, .refused = on_refused };

/* ---- When ---------------------------------------------------------------------------------------------------------------- */

static void ship_all(struct ha_master_impl *m)
{
	struct ha_feed *f, *next;

	DL_FOREACH_SAFE(m->feeds, f, next)
		if (!f->out.n && !f->held && ha_feed_behind(f) > 0)
			push(m, f);
}

static void on_gathered(uv_timer_t *timer)
{
	struct ha_master_impl *m = timer->data;

	clock_refresh();
	m->gathering = false;
	ship_all(m);
}

static void on_ship(uv_prepare_t *prepare)
{
	struct ha_master_impl *m = prepare->data;
	struct ha_feed *f;
	int64_t most = 0;

	if (m->wish.sync) {
		ship_all(m);
		return;
	}
	DL_FOREACH(m->feeds, f)
		if (!f->out.n && !f->held && ha_feed_behind(f) > most)
			most = ha_feed_behind(f);
	if (most >= GATHER_BYTES)
		ship_all(m);
	else if (most > 0 && !m->gathering) {
		m->gathering = true;
		uv_timer_start(&m->gather, on_gathered, GATHER_MS, 0);
	}
}

/* Once a minute: it is what was asked for, and still may be why a slave is behind. */
static void say_held(struct ha_feed *f, int64_t now)
{
	if (!f->held)
		return;
	f->held = false;
	if (f->said_held_ms && now - f->said_held_ms < SAY_AGAIN_MS)
		return;
	f->said_held_ms = now;
	log_warn("slave is sent no more than haFlowControlEnable allows addr=%s max_bytes_per_s=%lld behind=%lld", stream_name(f->s),
		 (long long)f->b->conf->maxHaTransferByteInSecond, (long long)ha_feed_behind(f));
}

static void on_tick(uv_timer_t *timer)
{
	struct ha_master_impl *m = timer->data;
	int64_t now;
	struct ha_feed *f, *next;

	clock_refresh();
	now = clock_mono_ms();
	DL_FOREACH_SAFE(m->feeds, f, next) {
		f->speed = f->bytes - f->bytes_before;
		f->bytes_before = f->bytes;
		ha_slave_second(&f->sw.base);
		say_held(f, now);
		if (ha_slave_is_gone(&f->sw.base, &m->limits, now))
			end(m, f, MQ_ETIMEOUT, "it says nothing");
		else if (!f->out.n)
			push(m, f); /* a heartbeat, if it is time */
	}
	look(m);
	settle_check(m->b->settle, NULL);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------------- */

void ha_master_reload(struct ha_master *h)
{
	struct ha_master_impl *m = h ? h->impl : NULL;
	const struct broker_conf *c;

	if (!m)
		return;
	c = m->b->conf;
	m->limits = (struct ha_limits){
		.heartbeat_ms = c->haSendHeartbeatInterval, .silence_ms = c->haHousekeepingInterval,
		.block_bytes = c->haTransferBatchSize, .gap_bytes = c->haMaxGapNotInSync,
		.second_bytes = c->haFlowControlEnable ? c->maxHaTransferByteInSecond : 0,
	};
	m->wish = (struct ha_wish){
		.sync = c->brokerRole == ROLE_SYNC_MASTER || c->ackOnTwoMachines, .strict = c->ackOnTwoMachines,
		.replicas = c->inSyncReplicas, .min_replicas = c->minInSyncReplicas, .automatic = c->enableAutoInSyncReplicas,
		.all = c->allAckInSyncStateSet,
	};
	look(m);
}

int ha_master_open(struct ha_master **out, struct broker *b, int port, struct mq_error *e)
{
	struct ha_master_impl *m = mem_alloc(sizeof *m);

	*out = NULL;
	m->b = b;
	m->pub.impl = m;
	m->door = ha_door_open(b, port, &door_ops, m, e);
	if (!m->door) {
		free(m);
		return e->code;
	}
	m->port = ha_door_port(m->door);
	ha_feed_go_on = go_on;
	uv_prepare_init(b->loop, &m->ship);
	uv_timer_init(b->loop, &m->tick);
	uv_timer_init(b->loop, &m->gather);
	m->ship.data = m->tick.data = m->gather.data = m;
	uv_timer_start(&m->tick, on_tick, TICK_MS, TICK_MS);
	ha_master_reload(&m->pub);
	*out = &m->pub;
	return 0;
}

int ha_master_port(const struct ha_master *h)
{
	return h->impl->port;
}

void ha_master_stop(struct ha_master *h)
{
	struct ha_master_impl *m = h ? h->impl : NULL;
	struct ha_feed *f, *next;

	if (!m || !m->door)
		return;
	ha_door_close(m->door);
	m->door = NULL;
	ship_all(m);
	DL_FOREACH_SAFE(m->feeds, f, next)
		end(m, f, 0, "this broker stops");
	uv_timer_stop(&m->tick);
}

static void on_closed(uv_handle_t *handle)
{
	struct ha_master_impl *m = handle->data;

	if (++m->closed == 3)
		free(m);
}

void ha_master_free(struct ha_master *h)
{
	if (!h)
		return;
	ha_master_stop(h);
	uv_close((uv_handle_t *)&h->impl->ship, on_closed);
	uv_close((uv_handle_t *)&h->impl->tick, on_closed);
	uv_close((uv_handle_t *)&h->impl->gather, on_closed);
}

/* ---- 907 ----------------------------------------------------------------------------------------------------------------- */

void ha_master_status(const struct ha_master *h, struct json_out *j)
{
	struct ha_log log;
	struct ha_feed *f;

	json_key(j, "haConnectionInfo");
	json_open(j, '[');
	if (h) {
		log = ha_log_now(h->impl->b);
		DL_FOREACH(h->impl->feeds, f) {
			if (!f->sw.base.known)
				continue;
			json_open(j, '{');
			json_member_cstr(j, "addr", stream_name(f->s));
			json_member_i64(j, "diff", log.end - f->sw.base.acked);
			json_member_bool(j, "inSync", is_in_sync(h->impl, f, &log));
			json_member_i64(j, "slaveAckOffset", f->sw.base.acked);
			json_member_i64(j, "transferFromWhere", f->sw.base.next);
			json_member_i64(j, "transferredByteInSecond", f->speed);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
	json_member_i64(j, "inSyncSlaveNums", h ? in_sync(h->impl) : 0);
	json_key(j, "refused");
	json_open(j, '[');
	for (int i = 0; h && i < REFUSED; i++) {
		const struct refused *r = &h->impl->refused[i];

		if (!r->times)
			continue;
		json_open(j, '{');
		json_member_cstr(j, "addr", r->addr);
		json_member_cstr(j, "reason", r->why);
		json_member_i64(j, "times", r->times);
		json_member_i64(j, "lastTimestamp", r->at_ms);
		json_close(j, '}');
	}
	json_close(j, ']');
}
