/* test_wheel.c: the timer files by themselves: what is there after an orderly stop, after one that comes anywhere between two writes,
 * and when the n-th system call goes wrong. */
#include "fault.h"
#include "store_kit.h"
#include "tempdir.h"

#include "base/mem.h"
#include "base/sys.h"
#include "store/wheel.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define HERE ((const char *)*state)
enum { FILE_BYTES = 4096, LOOPS_MAX = 3000, SEEN_MAX = 512 };
static const int64_t base = 1800000000000;

/* A message's place in the log is its number in the queue times 100. */
static int64_t queue_off(void *arg, const struct wheel_unit *u)
{
	return u->log_off / 100;
}

static int try_open(const char *dir, struct wheel **w, int32_t step, int64_t log_max)
{
	struct wheel_opt o = { .dir = dir, .precision_ms = step, .log_file_bytes = FILE_BYTES, .log_max = log_max, .queue_off = queue_off };
	struct mq_error e = { 0 };
	int rc = wheel_open(w, &o, &e);

	if (rc < 0)
		assert_true(e.text[0] != 0);
	return rc;
}

static struct wheel *open_at(const char *dir, int64_t log_max)
{
	struct wheel *w;

	assert_int_equal(try_open(dir, &w, 1000, log_max), 0);
	return w;
}

static int try_add(struct wheel *w, int n, int64_t due_ms, int magic)
{
	struct wheel_unit u = { .magic = magic, .write_ms = base, .due_ms = due_ms, .log_off = n * 100, .size = 100, .topic_hash = 7 };
	struct mq_error e;

	return wheel_add(w, &u, &e);
}

static void add(struct wheel *w, int n, int64_t due_ms)
{
	assert_int_equal(try_add(w, n, due_ms, WHEEL_NORMAL), 0);
}

static int flush(struct wheel *w, int64_t next, int64_t read_ms, bool clean)
{
	struct wheel_check *c = wheel_check(w);
	struct wheel_flush *f;
	struct mq_error e;

	c->read_ms = read_ms;
	c->queue_off = c->master_off = next;
	c->counter++;
	c->ours = true;
	f = wheel_flush_begin(w, clean);
	wheel_flush_run(f);
	return wheel_flush_end(w, f, &e);
}

struct seen {
	int n;
	int64_t off[SEEN_MAX];
};

static int see(void *arg, const struct wheel_unit *u)
{
	struct seen *s = arg;

	assert_true(s->n < SEEN_MAX);
	s->off[s->n++] = u->log_off / 100;
	return 0;
}

static int units(struct wheel *w, int64_t from)
{
	struct seen s = { 0 };

	wheel_each(w, from, INT64_MAX, see, &s);
	return s.n;
}

/* ---- Slots and units ------------------------------------------------------------------------------------------------------- */

static void a_slot_holds_its_units_newest_first(void **state)
{
	struct wheel *w = open_at(HERE, 100000);
	struct wheel_slot slot;
	struct seen s = { 0 };

	assert_int_equal(wheel_state(w), WHEEL_NEW);
	add(w, 0, base + 5000);
	add(w, 1, base + 9000);
	add(w, 2, base + 5999); /* the same step */
	assert_int_equal(try_add(w, 3, base + 5000, WHEEL_NORMAL | WHEEL_DELETE), 0);
	assert_true(wheel_slot(w, base + 5500, &slot));
	assert_int_equal(slot.num, 1);
	assert_int_equal(slot.first, 0);
	assert_int_equal(slot.last, 156);
	assert_false(wheel_slot(w, base + 6000, &slot));
	assert_int_equal(wheel_next(w, base, INT64_MAX), base + 5000);
	assert_int_equal(wheel_next(w, base + 6000, INT64_MAX), base + 9000);
	assert_int_equal(wheel_next(w, base + 6000, base + 9000), -1);
	wheel_each(w, base, INT64_MAX, see, &s);
	assert_int_equal(s.n, 4);
	assert_int_equal(s.off[0], 3);
	assert_int_equal(s.off[1], 2);
	assert_int_equal(s.off[2], 0);
	assert_int_equal(s.off[3], 1);
	assert_int_equal(wheel_pending(w, base), 2);
	wheel_close(w);
}

