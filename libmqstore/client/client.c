/* client.c: the life of a client, its timers, and turning the loop.  Implements the first part of mqclient.h. */
#include "client.h"
#include "account.h"
#include "address.h"
#include "ask.h"
#include "consume.h"
#include "embedded.h"
#include "heartbeat.h"
#include "http.h"
#include "link.h"
#include "nameserver.h"
#include "produce.h"
#include "request.h"
#include "route.h"
#include "half.h"
#include "../net/server.h"
#include <arpa/inet.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* ---- Timers ---------------------------------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *h);

static void timer_arm(struct mqclient *c)
{
	struct heap_node *top = heap_top(&c->timers);

	if (!top) {
		if (c->timer_due != INT64_MAX)
			uv_timer_stop(&c->timer);
		c->timer_due = INT64_MAX;
		return;
	}
	if (top->due == c->timer_due)
		return;
	c->timer_due = top->due;
	/* libuv counts from its idea of now, which may be old when we are called from outside of the loop. */
	uv_update_time(c->loop);
	int64_t in = top->due - client_now();
	uv_timer_start(&c->timer, on_timer, in > 0 ? (uint64_t)in : 0, 0);
}

static void on_timer(uv_timer_t *h)
{
	struct mqclient *c = h->data;
	struct heap_node *n;
	int64_t now = client_now();

	c->timer_due = INT64_MAX;
	/* What a callback starts for "at once" has to wait for the next turn, or this would never end. */
	while ((n = heap_top(&c->timers)) && n->due <= now) {
		struct client_timer *t = client_container(n, struct client_timer, node);
		heap_remove(&c->timers, n);
		t->cb(t);
	}
	timer_arm(c);
}

void client_timer_start(struct mqclient *c, struct client_timer *t, int64_t delay_ms)
{
	heap_remove(&c->timers, &t->node);
	heap_push(&c->timers, &t->node, client_now() + (delay_ms > 0 ? delay_ms : 1));
	timer_arm(c);
}

void client_timer_stop(struct mqclient *c, struct client_timer *t)
{
	heap_remove(&c->timers, &t->node);
}

/* ---- Small things ---------------------------------------------------------------------------------------------------- */

void client_log(struct mqclient *c, int level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (!c->log)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	c->log(c->log_arg, level, line);
}

uint32_t client_random(uint32_t n)
{
	return n > 1 ? randombytes_uniform(n) : 0;
}

uv_loop_t *mqclient_loop(struct mqclient *c)
{
	return c->loop;
}

const char *mqclient_id(const struct mqclient *c)
{
	return c->id;
}

void mqclient_new_id(struct mqclient *c, char out[MQ_ID_TEXT])
{
	id_make(&c->ids, clock_wall_ms(), out);
}

/* ---- Open ------------------------------------------------------------------------------------------------------------ */

static int set_servers(struct mqclient *c, struct mq_error *e)
{
	char **list, *one[1], sock[256];
	size_t n;
	int rc;

	switch (c->kind) {
	case MQCLIENT_CLUSTER:
		rc = address_list(str_of(c->addr), &list, &n, e);
		if (rc < 0)
			return rc;
		nameserver_list(c, list, n);
		free(list);
		return 0;
	case MQCLIENT_HTTP:
		return http_start(c, e);
	case MQCLIENT_FILE:
		rc = embedded_address(mqclient_addr_dir(c->addr), sock, sizeof sock, e);
		if (rc < 0)
			return rc;
		one[0] = sock;
		nameserver_list(c, one, 1);
		return 0;
	default:
		return err_set(e, MQ_EUNSUPPORTED, "address '%s': a store directory cannot be joined, only read (mqstore_open)",
		               c->addr);
	}
}

static void make_id(struct mqclient *c, const char *instance)
{
	char ip[MQ_HOST_TEXT];
	struct in_addr ip4;

	addr_local(ip, sizeof ip);
	if (inet_pton(AF_INET, ip, &ip4) != 1)
		inet_pton(AF_INET, "127.0.0.1", &ip4);
	id_maker_init(&c->ids, (const uint8_t *)&ip4);
	if (instance)
		snprintf(c->id, sizeof c->id, "%s@%s", ip, instance);
	else
		snprintf(c->id, sizeof c->id, "%s@%d#%llu", ip, (int)getpid(), (unsigned long long)uv_hrtime());
}

static void on_handle_closed(uv_handle_t *h)
{
	struct mqclient *c = h->data;
	c->open_handles--;
}

