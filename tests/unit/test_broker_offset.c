/* test_broker_offset.c: where groups stand after things that go wrong elsewhere: resets by time, queues that were emptied, topics that
 * were deleted, pulls that are sent somewhere else; and settings of groups that others keep here. */
#include "broker_life.h"
#include "base/clock.h"
#include "base/str.h"
#include "codec/batch.h"
#include "codec/property.h"
#include "store_kit.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/topic_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })

struct fixture {
	struct life l;
};

static void start(struct fixture *f)
{
	static const char *const props[] = { "mappedFileSizeCommitLog=65536", NULL };

	life_start(&f->l, props);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	*state = f;
	if (life_make(&f->l))
		return -1;
	start(f);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	life_end(&f->l);
	free(f);
	return 0;
}

static void fill(struct fixture *f, const char *topic, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(kit_send(f->l.k, f->l.c, topic, 0, "x", NULL)->code, RESP_SUCCESS);
}

static int64_t search(struct fixture *f, int64_t ms)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", (long long)ms);
	return asked_i64(ask(f->l.k, f->l.c, REQ_SEARCH_OFFSET_BY_TIMESTAMP, NONE, "topic", "T", "queueId", "0", "timestamp", text, NULL), "offset");
}

static int64_t stored(struct fixture *f)
{
	return asked_i64(ask(f->l.k, f->l.c, REQ_QUERY_CONSUMER_OFFSET, NONE, "consumerGroup", "g", "topic", "T", "queueId", "0", NULL), "offset");
}

static void reset(struct fixture *f, int64_t ms)
{
	char text[24];

	snprintf(text, sizeof text, "%lld", (long long)ms);
	ask(f->l.k, f->l.c, REQ_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, MQ_STR("{\"groupName\":\"g\"}"), NULL);
	assert_int_equal(ask(f->l.k, f->l.c, REQ_INVOKE_BROKER_TO_RESET_OFFSET, NONE, "topic", "T", "group", "g", "timestamp", text, "isForce",
			     "true", NULL)->code, RESP_SUCCESS);
}

static struct asked *pull(struct fixture *f, const char *topic, int64_t off)
{
	struct asked *a = kit_pull_later(f->l.k, f->l.c, "g", topic, 0, off, "*", 0);

	asked_wait(f->l.k, a);
	return a;
}

/* ---- By time ----------------------------------------------------------------------------------------------------------------- */

static void a_reset_to_a_time_behind_the_last_message_goes_behind_it(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	fill(f, "T", 10);
	ask(f->l.k, f->l.c, REQ_UPDATE_CONSUMER_OFFSET, NONE, "consumerGroup", "g", "topic", "T", "queueId", "0", "commitOffset", "3", NULL);
	reset(f, clock_wall_ms() + 3600000);
	assert_int_equal(stored(f), 10);
	a = pull(f, "T", 3);
	assert_int_equal(a->code, RESP_PULL_OFFSET_MOVED);
	assert_int_equal(asked_i64(a, "nextBeginOffset"), 10);
	asked_free(a);
	assert_int_equal(kit_send(f->l.k, f->l.c, "T", 0, "new", NULL)->code, RESP_SUCCESS);
	a = pull(f, "T", 10);
	assert_string_equal(asked_bodies(a), "new");
	asked_free(a);
}

static void a_time_that_many_share_means_the_first_of_them(void **state)
{
	struct fixture *f = *state;
	struct mqstore_queue *q;
	struct buf batch = { 0 };
	int64_t ms;

	fill(f, "T", 5);
	broker_kit_run(f->l.k, 5);
	for (int i = 0; i < 32; i++)
		batch_put(&batch, &(struct batch_item){ .body = MQ_STR("b") });
	assert_int_equal(ask(f->l.k, f->l.c, REQ_SEND_BATCH_MESSAGE, buf_view(&batch), "producerGroup", "pg", "topic", "T", "defaultTopic", "TBW102",
			     "defaultTopicQueueNums", "4", "queueId", "0", "sysFlag", "0", "bornTimestamp", "1", "flag", "0", "batch", "true",
			     NULL)->code, RESP_SUCCESS);
	broker_kit_run(f->l.k, 5);
	fill(f, "T", 5);
	q = mqstore_queue(life_broker(&f->l)->store, MQ_STR("T"), 0, false);
	ms = mqstore_time_at(life_broker(&f->l)->store, q, 5);
	assert_int_equal(mqstore_time_at(life_broker(&f->l)->store, q, 36), ms);
	assert_int_equal(search(f, ms), 5);
	assert_int_equal(search(f, ms + 1), 37);
	buf_free(&batch);
}

