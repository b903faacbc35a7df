/* test_body_pop.c: handles of popped messages, names of retry topics; check-points, acks, modes and assignments as JSON. */
#include "base/str.h"
#include "codec/body_pop.h"
#include "codec/receipt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- Handles ------------------------------------------------------------------------------------------------------------- */

static void a_handle_in_and_out(void **state)
{
	const char *text = "100 1796057375625 60000 3 1 broker-a 2 105";
	struct buf out = { 0 };
	struct receipt r;

	assert_int_equal(receipt_parse(str_of(text), &r, NULL), 0);
	assert_int_equal(r.start, 100);
	assert_int_equal(r.pop_ms, 1796057375625);
	assert_int_equal(r.invisible_ms, 60000);
	assert_int_equal(r.revive_queue, 3);
	assert_int_equal(r.retry, RECEIPT_RETRY_V1);
	assert_true(str_is(r.broker, "broker-a"));
	assert_int_equal(r.queue_id, 2);
	assert_int_equal(r.off, 105);
	receipt_write(&r, &out);
	assert_true(str_is(buf_view(&out), text));
	buf_free(&out);
}

static void a_handle_may_lack_its_end(void **state)
{
	struct receipt r;

	assert_int_equal(receipt_parse(MQ_STR("1 2 3 4 0 b"), &r, NULL), 0);
	assert_int_equal(r.queue_id, -1);
	assert_int_equal(r.off, -1);
	assert_int_equal(receipt_parse(MQ_STR("1 2 3 4 0 b 7 8 678"), &r, NULL), 0); /* from a proxy */
	assert_int_equal(r.off, 8);
	assert_int_equal(receipt_parse(MQ_STR("1 2 3 4 0 b 7"), &r, NULL), 0);
	assert_int_equal(r.queue_id, 7);
}

static void what_is_no_handle(void **state)
{
	static const char *const bad[] = { "", " ", "1 2 3 4 0", "1 2 3 4 3 b", "1 2 3 4 -1 b", "x 2 3 4 0 b", "1 2 3 4 0 b q", "1 2 3 4 0 b 0 o",
					   "1 2 3 4 0 b 0 0 x", "1 2 3 4 0 b 0 0 0 0", "99999999999999999999 2 3 4 0 b", "1  2 3 4 0 b" };
	struct mq_error e;
	struct receipt r;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(receipt_parse(str_of(bad[i]), &r, &e), MQ_EINVAL);
		assert_non_null(strstr(e.text, "handle '"));
	}
}

static void retry_topics_by_name(void **state)
{
	char name[RECEIPT_TOPIC_MAX + 1], long_topic[128], long_group[128];
	struct mq_str t;

	t = receipt_topic(name, RECEIPT_RETRY_V1, MQ_STR("T_1"), MQ_STR("g_x"));
	assert_string_equal(t.p, "%RETRY%g_x_T_1");
	assert_int_equal(receipt_retry_of(t), RECEIPT_RETRY_V1);
	assert_true(str_is(receipt_normal_topic(t, MQ_STR("g_x")), "T_1"));
	assert_null(receipt_normal_topic(t, MQ_STR("h")).p);
	assert_null(receipt_normal_topic(MQ_STR("%RETRY%g"), MQ_STR("g")).p);
	t = receipt_topic(name, RECEIPT_RETRY_V2, MQ_STR("T"), MQ_STR("g"));
	assert_string_equal(t.p, "%RETRY%g+T");
	assert_int_equal(receipt_retry_of(t), RECEIPT_RETRY_V2);
	assert_true(str_is(receipt_normal_topic(t, MQ_STR("g")), "T"));
	assert_true(str_is(receipt_topic(name, RECEIPT_NORMAL, MQ_STR("T"), MQ_STR("g")), "T"));
	assert_int_equal(receipt_retry_of(MQ_STR("T+")), RECEIPT_NORMAL);
	memset(long_topic, 't', 127);
	memset(long_group, 'g', 127);
	assert_non_null(receipt_topic(name, RECEIPT_RETRY_V1, (struct mq_str){ long_topic, 120 }, (struct mq_str){ long_group, 127 }).p);
	assert_null(receipt_topic(name, RECEIPT_RETRY_V1, (struct mq_str){ long_topic, 121 }, (struct mq_str){ long_group, 127 }).p);
}

