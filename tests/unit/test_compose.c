/* test_compose.c: records of the input as messages: keys, tags, properties, JSON lines, and what is refused. */
#include "../../bin/compose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct compose c;
static struct composed out;
static struct mq_error err;

static int setup(void **s)
{
	compose_init(&c);
	c.topic = MQ_STR("t");
	memset(&err, 0, sizeof(err));
	return 0;
}

static int teardown(void **s)
{
	compose_free(&c);
	return 0;
}

#define assert_str(view, literal) do { \
	struct mq_str v_ = (view); \
	assert_int_equal(v_.n, sizeof(literal) - 1); \
	assert_memory_equal(v_.p, literal, sizeof(literal) - 1); \
} while (0)

static int line(const char *text)
{
	return compose_record(&c, FRAME_LINE, (struct mq_str){ text, strlen(text) }, NULL, &out, &err);
}

static int json(const char *text)
{
	return compose_record(&c, FRAME_JSON, (struct mq_str){ text, strlen(text) }, NULL, &out, &err);
}

static void a_plain_line_is_the_body(void **s)
{
	assert_int_equal(line("hello"), 0);
	assert_str(out.m.topic, "t");
	assert_str(out.m.body, "hello");
	assert_int_equal(out.m.props.n, 0);
	assert_int_equal(out.m.queue_id, -1);
}

static void tag_keys_and_properties_of_all(void **s)
{
	assert_int_equal(compose_property(&c, "a=b=c", &err), 0);
	assert_int_equal(compose_property(&c, "location=Beijing,China", &err), 0);
	assert_int_equal(compose_tag(&c, "red", &err), 0);
	assert_int_equal(compose_key(&c, "k1", &err), 0);
	assert_int_equal(compose_key(&c, "k2", &err), 0);
	assert_int_equal(line("x"), 0);
	assert_str(out.m.props,
	           "a\1b=c\2location\1Beijing,China\2TAGS\1red\2KEYS\1k1 k2\2");
}

static void bad_properties_are_refused_with_a_reason(void **s)
{
	assert_int_equal(compose_property(&c, "novalue", &err), MQ_EINVAL);
	assert_string_equal(err.text, "property 'novalue': NAME=VALUE is right");
	assert_int_equal(compose_property(&c, "=x", &err), MQ_EINVAL);
	assert_int_equal(compose_property(&c, "empty=", &err), MQ_EINVAL);
	assert_string_equal(err.text, "property 'empty': an empty value is not kept by the servers");
	assert_int_equal(compose_property(&c, "a=x\1b\2c", &err), MQ_EINVAL);
	assert_string_equal(err.text, "property 'a': holds byte 0x01 or 0x02, which separate properties");
	assert_int_equal(compose_property(&c, "a\2=x", &err), MQ_EINVAL);
	assert_int_equal(compose_property(&c, "DELAY=3", &err), MQ_EINVAL);
	assert_string_equal(err.text, "property 'DELAY': this name is the system's");
	assert_int_equal(compose_property(&c, "__RMQ.TRANSIENT.x=3", &err), MQ_EINVAL);
	assert_int_equal(compose_key(&c, "k\1", &err), MQ_EINVAL);
	assert_string_equal(err.text, "key: holds byte 0x01 or 0x02, which separate properties");
	assert_int_equal(compose_tag(&c, "\2", &err), MQ_EINVAL);
	assert_string_equal(err.text, "tag: holds byte 0x01 or 0x02, which separate properties");
}

static void the_key_before_the_delimiter(void **s)
{
	c.key_delim = MQ_STR("--\n");
	assert_int_equal(line("k1--\nbody--\nmore"), 0);
	assert_str(out.m.body, "body--\nmore");
	assert_str(out.m.props, "KEYS\1k1\2");
	assert_int_equal(line("no key"), 0);
	assert_str(out.m.body, "no key");
	assert_int_equal(out.m.props.n, 0);
	assert_int_equal(line("--\nbody"), 0);
	assert_int_equal(out.m.props.n, 0);
	assert_int_equal(line("k--\n"), COMPOSE_EMPTY);
	assert_int_equal(line("k\1--\nbody"), MQ_EINVAL);
	assert_int_equal(compose_key(&c, "all", &err), 0);
	assert_int_equal(line("k1--\nbody"), 0);
	assert_str(out.m.props, "KEYS\1all k1\2");
}

static void an_id_is_a_property(void **s)
{
	assert_int_equal(compose_tag(&c, "red", &err), 0);
	assert_int_equal(compose_record(&c, FRAME_LINE, MQ_STR("x"), "AB12", &out, &err), 0);
	assert_str(out.m.props, "TAGS\1red\2UNIQ_KEY\1AB12\2");
}

