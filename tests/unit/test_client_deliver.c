/* test_client_deliver.c: ordered and broadcast consumption, sending back, halves of transactions, requests and replies. */
#include "fake.h"
#include "base/clock.h"
#include "base/str.h"
#include "codec/request.h"
#include <mqclient.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MEMBERS = 2 };

struct member {
	struct world *w;
	struct mqclient *c;
	struct mqclient_consumer *k;
	int got;
	int64_t last_off;
	bool settle;                    /* each as it comes */
	size_t assigned;
};

struct world {
	uv_loop_t loop;
	struct fake *a;
	struct member m[MEMBERS];
	struct mq_error e;
	int done, done_rc;              /* of a request with yes or no */
	struct mq_error why;
	struct mqclient_sent sent;
	char offset_id[64], uniq[64];
	int nsent;
	struct mqclient_half asked;
	int checks;
	char check_body[64];
	int replies, reply_rc;
	char reply[64];
};

static int wanted;

static void on_message(void *arg, const struct mq_message *m, struct mq_str body, const struct mqclient_queue *q)
{
	struct member *me = arg;

	me->got++;
	me->last_off = m->queue_off;
	if (me->settle)
		mqclient_settle(me->k, m->topic, q, m->queue_off, true);
}

static void on_assigned(void *arg, struct mq_str topic, const struct mqclient_queue *q, size_t n)
{
	if (str_is(topic, "t"))
		((struct member *)arg)->assigned = n;
}

static void on_trouble(void *arg, const struct mq_error *e, bool fatal)
{
}

static int64_t from_the_second(void *arg, struct mq_str topic, const struct mqclient_queue *q)
{
	return 1;
}

static const struct mqclient_consume_ops ops = { .message = on_message, .assigned = on_assigned, .trouble = on_trouble };
static const struct mqclient_consume_ops ops_from = {
	.message = on_message, .assigned = on_assigned, .start_at = from_the_second, .trouble = on_trouble,
};

static int start(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	static const char *const names[MEMBERS] = { "one", "two" };

	uv_loop_init(&w->loop);
	w->a = fake_start(&w->loop, "a");
	fake_topic(w->a, "t", 1);
	for (int i = 0; i < MEMBERS; i++) {
		struct mqclient_opt opt = { .addr = w->a->addr, .loop = &w->loop, .instance = names[i] };
		w->m[i].w = w;
		w->m[i].settle = true;
		if (mqclient_open(&w->m[i].c, &opt, &w->e) < 0)
			fail_msg("%s", w->e.text);
	}
	*state = w;
	return 0;
}

static int stop(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < MEMBERS; i++)
		mqclient_free(w->m[i].c, 500);
	fake_free(w->a);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w->loop), 0);
	free(w);
	return 0;
}

static void consume_topic(struct member *me, struct mq_str topic)
{
	struct mqclient_consume_opt opt = { .group = "g", .topics = &topic, .ntopics = 1, .start = MQCLIENT_BEGIN, .orderly = true };

	if (mqclient_consume(me->c, &me->k, &opt, &ops, me, &me->w->e) < 0)
		fail_msg("%s", me->w->e.text);
}

static void consume(struct member *me, bool orderly, bool broadcast, const struct mqclient_consume_ops *o)
{
	struct mq_str topic = MQ_STR("t");
	struct mqclient_consume_opt opt = { .group = "g", .topics = &topic, .ntopics = 1, .start = MQCLIENT_BEGIN, .orderly = orderly,
		                            .broadcast = broadcast };

	if (mqclient_consume(me->c, &me->k, &opt, o, me, &me->w->e) < 0)
		fail_msg("%s", me->w->e.text);
}

static bool has_got(void *arg)
{
	return ((struct member *)arg)->got >= wanted;
}

static void wait_got(struct member *me, int n)
{
	wanted = n;
	if (!fake_until(&me->w->loop, has_got, me, 20000))
		fail_msg("%d of %d messages came", me->got, n);
}

static void put(struct world *w, int n)
{
	for (int i = 0; i < n; i++)
		fake_put(w->a, "t", 0, "body", NULL);
}

static bool is_locked_by_two(void *arg)
{
	struct world *w = arg;

	return strcmp(fake_lock(w->a, "t", 0), mqclient_id(w->m[1].c)) == 0;
}

static bool is_unlocked(void *arg)
{
	return !*fake_lock(((struct world *)arg)->a, "t", 0);
}

/* ---- In order -------------------------------------------------------------------------------------------------------- */

