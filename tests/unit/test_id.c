/* Message ids: their form, both directions, and that no two are equal. */
#include "codec/id.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const uint8_t home[4] = { 10, 1, 2, 3 };

static void an_offset_id_goes_both_ways(void **state)
{
	struct mq_host h = { { 127, 0, 0, 1 }, 4, 10911 }, back;
	int64_t off;
	char id[MQ_ID_TEXT];
	assert_int_equal(mq_offset_id(&h, 0x1234567890LL, id), 32);
	assert_string_equal(id, "7F00000100002A9F0000001234567890");
	assert_int_equal(mq_offset_id_parse(str_of(id), &back, &off), 0);
	assert_int_equal(back.len, 4);
	assert_memory_equal(back.ip, h.ip, 16);
	assert_int_equal(back.port, 10911);
	assert_int_equal(off, 0x1234567890LL);
	assert_int_equal(mq_offset_id_parse(MQ_STR("7f00000100002a9f0000001234567890"), &back, &off), 0);
	assert_int_equal(off, 0x1234567890LL);
}

static void an_offset_id_with_ipv6_has_56_characters(void **state)
{
	struct mq_host h = { { 0x20, 1, [15] = 1 }, 16, 10911 }, back;
	int64_t off;
	char id[MQ_ID_TEXT];
	assert_int_equal(mq_offset_id(&h, 255, id), 56);
	assert_string_equal(id, "2001000000000000000000000000000100002A9F00000000000000FF");
	assert_int_equal(mq_offset_id_parse(str_of(id), &back, &off), 0);
	assert_int_equal(back.len, 16);
	assert_memory_equal(back.ip, h.ip, 16);
	assert_int_equal(off, 255);
}

static void what_is_no_offset_id_is_refused(void **state)
{
	struct mq_host h;
	int64_t off;
	const char *bad[] = { "", "7F", "7F00000100002A9F000000123456789", "7F00000100002A9F00000012345678900",
			      "7F00000100002A9F000000123456789G", "7F00000100002A9F0000001234567 90" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(mq_offset_id_parse(str_of(bad[i]), &h, &off), MQ_EINVAL);
}

static void a_unique_key_tells_address_pid_and_time(void **state)
{
	struct id_maker m;
	char id[33], want[13];
	struct tm tm = { .tm_year = 126, .tm_mon = 10, .tm_mday = 3, .tm_hour = 1, .tm_isdst = -1 };
	int64_t ms = (int64_t)mktime(&tm) * 1000 + 7;
	id_maker_init(&m, home);
	id_make(&m, ms, id);
	assert_int_equal(strlen(id), 32);
	snprintf(want, sizeof(want), "0A010203%04X", (unsigned)getpid() & 0xffff);
	assert_memory_equal(id, want, 12);
	/* Two days and one hour into the month. */
	snprintf(want, sizeof(want), "%08X%04X", 49 * 3600 * 1000 + 7, 0);
	assert_memory_equal(id + 20, want, 12);
	id_make(&m, ms, id);
	assert_string_equal(id + 28, "0001");
}

static int by_text(const void *a, const void *b)
{
	return memcmp(a, b, 33);
}

static void a_million_ids_of_one_millisecond_differ(void **state)
{
	enum { N = 1000000 };
	struct id_maker m;
	char(*ids)[33] = malloc(N * sizeof(*ids));
	id_maker_init(&m, home);
	for (int i = 0; i < N; i++)
		id_make(&m, 1800000000000, ids[i]);
	qsort(ids, N, sizeof(*ids), by_text);
	for (int i = 1; i < N; i++)
		assert_int_not_equal(memcmp(ids[i - 1], ids[i], 32), 0);
	free(ids);
}

static void ids_differ_over_the_end_of_a_month_and_a_clock_set_back(void **state)
{
	struct id_maker m;
	struct tm tm = { .tm_year = 126, .tm_mon = 11, .tm_mday = 1, .tm_isdst = -1 };
	int64_t december = (int64_t)mktime(&tm) * 1000;
	enum { N = 30000 };
	char(*ids)[33] = malloc(3 * N * sizeof(*ids));
	id_maker_init(&m, home);
	tm = (struct tm){ .tm_year = 126, .tm_mon = 10, .tm_mday = 1, .tm_isdst = -1 };
	int64_t november = (int64_t)mktime(&tm) * 1000;
	for (int i = 0; i < N; i++)
		id_make(&m, november + i, ids[i]);
	for (int i = 0; i < N; i++)
		id_make(&m, december - 1000 + i / 10, ids[N + i]);
	for (int i = 0; i < N; i++) /* back in November: time stands still rather than go back */
		id_make(&m, november + i, ids[2 * N + i]);
	qsort(ids, 3 * N, sizeof(*ids), by_text);
	for (int i = 1; i < 3 * N; i++)
		assert_int_not_equal(memcmp(ids[i - 1], ids[i], 32), 0);
	free(ids);
}

static void time_starts_at_zero_with_a_month(void **state)
{
	struct id_maker m;
	char before[33], after[33];
	struct tm tm = { .tm_year = 126, .tm_mon = 11, .tm_mday = 1, .tm_isdst = -1 };
	int64_t december = (int64_t)mktime(&tm) * 1000;
	id_maker_init(&m, home);
	id_make(&m, december - 1, before);
	id_make(&m, december, after);
	assert_memory_equal(after + 20, "00000000", 8);
	assert_memory_not_equal(before + 12, after + 12, 8);
}

static void two_processes_of_one_address_and_pid_differ(void **state)
{
	struct id_maker a, b;
	char x[33], y[33];
	id_maker_init(&a, home);
	id_maker_init(&b, home);
	id_make(&a, 1800000000000, x);
	id_make(&b, 1800000000000, y);
	assert_string_not_equal(x, y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offset_id_goes_both_ways),
		cmocka_unit_test(an_offset_id_with_ipv6_has_56_characters),
		cmocka_unit_test(what_is_no_offset_id_is_refused),
		cmocka_unit_test(a_unique_key_tells_address_pid_and_time),
		cmocka_unit_test(a_million_ids_of_one_millisecond_differ),
		cmocka_unit_test(ids_differ_over_the_end_of_a_month_and_a_clock_set_back),
		cmocka_unit_test(time_starts_at_zero_with_a_month),
		cmocka_unit_test(two_processes_of_one_address_and_pid_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
