/* test_client_again.c: sending when brokers and name servers fail or refuse: what is tried again, where, and until when. */
#include "sender.h"
#include "base/str.h"
#include "codec/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void refusals_that_may_pass_go_to_the_other_broker(void **state)
{
	static const int codes[] = { RESP_TOPIC_NOT_EXIST, RESP_SERVICE_NOT_AVAILABLE, RESP_SYSTEM_ERROR,
	                            RESP_NO_PERMISSION };
	struct sender *w = *state;

	sender_second_broker(w);
	for (int i = 0; i < 4; i++) {
		/* Whichever is asked first refuses. */
		fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, codes[i], "not now");
		fake_script(w->b, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, codes[i], "not now");
		sender_text(w, "x");
		sender_wait(w, i + 1);
		assert_int_equal(w->last.rc, 0);
		memset(w->a->rule, 0, sizeof w->a->rule);
		memset(w->b->rule, 0, sizeof w->b->rule);
	}
}

static void a_refusal_for_good_is_told_with_code_and_remark(void **state)
{
	struct sender *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, RESP_MESSAGE_ILLEGAL, "the message is illegal");
	sender_text(w, "x");
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, MQ_EREFUSED);
	assert_int_equal(w->last.err.response, RESP_MESSAGE_ILLEGAL);
	assert_non_null(strstr(w->last.err.text, "the message is illegal"));
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 1);
}

static void tries_are_counted(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .retries = 1 };

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 100, FAKE_ANSWER, RESP_SYSTEM_ERROR, "broken");
	assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, MQ_EREFUSED);
	assert_int_equal(w->last.err.response, RESP_SYSTEM_ERROR);
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 2);
}

static void a_busy_broker_is_asked_again_after_pauses(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .retries = 0 };
	int64_t from = sender_now_ms();

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 3, FAKE_ANSWER, RESP_SYSTEM_BUSY, "[REJECTREQUEST]system busy");
	assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, 0);
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 4);
	assert_in_range(sender_now_ms() - from, 300, 10000); /* 50 + 100 + 200 */
}

static void silence_ends_at_the_deadline_and_is_not_sent_again(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = 200 };
	int64_t from = sender_now_ms();

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_SILENT, 0, NULL);
	assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, MQ_ETIMEOUT);
	assert_in_range(w->sent_ms - from, 190, 2900);
	fake_run(&w->loop, 50);
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 1);
	assert_int_equal(w->sent, 1);
}

static void an_answer_that_comes_twice_is_told_once(void **state)
{
	struct sender *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 50, FAKE_TWICE, 0, NULL);
	for (int i = 0; i < 50; i++)
		sender_text(w, "x");
	sender_wait(w, 50);
	fake_run(&w->loop, 50);
	assert_int_equal(w->sent, 50);
	assert_int_equal(w->ok, 50);
}

static void a_broken_connection_costs_a_try_not_the_message(void **state)
{
	struct sender *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_HANG_UP, 0, NULL);
	for (int i = 0; i < 100; i++)
		sender_text(w, "x");
	sender_wait(w, 100);
	assert_int_equal(w->ok, 100);
}

static void a_broker_that_is_down_is_passed_over(void **state)
{
	struct sender *w = *state;
	int64_t from;

	sender_second_broker(w);
	sender_text(w, "first");
	sender_wait(w, 1);
	fake_stop(w->b);
	from = sender_now_ms();
	for (int i = 0; i < 100; i++)
		sender_text(w, "x");
	sender_wait(w, 101);
	assert_int_equal(w->ok, 101);
	assert_true(sender_now_ms() - from < 2900);
	fake_again(w->b);
}

static void a_broker_that_comes_back_gets_what_waited(void **state)
{
	struct sender *w = *state;

	sender_text(w, "first");
	sender_wait(w, 1);
	fake_stop(w->a);
	for (int i = 0; i < 200; i++)
		sender_text(w, "x");
	fake_run(&w->loop, 300);
	assert_int_equal(w->sent, 1);
	fake_again(w->a);
	sender_wait(w, 201);
	assert_int_equal(w->ok, 201);
}

static void a_broker_that_stays_away_fails_the_send_with_the_reason(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = 400 };
	int64_t from;

	sender_text(w, "first");
	sender_wait(w, 1);
	fake_stop(w->a);
	fake_run(&w->loop, 20);
	from = sender_now_ms();
	assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 2);
	assert_int_equal(w->last.rc, UV_ECONNREFUSED);
	assert_non_null(strstr(w->last.err.text, w->a->addr));
	assert_in_range(w->sent_ms - from, 300, 2900);
	fake_again(w->a);
}

static bool any_sent(void *arg)
{
	return ((struct sender *)arg)->sent > 0;
}

