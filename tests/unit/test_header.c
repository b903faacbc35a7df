/* test_header.c: fields to structs: types, defaults, aliases, what is missing or wrong is named; the table of requests is whole. */
#include "base/str.h"
#include "codec/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* A frame with these fields: name, value, name, value, ..., NULL. */
static void frame_of(struct frame *f, const char *const *fields)
{
	*f = (struct frame){ 0 };
	for (; *fields; fields += 2)
		f->field[f->nfields++] = (struct frame_field){ str_of(fields[0]), str_of(fields[1]) };
}
#define FRAME_OF(f, ...) frame_of((f), (const char *const[]){ __VA_ARGS__, NULL })

static void names_and_letters_mean_the_same(void **state)
{
	struct send_header a, b;
	struct mq_error e;
	struct frame f;

	FRAME_OF(&f, "topic", "T", "producerGroup", "P", "queueId", "2", "sysFlag", "0", "bornTimestamp", "1796057391645", "flag", "-1",
	         "defaultTopic", "TBW102", "defaultTopicQueueNums", "4", "unitMode", "TRUE", "batch", "true", "extra", "ignored");
	assert_int_equal(header_decode(&send_header_desc, &f, &a, &e), 0);
	FRAME_OF(&f, "m", "true", "k", "true", "d", "4", "c", "TBW102", "h", "-1", "g", "1796057391645", "f", "0", "e", "2", "a", "P", "b", "T");
	assert_int_equal(header_decode(&send_header_desc, &f, &b, &e), 0);
	assert_true(str_is(a.topic, "T") && str_is(b.topic, "T"));
	assert_true(str_is(a.producerGroup, "P") && str_is(b.producerGroup, "P"));
	assert_int_equal(a.queueId, 2);
	assert_int_equal(b.queueId, 2);
	assert_true(a.bornTimestamp == 1796057391645 && b.bornTimestamp == 1796057391645);
	assert_int_equal(a.flag, -1);
	assert_true(a.unitMode && b.unitMode && a.batch && b.batch);
	assert_int_equal(a.present, b.present);
	assert_null(a.properties.p);
	assert_false(HEADER_HAS(send_header, &a, reconsumeTimes));
}

static void absent_fields_get_their_defaults(void **state)
{
	struct pull_header pull;
	struct query_offset_header query;
	struct reset_offset_header reset;
	struct mq_error e;
	struct frame f;

	FRAME_OF(&f, "consumerGroup", "G", "topic", "T", "queueId", "0", "queueOffset", "7", "maxMsgNums", "32", "sysFlag", "2",
	         "commitOffset", "0", "suspendTimeoutMillis", "15000");
	assert_int_equal(header_decode(&pull_header_desc, &f, &pull, &e), 0);
	assert_int_equal(pull.requestSource, -1);
	assert_int_equal(pull.subVersion, 0);
	assert_null(pull.expressionType.p);
	FRAME_OF(&f, "consumerGroup", "G", "topic", "T", "queueId", "0");
	assert_int_equal(header_decode(&query_offset_header_desc, &f, &query, &e), 0);
	assert_true(query.setZeroIfNotFound);
	assert_false(HEADER_HAS(query_offset_header, &query, setZeroIfNotFound));
	FRAME_OF(&f, "consumerGroup", "G", "topic", "T", "queueId", "0", "setZeroIfNotFound", "false");
	assert_int_equal(header_decode(&query_offset_header_desc, &f, &query, &e), 0);
	assert_false(query.setZeroIfNotFound);
	assert_true(HEADER_HAS(query_offset_header, &query, setZeroIfNotFound));
	FRAME_OF(&f, "topic", "T", "group", "G", "timestamp", "-1");
	assert_int_equal(header_decode(&reset_offset_header_desc, &f, &reset, &e), 0);
	assert_int_equal(reset.queueId, -1);
	assert_true(reset.offset == -1 && reset.timestamp == -1);
}

