/* test_sys.c: files are replaced whole or not at all, whichever system call fails; trees and lists of names. */
#include "base/sys.h"
#include "fault.h"
#include "tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void is(const char *path, const char *want)
{
	char *got = tempdir_read(path);

	if (!want)
		assert_null(got);
	else
		assert_string_equal(got, want);
	free(got);
}

static void a_replaced_file_leaves_the_old_one_beside_it(void **state)
{
	const char *path = tempdir_path(*state, "f"), *bak = tempdir_path(*state, "f.bak");

	assert_int_equal(sys_replace_file(path, "one", 3), 0);
	is(path, "one");
	is(bak, NULL);
	assert_int_equal(sys_replace_file(path, "two", 3), 0);
	is(path, "two");
	is(bak, "one");
	assert_int_equal(sys_replace_file(path, "three", 5), 0);
	is(path, "three");
	is(bak, "two");
	is(tempdir_path(*state, "f.tmp"), NULL);
}

/* Calls in the order in which they were made. */
static char order[1000];

static int note_open(const char *path, int flags, mode_t mode)
{
	strcat(order, flags & O_DIRECTORY ? "open-dir " : "open ");
	return sys_real.open(path, flags, mode);
}
static ssize_t note_pwrite(int fd, const void *p, size_t n, off_t off)
{
	strcat(order, "write ");
	return sys_real.pwrite(fd, p, n, off);
}
static int note_sync(int fd)
{
	strcat(order, "sync ");
	return sys_real.fsync(fd);
}
static int note_rename(const char *from, const char *to)
{
	strcat(order, "rename ");
	return sys_real.rename(from, to);
}

static void a_file_is_on_the_disk_before_it_has_its_name_and_then_the_name_is(void **state)
{
	const char *path = tempdir_path(*state, "f");

	tempdir_write(path, "old");
	order[0] = '\0';
	sys.open = note_open, sys.pwrite = note_pwrite, sys.fsync = sys.fdatasync = note_sync, sys.rename = note_rename;
	assert_int_equal(sys_replace_file(path, "new", 3), 0);
	sys = sys_real;
	assert_string_equal(order, "open write sync rename open-dir sync ");
}

