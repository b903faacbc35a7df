/* ports.c: see ports.h. */
#include "ports.h"
#include "broker.h"
#include "ha_master.h"
#include <arpa/inet.h>
#include <base/err.h>
#include <base/log.h>
#include <base/str.h>
#include <netdb.h>
#include <string.h>

#define LOG_MODULE "broker"

enum { PORT_TRIES = 20 };       /* listenPort=0: until the port two below is free too */

/* ---- Connections --------------------------------------------------------------------------------------------------------- */

static void on_idle_exit(uv_timer_t *timer)
{
	struct broker *b = timer->data;

	log_info("no client for %lld s: leaving", (long long)(b->opt.idle_exit_ms / 1000));
	broker_stop(b);
}

void ports_watch_idle(struct broker *b)
{
	if (b->opt.idle_exit_ms && !b->leaving)
		uv_timer_start(&b->idle_timer, on_idle_exit, b->opt.idle_exit_ms, 0);
}

static void on_opened(struct conn *c)
{
	struct broker *b = conn_public(c)->owner;

	uv_timer_stop(&b->idle_timer);
	broker_conn_opened(b, c);
}

static void on_closed(struct conn *c, int why)
{
	struct broker *b = conn_public(c)->owner;

	broker_conn_closed(b, c, why);
	if (!b->leaving && server_conns(b->main) == 0)
		ports_watch_idle(b);
}

static int on_request(struct conn *c, struct frame *f)
{
	return dispatch_request(conn_public(c)->owner, c, f, false);
}

static int on_vip_request(struct conn *c, struct frame *f)
{
	return dispatch_request(conn_public(c)->owner, c, f, true);
}

static const struct conn_ops main_ops = { .request = on_request, .opened = on_opened, .closed = on_closed };
static const struct conn_ops vip_ops = { .request = on_vip_request, .opened = on_opened, .closed = on_closed };

/* ---- Listening ---------------------------------------------------------------------------------------------------------- */

/* brokerIP1 as an address: records and message ids hold it. */
int ports_find_host(struct broker *b, struct mq_error *e)
{
	const char *name = b->conf->brokerIP1;
	struct mq_host *h = &b->store_host;
	struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *found;
	uint8_t ip4[4];
	int rc;

	if (inet_pton(AF_INET, name, h->ip) == 1)
		h->len = 4;
	else if (inet_pton(AF_INET6, name, h->ip) == 1)
		h->len = 16;
	else {
		rc = getaddrinfo(name, NULL, &want, &found);
		if (rc != 0)
			return err_set(e, MQ_EINVAL, "brokerIP1 '%s': %s", name, gai_strerror(rc));
		if (found->ai_family == AF_INET) {
			memcpy(h->ip, &((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr, 4);
			h->len = 4;
		} else {
			memcpy(h->ip, &((struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_addr, 16);
			h->len = 16;
		}
		freeaddrinfo(found);
	}
	memcpy(ip4, h->len == 4 ? h->ip : h->ip + 12, 4);
	id_maker_init(&b->ids, ip4);
	return 0;
}

static void no_wait(void *arg)
{
}

/* compat: the replication port is one above, unless the configuration says where. */
static int listen_slaves(struct broker *b, struct mq_error *e)
{
	int port = b->conf->haListenPort ? b->conf->haListenPort : server_port(b->main) + 1;

	if (b->conf->brokerRole == ROLE_SLAVE)
		return 0;
	if (ha_master_open(&b->ha, b, port, e) < 0)
		return err_wrap(e, "haListenPort %d, for slaves", port);
	return 0;
}

static int listen_once(struct broker *b, struct server_opt *o, struct mq_error *e)
{
	o->port = b->conf->listenPort;
	b->main = server_listen(b->loop, o, &main_ops, b, e);
	if (!b->main)
		return err_wrap(e, "listenPort %d", b->conf->listenPort);
	o->port = server_port(b->main) - 2;
	b->vip = server_listen(b->loop, o, &vip_ops, b, e);
	if (!b->vip)
		return err_wrap(e, "fast port %d, two below listenPort", o->port);
	return listen_slaves(b, e);
}

void ports_close(struct broker *b)
{
	if (b->main)
		server_stop(b->main, 0, no_wait, NULL);
	if (b->vip)
		server_stop(b->vip, 0, no_wait, NULL);
	b->main = b->vip = NULL;
}

static int listen_tcp(struct broker *b, struct mq_error *e)
{
	const struct broker_conf *c = b->conf;
	struct server_opt o = { .bind = c->bindAddress, .backlog = c->serverSocketBacklog,
				.idle_ms = c->serverChannelMaxIdleTimeSeconds > INT32_MAX / 1000 ? 0 :
					   c->serverChannelMaxIdleTimeSeconds * 1000 };
	int tries = c->listenPort ? 1 : PORT_TRIES, rc = -1;

	while (rc < 0 && tries-- > 0) {
		rc = listen_once(b, &o, e);
		if (rc < 0)
			ports_close(b);
	}
	if (rc < 0)
		return rc;
	b->store_host.port = server_port(b->main);
	snprintf(b->addr, sizeof b->addr, strchr(c->brokerIP1, ':') ? "[%s]:%d" : "%s:%d", c->brokerIP1, b->store_host.port);
	snprintf(b->ha_addr, sizeof b->ha_addr, strchr(c->brokerIP2, ':') ? "[%s]:%d" : "%s:%d", c->brokerIP2,
		 b->ha ? ha_master_port(b->ha) : c->haListenPort ? c->haListenPort : b->store_host.port + 1);
	return 0;
}

static int listen_unix(struct broker *b, struct mq_error *e)
{
	char path[600];
	struct server_opt o = { .unix_path = path };

	snprintf(path, sizeof path, "%s/mq.sock", b->opt.embedded_dir);
	b->main = server_listen(b->loop, &o, &main_ops, b, e);
	if (!b->main)
		return e->code;
	snprintf(b->addr, sizeof b->addr, "unix:%s", path);
	snprintf(b->ha_addr, sizeof b->ha_addr, "127.0.0.1:0");
	b->names = b->opt.names->open(b, e);
	if (!b->names)
		return e->code;
	b->opt.names->topics(b->names);
	return 0;
}

int ports_open(struct broker *b, struct mq_error *e)
{
	return b->opt.embedded_dir ? listen_unix(b, e) : listen_tcp(b, e);
}
