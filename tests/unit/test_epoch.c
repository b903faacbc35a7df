/* test_epoch.c: which master wrote what: lists of epochs, where two of them part, and their file. */
#include "../../bin/broker/epoch.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct epoch_list list_of(size_t n, const struct epoch *v)
{
	struct epoch_list l = { .n = 0 };

	for (size_t i = 0; i < n; i++)
		assert_int_equal(epoch_append(&l, v[i].number, v[i].start, NULL), 0);
	return l;
}
#define LIST(...) list_of(sizeof((struct epoch[]){ __VA_ARGS__ }) / sizeof(struct epoch), (const struct epoch[]){ __VA_ARGS__ })

static void numbers_and_offsets_only_grow(void **state)
{
	struct epoch_list l = LIST({ 1, 0 }, { 3, 100 });
	struct mq_error why;

	assert_int_equal(epoch_append(&l, 3, 200, &why), MQ_EINVAL);
	assert_int_equal(epoch_append(&l, 2, 200, &why), MQ_EINVAL);
	assert_int_equal(epoch_append(&l, 4, 99, &why), MQ_EINVAL);
	assert_int_equal(epoch_append(&l, 4, -1, &why), MQ_EINVAL);
	assert_int_equal(l.n, 2);
	assert_int_equal(epoch_append(&l, 4, 200, &why), 0);
	assert_int_equal(epoch_last(&l), 4);
}

static void an_epoch_without_a_byte_gives_its_place_away(void **state)
{
	struct epoch_list l = LIST({ 1, 0 }, { 2, 100 }, { 3, 100 });

	assert_int_equal(l.n, 2);
	assert_int_equal(l.v[1].number, 3);
}

static void who_wrote_a_byte(void **state)
{
	struct epoch_list l = LIST({ 1, 10 }, { 3, 100 }), none = { .n = 0 };

	assert_null(epoch_at(&l, 9));
	assert_int_equal(epoch_at(&l, 10)->number, 1);
	assert_int_equal(epoch_at(&l, 99)->number, 1);
	assert_int_equal(epoch_at(&l, 100)->number, 3);
	assert_int_equal(epoch_end(&l, 0, 500), 100);
	assert_int_equal(epoch_end(&l, 1, 500), 500);
	assert_int_equal(epoch_last(&none), -1);
	assert_null(epoch_at(&none, 0));
}

static void a_first_epoch_owns_what_was_there_before(void **state)
{
	struct epoch_list l = { .n = 0 };

	assert_int_equal(epoch_begin(&l, 1, true, 1000, 5000, NULL), 0);
	assert_int_equal(l.v[0].start, 1000);
	assert_int_equal(epoch_begin(&l, 2, true, 1000, 6000, NULL), 0);
	assert_int_equal(l.v[1].start, 6000);
	assert_int_equal(epoch_begin(&l, 1, true, 1000, 7000, NULL), MQ_EINVAL);
	assert_int_equal(l.n, 2);
}

static void a_known_epoch_goes_on_or_begins_again(void **state)
{
	struct epoch_list l = LIST({ 1, 0 }, { 2, 100 });

	assert_int_equal(epoch_begin(&l, 2, true, 0, 300, NULL), 0);
	assert_true(l.n == 2 && l.v[1].start == 100);
	assert_int_equal(epoch_begin(&l, 2, false, 0, 200, NULL), 0);
	assert_true(l.n == 2 && l.v[1].start == 200);
}

static void a_cut_takes_epochs_with_it(void **state)
{
	struct epoch_list l = LIST({ 1, 0 }, { 2, 100 }, { 3, 200 });

	epoch_cut(&l, 201);
	assert_int_equal(l.n, 3);
	epoch_cut(&l, 200);
	assert_int_equal(l.n, 2);
	epoch_cut(&l, 0);
	assert_int_equal(l.n, 0);
}

static void old_segments_take_epochs_with_them(void **state)
{
	struct epoch_list l = LIST({ 1, 0 }, { 2, 100 }, { 3, 200 });

	epoch_forget(&l, 99);
	assert_int_equal(l.n, 3);
	epoch_forget(&l, 100);
	assert_int_equal(l.v[0].number, 2);
	epoch_forget(&l, 100000);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.v[0].number, 3);
}

static void a_full_list_loses_its_oldest(void **state)
{
	struct epoch_list l = { .n = 0 };

	for (int i = 0; i <= EPOCH_MAX; i++)
		assert_int_equal(epoch_append(&l, i, i * 10, NULL), 0);
	assert_int_equal(l.n, EPOCH_MAX);
	assert_int_equal(l.v[0].number, 1);
	assert_int_equal(epoch_last(&l), EPOCH_MAX);
}

