/* conn.c: one connection: reading, handling frames in place, writing once per turn, back-pressure, the end.
 *
 * Works on descriptors that libuv watches, not on libuv's streams: so each turn is one recv and one send, a peer that is gone
 * costs no SIGPIPE, and what it sent before it went is still read.  Dialling is in dial.c, our own requests in call.c. */
#include "conn_private.h"
#include "../base/clock.h"
#include "../base/log.h"
#include "../base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOG_MODULE "net"

/* ---- What others see ------------------------------------------------------------------------------------------------- */

struct conn_public *conn_public(struct conn *c)
{
	return &c->pub;
}

void conn_ref(struct conn *c)
{
	c->refs++;
}

void conn_unref(struct conn *c)
{
	if (--c->refs)
		return;
	buf_free(&c->in);
	buf_free(&c->out);
	free(c->calls);
	free(c->name);
	net_put(c->net);
	free(c);
}

bool conn_alive(const struct conn *c)
{
	return c->state == CONN_DIALING || c->state == CONN_OPEN;
}

int conn_why(const struct conn *c)
{
	return c->why;
}

const char *conn_name(struct conn *c)
{
	char text[MQ_HOST_TEXT];

	if (!c->name)
		c->name = mem_strdup(c->pub.peer.len ? mq_host_text(&c->pub.peer, text) : "unix");
	return c->name;
}

size_t conn_unsent(const struct conn *c)
{
	return c->out.n - c->out_at;
}

void conn_on_drain(struct conn *c, void (*cb)(struct conn *c))
{
	c->drain = cb;
}

int conn_calls_open(const struct conn *c)
{
	return (int)c->calls_n;
}

/* What is written in handling c's own input is flushed there; anything else when the turn ends. */
static void mark_dirty(struct conn *c)
{
	if (c->is_dirty || c->busy || c->blocked)
		return;
	if (TAILQ_EMPTY(&c->net->dirty))
		net_soon(c->net);
	c->is_dirty = true;
	c->refs++;
	TAILQ_INSERT_TAIL(&c->net->dirty, c, turn);
}

static void send_out(struct conn *c);

/* Whoever writes to a peer that does not read comes by here, so here is the end of patience. */
static bool too_much_unsent(struct conn *c)
{
	if (conn_unsent(c) <= CONN_OUT_MAX)
		return false;
	if (!c->blocked)
		send_out(c);
	if (conn_unsent(c) <= CONN_OUT_MAX)
		return false;
	log_warn("peer does not read: dropped peer=%s unsent=%zu", conn_name(c), conn_unsent(c));
	conn_end(c, MQ_ETOOBIG);
	return true;
}

struct buf *conn_out(struct conn *c)
{
	if (!conn_alive(c) || c->write_dead || too_much_unsent(c)) {
		c->net->nowhere.n = 0;
		return &c->net->nowhere;
	}
	if (c->state == CONN_OPEN)
		mark_dirty(c);
	return &c->out;
}

void conn_kick(struct conn *c)
{
	if (c->state == CONN_OPEN && conn_unsent(c))
		mark_dirty(c);
}

/* ---- Beginning and end ----------------------------------------------------------------------------------------------- */

struct conn *conn_new(uv_loop_t *loop, const struct conn_ops *ops, void *owner)
{
	struct conn *c = mem_alloc(sizeof(*c));

	c->net = net_get(loop);
	c->ops = ops;
	c->pub.owner = owner;
	c->refs = 1;
	c->fd = -1;
	TAILQ_INSERT_TAIL(&c->net->conns, c, all);
	net_turn(c->net);
	net_tick_within(c->net, LOOP_TICK_MS);
	c->pub.last_read_ms = c->pub.last_write_ms = clock_mono_ms();
	return c;
}

int conn_wait(struct conn *c, int events, uv_poll_cb cb)
{
	int rc;

	if (c->handle == HANDLE_NONE) {
		rc = uv_poll_init(c->net->loop, &c->poll, c->fd);
		if (rc < 0)
			return rc;
		c->handle = HANDLE_OPEN;
		c->poll.data = c;
		c->interest = 0;
	}
	if (events == c->interest)
		return 0;
	c->interest = events;
	return events ? uv_poll_start(&c->poll, events, cb) : uv_poll_stop(&c->poll);
}