static void a_queue_is_read_when_its_lock_is_had_and_not_before(void **state)
{
	struct world *w = *state;
	struct member *one = &w->m[0];

	fake_set_lock(w->a, "t", 0, "somebody");
	put(w, 3);
	consume(one, true, false, &ops);
	fake_run(&w->loop, 1200);
	assert_int_equal(one->got, 0);
	assert_true(w->a->count[REQ_LOCK_BATCH_MQ] >= 2);
	fake_set_lock(w->a, "t", 0, "");
	wait_got(one, 3);
	assert_string_equal(fake_lock(w->a, "t", 0), mqclient_id(one->c));
}

static void a_queue_is_given_back_when_its_reader_leaves(void **state)
{
	struct world *w = *state;
	struct member *one = &w->m[0];

	put(w, 3);
	consume(one, true, false, &ops);
	wait_got(one, 3);
	assert_int_equal(mqclient_consumer_free(one->k, 1000, &w->e), 0);
	assert_true(fake_until(&w->loop, is_unlocked, w, 10000));
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 3);
}

static bool has_asked_for_a_lock(void *arg)
{
	return ((struct world *)arg)->a->count[REQ_LOCK_BATCH_MQ] > 0;
}

static void a_lock_that_is_granted_to_who_leaves_is_given_back(void **state)
{
	struct world *w = *state;
	struct member *one = &w->m[0];

	fake_script(w->a, REQ_LOCK_BATCH_MQ, 1, FAKE_SILENT, 0, NULL);
	consume(one, true, false, &ops);
	assert_true(fake_until(&w->loop, has_asked_for_a_lock, w, 10000));
	fake_set_lock(w->a, "t", 0, mqclient_id(one->c)); /* the answer is still on its way */
	assert_int_equal(mqclient_consumer_free(one->k, 1000, &w->e), 0);
	assert_true(fake_until(&w->loop, is_unlocked, w, 10000));
}

/* The heart of it: the second reader gets nothing as long as the first has something in hand, and then what comes after that. */
static void a_queue_changes_hands_only_when_all_is_settled(void **state)
{
	struct world *w = *state;
	struct member *one = &w->m[0], *two = &w->m[1];
	struct mqclient_queue q = { "a", 0 };

	one->settle = false;
	put(w, 3);
	consume(one, true, false, &ops);
	wait_got(one, 3);
	mqclient_settle(one->k, MQ_STR("t"), &q, 0, true);
	/* Its only queue goes to another: of two members the first by name has it. */
	snprintf(w->a->member[w->a->nmembers++], sizeof w->a->member[0], "0-first-of-all");
	fake_notify(w->a, "g");
	fake_run(&w->loop, 700);
	assert_int_equal(one->assigned, 0);
	assert_string_equal(fake_lock(w->a, "t", 0), mqclient_id(one->c));
	mqclient_settle(one->k, MQ_STR("t"), &q, 1, true);
	fake_run(&w->loop, 300);
	assert_string_equal(fake_lock(w->a, "t", 0), mqclient_id(one->c));
	/* What it will not do any more is given up without commit. */
	mqclient_settle(one->k, MQ_STR("t"), &q, 2, false);
	assert_true(fake_until(&w->loop, is_unlocked, w, 10000));
	assert_int_equal(fake_offset(w->a, "g", "t", 0), 2);
	mqclient_consumer_free(one->k, 1000, NULL);
	w->a->nmembers = 0;
	consume(two, true, false, &ops);
	assert_true(fake_until(&w->loop, is_locked_by_two, w, 10000));
	wait_got(two, 1);
	fake_run(&w->loop, 50);
	assert_int_equal(two->got, 1);
	assert_int_equal(two->last_off, 2);
}

static void a_lock_that_is_lost_stops_the_flow(void **state)
{
	struct world *w = *state;
	struct member *one = &w->m[0];

	/* One queue that another has keeps the rounds coming every half second. */
	fake_topic(w->a, "two", 2);
	fake_set_lock(w->a, "two", 1, "somebody");
	fake_put(w->a, "two", 0, "body", NULL);
	consume_topic(one, MQ_STR("two"));
	wait_got(one, 1);
	fake_set_lock(w->a, "two", 0, "somebody");
	fake_run(&w->loop, 800);
	fake_put(w->a, "two", 0, "body", NULL);
	fake_run(&w->loop, 300);
	assert_int_equal(one->got, 1);
	/* It is had again: on from where the group stands, which is behind the first. */
	fake_set_lock(w->a, "two", 0, "");
	wait_got(one, 2);
	assert_int_equal(one->last_off, 1);
}

/* ---- To all ---------------------------------------------------------------------------------------------------------- */

