/* member_call.c: requests to controllers, and their answers as role.h wants them. */
#include "member_private.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_controller.h>
#include <stdlib.h>

#define LOG_MODULE "member"

enum { DIAL_MS = 2000, REDIAL_MS = 500, SAY_AGAIN_MS = 60000 };

struct asked {
	struct member *m;
	uint32_t seq;
	int32_t code;
};

/* ---- Connections -------------------------------------------------------------------------------------------------------- */

static int on_request(struct conn *c, struct frame *f)
{
	return 0; /* what a controller has to say it says to the broker's port */
}

static void on_opened(struct conn *c)
{
	struct member_call *k = conn_public(c)->owner;

	k->opened = true;
	k->failed = false;
	role_tick(&k->m->role, clock_mono_ms(), clock_wall_ms());
	member_run(k->m);
}

static void on_closed(struct conn *c, int why)
{
	struct member_call *k = conn_public(c)->owner;

	if (!k->m->stopping && !k->failed)
		log_warn("controller %s: %s", k->addr, k->opened ? "connection ended" : mq_strerror(why));
	k->failed = !k->opened;
	k->c = NULL;
	k->opened = false;
}

static const struct conn_ops call_ops = { .request = on_request, .opened = on_opened, .closed = on_closed };

static void dial(struct member_call *k)
{
	struct mq_error e;

	if (k->c || k->m->stopping || clock_mono_ms() < k->due_ms)
		return;
	k->due_ms = clock_mono_ms() + REDIAL_MS;
	k->c = conn_dial(k->m->loop, k->addr, DIAL_MS, &call_ops, k, &e);
	if (!k->c)
		log_warn("controller '%s': %s", k->addr, e.text);
}

static struct member_call *call_to(struct member *m, const char *addr)
{
	struct member_call *k;

	for (int i = 0; i < m->calls; i++)
		if (strcmp(m->call[i].addr, addr) == 0)
			return &m->call[i];
	/* The leader may be known to others by another name: the last places are for such. */
	if (m->calls == MEMBER_CALLS)
		return NULL;
	k = &m->call[m->calls++];
	*k = (struct member_call){ .m = m };
	snprintf(k->addr, sizeof k->addr, "%s", addr);
	return k;
}

void member_call_tick(struct member *m)
{
	for (int i = 0; i < m->role.conf.controllers; i++)
		call_to(m, m->role.conf.controller[i]);
	for (int i = 0; i < m->calls; i++)
		dial(&m->call[i]);
}

void member_call_stop(struct member *m)
{
	for (int i = 0; i < m->calls; i++)
		if (m->call[i].c)
			conn_close(m->call[i].c);
}

/* ---- Answers ------------------------------------------------------------------------------------------------------------ */

/* Master and set, as three answers have them.  The epoch of the set is in the header of two of them. */
static void take_master(const struct frame *f, struct role_answer *a)
{
	struct controller_register_answer h;
	struct mq_error e;

	if (f->body.n && body_sync_set_decode(f->body, &a->set, &e) < 0)
		log_warn("a controller's answer: %s", e.text);
	if (header_decode(&controller_register_answer_desc, f, &h, &e) < 0) {
		log_warn("a controller's answer: %s", e.text);
		return;
	}
	if (HEADER_HAS(controller_register_answer, &h, masterBrokerId))
		a->master.id = h.masterBrokerId;
	if (HEADER_HAS(controller_register_answer, &h, syncStateSetEpoch))
		a->set.epoch = h.syncStateSetEpoch;
	a->master.epoch = h.masterEpoch;
	snprintf(a->master.addr, sizeof a->master.addr, MQ_STR_FMT, MQ_STR_ARG(h.masterAddress));
}

static void take(const struct frame *f, int32_t code, struct role_answer *a)
{
	struct controller_metadata_answer metadata;
	struct next_broker_id_answer next;
	struct mq_error e;
	int rc = 0;

	a->code = f->code;
	switch (code) {
	case REQ_CONTROLLER_GET_METADATA_INFO:
		rc = header_decode(&controller_metadata_answer_desc, f, &metadata, &e);
		if (rc == 0)
			snprintf(a->leader, sizeof a->leader, MQ_STR_FMT, MQ_STR_ARG(metadata.controllerLeaderAddress));
		break;
	case REQ_CONTROLLER_GET_NEXT_BROKER_ID:
		rc = f->code == RESP_SUCCESS ? header_decode(&next_broker_id_answer_desc, f, &next, &e) : 0;
		if (rc == 0 && f->code == RESP_SUCCESS)
			a->next_id = next.nextBrokerId;
		break;
	case REQ_CONTROLLER_ALTER_SYNC_STATE_SET:
		rc = f->code == RESP_SUCCESS ? body_sync_set_decode(f->body, &a->set, &e) : 0;
		break;
	case REQ_CONTROLLER_REGISTER_BROKER:
	case REQ_CONTROLLER_ELECT_MASTER:
	case REQ_CONTROLLER_GET_REPLICA_INFO:
		take_master(f, a);
		break;
	}
	if (rc < 0) {
		log_warn("a controller's answer to %d: %s", code, e.text);
		a->code = ROLE_NO_ANSWER;
	}
}

