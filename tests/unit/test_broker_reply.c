/* test_broker_reply.c: a reply to a request message: to whom it goes, what it brings, what the replier is told, what is stored. */
#include "broker_kit.h"
#include "base/str.h"
#include "codec/property.h"
#include "codec/request.h"
#include "../../bin/broker/broker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define TOPIC "DefaultCluster_REPLY_TOPIC"

struct fixture {
	struct broker_kit *k;
	struct conn *asker, *replier;
};

static int setup_with(void **state, const char *const *props)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->k = broker_kit_start(props);
	f->asker = broker_kit_dial(f->k, false);
	f->replier = broker_kit_dial(f->k, false);
	broker_kit_answers(f->k, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT, "");
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, NULL);
}

static int setup_unstored(void **state)
{
	static const char *const props[] = { "storeReplyMessageEnable=false", NULL };

	return setup_with(state, props);
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

/* c is a producer of the group with this client id. */
static void produce(struct fixture *f, struct conn *c, const char *id, const char *group)
{
	char body[256];

	snprintf(body, sizeof body, "{\"clientID\":\"%s\",\"consumerDataSet\":[],\"producerDataSet\":[{\"groupName\":\"%s\"}]}", id, group);
	assert_int_equal(ask(f->k, c, REQ_HEART_BEAT, str_of(body), NULL)->code, RESP_SUCCESS);
}

/* to NULL: the property is not there. */
static struct asked *reply_later(struct fixture *f, const char *to)
{
	struct buf props = { 0 };
	struct asked *a;

	if (to)
		property_put(&props, MQ_STR("REPLY_TO_CLIENT"), str_of(to));
	property_put(&props, MQ_STR("CORRELATION_ID"), MQ_STR("c-1"));
	buf_put(&props, "MSG_TYPE\001reply", sizeof "MSG_TYPE\001reply"); /* no separator at the end, as from 5.x clients */
	a = ask_later(f->k, f->replier, REQ_SEND_REPLY_MESSAGE_V2, MQ_STR("the answer"), "a", "pg", "b", TOPIC, "c", "TBW102", "d", "4",
		      "e", "0", "f", "0", "g", "1700000000000", "h", "7", "i", props.p, "j", "0", "k", "false", NULL);
	buf_free(&props);
	return a;
}

static struct asked *reply_to(struct fixture *f, const char *to)
{
	static struct asked *a;

	if (a)
		asked_free(a);
	a = reply_later(f, to);
	asked_wait(f->k, a);
	return a;
}

static const char *stored(struct fixture *f, int64_t off)
{
	static struct asked *a;

	if (a)
		asked_free(a);
	a = kit_pull_later(f->k, f->replier, "g", TOPIC, 0, off, "*", 0);
	asked_wait(f->k, a);
	return a->code == RESP_SUCCESS ? asked_bodies(a) : "";
}

static void the_reply_is_pushed_and_stored(void **state)
{
	struct fixture *f = *state;
	struct asked *a, *got;
	struct mq_str props;

	produce(f, f->asker, "asker@1", "askers");
	a = reply_to(f, "asker@1");
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "queueId"), 0);
	assert_int_equal(asked_i64(a, "queueOffset"), 0);
	assert_int_equal(strlen(asked_get(a, "msgId")), 32);
	assert_int_equal(broker_kit_called(f->k, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT), 1);
	got = broker_kit_last(f->k);
	assert_int_equal(got->code, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT);
	assert_true(str_is(buf_view(&got->body), "the answer"));
	assert_string_equal(asked_get(got, "topic"), TOPIC);
	assert_string_equal(asked_get(got, "producerGroup"), "pg");
	assert_string_equal(asked_get(got, "defaultTopic"), "TBW102");
	assert_int_equal(asked_i64(got, "flag"), 7);
	assert_int_equal(asked_i64(got, "bornTimestamp"), 1700000000000);
	assert_true(asked_i64(got, "storeTimestamp") > 1700000000000);
	assert_memory_equal(asked_get(got, "bornHost"), "127.0.0.1:", 10);
	assert_memory_equal(asked_get(got, "storeHost"), "127.0.0.1:", 10);
	props = str_of(asked_get(got, "properties"));
	assert_true(str_is(mq_prop_get(props, "CORRELATION_ID"), "c-1"));
	assert_true(str_is(mq_prop_get(props, "MSG_TYPE"), "reply"));
	assert_true(mq_prop_get(props, "PUSH_REPLY_TIME").n >= 13);
	assert_string_equal(stored(f, 0), "the answer");
}

