/* Names of topics and groups: one rule, with a text that says what is wrong. */
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void every_allowed_character_is_allowed(void **state)
{
	assert_int_equal(mq_check_topic(MQ_STR("%|abcXYZ019_-"), NULL), 0);
	assert_int_equal(mq_check_group(MQ_STR("%|abcXYZ019_-"), NULL), 0);
	int allowed = 0;
	for (int c = 0; c < 256; c++) {
		char name = (char)c;
		allowed += mq_check_topic((struct mq_str){ &name, 1 }, NULL) == 0;
	}
	assert_int_equal(allowed, 26 + 26 + 10 + 4);
}

static void text_of(struct mq_str name, const char *text)
{
	struct mq_error e;
	assert_int_equal(mq_check_topic(name, &e), MQ_EINVAL);
	assert_int_equal(e.code, MQ_EINVAL);
	assert_string_equal(e.text, text);
}

static void the_text_names_the_character(void **state)
{
	text_of(MQ_STR("a b"), "topic 'a b': illegal character ' '");
	text_of(MQ_STR("../x"), "topic '../x': illegal character '.'");
	text_of(MQ_STR("a/b"), "topic 'a/b': illegal character '/'");
	text_of(MQ_STR("x标签"), "topic 'x标签': illegal character '标'");
	text_of(MQ_STR("a\nb"), "topic 'a\\x0ab': illegal character '\\x0a'");
	text_of(MQ_STR("a\0b"), "topic 'a\\x00b': illegal character '\\x00'");
	text_of(MQ_STR("a\377b"), "topic 'a\\xffb': illegal character '\\xff'");
	text_of(MQ_STR(""), "topic: name is empty");
}

static void lengths_are_limited(void **state)
{
	char x[300];
	struct mq_error e;
	memset(x, 'x', sizeof(x));
	assert_int_equal(mq_check_topic((struct mq_str){ x, 127 }, NULL), 0);
	assert_int_equal(mq_check_topic((struct mq_str){ x, 128 }, &e), MQ_EINVAL);
	assert_non_null(strstr(e.text, ": 128 characters, at most 127 are allowed"));
	assert_int_equal(mq_check_group((struct mq_str){ x, 255 }, NULL), 0);
	assert_int_equal(mq_check_group((struct mq_str){ x, 256 }, &e), MQ_EINVAL);
	assert_non_null(strstr(e.text, ": 256 characters, at most 255 are allowed"));
}

static void topics_of_a_group_may_be_as_long_as_a_group(void **state)
{
	char x[300];
	memset(x, 'x', sizeof(x));
	memcpy(x, "%RETRY%", 7);
	assert_int_equal(mq_check_topic((struct mq_str){ x, 255 }, NULL), 0);
	assert_int_equal(mq_check_topic((struct mq_str){ x, 256 }, NULL), MQ_EINVAL);
	memcpy(x, "%DLQ%xx", 7);
	assert_int_equal(mq_check_topic((struct mq_str){ x, 255 }, NULL), 0);
	memcpy(x, "%DLX%xx", 7);
	assert_int_equal(mq_check_topic((struct mq_str){ x, 255 }, NULL), MQ_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allowed_character_is_allowed),
		cmocka_unit_test(the_text_names_the_character),
		cmocka_unit_test(lengths_are_limited),
		cmocka_unit_test(topics_of_a_group_may_be_as_long_as_a_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
