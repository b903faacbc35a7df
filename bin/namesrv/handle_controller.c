/* handle_controller.c: what a controller is asked: judged by controller.c, answered from the state after it has happened. */
#include "controller_private.h"
#include "notify.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/javaprops.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>

#include <stdio.h>
#include <stdlib.h>

#define LOG_MODULE "controller"

/* ---- Answers --------------------------------------------------------------------------------------------------------- */

static bool answer_begin(struct controller_ask *a, struct frame_out *o)
{
	if (!a->c || a->id.oneway || !conn_alive(a->c))
		return false;
	frame_answer(o, conn_out(a->c), a->id, a->v.code, str_of(a->v.remark));
	return true;
}

static void answer_end(struct controller_ask *a, struct frame_out *o)
{
	frame_end(o);
	conn_kick(a->c);
}

void handle_controller_refuse(struct controller_ask *a, int32_t code, const char *remark)
{
	struct frame_out o;

	a->v.code = code;
	snprintf(a->v.remark, sizeof(a->v.remark), "%s", remark);
	if (answer_begin(a, &o))
		answer_end(a, &o);
}

/* ---- What every controller answers ----------------------------------------------------------------------------------- */

static void answer_now(struct conn *c, const struct frame *f, int32_t code, const char *remark)
{
	struct frame_out o;

	if (f->flag & FRAME_ONEWAY)
		return;
	frame_answer(&o, conn_out(c), frame_id_of(f), code, str_of(remark));
	frame_end(&o);
}

static void beat(struct controller_node *n, struct conn *c, const struct frame *f)
{
	struct broker_heartbeat_header h;
	const struct header_desc *d = &broker_heartbeat_header_desc;
	struct mq_error e;

	if (header_decode(d, f, &h, &e) < 0 || header_check_texts(d, &h, &e) < 0) {
		answer_now(c, f, RESP_SYSTEM_ERROR, e.text);
	} else if (!HEADER_HAS(broker_heartbeat_header, &h, brokerId)) {
		answer_now(c, f, RESP_CONTROLLER_INVALID_REQUEST, "Heart beat with empty brokerId");
	} else {
		controller_lives_beat(n->lives, &h, c, clock_mono_ms());
		answer_now(c, f, RESP_SUCCESS, "Heart beat success");
	}
}

static void tell_metadata(struct controller_node *n, struct conn *c, const struct frame *f)
{
	const struct controller_peer *leader = controller_raft_leader(n->raft);
	struct controller_metadata_answer a = { .isLeader = controller_raft_leads(n->raft) };
	struct buf peers = { 0 };
	struct frame_out o;
	char addr[300] = "";

	for (size_t i = 0; i < n->peers.n; i++)
		buf_printf(&peers, "%s:%s:%d;", n->peers.v[i].id, n->peers.v[i].host, n->peers.v[i].port);
	a.group = str_of(n->conf->controllerDLegerGroup);
	a.peers = buf_view(&peers);
	if (leader) {
		snprintf(addr, sizeof(addr), "%s:%d", leader->host, leader->port);
		a.controllerLeaderId = str_of(leader->id);
		a.controllerLeaderAddress = str_of(addr);
	}
	HEADER_SET(controller_metadata_answer, &a, isLeader);
	frame_answer(&o, conn_out(c), frame_id_of(f), RESP_SUCCESS, MQ_STR(""));
	header_encode(&controller_metadata_answer_desc, &a, false, &o);
	frame_end(&o);
	buf_free(&peers);
}

static void change_config(struct controller_node *n, struct conn *c, const struct frame *f)
{
	struct javaprops p = javaprops_of(f->body);
	bool locked = false;
	int changed = 0, rc;
	struct mq_error e;

	while (!locked && javaprops_next(&p))
		locked = namesrv_conf_locked(n->opt.rows, n->conf, buf_view(&p.key));
	javaprops_free(&p);
	if (locked) {
		answer_now(c, f, RESP_NO_PERMISSION, "Can not update config in black list.");
		return;
	}
	rc = conf_update(n->opt.rows, f->body, &changed, &e);
	if (rc == 0 && changed) {
		log_info("configuration changed by request peer=%s keys=%d", conn_name(c), changed);
		rc = namesrv_conf_save(n->opt.rows, n->conf, &e);
		n->opt.changed(n->opt.arg);
	}
	if (rc < 0)
		answer_now(c, f, rc == MQ_EREFUSED ? RESP_NO_PERMISSION : RESP_SYSTEM_ERROR, e.text);
	else
		answer_now(c, f, RESP_SUCCESS, "");
}