static void nothing_is_no_message(void **s)
{
	assert_int_equal(line(""), COMPOSE_EMPTY);
	assert_int_equal(json(""), COMPOSE_EMPTY);
	assert_int_equal(json("{\"body\":\"\"}"), COMPOSE_EMPTY);
}

static void a_body_over_the_limit_tells_both_numbers(void **s)
{
	c.max_body = 5;
	assert_int_equal(line("12345"), 0);
	assert_int_equal(line("123456"), MQ_ETOOBIG);
	assert_string_equal(err.text, "body of 6 bytes is over the limit of 5");
}

static void json_with_everything(void **s)
{
	c.queue_from_record = true;
	assert_int_equal(json("{\"topic\":\"other\",\"queue\":\"b:1:3\",\"offset\":7,\"id\":\"X\",\"keys\":\"k1 k2\",\"tags\":\"red\","
	                      "\"properties\":{\"a\":\"b\",\"n\":12,\"yes\":true},\"properties64\":{\"bin\":\"AP8=\"},"
	                      "\"system\":{\"DELAY\":\"3\"},\"flag\":-5,\"retries\":1,\"born\":1,\"stored\":2,"
	                      "\"bornHost\":\"1.2.3.4:5\",\"storeHost\":\"1.2.3.4:5\",\"shardingKey\":\"s\",\"body\":\"h\\u00e9\"}"), 0);
	assert_str(out.m.topic, "t");
	assert_str(out.m.body, "h\xc3\xa9");
	assert_str(out.m.props, "a\1b\2n\1" "12\2yes\1true\2bin\1\0\xff\2TAGS\1red\2KEYS\1k1 k2\2");
	assert_int_equal(out.m.flag, -5);
	assert_int_equal(out.m.queue_id, 3);
	assert_string_equal(out.broker, "b:1");
	assert_str(out.sharding_key, "s");
}

static void the_queue_of_a_record_counts_only_when_asked_for(void **s)
{
	assert_int_equal(json("{\"queue\":\"b:3\",\"body\":\"x\"}"), 0);
	assert_int_equal(out.m.queue_id, -1);
	assert_string_equal(out.broker, "");
}

static void the_topic_of_a_record_counts_only_when_asked_for(void **s)
{
	c.topic = (struct mq_str){ NULL, 0 };
	assert_int_equal(json("{\"topic\":\"other\",\"body\":\"x\"}"), 0);
	assert_str(out.m.topic, "other");
	assert_int_equal(json("{\"body\":\"x\"}"), MQ_EINVAL);
	assert_string_equal(err.text, "no field 'topic', and the topic '-' takes it from there");
}

static void what_a_record_says_wins_over_the_options(void **s)
{
	assert_int_equal(compose_tag(&c, "all", &err), 0);
	assert_int_equal(compose_key(&c, "all", &err), 0);
	assert_int_equal(compose_property(&c, "a=all", &err), 0);
	assert_int_equal(json("{\"tags\":\"mine\",\"keys\":[\"k1\",\"k2\"],\"properties\":{\"a\":\"mine\"},\"body\":\"x\"}"), 0);
	assert_str(mq_prop_get(out.m.props, "TAGS"), "mine");
	assert_str(mq_prop_get(out.m.props, "KEYS"), "k1 k2");
	assert_str(mq_prop_get(out.m.props, "a"), "mine");
	assert_int_equal(json("{\"body\":\"x\"}"), 0);
	assert_str(mq_prop_get(out.m.props, "TAGS"), "all");
	assert_str(mq_prop_get(out.m.props, "KEYS"), "all");
}

static void binary_bodies_come_as_base64(void **s)
{
	assert_int_equal(json("{\"body64\":\"AAH/\"}"), 0);
	assert_str(out.m.body, "\0\1\xff");
	assert_int_equal(json("{\"body\":\"a\\u0000b\"}"), 0);
	assert_str(out.m.body, "a\0b");
	assert_int_equal(json("{\"body64\":\"AAH\"}"), MQ_EINVAL);
	assert_string_equal(err.text, "field 'body64': no base64");
	assert_int_equal(json("{\"body64\":\"A*==\"}"), MQ_EINVAL);
	assert_int_equal(json("{\"body64\":\"====\"}"), MQ_EINVAL);
}