static void units_go_on_in_the_next_file(void **state)
{
	struct wheel *w = open_at(HERE, 100000);

	for (int i = 0; i < 200; i++) /* 78 fit in a file */
		add(w, i, base + i % 3 * 1000);
	assert_int_equal(units(w, base), 200);
	assert_int_equal(flush(w, 200, base, true), 0);
	wheel_close(w);
	assert_int_equal(kit_size(kit_path("%s/timerlog/00000000000000004096", HERE)), FILE_BYTES);
	w = open_at(HERE, 100000);
	assert_int_equal(wheel_state(w), WHEEL_WHOLE);
	assert_int_equal(units(w, base), 200);
	add(w, 200, base);
	assert_int_equal(units(w, base), 201);
	wheel_close(w);
}

static void files_go_when_their_messages_are_gone(void **state)
{
	struct wheel *w = open_at(HERE, 100000);
	struct mq_error e;

	for (int i = 0; i < 200; i++)
		add(w, i, base + i * 1000);
	assert_int_equal(flush(w, 200, base, false), 0);
	assert_int_equal(wheel_drop(w, 7800, &e), 0);
	assert_false(kit_exists(kit_path("%s/timerlog/00000000000000000000", HERE)));
	assert_true(kit_exists(kit_path("%s/timerlog/00000000000000004096", HERE)));
	assert_int_equal(wheel_drop(w, 1000000, &e), 0);
	assert_true(kit_exists(kit_path("%s/timerlog/00000000000000008192", HERE))); /* the last one stays */
	wheel_close(w);
	w = open_at(HERE, 100000);
	add(w, 200, base);
	wheel_close(w);
}

static void the_step_is_one_of_four(void **state)
{
	assert_int_equal(wheel_precision(1), 100);
	assert_int_equal(wheel_precision(100), 100);
	assert_int_equal(wheel_precision(499), 200);
	assert_int_equal(wheel_precision(500), 500);
	assert_int_equal(wheel_precision(999), 500);
	assert_int_equal(wheel_precision(1000), 1000);
	assert_int_equal(wheel_precision(60000), 1000);
}

/* ---- Opening --------------------------------------------------------------------------------------------------------------- */

static void what_came_behind_the_check_point_is_cut(void **state)
{
	struct wheel *w = open_at(HERE, 100000);

	for (int i = 0; i < 50; i++)
		add(w, i, base + 5000);
	assert_int_equal(flush(w, 50, base, false), 0);
	for (int i = 50; i < 150; i++)
		add(w, i, base + 5000);
	wheel_close(w); /* killed */
	w = open_at(HERE, 100000);
	assert_int_equal(units(w, base), 50);
	assert_int_equal(wheel_check(w)->master_off, 50);
	for (int i = 50; i < 60; i++)
		add(w, i, base + 6000);
	assert_int_equal(flush(w, 60, base, true), 0);
	wheel_close(w);
	w = open_at(HERE, 100000);
	assert_int_equal(units(w, base), 60);
	wheel_close(w);
}

static void slots_that_reached_the_disk_before_their_check_point_are_made_again(void **state)
{
	struct wheel *w = open_at(HERE, 100000);
	struct wheel_slot slot;
	char *now = kit_path("%s/config/timercheck", HERE);
	size_t n;
	char *p;

	for (int i = 0; i < 50; i++)
		add(w, i, base + i % 5 * 1000);
	assert_int_equal(flush(w, 50, base, false), 0);
	assert_int_equal(sys_read_file(now, 4096, &p, &n), 0);
	for (int i = 50; i < 90; i++)
		add(w, i, base + i % 5 * 1000);
	assert_int_equal(flush(w, 90, base, false), 0);
	wheel_close(w);
	kit_overwrite(now, 0, p, n); /* the stop came between the two */
	free(p);
	w = open_at(HERE, 100000);
	assert_int_equal(units(w, base), 50);
	assert_true(wheel_slot(w, base + 1000, &slot));
	assert_int_equal(slot.num, 10);
	wheel_close(w);
}

static void what_is_done_with_does_not_come_back(void **state)
{
	struct wheel *w = open_at(HERE, 100000);

	for (int i = 0; i < 50; i++)
		add(w, i, base + i * 1000);
	assert_int_equal(flush(w, 50, base + 20000, false), 0);
	wheel_close(w);
	kit_remove(kit_path("%s/timerwheel", HERE));
	w = open_at(HERE, 100000);
	assert_int_equal(units(w, base), 30);
	wheel_close(w);
}

