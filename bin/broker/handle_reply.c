/* handle_reply.c: SEND_REPLY_MESSAGE: the answer to a request message goes to the client that asked, over its own connection.
 *
 * The request was a message like any other; it names the client in REPLY_TO_CLIENT.  The reply is stored too (storeReplyMessageEnable),
 * before it is pushed and whatever becomes of that: for the record only.  The replier is answered when the asker has answered. */
#include "broker.h"
#include "client_table.h"
#include "ha_master.h"
#include "handle.h"
#include "settle.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/property.h>
#include <stdlib.h>

#define LOG_MODULE "reply"

enum { PUSH_TIMEOUT_MS = 10000 };       /* the peer's */

struct reply_push {
	struct broker *b;
	struct later to;
	struct send_done done;
	bool stored;
	char asker[];                   /* NUL-terminated */
};

/* ---- The answer to the replier ------------------------------------------------------------------------------------------- */

static void answer(struct req *q, const struct reply_push *p, const char *trouble)
{
	char id[MQ_ID_TEXT];
	struct frame_out o;

	if (!trouble && p->stored) {
		settle_send(q->b->settle, q, &p->done);
		return;
	}
	reply_begin(q, &o, trouble ? RESP_SYSTEM_ERROR : RESP_SUCCESS, trouble);
	if (p->stored)
		frame_str(&o, "msgId", (struct mq_str){ id, mq_offset_id(&q->b->store_host, p->done.log_off, id) });
	else
		frame_cstr(&o, "msgId", "0"); /* clients want one */
	frame_i64(&o, "queueId", p->done.queue_id);
	frame_i64(&o, "queueOffset", p->done.queue_off);
	frame_cstr(&o, "MSG_REGION", q->b->conf->regionId);
	frame_bool(&o, "TRACE_ON", q->b->conf->traceOn);
	reply_end(q, &o);
}

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct reply_push *p = arg;
	struct req q = later_req(p->b, &p->to);
	char trouble[512];

	if (rc < 0)
		snprintf(trouble, sizeof trouble, "push reply message to %s fail: %s", p->asker, mq_strerror(rc));
	else if (f->code != RESP_SUCCESS)
		snprintf(trouble, sizeof trouble, "push reply message to %s fail: " MQ_STR_FMT, p->asker, MQ_STR_ARG(f->remark));
	if (rc < 0 || f->code != RESP_SUCCESS)
		p->b->metrics.replies_failed++;
	else
		p->b->metrics.replies_pushed++;
	answer(&q, p, rc < 0 || f->code != RESP_SUCCESS ? trouble : NULL);
	later_drop(&p->to);
	free(p);
}

/* ---- Store and push ------------------------------------------------------------------------------------------------------ */

/* As it came: nothing is added to it.  A failure is only said in the log, as with the peer: the asker waits. */
static void store(struct req *q, const struct send_header *h, struct topic *t, struct reply_push *p)
{
	struct broker *b = q->b;
	struct mqstore_record r = {
		.body = q->f->body, .props = { h->properties }, .flag = h->flag, .reconsume_times = h->reconsumeTimes,
		.sys_flag = h->sysFlag & (MQ_SYS_COMPRESSED | MQ_SYS_COMPRESS_TYPE), .born_ms = h->bornTimestamp,
		.born_host = conn_public(q->c)->peer, .store_host = b->store_host, .parsed = true,
		.queue = topic_queue(b->topics, t, p->done.queue_id, true),
	};
	struct property_scan s;
	struct mqstore_place place;
	struct mq_error e = { 0 };

	property_scan(h->properties, &s);
	r.uniq_key = s.uniq_key;
	r.keys = s.keys;
	r.tags = s.tags;
	if (!r.queue || mqstore_append(b->store, &r, 1, &place, &e) < 0) {
		b->metrics.sends_refused++;
		log_warn("reply not stored topic=%s queue=%d: %s", t->name, p->done.queue_id, r.queue ? e.text : "it cannot be made");
		return;
	}
	b->metrics.messages_in++;
	b->metrics.bytes_in += place.size;
	tally_add(&b->tallies, &t->put, 1, 1, place.size);
	p->stored = true;
	p->done.log_off = place.log_off;
	p->done.queue_off = place.queue_off;
	if (s.wait)
		settle_promise(b->settle, &p->done, place.end_off, ha_master_need(b->ha));
}

static void push(struct req *q, const struct send_header *h, struct member *asker, struct reply_push *p)
{
	struct buf *props = &q->b->scratch;
	char born[MQ_HOST_TEXT], stored[MQ_HOST_TEXT];
	struct frame_out o;

	props->n = 0;
	buf_str(props, h->properties);
	if (props->p[props->n - 1] != 0x02)
		buf_char(props, 0x02);
	buf_printf(props, "PUSH_REPLY_TIME\001%lld\002", (long long)clock_now_ms());
	conn_call(asker->c, &o, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT, FRAME_JSON, PUSH_TIMEOUT_MS, on_answer, p);
	frame_str(&o, "producerGroup", h->producerGroup);
	frame_str(&o, "topic", h->topic);
	frame_str(&o, "defaultTopic", h->defaultTopic);
	frame_i64(&o, "defaultTopicQueueNums", h->defaultTopicQueueNums);
	frame_i64(&o, "queueId", h->queueId);
	frame_i64(&o, "sysFlag", h->sysFlag);
	frame_i64(&o, "bornTimestamp", h->bornTimestamp);
	frame_i64(&o, "flag", h->flag);
	frame_str(&o, "properties", buf_view(props));
	frame_i64(&o, "reconsumeTimes", h->reconsumeTimes);
	frame_bool(&o, "unitMode", h->unitMode);
	frame_cstr(&o, "bornHost", mq_host_text(&conn_public(q->c)->peer, born));
	frame_cstr(&o, "storeHost", mq_host_text(&q->b->store_host, stored));
	frame_i64(&o, "storeTimestamp", clock_now_ms());
	frame_body(&o);
	buf_str(o.buf, q->f->body);
	frame_end(&o);
	conn_kick(asker->c);
}

void handle_reply(struct req *q)
{
	const struct send_header *h = q->h;
	struct mq_str asker = mq_prop_get(h->properties, "REPLY_TO_CLIENT");
	struct reply_push *p;
	struct topic *t;
	struct member *m;
	int32_t queue_id;
	char trouble[512];

	q->b->metrics.send_requests++;
	if (!send_check(q, h, &t, &queue_id))
		return;
	p = mem_alloc(sizeof *p + asker.n + 1);
	memcpy(p->asker, asker.p ? asker.p : "", asker.n);
	p->b = q->b;
	p->done.queue_id = queue_id;
	if (q->b->conf->storeReplyMessageEnable && q->f->body.n)
		store(q, h, t, p);
	m = asker.n ? client_table_producer(q->b->clients, asker) : NULL;
	if (m) {
		later_take(&p->to, q);
		push(q, h, m, p);
		return;
	}
	q->b->metrics.replies_failed++;
	if (asker.n)
		snprintf(trouble, sizeof trouble, "push reply message fail, channel of <%s> not found.", p->asker);
	else
		snprintf(trouble, sizeof trouble, "reply message properties[REPLY_TO_CLIENT] is null");
	answer(q, p, trouble);
	free(p);
}
