/* The properties text: what exists in it, what is found, what is written. */
#include "codec/property.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#define assert_str(s, text) assert_string_equal(show(s), text)

static const char *show(struct mq_str s)
{
	static char text[64];
	if (s.p == NULL)
		return "(none)";
	snprintf(text, sizeof(text), "%.*s", (int)s.n, s.p);
	return text;
}

static void get_finds_a_value_wherever_it_stands(void **state)
{
	struct mq_str p = MQ_STR("KEYS\1k1 k2\2WAIT\1true\2TAGS\1t\2a\1b\2LONGER_THAN_ONE_BLOCK_OF_SIXTEEN\1value also longer than one\2");
	assert_str(mq_prop_get(p, "KEYS"), "k1 k2");
	assert_str(mq_prop_get(p, "TAGS"), "t");
	assert_str(mq_prop_get(p, "a"), "b");
	assert_str(mq_prop_get(p, "LONGER_THAN_ONE_BLOCK_OF_SIXTEEN"), "value also longer than one");
	assert_str(mq_prop_get(p, "KEY"), "(none)");
	assert_str(mq_prop_get(p, "KEYSS"), "(none)");
	assert_str(mq_prop_get(p, ""), "(none)");
	assert_str(mq_prop_get((struct mq_str){ NULL, 0 }, "KEYS"), "(none)");
}

static void last_of_two_with_one_name_wins(void **state)
{
	struct property_scan s;
	struct mq_str p = MQ_STR("UNIQ_KEY\1of member\2WAIT\1false\2UNIQ_KEY\1of batch\2WAIT\1true\2");
	assert_str(mq_prop_get(p, "UNIQ_KEY"), "of batch");
	property_scan(p, &s);
	assert_str(s.uniq_key, "of batch");
	assert_true(s.wait);
}

static void an_empty_value_does_not_exist(void **state)
{
	struct property_scan s;
	struct mq_str p = MQ_STR("TAGS\1\2KEYS\1old\2KEYS\1\2\1noname\2nosep\2\2\2");
	assert_str(mq_prop_get(p, "TAGS"), "(none)");
	assert_str(mq_prop_get(p, "KEYS"), "old");
	assert_str(mq_prop_get(p, "nosep"), "(none)");
	property_scan(p, &s);
	assert_null(s.tags.p);
	assert_str(s.keys, "old");
}

static void a_missing_final_separator_is_accepted(void **state)
{
	struct property_scan s;
	struct mq_str p = MQ_STR("KEYS\1k\2TAGS\1tag");
	assert_str(mq_prop_get(p, "TAGS"), "tag");
	property_scan(p, &s);
	assert_true(s.ends_open);
	assert_str(s.tags, "tag");
	property_scan(MQ_STR("TAGS\1tag\2"), &s);
	assert_false(s.ends_open);
	property_scan(MQ_STR(""), &s);
	assert_false(s.ends_open);
	assert_true(s.wait);
}

static void a_second_01_belongs_to_the_value(void **state)
{
	struct mq_str p = MQ_STR("k\1a\1b\2"), name, value;
	size_t pos = 0;
	assert_str(mq_prop_get(p, "k"), "a\1b");
	assert_true(mq_prop_next(p, &pos, &name, &value));
	assert_str(value, "a\1b");
	assert_false(mq_prop_next(p, &pos, &name, &value));
}

static void next_walks_in_order_and_skips_what_does_not_exist(void **state)
{
	struct mq_str p = MQ_STR("a\0011\2x\2b\1\2b\0012\2a\0013"), name, value;
	size_t pos = 0;
	assert_true(mq_prop_next(p, &pos, &name, &value));
	assert_str(name, "a");
	assert_str(value, "1");
	assert_true(mq_prop_next(p, &pos, &name, &value));
	assert_str(name, "b");
	assert_str(value, "2");
	assert_true(mq_prop_next(p, &pos, &name, &value));
	assert_str(name, "a");
	assert_str(value, "3");
	assert_false(mq_prop_next(p, &pos, &name, &value));
}

