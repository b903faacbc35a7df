/* sink.c: writes records to standard output and finds out which were accepted.
 *
 * A pipe, the hard case.  What write(2) took may never be read, and FIONREAD tells how much lies unread, also after the
 * reader has gone.  But a reader takes all that lies there in one read: head -3 with ten records in the pipe would take ten.  So
 * at first only one lies there.  To be woken when it has been taken, the pipe is shrunk to one page: then it is full as long as
 * anything lies in it, and poll(2) says "writable" exactly when it has been emptied.  When the reader has shown that it keeps
 * pace the pipe grows again and is filled; a timer looks after the last bytes.
 *
 * Ways to fail: the pipe cannot be shrunk (more than a page lies in it from an earlier writer): the timer looks instead; it
 * cannot be opened again without blocking (another user's): at most PIPE_BUF bytes are written, when poll(2) says there is room. */
#include "sink.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAST_PIPE (256 * 1024)
#define LOOK_MAX_MS 50

static uint64_t now_ms(const struct sink *s)
{
	return uv_now(s->timer.loop);
}

/* ---- Records ---------------------------------------------------------------------------------------------------------- */

static struct sink_record *at(struct sink *s, size_t i)
{
	return &s->ring[(s->head + i) & (s->cap - 1)];
}

struct bytes *sink_bytes(struct sink *s)
{
	return &s->buf;
}

static void grow_ring(struct sink *s)
{
	size_t cap = s->cap ? 2 * s->cap : 1024;
	struct sink_record *ring = malloc(cap * sizeof(*ring));

	if (!ring)
		cli_die(CLI_SYSTEM, "out of memory");
	for (size_t i = 0; i < s->n; i++)
		ring[i] = *at(s, i);
	free(s->ring);
	s->ring = ring;
	s->head = 0;
	s->cap = cap;
}

void sink_record(struct sink *s, void *queue, int64_t off)
{
	if (s->n == s->cap)
		grow_ring(s);
	*at(s, s->n) = (struct sink_record){ .end = s->buf_at + (int64_t)s->buf.n, .queue = queue, .off = off };
	s->n++;
}

static size_t to_write(const struct sink *s)
{
	return (size_t)(s->buf_at + (int64_t)s->buf.n - s->written);
}

bool sink_full(const struct sink *s)
{
	return to_write(s) >= SINK_FULL;
}

bool sink_idle(const struct sink *s)
{
	return s->n == 0;
}

int64_t sink_backlog(const struct sink *s)
{
	return s->buf_at + (int64_t)s->buf.n - s->accepted;
}

/* Everything before `pos` has been taken over. */
static void accept_to(struct sink *s, int64_t pos)
{
	s->accepted = pos;
	while (s->n > 0 && at(s, 0)->end <= pos) {
		struct sink_record r = *at(s, 0);

		s->head = (s->head + 1) & (s->cap - 1);
		s->n--;
		if (s->next > 0)
			s->next--;
		s->ops->accepted(s->arg, r.queue, r.off);
	}
}

/* `n` more bytes are written.  The buffer moves down when most of it is behind us. */
static void wrote(struct sink *s, size_t n)
{
	size_t gone;

	s->written += (int64_t)n;
	while (s->next < s->n && at(s, s->next)->end <= s->written)
		s->whole = at(s, s->next++)->end;
	gone = (size_t)(s->written - s->buf_at);
	if (gone == s->buf.n || gone > 4 * SINK_FULL) {
		bytes_drop(&s->buf, gone);
		s->buf_at = s->written;
	}
}

/* ---- Writing ---------------------------------------------------------------------------------------------------------- */

static void fail(struct sink *s, int rc)
{
	if (s->broken)
		return;
	s->broken = true;
	watch_close(s->watch);
	s->watch = NULL;
	uv_timer_stop(&s->timer);
	s->ops->broken(s->arg, rc);
}

