/* test_json.c: what fastjson writes is read, what is no JSON is refused with its place, and what we write it reads. */
#include "base/json.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void reads_as(const char *dialect, const char *strict)
{
	struct mq_error e = { 0 };
	json_t *j = json_parse(str_of(dialect), &e);
	char *text;

	if (!j)
		fail_msg("%s: %s", dialect, e.text);
	text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
	assert_string_equal(text, strict);
	free(text);
	json_decref(j);
}

static void refused(const char *text, const char *why)
{
	struct mq_error e = { 0 };

	assert_null(json_parse(str_of(text), &e));
	assert_int_equal(e.code, MQ_EINVAL);
	assert_string_equal(e.text, why);
}

static void strict_json_stays_as_it_is(void **state)
{
	const char *same[] = { "{}", "[]", "null", "\"x\"", "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"d\":true}", "-12", "\"\\u0000\"" };

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		reads_as(same[i], same[i]);
}

static void bare_keys_become_strings(void **state)
{
	reads_as("{0:\"127.0.0.1:10911\",1:\"127.0.0.1:10921\"}", "{\"0\":\"127.0.0.1:10911\",\"1\":\"127.0.0.1:10921\"}");
	reads_as("{-1:1,name:2,_x.y-z:3,null:4}", "{\"-1\":1,\"name\":2,\"_x.y-z\":3,\"null\":4}");
}

/* The offset table of the peer; its key read once more gives the queue. */
static void an_object_as_key_becomes_its_text(void **state)
{
	const char *text = "{\"offsetTable\":{{\"brokerName\":\"b\",\"queueId\":0,\"topic\":\"t\"}:{\"brokerOffset\":5},"
			   "{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"t\"}:{\"brokerOffset\":7}}}";
	json_t *j = json_parse(str_of(text), NULL), *table = json_object_at(j, "offsetTable"), *v;
	int64_t sum = 0, ids = 0;
	const char *key;

	assert_int_equal(json_object_size(table), 2);
	json_object_foreach(table, key, v) {
		json_t *queue = json_parse(str_of(key), NULL);

		assert_true(str_is(json_str(queue, "topic"), "t"));
		ids += json_i64(queue, "queueId", -100);
		sum += json_i64(v, "brokerOffset", -100);
		json_decref(queue);
	}
	assert_int_equal(ids, 1);
	assert_int_equal(sum, 12);
	json_decref(j);
	reads_as("{{a:{'b':1}}:{[1,2]:3}}", "{\"{a:{'b':1}}\":{\"[1,2]\":3}}");
}

static void loose_forms_of_fastjson_are_taken(void **state)
{
	reads_as("{'a':'it\\'s \"x\"',}", "{\"a\":\"it's \\\"x\\\"\"}");
	reads_as(" [ , 1,, 2 , ] ", "[1,2]");
	reads_as("/* c */{a:1 // d\n,b:2}", "{\"a\":1,\"b\":2}");
	reads_as("[1L,2.5F,+3,007,1.,NaN,undefined]", "[1,2.5,3,7,1.0,null,null]");
	reads_as("\"\\x41\\v\\/\\0\"", "\"A\\u000B/\\u0000\"");
	reads_as("[1]\n\n", "[1]");
}