static void a_wheel_of_a_wrong_length_is_made_again(void **state)
{
	struct wheel *w = open_at(HERE, 100000);

	for (int i = 0; i < 50; i++)
		add(w, i, base + i * 1000);
	assert_int_equal(flush(w, 50, base, true), 0);
	wheel_close(w);
	kit_truncate(kit_path("%s/timerwheel", HERE), 12345);
	w = open_at(HERE, 100000);
	assert_int_equal(units(w, base), 50);
	assert_int_equal(flush(w, 50, base, true), 0);
	wheel_close(w);
	assert_int_equal(kit_size(kit_path("%s/timerwheel", HERE)), 38707200);
}

static void units_whose_messages_were_cut_off_go(void **state)
{
	struct wheel *w = open_at(HERE, 100000);

	for (int i = 0; i < 100; i++)
		add(w, i, base + 5000);
	assert_int_equal(flush(w, 100, base, true), 0);
	wheel_close(w);
	w = open_at(HERE, 8000); /* 80 of them are left */
	assert_int_equal(units(w, base), 80);
	assert_int_equal(wheel_cut(w), 20);
	wheel_close(w);
}

static void a_lost_or_holed_timer_log_is_begun_anew(void **state)
{
	struct wheel *w = open_at(HERE, 100000);

	for (int i = 0; i < 300; i++)
		add(w, i, base + 5000);
	assert_int_equal(flush(w, 300, base, true), 0);
	wheel_close(w);
	kit_remove(kit_path("%s/timerlog/00000000000000004096", HERE));
	w = open_at(HERE, 100000);
	assert_int_equal(wheel_state(w), WHEEL_LOST);
	assert_int_equal(units(w, base), 0);
	assert_int_equal(wheel_check(w)->master_off, 300); /* what was taken in before */
	add(w, 0, base + 5000);
	wheel_close(w); /* killed before a check-point: it is lost as before */
	w = open_at(HERE, 100000);
	assert_int_equal(wheel_state(w), WHEEL_LOST);
	for (int i = 0; i < 300; i++)
		add(w, i, base + 5000);
	assert_int_equal(flush(w, 300, base, true), 0);
	wheel_close(w);
	w = open_at(HERE, 100000);
	assert_int_equal(wheel_state(w), WHEEL_WHOLE);
	assert_int_equal(units(w, base), 300);
	wheel_close(w);
}

static void other_steps_are_noticed_and_found_out(void **state)
{
	struct wheel_opt look = { .dir = HERE, .log_file_bytes = 1, .log_max = 100000, .read_only = true, .queue_off = queue_off };
	struct wheel *w = open_at(HERE, 100000);
	struct mq_error e;

	add(w, 0, base + 5000);
	assert_int_equal(flush(w, 1, base, true), 0);
	wheel_close(w);
	assert_int_equal(wheel_open(&w, &look, &e), 0);
	assert_int_equal(wheel_step(w), 1000);
	assert_int_equal(units(w, base), 1);
	wheel_close(w);
	assert_int_equal(try_open(HERE, &w, 100, 100000), 0);
	assert_int_equal(wheel_state(w), WHEEL_LOST);
	add(w, 0, base + 5300);
	assert_int_equal(flush(w, 1, base, true), 0);
	wheel_close(w);
	assert_int_equal(wheel_open(&w, &look, &e), 0);
	assert_int_equal(wheel_step(w), 100);
	assert_int_equal(wheel_next(w, base, INT64_MAX), base + 5300);
	wheel_close(w);
}

static void a_look_changes_nothing(void **state)
{
	struct wheel_opt look = { .dir = HERE, .log_file_bytes = 1, .log_max = 100000, .read_only = true, .queue_off = queue_off };
	struct wheel *w = open_at(HERE, 100000);
	struct mq_error e;
	uint64_t sum;

	for (int i = 0; i < 100; i++)
		add(w, i, base + 5000);
	assert_int_equal(flush(w, 100, base, false), 0);
	for (int i = 100; i < 200; i++)
		add(w, i, base + 5000);
	wheel_close(w);
	sum = kit_sum(HERE);
	assert_int_equal(wheel_open(&w, &look, &e), 0);
	assert_int_equal(units(w, base), 100);
	wheel_close(w);
	assert_true(kit_sum(HERE) == sum);
}

