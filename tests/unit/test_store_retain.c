/* test_store_retain.c: what goes, what stays, and when the store says that the disk is full. */
#include "fault.h"
#include "store_kit.h"
#include "tempdir.h"

#include "base/clock.h"
#include "base/str.h"
#include "base/sys.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#define HERE ((const char *)*state)
#define LOG_FILE(n) kit_path("%s/commitlog/%020lld", HERE, (long long)(n) * KIT_SEGMENT)
static const int64_t hour_ms = 3600 * 1000;

/* Some ten segments with messages of A/0. */
static struct mqstore *old_store(const struct mqstore_opt *o)
{
	struct mqstore *s = kit_open_opt(o);

	kit_fill(s, "A", 0, "a", 2000, 250);
	assert_int_equal(mqstore_flush(s, NULL), 0);
	return s;
}

static int64_t segments(struct mqstore *s)
{
	struct mqstore_stat st;

	mqstore_stat(s, &st);
	return st.segments;
}

/* A wall time, `days` from now, at this hour of the day. */
static int64_t at_hour(int hour, int days)
{
	time_t t = clock_wall_ms() / 1000 + days * 24 * 3600;
	struct tm tm;

	localtime_r(&t, &tm);
	tm.tm_hour = hour;
	tm.tm_min = 30;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * 1000;
}

static int64_t disk_total, disk_avail;

static int fake_statfs(const char *path, int64_t *total, int64_t *avail, int64_t *unused)
{
	*total = disk_total;
	*avail = *unused = disk_avail;
	return 0;
}

static void fake_disk(int64_t total, int64_t avail)
{
	disk_total = total;
	disk_avail = avail;
	sys.statfs = fake_statfs;
}

/* With ratios, as the peer has them. */
static struct mqstore_opt ratio_opt(const char *dir)
{
	struct mqstore_opt o = kit_opt(dir);

	o.min_free_bytes = 0;
	return o;
}

/* ---- Time ------------------------------------------------------------------------------------------------------------ */

static void old_segments_go_at_their_hour_and_not_before(void **state)
{
	struct mqstore_opt o = ratio_opt(HERE);
	struct mqstore *s;
	int64_t n;

	strcpy(o.delete_when, "03; 14");
	fake_disk(1000, 900);
	s = old_store(&o);
	n = segments(s);
	assert_true(n > 8);
	mqstore_trim(s, at_hour(14, 0), false, NULL);
	assert_int_equal(segments(s), n);
	mqstore_trim(s, at_hour(13, 5), false, NULL);
	assert_int_equal(segments(s), n);
	mqstore_trim(s, at_hour(14, 5), false, NULL);
	assert_int_equal(segments(s), n > 11 ? n - 10 : 1);
	kit_close(s);
}

static void expired_segments_go_at_any_hour_when_asked(void **state)
{
	struct mqstore_opt o = ratio_opt(HERE);
	struct mqstore *s;
	int64_t hour = at_hour(0, 0);

	strcpy(o.delete_when, "");
	fake_disk(1000, 900);
	s = old_store(&o);
	mqstore_trim(s, hour + 71 * hour_ms, true, NULL);
	for (int i = 0; i < 3; i++)
		mqstore_trim(s, hour + 97 * hour_ms, true, NULL);
	/* The newest stays whatever its age. */
	assert_int_equal(segments(s), 1);
	assert_true(kit_min(s, "A", 0) > 0);
	assert_int_equal(kit_max(s, "A", 0), 2000);
	kit_check(s);
	kit_close(s);
}

/* ---- Bytes ----------------------------------------------------------------------------------------------------------- */

static void the_oldest_go_when_the_log_is_larger_than_allowed(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s;
	struct mqstore_stat st;

	o.max_total_bytes = 3 * KIT_SEGMENT;
	s = old_store(&o);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	mqstore_stat(s, &st);
	assert_true(st.log_bytes <= 3 * KIT_SEGMENT && st.log_bytes > KIT_SEGMENT);
	assert_false(kit_exists(LOG_FILE(0)));
	assert_true(kit_exists(LOG_FILE(st.log_min / KIT_SEGMENT)));
	kit_check(s);
	kit_close(s);
	s = kit_open_opt(&o);
	kit_check(s);
	kit_close(s);
}

