/* route_pick.c: what the tables say: routes, clusters, members, lists of topics. */
#include "route_private.h"
#include <base/str.h>

/* ---- Routes ------------------------------------------------------------------------------------------------------ */

static void broker_of(struct body_keep *k, const struct route_broker *from, struct body_broker *to)
{
	*to = (struct body_broker){ .name = str_of(from->name),
	                            .cluster = str_of(from->cluster),
	                            .zone = str_of(from->zone),
	                            .acting_master = from->acting_master,
	                            .naddrs = from->naddrs };
	to->addr = body_alloc(k, from->naddrs * sizeof(*to->addr));
	for (size_t i = 0; i < from->naddrs; i++)
		to->addr[i] = (struct body_broker_addr){ from->addr[i].id, str_of(from->addr[i].addr) };
}

/* Topics of this name are how replicas find each other: they must see who is really there. */
#define SYNC_MEMBER_PREFIX "rmq_sys_SYNC_BROKER_MEMBER_"

/* A slave without master, whose queues can only be read, is shown under the master's id. */
static void stand_in(const struct route_queues *q, struct body_broker *b)
{
	if (b->naddrs && b->addr[0].id != 0 && b->acting_master && !(q->perm & PERM_WRITE))
		b->addr[0].id = 0;
}

static void filters_of(const struct route_table *t, const struct route_broker *b, struct body_route *r)
{
	for (size_t i = 0; i < b->naddrs; i++) {
		const struct route_live *l = route_find_live(t, str_of(b->cluster), str_of(b->addr[i].addr));
		struct body_filters *f = &r->filter[r->nfilters];

		if (!l || !l->nfilters)
			continue;
		*f = (struct body_filters){ str_of(l->addr), l->nfilters,
		                            body_alloc(&r->keep, l->nfilters * sizeof(*f->server)) };
		for (size_t k = 0; k < l->nfilters; k++)
			f->server[k] = str_of(l->filter[k]);
		r->nfilters++;
	}
}

int route_table_pick(const struct route_table *t, struct mq_str name, bool show_acting, struct body_route *r)
{
	const struct route_topic *topic = route_find_topic(t, name);
	size_t addrs = 0;

	*r = (struct body_route){ 0 };
	if (!topic)
		return MQ_ENOTFOUND;
	show_acting = show_acting && !str_starts(name, SYNC_MEMBER_PREFIX);
	for (size_t i = 0; i < topic->n; i++)
		addrs += topic->queues[i].broker->naddrs;
	r->broker = body_alloc(&r->keep, topic->n * sizeof(*r->broker));
	r->queue = body_alloc(&r->keep, topic->n * sizeof(*r->queue));
	r->filter = body_alloc(&r->keep, addrs * sizeof(*r->filter));
	for (size_t i = 0; i < topic->n; i++) {
		const struct route_queues *q = &topic->queues[i];
		struct body_broker *b = &r->broker[r->nbrokers++];

		broker_of(&r->keep, q->broker, b);
		filters_of(t, q->broker, r);
		if (show_acting)
			stand_in(q, b);
		r->queue[r->nqueues++] = (struct body_queues_of){ b->name, q->read, q->write, q->perm, q->sys_flag };
	}
	return 0;
}

/* ---- Brokers and clusters ---------------------------------------------------------------------------------------- */

void route_table_clusters(const struct route_table *t, struct body_cluster *c)
{
	const struct route_broker *b;
	const struct route_cluster *from;

	*c = (struct body_cluster){ 0 };
	c->broker = body_alloc(&c->keep, HASH_COUNT(t->brokers) * sizeof(*c->broker));
	c->cluster = body_alloc(&c->keep, HASH_COUNT(t->clusters) * sizeof(*c->cluster));
	for (b = t->brokers; b; b = b->hh.next)
		broker_of(&c->keep, b, &c->broker[c->nbrokers++]);
	for (from = t->clusters; from; from = from->hh.next) {
		struct body_cluster_brokers *to = &c->cluster[c->nclusters++];

		*to = (struct body_cluster_brokers){ str_of(from->name), from->n,
		                                     body_alloc(&c->keep, from->n * sizeof(*to->broker)) };
		for (size_t i = 0; i < from->n; i++)
			to->broker[i] = str_of(from->broker[i]);
	}
}

void route_table_members(const struct route_table *t, struct mq_str cluster, struct mq_str name, struct body_members *m)
{
	const struct route_broker *b = route_find_broker(t, name);

	*m = (struct body_members){ 0 };
	if (b)
		broker_of(&m->keep, b, &m->broker);
	m->broker.name = name;
	m->broker.cluster = cluster;
}

/* ---- Lists of topics --------------------------------------------------------------------------------------------- */

static void list_begin(struct body_topic_list *l, size_t most)
{
	*l = (struct body_topic_list){ 0 };
	l->topic = body_alloc(&l->keep, most * sizeof(*l->topic));
}

static bool wanted(const struct route_topic *topic, enum route_list which)
{
	/* compat: the flags of any one broker's queues. */
	int32_t flag = topic->queues[0].sys_flag;

	switch (which) {
	case ROUTE_ALL:
		return true;
	case ROUTE_UNIT:
		return flag & TOPIC_UNIT;
	case ROUTE_UNIT_SUB:
		return flag & TOPIC_UNIT_SUB;
	case ROUTE_UNIT_SUB_NO_UNIT:
		return (flag & TOPIC_UNIT_SUB) && !(flag & TOPIC_UNIT);
	}
	return false;
}

void route_table_topics(const struct route_table *t, enum route_list which, struct body_topic_list *l)
{
	list_begin(l, HASH_COUNT(t->topics));
	for (const struct route_topic *topic = t->topics; topic; topic = topic->hh.next)
		if (wanted(topic, which))
			l->topic[l->n++] = str_of(topic->name);
}

static bool has_broker(const struct route_cluster *c, const struct route_topic *topic)
{
	for (size_t i = 0; i < topic->n; i++)
		for (size_t k = 0; k < c->n; k++)
			if (strcmp(topic->queues[i].broker->name, c->broker[k]) == 0)
				return true;
	return false;
}

void route_table_cluster_topics(const struct route_table *t, struct mq_str cluster, struct body_topic_list *l)
{
	const struct route_cluster *c = route_find_cluster(t, cluster);

	list_begin(l, c ? HASH_COUNT(t->topics) : 0);
	for (const struct route_topic *topic = c ? t->topics : NULL; topic; topic = topic->hh.next)
		if (has_broker(c, topic))
			l->topic[l->n++] = str_of(topic->name);
}

static void list_add(struct body_topic_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_is(l->topic[i], name))
			return;
	l->topic[l->n++] = str_of(name);
}

/* compat: the names of clusters and brokers are topics too; the rest the caller asks of the broker that is named. */
void route_table_system_topics(const struct route_table *t, struct body_topic_list *l)
{
	size_t most = 0;

	for (const struct route_cluster *c = t->clusters; c; c = c->hh.next)
		most += 1 + c->n;
	list_begin(l, most);
	for (const struct route_cluster *c = t->clusters; c; c = c->hh.next) {
		list_add(l, c->name);
		for (size_t i = 0; i < c->n; i++)
			list_add(l, c->broker[i]);
	}
	for (const struct route_broker *b = t->brokers; b; b = b->hh.next)
		if (b->naddrs) {
			l->broker_addr = str_of(b->addr[0].addr);
			break;
		}
}
