/* handle_admin_stats.c: what administrators ask of topics and groups: offsets, progress, who consumes what. */
#include "broker.h"
#include "client_table.h"
#include "delay.h"
#include "group_table.h"
#include "handle.h"
#include "offset_table.h"
#include "rates.h"
#include "topic_table.h"
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_stats.h>

static int64_t at_least_0(int64_t v) { return v > 0 ? v : 0; }

static void reply_buf(struct req *q, struct buf *b)
{
	reply_body(q, buf_view(b));
	buf_free(b);
}

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

static void add_topic(struct progress *p, struct mq_str topic)
{
	struct broker *b = p->q->b;
	struct topic *t = topic_table_find(b->topics, topic);

	/* What the group has given up is of no interest while it is there to say what it wants. */
	if (!t || (p->online && p->online->subs && !client_group_sub(p->online, topic)))
		return;
	for (int32_t i = 0; i < t->conf.read; i++) {
		struct mqstore_queue *mq = topic_queue(b->topics, t, i, false);
		struct offsets *o = offset_table_find(b->offsets, topic, p->group);
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
		if (mq && row->consumer_off > 0)
			row->last_ms = at_least_0(mqstore_time_at(b->store, mq, row->consumer_off - 1));
	}
	p->body.tps += rates_consume(b->rates, topic, p->group);
}

static void add_offsets(void *arg, struct offsets *o) { add_topic(arg, offsets_topic(o)); }

void handle_consume_stats(struct req *q)
{
	const struct consume_stats_header *h = q->h;
	struct progress p = { .q = q, .group = h->consumerGroup };
	struct buf out = { 0 };

	p.online = client_table_consumers(q->b->clients, h->consumerGroup);
	if (h->topic.n)
		add_topic(&p, h->topic);
	else
		offset_table_each(q->b->offsets, (struct mq_str){ 0 }, h->consumerGroup, add_offsets, &p);
	body_consume_stats_encode(&p.body, &out);
	free(p.body.queue);
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
