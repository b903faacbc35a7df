/* test_record_out.c: a message as mq-recv shows it: framings, formats, JSON; and JSON read again. */
#include "../../bin/compose.h"
#include "../../bin/json_out.h"
#include "../../bin/record_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct bytes got;
static struct mq_error err;

static struct mq_message message(void)
{
	struct mq_message m = {
		.topic = MQ_STR("t"), .queue_id = 3, .queue_off = 17, .log_off = 0x1234, .born_ms = 1796040000001,
		.store_ms = 1796040001123, .flag = 7,
		.props = MQ_STR("a\1b\2WAIT\1true\2KEYS\1k1 k2\2q\"\1\n\2TAGS\1red\2UNIQ_KEY\1ABCD\2"),
		.store_host = { .ip = { 10, 0, 0, 1 }, .len = 4, .port = 10911 },
		.born_host = { .ip = { 10, 0, 0, 2 }, .len = 4, .port = 99 },
	};

	return m;
}

static void show(struct record_out *r, struct mq_message m, struct mq_str body)
{
	struct shown s = { .m = &m, .body = body, .broker = "b" };

	got.n = 0;
	record_out_write(r, &got, &s);
	bytes_byte(&got, '\0');
	got.n--;
}

#define assert_got(literal) do { \
	assert_int_equal(got.n, sizeof(literal) - 1); \
	assert_memory_equal(got.p, literal, sizeof(literal) - 1); \
} while (0)

static void framings(void **s)
{
	struct record_out r = { .mode = RECORD_LINE };

	show(&r, message(), MQ_STR("a\nb"));
	assert_got("a\nb\n");
	r.mode = RECORD_NUL;
	show(&r, message(), MQ_STR("a\nb"));
	assert_got("a\nb\0");
	r.mode = RECORD_RAW;
	show(&r, message(), MQ_STR("a\0b"));
	assert_got("a\0b");
	r.mode = RECORD_LENGTH;
	show(&r, message(), MQ_STR("a\0b"));
	assert_got("\0\0\0\3a\0b");
	show(&r, message(), MQ_STR(""));
	assert_got("\0\0\0\0");
}

static void format(const char *f, struct mq_str body)
{
	struct record_out r = { .mode = RECORD_LINE };

	assert_int_equal(record_out_format(&r, f, &err), 0);
	show(&r, message(), body);
	record_out_free(&r);
}

static void formats(void **s)
{
	format("%s", MQ_STR("a\0b"));
	assert_got("a\0b");
	format("%t %q@%o %i %S%%\\n", MQ_STR("body"));
	assert_got("t b:3@17 ABCD 4%\n");
	format("[%k][%T][%{a}][%{none}]\\0\\t\\\\\\x41", MQ_STR("body"));
	assert_got("[k1 k2][red][b][]\0\t\\A");
	format("%d %D", MQ_STR("body"));
	assert_got("2026-11-30T12:00:01.123Z 1796040001123");
	format("%x %b", MQ_STR("\0\xff" "z"));
	assert_got("00ff7a AP96");
	format("%h", MQ_STR("body"));
	assert_got("{\"a\":\"b\",\"q\\\"\":\"\\n\"}");
	format("", MQ_STR("body"));
	assert_got("");
}

static void formats_that_are_wrong(void **s)
{
	static const char *const bad[] = { "%", "%z", "x%", "\\q", "\\x4", "\\", "%{", "%{}", "%{abc", NULL };

	for (const char *const *f = bad; *f; f++) {
		struct record_out r = { 0 };

		assert_int_equal(record_out_format(&r, *f, &err), MQ_EINVAL);
		record_out_free(&r);
	}
	assert_non_null(strstr(err.text, "at '%{abc'"));
}

static void a_message_without_unique_id_shows_its_place(void **s)
{
	struct record_out r = { 0 };
	struct mq_message m = message();

	m.props = MQ_STR("");
	assert_int_equal(record_out_format(&r, "%i", &err), 0);
	show(&r, m, MQ_STR("x"));
	assert_got("0A00000100002A9F0000000000001234");
	record_out_free(&r);
}

static void times_out_of_the_calendar(void **s)
{
	struct record_out r = { 0 };
	struct mq_message m = message();

	assert_int_equal(record_out_format(&r, "%d", &err), 0);
	m.store_ms = -1;
	show(&r, m, MQ_STR("x"));
	assert_got("-1");
	m.store_ms = INT64_MAX;
	show(&r, m, MQ_STR("x"));
	assert_true(got.n > 0);
	record_out_free(&r);
}

