/* test_call.c: our own requests: each gets exactly one answer, time-out or end; and connecting, which may fail in many ways. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/conn_private.h"
#include "netlab.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

struct client {
	struct lab *l;
	struct conn *c;
	int opened, closed, why, late, answered, timeouts, ends;
	int64_t sum;
};

static void on_opened(struct conn *c)
{
	((struct client *)conn_public(c)->owner)->opened++;
}

static void on_closed(struct conn *c, int why)
{
	struct client *k = conn_public(c)->owner;

	k->closed++;
	k->why = why;
	k->c = NULL;
}

static void on_late_answer(struct conn *c, struct frame *f)
{
	((struct client *)conn_public(c)->owner)->late++;
}

static const struct conn_ops client_ops = { .opened = on_opened, .closed = on_closed, .answer = on_late_answer };

static void dial_to(struct client *k, const char *addr, int timeout_ms)
{
	struct mq_error e;

	k->c = conn_dial(&k->l->loop, addr, timeout_ms, &client_ops, k, &e);
	if (!k->c)
		fail_msg("%s", e.text);
	assert_int_equal(k->opened + k->closed, 0);
}

static void dial(struct client *k, struct lab *l)
{
	char addr[40];

	k->l = l;
	snprintf(addr, sizeof(addr), "127.0.0.1:%d", l->port);
	dial_to(k, addr, 0);
}

static void hang_up(struct client *k)
{
	if (k->c)
		conn_close(k->c);
	lab_until(k->l, &k->closed, 1);
}

struct ask {
	struct client *k;
	int n, rc;
};

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct ask *a = arg;

	assert_int_equal(a->n++, 0); /* never twice */
	a->rc = rc;
	if (rc == 0) {
		assert_non_null(f);
		a->k->answered++;
		a->k->sum += f->body.n;
	} else {
		assert_null(f);
		*(rc == MQ_ETIMEOUT ? &a->k->timeouts : &a->k->ends) += 1;
	}
}

static void ask(struct client *k, struct ask *a, const char *key, int timeout_ms, struct mq_str body)
{
	struct frame_out o;

	*a = (struct ask){ .k = k };
	conn_call(k->c, &o, 10, FRAME_JSON, timeout_ms, on_answer, a);
	if (key)
		frame_put_i64(&o, key, strlen(key), 1);
	frame_body(&o);
	buf_str(o.buf, body);
	frame_end(&o);
}

static void asked_before_the_connection_is_up_it_is_answered_all_the_same(void **state)
{
	struct client k = { 0 };
	struct ask a;

	dial(&k, *state);
	ask(&k, &a, NULL, 1000, MQ_STR("hello"));
	assert_int_equal(conn_calls_open(k.c), 1);
	lab_until(k.l, &k.answered, 1);
	assert_int_equal(k.sum, 5);
	assert_int_equal(conn_calls_open(k.c), 0);
	assert_int_equal(k.opened, 1);
	hang_up(&k);
	assert_int_equal(k.why, 0);
}

static void a_hundred_thousand_calls_each_have_their_answer(void **state)
{
	struct client k = { 0 };
	int n = 100000;
	struct ask *a = mem_alloc((size_t)n * sizeof(*a));

	dial(&k, *state);
	for (int i = 0; i < n; i++)
		ask(&k, &a[i], NULL, 60000, (struct mq_str){ "0123456789", (size_t)(i % 10) });
	lab_until(k.l, &k.answered, n);
	assert_int_equal(k.sum, 450000);
	hang_up(&k);
	free(a);
}

