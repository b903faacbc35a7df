/* test_client_address.c: which address is meant; address servers; brokers that a client starts itself. */
#include "fake.h"
#include "tempdir.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "client/embedded.h"
#include "codec/request.h"
#include <mqclient.h>

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char self[4096]; /* path of this program, which also plays the broker */

/* ---- Which address --------------------------------------------------------------------------------------------------- */

static void set(const char *key, const char *value)
{
	if (value)
		setenv(key, value, 1);
	else
		unsetenv(key);
}

static void the_option_wins_then_the_environment_then_files_then_the_users_own(void **state)
{
	char out[1000], dir[1000], want[1000];
	struct mq_error e;

	snprintf(dir, sizeof dir, "%s", tempdir_path(*state, "config"));
	set("XDG_CONFIG_HOME", dir);
	set("XDG_DATA_HOME", "/data");
	set("NAMESRV_ADDR", "env:1");
	assert_int_equal(mqclient_address("arg:1;two:2", out, sizeof out, &e), 0);
	assert_string_equal(out, "arg:1;two:2");
	assert_int_equal(mqclient_address(NULL, out, sizeof out, &e), 0);
	assert_string_equal(out, "env:1");
	set("NAMESRV_ADDR", "");
	mkdir(dir, 0755);
	mkdir(tempdir_path(*state, "config/mq"), 0755);
	tempdir_write(tempdir_path(*state, "config/mq/config"), "# mine\nnameserver = file:9876\n");
	assert_int_equal(mqclient_address(NULL, out, sizeof out, &e), 0);
	assert_string_equal(out, "file:9876");
	unlink(tempdir_path(*state, "config/mq/config"));
	assert_int_equal(mqclient_address(NULL, out, sizeof out, &e), 0);
	assert_string_equal(out, "file:/data/mq");
	set("XDG_DATA_HOME", NULL);
	set("HOME", "/home/x");
	assert_int_equal(mqclient_address(NULL, out, sizeof out, &e), 0);
	snprintf(want, sizeof want, "file:/home/x/.local/share/mq");
	assert_string_equal(out, want);
}

static void kinds_are_told_from_the_front(void **state)
{
	assert_int_equal(mqclient_addr_kind("host:9876"), MQCLIENT_CLUSTER);
	assert_int_equal(mqclient_addr_kind("[::1]:9876;b:1"), MQCLIENT_CLUSTER);
	assert_int_equal(mqclient_addr_kind("http://x/y"), MQCLIENT_HTTP);
	assert_int_equal(mqclient_addr_kind("file:/a/b"), MQCLIENT_FILE);
	assert_int_equal(mqclient_addr_kind("store:b"), MQCLIENT_STORE);
	assert_string_equal(mqclient_addr_dir("file:/a/b"), "/a/b");
	assert_string_equal(mqclient_addr_dir("store:b"), "b");
}

static void bad_addresses_are_refused_with_their_piece(void **state)
{
	static const char *const bad[] = { "host", "host:", "host:x", "host:99999", "a:1;b", ";", "", "file:", "store:",
	                                  "http://",
		                           "a:1;[::1" };
	char out[1000], small[8];
	struct mq_error e;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (mqclient_address(bad[i], out, sizeof out, &e) != MQ_EINVAL)
			fail_msg("'%s' is taken", bad[i]);
	assert_int_equal(mqclient_address("a:1;wrong piece;b:2", out, sizeof out, &e), MQ_EINVAL);
	assert_non_null(strstr(e.text, "wrong piece"));
	assert_int_equal(mqclient_address("host:9876", small, sizeof small, &e), MQ_EINVAL);
}

/* ---- An address server ----------------------------------------------------------------------------------------------- */

struct web {
	uv_loop_t loop;
	uv_tcp_t listener;
	int port, requests;
	char answer[500];
	struct fake *a;
	int sent, ok;
	struct mq_error e;
};

struct visit {
	uv_tcp_t tcp;
	uv_write_t write;
	struct web *w;
	char in[4096];
};

static void on_visit_closed(uv_handle_t *h)
{
	free(h->data);
}

static void on_written(uv_write_t *r, int status)
{
	uv_close((uv_handle_t *)r->handle, on_visit_closed);
}

