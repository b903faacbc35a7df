/* test_str.c: numbers in, pieces, what is shown of bytes, and the Java hash (values by java.lang.String of JDK 17). */
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void whole_numbers_are_taken_whole_or_not_at_all(void **state)
{
	int64_t v = 7;
	int32_t w = 7;

	assert_int_equal(str_i64(MQ_STR("9223372036854775807"), &v), 0);
	assert_true(v == INT64_MAX);
	assert_int_equal(str_i64(MQ_STR("-9223372036854775808"), &v), 0);
	assert_true(v == INT64_MIN);
	assert_int_equal(str_i64(MQ_STR("+0012"), &v), 0);
	assert_int_equal(v, 12);
	v = 7;
	const char *wrong[] = { "", "-", "+", "9223372036854775808", "-9223372036854775809", "1x", " 1", "1 ", "0x10", "1.0" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(str_i64(str_of(wrong[i]), &v), MQ_EINVAL);
		assert_int_equal(v, 7);
	}
	assert_int_equal(str_i32(MQ_STR("2147483648"), &w), MQ_EINVAL);
	assert_int_equal(w, 7);
	assert_int_equal(str_i32(MQ_STR("-2147483648"), &w), 0);
	assert_int_equal(w, INT32_MIN);
}

static void sizes_have_units_in_powers_of_1024(void **state)
{
	const struct { const char *text; int64_t bytes; } good[] = {
		{ "10", 10 }, { "64K", 65536 }, { "64kb", 65536 }, { "64KiB", 65536 }, { "1.5G", 1610612736 }, { " 2 M ", 2097152 },
		{ "0", 0 }, { "7B", 7 }, { "8388607T", 8388607LL << 40 }, { "0.000001M", 1 },
	};
	const char *wrong[] = { "", "K", "-1", "1.K", ".5K", "1X", "1 K B", "9000000000T", "99999999999999999999" };
	int64_t v;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(str_size(str_of(good[i].text), &v), 0);
		assert_true(v == good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(str_size(str_of(wrong[i]), &v), MQ_EINVAL);
}

static void durations_have_units_or_take_the_one_given(void **state)
{
	const struct { const char *text; int64_t unit, ms; } good[] = {
		{ "500ms", 1000, 500 }, { "10s", 1, 10000 }, { "5m", 1, 300000 }, { "2h", 1, 7200000 }, { "3d", 1, 259200000 },
		{ "10", 1000, 10000 }, { "10", 1, 10 }, { "1.5s", 1, 1500 }, { "0.25", 1000, 250 },
	};
	const char *wrong[] = { "", "s", "1w", "-5s", "1s1", "1e3" };
	int64_t v;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(str_duration(str_of(good[i].text), good[i].unit, &v), 0);
		assert_true(v == good[i].ms);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(str_duration(str_of(wrong[i]), 1, &v), MQ_EINVAL);
}

static void doubles_are_plain_decimal(void **state)
{
	double v = 3;

	assert_int_equal(str_double(MQ_STR("-1.25e2"), &v), 0);
	assert_true(v == -125.0);
	const char *wrong[] = { "", "nan", "inf", "0x1p3", "1.2.3", "1e999", "1,5" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(str_double(str_of(wrong[i]), &v), MQ_EINVAL);
	assert_int_equal(str_double((struct mq_str){ "1\0", 2 }, &v), MQ_EINVAL);
}

static void true_is_a_word_and_all_else_is_false(void **state)
{
	assert_true(str_bool(MQ_STR("TRUE")));
	assert_false(str_bool(MQ_STR("1")));
	assert_false(str_bool(MQ_STR("true ")));
}

static void splitting_gives_empty_pieces_too(void **state)
{
	struct mq_str rest = MQ_STR("a;;b;"), piece;
	const char *want[] = { "a", "", "b", "" };
	size_t n = 0;

	for (; str_split(&rest, ';', &piece); n++) {
		assert_true(n < 4);
		assert_true(str_is(piece, want[n]));
	}
	assert_int_equal(n, 4);
}

static void java_hash_is_over_utf16_units(void **state)
{
	const struct { const char *text; int32_t hash; } t[] = {
		{ "", 0 }, { "a", 97 }, { "Aa", 2112 }, { "BB", 2112 }, { "TagA", 2598919 }, { "hello world, this is mq", 1007715728 },
		{ "订单", 1129459 }, { "é", 233 }, { "😀", 1772899 }, { "a😀b", 57849694 }, { "polygenelubricants", INT32_MIN },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(str_java_hash(str_of(t[i].text)), t[i].hash);
}

/* What the JDK's decoder makes of damaged bytes: one U+FFFD for each of its groups. */
static void java_hash_of_damaged_utf8_is_that_of_the_decoded_text(void **state)
{
	const struct { const char *bytes; int32_t hash; } t[] = {
		{ "\xff", 65533 }, { "a\xc3", 68540 }, { "\xed\xa0\x80", 65533 }, { "\xe4\xb8" "x", 2031643 },
		{ "\xf0\x9f\x98" "x", 2031643 }, { "\xf5\x80", 2097056 }, { "\xc0\x80", 2097056 }, { "\xe0\x80\x80", 65074269 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(str_java_hash(str_of(t[i].bytes)), t[i].hash);
}

static void java_hash_goes_on_where_it_stopped(void **state)
{
	const char *text = "topic-with-a-name#key-0123456789";

	for (size_t cut = 0; cut <= strlen(text); cut++) {
		int32_t h = str_java_hash((struct mq_str){ text, cut });

		assert_int_equal(str_java_hash_more(h, str_of(text + cut)), str_java_hash(str_of(text)));
	}
}

static void shown_text_holds_nothing_that_moves_a_cursor(void **state)
{
	char out[64];

	assert_string_equal(str_show(MQ_STR("a\x1b[2J\n\x7f\xc2\x9b é\xff"), out, sizeof(out)),
			    "a\\x1b[2J\\x0a\\x7f\\xc2\\x9b é\\xff");
}

static void shown_text_that_was_cut_says_so_and_stays_whole_utf8(void **state)
{
	char out[8];

	assert_string_equal(str_show(MQ_STR("1234567"), out, sizeof(out)), "1234567");
	assert_string_equal(str_show(MQ_STR("12345678"), out, sizeof(out)), "1234...");
	assert_string_equal(str_show(MQ_STR("123é56789"), out, sizeof(out)), "123...");
	assert_string_equal(str_show(MQ_STR("12345678"), out, 2), ".");
	assert_string_equal(str_show(MQ_STR("12345678"), out, 1), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_are_taken_whole_or_not_at_all),
		cmocka_unit_test(sizes_have_units_in_powers_of_1024),
		cmocka_unit_test(durations_have_units_or_take_the_one_given),
		cmocka_unit_test(doubles_are_plain_decimal),
		cmocka_unit_test(true_is_a_word_and_all_else_is_false),
		cmocka_unit_test(splitting_gives_empty_pieces_too),
		cmocka_unit_test(java_hash_is_over_utf16_units),
		cmocka_unit_test(java_hash_of_damaged_utf8_is_that_of_the_decoded_text),
		cmocka_unit_test(java_hash_goes_on_where_it_stopped),
		cmocka_unit_test(shown_text_holds_nothing_that_moves_a_cursor),
		cmocka_unit_test(shown_text_that_was_cut_says_so_and_stays_whole_utf8),
	};
	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