static void on_handle_closed(uv_handle_t *h)
{
	struct conn *c = h->data;

	net_turn(c->net);
	c->handle = HANDLE_NONE;
	if (c->state == CONN_DEAD)
		conn_tell_gone(c);
	else
		dial_next(c);
}

void conn_drop_fd(struct conn *c)
{
	if (c->handle == HANDLE_OPEN) {
		c->handle = HANDLE_CLOSING;
		uv_close((uv_handle_t *)&c->poll, on_handle_closed);
	}
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

void conn_end(struct conn *c, int why)
{
	struct net *n = c->net;

	if (c->state == CONN_DEAD)
		return;
	c->state = CONN_DEAD;
	c->why = why;
	deadline_clear(n, &c->deadline);
	TAILQ_REMOVE(&n->conns, c, all);
	if (TAILQ_EMPTY(&n->conns))
		deadline_clear(n, &n->tick);
	dial_give_up(c);
	server_forget(c);
	conn_drop_fd(c);
	if (c->handle == HANDLE_NONE) {
		TAILQ_INSERT_TAIL(&n->gone, c, end);
		net_soon(n);
	}
}

/* Called by the loop, never from within a call of the owner's. */
void conn_tell_gone(struct conn *c)
{
	call_lose_all(c);
	if (c->ops->closed)
		c->ops->closed(c, c->why);
	server_told(c);
	conn_unref(c);
}

void conn_close(struct conn *c)
{
	conn_end(c, 0);
}

static void update_interest(struct conn *c);

static void on_linger_over(struct deadline *d)
{
	conn_end((struct conn *)((char *)d - offsetof(struct conn, deadline)), 0);
}

/* Everything is sent.  Our half is closed; closing the other one too while input is unread would make the kernel throw away what the
 * peer has not read yet, so its end of stream is waited for. */
static void finish(struct conn *c)
{
	if (c->shut)
		return;
	c->shut = true;
	if (c->eof || shutdown(c->fd, SHUT_WR) < 0)
		conn_end(c, 0);
}

void conn_close_after_write(struct conn *c)
{
	if (c->state == CONN_DIALING)
		conn_end(c, 0);
	if (c->state != CONN_OPEN)
		return;
	c->state = CONN_FINISHING;
	c->paused = false;
	deadline_set(c->net, &c->deadline, CONN_LINGER_MS, on_linger_over);
	/* In its own callback the flush that follows does the rest. */
	if (!c->busy)
		conn_flush(c);
}

void conn_opened(struct conn *c, int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);
	int on = 1;

	c->fd = fd;
	c->state = CONN_OPEN;
	if (getpeername(fd, (struct sockaddr *)&a, &n) == 0)
		addr_host((struct sockaddr *)&a, &c->pub.peer);
	n = sizeof(a);
	if (getsockname(fd, (struct sockaddr *)&a, &n) == 0)
		addr_host((struct sockaddr *)&a, &c->pub.local);
	/* No effect on a Unix socket, and no harm. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->pub.last_read_ms = c->pub.last_write_ms = clock_mono_ms();
	update_interest(c);
	if (c->state == CONN_OPEN && c->ops->opened)
		c->ops->opened(c);
	conn_kick(c);
}

void conn_tick(struct conn *c, int64_t now_ms)
{
	int64_t last = c->pub.last_read_ms > c->pub.last_write_ms ? c->pub.last_read_ms : c->pub.last_write_ms;
	int limit = c->server ? server_idle_ms(c->server) : 0;

	if (limit && now_ms - last >= limit && c->state == CONN_OPEN) {
		log_info("idle connection closed peer=%s ms=%lld", conn_name(c), (long long)(now_ms - last));
		conn_end(c, MQ_ETIMEOUT);
		return;
	}
	if (now_ms - last < c->net->tick_ms)
		return;
	/* Quiet since the last look: memory that is not needed goes back. */
	if (!c->in.n && c->in.cap)
		buf_free(&c->in);
	if (!conn_unsent(c) && c->out.cap) {
		buf_free(&c->out);
		c->out_at = 0;
	}
}

/* ---- Writing --------------------------------------------------------------------------------------------------------- */

