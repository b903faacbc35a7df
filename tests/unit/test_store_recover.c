/* test_store_recover.c: the states that a crash, a power cut or an operator can leave, and what is there after the next open.
 *
 * Each test: messages, a stop, the damage, open, look.  kit_die() is a kill: what was appended is in the files, nothing else
 * was done in order.  Power cuts are made by zeroing what may not have reached the disk. */
#include "golden_store.h"
#include "store_kit.h"
#include "tempdir.h"

#include "base/byte.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/layout.h"
#include "codec/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define HERE ((const char *)*state)
#define LOG_FILE(n) kit_path("%s/commitlog/%020lld", HERE, (long long)(n) * KIT_SEGMENT)
#define QUEUE_FILE(topic, id, n) kit_path("%s/consumequeue/%s/%d/%020lld", HERE, topic, id, (long long)(n) * KIT_QUEUE_FILE)

static bool recovered(struct mqstore *s)
{
	struct mqstore_stat st;

	mqstore_stat(s, &st);
	return st.recovered;
}

/* The next message gets number `off` and everything is in order. */
static void goes_on_at(struct mqstore *s, const char *topic, int id, int64_t off)
{
	assert_int_equal(kit_append(s, topic, id, "next").queue_off, off);
	assert_string_equal(kit_body(s, topic, id, off), "next");
}

/* ---- Killed ---------------------------------------------------------------------------------------------------------- */

static void killed_while_messages_come(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 700, 300);
	kit_fill(s, "B", 1, "b", 30, 10);
	kit_die(s);
	assert_true(kit_exists(kit_path("%s/abort", HERE)));
	s = kit_open(HERE);
	assert_true(recovered(s));
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 700);
	assert_int_equal(kit_count(s, "B", 1, 0, NULL), 30);
	kit_check(s);
	goes_on_at(s, "A", 0, 700);
	kit_close(s);
	s = kit_open(HERE);
	assert_false(recovered(s));
	kit_close(s);
}

static void killed_before_the_first_message(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_die(s);
	s = kit_open(HERE);
	assert_true(recovered(s));
	goes_on_at(s, "A", 0, 0);
	kit_check(s);
	kit_close(s);
}

static void killed_again_and_again(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct mqstore *s = kit_open(HERE);

		assert_int_equal(kit_count(s, "A", i % 3, 0, NULL), i / 3 * 40);
		kit_fill(s, "A", i % 3, "a", 40, 200);
		kit_check(s);
		kit_die(s);
	}
}

static void killed_with_the_next_segment_made_ahead(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 170, 200);
	mqstore_tend(s);
	assert_true(kit_exists(LOG_FILE(1)));
	kit_die(s);
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 170);
	assert_false(kit_exists(LOG_FILE(1)));
	goes_on_at(s, "A", 0, 170);
	kit_close(s);
	assert_false(kit_exists(LOG_FILE(1)));
}

static void killed_between_the_blank_and_the_next_segment(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t n;

	kit_fill(s, "A", 0, "a", 250, 200);
	n = KIT_SEGMENT / (kit_log_off(s, "A", 0, 5) - kit_log_off(s, "A", 0, 4));
	while (kit_log_off(s, "A", 0, n) < KIT_SEGMENT)
		n++;
	kit_die(s);
	kit_remove(LOG_FILE(1));
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), n);
	assert_true(mqstore_log_max(s) < KIT_SEGMENT);
	goes_on_at(s, "A", 0, n);
	kit_check(s);
	kit_close(s);
}

static void killed_when_the_new_segment_is_still_empty(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t n = 0;

	kit_fill(s, "A", 0, "a", 250, 200);
	while (kit_log_off(s, "A", 0, n) < KIT_SEGMENT)
		n++;
	kit_die(s);
	kit_zero(LOG_FILE(1), 0, KIT_SEGMENT);
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), n);
	assert_int_equal(mqstore_log_max(s), KIT_SEGMENT);
	goes_on_at(s, "A", 0, n);
	kit_check(s);
	kit_close(s);
}

static void killed_when_the_queue_s_next_file_is_still_empty(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 101, 10);
	mqstore_flush(s, NULL);
	kit_die(s);
	kit_zero(QUEUE_FILE("A", 0, 1), 0, CQ_ENTRY);
	s = kit_open(HERE);
	kit_check(s);
	goes_on_at(s, "A", 0, 101);
	kit_close(s);
}

