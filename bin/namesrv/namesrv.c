/* namesrv.c: what the name server owns, and the order in which it starts and stops. */
#include "namesrv.h"
#include "kv_table.h"
#include "notify.h"
#include "private.h"
#include "route_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>

#include <stdlib.h>

#define LOG_MODULE "namesrv"

/* ---- Brokers that went silent, or are first now ------------------------------------------------------------------ */

static void on_expired(void *arg, const void *conn)
{
	struct conn *c = (struct conn *)(uintptr_t)conn;

	if (conn_alive(c))
		conn_close(c);
}

static void on_scan(uv_timer_t *timer)
{
	struct namesrv *ns = timer->data;

	clock_refresh();
	route_table_scan(ns->routes, clock_mono_ms(), on_expired, ns);
}

static void on_first(void *arg, const struct route_first *f)
{
	struct namesrv *ns = arg;

	/* compat: a new first is told to all, the loss of the first only where a slave may act as master. */
	if (ns->conf->notifyMinBrokerIdChanged && !ns->stopping && (!f->offline.p || f->acting_master))
		notify_first(ns->loop, f);
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

struct namesrv *namesrv_new(uv_loop_t *loop, const struct namesrv_opt *opt, struct mq_error *err)
{
	struct kv_table *kv = kv_table_open(opt->conf->kvConfigPath, err);
	struct namesrv *ns;

	if (!kv)
		return NULL;
	ns = mem_alloc(sizeof(*ns));
	ns->loop = loop;
	ns->opt = *opt;
	ns->conf = opt->conf;
	ns->rows = opt->rows;
	ns->kv = kv;
	ns->routes = route_table_new();
	route_table_on_first(ns->routes, on_first, ns);
	clock_refresh();
	ns->start_ms = clock_mono_ms();
	uv_timer_init(loop, &ns->scan);
	ns->scan.data = ns;
	uv_unref((uv_handle_t *)&ns->scan);
	namesrv_changed(ns);
	return ns;
}

static void part_closed(struct namesrv *ns)
{
	void (*stopped)(void *arg) = ns->stopped;
	void *arg = ns->stopped_arg;

	if (--ns->closing)
		return;
	route_table_free(ns->routes);
	kv_table_free(ns->kv);
	free(ns);
	if (stopped)
		stopped(arg);
}

static void on_scan_closed(uv_handle_t *h)
{
	part_closed(h->data);
}

static void on_server_stopped(void *arg)
{
	struct namesrv *ns = arg;

	ns->server = NULL;
	part_closed(ns);
}

void namesrv_stop(struct namesrv *ns, int grace_ms, void (*done)(void *arg), void *arg)
{
	ns->stopping = true;
	ns->stopped = done;
	ns->stopped_arg = arg;
	ns->closing = 1 + (ns->server != NULL);
	if (ns->server)
		server_stop(ns->server, grace_ms, on_server_stopped, ns);
	uv_close((uv_handle_t *)&ns->scan, on_scan_closed);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static int on_request(struct conn *c, struct frame *f)
{
	return namesrv_request(conn_public(c)->owner, c, f);
}

static void on_closed(struct conn *c, int why)
{
	namesrv_closed(conn_public(c)->owner, c);
}

static const struct conn_ops namesrv_ops = { .request = on_request, .closed = on_closed };

void namesrv_closed(struct namesrv *ns, struct conn *c)
{
	if (!ns->stopping)
		route_table_lost(ns->routes, c);
}

int namesrv_listen(struct namesrv *ns, struct mq_error *err)
{
	struct server_opt opt = { .bind = ns->conf->bindAddress,
	                          .port = ns->conf->listenPort,
	                          .backlog = ns->conf->serverSocketBacklog,
	                          .idle_ms = ns->conf->serverChannelMaxIdleTimeSeconds * 1000 };

	ns->server = server_listen(ns->loop, &opt, &namesrv_ops, ns, err);
	return ns->server ? 0 : err ? err->code : MQ_EINVAL;
}

int namesrv_port(const struct namesrv *ns)
{
	return ns->server ? server_port(ns->server) : 0;
}

/* ---- Configuration, state ---------------------------------------------------------------------------------------- */

void namesrv_changed(struct namesrv *ns)
{
	uint64_t every = (uint64_t)ns->conf->scanNotActiveBrokerInterval;

	if (ns->rows)
		log_max = (enum log_level)ns->conf->logLevel;
	uv_timer_start(&ns->scan, on_scan, every, every);
}

void namesrv_reload(struct namesrv *ns)
{
	struct namesrv_conf fresh;
	struct mq_error e = { 0 };
	struct conf *rows = ns->opt.load ? ns->opt.load(ns->opt.load_arg, &fresh, &e) : NULL;
	int changed = 0;

	if (!ns->opt.load)
		return;
	if (!rows || namesrv_conf_take(ns->rows, rows, &changed, &e) < 0)
		log_error("the configuration stays as it is: %s", e.text);
	else
		log_info("configuration read again keys=%d", changed);
	conf_free(rows);
	namesrv_changed(ns);
}

void namesrv_dump(struct namesrv *ns)
{
	log_info("state topics=%zu brokers=%zu settings=%zu connections=%zu requests=%llu",
	         route_table_ntopics(ns->routes), route_table_nbrokers(ns->routes), kv_table_count(ns->kv),
	         ns->server ? server_conns(ns->server) : 0, (unsigned long long)ns->requests);
}

struct route_table *namesrv_routes(struct namesrv *ns)
{
	return ns->routes;
}

struct kv_table *namesrv_kv(struct namesrv *ns)
{
	return ns->kv;
}