static void without_the_asker_it_is_stored_and_refused(void **state)
{
	struct fixture *f = *state;
	struct asked *a = reply_to(f, "nobody@1");

	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_string_equal(a->remark.p, "push reply message fail, channel of <nobody@1> not found.");
	assert_int_equal(strlen(asked_get(a, "msgId")), 32);
	a = reply_to(f, NULL);
	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_string_equal(a->remark.p, "reply message properties[REPLY_TO_CLIENT] is null");
	assert_string_equal(stored(f, 0), "the answer the answer");
	assert_int_equal(broker_kit_broker(f->k)->metrics.replies_failed, 2);
}

static void an_asker_that_leaves_before_it_answers(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	broker_kit_answers(f->k, 0, NULL);
	produce(f, f->asker, "asker@1", "askers");
	a = reply_later(f, "asker@1");
	while (!broker_kit_called(f->k, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT))
		broker_kit_run(f->k, 1);
	assert_false(a->done);
	broker_kit_hang_up(f->k, f->asker);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_non_null(strstr(a->remark.p, "push reply message to asker@1 fail"));
	asked_free(a);
	assert_non_null(strstr(reply_to(f, "asker@1")->remark.p, "not found"));
}

static void the_latest_connection_of_a_client_counts(void **state)
{
	struct fixture *f = *state;
	struct conn *again = broker_kit_dial(f->k, false);

	produce(f, f->asker, "asker@1", "askers");
	produce(f, f->asker, "asker@1", "others");
	produce(f, again, "asker@1", "askers");
	broker_kit_hang_up(f->k, f->asker);             /* the old one goes: nothing changes */
	assert_int_equal(reply_to(f, "asker@1")->code, RESP_SUCCESS);
	produce(f, again, "asker@1", "others");
	assert_int_equal(ask(f->k, again, REQ_UNREGISTER_CLIENT, (struct mq_str){ 0 }, "clientID", "asker@1", "producerGroup", "askers",
			     NULL)->code, RESP_SUCCESS);
	assert_int_equal(reply_to(f, "asker@1")->code, RESP_SUCCESS);   /* still there for its other group */
	produce(f, again, "asker@2", "others");         /* has taken another name */
	assert_int_equal(reply_to(f, "asker@1")->code, RESP_SYSTEM_ERROR);
	assert_int_equal(reply_to(f, "asker@2")->code, RESP_SUCCESS);
	broker_kit_hang_up(f->k, again);
	assert_int_equal(reply_to(f, "asker@2")->code, RESP_SYSTEM_ERROR);
	assert_int_equal(broker_kit_called(f->k, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT), 3);
}

static void it_need_not_be_stored(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	produce(f, f->asker, "asker@1", "askers");
	a = reply_to(f, "asker@1");
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_string_equal(asked_get(a, "msgId"), "0");
	assert_int_equal(asked_i64(a, "queueOffset"), 0);
	assert_string_equal(stored(f, 0), "");
}

static void under_sync_flush_the_answer_waits_for_the_disk(void **state)
{
	struct fixture *f = *state;
	struct asked *a;

	produce(f, f->asker, "asker@1", "askers");
	broker_kit_settle(f->k);
	broker_kit_block_workers(f->k);
	a = reply_later(f, "asker@1");
	broker_kit_settle(f->k);
	assert_int_equal(broker_kit_called(f->k, REQ_PUSH_REPLY_MESSAGE_TO_CLIENT), 1);
	assert_false(a->done);
	broker_kit_unblock_workers(f->k);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	asked_free(a);
}

static void a_reply_is_a_send_with_its_checks(void **state)
{
	struct fixture *f = *state;
	struct asked *a = ask(f->k, f->replier, REQ_SEND_REPLY_MESSAGE, MQ_STR("x"), "producerGroup", "pg", "topic", TOPIC, "defaultTopic",
			      "TBW102", "defaultTopicQueueNums", "4", "queueId", "99", "sysFlag", "0", "bornTimestamp", "1", "flag", "0", NULL);

	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_non_null(strstr(a->remark.p, "queueId[99] is illegal"));
	assert_string_equal(asked_get(a, "TRACE_ON"), "true");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_reply_is_pushed_and_stored, setup, teardown),
		cmocka_unit_test_setup_teardown(without_the_asker_it_is_stored_and_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(an_asker_that_leaves_before_it_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(the_latest_connection_of_a_client_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(it_need_not_be_stored, setup_unstored, teardown),
		cmocka_unit_test_setup_teardown(under_sync_flush_the_answer_waits_for_the_disk, setup_sync, teardown),
		cmocka_unit_test_setup_teardown(a_reply_is_a_send_with_its_checks, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