/* ---- What is gone -------------------------------------------------------------------------------------------------------------- */

static void a_reset_of_an_emptied_queue_goes_to_its_end(void **state)
{
	struct fixture *f = *state;
	static char big[2048];
	struct mqstore_opt limits;
	struct mq_error e;

	memset(big, 'x', sizeof big - 1);
	fill(f, "T", 40);
	for (int i = 0; i < 120; i++)
		kit_send(f->l.k, f->l.c, "U", 0, big, NULL);
	mqstore_defaults(&limits);
	limits.max_total_bytes = 2 * 65536;
	assert_int_equal(mqstore_flush(life_broker(&f->l)->store, &e), 0);
	mqstore_retention(life_broker(&f->l)->store, &limits);
	for (int i = 0; i < 5; i++)
		assert_true(mqstore_trim(life_broker(&f->l)->store, clock_wall_ms(), true, &e) >= 0);
	assert_true(mqstore_log_min(life_broker(&f->l)->store) > 0);
	assert_int_equal(mqstore_queue_min(mqstore_queue(life_broker(&f->l)->store, MQ_STR("T"), 0, false)), 40);
	reset(f, 0);
	assert_int_equal(stored(f), 40);
	assert_int_equal(asked_i64(ask(f->l.k, f->l.c, REQ_GET_MAX_OFFSET, NONE, "topic", "T", "queueId", "0", NULL), "offset"), 40);
}

static void assert_no_topic(struct fixture *f)
{
	struct asked *a = pull(f, "T", 0);

	assert_int_equal(a->code, RESP_TOPIC_NOT_EXIST);
	asked_free(a);
	ask(f->l.k, f->l.c, REQ_GET_MAX_OFFSET, NONE, "topic", "T", "queueId", "0", NULL);
	ask(f->l.k, f->l.c, REQ_GET_MIN_OFFSET, NONE, "topic", "T", "queueId", "0", NULL);
	ask(f->l.k, f->l.c, REQ_GET_EARLIEST_MSG_STORETIME, NONE, "topic", "T", "queueId", "0", NULL);
	ask(f->l.k, f->l.c, REQ_SEARCH_OFFSET_BY_TIMESTAMP, NONE, "topic", "T", "queueId", "0", "timestamp", "0", NULL);
	ask(f->l.k, f->l.c, REQ_GET_TOPIC_STATS_INFO, NONE, "topic", "T", NULL);
	ask(f->l.k, f->l.c, REQ_INVOKE_BROKER_TO_GET_CONSUMER_STATUS, NONE, "topic", "T", "group", "g", NULL);
	ask(f->l.k, f->l.c, REQ_QUERY_CONSUME_QUEUE, NONE, "topic", "T", "queueId", "0", "index", "0", "count", "1", NULL);
	assert_null(topic_table_find(life_broker(&f->l)->topics, MQ_STR("T")));
}

static void looking_at_a_deleted_topic_does_not_bring_it_back(void **state)
{
	struct fixture *f = *state;

	fill(f, "T", 3);
	assert_int_equal(ask(f->l.k, f->l.c, REQ_DELETE_TOPIC_IN_BROKER, NONE, "topic", "T", NULL)->code, RESP_SUCCESS);
	assert_no_topic(f);
	assert_null(mqstore_queue(life_broker(&f->l)->store, MQ_STR("T"), 0, false));
	assert_false(kit_exists(kit_path("%s/store/consumequeue/T", (char *)f->l.dir)));
	broker_kit_stop(f->l.k);
	start(f);
	assert_no_topic(f);
}

/* ---- Who is told ----------------------------------------------------------------------------------------------------------------- */

