/* test_sink.c: which records stdout has accepted, for readers of all manners. */
#include "../../bin/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static uv_loop_t loop;
static struct sink sink;
static int64_t accepted;       /* records, which come in order */
static int broken;

static void on_accepted(void *arg, void *queue, int64_t off)
{
	assert_ptr_equal(queue, &loop);
	assert_int_equal(off, accepted);
	accepted++;
}

static void on_broken(void *arg, int rc)
{
	assert_int_equal(broken, 0);
	broken = rc;
}

static const struct sink_ops ops = { on_accepted, on_broken };

static void start(int fd)
{
	accepted = 0;
	broken = 0;
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(sink_open(&sink, fd, &loop, &ops, NULL), 0);
}

static void stop(void)
{
	sink_close(&sink);
	uv_run(&loop, UV_RUN_NOWAIT);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(uv_loop_close(&loop), 0);
	sink.one_by_one = false;
}

/* "0\n" "1\n" ... as records, or `size` bytes each if given. */
static void put(int64_t from, int64_t n, size_t size)
{
	for (int64_t i = from; i < from + n; i++) {
		struct bytes *b = sink_bytes(&sink);

		if (size) {
			memset(bytes_room(b, size), 'a' + (int)(i % 26), size);
			b->n += size;
		} else {
			bytes_int(b, i);
			bytes_byte(b, '\n');
		}
		sink_record(&sink, &loop, i);
	}
}

/* Until everything is accepted or the reader has gone; at most 20 s. */
static void run(void)
{
	time_t end = time(NULL) + 20;

	sink_push(&sink);
	while (!sink_idle(&sink) && !broken && time(NULL) < end)
		uv_run(&loop, UV_RUN_ONCE);
}

/* A child that runs `reader` with the pipe as stdin; *fd is our end. */
static pid_t child(int (*reader)(int arg), int arg, int *fd)
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(p[0], 0);
		close(p[0]);
		close(p[1]);
		_exit(reader(arg));
	}
	close(p[0]);
	*fd = p[1];
	return pid;
}

