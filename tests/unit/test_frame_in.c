/* test_frame_in.c: records of a stream, whatever the pieces in which its bytes come. */
#include "../../bin/bytes.h"
#include "../../bin/frame_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define MAX 8
#define READ_SIZE ((size_t)256 * 1024)

static uint32_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* All that comes out of `in`, cut into pieces of random size (0: one piece), as text: [record] or <too long:n> or !torn:n/m!, each
 * with the offset behind it. */
static void cut(enum frame_mode mode, struct mq_str in, uint32_t piece, struct bytes *out)
{
	struct frame_in f;
	struct mq_str rec;
	size_t fed = 0, room, n;
	bool told_eof = false;
	enum frame_got got;
	char *p;

	frame_in_init(&f, mode, MAX);
	out->n = 0;
	while ((got = frame_in_next(&f, &rec)) != FRAME_END) {
		switch (got) {
		case FRAME_RECORD:
			bytes_byte(out, '[');
			bytes_add(out, rec.p, rec.n);
			bytes_printf(out, "]%d@%d ", (int)f.number, (int)f.offset);
			break;
		case FRAME_TOO_LONG:
			bytes_printf(out, "<%d>%d@%d ", (int)rec.n, (int)f.number, (int)f.offset);
			break;
		case FRAME_TORN:
			bytes_printf(out, "!%d/%d!%d@%d ", (int)rec.n, (int)f.promised, (int)f.number, (int)f.offset);
			break;
		default:
			assert_false(told_eof);
			p = frame_in_room(&f, &room);
			assert_true(room > 0);
			n = piece ? rnd(piece + 1) : in.n;
			n = n < in.n - fed ? n : in.n - fed;
			n = n < room ? n : room;
			if (n > 0)
				memcpy(p, in.p + fed, n);
			frame_in_fed(&f, n);
			fed += n;
			if (fed == in.n && (piece == 0 || rnd(2))) {
				frame_in_eof(&f);
				told_eof = true;
			}
		}
	}
	frame_in_free(&f);
	bytes_byte(out, '\0');
}

/* The same for all pieces, and equal to `want`. */
static void expect(enum frame_mode mode, struct mq_str in, const char *want)
{
	struct bytes out = { 0 };

	for (uint32_t piece = 0; piece < 12; piece++)
		for (int round = 0; round < 20; round++) {
			cut(mode, in, piece, &out);
			assert_string_equal(out.p, want);
		}
	bytes_free(&out);
}

static void lines(void **s)
{
	expect(FRAME_LINE, MQ_STR(""), "");
	expect(FRAME_LINE, MQ_STR("a\nbc\n"), "[a]1@2 [bc]2@5 ");
	expect(FRAME_LINE, MQ_STR("a\n\n\nb\n"), "[a]1@2 []2@3 []3@4 [b]4@6 ");
	expect(FRAME_LINE, MQ_STR("\n"), "[]1@1 ");
	expect(FRAME_LINE, MQ_STR("a\r\n"), "[a\r]1@3 ");
}

static void a_last_line_without_newline_counts(void **s)
{
	expect(FRAME_LINE, MQ_STR("a\nb"), "[a]1@2 [b]2@3 ");
	expect(FRAME_LINE, MQ_STR("b"), "[b]1@1 ");
}

static void nul_bytes_stay_in_lines_and_end_records_of_the_other_kind(void **s)
{
	struct bytes out = { 0 };

	cut(FRAME_LINE, MQ_STR("a\0b\n"), 0, &out);
	assert_memory_equal(out.p, "[a\0b]1@4 ", 10);
	bytes_free(&out);
	expect(FRAME_NUL, MQ_STR("a\0b\nc\0"), "[a]1@2 [b\nc]2@6 ");
	expect(FRAME_NUL, MQ_STR("a\0b"), "[a]1@2 [b]2@3 ");
}

static void lines_at_and_over_the_limit(void **s)
{
	expect(FRAME_LINE, MQ_STR("12345678\n123456789\n1\n"), "[12345678]1@9 <9>2@19 [1]3@21 ");
	expect(FRAME_LINE, MQ_STR("1234567890123456789012345\n\n1"), "<25>1@26 []2@27 [1]3@28 ");
	expect(FRAME_LINE, MQ_STR("x\n1234567890123456789012345"), "[x]1@2 <25>2@27 ");
}

static void whole_input_is_one_record(void **s)
{
	expect(FRAME_WHOLE, MQ_STR(""), "");
	expect(FRAME_WHOLE, MQ_STR("a\nb\n"), "[a\nb\n]1@4 ");
	expect(FRAME_WHOLE, MQ_STR("12345678"), "[12345678]1@8 ");
}