/* At most `n` of the waiting bytes.  The number written, 0 if there is no room now, or -errno. */
static ssize_t write_some(struct sink *s, size_t n)
{
	struct pollfd p = { .fd = s->out, .events = POLLOUT };
	const char *from = s->buf.p + (s->written - s->buf_at);
	ssize_t k;

	if (s->may_block && s->kind != SINK_FILE) {
		if (poll(&p, 1, 0) == 0)
			return 0;
		if (n > PIPE_BUF)
			n = PIPE_BUF;
	}
	do
		k = s->is_socket ? send(s->out, from, n, MSG_DONTWAIT | MSG_NOSIGNAL) : write(s->out, from, n);
	while (k < 0 && errno == EINTR);
	if (k < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	wrote(s, (size_t)k);
	return k;
}

/* A file, terminal or socket: what is written is accepted. */
static void push_plain(struct sink *s)
{
	ssize_t k = 1;

	accept_to(s, s->written);
	while (to_write(s) > 0 && k > 0) {
		k = write_some(s, to_write(s));
		if (k > 0)
			accept_to(s, s->written);
	}
	if (k < 0)
		fail(s, (int)k);
	else
		watch_for(s->watch, to_write(s) ? EPOLLOUT : 0);
}

/* ---- A pipe ----------------------------------------------------------------------------------------------------------- */

/* See what the reader took.  The bytes that lie in the pipe. */
static int look(struct sink *s)
{
	int unread = 0;

	if (ioctl(s->out, FIONREAD, &unread) != 0)
		unread = 0;
	if (s->written - unread > s->accepted)
		s->look_ms = 1;
	if (s->written - unread >= s->accepted) /* another writer's bytes may lie there as well: then it seems less than it is */
		accept_to(s, s->written - unread);
	return unread;
}

static void on_timer(uv_timer_t *t)
{
	sink_push(t->data);
}

/* Be woken when there is something to see: room, if room is waited for, or else after a while, longer each time. */
static void wait(struct sink *s, bool for_room)
{
	if (for_room) {
		watch_for(s->watch, EPOLLOUT);
		return;
	}
	watch_for(s->watch, 0);
	uv_timer_start(&s->timer, on_timer, s->look_ms, 0);
	s->look_ms = s->look_ms * 2 > LOOK_MAX_MS ? LOOK_MAX_MS : s->look_ms * 2;
}

static void set_gentle(struct sink *s)
{
	s->gentle = true;
	s->slowing = false;
	s->one_slot = fcntl(s->out, F_SETPIPE_SZ, 1) == (int)sysconf(_SC_PAGESIZE);
	s->gentle_records = 0;
	s->gentle_since = now_ms(s);
}

static void set_fast(struct sink *s)
{
	s->gentle = false;
	s->full_since = 0;
	if (fcntl(s->out, F_SETPIPE_SZ, s->pipe_size > FAST_PIPE ? s->pipe_size : FAST_PIPE) < 0)
		fcntl(s->out, F_SETPIPE_SZ, s->pipe_size);
}

/* One record lies in the pipe at most. */
static void push_gently(struct sink *s)
{
	ssize_t k;

	for (;;) {
		bool inside = s->whole < s->written; /* of a record that did not go in at once */
		int unread = look(s);

		if (!inside && s->next > 0 && unread > 0) {
			wait(s, s->one_slot);
			return;
		}
		if (to_write(s) == 0) {
			watch_for(s->watch, 0);
			return;
		}
		if (!inside && ++s->gentle_records > SINK_GENTLE && !s->one_by_one) {
			if (now_ms(s) - s->gentle_since < SINK_GENTLE) {
				set_fast(s);
				return;
			}
			s->gentle_records = 0;
			s->gentle_since = now_ms(s);
		}
		k = write_some(s, (size_t)(at(s, s->next)->end - s->written));
		if (k < 0) {
			look(s);
			fail(s, (int)k);
			return;
		}
		if (k == 0) {
			wait(s, true);
			return;
		}
	}
}

/* As much as goes in. */
static void push_fast(struct sink *s)
{
	ssize_t k;

	while (to_write(s) > 0) {
		k = write_some(s, to_write(s));
		if (k < 0) {
			look(s);
			fail(s, (int)k);
			return;
		}
		if (k > 0)
			continue;
		look(s);
		if (s->full_since && now_ms(s) - s->full_since > SINK_SLOW_MS)
			s->slowing = true;
		s->full_since = now_ms(s);
		wait(s, true);
		return;
	}
	s->full_since = 0;
	if (look(s) > 0)
		wait(s, false);
	else
		watch_for(s->watch, 0);
}

static void push_pipe(struct sink *s)
{
	if (s->slowing) { /* let it run dry first */
		if (look(s) > 0) {
			wait(s, false);
			return;
		}
		set_gentle(s);
	}
	if (s->gentle)
		push_gently(s);
	if (!s->gentle && !s->broken)
		push_fast(s);
}

void sink_push(struct sink *s)
{
	if (s->broken)
		return;
	uv_timer_stop(&s->timer);
	wrote(s, 0); /* records without a byte */
	if (s->kind == SINK_PIPE)
		push_pipe(s);
	else
		push_plain(s);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------- */

static void on_watch(void *arg, uint32_t events)
{
	struct sink *s = arg;

	if (!(events & (EPOLLERR | EPOLLHUP))) {
		sink_push(s);
		return;
	}
	if (s->kind == SINK_PIPE)
		look(s);
	fail(s, -EPIPE);
}

int sink_open(struct sink *s, int fd, uv_loop_t *loop, const struct sink_ops *ops, void *arg)
{
	bool one_by_one = s->one_by_one;
	char path[64];
	struct stat st;
	int rc;

	memset(s, 0, sizeof(*s));
	s->one_by_one = one_by_one;
	s->ops = ops;
	s->arg = arg;
	s->fd = s->out = fd;
	s->look_ms = 1;
	if (fstat(fd, &st) != 0)
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	uv_timer_init(loop, &s->timer);
	s->timer.data = s;
	s->is_socket = S_ISSOCK(st.st_mode);
	s->kind = S_ISFIFO(st.st_mode) ? SINK_PIPE : SINK_STREAM;
	rc = watch_open(&s->watch, loop, fd, on_watch, s);
	if (rc < 0)
		return rc;
	if (rc == 1) {
		s->kind = SINK_FILE;
		return 0;
	}
	if (s->is_socket)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	s->out = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (s->out < 0) {
		s->out = fd;
		s->may_block = true;
	}
	if (s->kind == SINK_PIPE) {
		s->pipe_size = fcntl(s->out, F_GETPIPE_SZ);
		set_gentle(s);
	}
	return 0;
}

void sink_close(struct sink *s)
{
	if (s->kind == SINK_PIPE) {
		look(s);
		fcntl(s->out, F_SETPIPE_SZ, s->pipe_size);
	}
	s->broken = true;
	watch_close(s->watch);
	s->watch = NULL;
	uv_close((uv_handle_t *)&s->timer, NULL);
	if (s->out != s->fd)
		close(s->out);
	free(s->ring);
	s->ring = NULL;
	s->n = s->cap = 0;
	bytes_free(&s->buf);
}
