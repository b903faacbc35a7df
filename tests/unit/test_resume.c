/* test_resume.c: the files of --resume: written whole, read again, refused when they belong to something else. */
#include "../../bin/recv_resume.h"
#include "../../bin/send_resume.h"
#include "../../bin/state_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/test_resume.XXXXXX";
static struct mq_error err;

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static const char *read_file(const char *name)
{
	static struct bytes b;

	assert_int_equal(state_file_read(name, &b, &err), 0);
	return b.p;
}

/* ---- The file itself -------------------------------------------------------------------------------------------------- */

static void a_file_is_replaced_whole(void **s)
{
	struct bytes b = { 0 };

	assert_int_equal(state_file_read("f", &b, &err), MQ_ENOTFOUND);
	assert_int_equal(state_file_write("f", MQ_STR("one"), &err), 0);
	assert_int_equal(state_file_write("f", MQ_STR("two\n"), &err), 0);
	assert_int_equal(state_file_read("f", &b, &err), 0);
	assert_int_equal(b.n, 4);
	assert_string_equal(b.p, "two\n");
	assert_int_equal(access("f.new", F_OK), -1);
	bytes_free(&b);
}

static void a_failed_write_leaves_the_old_one(void **s)
{
	struct bytes b = { 0 };

	assert_int_equal(state_file_write("g", MQ_STR("old"), &err), 0);
	assert_int_equal(mkdir("g.new", 0755), 0);
	assert_true(state_file_write("g", MQ_STR("new"), &err) < 0);
	assert_non_null(strstr(err.text, "'g.new'"));
	assert_string_equal(read_file("g"), "old");
	rmdir("g.new");
	assert_true(state_file_write("none/g", MQ_STR("new"), &err) < 0);
	assert_true(state_file_read("/", &b, &err) < 0);
	bytes_free(&b);
}

/* ---- mq-send ---------------------------------------------------------------------------------------------------------- */

static const char *const names[] = { "a", "b" };

static int open_send(struct send_resume *r, const char *topic, const char *framing, int n)
{
	return send_resume_open(r, "send", topic, framing, names, n, &err);
}

static void a_new_file_begins_at_the_beginning(void **s)
{
	struct send_resume r;

	unlink("send");
	assert_int_equal(open_send(&r, "t", "-l", 2), 0);
	assert_int_equal(r.at.offset, 0);
	assert_false(send_resume_done(&r, 0, 1));
	send_resume_free(&r);
}

static void records_beyond_the_place_are_known(void **s)
{
	struct send_resume r;

	write_file("send", "mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 0 5000 123\ndone 0 5003 5005\ndone 0 5007 5007\ndone 1 2 3\n");
	assert_int_equal(open_send(&r, "t", "-l", 2), 0);
	assert_int_equal(r.at.file, 0);
	assert_int_equal(r.at.record, 5000);
	assert_int_equal(r.at.offset, 123);
	for (int64_t i = 5001; i < 5010; i++)
		assert_int_equal(send_resume_done(&r, 0, i), (i >= 5003 && i <= 5005) || i == 5007);
	assert_false(send_resume_done(&r, 1, 1));
	assert_true(send_resume_done(&r, 1, 2));
	assert_true(send_resume_done(&r, 1, 3));
	assert_false(send_resume_done(&r, 1, 4));
	send_resume_free(&r);
}

static void what_is_saved_is_what_is_known(void **s)
{
	struct send_resume r;
	struct flight f;

	write_file("send", "mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 0 10 100\ndone 0 12 15\ndone 1 2 3\n");
	assert_int_equal(open_send(&r, "t", "-l", 2), 0);
	flight_init(&f);
	/* Nothing under way: everything before the reading place is settled; runs beyond it stay. */
	assert_int_equal(send_resume_save(&r, &f, (struct input_place){ 0, 13, 130 }, &err), 0);
	assert_string_equal(read_file("send"),
	                    "mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 0 13 130\ndone 0 12 15\ndone 1 2 3\n");
	assert_int_equal(send_resume_save(&r, &f, (struct input_place){ 1, 0, 0 }, &err), 0);
	assert_string_equal(read_file("send"), "mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 1 0 0\ndone 1 2 3\n");
	assert_int_equal(send_resume_save(&r, &f, (struct input_place){ 1, 9, 90 }, &err), 0);
	assert_string_equal(read_file("send"), "mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 1 9 90\n");
	flight_free(&f);
	send_resume_free(&r);
}

