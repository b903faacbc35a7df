/* sys.c: the file system calls of the store and what is built on them.  Knows errno, not why somebody writes. */
#include "sys.h"
#include "mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Result of a call that may be interrupted, as >= 0 or -errno. */
#define CALL(type, call) ({ type r_; do r_ = (call); while (r_ < 0 && errno == EINTR); r_ < 0 ? -errno : r_; })

static int real_open(const char *path, int flags, mode_t mode) { return CALL(int, open(path, flags | O_CLOEXEC, mode)); }
/* Not repeated: Linux frees the descriptor also when it says EINTR. */
static int real_close(int fd) { return close(fd) < 0 && errno != EINTR ? -errno : 0; }
static ssize_t real_pread(int fd, void *p, size_t n, off_t off) { return CALL(ssize_t, pread(fd, p, n, off)); }
static ssize_t real_pwrite(int fd, const void *p, size_t n, off_t off) { return CALL(ssize_t, pwrite(fd, p, n, off)); }
static int real_ftruncate(int fd, off_t n) { return CALL(int, ftruncate(fd, n)); }
static int real_fallocate(int fd, off_t off, off_t n) { return CALL(int, fallocate(fd, FALLOC_FL_KEEP_SIZE, off, n)); }
static int real_fdatasync(int fd) { return CALL(int, fdatasync(fd)); }
static int real_fsync(int fd) { return CALL(int, fsync(fd)); }
static int real_syncfs(int fd) { return CALL(int, syncfs(fd)); }
static int real_msync(void *p, size_t n) { return CALL(int, msync(p, n, MS_SYNC)); }
static int real_rename(const char *from, const char *to) { return CALL(int, rename(from, to)); }
static int real_link(const char *from, const char *to) { return CALL(int, link(from, to)); }
static int real_unlink(const char *path) { return CALL(int, unlink(path)); }
static int real_rmdir(const char *path) { return CALL(int, rmdir(path)); }
static int real_mkdir(const char *path, mode_t mode) { return CALL(int, mkdir(path, mode)); }
static int real_fstat(int fd, struct stat *st) { return CALL(int, fstat(fd, st)); }
static int real_stat(const char *path, struct stat *st) { return CALL(int, stat(path, st)); }
static int real_munmap(void *p, size_t n) { return CALL(int, munmap(p, n)); }

static int real_mincore(void *p, size_t n, unsigned char *in) { return CALL(int, mincore(p, n, in)); }

static int real_mmap(int fd, size_t n, bool write, void **p)
{
	void *m = mmap(NULL, n, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);

	if (m == MAP_FAILED)
		return -errno;
	*p = m;
	return 0;
}

static int real_lock(int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
	int rc = CALL(int, fcntl(fd, F_SETLK, &l));

	return rc == -EACCES ? -EAGAIN : rc;
}

/* A file system that knows no holes has data everywhere. */
static off_t real_seek_data(int fd, off_t off)
{
	off_t at = lseek(fd, off, SEEK_DATA);

	return at >= 0 ? at : errno == EINVAL || errno == EOPNOTSUPP ? off : -errno;
}

static int real_statfs(const char *path, int64_t *total, int64_t *avail, int64_t *unused)
{
	struct statvfs s;
	int rc = CALL(int, statvfs(path, &s));

	if (rc < 0)
		return rc;
	*total = (int64_t)(s.f_blocks * s.f_frsize);
	*avail = (int64_t)(s.f_bavail * s.f_frsize);
	*unused = (int64_t)(s.f_bfree * s.f_frsize);
	return 0;
}

#define REAL_OPS                                                                                                      \
	{                                                                                                              \
		.open = real_open, .close = real_close, .pread = real_pread, .pwrite = real_pwrite,                    \
		.ftruncate = real_ftruncate, .fallocate = real_fallocate, .fdatasync = real_fdatasync,                 \
		.fsync = real_fsync, .msync = real_msync, .rename = real_rename, .link = real_link,                    \
		.unlink = real_unlink, .rmdir = real_rmdir, .mkdir = real_mkdir, .fstat = real_fstat,                  \
		.stat = real_stat, .mmap = real_mmap, .munmap = real_munmap, .lock = real_lock, .statfs = real_statfs, \
		.seek_data = real_seek_data, .syncfs = real_syncfs, .mincore = real_mincore,                            \
	}