static int ends(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* As head -n does it: whole blocks, until n newlines have come. */
static int head(int n)
{
	char block[8192];
	ssize_t k;

	while (n > 0 && (k = read(0, block, sizeof(block))) > 0)
		for (ssize_t i = 0; i < k && n > 0; i++)
			n -= block[i] == '\n';
	return n;
}

/* As a shell's read: byte after byte, with a pause after each line. */
static int shell(int n)
{
	char c;

	while (n > 0 && read(0, &c, 1) == 1)
		if (c == '\n') {
			n--;
			usleep(3000);
		}
	return n;
}

static int take_bytes(int n)
{
	char c;

	while (n > 0 && read(0, &c, 1) == 1)
		n--;
	return n;
}

/* Everything must be there in order; exits with 0 if it was. */
static int check_all(int n)
{
	char line[100], want[100];

	for (int i = 0; i < n; i++) {
		sprintf(want, "%d\n", i);
		if (!fgets(line, sizeof(line), stdin) || strcmp(line, want) != 0)
			return 1;
	}
	return getchar() == EOF ? 0 : 2;
}

static int sum(int size)
{
	static char block[65536];
	int64_t n = 0;
	ssize_t k;

	while ((k = read(0, block, sizeof(block))) > 0)
		n += k;
	return n == (int64_t)size * 50 ? 0 : 1;
}

/* Reads fast, then stops for ever. */
static int stall(int n)
{
	char block[4096];

	while (n > 0)
		n -= (int)read(0, block, sizeof(block));
	pause();
	return 0;
}

static void head_takes_exactly_its_number(void **s)
{
	static const int numbers[] = { 1, 2, 3, 10, 100, 1000, 4000 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (int round = 0; round < 5; round++) {
			int fd;
			pid_t pid = child(head, numbers[i], &fd);

			start(fd);
			put(0, 10000, 0);
			run();
			assert_int_equal(broken, -EPIPE);
			assert_int_equal(accepted, numbers[i]);
			assert_int_equal(ends(pid), 0);
			stop();
			close(fd);
		}
}

static void a_slow_reader_gets_one_at_a_time(void **s)
{
	int fd;
	pid_t pid = child(shell, 20, &fd);

	start(fd);
	put(0, 10000, 0);
	run();
	assert_int_equal(broken, -EPIPE);
	assert_int_equal(accepted, 20);
	assert_int_equal(ends(pid), 0);
	stop();
	close(fd);
}

static void half_a_record_is_not_accepted(void **s)
{
	int fd;
	pid_t pid = child(take_bytes, 2 * 10 + 9, &fd);

	start(fd);
	put(0, 100, 10);
	run();
	assert_int_equal(broken, -EPIPE);
	assert_int_equal(accepted, 2);
	assert_int_equal(ends(pid), 0);
	stop();
	close(fd);
}

static void half_a_big_record_is_not_accepted(void **s)
{
	int fd;
	pid_t pid = child(take_bytes, 100000 + 99999, &fd);

	start(fd);
	put(0, 100, 100000);
	run();
	assert_int_equal(broken, -EPIPE);
	assert_int_equal(accepted, 1);
	assert_int_equal(ends(pid), 0);
	stop();
	close(fd);
}

static void a_fast_reader_gets_all_in_order(void **s)
{
	int fd;
	pid_t pid = child(check_all, 500000, &fd);

	start(fd);
	for (int64_t i = 0; i < 500000; i += 50000) {
		put(i, 50000, 0);
		run();
	}
	assert_int_equal(broken, 0);
	assert_int_equal(accepted, 500000);
	stop();
	close(fd);
	assert_int_equal(ends(pid), 0);
}

static void one_by_one_for_ever(void **s)
{
	int fd;
	pid_t pid = child(head, 9000, &fd);

	sink.one_by_one = true;
	start(fd);
	put(0, 20000, 0);
	run();
	assert_int_equal(broken, -EPIPE);
	assert_int_equal(accepted, 9000);
	assert_int_equal(ends(pid), 0);
	stop();
	close(fd);
}

static void what_a_fast_reader_left_is_not_accepted(void **s)
{
	int fd;
	pid_t pid = child(take_bytes, 300000, &fd); /* 30,000 records of 10 bytes, and goes */

	start(fd);
	put(0, 100000, 10);
	run();
	assert_int_equal(broken, -EPIPE);
	assert_int_equal(accepted, 30000);
	assert_int_equal(ends(pid), 0);
	stop();
	close(fd);
}

static void records_of_a_megabyte(void **s)
{
	int fd;
	pid_t pid = child(sum, 1 << 20, &fd);

	start(fd);
	put(0, 50, 1 << 20);
	run();
	assert_int_equal(accepted, 50);
	stop();
	close(fd);
	assert_int_equal(ends(pid), 0);
}

static void empty_records(void **s)
{
	int fd;
	pid_t pid = child(sum, 0, &fd);

	start(fd);
	for (int i = 0; i < 10; i++)
		sink_record(&sink, &loop, i);
	run();
	assert_int_equal(accepted, 10);
	stop();
	close(fd);
	assert_int_equal(ends(pid), 0);
}

static void a_reader_that_takes_nothing_does_not_block_us(void **s)
{
	int fd;
	pid_t pid = child(stall, 0, &fd);

	start(fd);
	put(0, 100000, 0);
	sink_push(&sink);
	for (int i = 0; i < 20; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(accepted, 0);
	assert_int_equal(broken, 0);
	assert_true(sink_backlog(&sink) > 500000);
	kill(pid, SIGKILL);
	run();
	assert_int_equal(broken, -EPIPE);
	assert_int_equal(accepted, 0);
	ends(pid);
	stop();
	close(fd);
}

static void a_reader_that_goes_while_nothing_is_to_be_written(void **s)
{
	int fd;
	pid_t pid = child(head, 0, &fd);

	start(fd);
	for (int i = 0; i < 100 && !broken; i++)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(broken, -EPIPE);
	ends(pid);
	stop();
	close(fd);
}

static void a_pipe_that_holds_an_earlier_writers_bytes(void **s)
{
	static char old[20000];
	int fd, p[2];
	pid_t pid;

	/* The earlier bytes hinder the shrinking; the reader starts late. */
	assert_int_equal(pipe(p), 0);
	memset(old, '\n', sizeof(old));
	assert_int_equal(write(p[1], old, sizeof(old)), sizeof(old));
	pid = fork();
	if (pid == 0) {
		dup2(p[0], 0);
		close(p[0]);
		close(p[1]);
		usleep(100000);
		_exit(head(20000 + 3));
	}
	close(p[0]);
	fd = p[1];
	start(fd);
	put(0, 10000, 0);
	run();
	assert_int_equal(broken, -EPIPE);
	/* The first block behind the old bytes may reach into ours: what was taken is known, if not at whose wish. */
	assert_in_range(accepted, 3, 4);
	ends(pid);
	stop();
	close(fd);
}

static void a_file_accepts_what_is_written(void **s)
{
	char name[] = "/tmp/test_sink.XXXXXX";
	int fd = mkstemp(name);

	start(fd);
	put(0, 1000, 100);
	sink_push(&sink);
	assert_int_equal(accepted, 1000);
	assert_int_equal(lseek(fd, 0, SEEK_END), 100000);
	stop();
	close(fd);
	unlink(name);
}

static void a_full_disk_accepts_nothing(void **s)
{
	int fd = open("/dev/full", O_WRONLY);

	start(fd);
	put(0, 1000, 100);
	sink_push(&sink);
	assert_int_equal(broken, -ENOSPC);
	assert_int_equal(accepted, 0);
	stop();
	close(fd);
}

static void a_socket_accepts_what_it_takes(void **s)
{
	int p[2];
	char block[4096];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	start(p[1]);
	put(0, 100, 100000);
	sink_push(&sink);
	assert_in_range(accepted, 0, 99);
	for (int64_t n = 0; n < 10000000;) {
		ssize_t k = read(p[0], block, sizeof(block));

		assert_true(k > 0);
		n += k;
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	assert_int_equal(accepted, 100);
	close(p[0]);
	put(100, 1, 10);
	run();
	assert_int_equal(broken, -EPIPE);
	stop();
	close(p[1]);
}

static void the_pipe_is_left_as_it_was(void **s)
{
	int fd, before;
	pid_t pid = child(check_all, 10, &fd);

	before = fcntl(fd, F_GETPIPE_SZ);
	start(fd);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	put(0, 10, 0);
	run();
	stop();
	assert_int_equal(fcntl(fd, F_GETPIPE_SZ), before);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	close(fd);
	assert_int_equal(ends(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_takes_exactly_its_number),
		cmocka_unit_test(a_slow_reader_gets_one_at_a_time),
		cmocka_unit_test(half_a_record_is_not_accepted),
		cmocka_unit_test(half_a_big_record_is_not_accepted),
		cmocka_unit_test(a_fast_reader_gets_all_in_order),
		cmocka_unit_test(one_by_one_for_ever),
		cmocka_unit_test(what_a_fast_reader_left_is_not_accepted),
		cmocka_unit_test(records_of_a_megabyte),
		cmocka_unit_test(empty_records),
		cmocka_unit_test(a_reader_that_takes_nothing_does_not_block_us),
		cmocka_unit_test(a_reader_that_goes_while_nothing_is_to_be_written),
		cmocka_unit_test(a_pipe_that_holds_an_earlier_writers_bytes),
		cmocka_unit_test(a_file_accepts_what_is_written),
		cmocka_unit_test(a_full_disk_accepts_nothing),
		cmocka_unit_test(a_socket_accepts_what_it_takes),
		cmocka_unit_test(the_pipe_is_left_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
