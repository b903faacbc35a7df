/* append.c: mqstore_append(): messages become records of the log, entries of their queues and words of the index.
 *
 * 1. Refuse what cannot be: read-only, broken, full, too big.
 * 2. Room in the queues and in the log, on the disk.  Here a disk that is full says so, and nothing has changed yet.
 * 3. Encode; the log's end moves; the entry; the index; who waits is told; the file is written.  None of this can fail. */
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../codec/message.h"
#include "../codec/property.h"
#include "cqueue_ext.h"
#include "derive.h"

#include <errno.h>


#define LOG_MODULE "store"
enum { RECORD_BEYOND_BODY = 64 * 1024, STEP_BACK_MAX_MS = 24 * 3600 * 1000 };
#define unlikely(x) __builtin_expect(!!(x), 0)

/* compat: store times do not go back along the log, so that a search by time works.  A clock that was set back is waited for;
 * one that was wrong by more than a day is believed. */
static int64_t stamp(struct mqstore *s)
{
	int64_t now = clock_wall_ms(), last = s->log.last_ms;

	return now < last && last - now < STEP_BACK_MAX_MS ? last : now;
}

static int refuse(struct mqstore *s, size_t n, int rc)
{
	s->refused += (int64_t)n;
	return rc;
}

static int may_write(struct mqstore *s, struct mq_error *err)
{
	if (s->opt.read_only)
		return err_set(err, MQ_EREADONLY, "store '%s' is open for reading only", s->dir);
	if (s->broken)
		return err_set(err, MQ_EBROKEN, "%s", s->why);
	if (s->follower)
		return err_set(err, MQ_EREADONLY, "store '%s' follows a master: messages go there", s->dir);
	return err_set(err, MQ_EFULL, "%s", s->why);
}

static void parts_of(const struct mqstore_record *r, struct message_parts *m)
{
	m->topic = (struct mq_str){ r->queue->topic->name, r->queue->topic->n };
	m->body = r->body;
	m->props[0] = r->props[0];
	m->props[1] = r->props[1];
	m->props[2] = r->props[2];
	m->queue_id = r->queue->id;
	m->flag = r->flag;
	m->sys_flag = r->sys_flag;
	m->reconsume_times = r->reconsume_times;
	m->born_ms = r->born_ms;
	m->prepared_off = r->prepared_off;
	m->born_host = r->born_host;
	m->store_host = r->store_host;
}

static int64_t measure(struct mqstore *s, const struct mqstore_record *r, const struct message_parts *m, struct mq_error *err)
{
	int64_t size = message_size(m);
	size_t props = m->props[0].n + m->props[1].n + m->props[2].n;

	if (r->queue->topic->batch)
		return err_set(err, MQ_EUNSUPPORTED, "topic '%s' has batch consume queues (queue.type=BatchCQ): they are only read here",
			       r->queue->topic->name);
	if (!r->again && m->body.n > (size_t)s->opt.max_body_bytes)
		return err_set(err, MQ_ETOOBIG, "body of %zu bytes is larger than %d (maxMessageSize)", m->body.n,
			       (int)s->opt.max_body_bytes);
	if (size < 0)
		return err_set(err, MQ_ETOOBIG, "properties of %zu bytes are larger than %d", props, MQ_PROPS_MAX);
	if (!r->again && size > (int64_t)s->opt.max_body_bytes + RECORD_BEYOND_BODY)
		return err_set(err, MQ_ETOOBIG, "message of %lld bytes is larger than %lld (maxMessageSize and 64 KiB)", (long long)size,
			       (long long)s->opt.max_body_bytes + RECORD_BEYOND_BODY);
	return size;
}

static int room_in_queue(struct mqstore_queue *q, int64_t n, struct mq_error *err)
{
	int rc = cqueue_ready(q);

	if (rc == 0 && n > 0)
		rc = cqueue_room(q, n);
	if (rc < 0)
		err_sys(err, rc, "room in queue %d of topic '%s'", (int)q->id, q->topic->name);
	return rc;
}

/* Room for all entries of a batch, whatever queues it goes to. */
static int room_in_queues(const struct mqstore_record *r, size_t n, struct mq_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		r[i].queue->pending += derive_listed(r[i].sys_flag);
	for (size_t i = 0; i < n; i++) {
		struct mqstore_queue *q = r[i].queue;

		if (rc == 0 && (q->pending > 0 || !q->loaded))
			rc = room_in_queue(q, q->pending, err);
		q->pending = 0;
	}
	return rc;
}

static int no_room(struct mqstore *s, size_t n, int rc, struct mq_error *err)
{
	if (rc == -ENOSPC || rc == -EDQUOT) {
		rc = MQ_EFULL;
		if (err)
			err->code = rc;
	}
	if (rc == MQ_EFULL && !s->no_space) {
		s->no_space = true;
		log_error("no space left on the disk, messages are refused until there is dir=%s", s->dir);
	}
	return refuse(s, n, rc);
}

