/* handle_send.c: SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE: check, complete the properties, append, answer.
 *
 * Order of checks and codes: the peer's SendMessageProcessor.  The common case, a single message to a topic that exists, costs one
 * lookup, one pass over its properties and one append: it allocates nothing.
 *
 * Properties are stored in pieces that are not joined before: what the client sent, UNIQ_KEY if it sent none, what the broker
 * adds (broker.send_props).  A client's own MSG_REGION, TRACE_ON, CLUSTER or POP_CK (a message that came from a consumer and is
 * sent on) are taken out first.
 *
 * A message with DELAY goes to the queue of its level (delay.h); the answer names the queue that it was sent to, and the offset at
 * which it waits: as the peer's does. */
#include "broker.h"
#include "delay.h"
#include "group_table.h"
#include "ha_master.h"
#include "handle.h"
#include "lock_table.h"
#include "settle.h"
#include "timer.h"
#include "topic_table.h"
#include "txn.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/batch.h>
#include <codec/property.h>
#include <stdlib.h>

enum { BATCH_KEEP = 256 };      /* records of a batch that are kept room for */

static const char *const added_props[] = { PROP_MSG_REGION, PROP_TRACE_ON, PROP_CLUSTER, PROP_POP_CK, NULL };
static const char *const added_and_delay_props[] = { PROP_MSG_REGION, PROP_TRACE_ON, PROP_CLUSTER, PROP_POP_CK, DELAY_PROPS, NULL };
static const char *const added_and_timer_props[] = { PROP_MSG_REGION, PROP_TRACE_ON, PROP_CLUSTER, PROP_POP_CK, TIMER_PROPS, NULL };
static const char *const added_and_txn_props[] = { PROP_MSG_REGION, PROP_TRACE_ON, PROP_CLUSTER, PROP_POP_CK, TXN_PROPS, NULL };

/* Errors carry MSG_REGION and TRACE_ON too: clients look for them in any answer. */
static void refuse(struct req *q, int32_t code, const char *fmt, ...) MQ_PRINTF(3, 4);
static void refuse(struct req *q, int32_t code, const char *fmt, ...)
{
	char remark[1024];
	struct frame_out o;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(remark, sizeof remark, fmt, ap);
	va_end(ap);
	q->b->metrics.sends_refused++;
	reply_begin(q, &o, code, remark);
	frame_cstr(&o, "MSG_REGION", q->b->conf->regionId);
	frame_bool(&o, "TRACE_ON", q->b->conf->traceOn);
	reply_end(q, &o);
}

/* Are there as many machines as must have the message?  False: answered; nothing is stored.  WAIT=false asks for no promise. */
static bool may_promise(struct req *q, bool wait)
{
	if (!wait || ha_master_need(q->b->ha) > 0)
		return true;
	q->b->metrics.replicas_missing++;
	refuse(q, RESP_SYSTEM_ERROR, "in-sync replicas not enough: %d slaves are connected, ackOnTwoMachines or minInSyncReplicas "
	       "wants more of them in sync", ha_master_slaves(q->b->ha));
	return false;
}

/* The topic, made if need be; NULL: answered. */
static struct topic *topic_of(struct req *q, const struct send_header *h)
{
	struct broker *b = q->b;
	struct topic *t = topic_table_find(b->topics, h->topic);
	struct mq_error why;

	if (t)
		return t;
	if (str_is(h->topic, TOPIC_TIMER)) { /* what lies there is ours alone */
		refuse(q, RESP_NO_PERMISSION, "Sending message to topic[%s] is forbidden.", TOPIC_TIMER);
		return NULL;
	}
	if (mq_check_topic(h->topic, &why) < 0) {
		refuse(q, RESP_SYSTEM_ERROR, "%s", why.text);
		return NULL;
	}
	t = topic_table_auto_create(b->topics, h->topic, h->defaultTopic, h->defaultTopicQueueNums, h->unitMode ? TOPIC_UNIT : 0);
	if (!t && str_starts(h->topic, TOPIC_RETRY_PREFIX))
		t = topic_table_need(b->topics, h->topic, 1);
	if (!t)
		refuse(q, RESP_TOPIC_NOT_EXIST, "topic[" MQ_STR_FMT "] not exist, apply first please!" RESPONSE_FAQ,
		      MQ_STR_ARG(h->topic));
	return t;
}

