/* test_broker_pull.c: pulls and long polling: codes, waiting, waking, what ends a wait, and what is not shown yet. */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/sys.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/hold.h"
#include "../../bin/broker/offset_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

enum { LARGE = 4000000, LARGE_ENOUGH = 18 };

struct fixture {
	struct broker_kit *k;
	struct conn *c, *producer;
};

static int setup_with(void **state, const char *const *props)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->k = broker_kit_start(props);
	f->c = broker_kit_dial(f->k, false);
	f->producer = broker_kit_dial(f->k, false);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, NULL);
}

static int setup_sync(void **state)
{
	static const char *const props[] = { "flushDiskType=SYNC_FLUSH", NULL };

	return setup_with(state, props);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	broker_kit_stop(f->k);
	free(f);
	return 0;
}

static struct hold *hold_of(struct fixture *f)
{
	return broker_kit_broker(f->k)->hold;
}

/* One pull; it is answered at once or waits at most ms. */
static struct asked *pull(struct fixture *f, const char *topic, int queue, int64_t off, const char *expr, int ms)
{
	static struct asked *a;

	asked_free(a);
	a = kit_pull_later(f->k, f->c, "g", topic, queue, off, expr, ms);
	asked_wait(f->k, a);
	return a;
}

static void is(const struct asked *a, int code, int64_t next)
{
	if (a->code != code || asked_i64(a, "nextBeginOffset") != next)
		fail_msg("code %d (%s) next %lld, not code %d next %lld", a->code, a->remark.p,
			 (long long)asked_i64(a, "nextBeginOffset"), code, (long long)next);
	/* The Java client unboxes all of these. */
	assert_true(*asked_get(a, "minOffset") && *asked_get(a, "maxOffset") && *asked_get(a, "suggestWhichBrokerId"));
}

static void fill(struct fixture *f, const char *topic, int n)
{
	char body[16];

	for (int i = 0; i < n; i++) {
		snprintf(body, sizeof body, "m%d", i);
		assert_int_equal(kit_send(f->k, f->producer, topic, 0, body, i % 2 ? "odd" : "even")->code, RESP_SUCCESS);
	}
}

/* ---- Codes ---------------------------------------------------------------------------------------------------------------- */

static void offsets_inside_and_outside_of_the_queue(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	fill(f, "T", 3);
	a = pull(f, "T", 0, 0, "*", 0);
	is(a, RESP_SUCCESS, 3);
	assert_string_equal(asked_bodies(a), "m0 m1 m2");
	assert_string_equal(a->remark.p, "FOUND");
	is(pull(f, "T", 0, 3, "*", 0), RESP_PULL_NOT_FOUND, 3);
	is(pull(f, "T", 0, 5000, "*", 0), RESP_PULL_OFFSET_MOVED, 3);   /* to the end, never back to the start */
	is(pull(f, "T", 0, -1, "*", 0), RESP_PULL_OFFSET_MOVED, 0);
	is(pull(f, "T", 1, 0, "*", 0), RESP_PULL_NOT_FOUND, 0);
	is(pull(f, "T", 1, 7, "*", 0), RESP_PULL_OFFSET_MOVED, 0);
}

static void tags_are_filtered_by_the_expression(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	fill(f, "T", 6);
	a = pull(f, "T", 0, 0, "odd", 0);
	is(a, RESP_SUCCESS, 6);
	assert_string_equal(asked_bodies(a), "m1 m3 m5");
	assert_string_equal(asked_bodies(pull(f, "T", 0, 0, "odd || even", 0)), "m0 m1 m2 m3 m4 m5");
	is(pull(f, "T", 0, 0, "none", 0), RESP_PULL_RETRY_IMMEDIATELY, 6);
}

