/* test_digest.c: the low bits, by which tables are indexed, are as good as the others. */
#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

enum { NAMES = 10000, SLOTS = 4096, MOST = 16 };    /* two or three in a slot; more than 16 by chance in one of 10^9 tables */

static int most_in_a_slot(const char *format, int shift)
{
	static int count[SLOTS];
	int most = 0;

	memset(count, 0, sizeof count);
	for (int i = 0; i < NAMES; i++) {
		char name[64];
		int n = snprintf(name, sizeof name, format, i), *slot = &count[digest_of(name, (size_t)n) >> shift & (SLOTS - 1)];

		if (++*slot > most)
			most = *slot;
	}
	return most;
}

static void names_that_differ_in_their_last_bytes_are_spread(void **state)
{
	static const char *const formats[] = { "%d", "t%d", "topic%d", "topic-%04d", "a-longer-topic-%d", "%%RETRY%%group%d", "%d-at-the-front" };

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		for (int shift = 0; shift <= 52; shift += 4)
			assert_in_range(most_in_a_slot(formats[i], shift), 1, MOST);
}

static void the_length_counts(void **state)
{
	assert_true(digest_of("", 0) != digest_of("\0", 1));
	assert_true(digest_of("\0", 1) != digest_of("\0\0", 2));
	assert_true(digest_of("abcdefgh", 8) != digest_of("abcdefgh\0", 9));
	assert_true(digest_of(NULL, 0) == digest_of("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_differ_in_their_last_bytes_are_spread),
		cmocka_unit_test(the_length_counts),
	};

	return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
