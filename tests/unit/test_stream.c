/* test_stream.c: bare byte streams: dial, listen, bytes both ways, files, ends. */
#include "netlab.h"

#include "net/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

enum { MUCH = 3 << 20 };

static struct side {
	struct stream *s;
	int opened, ended, rc;
	size_t got, sent, to_send;
	uint8_t sum;
	int file;               /* to_send comes from here; -1 = from memory */
} client, server;
static int accepted, refuse;
static uint8_t bytes[1 << 16];

static void on_opened(struct stream *s, int rc)
{
	struct side *me = stream_owner(s);

	me->opened = 1;
	me->rc = rc;
	if (rc < 0) {
		stream_close(s);
		me->s = NULL;
	} else
		stream_want_write(s, me->to_send > 0);
}

static void on_readable(struct stream *s)
{
	struct side *me = stream_owner(s);
	uint8_t buf[5000];
	struct iovec v[2] = { { buf, 7 }, { buf + 7, sizeof buf - 7 } };
	ssize_t n = stream_recv(s, v, 2);

	if (n < 0) {
		me->rc = (int)n;
		me->ended = 1;
		stream_close(s);
		me->s = NULL;
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		me->sum = (uint8_t)(me->sum * 31 + buf[i]);
	me->got += (size_t)n;
}

static void on_writable(struct stream *s)
{
	struct side *me = stream_owner(s);
	size_t left = me->to_send - me->sent, at = me->sent % sizeof bytes;
	struct iovec v = { bytes + at, left < sizeof bytes - at ? left : sizeof bytes - at };
	ssize_t n = me->file >= 0 ? stream_send_file(s, me->file, (off_t)me->sent, left) : stream_send(s, &v, 1, false);

	assert_true(n >= 0);
	me->sent += (size_t)n;
	stream_want_write(s, me->sent < me->to_send);
}

static const struct stream_ops ops = { on_opened, on_readable, on_writable };

static void on_accepted(void *owner, struct stream *s)
{
	accepted++;
	if (refuse) {
		stream_close(s);
		return;
	}
	server.s = s;
	stream_set_owner(s, &server);
	stream_want_write(s, server.to_send > 0);
}

static struct stream_server *begin(struct lab *l, char addr[32])
{
	struct mq_error e;
	struct stream_server *s = stream_listen(&l->loop, "127.0.0.1", 0, 8, &ops, on_accepted, NULL, &e);

	if (!s)
		fail_msg("%s", e.text);
	signal(SIGPIPE, SIG_IGN);
	client = server = (struct side){ .file = -1 };
	accepted = refuse = 0;
	snprintf(addr, 32, "127.0.0.1:%d", stream_server_port(s));
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	return s;
}

static void dial(struct lab *l, const char *addr)
{
	struct mq_error e;

	client.s = stream_dial(&l->loop, addr, 5000, &ops, &client, &e);
	if (!client.s)
		fail_msg("%s", e.text);
}

static uint8_t sum_of(size_t n)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum = (uint8_t)(sum * 31 + bytes[i % sizeof bytes]);
	return sum;
}

static void until(struct lab *l, const size_t *n, size_t want)
{
	int never = 0;

	for (int i = 0; *n < want && i < 20000; i++)
		lab_for(l, 1);
	lab_until(l, &never, 0);
	assert_int_equal(*n, want);
}

static void bytes_go_both_ways(void **state)
{
	char addr[32];
	struct stream_server *s = begin(*state, addr);

	client.to_send = MUCH;
	server.to_send = 100000;
	dial(*state, addr);
	until(*state, &server.got, MUCH);
	until(*state, &client.got, 100000);
	assert_int_equal(client.rc, 0);
	assert_int_equal(server.sum, sum_of(MUCH));
	assert_int_equal(client.sum, sum_of(100000));
	assert_string_equal(stream_name(client.s), addr);
	assert_int_equal(stream_peer(server.s)->ip[0], 127);
	stream_close(client.s);
	lab_until(*state, &server.ended, 1);
	assert_int_equal(server.rc, MQ_ECLOSED);
	stream_server_close(s);
}

static void a_file_goes_out_as_it_is(void **state)
{
	char addr[32], path[] = "/tmp/test_stream.XXXXXX";
	struct stream_server *s = begin(*state, addr);
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	for (size_t at = 0; at < MUCH; at += sizeof bytes)
		assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
	server.to_send = MUCH;
	server.file = fd;
	dial(*state, addr);
	until(*state, &client.got, MUCH);
	assert_int_equal(client.sum, sum_of(MUCH));
	stream_close(client.s);
	stream_close(server.s);
	stream_server_close(s);
	close(fd);
}

static void nobody_there_is_told(void **state)
{
	char addr[32];
	struct stream_server *s = begin(*state, addr);

	stream_server_close(s);
	lab_once(*state);
	dial(*state, addr);
	lab_until(*state, &client.opened, 1);
	assert_int_equal(client.rc, -ECONNREFUSED);
}

static void a_dial_can_be_given_up(void **state)
{
	char addr[32];
	struct stream_server *s = begin(*state, addr);

	dial(*state, addr);
	stream_close(client.s);
	dial(*state, "localhost:9"); /* its name is looked up by a worker */
	stream_close(client.s);
	lab_for(*state, 50);
	assert_int_equal(client.opened, 0);
	stream_server_close(s);
}

static void what_is_no_address_is_refused(void **state)
{
	struct lab *l = *state;
	struct mq_error e;

	assert_null(stream_dial(&l->loop, "nonsense", 0, &ops, &client, &e));
	assert_int_equal(e.code, MQ_EINVAL);
	assert_null(stream_listen(&l->loop, "1.2.3.4.5", 0, 8, &ops, on_accepted, NULL, &e));
}

static void who_is_turned_away_leaves_nothing(void **state)
{
	char addr[32];
	struct stream_server *s = begin(*state, addr);
	int before = lab_descriptors();

	refuse = 1;
	for (int i = 0; i < 200; i++) {
		int fd = raw_connect(&(struct lab){ .port = stream_server_port(s) });

		close(fd);
		lab_once(*state);
	}
	lab_until(*state, &accepted, 200);
	lab_for(*state, 20);
	assert_int_equal(lab_descriptors(), before);
	stream_server_close(s);
}

static void out_of_descriptors_is_waited_for(void **state)
{
	char addr[32];
	struct stream_server *s = begin(*state, addr);
	struct rlimit was, few;
	int fd;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	fd = raw_connect(&(struct lab){ .port = stream_server_port(s) });
	few = was;
	few.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	lab_for(*state, 150);
	assert_int_equal(accepted, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	lab_until(*state, &accepted, 1);
	stream_close(server.s);
	close(fd);
	stream_server_close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, lab_start_empty, lab_stop)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(bytes_go_both_ways), T(a_file_goes_out_as_it_is), T(nobody_there_is_told), T(a_dial_can_be_given_up),
		T(what_is_no_address_is_refused), T(who_is_turned_away_leaves_nothing), T(out_of_descriptors_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
