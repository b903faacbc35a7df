/* sys.h: every file system call of the store, behind one table that tests swap.
 *
 * All return >= 0 or -errno and retry EINTR.  A test installs its own table to make the n-th call fail, tear a write, fill the
 * disk, or "crash" (every later call fails) and then opens what is left. */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <mq.h>
#include <sys/stat.h>
#include <sys/types.h>

struct sys_ops {
	int (*open)(const char *path, int flags, mode_t mode);
	int (*close)(int fd);
	ssize_t (*pread)(int fd, void *p, size_t n, off_t off);
	ssize_t (*pwrite)(int fd, const void *p, size_t n, off_t off);
	int (*ftruncate)(int fd, off_t n);
	int (*fallocate)(int fd, off_t off, off_t n);       /* reserve, size kept; -EOPNOTSUPP where unknown */
	int (*fdatasync)(int fd);
	int (*fsync)(int fd);
	int (*syncfs)(int fd);                              /* all of the file system that holds fd */
	int (*msync)(void *p, size_t n);
	int (*rename)(const char *from, const char *to);
	int (*link)(const char *from, const char *to);
	int (*unlink)(const char *path);
	int (*rmdir)(const char *path);
	int (*mkdir)(const char *path, mode_t mode);
	int (*fstat)(int fd, struct stat *st);
	int (*stat)(const char *path, struct stat *st);
	int (*mmap)(int fd, size_t n, bool write, void **p);
	int (*munmap)(void *p, size_t n);
	int (*mincore)(void *p, size_t n, unsigned char *in); /* which pages are in memory: bit 0 of each byte */
	off_t (*seek_data)(int fd, off_t off);              /* next byte >= off outside of a hole; -ENXIO = holes to the end */
	int (*lock)(int fd);                                /* exclusive fcntl lock of byte 0: -EAGAIN if taken */
	int (*statfs)(const char *path, int64_t *total, int64_t *avail, int64_t *free);
};
extern struct sys_ops sys;              /* the real one until a test changes it */
extern const struct sys_ops sys_real;

/* Built on the table. */
int sys_mkdir_all(const char *path);                                    /* like mkdir -p, 0755 */
int sys_mkdir_parent(const char *path);                                 /* the same for the directory that holds it */
int sys_sync_dir(const char *path);
int sys_read_file(const char *path, size_t max, char **p, size_t *n);   /* NUL-terminated, malloc'd; MQ_ETOOBIG */
/* Replace a file so that a crash leaves the old or the new: write PATH.tmp, fsync, keep the old as PATH.bak, rename, fsync the
 * directory. */
int sys_replace_file(const char *path, const void *p, size_t n);
int sys_write_all(int fd, const void *p, size_t n, off_t off);
int sys_remove_tree(const char *path);
/* Names in a directory, sorted, without . and ..; *names is one malloc'd block: free(*names). */
int sys_list(const char *dir, char ***names, size_t *n);

#endif
