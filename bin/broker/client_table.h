/* client_table.h: who is connected: members of consumer groups with their subscriptions, and of producer groups.
 *
 * A member is a connection.  It comes with its first heartbeat and goes with UNREGISTER_CLIENT, the end of its connection, or
 * channelExpiredTimeout without heartbeat.  When members or topics of a group change, its members get NOTIFY_CONSUMER_IDS_CHANGED:
 * at once for the first change, then at most every NOTICE_GAP_MS however many changes there are. */
#ifndef BROKER_CLIENT_TABLE_H
#define BROKER_CLIENT_TABLE_H

#include "hash.h"
#include "sub.h"
#include <base/heap.h>
#include <net/conn.h>

struct broker;
struct hold_pull;
struct pop_waiter;

enum { NOTICE_GAP_MS = 500 };

/* One subscription of a group. */
struct group_sub {
	UT_hash_handle hh;              /* by topic */
	struct sub *sub;
};

struct client_group;

/* A connection in a group. */
struct member {
	struct member *next, *prev;             /* in the group */
	struct member *conn_next, *conn_prev;   /* of the connection */
	UT_hash_handle by_id;                   /* a producer: the latest with this client id, if hashed */
	bool hashed;
	struct client_group *group;
	struct conn *c;                         /* borrowed: the member goes before it */
	char *client_id;
	uint8_t language;                       /* frame.h code */
	int32_t version;
	int64_t seen_ms;                        /* monotonic: last heartbeat */
	int64_t seen_wall_ms;
};

struct client_group {
	UT_hash_handle hh;
	bool producer;
	enum body_consume_type type;
	enum body_model model;
	enum body_from from;
	struct member *members;
	int nmembers;
	struct group_sub *subs;                 /* uthash; consumers */
	struct sub *inline_sub;                 /* of the last pull that carried its own */
	struct heap_node notice;                /* due time of the next notice, if one is wanted */
	int64_t last_notice_ms;
	uint32_t name_n;
	char name[];                            /* NUL-terminated */
};

/* What hangs on a connection: conn_public(c)->user. */
struct channel {
	struct member *members;
	struct hold_pull *pulls;                /* of hold.c */
	struct pop_waiter *pops;                /* of pop_hold.c */
};

struct client_table {
	struct broker *b;
	struct client_group *consumers, *producers;     /* uthash */
	struct member *producer_ids;                    /* uthash, by client id */
	struct heap notices;
	uv_timer_t notice_timer, scan_timer;
	int closed;                     /* of the timers */
};

struct client_table *client_table_new(struct broker *b);
void client_table_stop(struct client_table *t);
void client_table_free(struct client_table *t);         /* all connections are gone; ends with the next turns of the loop */

void client_table_opened(struct client_table *t, struct conn *c);       /* makes its channel */
void client_table_closed(struct client_table *t, struct conn *c);       /* drops its members and its channel */

struct client_group *client_table_consumers(struct client_table *t, struct mq_str group);       /* NULL: nobody */
struct client_group *client_table_producers(struct client_table *t, struct mq_str group);
struct sub *client_group_sub(struct client_group *g, struct mq_str topic);                      /* borrowed; NULL */
/* Any member with this client id (the latest), or NULL. */
struct member *client_group_member(struct client_group *g, struct mq_str client_id);

/* A member of any group of producers with this client id, on the connection that came last; NULL: none. */
struct member *client_table_producer(struct client_table *t, struct mq_str client_id);

/* A heartbeat.  *changed: a member or a topic came or went.  0, or MQ_EINVAL with the reason. */
int client_table_heartbeat(struct client_table *t, struct conn *c, uint8_t language, int32_t version,
                           const struct body_heartbeat *h, bool *changed, struct mq_error *e);
void client_table_unregister(struct client_table *t, struct conn *c, struct mq_str producer_group, struct mq_str consumer_group);

#endif
