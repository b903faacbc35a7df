/* handle_admin_group.c: settings of consumer groups, their members, and resets of their offsets. */
#include "broker.h"
#include "client_table.h"
#include "group_table.h"
#include "handle.h"
#include "hold.h"
#include "pop_hold.h"
#include "offset_table.h"
#include "topic_table.h"
#include <base/json.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_connection.h>
#include <stdlib.h>

#define LOG_MODULE "admin"

/* ---- Settings: 200, 201, 207, 352, 353 --------------------------------------------------------------------------------- */

struct group_wait {
	struct broker *b;
	struct later to;
};

static void on_saved(void *arg, int rc)
{
	struct group_wait *w = arg;
	struct req q = later_req(w->b, &w->to);

	if (rc < 0)
		reply(&q, RESP_SYSTEM_ERROR, "it holds, but cannot be kept: write '%s': %s", w->b->groups->file.path, mq_strerror(rc));
	else
		reply(&q, RESP_SUCCESS, NULL);
	later_drop(&w->to);
	free(w);
}

/* Success is told when config/subscriptionGroup.json has it. */
static void reply_when_saved(struct req *q)
{
	struct group_wait *w = mem_alloc(sizeof *w);

	w->b = q->b;
	later_take(&w->to, q);
	table_file_when_saved(&q->b->groups->file, on_saved, w);
}

void handle_create_group(struct req *q)
{
	struct body_group_one one;
	struct mq_error err;

	if (body_group_decode(q->f->body, &one, &err) < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", err.text);
		return;
	}
	int rc = group_table_set(q->b->groups, &one.group, &err);
	body_group_free(&one);
	if (rc < 0)
		reply(q, RESP_SYSTEM_ERROR, "%s", err.text);
	else
		reply_when_saved(q);
}

void handle_all_groups(struct req *q)
{
	struct buf out = { 0 };

	group_table_write(q->b->groups, &out);
	reply_buf(q, &out);
}

void handle_delete_group(struct req *q)
{
	const struct delete_group_header *h = q->h;

	if (group_is_system(h->groupName)) {
		reply(q, RESP_SYSTEM_ERROR, "group '" MQ_STR_FMT "' belongs to the system", MQ_STR_ARG(h->groupName));
		return;
	}
	group_table_delete(q->b->groups, h->groupName);
	if (h->cleanOffset)
		offset_table_drop_group(q->b->offsets, h->groupName);
	reply_when_saved(q);
}

void handle_group_config(struct req *q)
{
	const struct group_config_header *h = q->h;
	struct group *g = group_table_look(q->b->groups, h->group);
	struct buf out = { 0 };

	if (!g) {
		reply(q, RESP_SYSTEM_ERROR, "No group in this broker. group: " MQ_STR_FMT, MQ_STR_ARG(h->group));
		return;
	}
	body_group_encode(&g->conf, &out);
	reply_buf(q, &out);
}

void handle_group_forbidden(struct req *q)
{
	const struct group_forbidden_header *h = q->h;
	struct group *g = group_table_find(q->b->groups, h->group);
	struct frame_out o;
	struct json_out j;

	if (!g) {
		reply(q, RESP_SUBSCRIPTION_GROUP_NOT_EXIST, "group '" MQ_STR_FMT "' does not exist", MQ_STR_ARG(h->group));
		return;
	}
	/* Field 2 of the header's list: absent means that it is only asked for. */
	if (h->present & 1u << 2)
		group_table_forbid(q->b->groups, g, h->topic, h->readable);
	reply_begin(q, &o, RESP_SUCCESS, "");
	frame_body(&o);
	j = json_to(o.buf);
	json_open(&j, '{');
	json_member_str(&j, "group", h->group);
	json_member_bool(&j, "readable", !group_is_forbidden(g, h->topic));
	json_member_str(&j, "topic", h->topic);
	json_close(&j, '}');
	reply_end(q, &o);
}

/* ---- Members: 203, 204, 328, 345 --------------------------------------------------------------------------------------- */

/* Members as connections; names point into the group.  free() the array. */
static struct body_connection *connections(const struct client_group *g)
{
	struct body_connection *v = mem_alloc((size_t)(g->nmembers + 1) * sizeof *v);
	size_t n = 0;

	for (const struct member *m = g->members; m; m = m->next)
		v[n++] = (struct body_connection){ str_of(m->client_id), str_of(conn_name(m->c)), m->language, m->version,
			m->seen_wall_ms };
	return v;
}

