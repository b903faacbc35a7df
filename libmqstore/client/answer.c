/* answer.c: requests that brokers send to clients: members changed, offsets reset, what are you doing; and those that other files
 * know about.
 *
 * What we do not do is answered with code 3, which the asker's tool shows. */
#include "answer.h"
#include "balance.h"
#include "direct.h"
#include "offset.h"
#include "pull.h"
#include "request.h"
#include "trace.h"
#include "half.h"
#include "../base/json.h"
#include "../codec/body_heartbeat.h"
#include "../codec/body_offset.h"

static struct mqclient_consumer *find_group(struct mqclient *c, struct mq_str group)
{
	struct mqclient_consumer *k;

	LIST_FOREACH(k, &c->consumers, entry)
		if (k->group && str_is(group, k->group))
			return k;
	return NULL;
}

static void answer(struct link *l, const struct frame *f, int32_t code, struct mq_str remark, struct mq_str body)
{
	struct frame_out o;

	if (f->flag & FRAME_ONEWAY)
		return;
	frame_answer(&o, conn_out(l->conn), frame_id_of(f), code, remark);
	frame_body(&o);
	buf_str(o.buf, body);
	frame_end(&o);
	if (l->c->trace)
		trace_answered(l, code, f);
	conn_kick(l->conn);
}

static struct body_queue queue_of(const struct pull *p)
{
	return (struct body_queue){ { p->topic->name, p->topic->name_n }, str_of(p->broker->name), p->q.id };
}

/* ---- 220: offsets were set by an administrator -------------------------------------------------------------------------- */

static void reset_offsets(struct mqclient_consumer *k, const struct frame *f)
{
	struct body_reset r;
	struct pull *p, *next;
	struct mq_error e;

	if (body_reset_decode(f->body, &r, &e) < 0) {
		client_log(k->c, 1, "reset of offsets of group '%s': %s", k->group, e.text);
		return;
	}
	for (size_t i = 0; i < r.n; i++) {
		const struct body_reset_queue *q = &r.queue[i];
		for (p = TAILQ_FIRST(&k->pulls); p; p = next) {
			next = TAILQ_NEXT(p, entry);
			if (!p->started || q->off < 0 || p->q.id != q->queue.id ||
			    !str_is(q->queue.broker, p->broker->name) || !str_is(q->queue.topic, p->topic->name))
				continue;
			client_log(k->c, 1, "offset of group '%s' in topic '%s' queue %s:%d was reset to %lld",
			           k->group, p->topic->name, p->broker->name, p->q.id, (long long)q->off);
			pull_seek(p, q->off);
			offset_commit(p);
			pull_go(p);
		}
	}
	body_reset_free(&r);
}

/* ---- 221: how far is everybody ------------------------------------------------------------------------------------------ */

static void put_status(struct mqclient_consumer *k, struct mq_str topic, struct buf *b)
{
	struct json_out o = json_to(b);
	struct body_queue q;
	struct pull *p;

	json_open(&o, '{');
	json_key(&o, "consumerTable");
	json_open(&o, '{');
	json_close(&o, '}');
	json_key(&o, "messageQueueTable");
	json_open(&o, '{');
	TAILQ_FOREACH(p, &k->pulls, entry) {
		if (!p->started || !str_is(topic, p->topic->name))
			continue;
		q = queue_of(p);
		body_queue_put_key(&o, &q);
		json_put_i64(&o, offset_point(p));
	}
	json_close(&o, '}');
	json_close(&o, '}');
}

/* ---- 307: what are you doing -------------------------------------------------------------------------------------------- */

static void put_queue(struct json_out *o, const struct pull *p)
{
	const struct window *w = &p->window;

	json_open(o, '{');
	json_member_i64(o, "cachedMsgCount", w->open);
	json_member_i64(o, "cachedMsgMaxOffset", w->n ? w->off[(w->head + w->n - 1) & (w->cap - 1)] : 0);
	json_member_i64(o, "cachedMsgMinOffset", w->n ? w->off[w->head] : 0);
	json_member_i64(o, "cachedMsgSizeInMiB", 0);
	json_member_i64(o, "commitOffset", offset_point(p));
	json_member_bool(o, "droped", false);
	json_member_i64(o, "lastConsumeTimestamp", 0);
	json_member_i64(o, "lastLockTimestamp", p->locked ? clock_wall_ms() - (client_now() - p->locked_ms) : 0);
	json_member_i64(o, "lastPullTimestamp", clock_wall_ms() - (client_now() - p->asked_ms));
	json_member_bool(o, "locked", p->locked);
	json_member_i64(o, "transactionMsgCount", 0);
	json_member_i64(o, "transactionMsgMaxOffset", 0);
	json_member_i64(o, "transactionMsgMinOffset", 0);
	json_member_i64(o, "tryUnlockTimes", 0);
	json_close(o, '}');
}

