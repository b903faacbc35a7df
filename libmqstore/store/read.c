/* read.c: mqstore_get() and the other ways to look at messages.  Search by time is in search.c. */
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../codec/layout.h"
#include "../codec/message.h"
#include "../codec/property.h"
#include "../codec/tag.h"
#include "bqueue.h"
#include "cold.h"
#include "cqueue_ext.h"
#include "scan.h"
#include "store.h"

#include <errno.h>
#include <inttypes.h>

#define LOG_MODULE "store"
enum {
	SCAN_BYTES = 16000,     /* compat: maxFilterMessageSize */
	AHEAD = 4,              /* records are fetched from memory so many before they are looked at */
};

const char *mqstore_status_name(enum mqstore_status st)
{
	static const char *const names[] = {
		[MQSTORE_FOUND] = "FOUND",
		[MQSTORE_NO_MATCHED_MESSAGE] = "NO_MATCHED_MESSAGE",
		[MQSTORE_MESSAGE_WAS_REMOVING] = "MESSAGE_WAS_REMOVING",
		[MQSTORE_OFFSET_FOUND_NULL] = "OFFSET_FOUND_NULL",
		[MQSTORE_OFFSET_OVERFLOW_BADLY] = "OFFSET_OVERFLOW_BADLY",
		[MQSTORE_OFFSET_OVERFLOW_ONE] = "OFFSET_OVERFLOW_ONE",
		[MQSTORE_OFFSET_TOO_SMALL] = "OFFSET_TOO_SMALL",
		[MQSTORE_NO_MATCHED_LOGIC_QUEUE] = "NO_MATCHED_LOGIC_QUEUE",
		[MQSTORE_NO_MESSAGE_IN_QUEUE] = "NO_MESSAGE_IN_QUEUE",
	};

	return (size_t)st < sizeof(names) / sizeof(names[0]) ? names[st] : "UNKNOWN";
}

/* The record that an entry names, as far as its head can tell; NULL if it is not there (*gone) or is none. */
static const uint8_t *record_of(struct mqstore *s, const struct mqstore_entry *e, bool *gone)
{
	int64_t n;
	const uint8_t *p = commitlog_view(&s->log, e->log_off, &n);

	*gone = !p;
	if (!p || n < e->size || e->size < RECORD_MIN)
		return NULL;
	if (be32(p) != (uint32_t)e->size || (int64_t)be64(p + RECORD_AT_LOG_OFF) != e->log_off)
		return NULL;
	return s->damage_n && store_damaged(s, e->log_off) ? NULL : p;
}

/* There is no unit at the address that stands instead of a hash: the record itself knows its tags. */
static int64_t plain_tags(int64_t tags_code, const uint8_t *record, int32_t size)
{
	struct mq_message m;

	if (mq_message_decode(record, (size_t)size, false, &m) <= 0)
		return tags_code;
	return tag_code(mq_prop_get(m.props, PROP_TAGS));
}

struct reading {
	struct mqstore *s;
	const struct mqstore_get_opt *opt;
	struct mqstore_result *res;
	int64_t skip_below;     /* records before this offset are known to be gone */
};

static bool full(const struct reading *r, const struct mqstore_entry *e)
{
	bool far = e->log_off < r->s->log.max - r->s->memory_bytes;
	int32_t messages = far && r->opt->far_messages ? r->opt->far_messages : r->opt->max_messages;
	int32_t bytes = far && r->opt->far_bytes ? r->opt->far_bytes : r->opt->max_bytes;

	if (r->res->n == 0)
		return false;
	return r->res->n >= messages || r->res->n >= MQSTORE_GET_MAX || r->res->bytes + e->size > bytes;
}

/* A copy of the entry behind it stands for a message that is lost.  `behind` is that entry, or NULL at the end of a file. */
static bool is_copy(struct mqstore_queue *q, int64_t off, const struct mqstore_entry *e, const uint8_t *behind, const uint8_t *record)
{
	int64_t n;

	if (!behind) {
		/* The next file is asked only when the record says that it belongs elsewhere. */
		if (q->topic->lmq || message_queue_off(record) == off)
			return false;
		behind = cqueue_entries(q, off + 1, &n);
	}
	return behind && be64(behind) == (uint64_t)e->log_off;
}

