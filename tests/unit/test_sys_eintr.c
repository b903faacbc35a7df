/* test_sys_eintr.c: each system call of base/sys is interrupted once: nobody above it sees that.
 *
 * The functions of the C library are replaced here, which the linker prefers; each says EINTR at its first call and then does its
 * work. */
#include "base/sys.h"
#include "tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

static bool armed;
static int interrupted;

#define INTERRUPT() \
	do { \
		static bool done; \
		if (armed && !done) { \
			done = true; \
			interrupted++; \
			errno = EINTR; \
			return -1; \
		} \
	} while (0)

ssize_t pread(int fd, void *p, size_t n, off_t off)
{
	INTERRUPT();
	return syscall(SYS_pread64, fd, p, n, off);
}
ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
	INTERRUPT();
	return syscall(SYS_pwrite64, fd, p, n, off);
}
int ftruncate(int fd, off_t n)
{
	INTERRUPT();
	return (int)syscall(SYS_ftruncate, fd, n);
}
int fallocate(int fd, int mode, off_t off, off_t n)
{
	INTERRUPT();
	return (int)syscall(SYS_fallocate, fd, mode, off, n);
}
int fdatasync(int fd)
{
	INTERRUPT();
	return (int)syscall(SYS_fdatasync, fd);
}
int fsync(int fd)
{
	INTERRUPT();
	return (int)syscall(SYS_fsync, fd);
}
int syncfs(int fd)
{
	INTERRUPT();
	return 0; /* the disk of others is left in peace */
}
int msync(void *p, size_t n, int flags)
{
	INTERRUPT();
	return (int)syscall(SYS_msync, p, n, flags);
}

static void an_interrupted_call_is_made_again(void **state)
{
	const char *path = tempdir_path(*state, "f");
	char back[8] = "";
	void *map;
	int fd = sys.open(path, O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	armed = true;
	assert_int_equal(sys.ftruncate(fd, 4096), 0);
	sys.fallocate(fd, 0, 4096); /* not every file system can */
	assert_int_equal(sys.pwrite(fd, "content", 8, 0), 8);
	assert_int_equal(sys.pread(fd, back, 8, 0), 8);
	assert_string_equal(back, "content");
	assert_int_equal(sys.fdatasync(fd), 0);
	assert_int_equal(sys.fsync(fd), 0);
	assert_int_equal(sys.syncfs(fd), 0);
	assert_int_equal(sys.mmap(fd, 4096, true, &map), 0);
	assert_int_equal(sys.msync(map, 4096), 0);
	assert_int_equal(sys.munmap(map, 4096), 0);
	armed = false;
	sys.close(fd);
	assert_int_equal(interrupted, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_interrupted_call_is_made_again, tempdir_make, tempdir_remove),
	};

	return cmocka_run_group_tests_name("sys_eintr", tests, NULL, NULL);
}
