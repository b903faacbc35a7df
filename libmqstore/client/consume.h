/* consume.h: a consumer and the queues it reads, as consume.c, balance.c, pull.c, offset.c and qlock.c share them.
 *
 * Five ways to consume:
 *   member     a group: heartbeats, queues shared out among the members, offsets committed
 *   group, and one queue given: that queue, whoever else reads it; offsets committed; no member
 *   broadcast  a member that reads every queue and commits nothing
 *   look only  no group: every queue, nothing committed
 *   pop        a group: messages are lent by the brokers, see pop.h
 *
 *      starting -> routes known -> (member: heartbeat answered) -> running -> leaving
 *
 * A queue (struct pull) is taken up, asks where to start, then pulls until it is dropped.  It is freed when the last answer it
 * awaits has come, which may be after its consumer is gone: then k is NULL. */
#ifndef CLIENT_CONSUME_H
#define CLIENT_CONSUME_H

#include "client.h"
#include "route.h"
#include "../codec/tag.h"

enum {
	CONSUME_WINDOW = 1000,
	CONSUME_BATCH = 32,
	CONSUME_WINDOW_MAX = 1 << 20,
	CONSUME_BATCH_MAX = 4096,
	CONSUME_COMMIT_SPAN = 4096,     /* so many settled messages are committed before it is time: a crash repeats fewer */
	PULL_SUSPEND_MS = 15000,        /* how long a broker may keep a pull; the peer's */
	PULL_TIMEOUT_MS = 30000,
	PULL_PAUSE_MS = 1000,           /* after a refusal */
	PULL_PAUSE_MIN_MS = 100,        /* after a failure, doubling up to ... */
	PULL_PAUSE_MAX_MS = 3000,
};
#define CONSUME_TOOLS_GROUP "TOOLS_CONSUMER"    /* the group that looks: every broker knows it */
#define CONSUME_RETRY_PREFIX "%%RETRY%%"        /* in a format */

/* One topic of a consumer. */
struct sub {
	struct mqclient_consumer *k;
	struct topic *topic;
	bool retry;                     /* %RETRY%group: all of it, and it may not be there yet */
	char *expr;
	bool sql;
	struct tag_set tags;            /* not sql */
	int64_t version;
	struct route_wait wait;
	bool routed;                    /* looked up once: its queues are known, or it does not exist */
	bool balanced;                  /* its share was taken up once */
	bool troubled;                  /* `trouble` was told that it has no route */
};

enum consume_phase { CONSUME_ROUTES, CONSUME_BEAT, CONSUME_RUNNING, CONSUME_LEAVING };

/* Messages handed out, in order, and what became of them. */
struct window {
	int64_t *off;                   /* ring; cap is a power of two */
	uint8_t *state;
	uint32_t head, n, cap;
	uint32_t open;                  /* not settled */
};

struct pull {
	TAILQ_ENTRY(pull) entry;        /* in k->pulls or k->gone */
	struct mqclient *c;
	struct mqclient_consumer *k;    /* NULL: the consumer is gone */
	struct sub *sub;
	struct topic *topic;
	struct broker *broker;
	struct mqclient_queue q;
	int calls;                      /* answers awaited */
	bool dropped;

	/* Where to start. */
	bool started;
	int asks;
	int ask_rc;                     /* first failure */
	struct mq_error ask_why;
	int64_t ask_stored, ask_time;   /* stored: -1 = none */

	/* Where it stands. */
	int64_t next;                   /* to pull from */
	int64_t handed;                 /* all before was handed out, or passed over */
	int64_t min_off, max_off;       /* as last heard */
	int64_t end_off;                /* stop_at_end: where; else -1 */
	bool at_end;
	uint32_t seeks;                 /* so often it was moved */

	/* Pulling. */
	bool pulling;
	bool handing;                   /* in the middle of handing out */
	struct link *link;              /* it went there */
	int64_t asked_ms, asked_off;
	bool in_hand;                   /* of a pop: messages were not settled yet when it was sent */
	int64_t from_id;                /* broker id that was suggested */
	struct client_timer pause;
	int fails;                      /* in a row */
	bool troubled;
	struct buf held;                /* messages that came while paused */
	size_t held_at;
	int64_t held_next;              /* nextBeginOffset of that answer */

	/* How far. */
	struct window window;
	int64_t stored;                 /* what the broker has; -1 = nothing */
	int64_t commit_sent;
	struct link *commit_link;
	int64_t commit_next;            /* reached this: commit without waiting for the time */
	bool committing;
	/* Ordered: see qlock.h. */
	bool locked;
	bool draining;                  /* dropped, but something that was handed out is not settled, or not committed */
	int64_t locked_ms;              /* when the lock was asked for that was granted */
	int64_t lock_asked_ms;          /* of the newest round; 0: not asked for since it was last given back */

	bool moved;                     /* the broker told us to go elsewhere: a smaller offset may be stored too */
};
TAILQ_HEAD(pull_list, pull);

struct mqclient_consumer {
	LIST_ENTRY(mqclient_consumer) entry;
	struct mqclient *c;
	char *group;                    /* NULL: look only */
	bool member;
	struct sub *subs;
	size_t nsubs;
	enum mqclient_start start;
	int64_t start_value;
	char *only_broker;              /* NULL: all queues */
	int32_t only_id;
	bool stop_at_end, sql;
	bool orderly, broadcast;
	int64_t pop_ms;                 /* pop.c: it pops, for so long; 0: it pulls */
	bool pop_order;
	struct pop_state *pop;          /* pop.c */
	int32_t window, batch;
	struct mqclient_consume_ops ops;
	void *arg;

	enum consume_phase phase;
	bool paused;
	bool ended;                     /* `ended` was told */
	bool dead;                      /* fatal trouble was told */
	struct pull_list pulls, gone;
	struct pull *last;              /* the one that was settled last */
	int64_t started_ms;

	LIST_HEAD(, round) rounds;      /* balance.c: the answers awaited in this round */
	int balancing;                  /* how many */
	bool balance_again, unbalanced;
	int64_t balanced_ms;
	LIST_HEAD(, lock_round) lock_rounds; /* qlock.c */
	int locking;                    /* answers awaited in this round */
	struct client_timer lock_timer;
	struct client_timer balance_timer;
	struct client_timer commit_timer;
	struct client_timer resume_timer;
	struct client_timer route_timer; /* look again for topics that are not there */
	struct client_timer leave_timer; /* mqclient_consumer_leave(): until when, and who is told */
	int64_t leave_until;
	void (*left)(void *arg, int rc, const struct mq_error *err);
	void *left_arg;
	int commit_rc;                  /* the last failure to store an offset */
	struct mq_error commit_why;
};

/* Tell the user.  fatal: the consumer stops. */
void consume_trouble(struct mqclient_consumer *k, const struct mq_error *e, bool fatal);
/* A broker that checks rights has refused: who wants only what is there now is told and ends, a member is told and waits until somebody
 * has mended it.  False: e is something else. */
bool consume_denied(struct mqclient_consumer *k, const struct mq_error *e);
/* stop_at_end: is this all? */
void consume_check_end(struct mqclient_consumer *k);
/* The heartbeats that were sent are answered, or were not needed. */
void consume_beat_done(struct mqclient *c);
/* The broker on this link knows us (again): its queues may be pulled. */
void consume_link_known(struct link *l);
/* The queue that the user means; NULL if it is not ours. */
struct pull *consume_find(struct mqclient_consumer *k, struct mq_str topic, const struct mqclient_queue *q);

#endif