/* Checks that come before the message itself is looked at; *queue_id is where it goes.  False: answered. */
static bool may_send(struct req *q, const struct send_header *h, struct topic *t, int32_t *queue_id)
{
	struct broker *b = q->b;
	int32_t queues = t->conf.write > t->conf.read ? t->conf.write : t->conf.read;

	if (b->conf->startAcceptSendRequestTimeStamp > clock_now_ms()) {
		refuse(q, RESP_SYSTEM_ERROR, "broker unable to service, until %lld",
		       (long long)b->conf->startAcceptSendRequestTimeStamp);
		return false;
	}
	if (t->conf.order && !(b->conf->brokerPermission & PERM_WRITE)) {
		refuse(q, RESP_NO_PERMISSION, "the broker[%s] sending message is forbidden", b->conf->brokerIP1);
		return false;
	}
	if (t->no_send) {
		refuse(q, RESP_NO_PERMISSION, "Sending message to topic[%s] is forbidden.", t->name);
		return false;
	}
	if (t->unserved) {
		refuse(q, RESP_SYSTEM_ERROR, "topic[%s] has attributes that this broker does not serve: %s", t->name, t->unserved);
		return false;
	}
	if (h->queueId >= queues) {
		refuse(q, RESP_SYSTEM_ERROR, "request queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] "
		       "topicConfig.writeQueueNums:[%d] producer:[%s]", h->queueId, t->name, t->conf.read, t->conf.write,
		       conn_name(q->c));
		return false;
	}
	if (h->queueId < 0 && t->conf.write < 1) {
		refuse(q, RESP_SYSTEM_ERROR, "topic[%s] has no queue to write to: writeQueueNums is 0", t->name);
		return false;
	}
	*queue_id = h->queueId >= 0 ? h->queueId : (int32_t)(b->send_turn++ % (uint32_t)t->conf.write);
	return true;
}

/* Kinds of messages that are not taken, or not in this way.  False: answered. */
static bool may_store(struct req *q, const struct property_scan *s, int32_t sys_flag, bool half)
{
	if (half && q->b->conf->rejectTransactionMessage) {
		refuse(q, RESP_NO_PERMISSION, "the broker[%s] sending transaction message is forbidden", q->b->conf->brokerIP1);
		return false;
	}
	if (!half && (sys_flag & MQ_SYS_TRAN_MASK) == MQ_SYS_TRAN_PREPARED && !s->tran_msg) {
		refuse(q, RESP_MESSAGE_ILLEGAL, "the message is illegal: sysFlag %d says that it is half of a transaction, and it has no "
		       "property TRAN_MSG", sys_flag);
		return false;
	}
	if (sys_flag & (MQ_SYS_INNER_BATCH | MQ_SYS_NEED_UNWRAP)) {
		refuse(q, RESP_MESSAGE_ILLEGAL, "sysFlag %d: inner batches are made by the broker, not by clients", sys_flag);
		return false;
	}
	return true;
}

/* Is it to wait for a given time?  False: answered. */
static bool asks_for_time(struct req *q, struct mq_str props, bool *waits, int64_t *due_ms)
{
	enum timer_answer a = timer_asked(q->b->timer, props, due_ms);
	char remark[256];
	int32_t code;

	*waits = a == TIMER_WAITS;
	if (a <= TIMER_WAITS)
		return true;
	code = timer_refusal(q->b->timer, a, remark, sizeof remark);
	refuse(q, code, "%s", remark);
	return false;
}

static void refused_by_store(struct req *q, int rc, const char *why, bool batch)
{
	switch (rc) {
	case MQ_ETOOBIG: /* compat: of a batch it is code 1 */
		refuse(q, batch ? RESP_SYSTEM_ERROR : RESP_MESSAGE_ILLEGAL, "the message is illegal: %s", why);
		break;
	case MQ_EFULL:
	case MQ_EREADONLY:
	case MQ_EBROKEN:
		why = broker_why_not_writable(q->b);
		refuse(q, RESP_SERVICE_NOT_AVAILABLE, "service not available now. %s", *why ? why : mq_strerror(rc));
		break;
	default:
		refuse(q, RESP_SYSTEM_ERROR, "create mapped file failed, server is busy or broken: %s", why);
	}
}

static void common_fields(struct req *q, const struct send_header *h, const struct topic *t, struct mqstore_record *r)
{
	r->sys_flag = h->sysFlag & (MQ_SYS_COMPRESSED | MQ_SYS_MULTI_TAGS | MQ_SYS_COMPRESS_TYPE);
	if (t->conf.multi_tag)
		r->sys_flag |= MQ_SYS_MULTI_TAGS;
	r->reconsume_times = h->reconsumeTimes;
	r->born_ms = h->bornTimestamp;
	r->born_host = conn_public(q->c)->peer;
	r->store_host = q->b->store_host;
}

