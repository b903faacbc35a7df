/* nameserver.c: see nameserver.h. */
#include "nameserver.h"
#include "ask.h"
#include "embedded.h"

struct ns_call {
	TAILQ_ENTRY(ns_call) entry;     /* while it waits for the list */
	struct mqclient *c;
	struct request r;
	size_t left;                    /* servers that were not tried */
	int starts;                     /* file: so often we had its broker started */
	size_t at;                      /* the one that is being asked */
	nameserver_cb *cb;
	void *arg;
	struct client_timer later;
	struct mq_error why;
};

static void call_next(struct ns_call *call);

static void call_end(struct ns_call *call, int rc, struct frame *f)
{
	struct mq_error why = call->why;
	nameserver_cb *cb = call->cb;
	void *arg = call->arg;

	client_timer_stop(call->c, &call->later);
	call->c->ns_open--;
	request_free(&call->r);
	free(call);
	cb(arg, rc, f, rc < 0 ? &why : NULL);
}

static void on_later(struct client_timer *t)
{
	struct ns_call *call = client_container(t, struct ns_call, later);

	call_end(call, call->why.code ? call->why.code : MQ_ECLOSED, NULL);
}

static void call_wait(struct ns_call *call)
{
	TAILQ_INSERT_TAIL(&call->c->ns_waiting, call, entry);
}

/* The broker of file:DIR is not there (any more): wait until it was started. */
static bool call_started(struct ns_call *call)
{
	struct mqclient *c = call->c;

	if (c->kind != MQCLIENT_FILE || c->closing || call->starts == 2)
		return false;
	call->starts++;
	embedded_start(c);
	call_wait(call);
	return true;
}

/* This server did not help: the next call begins with another. */
static void call_failed(struct ns_call *call)
{
	struct mqclient *c = call->c;

	if (c->ns_at % c->nns == call->at)
		c->ns_at = (call->at + 1) % c->nns;
	call->at = (call->at + 1) % c->nns;
}

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct ns_call *call = arg;
	struct mqclient *c = call->c;

	if (rc == 0 && f->code != RESP_GO_AWAY && f->code != RESP_SYSTEM_BUSY) {
		call_end(call, 0, f);
		return;
	}
	/* The list may have changed meanwhile, so `at` is looked at again. */
	call->at %= c->nns;
	if (rc == 0) {
		err_set(&call->why, MQ_EREFUSED, "name server %s: %s", c->ns[call->at]->addr, response_name(f->code));
		call->why.response = f->code;
		if (f->code == RESP_GO_AWAY)
			link_reset(c->ns[call->at]);
	} else {
		link_error(c->ns[call->at], rc, "name server", &call->why);
	}
	if (rc < 0 && rc != MQ_ETIMEOUT && call_started(call))
		return;
	call_failed(call);
	call_next(call);
}

static void call_next(struct ns_call *call)
{
	struct mqclient *c = call->c;
	int rc;

	while (call->left > 0 && !c->closing) {
		call->left--;
		call->at %= c->nns;
		rc = request_write(&call->r, c->ns[call->at], on_answer, call, &call->why);
		if (rc == 0 || call_started(call))
			return;
		call_failed(call);
	}
	if (c->closing)
		err_set(&call->why, MQ_ECANCELLED, "%s: given up", c->addr);
	client_timer_start(c, &call->later, 0);
}

static void call_begin(struct ns_call *call)
{
	struct mqclient *c = call->c;

	/* A silent server among several must not take all of the time. */
	if (c->nns > 1 && call->r.timeout_ms > 1000)
		call->r.timeout_ms = 1000 + call->r.timeout_ms / (int32_t)c->nns / 4;
	call->left = c->nns;
	call->at = c->ns_at;
	call_next(call);
}

void nameserver_call(struct mqclient *c, int code, const struct mqclient_field *fields, size_t nfields,
                     struct mq_str body, int32_t timeout_ms, nameserver_cb *cb, void *arg)
{
	struct ns_call *call = mem_alloc(sizeof *call);

	call->c = c;
	c->ns_open++;
	call->cb = cb;
	call->arg = arg;
	call->later.cb = on_later;
	request_keep(&call->r, code, fields, nfields, body, timeout_ms > 0 ? timeout_ms : c->timeout_ms);
	if (c->ns_wait && !c->closing) {
		call_wait(call);
		return;
	}
	if (!c->nns) {
		err_set(&call->why, MQ_ECLOSED, "%s: no name server is known", c->addr);
		client_timer_start(c, &call->later, 0);
		return;
	}
	call_begin(call);
}

void nameserver_list(struct mqclient *c, char *const *list, size_t n)
{
	bool same = n == c->nns;

	for (size_t i = 0; same && i < n; i++)
		same = strcmp(list[i], c->ns[i]->addr) == 0;
	if (same || !n)
		return;
	c->ns = mem_realloc(c->ns, n * sizeof *c->ns);
	c->ns_names = mem_realloc(c->ns_names, (n + 1) * sizeof *c->ns_names);
	for (size_t i = 0; i < n; i++) {
		c->ns[i] = link_get(c, list[i]);
		c->ns_names[i] = c->ns[i]->addr;
	}
	c->ns_names[n] = NULL;
	c->nns = n;
	/* Many clients with one list spread over it. */
	c->ns_at = client_random((uint32_t)n);
}

void nameserver_ready(struct mqclient *c, const struct mq_error *e)
{
	struct ns_call_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct ns_call *call;

	c->ns_wait = false;
	TAILQ_CONCAT(&waiting, &c->ns_waiting, entry);
	while ((call = TAILQ_FIRST(&waiting))) {
		TAILQ_REMOVE(&waiting, call, entry);
		if (e || c->closing || !c->nns) {
			if (e)
				call->why = *e;
			else
				err_set(&call->why, MQ_ECANCELLED, "%s: given up", c->addr);
			if (c->closing)
				on_later(&call->later);
			else
				client_timer_start(c, &call->later, 0);
			continue;
		}
		call_begin(call);
	}
}

const char *const *mqclient_nameservers(struct mqclient *c)
{
	static const char *const none[] = { NULL };

	return c->nns ? c->ns_names : none;
}

void nameserver_free(struct mqclient *c)
{
	free(c->ns);
	free(c->ns_names);
	c->ns = NULL;
	c->ns_names = NULL;
	c->nns = 0;
}
