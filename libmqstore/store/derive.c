/* derive.c: a record of the log becomes an entry of its queue.  Knows which queue, number and code a record means; how entries
 * and words are kept is left to cqueue.c and index.c. */
#include "derive.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/str.h"
#include "../codec/message.h"
#include "../codec/property.h"
#include "../codec/tag.h"
#include "bqueue.h"
#include "cqueue_ext.h"
#include "scan.h"

#define LOG_MODULE "store"

int derive_levels(const char *text, int64_t ms[DELAY_LEVELS_MAX], int *n, struct mq_error *err)
{
	struct mq_str rest = str_of(text), word;

	*n = 0;
	while (str_split(&rest, ' ', &word)) {
		int64_t v;

		if (word.n == 0)
			continue;
		if (*n == DELAY_LEVELS_MAX || str_duration(word, 1000, &v) < 0 || v < 0)
			return err_set(err, MQ_EINVAL,
				"messageDelayLevel: '" MQ_STR_FMT "' is no time such as 10s, 5m, 2h (at most %d of them)",
				       MQ_STR_ARG(word), DELAY_LEVELS_MAX);
		ms[(*n)++] = v;
	}
	return 0;
}

int64_t derive_tags_code(const struct mqstore *s, const struct topic *t, struct mq_str tags, int32_t level, int64_t store_ms)
{
	if (!t->schedule || level <= 0)
		return tag_code(tags);
	if (level > s->levels)
		level = s->levels;
	return store_ms + (level > 0 ? s->level_ms[level - 1] : 1000);
}

int64_t derive_entry_code(struct mqstore *s, struct mqstore_queue *q, int64_t tags_code, int64_t store_ms, struct mq_str props)
{
	uint8_t bits[MQSTORE_BITS_MAX];
	size_t n = s->bits ? s->bits(s->bits_arg, q, props, bits) : 0;

	return cqueue_ext_put(q, tags_code, store_ms, (struct mq_str){ (const char *)bits, n });
}

/* compat: with enableMultiDispatch a message is listed in further queues, whose names and offsets are properties. */
static int light_queues(struct mqstore *s, const struct mq_message *m, struct mqstore_queue *only, int64_t tags, bool fill)
{
	struct mq_str names = mq_prop_get(m->props, "INNER_MULTI_DISPATCH"), offs = mq_prop_get(m->props, "INNER_MULTI_QUEUE_OFFSET");
	struct mq_str name, text;
	int64_t off;
	int rc = 0;

	while (rc >= 0 && rc != CQUEUE_GAP && names.n && str_split(&names, ',', &name) && str_split(&offs, ',', &text)) {
		struct mqstore_queue *q;

		if (!str_starts(name, "%LMQ%") || mq_check_topic(name, NULL) < 0 || str_i64(text, &off) < 0)
			continue;
		q = cqueues_get(&s->queues, name, 0, true);
		if (!only || only == q)
			rc = cqueue_derive(q, off, m->log_off, m->size, tags, fill);
	}
	return rc;
}

int derive_again(struct mqstore *s, const struct mq_message *m, struct mqstore_queue *only, bool fill)
{
	struct mqstore_queue *q = cqueues_get(&s->queues, m->topic, m->queue_id, !only || only->topic->lmq);
	bool mine = q && (!only || only == q) && derive_listed(m->sys_flag), batch = q && q->topic->batch;
	struct property_scan props;
	int64_t tags;
	int rc = 0;

	/* The usual case after a stop: it is there.  compat: a batch inside of one record has a place in batch queues only. */
	if (mine && !batch && ((q->loaded && m->log_off + m->size <= q->log_end) || (m->sys_flag & MQ_SYS_INNER_BATCH)))
		mine = false;
	if (!mine && !s->queues.any_lmq)
		return 0;
	property_scan(m->props, &props);
	tags = q ? derive_tags_code(s, q->topic, props.tags, props.delay_level, m->store_ms) : tag_code(props.tags);
	if (mine && batch)
		rc = bqueue_derive(q, m, tags);
	else if (mine)
		rc = cqueue_derive(q, m->queue_off, m->log_off, m->size,
				   s->queues.ext && cqueue_ready(q) == 0 && m->log_off + m->size > q->log_end ?
				   derive_entry_code(s, q, tags, m->store_ms, m->props) : tags, fill);
	if (rc >= 0 && rc != CQUEUE_GAP && s->queues.any_lmq)
		rc = light_queues(s, m, only, tags, fill);
	return rc == 1 ? 0 : rc;
}

int derive_index_source(void *arg, int64_t log_off, struct index_record *r)
{
	struct mqstore *s = arg;
	struct scan sc = { .log = &s->log, .off = log_off < commitlog_min(&s->log) ? commitlog_min(&s->log) : log_off };
	struct property_scan props;
	struct topic *t;

	for (;;) {
		enum scan_kind kind = scan_next(&sc);

		if (kind == SCAN_END || kind == SCAN_FAILED)
			return kind == SCAN_END ? 0 : s->log.run.map_rc;
		if (kind == SCAN_RECORD)
			break;
	}
	property_scan(sc.m.props, &props);
	t = cqueues_topic(&s->queues, sc.m.topic);
	r->topic_hash = t ? t->index_hash : index_topic_hash(sc.m.topic);
	r->uniq_key = props.uniq_key;
	r->keys = props.keys;
	r->skip = (sc.m.sys_flag & MQ_SYS_TRAN_MASK) == MQ_SYS_TRAN_ROLLBACK;
	r->log_off = sc.m.log_off;
	r->store_ms = sc.m.store_ms;
	r->next_off = sc.off;
	return 1;
}