void handle_consumer_connection(struct req *q)
{
	const struct consumer_connection_header *h = q->h;
	struct client_group *g = client_table_consumers(q->b->clients, h->consumerGroup);
	struct body_consumer_connection body = { .n = 0 };
	struct body_keep keep = { 0 };
	struct group_sub *s, *next;
	struct buf out = { 0 };

	if (!g || !g->nmembers) {
		reply(q, RESP_CONSUMER_NOT_ONLINE, "the consumer group[" MQ_STR_FMT "] not online", MQ_STR_ARG(h->consumerGroup));
		return;
	}
	body.type = g->type;
	body.model = g->model;
	body.from = g->from;
	body.n = (size_t)g->nmembers;
	body.connection = connections(g);
	body.sub = mem_alloc((HASH_COUNT(g->subs) + 1) * sizeof *body.sub);
	HASH_ITER(hh, g->subs, s, next) {
		sub_body(s->sub, &keep, &body.sub[body.nsubs++]);
	}
	body_consumer_connection_encode(&body, &out);
	free(body.connection);
	free(body.sub);
	body_free(&keep);
	reply_buf(q, &out);
}

void handle_producer_connection(struct req *q)
{
	const struct producer_connection_header *h = q->h;
	struct client_group *g = client_table_producers(q->b->clients, h->producerGroup);
	struct body_producer_connection body = { .n = 0 };
	struct buf out = { 0 };

	if (!g || !g->nmembers) {
		reply(q, RESP_SYSTEM_ERROR, "the producer group[" MQ_STR_FMT "] not exist", MQ_STR_ARG(h->producerGroup));
		return;
	}
	body.n = (size_t)g->nmembers;
	body.connection = connections(g);
	body_producer_connection_encode(&body, &out);
	free(body.connection);
	reply_buf(q, &out);
}

void handle_all_producers(struct req *q)
{
	struct body_producer_table body = { .n = 0 };
	struct client_group *g, *next;
	struct buf out = { 0 };

	body.group = mem_alloc((HASH_COUNT(q->b->clients->producers) + 1) * sizeof *body.group);
	HASH_ITER(hh, q->b->clients->producers, g, next) {
		body.group[body.n++] = (struct body_producer_group){ { g->name, g->name_n }, (size_t)g->nmembers, connections(g) };
	}
	body_producer_table_encode(&body, &out);
	for (size_t i = 0; i < body.n; i++)
		free(body.group[i].connection);
	free(body.group);
	reply_buf(q, &out);
}

void handle_group_subscription(struct req *q)
{
	const struct group_subscription_header *h = q->h;
	struct client_group *g = client_table_consumers(q->b->clients, h->group);
	struct sub *s = g ? client_group_sub(g, h->topic) : NULL;
	struct body_keep keep = { 0 };
	struct body_sub body;
	struct frame_out o;
	struct json_out j;

	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	j = json_to(o.buf);
	json_open(&j, '{');
	json_member_str(&j, "group", h->group);
	if (s) {
		sub_body(s, &keep, &body);
		json_key(&j, "subscriptionData");
		body_sub_put(&j, &body);
	}
	json_member_str(&j, "topic", h->topic);
	json_close(&j, '}');
	reply_end(q, &o);
	body_free(&keep);
}

/* ---- 314 CLONE_GROUP_OFFSET -------------------------------------------------------------------------------------------- */

struct clone {
	struct req *q;
	struct offsets **v;     /* collected first: a copy changes the table that is walked */
	size_t n, cap;
};

static void clone_gather(void *arg, struct offsets *o)
{
	struct clone *l = arg;

	if (!offsets_any(o))
		return;
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		l->v = mem_realloc(l->v, l->cap * sizeof *l->v);
	}
	l->v[l->n++] = o;
}

