/* test_server.c: many connections come and go, descriptors run out, sockets of dead servers lie about. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sys.h"
#include "netlab.h"
#include "tempdir.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

static struct buf logged;
static void keep_log(void *arg, enum log_level l, const char *line)
{
	buf_printf(&logged, "%s\n", line);
}

static int start(void **state)
{
	log_to(keep_log, NULL);
	logged.n = 0;
	return lab_start(state);
}

static int start_empty(void **state)
{
	log_to(keep_log, NULL);
	logged.n = 0;
	return lab_start_empty(state);
}

static int stop(void **state)
{
	int rc = lab_stop(state);

	log_to(NULL, NULL);
	buf_free(&logged);
	return rc;
}

static int times_logged(const char *words)
{
	int n = 0;

	buf_char(&logged, '\0');
	logged.n--;
	for (const char *p = logged.p; (p = strstr(p, words)); p++)
		n++;
	return n;
}

static void echo(struct lab *l, int fd, const char *text)
{
	struct buf b = { 0 }, in = { 0 };
	struct frame f;

	lab_request(&b, 3, NULL, 0, (struct mq_str){ text, strlen(text) });
	raw_send(l, fd, b.p, b.n);
	assert_true(raw_frame(l, fd, &in, &f));
	assert_int_equal(f.body.n, strlen(text));
	assert_memory_equal(f.body.p, text, strlen(text));
	buf_free(&b);
	buf_free(&in);
}

static void five_thousand_come_and_go_and_leave_nothing(void **state)
{
	struct lab *l = *state;
	int before = lab_descriptors();

	for (int i = 0; i < 5000; i++) {
		int fd = raw_connect(l);

		if (i % 3 == 0)
			echo(l, fd, "x");
		if (i % 7 == 0)
			raw_send(l, fd, "\0\0", 2);
		close(fd);
		if (i % 50 == 0)
			lab_once(l);
	}
	lab_until(l, &l->closed, 5000);
	assert_int_equal(l->opened, 5000);
	assert_int_equal(server_conns(l->server), 0);
	assert_int_equal(lab_descriptors(), before);
}

/* It says so once, goes on serving those it has, and takes new ones as soon as it can. */
static void out_of_descriptors_accepting_waits_and_goes_on(void **state)
{
	struct lab *l = *state;
	struct rlimit old, low;
	int fd[20], kept = raw_connect(l), spare;

	lab_until(l, &l->opened, 1);
	for (int i = 0; i < 20; i++)
		fd[i] = raw_connect(l);
	getrlimit(RLIMIT_NOFILE, &old);
	spare = dup(0);
	close(spare);
	low = old;
	low.rlim_cur = (rlim_t)spare + 5;
	setrlimit(RLIMIT_NOFILE, &low);
	lab_for(l, 450);
	assert_int_equal(l->opened, 1 + 5);
	assert_int_equal(times_logged("no new connections"), 1);
	echo(l, kept, "still served");
	setrlimit(RLIMIT_NOFILE, &old);
	lab_until(l, &l->opened, 21);
	assert_int_equal(times_logged("no new connections"), 1);
	for (int i = 0; i < 20; i++)
		echo(l, fd[i], "served at last");
	for (int i = 0; i < 20; i++)
		close(fd[i]);
	close(kept);
	lab_until(l, &l->closed, 21);
}

static void beyond_the_limit_connections_are_closed_at_once(void **state)
{
	struct lab *l = *state;
	int fd[4];

	lab_listen(l, (struct server_opt){ .max_conns = 3 });
	for (int i = 0; i < 4; i++)
		fd[i] = raw_connect(l);
	assert_true(raw_ended(l, fd[3]));
	assert_int_equal(server_conns(l->server), 3);
	close(fd[0]);
	lab_until(l, &l->closed, 1);
	close(fd[3]);
	fd[3] = raw_connect(l);
	echo(l, fd[3], "room again");
	for (int i = 1; i < 4; i++)
		close(fd[i]);
	lab_until(l, &l->closed, 4);
}

static void the_idle_are_closed_and_the_busy_are_not(void **state)
{
	struct lab *l = *state;
	int64_t began;
	int idle, busy;

	lab_listen(l, (struct server_opt){ .idle_ms = 200 });
	idle = raw_connect(l);
	busy = raw_connect(l);
	lab_until(l, &l->opened, 2);
	began = clock_mono_us();
	while (l->closed == 0 && clock_mono_us() - began < 5000000) {
		echo(l, busy, "tick");
		lab_for(l, 20);
	}
	assert_int_equal(l->closed, 1);
	assert_int_equal(l->last_why, MQ_ETIMEOUT);
	assert_true(clock_mono_us() - began >= 190000);
	assert_true(raw_ended(l, idle));
	echo(l, busy, "still here");
	close(idle);
	close(busy);
	lab_until(l, &l->closed, 2);
}

