/* test_broker_retry.c: messages that consumers send back, dead letters, what the settings of a group say of them, and locks of
 * queues, asked of a whole broker. */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/str.h"
#include "codec/property.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/group_table.h"
#include "../../bin/broker/topic_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define NONE ((struct mq_str){ 0 })
#define RETRY "%RETRY%g"
#define DLQ "%DLQ%g"

struct fixture {
	struct broker_kit *k;
	struct conn *c;
};

static int setup_with(void **state, const char *const *props)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->k = broker_kit_start(props);
	f->c = broker_kit_dial(f->k, false);
	*state = f;
	return 0;
}

/* Levels 1 to 5: the third is the one of a first retry. */
static int setup(void **state)
{
	static const char *const props[] = { "messageDelayLevel=10ms 20ms 150ms 1h 2h", NULL };

	return setup_with(state, props);
}

static int setup_sync(void **state)
{
	static const char *const props[] = { "flushDiskType=SYNC_FLUSH", "flushIntervalCommitLog=600000", "syncFlushTimeout=200",
					     "messageDelayLevel=10ms", NULL };

	return setup_with(state, props);
}

static int setup_no_groups(void **state)
{
	static const char *const props[] = { "autoCreateSubscriptionGroup=false", NULL };

	return setup_with(state, props);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	broker_kit_stop(f->k);
	free(f);
	return 0;
}

static struct broker *broker(struct fixture *f)
{
	return broker_kit_broker(f->k);
}

static struct asked *send_back(struct fixture *f, int64_t log_off, int level, const char *max)
{
	char off[24], lvl[16];

	snprintf(off, sizeof off, "%lld", (long long)log_off);
	snprintf(lvl, sizeof lvl, "%d", level);
	return ask(f->k, f->c, REQ_CONSUMER_SEND_MSG_BACK, NONE, "offset", off, "group", "g", "delayLevel", lvl, "originMsgId", "ignored",
		   "originTopic", "T", "unitMode", "false", max ? "maxReconsumeTimes" : NULL, max, NULL);
}

/* A message of topic T, and where it lies. */
static struct mq_message sent(struct fixture *f, const char *body)
{
	char props[] = "KEYS\001k\002TAGS\001tag\002UNIQ_KEY\001U1\002WAIT\001true\002mine\001yes\002";
	struct asked *a = ask(f->k, f->c, REQ_SEND_MESSAGE_V2, str_of(body), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e", "1", "f", "0",
			      "g", "1700000000000", "h", "7", "i", props, NULL);

	assert_int_equal(a->code, RESP_SUCCESS);
	return kit_look(f->k, "T", 1, asked_i64(a, "queueOffset"));
}

static void set_group(struct fixture *f, const char *json)
{
	assert_int_equal(ask(f->k, f->c, REQ_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, str_of(json), NULL)->code, RESP_SUCCESS);
}

/* ---- Again, later ---------------------------------------------------------------------------------------------------------- */

static void what_is_sent_back_comes_again_as_itself(void **state)
{
	struct fixture *f = *state;
	struct mq_message was = sent(f, "bad"), m;
	char id[MQ_ID_TEXT], topic[8] = "";

	id[mq_offset_id(&was.store_host, was.log_off, id)] = 0;
	assert_int_equal(send_back(f, was.log_off, 1, NULL)->code, RESP_SUCCESS);
	m = kit_look(f->k, "SCHEDULE_TOPIC_XXXX", 0, 0);
	assert_int_equal(m.reconsume_times, 1);
	kit_await(f->k, RETRY, 0, 1);
	m = kit_look(f->k, RETRY, 0, 0);
	assert_true(str_is(m.body, "bad"));
	assert_int_equal(m.reconsume_times, 1);
	assert_int_equal(m.flag, 7);
	assert_int_equal(m.born_ms, 1700000000000);
	assert_int_equal(m.born_host.port, was.born_host.port);
	assert_prop(m.props, "RETRY_TOPIC", "T");
	assert_prop(m.props, "ORIGIN_MESSAGE_ID", id);
	assert_prop(m.props, "DELAY", "1");
	assert_prop(m.props, "REAL_TOPIC", RETRY);
	assert_prop(m.props, "REAL_QID", "0");
	assert_prop(m.props, "WAIT", "false");
	assert_prop(m.props, "UNIQ_KEY", "U1");
	assert_prop(m.props, "KEYS", "k");
	assert_prop(m.props, "TAGS", "tag");
	assert_prop(m.props, "mine", "yes");
	assert_prop(m.props, "CLUSTER", "C");

	/* And once more: what the first time wrote stays, or is replaced. */
	assert_int_equal(send_back(f, m.log_off, 2, NULL)->code, RESP_SUCCESS);
	kit_await(f->k, RETRY, 0, 2);
	m = kit_look(f->k, RETRY, 0, 1);
	assert_int_equal(m.reconsume_times, 2);
	assert_prop(m.props, "RETRY_TOPIC", "T");
	assert_prop(m.props, "ORIGIN_MESSAGE_ID", id);
	assert_prop(m.props, "DELAY", "2");
	snprintf(topic, sizeof topic, "%d", topic_table_find(broker(f)->topics, MQ_STR(RETRY))->conf.perm);
	assert_string_equal(topic, "6");
}