/* The hashes that a client sends along are not looked at: C++ sends [0], Rust other numbers. */
static void hashes_in_a_heartbeat_do_not_count(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	fill(f, "T", 2);
	a = ask(f->k, f->c, REQ_HEART_BEAT, MQ_STR("{\"clientID\":\"cpp\",\"consumerDataSet\":[{\"consumeFromWhere\":0,\"consumeType\":1,"
		"\"groupName\":\"g\",\"messageModel\":1,\"subscriptionDataSet\":[{\"codeSet\":[0],\"subString\":\"odd\",\"subVersion\":\"7\","
		"\"tagsSet\":[\"odd\"],\"topic\":\"T\"}]}]}\n"), NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(asked_bodies(pull(f, "T", 0, 0, NULL, 0)), "m1");
	a = ask(f->k, f->c, REQ_HEART_BEAT, MQ_STR("{\"clientID\":\"cpp\",\"consumerDataSet\":[{\"groupName\":\"g\",\"subscriptionDataSet\":"
		"[{\"codeSet\":[1],\"subVersion\":8,\"tagsSet\":[\"even\"],\"topic\":\"T\"}]}]}"), NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(asked_bodies(pull(f, "T", 0, 0, NULL, 0)), "m0");
}

static void who_may_not_pull(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	fill(f, "T", 1);
	assert_int_equal(pull(f, "U", 0, 0, "*", 0)->code, RESP_TOPIC_NOT_EXIST);
	assert_int_equal(pull(f, "T", 4, 0, "*", 0)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(pull(f, "T", -1, 0, "*", 0)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(pull(f, "T", 0, 0, NULL, 0)->code, RESP_SUBSCRIPTION_NOT_EXIST);    /* no heartbeat came */
	kit_heartbeat(f->k, f->c, "me", "g", "Other", "*");
	assert_int_equal(pull(f, "T", 0, 0, NULL, 0)->code, RESP_SUBSCRIPTION_NOT_EXIST);    /* for another topic */
	kit_heartbeat(f->k, f->c, "me", "g", "T", "*");
	assert_int_equal(pull(f, "T", 0, 0, NULL, 0)->code, RESP_SUCCESS);
	a = ask(f->k, f->c, REQ_PULL_MESSAGE, (struct mq_str){ 0 }, "consumerGroup", "g", "topic", "T", "queueId", "0", "queueOffset", "0",
		"maxMsgNums", "1", "sysFlag", "0", "commitOffset", "0", "suspendTimeoutMillis", "0", "subVersion", "9", NULL);
	assert_int_equal(a->code, RESP_SUBSCRIPTION_NOT_LATEST);
	a = ask(f->k, f->c, REQ_PULL_MESSAGE, (struct mq_str){ 0 }, "consumerGroup", "g", "topic", "T", "queueId", "0", "queueOffset", "0",
		"maxMsgNums", "1", "sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subVersion", "0", "expressionType",
		"SQL92", "subscription", "a > 1", NULL);
	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_non_null(strstr(a->remark.p, "SQL92"));
	ask(f->k, f->c, REQ_UPDATE_AND_CREATE_TOPIC, (struct mq_str){ 0 }, "topic", "T", "defaultTopic", "TBW102", "readQueueNums", "4",
	    "writeQueueNums", "4", "perm", "2", "topicFilterType", "SINGLE_TAG", "order", "false", NULL);
	a = pull(f, "T", 0, 0, "*", 0);
	assert_int_equal(a->code, RESP_NO_PERMISSION);
	assert_string_equal(asked_get(a, "forbiddenType"), "3");
}

static void no_pulls_on_the_fast_port(void **state)
{
	struct fixture *f = *state;
	struct conn *vip = broker_kit_dial(f->k, true);
	struct asked *a;

	fill(f, "T", 1);
	a = kit_pull_later(f->k, vip, "g", "T", 0, 0, "*", 0);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_REQUEST_CODE_NOT_SUPPORTED);
	assert_string_equal(a->remark.p, " request type 11 not supported");
	asked_free(a);
	assert_int_equal(kit_send(f->k, vip, "T", 0, "x", NULL)->code, RESP_SUCCESS);
}

/* ---- Waiting -------------------------------------------------------------------------------------------------------------- */

static void a_message_ends_the_wait(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	int64_t t;

	fill(f, "T", 1);
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 1, "*", 15000);
	broker_kit_settle(f->k);
	assert_false(a->done);
	assert_int_equal(hold_count(hold_of(f)), 1);
	t = clock_mono_us();
	kit_send(f->k, f->producer, "T", 0, "new", NULL);
	asked_wait(f->k, a);
	assert_true(clock_mono_us() - t < 10000000);
	is(a, RESP_SUCCESS, 2);
	assert_string_equal(asked_bodies(a), "new");
	assert_int_equal(hold_count(hold_of(f)), 0);
	asked_free(a);
}

static void a_queue_that_never_held_a_message_can_be_waited_on(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	fill(f, "T", 1);
	a = kit_pull_later(f->k, f->c, "g", "T", 2, 0, "*", 15000);
	broker_kit_settle(f->k);
	kit_send(f->k, f->producer, "T", 2, "first", NULL);
	asked_wait(f->k, a);
	assert_string_equal(asked_bodies(a), "first");
	asked_free(a);
}

static void a_message_that_is_not_wanted_does_not_end_it_and_is_passed(void **state)
{
	struct fixture *f = *state;
	struct asked *a, *b;

	fill(f, "T", 2);
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 2, "odd", 15000);
	b = kit_pull_later(f->k, f->c, "g", "T", 0, 2, "odd", 200);
	broker_kit_settle(f->k);
	for (int i = 0; i < 20; i++)
		kit_send(f->k, f->producer, "T", 0, "no", "even");
	assert_false(a->done);
	asked_wait(f->k, b);
	is(b, RESP_PULL_NOT_FOUND, 22); /* it need not look at them again */
	kit_send(f->k, f->producer, "T", 0, "yes", "odd");
	asked_wait(f->k, a);
	is(a, RESP_SUCCESS, 23);
	assert_string_equal(asked_bodies(a), "yes");
	asked_free(a);
	asked_free(b);
}

static void the_time_ends_it(void **state)
{
	struct fixture *f = *state;
	int64_t t = clock_mono_us();

	fill(f, "T", 1);
	is(pull(f, "T", 0, 1, "*", 100), RESP_PULL_NOT_FOUND, 1);
	assert_true(clock_mono_us() - t >= 95000);
	assert_int_equal(broker_kit_broker(f->k)->metrics.pulls_expired, 1);
}

/* A step of the wall clock must not end or lengthen a wait. */
static void a_step_of_the_clock_does_not(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	int64_t t;

	fill(f, "T", 1);
	t = clock_mono_us();
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 1, "*", 300);
	broker_kit_settle(f->k);
	clock_shift_wall(3600 * 1000);
	broker_kit_settle(f->k);
	assert_false(a->done);
	clock_shift_wall(-3600 * 1000);
	asked_wait(f->k, a);
	assert_true(clock_mono_us() - t < 10000000);
	asked_free(a);
}

