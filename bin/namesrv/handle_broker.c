/* handle_broker.c: brokers come, say that they live, and go; who they are. */
#include "dispatch.h"
#include "kv_table.h"
#include "private.h"
#include "route_table.h"
#include <base/clock.h>
#include <base/crc.h>
#include <base/digest.h>
#include <base/str.h>

#include <malloc.h>

enum {
	VERSION_REGISTER_BODY = 37,     /* V3_0_11: before, the body is the table of topics alone */
	LARGE_BODY = 256 * 1024,
};

static int decode_body(const struct ns_request *q, const struct register_broker_header *h, struct body_register *r,
                       struct mq_error *e)
{
	*r = (struct body_register){ 0 };
	if (!q->f->body.n)
		return 0;
	if (q->f->version < VERSION_REGISTER_BODY)
		return body_topic_table_decode(q->f->body, &r->topics, e);
	return body_register_decode(q->f->body, h->compressed, q->f->version, r, e);
}

/* The tree of a large table is not needed for the next 30 s: give its memory back. */
static void forget_large(size_t bytes)
{
#ifdef __GLIBC__
	if (bytes >= LARGE_BODY)
		malloc_trim(0);
#endif
}

static void answer_registered(const struct ns_request *q, const struct route_master *master)
{
	struct register_broker_answer a = { .haServerAddr = master->ha_addr, .masterAddr = master->addr };
	struct frame_out o;
	struct body_kv order;

	ns_answer_body(q, &o, &register_broker_answer_desc, &a);
	if (q->ns->conf->returnOrderTopicConfigToBroker &&
	    kv_table_list(q->ns->kv, MQ_STR(KV_ORDER_NAMESPACE), &order)) {
		body_kv_encode(&order, q->out);
		body_kv_free(&order);
	}
	frame_end(&o);
}

void handle_broker_register(const struct ns_request *q)
{
	const struct register_broker_header *h = q->h;
	struct route_registration r = {
		.cluster = h->clusterName,
		.name = h->brokerName,
		.addr = h->brokerAddr,
		.ha_addr = h->haServerAddr,
		.zone = h->zoneName,
		.id = h->brokerId,
		.timeout_ms = h->heartbeatTimeoutMillis,
		.knows_acting_master = HEADER_HAS(register_broker_header, h, enableActingMaster),
		.acting_master = h->enableActingMaster,
		.full = h->fullTable || q->ns->conf->deleteTopicWithBrokerRegistration,
		.conn = q->c,
	};
	struct route_master master;
	struct body_register body;
	struct mq_error e;
	int rc;

	if (!h->brokerName.n || !h->brokerAddr.n || !h->clusterName.n) {
		ns_answer(q, RESP_SYSTEM_ERROR, "brokerName, brokerAddr or clusterName is empty");
		return;
	}
	if (h->bodyCrc32 != 0 && (uint32_t)h->bodyCrc32 != crc32_peer(q->f->body.p, q->f->body.n)) {
		ns_answer(q, RESP_SYSTEM_ERROR, "crc32 not match");
		return;
	}
	r.digest = digest_of(q->f->body.p, q->f->body.n) ^ (uint64_t)(r.full << 1 | h->compressed);
	if (route_table_again(q->ns->routes, &r, clock_mono_ms(), &master)) {
		answer_registered(q, &master);
		return;
	}
	if (decode_body(q, h, &body, &e) < 0) {
		ns_answer(q, RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	r.body = &body;
	rc = route_table_register(q->ns->routes, &r, clock_mono_ms(), &master, &e);
	body_register_free(&body);
	forget_large(q->f->body.n);
	if (rc < 0)
		ns_answer(q, RESP_SYSTEM_ERROR, "%s", e.text);
	else
		answer_registered(q, &master);
}

void handle_broker_unregister(const struct ns_request *q)
{
	const struct unregister_broker_header *h = q->h;

	route_table_unregister(q->ns->routes, h->clusterName, h->brokerName, h->brokerAddr, h->brokerId, q->c);
	ns_answer(q, RESP_SUCCESS, NULL);
}

void handle_broker_version(const struct ns_request *q)
{
	const struct data_version_header *h = q->h;
	const struct body_version *known = route_table_version(q->ns->routes, h->clusterName, h->brokerAddr);
	struct data_version_answer a = { 0 };
	struct body_version theirs;
	struct frame_out o;
	struct mq_error e;

	if (body_version_decode(q->f->body, &theirs, &e) < 0) {
		ns_answer(q, RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	route_table_touch(q->ns->routes, h->clusterName, h->brokerAddr, q->c, clock_mono_ms());
	a.changed = !known || !body_version_eq(known, &theirs);
	ns_answer_body(q, &o, &data_version_answer_desc, &a);
	if (known)
		body_version_encode(known, q->out);
	frame_end(&o);
}

void handle_broker_heartbeat(const struct ns_request *q)
{
	const struct broker_heartbeat_header *h = q->h;

	route_table_touch(q->ns->routes, h->clusterName, h->brokerAddr, q->c, clock_mono_ms());
	ns_answer(q, RESP_SUCCESS, NULL);
}

void handle_broker_members(const struct ns_request *q)
{
	const struct member_group_header *h = q->h;
	struct body_members m;
	struct frame_out o;

	route_table_members(q->ns->routes, h->clusterName, h->brokerName, &m);
	ns_answer_body(q, &o, NULL, NULL);
	body_members_encode(&m, q->out);
	frame_end(&o);
	body_members_free(&m);
}

void handle_broker_clusters(const struct ns_request *q)
{
	struct body_cluster c;
	struct frame_out o;

	route_table_clusters(q->ns->routes, &c);
	ns_answer_body(q, &o, NULL, NULL);
	body_cluster_encode(&c, q->out);
	frame_end(&o);
	body_cluster_free(&c);
}

void handle_broker_wipe_perm(const struct ns_request *q)
{
	const struct wipe_perm_header *h = q->h;
	struct wipe_perm_answer a = { .wipeTopicCount = route_table_wipe_write(q->ns->routes, h->brokerName) };

	ns_answer_fields(q, &wipe_perm_answer_desc, &a);
}

void handle_broker_add_perm(const struct ns_request *q)
{
	const struct add_perm_header *h = q->h;
	struct add_perm_answer a = { .addTopicCount = route_table_add_write(q->ns->routes, h->brokerName) };

	ns_answer_fields(q, &add_perm_answer_desc, &a);
}