static void who_broadcasts_reads_everything_and_commits_nothing(void **state)
{
	struct world *w = *state;

	put(w, 3);
	consume(&w->m[0], false, true, &ops);
	consume(&w->m[1], false, true, &ops_from);
	wait_got(&w->m[0], 3);
	wait_got(&w->m[1], 2);
	assert_non_null(strstr(w->a->last_body[REQ_HEART_BEAT].p, "BROADCASTING"));
	assert_int_equal(mqclient_consumer_free(w->m[0].k, 1000, &w->e), 0);
	assert_int_equal(mqclient_consumer_free(w->m[1].k, 1000, &w->e), 0);
	assert_int_equal(w->a->count[REQ_UPDATE_CONSUMER_OFFSET], 0);
	assert_int_equal(w->a->count[REQ_QUERY_CONSUMER_OFFSET], 0);
	assert_int_equal(w->m[1].got, 2);
}

/* ---- Yes or no ------------------------------------------------------------------------------------------------------- */

static void on_done(void *arg, int rc, const struct mq_error *err)
{
	struct world *w = arg;

	w->done++;
	w->done_rc = rc;
	w->why = *err;
}

static bool is_done(void *arg)
{
	return ((struct world *)arg)->done > 0;
}

static void wait_done(struct world *w)
{
	if (!fake_until(&w->loop, is_done, w, 20000))
		fail_msg("no answer");
	assert_int_equal(w->done, 1);
}

static void a_message_is_sent_back(void **state)
{
	struct world *w = *state;
	struct mqclient_back b = { .broker = "a", .topic = MQ_STR("t"), .log_off = 4711, .id = "ID", .delay_level = 3, .max_times = 5 };

	put(w, 1);
	consume(&w->m[0], false, false, &ops);
	wait_got(&w->m[0], 1);
	assert_int_equal(mqclient_send_back(w->m[0].k, &b, on_done, w, &w->e), 0);
	assert_int_equal(w->done, 0);
	wait_done(w);
	assert_int_equal(w->done_rc, 0);
	assert_string_equal(fake_field(w->a, REQ_CONSUMER_SEND_MSG_BACK, "offset"), "4711");
	assert_string_equal(fake_field(w->a, REQ_CONSUMER_SEND_MSG_BACK, "group"), "g");
	assert_string_equal(fake_field(w->a, REQ_CONSUMER_SEND_MSG_BACK, "delayLevel"), "3");
	assert_string_equal(fake_field(w->a, REQ_CONSUMER_SEND_MSG_BACK, "maxReconsumeTimes"), "5");
}

static void who_is_refused_hears_why(void **state)
{
	struct world *w = *state;
	struct mqclient_back b = { .broker = "a", .topic = MQ_STR("t"), .id = "ID", .delay_level = -1, .max_times = -1 };

	put(w, 1);
	consume(&w->m[0], false, false, &ops);
	wait_got(&w->m[0], 1);
	fake_script(w->a, REQ_CONSUMER_SEND_MSG_BACK, 1, FAKE_ANSWER, RESP_NO_PERMISSION, "the topic is read-only");
	assert_int_equal(mqclient_send_back(w->m[0].k, &b, on_done, w, &w->e), 0);
	wait_done(w);
	assert_int_equal(w->done_rc, MQ_EREFUSED);
	assert_int_equal(w->why.response, RESP_NO_PERMISSION);
	assert_non_null(strstr(w->why.text, "the topic is read-only"));
	assert_string_equal(fake_field(w->a, REQ_CONSUMER_SEND_MSG_BACK, "maxReconsumeTimes"), "");
	b.broker = "nowhere";
	assert_int_equal(mqclient_send_back(w->m[0].k, &b, on_done, w, &w->e), MQ_ENOROUTE);
	assert_int_equal(w->done, 1);
}

/* ---- Transactions ---------------------------------------------------------------------------------------------------- */

static void on_sent(void *arg, const struct mqclient_sent *r)
{
	struct world *w = arg;

	w->nsent++;
	w->sent = *r;
	snprintf(w->offset_id, sizeof w->offset_id, MQ_STR_FMT, MQ_STR_ARG(r->offset_id));
	snprintf(w->uniq, sizeof w->uniq, MQ_STR_FMT, MQ_STR_ARG(r->uniq_key));
	w->sent.offset_id = str_of(w->offset_id);
	w->sent.uniq_key = str_of(w->uniq);
}

static bool is_sent(void *arg)
{
	return ((struct world *)arg)->nsent > 0;
}