static void killed_while_a_segment_gets_its_length(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 10, 10);
	mqstore_flush(s, NULL);
	kit_die(s);
	kit_touch(LOG_FILE(1));
	kit_touch(QUEUE_FILE("A", 0, 1));
	s = kit_open(HERE);
	goes_on_at(s, "A", 0, 10);
	kit_check(s);
	kit_close(s);
}

/* ---- Power cut ------------------------------------------------------------------------------------------------------- */

static void every_possible_tear_of_the_last_record(void **state)
{
	char *base = mem_printf("%s/base", HERE), *copy = mem_printf("%s/copy", HERE);
	struct mqstore *s = kit_open(base);
	struct mqstore_record r = kit_record(kit_queue(s, "Topic", 1), "body of the last one");
	struct mqstore_place place;

	kit_fill(s, "Topic", 1, "m", 9, 20);
	r.props[0] = MQ_STR("KEYS\1key\2TAGS\1tag\2");
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	kit_die(s);
	for (int32_t k = 1; k <= place.size; k++) {
		kit_copy(base, copy);
		kit_zero(kit_path("%s/commitlog/%020d", copy, 0), place.end_off - k, (size_t)k);
		s = kit_open(copy);
		if (kit_count(s, "Topic", 1, 0, NULL) != 9)
			fail_msg("%d bytes of %d torn off: %d messages", k, place.size, kit_count(s, "Topic", 1, 0, NULL));
		assert_int_equal(mqstore_log_max(s), place.log_off);
		goes_on_at(s, "Topic", 1, 9);
		kit_check(s);
		kit_close(s);
		kit_remove(copy);
	}
	free(base);
	free(copy);
}

static void a_page_that_never_reached_the_disk(void **state)
{
	char *base = mem_printf("%s/base", HERE), *copy = mem_printf("%s/copy", HERE);
	struct mqstore *s = kit_open(base);

	kit_fill(s, "A", 0, "a", 200, 300);
	kit_fill(s, "A", 1, "b", 200, 1300);
	kit_die(s);
	for (int page = 0; page < 60; page += 3) {
		int lost, left;

		kit_copy(base, copy);
		kit_zero(kit_path("%s/commitlog/%020d", copy, page / 16 * KIT_SEGMENT), page % 16 * 4096, 4096);
		kit_log_start();
		s = kit_open(copy);
		left = kit_count(s, "A", 0, 0, NULL) + kit_count(s, "A", 1, 0, NULL);
		lost = 400 - left;
		/* No more than what the page touched. */
		if (lost < 1 || lost > 15)
			fail_msg("page %d: %d lost", page, lost);
		assert_int_equal(kit_logged("damaged part of the log"), 1);
		goes_on_at(s, "A", 0, 200);
		goes_on_at(s, "A", 1, 200);
		kit_close(s);
		s = kit_open(copy);
		assert_int_equal(kit_count(s, "A", 0, 0, NULL) + kit_count(s, "A", 1, 0, NULL), left + 2);
		kit_close(s);
		kit_remove(copy);
	}
	free(base);
	free(copy);
}

static void entries_of_records_that_never_reached_the_disk(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t from;

	kit_fill(s, "A", 0, "a", 250, 100);
	kit_fill(s, "B", 0, "b", 1, 100);
	kit_append(s, "C", 0, "c");
	from = kit_log_off(s, "A", 0, 95);
	mqstore_flush(s, NULL);
	kit_die(s);
	kit_zero(LOG_FILE(0), from, (size_t)(KIT_SEGMENT - from));
	s = kit_open(HERE);
	assert_int_equal(kit_max(s, "A", 0), 95);
	assert_int_equal(mqstore_log_max(s), from);
	assert_false(kit_exists(QUEUE_FILE("A", 0, 1)));
	goes_on_at(s, "A", 0, 95);
	/* A queue that lost its only entry never held a message. */
	assert_true(kit_max(s, "B", 0) <= 0);
	goes_on_at(s, "B", 0, 0);
	kit_check(s);
	kit_close(s);
}

static void entries_that_never_reached_the_disk(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 130, 100);
	mqstore_flush(s, NULL);
	kit_die(s);
	kit_zero(QUEUE_FILE("A", 0, 1), 20 * CQ_ENTRY, 10 * CQ_ENTRY);
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 130);
	kit_check(s);
	kit_close(s);
}