static void tell_config(struct controller_node *n, struct conn *c, const struct frame *f)
{
	struct frame_out o;

	frame_answer(&o, conn_out(c), frame_id_of(f), RESP_SUCCESS, MQ_STR(""));
	frame_body(&o);
	conf_print(n->opt.rows, conn_out(c));
	frame_end(&o);
}

bool handle_controller_here(struct controller_node *n, struct conn *c, struct frame *f)
{
	switch (f->code) {
	case REQ_BROKER_HEARTBEAT: beat(n, c, f); return true;
	case REQ_CONTROLLER_GET_METADATA_INFO: tell_metadata(n, c, f); return true;
	case REQ_UPDATE_CONTROLLER_CONFIG: change_config(n, c, f); return true;
	case REQ_GET_CONTROLLER_CONFIG: tell_config(n, c, f); return true;
	default: return false;
	}
}

/* ---- What the leader judges ------------------------------------------------------------------------------------------ */

bool handle_controller_led(int32_t code)
{
	switch (code) {
	case REQ_CONTROLLER_ALTER_SYNC_STATE_SET:
	case REQ_CONTROLLER_ELECT_MASTER:
	case REQ_CONTROLLER_REGISTER_BROKER:
	case REQ_CONTROLLER_GET_REPLICA_INFO:
	case REQ_CONTROLLER_GET_SYNC_STATE_DATA:
	case REQ_CLEAN_BROKER_DATA:
	case REQ_CONTROLLER_GET_NEXT_BROKER_ID:
	case REQ_CONTROLLER_APPLY_BROKER_ID:
		return true;
	default:
		return false;
	}
}

void handle_controller_judge(struct controller_node *n, struct controller_ask *a)
{
	const void *h = a->header;
	struct body_sync_set set;
	struct mq_error e;

	switch (a->code) {
	case REQ_CONTROLLER_ALTER_SYNC_STATE_SET:
		if (body_sync_set_decode(a->body, &set, &e) == 0) {
			controller_alter(n->state, h, &set, &n->eyes, &a->v);
		} else {
			a->v.code = RESP_SYSTEM_ERROR;
			snprintf(a->v.remark, sizeof(a->v.remark), "%.200s", e.text);
		}
		break;
	case REQ_CONTROLLER_ELECT_MASTER:
		controller_elect(n->state, h, n->conf->enableElectUncleanMaster, &n->eyes, &a->v);
		break;
	case REQ_CONTROLLER_REGISTER_BROKER:
		controller_register(n->state, h, &a->v);
		break;
	case REQ_CLEAN_BROKER_DATA:
		controller_clean(n->state, h, &n->eyes, &a->v);
		break;
	case REQ_CONTROLLER_APPLY_BROKER_ID:
		controller_apply_id(n->state, h, &a->v);
		break;
	case REQ_CONTROLLER_GET_REPLICA_INFO:
		if (!controller_group(n->state, ((const struct replica_info_header *)h)->brokerName)) {
			a->v.code = RESP_CONTROLLER_BROKER_METADATA_NOT_EXIST;
			snprintf(a->v.remark, sizeof(a->v.remark), "Broker metadata is not existed");
		}
		break;
	}
}

static struct mq_str addr_of(const struct controller_group *g, int64_t id)
{
	return str_of(controller_addr(g, id));
}

static bool lives(struct controller_node *n, const struct controller_group *g, int64_t id)
{
	return n->eyes.look(n->eyes.arg, str_of(g->cluster), str_of(g->name), id) != NULL;
}