/* Whatever fails, and whether the program goes on or dies there: the file is the old or the new one, and whole. */
static void a_replaced_file_is_open_to_the_same_people(void **state)
{
	const char *path = tempdir_path(*state, "secret");
	struct stat st;

	tempdir_write(path, "one");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(sys_replace_file(path, "two", 3), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(chmod(path, 0664), 0); /* more than a umask lets through */
	if (geteuid() == 0)
		assert_int_equal(chown(path, 12, 34), 0);
	assert_int_equal(sys_replace_file(path, "three", 5), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0664);
	if (geteuid() == 0) {
		assert_int_equal(st.st_uid, 12);
		assert_int_equal(st.st_gid, 34);
	}
}

static void a_replacement_that_fails_anywhere_leaves_old_or_new(void **state)
{
	const char *path = tempdir_path(*state, "f");
	const enum fault_kind kinds[] = { FAULT_ONCE, FAULT_CRASH, FAULT_TORN, FAULT_SHORT };
	int failed = 0;

	for (size_t k = 0; k < 4; k++) {
		for (int n = 1;; n++) {
			char *now;
			int rc;

			tempdir_write(path, "old content");
			fault_set(n, EIO, kinds[k]);
			rc = sys_replace_file(path, "new content!", 12);
			fault_off();
			if (!fault_fired())
				break;
			failed++;
			now = tempdir_read(path);
			assert_non_null(now);
			if (strcmp(now, "new content!") != 0)
				assert_string_equal(now, "old content");
			/* A failure is told, but for the unlink of what may not be there and the close after a good sync. */
			if (rc == 0)
				assert_string_equal(now, "new content!");
			free(now);
		}
	}
	assert_true(failed >= 20);
}

/* Without hard links (some network and container file systems) the old file is copied. */
static void without_hard_links_the_old_file_is_copied(void **state)
{
	const char *path = tempdir_path(*state, "f");
	int n = 0;

	do {
		tempdir_write(path, "one");
		fault_set(++n, EPERM, FAULT_ONCE);
		sys_replace_file(path, "two", 3);
		fault_off();
	} while (strcmp(fault_name(), "link") != 0 && fault_fired());
	assert_string_equal(fault_name(), "link");
	is(path, "two");
	is(tempdir_path(*state, "f.bak"), "one");
}

static void reading_is_bounded(void **state)
{
	const char *path = tempdir_path(*state, "f");
	char *p;
	size_t n;

	tempdir_write(path, "12345");
	assert_int_equal(sys_read_file(path, 4, &p, &n), MQ_ETOOBIG);
	assert_int_equal(sys_read_file(path, 5, &p, &n), 0);
	assert_int_equal(n, 5);
	assert_string_equal(p, "12345");
	free(p);
	assert_int_equal(sys_read_file(tempdir_path(*state, "none"), 5, &p, &n), -ENOENT);
	assert_int_equal(sys_read_file(*state, 5, &p, &n), -EISDIR);
	assert_int_equal(sys_read_file("/proc/self/status", 1 << 20, &p, &n), 0); /* says size 0 */
	assert_true(n > 100);
	free(p);
}

static void directories_are_made_with_their_parents(void **state)
{
	struct stat st;

	assert_int_equal(sys_mkdir_all(tempdir_path(*state, "a/b//c/")), 0);
	assert_int_equal(sys_mkdir_all(tempdir_path(*state, "a/b/c")), 0);
	assert_int_equal(sys.stat(tempdir_path(*state, "a/b/c"), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	tempdir_write(tempdir_path(*state, "a/file"), "x");
	assert_int_equal(sys_mkdir_all(tempdir_path(*state, "a/file/d")), -ENOTDIR);
	assert_int_equal(sys_mkdir_parent(tempdir_path(*state, "p/q/file")), 0);
	assert_int_equal(sys_mkdir_all(tempdir_path(*state, "p/q/file/below")), 0); /* it was not made itself */
	assert_int_equal(sys_mkdir_parent(tempdir_path(*state, "a/file/d")), -ENOTDIR);
	assert_int_equal(sys_mkdir_parent("nowhere"), 0);
}

static void a_tree_is_removed_and_links_are_not_followed(void **state)
{
	struct stat st;

	sys_mkdir_all(tempdir_path(*state, "keep"));
	tempdir_write(tempdir_path(*state, "keep/file"), "x");
	sys_mkdir_all(tempdir_path(*state, "gone/deep/er"));
	tempdir_write(tempdir_path(*state, "gone/deep/file"), "x");
	assert_int_equal(symlink(tempdir_path(*state, "keep"), tempdir_path(*state, "gone/link")), 0);
	assert_int_equal(sys_remove_tree(tempdir_path(*state, "gone")), 0);
	assert_int_equal(sys.stat(tempdir_path(*state, "gone"), &st), -ENOENT);
	is(tempdir_path(*state, "keep/file"), "x");
	assert_int_equal(sys_remove_tree(tempdir_path(*state, "gone")), 0);
}

static void names_come_sorted(void **state)
{
	char **names;
	size_t n;

	for (int i = 299; i >= 0; i--) {
		char name[80];

		snprintf(name, sizeof(name), "%020d-a-rather-long-name-of-a-file", i);
		tempdir_write(tempdir_path(*state, name), "");
	}
	assert_int_equal(sys_list(*state, &names, &n), 0);
	assert_int_equal(n, 300);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(atoi(names[i]), i);
	free(names);
	assert_int_equal(sys_list(tempdir_path(*state, "none"), &names, &n), -ENOENT);
}

static void a_lock_keeps_a_second_process_out(void **state)
{
	const char *path = tempdir_path(*state, "lock");
	int fd = sys.open(path, O_RDWR | O_CREAT, 0644), status;
	pid_t pid;

	assert_int_equal(sys.lock(fd), 0);
	pid = fork();
	if (pid == 0) {
		int again = sys.open(path, O_RDWR, 0);

		_exit(sys.lock(again) == -EAGAIN ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sys.close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_replaced_file_leaves_the_old_one_beside_it, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_file_is_on_the_disk_before_it_has_its_name_and_then_the_name_is, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_replaced_file_is_open_to_the_same_people, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_replacement_that_fails_anywhere_leaves_old_or_new, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(without_hard_links_the_old_file_is_copied, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(reading_is_bounded, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(directories_are_made_with_their_parents, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_tree_is_removed_and_links_are_not_followed, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(names_come_sorted, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_lock_keeps_a_second_process_out, tempdir_make, tempdir_remove),
	};
	return cmocka_run_group_tests_name("sys", tests, NULL, NULL);
}
