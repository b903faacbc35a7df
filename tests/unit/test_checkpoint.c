/* The checkpoint: the peer's file is read, ours is the same bytes. */
#include "store/checkpoint.h"
#include "base/sys.h"
#include "fault.h"
#include "golden_store.h"
#include "tempdir.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void the_peers_file_is_read_and_written_again_byte_for_byte(void **state)
{
	char *store = golden_store(*state, "crashed"), *a, *b;
	const char *theirs = tempdir_path(*state, "store/checkpoint"), *ours = tempdir_path(*state, "ours");
	struct checkpoint c, d;
	size_t na, nb;
	assert_int_equal(checkpoint_open(&c, theirs, true, NULL), 0);
	assert_int_equal(c.fd, -1);
	assert_int_equal(c.log_ms, 1796057439604);
	assert_int_equal(c.queue_ms, 1796057485480);
	assert_int_equal(c.index_ms, 1796057484332);
	assert_int_equal(c.master_flushed_off, 0);
	assert_int_equal(c.confirm_off, 171976);

	assert_int_equal(checkpoint_open(&d, ours, false, NULL), 0);
	assert_int_equal(d.log_ms | d.queue_ms | d.index_ms | d.confirm_off | d.master_flushed_off, 0);
	c.fd = d.fd;
	assert_int_equal(checkpoint_save(&c, NULL), 0);
	checkpoint_close(&d);
	assert_int_equal(sys_read_file(theirs, 10000, &a, &na), 0);
	assert_int_equal(sys_read_file(ours, 10000, &b, &nb), 0);
	assert_int_equal(na, 4096);
	assert_int_equal(nb, 4096);
	assert_memory_equal(a, b, 4096);
	free(a), free(b), free(store);
}

static void a_missing_or_short_file_counts_as_zeros(void **state)
{
	struct checkpoint c;
	const char *path = tempdir_path(*state, "checkpoint");
	assert_int_equal(checkpoint_open(&c, path, true, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(c.log_ms | c.queue_ms | c.index_ms, 0);
	tempdir_write(path, "1234567");
	assert_int_equal(checkpoint_open(&c, path, false, NULL), 0);
	assert_int_equal(c.queue_ms | c.index_ms | c.confirm_off, 0);
	checkpoint_close(&c);
	assert_int_equal(c.fd, -1);
}

static void a_file_cut_short_is_not_half_believed_and_becomes_whole(void **state)
{
	struct checkpoint c;
	struct stat st;
	const char *path = tempdir_path(*state, "checkpoint");

	for (size_t n = 0; n < 40; n++) {
		char text[41] = "1111111122222222333333334444444455555555";

		text[n] = '\0';
		tempdir_write(path, text);
		assert_int_equal(checkpoint_open(&c, path, true, NULL), 0);
		assert_int_equal(c.log_ms | c.queue_ms | c.index_ms | c.confirm_off, 0);
		checkpoint_close(&c);
		assert_int_equal(checkpoint_open(&c, path, false, NULL), 0);
		checkpoint_close(&c);
		assert_int_equal(sys.stat(path, &st), 0);
		assert_int_equal(st.st_size, 4096);
	}
}

static void the_older_of_log_and_queue_less_three_seconds_counts(void **state)
{
	struct checkpoint c = { .log_ms = 1000000, .queue_ms = 900000, .index_ms = 500000 };
	assert_int_equal(checkpoint_min_ms(&c), 897000);
	assert_int_equal(checkpoint_min_index_ms(&c), 500000);
	c.index_ms = 950000;
	assert_int_equal(checkpoint_min_index_ms(&c), 897000);
	c.log_ms = 2999;
	assert_int_equal(checkpoint_min_ms(&c), 0);
	c.log_ms = INT64_MIN;
	assert_int_equal(checkpoint_min_ms(&c), 0);
}

static void a_write_or_sync_that_fails_is_told(void **state)
{
	struct checkpoint c;
	struct mq_error e;
	assert_int_equal(checkpoint_open(&c, tempdir_path(*state, "checkpoint"), false, NULL), 0);
	for (int n = 1; n <= 2; n++) {
		fault_set(n, ENOSPC, FAULT_ONCE);
		assert_int_equal(checkpoint_save(&c, &e), -ENOSPC);
		fault_off();
		assert_non_null(strstr(e.text, "write checkpoint"));
	}
	assert_int_equal(checkpoint_save(&c, NULL), 0);
	checkpoint_close(&c);
}

/* Opened, written, opened again while any call fails or moves fewer bytes: what is read is the old, or the new. */
static void whatever_fails_it_is_the_old_or_the_new(void **state)
{
	static const struct { enum fault_kind kind; int error; } ways[] = {
		{ FAULT_ONCE, EIO }, { FAULT_ONCE, ENOSPC }, { FAULT_CRASH, EIO }, { FAULT_SHORT, 0 },
	};
	const char *path = tempdir_path(*state, "checkpoint");
	struct checkpoint c;
	int tried = 0;

	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		bool fired = true;

		for (int n = 1; fired; n++, tried++) {
			int rc;

			unlink(path);
			assert_int_equal(checkpoint_open(&c, path, false, NULL), 0);
			c.log_ms = c.confirm_off = 1;
			assert_int_equal(checkpoint_save(&c, NULL), 0);
			checkpoint_close(&c);
			fault_set(n, ways[w].error, ways[w].kind);
			rc = checkpoint_open(&c, path, false, NULL);
			if (rc == 0) {
				assert_int_equal(c.log_ms, 1);
				c.log_ms = c.confirm_off = 2;
				rc = checkpoint_save(&c, NULL);
				checkpoint_close(&c);
			}
			fired = fault_fired();
			fault_off();
			assert_int_equal(checkpoint_open(&c, path, true, NULL), 0);
			assert_true(c.log_ms == c.confirm_off && (c.log_ms == 1 || c.log_ms == 2));
			assert_true(rc < 0 || c.log_ms == 2);
		}
	}
	assert_true(tried > 12);
}

static void a_directory_in_its_place_is_an_error_with_the_path(void **state)
{
	struct checkpoint c;
	struct mq_error e;
	assert_int_equal(checkpoint_open(&c, *state, false, &e), -EISDIR);
	assert_non_null(strstr(e.text, *state));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_peers_file_is_read_and_written_again_byte_for_byte, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_missing_or_short_file_counts_as_zeros, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_file_cut_short_is_not_half_believed_and_becomes_whole, tempdir_make, tempdir_remove),
		cmocka_unit_test(the_older_of_log_and_queue_less_three_seconds_counts),
		cmocka_unit_test_setup_teardown(a_write_or_sync_that_fails_is_told, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(whatever_fails_it_is_the_old_or_the_new, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_directory_in_its_place_is_an_error_with_the_path, tempdir_make, tempdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
