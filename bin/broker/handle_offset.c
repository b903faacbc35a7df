/* handle_offset.c: where groups stand, and where queues begin and end. */
#include "broker.h"
#include "cold.h"
#include "flush.h"
#include "handle.h"
#include "offset_table.h"
#include "topic_table.h"
#include <base/str.h>
#include <unistd.h>

/* The queue, if there is one; nothing is made: a question must not bring a deleted topic back. */
static struct mqstore_queue *queue_of(struct req *q, struct mq_str topic, int32_t id)
{
	struct topic *t = topic_table_find(q->b->topics, topic);
	int32_t n = t ? (t->conf.read > t->conf.write ? t->conf.read : t->conf.write) : 0;

	if (id < 0)
		return NULL;
	return id < n ? topic_queue(q->b->topics, t, id, false) : mqstore_queue(q->b->store, topic, id, false);
}

static void answer(struct req *q, const char *key, int64_t value)
{
	struct frame_out o;

	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_i64(&o, key, value);
	reply_end(q, &o);
}

/* ---- 14, 15 -------------------------------------------------------------------------------------------------------------- */

/* Is a queue's message 0 still there, in the part of the log that is taken to be in memory?  Then a group that is new to the
 * topic begins with it. */
static bool is_young(struct req *q, struct mqstore_queue *queue)
{
	static int64_t memory; /* of the machine */
	struct mqstore_entry e;

	if (!memory)
		memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	return queue && mqstore_queue_min(queue) <= 0 && mqstore_entry(queue, 0, &e) == 0 &&
	       e.log_off >= mqstore_log_max(q->b->store) - memory / 100 * q->b->conf->accessMessageInMemoryMaxRatio;
}

void handle_query_offset(struct req *q)
{
	const struct query_offset_header *h = q->h;
	int64_t off = offset_table_get(q->b->offsets, h->topic, h->consumerGroup, h->queueId);

	if (off >= 0)
		answer(q, "offset", off);
	else if (HEADER_HAS(query_offset_header, h, setZeroIfNotFound) && !h->setZeroIfNotFound)
		reply(q, RESP_QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first");
	else if (is_young(q, queue_of(q, h->topic, h->queueId)))
		answer(q, "offset", 0);
	else
		reply(q, RESP_QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first");
}

void handle_update_offset(struct req *q)
{
	const struct update_offset_header *h = q->h;
	struct mqstore_queue *queue;

	if (!topic_table_find(q->b->topics, h->topic)) {
		reply(q, RESP_TOPIC_NOT_EXIST, "Topic " MQ_STR_FMT " not exist!", MQ_STR_ARG(h->topic));
		return;
	}
	if (offset_table_has_reset(q->b->offsets, h->topic, h->consumerGroup, h->queueId)) {
		reply(q, RESP_SUCCESS, "Offset has been previously reset");
		return;
	}
	queue = queue_of(q, h->topic, h->queueId);
	/* Ignored ones are answered like the others: clients send -1 for queues that they have not begun, again and again. */
	offset_table_commit(q->b->offsets, h->topic, h->consumerGroup, h->queueId, h->commitOffset,
			    queue ? mqstore_queue_max(queue) : 0, conn_name(q->c));
	reply(q, RESP_SUCCESS, NULL);
}

/* ---- 29, 30, 31, 32: compat: none of them says that a topic or queue does not exist ------------------------------------- */

void handle_search_offset(struct req *q)
{
	const struct search_offset_header *h = q->h;
	struct mqstore_queue *queue = queue_of(q, h->topic, h->queueId);

	int64_t off;

	cold_begin(q);
	off = queue ? mqstore_search_time(q->b->store, queue, h->timestamp, str_is_nocase(h->boundaryType, "upper")) : 0;
	if (!cold_waits(q))
		answer(q, "offset", off);
}

void handle_max_offset(struct req *q)
{
	const struct max_offset_header *h = q->h;
	struct mqstore_queue *queue = queue_of(q, h->topic, h->queueId);

	answer(q, "offset", queue ? flush_visible_max(q->b, queue) : 0);
}

void handle_min_offset(struct req *q)
{
	const struct min_offset_header *h = q->h;
	struct mqstore_queue *queue = queue_of(q, h->topic, h->queueId);

	answer(q, "offset", queue ? mqstore_queue_min(queue) : 0);
}

void handle_earliest_time(struct req *q)
{
	const struct earliest_time_header *h = q->h;
	struct mqstore_queue *queue = queue_of(q, h->topic, h->queueId);

	int64_t ms;

	cold_begin(q);
	ms = queue ? mqstore_time_at(q->b->store, queue, mqstore_queue_min(queue)) : -1;
	if (!cold_waits(q))
		answer(q, "timestamp", ms);
}