/* Take or leave one entry.  q is NULL for a batch queue, which has no copies. */
static void consider(struct reading *r, struct mqstore_queue *q, int64_t off, const struct mqstore_entry *e, const uint8_t *behind)
{
	struct mqstore_result *res = r->res;
	mqstore_filter_cb *filter = r->opt->filter;
	int64_t tags = e->tags_code;
	struct cqueue_unit unit = { .bits.n = 0 };
	struct mq_str record;
	const uint8_t *p;
	bool gone;

	if (cqueue_void(e) || e->log_off < r->skip_below)
		return;
	if (filter && q && cqueue_ext_is_address(tags) && cqueue_ext_get(q, tags, &unit))
		tags = unit.tags_code;
	if (filter && !cqueue_ext_is_address(tags) && !filter(r->opt->filter_arg, tags, NULL))
		return;
	if (unit.bits.n && r->opt->bits && !r->opt->bits(r->opt->filter_arg, unit.store_ms, unit.bits))
		return;
	p = record_of(r->s, e, &gone);
	if (!p) {
		if (res->n == 0)
			res->status = MQSTORE_MESSAGE_WAS_REMOVING;
		if (gone) {
			struct segment *g = segments_behind(&r->s->log.run, e->log_off);

			r->skip_below = g ? g->start : r->s->log.max;
		}
		return;
	}
	if (q && is_copy(q, off, e, behind, p))
		return;
	record = (struct mq_str){ (const char *)p, (size_t)e->size };
	if (filter && cqueue_ext_is_address(tags)) {
		tags = plain_tags(tags, p, e->size);
		if (!filter(r->opt->filter_arg, tags, NULL))
			return;
	}
	if (filter && !filter(r->opt->filter_arg, tags, &record)) {
		if (res->n == 0)
			res->status = MQSTORE_NO_MATCHED_MESSAGE;
		return;
	}
	res->record[res->n++] = record;
	res->bytes += e->size;
	res->status = MQSTORE_FOUND;
	r->skip_below = -1;
}

/* Entries from `off` on; they may lie in pieces, some in a file and the rest in memory. */
static void read_entries(struct reading *r, struct mqstore_queue *q, int64_t off, const uint8_t *p, int64_t n)
{
	int64_t limit = (int64_t)r->opt->max_messages * CQ_ENTRY > SCAN_BYTES ? r->opt->max_messages : SCAN_BYTES / CQ_ENTRY;
	int64_t per_file = q->all->file_bytes / CQ_ENTRY, end = (off / per_file + 1) * per_file, at = off;
	struct mqstore_entry e;

	if (end > off + limit + 1)
		end = off + limit + 1;
	r->res->status = MQSTORE_NO_MATCHED_MESSAGE;
	while (p) {
		for (int64_t i = 0; i < n && at < end; i++, at++, p += CQ_ENTRY) {
			cqueue_read(p, &e);
			if (full(r, &e))
				return;
			r->res->next_off = at + 1;
			r->res->far_behind = e.log_off < r->s->log.max - r->s->memory_bytes;
			if (i + AHEAD < n)
				commitlog_expect(&r->s->log, (int64_t)be64(p + AHEAD * CQ_ENTRY), e.size);
			consider(r, q, at, &e, i + 1 < n ? p + CQ_ENTRY : NULL);
		}
		p = at < end ? cqueue_entries(q, at, &n) : NULL;
	}
}

/* A record counts as the messages it holds. */
static void read_batches(struct reading *r, struct mqstore_queue *q, int64_t off)
{
	int64_t counted = 0;

	r->res->status = MQSTORE_NO_MATCHED_MESSAGE;
	for (int64_t i = bqueue_find(q, off); i < q->batch->n; i++) {
		const struct bentry *b = &q->batch->v[i];
		struct mqstore_entry e = { b->log_off, b->size, b->tags_code };

		if (full(r, &e) || (r->res->n && counted >= r->opt->max_messages))
			break;
		r->res->next_off = b->base + b->count;
		consider(r, NULL, b->base, &e, NULL);
		counted += b->count;
	}
}