static void the_end_of_the_connection_ends_it(void **state)
{
	struct fixture *f = *state;
	struct conn *c = broker_kit_dial(f->k, false);
	struct asked *a[3];

	fill(f, "T", 1);
	for (int i = 0; i < 3; i++)
		a[i] = kit_pull_later(f->k, c, "g", "T", 0, 1, "*", 15000);
	broker_kit_settle(f->k);
	assert_int_equal(hold_count(hold_of(f)), 3);
	broker_kit_hang_up(f->k, c);
	assert_int_equal(hold_count(hold_of(f)), 0);
	kit_send(f->k, f->producer, "T", 0, "x", NULL); /* nobody waits: nothing happens */
	for (int i = 0; i < 3; i++)
		asked_free(a[i]);
}

static void deleting_the_topic_ends_it(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	fill(f, "T", 1);
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 1, "*", 15000);
	broker_kit_settle(f->k);
	ask(f->k, f->producer, REQ_DELETE_TOPIC_IN_BROKER, (struct mq_str){ 0 }, "topic", "T", NULL);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_TOPIC_NOT_EXIST);
	asked_free(a);
	fill(f, "T", 1); /* begins at 0 again */
	is(pull(f, "T", 0, 0, "*", 0), RESP_SUCCESS, 1);
}

