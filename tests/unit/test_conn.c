/* test_conn.c: bytes in, frames up, answers back: cut anywhere, in any number, from peers that behave and that do not. */
#include "base/byte.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/conn_private.h"
#include "netlab.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

/* Stands before libc's: what the connections write is counted. */
static int sends;
ssize_t send(int fd, const void *p, size_t n, int flags)
{
	if (flags == (MSG_NOSIGNAL | MSG_DONTWAIT))
		sends++;
	return syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

static void expect_answers(struct lab *l, int fd, int from, int n)
{
	struct buf in = { 0 };
	struct frame f;

	for (int i = from; i < from + n; i++) {
		assert_true(raw_frame(l, fd, &in, &f));
		assert_int_equal(f.opaque, i);
		assert_int_equal(f.flag & FRAME_RESPONSE, FRAME_RESPONSE);
	}
	assert_int_equal(in.n, 0);
	buf_free(&in);
}

static void pipelined_frames_in_odd_pieces_are_all_answered_in_order(void **state)
{
	const size_t chunks[] = { 1, 2, 3, 7, 64, 1000, 4095, 4096, 4097, 65535, 100000, 1 << 20 };
	struct lab *l = *state;
	struct buf all = { 0 };
	int n = 2000;

	for (int i = 0; i < n; i++)
		lab_request(&all, i, i % 3 ? "f" : NULL, i, (struct mq_str){ "0123456789abcdef", (size_t)(i % 17) });
	for (size_t k = 0; k < sizeof(chunks) / sizeof(chunks[0]); k++) {
		int fd = raw_connect(l);

		for (size_t at = 0; at < all.n; at += chunks[k])
			raw_send(l, fd, all.p + at, chunks[k] < all.n - at ? chunks[k] : all.n - at);
		expect_answers(l, fd, 0, n);
		close(fd);
	}
	buf_free(&all);
}

static void a_frame_may_be_cut_at_each_byte(void **state)
{
	struct lab *l = *state;
	struct buf two = { 0 };
	int fd = raw_connect(l);

	lab_request(&two, 0, "key", 5, MQ_STR("body"));
	lab_request(&two, 1, NULL, 0, MQ_STR("x"));
	for (size_t cut = 1; cut < two.n; cut++) {
		raw_send(l, fd, two.p, cut);
		lab_once(l);
		raw_send(l, fd, two.p + cut, two.n - cut);
		expect_answers(l, fd, 0, 2);
	}
	close(fd);
	buf_free(&two);
}

/* The same with a frame that is larger than the buffer all connections share. */
static void a_large_frame_may_be_cut_anywhere(void **state)
{
	struct lab *l = *state;
	struct buf three = { 0 }, body = { 0 };
	int fd = raw_connect(l);

	buf_grow(&body, 700001);
	memset(body.p, 'b', 700001);
	body.n = 700001;
	lab_request(&three, 0, NULL, 0, MQ_STR("small"));
	lab_request(&three, 1, NULL, 0, buf_view(&body));
	lab_request(&three, 2, NULL, 0, MQ_STR("small"));
	srand(8);
	for (int round = 0; round < 60; round++) {
		size_t cut = (size_t)rand() % three.n, at = cut + (size_t)rand() % (three.n - cut);

		raw_send(l, fd, three.p, cut);
		lab_once(l);
		raw_send(l, fd, three.p + cut, at - cut);
		lab_once(l);
		raw_send(l, fd, three.p + at, three.n - at);
		expect_answers(l, fd, 0, 3);
	}
	close(fd);
	buf_free(&three);
	buf_free(&body);
}

static void the_largest_frame_in_small_packets_costs_its_size(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 }, zeros = { 0 };
	size_t body = FRAME_MAX - 200;
	int fd = raw_connect(l);
	int64_t began = clock_mono_us();

	buf_grow(&zeros, body);
	memset(zeros.p, 0, body);
	lab_request(&b, 7, "size", 3, (struct mq_str){ zeros.p, body });
	buf_free(&zeros);
	for (size_t at = 0; at < b.n; at += 1460) {
		raw_send(l, fd, b.p + at, b.n - at < 1460 ? b.n - at : 1460);
		if (l->conn && at < b.n / 2)
			assert_true(l->conn->in.cap <= 2 * at + 2 * CONN_IN_KEEP);
	}
	expect_answers(l, fd, 7, 1);
	assert_true(clock_mono_us() - began < 8000000);
	assert_true(l->conn->in.cap <= CONN_IN_KEEP);
	close(fd);
	buf_free(&b);
}

