/* search.c: by time and by key. */
#include "../base/byte.h"
#include "../base/str.h"
#include "../codec/layout.h"
#include "../codec/message.h"
#include "../codec/property.h"
#include "bqueue.h"
#include "cold.h"
#include "scan.h"
#include "store.h"

/* ---- By time --------------------------------------------------------------------------------------------------------- */

/* Store time of the record that an entry names, or -1; *gone = offset behind which the log goes on, if its segment is missing. */
static int64_t time_of(struct mqstore *s, const uint8_t *entry, int64_t *gone)
{
	struct mqstore_entry e;
	const uint8_t *p;
	int64_t n;

	*gone = -1;
	cqueue_read(entry, &e);
	if (cqueue_void(&e) || cold_record(s, e.log_off))
		return -1;
	p = commitlog_view(&s->log, e.log_off, &n);
	if (!p) {
		struct segment *g = segments_behind(&s->log.run, e.log_off);

		*gone = g ? g->start : s->log.max;
		return -1;
	}
	if (n < e.size || e.size < RECORD_MIN || (int64_t)be64(p + RECORD_AT_LOG_OFF) != e.log_off)
		return -1;
	return message_store_ms(p);
}

/* The first entry in [*at, hi) whose time is known: *at moves there. -1 if there is none. */
static int64_t next_time(struct mqstore *s, struct mqstore_queue *q, int64_t *at, int64_t hi)
{
	while (*at < hi) {
		int64_t n, gone, t, next;
		const uint8_t *p = cqueue_entries(q, *at, &n);

		if (!p || cold_entry(s, q, p))
			return -1;
		t = time_of(s, p, &gone);
		if (t >= 0 || cold_met(s->guard))
			return t;
		next = gone >= 0 ? cqueue_find(q, *at + 1, hi, gone) : *at + 1;
		*at = next > *at ? next : hi;
	}
	return -1;
}

/* First entry in [lo, hi) stored at or after ms, else hi. */
static int64_t first_since(struct mqstore *s, struct mqstore_queue *q, int64_t lo, int64_t hi, int64_t ms)
{
	while (lo < hi && !cold_met(s->guard)) {
		int64_t mid = lo + (hi - lo) / 2, at = mid, t = next_time(s, q, &at, hi);

		if (t >= 0 && t < ms)
			lo = at + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The same in a batch queue, whose entries know their times. */
static int64_t batch_since(struct mqstore_queue *q, int64_t ms)
{
	int64_t lo = 0, hi;

	if (bqueue_ready(q) < 0)
		return 0;
	for (hi = q->batch->n; lo < hi;) {
		int64_t mid = lo + (hi - lo) / 2;

		if (q->batch->v[mid].store_ms >= ms)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo < q->batch->n ? q->batch->v[lo].base : bqueue_max(q);
}

int64_t mqstore_search_time(struct mqstore *s, struct mqstore_queue *q, int64_t ms, bool upper)
{
	int64_t min = mqstore_queue_min(q), max = mqstore_queue_max(q), at = max;

	if (!upper || ms < INT64_MAX)
		at = q->topic->batch ? batch_since(q, ms + upper) : first_since(s, q, min, max, ms + upper);
	if (!upper)
		return at > min ? at : min;
	return at > min ? at - 1 : min;
}

int64_t mqstore_time_at(struct mqstore *s, struct mqstore_queue *q, int64_t off)
{
	int64_t n, gone;
	const uint8_t *p;

	if (q->topic->batch) {
		n = bqueue_find(q, off);
		return q->batch && n < q->batch->n && off >= q->batch->v[n].base ? q->batch->v[n].store_ms : -1;
	}
	p = cqueue_entries(q, off, &n);
	return p && !cold_entry(s, q, p) ? time_of(s, p, &gone) : -1;
}

/* ---- By key ---------------------------------------------------------------------------------------------------------- */

struct query {
	struct mqstore *s;
	struct mq_str topic, key;
	int64_t begin_ms, end_ms;
	int64_t *off;
	int n, max;
};

static bool has_key(struct mq_str props, struct mq_str key)
{
	struct property_scan scan;
	struct mq_str word;

	property_scan(props, &scan);
	if (str_eq(scan.uniq_key, key))
		return true;
	while (scan.keys.n && str_split(&scan.keys, ' ', &word))
		if (str_eq(word, key))
			return true;
	return false;
}

/* The index knows hashes; the record knows the key. */
static int on_hit(void *arg, int64_t log_off)
{
	struct query *q = arg;
	struct mq_message m;

	if (cold_record(q->s, log_off))
		return cold_full(q->s->guard);
	if (scan_at(&q->s->log, log_off, false, &m) <= 0 || !str_eq(m.topic, q->topic) || m.store_ms < q->begin_ms ||
	    m.store_ms > q->end_ms || !has_key(m.props, q->key))
		return 0;
	for (int i = 0; i < q->n; i++)
		if (q->off[i] == log_off)
			return 0;
	q->off[q->n++] = log_off;
	return q->n == q->max;
}

int mqstore_query(struct mqstore *s, struct mq_str topic, struct mq_str key, int max, int64_t begin_ms, int64_t end_ms,
		  int64_t *log_off, int64_t *last_ms, int64_t *last_off)
{
	struct query q = { s, topic, key, begin_ms, end_ms, log_off, 0, max };
	int64_t ms = 0, off = 0;

	if (s->index) {
		if (max > 0 && key.n)
			index_query(s->index, topic, key, begin_ms, end_ms, on_hit, &q);
		index_last(s->index, &ms, &off);
	}
	if (last_ms)
		*last_ms = ms;
	if (last_off)
		*last_off = off;
	/* They came newest first; a chain is nearly, not strictly, in order. */
	for (int i = 1; i < q.n; i++)
		for (int k = i; k > 0 && log_off[k] < log_off[k - 1]; k--) {
			int64_t t = log_off[k];

			log_off[k] = log_off[k - 1];
			log_off[k - 1] = t;
		}
	return q.n;
}
