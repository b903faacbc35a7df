/* test_store_fault.c: the n-th system call goes wrong, for every n, in each thing that a store does.
 *
 * Whatever fails: a message that was taken is there after the next open, one that was refused used up no number, a flush that
 * failed is never taken for one that worked, and nothing crashes. */
#include "fault.h"
#include "store_kit.h"
#include "tempdir.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "store/checkpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define HERE ((const char *)*state)
enum { LOOPS_MAX = 3000, LONG_BODY = 700, MANY = 20, SLOW = 60 };

static char body_text[LONG_BODY + 1];

/* Try to append; returns the number of messages taken. */
static int try_append(struct mqstore *s, const char *topic, int n)
{
	int taken = 0;

	memset(body_text, '.', LONG_BODY);
	for (int i = 0; i < n; i++) {
		struct mqstore_queue *q = mqstore_queue(s, str_of(topic), 0, true);
		struct mqstore_record r = kit_record(q, body_text);
		int64_t max = mqstore_queue_max(q);
		struct mqstore_place place;
		struct mq_error err = { 0 };
		int rc = mqstore_append(s, &r, 1, &place, &err);

		if (rc == 0) {
			assert_int_equal(place.queue_off, max);
			taken++;
		} else {
			assert_true(err.text[0] != '\0');
			assert_int_equal(err.code, rc);
			if (rc != MQ_EBROKEN)
				assert_int_equal(mqstore_queue_max(q), max);
		}
	}
	return taken;
}

static void is_whole(const char *dir, const char *topic, int taken)
{
	struct mqstore *s = kit_open(dir);

	if (kit_count(s, topic, 0, 0, NULL) != taken)
		fail_msg("%s failed: %d messages, taken %d", fault_name(), kit_count(s, topic, 0, 0, NULL), taken);
	kit_check(s);
	assert_int_equal(kit_append(s, topic, 0, "next").queue_off, taken);
	kit_close(s);
}

/* Open, roll segments and queue files, close; one call fails on the way, or everything from it on. */
static void life(void **state, enum fault_kind kind, int error)
{
	struct mqstore_opt o = kit_opt(HERE);
	int n, opened = 0;

	for (n = 1; n < LOOPS_MAX; n++) {
		struct mqstore *s;
		struct mq_error err = { 0 };
		int rc, taken = 0;

		o.dir = kit_path("%s/%d", HERE, n);
		fault_set(n, error, kind);
		rc = mqstore_open(&s, &o, &err);
		if (rc < 0) {
			assert_null(s);
			assert_true(err.text[0] != '\0');
		} else {
			opened++;
			taken += try_append(s, "T", 60);
			mqstore_tend(s);
			taken += try_append(s, "T", 60);
			mqstore_tend(s);
			taken += try_append(s, "T", 50);
			mqstore_close(s, NULL);
		}
		fault_off();
		is_whole(o.dir, "T", taken);
		kit_remove(o.dir);
		if (n > fault_calls())
			break;
	}
	/* It was a loop: most calls come after open. */
	assert_true(n > 30 && n < LOOPS_MAX && opened > 20);
}

static void one_call_of_a_life_fails(void **state) { life(state, FAULT_ONCE, EIO); }
static void the_disk_is_full_for_one_call(void **state) { life(state, FAULT_ONCE, ENOSPC); }
static void every_call_from_one_on_fails(void **state) { life(state, FAULT_CRASH, EIO); }
static void the_disk_is_full_from_one_call_on(void **state) { life(state, FAULT_CRASH, ENOSPC); }
static void no_descriptors_are_left(void **state) { life(state, FAULT_CRASH, EMFILE); }
static void the_process_dies_in_the_middle_of_a_write(void **state) { life(state, FAULT_TORN, EIO); }
static void one_call_moves_fewer_bytes(void **state) { life(state, FAULT_SHORT, 0); }

