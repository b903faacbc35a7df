/* handle_call_client.c: questions that the broker hands on to clients: 307 GET_CONSUMER_RUNNING_INFO, 309 CONSUME_MESSAGE_DIRECTLY,
 * 223 INVOKE_BROKER_TO_GET_CONSUMER_STATUS.
 *
 * 307 and 309 go to one client with their fields as they are, and its answer comes back as it is: the broker looks at neither.
 * 223 is asked of all members of a group; one answer is made of theirs. */
#include "broker.h"
#include "client_table.h"
#include "handle.h"
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <codec/body_offset.h>

#define LOG_MODULE "client"

enum {
	CALL_TIMEOUT_MS = 10000,        /* the peer's */
	CALL_VERSION_MIN = 62,          /* V3_1_8_SNAPSHOT: older clients do not know these requests */
};

struct call {
	struct broker *b;
	struct later to;
	char *client_id;
};

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct call *call = arg;
	struct req q = later_req(call->b, &call->to);
	struct frame_out o;
	char remark[1024];

	if (rc < 0) {
		reply(&q, RESP_CONSUME_MSG_TIMEOUT, "client '%s' did not answer: %s", call->client_id, mq_strerror(rc));
	} else {
		snprintf(remark, sizeof remark, MQ_STR_FMT, MQ_STR_ARG(f->remark));
		reply_begin(&q, &o, f->code, f->remark.p ? remark : NULL);
		for (uint32_t i = 0; i < f->nfields; i++) {
			char key[128];

			/* Names with a quote or control byte would break the header: no client sends any. */
			snprintf(key, sizeof key, MQ_STR_FMT, MQ_STR_ARG(f->field[i].key));
			if (!strpbrk(key, "\"\\"))
				frame_str(&o, key, f->field[i].value);
		}
		frame_body(&o);
		buf_str(o.buf, f->body);
		reply_end(&q, &o);
	}
	later_drop(&call->to);
	free(call->client_id);
	free(call);
}

/* The fields of the request, as they are; but `brokerName` is ours if `named`. */
static void pass_fields(struct req *q, struct frame_out *o, bool named)
{
	for (uint32_t i = 0; i < q->f->nfields; i++) {
		char key[128];

		snprintf(key, sizeof key, MQ_STR_FMT, MQ_STR_ARG(q->f->field[i].key));
		if (!strpbrk(key, "\"\\") && !(named && strcmp(key, "brokerName") == 0))
			frame_str(o, key, q->f->field[i].value);
	}
	if (named)
		frame_cstr(o, "brokerName", q->b->conf->brokerName);
}

static void forward(struct req *q, struct mq_str group, struct mq_str client_id, bool named, struct mq_str body)
{
	struct client_group *g = client_table_consumers(q->b->clients, group);
	struct member *m = g ? client_group_member(g, client_id) : NULL;
	struct frame_out o;
	struct call *call;

	if (!m) {
		reply(q, RESP_SYSTEM_ERROR, "The Consumer <" MQ_STR_FMT "> <" MQ_STR_FMT "> not online", MQ_STR_ARG(group),
			MQ_STR_ARG(client_id));
		return;
	}
	if (m->version < CALL_VERSION_MIN) {
		reply(q, RESP_SYSTEM_ERROR, "The Consumer <" MQ_STR_FMT "> is of version %d; this needs %d or later", MQ_STR_ARG(client_id),
		      m->version, CALL_VERSION_MIN);
		return;
	}
	call = mem_alloc(sizeof *call);
	call->b = q->b;
	call->client_id = mem_strdup(m->client_id);
	later_take(&call->to, q);
	conn_call(m->c, &o, q->f->code, FRAME_JSON, CALL_TIMEOUT_MS, on_answer, call);
	pass_fields(q, &o, named);
	frame_body(&o);
	buf_str(o.buf, body);
	frame_end(&o);
	conn_kick(m->c);
}

void handle_running_info(struct req *q)
{
	const struct running_info_header *h = q->h;

	forward(q, h->consumerGroup, h->clientId, false, q->f->body);
}