static void on_alloc(uv_handle_t *h, size_t n, uv_buf_t *b)
{
	struct visit *v = h->data;

	*b = uv_buf_init(v->in, sizeof v->in);
}

static void on_web_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
	struct visit *v = s->data;
	uv_buf_t out;

	if (n <= 0) {
		uv_close((uv_handle_t *)s, on_visit_closed);
		return;
	}
	v->w->requests++;
	if (!v->w->answer[0])
		return;
	uv_read_stop(s);
	out = uv_buf_init(v->w->answer, (unsigned)strlen(v->w->answer));
	uv_write(&v->write, s, &out, 1, on_written);
}

static void on_visitor(uv_stream_t *s, int status)
{
	struct visit *v = calloc(1, sizeof *v);

	v->w = s->data;
	v->tcp.data = v;
	uv_tcp_init(s->loop, &v->tcp);
	v->tcp.data = v;
	uv_accept(s, (uv_stream_t *)&v->tcp);
	uv_read_start((uv_stream_t *)&v->tcp, on_alloc, on_web_read);
}

static int web_start(void **state)
{
	struct web *w = calloc(1, sizeof *w);
	struct sockaddr_in sa;
	int n = sizeof sa;

	uv_loop_init(&w->loop);
	uv_ip4_addr("127.0.0.1", 0, &sa);
	uv_tcp_init(&w->loop, &w->listener);
	w->listener.data = w;
	uv_tcp_bind(&w->listener, (struct sockaddr *)&sa, 0);
	assert_int_equal(uv_listen((uv_stream_t *)&w->listener, 10, on_visitor), 0);
	uv_tcp_getsockname(&w->listener, (struct sockaddr *)&sa, &n);
	w->port = ntohs(sa.sin_port);
	w->a = fake_start(&w->loop, "a");
	fake_topic(w->a, "t", 4);
	*state = w;
	return 0;
}

static int web_stop(void **state)
{
	struct web *w = *state;

	uv_close((uv_handle_t *)&w->listener, NULL);
	fake_free(w->a);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w);
	return 0;
}

static void on_web_sent(void *arg, const struct mqclient_sent *r)
{
	struct web *w = arg;

	w->sent++;
	w->ok += r->rc == 0;
	w->e = r->err;
}

static bool web_sent(void *arg)
{
	return ((struct web *)arg)->sent > 0;
}

static void web_send(struct web *w)
{
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("x") };
	struct mqclient_opt opt = { .loop = &w->loop };
	struct mqclient *c;
	char addr[300];

	snprintf(addr, sizeof addr, "http://127.0.0.1:%d/rocketmq/nsaddr", w->port);
	opt.addr = addr;
	w->sent = w->ok = 0;
	assert_int_equal(mqclient_open(&c, &opt, &w->e), 0);
	assert_int_equal(mqclient_send(c, &m, 1, NULL, on_web_sent, w, &w->e), 0);
	assert_true(fake_until(&w->loop, web_sent, w, 10000));
	if (w->ok)
		assert_string_equal(mqclient_nameservers(c)[0], w->a->addr);
	mqclient_free(c, 100);
}

static void an_address_server_tells_the_name_servers(void **state)
{
	struct web *w = *state;

	snprintf(w->answer, sizeof w->answer, "HTTP/1.0 200 OK\r\n\r\n %s;\r\nignored", w->a->addr);
	web_send(w);
	assert_int_equal(w->ok, 1);
	assert_true(w->requests >= 1);
}

static void an_address_server_that_knows_nothing_fails_the_send(void **state)
{
	struct web *w = *state;

	snprintf(w->answer, sizeof w->answer, "HTTP/1.0 404 Not Found\r\n\r\n");
	web_send(w);
	assert_int_equal(w->ok, 0);
	assert_non_null(strstr(w->e.text, "404"));
	snprintf(w->answer, sizeof w->answer, "HTTP/1.0 200 OK\r\n\r\n<html>");
	web_send(w);
	assert_int_equal(w->ok, 0);
	assert_non_null(strstr(w->e.text, "<html>"));
}

