/* replica.c: bytes out to replicas, bytes in from a master, and what is derived from them on the way. */
#include "replica.h"
#include "../base/byte.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"
#include "../codec/layout.h"
#include "../codec/message.h"
#include "../codec/property.h"
#include "derive.h"
#include "scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define LOG_MODULE "replica"
enum { STUCK_STEP = 1 << 20 };  /* bytes that have to come before a damaged place is looked at again */

/* ---- Shipping -------------------------------------------------------------------------------------------------------- */

int64_t replica_segment_bytes(const struct mqstore *s)
{
	return s->log.run.size;
}

const uint8_t *replica_view(struct mqstore *s, int64_t off, int64_t *n)
{
	return commitlog_view(&s->log, off, n);
}

int replica_file(struct mqstore *s, int64_t off, char path[SEGMENT_PATH], int64_t *start)
{
	struct segment *g = off < s->log.max ? segments_at(&s->log.run, off) : NULL;

	if (!g)
		return MQ_ENOTFOUND;
	segment_path(s->log_dir, g->start, path);
	*start = g->start;
	return 0;
}

bool replica_in_memory(struct mqstore *s, int64_t off, int64_t n)
{
	struct segment *g = segments_at(&s->log.run, off);

	return g && segments_bytes(&s->log.run, g) && segment_resident(g, off - g->start, n);
}

/* ---- Following ------------------------------------------------------------------------------------------------------- */

void replica_follow(struct mqstore *s)
{
	s->follower = true;
	s->derived = s->log.max;
}

int replica_begin(struct mqstore *s, int64_t off, struct mq_error *err)
{
	/* A segment that was begun, and holds no whole record, is as good as none. */
	if (s->log.run.n == 1 && s->derived == s->log.run.v[0]->start && s->log.last_off < 0 && !s->job) {
		int rc = commitlog_cut(&s->log, s->derived - 1, err);

		if (rc < 0)
			return rc;
	}
	if (s->log.run.n)
		return err_set(err, MQ_EBUSY, "the log in '%s' is not empty", s->log_dir);
	if (off < 0 || off % s->log.run.size > 1)
		return err_set(err, MQ_EINVAL, "a log cannot begin at %lld: segments begin at multiples of %lld (mappedFileSizeCommitLog)",
			       (long long)off, (long long)s->log.run.size);
	s->log.max = s->log.flushed = s->log.padded = off;
	s->log.room = 0;
	s->derived = off - off % s->log.run.size;
	return 0;
}

int replica_room(struct mqstore *s, int64_t n, uint8_t **p, struct mq_error *err)
{
	int rc;

	if (s->broken)
		return err_set(err, MQ_EBROKEN, "%s", s->why);
	rc = commitlog_claim_raw(&s->log, n, p, err);
	if (rc == -ENOSPC || rc == -EDQUOT)
		rc = MQ_EFULL;
	s->no_space = rc == MQ_EFULL;
	return rc;
}

void replica_wrote(struct mqstore *s, int64_t n)
{
	commitlog_grow(&s->log, n);
}

int64_t replica_derived(const struct mqstore *s)
{
	return s->derived;
}

int64_t replica_queues(const struct mqstore *s)
{
	return s->queues.count;
}

/* A queue that somebody waits on has a new entry. */
static void tell(struct mqstore *s, struct mqstore_queue *q, const struct mq_message *m)
{
	struct mqstore_entry e = { 0 };
	const uint8_t *entry;
	int64_t n;

	entry = cqueue_entries(q, m->queue_off, &n);
	if (!entry)
		return;
	cqueue_read(entry, &e);
	if (e.log_off == m->log_off)
		s->arrival(s->arrival_arg, q, m->queue_off, e.tags_code, m->props);
}

static int derive_record(struct mqstore *s, const struct mq_message *m)
{
	struct mqstore_queue *q = cqueues_get(&s->queues, m->topic, m->queue_id, true);
	bool listed = derive_listed(m->sys_flag);
	struct property_scan props;
	int rc = 0;

	property_scan(m->props, &props);
	if (s->queues.any_lmq || (q && q->topic->batch) || (m->sys_flag & MQ_SYS_INNER_BATCH))
		rc = derive_again(s, m, NULL, true);
	else if (q && listed) {
		int64_t code = derive_tags_code(s, q->topic, props.tags, props.delay_level, m->store_ms);

		/* The usual case: it is the next one. */
		if (q->loaded && q->pos == m->queue_off * CQ_ENTRY && q->pos > q->first && cqueue_room(q, 1) == 0)
			cqueue_put(q, m->log_off, m->size, code);
		else
			rc = cqueue_derive(q, m->queue_off, m->log_off, m->size, code, true);
	}
	if (rc < 0)
		return rc;
	if (s->index && (props.uniq_key.n || props.keys.n)) {
		struct index_record ir = {
			.topic_hash = q ? q->topic->index_hash : index_topic_hash(m->topic), .uniq_key = props.uniq_key,
			.keys = props.keys, .skip = (m->sys_flag & MQ_SYS_TRAN_MASK) == MQ_SYS_TRAN_ROLLBACK,
			.log_off = m->log_off, .store_ms = m->store_ms, .next_off = m->log_off + m->size,
		};

		index_put(s->index, &ir);
	}
	s->log.last_off = m->log_off;
	s->log.last_ms = m->store_ms;
	s->appended++;
	if (q && q->watch && s->arrival && listed)
		tell(s, q, m);
	return 0;
}