/* The client gets the stored bytes of the message. */
void handle_consume_directly(struct req *q)
{
	const struct consume_directly_header *h = q->h;
	struct mq_host host;
	struct mq_str record;
	int64_t off;

	if (mq_offset_id_parse(h->msgId, &host, &off) < 0)
		reply(q, RESP_SYSTEM_ERROR, "msgId '" MQ_STR_FMT "' is no offset id: 32 or 56 hexadecimal digits", MQ_STR_ARG(h->msgId));
	else if (mqstore_at(q->b->store, off, &record) < 0)
		reply(q, RESP_SYSTEM_ERROR, "there is no message '" MQ_STR_FMT "'", MQ_STR_ARG(h->msgId));
	else
		forward(q, h->consumerGroup, h->clientId, true, record);
}

/* ---- 223 INVOKE_BROKER_TO_GET_CONSUMER_STATUS -------------------------------------------------------------------------- */

enum { STATUS_TIMEOUT_MS = 5000, STATUS_VERSION_MIN = 28 /* V3_0_7_SNAPSHOT */ };

struct status_of {
	struct status_call *call;
	char *client_id;
	struct body_consumer_status said;       /* n of own stays 0 if there was no good answer */
};
struct status_call {
	struct broker *b;
	struct later to;
	int asked, waits;
	struct status_of *of;
};

static void status_end(struct status_call *call)
{
	struct req q = later_req(call->b, &call->to);
	struct body_consumer_status body = { .client = mem_alloc((size_t)(call->asked + 1) * sizeof *body.client) };
	struct buf out = { 0 };

	for (int i = 0; i < call->asked; i++)
		if (call->of[i].said.keep.json)
			body.client[body.n++] = (struct body_client_offsets){ str_of(call->of[i].client_id), call->of[i].said.own };
	body_consumer_status_encode(&body, &out);
	reply_buf(&q, &out);
	free(body.client);
	for (int i = 0; i < call->asked; i++) {
		body_consumer_status_free(&call->of[i].said);
		free(call->of[i].client_id);
	}
	free(call->of);
	later_drop(&call->to);
	free(call);
}

static void on_status(void *arg, int rc, struct frame *f)
{
	struct status_of *of = arg;
	struct mq_error e;

	if (rc < 0 || f->code != RESP_SUCCESS)
		log_info("no consumer status client=%s: %s", of->client_id, rc < 0 ? mq_strerror(rc) : response_name(f->code));
	else if (body_consumer_status_decode(f->body, &of->said, &e) < 0)
		log_info("no consumer status client=%s: %s", of->client_id, e.text);
	if (--of->call->waits == 0)
		status_end(of->call);
}

void handle_consumer_status(struct req *q)
{
	const struct consumer_status_header *h = q->h;
	struct client_group *g = client_table_consumers(q->b->clients, h->group);
	struct status_call *call;

	if (!g || !g->nmembers) {
		reply(q, RESP_SYSTEM_ERROR, "No Any Consumer online in the consumer group: [" MQ_STR_FMT "]", MQ_STR_ARG(h->group));
		return;
	}
	for (struct member *m = g->members; m; m = m->next)
		if (m->version < STATUS_VERSION_MIN) {
			reply(q, RESP_SYSTEM_ERROR, "the client does not support this feature. version=%d", m->version);
			return;
		}
	call = mem_alloc(sizeof *call);
	call->b = q->b;
	call->of = mem_alloc((size_t)g->nmembers * sizeof *call->of);
	call->waits = 1;
	later_take(&call->to, q);
	for (struct member *m = g->members; m; m = m->next) {
		struct status_of *of = &call->of[call->asked];
		struct frame_out o;

		if (h->clientAddr.n && !str_is(h->clientAddr, m->client_id))
			continue;
		*of = (struct status_of){ .call = call, .client_id = mem_strdup(m->client_id) };
		call->asked++;
		call->waits++;
		conn_call(m->c, &o, REQ_GET_CONSUMER_STATUS_FROM_CLIENT, FRAME_JSON, STATUS_TIMEOUT_MS, on_status, of);
		frame_str(&o, "topic", h->topic);
		frame_str(&o, "group", h->group);
		frame_end(&o);
		conn_kick(m->c);
	}
	if (--call->waits == 0)
		status_end(call);
}