/* Some are never answered, and time out in a different order than they were made. */
static void time_outs_come_in_time_and_leave_the_others_alone(void **state)
{
	struct client k = { 0 };
	enum { N = 3000 };
	static struct ask a[N];
	int64_t began = clock_mono_us();
	int mute = 0;

	dial(&k, *state);
	srand(9);
	for (int i = 0; i < N; i++) {
		bool silent = i % 3 == 0;

		mute += silent;
		ask(&k, &a[i], silent ? "mute" : NULL, silent ? 100 + rand() % 200 : 30000, MQ_STR("x"));
	}
	lab_until(k.l, &k.timeouts, mute);
	assert_true(clock_mono_us() - began >= 250000 && clock_mono_us() - began < 10000000);
	lab_until(k.l, &k.answered, N - mute);
	for (int i = 0; i < N; i++)
		assert_int_equal(a[i].rc, i % 3 == 0 ? MQ_ETIMEOUT : 0);
	assert_int_equal(conn_calls_open(k.c), 0);
	hang_up(&k);
}

static struct conn *answer_to;
static struct frame_id answer_id;
static int keep_request(struct conn *c, struct frame *f)
{
	answer_to = c;
	answer_id = frame_id_of(f);
	return 0;
}

static void an_answer_that_comes_too_late_is_no_calls_answer(void **state)
{
	static const struct conn_ops keep = { .request = keep_request };
	struct lab *l = *state;
	struct server_opt o = { .bind = "127.0.0.1" };
	struct client k = { 0 };
	struct frame_out out;
	struct ask a;

	l->server = server_listen(&l->loop, &o, &keep, l, NULL);
	l->port = server_port(l->server);
	dial(&k, l);
	ask(&k, &a, NULL, 30, MQ_STR("x"));
	lab_until(l, &k.timeouts, 1);
	frame_answer(&out, conn_out(answer_to), answer_id, 0, (struct mq_str){ NULL, 0 });
	frame_end(&out);
	lab_until(l, &k.late, 1);
	assert_int_equal(a.n, 1);
	hang_up(&k);
}

static void the_end_of_a_connection_is_the_end_of_its_calls(void **state)
{
	struct client k = { 0 };
	enum { N = 1000 };
	static struct ask a[N + 2];

	dial(&k, *state);
	lab_until(k.l, &k.opened, 1);
	for (int i = 0; i < N; i++)
		ask(&k, &a[i], "mute", i % 2 ? 5000 : 0, MQ_STR("x"));
	conn_ref(k.c);
	struct conn *c = k.c;
	lab_until(k.l, &k.l->requests, N);
	conn_close(c);
	assert_int_equal(k.ends, 0); /* not from within the close */
	ask(&k, &a[N], NULL, 1000, MQ_STR("to nobody"));
	lab_until(k.l, &k.closed, 1);
	lab_until(k.l, &k.ends, N + 1);
	k.c = c;
	ask(&k, &a[N + 1], NULL, 1000, MQ_STR("to nobody"));
	assert_int_equal(a[N + 1].n, 0);
	lab_until(k.l, &k.ends, N + 2);
	conn_unref(c);
}

static void ask_again(void *arg, int rc, struct frame *f)
{
	struct ask *a = arg;
	struct frame_out o;

	assert_int_equal(rc, MQ_ECLOSED);
	a->n++;
	if (a->n < 5 && a->k->c) {
		conn_call(a->k->c, &o, 10, FRAME_JSON, 1000, ask_again, a);
		frame_end(&o);
	}
}

/* A caller that tries again on the same connection from within its failure does not go round in circles. */
static void a_call_made_from_a_failed_call_fails_too(void **state)
{
	struct client k = { 0 };
	struct ask a = { .k = &k };
	struct frame_out o;

	dial(&k, *state);
	conn_ref(k.c);
	struct conn *c = k.c;
	conn_call(k.c, &o, 10, FRAME_JSON, 1000, ask_again, &a);
	frame_end(&o);
	conn_close(c);
	lab_until(k.l, &k.closed, 1);
	k.c = c;
	lab_for(k.l, 10);
	assert_true(a.n >= 1 && a.n <= 5);
	conn_unref(c);
}