static void too_long_a_whole_is_told_at_once(void **s)
{
	struct frame_in f;
	struct mq_str rec;
	size_t n;

	frame_in_init(&f, FRAME_WHOLE, MAX);
	memcpy(frame_in_room(&f, &n), "123456789", 9);
	frame_in_fed(&f, 9);
	assert_int_equal(frame_in_next(&f, &rec), FRAME_TOO_LONG);
	assert_int_equal(rec.n, 9);
	frame_in_room(&f, &n);
	frame_in_fed(&f, 9);
	assert_int_equal(frame_in_next(&f, &rec), FRAME_MORE);
	frame_in_eof(&f);
	assert_int_equal(frame_in_next(&f, &rec), FRAME_END);
	frame_in_free(&f);
}

static void lengths(void **s)
{
	expect(FRAME_LENGTH, MQ_STR(""), "");
	expect(FRAME_LENGTH, MQ_STR("\0\0\0\2ab\0\0\0\1c"), "[ab]1@6 [c]2@11 ");
	expect(FRAME_LENGTH, MQ_STR("\0\0\0\0\0\0\0\1c"), "[]1@4 [c]2@9 ");
	expect(FRAME_LENGTH, MQ_STR("\0\0\0\11" "123456789\0\0\0\1c"), "<9>1@13 [c]2@18 ");
}

static void input_that_ends_inside_of_a_record(void **s)
{
	expect(FRAME_LENGTH, MQ_STR("\0\0\0\1c\0\0"), "[c]1@5 !2/0!2@7 ");
	expect(FRAME_LENGTH, MQ_STR("\0\0\0\2a"), "!1/2!1@5 ");
	expect(FRAME_LENGTH, MQ_STR("\0\0\0\2"), "!0/2!1@4 ");
	expect(FRAME_LENGTH, MQ_STR("\0\0\1\0abcdefghijkl"), "!12/256!1@16 ");
}

static void a_long_line_needs_no_more_than_twice_its_room(void **s)
{
	struct frame_in f;
	struct mq_str rec;
	size_t sent = 0, n, most = 0, line = (size_t)4 << 20;
	char *p;

	frame_in_init(&f, FRAME_LINE, line);
	while (frame_in_next(&f, &rec) == FRAME_MORE) {
		p = frame_in_room(&f, &n);
		n = n > 65536 ? 65536 : n;
		memset(p, 'x', n);
		if (sent + n > line) {
			n = line - sent + 1;
			p[n - 1] = '\n';
		}
		frame_in_fed(&f, n);
		sent += n;
		most = f.cap > most ? f.cap : most;
	}
	assert_int_equal(rec.n, line);
	assert_in_range(most, line, 2 * line + READ_SIZE);
	/* and one that never ends no more than that */
	frame_in_restart(&f, 0, 0);
	for (sent = 0; sent < 4 * line; sent += n) {
		p = frame_in_room(&f, &n);
		memset(p, 'x', n);
		frame_in_fed(&f, n);
		assert_int_equal(frame_in_next(&f, &rec), FRAME_MORE);
	}
	assert_in_range(f.cap, line, 2 * line + READ_SIZE);
	frame_in_free(&f);
}

static void a_second_input_begins_anew(void **s)
{
	struct frame_in f;
	struct mq_str rec;
	size_t n;

	frame_in_init(&f, FRAME_LINE, MAX);
	memcpy(frame_in_room(&f, &n), "a", 1);
	frame_in_fed(&f, 1);
	frame_in_eof(&f);
	assert_int_equal(frame_in_next(&f, &rec), FRAME_RECORD);
	assert_int_equal(frame_in_next(&f, &rec), FRAME_END);
	frame_in_restart(&f, 7, 100);
	assert_int_equal(frame_in_next(&f, &rec), FRAME_MORE);
	memcpy(frame_in_room(&f, &n), "b\n", 2);
	frame_in_fed(&f, 2);
	assert_int_equal(frame_in_next(&f, &rec), FRAME_RECORD);
	assert_int_equal(f.number, 8);
	assert_int_equal(f.offset, 102);
	frame_in_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(a_last_line_without_newline_counts),
		cmocka_unit_test(nul_bytes_stay_in_lines_and_end_records_of_the_other_kind),
		cmocka_unit_test(lines_at_and_over_the_limit),
		cmocka_unit_test(whole_input_is_one_record),
		cmocka_unit_test(too_long_a_whole_is_told_at_once),
		cmocka_unit_test(lengths),
		cmocka_unit_test(input_that_ends_inside_of_a_record),
		cmocka_unit_test(a_long_line_needs_no_more_than_twice_its_room),
		cmocka_unit_test(a_second_input_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
