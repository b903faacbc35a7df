/* test_commitlog.c: room for records, and where they are while they are in no file yet. */
#include "base/log.h"
#include "store/commitlog.h"
#include "tempdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

enum { SEGMENT = 1024 * 1024 };

static struct commitlog log_;

static int begin(void **state)
{
	struct mq_error e;

	if (tempdir_make(state))
		return -1;
	log_ = (struct commitlog){ .fd = -1 };
	mkdir(tempdir_path(*state, "log"), 0755);
	return segments_open(&log_.run, tempdir_path(*state, "log"), SEGMENT, true, false, &e);
}

static int end(void **state)
{
	commitlog_close(&log_);
	return tempdir_remove(state);
}

/* One piece of the last claim. */
static void put(char c, int64_t n)
{
	memset(commitlog_next(&log_), c, (size_t)n);
	commitlog_grow(&log_, n);
}

static void shows(int64_t off, char c, int64_t n)
{
	int64_t there;
	const uint8_t *p = commitlog_view(&log_, off, &there);

	assert_non_null(p);
	assert_true(there >= n);
	for (int64_t i = 0; i < n; i++)
		assert_int_equal(p[i], c);
}

static void what_is_in_no_file_yet_is_seen(void **state)
{
	assert_int_equal(commitlog_claim(&log_, 100, NULL), 0);
	put('a', 100);
	assert_int_equal(log_.staged, 100);
	shows(0, 'a', 100);
	assert_int_equal(log_.staged, 0);
}

static void a_claim_that_is_looked_at_half_way_goes_on_where_it_is(void **state)
{
	for (int i = 0; i < 50; i++) {
		int64_t at = log_.max;

		assert_int_equal(commitlog_claim(&log_, 300, NULL), 0);
		put('a', 100);
		shows(at, 'a', 100);
		put('b', 100);
		if (i % 2)
			shows(at + 100, 'b', 100);
		put('c', 100);
		commitlog_write_out(&log_);
		shows(at, 'a', 100);
		shows(at + 100, 'b', 100);
		shows(at + 200, 'c', 100);
	}
}

static void a_claim_larger_than_the_usual_stage_is_whole_and_its_memory_goes(void **state)
{
	assert_int_equal(commitlog_claim(&log_, 600 * 1024, NULL), 0);
	put('x', 300 * 1024);
	shows(0, 'x', 300 * 1024);
	put('y', 300 * 1024);
	commitlog_write_out(&log_);
	assert_int_equal(commitlog_claim(&log_, 10, NULL), 0);
	put('z', 10);
	shows(300 * 1024, 'y', 300 * 1024);
	shows(600 * 1024, 'z', 10);
	assert_true(log_.stage_cap <= 256 * 1024);
}

static void a_record_that_does_not_fit_begins_the_next_segment(void **state)
{
	assert_int_equal(commitlog_claim(&log_, SEGMENT - 100, NULL), 0);
	put('a', SEGMENT - 100);
	assert_int_equal(commitlog_claim(&log_, 93, NULL), 0);
	assert_int_equal(log_.max, SEGMENT);
	put('b', 93);
	shows(SEGMENT, 'b', 93);
	shows(0, 'a', SEGMENT - 100);
	assert_int_equal(commitlog_claim(&log_, SEGMENT - 7, NULL), MQ_ETOOBIG);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_is_in_no_file_yet_is_seen),
		TEST(a_claim_that_is_looked_at_half_way_goes_on_where_it_is),
		TEST(a_claim_larger_than_the_usual_stage_is_whole_and_its_memory_goes),
		TEST(a_record_that_does_not_fit_begins_the_next_segment),
	};

	log_max = LOG_ERROR;
	return cmocka_run_group_tests_name("commitlog", tests, NULL, NULL);
}
