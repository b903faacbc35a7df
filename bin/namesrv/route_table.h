/* route_table.h: the name server's five tables: the queues of each topic, the addresses of each broker, the brokers of each
 * cluster, when each broker was last heard of, and its filter servers.
 *
 * Knows the rules by which registrations change them (RouteInfoManager of the peer); no network, no clock: `now_ms` is any
 * clock that only goes forward, `conn` any pointer that stands for the connection over which a broker spoke.
 * Views in answers point into the tables and are good until the next change. */
#ifndef NAMESRV_ROUTE_TABLE_H
#define NAMESRV_ROUTE_TABLE_H

#include <codec/body_register.h>
#include <codec/body_route.h>

enum {
	ROUTE_TIMEOUT_MS = 120 * 1000, /* a broker is gone after so long without a word, if it does not say otherwise */
	ROUTE_TOPICS_MAX = 2 * 1000 * 1000,
	ROUTE_BROKERS_MAX = 20 * 1000, /* names; also addresses that are alive */
	ROUTE_REPLICAS_MAX = 100,      /* addresses of one name */
};

struct route_table;
struct route_table *route_table_new(void);
void route_table_free(struct route_table *t);

/* Told when another replica of a broker has the least id now: because a new one came (offline.p == NULL), or one left
 * (ha.p == NULL).  `tell`: addresses of those who should know. */
struct route_first {
	struct mq_str broker, addr, offline, ha;
	int64_t id;
	bool acting_master;
	size_t n;
	struct mq_str *tell;
};
void route_table_on_first(struct route_table *t, void (*cb)(void *arg, const struct route_first *f), void *arg);

/* ---- Brokers ----------------------------------------------------------------------------------------------------- */

struct route_registration {
	struct mq_str cluster, name, addr, ha_addr;
	struct mq_str zone;                     /* p == NULL: none */
	int64_t id;
	int64_t timeout_ms;                     /* <= 0: ROUTE_TIMEOUT_MS */
	bool knows_acting_master;               /* a broker of version 5 */
	bool acting_master;                     /* it wants a slave to act as master */
	bool full;                              /* topics that are not in the body are gone */
	const void *conn;
	const struct body_register *body;       /* not for route_table_again() */
	uint64_t digest;                        /* of the body's bytes, so that the same body is known again */
};
struct route_master {                           /* for a slave: where its master is; p == NULL: not known */
	struct mq_str addr, ha_addr;
};
/* True if this is what the broker registered last time, and no topic or address has gone since: then it lives, and that is
 * all; the body need not be read.  Tables of many topics come from every broker every 30 s.  Else false, and nothing is done. */
bool route_table_again(struct route_table *t, const struct route_registration *r, int64_t now_ms, struct route_master *master);
/* 0: taken, or ignored because another broker with the same name and id is ahead in its state version (as the peer: both are
 * success).  MQ_EREFUSED: a few changed topics before the whole (one topic only, from a broker not known yet), or too many. */
int route_table_register(struct route_table *t, const struct route_registration *r, int64_t now_ms,
                         struct route_master *master, struct mq_error *e);
/* The broker leaves.  Ignored (false) if it has registered over another connection since: a late word of an older process. */
bool route_table_unregister(struct route_table *t, struct mq_str cluster, struct mq_str name, struct mq_str addr,
                            int64_t id, const void *conn);
/* It lives, and speaks over this connection now. */
void route_table_touch(struct route_table *t, struct mq_str cluster, struct mq_str addr, const void *conn,
                       int64_t now_ms);
/* Version of the topics that it registered last; NULL: not known. */
const struct body_version *route_table_version(const struct route_table *t, struct mq_str cluster, struct mq_str addr);
/* A connection is gone: the brokers that spoke over it leave. */
void route_table_lost(struct route_table *t, const void *conn);
/* Brokers that went silent leave; expired(arg, conn) tells over which connection each spoke. */
void route_table_scan(struct route_table *t, int64_t now_ms, void (*expired)(void *arg, const void *conn), void *arg);

/* ---- Topics ------------------------------------------------------------------------------------------------------ */

/* Add queues of a topic (217); nothing happens unless all their brokers are known. */
void route_table_add_topic(struct route_table *t, struct mq_str topic, const struct body_queues_of *q, size_t n);
void route_table_delete_topic(struct route_table *t, struct mq_str topic,
                              struct mq_str cluster); /* cluster.n == 0: everywhere */
/* Take the write permission of all topics of a broker away, or set them to read and write; returns how many. */
int route_table_wipe_write(struct route_table *t, struct mq_str broker);
int route_table_add_write(struct route_table *t, struct mq_str broker);

/* ---- Answers: free with the body_*_free() of each ---------------------------------------------------------------- */

/* MQ_ENOTFOUND: no broker serves it.  show_acting: a slave stands in for a master that is gone (supportActingMaster). */
int route_table_pick(const struct route_table *t, struct mq_str topic, bool show_acting, struct body_route *r);
void route_table_clusters(const struct route_table *t, struct body_cluster *c);
void route_table_members(const struct route_table *t, struct mq_str cluster, struct mq_str name,
                         struct body_members *m);

enum route_list { ROUTE_ALL, ROUTE_UNIT, ROUTE_UNIT_SUB, ROUTE_UNIT_SUB_NO_UNIT };
void route_table_topics(const struct route_table *t, enum route_list which, struct body_topic_list *l);
void route_table_cluster_topics(const struct route_table *t, struct mq_str cluster, struct body_topic_list *l);
void route_table_system_topics(const struct route_table *t, struct body_topic_list *l);

size_t route_table_ntopics(const struct route_table *t);
size_t route_table_nbrokers(const struct route_table *t);       /* addresses that are alive */

#endif
