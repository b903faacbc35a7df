/* handle_route.c: which brokers serve a topic, and which topics there are. */
#include "dispatch.h"
#include "kv_table.h"
#include "private.h"
#include <base/clock.h>
#include <base/str.h>

#include <strings.h>

enum { VERSION_STRICT_JSON = 401 };     /* V4_9_4: clients from here on are sent strict JSON */

/* compat (ZoneRouteRPCHook): a client that keeps to its zone sees the brokers of it, and those whose master is gone. */
static void keep_zone(struct body_route *r, struct mq_str zone)
{
	size_t kept = 0, queues = 0;

	for (size_t i = 0; i < r->nbrokers; i++) {
		const struct body_broker *b = &r->broker[i];
		bool keep = !body_broker_addr_of(b, 0).p ||
		            (b->zone.n == zone.n && strncasecmp(b->zone.p, zone.p, zone.n) == 0);

		if (!keep) {
			for (size_t k = 0; k < r->nfilters; k++)
				for (size_t a = 0; a < b->naddrs; a++)
					if (str_eq(r->filter[k].broker_addr, b->addr[a].addr)) {
						r->filter[k--] = r->filter[--r->nfilters];
						break;
					}
			continue;
		}
		/* Brokers and queues stand in the same order: one of each per broker. */
		r->queue[queues++] = r->queue[i];
		r->broker[kept++] = *b;
	}
	r->nbrokers = kept;
	r->nqueues = queues;
}

void handle_route_get(const struct ns_request *q)
{
	const struct namesrv_conf *conf = q->ns->conf;
	const struct route_header *h = q->h;
	struct frame_out o;
	struct body_route r;
	bool strict = q->f->version >= VERSION_STRICT_JSON || h->acceptStandardJsonOnly;

	if (conf->needWaitForService && clock_mono_ms() - q->ns->start_ms < conf->waitSecondsForService * 1000LL) {
		ns_answer(q, RESP_SYSTEM_ERROR, "name server not ready");
		return;
	}
	if (route_table_pick(q->ns->routes, h->topic, conf->supportActingMaster, &r) < 0) {
		ns_answer(q, RESP_TOPIC_NOT_EXIST, "No topic route info in name server for the topic: " MQ_STR_FMT RESPONSE_FAQ,
		          MQ_STR_ARG(h->topic));
		return;
	}
	if (conf->orderMessageEnable)
		r.order_conf = kv_table_get(q->ns->kv, MQ_STR(KV_ORDER_NAMESPACE), h->topic);
	if (h->zoneMode && h->zoneName.n) {
		keep_zone(&r, h->zoneName);
		strict = false;         /* compat: the peer writes such an answer anew, in its own dialect */
	}
	ns_answer_body(q, &o, NULL, NULL);
	body_route_encode(&r, strict, q->out);
	frame_end(&o);
	body_route_free(&r);
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

static void answer_list(const struct ns_request *q, struct body_topic_list *l)
{
	struct frame_out o;

	ns_answer_body(q, &o, NULL, NULL);
	body_topic_list_encode(l, q->out);
	frame_end(&o);
	body_topic_list_free(l);
}

static bool enabled(const struct ns_request *q, bool flag)
{
	if (!flag)
		ns_answer(q, RESP_SYSTEM_ERROR, "disable");
	return flag;
}

void handle_route_all_topics(const struct ns_request *q)
{
	struct body_topic_list l;

	if (!enabled(q, q->ns->conf->enableAllTopicList))
		return;
	route_table_topics(q->ns->routes, ROUTE_ALL, &l);
	answer_list(q, &l);
}

void handle_route_cluster_topics(const struct ns_request *q)
{
	const struct cluster_topics_header *h = q->h;
	struct body_topic_list l;

	if (!enabled(q, q->ns->conf->enableTopicList))
		return;
	route_table_cluster_topics(q->ns->routes, h->cluster, &l);
	answer_list(q, &l);
}

void handle_route_system_topics(const struct ns_request *q)
{
	struct body_topic_list l;

	route_table_system_topics(q->ns->routes, &l);
	answer_list(q, &l);
}

void handle_route_unit_topics(const struct ns_request *q)
{
	enum route_list which = q->f->code == REQ_GET_UNIT_TOPIC_LIST           ? ROUTE_UNIT :
	                        q->f->code == REQ_GET_HAS_UNIT_SUB_TOPIC_LIST ? ROUTE_UNIT_SUB :
	                                                                        ROUTE_UNIT_SUB_NO_UNIT;
	struct body_topic_list l;

	if (!enabled(q, q->ns->conf->enableTopicList))
		return;
	route_table_topics(q->ns->routes, which, &l);
	answer_list(q, &l);
}

/* ---- Changes ----------------------------------------------------------------------------------------------------- */

void handle_route_delete(const struct ns_request *q)
{
	const struct delete_route_header *h = q->h;

	route_table_delete_topic(q->ns->routes, h->topic, h->clusterName);
	ns_answer(q, RESP_SUCCESS, NULL);
}

void handle_route_register(const struct ns_request *q)
{
	const struct register_topic_header *h = q->h;
	struct body_route r;
	struct mq_error e;

	if (q->f->body.n) {
		if (body_route_decode(q->f->body, &r, &e) < 0) {
			ns_answer(q, RESP_SYSTEM_ERROR, "%s", e.text);
			return;
		}
		route_table_add_topic(q->ns->routes, h->topic, r.queue, r.nqueues);
		body_route_free(&r);
	}
	ns_answer(q, RESP_SUCCESS, NULL);
}
