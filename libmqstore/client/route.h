/* route.h: topics, their queues, and the brokers that have them.
 *
 * Brokers and topics live as long as the client; what is known of them is replaced when a name server says otherwise.  A topic
 * in use is asked for every 30 s, and at once when a broker failed or refused. */
#ifndef CLIENT_ROUTE_H
#define CLIENT_ROUTE_H

#include "client.h"

enum {
	ROUTE_AGAIN_MS = 1000,          /* after a failure, ask no more often than this */
	ROUTE_QUEUES_MAX = 65536,       /* per topic: bounds what a wrong answer can cost */
	ROUTE_DEFAULT_QUEUES = 4,       /* defaultTopicQueueNums of a topic that a send creates */
	ROUTE_AVOID_MS = 1000,          /* a broker that failed is passed over this long, doubling up to ... */
	ROUTE_AVOID_MAX_MS = 30000,
};
#define ROUTE_TEMPLATE "TBW102"

struct broker_addr {
	int64_t id;                     /* 0 = master */
	struct link *link;
};
struct broker {
	char *name;
	struct mqclient *c;
	struct broker_addr *addr;       /* sorted by id */
	size_t naddrs;
	int64_t seen_ms;                /* a route last named it */
	int64_t avoid_until;
	int fails;
	UT_hash_handle hh;
};
/* The link to broker id, else to the master, else to any; NULL if no address is known. */
struct link *broker_link(const struct broker *b, int64_t id);
struct link *broker_master(const struct broker *b);     /* NULL if there is none */
/* The broker with this name; one that no route named yet has no addresses. */
struct broker *broker_get(struct mqclient *c, struct mq_str name);
void broker_failed(struct broker *b);
void broker_worked(struct broker *b);

struct route_queue {
	struct broker *broker;
	int32_t id;
};

/* Somebody who waits for a route.  rc 0: there is one now. */
struct route_wait {
	TAILQ_ENTRY(route_wait) entry;
	void (*cb)(struct route_wait *w, int rc, const struct mq_error *e);
	bool for_write;                 /* a topic that nobody has gets the queues of TBW102 */
	bool on;
	uint64_t seq;
};

struct topic {
	char *name;
	size_t name_n;
	struct mqclient *c;
	bool known;                     /* read and write are from a name server */
	bool made_up;                   /* from TBW102: a send will create it */
	bool asking;
	bool used;                      /* by a send since the last look */
	bool stale;                     /* no longer refreshed because nobody used it */
	int subscribed;                 /* by so many consumers */
	struct route_queue *write, *read; /* sorted by broker name, then id */
	size_t nwrite, nread;
	struct broker *masterless;      /* its queues would be in write, but it has no master now: one will be elected; or NULL */
	uint32_t next;                  /* round robin */
	int64_t asked_ms;
	struct client_timer refresh;
	TAILQ_HEAD(, route_wait) waits;
	uint64_t wait_seq;
	struct mq_error why;            /* of the last failure */
	UT_hash_handle hh;
};

struct topic *route_topic(struct mqclient *c, struct mq_str name);
/* Ask now, unless it was just done. */
void route_refresh(struct topic *t);
/* Call w->cb with the next answer; asks if nobody did.  Set w->cb and w->for_write before. */
void route_wait(struct topic *t, struct route_wait *w);
/* The same for who was answered already and hopes for another answer: asks no more often than route_refresh(). */
void route_wait_again(struct topic *t, struct route_wait *w);
void route_unwait(struct topic *t, struct route_wait *w);
/* Everybody who waits is told MQ_ECANCELLED. */
void route_cancel_all(struct mqclient *c);
void route_free_all(struct mqclient *c);

#endif