static void a_taken_port_is_an_error_that_names_it(void **state)
{
	struct lab *l = *state;
	struct server_opt o = { .bind = "127.0.0.1", .port = l->port };
	struct mq_error e;
	char want[100];

	assert_null(server_listen(&l->loop, &o, &lab_ops, l, &e));
	snprintf(want, sizeof(want), "listen on 127.0.0.1 port %d: Address already in use", l->port);
	assert_string_equal(e.text, want);
	o.bind = "999.1.1.1.invalid.";
	assert_null(server_listen(&l->loop, &o, &lab_ops, l, &e));
	assert_int_equal(e.code, MQ_EINVAL);
}

static void count_stop(void *arg)
{
	++*(int *)arg;
}

static void stopping_lets_what_is_written_leave(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 }, in = { 0 };
	int fd = raw_connect(l), quiet = raw_connect(l), stopped = 0;
	struct frame f;

	lab_request(&b, 0, "size", 5 << 20, MQ_STR(""));
	raw_send(l, fd, b.p, b.n);
	lab_until(l, &l->requests, 1);
	lab_until(l, &l->opened, 2);
	server_stop(l->server, 5000, count_stop, &stopped);
	l->server = NULL;
	assert_true(raw_frame(l, fd, &in, &f));
	assert_int_equal(f.body.n, 5 << 20);
	assert_true(raw_ended(l, fd));
	assert_int_equal(stopped, 0);
	close(fd);
	close(quiet);
	lab_until(l, &stopped, 1);
	assert_int_equal(l->closed, 2);
	buf_free(&b);
	buf_free(&in);
}

static void stopping_waits_no_longer_than_its_grace(void **state)
{
	struct lab *l = *state;
	struct buf b = { 0 };
	int fd = raw_connect(l), stopped = 0;
	int64_t began;

	for (int i = 0; i < 7; i++)
		lab_request(&b, i, "size", 1 << 20, MQ_STR(""));
	raw_send(l, fd, b.p, b.n);
	lab_for(l, 20);
	began = clock_mono_us();
	server_stop(l->server, 150, count_stop, &stopped);
	l->server = NULL;
	lab_until(l, &stopped, 1);
	assert_true(clock_mono_us() - began >= 145000 && clock_mono_us() - began < 10000000);
	close(fd);
	buf_free(&b);
}

static void close_other(void *arg, struct conn *c)
{
	struct conn **last = arg;

	if (*last)
		conn_close(*last);
	*last = c;
}

static void a_walk_over_connections_survives_their_end(void **state)
{
	struct lab *l = *state;
	struct conn *last = NULL;
	int fd[10];

	for (int i = 0; i < 10; i++)
		fd[i] = raw_connect(l);
	lab_until(l, &l->opened, 10);
	server_each(l->server, close_other, &last);
	assert_int_equal(server_conns(l->server), 1);
	assert_true(conn_alive(last));
	lab_until(l, &l->closed, 9);
	for (int i = 0; i < 10; i++)
		close(fd[i]);
	lab_until(l, &l->closed, 10);
}

/* ---- Unix sockets ---------------------------------------------------------------------------------------------------- */

static void *dir;

static int start_unix(void **state)
{
	int rc = tempdir_make(&dir);

	return rc ? rc : start_empty(state);
}

static int stop_unix(void **state)
{
	int rc = stop(state);

	return tempdir_remove(&dir) || rc;
}

static struct server *listen_at(struct lab *l, const char *path, struct mq_error *e)
{
	struct server_opt o = { .unix_path = path };

	return server_listen(&l->loop, &o, &lab_ops, l, e);
}

struct unix_client {
	int opened, closed, answers, why;
};

static void on_unix_opened(struct conn *c)
{
	((struct unix_client *)conn_public(c)->owner)->opened++;
}

static void on_unix_closed(struct conn *c, int why)
{
	struct unix_client *k = conn_public(c)->owner;

	k->closed++;
	k->why = why;
}

static void on_unix_answer(void *arg, int rc, struct frame *f)
{
	struct unix_client *k = arg;

	if (rc == 0 && f->body.n == 2)
		k->answers++;
}

static const struct conn_ops unix_ops = { .opened = on_unix_opened, .closed = on_unix_closed };

static void echo_through(struct lab *l, const char *path)
{
	struct unix_client k = { 0 };
	char addr[5000];
	struct frame_out o;
	struct conn *c;

	snprintf(addr, sizeof(addr), "unix:%s", path);
	c = conn_dial(&l->loop, addr, 0, &unix_ops, &k, NULL);
	assert_non_null(c);
	conn_call(c, &o, 10, FRAME_JSON, 5000, on_unix_answer, &k);
	frame_body(&o);
	buf_cstr(o.buf, "hi");
	frame_end(&o);
	lab_until(l, &k.answers, 1);
	assert_int_equal(conn_public(c)->peer.len, 0);
	assert_string_equal(conn_name(l->conn), "unix");
	conn_close(c);
	lab_until(l, &k.closed, 1);
	lab_until(l, &l->closed, l->opened);
}