static void what_is_no_frame_closes_without_an_answer(void **state)
{
	static const char *const bad[] = {
		"\0\0\0\0\0\0\0\0", "\0\0\0\3\0\0\0\0", "\xff\xff\xff\xff\0\0\0\0", "\x80\0\0\0\0\0\0\0", "\x01\0\0\0\0\0\0\0",
		"\0\xff\xff\xfd\0\0\0\0", "\0\0\0\x10\2\0\0\1", "\0\0\0\x10\0\0\0\x7f", "\0\0\0\x08\0\0\0\4nope", "GET / HTTP/1.1\r\n",
		"\0\0\0\x08\1\0\0\4\1\1\1\1",
	};
	static const size_t sizes[] = { 8, 8, 8, 8, 8, 8, 8, 8, 12, 16, 12 };
	struct lab *l = *state;
	struct buf good = { 0 };

	log_max = LOG_ERROR;
	lab_request(&good, 0, NULL, 0, MQ_STR("x"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd = raw_connect(l);

		/* What came before it is answered; what comes after is not looked at. */
		raw_send(l, fd, good.p, good.n);
		expect_answers(l, fd, 0, 1);
		raw_send(l, fd, bad[i], sizes[i]);
		raw_send(l, fd, good.p, good.n);
		assert_true(raw_ended(l, fd));
		lab_until(l, &l->closed, (int)i + 1);
		assert_int_equal(l->last_why, MQ_EPROTO);
		assert_int_equal(l->requests, (int)i + 1);
		close(fd);
	}
	log_max = LOG_INFO;
	buf_free(&good);
}

static void an_announced_length_takes_no_memory(void **state)
{
	struct lab *l = *state;
	char head[5000] = { 0 };
	int fd = raw_connect(l);

	put_be32(head, FRAME_MAX - 4);
	put_be32(head + 4, 100);
	raw_send(l, fd, head, sizeof(head));
	lab_for(l, 10);
	assert_non_null(l->conn);
	assert_int_equal(l->conn->in.n, sizeof(head));
	assert_true(l->conn->in.cap <= 2 * CONN_IN_KEEP);
	close(fd);
}

static void all_answers_of_a_turn_leave_in_one_write(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 };
	int fd = raw_connect(l);

	for (int i = 0; i < 1000; i++)
		lab_request(&b, i, NULL, 0, MQ_STR("0123456789"));
	assert_true(b.n < LOOP_READ);
	lab_until(l, &l->opened, 1);
	assert_int_equal(syscall(SYS_sendto, fd, b.p, b.n, 0, NULL, 0), (long)b.n);
	sends = 0;
	lab_until(l, &l->requests, 1000);
	assert_int_equal(sends, 1);
	expect_answers(l, fd, 0, 1000);
	close(fd);
	buf_free(&b);
}

struct late {
	struct conn *c;
	int n;
};

static void put_answer(struct conn *c, int opaque)
{
	struct frame_out o;

	frame_answer(&o, conn_out(c), (struct frame_id){ .opaque = opaque, .type = FRAME_JSON }, 0, (struct mq_str){ NULL, 0 });
	frame_end(&o);
}

static void on_check(uv_check_t *h)
{
	struct late *t = h->data;

	if (t->c && t->n++ == 0)
		put_answer(t->c, 77);
}

static void on_prepare(uv_prepare_t *h)
{
	struct late *t = h->data;

	if (t->c && t->n++ == 0)
		put_answer(t->c, 78);
}

static void on_readable(uv_poll_t *h, int status, int events)
{
	*(bool *)h->data = true;
}

static void on_late(uv_timer_t *h)
{
	*(bool *)h->data = true;
}

/* The loop has nothing else to wake up for. */
static bool comes_while_the_loop_waits(struct lab *l, int fd)
{
	bool readable = false, late = false;
	uv_poll_t poll;
	uv_timer_t timer;

	uv_run(&l->loop, UV_RUN_NOWAIT); /* the turn in which it is written */
	uv_poll_init(&l->loop, &poll, fd);
	uv_timer_init(&l->loop, &timer);
	poll.data = &readable;
	timer.data = &late;
	uv_poll_start(&poll, UV_READABLE, on_readable);
	uv_timer_start(&timer, on_late, 5000, 0);
	while (!readable && !late)
		uv_run(&l->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&poll, NULL);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(&l->loop, UV_RUN_NOWAIT);
	return readable;
}

/* Wherever in the turn something is written, the loop does not wait with it: the write is there at once, not when the
 * next input comes. */
