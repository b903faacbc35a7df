/* request.c: see request.h.
 *
 * A request is a message that names us (REPLY_TO_CLIENT) and itself (CORRELATION_ID).  Who consumes it sends the reply to the broker
 * it came from, which pushes it over the connection on which we have introduced ourselves as a producer: so a heartbeat
 * goes before the message. */
#include "request.h"
#include "done.h"
#include "heartbeat.h"
#include "link.h"
#include "route.h"
#include "../codec/message.h"
#include "../codec/property.h"

struct asked {
	char id[MQ_ID_TEXT];
	struct mqclient *c;
	mqclient_reply_cb *cb;
	void *arg;
	struct client_timer timer;
	bool sending;                   /* on_sent() is still to come */
	bool told;
	UT_hash_handle hh;
};

/* ---- Asking ---------------------------------------------------------------------------------------------------------- */

static void asked_free(struct asked *a)
{
	client_timer_stop(a->c, &a->timer);
	HASH_DEL(a->c->asked, a);
	free(a);
}

/* The one callback. */
static void tell(struct asked *a, int rc, const struct mq_error *e, const struct mq_message *m, struct mq_str body)
{
	static const struct mq_error none = { 0 };

	a->told = true;
	a->c->in_flight--;
	a->cb(a->arg, rc, e ? e : &none, m, body);
	if (!a->sending)
		asked_free(a);
}

static void on_timer(struct client_timer *t)
{
	struct asked *a = client_container(t, struct asked, timer);
	struct mq_error e;

	if (a->told)
		return;
	err_set(&e, MQ_ETIMEOUT, "request %s: no reply in time", a->id);
	tell(a, MQ_ETIMEOUT, &e, NULL, (struct mq_str){ 0 });
}

static void on_sent(void *arg, const struct mqclient_sent *r)
{
	struct asked *a = arg;

	a->sending = false;
	if (a->told)
		asked_free(a);
	else if (r->rc < 0)
		tell(a, r->rc, &r->err, NULL, (struct mq_str){ 0 });
}

static void put(struct buf *b, const char *name, struct mq_str value)
{
	property_put(b, str_of(name), value);
}

int mqclient_request(struct mqclient *c, const struct mq_message *m, const struct mqclient_send_opt *opt, mqclient_reply_cb *cb,
                     void *arg, struct mq_error *e)
{
	struct mqclient_send_opt o = *opt;
	struct mq_message with = *m;
	struct asked *a = mem_alloc(sizeof *a);
	struct buf props = { 0 };
	char ttl[24];
	int rc;

	*a = (struct asked){ .c = c, .cb = cb, .arg = arg, .sending = true, .timer.cb = on_timer };
	mqclient_new_id(c, a->id);
	o.introduce = true;
	o.oneway = false;
	if (o.timeout_ms <= 0)
		o.timeout_ms = c->timeout_ms;
	snprintf(ttl, sizeof ttl, "%d", o.timeout_ms);
	buf_str(&props, m->props);
	if (props.n && props.p[props.n - 1] != 2)
		buf_char(&props, 2);
	put(&props, PROP_CORRELATION_ID, str_of(a->id));
	put(&props, PROP_REPLY_TO, str_of(c->id));
	put(&props, PROP_TTL, str_of(ttl));
	with.props = buf_view(&props);
	rc = mqclient_send(c, &with, 1, &o, on_sent, a, e);
	buf_free(&props);
	if (rc < 0) {
		free(a);
		return rc;
	}
	HASH_ADD_STR(c->asked, id, a);
	c->in_flight++;
	client_timer_start(c, &a->timer, o.timeout_ms);
	return 0;
}

