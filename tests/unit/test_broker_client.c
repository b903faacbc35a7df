/* test_broker_client.c: members of groups and their notices; offsets of groups. */
#include "broker_kit.h"
#include "base/clock.h"
#include "base/str.h"
#include "tempdir.h"
#include "../../bin/broker/broker.h"
#include "../../bin/broker/client_table.h"
#include "../../bin/broker/offset_table.h"
#include "../../bin/broker/topic_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

struct fixture {
	struct broker_kit *k;
	struct broker *b;
	struct conn *c;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->k = broker_kit_start(NULL);
	f->b = broker_kit_broker(f->k);
	f->c = broker_kit_dial(f->k, false);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	broker_kit_stop(f->k);
	free(f);
	return 0;
}

static const char *members(struct fixture *f, const char *group)
{
	static char text[4096];
	struct asked *a = ask(f->k, f->c, REQ_GET_CONSUMER_LIST_BY_GROUP, (struct mq_str){ 0 }, "consumerGroup", group, NULL);

	if (a->code != RESP_SUCCESS)
		snprintf(text, sizeof text, "code %d %s", a->code, a->remark.p);
	else
		snprintf(text, sizeof text, MQ_STR_FMT, (int)a->body.n, a->body.p);
	return text;
}

/* ---- Members -------------------------------------------------------------------------------------------------------------- */

static void a_heartbeat_makes_group_retry_topic_and_member(void **state)
{
	struct fixture *f = *state;
	struct asked *a = kit_heartbeat(f->k, f->c, "one", "g", "T", "*");
	struct topic *retry;

	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(asked_get(a, "IS_SUPPORT_HEART_BEAT_V2"), "true");
	assert_string_equal(asked_get(a, "IS_SUB_CHANGE"), "true");
	retry = topic_table_find(f->b->topics, MQ_STR("%RETRY%g"));
	assert_non_null(retry);
	assert_int_equal(retry->conf.read, 1);
	assert_int_equal(retry->conf.perm, 6);
	assert_string_equal(members(f, "g"), "{\"consumerIdList\":[\"one\"]}");
	assert_non_null(strstr(members(f, "other"), "no consumer for this group, other"));
}

static void bad_heartbeats(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f->k, f->c, REQ_HEART_BEAT, (struct mq_str){ 0 }, NULL)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_HEART_BEAT, MQ_STR("{"), NULL)->code, RESP_SYSTEM_ERROR);
	assert_int_equal(ask(f->k, f->c, REQ_HEART_BEAT, MQ_STR("{\"consumerDataSet\":[]}"), NULL)->code, RESP_SYSTEM_ERROR);
	/* A name that no group can have is left out; the rest of the heartbeat counts. */
	assert_int_equal(ask(f->k, f->c, REQ_HEART_BEAT, MQ_STR("{\"clientID\":\"c\",\"consumerDataSet\":[{\"groupName\":\"a b\"},"
		"{\"groupName\":\"good\"}],\"producerDataSet\":[{\"groupName\":\"x/y\"},{\"groupName\":\"pg\"}]}"), NULL)->code, RESP_SUCCESS);
	assert_null(client_table_consumers(f->b->clients, MQ_STR("a b")));
	assert_null(client_table_producers(f->b->clients, MQ_STR("x/y")));
	assert_non_null(client_table_producers(f->b->clients, MQ_STR("pg")));
	assert_string_equal(members(f, "good"), "{\"consumerIdList\":[\"c\"]}");
}

static void a_client_on_two_connections_is_one_member(void **state)
{
	struct fixture *f = *state;
	struct conn *again = broker_kit_dial(f->k, false);

	kit_heartbeat(f->k, f->c, "one", "g", "T", "*");
	kit_heartbeat(f->k, again, "one", "g", "T", "*");
	assert_string_equal(members(f, "g"), "{\"consumerIdList\":[\"one\"]}");
}

static void members_are_told_of_who_comes_and_goes(void **state)
{
	struct fixture *f = *state;
	struct conn *two = broker_kit_dial(f->k, false), *three = broker_kit_dial(f->k, false);
	int before;

	kit_heartbeat(f->k, f->c, "one", "g", "T", "*");
	broker_kit_run(f->k, 600);
	before = broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED);
	kit_heartbeat(f->k, two, "two", "g", "T", "*");
	broker_kit_settle(f->k);
	assert_int_equal(broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED), before + 2); /* both, at once */
	kit_heartbeat(f->k, two, "two", "g", "T", "*");
	broker_kit_run(f->k, 600);
	assert_int_equal(broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED), before + 2); /* nothing new */
	kit_heartbeat(f->k, three, "three", "g", "T", "*");
	broker_kit_run(f->k, 600);
	before = broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED);
	broker_kit_hang_up(f->k, three);    /* Go clients only close */
	assert_int_equal(broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED), before + 2);
	assert_string_equal(members(f, "g"), "{\"consumerIdList\":[\"one\",\"two\"]}");
	broker_kit_run(f->k, 600);
	ask(f->k, two, REQ_UNREGISTER_CLIENT, (struct mq_str){ 0 }, "clientID", "two", "consumerGroup", "g", "producerGroup", "", NULL);
	broker_kit_settle(f->k);
	assert_int_equal(broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED), before + 3);
	assert_string_equal(members(f, "g"), "{\"consumerIdList\":[\"one\"]}");
}

