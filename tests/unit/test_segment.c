/* test_segment.c: one file of a run, and the run. */
#include "fault.h"
#include "store_kit.h"
#include "tempdir.h"

#include "base/sys.h"
#include "store/segments.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define HERE ((const char *)*state)
enum { SIZE = 64 * 1024 };

static void names_are_offsets_in_twenty_digits(void **state)
{
	char path[SEGMENT_PATH];

	assert_int_equal(segment_name("00000000000000065536"), 65536);
	assert_int_equal(segment_name("00000000000000000000"), 0);
	assert_int_equal(segment_name("0000000000000000000"), -1);
	assert_int_equal(segment_name("0000000000000000000x"), -1);
	assert_int_equal(segment_name("99999999999999999999"), -1);
	assert_int_equal(segment_name("10000000000000000000"), -1);
	assert_int_equal(segment_name("09223372036854775807"), -1); /* nothing can be added to it */
	assert_int_equal(segment_name("08999999999999999999"), 8999999999999999999);
	assert_int_equal(segment_name(""), -1);
	assert_string_equal(segment_path("d", 65536, path), "d/00000000000000065536");
}

static void blocks_are_reserved_in_steps_and_the_last_ones_singly(void **state)
{
	struct segments run;
	struct segment *g;
	struct stat st;

	assert_int_equal(segments_open(&run, HERE, SIZE, true, false, NULL), 0);
	assert_int_equal(segments_add(&run, 0, &g), 0);
	assert_int_equal(g->reserved, SIZE / 4);
	assert_int_equal(segment_reserve(g, HERE, 0, SIZE / 2 + 1, 0), 0);
	assert_int_equal(g->reserved, SIZE / 2 + 1);
	/* What is reserved already costs no call. */
	fault_set(1, EIO, FAULT_CRASH);
	assert_int_equal(segment_reserve(g, HERE, 0, SIZE / 2, SIZE), 0);
	/* The step does not fit any more, what is needed does. */
	fault_set(2, ENOSPC, FAULT_ONCE);
	assert_int_equal(segment_reserve(g, HERE, 0, SIZE / 2 + 3000, SIZE), 0);
	fault_off();
	assert_int_equal(g->reserved, SIZE / 2 + 4096);
	fault_set(1, ENOSPC, FAULT_CRASH);
	assert_true(segment_reserve(g, HERE, 0, SIZE, SIZE) < 0);
	fault_off();
	assert_int_equal(g->reserved, SIZE / 2 + 4096);
	assert_int_equal(sys.stat(kit_path("%s/%020d", HERE, 0), &st), 0);
	assert_true(st.st_size == SIZE && st.st_blocks * 512 >= SIZE / 2 + 4096);
	segments_close(&run);
}

static void holes_are_passed_over_and_pages_in_memory_are_known(void **state)
{
	struct segments run;
	struct segment *g;
	uint8_t *p;

	assert_int_equal(segments_open(&run, HERE, 256 << 20, true, false, NULL), 0);
	assert_int_equal(segments_add(&run, 0, &g), 0);
	p = segments_bytes(&run, g);
	assert_non_null(p);
	p[100] = 1;
	p[900000] = 1;
	assert_int_equal(segment_data(g, HERE, 0, SIZE), 0);
	assert_true(segment_data(g, HERE, 500000, 256 << 20) <= 900000);
	assert_int_equal(segment_data(g, HERE, 100 << 20, 120 << 20), 120 << 20);
	assert_true(segment_resident(g, 0, 200));
	assert_true(segment_resident(g, 900000, 1));
	assert_false(segment_resident(g, 200 << 20, 100));
	segment_unmap(g);
	run.mapped--;
	assert_false(segment_resident(g, 0, 200));
	segments_close(&run);
}

static void a_run_finds_its_segments_over_a_hole(void **state)
{
	struct segments run;
	struct segment *g;

	assert_int_equal(segments_open(&run, HERE, SIZE, true, false, NULL), 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(segments_add(&run, (int64_t)i * SIZE, &g), 0);
	segments_close(&run);
	kit_remove(kit_path("%s/%020d", HERE, 2 * SIZE));
	kit_remove(kit_path("%s/%020d", HERE, 3 * SIZE));
	assert_int_equal(segments_open(&run, HERE, 0, false, true, NULL), 0);
	assert_int_equal(run.n, 4);
	assert_int_equal(segments_at(&run, 0)->start, 0);
	assert_int_equal(segments_at(&run, SIZE + 5)->start, SIZE);
	assert_null(segments_at(&run, 2 * SIZE));
	assert_null(segments_at(&run, 4 * SIZE - 1));
	assert_int_equal(segments_at(&run, 4 * SIZE)->start, 4 * SIZE);
	assert_null(segments_at(&run, 6 * SIZE));
	assert_null(segments_at(&run, -1));
	assert_int_equal(segments_behind(&run, 2 * SIZE)->start, 4 * SIZE);
	assert_int_equal(segments_behind(&run, 4 * SIZE)->start, 4 * SIZE);
	assert_null(segments_behind(&run, 5 * SIZE + 1));
	segments_close(&run);
}

static void few_maps_are_kept_and_none_that_is_written_or_pinned(void **state)
{
	struct segments run;
	struct segment *g;

	assert_int_equal(segments_open(&run, HERE, SIZE, true, false, NULL), 0);
	run.max_maps = 4;
	for (int i = 0; i < 20; i++)
		assert_int_equal(segments_add(&run, (int64_t)i * SIZE, &g), 0);
	assert_int_equal(run.mapped, 20);
	run.v[3]->pins = 1;
	run.keep = 18 * SIZE;
	segments_shed(&run);
	assert_int_equal(run.mapped, 4);
	assert_non_null(run.v[3]->p);
	assert_non_null(run.v[18]->p);
	assert_non_null(run.v[19]->p);
	run.v[3]->pins = 0;
	assert_non_null(segments_bytes(&run, run.v[0]));
	segments_close(&run);
}

static void the_next_segment_is_made_ahead_and_goes_when_unused(void **state)
{
	struct segments run;
	struct segment *g;

	assert_int_equal(segments_open(&run, HERE, SIZE, true, false, NULL), 0);
	assert_int_equal(segments_add(&run, 0, &g), 0);
	assert_int_equal(segments_make_ahead(&run, SIZE), 0);
	assert_true(kit_exists(kit_path("%s/%020d", HERE, SIZE)));
	assert_int_equal(run.n, 1);
	fault_set(1, EIO, FAULT_CRASH);
	assert_int_equal(segments_add(&run, SIZE, &g), 0);
	fault_off();
	assert_int_equal(segments_make_ahead(&run, 2 * SIZE), 0);
	segments_drop_ahead(&run);
	assert_false(kit_exists(kit_path("%s/%020d", HERE, 2 * SIZE)));
	segments_close(&run);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		TEST(names_are_offsets_in_twenty_digits),
		TEST(blocks_are_reserved_in_steps_and_the_last_ones_singly),
		TEST(holes_are_passed_over_and_pages_in_memory_are_known),
		TEST(a_run_finds_its_segments_over_a_hole),
		TEST(few_maps_are_kept_and_none_that_is_written_or_pinned),
		TEST(the_next_segment_is_made_ahead_and_goes_when_unused),
	};

	kit_log_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
