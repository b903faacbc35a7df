/* handle_admin_queue.c: a look into the queues of a topic: their entries, how old what a group consumes is, and offsets to correct.
 * Bodies: those of the peer's QueryConsumeQueueResponseBody, QueryConsumeTimeSpanBody, QueryCorrectionOffsetBody. */
#include "broker.h"
#include "client_table.h"
#include "handle.h"
#include "offset_table.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/json.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES_MAX = 65536 };   /* of one answer: some 100 bytes each */

/* ---- 321 QUERY_CONSUME_QUEUE ------------------------------------------------------------------------------------------- */

/* What the group wants of the topic, when it is asked for. */
static void put_subscription(struct req *q, const struct consume_queue_header *h, struct json_out *j)
{
	struct client_group *g = client_table_consumers(q->b->clients, h->consumerGroup);
	struct sub *s = g ? client_group_sub(g, h->topic) : NULL;
	struct body_keep keep = { 0 };
	struct body_sub body;
	char text[600];

	if (!s) {
		snprintf(text, sizeof text, MQ_STR_FMT "@" MQ_STR_FMT " is not online!", MQ_STR_ARG(h->consumerGroup),
			 MQ_STR_ARG(h->topic));
		json_member_cstr(j, "filterData", text);
		return;
	}
	json_member_cstr(j, "filterData", "null"); /* compat: what the peer says of a group without a bit map filter */
	sub_body(s, &keep, &body);
	json_key(j, "subscriptionData");
	body_sub_put(j, &body);
	body_free(&keep);
}

static void put_entry(struct json_out *j, const struct mqstore_entry *e)
{
	json_open(j, '{');
	json_member_bool(j, "eval", false);
	json_member_i64(j, "physicOffset", e->log_off);
	json_member_i64(j, "physicSize", e->size);
	json_member_i64(j, "tagsCode", e->tags_code);
	json_close(j, '}');
}

void handle_consume_queue(struct req *q)
{
	const struct consume_queue_header *h = q->h;
	struct topic *t = topic_table_find(q->b->topics, h->topic);
	struct mqstore_queue *mq;
	struct mqstore_entry e;
	struct frame_out o;
	struct json_out j;

	mq = t && h->queueId >= 0 && h->queueId < t->nqueues ? topic_queue(q->b->topics, t, h->queueId, false) : NULL;
	if (!mq) {
		reply(q, RESP_SYSTEM_ERROR, "%d@" MQ_STR_FMT " is not exist!", h->queueId, MQ_STR_ARG(h->topic));
		return;
	}
	if (mqstore_entry(mq, h->index, &e) < 0) {
		reply(q, RESP_SUCCESS, "Index %lld of %d@" MQ_STR_FMT " is not exist!", (long long)h->index, h->queueId,
		      MQ_STR_ARG(h->topic));
		return;
	}
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	j = json_to(o.buf);
	json_open(&j, '{');
	if (h->consumerGroup.n)
		put_subscription(q, h, &j);
	json_member_i64(&j, "maxQueueIndex", mqstore_queue_max(mq));
	json_member_i64(&j, "minQueueIndex", mqstore_queue_min(mq));
	json_key(&j, "queueData");
	json_open(&j, '[');
	for (int32_t i = 0; i < h->count && i < ENTRIES_MAX && mqstore_entry(mq, h->index + i, &e) == 0; i++)
		put_entry(&j, &e);
	json_close(&j, ']');
	json_close(&j, '}');
	reply_end(q, &o);
}

/* ---- 303 QUERY_CONSUME_TIME_SPAN --------------------------------------------------------------------------------------- */