static void a_half_is_marked_and_ended_by_its_places(void **state)
{
	struct world *w = *state;
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("x"), .queue_id = -1 };
	struct mqclient_send_opt opt = { .group = "p", .retries = -1, .half = true };
	struct mqclient_half h;

	assert_int_equal(mqclient_send(w->m[0].c, &m, 1, &opt, on_sent, w, &w->e), 0);
	assert_true(fake_until(&w->loop, is_sent, w, 10000));
	assert_int_equal(w->sent.rc, 0);
	assert_non_null(strstr(fake_field(w->a, REQ_SEND_MESSAGE_V2, "i"), "TRAN_MSG\001true"));
	assert_non_null(strstr(fake_field(w->a, REQ_SEND_MESSAGE_V2, "i"), "PGROUP\001p"));
	assert_string_equal(fake_field(w->a, REQ_SEND_MESSAGE_V2, "f"), "4");
	/* The broker knew who we are before it had the half. */
	assert_true(w->a->count[REQ_HEART_BEAT] > 0);
	assert_int_equal(mqclient_half_of(&w->sent, "p", &h, &w->e), 0);
	assert_int_equal(mqclient_end(w->m[0].c, &h, false, on_done, w, &w->e), 0);
	wait_done(w);
	assert_string_equal(fake_field(w->a, REQ_END_TRANSACTION, "commitOrRollback"), "12");
	assert_string_equal(fake_field(w->a, REQ_END_TRANSACTION, "producerGroup"), "p");
	assert_string_equal(fake_field(w->a, REQ_END_TRANSACTION, "msgId"), w->uniq);
	assert_string_equal(fake_field(w->a, REQ_END_TRANSACTION, "fromTransactionCheck"), "false");
	/* A batch is none, nor is what nobody answers for. */
	opt.group = NULL;
	assert_int_equal(mqclient_send(w->m[0].c, &m, 1, &opt, on_sent, w, &w->e), MQ_EINVAL);
	opt.group = "p";
	opt.oneway = true;
	assert_int_equal(mqclient_send(w->m[0].c, &m, 1, &opt, on_sent, w, &w->e), MQ_EINVAL);
}

static void on_check(void *arg, const struct mqclient_half *h, const struct mq_message *m, struct mq_str body)
{
	struct world *w = arg;

	w->checks++;
	w->asked = *h;
	snprintf(w->check_body, sizeof w->check_body, MQ_STR_FMT, MQ_STR_ARG(body));
}

static bool is_heard(void *arg)
{
	return ((struct world *)arg)->a->count[REQ_HEART_BEAT] > 0;
}

static void a_question_that_is_no_question_does_no_harm(void **state)
{
	struct world *w = *state;

	assert_int_equal(mqclient_answer_checks(w->m[0].c, "p", MQ_STR("t"), on_check, w, &w->e), 0);
	assert_int_equal(mqclient_answer_checks(w->m[0].c, "p", MQ_STR("t"), on_check, w, &w->e), MQ_EBUSY);
	/* The broker hears of the group without a message being sent. */
	assert_true(fake_until(&w->loop, is_heard, w, 10000));
	assert_non_null(strstr(w->a->last_body[REQ_HEART_BEAT].p, "\"p\""));
	fake_request_all(w->a, REQ_CHECK_TRANSACTION_STATE, "msgId", "x", "no message at all");
	fake_request_all(w->a, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT, "properties", "CORRELATION_ID\001nobody's\002", "late");
	fake_run(&w->loop, 100);
	assert_int_equal(w->checks, 0);
}

/* ---- Requests -------------------------------------------------------------------------------------------------------- */

static void on_reply(void *arg, int rc, const struct mq_error *err, const struct mq_message *m, struct mq_str body)
{
	struct world *w = arg;

	w->replies++;
	w->reply_rc = rc;
	w->why = *err;
	snprintf(w->reply, sizeof w->reply, MQ_STR_FMT, MQ_STR_ARG(body));
}

static bool is_replied(void *arg)
{
	return ((struct world *)arg)->replies > 0;
}

static bool is_asked(void *arg)
{
	return ((struct world *)arg)->a->count[REQ_SEND_MESSAGE_V2] > 0;
}

static void ask(struct world *w, int timeout_ms)
{
	struct mq_message m = { .topic = MQ_STR("t"), .body = MQ_STR("question"), .queue_id = -1 };
	struct mqclient_send_opt opt = { .retries = -1, .timeout_ms = timeout_ms };

	assert_int_equal(mqclient_request(w->m[0].c, &m, &opt, on_reply, w, &w->e), 0);
	assert_true(fake_until(&w->loop, is_asked, w, 10000));
}