static int64_t entry_code(struct mqstore *s, struct mqstore_queue *q, int64_t code, const uint8_t *p, const struct mqstore_place *place)
{
	struct mq_message m;

	mq_message_decode(p, (size_t)place->size, false, &m);
	return derive_entry_code(s, q, code, place->store_ms, m.props);
}

/* The record is in the log; everything else follows from it. */
static void derive_new(struct mqstore *s, const struct mqstore_record *r, const uint8_t *p, struct mqstore_place *place)
{
	struct mqstore_queue *q = r->queue;
	struct mq_str uniq = r->uniq_key, keys = r->keys, tags = r->tags;
	int32_t level = r->delay_level;

	if (!r->parsed) {
		struct property_scan scan;
		struct mq_message m;

		mq_message_decode(p, (size_t)place->size, false, &m);
		property_scan(m.props, &scan);
		uniq = scan.uniq_key;
		keys = scan.keys;
		tags = scan.tags;
		level = scan.delay_level;
	}
	if (derive_listed(r->sys_flag)) {
		int64_t code = derive_tags_code(s, q->topic, tags, level, place->store_ms);

		if (unlikely(s->queues.ext))
			code = entry_code(s, q, code, p, place);
		cqueue_put(q, place->log_off, place->size, code);
	}
	if (s->index && (uniq.n || keys.n)) {
		struct index_record ir = {
			.topic_hash = q->topic->index_hash, .uniq_key = uniq, .keys = keys,
			.skip = (r->sys_flag & MQ_SYS_TRAN_MASK) == MQ_SYS_TRAN_ROLLBACK,
			.log_off = place->log_off, .store_ms = place->store_ms, .next_off = place->end_off,
		};

		index_put(s->index, &ir);
	}
}

static void tell(struct mqstore *s, struct mqstore_queue *q, const struct mqstore_place *place)
{
	const uint8_t *p = commitlog_newest(&s->log, place->log_off), *entry;
	struct mqstore_entry e = { 0 };
	struct mq_message m;
	int64_t n;

	mq_message_decode(p, (size_t)place->size, false, &m);
	entry = cqueue_entries(q, place->queue_off, &n);
	if (entry)
		cqueue_read(entry, &e);
	s->arrival(s->arrival_arg, q, place->queue_off, cqueue_ext_tags(q, e.tags_code), m.props);
}

int mqstore_append(struct mqstore *s, const struct mqstore_record *r, size_t n, struct mqstore_place *place, struct mq_error *err)
{
	int64_t total = 0, now;
	struct message_parts m;
	bool watched = false;
	int rc = 0;

	if (unlikely(s->opt.read_only || s->broken || s->full || s->follower))
		return refuse(s, n, may_write(s, err));
	for (size_t i = 0; i < n; i++) {
		int64_t size;

		parts_of(&r[i], &m);
		size = measure(s, &r[i], &m, err);
		if (unlikely(size < 0))
			return refuse(s, n, (int)size);
		total += size;
	}
	if (n == 0)
		return 0;
	rc = n > 1 ? room_in_queues(r, n, err) : room_in_queue(r->queue, derive_listed(r->sys_flag), err);
	if (rc == 0)
		rc = commitlog_claim(&s->log, total, err);
	if (unlikely(rc < 0))
		return no_room(s, n, rc, err);
	s->no_space = false;

	now = stamp(s);
	for (size_t i = 0; i < n; i++) {
		uint8_t *p = commitlog_next(&s->log);

		if (n > 1)
			parts_of(&r[i], &m);
		m.store_ms = now;
		m.log_off = s->log.max;
		m.queue_off = derive_listed(r[i].sys_flag) ? r[i].queue->pos / CQ_ENTRY : 0;
		message_encode(&m, p);
		place[i] = (struct mqstore_place){ m.log_off, m.queue_off, now, 0, (int32_t)be32(p) };
		place[i].end_off = m.log_off + place[i].size;
		s->log.last_off = m.log_off;
		s->log.last_ms = now;
		commitlog_grow(&s->log, place[i].size);
		derive_new(s, &r[i], p, &place[i]);
		watched |= r[i].queue->watch;
	}
	s->appended += (int64_t)n;
	if (unlikely(watched) && s->arrival)
		for (size_t i = 0; i < n; i++)
			if (r[i].queue->watch && derive_listed(r[i].sys_flag))
				tell(s, r[i].queue, &place[i]);
	if (!s->opt.gather)
		commitlog_write_out(&s->log);
	return 0;
}

void mqstore_write_out(struct mqstore *s)
{
	commitlog_write_out(&s->log);
}

void mqstore_on_arrival(struct mqstore *s, mqstore_arrival_cb *cb, void *arg)
{
	s->arrival = cb;
	s->arrival_arg = arg;
}

void mqstore_on_bits(struct mqstore *s, mqstore_bits_cb *cb, void *arg)
{
	s->bits = cb;
	s->bits_arg = arg;
}

void mqstore_queue_watch(struct mqstore_queue *q, bool on)
{
	q->watch = on;
}
