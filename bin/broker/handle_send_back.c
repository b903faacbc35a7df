/* handle_send_back.c: CONSUMER_SEND_MSG_BACK: a consumer could not do with a message: it is to come again later, or was given up.
 *
 * The message is read from the log and stored again, in %RETRY%group by way of a delay level that grows with the number of
 * tries, or, after too many of them or at the consumer's wish (level < 0), in %DLQ%group, at once and for good.
 * The answer waits until the copy is as safe as a send's: the consumer then counts the message as done. */
#include "broker.h"
#include "delay.h"
#include "group_table.h"
#include "ha_master.h"
#include "handle.h"
#include "record.h"
#include "settle.h"
#include "topic_table.h"
#include <base/err.h>
#include <base/str.h>
#include <codec/property.h>

enum {
	FIRST_LEVEL = 3,                /* of the first retry, when the broker decides */
	TIMES_MAX = 1000,               /* more make no difference */
	MAX_TIMES_VERSION = 121,        /* V3_4_9: from here on the client says how often */
};

/* The retry topic, made if need be.  NULL: answered. */
static struct topic *retry_topic(struct req *q, const struct group *g)
{
	struct topic *t = topic_table_of_group(q->b->topics, TOPIC_RETRY_PREFIX, g->conf.name, g->conf.retry_queues);

	if (t->conf.perm & PERM_WRITE && t->conf.write > 0)
		return t;
	reply(q, RESP_NO_PERMISSION, "the topic[%s] sending message is forbidden", t->name);
	return NULL;
}

static int32_t level_of(const struct delay *d, const struct send_back_header *h, int32_t times)
{
	times = times < 0 ? 0 : times < TIMES_MAX ? times : TIMES_MAX;
	return delay_level(d, h->delayLevel ? h->delayLevel : FIRST_LEVEL + times);
}

/* The properties that it gets: where it came from and as what, and no trace of an earlier delay. */
static void write_props(struct buf *out, const struct mq_message *m)
{
	static const char *const replaced[] = { DELAY_PROPS, PROP_WAIT, PROP_RETRY_TOPIC, PROP_ORIGIN_ID, NULL };
	struct mq_str topic = mq_prop_get(m->props, PROP_RETRY_TOPIC), origin = mq_prop_get(m->props, PROP_ORIGIN_ID);
	char id[MQ_ID_TEXT];

	if (!origin.n)
		origin = (struct mq_str){ id, mq_offset_id(&m->store_host, m->log_off, id) };
	out->n = 0;
	property_copy_without(out, m->props, replaced);
	property_put(out, MQ_STR(PROP_RETRY_TOPIC), topic.n ? topic : m->topic);
	property_put(out, MQ_STR(PROP_ORIGIN_ID), origin);
	property_put(out, MQ_STR(PROP_WAIT), MQ_STR("false"));
}

static void put_back(struct req *q, const struct mq_message *m, struct topic *t, int32_t level)
{
	struct broker *b = q->b;
	int32_t queue_id = (int32_t)(b->send_turn++ % (uint32_t)t->conf.write);
	struct mqstore_record r = record_again(m);
	struct send_done done = { .topics_version = t->since };
	struct mqstore_place place;
	struct mq_error e;
	int rc;

	write_props(&b->scratch, m);
	r.queue = topic_queue(b->topics, t, queue_id, true);
	if (!r.queue) {
		reply(q, RESP_SYSTEM_ERROR, "topic[%s] queue %d cannot be made", t->name, queue_id);
		return;
	}
	if (level) {
		r.queue = delay_queue(b->delay, level);
		delay_props(&b->scratch, level, t->conf.name, queue_id);
	}
	r.props[0] = buf_view(&b->scratch);
	r.store_host = b->store_host;
	r.reconsume_times = m->reconsume_times < INT32_MAX ? m->reconsume_times + 1 : INT32_MAX;
	rc = mqstore_append(b->store, &r, 1, &place, &e);
	if (rc < 0) {
		b->metrics.sends_refused++;
		reply(q, RESP_SYSTEM_ERROR, "the message cannot be stored: %s", e.text);
		return;
	}
	b->metrics.messages_in++;
	b->metrics.bytes_in += place.size;
	tally_add(&b->tallies, &t->put, 1, 1, place.size);
	if (level)
		delay_stored(b->delay, level, 1);
	settle_promise(b->settle, &done, place.end_off, ha_master_need(b->ha));
	settle_plain(b->settle, q, &done);
}

void handle_send_back(struct req *q)
{
	const struct send_back_header *h = q->h;
	struct broker *b = q->b;
	struct group *g = group_table_find(b->groups, h->group);
	struct mq_message m;
	struct mq_str record;
	struct topic *t;
	int32_t max;

	b->metrics.sent_back++;
	if (!g) {
		reply(q, RESP_SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group not exist, " MQ_STR_FMT " " RESPONSE_FAQ,
		      MQ_STR_ARG(h->group));
		return;
	}
	if (!(b->conf->brokerPermission & PERM_WRITE)) {
		reply(q, RESP_NO_PERMISSION, "the broker[%s] sending message is forbidden", b->conf->brokerIP1);
		return;
	}
	if (g->conf.retry_queues <= 0) { /* the group does not want them again */
		reply(q, RESP_SUCCESS, NULL);
		return;
	}
	t = retry_topic(q, g);
	if (!t)
		return;
	if (mqstore_at(b->store, h->offset, &record) < 0 || mq_message_decode(record.p, record.n, false, &m) <= 0) {
		reply(q, RESP_SYSTEM_ERROR, "look message by offset failed, %lld", (long long)h->offset);
		return;
	}
	max = HEADER_HAS(send_back_header, h, maxReconsumeTimes) && q->f->version >= MAX_TIMES_VERSION ? h->maxReconsumeTimes :
	      g->conf.retry_max;
	if (m.reconsume_times < max && h->delayLevel >= 0) {
		put_back(q, &m, t, level_of(b->delay, h, m.reconsume_times));
		return;
	}
	b->metrics.dead_letters++;
	put_back(q, &m, topic_table_of_group(b->topics, TOPIC_DLQ_PREFIX, g->conf.name, 1), 0);
}
