/* test_client_send.c: sending: one callback per send, whatever brokers and name servers do. */
#include "fake.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/batch.h"
#include "codec/request.h"
#include <mqclient.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct world {
	uv_loop_t loop;
	struct fake *a, *b;
	struct mqclient *c;
	struct mq_error e;
	int sent, ok, failed;
	int64_t sent_ms;
	struct mqclient_sent last;
	char last_broker[64], last_id[64];
};

static int64_t now_ms(void)
{
	return clock_mono_us() / 1000;
}

static void on_sent(void *arg, const struct mqclient_sent *r)
{
	struct world *w = arg;

	w->sent++;
	if (r->rc == 0)
		w->ok++;
	else
		w->failed++;
	w->last = *r;
	w->sent_ms = now_ms();
	snprintf(w->last_broker, sizeof w->last_broker, "%s", r->queue.broker ? r->queue.broker : "");
	snprintf(w->last_id, sizeof w->last_id, MQ_STR_FMT, MQ_STR_ARG(r->uniq_key));
}


static int wanted;
static bool enough(void *arg)
{
	return ((struct world *)arg)->sent >= wanted;
}

static void wait_sent(struct world *w, int n)
{
	wanted = n;
	if (!fake_until(&w->loop, enough, w, 8000))
		fail_msg("%d of %d sends were told their end", w->sent, n);
	assert_int_equal(w->sent, n);
}

static void open_client(struct world *w, const char *addr)
{
	struct mqclient_opt opt = { .addr = addr, .loop = &w->loop };

	if (mqclient_open(&w->c, &opt, &w->e) < 0)
		fail_msg("%s", w->e.text);
}

static int start(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	uv_loop_init(&w->loop);
	w->a = fake_start(&w->loop, "a");
	fake_topic(w->a, "t", 4);
	open_client(w, w->a->addr);
	*state = w;
	return 0;
}

/* A second broker in the routes of the first. */
static void second_broker(struct world *w)
{
	w->b = fake_start(&w->loop, "b");
	fake_topic(w->b, "t", 4);
	w->a->more[w->a->nmore++] = w->b;
}

static int stop(void **state)
{
	struct world *w = *state;

	mqclient_free(w->c, 100);
	fake_free(w->a);
	if (w->b)
		fake_free(w->b);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w);
	return 0;
}

static int send_opt(struct world *w, const char *topic, const char *body, const struct mqclient_send_opt *opt)
{
	struct mq_message m = { .topic = str_of(topic), .body = str_of(body) };

	return mqclient_send(w->c, &m, 1, opt, on_sent, w, &w->e);
}

static void send_text(struct world *w, const char *body)
{
	assert_int_equal(send_opt(w, "t", body, NULL), 0);
}

static void a_message_is_stored_and_its_place_is_told(void **state)
{
	struct world *w = *state;

	send_text(w, "hello");
	assert_int_equal(w->sent, 0); /* never before the call has returned */
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, 0);
	assert_string_equal(w->last_broker, "a");
	assert_int_equal(w->last.queue_off, 0);
	assert_int_equal(strlen(w->last_id), 32);
	assert_string_equal(fake_field(w->a, REQ_SEND_MESSAGE_V2, "b"), "t");
	assert_string_equal(fake_field(w->a, REQ_SEND_MESSAGE_V2, "a"), "mq-send");
	assert_true(str_is(fake_body(w->a, REQ_SEND_MESSAGE_V2), "hello"));
	assert_true(str_is(mq_prop_get(str_of(fake_field(w->a, REQ_SEND_MESSAGE_V2, "i")), "UNIQ_KEY"), w->last_id));
	assert_true(str_is(mq_prop_get(str_of(fake_field(w->a, REQ_SEND_MESSAGE_V2, "i")), "WAIT"), "true"));
}

static void the_users_id_and_properties_are_kept(void **state)
{
	struct world *w = *state;
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("x"), .flag = 7,
		                .props = MQ_STR("UNIQ_KEY\1mine\2WAIT\1false\2k\1v") };

	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, on_sent, w, &w->e), 0);
	wait_sent(w, 1);
	assert_string_equal(w->last_id, "mine");
	assert_string_equal(fake_field(w->a, REQ_SEND_MESSAGE_V2, "i"), "UNIQ_KEY\1mine\2WAIT\1false\2k\1v\2");
	assert_string_equal(fake_field(w->a, REQ_SEND_MESSAGE_V2, "h"), "7");
}