static void scan_finds_all_that_broker_and_store_want(void **state)
{
	struct property_scan s;
	property_scan(MQ_STR("UNIQ_KEY\1u\2KEYS\1k\2TAGS\1t\2DELAY\0013\2WAIT\1FALSE\2TRAN_MSG\1TRUE\2TIMER_DELAY_SEC\0015\2"
			     "POP_CK\1c\2CLUSTER\1c\2MSG_REGION\1r\2TRACE_ON\1true\2"), &s);
	assert_str(s.uniq_key, "u");
	assert_str(s.keys, "k");
	assert_str(s.tags, "t");
	assert_int_equal(s.delay_level, 3);
	assert_false(s.wait);
	assert_true(s.tran_msg && s.timer && s.has_pop_ck && s.has_cluster && s.has_region && s.has_trace);

	property_scan(MQ_STR("KEYZ\1k\2POP_CC\1c\2CLUSTES\1c\2MSG_REGIOM\1r\2TRACE_OM\1true\2TRAN_MSH\1true\2DELAX\0013\2WAIS\1false\2"
			     "TIMER_DELAY_MT\0011\2TIMER_DELAY_SED\0011\2TIMER_DELIVER_MT\0011\2"), &s);
	assert_null(s.keys.p);
	assert_int_equal(s.delay_level, 0);
	assert_true(s.wait);
	assert_false(s.tran_msg || s.timer || s.has_pop_ck || s.has_cluster || s.has_region || s.has_trace);

	property_scan(MQ_STR("TIMER_DELAY_MS\0011\2"), &s);
	assert_true(s.timer);
	property_scan(MQ_STR("TIMER_DELIVER_MS\0011\2"), &s);
	assert_true(s.timer);
}

static void a_delay_that_is_no_number_is_none(void **state)
{
	struct property_scan s;
	const char *bad[] = { "DELAY\1abc", "DELAY\1-1", "DELAY\00199999999999", "DELAY\0012x" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		property_scan(str_of(bad[i]), &s);
		assert_int_equal(s.delay_level, 0);
	}
	property_scan(MQ_STR("DELAY\0015\2DELAY\1x\2"), &s);
	assert_int_equal(s.delay_level, 0);
}

static void put_refuses_separators_and_an_empty_name(void **state)
{
	struct buf b = { 0 };
	assert_int_equal(property_put(&b, MQ_STR("a\1"), MQ_STR("v")), MQ_EINVAL);
	assert_int_equal(property_put(&b, MQ_STR("a"), MQ_STR("v\2")), MQ_EINVAL);
	assert_int_equal(property_put(&b, MQ_STR(""), MQ_STR("v")), MQ_EINVAL);
	assert_int_equal(b.n, 0);
	assert_int_equal(property_put(&b, MQ_STR("name"), MQ_STR("v")), 0);
	assert_int_equal(property_put(&b, MQ_STR("x"), MQ_STR("y z")), 0);
	assert_true(str_eq(buf_view(&b), MQ_STR("name\1v\2x\1y z\2")));
	buf_free(&b);
}

static void copy_leaves_out_what_is_named(void **state)
{
	struct buf b = { 0 };
	const char *const drop[] = { "WAIT", "b", NULL };
	property_copy_without(&b, MQ_STR("a\0011\2WAIT\1true\2b\0012\2c\0013\2WAIT\1x\2junk\2d\0014"), drop);
	assert_true(str_eq(buf_view(&b), MQ_STR("a\0011\2c\0013\2d\0014\2")));
	buf_free(&b);
}

/* The block-wise pass against the plain walk, over random texts of a few bytes of alphabet, in exactly sized memory. */
static void both_readers_agree_on_any_text(void **state)
{
	unsigned seed = 7;
	for (int round = 0; round < 20000; round++) {
		size_t n = (size_t)(rand_r(&seed) % 80), pos = 0;
		char *text = malloc(n ? n : 1);
		for (size_t i = 0; i < n; i++)
			text[i] = "\1\2ab\377"[rand_r(&seed) % 5];
		struct mq_str p = { text, n }, name, value, last = { NULL, 0 };
		while (mq_prop_next(p, &pos, &name, &value))
			if (str_eq(name, MQ_STR("a")))
				last = value;
		struct mq_str got = mq_prop_get(p, "a");
		assert_ptr_equal(got.p, last.p);
		assert_int_equal(got.n, last.n);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_finds_a_value_wherever_it_stands),
		cmocka_unit_test(last_of_two_with_one_name_wins),
		cmocka_unit_test(an_empty_value_does_not_exist),
		cmocka_unit_test(a_missing_final_separator_is_accepted),
		cmocka_unit_test(a_second_01_belongs_to_the_value),
		cmocka_unit_test(next_walks_in_order_and_skips_what_does_not_exist),
		cmocka_unit_test(scan_finds_all_that_broker_and_store_want),
		cmocka_unit_test(a_delay_that_is_no_number_is_none),
		cmocka_unit_test(put_refuses_separators_and_an_empty_name),
		cmocka_unit_test(copy_leaves_out_what_is_named),
		cmocka_unit_test(both_readers_agree_on_any_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