static void what_is_missing_or_wrong_is_named(void **state)
{
	struct update_offset_header h;
	struct mq_error e;
	struct frame f;

	FRAME_OF(&f, "consumerGroup", "G", "topic", "T", "queueId", "0");
	assert_int_equal(header_decode(&update_offset_header_desc, &f, &h, &e), MQ_EINVAL);
	assert_non_null(strstr(e.text, "commitOffset"));
	assert_non_null(strstr(e.text, "missing"));
	FRAME_OF(&f, "consumerGroup", "G", "topic", "T", "queueId", "two", "commitOffset", "1");
	assert_int_equal(header_decode(&update_offset_header_desc, &f, &h, &e), MQ_EINVAL);
	assert_non_null(strstr(e.text, "'queueId' is 'two'"));
	assert_non_null(strstr(e.text, "32 bits"));
	static const char *const bad[] = { "", "-", "+", " 1", "1 ", "1.0", "0x1", "2147483648", "-2147483649", "99999999999999999999" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		FRAME_OF(&f, "consumerGroup", "G", "topic", "T", "commitOffset", "1", "queueId", bad[i]);
		assert_int_equal(header_decode(&update_offset_header_desc, &f, &h, &e), MQ_EINVAL);
	}
	FRAME_OF(&f, "consumerGroup", "G", "topic", "T", "queueId", "-2147483648", "commitOffset", "-9223372036854775808");
	assert_int_equal(header_decode(&update_offset_header_desc, &f, &h, &e), 0);
	assert_int_equal(h.queueId, INT32_MIN);
	assert_true(h.commitOffset == INT64_MIN);
	FRAME_OF(&f, "consumerGroup", "G", "topic", "T", "queueId", "0", "commitOffset", "9223372036854775808");
	assert_int_equal(header_decode(&update_offset_header_desc, &f, &h, &e), MQ_EINVAL);
}

static void an_optional_number_may_be_empty_and_the_last_of_two_counts(void **state)
{
	struct send_back_header h;
	struct mq_error e;
	struct frame f;

	FRAME_OF(&f, "offset", "1", "group", "G", "delayLevel", "0", "maxReconsumeTimes", "", "offset", "2");
	assert_int_equal(header_decode(&send_back_header_desc, &f, &h, &e), 0);
	assert_false(HEADER_HAS(send_back_header, &h, maxReconsumeTimes));
	assert_true(h.offset == 2);
	FRAME_OF(&f, "offset", "1", "group", "G", "delayLevel", "0", "maxReconsumeTimes", "x");
	assert_int_equal(header_decode(&send_back_header_desc, &f, &h, &e), MQ_EINVAL);
}

/* compat: only the word counts, as with the peer: the C++ client writes 1 and is not understood there either. */
static void booleans(void **state)
{
	static const struct { const char *text; bool v; } cases[] = {
		{ "true", true }, { "True", true }, { "TRUE", true }, { "1", false }, { "yes", false }, { "", false }, { "true ", false },
		{ "trux", false }, { "false", false },
	};
	struct delete_group_header h;
	struct mq_error e;
	struct frame f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FRAME_OF(&f, "groupName", "G", "cleanOffset", cases[i].text);
		assert_int_equal(header_decode(&delete_group_header_desc, &f, &h, &e), 0);
		assert_int_equal(h.cleanOffset, cases[i].v);
	}
}

/* In whatever order peers send them: the guess of the row must never decide. */
static void any_order_of_fields(void **state)
{
	static const char *const names[] = { "consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset",
		"suspendTimeoutMillis", "subscription", "subVersion", "expressionType", "bname", "unknown", "ReqT" };
	enum { N = sizeof(names) / sizeof(names[0]) };
	char values[N][8];
	int order[N];
	unsigned seed = 3;
	struct pull_header h;
	struct mq_error e;
	struct frame f;

	for (int i = 0; i < N; i++) {
		order[i] = i;
		values[i][0] = (char)('1' + i % 9);
		values[i][1] = 0;
	}
	for (int round = 0; round < 500; round++) {
		f = (struct frame){ 0 };
		for (int i = N - 1; i > 0; i--) {
			int k = rand_r(&seed) % (i + 1), swap = order[i];

			order[i] = order[k];
			order[k] = swap;
		}
		for (int i = 0; i < N; i++)
			f.field[f.nfields++] = (struct frame_field){ str_of(names[order[i]]), str_of(values[order[i]]) };
		assert_int_equal(header_decode(&pull_header_desc, &f, &h, &e), 0);
		assert_true(str_is(h.consumerGroup, "1") && str_is(h.topic, "2") && h.queueId == 3 && h.queueOffset == 4 && h.maxMsgNums == 5);
		assert_true(h.sysFlag == 6 && h.commitOffset == 7 && h.suspendTimeoutMillis == 8 && str_is(h.subscription, "9"));
		assert_true(h.subVersion == 1 && str_is(h.expressionType, "2") && str_is(h.bname, "3"));
	}
}

