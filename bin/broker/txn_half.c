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
	if (off < t->base || off - t->base >= (int64_t)t->n)
		return NULL;
	return &t->half[(t->at + (size_t)(off - t->base)) & (t->cap - 1)];
}

struct half *txn_half_push(struct txn *t)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		struct half *v = mem_alloc(cap * sizeof *v);

		for (size_t i = 0; i < t->n; i++)
			v[i] = t->half[(t->at + i) & (t->cap - 1)];
		free(t->half);
		t->half = v;
		t->cap = cap;
		t->at = 0;
	}
	return &t->half[(t->at + t->n++) & (t->cap - 1)];
}

void txn_half_push_op(struct txn *t, int64_t highest)
{
	if (t->op_n == t->op_cap) {
		size_t cap = t->op_cap ? t->op_cap * 2 : 256;
		int64_t *v = mem_alloc(cap * sizeof *v);

		for (size_t i = 0; i < t->op_n; i++)
			v[i] = t->op[(t->op_at + i) & (t->op_cap - 1)];
		free(t->op);
		t->op = v;
		t->op_cap = cap;
		t->op_at = 0;
	}
	t->op[(t->op_at + t->op_n++) & (t->op_cap - 1)] = highest;
}

/* What is over at the front leaves. */
void txn_half_shrink(struct txn *t)
{
	while (t->n && t->half[t->at].due == TXN_DONE) {
		t->at = (t->at + 1) & (t->cap - 1);
		t->n--;
		t->base++;
	}
	while (t->op_n && t->op[t->op_at] < t->base) {
		t->op_at = (t->op_at + 1) & (t->op_cap - 1);
		t->op_n--;
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
