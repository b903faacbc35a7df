/* test_client_send.c: sending: what goes out, to which queue, and the one callback of each send. */
#include "sender.h"
#include "base/str.h"
#include "codec/batch.h"
#include "codec/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void a_message_is_stored_and_its_place_is_told(void **state)
{
	struct sender *w = *state;

	sender_text(w, "hello");
	assert_int_equal(w->sent, 0); /* never before the call has returned */
	sender_wait(w, 1);
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
	struct sender *w = *state;
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("x"), .flag = 7,
		                .props = MQ_STR("UNIQ_KEY\1mine\2WAIT\1false\2k\1v") };

	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, sender_on_sent, w, &w->e), 0);
	sender_wait(w, 1);
	assert_string_equal(w->last_id, "mine");
	assert_string_equal(fake_field(w->a, REQ_SEND_MESSAGE_V2, "i"), "UNIQ_KEY\1mine\2WAIT\1false\2k\1v\2");
	assert_string_equal(fake_field(w->a, REQ_SEND_MESSAGE_V2, "h"), "7");
}

static void queues_take_turns(void **state)
{
	struct sender *w = *state;

	for (int i = 0; i < 400; i++)
		sender_text(w, "x");
	sender_wait(w, 400);
	for (int q = 0; q < 4; q++)
		assert_int_equal(w->a->topic[0].queue[q].max, 100);
}

static void a_given_queue_is_kept_and_one_that_is_not_there_is_told(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .queue = { "a", 2 }, .retries = -1 };

	for (int i = 0; i < 10; i++)
		assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 10);
	assert_int_equal(w->a->topic[0].queue[2].max, 10);
	opt.queue.id = 9;
	assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 11);
	assert_int_equal(w->last.rc, MQ_ENOTFOUND);
	assert_non_null(strstr(w->last.err.text, "a:9"));
}

/* The hash of this word is the smallest integer; its queue is 2 of 3 for the peer (B045). */
static void a_key_has_the_queue_that_java_gives_it(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .sharding_key = MQ_STR("polygenelubricants"), .retries = -1 };

	fake_topic(w->a, "t3", 3);
	for (int i = 0; i < 5; i++)
		assert_int_equal(sender_send(w, "t3", "x", &opt), 0);
	sender_wait(w, 5);
	assert_int_equal(w->a->topic[1].queue[2].max, 5);
}

static void a_batch_goes_out_as_one_with_an_id_for_each(void **state)
{
	struct sender *w = *state;
	struct mq_message m[3] = {
		{ .topic = MQ_STR("t"), .body = MQ_STR("one"), .props = MQ_STR("KEYS\1k1\2") },
		{ .topic = MQ_STR("t"), .body = MQ_STR("two"), .flag = 5 },
		{ .topic = MQ_STR("t"), .body = MQ_STR("three") },
	};
	struct batch_item item;
	size_t pos = 0;

	assert_int_equal(mqclient_send(w->c, m, 3, NULL, sender_on_sent, w, &w->e), 0);
	sender_wait(w, 1);
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
	struct sender *w = *state;
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
		assert_int_equal(sender_send(w, "t", body, &opt), 0);
		sender_wait(w, i + 1);
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
	struct sender *w = *state;
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("x") };
	char *big = calloc(1, MQ_BODY_MAX + 1);

	assert_int_equal(sender_send(w, "t", "", NULL), MQ_EINVAL);
	assert_int_equal(sender_send(w, "a b", "x", NULL), MQ_EINVAL);
	m.props = MQ_STR("novalue\2");
	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, sender_on_sent, w, &w->e), MQ_EINVAL);
	m.props = MQ_STR("a\1b\1c\2");
	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, sender_on_sent, w, &w->e), MQ_EINVAL);
	m.props = (struct mq_str){ 0 };
	memset(big, 'x', MQ_BODY_MAX + 1);
	m.body = (struct mq_str){ big, MQ_BODY_MAX + 1 };
	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, sender_on_sent, w, &w->e), MQ_ETOOBIG);
	assert_non_null(strstr(w->e.text, "4194305"));
	assert_non_null(strstr(w->e.text, "4194304"));
	fake_run(&w->loop, 20);
	assert_int_equal(w->sent, 0);
	free(big);
}

static void an_unknown_topic_is_refused_unless_brokers_create_topics(void **state)
{
	struct sender *w = *state;

	assert_int_equal(sender_send(w, "new", "x", NULL), 0);
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, MQ_ENOROUTE);
	w->a->auto_create = true;
	for (int i = 0; i < 8; i++)
		assert_int_equal(sender_send(w, "new", "x", NULL), 0);
	sender_wait(w, 9);
	assert_int_equal(w->ok, 8);
	for (int q = 0; q < 4; q++)
		assert_int_equal(w->a->topic[1].queue[q].max, 2); /* 4 of the template's 8 queues */
}

