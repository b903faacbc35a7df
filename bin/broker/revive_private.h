/* revive_private.h: what waits to be acked, as revive.c (storing, bringing back, life) and revive_log.c (reading the log) share it. */
#ifndef BROKER_REVIVE_PRIVATE_H
#define BROKER_REVIVE_PRIVATE_H

#include "hash.h"
#include "hold.h"
#include "revive.h"
#include <base/heap.h>
#include <uv.h>

#define PROP_DELIVER "TIMER_DELIVER_MS"

struct log_queue;

/* A check-point, or acks of one that is still to come (n < 0). */
struct point {
	UT_hash_handle hh;                      /* by key */
	struct point *prev, *next;              /* of the log queue, by off */
	struct log_queue *queue;
	struct heap_node due;                   /* wall ms */
	int64_t off;                            /* in the log queue */
	int64_t start, pop_ms;
	int32_t queue_id, n;
	uint32_t acked;
	int64_t *early;                         /* offsets acked before it came */
	size_t nearly;
	uint16_t topic_n, group_n, key_n;
	int32_t *diff;                          /* behind the key */
	char key[];                             /* topic@group@queue@start@popTime */
};

struct log_queue {
	struct mqstore_queue *q;
	struct hold_watch watch;
	struct revive *r;
	int64_t next;                           /* to read */
	int64_t kept;                           /* stored offset of the group */
	struct point *points;
	int32_t id;
};

struct revive {
	struct broker *b;
	struct topic *topic;                    /* a reference */
	struct log_queue *queue;
	int32_t nqueues;
	uint32_t turn;
	struct point *points;                   /* uthash */
	struct heap due;
	uv_timer_t timer;
	struct buf key, body[2], props[2];      /* of what is being stored */
	bool news;                              /* records arrived */
	bool stopped;
	char trouble[200];                      /* why messages are not revived, as last said in the log */
};

static inline struct mq_str point_topic(const struct point *p) { return (struct mq_str){ p->key, p->topic_n }; }
static inline struct mq_str point_group(const struct point *p) { return (struct mq_str){ p->key + p->topic_n + 1, p->group_n }; }

/* The key of a point; good until the next one is made. */
struct mq_str revive_log_key(struct revive *r, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t start, int64_t pop_ms);
struct point *revive_log_find(struct revive *r, struct mq_str key);
void revive_log_drop(struct revive *r, struct point *p);
/* Which of the point's messages has this offset; -1: none. */
int revive_log_index(const struct point *p, int64_t off);
/* It is acked.  True if it was not yet. */
bool revive_log_mark(struct point *p, int64_t off);
bool revive_log_read_at(struct revive *r, struct mqstore_queue *q, int64_t off, struct mq_message *m);
/* What has come to the log queue. */
void revive_log_read(struct revive *r, struct log_queue *lq);

#endif
