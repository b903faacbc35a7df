/* txn_half.c: the places of the half topic from the first pending one on, in memory: a ring of them, one of the records that say which
 * are over, and where halves are now that were appended again. */
#include "txn_private.h"
#include "broker.h"
#include <base/mem.h>
#include <base/str.h>
#include <codec/message.h>
#include <codec/property.h>
#include <stdlib.h>

/* ---- The rings ----------------------------------------------------------------------------------------------------------- */

struct half *txn_half_at(struct txn *t, int64_t off)
{
	if (off < t->base || off - t->base >= (int64_t)t->half.n)
		return NULL;
	return ring_item(&t->half, sizeof(struct half), (size_t)(off - t->base));
}

struct half *txn_half_push(struct txn *t)
{
	return ring_push(&t->half, sizeof(struct half));
}

void txn_half_push_op(struct txn *t, int64_t highest)
{
	*(int64_t *)ring_push(&t->op, sizeof(int64_t)) = highest;
}

/* What is over at the front leaves. */
void txn_half_shrink(struct txn *t)
{
	struct half *h;
	int64_t *op;

	while ((h = ring_first(&t->half, sizeof(struct half))) && h->due == TXN_DONE) {
		ring_pop(&t->half);
		t->base++;
	}
	while ((op = ring_first(&t->op, sizeof(int64_t))) && *op < t->base) {
		ring_pop(&t->op);
		t->op_base++;
	}
}

struct moved *txn_half_moved(const struct txn *t, int64_t first)
{
	struct moved *m;

	HASH_FIND(hh, t->moved, &first, sizeof first, m);
	return m;
}

void txn_half_set_moved(struct txn *t, int64_t first, int64_t now)
{
	struct moved *m = txn_half_moved(t, first);

	if (!m) {
		m = mem_alloc(sizeof *m);
		m->first = first;
		HASH_ADD(hh, t->moved, first, sizeof m->first, m);
	}
	m->now = now;
}

void txn_half_drop_moved(struct txn *t, struct moved *m)
{
	HASH_DEL(t->moved, m);
	free(m);
}

/* ---- What a half says ---------------------------------------------------------------------------------------------------- */

/* Where it was when its producer sent it. */
int64_t txn_half_first(const struct mq_message *m)
{
	int64_t off;

	return str_i64(mq_prop_get(m->props, PROP_TXN_FIRST), &off) == 0 && off >= 0 && off < m->queue_off ? off : m->queue_off;
}

/* The producer's clock counts, as with the peer, but not one that runs ahead of ours. */
int64_t txn_half_due(const struct txn *t, int64_t born_ms, int64_t store_ms, int64_t immunity)
{
	int64_t from = born_ms < store_ms ? born_ms : store_ms, due = from + (immunity >= 0 ? immunity : t->b->conf->transactionTimeOut);

	return due > TXN_DONE ? due : TXN_DONE + 1;
}
