/* lock.c: one writer per store. */
#include "lock.h"
#include "../base/err.h"
#include "../base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

enum { STORES_MAX = 64 };

/* What this process holds; guarded by `guard`, for handles may live in different threads. */
static struct held {
	int fd;                 /* -1 = free place */
	dev_t dev;
	ino_t ino;
} held[STORES_MAX];
static int held_n;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static bool ours(const struct stat *st)
{
	for (int i = 0; i < held_n; i++)
		if (held[i].dev == st->st_dev && held[i].ino == st->st_ino)
			return true;
	return false;
}

static int busy(const char *path, struct mq_error *err)
{
	return err_set(err, MQ_EBUSY, "'%s' is locked: the store is open for writing already", path);
}

static int take(const char *path, int *out, struct mq_error *err)
{
	struct stat st;
	int fd, rc;

	/* Before the file is opened: closing any descriptor of it would give up the lock that this process has. */
	if (sys.stat(path, &st) == 0 && ours(&st))
		return busy(path, err);
	if (held_n == STORES_MAX)
		return err_set(err, MQ_ETOOBIG, "more than %d stores open in one process", STORES_MAX);
	fd = sys.open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		return err_sys(err, fd, "open '%s'", path);
	rc = sys.lock(fd);
	if (rc == -EAGAIN) {
		sys.close(fd);
		return busy(path, err);
	}
	if (rc == 0)
		rc = sys.fstat(fd, &st);
	/* compat: the peer writes this word. */
	if (rc == 0 && st.st_size == 0)
		rc = sys_write_all(fd, "lock", 4, 0);
	if (rc < 0) {
		sys.close(fd);
		return err_sys(err, rc, "lock '%s'", path);
	}
	held[held_n++] = (struct held){ fd, st.st_dev, st.st_ino };
	*out = fd;
	return 0;
}

int lock_take(const char *path, int *fd, struct mq_error *err)
{
	int rc;

	pthread_mutex_lock(&guard);
	rc = take(path, fd, err);
	pthread_mutex_unlock(&guard);
	return rc;
}

void lock_release(int fd)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&guard);
	for (int i = 0; i < held_n; i++)
		if (held[i].fd == fd) {
			held[i] = held[--held_n];
			break;
		}
	sys.close(fd);
	pthread_mutex_unlock(&guard);
}

/* Asks by a descriptor of its own, which is closed again: not while this process has the lock, for that would give it up. */
bool lock_held(const char *path)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
	bool held_by = false;
	struct stat st;
	int fd;

	pthread_mutex_lock(&guard);
	if (sys.stat(path, &st) == 0 && ours(&st)) {
		held_by = true;
	} else {
		fd = sys.open(path, O_RDONLY, 0);
		if (fd >= 0) {
			held_by = fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK;
			sys.close(fd);
		}
	}
	pthread_mutex_unlock(&guard);
	return held_by;
}