static void queues_take_turns(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 400; i++)
		send_text(w, "x");
	wait_sent(w, 400);
	for (int q = 0; q < 4; q++)
		assert_int_equal(w->a->topic[0].queue[q].max, 100);
}

static void a_given_queue_is_kept_and_one_that_is_not_there_is_told(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .queue = { "a", 2 }, .retries = -1 };

	for (int i = 0; i < 10; i++)
		assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 10);
	assert_int_equal(w->a->topic[0].queue[2].max, 10);
	opt.queue.id = 9;
	assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 11);
	assert_int_equal(w->last.rc, MQ_ENOTFOUND);
	assert_non_null(strstr(w->last.err.text, "a:9"));
}

/* The hash of this word is the smallest integer; its queue is 2 of 3 for the peer (B045). */
static void a_key_has_the_queue_that_java_gives_it(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .sharding_key = MQ_STR("polygenelubricants"), .retries = -1 };

	fake_topic(w->a, "t3", 3);
	for (int i = 0; i < 5; i++)
		assert_int_equal(send_opt(w, "t3", "x", &opt), 0);
	wait_sent(w, 5);
	assert_int_equal(w->a->topic[1].queue[2].max, 5);
}

static void a_batch_goes_out_as_one_with_an_id_for_each(void **state)
{
	struct world *w = *state;
	struct mq_message m[3] = {
		{ .topic = MQ_STR("t"), .body = MQ_STR("one"), .props = MQ_STR("KEYS\1k1\2") },
		{ .topic = MQ_STR("t"), .body = MQ_STR("two"), .flag = 5 },
		{ .topic = MQ_STR("t"), .body = MQ_STR("three") },
	};
	struct batch_item item;
	size_t pos = 0;

	assert_int_equal(mqclient_send(w->c, m, 3, NULL, on_sent, w, &w->e), 0);
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, 0);
	assert_int_equal(w->last.n, 3);
	assert_string_equal(fake_field(w->a, REQ_SEND_BATCH_MESSAGE, "m"), "true");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(batch_next(fake_body(w->a, REQ_SEND_BATCH_MESSAGE), &pos, &item), 1);
		assert_true(str_eq(item.body, m[i].body));
		assert_int_equal(item.flag, m[i].flag);
		assert_int_equal(mq_prop_get(item.props, "UNIQ_KEY").n, 32);
		if (i == 0)
			assert_true(str_is(mq_prop_get(item.props, "UNIQ_KEY"), w->last_id));
	}
	assert_int_equal(batch_next(fake_body(w->a, REQ_SEND_BATCH_MESSAGE), &pos, &item), 0);
}

static void a_long_body_is_compressed_and_comes_out_the_same(void **state)
{
	static const int types[] = { MQ_SYS_COMPRESS_ZLIB, MQ_SYS_COMPRESS_LZ4, MQ_SYS_COMPRESS_ZSTD };
	struct world *w = *state;
	void *scratch = NULL;
	size_t cap = 0;
	char body[5000];

	for (size_t i = 0; i < sizeof body - 1; i++)
		body[i] = "abcdefghij"[i * i % 10];
	body[sizeof body - 1] = 0;
	for (int i = 0; i < 3; i++) {
		struct mqclient_send_opt opt = { .compress_over = 4096, .compress_type = types[i], .retries = -1 };
		struct mq_message m = { 0 };
		struct mq_str plain;
		int32_t flags;
		assert_int_equal(send_opt(w, "t", body, &opt), 0);
		wait_sent(w, i + 1);
		assert_int_equal(str_i32(str_of(fake_field(w->a, REQ_SEND_MESSAGE_V2, "f")), &flags), 0);
		assert_int_equal(flags, MQ_SYS_COMPRESSED | types[i]);
		m.body = fake_body(w->a, REQ_SEND_MESSAGE_V2);
		assert_true(m.body.n < 1000);
		m.sys_flag = flags;
		assert_int_equal(mq_message_body(&m, 1 << 20, &scratch, &cap, &plain), 0);
		assert_true(str_is(plain, body));
	}
	free(scratch);
}

static void what_no_broker_would_take_is_refused_at_once(void **state)
{
	struct world *w = *state;
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("x") };
	char *big = calloc(1, MQ_BODY_MAX + 1);

	assert_int_equal(send_opt(w, "t", "", NULL), MQ_EINVAL);
	assert_int_equal(send_opt(w, "a b", "x", NULL), MQ_EINVAL);
	m.props = MQ_STR("novalue\2");
	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, on_sent, w, &w->e), MQ_EINVAL);
	m.props = MQ_STR("a\1b\1c\2");
	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, on_sent, w, &w->e), MQ_EINVAL);
	m.props = (struct mq_str){ 0 };
	memset(big, 'x', MQ_BODY_MAX + 1);
	m.body = (struct mq_str){ big, MQ_BODY_MAX + 1 };
	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, on_sent, w, &w->e), MQ_ETOOBIG);
	assert_non_null(strstr(w->e.text, "4194305"));
	assert_non_null(strstr(w->e.text, "4194304"));
	fake_run(&w->loop, 20);
	assert_int_equal(w->sent, 0);
	free(big);
}