/* compat: without a topic the peer goes through the topics of the group but copies nothing; here each is copied. */
void handle_clone_offsets(struct req *q)
{
	const struct clone_offset_header *h = q->h;
	struct clone l = { .q = q };
	struct client_group *online = h->offline ? NULL : client_table_consumers(q->b->clients, h->srcGroup);

	if (str_trim(h->srcGroup).n == 0 || mq_check_group(h->destGroup, NULL) < 0) {
		reply(q, RESP_SYSTEM_ERROR, "srcGroup '" MQ_STR_FMT "', destGroup '" MQ_STR_FMT "': two names of groups are wanted",
		      MQ_STR_ARG(h->srcGroup), MQ_STR_ARG(h->destGroup));
		return;
	}
	offset_table_each(q->b->offsets, str_trim(h->topic), h->srcGroup, clone_gather, &l);
	for (size_t i = 0; i < l.n; i++) {
		struct mq_str topic = offsets_topic(l.v[i]);

		if (topic_table_find(q->b->topics, topic) && !(online && online->subs && !client_group_sub(online, topic)))
			offset_table_clone(q->b->offsets, l.v[i], h->destGroup);
	}
	log_info("offsets copied by=%s from=" MQ_STR_FMT " to=" MQ_STR_FMT " topics=%zu", conn_name(q->c), MQ_STR_ARG(h->srcGroup),
	         MQ_STR_ARG(h->destGroup), l.n);
	free(l.v);
	reply(q, RESP_SUCCESS, NULL);
}

/* ---- 222 INVOKE_BROKER_TO_RESET_OFFSET --------------------------------------------------------------------------------- */

static int64_t offset_by_time(struct req *q, struct topic *t, int32_t queue_id, int64_t ms)
{
	struct mqstore_queue *mq = topic_queue(q->b->topics, t, queue_id, false);

	if (!mq)
		return 0;
	return ms < 0 ? mqstore_queue_max(mq) : mqstore_search_time(q->b->store, mq, ms, false);
}

static void reset(struct req *q, struct topic *t, struct mq_str group, int32_t queue_id, int64_t off, struct body_reset *body)
{
	offset_table_reset(q->b->offsets, t->conf.name, group, queue_id, off);
	body->queue[body->n++] = (struct body_reset_queue){ { t->conf.name, str_of(q->b->conf->brokerName), queue_id }, off };
}

/* The broker alone resets: what is stored changes now, and the next pull of each queue, held or new, is told to go there. */
void handle_reset_offset(struct req *q)
{
	const struct reset_offset_header *h = q->h;
	struct topic *t = topic_table_find(q->b->topics, h->topic);
	struct body_reset body = { .n = 0 };
	struct buf out = { 0 };

	if (!t) {
		reply(q, RESP_TOPIC_NOT_EXIST, "Topic " MQ_STR_FMT " does not exist", MQ_STR_ARG(h->topic));
		return;
	}
	if (!group_table_look(q->b->groups, h->group)) {
		reply(q, RESP_SUBSCRIPTION_GROUP_NOT_EXIST, "Group " MQ_STR_FMT " does not exist", MQ_STR_ARG(h->group));
		return;
	}
	if (h->queueId >= t->conf.read) {
		reply(q, RESP_SYSTEM_ERROR, "queue %d: topic '%s' has %d", h->queueId, t->name, t->conf.read);
		return;
	}
	if (h->queueId >= 0 && h->offset != -1) {
		struct mqstore_queue *mq = topic_queue(q->b->topics, t, h->queueId, false);
		int64_t min = mq ? mqstore_queue_min(mq) : 0, max = mq ? mqstore_queue_max(mq) : 0;

		if (h->offset < min || h->offset > max + 1) {
			reply(q, RESP_SYSTEM_ERROR, "Target offset %lld not in consume queue range [%lld-%lld]", (long long)h->offset,
			      (long long)min, (long long)max);
			return;
		}
	}
	body.queue = mem_alloc((size_t)(t->conf.read + 1) * sizeof *body.queue);
	if (h->queueId >= 0)
		reset(q, t, h->group, h->queueId, h->offset != -1 ? h->offset : offset_by_time(q, t, h->queueId, h->timestamp), &body);
	for (int32_t i = 0; h->queueId < 0 && i < t->conf.read; i++)
		reset(q, t, h->group, i, offset_by_time(q, t, i, h->timestamp), &body);
	log_info("offsets reset by=%s topic=%s group=" MQ_STR_FMT " queues=%zu timestamp=%lld", conn_name(q->c), t->name,
	         MQ_STR_ARG(h->group), body.n, (long long)h->timestamp);
	body_reset_encode(&body, &out);
	free(body.queue);
	reply_buf(q, &out);
	hold_wake_topic(q->b->hold, t, h->group);
	pop_hold_wake(q->b->pops, t, h->group);
}