static void a_unix_socket_is_for_its_owner_alone_and_goes_with_the_server(void **state)
{
	struct lab *l = *state;
	const char *path = tempdir_path(dir, "mq.sock");
	struct stat st;

	umask(0);
	l->server = listen_at(l, path, NULL);
	umask(022);
	assert_non_null(l->server);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	echo_through(l, path);
	server_stop(l->server, 0, NULL, NULL);
	l->server = NULL;
	assert_true(stat(path, &st) < 0);
}

static void what_a_dead_server_left_is_replaced(void **state)
{
	struct lab *l = *state;
	const char *path = tempdir_path(dir, "mq.sock");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(a.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd);
	l->server = listen_at(l, path, NULL);
	assert_non_null(l->server);
	echo_through(l, path);
}

static void a_socket_that_is_served_is_left_alone(void **state)
{
	struct lab *l = *state;
	const char *path = tempdir_path(dir, "mq.sock");
	struct mq_error e;

	l->server = listen_at(l, path, NULL);
	assert_null(listen_at(l, path, &e));
	assert_int_equal(e.code, MQ_EBUSY);
	assert_non_null(strstr(e.text, "another process serves it"));
	echo_through(l, path);
	lab_until(l, &l->closed, 2); /* the look if somebody is there was a connection too */
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
	const char *path = tempdir_path(dir, "mq.sock");
	struct mq_error e;
	char *text;

	tempdir_write(path, "precious");
	assert_null(listen_at(*state, path, &e));
	assert_non_null(strstr(e.text, "exists and is no socket"));
	text = tempdir_read(path);
	assert_string_equal(text, "precious");
	free(text);
}

static void a_successors_socket_is_not_removed(void **state)
{
	struct lab *l = *state;
	const char *path = tempdir_path(dir, "mq.sock");
	struct server *old = listen_at(l, path, NULL);

	unlink(path);
	l->server = listen_at(l, path, NULL);
	assert_non_null(l->server);
	server_stop(old, 0, NULL, NULL);
	lab_once(l);
	echo_through(l, path);
}

static void a_path_too_long_for_an_address_works_all_the_same(void **state)
{
	struct lab *l = *state;
	char *deep = mem_printf("%s/%0120d/%0120d", (char *)dir, 1, 2), *path = mem_printf("%s/mq.sock", deep);

	assert_int_equal(sys_mkdir_all(deep), 0);
	l->server = listen_at(l, path, NULL);
	assert_non_null(l->server);
	echo_through(l, path);
	free(deep);
	free(path);
}

static void nobody_at_a_unix_socket(void **state)
{
	struct lab *l = *state;
	struct unix_client k = { 0 };
	char addr[600];

	snprintf(addr, sizeof(addr), "unix:%s", tempdir_path(dir, "none"));
	assert_non_null(conn_dial(&l->loop, addr, 0, &unix_ops, &k, NULL));
	assert_int_equal(k.closed, 0);
	lab_until(l, &k.closed, 1);
	assert_int_equal(k.why, -ENOENT);
	assert_int_equal(k.opened, 0);
}

/* More connections at once than the socket's queue holds: the rest waits, none fails. */
static void a_busy_unix_server_is_waited_for(void **state)
{
	struct lab *l = *state;
	const char *path = tempdir_path(dir, "mq.sock");
	struct server_opt o = { .unix_path = path, .backlog = 2 };
	struct unix_client k = { 0 };
	struct conn *c[50];
	char addr[600];

	l->server = server_listen(&l->loop, &o, &lab_ops, l, NULL);
	snprintf(addr, sizeof(addr), "unix:%s", path);
	for (int i = 0; i < 50; i++)
		c[i] = conn_dial(&l->loop, addr, 0, &unix_ops, &k, NULL);
	lab_until(l, &k.opened, 50);
	assert_int_equal(k.closed, 0);
	for (int i = 0; i < 50; i++)
		conn_close(c[i]);
	lab_until(l, &k.closed, 50);
	lab_until(l, &l->closed, 50);
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
#define T0(name) cmocka_unit_test_setup_teardown(name, start_empty, stop)
#define U(name) cmocka_unit_test_setup_teardown(name, start_unix, stop_unix)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(five_thousand_come_and_go_and_leave_nothing),
		T(out_of_descriptors_accepting_waits_and_goes_on),
		T0(beyond_the_limit_connections_are_closed_at_once),
		T0(the_idle_are_closed_and_the_busy_are_not),
		T(a_taken_port_is_an_error_that_names_it),
		T(stopping_lets_what_is_written_leave),
		T(stopping_waits_no_longer_than_its_grace),
		T(a_walk_over_connections_survives_their_end),
		U(a_unix_socket_is_for_its_owner_alone_and_goes_with_the_server),
		U(what_a_dead_server_left_is_replaced),
		U(a_socket_that_is_served_is_left_alone),
		U(a_file_that_is_no_socket_is_left_alone),
		U(a_successors_socket_is_not_removed),
		U(a_path_too_long_for_an_address_works_all_the_same),
		U(nobody_at_a_unix_socket),
		U(a_busy_unix_server_is_waited_for),
	};
	return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
