/* handle_admin_stats.c: what administrators ask of topics and groups: offsets, progress, who consumes what. */
#include "broker.h"
#include "client_table.h"
#include "cold.h"
#include "delay.h"
#include "group_table.h"
#include "handle.h"
#include "offset_table.h"
#include "rates.h"
#include "topic_table.h"
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_stats.h>
#include <codec/receipt.h>
#include <stdlib.h>
#include <string.h>

static int64_t at_least_0(int64_t v) { return v > 0 ? v : 0; }

/* ---- 202 GET_TOPIC_STATS_INFO ------------------------------------------------------------------------------------------ */

void handle_topic_stats(struct req *q)
{
	const struct topic_stats_header *h = q->h;
	struct topic *t = topic_table_find(q->b->topics, h->topic);
	struct body_topic_stats body = { .n = 0 };
	struct buf out = { 0 };

	if (!t) {
		reply(q, RESP_TOPIC_NOT_EXIST, "topic[" MQ_STR_FMT "] not exist", MQ_STR_ARG(h->topic));
		return;
	}
	body.n = (size_t)at_least_0(t->conf.write);
	body.queue = mem_alloc((body.n + 1) * sizeof *body.queue);
	cold_begin(q);
	for (size_t i = 0; i < body.n; i++) {
		struct body_queue_stats *s = &body.queue[i];
		struct mqstore_queue *mq = topic_queue(q->b->topics, t, (int32_t)i, false);

		s->queue = (struct body_queue){ t->conf.name, str_of(q->b->conf->brokerName), (int32_t)i };
		if (!mq)
			continue;
		s->min_off = at_least_0(mqstore_queue_min(mq));
		s->max_off = at_least_0(mqstore_queue_max(mq));
		if (s->max_off > s->min_off)
			s->last_ms = at_least_0(mqstore_time_at(q->b->store, mq, s->max_off - 1));
	}
	if (cold_waits(q)) {
		free(body.queue);
		return;
	}
	body_topic_stats_encode(&body, &out);
	free(body.queue);
	reply_buf(q, &out);
}

/* ---- 208 GET_CONSUME_STATS --------------------------------------------------------------------------------------------- */

struct progress {
	struct req *q;
	struct client_group *online;
	struct mq_str group;
	struct body_consume_stats body;
	size_t cap;
};

/* What the group has given up is of no interest while it is there to say what it wants. */
static bool gave_up(struct client_group *online, struct mq_str topic)
{
	struct mq_str normal = online ? receipt_normal_topic(topic, (struct mq_str){ online->name, online->name_n }) : topic;

	/* A retry topic of pops belongs to the topic that is popped. */
	return online && online->subs && !client_group_sub(online, topic) && !(normal.n && client_group_sub(online, normal));
}

static void add_queues(struct progress *p, struct topic *t, int32_t queues)
{
	struct broker *b = p->q->b;
	struct offsets *o = offset_table_find(b->offsets, t->conf.name, p->group);
	struct body_broker_stats got;

	for (int32_t i = 0; i < queues; i++) {
		struct mqstore_queue *mq = topic_queue(b->topics, t, i, false);
		int64_t off = o && i < o->n ? o->slot[i].stored : -1, pulled = o && i < o->n ? o->slot[i].pulled : -1;
		struct body_queue_progress *row;

		if (p->body.n == p->cap) {
			p->cap = p->cap ? p->cap * 2 : 16;
			p->body.queue = mem_realloc(p->body.queue, p->cap * sizeof *p->body.queue);
		}
		row = &p->body.queue[p->body.n++];
		*row = (struct body_queue_progress){ { t->conf.name, str_of(b->conf->brokerName), i }, 0, at_least_0(off), 0, 0 };
		row->broker_off = mq ? at_least_0(mqstore_queue_max(mq)) : 0;
		row->pull_off = pulled > row->consumer_off ? pulled : row->consumer_off;
		if (o && i < o->n && o->slot[i].inflight) /* popped, not acked: this many are under way, wherever they lie */
			row->pull_off = row->consumer_off + o->slot[i].inflight;
		if (mq && row->consumer_off > 0)
			row->last_ms = at_least_0(mqstore_time_at(b->store, mq, row->consumer_off - 1));
	}
	if (o && tally_view(&o->got, false, &got))
		p->body.tps += got.minute.tps;
}

static void add_topic(struct progress *p, struct mq_str topic)
{
	struct topic *t = topic_table_find(p->q->b->topics, topic);

	if (t && !gave_up(p->online, topic))
		add_queues(p, t, t->conf.read);
}