/* While a master is elected the route has the topic and a slave; the sends come out in their order when there is one. */
static void a_broker_without_a_master_is_waited_for(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .retries = 0, .timeout_ms = 20000 }, given = opt;
	struct mq_message m;
	char body[20];

	w->a->broker_id = 1;
	given.queue = (struct mqclient_queue){ "a", 3 };
	for (int i = 0; i < 20; i++) {
		snprintf(body, sizeof body, "%d", i);
		m = (struct mq_message){ .topic = MQ_STR("t"), .body = str_of(body) };
		assert_int_equal(mqclient_send(w->c, &m, 1, i % 2 ? &given : &opt, sender_on_sent, w, &w->e), 0);
	}
	assert_false(fake_until(&w->loop, any_sent, w, 300));
	/* A name server that has forgotten the topic between two masters is no reason to give up either. */
	fake_script(w->a, REQ_GET_ROUTEINFO_BY_TOPIC, 2, FAKE_ANSWER, RESP_TOPIC_NOT_EXIST, "No topic route info");
	assert_false(fake_until(&w->loop, any_sent, w, 1500));
	w->a->broker_id = 0;
	sender_wait(w, 20);
	assert_int_equal(w->ok, 20);
	assert_string_equal(fake_field(w->a, REQ_SEND_MESSAGE_V2, "e"), "3");
	assert_true(str_is(fake_body(w->a, REQ_SEND_MESSAGE_V2), "19"));
	/* It asks once a second, not once a send. */
	assert_in_range(w->a->count[REQ_GET_ROUTEINFO_BY_TOPIC], 3, 12);
}

static void without_a_master_until_the_deadline_the_send_fails_with_the_reason(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = 400 };
	int64_t from = sender_now_ms();

	w->a->broker_id = 1;
	assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, MQ_ENOROUTE);
	assert_non_null(strstr(w->last.err.text, "broker a has no master"));
	assert_true(w->sent_ms - from >= 390);
}

static void a_topic_that_allows_no_writing_is_told_at_once(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = 60000 };

	w->a->topic[0].perm = 4;
	for (int master = 0; master < 2; master++) {
		w->a->broker_id = master;
		assert_int_equal(sender_send(w, "t", "x", &opt), 0);
		sender_wait(w, 1 + master);
		assert_int_equal(w->last.rc, MQ_ENOROUTE);
		assert_non_null(strstr(w->last.err.text, "no queue may be written"));
	}
}

static void no_name_server_fails_fast(void **state)
{
	struct sender *w = *state;
	char dead[200];
	int64_t from = sender_now_ms();

	snprintf(dead, sizeof dead, "%s", w->a->addr);
	fake_stop(w->a);
	sender_text(w, "x");
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, UV_ECONNREFUSED);
	assert_non_null(strstr(w->last.err.text, dead));
	assert_true(sender_now_ms() - from < 2900);
	fake_again(w->a);
}

static void a_dead_name_server_among_two_is_passed_over(void **state)
{
	struct sender *w = *state;
	struct fake *dead = fake_start(&w->loop, "x");
	char addr[500];

	snprintf(addr, sizeof addr, "%s;%s", dead->addr, w->a->addr);
	fake_stop(dead);
	/* The first is chosen at random, so that both orders come up. */
	for (int i = 0; i < 8; i++) {
		mqclient_free(w->c, 100);
		sender_open(w, addr);
		sender_text(w, "x");
		sender_wait(w, i + 1);
		assert_int_equal(w->last.rc, 0);
	}
	fake_free(dead);
}

static int accepts;

static int never_answered(struct conn *c, struct frame *f)
{
	return 0;
}

static void count_and_close(struct conn *c)
{
	accepts++;
	conn_close(c);
}

static void on_stopped(void *arg)
{
	*(bool *)arg = true;
}

/* A port that takes connections and closes them (B129): tries become rare, and leave nothing behind. */
static void a_port_that_hangs_up_at_once_is_tried_less_and_less(void **state)
{
	static const struct conn_ops ops = { .request = never_answered, .opened = count_and_close };
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .retries = 1000000, .timeout_ms = 2500 };
	struct server_opt so = { .bind = "127.0.0.1" };
	struct server *s;
	bool stopped = false;

	sender_text(w, "first");
	sender_wait(w, 1);
	fake_stop(w->a);
	so.port = w->a->port;
	s = server_listen(&w->loop, &so, &ops, NULL, &w->e);
	assert_non_null(s);
	accepts = 0;
	for (int i = 0; i < 10; i++)
		assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 11);
	assert_int_equal(w->failed, 10);
	assert_in_range(accepts, 3, 14);
	server_stop(s, 0, on_stopped, &stopped);
	while (!stopped)
		uv_run(&w->loop, UV_RUN_ONCE);
	fake_again(w->a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, sender_start, sender_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(refusals_that_may_pass_go_to_the_other_broker),
		T(a_refusal_for_good_is_told_with_code_and_remark),
		T(tries_are_counted),
		T(a_busy_broker_is_asked_again_after_pauses),
		T(silence_ends_at_the_deadline_and_is_not_sent_again),
		T(an_answer_that_comes_twice_is_told_once),
		T(a_broken_connection_costs_a_try_not_the_message),
		T(a_broker_that_is_down_is_passed_over),
		T(a_broker_that_comes_back_gets_what_waited),
		T(a_broker_that_stays_away_fails_the_send_with_the_reason),
		T(a_broker_without_a_master_is_waited_for),
		T(without_a_master_until_the_deadline_the_send_fails_with_the_reason),
		T(a_topic_that_allows_no_writing_is_told_at_once),
		T(no_name_server_fails_fast),
		T(a_dead_name_server_among_two_is_passed_over),
		T(a_port_that_hangs_up_at_once_is_tried_less_and_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