/* A store that was killed is opened; recovery is interrupted at every call, and tried again. */
static void recovery_is_interrupted(void **state)
{
	char *base = mem_printf("%s/base", HERE);
	struct mqstore_opt o = kit_opt(base);
	struct mqstore *s = kit_open(base);
	struct stat st;
	int n, taken;

	taken = try_append(s, "T", 170);
	mqstore_tend(s);
	mqstore_flush(s, NULL);
	kit_die(s);
	/* With something to cut in the queue and something to put there again. */
	kit_zero(kit_path("%s/consumequeue/T/0/%020d", base, KIT_QUEUE_FILE), 60 * 20, 100);
	for (enum fault_kind kind = FAULT_ONCE; kind <= FAULT_SHORT; kind++)
		for (n = 1; n < LOOPS_MAX; n++) {
			int rc;

			o.dir = kit_path("%s/%d", HERE, n);
			kit_copy(base, o.dir);
			fault_set(n, EIO, kind);
			rc = mqstore_open(&s, &o, NULL);
			if (rc == 0)
				mqstore_close(s, NULL);
			else
				assert_null(s);
			fault_off();
			is_whole(o.dir, "T", taken);
			assert_true(sys.stat(kit_path("%s/abort", o.dir), &st) < 0);
			kit_remove(o.dir);
			if (n > fault_calls())
				break;
		}
	assert_true(n > 10 && n < LOOPS_MAX);
	free(base);
}

/* Read-only handles fail or work; they never show less than there is without saying so. */
static void a_reader_meets_a_failure(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open(HERE);
	int n, taken, opened = 0;

	taken = try_append(s, "T", 170);
	kit_die(s);
	o.read_only = true;
	for (n = 1; n < LOOPS_MAX; n++) {
		fault_set(n, EIO, FAULT_ONCE);
		if (mqstore_open(&s, &o, NULL) == 0) {
			opened++;
			fault_off();
			if (kit_count(s, "T", 0, 0, NULL) != taken)
				fail_msg("%s failed: %d messages of %d", fault_name(), kit_count(s, "T", 0, 0, NULL), taken);
			kit_close(s);
		}
		fault_off();
		if (n > fault_calls())
			break;
	}
	assert_true(n > 5 && n < LOOPS_MAX && opened > 0);
}

/* ---- Flush ----------------------------------------------------------------------------------------------------------- */

static void many_are_whole(const char *dir, int queues)
{
	struct mqstore *s = kit_open(dir);

	for (int i = 0; i < queues; i++)
		assert_int_equal(kit_count(s, "Many", i, 0, NULL), 1);
	kit_close(s);
}

/* queues: so many others have an entry, too. */
static void flush_fails(void **state, enum fault_kind kind, int error, int queues)
{
	struct mqstore_opt o = kit_opt(HERE);
	int n, failed = 0;

	for (n = 1; n < LOOPS_MAX; n++) {
		struct mqstore *s;
		struct mqstore_flush job;
		struct mq_error err = { 0 };
		struct mqstore_stat st;
		int64_t was;
		int taken, rc;

		o.dir = kit_path("%s/%d", HERE, n);
		s = kit_open_opt(&o);
		taken = try_append(s, "T", 120);
		for (int i = 0; i < queues; i++)
			kit_append(s, "Many", i, "x");
		was = mqstore_flushed(s);
		assert_int_equal(mqstore_flush_begin(s, true, &job), 0);
		fault_set(n, error, kind);
		mqstore_flush_run(&job);
		fault_off();
		rc = mqstore_flush_end(s, &job, &err);
		mqstore_stat(s, &st);
		if (kind != FAULT_SHORT && fault_fired() &&
		    ((strcmp(fault_name(), "close") != 0 && strcmp(fault_name(), "munmap") != 0) || rc < 0)) {
			failed++;
			if (rc != -error)
				fail_msg("%s failed: flush says %d", fault_name(), rc);
			assert_int_equal(mqstore_flushed(s), was);
			assert_true(st.broken && st.why_not_writable[0]);
			assert_int_equal(try_append(s, "T", 3), 0);
			assert_int_equal(mqstore_flush(s, NULL), MQ_EBROKEN);
			assert_true(kit_count(s, "T", 0, 0, NULL) == taken);
			/* What is not known to be on the disk is looked at again at the next open. */
			assert_int_equal(mqstore_close(s, NULL), MQ_EBROKEN);
			assert_true(kit_exists(kit_path("%s/abort", o.dir)));
		} else {
			assert_int_equal(rc, 0);
			assert_int_equal(mqstore_flushed(s), mqstore_log_max(s));
			kit_close(s);
		}
		is_whole(o.dir, "T", taken);
		many_are_whole(o.dir, queues);
		kit_remove(o.dir);
		if (!fault_fired())
			break;
	}
	assert_true((failed > 5 || kind == FAULT_SHORT) && n > 5 && n < LOOPS_MAX);
}

