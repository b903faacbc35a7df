/* server.c: a listening socket and the connections that came through it.
 *
 * Out of descriptors is a state, not an error: accepting pauses, is tried again, and the log hears of it once. */
#include "server.h"
#include "conn_private.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LOG_MODULE "net"

enum { SERVER_BACKLOG = 1024, SERVER_ACCEPTS_PER_TURN = 64, SERVER_RETRY_MS = 100 };

struct server {
	struct net *net;
	const struct conn_ops *ops;
	void *owner;
	int fd, port, idle_ms;
	size_t max_conns, n;
	size_t untold;              /* connections whose owner has not been told that they are gone, with those alive */
	struct conn_list conns;     /* n, alive */
	uv_poll_t poll;
	bool poll_open, starved;
	struct deadline retry;      /* of accepting; when stopping: the end of the grace time */
	char *path;                 /* of the Unix socket, and which file it is */
	dev_t dev;
	ino_t ino;
	bool stopping;
	void (*done)(void *arg);
	void *done_arg;
};

int server_port(const struct server *s)
{
	return s->port;
}

size_t server_conns(const struct server *s)
{
	return s->n;
}

int server_idle_ms(const struct server *s)
{
	return s->idle_ms;
}

/* ---- Accepting ------------------------------------------------------------------------------------------------------- */

static void on_readable(uv_poll_t *h, int status, int events);

static void on_retry(struct deadline *d)
{
	struct server *s = (struct server *)((char *)d - offsetof(struct server, retry));

	uv_poll_start(&s->poll, UV_READABLE, on_readable);
}

static void wait_for_descriptors(struct server *s, int err)
{
	if (!s->starved)
		log_error("no new connections until there are descriptors why=%s port=%d connections=%zu", mq_strerror(err),
			  s->port, s->n);
	s->starved = true;
	uv_poll_stop(&s->poll);
	deadline_set(s->net, &s->retry, SERVER_RETRY_MS, on_retry);
}

static void welcome(struct server *s, int fd)
{
	struct conn *c = conn_new(s->net->loop, s->ops, s->owner);

	c->server = s;
	TAILQ_INSERT_TAIL(&s->conns, c, of_server);
	s->n++;
	s->untold++;
	conn_ref(c);
	conn_opened(c, fd);
	conn_unref(c);
}

static void on_readable(uv_poll_t *h, int status, int events)
{
	struct server *s = h->data;

	net_turn(s->net);
	for (int i = 0; i < SERVER_ACCEPTS_PER_TURN && !s->stopping; i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0 && s->max_conns && s->n >= s->max_conns) {
			if (!s->starved)
				log_warn("connection refused: too many port=%d connections=%zu", s->port, s->n);
			s->starved = true;
			close(fd);
			continue;
		}
		if (fd >= 0) {
			s->starved = false;
			welcome(s, fd);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			wait_for_descriptors(s, errno);
			return;
		}
		/* Others concern the one connection that was about to come (it went away again, a firewall forbids it). */
	}
}

/* ---- Listening ------------------------------------------------------------------------------------------------------- */

static int listen_tcp(struct server *s, const struct server_opt *o, struct mq_error *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *a = NULL;
	const char *bind_to = o->bind ? o->bind : "0.0.0.0";
	struct sockaddr_storage got;
	socklen_t n = sizeof(got);
	struct mq_host host;
	char service[16];
	int rc, on = 1, off = 0;

	snprintf(service, sizeof(service), "%d", o->port);
	rc = getaddrinfo(bind_to, service, &hints, &a);
	if (rc)
		return err_set(e, MQ_EINVAL, "listen on '%s': %s", bind_to, gai_strerror(rc));
	s->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0) {
		rc = -errno;
		goto out;
	}
	setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* "::" serves IPv4 too, as the peer's does. */
	if (a->ai_family == AF_INET6)
		setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	rc = bind(s->fd, a->ai_addr, a->ai_addrlen) < 0 || listen(s->fd, o->backlog ? o->backlog : SERVER_BACKLOG) < 0 ||
	     getsockname(s->fd, (struct sockaddr *)&got, &n) < 0 ? -errno : 0;
	if (rc == 0) {
		addr_host((struct sockaddr *)&got, &host);
		s->port = host.port;
	}
out:
	if (rc < 0)
		err_sys(e, rc, "listen on %s port %d", bind_to, o->port);
	freeaddrinfo(a);
	return rc;
}

/* Is somebody there?  0 no (the file is what a dead server left), -EADDRINUSE yes, or another error. */
static int stale(const struct sockaddr_un *a, socklen_t n)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)a, n) == 0 || errno == EAGAIN ? -EADDRINUSE :
	     errno == ECONNREFUSED || errno == ENOENT ? 0 : -errno;
	close(fd);
	return rc;
}

