/* ask.c: raw requests of the user: to one server, or to a name server; with a callback, or waiting. */
#include "ask.h"
#include "nameserver.h"
#include "route.h"
#include "../base/json.h"
#include "../net/server.h"

/* ---- A request kept whole -------------------------------------------------------------------------------------------- */

void request_keep(struct request *r, int code, const struct mqclient_field *fields, size_t nfields, struct mq_str body,
                  int32_t timeout_ms)
{
	size_t n = nfields * sizeof *fields + body.n;
	char *to;

	for (size_t i = 0; i < nfields; i++)
		n += strlen(fields[i].name) + 1 + fields[i].value.n;
	*r = (struct request){ .code = code, .timeout_ms = timeout_ms, .nfields = nfields };
	r->fields = mem_alloc(n ? n : 1);
	to = (char *)(r->fields + nfields);
	for (size_t i = 0; i < nfields; i++) {
		size_t name_n = strlen(fields[i].name) + 1;
		r->fields[i].name = memcpy(to, fields[i].name, name_n);
		to += name_n;
		if (!fields[i].value.p)
			continue;
		r->fields[i].value = (struct mq_str){ to, fields[i].value.n };
		memcpy(to, fields[i].value.p, fields[i].value.n);
		to += fields[i].value.n;
	}
	if (body.n) {
		r->body = (struct mq_str){ to, body.n };
		memcpy(to, body.p, body.n);
	}
}

void request_free(struct request *r)
{
	free(r->fields);
	*r = (struct request){ 0 };
}

int request_write(const struct request *r, struct link *l, conn_answer_cb *cb, void *arg, struct mq_error *e)
{
	struct frame_out o;
	int rc = link_call(l, &o, r->code, r->timeout_ms, cb, arg, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < r->nfields; i++)
		frame_str(&o, r->fields[i].name, r->fields[i].value);
	frame_body(&o);
	buf_str(o.buf, r->body);
	link_send(l, &o);
	return 0;
}

/* ---- Asking ---------------------------------------------------------------------------------------------------------- */

struct ask {
	struct mqclient *c;
	struct link *link;              /* NULL: any name server */
	mqclient_answer_cb *cb;
	void *arg;
	struct client_timer later;      /* to report a failure that was known at once */
	int rc;
	struct mq_error why;
};

static void ask_end(struct ask *a, int rc, struct frame *f, const struct mq_error *e)
{
	struct mqclient_answer out;
	struct mqclient_field field[FRAME_FIELDS_MAX];
	/* Names of fields become C strings, one behind the other; they are short. */
	struct buf names = { 0 };
	size_t at = 0;

	memset(&out, 0, sizeof out - sizeof out.err);
	out.err.code = rc;
	out.err.response = 0;
	out.err.text[0] = 0;
	out.rc = rc;
	if (rc == 0 && f) {
		out.code = f->code;
		out.remark = f->remark;
		out.body = f->body;
		for (uint32_t i = 0; i < f->nfields; i++) {
			buf_str(&names, f->field[i].key);
			buf_char(&names, 0);
		}
		for (uint32_t i = 0; i < f->nfields; i++) {
			field[i].name = names.p + at;
			field[i].value = f->field[i].value;
			at += f->field[i].key.n + 1;
		}
		out.fields = field;
		out.nfields = f->nfields;
	} else if (e) {
		out.err = *e;
	}
	a->c->in_flight--;
	a->cb(a->arg, &out);
	buf_free(&names);
	free(a);
}

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct ask *a = arg;
	struct mq_error e;

	if (rc < 0)
		rc = link_error(a->link, rc, NULL, &e);
	ask_end(a, rc, f, &e);
}

static void on_nameserver(void *arg, int rc, struct frame *f, const struct mq_error *e)
{
	ask_end(arg, rc, f, e);
}

static void on_later(struct client_timer *t)
{
	struct ask *a = client_container(t, struct ask, later);

	ask_end(a, a->rc, NULL, &a->why);
}

int mqclient_ask(struct mqclient *c, const char *to, int code, const struct mqclient_field *fields, size_t nfields,
                 struct mq_str body, int32_t timeout_ms, mqclient_answer_cb *cb, void *arg)
{
	char host[ADDR_HOST_MAX];
	struct request r;
	struct ask *a;
	int port, rc;

	if (nfields > FRAME_FIELDS_MAX || body.n > FRAME_MAX / 2)
		return MQ_ETOOBIG;
	if (to && !str_starts(str_of(to), "unix:")) {
		rc = addr_split(to, host, &port, NULL);
		if (rc < 0)
			return rc;
	}
	a = mem_alloc(sizeof *a);
	a->c = c;
	a->cb = cb;
	a->arg = arg;
	a->later.cb = on_later;
	c->in_flight++;
	if (timeout_ms <= 0)
		timeout_ms = c->timeout_ms;
	if (!to) {
		nameserver_call(c, code, fields, nfields, body, timeout_ms, on_nameserver, a);
		return 0;
	}
	a->link = link_get(c, to);
	/* A person asks, or a script: a pause after an earlier failure is not for them. */
	link_retry_now(a->link);
	request_keep(&r, code, fields, nfields, body, timeout_ms);
	a->rc = request_write(&r, a->link, on_answer, a, &a->why);
	request_free(&r);
	if (a->rc < 0)
		client_timer_start(c, &a->later, 0);
	return 0;
}

/* ---- Waiting --------------------------------------------------------------------------------------------------------- */

struct waiting {
	struct mqclient *c;
	struct mqclient_answer *a;
	bool done;
};

