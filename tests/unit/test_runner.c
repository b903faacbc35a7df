/* test_runner.c: a command per message: what it gets, in which order, how many at once, and what stops it. */
#include "../../bin/cli.h"
#include "../../bin/runner.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static uv_loop_t loop;
static struct runner runner;
static char dir[] = "/tmp/test_runner.XXXXXX";
static char ended[4000];       /* "lane:offset:ok " per command that ended */
static int running_most, dropped;
static char output[1000];
static struct runner_lane lanes[4];

static int retries;             /* so often a command that failed is run again; -1: the first failure stops everything */

static void say(const void *queue, int64_t off, const char *what)
{
	char text[200];

	snprintf(text, sizeof(text), "%d:%d:%s ", (int)((const struct runner_lane *)queue - lanes), (int)off, what);
	strcat(ended, text);
}

static void on_done(void *arg, struct runner_job *j, const struct child_end *end)
{
	say(j->queue, j->off, end->code == 0 ? "ok" : end->why);
	if (runner.capture) {
		strncat(output, end->output.p ? end->output.p : "", end->output.n);
	}
	if (end->code == 0) {
		runner_end(j);
	} else if (retries >= 0 && j->runs <= retries) {
		runner_later(j, 10, runner_again);
	} else {
		runner_stop(&runner);
		runner_drop(j);
	}
}

static void on_dropped(void *arg, void *queue, int64_t off)
{
	dropped++;
}

static void open_runner(const char *command, int jobs)
{
	ended[0] = '\0';
	memset(lanes, 0, sizeof(lanes));
	output[0] = '\0';
	retries = -1;
	dropped = 0;
	runner = (struct runner){ .jobs = jobs, .done = on_done, .dropped = on_dropped };
	assert_int_equal(uv_loop_init(&loop), 0);
	runner_open(&runner, &loop, "-x", command);
}

static void put(int lane, int64_t off, struct mq_str body, const char *props)
{
	struct mq_message m = { .topic = MQ_STR("t"), .queue_id = lane, .queue_off = off, .born_ms = 11, .store_ms = 12,
	                        .props = { props, strlen(props) } };
	struct shown s = { .m = &m, .body = body, .broker = "b" };

	runner_put(&runner, &lanes[lane], &lanes[lane], &s, NULL);
	running_most = runner.running > running_most ? runner.running : running_most;
}

