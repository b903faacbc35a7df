/* dial.c: connecting: resolve the name, try its addresses one after the other, within one time limit.
 *
 * Everything that goes wrong after the address was understood is told by closed(), from the loop. */
#include "conn_private.h"
#include "server.h"
#include "../base/err.h"
#include "../base/mem.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DIAL_TIMEOUT_MS = 3000, DIAL_RETRY_MS = 10 };

struct dial {
	struct conn *c;             /* NULL: given up while the name was being resolved */
	uv_getaddrinfo_t req;
	bool resolving;
	struct addrinfo *found, *next;
	char *path;                 /* of a Unix socket; NULL: not one, or tried */
	struct deadline retry;
	int failure;                /* of the last address tried */
};

static void dial_free(struct dial *d)
{
	if (d->found)
		uv_freeaddrinfo(d->found);
	free(d->path);
	free(d);
}

/* The connection is open or dead. */
void dial_give_up(struct conn *c)
{
	struct dial *d = c->dial;

	if (!d)
		return;
	c->dial = NULL;
	deadline_clear(c->net, &d->retry);
	d->c = NULL;
	if (d->resolving)
		uv_cancel((uv_req_t *)&d->req); /* on_resolved() frees it, cancelled or not */
	else
		dial_free(d);
}

static void on_too_late(struct deadline *d)
{
	struct conn *c = (struct conn *)((char *)d - offsetof(struct conn, deadline));

	conn_end(c, MQ_ETIMEOUT);
}

static void connected(struct conn *c)
{
	deadline_clear(c->net, &c->deadline);
	dial_give_up(c);
	conn_opened(c, c->fd);
}

static void on_connect(uv_poll_t *h, int status, int events)
{
	struct conn *c = h->data;
	int err = 0;
	socklen_t n = sizeof(err);

	net_turn(c->net);
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
		err = errno;
	if (!err && status < 0)
		err = ECONNREFUSED;
	if (err) {
		c->dial->failure = -err;
		conn_drop_fd(c); /* dial_next() when libuv has let go of it */
		return;
	}
	conn_ref(c);
	connected(c);
	conn_unref(c);
}

static void on_retry(struct deadline *t)
{
	struct dial *d = (struct dial *)((char *)t - offsetof(struct dial, retry));

	dial_next(d->c);
}

/* Start connecting fd.  true: on_connect() follows, or c is connected, or dead. */
static bool start(struct conn *c, const struct sockaddr *a, socklen_t n)
{
	int rc, fd = socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		c->dial->failure = -errno;
		return false;
	}
	do
		rc = connect(fd, a, n);
	while (rc < 0 && errno == EINTR);
	if (rc < 0 && errno != EINPROGRESS) {
		c->dial->failure = -errno;
		close(fd);
		return false;
	}
	c->fd = fd;
	rc = conn_wait(c, UV_WRITABLE, on_connect);
	if (rc < 0)
		conn_end(c, rc);
	return true;
}

static void try_unix(struct conn *c)
{
	struct dial *d = c->dial;
	struct sockaddr_un a;
	int dir, n = addr_unix(d->path, &a, &dir);
	bool begun = n > 0 && start(c, (struct sockaddr *)&a, (socklen_t)n);

	if (dir >= 0)
		close(dir);
	if (begun) {
		if (c->dial) {
			free(d->path);
			d->path = NULL;
		}
		return;
	}
	if (n < 0)
		d->failure = n;
	/* The queue of a busy server is full: unlike with TCP, the kernel does not wait for us. */
	if (d->failure == -EAGAIN)
		deadline_set(c->net, &d->retry, DIAL_RETRY_MS, on_retry);
	else
		conn_end(c, d->failure);
}

void dial_next(struct conn *c)
{
	struct dial *d = c->dial;

	if (d->path) {
		try_unix(c);
		return;
	}
	while (d->next) {
		struct addrinfo *a = d->next;

		d->next = a->ai_next;
		if (start(c, a->ai_addr, a->ai_addrlen))
			return;
	}
	conn_end(c, d->failure);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
	struct dial *d = (struct dial *)((char *)req - offsetof(struct dial, req));
	struct conn *c = d->c;

	d->resolving = false;
	d->found = d->next = found;
	if (!c) {
		dial_free(d);
		return;
	}
	net_turn(c->net);
	if (status < 0)
		conn_end(c, status);
	else
		dial_next(c);
}

/* An address in digits needs no worker. */
static int resolve(struct dial *d, const char *host, int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	char service[16];
	int rc;

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(host, service, &hints, &d->found) == 0) {
		d->next = d->found;
		return 0;
	}
	d->found = NULL;
	hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
	/* AI_ADDRCONFIG leaves loopback out on a machine without a network. */
	if (strcmp(host, "localhost") == 0)
		hints.ai_flags = AI_NUMERICSERV;
	rc = uv_getaddrinfo(d->c->net->loop, &d->req, on_resolved, host, service, &hints);
	d->resolving = rc == 0;
	return rc;
}

struct conn *conn_dial(uv_loop_t *loop, const char *addr, int timeout_ms, const struct conn_ops *ops, void *owner,
		       struct mq_error *e)
{
	bool is_unix = strncmp(addr, "unix:", 5) == 0;
	char host[ADDR_HOST_MAX];
	struct conn *c;
	struct dial *d;
	int port = 0, rc;

	if (is_unix && !addr[5]) {
		err_set(e, MQ_EINVAL, "address '%s' names no socket: unix:PATH", addr);
		return NULL;
	}
	if (!is_unix && addr_split(addr, host, &port, e) < 0)
		return NULL;
	c = conn_new(loop, ops, owner);
	c->name = mem_strdup(addr);
	d = c->dial = mem_alloc(sizeof(*d));
	d->c = c;
	d->failure = MQ_ECLOSED;
	deadline_set(c->net, &c->deadline, timeout_ms > 0 ? timeout_ms : DIAL_TIMEOUT_MS, on_too_late);
	if (is_unix)
		d->path = mem_strdup(addr + 5);
	rc = is_unix ? 0 : resolve(d, host, port);
	if (rc < 0)
		conn_end(c, rc);
	else if (!d->resolving)
		dial_next(c);
	return c;
}