/* The properties of the last message that was sent, as far as they name the request. */
static void correlation(struct world *w, char *out, size_t cap)
{
	struct mq_str props = str_of(fake_field(w->a, REQ_SEND_MESSAGE_V2, "i"));

	snprintf(out, cap, "CORRELATION_ID\001" MQ_STR_FMT "\002", MQ_STR_ARG(mq_prop_get(props, "CORRELATION_ID")));
}

static void a_request_introduces_itself_and_gets_its_reply_once(void **state)
{
	struct world *w = *state;
	char id[200];

	ask(w, 5000);
	assert_true(w->a->count[REQ_HEART_BEAT] > 0);
	correlation(w, id, sizeof id);
	fake_request_all(w->a, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT, "properties", id, "answer");
	assert_true(fake_until(&w->loop, is_replied, w, 10000));
	assert_int_equal(w->reply_rc, 0);
	assert_string_equal(w->reply, "answer");
	fake_request_all(w->a, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT, "properties", id, "answer again");
	fake_run(&w->loop, 100);
	assert_int_equal(w->replies, 1);
}

static void a_request_without_a_reply_ends_with_its_time(void **state)
{
	struct world *w = *state;
	int64_t began = clock_mono_us();

	ask(w, 200);
	assert_true(fake_until(&w->loop, is_replied, w, 10000));
	assert_int_equal(w->reply_rc, MQ_ETIMEOUT);
	assert_true(clock_mono_us() - began >= 190000);
}

static void a_request_that_is_refused_hears_why(void **state)
{
	struct world *w = *state;

	fake_script(w->a, REQ_SEND_MESSAGE_V2, 1, FAKE_ANSWER, RESP_MESSAGE_ILLEGAL, "not so");
	ask(w, 5000);
	assert_true(fake_until(&w->loop, is_replied, w, 10000));
	assert_int_equal(w->reply_rc, MQ_EREFUSED);
	assert_non_null(strstr(w->why.text, "not so"));
}

static void a_request_at_the_end_of_its_client_is_given_up(void **state)
{
	struct world *w = *state;

	ask(w, 60000);
	mqclient_free(w->m[0].c, 50);
	assert_int_equal(w->replies, 1);
	assert_int_equal(w->reply_rc, MQ_ECANCELLED);
	w->m[0].c = NULL;
}

static void a_reply_goes_to_the_cluster_of_the_request(void **state)
{
	struct world *w = *state;
	struct mq_message m = { .props = MQ_STR("CORRELATION_ID\001c\002REPLY_TO_CLIENT\001asker\002CLUSTER\001C\002TTL\0013000\002") };

	put(w, 1);
	consume(&w->m[0], false, false, &ops);
	wait_got(&w->m[0], 1);
	assert_true(mqclient_wants_reply(&m));
	assert_int_equal(mqclient_reply(w->m[0].c, &m, "a", "g", MQ_STR("answer"), on_done, w, &w->e), 0);
	wait_done(w);
	assert_int_equal(w->done_rc, 0);
	assert_string_equal(fake_field(w->a, REQ_SEND_REPLY_MESSAGE_V2, "b"), "C_REPLY_TOPIC");
	assert_non_null(strstr(fake_field(w->a, REQ_SEND_REPLY_MESSAGE_V2, "i"), "REPLY_TO_CLIENT\001asker"));
	assert_non_null(strstr(fake_field(w->a, REQ_SEND_REPLY_MESSAGE_V2, "i"), "MSG_TYPE\001reply"));
	m.props = MQ_STR("KEYS\001k\002");
	assert_false(mqclient_wants_reply(&m));
	assert_int_equal(mqclient_reply(w->m[0].c, &m, "a", "g", MQ_STR("answer"), on_done, w, &w->e), MQ_EINVAL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queue_is_read_when_its_lock_is_had_and_not_before),
		TEST(a_queue_is_given_back_when_its_reader_leaves),
		TEST(a_lock_that_is_granted_to_who_leaves_is_given_back),
		TEST(a_queue_changes_hands_only_when_all_is_settled),
		TEST(a_lock_that_is_lost_stops_the_flow),
		TEST(who_broadcasts_reads_everything_and_commits_nothing),
		TEST(a_message_is_sent_back),
		TEST(who_is_refused_hears_why),
		TEST(a_half_is_marked_and_ended_by_its_places),
		TEST(a_question_that_is_no_question_does_no_harm),
		TEST(a_request_introduces_itself_and_gets_its_reply_once),
		TEST(a_request_without_a_reply_ends_with_its_time),
		TEST(a_request_that_is_refused_hears_why),
		TEST(a_request_at_the_end_of_its_client_is_given_up),
		TEST(a_reply_goes_to_the_cluster_of_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
