/* timer.h: messages for a given time (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS), any time up to timerMaxDelaySec.
 *
 * Such a message waits in queue 0 of rmq_sys_wheel_timer.  From there it is taken into the timer wheel (store/wheel.h), by the begin of
 * the step of time (timerPrecisionMs) in which it is due; when that step is over a copy of it goes where it was sent to: never
 * early, and at most a step late.  One that is due beyond the window of the wheel (timerRollWindowSlot) is looked at again earlier, and
 * then put into the queue once more.  A message with TIMER_DEL_UNIQKEY cancels those of the same step with that UNIQ_KEY.
 *
 * The wheel and how far it has come are saved every timerFlushIntervalMs, when the log is on the disk up to there.  What was delivered
 * since is found in the log at the start: after a kill nothing comes twice, and nothing is missing.
 *
 * A message from a client: timer_asked(); if it waits, timer_props() into its properties in place of TIMER_PROPS, timer_queue() as its
 * queue, mqstore_append(), timer_stored().  One of our own (a check-point of a pop): timer_put(). */
#ifndef BROKER_TIMER_H
#define BROKER_TIMER_H

#include <base/buf.h>
#include <mqstore.h>

struct broker;
struct timer;
struct wheel_unit;

#define TOPIC_TIMER "rmq_sys_wheel_timer"

/* Open the files and go back to the last save; delivery begins with the loop's next turn.  *t NULL on failure. */
int timer_open(struct timer **t, struct broker *b, struct mq_error *e);
void timer_stop(struct timer *t);       /* nothing is delivered any more */
bool timer_idle(const struct timer *t); /* no save is under way */
int timer_save(struct timer *t, struct mq_error *e); /* after the last flush, when idle */
void timer_free(struct timer *t);       /* ends with the next turns of the loop */

/* ---- Putting off --------------------------------------------------------------------------------------------------------- */

enum timer_answer {
	TIMER_NONE,             /* it is for now: an ordinary message */
	TIMER_WAITS,
	TIMER_ILLEGAL,          /* no number, beyond timerMaxDelaySec, or it would cancel one of the past */
	TIMER_CONGESTED,        /* timerCongestNumEachSlot */
	TIMER_OFF,              /* timerWheelEnable=false */
};
/* What a message with these properties, and without DELAY, wants.  TIMER_WAITS: *due_ms is for timer_props(). */
enum timer_answer timer_asked(struct timer *t, struct mq_str props, int64_t *due_ms);
/* Why not, in the peer's words: code and remark of the answer. */
int32_t timer_refusal(const struct timer *t, enum timer_answer a, char *remark, size_t cap);

/* What timer_props() writes or the broker adds later: to be left out of what is copied from the client.  For property_copy_without(). */
#define TIMER_PROPS "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", PROP_REAL_TOPIC, PROP_REAL_QID
void timer_props(struct buf *out, int64_t due_ms, struct mq_str topic, int32_t queue_id);
struct mqstore_queue *timer_queue(struct timer *t);
/* n messages were appended there. */
void timer_stored(struct timer *t, size_t n);

/* Append record r so that it comes to a queue of a topic at deliver_ms (wall time): at once if that is past; r->queue is not looked at,
 * r->props[0] and [1] are its properties.  As mqstore_append(); MQ_EUNSUPPORTED when timerWheelEnable=false. */
int timer_put(struct timer *t, const struct mqstore_record *r, struct mq_str topic, int32_t queue_id, int64_t deliver_ms,
              struct mqstore_place *place, struct mq_error *e);

/* For a send's answer: by this handle a client of 5.3 can take it back (370).  Its length; 0: it would not fit. */
enum { TIMER_HANDLE_MAX = 1400 };
size_t timer_recall_handle(struct broker *b, struct mq_str topic, int64_t due_ms, struct mq_str uniq_key, char *out, size_t cap);

/* ---- Looking at ------------------------------------------------------------------------------------------------------------ */

/* Take in and deliver what there is to do now, as the clock does; for when wall time has jumped. */
void timer_run(struct timer *t);

struct timer_stat {
	int64_t read_ms;        /* steps before this are done with */
	int64_t behind;         /* messages of the queue that are not in the wheel yet */
	int64_t pending;        /* in the wheel, less cancellations */
};
void timer_stat(struct timer *t, struct timer_stat *st);
/* Wall time, not after now: whatever was to be delivered at this time or before is with its topic, or was dropped. */
int64_t timer_done_ms(struct timer *t);
/* Pending timers of a topic. */
int64_t timer_count(const struct timer *t, struct mq_str topic);
void timer_write_check(struct timer *t, struct buf *out);       /* 56 bytes: 60 */
void timer_write_counts(struct timer *t, struct buf *out);      /* {"dataVersion","timingCount"}: 61 */
/* As wheel_each(), of all that is not done with. */
int timer_each(struct timer *t, int64_t from_ms, int64_t before, int (*cb)(void *arg, const struct wheel_unit *u), void *arg);

#endif