static void a_reset_ends_it_with_the_offset(void **state)
{
	struct fixture *f = *state;
	struct asked *a, *r;

	fill(f, "T", 5);
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 5, "*", 15000);
	broker_kit_settle(f->k);
	r = ask(f->k, f->producer, REQ_INVOKE_BROKER_TO_RESET_OFFSET, (struct mq_str){ 0 }, "topic", "T", "group", "g", "queueId", "0", "offset",
		"2", "timestamp", "0", "isForce", "true", NULL);
	assert_int_equal(r->code, RESP_SUCCESS);
	asked_wait(f->k, a);
	is(a, RESP_PULL_OFFSET_MOVED, 2);
	is(pull(f, "T", 0, 2, "*", 0), RESP_SUCCESS, 5); /* once */
	asked_free(a);
}

static void stopping_answers_all_that_wait(void **state)
{
	struct broker_kit *k = broker_kit_start(NULL);
	struct conn *c = broker_kit_dial(k, false);
	struct asked *a;

	kit_send(k, c, "T", 0, "x", NULL);
	a = kit_pull_later(k, c, "g", "T", 0, 1, "*", 15000);
	broker_kit_settle(k);
	broker_kit_stop(k);
	assert_true(a->done);
	assert_int_equal(a->rc, 0);
	assert_int_equal(a->code, RESP_PULL_NOT_FOUND);
	asked_free(a);
}

static void over_the_limit_pulls_do_not_wait(void **state)
{
	static const char *const props[] = { "maxHeldPulls=2", NULL };
	struct fixture f = { .k = broker_kit_start(props) };
	struct asked *a, *b;

	f.c = f.producer = broker_kit_dial(f.k, false);
	fill(&f, "T", 1);
	a = kit_pull_later(f.k, f.c, "g", "T", 0, 1, "*", 15000);
	b = kit_pull_later(f.k, f.c, "g", "T", 1, 0, "*", 15000);
	is(pull(&f, "T", 0, 1, "*", 15000), RESP_PULL_NOT_FOUND, 1);
	assert_false(a->done || b->done);
	broker_kit_stop(f.k);
	asked_free(a);
	asked_free(b);
}

/* Many rounds with the message a little before, at, or after the pull: none may wait for its time. */
static void no_wake_up_is_lost(void **state)
{
	struct fixture *f = *state;
	unsigned seed = 1;
	int64_t worst = 0;

	fill(f, "T", 1);
	for (int i = 1; i < 2000; i++) {
		struct asked *a = kit_pull_later(f->k, f->c, "g", "T", 0, i, "*", 5000), *s;
		int64_t t;

		for (int turns = rand_r(&seed) % 4; turns > 0; turns--)
			uv_run(broker_kit_loop(f->k), UV_RUN_NOWAIT);
		t = clock_mono_us();
		s = ask_later(f->k, f->producer, REQ_SEND_MESSAGE_V2, MQ_STR("x"), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e", "0",
			      "f", "0", "g", "1", "h", "0", NULL);
		asked_wait(f->k, a);
		t = clock_mono_us() - t;
		worst = t > worst ? t : worst;
		assert_int_equal(a->code, RESP_SUCCESS);
		asked_wait(f->k, s);
		asked_free(a);
		asked_free(s);
	}
	if (worst > 200000)
		fail_msg("one round took %lld us", (long long)worst);
}

static void messages_of_one_turn_come_in_one_answer(void **state)
{
	struct fixture *f = *state;
	struct asked *a, *s[10];

	fill(f, "T", 1);
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 1, "*", 15000);
	broker_kit_settle(f->k);
	for (int i = 0; i < 10; i++)
		s[i] = ask_later(f->k, f->producer, REQ_SEND_MESSAGE_V2, MQ_STR("x"), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e", "0",
				 "f", "0", "g", "1", "h", "0", NULL);
	asked_wait(f->k, a);
	is(a, RESP_SUCCESS, 11);
	for (int i = 0; i < 10; i++) {
		asked_wait(f->k, s[i]);
		asked_free(s[i]);
	}
	asked_free(a);
}

/* ---- What is not on the disk is not shown -------------------------------------------------------------------------------- */

