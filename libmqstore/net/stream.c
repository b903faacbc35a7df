/* stream.c: bare byte streams over descriptors that libuv watches: dial, listen, read, write. */
#include "stream.h"
#include "conn_private.h"
#include "server.h"
#include "../base/clock.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/mem.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOG_MODULE "net"
enum { STREAM_DIAL_MS = 3000, STREAM_ACCEPTS_PER_TURN = 64, STREAM_RETRY_MS = 100 };

struct stream {
	const struct stream_ops *ops;
	void *owner;
	uv_loop_t *loop;
	int fd;
	uv_poll_t poll;
	bool polling;               /* poll is a handle of fd */
	bool open, closed, want_write, paused;
	int handles;                /* of libuv that are not closed yet */
	struct mq_host peer;
	char *name;
	/* While dialling. */
	uv_timer_t timer;
	uv_getaddrinfo_t req;
	bool resolving;
	struct addrinfo *found, *next;
	int failure;
};

static void dial_on(struct stream *s);

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

static void maybe_free(struct stream *s)
{
	if (!s->closed || s->handles || s->resolving)
		return;
	if (s->found)
		uv_freeaddrinfo(s->found);
	free(s->name);
	free(s);
}

static void on_timer_closed(uv_handle_t *h)
{
	struct stream *s = h->data;

	s->handles--;
	maybe_free(s);
}

/* The descriptor is closed when libuv has let go of it. */
static void on_poll_closed(uv_handle_t *h)
{
	struct stream *s = h->data;

	s->handles--;
	close(s->fd);
	s->fd = -1;
	if (s->closed)
		maybe_free(s);
	else
		dial_on(s);
}

static void drop_fd(struct stream *s)
{
	if (!s->polling)
		return;
	s->polling = false;
	uv_close((uv_handle_t *)&s->poll, on_poll_closed);
}

static struct stream *stream_new(uv_loop_t *loop, const struct stream_ops *ops, void *owner)
{
	struct stream *s = mem_alloc(sizeof *s);

	s->ops = ops;
	s->owner = owner;
	s->loop = loop;
	s->fd = -1;
	uv_timer_init(loop, &s->timer);
	s->timer.data = s->poll.data = s;
	s->handles = 1;
	return s;
}

void stream_close(struct stream *s)
{
	if (s->closed)
		return;
	s->closed = true;
	drop_fd(s);
	if (s->resolving)
		uv_cancel((uv_req_t *)&s->req);
	uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

void *stream_owner(const struct stream *s) { return s->owner; }
void stream_set_owner(struct stream *s, void *owner) { s->owner = owner; }
void stream_hand_over(struct stream *s, const struct stream_ops *ops, void *owner)
{
	s->ops = ops;
	s->owner = owner;
}
const struct mq_host *stream_peer(const struct stream *s) { return &s->peer; }
const char *stream_name(const struct stream *s) { return s->name; }

/* ---- Waiting --------------------------------------------------------------------------------------------------------- */

static void on_ready(uv_poll_t *h, int status, int events)
{
	struct stream *s = h->data;

	clock_refresh();
	if (status < 0) /* what is wrong shows when it is read */
		events = UV_READABLE;
	if ((events & UV_WRITABLE) && s->want_write)
		s->ops->writable(s);
	if ((events & UV_READABLE) && !s->closed)
		s->ops->readable(s);
}

static void wait_for_events(struct stream *s)
{
	int events = (s->paused ? 0 : UV_READABLE) | (s->want_write ? UV_WRITABLE : 0);

	if (!s->open || s->closed)
		return;
	if (events)
		uv_poll_start(&s->poll, events, on_ready);
	else
		uv_poll_stop(&s->poll);
}

void stream_want_write(struct stream *s, bool on)
{
	if (s->want_write == on)
		return;
	s->want_write = on;
	wait_for_events(s);
}

void stream_pause(struct stream *s, bool on)
{
	if (s->paused == on)
		return;
	s->paused = on;
	wait_for_events(s);
}

/* Watch fd.  0 or a code of libuv. */
static int watch(struct stream *s, int fd)
{
	int rc = uv_poll_init(s->loop, &s->poll, fd);

	if (rc < 0)
		return rc;
	s->poll.data = s;
	s->fd = fd;
	s->polling = true;
	s->handles++;
	return 0;
}

static void opened(struct stream *s)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof a;
	char text[MQ_HOST_TEXT];
	int on = 1;

	s->open = true;
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (getpeername(s->fd, (struct sockaddr *)&a, &n) == 0)
		addr_host((struct sockaddr *)&a, &s->peer);
	if (!s->name)
		s->name = mem_strdup(mq_host_text(&s->peer, text));
	wait_for_events(s);
}

