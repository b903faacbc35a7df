/* http.c: see http.h.  The transfer itself is net/fetch. */
#include "http.h"
#include "address.h"
#include "nameserver.h"
#include "../net/fetch.h"

enum { HTTP_TIMEOUT_MS = 3000, HTTP_AGAIN_MS = 1000 /* while there is no list at all */ };

struct http_poll {
	struct mqclient *c;
	struct fetch *fetch;            /* that runs; NULL = none */
	struct client_timer again;
	bool have_list;
};

static int take_list(struct mqclient *c, struct mq_str body, struct mq_error *e)
{
	struct mq_str text = str_trim(body);
	char **list;
	size_t n, end = 0;
	int rc;

	/* The first line counts, as for the peer. */
	while (end < text.n && text.p[end] != '\n' && text.p[end] != '\r')
		end++;
	rc = address_list((struct mq_str){ text.p, end }, &list, &n, e);
	if (rc < 0)
		return err_wrap(e, "%s", c->addr);
	nameserver_list(c, list, n);
	free(list);
	return 0;
}

static void on_list(void *arg, int rc, const struct mq_error *err, struct mq_str body)
{
	struct http_poll *h = arg;
	struct mqclient *c = h->c;
	struct mq_error e = { 0 };

	h->fetch = NULL;
	c->open_handles--;
	if (rc < 0)
		e = *err;
	else
		rc = take_list(c, body, &e);
	if (rc == 0)
		h->have_list = true;
	else if (!c->closing)
		client_log(c, 1, "%s%s", e.text, h->have_list ? "; the old list stays" : "");
	if (!c->closing)
		client_timer_start(c, &h->again, h->have_list ? CLIENT_ADDR_POLL_MS : HTTP_AGAIN_MS);
	nameserver_ready(c, h->have_list ? NULL : &e);
}

static int poll_now(struct http_poll *h, struct mq_error *e)
{
	struct mqclient *c = h->c;

	h->fetch = fetch_start(c->loop, c->addr, HTTP_TIMEOUT_MS, ADDRESS_MAX, on_list, h, e);
	if (!h->fetch)
		return e->code;
	c->open_handles++;
	c->ns_wait = !h->have_list;
	return 0;
}

static void on_again(struct client_timer *t)
{
	struct http_poll *h = client_container(t, struct http_poll, again);
	struct mq_error e;

	/* libcurl was there the first time. */
	if (!h->fetch && poll_now(h, &e) < 0)
		client_log(h->c, 0, "%s", e.text);
}

int http_start(struct mqclient *c, struct mq_error *e)
{
	struct http_poll *h = mem_alloc(sizeof *h);
	struct mq_error why;
	int rc;

	h->c = c;
	h->again.cb = on_again;
	c->http = h;
	rc = poll_now(h, &why);
	if (rc < 0 && e)
		*e = why;
	return rc;
}

void http_stop(struct mqclient *c)
{
	if (!c->http)
		return;
	client_timer_stop(c, &c->http->again);
	if (c->http->fetch)
		fetch_stop(c->http->fetch);
}

void http_free(struct mqclient *c)
{
	free(c->http);
	c->http = NULL;
}
