/* revive_log.c: what the revive log says, in memory: check-points, and which of their messages were acked. */
#include "revive_private.h"
#include "broker.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/message.h>
#include <codec/property.h>
#include <stdlib.h>
#include <utlist.h>

#define LOG_MODULE "revive"

struct mq_str revive_log_key(struct revive *r, struct mq_str topic, struct mq_str group, int32_t queue_id, int64_t start, int64_t pop_ms)
{
	r->key.n = 0;
	buf_str(&r->key, topic);
	buf_char(&r->key, '@');
	buf_str(&r->key, group);
	buf_printf(&r->key, "@%d@%lld@%lld", (int)queue_id, (long long)start, (long long)pop_ms);
	return buf_view(&r->key);
}

struct point *revive_log_find(struct revive *r, struct mq_str key)
{
	struct point *p;

	HASH_FIND(hh, r->points, key.p, key.n, p);
	return p;
}

void revive_log_drop(struct revive *r, struct point *p)
{
	DL_DELETE(p->queue->points, p);
	HASH_DEL(r->points, p);
	heap_remove(&r->due, &p->due);
	free(p->early);
	free(p);
}

static struct point *add(struct revive *r, struct log_queue *lq, struct mq_str key, struct mq_str topic, struct mq_str group, int64_t off,
                         int64_t due, const struct body_ck *ck)
{
	size_t n = ck && ck->n > 0 ? (size_t)ck->n : 0, at = (key.n + 7) & ~(size_t)7;
	struct point *p = mem_alloc(sizeof *p + at + n * sizeof *p->diff);

	memcpy(p->key, key.p, key.n);
	p->key_n = (uint16_t)key.n;
	p->topic_n = (uint16_t)topic.n;
	p->group_n = (uint16_t)group.n;
	p->n = -1;
	p->off = off;
	p->queue = lq;
	if (ck) {
		p->n = ck->n;
		p->start = ck->start;
		p->pop_ms = ck->pop_ms;
		p->queue_id = ck->queue_id;
		p->acked = ck->acked;
		p->diff = (int32_t *)(void *)(p->key + at);
		memcpy(p->diff, ck->diff, n * sizeof *p->diff);
	}
	DL_APPEND(lq->points, p);
	HASH_ADD_KEYPTR(hh, r->points, p->key, p->key_n, p);
	heap_push(&r->due, &p->due, due);
	return p;
}

int revive_log_index(const struct point *p, int64_t off)
{
	for (int32_t i = 0; i < p->n; i++)
		if (p->start + p->diff[i] == off)
			return i;
	return -1;
}

bool revive_log_mark(struct point *p, int64_t off)
{
	int i = revive_log_index(p, off);
	bool is_new = i >= 0 && !(p->acked & 1u << i);

	if (is_new)
		p->acked |= 1u << i;
	return is_new;
}

static void read_ck(struct revive *r, struct log_queue *lq, const struct body_ck *ck, int64_t off)
{
	struct mq_str key = revive_log_key(r, ck->topic, ck->group, ck->queue_id, ck->start, ck->pop_ms);
	struct point *old = revive_log_find(r, key), *p;

	if (old && old->n >= 0)
		return; /* stored twice: by a peer that was stopped in between */
	if (key.n > UINT16_MAX)
		return;
	if (old)
		HASH_DEL(r->points, old); /* in its place in the queue, until then */
	p = add(r, lq, key, ck->topic, ck->group, off, ck->pop_ms + ck->invisible_ms, ck);
	if (!old)
		return;
	for (size_t i = 0; i < old->nearly; i++)
		revive_log_mark(p, old->early[i]);
	/* What is done with moves on behind both. */
	p->off = old->off;
	DL_DELETE(lq->points, p);
	DL_PREPEND_ELEM(lq->points, old, p);
	DL_DELETE(old->queue->points, old);
	heap_remove(&r->due, &old->due);
	free(old->early);
	free(old);
}

static void read_ack(struct revive *r, struct log_queue *lq, const struct body_ack *a, int64_t off, int64_t due)
{
	struct mq_str key = revive_log_key(r, a->topic, a->group, a->queue_id, a->start, a->pop_ms);
	struct point *p = revive_log_find(r, key);

	if (!p && key.n <= UINT16_MAX)
		p = add(r, lq, key, a->topic, a->group, off, due, NULL);
	if (p && p->n < 0) {
		p->early = mem_realloc(p->early, (p->nearly + a->n) * sizeof *p->early);
		memcpy(p->early + p->nearly, a->off, a->n * sizeof *p->early);
		p->nearly += a->n;
	}
	for (size_t i = 0; p && i < a->n; i++)
		revive_log_mark(p, a->off[i]);
}

/* One record of the log. */
static void read_record(struct revive *r, struct log_queue *lq, int64_t off, const struct mq_message *m)
{
	struct mq_str tags = mq_prop_get(m->props, PROP_TAGS);
	struct body_keep keep = { 0 };
	struct mq_error e = { 0 };
	struct body_ck ck;
	struct body_ack ack;
	int64_t due = 0;
	int rc = 0;

	if (str_is(tags, "ck")) {
		rc = body_ck_decode(&keep, m->body, &ck, &e);
		if (rc == 0)
			read_ck(r, lq, &ck, off);
	} else if (str_is(tags, "ack") || str_is(tags, "bAck")) {
		rc = body_ack_decode(&keep, m->body, &ack, &e);
		str_i64(mq_prop_get(m->props, PROP_DELIVER), &due);
		if (rc == 0)
			read_ack(r, lq, &ack, off, due);
	}
	if (rc < 0)
		log_warn("revive queue=%d offset=%lld: left out: %s", lq->id, (long long)off, e.text);
	body_free(&keep);
}

bool revive_log_read_at(struct revive *r, struct mqstore_queue *q, int64_t off, struct mq_message *m)
{
	struct mqstore_entry entry;
	struct mq_str record;

	return mqstore_entry(q, off, &entry) == 0 && mqstore_at(r->b->store, entry.log_off, &record) == 0 &&
	       mq_message_decode(record.p, record.n, false, m) > 0;
}

void revive_log_read(struct revive *r, struct log_queue *lq)
{
	int64_t max = mqstore_queue_max(lq->q), min = mqstore_queue_min(lq->q);

	if (lq->next < min)
		lq->next = min;
	for (; lq->next < max; lq->next++) {
		struct mq_message m;

		if (revive_log_read_at(r, lq->q, lq->next, &m))
			read_record(r, lq, lq->next, &m);
	}
}