static void what_is_written_anywhere_in_a_turn_leaves_before_the_loop_waits(void **state)
{
	struct lab *l = *state;
	struct late one = { 0 }, two = { 0 };
	uv_check_t check;
	uv_prepare_t prepare;
	int fd = raw_connect(l);

	lab_until(l, &l->opened, 1);
	uv_check_init(&l->loop, &check);
	uv_prepare_init(&l->loop, &prepare);
	check.data = &one;
	prepare.data = &two;
	uv_check_start(&check, on_check);
	uv_prepare_start(&prepare, on_prepare);
	one.c = l->conn;
	assert_true(comes_while_the_loop_waits(l, fd));
	expect_answers(l, fd, 77, 1);
	two.c = l->conn;
	assert_true(comes_while_the_loop_waits(l, fd));
	expect_answers(l, fd, 78, 1);
	uv_close((uv_handle_t *)&check, NULL);
	uv_close((uv_handle_t *)&prepare, NULL);
	close(fd);
	lab_until(l, &l->closed, 1);
}

static void a_peer_that_does_not_read_is_no_longer_read_from_and_others_go_on(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 }, one = { 0 }, in = { 0 };
	int deaf = raw_connect(l), fd, n = 100;
	struct conn *c;
	struct frame f;

	lab_until(l, &l->opened, 1);
	c = l->conn;
	for (int i = 0; i < n; i++)
		lab_request(&b, i, "size", 1 << 20, MQ_STR(""));
	raw_send(l, deaf, b.p, b.n);
	lab_for(l, 50);
	/* Some answers are in the kernel; the rest is bounded, and so is the number of requests that were handled. */
	assert_true(l->requests < 30);
	assert_true(conn_unsent(c) >= CONN_OUT_PAUSE / 2 && conn_unsent(c) <= CONN_OUT_PAUSE + (2 << 20));
	fd = raw_connect(l);
	lab_request(&one, 5, NULL, 0, MQ_STR("me too"));
	raw_send(l, fd, one.p, one.n);
	expect_answers(l, fd, 5, 1);
	/* It starts to read: everything comes. */
	for (int i = 0; i < n; i++) {
		assert_true(raw_frame(l, deaf, &in, &f));
		assert_int_equal(f.opaque, i);
		assert_int_equal(f.body.n, 1 << 20);
	}
	assert_int_equal(l->requests, n + 1);
	assert_int_equal(conn_unsent(c), 0);
	assert_true(c->out.cap <= CONN_OUT_KEEP);
	close(deaf);
	close(fd);
	buf_free(&b);
	buf_free(&one);
	buf_free(&in);
}

static void beyond_the_limit_a_deaf_peer_is_dropped(void **state)
{
	struct lab *l = *state;
	int fd = raw_connect(l);

	log_max = LOG_ERROR;
	lab_until(l, &l->opened, 1);
	for (int mib = 0; mib <= (CONN_OUT_MAX >> 20) + 20 && l->conn; mib++) {
		struct buf *out = conn_out(l->conn);

		buf_grow(out, 1 << 20);
		out->n += 1 << 20;
		lab_once(l);
	}
	lab_until(l, &l->closed, 1);
	assert_int_equal(l->last_why, MQ_ETOOBIG);
	log_max = LOG_INFO;
	close(fd);
}

static void frames_that_came_before_the_end_are_handled(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 };

	for (int i = 0; i < 3000; i++)
		lab_request(&b, i, "mute", 1, MQ_STR("an offset to be kept"));
	for (int round = 1; round <= 5; round++) {
		int fd = raw_connect(l);

		assert_int_equal(syscall(SYS_sendto, fd, b.p, b.n, 0, NULL, 0), (long)b.n);
		close(fd);
		lab_until(l, &l->closed, round);
		assert_int_equal(l->requests, 3000 * round);
		assert_int_equal(l->last_why, 0);
	}
	buf_free(&b);
}

