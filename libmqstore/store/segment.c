/* segment.c: one file of fixed size, mapped whole.  Leaves runs of them to segments.c and the meaning of bytes to others. */
#include "segment.h"
#include "../base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, ZEROS = 64 * 1024 };

char *segment_path(const char *dir, int64_t start, char out[SEGMENT_PATH])
{
	snprintf(out, SEGMENT_PATH, "%s/%020lld", dir, (long long)start);
	return out;
}

int64_t segment_name(const char *name)
{
	int64_t v = 0;

	/* Below 9e18, so that a size can be added. */
	if (strlen(name) != SEGMENT_NAME || name[0] != '0' || name[1] > '8')
		return -1;
	for (const char *c = name; *c; c++) {
		if (*c < '0' || *c > '9')
			return -1;
		v = v * 10 + (*c - '0');
	}
	return v;
}

static int write_zeros(int fd, int64_t from, int64_t to)
{
	static const char zeros[ZEROS];
	int rc = 0;

	while (from < to && rc == 0) {
		size_t n = to - from < ZEROS ? (size_t)(to - from) : ZEROS;

		rc = sys_write_all(fd, zeros, n, from);
		from += (int64_t)n;
	}
	return rc;
}

static int reserve(int fd, int64_t from, int64_t to)
{
	int rc;

	if (from >= to)
		return 0;
	rc = sys.fallocate(fd, from, to - from);
	if (rc == -EOPNOTSUPP || rc == -ENOSYS || rc == -EINVAL)
		rc = write_zeros(fd, from, to);
	return rc == -ENOSPC || rc == -EDQUOT ? MQ_EFULL : rc;
}

int segment_file_make(const char *path, int64_t size, int64_t first, uint8_t **p)
{
	int fd = sys.open(path, O_RDWR | O_CREAT, 0644), rc;
	struct stat st;
	void *map;

	if (fd < 0)
		return fd == -ENOSPC || fd == -EDQUOT ? MQ_EFULL : fd;
	rc = sys.fstat(fd, &st);
	if (rc == 0 && st.st_size != 0 && st.st_size != size)
		rc = MQ_EMISMATCH;
	if (rc < 0)
		goto close_fd;
	if (st.st_size == 0)
		rc = sys.ftruncate(fd, size);
	if (rc == 0)
		rc = reserve(fd, 0, first < size ? first : size);
	if (rc == 0 && p) {
		rc = sys.mmap(fd, (size_t)size, true, &map);
		if (rc == 0)
			*p = map;
	}
	if (rc < 0 && st.st_size == 0)
		sys.unlink(path);
close_fd:
	sys.close(fd);
	return rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG ? MQ_EFULL : rc;
}

int segment_file_map(const char *path, int64_t size, bool write, uint8_t **p)
{
	int fd = sys.open(path, write ? O_RDWR : O_RDONLY, 0), rc;
	struct stat st;
	void *map;

	if (fd < 0)
		return fd;
	rc = sys.fstat(fd, &st);
	/* Reading a map behind the end of its file would kill us. */
	if (rc == 0 && st.st_size != size)
		rc = MQ_EMISMATCH;
	if (rc == 0)
		rc = sys.mmap(fd, (size_t)size, write, &map);
	if (rc == 0)
		*p = map;
	sys.close(fd);
	return rc;
}

void segment_expect(uint8_t *p, int64_t size, bool here_and_there)
{
	/* A hint: if it is refused, nothing is lost but time. */
	(void)madvise(p, (size_t)size, here_and_there ? MADV_RANDOM : MADV_NORMAL);
}

int segment_file_reserve(const char *path, int64_t from, int64_t to)
{
	int fd = sys.open(path, O_RDWR, 0), rc;

	if (fd < 0)
		return fd;
	rc = reserve(fd, from, to);
	sys.close(fd);
	return rc;
}

int segment_file_sync(const char *path, bool name)
{
	int fd = sys.open(path, O_RDONLY, 0), rc;
	char dir[SEGMENT_PATH], *slash;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	rc = name ? sys.fsync(fd) : sys.fdatasync(fd);
	sys.close(fd);
	if (rc < 0 || !name)
		return rc;
	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	rc = sys_sync_dir(dir);
	return rc == -ENOENT ? 0 : rc;
}

int segment_map(struct segment *g, const char *dir, bool write)
{
	char path[SEGMENT_PATH];

	return g->p ? 0 : segment_file_map(segment_path(dir, g->start, path), g->size, write, &g->p);
}

void segment_unmap(struct segment *g)
{
	if (g->p)
		sys.munmap(g->p, (size_t)g->size);
	g->p = NULL;
}

int segment_reserve(struct segment *g, const char *dir, int64_t from, int64_t to, int64_t wish)
{
	char path[SEGMENT_PATH];
	int rc;

	if (from < g->reserved)
		from = g->reserved;
	if (to <= from)
		return 0;
	segment_path(dir, g->start, path);
	wish = wish > g->size ? g->size : wish < to ? to : wish;
	rc = segment_file_reserve(path, from, wish);
	if (rc == MQ_EFULL && wish > to) {
		/* The disk is nearly full: use what is left of it. */
		wish = (to + PAGE - 1) / PAGE * PAGE;
		wish = wish > g->size ? g->size : wish;
		rc = segment_file_reserve(path, from, wish);
	}
	if (rc == 0)
		g->reserved = wish;
	return rc;
}

bool segment_resident(const struct segment *g, int64_t off, int64_t n)
{
	unsigned char in[64];
	int64_t at = off / PAGE * PAGE, end = off + n;

	if (!g->p)
		return false;
	while (at < end) {
		int64_t step = end - at < (int64_t)sizeof(in) * PAGE ? end - at : (int64_t)sizeof(in) * PAGE;

		if (sys.mincore(g->p + at, (size_t)step, in) < 0)
			return false;
		for (int64_t i = 0; i < (step + PAGE - 1) / PAGE; i++)
			if (!(in[i] & 1))
				return false;
		at += step;
	}
	return true;
}

int64_t segment_data(const struct segment *g, const char *dir, int64_t from, int64_t to)
{
	char path[SEGMENT_PATH];
	int64_t at;
	int fd;

	if (from >= to)
		return to;
	fd = sys.open(segment_path(dir, g->start, path), O_RDONLY, 0);
	if (fd < 0)
		return from;
	at = sys.seek_data(fd, from);
	sys.close(fd);
	if (at == -ENXIO)
		return to;
	return at < from ? from : at < to ? at : to;
}
