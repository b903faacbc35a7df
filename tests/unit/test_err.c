/* test_err.c: texts of codes, errors that gather words on their way up, log lines, the clock. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <cmocka.h>

#define LOG_MODULE "test"

static void every_code_has_a_text(void **state)
{
	assert_string_equal(mq_strerror(MQ_EFULL), "disk full: the store takes no more messages until there is room");
	assert_string_equal(mq_strerror(-ENOENT), "No such file or directory");
	assert_string_equal(mq_strerror(ENOENT), "No such file or directory");
	assert_string_equal(mq_strerror(UV_ECONNREFUSED), "Connection refused");
	assert_string_equal(mq_strerror(UV_EAI_NONAME), "unknown node or service");
	assert_string_equal(mq_strerror(UV_EOF), "end of file");
	assert_string_equal(mq_strerror(0), "no error");
	assert_string_equal(mq_strerror(-123456), "unknown error -123456");
	assert_string_equal(mq_strerror(INT32_MIN), "unknown error -2147483648");
}

static void words_go_in_front_on_the_way_up(void **state)
{
	struct mq_error e;

	assert_int_equal(err_sys(&e, -EIO, "read '%s'", "x"), -EIO);
	assert_int_equal(err_wrap(&e, "segment %d", 7), -EIO);
	assert_string_equal(e.text, "segment 7: read 'x': Input/output error");
	assert_int_equal(e.code, -EIO);
	assert_int_equal(err_set(NULL, MQ_EINVAL, "nobody listens"), MQ_EINVAL);
}

static void a_long_error_is_cut_not_overrun(void **state)
{
	struct mq_error e;
	char words[600];

	memset(words, 'w', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	err_set(&e, MQ_EINVAL, "inner");
	for (int i = 0; i < 3; i++)
		err_wrap(&e, "%s", words);
	err_sys(&e, -EIO, "%s", words);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static void keep(void *arg, enum log_level l, const char *line)
{
	buf_printf(arg, "[%d]%s", l, line);
}

static void a_log_line_is_one_line_and_keeps_errno(void **state)
{
	struct buf got = { 0 };
	char words[3000];

	log_to(keep, &got);
	errno = EXDEV;
	log_info("two\nlines key=%d", 1);
	log_debug("not made");
	assert_int_equal(errno, EXDEV);
	assert_memory_equal(got.p, "[2]INFO test two lines key=1", got.n);
	got.n = 0;
	memset(words, 'w', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	log_error("%s", words);
	assert_true(got.n < 2100);
	assert_memory_equal(got.p + got.n - 3, "...", 3);
	log_to(NULL, NULL);
	buf_free(&got);
}

static void levels_have_names(void **state)
{
	enum log_level l;

	assert_int_equal(log_level_parse("warn", &l), 0);
	assert_int_equal(l, LOG_WARN);
	assert_true(log_level_parse("loud", &l) < 0);
}

static void moving_the_wall_clock_leaves_waits_alone(void **state)
{
	int64_t wall = clock_now_ms(), mono;

	assert_true(wall > 1600000000000);
	clock_refresh();
	mono = clock_mono_ms();
	clock_shift_wall(3600000);
	assert_true(clock_now_ms() >= wall + 3600000);
	assert_true(clock_mono_ms() - mono < 60000);
	clock_shift_wall(-3600000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_text),
		cmocka_unit_test(words_go_in_front_on_the_way_up),
		cmocka_unit_test(a_long_error_is_cut_not_overrun),
		cmocka_unit_test(a_log_line_is_one_line_and_keeps_errno),
		cmocka_unit_test(levels_have_names),
		cmocka_unit_test(moving_the_wall_clock_leaves_waits_alone),
	};
	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