/* A client that closes with answers unread resets the connection; its last requests are in our kernel already. */
static void frames_that_came_before_a_reset_are_handled(void **state)
{
	struct lab *l = *state;
	struct linger hard = { 1, 0 };
	struct buf b = { 0 };
	int n = 400; /* well within a receive buffer */

	for (int i = 0; i < n; i++)
		lab_request(&b, i, NULL, 0, MQ_STR("an offset to be kept"));
	for (int round = 1; round <= 20; round++) {
		int fd = raw_connect(l);

		lab_until(l, &l->opened, round);
		if (round % 2) {
			/* Some answered before the reset, some not. */
			raw_send(l, fd, b.p, 5000);
			lab_once(l);
			assert_int_equal(syscall(SYS_sendto, fd, b.p + 5000, b.n - 5000, 0, NULL, 0), (long)b.n - 5000);
		} else {
			assert_int_equal(syscall(SYS_sendto, fd, b.p, b.n, 0, NULL, 0), (long)b.n);
		}
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		close(fd);
		lab_until(l, &l->closed, round);
		assert_int_equal(l->requests, n * round);
	}
	buf_free(&b);
}

static void a_peer_that_closed_its_half_gets_all_answers(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 }, in = { 0 };
	int fd = raw_connect(l);
	struct frame f;

	for (int i = 0; i < 6; i++)
		lab_request(&b, i, "size", 1 << 20, MQ_STR(""));
	raw_send(l, fd, b.p, b.n);
	shutdown(fd, SHUT_WR);
	lab_for(l, 20);
	for (int i = 0; i < 6; i++) {
		assert_true(raw_frame(l, fd, &in, &f));
		assert_int_equal(f.body.n, 1 << 20);
	}
	assert_true(raw_ended(l, fd));
	close(fd);
	lab_until(l, &l->closed, 1);
	buf_free(&b);
	buf_free(&in);
}

/* With the default disposition of SIGPIPE this process would end. */
static void writing_to_a_peer_that_is_gone_does_no_harm(void **state)
{
	struct lab *l = *state;

	signal(SIGPIPE, SIG_DFL);
	for (int round = 1; round <= 50; round++) {
		int fd = raw_connect(l);
		struct conn *c;

		lab_until(l, &l->opened, round);
		c = l->conn;
		conn_ref(c);
		close(fd);
		for (int i = 0; i < 20; i++) {
			put_answer(c, i);
			put_answer(c, i);
			conn_kick(c);
			lab_once(l);
		}
		lab_until(l, &l->closed, round);
		assert_false(conn_alive(c));
		put_answer(c, 1);
		put_answer(c, 2);
		conn_kick(c);
		lab_once(l);
		conn_unref(c);
	}
}

static void closed_from_within_its_own_request_the_rest_is_dropped(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 };
	int fd = raw_connect(l);

	lab_request(&b, 0, "close", 1, MQ_STR("x"));
	lab_request(&b, 1, NULL, 0, MQ_STR("x"));
	raw_send(l, fd, b.p, b.n);
	assert_true(raw_ended(l, fd));
	lab_until(l, &l->closed, 1);
	assert_int_equal(l->requests, 1);
	close(fd);
	buf_free(&b);
}

static void closed_after_write_a_slow_peer_gets_everything(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 }, in = { 0 };
	int fd = raw_connect(l);
	struct conn *c;
	struct frame f;

	lab_until(l, &l->opened, 1);
	c = l->conn;
	lab_request(&b, 0, "size", 7 << 20, MQ_STR(""));
	raw_send(l, fd, b.p, b.n);
	lab_until(l, &l->requests, 1);
	conn_close_after_write(c);
	assert_false(conn_alive(c));
	put_answer(c, 99); /* goes nowhere, and hurts nothing that is still to be sent */
	raw_send(l, fd, b.p, b.n);
	assert_true(raw_frame(l, fd, &in, &f));
	assert_int_equal(f.body.n, 7 << 20);
	assert_true(raw_ended(l, fd));
	assert_int_equal(l->requests, 1);
	close(fd);
	lab_until(l, &l->closed, 1);
	buf_free(&b);
	buf_free(&in);
}

static int stream_left;
static void more_of_the_stream(struct conn *c)
{
	struct buf *out;

	if (stream_left-- <= 0)
		return;
	out = conn_out(c);
	buf_grow(out, 100000);
	out->n += 100000;
}

/* A stream that always has more does not keep others waiting. */
static void a_stream_leaves_room_for_others(void **state)
{
	struct lab *l = *state;
	struct buf in = { 0 }, one = { 0 };
	int fd = raw_connect(l), other = raw_connect(l);
	size_t total = 0;

	lab_until(l, &l->opened, 2);
	stream_left = 2000;
	conn_on_drain(l->conn, more_of_the_stream);
	lab_request(&one, 3, NULL, 0, MQ_STR("x"));
	more_of_the_stream(l->conn);
	/* Of the two, one carries the stream: find it by what comes. */
	lab_for(l, 5);
	raw_send(l, fd, one.p, one.n);
	raw_send(l, other, one.p, one.n);
	lab_until(l, &l->requests, 2);
	assert_true(stream_left > 0);
	conn_on_drain(l->conn, NULL);
	lab_once(l);
	while (total < 100000) {
		in.n = 0;
		raw_recv(l, other, &in, 1);
		total += in.n;
	}
	close(fd);
	close(other);
	buf_free(&in);
	buf_free(&one);
}