static void stored_with_less_than_asked_is_a_success(void **state)
{
	struct sender *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, RESP_SLAVE_NOT_AVAILABLE, NULL);
	sender_text(w, "x");
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, 0);
	assert_int_equal(w->last.status, RESP_SLAVE_NOT_AVAILABLE);
}

static void a_oneway_send_is_told_when_its_bytes_have_left(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .oneway = true, .retries = -1 };

	for (int i = 0; i < 100; i++)
		assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	assert_int_equal(w->sent, 0);
	sender_wait(w, 100);
	assert_int_equal(w->ok, 100);
	fake_run(&w->loop, 50);
	assert_int_equal(w->a->count[REQ_SEND_MESSAGE_V2], 100);
	assert_int_equal(w->a->topic[0].queue[0].max, 0); /* a one-way request has no answer, so the fake stored nothing */
}

static void freeing_with_sends_under_way_tells_each_of_them_once(void **state)
{
	struct sender *w = *state;

	sender_text(w, "first");
	sender_wait(w, 1);
	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1000, FAKE_SILENT, 0, NULL);
	for (int i = 0; i < 100; i++)
		sender_text(w, "x");
	for (int i = 0; i < 20; i++)
		assert_int_equal(sender_send(w, "unknown", "x", NULL), 0); /* these wait for a route */
	mqclient_free(w->c, 0);
	sender_open(w, w->a->addr);
	assert_int_equal(w->sent, 121);
	assert_int_equal(w->failed, 120);
}

static void freeing_waits_for_answers_that_come(void **state)
{
	struct sender *w = *state;

	for (int i = 0; i < 1000; i++)
		sender_text(w, "x");
	mqclient_free(w->c, 3000);
	sender_open(w, w->a->addr);
	assert_int_equal(w->ok, 1000);
}

static void sends_from_a_callback_work(void **state);

struct chain {
	struct sender *w;
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
	struct sender *w = *state;
	struct chain k = { w, 50 };
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("first") };

	assert_int_equal(mqclient_send(w->c, &m, 1, NULL, on_chain, &k, NULL), 0);
	sender_wait(w, 50);
}

static void the_header_may_be_binary(void **state)
{
	struct sender *w = *state;
	struct mqclient_opt opt = { .addr = w->a->addr, .loop = &w->loop, .binary_header = true };

	mqclient_free(w->c, 100);
	assert_int_equal(mqclient_open(&w->c, &opt, &w->e), 0);
	sender_text(w, "hello");
	sender_wait(w, 1);
	assert_int_equal(w->last.rc, 0);
	assert_true(str_is(fake_body(w->a, REQ_SEND_MESSAGE_V2), "hello"));
}

static bool heartbeat_came(void *arg)
{
	return ((struct sender *)arg)->a->count[REQ_HEART_BEAT] > 0;
}

/* Brokers ask producers about transactions, so they are to know them; but a tool that sends and goes needs none of this. */
static void producers_are_told_after_a_second_and_take_their_leave(void **state)
{
	struct sender *w = *state;
	struct mqclient_send_opt opt = { .group = "pg", .retries = -1 };

	assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 1);
	mqclient_free(w->c, 100);
	sender_open(w, w->a->addr);
	assert_int_equal(w->a->count[REQ_HEART_BEAT], 0);
	assert_int_equal(w->a->count[REQ_UNREGISTER_CLIENT], 0);
	/* Name servers that have gone silent do not hold it up (B040). */
	assert_int_equal(sender_send(w, "t", "x", &opt), 0);
	sender_wait(w, 2);
	fake_script(w->a, REQ_GET_ROUTEINFO_BY_TOPIC, 1000, FAKE_SILENT, 0, NULL);
	assert_int_equal(sender_send(w, "other", "x", &opt), 0);
	assert_true(fake_until(&w->loop, heartbeat_came, w, 1600));
	assert_non_null(memmem(fake_body(w->a, REQ_HEART_BEAT).p, fake_body(w->a, REQ_HEART_BEAT).n,
	                       "{\"groupName\":\"pg\"}", 18));
	fake_run(&w->loop, 20);
	mqclient_free(w->c, 300);
	sender_open(w, w->a->addr);
	assert_int_equal(w->a->count[REQ_UNREGISTER_CLIENT], 1);
	assert_string_equal(fake_field(w->a, REQ_UNREGISTER_CLIENT, "producerGroup"), "pg");
}

#define T(f) cmocka_unit_test_setup_teardown(f, sender_start, sender_stop)

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
		T(stored_with_less_than_asked_is_a_success),
		T(a_oneway_send_is_told_when_its_bytes_have_left),
		T(freeing_with_sends_under_way_tells_each_of_them_once),
		T(freeing_waits_for_answers_that_come),
		T(sends_from_a_callback_work),
		T(the_header_may_be_binary),
		T(producers_are_told_after_a_second_and_take_their_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