static void the_broker_waits_longer_with_each_try(void **state)
{
	struct fixture *f = *state;
	struct mq_message m = sent(f, "x");

	assert_int_equal(send_back(f, m.log_off, 0, NULL)->code, RESP_SUCCESS);
	assert_int_equal(kit_stored(f->k, "SCHEDULE_TOPIC_XXXX", 2), 1); /* level 3 */
	kit_await(f->k, RETRY, 0, 1);
	assert_int_equal(send_back(f, kit_look(f->k, RETRY, 0, 0).log_off, 0, NULL)->code, RESP_SUCCESS);
	assert_int_equal(kit_stored(f->k, "SCHEDULE_TOPIC_XXXX", 3), 1); /* level 4 */
}

/* An answer tells the consumer that it may count the message as done: then it must be there after a power cut. */
static void the_answer_waits_for_the_disk(void **state)
{
	struct fixture *f = *state;
	struct mq_message m = sent(f, "x");
	struct asked *a;
	char off[24];

	assert_int_equal(send_back(f, m.log_off, 1, NULL)->code, RESP_SUCCESS);
	assert_true(mqstore_flushed(broker(f)->store) >= kit_look(f->k, "SCHEDULE_TOPIC_XXXX", 0, 0).log_off);
	broker_kit_settle(f->k);
	broker_kit_block_workers(f->k);
	snprintf(off, sizeof off, "%lld", (long long)m.log_off);
	a = ask_later(f->k, f->c, REQ_CONSUMER_SEND_MSG_BACK, NONE, "offset", off, "group", "g", "delayLevel", "1", NULL);
	broker_kit_run(f->k, 50);
	assert_false(a->done);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_SYSTEM_ERROR); /* not in time */
	broker_kit_unblock_workers(f->k);
	asked_free(a);
}

/* ---- Given up -------------------------------------------------------------------------------------------------------------- */

static void after_its_last_try_it_is_a_dead_letter(void **state)
{
	struct fixture *f = *state;
	struct mq_message was = sent(f, "poison"), m;

	assert_int_equal(send_back(f, was.log_off, 1, "1")->code, RESP_SUCCESS);
	kit_await(f->k, RETRY, 0, 1);
	assert_int_equal(send_back(f, kit_look(f->k, RETRY, 0, 0).log_off, 1, "1")->code, RESP_SUCCESS);
	m = kit_look(f->k, DLQ, 0, 0); /* at once */
	assert_true(str_is(m.body, "poison"));
	assert_int_equal(m.reconsume_times, 2);
	assert_prop(m.props, "RETRY_TOPIC", "T");
	assert_prop(m.props, "UNIQ_KEY", "U1");
	assert_prop(m.props, "DELAY", NULL);
	assert_int_equal(topic_table_find(broker(f)->topics, MQ_STR(DLQ))->conf.perm, 6);
	assert_int_equal(broker(f)->metrics.dead_letters, 1);
	broker_kit_run(f->k, 100);
	assert_int_equal(kit_stored(f->k, RETRY, 0), 1);
}

static void a_negative_level_gives_up_at_once(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(send_back(f, sent(f, "x").log_off, -1, "16")->code, RESP_SUCCESS);
	assert_int_equal(kit_look(f->k, DLQ, 0, 0).reconsume_times, 1);
}

/* Readable by whoever subscribes to it, and what fails there goes on to that group's own dead letters. */
static void dead_letters_are_read_and_fail_like_any_topic(void **state)
{
	struct fixture *f = *state;
	struct asked *pull;
	struct mq_message m;

	send_back(f, sent(f, "x").log_off, -1, NULL);
	pull = kit_pull_later(f->k, f->c, "fixer", DLQ, 0, 0, "*", 0);
	asked_wait(f->k, pull);
	assert_string_equal(asked_bodies(pull), "x");
	m = kit_look(f->k, DLQ, 0, 0);
	{
		char off[24];

		snprintf(off, sizeof off, "%lld", (long long)m.log_off);
		assert_int_equal(ask(f->k, f->c, REQ_CONSUMER_SEND_MSG_BACK, NONE, "offset", off, "group", "fixer", "delayLevel", "-1", NULL)->code,
				 RESP_SUCCESS);
	}
	assert_prop(kit_look(f->k, "%DLQ%fixer", 0, 0).props, "RETRY_TOPIC", "T");
	assert_int_equal(kit_stored(f->k, DLQ, 0), 1);
	asked_free(pull);
}