static void a_hole_in_the_middle_of_a_queue_file(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 130, 100);
	mqstore_flush(s, NULL);
	kit_die(s);
	kit_zero(QUEUE_FILE("A", 0, 0), 50 * CQ_ENTRY, CQ_ENTRY);
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 130);
	kit_check(s);
	kit_close(s);
}

/* ---- Damage in the middle -------------------------------------------------------------------------------------------- */

/* A record whose properties end in a zero is not taken for whole when what follows is damaged: a reader must get over it all the same. */
static void looking_at_a_record_that_ends_in_zero_before_a_damaged_one_ends(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open(HERE);
	struct mqstore_record r = kit_record(kit_queue(s, "A", 0), "ends in zero");
	struct mqstore_place place;

	r.props[0] = (struct mq_str){ "a\001b\000", 4 };
	assert_int_equal(mqstore_append(s, &r, 1, &place, NULL), 0);
	kit_append(s, "A", 0, "damaged");
	kit_append(s, "A", 0, "behind");
	mqstore_flush(s, NULL);
	kit_die(s);
	kit_flip(LOG_FILE(0), place.end_off + 4);
	o.read_only = true;
	s = kit_open_opt(&o);
	assert_string_equal(kit_body(s, "A", 0, 2), "behind");
	kit_close(s);
	s = kit_open(HERE);
	assert_string_equal(kit_body(s, "A", 0, 2), "behind");
	kit_close(s);
}

static void a_flipped_bit_costs_one_message(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t off;
	int skipped;

	kit_fill(s, "A", 0, "a", 1000, 300);
	off = kit_log_off(s, "A", 0, 500);
	kit_close(s);
	kit_flip(LOG_FILE(off / KIT_SEGMENT), off % KIT_SEGMENT + 200);
	/* What an operator does who wants everything to be looked at. */
	kit_touch(kit_path("%s/abort", HERE));
	kit_remove(kit_path("%s/checkpoint", HERE));
	for (int round = 0; round < 2; round++) {
		kit_log_start();
		s = kit_open(HERE);
		assert_int_equal(kit_max(s, "A", 0), 1000 + round);
		assert_int_equal(kit_count(s, "A", 0, 0, &skipped), 999 + round);
		assert_int_equal(skipped, 1);
		assert_string_equal(kit_body(s, "A", 0, 500), "-");
		assert_string_equal(kit_body(s, "A", 0, 499), "a499");
		assert_string_equal(kit_body(s, "A", 0, 501), "a501");
		if (round == 0)
			assert_int_equal(kit_logged(kit_path("damaged part of the log, readers go on behind it from=%lld ", (long long)off)), 1);
		goes_on_at(s, "A", 0, 1000 + round);
		kit_close(s);
	}
}

static void an_empty_abort_has_the_newest_segments_checked(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t off;

	kit_fill(s, "A", 0, "a", 100, 300);
	off = kit_log_off(s, "A", 0, 50);
	kit_close(s);
	kit_flip(LOG_FILE(0), off + 200);
	kit_touch(kit_path("%s/abort", HERE));
	kit_log_start();
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 99);
	assert_int_equal(kit_logged("damaged part of the log"), 1);
	kit_close(s);
}

static void the_number_of_a_damaged_message_is_not_given_again(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t off;

	kit_fill(s, "A", 0, "a", 5, 300);
	kit_fill(s, "B", 0, "b", 5, 300);
	off = kit_log_off(s, "A", 0, 4);
	kit_die(s);
	kit_flip(LOG_FILE(0), off + 200);
	s = kit_open(HERE);
	assert_int_equal(kit_max(s, "A", 0), 5);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 4);
	assert_int_equal(kit_count(s, "B", 0, 0, NULL), 5);
	goes_on_at(s, "A", 0, 5);
	kit_die(s);
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 5);
	goes_on_at(s, "A", 0, 6);
	kit_close(s);
}

static void the_very_first_record_is_damaged(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 10, 300);
	kit_die(s);
	kit_zero(LOG_FILE(0), 0, 8);
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 9);
	goes_on_at(s, "A", 0, 10);
	kit_close(s);
}

static void queue_and_log_are_damaged_at_the_same_place(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t off;
	int skipped;

	kit_fill(s, "A", 0, "a", 90, 300);
	off = kit_log_off(s, "A", 0, 50);
	kit_die(s);
	kit_flip(LOG_FILE(0), off + 200);
	kit_remove(kit_path("%s/consumequeue", HERE));
	s = kit_open(HERE);
	assert_int_equal(kit_max(s, "A", 0), 90);
	assert_int_equal(kit_count(s, "A", 0, 0, &skipped), 89);
	assert_string_equal(kit_body(s, "A", 0, 49), "a49");
	assert_string_equal(kit_body(s, "A", 0, 51), "a51");
	goes_on_at(s, "A", 0, 90);
	kit_close(s);
}

