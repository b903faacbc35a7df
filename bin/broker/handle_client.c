/* handle_client.c: heartbeats and what follows from them. */
#include "broker.h"
#include "client_table.h"
#include "group_table.h"
#include "handle.h"
#include "topic_table.h"
#include <base/log.h>
#include <base/str.h>

#define LOG_MODULE "client"

/* ---- 34 HEART_BEAT ------------------------------------------------------------------------------------------------------- */

/* The group's settings and its retry topic come into being with its first heartbeat: tools look for that topic's route first.
 * False: the group is not served. */
static bool admit(struct req *q, const struct body_consumer *d)
{
	struct broker *b = q->b;
	struct group *g;
	char name[300];

	if (d->type == CONSUME_ACTIVELY && b->conf->rejectPullConsumerEnable)
		return false;
	g = group_table_find(b->groups, d->group);
	if (!g) {
		log_warn("heartbeat for a group that is not served name=%s client=%s", str_show(d->group, name, sizeof name),
			 conn_name(q->c));
		return false;
	}
	topic_table_of_group(b->topics, TOPIC_RETRY_PREFIX, d->group, g->conf.retry_queues);
	return true;
}

void handle_heartbeat(struct req *q)
{
	struct body_heartbeat h;
	struct frame_out o;
	struct mq_error e;
	size_t n = 0;
	bool changed;
	int rc;

	q->b->metrics.heartbeats++;
	if (body_heartbeat_decode(q->f->body, &h, &e) < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	if (!h.client_id.n) {
		reply(q, RESP_SYSTEM_ERROR, "heartbeat without clientID");
		goto out;
	}
	for (size_t i = 0; i < h.nconsumers; i++)
		if (admit(q, &h.consumer[i]))
			h.consumer[n++] = h.consumer[i];
	h.nconsumers = n;
	for (size_t i = n = 0; i < h.nproducers; i++)
		if (mq_check_group(h.producer[i], NULL) == 0)
			h.producer[n++] = h.producer[i];
	h.nproducers = n;
	rc = client_table_heartbeat(q->b->clients, q->c, q->f->language, q->f->version, &h, &changed, &e);
	if (rc < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
		goto out;
	}
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_bool(&o, "IS_SUPPORT_HEART_BEAT_V2", true);
	frame_bool(&o, "IS_SUB_CHANGE", h.fingerprint == 0 || !h.without_sub || changed); /* version 1: always true */
	reply_end(q, &o);
out:
	body_heartbeat_free(&h);
}

/* ---- 35, 38, 46 ---------------------------------------------------------------------------------------------------------- */

void handle_unregister_client(struct req *q)
{
	const struct unregister_client_header *h = q->h;

	client_table_unregister(q->b->clients, q->c, h->producerGroup, h->consumerGroup);
	reply(q, RESP_SUCCESS, NULL);
}

void handle_consumer_list(struct req *q)
{
	const struct consumer_list_header *h = q->h;
	struct client_group *g = client_table_consumers(q->b->clients, h->consumerGroup);
	struct body_consumer_list list = { 0 };
	struct frame_out o;
	struct member *m;

	if (!g) {
		reply(q, RESP_SYSTEM_ERROR, "no consumer for this group, " MQ_STR_FMT, MQ_STR_ARG(h->consumerGroup));
		return;
	}
	list.id = body_alloc(&list.keep, g->nmembers * sizeof *list.id);
	for (m = g->members; m; m = m->next) {
		bool again = false; /* a client that came anew, and whose old connection is not yet known to be gone */

		for (size_t i = 0; i < list.n && !again; i++)
			again = str_is(list.id[i], m->client_id);
		if (!again)
			list.id[list.n++] = str_of(m->client_id);
	}
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	body_consumer_list_encode(&list, o.buf);
	reply_end(q, &o);
	body_free(&list.keep);
}

void handle_check_client(struct req *q)
{
	struct body_client_check check;
	struct mq_error e;
	struct sub *s;

	if (body_client_check_decode(q->f->body, &check, &e) < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	if (!sub_is_tag(check.sub.type) && !q->b->conf->enablePropertyFilter)
		reply(q, RESP_SYSTEM_ERROR, "The broker does not support consumer to filter message by " MQ_STR_FMT,
		      MQ_STR_ARG(check.sub.type));
	else if (sub_from_body(&s, &check.sub, &e) < 0)
		reply(q, RESP_SUBSCRIPTION_PARSE_FAILED, "%s", e.text);
	else {
		if (s->why)
			reply(q, RESP_SUBSCRIPTION_PARSE_FAILED, "%s", s->why);
		else
			reply(q, RESP_SUCCESS, NULL);
		sub_put(s);
	}
	body_client_check_free(&check);
}
