/* route_topics.c: the table of topics: each with its queues on one broker or more. */
#include "route_private.h"
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>

#include <stdlib.h>

#define LOG_MODULE "route"

struct route_topic *route_find_topic(const struct route_table *t, struct mq_str name)
{
	struct route_topic *found;

	HASH_FIND(hh, t->topics, name.p, name.n, found);
	return found;
}

struct route_queues *route_topic_queues(const struct route_topic *topic, const struct route_broker *b)
{
	for (size_t i = 0; topic && i < topic->n; i++)
		if (topic->queues[i].broker == b)
			return &topic->queues[i];
	return NULL;
}

void route_topic_free(struct route_table *t, struct route_topic *topic)
{
	t->changes++;
	HASH_DELETE(hh, t->topics, topic);
	free(topic->queues);
	free(topic);
}

/* Returns true if the topic is gone with its last queues. */
bool route_topic_drop(struct route_table *t, struct route_topic *topic, struct route_queues *q)
{
	t->changes++;
	*q = topic->queues[--topic->n];
	if (topic->n)
		return false;
	route_topic_free(t, topic);
	return true;
}

void route_topic_set(struct route_table *t, struct mq_str name, struct route_broker *b,
                      const struct body_queues_of *new)
{
	struct route_topic *topic = route_find_topic(t, name);
	struct route_queues *q = route_topic_queues(topic, b);

	if (!topic) {
		topic = mem_alloc(sizeof(*topic) + name.n + 1);
		memcpy(topic->name, name.p, name.n);
		HASH_ADD_KEYPTR(hh, t->topics, topic->name, name.n, topic);
		log_debug("new topic topic=%s broker=%s", topic->name, b->name);
	}
	if (!q) {
		topic->queues = mem_realloc(topic->queues, (topic->n + 1) * sizeof(*q));
		q = &topic->queues[topic->n++];
	} else if (q->read != new->read || q->write != new->write || q->perm != new->perm ||
	           q->sys_flag != new->sys_flag) {
		log_debug("topic changed topic=%s broker=%s read=%d write=%d perm=%d", topic->name, b->name, new->read,
		          new->write, new->perm);
	}
	*q = (struct route_queues){ b, new->read, new->write, new->perm, new->sys_flag, t->registrations };
}

/* Topics of b that the full registration just made did not name. */
void route_topics_sweep(struct route_table *t, struct route_broker *b)
{
	struct route_topic *topic, *next;

	HASH_ITER(hh, t->topics, topic, next) {
		struct route_queues *q = route_topic_queues(topic, b);

		if (q && q->seen != t->registrations) {
			log_info("topic deleted with the broker's registration topic=%s broker=%s", topic->name,
			         b->name);
			route_topic_drop(t, topic, q);
		}
	}
}

void route_table_add_topic(struct route_table *t, struct mq_str topic, const struct body_queues_of *q, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!route_find_broker(t, q[i].broker)) {
			log_warn("topic with a broker that is not known, ignored topic=" MQ_STR_FMT
			         " broker=" MQ_STR_FMT,
			         MQ_STR_ARG(topic), MQ_STR_ARG(q[i].broker));
			return;
		}
	for (size_t i = 0; i < n && HASH_COUNT(t->topics) < ROUTE_TOPICS_MAX; i++)
		route_topic_set(t, topic, route_find_broker(t, q[i].broker), &q[i]);
}

void route_table_delete_topic(struct route_table *t, struct mq_str name, struct mq_str cluster)
{
	struct route_topic *topic = route_find_topic(t, name);
	struct route_cluster *c;

	if (!topic)
		return;
	log_info("topic deleted topic=%s cluster=" MQ_STR_FMT, topic->name, MQ_STR_ARG(cluster));
	if (!cluster.n) {
		route_topic_free(t, topic);
		return;
	}
	c = route_find_cluster(t, cluster);
	for (size_t i = 0; c && i < c->n; i++) {
		struct route_queues *q = route_topic_queues(topic, route_find_broker(t, str_of(c->broker[i])));

		if (q && route_topic_drop(t, topic, q))
			return;
	}
}

static int change_perm(struct route_table *t, struct mq_str broker, int32_t keep, int32_t add)
{
	struct route_broker *b = route_find_broker(t, broker);
	struct route_topic *topic, *next;
	int count = 0;

	if (!b)
		return 0;
	HASH_ITER(hh, t->topics, topic, next) {
		struct route_queues *q = route_topic_queues(topic, b);

		if (q) {
			q->perm = (q->perm & keep) | add;
			count++;
		}
	}
	return count;
}

int route_table_wipe_write(struct route_table *t, struct mq_str broker)
{
	return change_perm(t, broker, ~PERM_WRITE, 0);
}

int route_table_add_write(struct route_table *t, struct mq_str broker)
{
	return change_perm(t, broker, 0, PERM_READ | PERM_WRITE);
}

void route_topics_forget(struct route_table *t, struct route_broker *b)
{
	struct route_topic *topic, *next;

	HASH_ITER(hh, t->topics, topic, next) {
		struct route_queues *q = route_topic_queues(topic, b);

		if (q)
			route_topic_drop(t, topic, q);
	}
}