static void add_offsets(void *arg, struct offsets *o)
{
	if (offsets_any(o))
		add_topic(arg, offsets_topic(o));
}

void handle_consume_stats(struct req *q)
{
	const struct consume_stats_header *h = q->h;
	struct progress p = { .q = q, .group = h->consumerGroup };
	struct buf out = { 0 };

	p.online = client_table_consumers(q->b->clients, h->consumerGroup);
	cold_begin(q);
	if (h->topic.n)
		add_topic(&p, h->topic);
	else
		offset_table_each(q->b->offsets, (struct mq_str){ 0 }, h->consumerGroup, add_offsets, &p);
	if (cold_waits(q)) {
		free(p.body.queue);
		return;
	}
	body_consume_stats_encode(&p.body, &out);
	free(p.body.queue);
	reply_buf(q, &out);
}

/* ---- 317 GET_BROKER_CONSUME_STATS -------------------------------------------------------------------------------------- */

struct all_offsets {
	struct offsets **v;
	size_t n, cap;
};

static void gather(void *arg, struct offsets *o)
{
	struct all_offsets *l = arg;

	if (!offsets_any(o))
		return;
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		l->v = mem_realloc(l->v, l->cap * sizeof *l->v);
	}
	l->v[l->n++] = o;
}

static int by_group(const void *x, const void *y)
{
	const struct offsets *a = *(struct offsets *const *)x, *b = *(struct offsets *const *)y;
	int c = strcmp(offsets_group(a).p, offsets_group(b).p);

	return c ? c : strcmp(a->name, b->name);
}

/* The progress of one group in each of its topics.  Returns how many topics. */
static size_t group_progress(struct req *q, struct offsets **v, size_t n, bool order_only, struct body_broker_progress *body,
                             struct body_consume_stats *out)
{
	struct client_group *online = client_table_consumers(q->b->clients, offsets_group(v[0]));
	size_t made = 0;

	for (size_t i = 0; i < n; i++) {
		struct progress p = { .q = q, .online = online, .group = offsets_group(v[i]) };
		struct topic *t = topic_table_find(q->b->topics, offsets_topic(v[i]));

		if (!t || (order_only && !t->conf.order) || gave_up(online, t->conf.name))
			continue;
		add_queues(&p, t, t->conf.write);
		for (size_t k = 0; k < p.body.n; k++) {
			body->total_diff += p.body.queue[k].broker_off - p.body.queue[k].consumer_off;
			body->total_inflight_diff += p.body.queue[k].pull_off - p.body.queue[k].consumer_off;
		}
		out[made++] = p.body;
	}
	return made;
}

void handle_broker_progress(struct req *q)
{
	const struct broker_consume_stats_header *h = q->h;
	struct body_broker_progress body = { .broker_addr = str_of(q->b->addr) };
	struct all_offsets all = { .n = 0 };
	struct body_consume_stats *stats;
	struct buf out = { 0 };
	size_t used = 0;

	offset_table_each(q->b->offsets, (struct mq_str){ 0 }, (struct mq_str){ 0 }, gather, &all);
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_group);
	stats = mem_alloc((all.n + 1) * sizeof *stats);
	body.group = mem_alloc((all.n + 1) * sizeof *body.group);
	for (size_t i = 0, end; i < all.n; i = end) {
		struct mq_str group = offsets_group(all.v[i]);
		struct body_group_progress *g = &body.group[body.n];

		for (end = i + 1; end < all.n && str_eq(offsets_group(all.v[end]), group);)
			end++;
		if (!group_table_look(q->b->groups, group))
			continue;
		*g = (struct body_group_progress){ group, 0, stats + used };
		g->n = group_progress(q, all.v + i, end - i, h->isOrder, &body, stats + used);
		used += g->n;
		body.n++;
	}
	body_broker_progress_encode(&body, &out);
	for (size_t i = 0; i < used; i++)
		free(stats[i].queue);
	free(stats);
	free(body.group);
	free(all.v);
	reply_buf(q, &out);
}

/* ---- 315 VIEW_BROKER_STATS_DATA ---------------------------------------------------------------------------------------- */

/* The tally that is meant by a name and a key, or NULL: "TOPIC_PUT_NUMS" and a topic, "GROUP_GET_NUMS" and topic@group,
 * "BROKER_PUT_NUMS" and the cluster. */