/* What stands at s->derived is no record.  If there is one behind, go on with that. */
static int pass_over(struct mqstore *s)
{
	struct scan sc = {
		.log = &s->log, .off = s->derived, .end = s->derived, .last_off = s->log.last_off, .last_ms = s->log.last_ms,
		.live = true,
	};
	enum scan_kind kind;

	if (s->log.max < s->stuck)
		return 0;
	s->stuck = s->log.max + STUCK_STEP;
	kind = scan_next(&sc);
	if (kind == SCAN_FAILED)
		return s->log.run.map_rc;
	if (kind != SCAN_DAMAGED && kind != SCAN_HOLE)
		return 0;
	store_note_damage(s, sc.from, sc.to, kind == SCAN_HOLE);
	s->derived = sc.to;
	s->stuck = 0;
	return 1;
}

int replica_derive(struct mqstore *s, struct mq_error *err)
{
	int64_t size = s->log.run.size, n, left;
	struct mq_message m;
	const uint8_t *p;
	bool blank;
	int32_t got;
	int rc = 0;

	commitlog_write_out(&s->log);
	while (rc >= 0 && s->derived < s->log.max && (p = commitlog_view(&s->log, s->derived, &n)) && n >= BLANK_BYTES) {
		got = message_peek(p, (size_t)n, &m, &blank);
		left = size - s->derived % size;
		if (blank && got != left)
			return err_set(err, MQ_EMISMATCH, "the segment that the master ends at %lld has not %lld bytes here "
				       "(mappedFileSizeCommitLog)", (long long)(s->derived + got), (long long)size);
		if (blank && got > n)
			break; /* the rest of it is to come, as zeros */
		if (blank) {
			s->derived += got;
			continue;
		}
		if (got == 0 && (int64_t)be32(p) <= left)
			break; /* the rest of it is to come */
		if (got <= 0 || m.log_off != s->derived) {
			rc = pass_over(s);
			if (rc == 0)
				break;
			continue;
		}
		rc = derive_record(s, &m);
		if (rc >= 0)
			s->derived += got;
	}
	if (s->log.run.mapped > s->log.run.max_maps)
		segments_shed(&s->log.run);
	return rc < 0 ? err_sys(err, rc, "list the record at %lld", (long long)s->derived) : 0;
}

void replica_tidy(struct mqstore *s)
{
	struct segment *g = s->log.tail;

	if (!s->follower || s->derived >= s->log.max || s->broken || !g || s->derived < g->start)
		return;
	commitlog_write_out(&s->log);
	memset(g->p + (s->derived - g->start), 0, (size_t)(s->log.max - s->derived));
	s->log.max = s->derived;
	if (s->log.flushed > s->log.max)
		s->log.flushed = s->log.max;
}

/* ---- Does it agree? -------------------------------------------------------------------------------------------------- */

int64_t replica_last(const struct mqstore *s)
{
	return s->log.last_off;
}

size_t replica_segments(struct mqstore *s, int64_t **v)
{
	struct segments *run = &s->log.run;
	size_t n = 0;

	*v = mem_alloc((run->n + 1) * sizeof(**v));
	for (size_t i = 0; i < run->n && run->v[i]->start < s->derived; i++)
		(*v)[n++] = run->v[i]->start;
	return n;
}

size_t replica_records(struct mqstore *s, int64_t start, int64_t **v)
{
	int64_t at = start, end = start + s->log.run.size, n;
	size_t count = 0, cap = 1024;
	struct mq_message m;
	const uint8_t *p;
	bool blank;
	int32_t got;

	*v = mem_alloc(cap * sizeof(**v));
	while (at < end && at < s->derived && (p = commitlog_view(&s->log, at, &n))) {
		got = message_peek(p, (size_t)n, &m, &blank);
		if (blank || got <= 0)
			break;
		if (count == cap) {
			cap *= 2;
			*v = mem_realloc(*v, cap * sizeof(**v));
		}
		(*v)[count++] = at;
		at += got;
	}
	return count;
}
