/* tempdir.c: a fresh directory per test. */
#include "tempdir.h"

#include "base/mem.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>

int tempdir_make(void **state)
{
	const char *base = getenv("TMPDIR");
	char *path = mem_printf("%s/mq-test-XXXXXX", base ? base : "/tmp");

	*state = mkdtemp(path);
	return *state ? 0 : -1;
}

int tempdir_remove(void **state)
{
	int rc = sys_remove_tree(*state);

	free(*state);
	return rc;
}

const char *tempdir_path(void *state, const char *name)
{
	static char ring[16][512];
	static unsigned next;
	char *p = ring[next++ % 16];

	snprintf(p, sizeof(ring[0]), "%s/%s", (const char *)state, name);
	return p;
}

void tempdir_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
		perror(path);
		abort();
	}
}

char *tempdir_read(const char *path)
{
	char *p;
	size_t n;

	return sys_read_file(path, SIZE_MAX / 2, &p, &n) == 0 ? p : NULL;
}
