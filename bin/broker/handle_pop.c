/* handle_pop.c: POP_MESSAGE, PEEK_MESSAGE, NOTIFICATION, POLLING_INFO: who may pop what, with which filter, and whether it may wait. */
#include "broker.h"
#include "client_table.h"
#include "group_table.h"
#include "handle.h"
#include "pop.h"
#include "pop_hold.h"
#include <base/clock.h>
#include <base/str.h>

enum { LATE_MS = 500 };         /* a request that was under way for longer than its time to wait */

/* What all of them ask first.  NULL: answered. */
static struct topic *readable_topic(struct req *q, struct mq_str name, int32_t queue_id, struct mq_str group)
{
	struct broker *b = q->b;
	struct topic *t;
	struct group *g;

	t = topic_table_find(b->topics, name);
	if (!t) {
		reply(q, RESP_TOPIC_NOT_EXIST, "topic[" MQ_STR_FMT "] not exist, apply first please!", MQ_STR_ARG(name));
		return NULL;
	}
	if (!(t->conf.perm & PERM_READ)) {
		reply(q, RESP_NO_PERMISSION, "the topic[%s] peeking message is forbidden", t->name);
		return NULL;
	}
	if (queue_id >= t->conf.read) {
		reply(q, RESP_SYSTEM_ERROR, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[%s]", queue_id,
		      t->name, t->conf.read, conn_name(q->c));
		return NULL;
	}
	g = group_table_find(b->groups, group);
	if (!g) {
		reply(q, RESP_SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group [" MQ_STR_FMT "] does not exist", MQ_STR_ARG(group));
		return NULL;
	}
	if (!g->conf.consume) {
		reply(q, RESP_NO_PERMISSION, "subscription group no permission, %s", g->name);
		return NULL;
	}
	return t;
}

static bool may_read(struct req *q)
{
	if (q->b->conf->brokerRole == ROLE_SLAVE) {
		reply(q, RESP_SYSTEM_ERROR, "the broker[%s] is a slave: pops are noted by the master", q->b->conf->brokerIP1);
		return false;
	}
	if (q->b->conf->brokerPermission & PERM_READ)
		return true;
	reply(q, RESP_NO_PERMISSION, "the broker[%s] pop message is forbidden", q->b->conf->brokerIP1);
	return false;
}

/* What the peer asks of a pop itself, in its order. */
static bool may_pop(struct req *q, const struct pop_header *h, int64_t born_ms)
{
	const struct broker_conf *c = q->b->conf;

	if (clock_now_ms() - born_ms - h->pollTime > LATE_MS) {
		reply(q, RESP_POLLING_TIMEOUT, "the broker[%s] pop message is timeout too much", c->brokerIP1);
		return false;
	}
	if (!may_read(q))
		return false;
	if (h->maxMsgNums > RECEIPT_POP_MAX) {
		reply(q, RESP_SYSTEM_ERROR, "the broker[%s] pop message's num is greater than %d", c->brokerIP1, RECEIPT_POP_MAX);
		return false;
	}
	if (!c->timerWheelEnable) {
		reply(q, RESP_SYSTEM_ERROR, "the broker[%s] pop message is forbidden because timerWheelEnable is false", c->brokerIP1);
		return false;
	}
	if (h->invisibleTime < 0 || h->invisibleTime > POP_INVISIBLE_MAX_MS) {
		reply(q, RESP_SYSTEM_ERROR, "invisibleTime %lld: 0 to %d ms would be right", (long long)h->invisibleTime,
		      POP_INVISIBLE_MAX_MS);
		return false;
	}
	return true;
}

/* The name of the retry topic holds both; a record has room for so much. */
static bool names_fit(struct req *q, struct mq_str topic, struct mq_str group)
{
	char name[RECEIPT_TOPIC_MAX + 1];

	if (receipt_topic(name, RECEIPT_RETRY_V1, topic, group).p)
		return true;
	reply(q, RESP_SYSTEM_ERROR, "topic and group have %zu characters together: of what is popped at most %d would fit into the name of "
	      "the topic for retries", topic.n + group.n, (int)(RECEIPT_TOPIC_MAX - sizeof "%RETRY%"));
	return false;
}

/* *s: a reference, or NULL for everything.  False: answered. */
static bool filter(struct req *q, const struct pop_header *h, struct sub **s)
{
	struct client_group *g = client_table_consumers(q->b->clients, h->consumerGroup);
	struct sub *old = g ? g->inline_sub : NULL;
	struct mq_error e;

	*s = NULL;
	if (!h->exp.n || (sub_is_tag(h->expType) && str_is(h->exp, "*")))
		return true;
	if (old && old->sql == !sub_is_tag(h->expType) && str_is(h->exp, old->expr) && str_is(h->topic, old->topic)) {
		*s = sub_get(old);
		return true;
	}
	if (sub_new(s, h->topic, h->exp, h->expType, clock_now_ms(), &e) < 0 || (*s)->why) {
		reply(q, RESP_SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed: %s", *s ? (*s)->why : e.text);
		sub_put(*s);
		return false;
	}
	if ((*s)->sql && !q->b->conf->enablePropertyFilter) {
		reply(q, RESP_SYSTEM_ERROR, "The broker does not support consumer to filter message by SQL92");
		sub_put(*s);
		return false;
	}
	if (g) {
		sub_put(g->inline_sub);
		g->inline_sub = sub_get(*s);
	}
	return true;
}

static void look_or_wait(struct req *q, const struct pop *p, int64_t born_ms, int64_t poll_ms)
{
	int64_t left = born_ms + poll_ms - clock_now_ms();
	struct pop_wait w;
	int32_t code;

	if (pop_try(q, p, &w))
		return;
	code = pop_hold_park(q->b->pops, q, p, &w, left < poll_ms ? left : poll_ms);
	if (!code)
		return;
	if (code == RESP_POLLING_FULL)
		q->b->metrics.pulls_not_held++;
	pop_nothing(q, p, code);
}

void handle_pop(struct req *q)
{
	const struct pop_header *h = q->h;
	int64_t born = h->bornTime ? h->bornTime : clock_now_ms();
	struct pop p = { .group = h->consumerGroup, .attempt = h->attemptId, .queue_id = h->queueId < 0 ? -1 : h->queueId,
			 .max_messages = h->maxMsgNums < 1 ? 1 : h->maxMsgNums, .init_mode = h->initMode, .invisible_ms = h->invisibleTime,
			 .order = h->order };

	q->b->metrics.pop_requests++;
	if (!may_pop(q, h, born) || !names_fit(q, h->topic, h->consumerGroup))
		return;
	p.topic = readable_topic(q, h->topic, h->queueId, h->consumerGroup);
	if (!p.topic || !filter(q, h, &p.sub))
		return;
	look_or_wait(q, &p, born, h->pollTime);
	sub_put(p.sub);
}

void handle_peek(struct req *q)
{
	const struct peek_header *h = q->h;
	struct pop p = { .group = h->consumerGroup, .queue_id = h->queueId < 0 ? -1 : h->queueId, .peek = true,
			 .max_messages = h->maxMsgNums < RECEIPT_POP_MAX ? h->maxMsgNums : RECEIPT_POP_MAX };
	struct pop_wait w;

	if (!(q->b->conf->brokerPermission & PERM_READ)) {
		reply(q, RESP_NO_PERMISSION, "the broker[%s] peeking message is forbidden", q->b->conf->brokerIP1);
		return;
	}
	p.topic = readable_topic(q, h->topic, h->queueId, h->consumerGroup);
	if (p.topic)
		pop_try(q, &p, &w);
}

void handle_notification(struct req *q)
{
	const struct notification_header *h = q->h;
	struct pop p = { .group = h->consumerGroup, .attempt = h->attemptId, .queue_id = h->queueId < 0 ? -1 : h->queueId,
			 .order = h->order, .notify = true };

	if (!may_read(q))
		return;
	p.topic = readable_topic(q, h->topic, h->queueId, h->consumerGroup);
	if (p.topic)
		look_or_wait(q, &p, h->bornTime ? h->bornTime : clock_now_ms(), h->pollTime);
}

void handle_polling_info(struct req *q)
{
	const struct polling_info_header *h = q->h;
	struct frame_out o;

	if (!may_read(q) || !readable_topic(q, h->topic, h->queueId, h->consumerGroup))
		return;
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_i64(&o, "pollingNum", (int64_t)pop_hold_count(q->b->pops, h->topic, h->consumerGroup, h->queueId));
	reply_end(q, &o);
}