static void a_changed_expression_is_taken_and_not_told(void **state)
{
	struct fixture *f = *state;
	int before;

	kit_heartbeat(f->k, f->c, "one", "g", "T", "A");
	broker_kit_run(f->k, 600);
	before = broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED);
	ask(f->k, f->c, REQ_HEART_BEAT, MQ_STR("{\"clientID\":\"one\",\"consumerDataSet\":[{\"groupName\":\"g\",\"subscriptionDataSet\":["
	    "{\"topic\":\"T\",\"subString\":\"B\",\"subVersion\":2}]}]}"), NULL);
	broker_kit_settle(f->k);
	assert_string_equal(client_group_sub(client_table_consumers(f->b->clients, MQ_STR("g")), MQ_STR("T"))->expr, "B");
	assert_int_equal(broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED), before);
	ask(f->k, f->c, REQ_HEART_BEAT, MQ_STR("{\"clientID\":\"one\",\"consumerDataSet\":[{\"groupName\":\"g\",\"subscriptionDataSet\":["
	    "{\"topic\":\"U\",\"subString\":\"*\",\"subVersion\":2}]}]}"), NULL);
	broker_kit_settle(f->k);
	assert_int_equal(broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED), before + 1); /* T went, U came */
	assert_null(client_group_sub(client_table_consumers(f->b->clients, MQ_STR("g")), MQ_STR("T")));
}

/* 200 clients that start at once: each gets at most two notices a second. */
static void a_storm_of_joins_makes_few_notices(void **state)
{
	enum { CLIENTS = 200 };
	struct fixture *f = *state;
	struct conn *c[CLIENTS];
	char name[16];

	for (int i = 0; i < CLIENTS; i++) {
		c[i] = broker_kit_dial(f->k, false);
		snprintf(name, sizeof name, "c%d", i);
		kit_heartbeat(f->k, c[i], name, "g", "T", "*");
	}
	broker_kit_run(f->k, 1100);
	assert_in_range(broker_kit_called(f->k, REQ_NOTIFY_CONSUMER_IDS_CHANGED), CLIENTS, 4 * CLIENTS);
	assert_true(f->b->metrics.notices_merged > CLIENTS / 2);
}

/* Groups that live for one connection leave nothing behind. */
static void many_short_lives_leave_empty_tables(void **state)
{
	struct fixture *f = *state;
	char body[256];

	for (int i = 0; i < 300; i++) {
		struct conn *c = broker_kit_dial(f->k, false);

		snprintf(body, sizeof body, "{\"clientID\":\"c%d\",\"producerDataSet\":[{\"groupName\":\"pg%d\"}]}", i, i);
		ask(f->k, c, REQ_HEART_BEAT, str_of(body), NULL);
		conn_close(c);
	}
	broker_kit_run(f->k, 200);
	assert_null(f->b->clients->producers);
	assert_null(f->b->clients->consumers);
	assert_int_equal(f->b->metrics.conns_closed, 300);
}

/* A client that hangs without closing its connection: the others get its queues. */
static void members_without_heartbeat_expire(void **state)
{
	static const char *const props[] = { "channelExpiredTimeout=1000", NULL };
	struct fixture f = { .k = broker_kit_start(props) };
	struct conn *dead;

	f.b = broker_kit_broker(f.k);
	f.c = broker_kit_dial(f.k, false);
	dead = broker_kit_dial(f.k, false);
	kit_heartbeat(f.k, dead, "dead", "g", "T", "*");
	for (int i = 0; i < 4; i++) {
		kit_heartbeat(f.k, f.c, "alive", "g", "T", "*");
		broker_kit_run(f.k, 400);
	}
	assert_string_equal(members(&f, "g"), "{\"consumerIdList\":[\"alive\"]}");
	assert_int_equal(f.b->metrics.clients_expired, 1);
	assert_int_equal(f.b->metrics.conns_expired_closed, 1);
	broker_kit_stop(f.k);
}

/* ---- Offsets --------------------------------------------------------------------------------------------------------------- */

static void commit(struct fixture *f, const char *topic, int queue, const char *off, int code)
{
	char id[16];
	struct asked *a;

	snprintf(id, sizeof id, "%d", queue);
	a = ask(f->k, f->c, REQ_UPDATE_CONSUMER_OFFSET, (struct mq_str){ 0 }, "consumerGroup", "g", "topic", topic, "queueId", id,
		"commitOffset", off, NULL);
	assert_int_equal(a->code, code);
}

static int64_t stored(struct fixture *f, const char *topic, int queue)
{
	char id[16];
	struct asked *a;

	snprintf(id, sizeof id, "%d", queue);
	a = ask(f->k, f->c, REQ_QUERY_CONSUMER_OFFSET, (struct mq_str){ 0 }, "consumerGroup", "g", "topic", topic, "queueId", id, NULL);
	return a->code == RESP_SUCCESS ? asked_i64(a, "offset") : -a->code;
}

