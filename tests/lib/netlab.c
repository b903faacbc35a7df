/* netlab.c: a loop with a server under test, and raw sockets that speak to it. */
#include "netlab.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static int descriptors_before;

static int on_request(struct conn *c, struct frame *f)
{
	struct lab *l = conn_public(c)->owner;
	struct mq_str size = frame_get(f, "size");
	struct frame_out o;

	l->requests++;
	if (frame_get(f, "close").p)
		conn_close(c);
	if (frame_get(f, "mute").p)
		return 0;
	frame_answer(&o, conn_out(c), frame_id_of(f), 0, (struct mq_str){ NULL, 0 });
	frame_body(&o);
	if (size.p) {
		size_t n = (size_t)atoi(size.p);

		memset(buf_room(o.buf, n), 'x', n);
		o.buf->n += n;
	} else {
		buf_str(o.buf, f->body);
	}
	frame_end(&o);
	return 0;
}

static void on_opened(struct conn *c)
{
	struct lab *l = conn_public(c)->owner;

	l->opened++;
	l->conn = c;
}

static void on_closed(struct conn *c, int why)
{
	struct lab *l = conn_public(c)->owner;

	l->closed++;
	l->last_why = why;
	if (l->conn == c)
		l->conn = NULL;
}

const struct conn_ops lab_ops = { .request = on_request, .opened = on_opened, .closed = on_closed };

int lab_start_empty(void **state)
{
	struct lab *l = mem_alloc(sizeof(*l));

	/* The first loop of a process opens descriptors that stay. */
	if (uv_loop_init(&l->loop) == 0)
		uv_loop_close(&l->loop);
	descriptors_before = lab_descriptors();
	*state = l;
	return uv_loop_init(&l->loop);
}

void lab_listen(struct lab *l, struct server_opt o)
{
	struct mq_error e;

	if (!o.bind && !o.unix_path)
		o.bind = "127.0.0.1";
	l->server = server_listen(&l->loop, &o, &lab_ops, l, &e);
	if (!l->server)
		fail_msg("%s", e.text);
	l->port = server_port(l->server);
}

int lab_start(void **state)
{
	int rc = lab_start_empty(state);

	if (rc == 0)
		lab_listen(*state, (struct server_opt){ 0 });
	return rc;
}

int lab_stop(void **state)
{
	struct lab *l = *state;

	if (l->server)
		server_stop(l->server, 10, NULL, NULL);
	uv_run(&l->loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&l->loop) != 0)
		fail_msg("a handle was left open");
	if (l->opened != l->closed)
		fail_msg("%d connections were opened, %d closed", l->opened, l->closed);
	free(l);
	if (lab_descriptors() != descriptors_before)
		fail_msg("%d descriptors before, %d after", descriptors_before, lab_descriptors());
	return 0;
}

void lab_once(struct lab *l)
{
	uv_run(&l->loop, UV_RUN_NOWAIT);
}

/* The loop waits as it does in a program, so that a wake-up that is missing is seen as slowness; the timer bounds it. */
static void on_bound(uv_timer_t *t)
{
}

static void run_bounded(struct lab *l, int ms)
{
	uv_timer_t t;

	uv_timer_init(&l->loop, &t);
	uv_timer_start(&t, on_bound, (uint64_t)ms, 0);
	uv_run(&l->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&t, NULL);
	uv_run(&l->loop, UV_RUN_NOWAIT);
}

void lab_until(struct lab *l, const int *n, int want)
{
	int64_t limit = clock_mono_us() + 10000000;

	while (*n < want) {
		if (clock_mono_us() > limit)
			fail_msg("10 s have passed: %d of %d", *n, want);
		run_bounded(l, 100);
	}
}

void lab_for(struct lab *l, int ms)
{
	int64_t end = clock_mono_us() + (int64_t)ms * 1000;

	while (clock_mono_us() < end)
		run_bounded(l, 5);
}

int raw_connect(struct lab *l)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)l->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		fail_msg("connect: %s", mq_strerror(-errno));
	return fd;
}

void raw_send(struct lab *l, int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t put = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (put < 0 && errno != EAGAIN)
			return; /* the server has closed: what the tests look at is what it says */
		at += put > 0 ? put : 0;
		n -= put > 0 ? (size_t)put : 0;
		lab_once(l);
	}
}

bool raw_recv(struct lab *l, int fd, struct buf *b, size_t n)
{
	int64_t limit = clock_mono_us() + 10000000;

	while (b->n < n) {
		size_t want = n - b->n < 65536 ? 65536 : n - b->n;
		char *room = buf_room(b, want);
		ssize_t got = recv(fd, room, want, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno != EAGAIN))
			return false;
		if (got > 0) {
			b->n += (size_t)got;
			continue;
		}
		if (clock_mono_us() > limit)
			fail_msg("10 s have passed: %zu of %zu bytes", b->n, n);
		run_bounded(l, 20);
	}
	return true;
}

bool raw_frame(struct lab *l, int fd, struct buf *b, struct frame *f)
{
	static struct buf copy;
	int64_t len;
	struct mq_error e;

	while ((len = frame_length(b->p, b->n)) == 0 || (size_t)len > b->n)
		if (!raw_recv(l, fd, b, len ? (size_t)len : b->n + 1))
			return false;
	if (len < 0)
		fail_msg("the server sent no frame");
	copy.n = 0;
	buf_put(&copy, b->p, (size_t)len);
	buf_drop(b, (size_t)len);
	if (frame_parse(copy.p, copy.n, f, &e) < 0)
		fail_msg("%s", e.text);
	return true;
}

bool raw_ended(struct lab *l, int fd)
{
	struct buf b = { 0 };
	bool more = raw_recv(l, fd, &b, 1);

	buf_free(&b);
	return !more;
}

void lab_request(struct buf *b, int opaque, const char *key, int64_t value, struct mq_str body)
{
	struct frame_out o;

	frame_request(&o, b, FRAME_JSON, 10, opaque, 0);
	if (key)
		frame_put_i64(&o, key, strlen(key), value);
	frame_body(&o);
	buf_str(o.buf, body);
	frame_end(&o);
}

int lab_descriptors(void)
{
	char **names;
	size_t n = 0;

	if (sys_list("/proc/self/fd", &names, &n) == 0)
		free(names);
	return (int)n;
}
