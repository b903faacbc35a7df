/* fault.c: a table of file system calls that counts them and lets one fail. */
#include "fault.h"

#include "base/sys.h"

#include <stddef.h>

static int calls, target, code;
static enum fault_kind kind;
static const char *name;
static bool no_syncs;

static bool fails(const char *what)
{
	calls++;
	if (target == 0 || calls < target || (calls > target && (kind == FAULT_ONCE || kind == FAULT_SHORT)))
		return false;
	if (calls == target)
		name = what;
	return kind != FAULT_SHORT;
}

static size_t shorter(size_t n)
{
	return kind == FAULT_SHORT && calls == target && n > 1 ? n / 2 : n;
}

#define WRAP(type, op, args, call) \
	static type fault_##op args { return fails(#op) ? -code : sys_real.op call; }
WRAP(int, open, (const char *path, int flags, mode_t mode), (path, flags, mode))
WRAP(ssize_t, pread, (int fd, void *p, size_t n, off_t off), (fd, p, shorter(n), off))
WRAP(int, ftruncate, (int fd, off_t n), (fd, n))
WRAP(int, fallocate, (int fd, off_t off, off_t n), (fd, off, n))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, link, (const char *from, const char *to), (from, to))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, rmdir, (const char *path), (path))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, fstat, (int fd, struct stat *st), (fd, st))
WRAP(int, stat, (const char *path, struct stat *st), (path, st))
WRAP(int, mmap, (int fd, size_t n, bool write, void **p), (fd, n, write, p))
WRAP(off_t, seek_data, (int fd, off_t off), (fd, off))
WRAP(int, lock, (int fd), (fd))
WRAP(int, statfs, (const char *path, int64_t *total, int64_t *avail, int64_t *unused), (path, total, avail, unused))

static int fault_fdatasync(int fd) { return fails("fdatasync") ? -code : no_syncs ? 0 : sys_real.fdatasync(fd); }
static int fault_fsync(int fd) { return fails("fsync") ? -code : no_syncs ? 0 : sys_real.fsync(fd); }
static int fault_syncfs(int fd) { return fails("syncfs") ? -code : no_syncs ? 0 : sys_real.syncfs(fd); }
static int fault_msync(void *p, size_t n) { return fails("msync") ? -code : no_syncs ? 0 : sys_real.msync(p, n); }

static ssize_t fault_pwrite(int fd, const void *p, size_t n, off_t off)
{
	if (!fails("pwrite"))
		return sys_real.pwrite(fd, p, shorter(n), off);
	if (kind == FAULT_TORN && calls == target && n > 1)
		sys_real.pwrite(fd, p, n / 2, off);
	return -code;
}

/* These give back what the process holds, and so always do it: a failed close has closed. */
static int fault_close(int fd)
{
	int rc = sys_real.close(fd);

	return fails("close") ? -code : rc;
}

static int fault_munmap(void *p, size_t n)
{
	int rc = sys_real.munmap(p, n);

	return fails("munmap") ? -code : rc;
}

void fault_set(int nth, int error, enum fault_kind k)
{
	calls = 0;
	target = nth;
	code = error;
	kind = k;
	name = NULL;
	sys = (struct sys_ops){
		.open = fault_open, .close = fault_close, .pread = fault_pread, .pwrite = fault_pwrite,
		.ftruncate = fault_ftruncate, .fallocate = fault_fallocate, .fdatasync = fault_fdatasync,
		.fsync = fault_fsync, .msync = fault_msync, .rename = fault_rename, .link = fault_link,
		.unlink = fault_unlink, .rmdir = fault_rmdir, .mkdir = fault_mkdir, .fstat = fault_fstat,
		.stat = fault_stat, .mmap = fault_mmap, .munmap = fault_munmap, .lock = fault_lock,
		.statfs = fault_statfs, .seek_data = fault_seek_data, .syncfs = fault_syncfs,
		.mincore = sys_real.mincore,
	};
}

static int no_sync(int fd) { return 0; }
static int no_msync(void *p, size_t n) { return 0; }

void fault_off(void)
{
	sys = sys_real;
	if (no_syncs) {
		sys.fdatasync = sys.fsync = sys.syncfs = no_sync;
		sys.msync = no_msync;
	}
}

void fault_without_syncs(void)
{
	no_syncs = true;
	fault_off();
}

bool fault_fired(void) { return target && calls >= target; }
int fault_calls(void) { return calls; }
const char *fault_name(void) { return name ? name : "none"; }