static void what_no_encoding_allows_becomes_a_replacement(void **state)
{
	reads_as("\"\\ud83d\\ude00\"", "\"😀\"");
	reads_as("\"\\ud83dx\\ude00\"", "\"\xef\xbf\xbdx\xef\xbf\xbd\"");
	reads_as("\"a\xff\xc3\"", "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
	reads_as("\"a\tb\nc\"", "\"a\\tb\\nc\"");
}

static void integers_beyond_64_bits_become_reals(void **state)
{
	reads_as("[9223372036854775807,-9223372036854775808]", "[9223372036854775807,-9223372036854775808]");
	reads_as("[9223372036854775808]", "[9.2233720368547758e18]");
}

static void what_is_no_json_is_refused_with_its_place(void **state)
{
	refused("", "JSON expected, found nothing");
	refused("{\"a\":1 \"b\":2}", "JSON byte 7: expected a comma, found '\"b\":2}'");
	refused("{\"a\" 1}", "JSON byte 5: expected a colon after the key, found '1}'");
	refused("{\"a\":", "JSON byte 5: expected a value, found the end");
	refused("[1,2", "JSON byte 4: expected ] at the end of an array, found the end");
	refused("{a:1", "JSON byte 4: expected } at the end of an object, found the end");
	refused("[1]]", "JSON byte 3: expected the end, found ']'");
	refused("\"abc", "JSON byte 4: expected \" at the end of a string, found the end");
	refused("\"\\q\"", "JSON byte 2: expected a known escape after \\, found 'q\"'");
	refused("[1x]", "JSON byte 1: expected a value, found '1x]'");
	refused("{:1}", "JSON byte 1: expected a key, found ':1}'");
	refused("[1e999]", "JSON: real number overflow near '1e999'");
}

static void nesting_is_bounded_also_in_keys(void **state)
{
	struct mq_error e;
	struct buf b = { 0 };
	json_t *j;

	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		buf_char(&b, '[');
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		buf_char(&b, ']');
	j = json_parse(buf_view(&b), &e);
	assert_non_null(j);
	json_decref(j);
	for (int kind = 0; kind < 3; kind++) {
		b.n = 0;
		for (int i = 0; i < 200000; i++)
			buf_cstr(&b, kind == 0 ? "[" : kind == 1 ? "{" : "{a:");
		assert_null(json_parse(buf_view(&b), &e));
		assert_non_null(strstr(e.text, "no deeper nesting"));
	}
	buf_free(&b);
}

/* Random damage of a real body: an answer or a refusal, never a crash (the sanitizers watch). */
static void damaged_text_never_crashes(void **state)
{
	const char *text = "{\"a\":{0:'x',{\"q\":1}:[1.5e3,true,\"\\u00e9\"]},/*c*/b:-7L}";
	char copy[100];

	srand(5);
	for (int i = 0; i < 200000; i++) {
		size_t n = strlen(text);
		struct mq_error e;
		json_t *j;

		memcpy(copy, text, n);
		for (int k = rand() % 4; k >= 0; k--)
			copy[(size_t)rand() % n] = "{}[]\"':,\\u0eE+-./*\xff x"[rand() % 22];
		j = json_parse((struct mq_str){ copy, n - (size_t)rand() % 5 }, &e);
		json_decref(j);
	}
}

static void members_convert_between_text_and_number(void **state)
{
	json_t *j = json_parse(MQ_STR("{n:\" 12 \",s:34,b:\"TRUE\",one:1,zero:\"0\",d:\"1.5\",r:2.9,t:true,nul:null,o:{},a:[]}"), NULL);

	assert_int_equal(json_i64(j, "n", -1), 12);
	assert_int_equal(json_i64(j, "r", -1), 2);
	assert_int_equal(json_i64(j, "t", -1), -1);
	assert_int_equal(json_i64(j, "nul", -1), -1);
	assert_int_equal(json_i64(j, "none", -1), -1);
	assert_true(str_is(json_str(j, "s"), "34"));
	assert_int_equal(json_i64(j, "s", -1), 34);
	assert_true(str_is(json_str(j, "r"), "2.9"));
	assert_true(str_is(json_str(j, "t"), "true"));
	assert_null(json_str(j, "nul").p);
	assert_null(json_str(j, "o").p);
	assert_true(json_bool(j, "b", false));
	assert_true(json_bool(j, "one", false));
	assert_false(json_bool(j, "zero", true));
	assert_true(json_bool(j, "none", true));
	assert_true(json_double(j, "d", 0) == 1.5);
	assert_non_null(json_object_at(j, "o"));
	assert_null(json_object_at(j, "a"));
	assert_non_null(json_array_at(j, "a"));
	assert_null(json_array_at(j, "o"));
	assert_null(json_array_at(NULL, "o"));
	json_decref(j);
}

static void the_writer_puts_commas_where_they_belong(void **state)
{
	struct buf b = { 0 };
	struct json_out o = json_to(&b);

	json_open(&o, '{');
	json_member_cstr(&o, "a", "x\"\\\n\x01");
	json_member_i64(&o, "b", INT64_MIN);
	json_key(&o, "c");
	json_open(&o, '[');
	json_put_bool(&o, true);
	json_put_str(&o, (struct mq_str){ NULL, 0 });
	json_open(&o, '{');
	json_close(&o, '}');
	json_close(&o, ']');
	json_key_raw(&o, "0", 1);
	json_put_raw(&o, MQ_STR("[]"));
	json_member_double(&o, "d", 0);
	json_close(&o, '}');
	assert_true(str_is(buf_view(&b), "{\"a\":\"x\\\"\\\\\\n\\u0001\",\"b\":-9223372036854775808,\"c\":[true,null,{}],0:[],\"d\":0.0}"));
	buf_free(&b);
}

static void doubles_look_as_in_java(void **state)
{
	const struct { double v; const char *text; } t[] = {
		{ 0, "0.0" }, { 1, "1.0" }, { -2.5, "-2.5" }, { 0.1, "0.1" }, { 123456.789, "123456.789" }, { 9999999, "9999999.0" },
		{ 1e7, "1.0E7" }, { 12345678.9, "1.23456789E7" }, { 0.001, "0.001" }, { 1.5e-4, "1.5E-4" }, { 1e300, "1.0E300" },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct buf b = { 0 };

		json_put_double(&(struct json_out){ &b, false }, t[i].v);
		assert_true(str_is(buf_view(&b), t[i].text));
		buf_free(&b);
	}
}

static void quoted_text_is_always_valid(void **state)
{
	struct buf b = { 0 };

	json_quote(&b, MQ_STR("é😀\xff\x7f\u2028"), false);
	assert_true(str_is(buf_view(&b), "\"é😀\xef\xbf\xbd\\u007F\\u2028\""));
	b.n = 0;
	json_quote(&b, MQ_STR("é😀\xff"), true);
	assert_true(str_is(buf_view(&b), "\"\\u00E9\\uD83D\\uDE00\\uFFFD\""));
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict_json_stays_as_it_is),
		cmocka_unit_test(bare_keys_become_strings),
		cmocka_unit_test(an_object_as_key_becomes_its_text),
		cmocka_unit_test(loose_forms_of_fastjson_are_taken),
		cmocka_unit_test(what_no_encoding_allows_becomes_a_replacement),
		cmocka_unit_test(integers_beyond_64_bits_become_reals),
		cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
		cmocka_unit_test(nesting_is_bounded_also_in_keys),
		cmocka_unit_test(damaged_text_never_crashes),
		cmocka_unit_test(members_convert_between_text_and_number),
		cmocka_unit_test(the_writer_puts_commas_where_they_belong),
		cmocka_unit_test(doubles_look_as_in_java),
		cmocka_unit_test(quoted_text_is_always_valid),
	};
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