/* The peer will not read any more.  What it sent before is still to be handled: the last offsets of a consumer that closes
 * right after it sent them, for example. */
static void writes_are_lost(struct conn *c)
{
	c->write_dead = true;
	c->blocked = c->paused = false;
	c->out.n = c->out_at = 0;
}

static void all_sent(struct conn *c)
{
	c->out.n = c->out_at = 0;
	c->blocked = false;
	if (c->out.cap > CONN_OUT_KEEP)
		buf_free(&c->out);
	if (c->state == CONN_FINISHING)
		finish(c);
	else if (c->drain)
		c->drain(c);
}

static void send_out(struct conn *c)
{
	size_t left = conn_unsent(c);
	ssize_t n;

	if (c->state != CONN_OPEN && c->state != CONN_FINISHING)
		return;
	if (!left) {
		if (c->state == CONN_FINISHING)
			finish(c);
		return;
	}
	if (c->net->before_send)
		c->net->before_send(c->net->before_send_arg);
	do
		n = send(c->fd, c->out.p + c->out_at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN && errno != ENOBUFS) {
		bool gone = errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT;

		if (c->state == CONN_OPEN && gone)
			writes_are_lost(c);
		else
			conn_end(c, gone ? 0 : -errno);
		return;
	}
	if (n > 0) {
		c->out_at += (size_t)n;
		c->pub.last_write_ms = clock_mono_ms();
	}
	if ((size_t)(n > 0 ? n : 0) == left) {
		all_sent(c);
		return;
	}
	c->blocked = true;
	/* Moved to the front when at least half is gone, so that each byte moves once. */
	if (c->out_at >= c->out.n - c->out_at) {
		buf_drop(&c->out, c->out_at);
		c->out_at = 0;
	}
}

static void on_poll(uv_poll_t *h, int status, int events);

static void update_interest(struct conn *c)
{
	int rc;

	if (c->state != CONN_OPEN && c->state != CONN_FINISHING)
		return;
	rc = conn_wait(c, (c->paused || c->eof ? 0 : UV_READABLE) | (c->blocked ? UV_WRITABLE : 0), on_poll);
	if (rc < 0)
		conn_end(c, rc);
}

static void resume(struct conn *c);

void conn_flush(struct conn *c)
{
	if (c->state != CONN_OPEN && c->state != CONN_FINISHING)
		return;
	if (!c->blocked)
		send_out(c);
	if (c->paused && conn_unsent(c) < CONN_OUT_PAUSE / 2)
		resume(c);
	update_interest(c);
}

/* ---- Reading --------------------------------------------------------------------------------------------------------- */

static void bad_frame(struct conn *c, const struct mq_error *e)
{
	log_warn("connection closed: not a frame peer=%s why=%s", conn_name(c), e->text);
	/* Answers to what came before it may still leave. */
	send_out(c);
	conn_end(c, MQ_EPROTO);
}

/* Hand up every whole frame at p.  Returns the bytes that are done; the rest waits for more input, or for room to write. */
static size_t handle_frames(struct conn *c, char *p, size_t n)
{
	struct frame *f = &c->net->frame;
	size_t at = 0;
	struct mq_error e;

	while (c->state == CONN_OPEN) {
		int64_t len = frame_length(p + at, n - at);

		if (len < 0) {
			e = (struct mq_error){ .text = "bad length, header length or header type" };
			bad_frame(c, &e);
			break;
		}
		if (len == 0 || (size_t)len > n - at)
			break;
		if (frame_parse(p + at, (size_t)len, f, &e) < 0) {
			bad_frame(c, &e);
			break;
		}
		at += (size_t)len;
		if (f->flag & FRAME_RESPONSE)
			call_answered(c, f);
		else if (c->ops->request && c->ops->request(c, f) != 0)
			conn_end(c, MQ_EPROTO);
		if (conn_unsent(c) < CONN_FLUSH || c->state != CONN_OPEN)
			continue;
		if (!c->blocked)
			send_out(c);
		/* Only for what the peer asks of us: if its answers had to wait too, two that send a lot would wait for each other. */
		if (conn_unsent(c) >= CONN_OUT_PAUSE && !(f->flag & FRAME_RESPONSE)) {
			c->paused = true;
			break;
		}
	}
	return c->state == CONN_OPEN ? at : n;
}