/* Copy what the answer points to behind one another; pointers are set when the buffer no longer moves. */
static void on_waited(void *arg, const struct mqclient_answer *in)
{
	struct waiting *w = arg;
	struct mqclient *c = w->c;
	struct buf *b = &c->wait_buf;
	struct mqclient_answer *out = w->a;
	size_t at = 0;

	w->done = true;
	*out = *in;
	b->n = 0;
	for (size_t i = 0; i < in->nfields; i++) {
		buf_put(b, in->fields[i].name, strlen(in->fields[i].name) + 1);
		buf_str(b, in->fields[i].value);
	}
	buf_str(b, in->remark);
	buf_str(b, in->body);
	buf_char(b, 0);

	c->wait_fields = mem_realloc(c->wait_fields, (in->nfields + 1) * sizeof *c->wait_fields);
	for (size_t i = 0; i < in->nfields; i++) {
		c->wait_fields[i].name = b->p + at;
		at += strlen(b->p + at) + 1;
		c->wait_fields[i].value = (struct mq_str){ b->p + at, in->fields[i].value.n };
		at += in->fields[i].value.n;
	}
	out->fields = c->wait_fields;
	if (in->remark.p)
		out->remark.p = b->p + at;
	at += in->remark.n;
	if (in->body.p)
		out->body.p = b->p + at;
}

int mqclient_ask_wait(struct mqclient *c, const char *to, int code, const struct mqclient_field *fields, size_t nfields,
                      struct mq_str body, int32_t timeout_ms, struct mqclient_answer *a)
{
	struct waiting w = { .c = c, .a = a };
	int rc = mqclient_ask(c, to, code, fields, nfields, body, timeout_ms, on_waited, &w);

	if (rc < 0) {
		memset(a, 0, sizeof *a);
		a->rc = rc;
		if (rc == MQ_EINVAL)
			err_set(&a->err, rc, "address '%.100s': host:port is wanted", to);
		else
			err_sys(&a->err, rc, "request %d", code);
		return rc;
	}
	/* Exactly one callback comes, at the time-out at the latest. */
	while (!w.done)
		mqclient_run(c, -1);
	return a->rc;
}

/* ---- Routes for the user --------------------------------------------------------------------------------------------- */

struct route_ask {
	struct mqclient *c;
	mqclient_text_cb *cb;
	void *arg;
	char *topic;
};

static void on_route(void *arg, int rc, struct frame *f, const struct mq_error *err)
{
	struct route_ask *r = arg;
	struct mq_error e;
	char *text = NULL;
	char show[200];
	json_t *j;

	if (rc < 0)
		e = *err;
	else if (f->code == RESP_TOPIC_NOT_EXIST)
		rc = err_set(&e, MQ_ENOROUTE, "topic '%s': no broker serves it", r->topic);
	else if (f->code != 0) {
		rc = err_set(&e, MQ_EREFUSED, "route of topic '%s': %s: %s", r->topic, response_name(f->code),
		             str_show(f->remark, show, sizeof show));
		e.response = f->code;
	} else {
		/* Old name servers know only the dialect. */
		j = json_parse(f->body, &e);
		if (j) {
			text = json_dumps(j, JSON_COMPACT);
			json_decref(j);
		} else {
			err_wrap(&e, "route of topic '%s'", r->topic);
			rc = MQ_EPROTO;
		}
	}
	r->c->in_flight--;
	r->cb(r->arg, rc, rc < 0 ? &e : NULL, str_of(text));
	free(text);
	free(r->topic);
	free(r);
}

int mqclient_route(struct mqclient *c, struct mq_str topic, mqclient_text_cb *cb, void *arg)
{
	struct mqclient_field fields[] = { { "topic", topic }, { "acceptStandardJsonOnly", MQ_STR("true") } };
	struct route_ask *r;
	int rc = mq_check_topic(topic, NULL);

	if (rc < 0)
		return rc;
	r = mem_alloc(sizeof *r);
	*r = (struct route_ask){ c, cb, arg, str_dup(topic) };
	c->in_flight++;
	nameserver_call(c, REQ_GET_ROUTEINFO_BY_TOPIC, fields, 2, (struct mq_str){ 0 }, 0, on_route, r);
	return 0;
}

struct queues_wait {
	struct route_wait wait;
	struct mq_error *e;
	int rc;
	bool done;
};

static void on_queues(struct route_wait *rw, int rc, const struct mq_error *e)
{
	struct queues_wait *w = client_container(rw, struct queues_wait, wait);

	w->done = true;
	w->rc = rc;
	if (rc < 0 && e && w->e)
		*w->e = *e;
}

int mqclient_queues_wait(struct mqclient *c, struct mq_str topic, bool for_write, struct mqclient_queue *out, int cap,
                         struct mq_error *err)
{
	struct queues_wait w = { .wait = { .cb = on_queues, .for_write = for_write }, .e = err };
	struct route_queue *v;
	struct topic *t;
	size_t n;
	int rc = mq_check_topic(topic, err);

	if (rc < 0)
		return rc;
	t = route_topic(c, topic);
	route_wait(t, &w.wait);
	while (!w.done)
		mqclient_run(c, -1);
	if (w.rc < 0)
		return w.rc;
	v = for_write ? t->write : t->read;
	n = for_write ? t->nwrite : t->nread;
	for (size_t i = 0; i < n && i < (size_t)(cap > 0 ? cap : 0); i++)
		out[i] = (struct mqclient_queue){ v[i].broker->name, v[i].id };
	return (int)n;
}