static void a_oneway_request_waits_for_nothing(void **state)
{
	struct client k = { 0 };
	struct frame_out o;

	dial(&k, *state);
	conn_call(k.c, &o, 10, FRAME_JSON, 1000, NULL, NULL);
	frame_end(&o);
	assert_int_equal(conn_calls_open(k.c), 0);
	lab_until(k.l, &k.l->requests, 1);
	hang_up(&k);
}

/* ---- Dialling -------------------------------------------------------------------------------------------------------- */

static void addresses_that_are_none_are_refused_with_a_reason(void **state)
{
	const struct { const char *addr, *why; } t[] = {
		{ "broker", "address 'broker' is not host:port" },
		{ ":9876", "address ':9876' is not host:port" },
		{ "a:0", "address 'a:0': the port is not a number from 1 to 65535" },
		{ "a:65536", "address 'a:65536': the port is not a number from 1 to 65535" },
		{ "a:b", "address 'a:b': the port is not a number from 1 to 65535" },
		{ "a:", "address 'a:': the port is not a number from 1 to 65535" },
		{ "::1:9876", "address '::1:9876': an IPv6 address with a port is written [IPv6]:port" },
		{ "[::1]", "address '[::1]' is not [IPv6]:port" },
		{ "a b:1", "address 'a b:1' is not host:port" },
		{ "unix:", "address 'unix:' names no socket: unix:PATH" },
	};
	struct lab *l = *state;
	struct mq_error e;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_null(conn_dial(&l->loop, t[i].addr, 0, &client_ops, NULL, &e));
		assert_string_equal(e.text, t[i].why);
	}
}

static void split(const char *addr, const char *host, int port)
{
	char got[ADDR_HOST_MAX];
	int p;

	assert_int_equal(addr_split(addr, got, &p, NULL), 0);
	assert_string_equal(got, host);
	assert_int_equal(p, port);
}

static void addresses_are_split(void **state)
{
	split("127.0.0.1:9876", "127.0.0.1", 9876);
	split("[::1]:65535", "::1", 65535);
	split("broker-0.brokers.queue-system.svc.a-cluster-with-a-rather-long-name.example.internal:1",
	      "broker-0.brokers.queue-system.svc.a-cluster-with-a-rather-long-name.example.internal", 1);
}

static void nobody_listens(void **state)
{
	struct client k = { .l = *state };
	struct ask a;
	int port = k.l->port;
	char addr[40];

	server_stop(k.l->server, 0, NULL, NULL);
	k.l->server = NULL;
	lab_once(k.l);
	snprintf(addr, sizeof(addr), "127.0.0.1:%d", port);
	dial_to(&k, addr, 0);
	ask(&k, &a, NULL, 1000, MQ_STR("x"));
	lab_until(k.l, &k.closed, 1);
	assert_int_equal(k.why, -ECONNREFUSED);
	assert_int_equal(k.opened, 0);
	assert_int_equal(a.rc, MQ_ECLOSED);
}

/* "localhost" has two addresses here, and only one has a server. */
static void a_name_is_tried_at_all_its_addresses(void **state)
{
	struct client k = { .l = *state };
	char addr[40];

	snprintf(addr, sizeof(addr), "localhost:%d", k.l->port);
	dial_to(&k, addr, 3000);
	lab_until(k.l, &k.opened, 1);
	assert_string_equal(conn_name(k.c), addr);
	assert_int_equal(conn_public(k.c)->peer.port, k.l->port);
	hang_up(&k);
}

static void a_name_that_does_not_exist(void **state)
{
	struct client k = { .l = *state };

	dial_to(&k, "no-such-name.invalid:9876", 2000);
	lab_until(k.l, &k.closed, 1);
	assert_true(k.why < 0);
	assert_int_equal(k.opened, 0);
}

