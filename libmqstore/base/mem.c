/* mem.c: memory that is there or the process ends.  Bounds are the callers' business. */
#include "mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p, size_t n)
{
	if (!p && n) {
		fprintf(stderr, "ERROR mem out of memory bytes=%zu\n", n);
		abort();
	}
	return p;
}

void *mem_alloc(size_t n)
{
	return checked(calloc(1, n), n);
}

void *mem_realloc(void *p, size_t n)
{
	return checked(realloc(p, n), n);
}

char *mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

char *mem_strndup(const char *p, size_t n)
{
	char *s = checked(malloc(n + 1), n + 1);

	if (n)
		memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

char *mem_printf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? checked(NULL, 1) : s;
}