static int bind_unix(struct server *s, const char *path, int backlog)
{
	struct sockaddr_un a;
	struct stat st;
	int dir, rc, n = addr_unix(path, &a, &dir);

	if (n < 0)
		return n;
	if (lstat(path, &st) == 0) {
		rc = S_ISSOCK(st.st_mode) ? stale(&a, (socklen_t)n) : -EEXIST;
		if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
			rc = -errno;
		if (rc < 0)
			goto out;
	}
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* Linux: the file gets the mode of the socket, so at no moment is it open to others. */
	rc = s->fd < 0 || fchmod(s->fd, 0600) < 0 || bind(s->fd, (struct sockaddr *)&a, (socklen_t)n) < 0 ||
	     lstat(path, &st) < 0 || listen(s->fd, backlog) < 0 ? -errno : 0;
	if (rc == 0) {
		s->path = mem_strdup(path);
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
out:
	if (dir >= 0)
		close(dir);
	return rc;
}

static int listen_unix(struct server *s, const struct server_opt *o, struct mq_error *e)
{
	int rc = bind_unix(s, o->unix_path, o->backlog ? o->backlog : SERVER_BACKLOG);

	if (rc == -EADDRINUSE)
		return err_set(e, MQ_EBUSY, "listen on '%s': another process serves it", o->unix_path);
	if (rc == -EEXIST)
		return err_set(e, rc, "listen on '%s': it exists and is no socket", o->unix_path);
	return rc < 0 ? err_sys(e, rc, "listen on '%s'", o->unix_path) : 0;
}

static void server_free(struct server *s)
{
	struct net *n = s->net;

	free(s->path);
	free(s);
	net_put(n);
}

struct server *server_listen(uv_loop_t *loop, const struct server_opt *o, const struct conn_ops *ops, void *owner,
			     struct mq_error *e)
{
	struct server *s = mem_alloc(sizeof(*s));
	int rc;

	s->net = net_get(loop);
	s->ops = ops;
	s->owner = owner;
	s->fd = -1;
	s->idle_ms = o->idle_ms;
	s->max_conns = o->max_conns > 0 ? (size_t)o->max_conns : 0;
	TAILQ_INIT(&s->conns);
	rc = o->unix_path ? listen_unix(s, o, e) : listen_tcp(s, o, e);
	if (rc < 0)
		goto fail;
	rc = uv_poll_init(loop, &s->poll, s->fd);
	if (rc < 0) {
		err_sys(e, rc, "wait for connections");
		goto fail;
	}
	s->poll.data = s;
	s->poll_open = true;
	uv_poll_start(&s->poll, UV_READABLE, on_readable);
	if (s->idle_ms)
		net_tick_within(s->net, s->idle_ms < 40 ? 10 : s->idle_ms / 4);
	return s;
fail:
	if (s->fd >= 0)
		close(s->fd);
	server_free(s);
	return NULL;
}

/* ---- Connections, and the end ---------------------------------------------------------------------------------------- */

/* The callback may close any of them. */
static void each(struct server *s, bool finishing_too, void (*cb)(void *arg, struct conn *c), void *arg)
{
	struct conn **v = mem_alloc((s->n + 1) * sizeof(*v)), *c;
	size_t n = 0;

	TAILQ_FOREACH(c, &s->conns, of_server) {
		conn_ref(c);
		v[n++] = c;
	}
	for (size_t i = 0; i < n; i++) {
		if (finishing_too || conn_alive(v[i]))
			cb(arg, v[i]);
		conn_unref(v[i]);
	}
	free(v);
}

void server_each(struct server *s, void (*cb)(void *arg, struct conn *c), void *arg)
{
	each(s, false, cb, arg);
}

static void maybe_done(struct server *s)
{
	void (*done)(void *arg) = s->done;
	void *arg = s->done_arg;

	if (!s->stopping || s->untold || s->poll_open)
		return;
	deadline_clear(s->net, &s->retry);
	server_free(s);
	if (done)
		done(arg);
}

void server_forget(struct conn *c)
{
	if (!c->server)
		return;
	TAILQ_REMOVE(&c->server->conns, c, of_server);
	c->server->n--;
}

void server_told(struct conn *c)
{
	struct server *s = c->server;

	if (!s)
		return;
	c->server = NULL;
	s->untold--;
	maybe_done(s);
}

static void on_listener_closed(uv_handle_t *h)
{
	struct server *s = h->data;

	s->poll_open = false;
	maybe_done(s);
}

static void close_now(void *arg, struct conn *c)
{
	conn_close(c);
}

static void on_grace_over(struct deadline *d)
{
	struct server *s = (struct server *)((char *)d - offsetof(struct server, retry));

	each(s, true, close_now, NULL);
}

static void close_in_order(void *arg, struct conn *c)
{
	conn_close_after_write(c);
}

void server_stop(struct server *s, int grace_ms, void (*done)(void *arg), void *arg)
{
	struct stat st;

	s->stopping = true;
	s->done = done;
	s->done_arg = arg;
	deadline_clear(s->net, &s->retry);
	uv_close((uv_handle_t *)&s->poll, on_listener_closed);
	close(s->fd);
	if (s->path && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	server_each(s, close_in_order, NULL);
	if (s->n)
		deadline_set(s->net, &s->retry, grace_ms, on_grace_over);
}
