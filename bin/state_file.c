/* state_file.c: replaces small files so that a crash leaves a whole one.  Knows nothing of what is in them. */
#include "state_file.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_MAX ((size_t)64 << 20) /* what is bigger is none of ours */

static int failed(struct mq_error *err, const char *doing, const char *path)
{
	err->code = -errno;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), "%s '%.300s': %s", doing, path, strerror(errno));
	return err->code;
}

int state_file_read(const char *path, struct bytes *b, struct mq_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	ssize_t k;

	b->n = 0;
	if (fd < 0 && errno == ENOENT) {
		failed(err, "open", path);
		err->code = MQ_ENOTFOUND;
		return MQ_ENOTFOUND;
	}
	if (fd < 0)
		return failed(err, "open", path);
	while ((k = read(fd, bytes_room(b, 65536), 65535)) != 0) {
		if (k < 0 && errno == EINTR)
			continue;
		if (k > 0)
			b->n += (size_t)k;
		if (b->n > STATE_MAX)
			errno = EFBIG;
		if (k < 0 || b->n > STATE_MAX) {
			rc = failed(err, "read", path);
			break;
		}
	}
	close(fd);
	*bytes_room(b, 1) = '\0';
	return rc;
}

static int write_all(int fd, struct mq_str s)
{
	while (s.n > 0) {
		ssize_t k = write(fd, s.p, s.n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		s.p += k;
		s.n -= (size_t)k;
	}
	return 0;
}

static int sync_dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	int fd, rc;

	if (!dir)
		cli_die(CLI_SYSTEM, "out of memory");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(dir);
	if (fd < 0)
		return -1;
	rc = fsync(fd);
	close(fd);
	return rc;
}

int state_file_write(const char *path, struct mq_str text, struct mq_error *err)
{
	char *aside;
	int fd, rc = 0;

	if (asprintf(&aside, "%s.new", path) < 0)
		cli_die(CLI_SYSTEM, "out of memory");
	fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0) {
		rc = failed(err, "open", aside);
		goto free_name;
	}
	if (write_all(fd, text) != 0 || fdatasync(fd) != 0) {
		rc = failed(err, "write", aside);
		close(fd);
		unlink(aside);
		goto free_name;
	}
	if (close(fd) != 0 || rename(aside, path) != 0 || sync_dir_of(path) != 0)
		rc = failed(err, "replace", path);
free_name:
	free(aside);
	return rc;
}

/* ---- Where they live by themselves --------------------------------------------------------------------------------------- */

static int make_dirs(char *path, struct mq_error *err)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		int rc;

		*p = '\0';
		rc = mkdir(path, 0700) != 0 && errno != EEXIST ? failed(err, "make directory", path) : 0;
		*p = '/';
		if (rc != 0)
			return rc;
	}
	return 0;
}

char *state_file_home(const char *dir, const char *name, struct mq_error *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path;
	int n;

	if (state && *state)
		n = asprintf(&path, "%s/mq/%s/%s", state, dir, name);
	else
		n = asprintf(&path, "%s/.local/state/mq/%s/%s", home ? home : "", dir, name);
	if (n < 0)
		cli_die(CLI_SYSTEM, "out of memory");
	if (make_dirs(path, err) == 0)
		return path;
	free(path);
	return NULL;
}

int state_file_lock(const char *path, struct mq_error *err)
{
	char *lock;
	int fd, rc = 0;

	if (asprintf(&lock, "%s.lock", path) < 0)
		cli_die(CLI_SYSTEM, "out of memory");
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		rc = failed(err, "open", lock);
	} else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		rc = failed(err, "lock", lock);
		close(fd);
		if (rc == -EWOULDBLOCK) {
			err->code = rc = MQ_EBUSY;
			snprintf(err->text, sizeof(err->text),
			         "'%.300s' is in use by another process: --resume FILE names another file", path);
		}
	}
	free(lock); /* the descriptor stays open as long as we live */
	return rc;
}
