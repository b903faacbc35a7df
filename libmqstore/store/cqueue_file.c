/* cqueue_file.c: the files of a consume queue: made, written, synced, removed.
 *
 * Entries are written, never put through a map, so that a full disk is an answer.  What is here looks only at what never
 * changes of a queue, and may run in another thread; two writers of the same entries write the same bytes. */
#include "../base/sys.h"
#include "cqueue_ext.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

char *cqueue_dir_in(const char *root, const struct mqstore_queue *q, char *out)
{
	snprintf(out, SEGMENT_PATH, "%s/%s/%d", root, q->topic->name, (int)q->id);
	return out;
}

char *cqueue_path_in(const char *root, const struct mqstore_queue *q, int64_t start, char *out)
{
	char dir[SEGMENT_PATH];

	return segment_path(cqueue_dir_in(root, q, dir), start, out);
}

char *cqueue_dir(const struct mqstore_queue *q, char *out)
{
	return cqueue_dir_in(q->all->dir, q, out);
}

char *cqueue_path(const struct mqstore_queue *q, int64_t start, char *out)
{
	return cqueue_path_in(q->all->dir, q, start, out);
}

static int full_or(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT ? MQ_EFULL : rc;
}

static int make_dirs(const struct mqstore_queue *q)
{
	char dir[SEGMENT_PATH];
	int rc;

	snprintf(dir, sizeof(dir), "%s/%s", q->all->dir, q->topic->name);
	rc = sys.mkdir(dir, 0755);
	if (rc == 0 || rc == -EEXIST)
		rc = sys.mkdir(cqueue_dir(q, dir), 0755);
	return rc == -EEXIST ? 0 : rc;
}

/* A descriptor of the file at `start`, which has its full length from the beginning. */
static int open_file(const struct mqstore_queue *q, int64_t start, bool *made)
{
	char path[SEGMENT_PATH];
	int fd, rc;

	cqueue_path(q, start, path);
	fd = sys.open(path, O_RDWR, 0);
	*made = fd == -ENOENT;
	if (!*made)
		return fd;
	fd = sys.open(path, O_RDWR | O_CREAT, 0644);
	if (fd == -ENOENT) {
		rc = make_dirs(q);
		fd = rc < 0 ? rc : sys.open(path, O_RDWR | O_CREAT, 0644);
	}
	if (fd < 0)
		return fd;
	rc = sys.ftruncate(fd, q->all->file_bytes);
	if (rc < 0) {
		sys.close(fd);
		sys.unlink(path);
		return rc;
	}
	return fd;
}

int cqueue_write(const struct mqstore_queue *q, int64_t from, int64_t to, const uint8_t *p)
{
	int64_t fb = q->all->file_bytes;
	int rc = 0;

	while (from < to && rc == 0) {
		int64_t start = from / fb * fb, end = to < start + fb ? to : start + fb;
		char path[SEGMENT_PATH];
		bool made;
		int fd = open_file(q, start, &made);

		if (fd < 0)
			return full_or(fd);
		rc = sys_write_all(fd, p, (size_t)(end - from), from - start);
		sys.close(fd);
		/* A file without entries would look as if they were lost. */
		if (rc < 0 && made)
			sys.unlink(cqueue_path(q, start, path));
		p += end - from;
		from = end;
	}
	return full_or(rc);
}

bool cqueue_makes_file(const struct mqstore_queue *q, int64_t from, int64_t to)
{
	int64_t fb = q->all->file_bytes;

	return from < to && (from % fb == 0 || from / fb != (to - 1) / fb);
}

int cqueue_spill(struct mqstore_queue *q)
{
	int rc;

	if (q->written >= q->pos)
		return 0;
	cqueue_ext_write_out(q);
	if (cqueue_makes_file(q, q->written, q->pos))
		q->named = false;
	rc = cqueue_write(q, q->written, q->pos, q->buf + (q->written - q->buf_from));
	if (rc < 0)
		return rc;
	q->written = q->pos;
	q->made = true;
	return 0;
}

int cqueue_sync(const struct mqstore_queue *q, int64_t from, int64_t to, bool name)
{
	int64_t fb = q->all->file_bytes;
	char path[SEGMENT_PATH], *slash;
	int rc = 0;

	for (int64_t start = from / fb * fb; start < to && rc == 0; start += fb)
		rc = segment_file_sync(cqueue_path(q, start, path), name);
	/* A new queue is known only when the names of its directory and its topic's are on the disk too. */
	cqueue_dir(q, path);
	for (int up = 0; up < 2 && name && rc == 0; up++) {
		slash = strrchr(path, '/');
		*slash = '\0';
		rc = sys_sync_dir(path);
		if (rc == -ENOENT)
			rc = 0;
	}
	return rc;
}

int cqueue_remove(const struct mqstore_queue *q)
{
	char dir[SEGMENT_PATH];
	int rc = sys_remove_tree(cqueue_dir(q, dir));

	if (rc < 0)
		return rc;
	*strrchr(dir, '/') = '\0';
	/* The topic's directory goes with its last queue. */
	sys.rmdir(dir);
	return cqueue_ext_remove(q);
}