/* The peer leaves what lies behind its cut as it is; what is written over it later may be shorter. */
static void old_records_behind_a_shorter_new_one(void **state)
{
	char *old = mem_printf("%s/old", HERE), *base = mem_printf("%s/base", HERE);
	struct mqstore *s = kit_open(old);
	char *bytes = mem_alloc(KIT_SEGMENT);
	int64_t end;
	FILE *f;

	kit_fill(s, "A", 0, "a", 4, 300);
	kit_close(s);
	kit_copy(old, base);
	s = kit_open(old);
	kit_fill(s, "A", 0, "old", 30, 300);
	kit_close(s);
	clock_shift_wall(60000);
	s = kit_open(base);
	kit_append(s, "A", 0, "new");
	end = mqstore_log_max(s);
	kit_die(s);
	clock_shift_wall(-60000);
	f = fopen(kit_path("%s/commitlog/%020d", old, 0), "r");
	assert_int_equal(fread(bytes, 1, KIT_SEGMENT, f), KIT_SEGMENT);
	fclose(f);
	kit_overwrite(kit_path("%s/commitlog/%020d", base, 0), end, bytes + end, (size_t)(KIT_SEGMENT - end));
	kit_log_start();
	s = kit_open(base);
	assert_int_equal(mqstore_log_max(s), end);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 5);
	assert_string_equal(kit_body(s, "A", 0, 4), "new");
	assert_int_equal(kit_logged("are left out"), 1);
	goes_on_at(s, "A", 0, 5);
	kit_die(s);
	s = kit_open(base);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 6);
	kit_check(s);
	kit_close(s);
	free(bytes);
	free(old);
	free(base);
}

/* ---- Files lost ------------------------------------------------------------------------------------------------------ */

static void a_segment_in_the_middle_is_missing(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t first = 0, behind = 0, n = 1200;
	int skipped;

	kit_fill(s, "A", 0, "a", (int)n, 250);
	while (kit_log_off(s, "A", 0, first) < 2 * KIT_SEGMENT)
		first++;
	behind = first;
	while (kit_log_off(s, "A", 0, behind) < 3 * KIT_SEGMENT)
		behind++;
	kit_close(s);
	kit_remove(LOG_FILE(2));
	for (int round = 0; round < 3; round++) {
		/* Clean, killed, and killed without a checkpoint. */
		if (round > 0)
			kit_touch(kit_path("%s/abort", HERE));
		if (round > 1)
			kit_remove(kit_path("%s/checkpoint", HERE));
		s = kit_open(HERE);
		assert_int_equal(kit_min(s, "A", 0), 0);
		assert_int_equal(kit_count(s, "A", 0, 0, &skipped), n - (behind - first));
		assert_int_equal(skipped, behind - first);
		assert_string_equal(kit_body(s, "A", 0, behind), kit_path("a%d", (int)behind));
		assert_true(mqstore_search_time(s, kit_queue(s, "A", 0), INT64_MAX - 1, false) == kit_max(s, "A", 0));
		goes_on_at(s, "A", 0, n++);
		kit_close(s);
	}
}

static void the_last_segment_is_gone_and_a_queue_file_is_zero(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t n = 0;

	kit_fill(s, "A", 0, "a", 150, 250);
	kit_fill(s, "B", 0, "b", 20, 250);
	kit_fill(s, "A", 0, "a", 150, 250);
	while (kit_log_off(s, "A", 0, n) < KIT_SEGMENT)
		n++;
	kit_close(s);
	kit_remove(LOG_FILE(1));
	kit_zero(QUEUE_FILE("B", 0, 0), 0, KIT_QUEUE_FILE);
	kit_log_start();
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), n);
	assert_int_equal(kit_count(s, "B", 0, 0, NULL), 20);
	assert_true(kit_logged("topic=B queue=0") >= 1);
	goes_on_at(s, "A", 0, n);
	goes_on_at(s, "B", 0, 20);
	kit_check(s);
	kit_close(s);
}

