/* test_buf.c: bytes that grow, numbers as text, addresses as text. */
#include "base/buf.h"
#include "base/byte.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void what_is_appended_is_there_however_often_it_grew(void **state)
{
	struct buf b = { 0 };

	for (int i = 0; i < 100000; i++)
		buf_put(&b, &i, sizeof(i));
	assert_int_equal(b.n, 400000);
	assert_true(b.cap < 2 * b.n);
	for (int i = 0; i < 100000; i++)
		assert_memory_equal(b.p + 4 * i, &i, 4);
	buf_put(&b, NULL, 0);
	assert_int_equal(b.n, 400000);
	buf_free(&b);
	assert_null(b.p);
}

static void dropping_from_the_front_keeps_the_rest(void **state)
{
	struct buf b = { 0 };

	buf_cstr(&b, "abcdef");
	buf_drop(&b, 2);
	assert_true(str_is(buf_view(&b), "cdef"));
	buf_drop(&b, 0);
	assert_true(str_is(buf_view(&b), "cdef"));
	buf_drop(&b, 99);
	assert_int_equal(b.n, 0);
	buf_free(&b);
}

static void printing_makes_the_room_it_needs(void **state)
{
	for (size_t len = 0; len < 600; len++) {
		struct buf b = { 0 };
		char *text = mem_alloc(len + 1);

		memset(text, 'x', len);
		buf_char(&b, '<');
		buf_printf(&b, "%s>", text);
		assert_int_equal(b.n, len + 2);
		assert_int_equal(b.p[len + 1], '>');
		free(text);
		buf_free(&b);
	}
}

static void whole_numbers_are_decimal(void **state)
{
	const struct { int64_t v; const char *text; } t[] = {
		{ 0, "0" }, { 7, "7" }, { -1, "-1" }, { 10, "10" }, { INT64_MAX, "9223372036854775807" }, { INT64_MIN, "-9223372036854775808" },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct buf b = { 0 };

		buf_i64(&b, t[i].v);
		assert_true(str_is(buf_view(&b), t[i].text));
		buf_free(&b);
	}
}

static void a_cursor_never_leaves_its_bytes(void **state)
{
	const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct cursor c = cursor_of(bytes, sizeof(bytes));

	assert_int_equal(cursor_u16(&c), 0x0102);
	assert_int_equal(cursor_u32(&c), 0x03040506);
	assert_int_equal(cursor_u32(&c), 0);
	assert_true(c.bad);
	/* For good, also where a smaller read would fit. */
	assert_int_equal(cursor_u8(&c), 0);
	assert_null(cursor_str(&c, 1).p);
	c = cursor_of(bytes, sizeof(bytes));
	assert_null(cursor_take(&c, SIZE_MAX));
	assert_true(c.bad);
}

static void hosts_have_a_text(void **state)
{
	struct mq_host v4 = { .ip = { 10, 0, 0, 1 }, .len = 4, .port = 10911 };
	struct mq_host v6 = { .ip = { [15] = 1 }, .len = 16, .port = 65535 }, unset = { .len = 0 };
	struct mq_host longest = { .len = 16, .port = INT32_MIN };
	char out[MQ_HOST_TEXT];

	memset(longest.ip, 0xff, 16);
	assert_string_equal(mq_host_text(&v4, out), "10.0.0.1:10911");
	assert_string_equal(mq_host_text(&v6, out), "[::1]:65535");
	assert_string_equal(mq_host_text(&unset, out), "0.0.0.0:0");
	assert_string_equal(mq_host_text(&longest, out), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:-2147483648");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_appended_is_there_however_often_it_grew),
		cmocka_unit_test(dropping_from_the_front_keeps_the_rest),
		cmocka_unit_test(printing_makes_the_room_it_needs),
		cmocka_unit_test(whole_numbers_are_decimal),
		cmocka_unit_test(a_cursor_never_leaves_its_bytes),
		cmocka_unit_test(hosts_have_a_text),
	};
	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