static void an_unknown_topic_is_refused_unless_brokers_create_topics(void **state)
{
	struct world *w = *state;

	assert_int_equal(send_opt(w, "new", "x", NULL), 0);
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, MQ_ENOROUTE);
	w->a->auto_create = true;
	for (int i = 0; i < 8; i++)
		assert_int_equal(send_opt(w, "new", "x", NULL), 0);
	wait_sent(w, 9);
	assert_int_equal(w->ok, 8);
	for (int q = 0; q < 4; q++)
		assert_int_equal(w->a->topic[1].queue[q].max, 2); /* 4 of the template's 8 queues */
}

static void refusals_that_may_pass_go_to_the_other_broker(void **state)
{
	static const int codes[] = { RESP_TOPIC_NOT_EXIST, RESP_SERVICE_NOT_AVAILABLE, RESP_SYSTEM_ERROR,
	                            RESP_NO_PERMISSION };
	struct world *w = *state;

	second_broker(w);
	for (int i = 0; i < 4; i++) {
		/* Whichever is asked first refuses. */
		fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, codes[i], "not now");
		fake_script(w->b, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, codes[i], "not now");
		send_text(w, "x");
		wait_sent(w, i + 1);
		assert_int_equal(w->last.rc, 0);
		memset(w->a->rule, 0, sizeof w->a->rule);
		memset(w->b->rule, 0, sizeof w->b->rule);
	}
}

static void a_refusal_for_good_is_told_with_code_and_remark(void **state)
{
	struct world *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, RESP_MESSAGE_ILLEGAL, "the message is illegal");
	send_text(w, "x");
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, MQ_EREFUSED);
	assert_int_equal(w->last.err.response, RESP_MESSAGE_ILLEGAL);
	assert_non_null(strstr(w->last.err.text, "the message is illegal"));
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 1);
}

static void tries_are_counted(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .retries = 1 };

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 100, FAKE_ANSWER, RESP_SYSTEM_ERROR, "broken");
	assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, MQ_EREFUSED);
	assert_int_equal(w->last.err.response, RESP_SYSTEM_ERROR);
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 2);
}

static void a_busy_broker_is_asked_again_after_pauses(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .retries = 0 };
	int64_t from = now_ms();

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 3, FAKE_ANSWER, RESP_SYSTEM_BUSY, "[REJECTREQUEST]system busy");
	assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, 0);
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 4);
	assert_in_range(now_ms() - from, 300, 2000); /* 50 + 100 + 200 */
}

static void stored_with_less_than_asked_is_a_success(void **state)
{
	struct world *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, RESP_SLAVE_NOT_AVAILABLE, NULL);
	send_text(w, "x");
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, 0);
	assert_int_equal(w->last.status, RESP_SLAVE_NOT_AVAILABLE);
}

static void silence_ends_at_the_deadline_and_is_not_sent_again(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = 200 };
	int64_t from = now_ms();

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_SILENT, 0, NULL);
	assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, MQ_ETIMEOUT);
	assert_in_range(w->sent_ms - from, 190, 1000);
	fake_run(&w->loop, 50);
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 1);
	assert_int_equal(w->sent, 1);
}

static void an_answer_that_comes_twice_is_told_once(void **state)
{
	struct world *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 50, FAKE_TWICE, 0, NULL);
	for (int i = 0; i < 50; i++)
		send_text(w, "x");
	wait_sent(w, 50);
	fake_run(&w->loop, 50);
	assert_int_equal(w->sent, 50);
	assert_int_equal(w->ok, 50);
}

static void a_broken_connection_costs_a_try_not_the_message(void **state)
{
	struct world *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_HANG_UP, 0, NULL);
	for (int i = 0; i < 100; i++)
		send_text(w, "x");
	wait_sent(w, 100);
	assert_int_equal(w->ok, 100);
}

