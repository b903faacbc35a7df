/* wheel.h: the files of the timers: which messages of rmq_sys_wheel_timer wait, and for when.
 *
 *	timerwheel	a slot for each moment (mqstore(5)): the last unit of its chain in the timer log
 *	timerlog/	units in order of arrival: a message by its log offset, and the unit before it in the same slot
 *	config/timercheck	how far all has come
 *
 * The wheel is kept in memory and changes on the disk with wheel_flush_ only: first the timer log, then the slots, then the
 * check-point, so that what a check-point says was there when it was noted.  Opening goes back to the last check-point: units behind
 * it are cut off, and the caller takes their messages in again, from check.master_off on.  Files come into being with the first unit.
 *
 * Knows no clock and no message: who puts units in and takes them out is the broker (timer.c), or who lists them (timers.c).
 * Functions return 0 or a negative code. */
#ifndef STORE_WHEEL_H
#define STORE_WHEEL_H

#include <mq.h>

struct wheel;

/* Magic of a unit: the first, with others. */
enum { WHEEL_NORMAL = 1, WHEEL_ROLL = 2, WHEEL_DELETE = 4 };

struct wheel_unit {
	int64_t pos;            /* in the timer log */
	int64_t prev;           /* of the same slot, -1 = none */
	int32_t magic;
	int64_t write_ms;       /* when it was put in, in whole steps */
	int64_t due_ms;
	int64_t log_off;        /* of the message's record */
	int32_t size;
	int32_t topic_hash;     /* Java hash of REAL_TOPIC */
};

struct wheel_slot {
	int64_t ms;
	int64_t first, last;    /* units */
	int32_t num;            /* messages less cancellations */
};

/* The file timercheck. */
struct wheel_check {
	int64_t read_ms;        /* slots before this are done with */
	int64_t flush_pos;      /* end of the timer log */
	int64_t queue_off;      /* messages of the queue before this are in the timer log, or were delivered */
	int64_t master_off;     /* the same on the master; on a master the same number */
	int64_t state_version, stamp_ms, counter; /* data version */
	/* Ours, which the peer neither reads nor writes: good only while the peer has not written since. */
	bool ours;
	bool clean;             /* written at an orderly stop */
	int64_t log_off;        /* what was delivered of slots from read_ms on lies in the log behind this */
};
enum { WHEEL_CHECK_BYTES = 56 }; /* of it, as it is told to slaves */
void wheel_check_put(const struct wheel_check *c, uint8_t out[WHEEL_CHECK_BYTES]);
void wheel_check_take(struct wheel_check *c, const uint8_t in[WHEEL_CHECK_BYTES]);

/* Steps that there are: the next lower one, as the peer takes it. */
int32_t wheel_precision(int32_t ms);

struct wheel_opt {
	const char *dir;            /* root of the store; borrowed during open */
	int32_t precision_ms;       /* from wheel_precision(); 0: find out (read-only) */
	int64_t log_file_bytes;     /* [mappedFileSizeTimerLog]; files that are there keep their size */
	int64_t log_max;            /* end of the commit log: units beyond it have lost their message */
	bool read_only;             /* changes nothing; recovers in memory */
	/* Queue offset of the message of a unit, or -1 if it cannot be read. */
	int64_t (*queue_off)(void *arg, const struct wheel_unit *u);
	void *arg;
};

enum wheel_state {
	WHEEL_NEW,              /* there was nothing */
	WHEEL_WHOLE,
	WHEEL_LOST,             /* the timer log is missing, or was made with another step: nothing of it can be used, and all messages
	                         * of the queue are to be taken in again */
};

int wheel_open(struct wheel **w, const struct wheel_opt *o, struct mq_error *err);
void wheel_close(struct wheel *w);      /* writes nothing */
enum wheel_state wheel_state(const struct wheel *w);
int32_t wheel_step(const struct wheel *w);
/* As read from the file; the caller keeps read_ms, queue_off, master_off, the data version and log_off true. */
struct wheel_check *wheel_check(struct wheel *w);
/* Units that were cut off at open because their messages are no longer in the log. */
int64_t wheel_cut(const struct wheel *w);

/* Put one in: u->pos and u->prev are filled in.  MQ_EFULL and -errno: nothing has changed. */
int wheel_add(struct wheel *w, struct wheel_unit *u, struct mq_error *err);
bool wheel_slot(const struct wheel *w, int64_t ms, struct wheel_slot *s);
/* Make it empty: for a moment that comes a second time. */
void wheel_empty(struct wheel *w, int64_t ms);
/* First slot at or behind `from` that is not empty, before `to`; -1: none. */
int64_t wheel_next(const struct wheel *w, int64_t from, int64_t to);
/* MQ_ENOTFOUND: no unit is there. */
int wheel_read(struct wheel *w, int64_t pos, struct wheel_unit *u);
/* Sum of num over the slots from `from` on. */
int64_t wheel_pending(const struct wheel *w, int64_t from);
/* Remove files of the timer log whose messages all lie before log_min. */
int wheel_drop(struct wheel *w, int64_t log_min, struct mq_error *err);
bool wheel_dirty(const struct wheel *w);

/* The units of slots from ms on, slot by slot, in a slot the newest first; `before`: of the first slot only units before this place
 * (INT64_MAX: all).  Stops when cb returns non-zero and returns that. */
typedef int wheel_unit_cb(void *arg, const struct wheel_unit *u);
int wheel_each(struct wheel *w, int64_t ms, int64_t before, wheel_unit_cb *cb, void *arg);

/* In three steps as mqstore_flush_begin(): begin notes everything as it is, run may be called in any thread as soon as the messages
 * that the check-point speaks of are on the disk, end tells what became of it. */
struct wheel_flush;
struct wheel_flush *wheel_flush_begin(struct wheel *w, bool clean);
void wheel_flush_run(struct wheel_flush *f);
int wheel_flush_end(struct wheel *w, struct wheel_flush *f, struct mq_error *err);
void wheel_flush_forget(struct wheel *w, struct wheel_flush *f); /* instead of run and end */

#endif