static void another_input_or_damage_is_refused(void **s)
{
	static const char *const bad[] = {
		"", "hello\n", "mq-send 1\n", "mq-send 1\ntopic t\nframing -l\nfile a\nfile b\n",
		"mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 0 1\n", "mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 2 1 1\n",
		"mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 0 -1 1\n",
		"mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 0 1 1\ndone 0 3 2\n",
		"mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 0 1 1\nmore\n",
	};
	struct send_resume r;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file("send", bad[i]);
		if (open_send(&r, "t", "-l", 2) != MQ_EINVAL)
			fail_msg("taken: %s", bad[i]);
		send_resume_free(&r);
	}
	write_file("send", "mq-send 1\ntopic t\nframing -l\nfile a\nfile b\nat 0 1 1\n");
	assert_int_equal(open_send(&r, "u", "-l", 2), MQ_EINVAL);
	send_resume_free(&r);
	assert_int_equal(open_send(&r, "t", "-0", 2), MQ_EINVAL);
	assert_non_null(strstr(err.text, "belongs to another topic, framing or input"));
	send_resume_free(&r);
	assert_int_equal(open_send(&r, "t", "-l", 1), MQ_EINVAL);
	send_resume_free(&r);
}

/* ---- mq-recv ---------------------------------------------------------------------------------------------------------- */

static void offsets_of_queues_are_kept(void **s)
{
	struct mqclient_queue q0 = { "broker-a", 0 }, q1 = { "broker a:b", 1 };
	struct recv_resume r;

	unlink("recv");
	assert_int_equal(recv_resume_open(&r, "recv", &err), 0);
	assert_int_equal(recv_resume_find(&r, "t", &q0, false), -1);
	recv_resume_set(&r, recv_resume_find(&r, "t", &q0, true), 17);
	recv_resume_set(&r, recv_resume_find(&r, "t", &q1, true), 0);
	recv_resume_find(&r, "u", &q0, true); /* nothing is known of it: not kept */
	assert_int_equal(recv_resume_save(&r, &err), 0);
	recv_resume_free(&r);
	assert_string_equal(read_file("recv"), "mq-recv 1\n17 t broker-a:0\n0 t broker a:b:1\n");
	assert_int_equal(recv_resume_open(&r, "recv", &err), 0);
	assert_int_equal(r.entry[recv_resume_find(&r, "t", &q0, false)].next, 17);
	assert_int_equal(r.entry[recv_resume_find(&r, "t", &q1, false)].next, 0);
	assert_int_equal(recv_resume_find(&r, "u", &q0, false), -1);
	recv_resume_free(&r);
}

static void damaged_offsets_are_refused(void **s)
{
	static const char *const bad[] = { "", "17 t b:0\n", "mq-recv 1\n17\n", "mq-recv 1\nx t b:0\n", "mq-recv 1\n-1 t b:0\n",
	                                   "mq-recv 1\n17 t b:0" };
	struct recv_resume r;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file("recv", bad[i]);
		if (recv_resume_open(&r, "recv", &err) != MQ_EINVAL)
			fail_msg("taken: %s", bad[i]);
		recv_resume_free(&r);
	}
}

static int setup(void **s)
{
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int teardown(void **s)
{
	static const char *const files[] = { "f", "g", "send", "recv" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(files[i]);
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_replaced_whole),
		cmocka_unit_test(a_failed_write_leaves_the_old_one),
		cmocka_unit_test(a_new_file_begins_at_the_beginning),
		cmocka_unit_test(records_beyond_the_place_are_known),
		cmocka_unit_test(what_is_saved_is_what_is_known),
		cmocka_unit_test(another_input_or_damage_is_refused),
		cmocka_unit_test(offsets_of_queues_are_kept),
		cmocka_unit_test(damaged_offsets_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
