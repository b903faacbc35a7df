/* test_broker_send.c: sending to a whole broker: what is stored, what is answered, what is refused and in which words. */
#include "broker_kit.h"
#include "base/str.h"
#include "fault.h"
#include "../../bin/broker/broker.h"
#include "codec/batch.h"
#include "codec/property.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

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

static int setup(void **state)
{
	return setup_with(state, NULL);
}

static int setup_sync(void **state)
{
	static const char *const props[] = { "flushDiskType=SYNC_FLUSH", "syncFlushTimeout=9000", NULL };

	return setup_with(state, props);
}

static int setup_no_auto(void **state)
{
	static const char *const props[] = { "autoCreateTopicEnable=false", NULL };

	return setup_with(state, props);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fault_off();
	broker_kit_stop(f->k);
	free(f);
	return 0;
}

static struct asked *send_props(struct fixture *f, const char *topic, const char *body, const char *props)
{
	return ask(f->k, f->c, REQ_SEND_MESSAGE, str_of(body), "producerGroup", "pg", "topic", topic, "defaultTopic", "TBW102",
		   "defaultTopicQueueNums", "4", "queueId", "0", "sysFlag", "0", "bornTimestamp", "1700000000000", "flag", "7",
		   "properties", props, NULL);
}

/* The message at an offset of a queue, by a pull. */
static struct mq_message look(struct fixture *f, const char *topic, int queue, int64_t off)
{
	static struct asked *a;
	struct mq_message m;

	asked_free(a);
	a = kit_pull_later(f->k, f->c, "look", topic, queue, off, "*", 0);
	asked_wait(f->k, a);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_true(mq_message_decode(a->body.p, a->body.n, true, &m) > 0);
	return m;
}


static int count_props(struct mq_str props, const char *name)
{
	struct mq_str n, v;
	size_t pos = 0;
	int found = 0;

	while (mq_prop_next(props, &pos, &n, &v))
		found += str_is(n, name);
	return found;
}

/* ---- What is stored and answered ----------------------------------------------------------------------------------------- */

static void first_send_makes_the_topic(void **state)
{
	struct fixture *f = *state;
	struct asked *a = kit_send(f->k, f->c, "T", 3, "hello", "TagA");
	struct mq_message m;

	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "queueId"), 3);
	assert_int_equal(asked_i64(a, "queueOffset"), 0);
	assert_string_equal(asked_get(a, "MSG_REGION"), "DefaultRegion");
	assert_string_equal(asked_get(a, "TRACE_ON"), "true");
	assert_int_equal(strlen(asked_get(a, "msgId")), 32);
	m = look(f, "T", 3, 0);
	assert_true(str_is(m.body, "hello"));
	assert_prop(m.props, "TAGS", "TagA");
	assert_prop(m.props, "MSG_REGION", "DefaultRegion");
	assert_prop(m.props, "TRACE_ON", "true");
	assert_prop(m.props, "CLUSTER", "C");
	assert_int_equal(m.born_ms, 1700000000000);
	assert_int_equal(m.store_host.port, broker_port(broker_kit_broker(f->k)));
	a = ask(f->k, f->c, REQ_GET_TOPIC_CONFIG, (struct mq_str){ 0 }, "topic", "T", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_non_null(memmem(a->body.p, a->body.n, "\"writeQueueNums\":4", 18));
}

static void a_message_without_id_gets_one(void **state)
{
	struct fixture *f = *state;
	struct asked *a = send_props(f, "T", "x", "");
	char *id = strdup(asked_get(a, "transactionId"));
	struct mq_message m = look(f, "T", 0, 0);

	assert_int_equal(strlen(id), 32);
	assert_prop(m.props, "UNIQ_KEY", id);
	free(id);
}

static void a_message_with_id_keeps_it(void **state)
{
	struct fixture *f = *state;
	struct asked *a = send_props(f, "T", "x", "UNIQ_KEY\001AC110001\002KEYS\001a b"); /* without the last 0x02 */
	struct mq_message m;

	assert_string_equal(asked_get(a, "transactionId"), "AC110001");
	m = look(f, "T", 0, 0);
	assert_prop(m.props, "UNIQ_KEY", "AC110001");
	assert_prop(m.props, "KEYS", "a b");
	assert_prop(m.props, "CLUSTER", "C");
	assert_int_equal(m.flag, 7);
}