static void sync_flush_shows_a_message_when_it_is_on_the_disk(void **state)
{
	struct fixture *f = *state;
	struct asked *held, *s;

	fill(f, "T", 2);
	held = kit_pull_later(f->k, f->c, "g", "T", 0, 2, "*", 15000);
	broker_kit_settle(f->k);
	broker_kit_block_workers(f->k);
	s = ask_later(f->k, f->producer, REQ_SEND_MESSAGE_V2, MQ_STR("soon"), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e", "0",
		      "f", "0", "g", "1", "h", "0", NULL);
	broker_kit_run(f->k, 100);
	assert_false(held->done || s->done);
	is(pull(f, "T", 0, 2, "*", 0), RESP_PULL_NOT_FOUND, 2);
	is(pull(f, "T", 0, 0, "*", 0), RESP_SUCCESS, 2);
	is(pull(f, "T", 0, 1, "even", 0), RESP_PULL_RETRY_IMMEDIATELY, 2); /* not beyond what is safe, filtered or not */
	assert_int_equal(asked_i64(ask(f->k, f->c, REQ_GET_MAX_OFFSET, (struct mq_str){ 0 }, "topic", "T", "queueId", "0", NULL), "offset"), 2);
	broker_kit_unblock_workers(f->k);
	asked_wait(f->k, held);
	asked_wait(f->k, s);
	assert_string_equal(asked_bodies(held), "soon");
	asked_free(held);
	asked_free(s);
}

/* A pull that comes between the append and the flush waits for the flush, not for another message. */
static void sync_flush_a_late_pull_waits_for_the_disk(void **state)
{
	struct fixture *f = *state;
	struct asked *held, *s;

	fill(f, "T", 1);
	broker_kit_block_workers(f->k);
	s = ask_later(f->k, f->producer, REQ_SEND_MESSAGE_V2, MQ_STR("soon"), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e", "0",
		      "f", "0", "g", "1", "h", "0", NULL);
	broker_kit_settle(f->k);
	held = kit_pull_later(f->k, f->c, "g", "T", 0, 1, "*", 15000);
	broker_kit_settle(f->k);
	assert_false(held->done);
	broker_kit_unblock_workers(f->k);
	asked_wait(f->k, held);
	assert_string_equal(asked_bodies(held), "soon");
	asked_wait(f->k, s);
	asked_free(held);
	asked_free(s);
}

/* ---- Messages on the disk ------------------------------------------------------------------------------------------------- */

static int looks;

static int nothing_in_memory(void *p, size_t n, unsigned char *in)
{
	looks++;
	memset(in, 0, (n + 4095) / 4096);
	return 0;
}

static int setup_old(void **state)
{
	static const char *const props[] = { "mappedFileSizeCommitLog=134217728", NULL };
	struct fixture *f;
	char *body = malloc(LARGE);

	setup_with(state, props);
	f = *state;
	fill(f, "T", 3);
	/* What was written last is taken to be in memory: put so much behind them. */
	memset(body, 'x', LARGE - 1);
	body[LARGE - 1] = 0;
	for (int i = 0; i < LARGE_ENOUGH; i++)
		assert_int_equal(kit_send(f->k, f->producer, "big", 0, body, NULL)->code, RESP_SUCCESS);
	free(body);
	looks = 0;
	sys.mincore = nothing_in_memory;
	return 0;
}

static int teardown_old(void **state)
{
	struct fixture *f = *state;

	sys = sys_real;
	if (f->k)
		return teardown(state);
	free(f);
	return 0;
}

static uint64_t fetched(struct fixture *f)
{
	return broker_kit_broker(f->k)->metrics.pulls_fetched;
}

/* Even when it is still not in memory afterwards (it may have gone again), the second look gets it. */
static void what_is_not_in_memory_is_fetched_by_a_worker(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	broker_kit_block_workers(f->k);
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 0, "*", 0);
	broker_kit_settle(f->k);
	assert_false(a->done);
	assert_int_equal(fetched(f), 1);
	/* Who writes goes on meanwhile, and who reads what is new. */
	assert_int_equal(kit_send(f->k, f->producer, "new", 0, "fresh", NULL)->code, RESP_SUCCESS);
	assert_string_equal(asked_bodies(pull(f, "new", 0, 0, "*", 0)), "fresh");
	assert_false(a->done);
	broker_kit_unblock_workers(f->k);
	asked_wait(f->k, a);
	is(a, RESP_SUCCESS, 1);
	assert_string_equal(asked_bodies(a), "m0");
	assert_int_equal(fetched(f), 1);
	asked_free(a);
}