/* ---- Dialling -------------------------------------------------------------------------------------------------------- */

static void dial_failed(struct stream *s, int rc)
{
	uv_timer_stop(&s->timer);
	s->ops->opened(s, rc);
}

static void on_too_late(uv_timer_t *t)
{
	clock_refresh();
	dial_failed(t->data, MQ_ETIMEOUT);
}

static void on_connect(uv_poll_t *h, int status, int events)
{
	struct stream *s = h->data;
	int err = 0;
	socklen_t n = sizeof err;

	clock_refresh();
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
		err = errno;
	if (!err && status < 0)
		err = ECONNREFUSED;
	if (err) {
		s->failure = -err;
		drop_fd(s);
		return;
	}
	uv_timer_stop(&s->timer);
	opened(s);
	s->ops->opened(s, 0);
}

static void on_given_up(uv_timer_t *t)
{
	clock_refresh();
	dial_failed(t->data, ((struct stream *)t->data)->failure);
}

static void dial_on(struct stream *s)
{
	while (s->next) {
		struct addrinfo *a = s->next;
		int rc, fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		s->next = a->ai_next;
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS) {
			rc = -errno;
			close(fd);
		} else
			rc = fd < 0 ? -errno : watch(s, fd);
		if (rc == 0) {
			uv_poll_start(&s->poll, UV_WRITABLE, on_connect);
			return;
		}
		s->failure = rc;
	}
	uv_timer_start(&s->timer, on_given_up, 0, 0);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
	struct stream *s = req->data;

	s->resolving = false;
	s->found = s->next = found;
	if (s->closed) {
		maybe_free(s);
		return;
	}
	if (status < 0)
		s->failure = status;
	dial_on(s);
}

static void on_dial(uv_timer_t *t)
{
	struct stream *s = t->data;

	uv_timer_start(&s->timer, on_too_late, uv_timer_get_repeat(t), 0);
	dial_on(s);
}

struct stream *stream_dial(uv_loop_t *loop, const char *addr, int timeout_ms, const struct stream_ops *ops, void *owner,
			   struct mq_error *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	uint64_t ms = timeout_ms > 0 ? (uint64_t)timeout_ms : STREAM_DIAL_MS;
	char host[ADDR_HOST_MAX], service[16];
	struct stream *s;
	int port, rc;

	if (addr_split(addr, host, &port, e) < 0)
		return NULL;
	s = stream_new(loop, ops, owner);
	s->name = mem_strdup(addr);
	s->failure = MQ_ECLOSED;
	s->req.data = s;
	snprintf(service, sizeof service, "%d", port);
	/* An address in digits needs no worker. */
	if (getaddrinfo(host, service, &hints, &s->found) == 0) {
		s->next = s->found;
		uv_timer_start(&s->timer, on_dial, 0, ms);
		return s;
	}
	s->found = NULL;
	hints.ai_flags = AI_NUMERICSERV;
	rc = uv_getaddrinfo(loop, &s->req, on_resolved, host, service, &hints);
	s->resolving = rc == 0;
	s->failure = rc < 0 ? rc : s->failure;
	uv_timer_start(&s->timer, rc < 0 ? on_given_up : on_too_late, rc < 0 ? 0 : ms, 0);
	return s;
}

/* ---- Bytes ----------------------------------------------------------------------------------------------------------- */

static ssize_t result(ssize_t n)
{
	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
		return 0;
	return errno == EPIPE || errno == ECONNRESET ? MQ_ECLOSED : -errno;
}

ssize_t stream_recv(struct stream *s, const struct iovec *v, int n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = (size_t)n };
	ssize_t got = recvmsg(s->fd, &m, 0);

	return got == 0 ? MQ_ECLOSED : result(got);
}

ssize_t stream_send(struct stream *s, const struct iovec *v, int n, bool more_follows)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = (size_t)n };

	return result(sendmsg(s->fd, &m, MSG_NOSIGNAL | (more_follows ? MSG_MORE : 0)));
}