static void a_pull_that_is_moved_is_told_to_who_watches(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;
	struct asked *a;

	fill(f, "T", 3);
	asked_free(pull(f, "T", 1)); /* one that is not */
	asked_free(pull(f, "T", 5000));
	a = pull(f, "OFFSET_MOVED_EVENT", 0);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "nextBeginOffset"), 1);
	assert_true(mq_message_decode(a->body.p, a->body.n, true, &m) > 0);
	assert_true(str_is(m.body, "{\"consumerGroup\":\"g\",\"messageQueue\":{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"T\"},"
			   "\"offsetNew\":3,\"offsetRequest\":5000}"));
	assert_true(str_is(mq_prop_get(m.props, "TAGS"), "g"));
	assert_true(str_is(mq_prop_get(m.props, "KEYS"), "g"));
	asked_free(a);
	assert_int_equal(asked_i64(ask(f->l.k, f->l.c, REQ_GET_MAX_OFFSET, NONE, "topic", "OFFSET_MOVED_EVENT", "queueId", "0", NULL), "offset"), 1);
}

/* compat: the broker itself goes by the levels; a proxy asks for the policy and goes by it. */
static void the_retry_policy_of_a_group_is_kept_for_the_proxy(void **state)
{
	static const char *const policies[] = {
		"{\"exponentialRetryPolicy\":{\"initial\":5000,\"max\":7200000,\"multiplier\":2},\"type\":\"EXPONENTIAL\"}",
		"{\"customizedRetryPolicy\":{\"next\":[1000,5000,10000]},\"type\":\"CUSTOMIZED\"}",
	};
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++) {
		char json[400];
		struct asked *a;

		snprintf(json, sizeof json, "{\"groupName\":\"g%d\",\"groupRetryPolicy\":%s,\"retryMaxTimes\":7}", i, policies[i]);
		assert_int_equal(ask(f->l.k, f->l.c, REQ_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, str_of(json), NULL)->code, RESP_SUCCESS);
		a = ask(f->l.k, f->l.c, REQ_GET_SUBSCRIPTIONGROUP_CONFIG, NONE, "group", i ? "g1" : "g0", NULL);
		assert_int_equal(a->code, RESP_SUCCESS);
		buf_char(&a->body, 0);
		assert_non_null(strstr(a->body.p, policies[i]));
	}
	broker_kit_stop(f->l.k);
	start(f);
	for (int i = 0; i < 2; i++) {
		struct asked *a = ask(f->l.k, f->l.c, REQ_GET_SUBSCRIPTIONGROUP_CONFIG, NONE, "group", i ? "g1" : "g0", NULL);

		buf_char(&a->body, 0);
		assert_non_null(strstr(a->body.p, policies[i]));
		assert_non_null(strstr(a->body.p, "\"retryMaxTimes\":7"));
	}
}

static void a_group_that_wants_no_notices_gets_none(void **state)
{
	struct fixture *f = *state;
	struct conn *other = broker_kit_dial(f->l.k, false);

	ask(f->l.k, f->l.c, REQ_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
	    MQ_STR("{\"groupName\":\"quiet\",\"notifyConsumerIdsChangedEnable\":false}"), NULL);
	kit_heartbeat(f->l.k, f->l.c, "c1", "quiet", "T", "*");
	kit_heartbeat(f->l.k, other, "c2", "quiet", "T", "*");
	broker_kit_run(f->l.k, 300);
	assert_int_equal(broker_kit_called(f->l.k, REQ_NOTIFY_CONSUMER_IDS_CHANGED), 0);
	kit_heartbeat(f->l.k, f->l.c, "c1", "loud", "T", "*");
	kit_heartbeat(f->l.k, other, "c2", "loud", "T", "*");
	for (int i = 0; i < 400 && !broker_kit_called(f->l.k, REQ_NOTIFY_CONSUMER_IDS_CHANGED); i++)
		broker_kit_run(f->l.k, 10);
	assert_true(broker_kit_called(f->l.k, REQ_NOTIFY_CONSUMER_IDS_CHANGED) > 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reset_to_a_time_behind_the_last_message_goes_behind_it),
		TEST(a_time_that_many_share_means_the_first_of_them),
		TEST(a_reset_of_an_emptied_queue_goes_to_its_end),
		TEST(looking_at_a_deleted_topic_does_not_bring_it_back),
		TEST(a_pull_that_is_moved_is_told_to_who_watches),
		TEST(the_retry_policy_of_a_group_is_kept_for_the_proxy),
		TEST(a_group_that_wants_no_notices_gets_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