static void a_queue_file_is_zero_after_a_clean_stop(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 150, 250);
	kit_fill(s, "B", 0, "b", 700, 250);
	kit_close(s);
	kit_zero(QUEUE_FILE("A", 0, 1), 0, KIT_QUEUE_FILE);
	s = kit_open(HERE);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 150);
	goes_on_at(s, "A", 0, 150);
	kit_check(s);
	kit_close(s);
}

/* What an operator, a copy or a file system can do to derived files while nobody has the store open. */
static void queue_files_are_damaged_after_a_clean_stop(void **state)
{
	enum { GAP, SHORT, LONG, SHORT_TAIL, DIRECTORY, STRAY, FIRST, ALL_OF_ONE, WAYS };

	for (int way = 0; way < WAYS; way++)
		for (int look = 0; look < 2; look++) {
			char *here = mem_printf("%s/%d-%d", HERE, way, look);
			struct mqstore_opt o = kit_opt(here);
			const char *dir = here, *file = kit_path("%s/consumequeue/A/0/%020lld", dir, (long long)2 * KIT_QUEUE_FILE);
			struct mqstore *s = kit_open(here);

			kit_fill(s, "A", 0, "a", 450, 250);
			kit_fill(s, "B", 0, "b", 120, 250);
			kit_close(s);
			if (way == SHORT_TAIL || way == STRAY)
				file = kit_path("%s/consumequeue/A/0/%020lld", dir, (way == STRAY ? 5LL : 4LL) * KIT_QUEUE_FILE);
			if (way == FIRST)
				file = kit_path("%s/consumequeue/A/0/%020lld", dir, 0LL);
			if (way == ALL_OF_ONE)
				file = kit_path("%s/consumequeue/A", dir);
			if (way == GAP || way == DIRECTORY || way == ALL_OF_ONE)
				kit_remove(file);
			if (way == DIRECTORY || way == STRAY)
				assert_int_equal(mkdir(file, 0755), 0);
			if (way == SHORT || way == SHORT_TAIL || way == FIRST)
				assert_int_equal(truncate(file, 20 * 7), 0);
			if (way == LONG)
				assert_int_equal(truncate(file, KIT_QUEUE_FILE + 20), 0);
			o.read_only = look;
			s = kit_open_opt(&o);
			assert_int_equal(kit_count(s, "A", 0, 0, NULL), 450);
			assert_int_equal(kit_count(s, "B", 0, 0, NULL), 120);
			if (!look)
				goes_on_at(s, "A", 0, 450);
			kit_check(s);
			kit_close(s);
			if (!look) { /* mended for good */
				kit_log_start();
				s = kit_open(here);
				assert_int_equal(kit_count(s, "A", 0, 0, NULL), 451);
				assert_int_equal(kit_logged("are lost"), 0);
				assert_int_equal(kit_logged("are gone"), 0);
				kit_close(s);
			}
			free(here);
		}
}

/* Fewer queues than before are no damage when they were removed. */
static void queues_that_were_deleted_are_not_missed(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 10, 250);
	kit_fill(s, "B", 0, "b", 10, 250);
	kit_close(s);
	s = kit_open(HERE);
	assert_int_equal(mqstore_delete_topic(s, MQ_STR("A"), NULL), 0);
	kit_close(s);
	kit_log_start();
	s = kit_open(HERE);
	assert_int_equal(kit_logged("are gone"), 0);
	assert_int_equal(kit_count(s, "B", 0, 0, NULL), 10);
	kit_close(s);
}

static void all_queue_files_are_gone(void **state)
{
	for (int killed = 0; killed < 2; killed++) {
		char *here = mem_printf("%s/%d", HERE, killed);
		struct mqstore *s = kit_open(here);

		kit_fill(s, "A", 0, "a", 1500, 250);
		kit_fill(s, "B", 0, "b", 20, 250);
		if (killed)
			kit_die(s);
		else
			kit_close(s);
		kit_remove(kit_path("%s/consumequeue", here));
		kit_remove(kit_path("%s/index", here));
		s = kit_open(here);
		assert_int_equal(kit_count(s, "A", 0, 0, NULL), 1500);
		assert_int_equal(kit_count(s, "B", 0, 0, NULL), 20);
		kit_check(s);
		goes_on_at(s, "B", 0, 20);
		kit_close(s);
		free(here);
	}
}