static void stored(struct req *q, struct topic *t, const struct mqstore_place *last, bool wait, struct send_done *d)
{
	struct broker *b = q->b;

	if (wait)
		settle_promise(b->settle, d, last->end_off, ha_master_need(b->ha));
	if (t->since) {
		if (settle_topics_are(b->settle, t->since))
			t->since = 0;
		d->topics_version = t->since;
	}
	settle_send(b->settle, q, d);
}

/* ---- A single message ---------------------------------------------------------------------------------------------------- */

/* A message that has been retried too often goes to the dead letters of its group, there to stay: without DELAY.
 * compat: so does any while the group consumes in order.  A consumer tries such messages again by itself, and sends on only what
 * it has given up.
 * False: answered. */
static bool dead_letter(struct req *q, const struct send_header *h, struct topic **t, int32_t *queue_id, bool *dead)
{
	struct mq_str name = { h->topic.p + sizeof TOPIC_RETRY_PREFIX - 1, h->topic.n - (sizeof TOPIC_RETRY_PREFIX - 1) };
	struct group *g = group_table_find(q->b->groups, name);
	int32_t max;

	if (!g) {
		refuse(q, RESP_SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group not exist, " MQ_STR_FMT " " RESPONSE_FAQ,
		      MQ_STR_ARG(name));
		return false;
	}
	max = HEADER_HAS(send_header, h, maxReconsumeTimes) && q->f->version >= 121 ? h->maxReconsumeTimes : g->conf.retry_max;
	*dead = h->reconsumeTimes > max || lock_table_live(q->b->locks, name, clock_mono_ms());
	if (*dead) {
		*t = topic_table_of_group(q->b->topics, TOPIC_DLQ_PREFIX, name, 1);
		*queue_id = 0;
		q->b->metrics.dead_letters++;
	}
	return true;
}

static void send_one(struct req *q, const struct send_header *h, struct topic *t, int32_t queue_id)
{
	struct broker *b = q->b;
	struct mqstore_record r = { .body = q->f->body, .flag = h->flag, .parsed = true };
	struct property_scan s;
	struct mqstore_place place;
	struct send_done d = { 0 };
	struct mq_error e;
	char uniq[sizeof "UNIQ_KEY" + 32 + 1], handle[TIMER_HANDLE_MAX];
	bool dead = false, half, timed = false;
	int64_t due_ms = 0;
	int rc;

	if (!r.body.n) {
		refuse(q, RESP_MESSAGE_ILLEGAL, "the message is illegal: its body is empty");
		return;
	}
	if (t->retry && !dead_letter(q, h, &t, &queue_id, &dead))
		return;
	property_scan(h->properties, &s);
	if (dead) {
		s.delay_level = 0;
		s.timer = false; /* compat: it was one */
	}
	/* compat: one that was committed, and comes back to be tried again, is none. */
	half = s.tran_msg && !t->retry && !dead && h->reconsumeTimes <= 0;
	if (!may_store(q, &s, h->sysFlag, half) || !may_promise(q, s.wait))
		return;
	if (s.delay_level > 0 && !half) /* of a half: when it is committed */
		r.delay_level = delay_level(b->delay, s.delay_level);
	if (s.timer && s.delay_level <= 0 && !half && !asks_for_time(q, h->properties, &timed, &due_ms)) /* compat: DELAY wins */
		return;
	r.props[0] = h->properties;
	if (!s.uniq_key.n) {
		memcpy(uniq, "UNIQ_KEY\001", sizeof "UNIQ_KEY");
		id_make(&b->ids, clock_now_ms(), uniq + sizeof "UNIQ_KEY");
		uniq[sizeof "UNIQ_KEY" + 32] = 2;
		r.props[1] = (struct mq_str){ uniq, sizeof uniq };
		r.uniq_key = (struct mq_str){ uniq + sizeof "UNIQ_KEY", 32 };
	}
	if (s.has_cluster || s.has_region || s.has_trace || s.has_pop_ck || s.delay_level > 0 || dead || half || timed) {
		b->scratch.n = 0;
		property_copy_without(&b->scratch, h->properties, half ? added_and_txn_props : timed ? added_and_timer_props :
			r.delay_level || dead ? added_and_delay_props : added_props);
		if (timed)
			timer_props(&b->scratch, due_ms, t->conf.name, queue_id);
		if (r.delay_level)
			delay_props(&b->scratch, r.delay_level, t->conf.name, queue_id);
		if (half)
			txn_props(&b->scratch, t->conf.name, queue_id, s.uniq_key.n ? s.uniq_key : r.uniq_key);
		r.props[0] = buf_view(&b->scratch);
		property_scan(r.props[0], &s);
	}
	if (s.uniq_key.n)
		r.uniq_key = s.uniq_key;
	r.keys = s.keys;
	r.tags = s.tags;
	r.props[2] = buf_view(&b->send_props);
	common_fields(q, h, t, &r);
	r.queue = topic_queue(b->topics, t, queue_id, true);
	if (!r.queue) {
		refuse(q, RESP_SYSTEM_ERROR, "topic[%s] queue %d cannot be made", t->name, queue_id);
		return;
	}
	if (r.delay_level)
		r.queue = delay_queue(b->delay, r.delay_level);
	else if (timed)
		r.queue = timer_queue(b->timer);
	else if (half)
		r.queue = txn_queue(b->txn);
	rc = mqstore_append(b->store, &r, 1, &place, &e);
	if (rc < 0) {
		refused_by_store(q, rc, e.text, false);
		return;
	}
	b->metrics.messages_in++;
	b->metrics.bytes_in += place.size;
	if (r.delay_level)
		delay_stored(b->delay, r.delay_level, 1);
	else if (timed)
		timer_stored(b->timer, 1);
	else if (half)
		txn_stored(b->txn, t->conf.name, &place, r.born_ms, txn_immunity(h->properties));
	tally_add(&b->tallies, &t->put, 1, 1, place.size);
	d.log_off = place.log_off;
	d.queue_off = place.queue_off;
	d.queue_id = queue_id;
	d.uniq_key = r.uniq_key;
	if (timed && !t->retry) {
		d.recall.p = handle;
		d.recall.n = timer_recall_handle(b, t->conf.name, due_ms, r.uniq_key, handle, sizeof handle);
	}
	stored(q, t, &place, s.wait, &d);
}