static void freeing_while_an_address_server_is_silent_does_not_wait_for_it(void **state)
{
	struct web *w = *state;
	struct mqclient_opt opt = { .loop = &w->loop };
	struct mqclient *c;
	char addr[300];
	int64_t from;

	snprintf(addr, sizeof addr, "http://127.0.0.1:%d/", w->port);
	opt.addr = addr;
	assert_int_equal(mqclient_open(&c, &opt, &w->e), 0);
	fake_run(&w->loop, 100);
	assert_int_equal(w->requests, 1);
	from = clock_mono_us();
	mqclient_free(c, 100);
	assert_true(clock_mono_us() - from < 2500000);
}

/* ---- A broker of our own --------------------------------------------------------------------------------------------- */

/* What this program does as `mq-broker --embedded DIR`. */
static int play_broker(const char *dir)
{
	char path[4096];
	uv_loop_t loop;
	struct fake *f;
	FILE *pids;

	snprintf(path, sizeof path, "%s/refuse", dir);
	if (access(path, F_OK) == 0) {
		fprintf(stderr, "INFO broker start\nERROR store the disk is on fire\n");
		return 1;
	}
	uv_loop_init(&loop);
	snprintf(path, sizeof path, "%s/mq.sock", dir);
	f = fake_start_unix(&loop, "own", path);
	f->auto_create = true;
	snprintf(path, sizeof path, "%s/pids", dir);
	pids = fopen(path, "a");
	if (!pids)
		return 1;
	fprintf(pids, "%d\n", (int)getpid());
	fclose(pids);
	fake_run(&loop, 20000);
	return 0;
}

static int own_start(void **state)
{
	char path[4200];

	tempdir_make(state);
	mkdir(tempdir_path(*state, "bin"), 0755);
	assert_int_equal(symlink(self, tempdir_path(*state, "bin/mq-broker")), 0);
	snprintf(path, sizeof path, "%s", tempdir_path(*state, "bin"));
	set("PATH", path);
	return 0;
}

static int pids(void *state, int *pid, int cap)
{
	char *text = tempdir_read(tempdir_path(state, "d/q/pids"));
	int n = 0;

	for (char *p = text; p && *p && n < cap; p = strchr(p, '\n') + 1)
		pid[n++] = atoi(p);
	free(text);
	return n;
}

static int own_stop(void **state)
{
	int pid[16], n = pids(*state, pid, 16);

	for (int i = 0; i < n; i++)
		kill(pid[i], SIGKILL);
	return tempdir_remove(state);
}

struct own {
	uv_loop_t loop;
	int sent, ok;
	struct mq_error e;
};

static void on_own_sent(void *arg, const struct mqclient_sent *r)
{
	struct own *w = arg;

	w->sent++;
	w->ok += r->rc == 0;
	if (r->rc < 0)
		w->e = r->err;
}

static int own_wanted;

static bool own_sent(void *arg)
{
	return ((struct own *)arg)->sent >= own_wanted;
}

static struct mqclient *own_open(void **state, struct own *w)
{
	struct mqclient_opt opt = { .loop = &w->loop };
	struct mqclient *c;
	char addr[4200];

	snprintf(addr, sizeof addr, "file:%s", tempdir_path(*state, "d/q"));
	opt.addr = addr;
	if (mqclient_open(&c, &opt, &w->e) < 0)
		fail_msg("%s", w->e.text);
	return c;
}

static void own_send(struct mqclient *c, struct own *w)
{
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("x") };

	assert_int_equal(mqclient_send(c, &m, 1, NULL, on_own_sent, w, &w->e), 0);
}

static void own_wait(struct own *w, int n)
{
	own_wanted = n;
	if (!fake_until(&w->loop, own_sent, w, 20000))
		fail_msg("%d of %d sends were told their end", w->sent, n);
}

static void own_end(struct own *w)
{
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
}

static void a_broker_is_started_once_for_all_who_come_together(void **state)
{
	struct own w = { 0 };
	struct mqclient *c[4];
	int pid[16];

	uv_loop_init(&w.loop);
	for (int i = 0; i < 4; i++) {
		c[i] = own_open(state, &w);
		own_send(c[i], &w);
	}
	own_wait(&w, 4);
	if (w.ok != 4)
		fail_msg("%s", w.e.text);
	assert_int_equal(pids(*state, pid, 16), 1);
	assert_string_equal(mqclient_nameservers(c[0])[0] + strlen(mqclient_nameservers(c[0])[0]) - 11, "d/q/mq.sock");
	/* It is nobody's child and outlives us: a later client finds it. */
	for (int i = 0; i < 4; i++)
		mqclient_free(c[i], 100);
	c[0] = own_open(state, &w);
	own_send(c[0], &w);
	own_wait(&w, 5);
	assert_int_equal(w.ok, 5);
	assert_int_equal(pids(*state, pid, 16), 1);
	assert_int_equal(getpgid(pid[0]) == getpgid(0), 0);
	mqclient_free(c[0], 100);
	own_end(&w);
}

