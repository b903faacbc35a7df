/* direct.c: see direct.h.  The message comes as the body of the request; it is in no window, and no offset moves. */
#include "direct.h"
#include "link.h"
#include "../base/json.h"
#include "../codec/message.h"

struct mqclient_direct {
	struct conn *conn;              /* held */
	struct frame_id id;
	int64_t began_ms;
	bool order;
};

static void end(struct mqclient_direct *d, int32_t code, struct mq_str remark, struct mq_str body)
{
	struct frame_out o;

	frame_answer(&o, conn_out(d->conn), d->id, code, remark);
	frame_body(&o);
	buf_str(o.buf, body);
	frame_end(&o);
	conn_kick(d->conn);
	conn_unref(d->conn);
	free(d);
}

void mqclient_direct_end(struct mqclient_direct *d, bool consumed, const char *remark)
{
	struct buf b = { 0 };
	struct json_out o = json_to(&b);

	json_open(&o, '{');
	json_member_bool(&o, "autoCommit", true);
	json_member_cstr(&o, "consumeResult", consumed ? "CR_SUCCESS" : "CR_LATER");
	json_member_bool(&o, "order", d->order);
	if (remark)
		json_member_cstr(&o, "remark", remark);
	json_member_i64(&o, "spentTimeMills", client_now() - d->began_ms);
	json_close(&o, '}');
	end(d, RESP_SUCCESS, (struct mq_str){ 0 }, buf_view(&b));
	buf_free(&b);
}

bool direct_begin(struct mqclient_consumer *k, struct link *l, struct frame *f)
{
	struct mqclient *c = k->c;
	void *scratch = c->scratch.p;
	struct mqclient_direct *d;
	struct mqclient_queue q;
	struct mq_message m;
	struct mq_str body, broker = frame_get(f, "brokerName");

	if (!k->ops.direct || k->phase == CONSUME_LEAVING)
		return false;
	d = mem_alloc(sizeof *d);
	*d = (struct mqclient_direct){ .conn = l->conn, .id = frame_id_of(f), .began_ms = client_now(), .order = k->orderly };
	conn_ref(d->conn);
	if (mq_message_decode(f->body.p, f->body.n, false, &m) <= 0 ||
	    mq_message_body(&m, CLIENT_BODY_MAX, &scratch, &c->scratch.cap, &body) < 0) {
		c->scratch.p = scratch;
		end(d, RESP_SYSTEM_ERROR, MQ_STR("the message is damaged"), (struct mq_str){ 0 });
		return true;
	}
	c->scratch.p = scratch;
	q = (struct mqclient_queue){ broker.n ? broker_get(c, broker)->name : "", m.queue_id };
	k->ops.direct(k->arg, &m, body, &q, d);
	return true;
}
