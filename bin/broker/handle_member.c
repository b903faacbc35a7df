/* handle_member.c: what replicas, controllers and administrators ask of a broker about its role. */
#include "broker.h"
#include "ha_replica.h"
#include "handle.h"
#include "member.h"
#include <base/json.h>
#include <base/log.h>
#include <base/str.h>
#include <codec/body_controller.h>

#define LOG_MODULE "member"

/* ---- 906 EXCHANGE_BROKER_HA_INFO: where does this master replicate?  Or: follow that one. ------------------------------- */

/* compat: as of what the peer's slave is told, the next answer of a name server may say something else. */
static void follow(struct req *q, const struct exchange_ha_header *h)
{
	struct broker *b = q->b;
	struct mq_error e;
	char host[ADDR_HOST_MAX], addr[ADDR_HOST_MAX + 16];
	int port, rc = 0;

	if (b->opt.member || !b->replica) {
		reply(q, RESP_NO_PERMISSION, "masterHaAddress: only a slave without a controller takes its master from this request");
		return;
	}
	if (*b->conf->haMasterAddress) {
		reply(q, RESP_NO_PERMISSION, "masterHaAddress: this slave takes its master from its key haMasterAddress=%s",
		      b->conf->haMasterAddress);
		return;
	}
	for (const struct mq_str *at = &h->masterHaAddress; at && rc == 0; at = at == &h->masterHaAddress ? &h->masterAddress : NULL) {
		snprintf(addr, sizeof addr, MQ_STR_FMT, MQ_STR_ARG(*at));
		rc = at->n ? addr_split(addr, host, &port, &e) : 0;
	}
	if (rc < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	log_info("told to follow ha=" MQ_STR_FMT " by=%s", MQ_STR_ARG(h->masterHaAddress), conn_name(q->c));
	if (HEADER_HAS(exchange_ha_header, h, masterFlushOffset) && b->conf->syncMasterFlushOffsetWhenStartup &&
	    ha_replica_master_flushed(b->replica) == 0)
		ha_replica_set_master_flushed(b->replica, h->masterFlushOffset);
	ha_replica_master(b->replica, h->masterHaAddress, h->masterAddress);
	reply(q, RESP_SUCCESS, NULL);
}

void handle_ha_info(struct req *q)
{
	const struct exchange_ha_header *h = q->h;
	struct broker *b = q->b;
	struct frame_out o;

	if (h->masterHaAddress.n) {
		follow(q, h);
		return;
	}
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	if (b->ha) {
		frame_cstr(&o, "masterHaAddress", b->ha_addr);
		frame_i64(&o, "masterFlushOffset", mqstore_log_max(b->store));
		frame_cstr(&o, "masterAddress", b->addr);
	}
	reply_end(q, &o);
}

/* ---- 908 RESET_MASTER_FLUSH_OFFSET: a number that a slave shows (907), nothing else ------------------------------------------ */

void handle_reset_flush_offset(struct req *q)
{
	const struct flush_offset_header *h = q->h;

	if (q->b->replica && HEADER_HAS(flush_offset_header, h, masterFlushOffset))
		ha_replica_set_master_flushed(q->b->replica, h->masterFlushOffset);
	reply(q, RESP_SUCCESS, NULL);
}

/* ---- 1007 GET_BROKER_EPOCH_CACHE ------------------------------------------------------------------------------------------- */

void handle_epochs(struct req *q)
{
	struct broker *b = q->b;
	const struct epoch_list *l;
	int64_t end = mqstore_log_max(b->store);
	struct frame_out o;
	struct json_out j;

	if (!b->opt.member) {
		reply(q, RESP_SYSTEM_ERROR, "this broker has no epochs: it is not under a controller (enableControllerMode=false)");
		return;
	}
	l = member_epochs(b->opt.member);
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	j = json_to(o.buf);
	json_open(&j, '{');
	json_member_i64(&j, "brokerId", member_id(b->opt.member));
	json_member_cstr(&j, "brokerName", b->conf->brokerName);
	json_member_cstr(&j, "clusterName", b->conf->brokerClusterName);
	json_key(&j, "epochList");
	json_open(&j, '[');
	for (size_t i = 0; i < l->n; i++) {
		json_open(&j, '{');
		/* compat: the last one has no end, which the peer says by the largest number. */
		json_member_i64(&j, "endOffset", i + 1 < l->n ? epoch_end(l, i, end) : INT64_MAX);
		json_member_i64(&j, "epoch", l->v[i].number);
		json_member_i64(&j, "startOffset", l->v[i].start);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_member_i64(&j, "maxOffset", end);
	json_close(&j, '}');
	reply_end(q, &o);
}

/* ---- 1008 NOTIFY_BROKER_ROLE_CHANGED ---------------------------------------------------------------------------------------- */

void handle_role_changed(struct req *q)
{
	const struct role_changed_header *h = q->h;
	struct role_master to = { .id = -1, .epoch = h->masterEpoch };
	struct body_sync_set set = { .epoch = 0 };
	struct mq_error e;

	if (!q->b->opt.member) {
		reply(q, RESP_SYSTEM_ERROR, "this broker is not under a controller (enableControllerMode=false)");
		return;
	}
	if (q->f->body.n && body_sync_set_decode(q->f->body, &set, &e) < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	if (HEADER_HAS(role_changed_header, h, masterBrokerId))
		to.id = h->masterBrokerId;
	if (HEADER_HAS(role_changed_header, h, syncStateSetEpoch))
		set.epoch = h->syncStateSetEpoch;
	snprintf(to.addr, sizeof to.addr, MQ_STR_FMT, MQ_STR_ARG(h->masterAddress));
	member_notified(q->b->opt.member, &to, &set);
	reply(q, RESP_SUCCESS, NULL);
}
