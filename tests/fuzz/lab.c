/* lab.c: see lab.h. */
#include "lab.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sys.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *dir;

void lab_wrong(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, what);
	abort();
}

static void swallow(void *arg, enum log_level l, const char *text)
{
}

void lab_quiet(void)
{
	log_to(swallow, NULL);
}

static void leave(void)
{
	sys_remove_tree(dir);
	free(dir);
	dir = NULL;
}

const char *lab_dir(void)
{
	const char *base = getenv("TMPDIR");

	if (dir)
		return dir;
	if (!base)
		base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	dir = mem_printf("%s/mq-fuzz-XXXXXX", base);
	if (!mkdtemp(dir)) {
		perror(dir);
		exit(2);
	}
	atexit(leave);
	return dir;
}

char *lab_path(const char *fmt, ...)
{
	static char ring[16][1024];
	static unsigned next;
	char *p = ring[next++ % 16];
	size_t n = (size_t)snprintf(p, sizeof(ring[0]), "%s/", lab_dir());
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p + n, sizeof(ring[0]) - n, fmt, ap);
	va_end(ap);
	return p;
}

void lab_write(const char *path, const void *p, size_t n, size_t size)
{
	int fd = sys.open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	LAB_CHECK(fd >= 0);
	LAB_CHECK(sys_write_all(fd, p, n, 0) == 0);
	if (size)
		LAB_CHECK(sys.ftruncate(fd, (off_t)size) == 0);
	sys.close(fd);
}

char *lab_copy(const void *p, size_t n)
{
	char *copy = malloc(n ? n : 1);

	if (n)
		memcpy(copy, p, n);
	return copy;
}