/* ---- Settings of the group ------------------------------------------------------------------------------------------------- */

static void the_group_says_how_often(void **state)
{
	struct fixture *f = *state;
	struct mq_message m = sent(f, "x");

	set_group(f, "{\"groupName\":\"g\",\"retryMaxTimes\":0}");
	send_back(f, m.log_off, 1, NULL);
	assert_int_equal(kit_stored(f->k, DLQ, 0), 1);
	send_back(f, m.log_off, 1, "5"); /* the client knows better */
	assert_int_equal(kit_stored(f->k, DLQ, 0), 1);
	assert_int_equal(kit_stored(f->k, "SCHEDULE_TOPIC_XXXX", 0), 1);
}

static void the_group_says_to_how_many_queues(void **state)
{
	struct fixture *f = *state;
	struct mq_message m = sent(f, "x");

	send_back(f, m.log_off, 1, NULL);
	assert_int_equal(topic_table_find(broker(f)->topics, MQ_STR(RETRY))->conf.read, 1);
	set_group(f, "{\"groupName\":\"g\",\"retryQueueNums\":3}");
	for (int i = 0; i < 6; i++)
		send_back(f, m.log_off, 1, NULL);
	assert_int_equal(topic_table_find(broker(f)->topics, MQ_STR(RETRY))->conf.read, 3);
	for (int64_t end = clock_mono_us() + 10000000; broker(f)->metrics.delayed_out < 7; broker_kit_run(f->k, 5))
		assert_true(clock_mono_us() < end);
	for (int i = 0; i < 3; i++)
		assert_true(kit_stored(f->k, RETRY, i) >= 2);
}

static void a_group_without_retry_queues_wants_nothing_again(void **state)
{
	struct fixture *f = *state;
	struct mq_message m = sent(f, "x");
	int64_t end = mqstore_log_max(broker(f)->store);

	set_group(f, "{\"groupName\":\"g\",\"retryQueueNums\":0}");
	assert_int_equal(send_back(f, m.log_off, 1, NULL)->code, RESP_SUCCESS);
	assert_int_equal(mqstore_log_max(broker(f)->store), end);
}

/* ---- Refused --------------------------------------------------------------------------------------------------------------- */

static void refused(struct asked *a, int code, const char *words)
{
	if (a->code != code || !strstr(a->remark.p, words))
		fail_msg("code %d '%s', not %d '...%s...'", a->code, a->remark.p, code, words);
}

static void what_cannot_be_sent_back_is_refused_with_a_reason(void **state)
{
	struct fixture *f = *state;
	struct mq_message m = sent(f, "x");
	const int64_t wrong[] = { m.log_off + 1, mqstore_log_max(broker(f)->store), -1, INT64_MAX };
	struct topic *t;

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		refused(send_back(f, wrong[i], 1, NULL), RESP_SYSTEM_ERROR, "look message by offset failed");
	t = topic_table_find(broker(f)->topics, MQ_STR(RETRY));
	t->conf.perm = PERM_READ;
	refused(send_back(f, m.log_off, 1, NULL), RESP_NO_PERMISSION, "the topic[" RETRY "]");
	t->conf.perm = PERM_WRITE; /* reading it is not asked about */
	assert_int_equal(send_back(f, m.log_off, 1, NULL)->code, RESP_SUCCESS);
	broker(f)->conf->brokerPermission = PERM_READ;
	refused(send_back(f, m.log_off, 1, NULL), RESP_NO_PERMISSION, "the broker[127.0.0.1]");
	broker(f)->conf->brokerPermission = 6;
}