static void a_flush_that_failed_is_never_taken_for_one_that_worked(void **state) { flush_fails(state, FAULT_ONCE, EIO, 0); }
static void a_flush_that_dies_in_the_middle(void **state) { flush_fails(state, FAULT_TORN, EIO, 0); }
static void a_flush_whose_writes_are_short(void **state) { flush_fails(state, FAULT_SHORT, 0, 0); }
static void a_flush_of_many_queues_that_failed(void **state) { flush_fails(state, FAULT_ONCE, EIO, MANY); }
static void a_flush_of_many_queues_that_dies_in_the_middle(void **state) { flush_fails(state, FAULT_TORN, EIO, MANY); }

static int syncs, file_systems;

static int counted_sync(int fd)
{
	syncs++;
	return sys_real.fdatasync(fd);
}

static int counted_syncfs(int fd)
{
	file_systems++;
	return sys_real.syncfs(fd);
}

/* One call for the disk, however many queues; then the checkpoint names the newest message of all. */
static void many_queues_are_synced_by_one_call(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_flush job;
	struct checkpoint c;
	struct mq_error err;
	int64_t last = 0;
	char path[512];

	for (int i = 0; i < MANY; i++)
		last = kit_append(s, "Many", i, "x").log_off;
	syncs = file_systems = 0;
	sys.fdatasync = counted_sync;
	sys.fsync = counted_sync;
	sys.syncfs = counted_syncfs;
	assert_int_equal(mqstore_flush_begin(s, true, &job), 0);
	mqstore_flush_run(&job);
	assert_int_equal(mqstore_flush_end(s, &job, NULL), 0);
	fault_off();
	assert_int_equal(file_systems, 1);
	assert_true(syncs < MANY);
	snprintf(path, sizeof(path), "%s/checkpoint", HERE);
	assert_int_equal(checkpoint_open(&c, path, true, &err), 0);
	assert_int_equal(c.confirm_off, last);
	checkpoint_close(&c);
	kit_close(s);
}

static ssize_t slow_pwrite(int fd, const void *p, size_t n, off_t off)
{
	clock_shift_mono(5000);
	return sys_real.pwrite(fd, p, n, off);
}

static int files_made(const char *dir)
{
	int n = 0;

	for (int i = 0; i < SLOW; i++)
		n += kit_exists(kit_path("%s/consumequeue/Many/%d", dir, i));
	return n;
}

/* Each write takes 5 ms: a job whose end nobody awaits goes on for 200, one in a hurry for 20; the rest is for the next. */
static void a_job_in_a_hurry_leaves_queues_to_the_next(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_flush job;
	int first, second;

	for (int i = 0; i < SLOW; i++)
		kit_append(s, "Many", i, "x");
	sys.pwrite = slow_pwrite;
	assert_int_equal(mqstore_flush_begin(s, true, &job), 0);
	mqstore_flush_hurry(&job);
	mqstore_flush_run(&job);
	assert_int_equal(mqstore_flush_end(s, &job, NULL), 0);
	first = files_made(HERE);
	assert_int_equal(mqstore_flush_begin(s, true, &job), 0);
	mqstore_flush_run(&job);
	assert_int_equal(mqstore_flush_end(s, &job, NULL), 0);
	second = files_made(HERE) - first;
	fault_off();
	assert_in_range(first, 1, 5);
	assert_in_range(second, 6, 41);
	kit_close(s);
	many_are_whole(HERE, SLOW);
}

