/* txn_private.h: what transactions keep in memory, for the files txn*.c.
 *
 *   txn.c        storing halves, ending them, what is kept of them, life
 *   txn_half.c   which places are pending, and where a half is now
 *   txn_ask.c    the rounds of questions */
#ifndef BROKER_TXN_PRIVATE_H
#define BROKER_TXN_PRIVATE_H

#include "hash.h"
#include "txn.h"
#include "waiting.h"
#include <base/ring.h>
#include <uv.h>

#define TXN_DONE INT64_MIN

/* A place of the half topic's queue, from the first pending one on. */
struct half {
	int64_t log_off;
	int64_t due;            /* wall ms from which on it may be asked about; TXN_DONE: over, or moved */
};

/* A pending half that was appended again: where it was first, where it is now. */
struct moved {
	UT_hash_handle hh;
	int64_t first, now;
};

struct txn {
	struct broker *b;
	struct mqstore_queue *halves, *ops;
	struct ring half;       /* of struct half */
	int64_t base;           /* queue offset of the first */
	size_t pending;
	struct moved *moved;    /* uthash, by first */
	struct ring op;         /* of int64_t: highest half that each record of the op queue speaks of */
	int64_t op_base;        /* queue offset of the first */
	uv_timer_t round_timer, save_timer;
	int closed;
	bool asking;            /* a round is under way: */
	int64_t next, end;      /* next to look at; it ends here */
	bool marked;
	int64_t mark_base, mark_op, mark_end;
	uint32_t turn;          /* whose turn it is among the producers of a group */
	bool stopped;
	bool slave;             /* its master does all this */
	char trouble[200];      /* of the last round, said once */
	struct buf props;       /* of one record */
	struct waiting counts;  /* pending by topic: config/transactionMetrics */
	int64_t counted_ms;     /* monotonic: when they were last saved */
};

/* ---- txn_half.c: the rings ------------------------------------------------------------------------------------------------ */

/* NULL: it is not in the ring. */
struct half *txn_half_at(struct txn *t, int64_t off);
/* The next place, to be filled in. */
struct half *txn_half_push(struct txn *t);
/* The next record of the op queue; the highest half that it speaks of, or -1. */
void txn_half_push_op(struct txn *t, int64_t highest);
/* What is over at the front leaves. */
void txn_half_shrink(struct txn *t);
struct moved *txn_half_moved(const struct txn *t, int64_t first);
void txn_half_set_moved(struct txn *t, int64_t first, int64_t now);
void txn_half_drop_moved(struct txn *t, struct moved *m);

/* Where it was when its producer sent it. */
int64_t txn_half_first(const struct mq_message *m);
/* When it may be asked about, in wall ms; immunity: of txn_immunity(). */
int64_t txn_half_due(const struct txn *t, int64_t born_ms, int64_t store_ms, int64_t immunity);

/* ---- txn_ask.c ------------------------------------------------------------------------------------------------------------- */

/* The timer of rounds: one turn of a round, and the timer set for the next. */
void txn_ask_round(uv_timer_t *timer);

/* ---- txn.c ----------------------------------------------------------------------------------------------------------------- */

/* One that was appended at place is pending. */
void txn_add_half(struct txn *t, const struct mqstore_place *place, int64_t due);
/* Record r, unless NULL, and the one that says that the half at `off` is over: both, or none. */
int txn_store_with_op(struct txn *t, const struct mqstore_record *r, int64_t off, int64_t first, struct mqstore_place place[2],
                      struct mq_error *e);
/* The half is over: committed, rolled back, given up, or appended again. */
void txn_end_place(struct txn *t, struct half *h);

#endif
