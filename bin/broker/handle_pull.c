/* handle_pull.c: PULL_MESSAGE and LITE_PULL_MESSAGE: who may pull what, with which filter, and whether it may wait. */
#include "broker.h"
#include "client_table.h"
#include "group_table.h"
#include "handle.h"
#include "hold.h"
#include "offset_table.h"
#include "pull.h"
#include <base/conf.h>
#include <base/str.h>

enum { FORBIDDEN_BROKER = 1, FORBIDDEN_GROUP, FORBIDDEN_TOPIC, FORBIDDEN_BROADCAST, FORBIDDEN_SUBSCRIPTION };
enum { BYTES_MIN = 100, HOLD_MS_MAX = 24 * 3600 * 1000 };

static void forbid(struct req *q, int type, const char *remark)
{
	struct frame_out o;

	reply_begin(q, &o, RESP_NO_PERMISSION, remark);
	frame_i64(&o, "forbiddenType", type);
	reply_end(q, &o);
}

/* Answered if false. */
static bool may_pull(struct req *q, const struct pull_header *h, struct group **group, struct topic **topic)
{
	struct broker *b = q->b;
	char remark[512];

	if (b->conf->brokerRole == ROLE_SLAVE && !b->conf->slaveReadEnable) { /* compat: as the peer's flow control says it */
		reply(q, RESP_SYSTEM_BUSY, "[REJECTREQUEST]system busy, start flow control for a while: this is a slave, and "
		      "slaveReadEnable is false");
		return false;
	}
	if (!(b->conf->brokerPermission & PERM_READ)) {
		snprintf(remark, sizeof remark, "the broker[%s] pulling message is forbidden", b->conf->brokerIP1);
		forbid(q, FORBIDDEN_BROKER, remark);
		return false;
	}
	if (q->f->code == REQ_LITE_PULL_MESSAGE && !b->conf->litePullMessageEnable) {
		snprintf(remark, sizeof remark, "the broker[%s] for lite pull consumer is forbidden", b->conf->brokerIP1);
		forbid(q, FORBIDDEN_BROKER, remark);
		return false;
	}
	*group = group_table_find(b->groups, h->consumerGroup);
	if (!*group) {
		reply(q, RESP_SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group [" MQ_STR_FMT "] does not exist, " RESPONSE_FAQ,
		      MQ_STR_ARG(h->consumerGroup));
		return false;
	}
	if (!(*group)->conf.consume) {
		snprintf(remark, sizeof remark, "subscription group no permission, %s", (*group)->name);
		forbid(q, FORBIDDEN_GROUP, remark);
		return false;
	}
	*topic = topic_table_find(b->topics, h->topic);
	if (!*topic) {
		reply(q, RESP_TOPIC_NOT_EXIST, "topic[" MQ_STR_FMT "] not exist, apply first please! " RESPONSE_FAQ,
		      MQ_STR_ARG(h->topic));
		return false;
	}
	if (!((*topic)->conf.perm & PERM_READ)) {
		snprintf(remark, sizeof remark, "the topic[%s] pulling message is forbidden", (*topic)->name);
		forbid(q, FORBIDDEN_TOPIC, remark);
		return false;
	}
	if (h->queueId < 0 || h->queueId >= (*topic)->conf.read) {
		reply(q, RESP_SYSTEM_ERROR, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d] consumer:[%s]",
		      h->queueId, (*topic)->name, (*topic)->conf.read, conn_name(q->c));
		return false;
	}
	return true;
}

static bool may_filter(struct broker *b, const struct sub *s)
{
	return !s->sql || b->conf->enablePropertyFilter;
}

/* The pull's own subscription.  A reference, or NULL and answered. */
static struct sub *sub_of_pull(struct req *q, const struct pull_header *h)
{
	struct client_group *g = client_table_consumers(q->b->clients, h->consumerGroup);
	struct sub *s = g ? g->inline_sub : NULL;
	struct mq_str expr = h->subscription.n || !sub_is_tag(h->expressionType) ? h->subscription : MQ_STR("*");
	struct mq_error e;