static void close_says_that_it_could_not_flush(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int taken = try_append(s, "T", 100);

	fault_set(1, EIO, FAULT_CRASH);
	assert_int_equal(mqstore_close(s, NULL), -EIO);
	fault_off();
	assert_true(kit_exists(kit_path("%s/abort", HERE)));
	is_whole(HERE, "T", taken);
}

/* ---- A disk that fills up -------------------------------------------------------------------------------------------- */

static int64_t room;            /* blocks that the disk still has, in bytes */

static int limited_fallocate(int fd, off_t off, off_t n)
{
	if (n > room)
		return -ENOSPC;
	room -= n;
	return sys_real.fallocate(fd, off, n);
}

static int unknown_fallocate(int fd, off_t off, off_t n)
{
	return -EOPNOTSUPP;
}

static void a_full_disk_refuses_messages_until_there_is_room(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(s, "T", 0), body_text);
	struct mqstore_place place;
	struct mqstore_stat st;
	struct mq_error err;
	int taken;

	room = 100 * 1024;
	sys.fallocate = limited_fallocate;
	taken = try_append(s, "T", 500);
	assert_true(taken > 100 && taken < 200);
	r.body.n = LONG_BODY;
	assert_int_equal(mqstore_append(s, &r, 1, &place, &err), MQ_EFULL);
	mqstore_stat(s, &st);
	assert_true(st.disk_full);
	assert_non_null(strstr(st.why_not_writable, HERE));
	assert_true(st.refused > 300);
	/* Readers do not notice. */
	assert_int_equal(kit_count(s, "T", 0, 0, NULL), taken);
	room = 1 << 20;
	taken += try_append(s, "T", 500);
	assert_true(taken > 600);
	mqstore_stat(s, &st);
	assert_false(st.disk_full);
	fault_off();
	kit_check(s);
	kit_close(s);
	is_whole(HERE, "T", taken);
}

static void a_disk_without_fallocate_is_written_with_zeros(void **state)
{
	struct mqstore *s;
	struct stat st;
	int taken;

	sys.fallocate = unknown_fallocate;
	s = kit_open(HERE);
	taken = try_append(s, "T", 300);
	assert_int_equal(taken, 300);
	assert_int_equal(sys.stat(kit_path("%s/commitlog/%020d", HERE, 0), &st), 0);
	assert_true(st.st_blocks * 512 >= KIT_SEGMENT);
	kit_check(s);
	kit_die(s);
	s = kit_open(HERE);
	sys.fallocate = unknown_fallocate;
	taken += try_append(s, "T", 300);
	kit_check(s);
	fault_off();
	kit_close(s);
	is_whole(HERE, "T", taken);
}

/* A batch that crosses into the next segment and fills the buffers of its queues is taken with all of its entries or not. */
static void a_batch_is_taken_whole_or_not_at_all(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore_record r[130];
	struct mqstore_place place[130];
	int n;

	for (n = 1; n < LOOPS_MAX; n++) {
		struct mqstore *s;
		bool fired;
		int rc;

		o.dir = kit_path("%s/%d", HERE, n);
		s = kit_open_opt(&o);
		kit_fill(s, "T", 0, "x", 90, 10);
		for (int i = 0; i < 130; i++)
			r[i] = kit_record(kit_queue(s, i % 3 ? "T" : "U", 0), "batch");
		fault_set(n, ENOSPC, FAULT_ONCE);
		rc = mqstore_append(s, r, 130, place, NULL);
		fault_off();
		fired = fault_fired();
		if (rc < 0) {
			assert_true(rc == MQ_EFULL || rc == -ENOSPC);
			assert_int_equal(kit_max(s, "T", 0), 90);
			assert_int_equal(mqstore_append(s, r, 130, place, NULL), 0);
		}
		assert_int_equal(kit_max(s, "T", 0), 90 + 86);
		assert_int_equal(place[129].queue_off, kit_max(s, "U", 0) - 1);
		kit_check(s);
		kit_die(s);
		s = kit_open_opt(&o);
		assert_int_equal(kit_max(s, "T", 0), 90 + 86);
		kit_check(s);
		kit_close(s);
		kit_remove(o.dir);
		if (!fired)
			break;
	}
	assert_true(n > 1 && n < LOOPS_MAX);
}