static void answer_registered(struct controller_node *n, struct controller_ask *a, struct frame_out *o)
{
	const struct controller_register_header *h = (const void *)a->header;
	const struct controller_group *g = controller_group(n->state, h->brokerName);
	struct controller_register_answer r = { .clusterName = h->clusterName, .brokerName = h->brokerName };

	if (g && g->master != CONTROLLER_NOBODY && lives(n, g, g->master)) {
		r.masterBrokerId = g->master;
		r.masterAddress = addr_of(g, g->master);
		r.masterEpoch = g->master_epoch;
		r.syncStateSetEpoch = g->sync.epoch;
		HEADER_SET(controller_register_answer, &r, masterBrokerId);
		HEADER_SET(controller_register_answer, &r, masterEpoch);
		HEADER_SET(controller_register_answer, &r, syncStateSetEpoch);
	}
	header_encode(&controller_register_answer_desc, &r, false, o);
	frame_body(o);
	if (g)
		body_sync_set_encode(&g->sync, o->buf);
}

static void answer_replica_info(struct controller_node *n, struct controller_ask *a, struct frame_out *o)
{
	const struct replica_info_header *h = (const void *)a->header;
	const struct controller_group *g = controller_group(n->state, h->brokerName);
	struct replica_info_answer r = { 0 };

	if (!g)
		return;
	r.masterEpoch = g->master_epoch;
	HEADER_SET(replica_info_answer, &r, masterEpoch);
	if (g->master != CONTROLLER_NOBODY) {
		r.masterBrokerId = g->master;
		r.masterAddress = addr_of(g, g->master);
		HEADER_SET(replica_info_answer, &r, masterBrokerId);
	}
	header_encode(&replica_info_answer_desc, &r, false, o);
	frame_body(o);
	body_sync_set_encode(&g->sync, o->buf);
}

static void answer_elected(struct controller_node *n, struct controller_ask *a, const struct controller_group *g, struct frame_out *o)
{
	struct elect_master_answer r = {
		.masterBrokerId = g->master, .masterAddress = addr_of(g, g->master), .masterEpoch = g->master_epoch,
		.syncStateSetEpoch = g->sync.epoch,
	};
	struct body_broker_addr addr[SYNC_SET_MAX];
	struct body_broker members = { .name = str_of(g->name), .cluster = str_of(g->cluster), .naddrs = g->n, .addr = addr };

	for (size_t i = 0; i < g->n; i++)
		addr[i] = (struct body_broker_addr){ g->v[i].id, str_of(g->v[i].addr) };
	HEADER_SET(elect_master_answer, &r, masterBrokerId);
	HEADER_SET(elect_master_answer, &r, masterEpoch);
	HEADER_SET(elect_master_answer, &r, syncStateSetEpoch);
	header_encode(&elect_master_answer_desc, &r, false, o);
	frame_body(o);
	body_elected_encode(a->v.code == RESP_SUCCESS ? &members : NULL, &g->sync, o->buf);
}

static void answer_replicas(struct controller_node *n, struct controller_ask *a, struct frame_out *o)
{
	json_t *names = a->body.n ? json_parse(a->body, NULL) : NULL;
	size_t asked = json_is_array(names) ? json_array_size(names) : 0, found = 0;
	struct body_replicas *v = mem_alloc((asked + 1) * sizeof(*v));

	for (size_t i = 0; i < asked; i++) {
		struct mq_str name = json_text(json_array_get(names, i));
		const struct controller_group *g = name.p ? controller_group(n->state, name) : NULL;
		struct body_replica *r;

		if (!g)
			continue;
		r = mem_alloc((g->n + 1) * sizeof(*r));
		for (size_t k = 0; k < g->n; k++)
			r[k] = (struct body_replica){ g->v[k].id, str_of(g->v[k].addr), lives(n, g, g->v[k].id),
						      body_sync_set_has(&g->sync, g->v[k].id) };
		v[found++] = (struct body_replicas){ str_of(g->name), g->master, addr_of(g, g->master), g->master_epoch, g->sync.epoch, r,
						     g->n };
	}
	frame_body(o);
	body_replicas_encode(v, found, o->buf);
	for (size_t i = 0; i < found; i++)
		free((void *)v[i].v);
	free(v);
	json_decref(names);
}

