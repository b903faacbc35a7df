/* done.c: see done.h. */
#include "done.h"
#include <stdarg.h>

struct done {
	struct mqclient *c;
	struct broker *broker;
	struct link *link;
	mqclient_done_cb *cb;
	void *arg;
	char what[300];
};

static void on_done(void *arg, int rc, struct frame *f)
{
	struct done *d = arg;
	struct mq_error e = { 0 };
	char show[200];

	if (rc < 0) {
		rc = link_error(d->link, rc, d->broker->name, &e);
	} else if (f->code != RESP_SUCCESS) {
		rc = err_set(&e, MQ_EREFUSED, "%s: %s", response_name(f->code), str_show(f->remark, show, sizeof show));
		e.response = f->code;
	}
	if (rc < 0) {
		err_wrap(&e, "%s", d->what);
		client_log(d->c, 1, "%s", e.text);
	}
	d->c->in_flight--;
	if (d->cb)
		d->cb(d->arg, rc, &e);
	free(d);
}

int done_call(struct mqclient *c, struct broker *b, int code, int32_t timeout_ms, struct link **l, struct frame_out *o,
              mqclient_done_cb *cb, void *arg, struct mq_error *e, const char *fmt, ...)
{
	struct done *d = mem_alloc(sizeof *d);
	va_list ap;
	int rc;

	*d = (struct done){ .c = c, .broker = b, .link = broker_master(b), .cb = cb, .arg = arg };
	va_start(ap, fmt);
	vsnprintf(d->what, sizeof d->what, fmt, ap);
	va_end(ap);
	if (!d->link)
		rc = err_set(e, MQ_ENOROUTE, "broker %s has no master", b->name);
	else
		rc = link_call(d->link, o, code, timeout_ms > 0 ? timeout_ms : c->timeout_ms, on_done, d, e);
	if (rc < 0) {
		if (e)
			err_wrap(e, "%s", d->what);
		free(d);
		return rc;
	}
	*l = d->link;
	c->in_flight++;
	return 0;
}
