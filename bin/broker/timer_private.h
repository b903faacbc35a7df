/* timer_private.h: the timers, as timer.c (life, putting off), timer_turn.c (taking in and delivering), timer_found.c (what was done
 * before a kill) and timer_count.c (how many wait, by topic) share them. */
#ifndef BROKER_TIMER_PRIVATE_H
#define BROKER_TIMER_PRIVATE_H

#include "timer.h"
#include "waiting.h"
#include <codec/body.h>
#include <codec/property.h>
#include <store/wheel.h>

#define PROP_TIMER_OUT_MS "TIMER_OUT_MS"
#define PROP_TIMER_DELIVER_MS "TIMER_DELIVER_MS"
#define PROP_TIMER_DELAY_SEC "TIMER_DELAY_SEC"
#define PROP_TIMER_DELAY_MS "TIMER_DELAY_MS"
#define PROP_TIMER_ENQUEUE_MS "TIMER_ENQUEUE_MS"
#define PROP_TIMER_DEQUEUE_MS "TIMER_DEQUEUE_MS"
#define PROP_TIMER_ROLL_TIMES "TIMER_ROLL_TIMES"
#define PROP_TIMER_DELETE "TIMER_DEL_UNIQKEY"

/* A step that is over and is being delivered. */
struct timer_slot {
	bool active;
	bool collecting;        /* its chain is still followed back */
	int64_t ms;
	int64_t head;           /* unit that was its last when it was begun */
	int64_t stop;           /* units up to here were delivered in an earlier pass; -1 */
	int64_t at;             /* collecting: next unit to look at */
	int64_t *unit;          /* places of its messages, the newest first */
	size_t n, cap;          /* those to deliver yet */
	struct timer_cancel *cancel; /* uthash */
	int64_t log_off;        /* end of the log when it was begun */
};

/* Some messages that were delivered, or rolled on, before the start: how often by their mark. */
struct timer_found {
	UT_hash_handle hh;
	uint64_t mark;
	int32_t n;
};

struct timer {
	struct broker *b;
	bool off;               /* timerWheelEnable=false: nothing below is there */
	struct wheel *wheel;
	struct mqstore_queue *queue; /* NULL: never used */
	int64_t step, window;   /* ms */
	int64_t next;           /* offset in the queue of the next message to take in */
	int64_t read_ms;        /* next step to deliver */
	int64_t soonest;        /* first step that is not empty; INT64_MAX: none */
	struct timer_slot slot;

	uv_timer_t turn, save;
	int closed;
	int64_t armed;          /* monotonic ms; INT64_MAX: not set */
	int32_t retry_ms;       /* the last try to store failed */
	char trouble[200];      /* as last said in the log */
	bool stopped;

	/* Of a start that was not clean. */
	struct timer_found *found; /* uthash */
	uint8_t found_key[16];
	int64_t found_from;     /* in the log */
	int64_t found_queue, found_ms; /* they count for messages before this offset, and for steps before this */
	int64_t redo_queue, redo_ms; /* the wheel is made again: of messages before this offset, those due before are done with */

	struct wheel_flush *flush; /* noted, waiting for the log or under way */
	bool flushing;
	int64_t flush_end;      /* of the log, when it was noted */
	int64_t saved_next, saved_ms; /* as last noted; monotonic */
	bool delivered;         /* since then */
	uv_work_t work;

	struct waiting counts;  /* by topic */
	struct buf props;       /* of one record */
};

/* A message of the queue by its record; false: it cannot be read, or is none. */
bool timer_read(struct timer *t, int64_t log_off, struct mq_message *m);

/* timer_turn.c */
void timer_arm(struct timer *t);
void timer_slot_free(struct timer_slot *s);

/* timer_found.c */
int timer_find_done(struct timer *t, bool checked, struct mq_error *e);
/* Was m delivered, or rolled on (roll), before the start?  Says so once for each time. */
bool timer_was_done(struct timer *t, const struct mq_message *m, bool roll);
void timer_found_free(struct timer *t);

/* timer_count.c */
int timer_counts_open(struct timer *t, bool trust, struct mq_error *e);
void timer_count_lost(struct timer *t, int32_t topic_hash);

#endif