/* ---- Retention ------------------------------------------------------------------------------------------------------- */

static void deleting_fails(void **state, enum fault_kind kind, int error)
{
	struct mqstore_opt o = kit_opt(HERE);
	int n;

	for (n = 1; n < LOOPS_MAX; n++) {
		struct mqstore *s;
		int64_t min;
		int taken;

		o.dir = kit_path("%s/%d", HERE, n);
		o.max_total_bytes = 0;
		s = kit_open_opt(&o);
		taken = try_append(s, "T", 500);
		mqstore_flush(s, NULL);
		kit_close(s);
		o.max_total_bytes = 2 * KIT_SEGMENT;
		s = kit_open_opt(&o);
		fault_set(n, error, kind);
		mqstore_trim(s, clock_wall_ms(), false, NULL);
		mqstore_flush(s, NULL);
		fault_off();
		min = kit_min(s, "T", 0);
		assert_true(min <= taken);
		/* Each number from min on can be read, or is passed over by readers because its segment is gone. */
		kit_count(s, "T", 0, min, NULL);
		assert_int_equal(kit_max(s, "T", 0), taken);
		mqstore_close(s, NULL);
		s = kit_open_opt(&o);
		mqstore_trim(s, clock_wall_ms(), false, NULL);
		assert_true(mqstore_log_max(s) - mqstore_log_min(s) <= 3 * KIT_SEGMENT);
		assert_int_equal(kit_count(s, "T", 0, kit_min(s, "T", 0), NULL), taken - kit_min(s, "T", 0));
		kit_check(s);
		kit_close(s);
		kit_remove(o.dir);
		if (!fault_fired())
			break;
	}
	assert_true(n > 10 && n < LOOPS_MAX);
}

static void deleting_old_segments_meets_a_failure(void **state) { deleting_fails(state, FAULT_ONCE, EPERM); }
static void the_process_dies_while_it_deletes(void **state) { deleting_fails(state, FAULT_CRASH, EIO); }
static void deleting_on_a_disk_that_is_full(void **state) { deleting_fails(state, FAULT_CRASH, ENOSPC); }

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		TEST(one_call_of_a_life_fails),
		TEST(the_disk_is_full_for_one_call),
		TEST(every_call_from_one_on_fails),
		TEST(the_disk_is_full_from_one_call_on),
		TEST(no_descriptors_are_left),
		TEST(the_process_dies_in_the_middle_of_a_write),
		TEST(one_call_moves_fewer_bytes),
		TEST(recovery_is_interrupted),
		TEST(a_reader_meets_a_failure),
		TEST(a_flush_that_failed_is_never_taken_for_one_that_worked),
		TEST(a_flush_that_dies_in_the_middle),
		TEST(a_flush_whose_writes_are_short),
		TEST(a_flush_of_many_queues_that_failed),
		TEST(a_flush_of_many_queues_that_dies_in_the_middle),
		TEST(many_queues_are_synced_by_one_call),
		TEST(a_job_in_a_hurry_leaves_queues_to_the_next),
		TEST(close_says_that_it_could_not_flush),
		TEST(a_full_disk_refuses_messages_until_there_is_room),
		TEST(a_disk_without_fallocate_is_written_with_zeros),
		TEST(a_batch_is_taken_whole_or_not_at_all),
		TEST(deleting_old_segments_meets_a_failure),
		TEST(the_process_dies_while_it_deletes),
		TEST(deleting_on_a_disk_that_is_full),
	};

	kit_log_start();
	fault_without_syncs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