static void put_properties(struct mqclient_consumer *k, struct json_out *o)
{
	struct mqclient *c = k->c;
	struct buf b = { 0 };

	for (size_t i = 0; i < c->nns; i++)
		buf_printf(&b, "%s%s", i ? ";" : "", c->ns[i]->addr);
	json_key(o, "properties");
	json_open(o, '{');
	json_member_str(o, "PROP_NAMESERVER_ADDR", buf_view(&b));
	json_member_cstr(o, "PROP_CONSUME_TYPE", "CONSUME_PASSIVELY");
	json_member_cstr(o, "PROP_CLIENT_VERSION", MQ_PEER_VERSION_NAME);
	json_member_cstr(o, "PROP_CONSUMEORDERLY", k->orderly ? "true" : "false");
	json_member_cstr(o, "PROP_THREADPOOL_CORE_SIZE", "1");
	b.n = 0;
	buf_i64(&b, clock_wall_ms() - (client_now() - k->started_ms));
	json_member_str(o, "PROP_CONSUMER_START_TIMESTAMP", buf_view(&b));
	json_close(o, '}');
	buf_free(&b);
}

static void put_running(struct mqclient_consumer *k, struct buf *b)
{
	struct json_out o = json_to(b);
	struct body_queue q;
	struct pull *p;

	json_open(&o, '{');
	json_key(&o, "mqPopTable");
	json_open(&o, '{');
	json_close(&o, '}');
	json_key(&o, "mqTable");
	json_open(&o, '{');
	TAILQ_FOREACH(p, &k->pulls, entry) {
		q = queue_of(p);
		body_queue_put_key(&o, &q);
		put_queue(&o, p);
	}
	json_close(&o, '}');
	put_properties(k, &o);
	json_key(&o, "statusTable");
	json_open(&o, '{');
	json_close(&o, '}');
	json_key(&o, "subscriptionSet");
	json_open(&o, '[');
	for (size_t i = 0; i < k->nsubs; i++) {
		const struct sub *s = &k->subs[i];
		struct body_sub sub = { .topic = { s->topic->name, s->topic->name_n }, .expression = str_of(s->expr),
			                .type = s->sql ? MQ_STR("SQL92") : MQ_STR("TAG"), .version = s->version };
		body_sub_put(&o, &sub);
	}
	json_close(&o, ']');
	json_key(&o, "userConsumerInfo");
	json_open(&o, '{');
	json_close(&o, '}');
	json_close(&o, '}');
}

/* ---- Dispatch ----------------------------------------------------------------------------------------------------------- */

int answer_request(struct link *l, struct frame *f)
{
	struct mqclient *c = l->c;
	struct mqclient_consumer *k;
	struct mq_str none = { 0 };
	struct buf body = { 0 };
	char remark[200];

	switch (f->code) {
	case REQ_NOTIFY_CONSUMER_IDS_CHANGED:
		balance_group_changed(c, frame_get(f, "consumerGroup"));
		answer(l, f, RESP_SUCCESS, none, none);
		return 0;
	case REQ_CHECK_TRANSACTION_STATE:
		half_asked(l, f);
		answer(l, f, RESP_SUCCESS, none, none);
		return 0;
	case REQ_PUSH_REPLY_MESSAGE_TO_CLIENT:
		request_pushed(l, f);
		answer(l, f, RESP_SUCCESS, none, none);
		return 0;
	case REQ_RESET_CONSUMER_CLIENT_OFFSET:
	case REQ_GET_CONSUMER_STATUS_FROM_CLIENT:
		k = find_group(c, frame_get(f, "group"));
		break;
	case REQ_GET_CONSUMER_RUNNING_INFO:
		k = find_group(c, frame_get(f, "consumerGroup"));
		break;
	case REQ_CONSUME_MESSAGE_DIRECTLY:
		k = find_group(c, frame_get(f, "consumerGroup"));
		if (k && direct_begin(k, l, f))
			return 0;
		answer(l, f, k ? RESP_REQUEST_CODE_NOT_SUPPORTED : RESP_SYSTEM_ERROR,
		       k ? MQ_STR("this member takes no message directly: it has no command for it") :
		       MQ_STR("no consumer of this group here"), none);
		return 0;
	default:
		snprintf(remark, sizeof remark, "this client (mq %s) does not serve request %d", MQ_VERSION, f->code);
		answer(l, f, RESP_REQUEST_CODE_NOT_SUPPORTED, str_of(remark), none);
		return 0;
	}
	if (!k) {
		answer(l, f, RESP_SYSTEM_ERROR, MQ_STR("no consumer of this group here"), none);
		return 0;
	}
	if (f->code == REQ_RESET_CONSUMER_CLIENT_OFFSET)
		reset_offsets(k, f);
	else if (f->code == REQ_GET_CONSUMER_STATUS_FROM_CLIENT)
		put_status(k, frame_get(f, "topic"), &body);
	else
		put_running(k, &body);
	answer(l, f, RESP_SUCCESS, none, buf_view(&body));
	buf_free(&body);
	return 0;
}