int mqstore_get(struct mqstore *s, struct mqstore_queue *q, int64_t off, const struct mqstore_get_opt *opt,
		struct mqstore_result *res)
{
	struct reading r = { s, opt, res, -1 };
	int64_t fb = s->queues.file_bytes / CQ_ENTRY, n;
	const uint8_t *p;
	int rc = 0;

	/* Here and not behind the records that are handed out. */
	if (s->log.run.mapped > s->log.run.max_maps)
		segments_shed(&s->log.run);
	res->n = 0;
	res->bytes = 0;
	res->far_behind = false;
	res->next_off = off;
	res->min_off = q ? mqstore_queue_min(q) : 0;
	res->max_off = q ? mqstore_queue_max(q) : 0;
	if (!q) {
		res->status = MQSTORE_NO_MATCHED_LOGIC_QUEUE;
		res->next_off = 0;
	} else if (res->max_off == 0) {
		res->status = MQSTORE_NO_MESSAGE_IN_QUEUE;
		res->next_off = 0;
	} else if (off < res->min_off) {
		res->status = MQSTORE_OFFSET_TOO_SMALL;
		res->next_off = res->min_off;
	} else if (off == res->max_off) {
		res->status = MQSTORE_OFFSET_OVERFLOW_ONE;
	} else if (off > res->max_off) {
		res->status = MQSTORE_OFFSET_OVERFLOW_BADLY;
		res->next_off = res->max_off;
	} else if (q->topic->batch) {
		read_batches(&r, q, off);
	} else if (!(p = cqueue_entries(q, off, &n))) {
		rc = n == -ENOENT || n == MQ_EMISMATCH ? 0 : (int)n;
		res->status = MQSTORE_OFFSET_FOUND_NULL;
		res->next_off = (off / fb + 1) * fb < res->max_off ? (off / fb + 1) * fb : res->max_off;
	} else {
		read_entries(&r, q, off, p, n);
	}
	return rc;
}

int mqstore_at(struct mqstore *s, int64_t log_off, struct mq_str *record)
{
	struct mq_message m;
	int32_t size = cold_record(s, log_off) ? 0 : scan_at(&s->log, log_off, false, &m);
	int64_t n;

	if (size <= 0)
		return MQ_ENOTFOUND;
	*record = (struct mq_str){ (const char *)commitlog_view(&s->log, log_off, &n), (size_t)size };
	return 0;
}

int mqstore_entry(struct mqstore_queue *q, int64_t off, struct mqstore_entry *e)
{
	const uint8_t *p;
	int64_t n;

	if (q->topic->batch) {
		n = bqueue_find(q, off);
		if (!q->batch || n >= q->batch->n || off < q->batch->v[n].base)
			return MQ_ENOTFOUND;
		*e = (struct mqstore_entry){ q->batch->v[n].log_off, q->batch->v[n].size, q->batch->v[n].tags_code };
		return 0;
	}
	p = cqueue_entries(q, off, &n);
	if (!p)
		return MQ_ENOTFOUND;
	cqueue_read(p, e);
	if (cqueue_ext_is_address(e->tags_code))
		e->tags_code = cqueue_ext_tags(q, e->tags_code);
	return cqueue_void(e) ? MQ_ENOTFOUND : 0;
}

int mqstore_walk(struct mqstore *s, int64_t off, mqstore_walk_cb *cb, void *arg, struct mq_error *err)
{
	struct scan sc = { .log = &s->log, .off = off < commitlog_min(&s->log) ? commitlog_min(&s->log) : off };
	enum scan_kind kind;
	int rc = 0;

	while (rc == 0 && (kind = scan_next(&sc)) != SCAN_END) {
		if (kind == SCAN_RECORD)
			rc = cb(arg, sc.m.log_off, sc.record);
		else if (kind == SCAN_FAILED)
			return err_sys(err, s->log.run.map_rc, "walk the log at %" PRId64, sc.off);
		else
			log_warn("no records in a part of the log from=%" PRId64 " to=%" PRId64, sc.from, sc.to);
		if (s->log.run.mapped > s->log.run.max_maps)
			segments_shed(&s->log.run);
	}
	return rc;
}