/* ---- The revive log: texts of a 5.2.0 broker ------------------------------------------------------------------------------- */

static void a_check_point_in_and_out(void **state)
{
	const char *text = "{\"bm\":0,\"bn\":\"fx-a\",\"c\":\"FxGroupPop\",\"d\":[0,1,3],\"it\":10000,\"n\":3,\"pt\":1796057375625,\"q\":1,"
			   "\"reviveTime\":1796057385625,\"ro\":0,\"so\":7,\"t\":\"FxPop\"}";
	struct body_keep keep = { 0 };
	struct buf out = { 0 };
	struct body_ck ck;

	assert_int_equal(body_ck_decode(&keep, str_of(text), &ck, NULL), 0);
	assert_int_equal(ck.start, 7);
	assert_int_equal(ck.n, 3);
	assert_int_equal(ck.queue_id, 1);
	assert_int_equal(body_ck_index(&ck, 10), 2);
	assert_int_equal(body_ck_index(&ck, 9), -1);
	body_ck_encode(&ck, &out);
	assert_true(str_is(buf_view(&out), text));
	body_free(&keep);
	buf_free(&out);
}

static void old_check_points_have_no_distances(void **state)
{
	struct body_keep keep = { 0 };
	struct body_ck ck;

	assert_int_equal(body_ck_decode(&keep, MQ_STR("{\"c\":\"g\",\"t\":\"T\",\"n\":2,\"so\":5,\"bm\":-2147483648}"), &ck, NULL), 0);
	assert_int_equal(body_ck_index(&ck, 6), 1);
	assert_int_equal(ck.acked, 0x80000000u);
	body_free(&keep);
}

static void what_is_no_check_point(void **state)
{
	static const char *const bad[] = { "", "[]", "{}", "{\"t\":\"T\"}", "{\"c\":\"g\",\"t\":\"T\",\"n\":33}", "{\"c\":\"g\",\"t\":\"T\",\"n\":-1}",
					   "{\"c\":\"g\",\"t\":\"T\",\"n\":2,\"d\":[0]}", "{\"c\":\"g\",\"t\":\"T\",\"so\":-1}", "0-17" };
	struct mq_error e;
	struct body_ck ck;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct body_keep keep = { 0 };

		assert_int_equal(body_ck_decode(&keep, str_of(bad[i]), &ck, &e), MQ_EINVAL);
	}
}

static void acks_in_and_out(void **state)
{
	const char *one = "{\"ao\":12,\"bn\":\"b\",\"c\":\"g\",\"pt\":17,\"q\":2,\"so\":10,\"t\":\"T\"}";
	const char *many = "{\"ao\":-1,\"aol\":[10,12],\"bn\":\"b\",\"c\":\"g\",\"pt\":17,\"q\":2,\"so\":10,\"t\":\"T\"}";
	struct body_keep keep = { 0 };
	struct buf out = { 0 };
	struct body_ack a;

	assert_int_equal(body_ack_decode(&keep, str_of(one), &a, NULL), 0);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.off[0], 12);
	body_ack_encode(&a, false, &out);
	assert_true(str_is(buf_view(&out), one));
	body_free(&keep);
	out.n = 0;
	assert_int_equal(body_ack_decode(&keep, str_of(many), &a, NULL), 0);
	assert_int_equal(a.n, 2);
	body_ack_encode(&a, true, &out);
	assert_true(str_is(buf_view(&out), many));
	body_free(&keep);
	assert_int_equal(body_ack_decode(&keep, MQ_STR("{\"ackOffset\":3,\"consumerGroup\":\"g\",\"topic\":\"T\",\"queueId\":1}"), &a, NULL), 0);
	assert_int_equal(a.off[0], 3);
	assert_int_equal(a.queue_id, 1);
	body_free(&keep);
	assert_int_equal(body_ack_decode(&keep, MQ_STR("{\"t\":\"T\"}"), &a, NULL), MQ_EINVAL);
	buf_free(&out);
}