/* What mq-recv printed and mq-send sends on has been through a broker before. */
/* A producer that tried again: both copies are found by the id. */
static void two_messages_with_one_id_are_both_found(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;
	struct asked *a;
	size_t at = 0;
	int n = 0;

	send_props(f, "T", "first", "UNIQ_KEY\001AC110001ONE\002");
	send_props(f, "T", "second", "UNIQ_KEY\001AC110001ONE\002");
	send_props(f, "T", "other", "UNIQ_KEY\001AC110001TWO\002");
	a = ask(f->k, f->c, REQ_QUERY_MESSAGE, (struct mq_str){ 0 }, "topic", "T", "key", "AC110001ONE", "maxNum", "32",
		"beginTimestamp", "0", "endTimestamp", "9223372036854775807", "_UNIQUE_KEY_QUERY", "true", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	for (; at < a->body.n; n++) {
		int32_t size = mq_message_decode(a->body.p + at, a->body.n - at, true, &m);

		assert_true(size > 0);
		assert_prop(m.props, "UNIQ_KEY", "AC110001ONE");
		at += (size_t)size;
	}
	assert_int_equal(n, 2);
}

static void properties_of_another_broker_are_replaced(void **state)
{
	struct fixture *f = *state;
	struct mq_message m;

	send_props(f, "T", "x", "CLUSTER\001Other\002MSG_REGION\001Mars\002POP_CK\001x\002a\001b\002TRACE_ON\001false\002UNIQ_KEY\001U\002");
	m = look(f, "T", 0, 0);
	assert_prop(m.props, "CLUSTER", "C");
	assert_prop(m.props, "MSG_REGION", "DefaultRegion");
	assert_prop(m.props, "a", "b");
	assert_int_equal(count_props(m.props, "CLUSTER"), 1);
	assert_int_equal(count_props(m.props, "MSG_REGION"), 1);
	assert_int_equal(count_props(m.props, "POP_CK"), 0);
}

static void a_send_without_queue_gets_each_in_turn(void **state)
{
	struct fixture *f = *state;
	bool used[4] = { false };

	for (int i = 0; i < 4; i++)
		used[asked_i64(kit_send(f->k, f->c, "T", -1, "x", NULL), "queueId")] = true;
	assert_true(used[0] && used[1] && used[2] && used[3]);
}

static void one_way_is_stored_and_not_answered(void **state)
{
	struct fixture *f = *state;
	struct asked *a = ask_oneway(f->k, f->c, REQ_SEND_MESSAGE_V2, MQ_STR("quiet"), "a", "pg", "b", "T", "c", "TBW102", "d", "4", "e",
				     "0", "f", "0", "g", "1", "h", "0", NULL);
	struct mq_message m;

	asked_free(a);
	broker_kit_settle(f->k);
	m = look(f, "T", 0, 0);
	assert_true(str_is(m.body, "quiet"));
	assert_int_equal(broker_kit_broker(f->k)->metrics.oneway_requests, 1);
}

static void batch_put_cstr(struct buf *b, const char *body, const char *props)
{
	batch_put(b, &(struct batch_item){ .flag = 5, .body = str_of(body), .props = str_of(props) });
}

static struct asked *send_batch(struct fixture *f, const char *topic, const struct buf *body, const char *props)
{
	return ask(f->k, f->c, REQ_SEND_BATCH_MESSAGE, buf_view(body), "a", "pg", "b", topic, "c", "TBW102", "d", "4", "e", "2", "f", "0", "g",
		   "1700000000000", "h", "0", "i", props, "m", "true", NULL);
}

static void a_batch_lands_in_order_each_with_its_id(void **state)
{
	struct fixture *f = *state;
	struct buf b = { 0 };
	struct asked *a;
	struct mq_message m;

	for (int i = 0; i < 300; i++) { /* more than the broker keeps room for */
		char body[16], props[64];

		snprintf(body, sizeof body, "b%d", i);
		snprintf(props, sizeof props, "TAGS\001t%d\002n\001%d", i % 3, i); /* Go, and old clients, end without 0x02 */
		batch_put_cstr(&b, body, props);
	}
	a = send_batch(f, "T", &b, "WAIT\001true\002");
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(asked_i64(a, "queueOffset"), 0);
	assert_int_equal(strlen(asked_get(a, "msgId")), 300 * 33 - 1);
	m = look(f, "T", 2, 299);
	assert_true(str_is(m.body, "b299"));
	assert_prop(m.props, "TAGS", "t2");
	assert_prop(m.props, "n", "299");
	assert_prop(m.props, "WAIT", "true");
	assert_prop(m.props, "CLUSTER", "C");
	assert_int_equal(m.flag, 5);
	buf_free(&b);
}

/* The flag decides, not the code: the C++ client sends code 10 with batch="1", which Java does not take for true. */
static void batch_is_a_batch_only_with_the_word_true(void **state)
{
	struct fixture *f = *state;
	struct buf b = { 0 };
	struct asked *a;

	batch_put_cstr(&b, "one", "");
	batch_put_cstr(&b, "two", "");
	a = ask(f->k, f->c, REQ_SEND_MESSAGE, buf_view(&b), "producerGroup", "pg", "topic", "T", "defaultTopic", "TBW102",
		"defaultTopicQueueNums", "4", "queueId", "0", "sysFlag", "0", "bornTimestamp", "1", "flag", "0", "batch", "1", NULL);
	assert_int_equal(a->code, RESP_SUCCESS);
	assert_int_equal(look(f, "T", 0, 0).body.n, b.n);
	buf_free(&b);
}

/* ---- What is refused ------------------------------------------------------------------------------------------------------ */

static void refused(struct asked *a, int code, const char *words)
{
	if (a->code != code || !strstr(a->remark.p, words))
		fail_msg("code %d '%s', not %d '...%s...'", a->code, a->remark.p, code, words);
	assert_string_equal(asked_get(a, "MSG_REGION"), "DefaultRegion");
}

static void names_and_queues(void **state)
{
	struct fixture *f = *state;
	char long_name[129];

	memset(long_name, 'x', 128);
	long_name[128] = 0;
	refused(kit_send(f->k, f->c, "a b", 0, "x", NULL), RESP_SYSTEM_ERROR, "a b");
	refused(kit_send(f->k, f->c, "..", 0, "x", NULL), RESP_SYSTEM_ERROR, "");
	refused(kit_send(f->k, f->c, long_name, 0, "x", NULL), RESP_SYSTEM_ERROR, "127");
	refused(kit_send(f->k, f->c, "SCHEDULE_TOPIC_XXXX", 0, "x", NULL), RESP_NO_PERMISSION, "forbidden");
	refused(kit_send(f->k, f->c, "RMQ_SYS_TRANS_HALF_TOPIC", 0, "x", NULL), RESP_NO_PERMISSION, "forbidden");
	refused(kit_send(f->k, f->c, "T", 99, "x", NULL), RESP_SYSTEM_ERROR, "queueId[99]");
	refused(send_props(f, "T", "", ""), RESP_MESSAGE_ILLEGAL, "empty");
	assert_int_equal(kit_send(f->k, f->c, "T", 0, "x", NULL)->code, RESP_SUCCESS);
}

static void unknown_topic_without_auto_creation(void **state)
{
	struct fixture *f = *state;

	refused(kit_send(f->k, f->c, "T", 0, "x", NULL), RESP_TOPIC_NOT_EXIST, "T");
}

static void limits_name_both_numbers_and_use_up_no_offset(void **state)
{
	struct fixture *f = *state;
	size_t n = 4 * 1024 * 1024 + 1;
	struct buf big = { 0 };
	struct asked *a;

	memset(buf_room(&big, n), 'x', n);
	big.n = n;
	buf_char(&big, 0);
	kit_send(f->k, f->c, "T", 0, "first", NULL);
	big.p[40000] = 0;
	a = send_props(f, "T", "x", big.p); /* as properties: 40,000 bytes */
	refused(a, RESP_MESSAGE_ILLEGAL, "32767");
	big.p[40000] = 'x';
	a = kit_send(f->k, f->c, "T", 0, big.p, NULL);
	refused(a, RESP_MESSAGE_ILLEGAL, "4194305");
	refused(a, RESP_MESSAGE_ILLEGAL, "4194304");
	assert_int_equal(asked_i64(kit_send(f->k, f->c, "T", 0, "second", NULL), "queueOffset"), 1);
	buf_free(&big);
}

static void damaged_batches_store_nothing(void **state)
{
	struct fixture *f = *state;
	struct buf b = { 0 };

	batch_put_cstr(&b, "one", "");
	batch_put_cstr(&b, "two", "");
	b.n -= 3;
	refused(send_batch(f, "T", &b, ""), RESP_MESSAGE_ILLEGAL, "batch");
	b.n = 0;
	batch_put_cstr(&b, "one", "");
	batch_put_cstr(&b, "", "");
	refused(send_batch(f, "T", &b, ""), RESP_MESSAGE_ILLEGAL, "body 2");
	b.n = 0;
	refused(send_batch(f, "T", &b, ""), RESP_MESSAGE_ILLEGAL, "empty");
	batch_put_cstr(&b, "one", "DELAY\0011\002");
	refused(send_batch(f, "T", &b, ""), RESP_MESSAGE_ILLEGAL, "message 1 of the batch has property DELAY");
	refused(send_batch(f, "%RETRY%g", &b, ""), RESP_MESSAGE_ILLEGAL, "retry group g");
	assert_int_equal(asked_i64(ask(f->k, f->c, REQ_GET_MAX_OFFSET, (struct mq_str){ 0 }, "topic", "T", "queueId", "2", NULL), "offset"), 0);
	buf_free(&b);
}

static void a_missing_field_is_named(void **state)
{
	struct fixture *f = *state;
	struct asked *a = ask(f->k, f->c, REQ_SEND_MESSAGE_V2, MQ_STR("x"), "a", "pg", "c", "TBW102", NULL);

	assert_int_equal(a->code, RESP_SYSTEM_ERROR);
	assert_non_null(strstr(a->remark.p, "topic"));
}

static void a_retry_beyond_its_limit_goes_to_the_dead_letters(void **state)
{
	struct fixture *f = *state;
	struct asked *a = ask(f->k, f->c, REQ_SEND_MESSAGE_V2, MQ_STR("worn out"), "a", "pg", "b", "%RETRY%g", "c", "TBW102", "d", "4", "e",
			      "0", "f", "0", "g", "1", "h", "0", "i", "DELAY\0015\002k\001v\002", "j", "17", NULL);
	struct mq_message m;

	assert_int_equal(a->code, RESP_SUCCESS);
	m = look(f, "%DLQ%g", 0, 0);
	assert_true(str_is(m.body, "worn out"));
	assert_prop(m.props, "k", "v");
	assert_int_equal(count_props(m.props, "DELAY"), 0);
}

/* ---- The disk ------------------------------------------------------------------------------------------------------------- */

static void sync_flush_answers_when_it_is_on_the_disk(void **state)
{
	struct fixture *f = *state;
	struct broker *b = broker_kit_broker(f->k);
	struct asked *a = kit_send(f->k, f->c, "T", 0, "x", NULL);

	assert_int_equal(a->code, RESP_SUCCESS);
	assert_true(mqstore_flushed(b->store) == mqstore_log_max(b->store));
	broker_kit_block_workers(f->k);
	b->conf->syncFlushTimeout = 100;
	a = kit_send(f->k, f->c, "T", 0, "y", NULL);
	b->conf->syncFlushTimeout = 9000;
	assert_int_equal(a->code, RESP_FLUSH_DISK_TIMEOUT);
	assert_int_equal(asked_i64(a, "queueOffset"), 1);
	assert_string_equal(asked_get(a, "TRACE_ON"), "true");
	assert_true(mqstore_flushed(b->store) < mqstore_log_max(b->store));
	broker_kit_unblock_workers(f->k);
	assert_int_equal(kit_send(f->k, f->c, "T", 0, "z", NULL)->code, RESP_SUCCESS);
}

static void sync_flush_does_not_wait_with_wait_false(void **state)
{
	struct fixture *f = *state;

	kit_send(f->k, f->c, "T", 0, "x", NULL);
	broker_kit_block_workers(f->k);
	assert_int_equal(send_props(f, "T", "y", "WAIT\001false\002")->code, RESP_SUCCESS);
	broker_kit_unblock_workers(f->k);
}

static void after_a_failed_flush_no_more_messages_are_taken(void **state)
{
	struct fixture *f = *state;
	struct asked *a;
	int n = 0;

	kit_send(f->k, f->c, "T", 0, "x", NULL);
	do {
		fault_set(++n, EIO, FAULT_ONCE);
		a = kit_send(f->k, f->c, "T", 0, "y", NULL);
	} while (a->code == RESP_SUCCESS && n < 20);
	fault_off();
	assert_int_equal(a->code, RESP_FLUSH_DISK_TIMEOUT);
	a = kit_send(f->k, f->c, "T", 0, "z", NULL);
	refused(a, RESP_SERVICE_NOT_AVAILABLE, "service not available");
	assert_true(strlen(a->remark.p) > 40);
	assert_int_equal(broker_kit_broker(f->k)->metrics.flush_failures, 1);
	assert_true(str_is(look(f, "T", 0, 0).body, "x")); /* reads go on */
}

static void a_full_disk_is_answered_with_14_and_its_reason(void **state)
{
	static const char *const props[] = { "minFreeBytes=1000000000000000", NULL };
	struct fixture f = { .k = broker_kit_start(props) };
	struct asked *a;
	struct mq_error e;

	f.c = broker_kit_dial(f.k, false);
	mqstore_trim(broker_kit_broker(f.k)->store, 0, false, &e);
	a = kit_send(f.k, f.c, "T", 0, "x", NULL);
	refused(a, RESP_SERVICE_NOT_AVAILABLE, "minFreeBytes");
	broker_kit_stop(f.k);
}

static void traces_have_a_topic_when_it_is_wanted(void **state)
{
	static const char *const with[] = { "autoCreateTopicEnable=false", "traceTopicEnable=true", NULL };
	static const char *const other[] = { "autoCreateTopicEnable=false", "traceTopicEnable=true", "msgTraceTopicName=Traces", NULL };
	struct fixture f = { .k = broker_kit_start(with) };

	f.c = broker_kit_dial(f.k, false);
	assert_int_equal(kit_send(f.k, f.c, "RMQ_SYS_TRACE_TOPIC", 0, "Pub", NULL)->code, RESP_SUCCESS);
	assert_true(str_is(look(&f, "RMQ_SYS_TRACE_TOPIC", 0, 0).body, "Pub"));
	broker_kit_stop(f.k);
	f.k = broker_kit_start(other);
	f.c = broker_kit_dial(f.k, false);
	assert_int_equal(kit_send(f.k, f.c, "Traces", 0, "Pub", NULL)->code, RESP_SUCCESS);
	refused(kit_send(f.k, f.c, "RMQ_SYS_TRACE_TOPIC", 0, "Pub", NULL), RESP_TOPIC_NOT_EXIST, "not exist");
	broker_kit_stop(f.k);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define S(test) cmocka_unit_test_setup_teardown(test, setup_sync, teardown)
	const struct CMUnitTest tests[] = {
		T(first_send_makes_the_topic),
		T(a_message_without_id_gets_one),
		T(a_message_with_id_keeps_it),
		T(two_messages_with_one_id_are_both_found),
		T(properties_of_another_broker_are_replaced),
		T(a_send_without_queue_gets_each_in_turn),
		T(one_way_is_stored_and_not_answered),
		T(a_batch_lands_in_order_each_with_its_id),
		T(batch_is_a_batch_only_with_the_word_true),
		T(names_and_queues),
		cmocka_unit_test_setup_teardown(unknown_topic_without_auto_creation, setup_no_auto, teardown),
		T(limits_name_both_numbers_and_use_up_no_offset),
		T(damaged_batches_store_nothing),
		T(a_missing_field_is_named),
		T(a_retry_beyond_its_limit_goes_to_the_dead_letters),
		S(sync_flush_answers_when_it_is_on_the_disk),
		S(sync_flush_does_not_wait_with_wait_false),
		S(after_a_failed_flush_no_more_messages_are_taken),
		cmocka_unit_test(traces_have_a_topic_when_it_is_wanted),
		cmocka_unit_test(a_full_disk_is_answered_with_14_and_its_reason),
	};

	return cmocka_run_group_tests_name("broker_send", tests, NULL, NULL);
}