static const struct tally *tally_of(struct broker *b, struct mq_str name, struct mq_str key)
{
	const char *at = key.n ? memrchr(key.p, '@', key.n) : NULL;

	if (str_starts(name, "TOPIC_PUT_")) {
		struct topic *t = topic_table_find(b->topics, key);

		return t ? &t->put : NULL;
	}
	if (str_starts(name, "GROUP_GET_") && at) {
		struct mq_str topic = { key.p, (size_t)(at - key.p) }, group = { at + 1, key.n - topic.n - 1 };
		struct offsets *o = offset_table_find(b->offsets, topic, group);

		return o ? &o->got : NULL;
	}
	if ((str_starts(name, "BROKER_PUT_") || str_starts(name, "BROKER_GET_")) && str_is(key, b->conf->brokerClusterName))
		return rates_tally(b->rates, str_starts(name, "BROKER_PUT_"));
	return NULL;
}

void handle_stats_data(struct req *q)
{
	static const char *const names[] = {
		"TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE", "GROUP_GET_NUMS", "GROUP_GET_SIZE", "BROKER_PUT_NUMS", "BROKER_GET_NUMS",
	};
	const struct broker_stats_header *h = q->h;
	const struct tally *t = NULL;
	struct body_broker_stats body;
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof names / sizeof names[0] && !t; i++)
		if (str_is(h->statsName, names[i]))
			t = tally_of(q->b, h->statsName, h->statsKey);
	if (!t || !tally_view(t, h->statsName.p[h->statsName.n - 4] == 'S', &body)) {
		reply(q, RESP_SYSTEM_ERROR, "The stats <" MQ_STR_FMT "> <" MQ_STR_FMT "> not exist", MQ_STR_ARG(h->statsName),
		      MQ_STR_ARG(h->statsKey));
		return;
	}
	body_broker_stats_encode(&body, &out);
	reply_buf(q, &out);
}

/* ---- Names: 300 QUERY_TOPIC_CONSUME_BY_WHO, 343 QUERY_TOPICS_BY_CONSUMER, 305 GET_SYSTEM_TOPIC_LIST_FROM_BROKER --------- */

struct names {
	struct mq_str *v;
	size_t n, cap;
	bool groups;            /* of each entry of the offset table: the group, else the topic */
};

static void add_name(struct names *l, struct mq_str name)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i], name))
			return;
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		l->v = mem_realloc(l->v, l->cap * sizeof *l->v);
	}
	l->v[l->n++] = name;
}

static void add_entry(void *arg, struct offsets *o)
{
	struct names *l = arg;

	if (offsets_any(o))
		add_name(l, l->groups ? offsets_group(o) : offsets_topic(o));
}

void handle_topic_groups(struct req *q)
{
	const struct topic_groups_header *h = q->h;
	struct names l = { .groups = true };
	struct body_group_list body = { .n = 0 };
	struct client_group *g, *next;
	struct buf out = { 0 };

	HASH_ITER(hh, q->b->clients->consumers, g, next) {
		if (client_group_sub(g, h->topic))
			add_name(&l, (struct mq_str){ g->name, g->name_n });
	}
	offset_table_each(q->b->offsets, h->topic, (struct mq_str){ 0 }, add_entry, &l);
	body.n = l.n;
	body.group = l.v;
	body_group_list_encode(&body, &out);
	free(l.v);
	reply_buf(q, &out);
}

void handle_group_topics(struct req *q)
{
	const struct group_topics_header *h = q->h;
	struct names l = { 0 };
	struct body_topic_list body = { .broker_addr = str_of(q->b->addr) };
	struct buf out = { 0 };

	offset_table_each(q->b->offsets, (struct mq_str){ 0 }, h->group, add_entry, &l);
	body.n = l.n;
	body.topic = l.v;
	body_topic_list_encode(&body, &out);
	free(l.v);
	reply_buf(q, &out);
}

void handle_system_topics(struct req *q)
{
	struct names l = { 0 };
	struct body_topic_list body = { .n = 0 };
	struct topic *t, *next;
	struct buf out = { 0 };

	HASH_ITER(hh, q->b->topics->all, t, next) {
		if (t->system)
			add_name(&l, t->conf.name);
	}
	body.n = l.n;
	body.topic = l.v;
	body_topic_list_encode(&body, &out);
	free(l.v);
	reply_buf(q, &out);
}

/* ---- 43 GET_ALL_CONSUMER_OFFSET, 45 GET_ALL_DELAY_OFFSET --------------------------------------------------------------- */

void handle_all_offsets(struct req *q)
{
	struct buf out = { 0 };

	offset_table_write(q->b->offsets, &out);
	reply_buf(q, &out);
}

void handle_all_delay_offsets(struct req *q)
{
	struct buf out = { 0 };

	delay_write(q->b->delay, &out);
	reply_buf(q, &out);
}