static void a_broker_that_is_down_is_passed_over(void **state)
{
	struct world *w = *state;
	int64_t from;

	second_broker(w);
	send_text(w, "first");
	wait_sent(w, 1);
	fake_stop(w->b);
	from = now_ms();
	for (int i = 0; i < 100; i++)
		send_text(w, "x");
	wait_sent(w, 101);
	assert_int_equal(w->ok, 101);
	assert_true(now_ms() - from < 1000);
	fake_again(w->b);
}

static void a_broker_that_comes_back_gets_what_waited(void **state)
{
	struct world *w = *state;

	send_text(w, "first");
	wait_sent(w, 1);
	fake_stop(w->a);
	for (int i = 0; i < 200; i++)
		send_text(w, "x");
	fake_run(&w->loop, 300);
	assert_int_equal(w->sent, 1);
	fake_again(w->a);
	wait_sent(w, 201);
	assert_int_equal(w->ok, 201);
}

static void a_broker_that_stays_away_fails_the_send_with_the_reason(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = 400 };
	int64_t from;

	send_text(w, "first");
	wait_sent(w, 1);
	fake_stop(w->a);
	fake_run(&w->loop, 20);
	from = now_ms();
	assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 2);
	assert_int_equal(w->last.rc, UV_ECONNREFUSED);
	assert_non_null(strstr(w->last.err.text, w->a->addr));
	assert_in_range(w->sent_ms - from, 300, 1500);
	fake_again(w->a);
}

static void no_name_server_fails_fast(void **state)
{
	struct world *w = *state;
	char dead[200];
	int64_t from = now_ms();

	snprintf(dead, sizeof dead, "%s", w->a->addr);
	fake_stop(w->a);
	send_text(w, "x");
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, UV_ECONNREFUSED);
	assert_non_null(strstr(w->last.err.text, dead));
	assert_true(now_ms() - from < 1000);
	fake_again(w->a);
}

static void a_dead_name_server_among_two_is_passed_over(void **state)
{
	struct world *w = *state;
	struct fake *dead = fake_start(&w->loop, "x");
	char addr[500];

	snprintf(addr, sizeof addr, "%s;%s", dead->addr, w->a->addr);
	fake_stop(dead);
	/* The first is chosen at random, so that both orders come up. */
	for (int i = 0; i < 8; i++) {
		mqclient_free(w->c, 100);
		open_client(w, addr);
		send_text(w, "x");
		wait_sent(w, i + 1);
		assert_int_equal(w->last.rc, 0);
	}
	fake_free(dead);
}

static void a_oneway_send_is_told_when_its_bytes_have_left(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .oneway = true, .retries = -1 };

	for (int i = 0; i < 100; i++)
		assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	assert_int_equal(w->sent, 0);
	wait_sent(w, 100);
	assert_int_equal(w->ok, 100);
	fake_run(&w->loop, 50);
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 100);
	assert_int_equal(w->a->topic[0].queue[0].max, 0); /* a one-way request has no answer, so the fake stored nothing */
}

static void freeing_with_sends_under_way_tells_each_of_them_once(void **state)
{
	struct world *w = *state;

	send_text(w, "first");
	wait_sent(w, 1);
	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1000, FAKE_SILENT, 0, NULL);
	for (int i = 0; i < 100; i++)
		send_text(w, "x");
	for (int i = 0; i < 20; i++)
		assert_int_equal(send_opt(w, "unknown", "x", NULL), 0); /* these wait for a route */
	mqclient_free(w->c, 0);
	open_client(w, w->a->addr);
	assert_int_equal(w->sent, 121);
	assert_int_equal(w->failed, 120);
}

static void freeing_waits_for_answers_that_come(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 1000; i++)
		send_text(w, "x");
	mqclient_free(w->c, 3000);
	open_client(w, w->a->addr);
	assert_int_equal(w->ok, 1000);
}

static void sends_from_a_callback_work(void **state);

struct chain {
	struct world *w;
	int left;
};

static void on_chain(void *arg, const struct mqclient_sent *r)
{
	struct chain *k = arg;
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("next") };

	assert_int_equal(r->rc, 0);
	k->w->sent++;
	if (--k->left > 0)
		assert_int_equal(mqclient_send(k->w->c, &m, 1, NULL, on_chain, k, NULL), 0);
}

static void sends_from_a_callback_work(void **state)
{
	struct world *w = *state;
	struct chain k = { w, 50 };
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("first") };

	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, on_chain, &k, NULL), 0);
	wait_sent(w, 50);
}

