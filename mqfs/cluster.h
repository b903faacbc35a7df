/* cluster.h: what is known of the cluster: brokers, topics, routes; asked when it is older than a second, and used while name servers
 * are away.
 *
 * All functions that return a code run in a task and may wait.  They return 0 or -errno; what is handed out is good until the task
 * parks again, unless it says otherwise. */
#ifndef MQFS_CLUSTER_H
#define MQFS_CLUSTER_H

#include "names.h"

#include <mqclient.h>
#include <uv.h>

#define CLUSTER_CACHE_MS 1000

int cluster_open(const char *addr, uv_loop_t *loop, struct mq_error *err);
struct mqclient *cluster_client(void);
void cluster_close(int timeout_ms);

struct cluster_broker {
	char *cluster, *name, *addr;
	int64_t id;                     /* 0 = master */
};
struct cluster_brokers {
	struct cluster_broker *v;
	size_t n;
};

/* Every broker, by cluster, name and id. */
int cluster_brokers(const struct cluster_brokers **out);
/* Address of a broker, its master if id is 0; copied. */
int cluster_addr(const char *broker, int64_t id, char out[300]);
/* Addresses of all masters (or of who is there in their place); a copy that the caller frees, addresses and all. */
int cluster_masters(char ***addrs, size_t *n);
void cluster_masters_free(char **addrs, size_t n);

/* Names of all topics, sorted; names_free(). */
int cluster_topics(struct names *out);
/* 0 or -ENOENT: by the names, or else by asking for the route. */
int cluster_has_topic(const char *topic);

struct cluster_route_queue {
	char broker[256];
	char addr[300];
	int32_t read, write, perm;
};
/* Who serves a topic, by broker name; a copy that the caller frees with free(). */
int cluster_route(const char *topic, struct cluster_route_queue **out, size_t *n);
/* The route itself, as JSON text that the caller frees. */
int cluster_route_text(const char *topic, char **out);
/* A topic or a group was made or deleted: what is known is asked again. */
void cluster_changed(void);
/* Age in ms of what is known of brokers, -1 = nothing. */
int64_t cluster_age_ms(void);

#endif
