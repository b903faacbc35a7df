/* test_zip.c: each body format comes back as it went in; what is damaged, cut or too big is refused and leaves no trace. */
#include "base/zip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const int32_t types[] = { 0, MQ_SYS_COMPRESS_ZLIB, MQ_SYS_COMPRESS_LZ4, MQ_SYS_COMPRESS_ZSTD };
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static struct buf text_of(size_t n, bool random)
{
	struct buf b = { 0 };

	buf_grow(&b, n + 1);
	for (size_t i = 0; i < n; i++)
		buf_char(&b, random ? (char)rand() : "abcabcabd"[i % 9]);
	return b;
}

static void what_went_in_comes_out(void **state)
{
	const size_t sizes[] = { 0, 1, 100, 4096, 70000, 3000000 };

	for (size_t i = 0; i < TYPES * 6 * 2; i++) {
		size_t n = sizes[i / TYPES % 6];
		struct buf in = text_of(n, i >= TYPES * 6), packed = { 0 }, out = { 0 };

		buf_cstr(&packed, "before");
		buf_cstr(&out, "before");
		assert_int_equal(zip_pack(types[i % TYPES], 5, buf_view(&in), &packed), 0);
		assert_memory_equal(packed.p, "before", 6);
		assert_int_equal(zip_unpack(types[i % TYPES], (struct mq_str){ packed.p + 6, packed.n - 6 }, n, &out), 0);
		assert_int_equal(out.n, n + 6);
		if (n)
			assert_memory_equal(out.p + 6, in.p, n);
		buf_free(&in);
		buf_free(&packed);
		buf_free(&out);
	}
}

static void one_byte_over_the_limit_is_too_big(void **state)
{
	for (size_t i = 0; i < TYPES; i++) {
		struct buf in = text_of(5000, false), packed = { 0 }, out = { 0 };

		assert_int_equal(zip_pack(types[i], 5, buf_view(&in), &packed), 0);
		assert_int_equal(zip_unpack(types[i], buf_view(&packed), 4999, &out), MQ_ETOOBIG);
		assert_int_equal(out.n, 0);
		assert_int_equal(zip_unpack(types[i], buf_view(&packed), 0, &out), MQ_ETOOBIG);
		assert_int_equal(zip_unpack(types[i], buf_view(&packed), 5000, &out), 0);
		buf_free(&in);
		buf_free(&packed);
		buf_free(&out);
	}
}

/* 256 MiB of zeros in a few KiB: the memory used is bounded by the limit. */
static void a_bomb_costs_no_more_than_the_limit(void **state)
{
	for (size_t i = 0; i < TYPES; i++) {
		struct buf in = { 0 }, packed = { 0 }, out = { 0 };

		in.p = calloc(1, 256u << 20);
		in.n = in.cap = 256u << 20;
		assert_int_equal(zip_pack(types[i], 1, buf_view(&in), &packed), 0);
		buf_free(&in);
		assert_int_equal(zip_unpack(types[i], buf_view(&packed), 4 << 20, &out), MQ_ETOOBIG);
		assert_true(out.cap <= 16u << 20);
		buf_free(&packed);
		buf_free(&out);
	}
}

static void cut_short_anywhere_it_is_damaged(void **state)
{
	for (size_t i = 0; i < TYPES; i++) {
		struct buf in = text_of(300, true), packed = { 0 }, out = { 0 };

		assert_int_equal(zip_pack(types[i], 5, buf_view(&in), &packed), 0);
		for (size_t n = 0; n < packed.n; n++) {
			assert_int_equal(zip_unpack(types[i], (struct mq_str){ packed.p, n }, 1000, &out), MQ_ECORRUPT);
			assert_int_equal(out.n, 0);
		}
		buf_free(&in);
		buf_free(&packed);
		buf_free(&out);
	}
}

static void any_flipped_byte_never_crashes(void **state)
{
	srand(4);
	for (int i = 0; i < 20000; i++) {
		struct buf in = text_of((size_t)rand() % 400, false), packed = { 0 }, out = { 0 };
		int32_t type = types[i % TYPES];
		int rc;

		assert_int_equal(zip_pack(type, 3, buf_view(&in), &packed), 0);
		packed.p[(size_t)rand() % packed.n] ^= (char)(1 + rand() % 255);
		rc = zip_unpack(type, buf_view(&packed), 100000, &out);
		assert_true(rc == 0 || rc == MQ_ECORRUPT || rc == MQ_ETOOBIG);
		buf_free(&in);
		buf_free(&packed);
		buf_free(&out);
	}
}

static void a_format_that_does_not_exist_is_not_supported(void **state)
{
	struct buf out = { 0 };

	assert_int_equal(zip_pack(0x400, 5, MQ_STR("x"), &out), MQ_EUNSUPPORTED);
	assert_int_equal(zip_unpack(0x700, MQ_STR("x"), 10, &out), MQ_EUNSUPPORTED);
	assert_int_equal(out.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_went_in_comes_out),
		cmocka_unit_test(one_byte_over_the_limit_is_too_big),
		cmocka_unit_test(a_bomb_costs_no_more_than_the_limit),
		cmocka_unit_test(cut_short_anywhere_it_is_damaged),
		cmocka_unit_test(any_flipped_byte_never_crashes),
		cmocka_unit_test(a_format_that_does_not_exist_is_not_supported),
	};
	return cmocka_run_group_tests_name("zip", tests, NULL, NULL);
}