static void put_span(struct req *q, struct json_out *j, struct topic *t, struct mq_str group, int32_t id)
{
	struct mqstore_queue *mq = topic_queue(q->b->topics, t, id, false);
	int64_t min = mq ? mqstore_queue_min(mq) : 0, max = mq ? mqstore_queue_max(mq) : 0;
	int64_t off = offset_table_get(q->b->offsets, t->conf.name, group, id);
	int64_t first = mq ? mqstore_time_at(q->b->store, mq, min) : -1, next = -1;

	json_open(j, '{');
	json_member_i64(j, "consumeTimeStamp", off > 0 && mq ? mqstore_time_at(q->b->store, mq, off - 1) : first);
	if (mq && off < max)
		next = mqstore_time_at(q->b->store, mq, off > min ? off : min);
	json_member_i64(j, "delayTime", next > 0 ? clock_now_ms() - next : 0);
	json_member_i64(j, "maxTimeStamp", mq ? mqstore_time_at(q->b->store, mq, max - 1) : -1);
	json_key(j, "messageQueue");
	body_queue_put(j, &(struct body_queue){ t->conf.name, str_of(q->b->conf->brokerName), id });
	json_member_i64(j, "minTimeStamp", first);
	json_close(j, '}');
}

void handle_consume_span(struct req *q)
{
	const struct consume_span_header *h = q->h;
	struct topic *t = topic_table_find(q->b->topics, h->topic);
	struct frame_out o;
	struct json_out j;

	if (!t) {
		reply(q, RESP_TOPIC_NOT_EXIST, "topic[" MQ_STR_FMT "] not exist", MQ_STR_ARG(h->topic));
		return;
	}
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	j = json_to(o.buf);
	json_open(&j, '{');
	json_key(&j, "consumeTimeSpanSet");
	json_open(&j, '[');
	for (int32_t i = 0; i < t->conf.write; i++)
		put_span(q, &j, t, h->group, i);
	json_close(&j, ']');
	json_close(&j, '}');
	reply_end(q, &o);
}

/* ---- 308 QUERY_CORRECTION_OFFSET --------------------------------------------------------------------------------------- */

/* The lowest offset that any group has stored in each queue, of those that are still there. */
struct lowest {
	struct req *q;
	struct topic *t;
	struct mq_str without;  /* groups that do not count, divided by commas */
	int64_t *off;           /* of each queue; INT64_MAX: none */
};

static void lower(void *arg, struct offsets *o)
{
	struct lowest *l = arg;
	struct mq_str rest = l->without, name;

	while (str_split(&rest, ',', &name))
		if (name.n && str_eq(str_trim(name), offsets_group(o)))
			return;
	for (int32_t i = 0; i < o->n && i < l->t->nqueues; i++) {
		struct mqstore_queue *mq = topic_queue(l->q->b->topics, l->t, i, false);

		if (o->slot[i].stored >= (mq ? mqstore_queue_min(mq) : 0) && o->slot[i].stored < l->off[i])
			l->off[i] = o->slot[i].stored;
	}
}

/* compat: the peer deletes the offsets of the groups in filterGroups when it is asked this; here they only do not count. */
void handle_correction_offset(struct req *q)
{
	const struct correction_offset_header *h = q->h;
	struct lowest l = { .q = q, .t = topic_table_find(q->b->topics, h->topic), .without = h->filterGroups };
	struct offsets *compare = offset_table_find(q->b->offsets, h->topic, h->compareGroup);
	struct frame_out o;
	struct json_out j;

	if (l.t) {
		l.off = mem_alloc((size_t)(l.t->nqueues + 1) * sizeof *l.off);
		for (int32_t i = 0; i < l.t->nqueues; i++)
			l.off[i] = INT64_MAX;
		offset_table_each(q->b->offsets, h->topic, (struct mq_str){ 0 }, lower, &l);
	}
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	j = json_to(o.buf);
	json_open(&j, '{');
	json_key(&j, "correctionOffsets");
	json_open(&j, '{');
	for (int32_t i = 0; l.t && i < l.t->nqueues; i++) {
		char id[16];

		if (l.off[i] == INT64_MAX)
			continue;
		/* A group that is behind all others has nothing to correct. */
		if (compare && i < compare->n && compare->slot[i].stored >= 0 && l.off[i] > compare->slot[i].stored)
			l.off[i] = INT64_MAX;
		json_key_raw(&j, id, (size_t)snprintf(id, sizeof id, "%d", i));
		json_put_i64(&j, l.off[i]);
	}
	json_close(&j, '}');
	json_close(&j, '}');
	reply_end(q, &o);
	free(l.off);
}