static void encoding_leaves_out_what_is_not_there(void **state)
{
	struct send_header h = { .topic = MQ_STR("T"), .producerGroup = MQ_STR("P"), .defaultTopic = MQ_STR("TBW102"), .queueId = -1 };
	struct buf b = { 0 };
	struct frame_out o;
	struct mq_error e;
	struct frame f;

	HEADER_SET(send_header, &h, batch);
	frame_request(&o, &b, FRAME_JSON, REQ_SEND_MESSAGE_V2, 1, 0);
	header_encode(&send_header_desc, &h, true, &o);
	frame_end(&o);
	assert_int_equal(frame_parse(b.p, b.n, &f, &e), 0);
	assert_true(str_is(frame_get(&f, "b"), "T"));
	assert_true(str_is(frame_get(&f, "e"), "-1"));
	assert_true(str_is(frame_get(&f, "d"), "0"));
	assert_true(str_is(frame_get(&f, "m"), "false"));
	assert_null(frame_get(&f, "i").p);
	assert_null(frame_get(&f, "j").p);
	assert_null(frame_get(&f, "topic").p);
	b.n = 0;
	frame_request(&o, &b, FRAME_JSON, REQ_SEND_MESSAGE, 1, 0);
	header_encode(&send_header_desc, &h, false, &o);
	frame_end(&o);
	assert_int_equal(frame_parse(b.p, b.n, &f, &e), 0);
	assert_true(str_is(frame_get(&f, "topic"), "T"));
	assert_null(frame_get(&f, "b").p);
	buf_free(&b);
}

static void every_request_has_a_name_a_header_and_fields_with_different_names(void **state)
{
	size_t n;
	const struct request_row *rows = request_rows(&n);

	assert_true(n > 100);
	for (size_t i = 0; i < n; i++) {
		const struct header_desc *descs[2] = { rows[i].header, rows[i].answer };

		assert_ptr_equal(request_find(rows[i].code), &rows[i]);
		assert_true(strlen(rows[i].name) > 0);
		for (int k = 0; k < 2; k++) {
			const struct header_desc *d = descs[k];

			assert_non_null(d);
			for (uint32_t a = 0; a < d->n; a++)
				for (uint32_t c = a + 1; c < d->n; c++)
					assert_string_not_equal(d->field[a].name, d->field[c].name);
		}
	}
	assert_null(request_find(13));
	assert_null(request_find(-1));
	assert_string_equal(request_find(310)->name, "SEND_MESSAGE_V2");
	assert_string_equal(response_name(17), "TOPIC_NOT_EXIST");
	assert_string_equal(response_name(1234), "RESPONSE_1234");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_letters_mean_the_same),
		cmocka_unit_test(absent_fields_get_their_defaults),
		cmocka_unit_test(what_is_missing_or_wrong_is_named),
		cmocka_unit_test(an_optional_number_may_be_empty_and_the_last_of_two_counts),
		cmocka_unit_test(booleans),
		cmocka_unit_test(any_order_of_fields),
		cmocka_unit_test(encoding_leaves_out_what_is_not_there),
		cmocka_unit_test(every_request_has_a_name_a_header_and_fields_with_different_names),
	};

	return cmocka_run_group_tests_name("header", tests, NULL, NULL);
}