static void closed_while_the_name_is_looked_up(void **state)
{
	struct client k = { .l = *state };

	dial_to(&k, "no-such-name.invalid:9876", 2000);
	conn_close(k.c);
	lab_until(k.l, &k.closed, 1);
	assert_int_equal(k.why, 0);
}

/* A queue of connections that is full makes the kernel drop the handshake: nothing comes back. */
static void a_server_that_does_not_answer_the_handshake(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0), full[4];
	struct client k = { .l = *state };
	int64_t began;
	char addr[40];

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 0), 0);
	getsockname(fd, (struct sockaddr *)&a, &n);
	for (int i = 0; i < 4; i++) {
		full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(full[i], (struct sockaddr *)&a, sizeof(a));
	}
	snprintf(addr, sizeof(addr), "127.0.0.1:%d", ntohs(a.sin_port));
	began = clock_mono_us();
	dial_to(&k, addr, 200);
	lab_until(k.l, &k.closed, 1);
	assert_int_equal(k.why, MQ_ETIMEOUT);
	assert_true(clock_mono_us() - began >= 195000 && clock_mono_us() - began < 10000000);
	close(fd);
	for (int i = 0; i < 4; i++)
		close(full[i]);
}

static void ipv6_and_ipv4_meet_at_one_server(void **state)
{
	struct lab *l = *state;
	struct client six = { .l = l }, four = { 0 };
	struct mq_error e;
	struct server_opt o = { .bind = "::" };
	char addr[40], text[MQ_HOST_TEXT];

	l->server = server_listen(&l->loop, &o, &lab_ops, l, &e);
	if (!l->server) {
		print_message("no IPv6 here: %s\n", e.text);
		lab_listen(l, (struct server_opt){ 0 });
		return;
	}
	l->port = server_port(l->server);
	snprintf(addr, sizeof(addr), "[::1]:%d", l->port);
	dial_to(&six, addr, 0);
	lab_until(l, &l->opened, 1);
	assert_int_equal(conn_public(l->conn)->peer.len, 16);
	assert_memory_equal(mq_host_text(&conn_public(l->conn)->peer, text), "[::1]:", 6);
	dial(&four, l);
	lab_until(l, &l->opened, 2);
	assert_int_equal(conn_public(l->conn)->peer.len, 4);
	assert_memory_equal(conn_name(l->conn), "127.0.0.1:", 10);
	lab_until(l, &six.opened, 1);
	hang_up(&six);
	hang_up(&four);
}

static void this_machine_has_an_address(void **state)
{
	char ip[MQ_HOST_TEXT];

	addr_local(ip, sizeof(ip));
	assert_true(strlen(ip) >= 3);
	assert_true(strspn(ip, "0123456789abcdef.:") == strlen(ip));
}

#define T(name) cmocka_unit_test_setup_teardown(name, lab_start, lab_stop)
#define T0(name) cmocka_unit_test_setup_teardown(name, lab_start_empty, lab_stop)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(asked_before_the_connection_is_up_it_is_answered_all_the_same),
		T(a_hundred_thousand_calls_each_have_their_answer),
		T(time_outs_come_in_time_and_leave_the_others_alone),
		T0(an_answer_that_comes_too_late_is_no_calls_answer),
		T(the_end_of_a_connection_is_the_end_of_its_calls),
		T(a_call_made_from_a_failed_call_fails_too),
		T(a_oneway_request_waits_for_nothing),
		T0(addresses_that_are_none_are_refused_with_a_reason),
		cmocka_unit_test(addresses_are_split),
		T(nobody_listens),
		T(a_name_is_tried_at_all_its_addresses),
		T0(a_name_that_does_not_exist),
		T0(closed_while_the_name_is_looked_up),
		T0(a_server_that_does_not_answer_the_handshake),
		T0(ipv6_and_ipv4_meet_at_one_server),
		cmocka_unit_test(this_machine_has_an_address),
	};
	return cmocka_run_group_tests_name("call", tests, NULL, NULL);
}