static void what_is_in_memory_is_answered_at_once(void **state)
{
	struct fixture *f = *state;

	sys.mincore = sys_real.mincore;
	assert_string_equal(asked_bodies(pull(f, "T", 0, 0, "*", 0)), "m0 m1 m2");
	assert_int_equal(fetched(f), 0);
	/* Not asked for again for a while. */
	sys.mincore = nothing_in_memory;
	assert_string_equal(asked_bodies(pull(f, "T", 0, 0, "*", 0)), "m0 m1 m2");
	assert_int_equal(looks, 0);
}

static void what_the_filter_does_not_want_is_not_fetched(void **state)
{
	struct fixture *f = *state;

	is(pull(f, "T", 0, 0, "none", 0), RESP_PULL_RETRY_IMMEDIATELY, 3);
	assert_int_equal(fetched(f), 0);
}

static void a_topic_deleted_meanwhile_is_said(void **state)
{
	struct fixture *f = *state;
	struct asked *a, *deleted;

	broker_kit_block_workers(f->k);
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 0, "*", 0);
	broker_kit_settle(f->k);
	deleted = ask_later(f->k, f->producer, REQ_DELETE_TOPIC_IN_BROKER, MQ_STR(""), "topic", "T", NULL);
	broker_kit_settle(f->k);
	broker_kit_unblock_workers(f->k);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_TOPIC_NOT_EXIST);
	asked_free(a);
	asked_wait(f->k, deleted);
	asked_free(deleted);
}

/* More than run at once, then their connection ends; the stop comes while one is at work. */
static void a_stop_does_not_wait_for_the_disk(void **state)
{
	struct fixture *f = *state;
	struct asked *a[5];

	broker_kit_block_workers(f->k);
	for (int i = 0; i < 5; i++)
		a[i] = kit_pull_later(f->k, i < 3 ? f->c : f->producer, "g", "T", 0, 0, "*", 0);
	broker_kit_settle(f->k);
	assert_int_equal(fetched(f), 5);
	broker_kit_hang_up(f->k, f->c);
	broker_kit_stop(f->k); /* lets the workers go */
	f->k = NULL;
	for (int i = 0; i < 5; i++)
		asked_free(a[i]);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define S(test) cmocka_unit_test_setup_teardown(test, setup_sync, teardown)
#define O(test) cmocka_unit_test_setup_teardown(test, setup_old, teardown_old)
	const struct CMUnitTest tests[] = {
		T(offsets_inside_and_outside_of_the_queue),
		T(tags_are_filtered_by_the_expression),
		T(hashes_in_a_heartbeat_do_not_count),
		T(who_may_not_pull),
		T(no_pulls_on_the_fast_port),
		T(a_message_ends_the_wait),
		T(a_queue_that_never_held_a_message_can_be_waited_on),
		T(a_message_that_is_not_wanted_does_not_end_it_and_is_passed),
		T(the_time_ends_it),
		T(a_step_of_the_clock_does_not),
		T(the_end_of_the_connection_ends_it),
		T(deleting_the_topic_ends_it),
		T(a_reset_ends_it_with_the_offset),
		cmocka_unit_test(stopping_answers_all_that_wait),
		cmocka_unit_test(over_the_limit_pulls_do_not_wait),
		T(no_wake_up_is_lost),
		T(messages_of_one_turn_come_in_one_answer),
		S(sync_flush_shows_a_message_when_it_is_on_the_disk),
		S(sync_flush_a_late_pull_waits_for_the_disk),
		O(what_is_not_in_memory_is_fetched_by_a_worker),
		O(what_is_in_memory_is_answered_at_once),
		O(what_the_filter_does_not_want_is_not_fetched),
		O(a_topic_deleted_meanwhile_is_said),
		O(a_stop_does_not_wait_for_the_disk),
	};

	return cmocka_run_group_tests_name("broker_pull", tests, NULL, NULL);
}