/* A refusal that is asked for again and again is told of once, and once more after some time. */
static bool is_news(struct member *m, int32_t code, int32_t to)
{
	bool same = m->said_code == code && m->said_to == to && clock_mono_ms() - m->said_ms < SAY_AGAIN_MS;

	m->said_code = code;
	m->said_to = to;
	if (!same)
		m->said_ms = clock_mono_ms();
	return !same;
}

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct asked *q = arg;
	struct role_answer a = { .seq = q->seq, .code = ROLE_NO_ANSWER, .master.id = -1 };

	if (!q->m->stopping) {
		if (rc == 0)
			take(f, q->code, &a);
		if (rc == 0 && f->code != RESP_SUCCESS && is_news(q->m, f->code, q->code))
			log_info("controller says code=%d %s to=%d remark=\"" MQ_STR_FMT "\"", f->code, response_name(f->code), q->code,
				 MQ_STR_ARG(f->remark));
		role_answer(&q->m->role, &a, clock_mono_ms(), clock_wall_ms());
		member_run(q->m);
	}
	free(q);
}

/* ---- Requests ----------------------------------------------------------------------------------------------------------- */

static void fill_in(struct member *m, const struct role_act *a, struct frame_out *o)
{
	frame_cstr(o, "clusterName", m->conf->brokerClusterName);
	frame_cstr(o, "brokerName", m->conf->brokerName);
	frame_i64(o, "invokeTime", clock_wall_ms());
	switch (a->code) {
	case REQ_CONTROLLER_APPLY_BROKER_ID:
		frame_i64(o, "appliedBrokerId", a->id);
		frame_cstr(o, "registerCheckCode", a->check);
		break;
	case REQ_CONTROLLER_REGISTER_BROKER:
		frame_i64(o, "brokerId", a->id);
		frame_cstr(o, "brokerAddress", m->addr);
		break;
	case REQ_CONTROLLER_ELECT_MASTER:
		frame_i64(o, "brokerId", a->id);
		frame_bool(o, "designateElect", false);
		break;
	case REQ_CONTROLLER_ALTER_SYNC_STATE_SET:
		frame_i64(o, "masterBrokerId", a->id);
		frame_i64(o, "masterEpoch", a->m.epoch);
		frame_body(o);
		body_sync_set_encode(&a->set, o->buf);
		break;
	}
}

void member_call_ask(struct member *m, const struct role_act *a)
{
	struct member_call *k = call_to(m, a->to);
	struct frame_out o;
	struct asked *q;

	if (!k || !k->opened || !conn_alive(k->c)) {
		if (k)
			dial(k);
		role_answer(&m->role, &(struct role_answer){ .seq = a->seq, .code = ROLE_NO_ANSWER, .master.id = -1 }, clock_mono_ms(),
			    clock_wall_ms());
		return;
	}
	q = mem_alloc(sizeof *q);
	*q = (struct asked){ m, a->seq, a->code };
	conn_call(k->c, &o, a->code, FRAME_JSON, (int)m->role.conf.answer_ms, on_answer, q);
	fill_in(m, a, &o);
	frame_end(&o);
	conn_kick(k->c);
}

void member_call_beat(struct member *m)
{
	for (int i = 0; i < m->calls; i++) {
		struct member_call *k = &m->call[i];
		struct frame_out o;

		if (!k->opened || !conn_alive(k->c))
			continue;
		conn_call(k->c, &o, REQ_BROKER_HEARTBEAT, FRAME_JSON, 0, NULL, NULL);
		frame_cstr(&o, "clusterName", m->conf->brokerClusterName);
		frame_cstr(&o, "brokerAddr", m->addr);
		frame_cstr(&o, "brokerName", m->conf->brokerName);
		frame_i64(&o, "brokerId", m->role.id);
		frame_i64(&o, "epoch", epoch_last(&m->epochs));
		frame_i64(&o, "maxOffset", m->log_end);
		frame_i64(&o, "confirmOffset", member_confirm(m));
		frame_i64(&o, "heartbeatTimeoutMills", m->conf->controllerHeartBeatTimeoutMills);
		frame_i64(&o, "electionPriority", m->conf->brokerElectionPriority);
		frame_end(&o);
		conn_kick(k->c);
	}
}
