/* body_route.c: routes, clusters, members. */
#include "body_route.h"
#include "../base/str.h"

#include <stdio.h>

/* compat: Go cuts the addresses out of the text by hand: no white space, ever. */
static void addrs_put(struct json_out *o, const struct body_broker *b, bool strict)
{
	json_key(o, "brokerAddrs");
	json_open(o, '{');
	for (size_t i = 0; i < b->naddrs; i++) {
		char id[24];
		int n = snprintf(id, sizeof(id), strict ? "\"%lld\"" : "%lld", (long long)b->addr[i].id);

		json_key_raw(o, id, (size_t)n);
		json_put_str(o, b->addr[i].addr);
	}
	json_close(o, '}');
}

/* Text that may go out as ASCII only. */
static void text_put(struct json_out *o, const char *key, struct mq_str v, bool ascii)
{
	json_key(o, key);
	json_quote(o->b, v, ascii);
	o->comma = true;
}

static void broker_put(struct json_out *o, const struct body_broker *b, bool strict)
{
	json_open(o, '{');
	addrs_put(o, b, strict);
	text_put(o, "brokerName", b->name, strict);
	text_put(o, "cluster", b->cluster, strict);
	json_member_bool(o, "enableActingMaster", b->acting_master);
	if (b->zone.p)
		text_put(o, "zoneName", b->zone, strict);
	json_close(o, '}');
}

static void broker_get(struct body_keep *k, const json_t *o, struct body_broker *b)
{
	json_t *addrs = json_object_at(o, "brokerAddrs");
	struct body_broker_addr *a;
	const char *key;
	json_t *addr;
	int64_t id;

	*b = (struct body_broker){ .name = json_str(o, "brokerName"),
	                           .cluster = json_str(o, "cluster"),
	                           .zone = json_str(o, "zoneName"),
	                           .acting_master = json_bool(o, "enableActingMaster", false) };
	if (!json_object_size(addrs))
		return;
	b->addr = body_alloc(k, json_object_size(addrs) * sizeof(*b->addr));
	json_object_foreach(addrs, key, addr) {
		if (str_i64(str_of(key), &id) || !json_is_string(addr))
			continue;
		a = &b->addr[b->naddrs++];
		*a = (struct body_broker_addr){ id, json_text(addr) };
		for (; a > b->addr && a[-1].id > a->id; a--) {
			struct body_broker_addr swap = a[-1];

			a[-1] = *a;
			*a = swap;
		}
	}
}

struct mq_str body_broker_addr_of(const struct body_broker *b, int64_t id)
{
	for (size_t i = 0; i < b->naddrs; i++)
		if (b->addr[i].id == id)
			return b->addr[i].addr;
	return (struct mq_str){ NULL, 0 };
}

/* ---- TopicRouteData ---------------------------------------------------------------------------------------------- */

int body_route_decode(struct mq_str body, struct body_route *r, struct mq_error *e)
{
	json_t *brokers, *queues, *filters, *one;
	const char *key;
	size_t i;
	int rc;

	*r = (struct body_route){ 0 };
	rc = body_parse(&r->keep, body, "topic route", e);
	if (rc)
		return rc;
	r->order_conf = json_str(r->keep.json, "orderTopicConf");
	brokers = json_array_at(r->keep.json, "brokerDatas");
	queues = json_array_at(r->keep.json, "queueDatas");
	r->nbrokers = body_size(brokers);
	r->nqueues = body_size(queues);
	r->broker = body_alloc(&r->keep, r->nbrokers * sizeof(*r->broker));
	r->queue = body_alloc(&r->keep, r->nqueues * sizeof(*r->queue));
	json_array_foreach(brokers, i, one)
		broker_get(&r->keep, one, &r->broker[i]);
	json_array_foreach(queues, i, one)
		r->queue[i] = (struct body_queues_of){
			.broker = json_str(one, "brokerName"), .read = body_i32(one, "readQueueNums", 0),
			.write = body_i32(one, "writeQueueNums", 0), .perm = body_i32(one, "perm", 0),
			.sys_flag = body_i32(one, "topicSysFlag", 0),
		};
	filters = json_object_at(r->keep.json, "filterServerTable");
	r->filter = body_alloc(&r->keep, body_size(filters) * sizeof(*r->filter));
	json_object_foreach(filters, key, one) {
		struct body_filters *f = &r->filter[r->nfilters++];

		f->broker_addr = str_of(key);
		f->n = body_strings_get(&r->keep, one, &f->server);
	}
	return 0;
}