void request_pushed(struct link *l, struct frame *f)
{
	struct mqclient *c = l->c;
	struct mq_message m = { .topic = frame_get(f, "topic"), .body = f->body, .props = frame_get(f, "properties"), .queue_off = -1 };
	struct mq_str id = mq_prop_get(m.props, PROP_CORRELATION_ID), body;
	void *scratch = c->scratch.p;
	struct asked *a = NULL;
	struct mq_error e;

	str_i32(frame_get(f, "sysFlag"), &m.sys_flag);
	str_i32(frame_get(f, "flag"), &m.flag);
	str_i32(frame_get(f, "queueId"), &m.queue_id);
	str_i64(frame_get(f, "bornTimestamp"), &m.born_ms);
	str_i64(frame_get(f, "storeTimestamp"), &m.store_ms);
	if (id.n)
		HASH_FIND(hh, c->asked, id.p, id.n, a);
	if (!a || a->told) {
		client_log(c, 2, "%s: a reply that nobody waits for", l->addr);
		return;
	}
	if (mq_message_body(&m, CLIENT_BODY_MAX, &scratch, &c->scratch.cap, &body) < 0) {
		c->scratch.p = scratch;
		err_set(&e, MQ_ECORRUPT, "request %s: the compressed reply is damaged or too big", a->id);
		tell(a, MQ_ECORRUPT, &e, NULL, (struct mq_str){ 0 });
		return;
	}
	c->scratch.p = scratch;
	tell(a, 0, NULL, &m, body);
}

void request_cancel_all(struct mqclient *c)
{
	struct asked *a, *tmp;
	struct mq_error e;

	HASH_ITER(hh, c->asked, a, tmp) {
		if (a->told)
			continue;
		err_set(&e, MQ_ECANCELLED, "request %s: given up", a->id);
		tell(a, MQ_ECANCELLED, &e, NULL, (struct mq_str){ 0 });
	}
}

/* ---- Replying -------------------------------------------------------------------------------------------------------- */

bool mqclient_wants_reply(const struct mq_message *m)
{
	return mq_prop_get(m->props, PROP_REPLY_TO).n > 0 && mq_prop_get(m->props, PROP_CORRELATION_ID).n > 0;
}

int mqclient_reply(struct mqclient *c, const struct mq_message *request, const char *broker, const char *group, struct mq_str body,
                   mqclient_done_cb *cb, void *arg, struct mq_error *e)
{
	static const char *const kept[] = { PROP_CORRELATION_ID, PROP_REPLY_TO, PROP_TTL };
	struct mq_str cluster = mq_prop_get(request->props, PROP_CLUSTER);
	struct buf props = { 0 };
	char topic[300], id[MQ_ID_TEXT];
	struct frame_out o;
	struct link *l;
	int rc;

	if (!mqclient_wants_reply(request) || !cluster.n || cluster.n > 255)
		return err_set(e, MQ_EINVAL, "the message asks for no reply (REPLY_TO_CLIENT, CORRELATION_ID, CLUSTER)");
	if (body.n > MQ_BODY_MAX)
		return err_set(e, MQ_ETOOBIG, "reply has %zu bytes; %d are allowed", body.n, MQ_BODY_MAX);
	snprintf(topic, sizeof topic, MQ_STR_FMT "_REPLY_TOPIC", MQ_STR_ARG(cluster));
	rc = done_call(c, broker_get(c, str_of(broker)), REQ_SEND_REPLY_MESSAGE_V2, 0, &l, &o, cb, arg, e, "reply by way of %s", broker);
	if (rc < 0)
		return rc;
	mqclient_new_id(c, id);
	put(&props, "MSG_TYPE", MQ_STR("reply"));
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		if (mq_prop_get(request->props, kept[i]).n)
			put(&props, kept[i], mq_prop_get(request->props, kept[i]));
	put(&props, PROP_UNIQ_KEY, str_of(id));
	put(&props, PROP_WAIT, MQ_STR("true"));
	frame_cstr(&o, "a", group);
	frame_cstr(&o, "b", topic);
	frame_str(&o, "c", MQ_STR(ROUTE_TEMPLATE));
	frame_i64(&o, "d", ROUTE_DEFAULT_QUEUES);
	frame_i64(&o, "e", 0);
	frame_i64(&o, "f", 0);
	frame_i64(&o, "g", clock_wall_ms());
	frame_i64(&o, "h", 0);
	frame_str(&o, "i", buf_view(&props));
	frame_i64(&o, "j", 0);
	frame_bool(&o, "k", false);
	frame_bool(&o, "m", false);
	frame_cstr(&o, "n", broker);
	frame_body(&o);
	buf_str(o.buf, body);
	link_send(l, &o);
	buf_free(&props);
	return 0;
}
