/* test_histogram.c: times are told within a step of what they were. */
#include "../../bin/bench/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct histogram h;

static int empty(void **state)
{
	memset(&h, 0, sizeof h);
	return 0;
}

static void nothing_was_measured(void **state)
{
	assert_int_equal(histogram_permille(&h, 500), -1);
}

static void one_time_is_every_percentile(void **state)
{
	histogram_add(&h, 12345);
	assert_int_equal(histogram_permille(&h, 0), 12345);
	assert_int_equal(histogram_permille(&h, 500), 12345);
	assert_int_equal(histogram_permille(&h, 999.9), 12345);
	assert_int_equal(h.max, 12345);
}

static void steps_follow_each_other_without_a_hole(void **state)
{
	int last = -1;

	for (int64_t us = 0; us < 3000000; us++) {
		int step = histogram_step(us);

		assert_true(step == last || step == last + 1);
		last = step;
	}
	assert_true(histogram_step(INT64_MAX) < HISTOGRAM_STEPS);
	assert_int_equal(histogram_step(-5), 0);
}

static void percentiles_are_within_a_step(void **state)
{
	for (int64_t us = 1; us <= 100000; us++)
		histogram_add(&h, us);
	const struct { double permille; int64_t us; } t[] = { { 10, 1000 }, { 500, 50000 }, { 990, 99000 }, { 999, 99900 }, { 1000, 100000 } };
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		int64_t got = histogram_permille(&h, t[i].permille);

		assert_true(got >= t[i].us && got <= t[i].us + t[i].us / 31);
	}
	assert_int_equal(histogram_permille(&h, 1000), 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_was_measured, empty),
		cmocka_unit_test_setup(one_time_is_every_percentile, empty),
		cmocka_unit_test_setup(steps_follow_each_other_without_a_hole, empty),
		cmocka_unit_test_setup(percentiles_are_within_a_step, empty),
	};
	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