/* ---- A batch ------------------------------------------------------------------------------------------------------------- */

/* What a batch needs room for; kept from one to the next while small. */
struct send_batch {
	struct mqstore_record *record;
	struct mqstore_place *place;
	size_t n, cap;
	bool timed;
	struct buf ids, scratch;
};

static void batch_room(struct send_batch *k)
{
	if (k->n < k->cap)
		return;
	k->cap = k->cap ? k->cap * 2 : BATCH_KEEP;
	k->record = mem_realloc(k->record, k->cap * sizeof *k->record);
	k->place = mem_realloc(k->place, k->cap * sizeof *k->place);
}

static void batch_tidy(struct send_batch *k)
{
	if (k->cap > BATCH_KEEP) {
		free(k->record);
		free(k->place);
		k->record = NULL;
		k->place = NULL;
		k->cap = 0;
	}
	if (k->ids.cap > BATCH_KEEP * MQ_ID_TEXT)
		buf_free(&k->ids);
	buf_free(&k->scratch);
	k->n = k->ids.n = 0;
}

/* The batch's own properties stand behind those of each message, and win: as the peer stores it.  So a DELAY of the batch holds for
 * all of it. */
static bool batch_records(struct req *q, const struct send_header *h, struct topic *t, int32_t queue_id, struct send_batch *k,
                          bool *wait)
{
	struct broker *b = q->b;
	struct mq_str own = h->properties;
	struct mqstore_record common = { .parsed = true };
	struct property_scan all, s;
	struct batch_item item;
	int64_t due_ms = 0;
	size_t pos = 0;
	int rc;

	k->timed = false;
	property_scan(own, &all);
	if (all.tran_msg) {
		refuse(q, RESP_MESSAGE_ILLEGAL, "the message is illegal: a batch is no part of a transaction (property TRAN_MSG)");
		return false;
	}
	if (!may_store(q, &all, h->sysFlag, false))
		return false;
	if (all.delay_level > 0)
		common.delay_level = delay_level(b->delay, all.delay_level);
	else if (all.timer && !asks_for_time(q, own, &k->timed, &due_ms))
		return false;
	if (all.has_cluster || all.has_region || all.has_trace || all.has_pop_ck || common.delay_level || k->timed) {
		property_copy_without(&k->scratch, own, common.delay_level ? added_and_delay_props :
			k->timed ? added_and_timer_props : added_props);
		if (k->timed)
			timer_props(&k->scratch, due_ms, t->conf.name, queue_id);
		if (common.delay_level)
			delay_props(&k->scratch, common.delay_level, t->conf.name, queue_id);
		own = buf_view(&k->scratch);
		property_scan(own, &all);
	}
	common.queue = topic_queue(b->topics, t, queue_id, true);
	if (!common.queue) {
		refuse(q, RESP_SYSTEM_ERROR, "topic[%s] queue %d cannot be made", t->name, queue_id);
		return false;
	}
	if (common.delay_level)
		common.queue = delay_queue(b->delay, common.delay_level);
	else if (k->timed)
		common.queue = timer_queue(b->timer);
	*wait = all.wait;
	common_fields(q, h, t, &common);
	while ((rc = batch_next(q->f->body, &pos, &item)) > 0) {
		struct mqstore_record *r;

		if (!item.body.n) {
			refuse(q, RESP_MESSAGE_ILLEGAL, "the message is illegal: body %zu of the batch is empty", k->n + 1);
			return false;
		}
		property_scan(item.props, &s);
		if ((s.delay_level > 0 && !all.delay_level) || (s.timer && !all.timer && !all.delay_level)) {
			refuse(q, RESP_MESSAGE_ILLEGAL, "the message is illegal: message %zu of the batch has property %s: it would be "
			       "right for the batch as a whole", k->n + 1, s.delay_level > 0 ? "DELAY" : "TIMER_*");
			return false;
		}
		if (!may_store(q, &s, 0, false))
			return false;
		batch_room(k);
		r = &k->record[k->n++];
		*r = common;
		r->body = item.body;
		r->flag = item.flag;
		r->props[0] = item.props;
		r->props[1] = own;
		r->props[2] = buf_view(&b->send_props);
		r->uniq_key = all.uniq_key.n ? all.uniq_key : s.uniq_key;
		r->keys = all.keys.n ? all.keys : s.keys;
		r->tags = all.tags.n ? all.tags : s.tags;
		*wait = *wait && s.wait;
	}
	if (rc < 0 || !k->n) {
		refuse(q, RESP_MESSAGE_ILLEGAL, "the message is illegal: %s",
		       rc < 0 ? "the batch is cut or damaged" : "its body is empty");
		return false;
	}
	return true;
}