/* Every living broker of the group hears who is master now. */
static void tell_brokers(struct controller_node *n, const struct controller_group *g)
{
	struct role_changed_header h = { .masterAddress = addr_of(g, g->master), .masterEpoch = g->master_epoch,
					 .syncStateSetEpoch = g->sync.epoch, .masterBrokerId = g->master };

	HEADER_SET(role_changed_header, &h, masterEpoch);
	HEADER_SET(role_changed_header, &h, syncStateSetEpoch);
	HEADER_SET(role_changed_header, &h, masterBrokerId);
	for (size_t i = 0; i < g->n; i++) {
		struct buf *frame;
		struct frame_out o;

		if (!lives(n, g, g->v[i].id))
			continue;
		frame = mem_alloc(sizeof(*frame));
		frame_request(&o, frame, FRAME_JSON, REQ_NOTIFY_BROKER_ROLE_CHANGED, (int32_t)i, FRAME_ONEWAY);
		header_encode(&role_changed_header_desc, &h, false, &o);
		frame_body(&o);
		body_sync_set_encode(&g->sync, frame);
		frame_end(&o);
		notify_send(n->loop, g->v[i].addr, frame);
	}
}

static void after_election(struct controller_node *n, struct controller_ask *a, const struct controller_group *g)
{
	if (!g || !a->v.happens)
		return;
	if (g->master == CONTROLLER_NOBODY) {
		log_warn("no broker can be master group=%s epoch=%d", g->name, g->master_epoch);
		return;
	}
	log_info("master elected group=%s id=%lld addr=%s epoch=%d", g->name, (long long)g->master, controller_addr(g, g->master),
		 g->master_epoch);
	if (n->conf->notifyBrokerRoleChanged)
		tell_brokers(n, g);
}

void handle_controller_answer(struct controller_node *n, struct controller_ask *a)
{
	const struct alter_sync_set_header *alter = (const void *)a->header;
	const struct elect_master_header *elect = (const void *)a->header;
	const struct next_broker_id_header *next = (const void *)a->header;
	const struct apply_broker_id_header *apply = (const void *)a->header;
	const struct controller_group *g;
	struct frame_out o;

	if (a->code == REQ_CONTROLLER_ELECT_MASTER)
		after_election(n, a, controller_group(n->state, elect->brokerName));
	if (!answer_begin(a, &o))
		return;
	if (a->v.code == RESP_SUCCESS || a->v.code == RESP_CONTROLLER_MASTER_STILL_EXIST) {
		switch (a->code) {
		case REQ_CONTROLLER_ALTER_SYNC_STATE_SET:
			g = controller_group(n->state, alter->brokerName);
			frame_i64(&o, "newSyncStateSetEpoch", g ? g->sync.epoch : 0);
			frame_body(&o);
			if (g)
				body_sync_set_encode(&g->sync, o.buf);
			break;
		case REQ_CONTROLLER_ELECT_MASTER:
			g = controller_group(n->state, elect->brokerName);
			if (g)
				answer_elected(n, a, g, &o);
			break;
		case REQ_CONTROLLER_REGISTER_BROKER:
			answer_registered(n, a, &o);
			break;
		case REQ_CONTROLLER_GET_REPLICA_INFO:
			answer_replica_info(n, a, &o);
			break;
		case REQ_CONTROLLER_GET_SYNC_STATE_DATA:
			answer_replicas(n, a, &o);
			break;
		case REQ_CONTROLLER_GET_NEXT_BROKER_ID:
			frame_str(&o, "clusterName", next->clusterName);
			frame_str(&o, "brokerName", next->brokerName);
			frame_i64(&o, "nextBrokerId", controller_next_id(n->state, next->brokerName));
			break;
		case REQ_CONTROLLER_APPLY_BROKER_ID:
			frame_str(&o, "clusterName", apply->clusterName);
			frame_str(&o, "brokerName", apply->brokerName);
			break;
		}
	}
	answer_end(a, &o);
}