/* Frames that waited for room to write. */
static void resume(struct conn *c)
{
	c->busy = true;
	while (c->state == CONN_OPEN && c->paused && conn_unsent(c) < CONN_OUT_PAUSE / 2) {
		c->paused = false;
		buf_drop(&c->in, handle_frames(c, c->in.p, c->in.n));
		if (!c->blocked)
			send_out(c);
	}
	c->busy = false;
}

/* Where the next bytes go.  Small remainders are copied in front of the shared buffer, so that a connection at rest holds nothing;
 * a large frame grows in a buffer of its own, which follows what really came (doubling), up to what its length says. */
static char *read_room(struct conn *c, bool *shared, size_t *room)
{
	size_t whole, more;

	if (c->state == CONN_FINISHING) {
		*shared = true;
		*room = LOOP_READ;
		return c->net->in;
	}
	*shared = c->in.n < CONN_STASH;
	if (*shared) {
		if (c->in.n)
			memcpy(c->net->in, c->in.p, c->in.n);
		*room = LOOP_READ - c->in.n;
		return c->net->in + c->in.n;
	}
	whole = (size_t)frame_length(c->in.p, c->in.n);
	if (c->in.cap - c->in.n < CONN_STASH && c->in.cap != whole) {
		more = whole > c->in.n ? whole - c->in.n : LOOP_READ;
		if (more > c->in.n && more > CONN_IN_KEEP)
			more = c->in.n > CONN_IN_KEEP ? c->in.n : CONN_IN_KEEP;
		c->in.cap = c->in.n + more;
		c->in.p = mem_realloc(c->in.p, c->in.cap);
	}
	*room = c->in.cap - c->in.n;
	return c->in.p + c->in.n;
}

static void keep_rest(struct conn *c, const char *rest, size_t n)
{
	c->in.n = 0;
	if (!n) {
		if (c->in.cap > CONN_IN_KEEP)
			buf_free(&c->in);
		return;
	}
	buf_put(&c->in, rest, n);
}

static void handle_input(struct conn *c, size_t got, bool shared)
{
	char *p = shared ? c->net->in : c->in.p;
	size_t total = c->in.n + got, done;

	c->pub.last_read_ms = clock_mono_ms();
	c->busy = true;
	done = handle_frames(c, p, total);
	c->busy = false;
	if (shared) {
		keep_rest(c, p + done, total - done);
		return;
	}
	c->in.n = total;
	buf_drop(&c->in, done);
	if (!c->in.n)
		keep_rest(c, NULL, 0);
}

/* One recv.  false: there is nothing more to come (now). */
static bool read_some(struct conn *c)
{
	bool shared;
	size_t room;
	char *p = read_room(c, &shared, &room);
	ssize_t n;

	do
		n = recv(c->fd, p, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		if (c->state == CONN_OPEN)
			handle_input(c, (size_t)n, shared);
		return true;
	}
	if (n < 0 && errno == EAGAIN)
		return false;
	c->eof = true;
	if (n < 0 || !conn_unsent(c))
		conn_end(c, n < 0 && c->state == CONN_OPEN ? -errno : 0);
	else
		conn_close_after_write(c); /* it may have closed only its half, and still read */
	return false;
}

static void on_poll(uv_poll_t *h, int status, int events)
{
	struct conn *c = h->data;

	net_turn(c->net);
	conn_ref(c);
	if (status < 0) {
		/* Reset: libuv has stopped watching.  What arrived before the reset can still be read. */
		c->interest = 0;
		writes_are_lost(c);
		if (c->in.n)
			handle_input(c, 0, false);
		while ((c->state == CONN_OPEN || c->state == CONN_FINISHING) && read_some(c))
			;
		conn_end(c, -ECONNRESET);
		conn_unref(c);
		return;
	}
	if (events & UV_WRITABLE)
		c->blocked = false;
	if ((events & UV_READABLE) && !c->paused && !c->eof && c->state != CONN_DEAD) {
		net_heard(c->net);
		read_some(c);
	}
	conn_flush(c);
	conn_unref(c);
}
