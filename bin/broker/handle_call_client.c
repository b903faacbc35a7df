/* handle_call_client.c: questions that the broker hands on to a client: 307 GET_CONSUMER_RUNNING_INFO.
 *
 * The request's fields and body go to the client as they are, and its answer comes back as it is: the broker looks at neither. */
#include "broker.h"
#include "client_table.h"
#include "handle.h"
#include <base/mem.h>

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

static void forward(struct req *q, struct mq_str group, struct mq_str client_id)
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
	for (uint32_t i = 0; i < q->f->nfields; i++) {
		char key[128];

		snprintf(key, sizeof key, MQ_STR_FMT, MQ_STR_ARG(q->f->field[i].key));
		if (!strpbrk(key, "\"\\"))
			frame_str(&o, key, q->f->field[i].value);
	}
	frame_body(&o);
	buf_str(o.buf, q->f->body);
	frame_end(&o);
	conn_kick(m->c);
}

void handle_running_info(struct req *q)
{
	const struct running_info_header *h = q->h;

	forward(q, h->consumerGroup, h->clientId);
}