struct sys_ops sys = REAL_OPS;
const struct sys_ops sys_real = REAL_OPS;

int sys_mkdir_parent(const char *path)
{
	char *dir = mem_strdup(path), *slash = strrchr(dir, '/');
	int rc = 0;

	if (slash && slash != dir) {
		*slash = 0;
		rc = sys_mkdir_all(dir);
	}
	free(dir);
	return rc;
}

int sys_mkdir_all(const char *path)
{
	char *p = mem_strdup(path);
	struct stat st;
	int rc = 0;

	for (char *at = p + 1; *p && rc == 0; at++) {
		char c = *at;

		if (c != '/' && c != '\0')
			continue;
		*at = '\0';
		rc = sys.mkdir(p, 0755);
		/* A parent that we may not write to (EACCES, EROFS) may still be there. */
		if (rc < 0 && sys.stat(p, &st) == 0)
			rc = S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
		*at = c;
		if (c == '\0')
			break;
	}
	free(p);
	return rc;
}

int sys_sync_dir(const char *path)
{
	int fd = sys.open(path, O_RDONLY | O_DIRECTORY, 0), rc;

	if (fd < 0)
		return fd;
	rc = sys.fsync(fd);
	sys.close(fd);
	/* Some file systems cannot sync a directory and say so; there is nothing more to do there. */
	return rc == -EINVAL ? 0 : rc;
}

int sys_read_file(const char *path, size_t max, char **out, size_t *n)
{
	int fd = sys.open(path, O_RDONLY, 0), rc;
	size_t cap, len = 0;
	struct stat st;
	ssize_t got;
	char *p;

	if (fd < 0)
		return fd;
	rc = sys.fstat(fd, &st);
	if (rc < 0)
		goto close_fd;
	if (S_ISDIR(st.st_mode)) {
		rc = -EISDIR;
		goto close_fd;
	}
	if (st.st_size > 0 && (uint64_t)st.st_size > max) {
		rc = MQ_ETOOBIG;
		goto close_fd;
	}
	/* The size is a hint only: the file may grow, and /proc says 0. */
	cap = (size_t)st.st_size + 1;
	p = mem_alloc(cap);
	for (;;) {
		if (len + 1 >= cap) {
			cap = cap < 4096 ? 4096 : cap * 2;
			p = mem_realloc(p, cap);
		}
		got = sys.pread(fd, p + len, cap - len - 1, (off_t)len);
		if (got <= 0)
			break;
		len += (size_t)got;
		if (len > max) {
			got = MQ_ETOOBIG;
			break;
		}
	}
	if (got < 0) {
		rc = (int)got;
		free(p);
		goto close_fd;
	}
	p[len] = '\0';
	*out = p;
	*n = len;
	rc = 0;
close_fd:
	sys.close(fd);
	return rc;
}

int sys_write_all(int fd, const void *p, size_t n, off_t off)
{
	const char *at = p;

	while (n) {
		ssize_t put = sys.pwrite(fd, at, n, off);

		if (put < 0)
			return (int)put;
		if (put == 0)
			return -EIO;
		at += put;
		off += put;
		n -= (size_t)put;
	}
	return 0;
}

/* A file's successor is open to the same people as the file was: it may hold secrets.  Where owners or rights cannot be set it stays its
 * writer's alone. */
static int look_like(int fd, const struct stat *old)
{
	if (geteuid() == 0 && fchown(fd, old->st_uid, old->st_gid) < 0 && errno != EPERM && errno != EINVAL)
		return -errno;
	return fchmod(fd, old->st_mode & 0777) < 0 && errno != EPERM && errno != ENOTSUP ? -errno : 0;
}