static void the_files_of_one_queue_are_gone_after_a_kill(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 800, 250);
	mqstore_flush(s, NULL);
	clock_shift_wall(10000);
	kit_fill(s, "B", 0, "b", 500, 250);
	mqstore_flush(s, NULL);
	clock_shift_wall(10000);
	kit_fill(s, "A", 0, "c", 200, 250);
	kit_die(s);
	clock_shift_wall(-20000);
	kit_remove(kit_path("%s/consumequeue/A", HERE));
	kit_log_start();
	s = kit_open(HERE);
	/* Those that the checkpoint says are on disk, too. */
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 1000);
	assert_int_equal(kit_logged("a queue lacks entries"), 1);
	kit_check(s);
	kit_close(s);
}

static void a_queue_that_begins_behind_its_deleted_part_is_made_again(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open(HERE);
	struct mqstore_entry e;
	int64_t min;

	kit_fill(s, "A", 0, "a", 1030, 250);
	mqstore_flush(s, NULL);
	o.max_total_bytes = KIT_SEGMENT;
	kit_close(s);
	s = kit_open_opt(&o);
	assert_int_equal(mqstore_trim(s, clock_wall_ms(), false, NULL), 0);
	min = kit_min(s, "A", 0);
	assert_true(min > 100 && min % 100 != 0);
	kit_die(s);
	kit_remove(kit_path("%s/consumequeue", HERE));
	s = kit_open_opt(&o);
	assert_int_equal(kit_min(s, "A", 0), min);
	assert_int_equal(kit_max(s, "A", 0), 1030);
	assert_int_equal(kit_count(s, "A", 0, min, NULL), 1030 - min);
	/* compat: the part of its first file that has no messages holds fillers. */
	assert_int_equal(mqstore_entry(kit_queue(s, "A", 0), min - 1, &e), MQ_ENOTFOUND);
	assert_int_equal(e.size, 0x7fffffff);
	goes_on_at(s, "A", 0, 1030);
	kit_check(s);
	kit_close(s);
}

static void there_is_no_log_but_queues(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 30, 250);
	kit_close(s);
	kit_remove(kit_path("%s/commitlog", HERE));
	s = kit_open(HERE);
	assert_null(mqstore_queue(s, MQ_STR("A"), 0, false));
	assert_false(kit_exists(QUEUE_FILE("A", 0, 0)));
	goes_on_at(s, "A", 0, 0);
	kit_close(s);
}

static void the_checkpoint_is_missing_or_no_checkpoint(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int n = 0;

	for (int round = 0; round < 3; round++) {
		kit_fill(s, "A", 0, "a", 400, 250);
		n += 400;
		kit_die(s);
		if (round == 0)
			kit_remove(kit_path("%s/checkpoint", HERE));
		if (round == 1)
			kit_truncate(kit_path("%s/checkpoint", HERE), 10);
		if (round == 2)
			kit_overwrite(kit_path("%s/checkpoint", HERE), 0, "\x7f\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 16);
		s = kit_open(HERE);
		assert_int_equal(kit_count(s, "A", 0, 0, NULL), n);
		kit_check(s);
	}
	kit_close(s);
}

static void foreign_files_are_left_alone(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 400, 250);
	kit_close(s);
	tempdir_write(kit_path("%s/commitlog/README", HERE), "hello");
	tempdir_write(kit_path("%s/consumequeue/A/0/note", HERE), "hello");
	tempdir_write(kit_path("%s/consumequeue/note", HERE), "hello");
	tempdir_write(kit_path("%s/consumequeue/A/note", HERE), "hello");
	s = kit_open(HERE);
	goes_on_at(s, "A", 0, 400);
	kit_check(s);
	kit_close(s);
	assert_true(kit_exists(kit_path("%s/commitlog/README", HERE)));
	assert_true(kit_exists(kit_path("%s/consumequeue/A/0/note", HERE)));
}

static void a_segment_of_another_length_is_refused_with_its_name(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open(HERE);
	struct mq_error err;
	uint64_t sum;

	kit_fill(s, "A", 0, "a", 700, 250);
	kit_close(s);
	kit_truncate(LOG_FILE(1), 1000);
	sum = golden_fingerprint(kit_path("%s/commitlog", HERE));
	assert_int_equal(mqstore_open(&s, &o, &err), MQ_EMISMATCH);
	assert_non_null(strstr(err.text, "00000000000000065536"));
	assert_non_null(strstr(err.text, "1000"));
	assert_true(sum == golden_fingerprint(kit_path("%s/commitlog", HERE)));
}

/* ---- Read-only ------------------------------------------------------------------------------------------------------- */

