/* Tag expressions and the code that a queue entry carries. */
#include "codec/tag.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>

static void code_is_the_java_hash_with_its_sign(void **state)
{
	assert_int_equal(tag_code(MQ_STR("标签😀")), 825518074);
	assert_int_equal(tag_code(MQ_STR("TagA")), 2598919);
	assert_int_equal(tag_code(MQ_STR("polygenelubricants")), INT32_MIN);
	assert_int_equal(tag_code(MQ_STR("")), 0);
}

static void star_and_nothing_mean_all(void **state)
{
	struct tag_set t;
	assert_int_equal(tag_parse(MQ_STR("*"), &t, NULL), 0);
	assert_true(t.all && tag_match_code(&t, 5) && tag_match_name(&t, MQ_STR("any")));
	tag_free(&t);
	assert_int_equal(tag_parse(MQ_STR(""), &t, NULL), 0);
	assert_true(t.all);
	tag_free(&t);
}

static void names_are_trimmed_and_matched(void **state)
{
	struct tag_set t;
	assert_int_equal(tag_parse(MQ_STR(" A || B||  ||A||c d"), &t, NULL), 0);
	assert_int_equal(t.n, 3);
	assert_true(tag_match_code(&t, 'A') && tag_match_code(&t, 'B') && !tag_match_code(&t, 'C'));
	assert_true(tag_match_code(&t, tag_code(MQ_STR("c d"))));
	assert_false(tag_match_code(&t, 0));
	assert_true(tag_match_name(&t, MQ_STR("c d")) && !tag_match_name(&t, MQ_STR("")) && !tag_match_name(&t, MQ_STR("a")));
	tag_free(&t);
}

static void a_hash_that_matches_is_not_yet_the_tag(void **state)
{
	struct tag_set t;
	assert_int_equal(tag_parse(MQ_STR("Aa"), &t, NULL), 0);
	assert_true(tag_match_code(&t, tag_code(MQ_STR("BB"))));
	assert_false(tag_match_name(&t, MQ_STR("BB")));
	tag_free(&t);
}

static void many_tags_are_found_by_search(void **state)
{
	struct tag_set t;
	char expr[4096] = "", one[16];
	for (int i = 0; i < 200; i++)
		snprintf(expr + strlen(expr), 20, "%st%d", i ? "||" : "", i);
	assert_int_equal(tag_parse(str_of(expr), &t, NULL), 0);
	assert_int_equal(t.n, 200);
	for (int i = 0; i < 400; i++) {
		snprintf(one, sizeof(one), "t%d", i);
		assert_int_equal(tag_match_code(&t, tag_code(str_of(one))), i < 200);
	}
	tag_free(&t);
}

static void an_expression_without_a_tag_is_refused(void **state)
{
	struct tag_set t;
	struct mq_error e;
	assert_int_equal(tag_parse(MQ_STR("||"), &t, &e), MQ_EINVAL);
	assert_string_equal(e.text, "tag expression '||': no tag in it, want 'A', 'A||B' or '*'");
	assert_int_equal(tag_parse(MQ_STR("  || \t"), &t, NULL), MQ_EINVAL);
}

static void a_tag_may_hold_any_byte(void **state)
{
	struct tag_set t;
	assert_int_equal(tag_parse((struct mq_str){ "a\0b||c", 6 }, &t, NULL), 0);
	assert_true(tag_match_name(&t, (struct mq_str){ "a\0b", 3 }));
	assert_false(tag_match_name(&t, MQ_STR("a")));
	tag_free(&t);
}

static void too_many_tags_are_refused(void **state)
{
	struct tag_set t;
	struct mq_error e;
	char expr[4096] = "";
	for (int i = 0; i <= TAG_MAX; i++)
		snprintf(expr + strlen(expr), 20, "%st%d", i ? "||" : "", i);
	assert_int_equal(tag_parse(str_of(expr), &t, &e), MQ_EINVAL);
	assert_string_equal(e.text, "tag expression: more than 256 tags");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_the_java_hash_with_its_sign),
		cmocka_unit_test(star_and_nothing_mean_all),
		cmocka_unit_test(names_are_trimmed_and_matched),
		cmocka_unit_test(a_hash_that_matches_is_not_yet_the_tag),
		cmocka_unit_test(many_tags_are_found_by_search),
		cmocka_unit_test(an_expression_without_a_tag_is_refused),
		cmocka_unit_test(a_tag_may_hold_any_byte),
		cmocka_unit_test(too_many_tags_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