ssize_t stream_send_file(struct stream *s, int fd, off_t off, size_t n)
{
	return result(sendfile(s->fd, fd, &off, n));
}

/* ---- Listening ------------------------------------------------------------------------------------------------------- */

struct stream_server {
	uv_loop_t *loop;
	const struct stream_ops *ops;
	void (*accepted)(void *owner, struct stream *s);
	void *owner;
	int fd, port, handles;
	bool starved;
	uv_poll_t poll;
	uv_timer_t retry;
};

static void on_connection(uv_poll_t *h, int status, int events);

static void on_retry(uv_timer_t *t)
{
	struct stream_server *s = t->data;

	uv_poll_start(&s->poll, UV_READABLE, on_connection);
}

static void on_connection(uv_poll_t *h, int status, int events)
{
	struct stream_server *s = h->data;

	clock_refresh();
	for (int i = 0; i < STREAM_ACCEPTS_PER_TURN && !uv_is_closing((uv_handle_t *)h); i++) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct stream *c;

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			if (!s->starved)
				log_error("no new connections until there are descriptors why=%s port=%d", mq_strerror(-errno), s->port);
			s->starved = true;
			uv_poll_stop(&s->poll);
			uv_timer_start(&s->retry, on_retry, STREAM_RETRY_MS, 0);
			return;
		}
		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0)
			continue;
		s->starved = false;
		c = stream_new(s->loop, s->ops, s->owner);
		if (watch(c, fd) < 0) {
			close(fd);
			stream_close(c);
			continue;
		}
		opened(c);
		s->accepted(s->owner, c);
	}
}

static int bind_listener(struct stream_server *s, const char *bind_to, int port, int backlog, struct mq_error *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *a = NULL;
	struct sockaddr_storage got;
	socklen_t n = sizeof got;
	struct mq_host host;
	char service[16];
	int rc, on = 1, off = 0;

	snprintf(service, sizeof service, "%d", port);
	rc = getaddrinfo(bind_to, service, &hints, &a);
	if (rc)
		return err_set(e, MQ_EINVAL, "listen on '%s': %s", bind_to, gai_strerror(rc));
	s->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd >= 0) {
		setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (a->ai_family == AF_INET6)
			setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	}
	rc = s->fd < 0 || bind(s->fd, a->ai_addr, a->ai_addrlen) < 0 || listen(s->fd, backlog) < 0 ||
	     getsockname(s->fd, (struct sockaddr *)&got, &n) < 0 ? -errno : 0;
	if (rc < 0)
		err_sys(e, rc, "listen on %s port %d", bind_to, port);
	else {
		addr_host((struct sockaddr *)&got, &host);
		s->port = host.port;
	}
	freeaddrinfo(a);
	return rc;
}

struct stream_server *stream_listen(uv_loop_t *loop, const char *bind_to, int port, int backlog, const struct stream_ops *ops,
				    void (*accepted)(void *owner, struct stream *s), void *owner, struct mq_error *e)
{
	struct stream_server *s = mem_alloc(sizeof *s);
	int rc;

	s->loop = loop;
	s->ops = ops;
	s->accepted = accepted;
	s->owner = owner;
	s->fd = -1;
	rc = bind_listener(s, bind_to, port, backlog, e);
	if (rc == 0 && (rc = uv_poll_init(loop, &s->poll, s->fd)) < 0)
		err_sys(e, rc, "wait for connections");
	if (rc < 0) {
		if (s->fd >= 0)
			close(s->fd);
		free(s);
		return NULL;
	}
	uv_timer_init(loop, &s->retry);
	s->poll.data = s->retry.data = s;
	s->handles = 2;
	uv_poll_start(&s->poll, UV_READABLE, on_connection);
	return s;
}

int stream_server_port(const struct stream_server *s)
{
	return s->port;
}

static void on_server_closed(uv_handle_t *h)
{
	struct stream_server *s = h->data;

	if (--s->handles)
		return;
	close(s->fd);
	free(s);
}

void stream_server_close(struct stream_server *s)
{
	uv_close((uv_handle_t *)&s->poll, on_server_closed);
	uv_close((uv_handle_t *)&s->retry, on_server_closed);
}