void body_route_encode(const struct body_route *r, bool strict, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "brokerDatas");
	json_open(&o, '[');
	for (size_t i = 0; i < r->nbrokers; i++)
		broker_put(&o, &r->broker[i], strict);
	json_close(&o, ']');
	json_key(&o, "filterServerTable");
	json_open(&o, '{');
	for (size_t i = 0; i < r->nfilters; i++) {
		json_key_str(&o, r->filter[i].broker_addr);
		json_open(&o, '[');
		for (size_t k = 0; k < r->filter[i].n; k++)
			json_put_str(&o, r->filter[i].server[k]);
		json_close(&o, ']');
	}
	json_close(&o, '}');
	if (r->order_conf.p)
		text_put(&o, "orderTopicConf", r->order_conf, strict);
	json_key(&o, "queueDatas");
	json_open(&o, '[');
	for (size_t i = 0; i < r->nqueues; i++) {
		const struct body_queues_of *q = &r->queue[i];

		json_open(&o, '{');
		text_put(&o, "brokerName", q->broker, strict);
		json_member_i64(&o, "perm", q->perm);
		json_member_i64(&o, "readQueueNums", q->read);
		json_member_i64(&o, "topicSysFlag", q->sys_flag);
		json_member_i64(&o, "writeQueueNums", q->write);
		json_close(&o, '}');
	}
	json_close(&o, ']');
	json_close(&o, '}');
}

void body_route_free(struct body_route *r)
{
	body_free(&r->keep);
}

/* ---- ClusterInfo ------------------------------------------------------------------------------------------------- */

int body_cluster_decode(struct mq_str body, struct body_cluster *c, struct mq_error *e)
{
	json_t *brokers, *clusters, *one;
	const char *key;
	int rc;

	*c = (struct body_cluster){ 0 };
	rc = body_parse(&c->keep, body, "cluster info", e);
	if (rc)
		return rc;
	brokers = json_object_at(c->keep.json, "brokerAddrTable");
	clusters = json_object_at(c->keep.json, "clusterAddrTable");
	c->broker = body_alloc(&c->keep, body_size(brokers) * sizeof(*c->broker));
	c->cluster = body_alloc(&c->keep, body_size(clusters) * sizeof(*c->cluster));
	json_object_foreach(brokers, key, one) {
		struct body_broker *b = &c->broker[c->nbrokers++];

		broker_get(&c->keep, one, b);
		if (!b->name.p)
			b->name = str_of(key);
	}
	json_object_foreach(clusters, key, one) {
		struct body_cluster_brokers *b = &c->cluster[c->nclusters++];

		b->cluster = str_of(key);
		b->n = body_strings_get(&c->keep, one, &b->broker);
	}
	return 0;
}

void body_cluster_encode(const struct body_cluster *c, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "brokerAddrTable");
	json_open(&o, '{');
	for (size_t i = 0; i < c->nbrokers; i++) {
		json_key_str(&o, c->broker[i].name);
		broker_put(&o, &c->broker[i], false);
	}
	json_close(&o, '}');
	json_key(&o, "clusterAddrTable");
	json_open(&o, '{');
	for (size_t i = 0; i < c->nclusters; i++) {
		json_key_str(&o, c->cluster[i].cluster);
		json_open(&o, '[');
		for (size_t k = 0; k < c->cluster[i].n; k++)
			json_put_str(&o, c->cluster[i].broker[k]);
		json_close(&o, ']');
	}
	json_close(&o, '}');
	json_close(&o, '}');
}

void body_cluster_free(struct body_cluster *c)
{
	body_free(&c->keep);
}

/* ---- BrokerMemberGroup ------------------------------------------------------------------------------------------- */

int body_members_decode(struct mq_str body, struct body_members *m, struct mq_error *e)
{
	int rc;

	*m = (struct body_members){ 0 };
	rc = body_parse(&m->keep, body, "member group", e);
	if (rc)
		return rc;
	broker_get(&m->keep, json_object_at(m->keep.json, "brokerMemberGroup"), &m->broker);
	return 0;
}

void body_members_encode(const struct body_members *m, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	json_key(&o, "brokerMemberGroup");
	json_open(&o, '{');
	addrs_put(&o, &m->broker, false);
	json_member_str(&o, "brokerName", m->broker.name);
	json_member_str(&o, "cluster", m->broker.cluster);
	json_close(&o, '}');
	json_close(&o, '}');
}

void body_members_free(struct body_members *m)
{
	body_free(&m->keep);
}
