/* test_cli.c: numbers, durations, sizes and times as people type them; what a wrong one says; warnings and exit codes. */
#include "../../bin/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <cmocka.h>

static char said[1000]; /* what the child of dies() wrote to stderr */

/* Run `act` in a child; its exit status, with what it said in `said`. */
static int dies(void (*act)(void))
{
	int p[2], status;
	size_t n = 0;
	ssize_t k;
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(p[1], 2);
		act();
		_exit(99);
	}
	close(p[1]);
	while (n < sizeof(said) - 1 && (k = read(p[0], said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)k;
	said[n] = '\0';
	close(p[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void integers(void **s)
{
	assert_int_equal(cli_int("-c", "12", 1, 100), 12);
	assert_int_equal(cli_int("-o", "-12", INT64_MIN, 100), -12);
}

static void not_a_number(void) { cli_int("--count", "12x", 0, 100); }
static void blank_first(void) { cli_int("--count", " 12", 0, 100); }
static void nothing(void) { cli_int("--count", "", 0, 100); }
static void too_big(void) { cli_int("--count", "101", 0, 100); }
static void far_too_big(void) { cli_int("--count", "99999999999999999999999", 0, INT64_MAX); }

static void wrong_integers_name_option_and_range(void **s)
{
	assert_int_equal(dies(not_a_number), CLI_USAGE);
	assert_string_equal(said, "mq: --count: '12x' is no number\ntry 'mq --help'\n");
	assert_int_equal(dies(blank_first), CLI_USAGE);
	assert_int_equal(dies(nothing), CLI_USAGE);
	assert_int_equal(dies(too_big), CLI_USAGE);
	assert_non_null(strstr(said, "101 is out of range: 0 to 100"));
	assert_int_equal(dies(far_too_big), CLI_USAGE);
}

static void durations_of_all_units(void **s)
{
	assert_int_equal(cli_duration_ms("-t", "500ms"), 500);
	assert_int_equal(cli_duration_ms("-t", "10"), 10000);
	assert_int_equal(cli_duration_ms("-t", "10s"), 10000);
	assert_int_equal(cli_duration_ms("-t", "0.25"), 250);
	assert_int_equal(cli_duration_ms("-t", "1.5m"), 90000);
	assert_int_equal(cli_duration_ms("-t", "2h"), 7200000);
	assert_int_equal(cli_duration_ms("-t", "3d"), 259200000);
}

static void no_unit_like_that(void) { cli_duration_ms("--timeout", "3y"); }
static void negative(void) { cli_duration_ms("--timeout", "-3"); }
static void overflow(void) { cli_duration_ms("--timeout", "9223372036854775807d"); }

static void wrong_durations_show_right_ones(void **s)
{
	assert_int_equal(dies(no_unit_like_that), CLI_USAGE);
	assert_non_null(strstr(said, "--timeout: '3y' is no duration: 500ms, 10s"));
	assert_int_equal(dies(negative), CLI_USAGE);
	assert_int_equal(dies(overflow), CLI_USAGE);
}

static void sizes_are_powers_of_two(void **s)
{
	assert_int_equal(cli_size("-m", "100"), 100);
	assert_int_equal(cli_size("-m", "64K"), 65536);
	assert_int_equal(cli_size("-m", "1.5M"), 1572864);
	assert_int_equal(cli_size("-m", "2G"), 2147483648);
}

static void times_in_utc_and_local(void **s)
{
	setenv("TZ", "Asia/Kolkata", 1); /* + 5:30, no summer time */
	tzset();
	assert_int_equal(cli_time_ms("-o", "1970-01-02Z"), 86400000);
	assert_int_equal(cli_time_ms("-o", "1970-01-02"), 86400000 - 19800000);
	assert_int_equal(cli_time_ms("-o", "2026-11-30T12:00:01.5Z"), 1796040001500);
	assert_int_equal(cli_time_ms("-o", "2026-11-30 12:00Z"), 1796040000000);
	assert_int_equal(cli_time_ms("-o", "2026-11-30#12:00:01:123Z"), 1796040001123);
	assert_int_equal(cli_time_ms("-o", "@1796040001"), 1796040001000);
	assert_int_equal(cli_time_ms("-o", "1796040001500"), 1796040001500);
}

static void times_before_now(void **s)
{
	int64_t now = cli_time_ms("-o", "now"), then = cli_time_ms("-o", "-10m");

	assert_in_range(now - then, 600000 - 5000, 600000 + 5000);
}

static void no_such_day(void) { cli_time_ms("-o", "2026-02-30"); }
static void no_such_hour(void) { cli_time_ms("-o", "2026-02-03T25:00"); }
static void tomorrow(void) { cli_time_ms("-o", "tomorrow"); }
static void no_time(void) { cli_time_ms("-o", "@"); }

static void wrong_times(void **s)
{
	assert_int_equal(dies(no_such_day), CLI_USAGE);
	assert_int_equal(dies(no_such_hour), CLI_USAGE);
	assert_int_equal(dies(tomorrow), CLI_USAGE);
	assert_int_equal(dies(no_time), CLI_USAGE);
}

static void rude_peer(void) { cli_die(CLI_REFUSED, "topic 'a\n\x1b[2J': %s", "no"); }

static void control_characters_do_not_reach_the_terminal(void **s)
{
	assert_int_equal(dies(rude_peer), CLI_REFUSED);
	assert_string_equal(said, "mq: topic 'a\\x0a\\x1b[2J': no\n");
}

static void progress_then_warning(void)
{
	cli_status_line("10 sent");
	cli_warn("line 3: empty");
	cli_status_line("");
	_exit(0);
}

static void a_warning_makes_room_for_itself(void **s)
{
	assert_int_equal(dies(progress_then_warning), 0);
	assert_string_equal(said, "\r10 sent\r       \rmq: line 3: empty\n10 sent\r       \r");
}

static void refused(void) { cli_fail(&(struct mq_error){ MQ_EREFUSED, 17, "topic not exist" }); }
static void unroutable(void) { cli_fail(&(struct mq_error){ MQ_ENOROUTE, 0, "x" }); }
static void timed_out(void) { cli_fail(&(struct mq_error){ MQ_ETIMEOUT, 0, "x" }); }
static void system_error(void) { cli_fail(&(struct mq_error){ -ECONNREFUSED, 0, "x" }); }

static void failures_have_their_exit_codes(void **s)
{
	assert_int_equal(dies(refused), 4);
	assert_string_equal(said, "mq: topic not exist\n");
	assert_int_equal(dies(unroutable), 1);
	assert_int_equal(dies(timed_out), 3);
	assert_int_equal(dies(system_error), 3);
}

static void parse(const char *arg, const char *arg2)
{
	static const struct cli_option rows[] = { { 'c', "count", true }, { 'e', "end", false }, { 0 } };
	char *argv[] = { "mq", (char *)arg, (char *)arg2, NULL };

	while (cli_option(arg2 ? 3 : 2, argv, rows, "usage: mq\n") != -1)
		;
}

static void unknown_short(void) { parse("-z", NULL); }
static void unknown_short_in_a_bundle(void) { parse("-ez", NULL); }
static void unknown_long(void) { parse("--foo", NULL); }
static void short_without_value(void) { parse("-e", "-c"); }
static void long_without_value(void) { parse("-e", "--count"); }
static void long_with_value_it_does_not_take(void) { parse("--end=3", NULL); }

static void bad_options_are_named(void **s)
{
	assert_int_equal(dies(unknown_short), CLI_USAGE);
	assert_non_null(strstr(said, "mq: no option '-z'\n"));
	assert_int_equal(dies(unknown_short_in_a_bundle), CLI_USAGE);
	assert_non_null(strstr(said, "mq: no option '-z'\n"));
	assert_int_equal(dies(unknown_long), CLI_USAGE);
	assert_non_null(strstr(said, "no option '--foo'"));
	assert_int_equal(dies(short_without_value), CLI_USAGE);
	assert_non_null(strstr(said, "option '-c' needs a value"));
	assert_int_equal(dies(long_without_value), CLI_USAGE);
	assert_non_null(strstr(said, "option '--count' needs a value"));
	assert_int_equal(dies(long_with_value_it_does_not_take), CLI_USAGE);
	assert_non_null(strstr(said, "option '--end=3' takes no value"));
}

static void full_disk(void)
{
	if (!freopen("/dev/full", "w", stdout))
		_exit(98);
	puts("hello");
	exit(cli_close_stdout(CLI_OK));
}

static void no_fds(void)
{
	char *argv[] = { "/usr/bin/mq-send", NULL };

	close(0);
	close(1);
	cli_start(1, argv);
	if (strcmp(cli_name, "mq-send") != 0 || dup(2) < 3)
		_exit(97);
	if (write(1, "x", 1) != -1 || errno != EBADF || read(0, said, 1) != -1 || errno != EBADF)
		_exit(96);
	_exit(0);
}

static void stdout_that_cannot_take_it_is_a_failure(void **s)
{
	assert_int_equal(dies(full_disk), CLI_SYSTEM);
	assert_string_equal(said, "mq: standard output: No space left on device\n");
}

static void closed_descriptors_are_not_taken_by_others(void **s)
{
	assert_int_equal(dies(no_fds), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(wrong_integers_name_option_and_range),
		cmocka_unit_test(durations_of_all_units),
		cmocka_unit_test(wrong_durations_show_right_ones),
		cmocka_unit_test(sizes_are_powers_of_two),
		cmocka_unit_test(times_in_utc_and_local),
		cmocka_unit_test(times_before_now),
		cmocka_unit_test(wrong_times),
		cmocka_unit_test(control_characters_do_not_reach_the_terminal),
		cmocka_unit_test(a_warning_makes_room_for_itself),
		cmocka_unit_test(failures_have_their_exit_codes),
		cmocka_unit_test(bad_options_are_named),
		cmocka_unit_test(stdout_that_cannot_take_it_is_a_failure),
		cmocka_unit_test(closed_descriptors_are_not_taken_by_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