/* old: the file that it will replace, NULL if there is none. */
static int write_new(const char *path, const void *p, size_t n, const struct stat *old)
{
	int fd = sys.open(path, O_WRONLY | O_CREAT | O_TRUNC, old ? 0600 : 0644), rc, rc2;

	if (fd < 0)
		return fd;
	rc = old ? look_like(fd, old) : 0;
	if (rc == 0)
		rc = sys_write_all(fd, p, n, 0);
	if (rc == 0)
		rc = sys.fsync(fd);
	rc2 = sys.close(fd);
	if (rc == 0)
		rc = rc2;
	if (rc < 0)
		sys.unlink(path);
	return rc;
}

/* Keep what PATH holds as BAK.  A second name costs nothing; where the file system has no hard links, a copy. */
static int keep_old(const char *path, const char *bak)
{
	struct stat st;
	int rc = sys.stat(path, &st);
	char *old;
	size_t n;

	if (rc < 0) /* no old file: then BAK may be the only good copy, and stays */
		return rc == -ENOENT ? 0 : rc;
	rc = sys.unlink(bak);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	rc = sys.link(path, bak);
	if (rc != -EPERM && rc != -EOPNOTSUPP && rc != -ENOSYS && rc != -EMLINK)
		return rc;
	rc = sys_read_file(path, SIZE_MAX / 2, &old, &n);
	if (rc < 0)
		return rc;
	rc = write_new(bak, old, n, &st);
	free(old);
	return rc;
}

/* At no step is PATH missing: before the rename it is the old file, after it the new one, which is on the disk already.  A crash
 * may lose the .bak, or leave it as a second name of the old file, or leave a .tmp: all harmless. */
int sys_replace_file(const char *path, const void *p, size_t n)
{
	char *tmp = mem_printf("%s.tmp", path), *bak = mem_printf("%s.bak", path), *dir = mem_strdup(path), *slash;
	struct stat old;
	int rc = sys.stat(path, &old);

	if (rc < 0 && rc != -ENOENT)
		goto out;
	rc = write_new(tmp, p, n, rc == 0 ? &old : NULL);
	if (rc < 0)
		goto out;
	rc = keep_old(path, bak);
	if (rc == 0)
		rc = sys.rename(tmp, path);
	if (rc < 0) {
		sys.unlink(tmp);
		goto out;
	}
	slash = strrchr(dir, '/');
	if (!slash)
		rc = sys_sync_dir(".");
	else if (slash == dir)
		rc = sys_sync_dir("/");
	else {
		*slash = '\0';
		rc = sys_sync_dir(dir);
	}
out:
	free(tmp);
	free(bak);
	free(dir);
	return rc;
}

/* Unlink first and look at the answer: a symbolic link to a directory is removed, never followed. */
int sys_remove_tree(const char *path)
{
	int rc = sys.unlink(path);
	char **names;
	size_t n;

	if (rc == -ENOENT)
		return 0;
	if (rc != -EISDIR && rc != -EPERM)
		return rc;
	rc = sys_list(path, &names, &n);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n && rc == 0; i++) {
		char *kid = mem_printf("%s/%s", path, names[i]);

		rc = sys_remove_tree(kid);
		free(kid);
	}
	free(names);
	return rc ? rc : sys.rmdir(path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int sys_list(const char *dir, char ***out, size_t *count)
{
	DIR *d = opendir(dir);
	size_t used = 0, cap = 0, n = 0, off = 0;
	char *text = NULL, **names;
	struct dirent *e;
	int rc;

	if (!d)
		return -errno;
	for (errno = 0; (e = readdir(d)); errno = 0) {
		size_t len = strlen(e->d_name) + 1;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (cap - used < len) {
			cap = cap * 2 + len + 1024;
			text = mem_realloc(text, cap);
		}
		memcpy(text + used, e->d_name, len);
		used += len;
		n++;
	}
	rc = -errno;
	closedir(d);
	if (rc < 0) {
		free(text);
		return rc;
	}
	/* One block: the pointers, then the texts they point to. */
	names = mem_alloc(n * sizeof(*names) + used + 1);
	if (used)
		memcpy(names + n, text, used);
	for (size_t i = 0; i < n; i++) {
		names[i] = (char *)(names + n) + off;
		off += strlen(names[i]) + 1;
	}
	free(text);
	qsort(names, n, sizeof(*names), by_name);
	*out = names;
	*count = n;
	return 0;
}