static void send_batch(struct req *q, const struct send_header *h, struct topic *t, int32_t queue_id)
{
	static struct send_batch k; /* one loop */
	struct broker *b = q->b;
	struct send_done d = { 0 };
	struct mq_error e;
	int64_t bytes = 0;
	bool wait;
	int rc;

	if (t->retry) {
		refuse(q, RESP_MESSAGE_ILLEGAL, "batch request does not support retry group " MQ_STR_FMT,
		       (int)(h->topic.n - (sizeof TOPIC_RETRY_PREFIX - 1)), h->topic.p + sizeof TOPIC_RETRY_PREFIX - 1);
		return;
	}
	if (q->f->body.n > (size_t)b->conf->maxMessageSize) {
		err_set(&e, MQ_ETOOBIG, "the batch has %zu bytes; maxMessageSize is %lld", q->f->body.n,
			(long long)b->conf->maxMessageSize);
		refused_by_store(q, MQ_ETOOBIG, e.text, true);
		return;
	}
	if (!batch_records(q, h, t, queue_id, &k, &wait) || !may_promise(q, wait))
		goto out;
	rc = mqstore_append(b->store, k.record, k.n, k.place, &e);
	if (rc < 0) {
		refused_by_store(q, rc, e.text, true);
		goto out;
	}
	for (size_t i = 0; i < k.n; i++) {
		char id[MQ_ID_TEXT];

		if (i)
			buf_char(&k.ids, ',');
		buf_put(&k.ids, id, mq_offset_id(&b->store_host, k.place[i].log_off, id));
		bytes += k.place[i].size;
	}
	b->metrics.messages_in += k.n;
	if (k.record[0].delay_level)
		delay_stored(b->delay, k.record[0].delay_level, k.n);
	else if (k.timed)
		timer_stored(b->timer, k.n);
	b->metrics.bytes_in += bytes;
	tally_add(&b->tallies, &t->put, 1, k.n, bytes);
	d.ids = buf_view(&k.ids);
	d.log_off = k.place[0].log_off;
	d.queue_off = k.place[0].queue_off;
	d.queue_id = queue_id;
	d.uniq_key = k.record[0].uniq_key;
	stored(q, t, &k.place[k.n - 1], wait, &d);
out:
	batch_tidy(&k);
}

bool send_check(struct req *q, const struct send_header *h, struct topic **t, int32_t *queue_id)
{
	*t = topic_of(q, h);
	return *t && may_send(q, h, *t, queue_id);
}

void handle_send(struct req *q)
{
	const struct send_header *h = q->h;
	struct topic *t;
	int32_t queue_id;

	q->b->metrics.send_requests++;
	if (!send_check(q, h, &t, &queue_id))
		return;
	if (h->batch)
		send_batch(q, h, t, queue_id);
	else
		send_one(q, h, t, queue_id);
}