static void where_two_logs_part(void **state)
{
	static const struct {
		const char *what;
		struct epoch mine[4];
		int64_t my_end;
		struct epoch theirs[4];
		int64_t their_end, want;
	} row[] = {
		{ "the same", { { 1, 0 } }, 50, { { 1, 0 } }, 50, 50 },
		{ "I am behind", { { 1, 0 } }, 50, { { 1, 0 }, { 2, 70 } }, 90, 50 },
		{ "I am ahead of the one who was elected", { { 1, 0 } }, 90, { { 1, 0 }, { 2, 70 } }, 80, 70 },
		{ "I was master once, and nobody has it", { { 1, 0 }, { 2, 70 } }, 90, { { 1, 0 }, { 3, 80 } }, 100, 70 },
		{ "they lack my last epoch", { { 1, 0 }, { 2, 70 }, { 3, 90 } }, 95, { { 1, 0 }, { 2, 70 } }, 200, 90 },
		{ "one number, two beginnings", { { 1, 0 }, { 2, 70 } }, 90, { { 1, 0 }, { 2, 60 } }, 100, 60 },
		{ "nothing in common", { { 1, 0 } }, 90, { { 2, 60 } }, 100, -1 },
		{ "nothing at all", { { 0 } }, 0, { { 2, 60 } }, 100, -1 },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct epoch_list a = { .n = 0 }, b = { .n = 0 };

		for (int k = 0; k < 4; k++) {
			if (row[i].mine[k].number)
				epoch_append(&a, row[i].mine[k].number, row[i].mine[k].start, NULL);
			if (row[i].theirs[k].number)
				epoch_append(&b, row[i].theirs[k].number, row[i].theirs[k].start, NULL);
		}
		if (epoch_agree(&a, row[i].my_end, &b, row[i].their_end) != row[i].want)
			fail_msg("%s: %lld", row[i].what, (long long)epoch_agree(&a, row[i].my_end, &b, row[i].their_end));
	}
}

/* Texts that a Java broker wrote. */
static void the_file_of_the_peer(void **state)
{
	static const char *const text[] = { "1\n1725254278\n1-0\n", "2\n1077043385\n1-0\n2-96582\n" };
	struct epoch_list l;
	struct buf out = { 0 };

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(epoch_decode(str_of(text[i]), &l, NULL), 0);
		assert_int_equal(l.n, i + 1);
		out.n = 0;
		epoch_encode(&l, &out);
		assert_true(str_is(buf_view(&out), text[i]));
	}
	assert_int_equal(l.v[1].start, 96582);
	buf_free(&out);
}

static void a_checksum_of_0_is_not_looked_at(void **state)
{
	struct epoch_list l;

	assert_int_equal(epoch_decode(MQ_STR("1\n0\n5-7\n"), &l, NULL), 0);
	assert_int_equal(l.v[0].number, 5);
}

static void damaged_files_are_refused(void **state)
{
	static const char *const text[] = { "", "1", "x\n0\n1-0\n", "1\nx\n1-0\n", "1\n1725254279\n1-0\n", "2\n0\n1-0\n", "1\n0\n1-0\n2-5\n",
					    "2\n0\n2-0\n1-5\n", "2\n0\n1-5\n2-0\n", "1\n0\n1\n", "1\n0\n1--5\n", "-1\n0\n",
					    "1\n0\n99999999999-0\n" };
	struct epoch_list l;
	struct mq_error why;

	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
		if (epoch_decode(str_of(text[i]), &l, &why) != MQ_ECORRUPT)
			fail_msg("taken: %s", text[i]);
		assert_int_equal(l.n, 0);
		assert_true(why.text[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_offsets_only_grow),
		cmocka_unit_test(an_epoch_without_a_byte_gives_its_place_away),
		cmocka_unit_test(who_wrote_a_byte),
		cmocka_unit_test(a_first_epoch_owns_what_was_there_before),
		cmocka_unit_test(a_known_epoch_goes_on_or_begins_again),
		cmocka_unit_test(a_cut_takes_epochs_with_it),
		cmocka_unit_test(old_segments_take_epochs_with_them),
		cmocka_unit_test(a_full_list_loses_its_oldest),
		cmocka_unit_test(where_two_logs_part),
		cmocka_unit_test(the_file_of_the_peer),
		cmocka_unit_test(a_checksum_of_0_is_not_looked_at),
		cmocka_unit_test(damaged_files_are_refused),
	};

	return cmocka_run_group_tests_name("epoch", tests, NULL, NULL);
}