static void looking_at_a_crashed_store_shows_what_recovery_would(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *s = kit_open(HERE);
	uint64_t sum;
	int64_t off;

	kit_fill(s, "A", 0, "a", 300, 250);
	kit_fill(s, "B", 0, "b", 20, 250);
	off = kit_log_off(s, "A", 0, 100);
	mqstore_flush(s, NULL);
	kit_die(s);
	kit_zero(QUEUE_FILE("A", 0, 2), 50 * CQ_ENTRY, 50 * CQ_ENTRY);
	kit_remove(kit_path("%s/consumequeue/B", HERE));
	kit_flip(LOG_FILE(0), off + 150);
	sum = golden_fingerprint(HERE);
	o.read_only = true;
	s = kit_open_opt(&o);
	assert_int_equal(kit_max(s, "A", 0), 300);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 299);
	assert_int_equal(kit_count(s, "B", 0, 0, NULL), 20);
	assert_string_equal(kit_body(s, "A", 0, 299), "a299");
	assert_int_equal(mqstore_refresh(s), 0);
	assert_int_equal(kit_count(s, "A", 0, 0, NULL), 299);
	kit_close(s);
	assert_true(sum == golden_fingerprint(HERE));
}

static void a_reader_stays_right_while_its_writer_is_killed_and_comes_back(void **state)
{
	struct mqstore_opt o = kit_opt(HERE);
	struct mqstore *w = kit_open(HERE), *r;
	int n = 0;

	o.read_only = true;
	kit_fill(w, "A", 0, "a", 10, 250);
	r = kit_open_opt(&o);
	for (int round = 0; round < 12; round++) {
		n += 77;
		kit_fill(w, "A", 0, "a", 77, 250);
		assert_int_equal(mqstore_refresh(r), 0);
		assert_int_equal(kit_count(r, "A", 0, 0, NULL), n + 10);
		if (round % 3 == 1)
			kit_die(w);
		else
			kit_close(w);
		w = kit_open(HERE);
		assert_int_equal(mqstore_refresh(r), 0);
		kit_check(r);
	}
	kit_close(w);
	kit_close(r);
}

/* ---- And the rest ---------------------------------------------------------------------------------------------------- */

static void a_topic_deleted_and_made_again_before_the_kill(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "old", 50, 250);
	assert_int_equal(mqstore_delete_topic(s, MQ_STR("A"), NULL), 0);
	kit_fill(s, "A", 0, "new", 7, 250);
	kit_die(s);
	for (int lost = 0; lost < 2; lost++) {
		if (lost)
			kit_remove(kit_path("%s/consumequeue", HERE));
		s = kit_open(HERE);
		assert_int_equal(kit_max(s, "A", 0), 7);
		assert_string_equal(kit_body(s, "A", 0, 0), "new0");
		assert_string_equal(kit_body(s, "A", 0, 6), "new6");
		kit_die(s);
	}
}

static void keys_are_found_after_a_kill(void **state)
{
	struct mqstore *s = kit_open(HERE);
	struct mqstore_place place[600];
	int64_t off[4];
	char props[64];

	for (int i = 0; i < 600; i++) {
		struct mqstore_record r = kit_record(kit_queue(s, "A", 0), "x");

		snprintf(props, sizeof(props), "KEYS\1key%d\2", i);
		r.props[0] = str_of(props);
		assert_int_equal(mqstore_append(s, &r, 1, &place[i], NULL), 0);
		mqstore_tend(s);
	}
	kit_die(s);
	s = kit_open(HERE);
	while (mqstore_tend(s))
		;
	for (int i = 0; i < 600; i++) {
		snprintf(props, sizeof(props), "key%d", i);
		assert_int_equal(mqstore_query(s, MQ_STR("A"), str_of(props), 4, 0, INT64_MAX, off, NULL, NULL), 1);
		assert_int_equal(off[0], place[i].log_off);
	}
	kit_close(s);
}