static void batches_of_acks(void **state)
{
	const char *text = "{\"acks\":[{\"b\":\"AQCA\",\"c\":\"G\",\"it\":60000,\"pt\":1700000000000,\"q\":0,\"r\":\"1\",\"rq\":3,\"so\":100,"
			   "\"t\":\"T\"},{\"b\":\"/w==\",\"c\":\"G\",\"it\":1,\"pt\":2,\"q\":3,\"r\":\"0\",\"rq\":999,\"so\":0,\"t\":\"T\"}],"
			   "\"brokerName\":\"broker-a\"}";
	struct body_acks a;
	struct buf out = { 0 };
	struct mq_error e;

	assert_int_equal(body_acks_decode(str_of(text), &a, NULL), 0);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.ack[0].nbits, 3);
	assert_memory_equal(a.ack[0].bits, "\001\000\200", 3);
	assert_int_equal(a.ack[0].retry, RECEIPT_RETRY_V1);
	assert_int_equal(a.ack[1].nbits, 1);
	body_acks_encode(&a, &out);
	assert_true(str_is(buf_view(&out), text));
	body_free(&a.keep);
	buf_free(&out);
	assert_int_equal(body_acks_decode(MQ_STR("{\"acks\":[{\"b\":\"*\",\"c\":\"G\",\"r\":\"0\",\"t\":\"T\"}]}"), &a, &e), MQ_EINVAL);
	assert_int_equal(body_acks_decode(MQ_STR("{\"acks\":[{\"b\":\"AQ==\",\"c\":\"G\",\"t\":\"T\"}]}"), &a, &e), MQ_EINVAL);
	assert_int_equal(body_acks_decode(MQ_STR("{}"), &a, &e), 0);
	assert_int_equal(a.n, 0);
	body_free(&a.keep);
}

/* ---- Modes --------------------------------------------------------------------------------------------------------------- */

static void modes_in_and_out(void **state)
{
	const char *text = "{\"messageRequestModeMap\":{\"T\":{\"g\":{\"consumerGroup\":\"g\",\"mode\":\"POP\",\"popShareQueueNum\":2,"
			   "\"topic\":\"T\"},\"h\":{\"consumerGroup\":\"h\",\"mode\":\"PULL\",\"popShareQueueNum\":0,\"topic\":\"T\"}},"
			   "\"U\":{\"g\":{\"consumerGroup\":\"g\",\"mode\":\"POP\",\"popShareQueueNum\":-1,\"topic\":\"U\"}}}}";
	struct body_modes m;
	struct buf out = { 0 };

	assert_int_equal(body_modes_decode(str_of(text), &m, NULL), 0);
	assert_int_equal(m.n, 3);
	body_modes_encode(&m, &out);
	assert_true(str_is(buf_view(&out), text));
	body_free(&m.keep);
	out.n = 0;
	assert_int_equal(body_modes_decode(MQ_STR("{}"), &m, NULL), 0);
	body_modes_encode(&m, &out);
	assert_true(str_is(buf_view(&out), "{\"messageRequestModeMap\":{}}"));
	body_free(&m.keep);
	buf_free(&out);
}

static void assignments_in_and_out(void **state)
{
	const char *text = "{\"messageQueueAssignments\":[{\"messageQueue\":{\"brokerName\":\"b\",\"queueId\":-1,"
			   "\"topic\":\"T\"},\"mode\":\"POP\"}]}";
	struct body_assignment a;
	struct buf out = { 0 };

	assert_int_equal(body_assignment_decode(str_of(text), &a, NULL), 0);
	assert_true(a.known && a.pop);
	assert_int_equal(a.queue[0].id, -1);
	body_assignment_encode(&a, &out);
	assert_true(str_is(buf_view(&out), text));
	body_free(&a.keep);
	assert_int_equal(body_assignment_decode(MQ_STR("{}"), &a, NULL), 0);
	assert_false(a.known);
	body_free(&a.keep);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_in_and_out), cmocka_unit_test(a_handle_may_lack_its_end), cmocka_unit_test(what_is_no_handle),
		cmocka_unit_test(retry_topics_by_name), cmocka_unit_test(a_check_point_in_and_out),
		cmocka_unit_test(old_check_points_have_no_distances), cmocka_unit_test(what_is_no_check_point), cmocka_unit_test(acks_in_and_out),
		cmocka_unit_test(batches_of_acks), cmocka_unit_test(modes_in_and_out), cmocka_unit_test(assignments_in_and_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