static void the_header_may_be_binary(void **state)
{
	struct world *w = *state;
	struct mqclient_opt opt = { .addr = w->a->addr, .loop = &w->loop, .binary_header = true };

	mqclient_free(w->c, 100);
	assert_int_equal(mqclient_open(&w->c, &opt, &w->e), 0);
	send_text(w, "hello");
	wait_sent(w, 1);
	assert_int_equal(w->last.rc, 0);
	assert_true(str_is(fake_body(w->a, REQ_SEND_MESSAGE_V2), "hello"));
}

static bool heartbeat_came(void *arg)
{
	return ((struct world *)arg)->a->count[REQ_HEART_BEAT] > 0;
}

/* Brokers ask producers about transactions, so they are to know them; but a tool that sends and goes needs none of this. */
static void producers_are_told_after_a_second_and_take_their_leave(void **state)
{
	struct world *w = *state;
	struct mqclient_send_opt opt = { .group = "pg", .retries = -1 };

	assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 1);
	mqclient_free(w->c, 100);
	open_client(w, w->a->addr);
	assert_int_equal(w->a->count[REQ_HEART_BEAT], 0);
	assert_int_equal(w->a->count[REQ_UNREGISTER_CLIENT], 0);
	/* Name servers that have gone silent do not hold it up (B040). */
	assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 2);
	fake_script(w->a, REQ_GET_ROUTEINFO_BY_TOPIC, 1000, FAKE_SILENT, 0, NULL);
	assert_int_equal(send_opt(w, "other", "x", &opt), 0);
	assert_true(fake_until(&w->loop, heartbeat_came, w, 1600));
	assert_non_null(memmem(fake_body(w->a, REQ_HEART_BEAT).p, fake_body(w->a, REQ_HEART_BEAT).n,
	                       "{\"groupName\":\"pg\"}", 18));
	fake_run(&w->loop, 20);
	mqclient_free(w->c, 300);
	open_client(w, w->a->addr);
	assert_int_equal(w->a->count[REQ_UNREGISTER_CLIENT], 1);
	assert_string_equal(fake_field(w->a, REQ_UNREGISTER_CLIENT, "producerGroup"), "pg");
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
	struct world *w = *state;
	struct mqclient_send_opt opt = { .retries = 1000000, .timeout_ms = 2500 };
	struct server_opt so = { .bind = "127.0.0.1" };
	struct server *s;
	bool stopped = false;

	send_text(w, "first");
	wait_sent(w, 1);
	fake_stop(w->a);
	so.port = w->a->port;
	s = server_listen(&w->loop, &so, &ops, NULL, &w->e);
	assert_non_null(s);
	accepts = 0;
	for (int i = 0; i < 10; i++)
		assert_int_equal(send_opt(w, "t", "x", &opt), 0);
	wait_sent(w, 11);
	assert_int_equal(w->failed, 10);
	assert_in_range(accepts, 3, 14);
	server_stop(s, 0, on_stopped, &stopped);
	while (!stopped)
		uv_run(&w->loop, UV_RUN_ONCE);
	fake_again(w->a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_message_is_stored_and_its_place_is_told),
		T(the_users_id_and_properties_are_kept),
		T(queues_take_turns),
		T(a_given_queue_is_kept_and_one_that_is_not_there_is_told),
		T(a_key_has_the_queue_that_java_gives_it),
		T(a_batch_goes_out_as_one_with_an_id_for_each),
		T(a_long_body_is_compressed_and_comes_out_the_same),
		T(what_no_broker_would_take_is_refused_at_once),
		T(an_unknown_topic_is_refused_unless_brokers_create_topics),
		T(refusals_that_may_pass_go_to_the_other_broker),
		T(a_refusal_for_good_is_told_with_code_and_remark),
		T(tries_are_counted),
		T(a_busy_broker_is_asked_again_after_pauses),
		T(stored_with_less_than_asked_is_a_success),
		T(silence_ends_at_the_deadline_and_is_not_sent_again),
		T(an_answer_that_comes_twice_is_told_once),
		T(a_broken_connection_costs_a_try_not_the_message),
		T(a_broker_that_is_down_is_passed_over),
		T(a_broker_that_comes_back_gets_what_waited),
		T(a_broker_that_stays_away_fails_the_send_with_the_reason),
		T(no_name_server_fails_fast),
		T(a_dead_name_server_among_two_is_passed_over),
		T(a_oneway_send_is_told_when_its_bytes_have_left),
		T(freeing_with_sends_under_way_tells_each_of_them_once),
		T(freeing_waits_for_answers_that_come),
		T(sends_from_a_callback_work),
		T(the_header_may_be_binary),
		T(producers_are_told_after_a_second_and_take_their_leave),
		T(a_port_that_hangs_up_at_once_is_tried_less_and_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