static void a_broker_that_was_killed_is_started_again(void **state)
{
	struct own w = { 0 };
	struct mqclient *c;
	int pid[16];

	uv_loop_init(&w.loop);
	c = own_open(state, &w);
	own_send(c, &w);
	own_wait(&w, 1);
	assert_int_equal(pids(*state, pid, 16), 1);
	kill(pid[0], SIGKILL);
	for (int i = 0; i < 10; i++)
		own_send(c, &w);
	own_wait(&w, 11);
	if (w.ok != 11)
		fail_msg("%s", w.e.text);
	assert_int_equal(pids(*state, pid, 16), 2);
	mqclient_free(c, 100);
	own_end(&w);
}

static void a_broker_that_does_not_start_tells_why(void **state)
{
	struct own w = { 0 };
	struct mqclient *c;
	int64_t from = clock_mono_us();

	uv_loop_init(&w.loop);
	mkdir(tempdir_path(*state, "d"), 0755);
	mkdir(tempdir_path(*state, "d/q"), 0755);
	tempdir_write(tempdir_path(*state, "d/q/refuse"), "");
	c = own_open(state, &w);
	own_send(c, &w);
	own_wait(&w, 1);
	assert_int_equal(w.ok, 0);
	assert_non_null(strstr(w.e.text, "the disk is on fire"));
	assert_true(clock_mono_us() - from < 4000000); /* at once, not when the time to start is over */
	mqclient_free(c, 100);
	own_end(&w);
}

static void a_broker_that_is_not_installed_is_told(void **state)
{
	struct own w = { 0 };
	struct mqclient *c;

	uv_loop_init(&w.loop);
	set("PATH", "/nonexistent");
	c = own_open(state, &w);
	own_send(c, &w);
	own_wait(&w, 1);
	assert_int_equal(w.ok, 0);
	assert_int_equal(w.e.code, MQ_ENOTFOUND);
	assert_non_null(strstr(w.e.text, "mq-broker"));
	mqclient_free(c, 100);
	own_end(&w);
}

static void freeing_while_a_broker_starts_does_not_wait_for_it(void **state)
{
	struct own w = { 0 };
	struct mqclient *c;
	int64_t from;
	int pid[16];

	uv_loop_init(&w.loop);
	c = own_open(state, &w);
	own_send(c, &w);
	fake_run(&w.loop, 2);
	from = clock_mono_us();
	mqclient_free(c, 0);
	assert_int_equal(w.sent, 1);
	assert_true(clock_mono_us() - from < 1000000);
	/* It comes up all the same, and own_stop() ends it. */
	for (int i = 0; i < 100 && !pids(*state, pid, 16); i++)
		fake_run(&w.loop, 20);
	own_end(&w);
}

#define D(f) cmocka_unit_test_setup_teardown(f, tempdir_make, tempdir_remove)
#define W(f) cmocka_unit_test_setup_teardown(f, web_start, web_stop)
#define O(f) cmocka_unit_test_setup_teardown(f, own_start, own_stop)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		D(the_option_wins_then_the_environment_then_files_then_the_users_own),
		cmocka_unit_test(kinds_are_told_from_the_front),
		cmocka_unit_test(bad_addresses_are_refused_with_their_piece),
		W(an_address_server_tells_the_name_servers),
		W(an_address_server_that_knows_nothing_fails_the_send),
		W(freeing_while_an_address_server_is_silent_does_not_wait_for_it),
		O(a_broker_is_started_once_for_all_who_come_together),
		O(a_broker_that_was_killed_is_started_again),
		O(a_broker_that_does_not_start_tells_why),
		O(a_broker_that_is_not_installed_is_told),
		O(freeing_while_a_broker_starts_does_not_wait_for_it),
	};
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (argc == 3 && strcmp(argv[1], "--embedded") == 0)
		return play_broker(argv[2]);
	if (n < 0)
		return 99;
	self[n] = 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