static void a_disk_in_use_by_others_is_no_reason_to_refuse(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s;
	struct mqstore_stat st;
	struct mqstore_record r;
	struct mqstore_place place;
	struct mq_error err;

	/* 92 % used, but 8 GiB free, and 2 GiB are to be kept free. */
	o.min_free_bytes = 2LL << 30;
	fake_disk(100LL << 30, 8LL << 30);
	s = old_store(&o);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	kit_append(s, "A", 0, "taken");
	fake_disk(100LL << 30, (2LL << 30) - 1);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	r = kit_record(kit_queue(s, "A", 0), "refused");
	assert_int_equal(mqstore_append(s, &r, 1, &place, &err), MQ_EFULL);
	mqstore_stat(s, &st);
	assert_true(st.disk_full);
	assert_string_equal(st.why_not_writable, err.text);
	assert_non_null(strstr(err.text, HERE));
	assert_non_null(strstr(err.text, "minFreeBytes"));
	assert_non_null(strstr(err.text, "2.00 GiB free of 100.00"));
	fake_disk(100LL << 30, 3LL << 30);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	assert_int_equal(kit_append(s, "A", 0, "again").queue_off, 2001);
	kit_close(s);
}

static void ratios_are_those_of_the_peer(void **state)
{
	static const struct {
		int used;
		bool expired_go, all_go, full;
	} rows[] = {
		{ 75, false, false, false }, { 76, true, false, false }, { 85, true, false, false },
		{ 86, true, true, false }, { 90, true, true, false }, { 91, true, true, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int expired = 0; expired < 2; expired++) {
			struct mqstore_opt o = ratio_opt(kit_path("%s/%zu-%d", HERE, i, expired));
			struct mqstore_record r;
			struct mqstore_place place;
			struct mq_error err;
			struct mqstore *s;
			int64_t n;
			bool gone;

			strcpy(o.delete_when, "");
			s = old_store(&o);
			n = segments(s);
			fake_disk(10000, 10000 - rows[i].used * 100);
			mqstore_trim(s, clock_wall_ms() + (expired ? 100 * hour_ms : 0), false, NULL);
			gone = segments(s) < n;
			assert_int_equal(gone, rows[i].all_go || (expired && rows[i].expired_go));
			r = kit_record(kit_queue(s, "A", 0), "x");
			assert_int_equal(mqstore_append(s, &r, 1, &place, &err), rows[i].full ? MQ_EFULL : 0);
			if (rows[i].full)
				assert_non_null(strstr(err.text, "diskSpaceWarningLevelRatio"));
			kit_close(s);
		}
}

static int statfs_must_work(const char *path, int64_t *total, int64_t *avail, int64_t *unused)
{
	assert_int_equal(sys_real.statfs(path, total, avail, unused), 0);
	return fake_statfs(path, total, avail, unused);
}

static void a_fresh_directory_is_not_a_full_disk(void **state)
{
	struct mqstore_opt o = ratio_opt(kit_path("%s/not/yet/there", HERE));
	struct mqstore *s;

	fake_disk(1000, 900);
	sys.statfs = statfs_must_work;
	kit_log_start();
	s = kit_open_opt(&o);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	assert_int_equal(kit_logged("WARN"), 0);
	assert_int_equal(kit_logged("ERROR"), 0);
	kit_close(s);
}

static void room_is_made_when_the_file_system_says_there_is_none(void **state)
{
	struct mqstore_opt o = ratio_opt(HERE);
	struct mqstore_record r;
	struct mqstore_place place;
	struct mqstore *s;
	int64_t n;
	int rc = 0;

	fake_disk(1000, 900);
	s = old_store(&o);
	n = segments(s);
	r = kit_record(kit_queue(s, "B", 0), "x");
	fault_set(1, ENOSPC, FAULT_CRASH);
	for (int i = 0; i < 1000 && rc == 0; i++)
		rc = mqstore_append(s, &r, 1, &place, NULL);
	fault_off();
	fake_disk(1000, 900);
	assert_int_equal(rc, MQ_EFULL);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	assert_true(segments(s) < n);
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	kit_close(s);
}

/* ---- Files that do not want to go ------------------------------------------------------------------------------------ */

static char stuck[2][1024];

static int unlink_but_stuck(const char *path)
{
	return strcmp(path, stuck[0]) == 0 || strcmp(path, stuck[1]) == 0 ? -EPERM : sys_real.unlink(path);
}

static void a_file_that_cannot_be_removed_does_not_keep_the_others(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s;
	int64_t n;

	o.max_total_bytes = 0;
	s = old_store(&o);
	kit_close(s);
	o.max_total_bytes = 3 * KIT_SEGMENT;
	s = kit_open_opt(&o);
	snprintf(stuck[0], sizeof(stuck[0]), "%s", LOG_FILE(0));
	snprintf(stuck[1], sizeof(stuck[1]), "%s", LOG_FILE(1));
	sys.unlink = unlink_but_stuck;
	kit_log_start();
	n = segments(s);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	assert_int_equal(kit_logged("cannot remove a segment"), 2);
	assert_true(segments(s) < n && segments(s) >= 3);
	assert_false(kit_exists(LOG_FILE(2)));
	/* What is left can be read, with a step over the hole. */
	assert_string_equal(kit_body(s, "A", 0, 0), "a0");
	assert_true(kit_count(s, "A", 0, 0, NULL) < 2000);
	fault_off();
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	assert_false(kit_exists(LOG_FILE(0)));
	assert_false(kit_exists(LOG_FILE(1)));
	kit_check(s);
	kit_close(s);
}

static void segments_go_while_a_flush_is_running(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore_flush job;
	struct mqstore *s;

	o.max_total_bytes = KIT_SEGMENT;
	s = kit_open_opt(&o);
	kit_fill(s, "A", 0, "a", 1000, 250);
	mqstore_flush(s, NULL);
	kit_fill(s, "A", 0, "b", 1000, 250);
	assert_int_equal(mqstore_flush_begin(s, true, &job), 0);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	assert_int_equal(mqstore_delete_topic(s, MQ_STR("A"), NULL), 0);
	mqstore_flush_run(&job);
	assert_int_equal(mqstore_flush_end(s, &job, NULL), 0);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	assert_true(segments(s) <= 2);
	assert_int_equal(kit_append(s, "A", 0, "new").queue_off, 0);
	kit_close(s);
}

/* ---- Queues and index follow ----------------------------------------------------------------------------------------- */

static void a_queue_whose_messages_are_all_gone_keeps_its_numbers(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open_opt(&o);
	struct mqstore_result *res = malloc(sizeof(*res));
	struct mqstore_get_opt get = { .max_messages = 10, .max_bytes = 1000 };

	kit_fill(s, "Gone", 0, "g", 100, 250);
	kit_fill(s, "A", 0, "a", 1500, 250);
	kit_close(s);
	o.max_total_bytes = KIT_SEGMENT;
	for (int round = 0; round < 2; round++) {
		s = kit_open_opt(&o);
		mqstore_trim(s, clock_wall_ms(), false, NULL);
		assert_int_equal(kit_min(s, "Gone", 0), 100);
		assert_int_equal(kit_max(s, "Gone", 0), 100);
		assert_int_equal(mqstore_get(s, kit_queue(s, "Gone", 0), 0, &get, res), 0);
		assert_int_equal(res->status, MQSTORE_OFFSET_TOO_SMALL);
		assert_int_equal(res->next_off, 100);
		assert_int_equal(mqstore_get(s, kit_queue(s, "Gone", 0), 100, &get, res), 0);
		assert_int_equal(res->status, MQSTORE_OFFSET_OVERFLOW_ONE);
		if (round == 0)
			kit_close(s);
		else
			kit_die(s);
	}
	s = kit_open_opt(&o);
	assert_int_equal(kit_min(s, "Gone", 0), 100);
	assert_int_equal(kit_append(s, "Gone", 0, "back").queue_off, 100);
	assert_string_equal(kit_body(s, "Gone", 0, 100), "back");
	kit_close(s);
	free(res);
}

static void files_of_queues_and_index_go_with_the_log(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open_opt(&o);
	struct mqstore_record r = kit_record(NULL, "x");
	struct mqstore_place place;
	struct mqstore_stat before, after;
	int64_t queue_bytes;
	char props[64];

	for (int i = 0; i < 3000; i++) {
		r.queue = kit_queue(s, "A", 0);
		snprintf(props, sizeof(props), "KEYS\1key%d\2", i);
		r.props[0] = str_of(props);
		assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	}
	while (mqstore_tend(s))
		;
	kit_close(s);
	o.max_total_bytes = KIT_SEGMENT;
	s = kit_open_opt(&o);
	mqstore_stat(s, &before);
	queue_bytes = mqstore_queue_bytes(s);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	/* Not all files of the queue at once: who sends would wait for that. */
	assert_true(kit_exists(kit_path("%s/consumequeue/A/0/%020d", HERE, 28 * KIT_QUEUE_FILE)));
	while (mqstore_tend(s))
		;
	mqstore_stat(s, &after);
	assert_true(mqstore_queue_bytes(s) < queue_bytes);
	assert_true(after.index_bytes < before.index_bytes);
	assert_false(kit_exists(kit_path("%s/consumequeue/A/0/%020d", HERE, 0)));
	assert_true(kit_exists(kit_path("%s/consumequeue/A/0/%020d", HERE, 29 * KIT_QUEUE_FILE)));
	kit_check(s);
	kit_close(s);
	s = kit_open_opt(&o);
	kit_check(s);
	assert_int_equal(kit_max(s, "A", 0), 3000);
	kit_close(s);
}

static void queues_without_messages_are_removed_when_asked_but_not_those_of_the_system(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open_opt(&o);

	kit_fill(s, "Gone", 0, "g", 3, 250);
	kit_fill(s, "SCHEDULE_TOPIC_XXXX", 0, "g", 3, 250);
	kit_fill(s, "rmq_sys_wheel_timer", 0, "g", 3, 250);
	kit_fill(s, "A", 0, "a", 1500, 250);
	kit_close(s);
	o.max_total_bytes = KIT_SEGMENT;
	s = kit_open_opt(&o);
	mqstore_trim(s, clock_wall_ms(), false, NULL);
	assert_int_equal(mqstore_clean_queues(s, NULL), 0);
	assert_null(mqstore_queue(s, MQ_STR("Gone"), 0, false));
	assert_false(kit_exists(kit_path("%s/consumequeue/Gone", HERE)));
	assert_int_equal(kit_max(s, "SCHEDULE_TOPIC_XXXX", 0), 3);
	assert_int_equal(kit_max(s, "rmq_sys_wheel_timer", 0), 3);
	assert_int_equal(kit_max(s, "A", 0), 1500);
	assert_int_equal(kit_append(s, "Gone", 0, "anew").queue_off, 0);
	kit_close(s);
}

static int tear_down(void **state)
{
	fault_off();
	return tempdir_remove(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(old_segments_go_at_their_hour_and_not_before),
		TEST(expired_segments_go_at_any_hour_when_asked),
		TEST(the_oldest_go_when_the_log_is_larger_than_allowed),
		TEST(a_disk_in_use_by_others_is_no_reason_to_refuse),
		TEST(ratios_are_those_of_the_peer),
		TEST(a_fresh_directory_is_not_a_full_disk),
		TEST(room_is_made_when_the_file_system_says_there_is_none),
		TEST(a_file_that_cannot_be_removed_does_not_keep_the_others),
		TEST(segments_go_while_a_flush_is_running),
		TEST(a_queue_whose_messages_are_all_gone_keeps_its_numbers),
		TEST(files_of_queues_and_index_go_with_the_log),
		TEST(queues_without_messages_are_removed_when_asked_but_not_those_of_the_system),
	};

	kit_log_start();
	fault_without_syncs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