static void json_of_a_message(void **s)
{
	struct record_out r = { .mode = RECORD_JSON };
	struct mq_message bare = { .topic = MQ_STR("t"), .queue_off = -1 };

	show(&r, message(), MQ_STR("h\xc3\xa9\"\\\x7f\n"));
	assert_got("{\"topic\":\"t\",\"queue\":\"b:3\",\"offset\":17,\"id\":\"ABCD\",\"keys\":\"k1 k2\",\"tags\":\"red\","
	           "\"properties\":{\"a\":\"b\",\"q\\\"\":\"\\n\"},\"system\":{\"WAIT\":\"true\"},\"flag\":7,"
	           "\"born\":1796040000001,\"stored\":1796040001123,\"bornHost\":\"10.0.0.2:99\","
	           "\"storeHost\":\"10.0.0.1:10911\",\"body\":\"h\xc3\xa9\\\"\\\\\\u007f\\n\"}\n");
	got.n = 0;
	json_out_message(&got, &bare, MQ_STR("x"), NULL);
	assert_got("{\"topic\":\"t\",\"body\":\"x\"}\n");
}

static void json_of_bytes_that_are_no_text(void **s)
{
	struct mq_message m = { .topic = MQ_STR("t"), .queue_off = -1,
	                        .props = MQ_STR("a\1\xff\2\xfe\1x\2KEYS\1\xfd\2WAIT\1\xff\2") };

	got.n = 0;
	json_out_message(&got, &m, MQ_STR("\0\1\xff"), NULL);
	assert_got("{\"topic\":\"t\",\"keys64\":\"/Q==\",\"properties\":{\"?\":\"x\"},\"properties64\":{\"a\":\"/w==\"},"
	           "\"system\":{\"WAIT\":\"/w==\"},\"body64\":\"AAH/\"}\n");
}

/* Whatever a message holds, its JSON read again is the same message. */
static void json_shows_both_of_two_properties_of_one_name(void **s)
{
	struct record_out r = { .mode = RECORD_JSON };
	struct mq_message m = message();

	m.props = MQ_STR("x\0011\002x\0012\002");
	show(&r, m, MQ_STR("b"));
	assert_non_null(strstr(got.p, "\"properties\":{\"x\":\"1\",\"x\":\"2\"}"));
	assert_memory_equal(mq_prop_get(m.props, "x").p, "2", 1);
}

static void json_out_and_in_loses_nothing(void **s)
{
	static const struct mq_str bodies[] = { MQ_STR("x"), MQ_STR("\0\1\2"), MQ_STR("\"\\\n\t\r\x1f\x7f"), MQ_STR("\xf0\x9f\x98\x80"),
	                                        MQ_STR("\xff\xfe") };
	static const struct mq_str props[] = { MQ_STR(""), MQ_STR("a\1b\2c\1\xff\2"), MQ_STR("x\1Beijing,China\2eq\1a=b=c\2") };
	struct compose c;
	struct composed out;

	compose_init(&c);
	c.topic = MQ_STR("u");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		for (size_t k = 0; k < sizeof(props) / sizeof(props[0]); k++) {
			struct mq_message m = { .topic = MQ_STR("t"), .props = props[k], .flag = 5, .store_ms = 1 };

			got.n = 0;
			json_out_message(&got, &m, bodies[i], "b");
			assert_int_equal(compose_record(&c, FRAME_JSON, (struct mq_str){ got.p, got.n - 1 }, NULL, &out, &err), 0);
			assert_int_equal(out.m.body.n, bodies[i].n);
			assert_memory_equal(out.m.body.p, bodies[i].p, bodies[i].n);
			assert_int_equal(out.m.props.n, props[k].n);
			if (props[k].n)
				assert_memory_equal(out.m.props.p, props[k].p, props[k].n);
			assert_int_equal(out.m.flag, 5);
		}
	compose_free(&c);
}

static void integers_as_text(void **s)
{
	got.n = 0;
	bytes_int(&got, INT64_MIN);
	bytes_byte(&got, ' ');
	bytes_int(&got, INT64_MAX);
	bytes_byte(&got, ' ');
	bytes_int(&got, 0);
	assert_got("-9223372036854775808 9223372036854775807 0");
}

static int free_got(void **s)
{
	bytes_free(&got);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(framings),
		cmocka_unit_test(formats),
		cmocka_unit_test(formats_that_are_wrong),
		cmocka_unit_test(a_message_without_unique_id_shows_its_place),
		cmocka_unit_test(times_out_of_the_calendar),
		cmocka_unit_test(json_of_a_message),
		cmocka_unit_test(json_of_bytes_that_are_no_text),
		cmocka_unit_test(json_shows_both_of_two_properties_of_one_name),
		cmocka_unit_test(json_out_and_in_loses_nothing),
		cmocka_unit_test(integers_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, free_got);
}