static void run(void)
{
	while (!runner_idle(&runner))
		uv_run(&loop, UV_RUN_ONCE);
	uv_run(&loop, UV_RUN_DEFAULT);
	for (int i = 0; i < 4; i++)
		runner_lane_free(&runner, &lanes[i]);
	runner_close(&runner);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static char *file(const char *name)
{
	static char text[10000];
	int fd = open(name, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	close(fd);
	text[n] = '\0';
	return text;
}

static void body_on_stdin_and_message_in_environment(void **s)
{
	setenv("MQ_PROP_old", "x", 1);
	open_runner("cat >body; env | grep ^MQ_ | grep -vE '^MQ_(SRC|BUILD|TEST_[A-Z_]*)=' | sort >env", 1);
	put(3, 17, MQ_STR("line 1\nline 2"), "KEYS\1k1 k2\2TAGS\1red\2UNIQ_KEY\1ABC\2my-prop\1v=1\2");
	run();
	assert_string_equal(ended, "3:17:ok ");
	assert_string_equal(file("body"), "line 1\nline 2");
	assert_string_equal(file("env"),
	                    "MQ_ATTEMPT=1\nMQ_BORN=11\nMQ_ID=ABC\nMQ_KEYS=k1 k2\nMQ_OFFSET=17\nMQ_PROP_KEYS=k1 k2\nMQ_PROP_TAGS=red\n"
	                    "MQ_PROP_UNIQ_KEY=ABC\nMQ_PROP_my_prop=v=1\nMQ_QUEUE=b:3\nMQ_RETRIES=0\nMQ_SIZE=13\nMQ_STORED=12\n"
	                    "MQ_TAGS=red\nMQ_TOPIC=t\n");
}

static void a_command_that_reads_nothing_gets_a_big_body_all_the_same(void **s)
{
	static char body[1 << 20];

	open_runner("true", 1);
	for (int i = 0; i < 5; i++)
		put(0, i, (struct mq_str){ body, sizeof(body) }, "");
	run();
	assert_string_equal(ended, "0:0:ok 0:1:ok 0:2:ok 0:3:ok 0:4:ok ");
}

static void plain_words_are_executed_directly(void **s)
{
	open_runner("  cp /dev/stdin\tcopy ", 1);
	assert_non_null(runner.command.argv);
	put(0, 0, MQ_STR("x"), "");
	run();
	assert_string_equal(file("copy"), "x");
}

static void a_builtin_of_the_shell(void **s)
{
	open_runner("exit 0", 1);
	assert_null(runner.command.argv);
	put(0, 0, MQ_STR("x"), "");
	run();
	assert_string_equal(ended, "0:0:ok ");
}

static void one_lane_keeps_its_order_with_many_jobs(void **s)
{
	unlink("log");
	running_most = 0;
	open_runner("cat >>log", 4);
	for (int i = 0; i < 9; i++)
		put(1, i, (struct mq_str){ &"0123456789"[i], 1 }, "");
	run();
	assert_string_equal(file("log"), "012345678");
	assert_int_equal(running_most, 1);
}

static void lanes_run_beside_each_other_up_to_jobs(void **s)
{
	running_most = 0;
	open_runner("sleep 0.05", 3);
	for (int i = 0; i < 8; i++)
		put(i % 4, i, MQ_STR("x"), "");
	assert_int_equal(runner.running, 3);
	run();
	assert_int_equal(running_most, 3);
	assert_int_equal(strlen(ended), 8 * strlen("0:0:ok "));
}

static void the_first_failure_stops_everything_that_has_not_begun(void **s)
{
	open_runner("test $MQ_OFFSET != 2 || exit 75", 1);
	for (int i = 0; i < 5; i++)
		put(0, i, MQ_STR("x"), "");
	run();
	assert_string_equal(ended, "0:0:ok 0:1:ok 0:2:exit code 75 ");
}

static void those_that_run_may_finish(void **s)
{
	open_runner("test $MQ_OFFSET = 0 && exit 1; sleep 0.1", 2);
	put(1, 1, MQ_STR("x"), "");
	put(0, 0, MQ_STR("x"), "");
	put(1, 2, MQ_STR("x"), "");
	run();
	assert_string_equal(ended, "0:0:exit code 1 1:1:ok ");
}

static void a_killed_command_has_not_consumed(void **s)
{
	open_runner("kill -9 $$", 1);
	put(0, 0, MQ_STR("x"), "");
	run();
	assert_string_equal(ended, "0:0:killed by signal 9 ");
}

static void one_that_is_run_again_keeps_its_place(void **s)
{
	open_runner("echo $MQ_OFFSET.$MQ_ATTEMPT >>log; test $MQ_OFFSET != 1 || test $MQ_ATTEMPT = 3", 4);
	unlink("log");
	retries = 5;
	for (int i = 0; i < 3; i++)
		put(0, i, MQ_STR("x"), "");
	run();
	assert_string_equal(file("log"), "0.1\n1.1\n1.2\n1.3\n2.1\n");
	assert_int_equal(dropped, 0);
}

static void one_that_waits_to_be_run_again_is_dropped_at_the_end(void **s)
{
	open_runner("exit 1", 1);
	retries = 1000;
	put(0, 0, MQ_STR("x"), "");
	put(0, 1, MQ_STR("x"), "");
	while (!*ended)
		uv_run(&loop, UV_RUN_ONCE);
	runner_stop(&runner);
	run();
	assert_string_equal(ended, "0:0:exit code 1 ");
	assert_int_equal(dropped, 2);
}

static void a_lane_that_goes_drops_what_waits_in_it(void **s)
{
	open_runner("sleep 0.1", 1);
	for (int i = 0; i < 3; i++)
		put(0, i, MQ_STR("x"), "");
	runner_lane_free(&runner, &lanes[0]);
	assert_int_equal(dropped, 2);
	run();
	assert_string_equal(ended, "0:0:ok ");
}

static void a_command_that_takes_too_long_is_killed(void **s)
{
	open_runner("sleep 60", 1);
	runner.timeout_ms = 50;
	put(0, 0, MQ_STR("x"), "");
	run();
	assert_string_equal(ended, "0:0:killed, it took too long ");
}

static void output_that_is_wanted(void **s)
{
	open_runner("tr a-z A-Z", 1);
	runner.capture = true;
	put(0, 0, MQ_STR("hello"), "");
	run();
	assert_string_equal(output, "HELLO");
}

static void enough_waiting_is_said(void **s)
{
	open_runner("true", 1);
	assert_false(runner_full(&runner));
	for (int i = 0; i < 1001; i++)
		put(0, i, MQ_STR("x"), "");
	assert_true(runner_full(&runner));
	runner_stop(&runner);
	run();
	assert_string_equal(ended, "0:0:ok ");
}

/* Exit status of runner_open() in a child. */
static int opens(const char *command)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), 2);
		open_runner(command, 1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void what_cannot_be_started_is_told_before_any_message(void **s)
{
	close(open("noexec", O_CREAT | O_WRONLY, 0644));
	assert_int_equal(opens("./noexec"), 126);
	assert_int_equal(opens("./noexec -x | cat"), 126);
	assert_int_equal(opens("/tmp"), 126);
	assert_int_equal(opens("./missing"), 127);
	assert_int_equal(opens("mq-no-such-command"), 127);
	assert_int_equal(opens("mq-no-such-command >x"), 127);
	assert_int_equal(opens(""), CLI_USAGE);
	assert_int_equal(opens(" \t"), CLI_USAGE);
	assert_int_equal(opens("cat | (sort"), CLI_USAGE);
	assert_int_equal(opens("cat"), 0);
	assert_int_equal(opens("A=1 cat"), 0);
	assert_int_equal(opens("while read x; do echo $x; done"), 0);
	assert_int_equal(opens("(cat)"), 0);
}

static int setup(void **s)
{
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int teardown(void **s)
{
	static const char *const files[] = { "body", "env", "copy", "log", "noexec" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(files[i]);
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(body_on_stdin_and_message_in_environment),
		cmocka_unit_test(a_command_that_reads_nothing_gets_a_big_body_all_the_same),
		cmocka_unit_test(plain_words_are_executed_directly),
		cmocka_unit_test(a_builtin_of_the_shell),
		cmocka_unit_test(one_lane_keeps_its_order_with_many_jobs),
		cmocka_unit_test(lanes_run_beside_each_other_up_to_jobs),
		cmocka_unit_test(the_first_failure_stops_everything_that_has_not_begun),
		cmocka_unit_test(those_that_run_may_finish),
		cmocka_unit_test(a_killed_command_has_not_consumed),
		cmocka_unit_test(one_that_is_run_again_keeps_its_place),
		cmocka_unit_test(one_that_waits_to_be_run_again_is_dropped_at_the_end),
		cmocka_unit_test(a_lane_that_goes_drops_what_waits_in_it),
		cmocka_unit_test(a_command_that_takes_too_long_is_killed),
		cmocka_unit_test(output_that_is_wanted),
		cmocka_unit_test(enough_waiting_is_said),
		cmocka_unit_test(what_cannot_be_started_is_told_before_any_message),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