static void after_a_kill_little_is_read_and_the_queues_are_checked_later(void **state)
{
	struct mqstore *s = kit_open(HERE);
	int64_t last;
	char topic[32];

	for (int i = 0; i < 300; i++) {
		snprintf(topic, sizeof(topic), "topic-%d", i);
		kit_fill(s, topic, 0, "a", 3, 250);
	}
	mqstore_flush(s, NULL);
	last = kit_log_off(s, "topic-299", 0, 2);
	kit_fill(s, "topic-7", 0, "b", 3, 250);
	kit_die(s);
	/* An entry that points beyond the log, as if the log's end had not reached the disk. */
	kit_overwrite(QUEUE_FILE("topic-100", 0, 0), 3 * CQ_ENTRY, "\0\0\0\0\0\5\0\0\0\0\1\x80\0\0\0\0\0\0\0\0", CQ_ENTRY);
	kit_log_start();
	s = kit_open(HERE);
	assert_int_equal(kit_logged(kit_path("the log is walked from=%lld", (long long)last)), 1);
	assert_int_equal(kit_max(s, "topic-7", 0), 6);
	/* Killed again before that was noticed, and the log has grown over the place. */
	kit_fill(s, "topic-200", 0, "c", 100, 250);
	mqstore_flush(s, NULL);
	kit_die(s);
	s = kit_open(HERE);
	assert_true(mqstore_log_max(s) > 0x50180);
	while (mqstore_tend(s))
		;
	assert_int_equal(kit_max(s, "topic-100", 0), 3);
	kit_check(s);
	kit_close(s);
	s = kit_open(HERE);
	kit_check(s);
	kit_close(s);
}

static void recovery_begins_at_the_checkpoint_and_not_at_the_beginning(void **state)
{
	struct mqstore *s = kit_open(HERE);

	kit_fill(s, "A", 0, "a", 3000, 250);
	mqstore_flush(s, NULL);
	clock_shift_wall(10000);
	kit_fill(s, "A", 0, "b", 500, 250);
	mqstore_flush(s, NULL);
	kit_die(s);
	kit_log_start();
	s = kit_open(HERE);
	clock_shift_wall(-10000);
	assert_int_equal(kit_logged("the log is walked from=0"), 0);
	assert_int_equal(kit_logged("the log is walked from="), 1);
	assert_int_equal(kit_max(s, "A", 0), 3500);
	kit_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)
	const struct CMUnitTest tests[] = {
		TEST(killed_while_messages_come),
		TEST(killed_before_the_first_message),
		TEST(killed_again_and_again),
		TEST(killed_with_the_next_segment_made_ahead),
		TEST(killed_between_the_blank_and_the_next_segment),
		TEST(killed_when_the_new_segment_is_still_empty),
		TEST(killed_when_the_queue_s_next_file_is_still_empty),
		TEST(killed_while_a_segment_gets_its_length),
		TEST(every_possible_tear_of_the_last_record),
		TEST(a_page_that_never_reached_the_disk),
		TEST(entries_of_records_that_never_reached_the_disk),
		TEST(entries_that_never_reached_the_disk),
		TEST(a_hole_in_the_middle_of_a_queue_file),
		TEST(looking_at_a_record_that_ends_in_zero_before_a_damaged_one_ends),
		TEST(a_flipped_bit_costs_one_message),
		TEST(an_empty_abort_has_the_newest_segments_checked),
		TEST(the_number_of_a_damaged_message_is_not_given_again),
		TEST(the_very_first_record_is_damaged),
		TEST(queue_and_log_are_damaged_at_the_same_place),
		TEST(old_records_behind_a_shorter_new_one),
		TEST(a_segment_in_the_middle_is_missing),
		TEST(the_last_segment_is_gone_and_a_queue_file_is_zero),
		TEST(a_queue_file_is_zero_after_a_clean_stop),
		TEST(all_queue_files_are_gone),
		TEST(queue_files_are_damaged_after_a_clean_stop),
		TEST(queues_that_were_deleted_are_not_missed),
		TEST(the_files_of_one_queue_are_gone_after_a_kill),
		TEST(a_queue_that_begins_behind_its_deleted_part_is_made_again),
		TEST(there_is_no_log_but_queues),
		TEST(the_checkpoint_is_missing_or_no_checkpoint),
		TEST(foreign_files_are_left_alone),
		TEST(a_segment_of_another_length_is_refused_with_its_name),
		TEST(looking_at_a_crashed_store_shows_what_recovery_would),
		TEST(a_reader_stays_right_while_its_writer_is_killed_and_comes_back),
		TEST(a_topic_deleted_and_made_again_before_the_kill),
		TEST(keys_are_found_after_a_kill),
		TEST(after_a_kill_little_is_read_and_the_queues_are_checked_later),
		TEST(recovery_begins_at_the_checkpoint_and_not_at_the_beginning),
	};

	kit_log_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
