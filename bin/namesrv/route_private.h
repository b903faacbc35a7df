/* route_private.h: the tables themselves, for route_table.c (brokers), route_topics.c and route_pick.c (answers). */
#ifndef NAMESRV_ROUTE_PRIVATE_H
#define NAMESRV_ROUTE_PRIVATE_H

#include "route_table.h"
#include <uthash.h>

struct route_addr {
	int64_t id;
	char *addr;
};
struct route_broker {
	UT_hash_handle hh;
	char *name, *cluster, *zone;    /* zone NULL: none */
	bool acting_master;
	size_t naddrs;
	struct route_addr *addr;        /* by id */
};
struct route_queues {                   /* of a topic on one broker */
	struct route_broker *broker;    /* in brokers as long as this stands here */
	int32_t read, write, perm, sys_flag;
	uint32_t seen;                  /* number of the full registration that named it last */
};
struct route_topic {
	UT_hash_handle hh;
	size_t n;
	struct route_queues *queues;    /* one per broker */
	char name[];
};
struct route_cluster {
	UT_hash_handle hh;
	size_t n;
	char **broker;                  /* names */
	char name[];
};
struct route_live {
	UT_hash_handle hh;              /* key: cluster, a zero byte, address */
	int64_t last_ms, timeout_ms;
	struct body_version version;
	const void *conn;
	uint64_t digest;                /* of the last body */
	uint64_t changes;               /* as they were after it */
	char *ha_addr;
	size_t nfilters;
	char **filter;
	const char *addr;               /* in key */
	size_t key_n;
	char key[];
};
struct route_table {
	struct route_topic *topics;
	struct route_broker *brokers;
	struct route_cluster *clusters;
	struct route_live *live;
	uint32_t registrations;
	uint64_t changes;               /* topics and addresses that went or moved */
	void (*on_first)(void *arg, const struct route_first *f);
	void *on_first_arg;
};

struct route_topic *route_find_topic(const struct route_table *t, struct mq_str name);
struct route_broker *route_find_broker(const struct route_table *t, struct mq_str name);
struct route_cluster *route_find_cluster(const struct route_table *t, struct mq_str name);
struct route_live *route_find_live(const struct route_table *t, struct mq_str cluster, struct mq_str addr);
bool route_no_master(const struct route_broker *b);

struct route_queues *route_topic_queues(const struct route_topic *topic, const struct route_broker *b); /* topic may be NULL */
void route_topic_set(struct route_table *t, struct mq_str name, struct route_broker *b, const struct body_queues_of *new);
/* Returns true if the topic is gone with its last queues. */
bool route_topic_drop(struct route_table *t, struct route_topic *topic, struct route_queues *q);
void route_topic_free(struct route_table *t, struct route_topic *topic);
/* Topics of b that the full registration just made did not name; all topics of b. */
void route_topics_sweep(struct route_table *t, struct route_broker *b);
void route_topics_forget(struct route_table *t, struct route_broker *b);

#endif
