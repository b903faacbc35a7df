/* ha_replica_private.h: one connection to a master, between ha_replica.c (its life), ha_hello.c (the greeting under a controller),
 * ha_take.c (blocks that come), ha_cut.c (what is given up) and ha_where.c (where a master replicates). */
#ifndef BROKER_HA_REPLICA_PRIVATE_H
#define BROKER_HA_REPLICA_PRIVATE_H

#include "broker.h"
#include "ha_feed.h"
#include "ha_replica.h"
#include "ha_switch_role.h"
#include <base/buf.h>
#include <net/stream.h>

enum {
	HA_GREETING = 16,       /* bytes of a slave's greeting under a controller */
	HA_RETRY_MS = 1000,     /* after a connection that ended or could not be made */
};

struct ha_agree;
struct ha_prove;
struct ha_sync;
struct ha_where;

struct ha_replica {
	struct broker *b;
	struct ha_follower f;
	struct ha_sync *sync;
	struct ha_agree *agree;
	struct stream *s;
	struct ha_prove *prove; /* s is its own until the master has proved the secret */
	char ha_addr[300], addr[300];
	uv_timer_t tick;
	bool stopped;

	uint8_t head[HA_SWITCH_HEAD];
	size_t head_size;       /* HA_HEAD, or HA_SWITCH_HEAD under a controller */
	size_t head_n;
	int64_t body;           /* bytes of the block that are to come */
	uint8_t report[HA_GREETING];
	size_t report_n;        /* bytes that it has */
	size_t report_left;     /* bytes of it that the socket did not take yet */

	int64_t cut_end, cut_last; /* CUTTING */

	/* Under a controller. */
	struct buf hello;       /* the answer to our handshake, so far */
	struct epoch_list theirs;
	int64_t their_end;
	bool heard;             /* theirs and their_end are what this master said */
	bool asking;            /* where the master replicates */
	struct ha_where *where;    /* the question that is on its way */
	unsigned asked;         /* answers to older questions do not count */
	int64_t ask_ms;         /* not before */
	int64_t bytes, bytes_before, speed, speed_ms;
	int64_t read_ms, write_ms; /* wall */
	int64_t queues;         /* as of the last copy of the tables */
	int64_t master_flushed; /* as somebody said */
	int64_t master_max;     /* as of the last agreement, or the last byte */
	char trouble[400];      /* why it does not follow, as last said */
	int64_t said_ms;
};

/* ha_replica.c */
void ha_replica_agreed(struct ha_replica *r);   /* the logs agree: follow */
void ha_replica_act(struct ha_replica *r);      /* what is to be done now */
void ha_replica_say(struct ha_replica *r, const char *why);
void ha_replica_hang_up(struct ha_replica *r);
void ha_replica_lost(struct ha_replica *r, const char *why, int64_t rest_ms);   /* why NULL: nothing to be said */
void ha_replica_send(struct ha_replica *r);     /* what is left of r->report */

/* ha_hello.c */
void ha_hello_send(struct ha_replica *r);
void ha_hello_read(struct ha_replica *r);
void ha_hello_decide(struct ha_replica *r);     /* both lists are known: follow, cut, or stay out */

/* ha_take.c */
void ha_take_read(struct ha_replica *r);

/* ha_cut.c */
void ha_cut_run(struct ha_replica *r);          /* CUTTING: r->cut_end and cut_last say to where */
int64_t ha_cut_last_before(struct ha_replica *r, int64_t end);  /* the newest record that begins before `end`; -1: none */

/* ha_where.c */
void ha_where_ask(struct ha_replica *r);        /* if it is to be asked now */
void ha_where_forget(struct ha_replica *r);     /* answers to what was asked do not count */
void ha_where_free(struct ha_replica *r);

#endif