static void quiet_connections_give_their_buffers_back(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 }, in = { 0 };
	struct frame f;
	int fd;

	lab_listen(l, (struct server_opt){ .idle_ms = 400 });
	fd = raw_connect(l);
	lab_request(&b, 0, "size", 300000, MQ_STR(""));
	raw_send(l, fd, b.p, b.n);
	assert_true(raw_frame(l, fd, &in, &f));
	assert_true(l->conn->out.cap > 0);
	lab_for(l, 250);
	assert_non_null(l->conn);
	assert_int_equal(l->conn->out.cap, 0);
	raw_send(l, fd, b.p, b.n);
	assert_true(raw_frame(l, fd, &in, &f));
	close(fd);
	buf_free(&b);
	buf_free(&in);
}

static void ask_and_hear(struct lab *l, int fd, int times)
{
	struct buf b = { 0 }, in = { 0 };
	struct frame f;

	for (int i = 0; i < times; i++) {
		b.n = in.n = 0;
		lab_request(&b, i, NULL, 0, MQ_STR(""));
		raw_send(l, fd, b.p, b.n);
		assert_true(raw_frame(l, fd, &in, &f));
	}
	buf_free(&b);
	buf_free(&in);
}

static void input_in_quick_succession_is_looked_for_and_a_rest_is_waited_for(void **state)
{
	enum { SPIN_US = 200000 };
	struct lab *l = *state;
	int fd = raw_connect(l);
	struct net *n;

	ask_and_hear(l, fd, 50);
	n = l->conn->net;
	assert_false(n->spinning);
	conn_spin(&l->loop, SPIN_US, false);
	ask_and_hear(l, fd, 1);
	assert_false(n->spinning);
	ask_and_hear(l, fd, 50);
	assert_true(n->spinning);
	assert_int_equal(uv_backend_timeout(&l->loop), 0);
	while (n->spinning)
		lab_once(l);
	assert_true(clock_mono_us() - n->quiet_us >= SPIN_US);
	assert_int_not_equal(uv_backend_timeout(&l->loop), 0);
	/* It was in vain: not with the next, but when they come fast again. */
	ask_and_hear(l, fd, 1);
	assert_false(n->spinning);
	assert_int_not_equal(uv_backend_timeout(&l->loop), 0);
	ask_and_hear(l, fd, 50);
	assert_true(n->spinning);
	/* No longer than it took to answer. */
	conn_spin(&l->loop, SPIN_US, true);
	ask_and_hear(l, fd, 50);
	assert_true(n->look_us < SPIN_US);
	assert_true(n->look_us >= 0);
	conn_spin(&l->loop, 0, false);
	lab_once(l);
	assert_int_not_equal(uv_backend_timeout(&l->loop), 0);
	close(fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lab_start, lab_stop)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(pipelined_frames_in_odd_pieces_are_all_answered_in_order),
		T(a_frame_may_be_cut_at_each_byte),
		T(a_large_frame_may_be_cut_anywhere),
		T(the_largest_frame_in_small_packets_costs_its_size),
		T(what_is_no_frame_closes_without_an_answer),
		T(an_announced_length_takes_no_memory),
		T(all_answers_of_a_turn_leave_in_one_write),
		T(what_is_written_anywhere_in_a_turn_leaves_before_the_loop_waits),
		T(a_peer_that_does_not_read_is_no_longer_read_from_and_others_go_on),
		T(beyond_the_limit_a_deaf_peer_is_dropped),
		T(frames_that_came_before_the_end_are_handled),
		T(frames_that_came_before_a_reset_are_handled),
		T(a_peer_that_closed_its_half_gets_all_answers),
		T(writing_to_a_peer_that_is_gone_does_no_harm),
		T(closed_from_within_its_own_request_the_rest_is_dropped),
		T(closed_after_write_a_slow_peer_gets_everything),
		T(a_stream_leaves_room_for_others),
		T(input_in_quick_succession_is_looked_for_and_a_rest_is_waited_for),
		cmocka_unit_test_setup_teardown(quiet_connections_give_their_buffers_back, lab_start_empty, lab_stop),
	};
	return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
