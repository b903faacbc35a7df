/* body_route.h: which brokers and queues a topic has (105), which brokers a cluster has (106), a broker's replicas (901).
 * Source: the peer's TopicRouteData. */
#ifndef CODEC_BODY_ROUTE_H
#define CODEC_BODY_ROUTE_H

#include "body.h"

struct body_broker_addr {
	int64_t id;                     /* 0 = master */
	struct mq_str addr;             /* "ip:port" */
};

struct body_broker {
	struct mq_str name, cluster;
	struct mq_str zone;             /* p == NULL: none */
	bool acting_master;             /* enableActingMaster */
	size_t naddrs;
	struct body_broker_addr *addr;
};

struct body_queues_of {                 /* QueueData: the queues of a topic on one broker */
	struct mq_str broker;
	int32_t read, write, perm, sys_flag;
};

struct body_filters {                   /* filter servers of one broker: a thing of the past */
	struct mq_str broker_addr;
	size_t n;
	struct mq_str *server;
};

struct body_route {
	struct body_keep keep;
	struct mq_str order_conf;       /* "broker:queues;..."; p == NULL: none */
	size_t nbrokers, nqueues, nfilters;
	struct body_broker *broker;
	struct body_queues_of *queue;
	struct body_filters *filter;
};
int body_route_decode(struct mq_str body, struct body_route *r, struct mq_error *e);
/* strict: ids as quoted keys, beyond ASCII escaped (peers from 4.9.4); else bare ids as fastjson writes them.  Never a space. */
void body_route_encode(const struct body_route *r, bool strict, struct buf *out);
void body_route_free(struct body_route *r);
/* Address of the broker with this id; p == NULL: none. */
struct mq_str body_broker_addr_of(const struct body_broker *b, int64_t id);

/* ClusterInfo. */
struct body_cluster_brokers {
	struct mq_str cluster;
	size_t n;
	struct mq_str *broker;          /* names */
};
struct body_cluster {
	struct body_keep keep;
	size_t nbrokers, nclusters;
	struct body_broker *broker;
	struct body_cluster_brokers *cluster;
};
int body_cluster_decode(struct mq_str body, struct body_cluster *c, struct mq_error *e);
void body_cluster_encode(const struct body_cluster *c, struct buf *out);        /* bare ids always */
void body_cluster_free(struct body_cluster *c);

/* BrokerMemberGroup in its answer: {"brokerMemberGroup":{...}}. */
struct body_members {
	struct body_keep keep;
	struct body_broker broker;      /* name, cluster, addresses */
};
int body_members_decode(struct mq_str body, struct body_members *m, struct mq_error *e);
void body_members_encode(const struct body_members *m, struct buf *out);
void body_members_free(struct body_members *m);

#endif