static void bytes_that_are_no_units_end_the_log(void **state)
{
	uint8_t junk[512];
	int opened = 0;

	for (int round = 0; round < 200; round++) {
		struct wheel *w = open_at(HERE, 100000);
		struct seen s = { 0 };

		for (int i = 0; i < 10; i++)
			add(w, i, base + 5000);
		assert_int_equal(flush(w, 10, base, false), 0);
		wheel_close(w);
		for (size_t i = 0; i < sizeof junk; i++)
			junk[i] = (uint8_t)(rand() >> 7);
		kit_overwrite(kit_path("%s/timerlog/00000000000000000000", HERE), round % 2 ? 520 : rand() % 500, junk, sizeof junk);
		if (round % 7 == 0)
			kit_overwrite(kit_path("%s/timerwheel", HERE), (base / 1000 + 5) % 1209600 * 32 + rand() % 64, junk, 40);
		if (try_open(HERE, &w, 1000, 100000) == 0) {
			wheel_each(w, base, INT64_MAX, see, &s);
			wheel_close(w);
			opened++;
		}
		kit_remove(kit_path("%s/timerlog", HERE));
		kit_remove(kit_path("%s/timerwheel", HERE));
		kit_remove(kit_path("%s/config", HERE));
	}
	assert_int_equal(opened, 200);
}

/* ---- Every call goes wrong --------------------------------------------------------------------------------------------------- */

static void loop(const char *dir, int error, enum fault_kind kind)
{
	bool more = true;

	for (int nth = 1; more; nth++) {
		char *here = kit_path("%s/%d-%d-%d", dir, error, kind, nth);
		struct wheel *w;
		int taken = 0, saved = 0, state;

		assert_true(nth < LOOPS_MAX);
		assert_int_equal(sys_mkdir_all(here), 0);
		w = open_at(here, 100000);
		for (; taken < 60; taken++)
			add(w, taken, base + taken % 7 * 1000);
		assert_int_equal(flush(w, 60, base, true), 0);
		saved = taken;
		wheel_close(w);
		fault_set(nth, error, kind);
		fault_without_syncs();
		if (try_open(here, &w, 1000, 100000) == 0) {
			assert_int_equal(units(w, base), 60);
			for (int i = 0; i < 60; i++) {
				if (try_add(w, taken, base + taken % 7 * 1000, WHEEL_NORMAL) == 0)
					taken++;
				if (i % 20 == 19 && flush(w, taken, base, i == 59) == 0)
					saved = taken;
			}
			assert_int_equal(units(w, base), taken); /* what was taken is there, whatever failed */
			wheel_close(w);
		}
		more = fault_fired();
		fault_off();
		w = open_at(here, 100000);
		state = wheel_state(w);
		assert_true(state == WHEEL_WHOLE);
		/* What a check-point speaks of is there: the last that was written, or one whose end was not heard of. */
		if (units(w, base) < saved || units(w, base) != wheel_check(w)->master_off)
			fail_msg("%s failed: %d units, check-point %d, saved %d", fault_name(), units(w, base),
				 (int)wheel_check(w)->master_off, saved);
		wheel_close(w);
		kit_remove(here);
	}
}

static void whatever_fails_once_costs_nothing_that_was_saved(void **state) { loop(HERE, EIO, FAULT_ONCE); }
static void a_full_disk_costs_nothing_that_was_saved(void **state) { loop(HERE, ENOSPC, FAULT_ONCE); }
static void a_crash_anywhere_costs_nothing_that_was_saved(void **state) { loop(HERE, EIO, FAULT_CRASH); }
static void a_torn_write_anywhere_costs_nothing_that_was_saved(void **state) { loop(HERE, EIO, FAULT_TORN); }

#define TEST(f) cmocka_unit_test_setup_teardown(f, tempdir_make, tempdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slot_holds_its_units_newest_first),
		TEST(units_go_on_in_the_next_file),
		TEST(files_go_when_their_messages_are_gone),
		TEST(the_step_is_one_of_four),
		TEST(what_came_behind_the_check_point_is_cut),
		TEST(slots_that_reached_the_disk_before_their_check_point_are_made_again),
		TEST(what_is_done_with_does_not_come_back),
		TEST(a_wheel_of_a_wrong_length_is_made_again),
		TEST(units_whose_messages_were_cut_off_go),
		TEST(a_lost_or_holed_timer_log_is_begun_anew),
		TEST(other_steps_are_noticed_and_found_out),
		TEST(a_look_changes_nothing),
		TEST(bytes_that_are_no_units_end_the_log),
		TEST(whatever_fails_once_costs_nothing_that_was_saved),
		TEST(a_full_disk_costs_nothing_that_was_saved),
		TEST(a_crash_anywhere_costs_nothing_that_was_saved),
		TEST(a_torn_write_anywhere_costs_nothing_that_was_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