static void an_unknown_group_is_refused(void **state)
{
	struct fixture *f = *state;

	refused(send_back(f, 0, 1, NULL), RESP_SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group not exist, g");
}

/* ---- Locks ----------------------------------------------------------------------------------------------------------------- */

static struct asked *lock(struct fixture *f, int32_t code, const char *client, const char *queues)
{
	char body[512];

	snprintf(body, sizeof body, "{\"clientId\":\"%s\",\"consumerGroup\":\"g\",\"mqSet\":[%s],\"onlyThisBroker\":false}", client, queues);
	return ask(f->k, f->c, code, str_of(body), NULL);
}

#define Q0 "{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"T\"}"
#define Q1 "{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}"

static void assert_body(const struct asked *a, const char *want)
{
	assert_int_equal(a->code, RESP_SUCCESS);
	if (!str_is(buf_view(&a->body), want))
		fail_msg("'%.*s', not '%s'", (int)a->body.n, a->body.p, want);
}

static void locks_are_granted_refused_and_given_back(void **state)
{
	struct fixture *f = *state;

	assert_body(lock(f, REQ_LOCK_BATCH_MQ, "one", Q0), "{\"lockOKMQSet\":[" Q0 "]}");
	assert_body(lock(f, REQ_LOCK_BATCH_MQ, "two", Q0 "," Q1), "{\"lockOKMQSet\":[" Q1 "]}");
	assert_body(lock(f, REQ_UNLOCK_BATCH_MQ, "two", Q0), "");
	assert_body(lock(f, REQ_LOCK_BATCH_MQ, "two", Q0), "{\"lockOKMQSet\":[]}");
	assert_body(lock(f, REQ_UNLOCK_BATCH_MQ, "one", Q0), "");
	assert_body(lock(f, REQ_LOCK_BATCH_MQ, "two", Q0), "{\"lockOKMQSet\":[" Q0 "]}");
	assert_int_equal(ask(f->k, f->c, REQ_LOCK_BATCH_MQ, MQ_STR("rubbish"), NULL)->code, RESP_SYSTEM_ERROR);
	assert_body(ask(f->k, f->c, REQ_LOCK_BATCH_MQ, MQ_STR("{}"), NULL), "{\"lockOKMQSet\":[]}");
}

static struct asked *send_retry(struct fixture *f, const char *times, const char *max)
{
	return ask(f->k, f->c, REQ_SEND_MESSAGE_V2, MQ_STR("r"), "a", "CLIENT_INNER_PRODUCER", "b", RETRY, "c", "TBW102", "d", "4", "e", "0", "f",
		   "0", "g", "1", "h", "0", "i", "DELAY\0011\002RETRY_TOPIC\001T\002", "j", times, max ? "l" : NULL, max, NULL);
}

/* An ordered consumer tries again by itself, and sends on only what it has given up. */
static void a_retry_of_a_group_in_order_is_a_dead_letter(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(send_retry(f, "1", "16")->code, RESP_SUCCESS);
	kit_await(f->k, RETRY, 0, 1);
	lock(f, REQ_LOCK_BATCH_MQ, "one", Q0);
	assert_int_equal(send_retry(f, "1", "16")->code, RESP_SUCCESS);
	assert_prop(kit_look(f->k, DLQ, 0, 0).props, "DELAY", NULL);
	lock(f, REQ_UNLOCK_BATCH_MQ, "one", Q0);
	assert_int_equal(send_retry(f, "1", "16")->code, RESP_SUCCESS);
	kit_await(f->k, RETRY, 0, 2);
	assert_int_equal(kit_stored(f->k, DLQ, 0), 1);
}

/* Go always says how often, and 0 by default. */
static void the_limit_of_a_retry_send_is_the_clients(void **state)
{
	struct fixture *f = *state;

	send_retry(f, "1", "0");
	assert_int_equal(kit_stored(f->k, DLQ, 0), 1);
	send_retry(f, "16", NULL);
	assert_int_equal(kit_stored(f->k, DLQ, 0), 1);
	send_retry(f, "17", NULL);
	assert_int_equal(kit_stored(f->k, DLQ, 0), 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_is_sent_back_comes_again_as_itself),
		T(the_broker_waits_longer_with_each_try),
		cmocka_unit_test_setup_teardown(the_answer_waits_for_the_disk, setup_sync, teardown),
		T(after_its_last_try_it_is_a_dead_letter),
		T(a_negative_level_gives_up_at_once),
		T(dead_letters_are_read_and_fail_like_any_topic),
		T(the_group_says_how_often),
		T(the_group_says_to_how_many_queues),
		T(a_group_without_retry_queues_wants_nothing_again),
		T(what_cannot_be_sent_back_is_refused_with_a_reason),
		cmocka_unit_test_setup_teardown(an_unknown_group_is_refused, setup_no_groups, teardown),
		T(locks_are_granted_refused_and_given_back),
		T(a_retry_of_a_group_in_order_is_a_dead_letter),
		T(the_limit_of_a_retry_send_is_the_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
