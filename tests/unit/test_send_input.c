/* test_send_input.c: records from files, pipes and what becomes of both: as they come, never waiting, never blocking. */
#include "../../bin/send_input.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/test_send_input.XXXXXX";
static uv_loop_t loop;
static struct send_input in;
static struct mq_error err;
static struct mq_str rec;

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void begin(const char *const *names, int n, enum frame_mode mode)
{
	assert_int_equal(uv_loop_init(&loop), 0);
	send_input_init(&in, &loop, names, n, mode, 100);
}

static void end(void)
{
	send_input_close(&in);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void is(enum input_got want, const char *text)
{
	assert_int_equal(send_input_next(&in, &rec, &err), want);
	if (text) {
		assert_int_equal(rec.n, strlen(text));
		assert_memory_equal(rec.p, text, rec.n);
	}
}

static void files_one_after_the_other(void **s)
{
	static const char *const names[] = { "a", "b", "c" };

	write_file("a", "1\n2");
	write_file("b", "");
	write_file("c", "3\n");
	begin(names, 3, FRAME_LINE);
	is(INPUT_RECORD, "1");
	is(INPUT_RECORD, "2");
	assert_int_equal(send_input_place(&in).file, 0);
	assert_int_equal(send_input_place(&in).record, 2);
	assert_int_equal(send_input_place(&in).offset, 3);
	is(INPUT_RECORD, "3");
	assert_int_equal(send_input_place(&in).file, 2);
	assert_int_equal(send_input_place(&in).record, 1);
	is(INPUT_END, NULL);
	is(INPUT_END, NULL);
	end();
}

/* What never ends, and is no message, must not keep signals and answers from the loop. */
static void the_loop_turns_while_input_is_passed_over(void **s)
{
	static const char *const names[] = { "/dev/zero" };

	begin(names, 1, FRAME_LINE);
	for (int i = 0; i < 3; i++) {
		is(INPUT_WAIT, NULL);
		is(INPUT_WAIT, NULL);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	send_input_drain(&in);
	is(INPUT_END, NULL);
	end();
}

static void files_as_one_record_each(void **s)
{
	static const char *const names[] = { "a", "b" };

	write_file("a", "1\n2");
	write_file("b", "");
	begin(names, 2, FRAME_WHOLE);
	is(INPUT_RECORD, "1\n2");
	is(INPUT_RECORD, ""); /* an empty FILE is a message without a body */
	is(INPUT_END, NULL);
	end();
}

static void a_file_that_is_not_there(void **s)
{
	static const char *const names[] = { "none", "." };

	begin(names, 1, FRAME_LINE);
	is(INPUT_FAILED, NULL);
	assert_string_equal(err.text, "open 'none': No such file or directory");
	end();
	begin(names + 1, 1, FRAME_LINE);
	is(INPUT_FAILED, NULL);
	assert_string_equal(err.text, "read '.': Is a directory");
	end();
}

static void records_too_long_or_cut_off(void **s)
{
	static const char *const names[] = { "a" };
	char name[100], line[202];

	memset(line, 'x', 200);
	strcpy(line + 200, "\n");
	write_file("a", line);
	begin(names, 1, FRAME_LINE);
	is(INPUT_BAD, NULL);
	assert_string_equal(err.text, "200 bytes are over the limit of 100");
	send_input_name(&in, 0, 1, name, sizeof(name));
	assert_string_equal(name, "a: line 1");
	is(INPUT_END, NULL);
	end();
	begin(names, 1, FRAME_WHOLE);
	is(INPUT_BAD, NULL);
	assert_string_equal(err.text, "201 bytes are over the limit of 100");
	is(INPUT_END, NULL);
	end();
	write_file("a", "\177");
	begin(names, 1, FRAME_LENGTH);
	is(INPUT_BAD, NULL);
	assert_string_equal(err.text, "the input ends inside of its length: 1 of 4 bytes came");
	is(INPUT_END, NULL);
	end();
}

static int fifo(const char *name)
{
	unlink(name);
	assert_int_equal(mkfifo(name, 0600), 0);
	return 0;
}

static void a_pipe_gives_what_is_there_and_wakes_the_loop_for_more(void **s)
{
	static const char *const names[] = { "fifo" };
	int fd;

	fifo("fifo");
	begin(names, 1, FRAME_LINE);
	is(INPUT_WAIT, NULL); /* without a writer, too */
	fd = open("fifo", O_WRONLY);
	assert_int_equal(write(fd, "1\n2", 3), 3);
	uv_run(&loop, UV_RUN_ONCE); /* would sleep for ever if it were not told */
	is(INPUT_RECORD, "1");
	is(INPUT_WAIT, NULL);
	assert_int_equal(write(fd, "2\n", 2), 2);
	uv_run(&loop, UV_RUN_ONCE);
	is(INPUT_RECORD, "22");
	is(INPUT_WAIT, NULL);
	assert_int_equal(write(fd, "3", 1), 1);
	close(fd);
	uv_run(&loop, UV_RUN_ONCE);
	is(INPUT_RECORD, "3");
	is(INPUT_END, NULL);
	end();
}

static void draining_hands_out_whole_records_and_tells_what_is_left(void **s)
{
	static const char *const names[] = { "fifo", "a" };
	int fd;

	fifo("fifo");
	write_file("a", "never read\n");
	begin(names, 2, FRAME_LINE);
	is(INPUT_WAIT, NULL);
	fd = open("fifo", O_WRONLY);
	assert_int_equal(write(fd, "1\n2\nhal", 7), 7);
	is(INPUT_RECORD, "1");
	assert_int_equal(write(fd, "f\n", 2), 2);
	send_input_drain(&in);
	is(INPUT_RECORD, "2");
	is(INPUT_END, NULL);
	assert_int_equal(send_input_left(&in), 3);
	close(fd);
	end();
}

static void draining_a_file_ends_it(void **s)
{
	static const char *const names[] = { "a" };

	write_file("a", "1\n2\n3\n");
	begin(names, 1, FRAME_LINE);
	is(INPUT_RECORD, "1");
	send_input_drain(&in);
	is(INPUT_END, NULL);
	assert_int_equal(send_input_left(&in), 0);
	assert_int_equal(send_input_place(&in).record, 1);
	end();
}

static void going_on_at_a_place(void **s)
{
	static const char *const names[] = { "a", "b" }, *const pipes[] = { "fifo" };
	int fd;

	write_file("a", "1\n2\n");
	write_file("b", "3\n4\n5\n");
	begin(names, 2, FRAME_LINE);
	send_input_seek(&in, &(struct input_place){ 1, 2, 4 });
	is(INPUT_RECORD, "5");
	assert_int_equal(send_input_place(&in).record, 3);
	assert_int_equal(send_input_place(&in).offset, 6);
	is(INPUT_END, NULL);
	end();
	/* What cannot be moved in is read. */
	fifo("fifo");
	begin(pipes, 1, FRAME_LINE);
	send_input_seek(&in, &(struct input_place){ 0, 2, 4 });
	is(INPUT_WAIT, NULL);
	fd = open("fifo", O_WRONLY);
	assert_int_equal(write(fd, "3\n4\n5\n", 6), 6);
	is(INPUT_RECORD, "5");
	close(fd);
	is(INPUT_END, NULL);
	end();
	/* And what is shorter than it was is no longer the same. */
	write_file("b", "3\n");
	begin(names, 2, FRAME_LINE);
	send_input_seek(&in, &(struct input_place){ 1, 2, 4 });
	is(INPUT_FAILED, NULL);
	assert_non_null(strstr(err.text, "b ends before the place where the last run stopped: 2 bytes are missing"));
	end();
}

static int setup(void **s)
{
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int teardown(void **s)
{
	static const char *const files[] = { "a", "b", "c", "fifo" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(files[i]);
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_one_after_the_other),
		cmocka_unit_test(the_loop_turns_while_input_is_passed_over),
		cmocka_unit_test(files_as_one_record_each),
		cmocka_unit_test(a_file_that_is_not_there),
		cmocka_unit_test(records_too_long_or_cut_off),
		cmocka_unit_test(a_pipe_gives_what_is_there_and_wakes_the_loop_for_more),
		cmocka_unit_test(draining_hands_out_whole_records_and_tells_what_is_left),
		cmocka_unit_test(draining_a_file_ends_it),
		cmocka_unit_test(going_on_at_a_place),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