static void json_that_is_wrong(void **s)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "{", "no JSON: " },
		{ "{} x", "no JSON: " },
		{ "[]", "an object is wanted" },
		{ "12", "no JSON: " },
		{ "{}", "no field 'body' or 'body64'" },
		{ "{\"boddy\":\"x\"}", "unknown field 'boddy'" },
		{ "{\"later\":\"3s\",\"body\":\"x\"}", "unknown field 'later'" },
		{ "{\"delay\":\"soon\",\"body\":\"x\"}", "delay 'soon'" },
		{ "{\"delay\":\"level:0\",\"body\":\"x\"}", "delay 'level:0'" },
		{ "{\"at\":\"noon\",\"body\":\"x\"}", "time 'noon'" },
		{ "{\"at\":1,\"delay\":\"1s\",\"body\":\"x\"}", "'delay' and 'at' in one line" },
		{ "{\"body\":\"x\",\"body64\":\"eA==\"}", "'body' and 'body64' in one line" },
		{ "{\"body\":{}}", "field 'body': a text is wanted" },
		{ "{\"body\":\"x\",\"properties\":[]}", "field 'properties': an object is wanted" },
		{ "{\"body\":\"x\",\"properties\":{\"KEYS\":\"x\"}}", "property 'KEYS': this name is the system's" },
		{ "{\"body\":\"x\",\"properties\":{\"a\":\"\\u0001\"}}", "property 'a': holds byte 0x01" },
		{ "{\"body\":\"x\",\"properties\":{\"\":\"x\"}}", "property without a name" },
		{ "{\"body\":\"x\",\"tags\":\"\\u0002\"}", "tag: holds byte" },
		{ "{\"body\":\"x\",\"queue\":3}", "field 'queue': \"BROKER:ID\"" },
		{ "{\"body\":\"x\",\"queue\":\"b\"}", "field 'queue': \"BROKER:ID\"" },
		{ "{\"body\":\"x\",\"queue\":\":3\"}", "field 'queue': \"BROKER:ID\"" },
		{ "{\"body\":\"x\",\"queue\":\"b:\"}", "field 'queue': \"BROKER:ID\"" },
		{ "{\"body\":\"x\",\"queue\":\"b:-1\"}", "field 'queue': \"BROKER:ID\"" },
		{ "{\"body\":\"x\",\"flag\":4294967296}", "field 'flag': a number of 32 bits" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(json(bad[i].text), MQ_EINVAL);
		if (strncmp(err.text, bad[i].why, strlen(bad[i].why)) != 0)
			fail_msg("%s: %s", bad[i].text, err.text);
	}
}

static void base64_both_ways(void **s)
{
	struct bytes a = { 0 }, b = { 0 };
	char raw[40];

	for (size_t n = 0; n <= sizeof(raw); n++) {
		for (size_t i = 0; i < n; i++)
			raw[i] = (char)(i * 37 + n * 11);
		a.n = b.n = 0;
		bytes_base64(&a, (struct mq_str){ raw, n });
		assert_int_equal(a.n, (n + 2) / 3 * 4);
		assert_true(bytes_unbase64(&b, bytes_view(&a)));
		assert_int_equal(b.n, n);
		assert_memory_equal(b.p, raw, n);
	}
	a.n = 0;
	bytes_base64(&a, MQ_STR("light w"));
	assert_str(bytes_view(&a), "bGlnaHQgdw==");
	bytes_free(&a);
	bytes_free(&b);
}

static void what_is_text(void **s)
{
	assert_true(bytes_is_text(MQ_STR("")));
	assert_true(bytes_is_text(MQ_STR("plain text of more than eight bytes\n")));
	assert_true(bytes_is_text(MQ_STR("h\xc3\xa9llo \xe6\xa0\x87 \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf")));
	assert_false(bytes_is_text(MQ_STR("a\0b")));
	assert_false(bytes_is_text(MQ_STR("0123456\0" "9012345678")));
	assert_false(bytes_is_text(MQ_STR("01234567\xff")));
	assert_false(bytes_is_text(MQ_STR("\xc3")));
	assert_false(bytes_is_text(MQ_STR("\xc0\x80")));
	assert_false(bytes_is_text(MQ_STR("\xe0\x9f\xbf")));
	assert_false(bytes_is_text(MQ_STR("\xed\xa0\x80")));
	assert_false(bytes_is_text(MQ_STR("\xf4\x90\x80\x80")));
	assert_false(bytes_is_text(MQ_STR("\xf0\x9f\x98")));
	assert_false(bytes_is_text(MQ_STR("\xe6\xa0" "a")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_plain_line_is_the_body, setup, teardown),
		cmocka_unit_test_setup_teardown(tag_keys_and_properties_of_all, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_properties_are_refused_with_a_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(the_key_before_the_delimiter, setup, teardown),
		cmocka_unit_test_setup_teardown(an_id_is_a_property, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_no_message, setup, teardown),
		cmocka_unit_test_setup_teardown(a_body_over_the_limit_tells_both_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(json_with_everything, setup, teardown),
		cmocka_unit_test_setup_teardown(the_queue_of_a_record_counts_only_when_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(the_topic_of_a_record_counts_only_when_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_record_says_wins_over_the_options, setup, teardown),
		cmocka_unit_test_setup_teardown(binary_bodies_come_as_base64, setup, teardown),
		cmocka_unit_test_setup_teardown(json_that_is_wrong, setup, teardown),
		cmocka_unit_test(base64_both_ways),
		cmocka_unit_test(what_is_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
