/* test_crc.c: both ways of computing the checksum agree with zlib over any length, place and start value. */
#include "base/crc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <zlib.h>

static void any_length_and_alignment_agrees_with_zlib(void **state)
{
	static unsigned char bytes[70000];

	srand(3);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)rand();
	for (int i = 0; i < 60000; i++) {
		size_t off = (size_t)rand() % 64, n = i < 2048 ? (size_t)i : (size_t)rand() % (i % 100 ? 1500 : 65000);
		uint32_t start = i % 3 ? (uint32_t)rand() * 2654435761u : 0;
		uint32_t want = (uint32_t)crc32(start, bytes + off, (uInt)n);

		assert_int_equal(crc32_more(start, bytes + off, n), want);
		assert_int_equal(crc32_plain(start, bytes + off, n), want);
	}
}

static void the_peer_drops_the_top_bit(void **state)
{
	assert_int_equal(crc32_of("123456789", 9), 0xcbf43926);
	assert_int_equal(crc32_peer("123456789", 9), 0x4bf43926);
	assert_int_equal(crc32_of(NULL, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_length_and_alignment_agrees_with_zlib),
		cmocka_unit_test(the_peer_drops_the_top_bit),
	};
	return cmocka_run_group_tests_name("crc", tests, NULL, NULL);
}