/* Let go of everything outside, let the loop see it, free the rest.  The last step of a failed open and of free. */
static void close_all(struct mqclient *c)
{
	c->closing = true;
	produce_cancel_all(c);
	request_cancel_all(c);
	route_cancel_all(c);
	half_free(c);
	http_stop(c);
	embedded_stop(c);
	link_close_all(c);
	nameserver_ready(c, NULL);
	/* Connections tell the calls on them, and these their callers; some need a timer to do so. */
	while (c->open_handles > 2 || c->in_flight > 0 || c->ns_open > 0)
		uv_run(c->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&c->timer, on_handle_closed);
	uv_close((uv_handle_t *)&c->run_timer, on_handle_closed);
	while (c->open_handles > 0)
		uv_run(c->loop, UV_RUN_ONCE);

	link_free_all(c);
	http_free(c);
	nameserver_free(c);
	produce_free(c);
	heartbeat_free(c);
	route_free_all(c);
	heap_free(&c->timers);
	buf_free(&c->wait_buf);
	buf_free(&c->scratch);
	free(c->wait_fields);
	account_free(c->account);
	free(c->addr);
	if (c->own_loop) {
		/* Connections close in the turn after their last callback. */
		while (uv_loop_close(c->loop) == UV_EBUSY)
			uv_run(c->loop, UV_RUN_ONCE);
		free(c->loop);
	}
	free(c);
}

int mqclient_open(struct mqclient **out, const struct mqclient_opt *opt, struct mq_error *e)
{
	struct sign_key *account;
	struct mqclient *c;
	int rc;

	*out = NULL;
	if (!opt->addr || !*opt->addr)
		return err_set(e, MQ_EINVAL, "no address given; mqclient_address() finds the usual one");
	if (opt->instance && (!*opt->instance || strlen(opt->instance) > 128))
		return err_set(e, MQ_EINVAL, "instance name '%.40s': 1 to 128 characters are allowed", opt->instance);
	if (sodium_init() < 0)
		return err_set(e, MQ_EUNSUPPORTED, "no source of random numbers");

	rc = account_find(&account, opt, e);
	if (rc < 0)
		return rc;

	c = mem_alloc(sizeof *c);
	c->account = account;
	c->addr = mem_strdup(opt->addr);
	c->kind = mqclient_addr_kind(c->addr);
	c->frame_type = opt->binary_header ? FRAME_BINARY : FRAME_JSON;
	c->trace = opt->trace;
	c->timeout_ms = opt->timeout_ms > 0 ? opt->timeout_ms : CLIENT_TIMEOUT_MS;
	c->log = opt->log;
	c->log_arg = opt->log_arg;
	c->timer_due = INT64_MAX;
	TAILQ_INIT(&c->ns_waiting);
	TAILQ_INIT(&c->free_sends);
	TAILQ_INIT(&c->waiting_sends);
	LIST_INIT(&c->consumers);
	LIST_INIT(&c->checkers);
	c->loop = opt->loop;
	if (!c->loop) {
		c->loop = mem_alloc(sizeof *c->loop);
		rc = uv_loop_init(c->loop);
		if (rc < 0) {
			err_sys(e, rc, "make an event loop");
			free(c->loop);
			account_free(c->account);
			free(c->addr);
			free(c);
			return rc;
		}
		c->own_loop = true;
	}
	uv_timer_init(c->loop, &c->timer);
	uv_timer_init(c->loop, &c->run_timer);
	c->timer.data = c->run_timer.data = c;
	c->open_handles = 2;
	make_id(c, opt->instance);
	heartbeat_init(c);

	rc = set_servers(c, e);
	if (rc < 0) {
		close_all(c);
		return rc;
	}
	*out = c;
	return 0;
}

/* ---- Run ------------------------------------------------------------------------------------------------------------- */

static void on_run_timer(uv_timer_t *h)
{
}

int mqclient_run(struct mqclient *c, int timeout_ms)
{
	if (timeout_ms > 0) {
		uv_update_time(c->loop);
		uv_timer_start(&c->run_timer, on_run_timer, (uint64_t)timeout_ms, 0);
	}
	uv_run(c->loop, timeout_ms == 0 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
	if (timeout_ms > 0)
		uv_timer_stop(&c->run_timer);
	return c->in_flight > INT32_MAX ? INT32_MAX : (int)c->in_flight;
}

/* ---- Free ------------------------------------------------------------------------------------------------------------ */

void mqclient_free(struct mqclient *c, int timeout_ms)
{
	struct mqclient_consumer *k;
	int64_t until = client_now() + (timeout_ms > 0 ? timeout_ms : 0);
	int64_t left;

	if (!c)
		return;
	while ((k = LIST_FIRST(&c->consumers))) {
		left = until - client_now();
		mqclient_consumer_free(k, left > 0 ? (int)left : 0, NULL);
	}
	/* What was sent has until then to be answered. */
	while (c->in_flight > 0 && (left = until - client_now()) > 0)
		mqclient_run(c, (int)left);
	left = until - client_now();
	heartbeat_leave(c, left > 0 ? (int)left : 0);
	close_all(c);
}