static void a_new_group_begins_at_0_on_a_young_topic(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(stored(f, "T", 0), -RESP_QUERY_NOT_FOUND);
	kit_send(f->k, f->c, "T", 0, "x", NULL);
	assert_int_equal(stored(f, "T", 0), 0);
	assert_int_equal(stored(f, "T", 1), -RESP_QUERY_NOT_FOUND);     /* empty queue */
	assert_int_equal(ask(f->k, f->c, REQ_QUERY_CONSUMER_OFFSET, (struct mq_str){ 0 }, "consumerGroup", "g", "topic", "T", "queueId", "0",
			     "setZeroIfNotFound", "false", NULL)->code, RESP_QUERY_NOT_FOUND);
}

static void offsets_that_cannot_be_are_ignored(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++)
		kit_send(f->k, f->c, "T", 0, "x", NULL);
	commit(f, "T", 0, "3", RESP_SUCCESS);
	assert_int_equal(stored(f, "T", 0), 3);
	commit(f, "T", 0, "-1", RESP_SUCCESS);  /* ali-ons, Go: not begun */
	commit(f, "T", 0, "6", RESP_SUCCESS);
	commit(f, "T", 70000, "1", RESP_SUCCESS);
	commit(f, "T", -1, "1", RESP_SUCCESS);
	assert_int_equal(stored(f, "T", 0), 3);
	assert_int_equal(f->b->metrics.offset_commits_ignored, 4);
	commit(f, "T", 0, "5", RESP_SUCCESS);
	commit(f, "T", 0, "2", RESP_SUCCESS);   /* going back is allowed */
	assert_int_equal(stored(f, "T", 0), 2);
	commit(f, "U", 0, "0", RESP_TOPIC_NOT_EXIST);
}

static void a_pull_carries_progress_along(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 5; i++)
		kit_send(f->k, f->c, "T", 0, "x", NULL);
	ask(f->k, f->c, REQ_PULL_MESSAGE, (struct mq_str){ 0 }, "consumerGroup", "g", "topic", "T", "queueId", "0", "queueOffset", "5",
	    "maxMsgNums", "1", "sysFlag", "5", "commitOffset", "4", "suspendTimeoutMillis", "0", "subVersion", "0", "subscription", "*", NULL);
	assert_int_equal(stored(f, "T", 0), 4);
}

static void while_a_reset_waits_commits_do_nothing(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	for (int i = 0; i < 5; i++)
		kit_send(f->k, f->c, "T", 0, "x", NULL);
	commit(f, "T", 0, "5", RESP_SUCCESS);
	offset_table_reset(f->b->offsets, MQ_STR("T"), MQ_STR("g"), 0, 1);
	commit(f, "T", 0, "5", RESP_SUCCESS);
	assert_int_equal(stored(f, "T", 0), 1);
	a = kit_pull_later(f->k, f->c, "g", "T", 0, 5, "*", 0);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_PULL_OFFSET_MOVED);
	asked_free(a);
	commit(f, "T", 0, "2", RESP_SUCCESS);
	assert_int_equal(stored(f, "T", 0), 2);
}

static void offsets_are_saved_now_and_then(void **state)
{
	static const char *const props[] = { "flushConsumerOffsetInterval=50", NULL };
	struct fixture f = { .k = broker_kit_start(props) };
	char *text, *path = strdup(tempdir_path((void *)broker_kit_dir(f.k), "store/config/consumerOffset.json"));

	f.b = broker_kit_broker(f.k);
	f.c = broker_kit_dial(f.k, false);
	kit_send(f.k, f.c, "T", 2, "x", NULL);
	broker_kit_run(f.k, 200);
	assert_null(tempdir_read(path)); /* nothing to save */
	commit(&f, "T", 2, "1", RESP_SUCCESS);
	for (int64_t end = clock_mono_us() + 20000000; !(text = tempdir_read(path)); broker_kit_run(f.k, 20))
		assert_true(clock_mono_us() < end);
	assert_non_null(strstr(text, "\"T@g\":{\"2\":1}"));
	free(text);
	free(path);
	broker_kit_stop(f.k);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_heartbeat_makes_group_retry_topic_and_member),
		T(bad_heartbeats),
		T(a_client_on_two_connections_is_one_member),
		T(members_are_told_of_who_comes_and_goes),
		T(a_changed_expression_is_taken_and_not_told),
		T(a_storm_of_joins_makes_few_notices),
		T(many_short_lives_leave_empty_tables),
		cmocka_unit_test(members_without_heartbeat_expire),
		T(a_new_group_begins_at_0_on_a_young_topic),
		T(offsets_that_cannot_be_are_ignored),
		T(a_pull_carries_progress_along),
		T(while_a_reset_waits_commits_do_nothing),
		cmocka_unit_test(offsets_are_saved_now_and_then),
	};

	return cmocka_run_group_tests_name("broker_client", tests, NULL, NULL);
}