	/* The same again, as from clients that say it in each pull: it is compiled already. */
	if (s && s->sql == !sub_is_tag(h->expressionType) && str_is(expr, s->expr) && str_is(h->topic, s->topic))
		return sub_get(s);
	if (sub_new(&s, h->topic, expr, h->expressionType, h->subVersion, &e) < 0) {
		reply(q, RESP_SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed: %s", e.text);
		return NULL;
	}
	if (s->why && may_filter(q->b, s)) {
		reply(q, RESP_SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed: %s", s->why);
		sub_put(s);
		return NULL;
	}
	if (g) {
		sub_put(g->inline_sub);
		g->inline_sub = sub_get(s);
	}
	return s;
}

/* The group's, from its members' heartbeats.  A reference, or NULL and answered. */
static struct sub *sub_of_group(struct req *q, const struct pull_header *h, const struct group *group)
{
	struct client_group *g = client_table_consumers(q->b->clients, h->consumerGroup);
	struct sub *s;

	if (!g) {
		reply(q, RESP_SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist: " MQ_STR_FMT ": send a heartbeat first"
		      RESPONSE_FAQ, MQ_STR_ARG(h->consumerGroup));
		return NULL;
	}
	if (g->model == MODEL_BROADCASTING && !group->conf.consume_broadcast) {
		char remark[512];

		snprintf(remark, sizeof remark, "the consumer group[%s] can not consume by broadcast way", group->name);
		forbid(q, FORBIDDEN_BROADCAST, remark);
		return NULL;
	}
	if (group_is_forbidden(group, h->topic)) {
		char remark[1024];

		snprintf(remark, sizeof remark, "the consumer group[%s] is forbidden for topic[" MQ_STR_FMT "]", group->name,
			 MQ_STR_ARG(h->topic));
		forbid(q, FORBIDDEN_SUBSCRIPTION, remark);
		return NULL;
	}
	s = client_group_sub(g, h->topic);
	if (!s) {
		reply(q, RESP_SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist: group '%s' does not subscribe to '"
		      MQ_STR_FMT "'" RESPONSE_FAQ, group->name, MQ_STR_ARG(h->topic));
		return NULL;
	}
	if (s->version < h->subVersion) {
		reply(q, RESP_SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest: have version %lld of '" MQ_STR_FMT
		      "', the pull has %lld", (long long)s->version, MQ_STR_ARG(h->topic), (long long)h->subVersion);
		return NULL;
	}
	if (s->why) { /* a filter that is older than the subscription (code 28) cannot be: both are one here */
		reply(q, RESP_FILTER_DATA_NOT_EXIST,
			"The broker's consumer filter data is not exist!Your expression may be wrong! %s", s->why);
		return NULL;
	}
	return sub_get(s);
}

static int64_t queue_max(struct broker *b, struct topic *t, int32_t id)
{
	struct mqstore_queue *q = topic_queue(b->topics, t, id, false);

	return q ? mqstore_queue_max(q) : 0;
}

void handle_pull(struct req *q)
{
	const struct pull_header *h = q->h;
	const struct broker_conf *c = q->b->conf;
	struct pull p = { .group = h->consumerGroup, .queue_id = h->queueId, .off = h->queueOffset,
			  .max_messages = h->maxMsgNums, .max_bytes = c->maxTransferBytesOnMessageInMemory };
	struct group *group;

	q->b->metrics.pull_requests++;
	if (!may_pull(q, h, &group, &p.topic))
		return;
	p.sub = h->sysFlag & PULL_SUBSCRIPTION ? sub_of_pull(q, h) : sub_of_group(q, h, group);
	if (!p.sub)
		return;
	if (!may_filter(q->b, p.sub)) {
		reply(q, RESP_SYSTEM_ERROR, "The broker does not support consumer to filter message by SQL92");
		goto out;
	}
	if (p.max_messages > c->maxTransferCountOnMessageInMemory)
		p.max_messages = c->maxTransferCountOnMessageInMemory;
	if (p.max_messages < 1) /* compat: Go's pull consumer says 0; the peer's first message always gets through */
		p.max_messages = 1;
	if (h->maxMsgBytes > 0 && h->maxMsgBytes < p.max_bytes)
		p.max_bytes = h->maxMsgBytes < BYTES_MIN ? BYTES_MIN : h->maxMsgBytes;
	/* While a reset waits, what the client thinks it has done is not what it is to do. */
	if ((h->sysFlag & PULL_COMMIT_OFFSET) &&
	    !offset_table_has_reset(q->b->offsets, h->topic, h->consumerGroup, h->queueId))
		offset_table_commit(q->b->offsets, h->topic, h->consumerGroup, h->queueId, h->commitOffset,
				    queue_max(q->b, p.topic, h->queueId), conn_name(q->c));
	if (pull_try(q, &p))
		goto out;
	if ((h->sysFlag & PULL_SUSPEND) && h->suspendTimeoutMillis > 0) {
		int64_t ms = c->longPollingEnable ? h->suspendTimeoutMillis : c->shortPollingTimeMills;

		if (hold_park(q->b->hold, q, &p, ms < HOLD_MS_MAX ? ms : HOLD_MS_MAX))
			goto out;
		q->b->metrics.pulls_not_held++;
	}
	pull_nothing(q, &p);
out:
	sub_put(p.sub);
}
