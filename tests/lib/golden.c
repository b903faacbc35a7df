/* golden.c: finds tests/golden from $MQ_SRC (set by make check), or from where this file was compiled. */
#include "golden.h"
#include "base/sys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { GOLDEN_MAX = 64 * 1024 * 1024 };

static void golden_path(const char *name, char *out, size_t cap)
{
	const char *src = getenv("MQ_SRC"), *here = strstr(__FILE__, "tests/lib/golden.c");

	if (src)
		snprintf(out, cap, "%s/tests/golden/%s", src, name);
	else
		snprintf(out, cap, "%.*stests/golden/%s", (int)(here - __FILE__), __FILE__, name);
}

char *golden_read(const char *name, size_t *n)
{
	char path[1024], *text, *exact;

	golden_path(name, path, sizeof(path));
	if (sys_read_file(path, GOLDEN_MAX, &text, n) < 0)
		fail_msg("cannot read '%s'", path);
	exact = malloc(*n ? *n : 1);
	memcpy(exact, text, *n);
	free(text);
	return exact;
}

size_t golden_each(const char *dir, void (*cb)(void *arg, const char *name, const char *bytes, size_t n), void *arg)
{
	char path[1024], name[600], **names;
	size_t count, n;

	golden_path(dir, path, sizeof(path));
	if (sys_list(path, &names, &count) < 0)
		fail_msg("cannot list '%s'", path);
	for (size_t i = 0; i < count; i++) {
		char *bytes;

		snprintf(name, sizeof(name), "%s/%s", dir, names[i]);
		bytes = golden_read(name, &n);
		cb(arg, name, bytes, n);
		free(bytes);
	}
	free(names);
	return count;
}
