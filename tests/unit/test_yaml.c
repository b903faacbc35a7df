/* test_yaml.c: YAML as values, values as YAML, and what is refused with its line. */
#include "base/yaml.h"
#include "base/json.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static void assert_reads(const char *text, const char *want)
{
	struct mq_error e = { 0 };
	json_t *doc = yaml_parse(str_of(text), &e), *as = json_loads(want, 0, NULL);

	assert_non_null(as);
	if (!doc)
		fail_msg("%s", e.text);
	assert_true(json_equal(doc, as));
	json_decref(doc);
	json_decref(as);
}

static void assert_refused(const char *text, const char *why)
{
	struct mq_error e = { 0 };

	assert_null(yaml_parse(str_of(text), &e));
	if (!strstr(e.text, why))
		fail_msg("'%s' instead of '%s'", e.text, why);
}

static void a_file_of_accounts_becomes_maps_lists_and_texts(void **state)
{
	assert_reads("# who\nglobalWhiteRemoteAddresses:\n- 10.1.7.*\n- \"10.1.8.{3,4}\"\naccounts:\n- accessKey: orders-app\n  admin: false\n"
		     "  topicPerms: [ orders=PUB|SUB, 'it''s=DENY' ]\n  secretKey: 12345678\n  whiteRemoteAddress:\n",
		     "{\"globalWhiteRemoteAddresses\":[\"10.1.7.*\",\"10.1.8.{3,4}\"],\"accounts\":[{\"accessKey\":\"orders-app\","
		     "\"admin\":\"false\",\"topicPerms\":[\"orders=PUB|SUB\",\"it's=DENY\"],\"secretKey\":\"12345678\","
		     "\"whiteRemoteAddress\":null}]}");
	assert_reads("{a: ~, b: 'null', c: \"\", d: null}", "{\"a\":null,\"b\":\"null\",\"c\":\"\",\"d\":null}");
}

static void nothing_is_an_empty_map(void **state)
{
	assert_reads("", "{}");
	assert_reads("# nothing yet\n", "{}");
	assert_reads("---\n", "{}");
	assert_reads("---\n...\n", "{}");
}

static void what_is_no_such_document_is_refused_with_its_line(void **state)
{
	assert_refused("a: 1\nb: [ 2\n", "line 3");
	assert_refused("a: 1\nb: {c: 2\nd", "line");
	assert_refused("- a\n- b\n", "a map (key: value) was expected");
	assert_refused("just words\n", "a map (key: value) was expected");
	assert_refused("a: 1\n---\nb: 2\n", "second document");
	assert_refused("a: 1\na: 2\n", "line 2: this key was there before");
	assert_refused("a: &x 1\nb: *x\n", "anchors");
	assert_refused("b: *x\n", "aliases");
	assert_refused("a: !!int 3\n", "tags");
	assert_refused("? [a]\n: b\n", "a key has to be a text");
	assert_refused("a: [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n", "nested too deeply");
	assert_refused("a: \xff\xfe\n", "line");
}

static void too_much_of_it_is_refused(void **state)
{
	struct mq_error e = { 0 };
	char *p = calloc(1, YAML_TEXT_MAX + 1);

	memset(p, '#', YAML_TEXT_MAX + 1);
	assert_null(yaml_parse((struct mq_str){ p, YAML_TEXT_MAX + 1 }, &e));
	assert_int_equal(e.code, MQ_ETOOBIG);
	free(p);
}

static void what_is_written_reads_the_same(void **state)
{
	static const char *const texts[] = {
		"{\"accounts\":[{\"accessKey\":\"orders-app\",\"topicPerms\":[\"a=PUB|SUB\",\"b=DENY\"]}],\"z\":{\"y\":\"x\"}}",
		"{\"odd\":[\"\",\"null\",\"~\",\" blank \",\"a: b\",\"# c\",\"*\",\"10.1.*.*\",\"- d\",\"'\\\"\",\"two\\nlines\",\"\\u00e4\\u20ac\"]}",
		"{\"empty\":[],\"none\":{}}",
		"{}",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		json_t *doc = json_loads(texts[i], 0, NULL), *back;
		struct mq_error e = { 0 };
		struct buf b = { 0 };

		yaml_write(doc, &b);
		back = yaml_parse(buf_view(&b), &e);
		if (!back || !json_equal(doc, back))
			fail_msg("%s: " MQ_STR_FMT ": %s", texts[i], (int)b.n, b.p, e.text);
		json_decref(doc);
		json_decref(back);
		buf_free(&b);
	}
}

static void numbers_and_truths_are_written_plain_and_nothing_is_left_out(void **state)
{
	json_t *doc = json_loads("{\"counter\":3,\"admin\":true,\"no\":false,\"none\":null}", 0, NULL);
	struct buf b = { 0 };

	yaml_write(doc, &b);
	buf_char(&b, '\0');
	assert_string_equal(b.p, "counter: 3\nadmin: true\nno: false\n");
	json_decref(doc);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_accounts_becomes_maps_lists_and_texts),
		cmocka_unit_test(nothing_is_an_empty_map),
		cmocka_unit_test(what_is_no_such_document_is_refused_with_its_line),
		cmocka_unit_test(too_much_of_it_is_refused),
		cmocka_unit_test(what_is_written_reads_the_same),
		cmocka_unit_test(numbers_and_truths_are_written_plain_and_nothing_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
