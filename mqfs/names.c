/* names.c: see names.h. */
#include "names.h"
#include "../bin/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void names_add(struct names *l, const char *name)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		l->v = realloc(l->v, l->cap * sizeof(*l->v));
		if (!l->v)
			cli_die(CLI_SYSTEM, "out of memory");
	}
	l->v[l->n] = strdup(name);
	if (!l->v[l->n++])
		cli_die(CLI_SYSTEM, "out of memory");
}

void names_printf(struct names *l, const char *fmt, ...)
{
	char name[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	names_add(l, name);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void names_sort(struct names *l)
{
	size_t n = 0;

	if (!l->n)
		return;
	qsort(l->v, l->n, sizeof(*l->v), by_text);
	for (size_t i = 0; i < l->n; i++) {
		if (n && strcmp(l->v[i], l->v[n - 1]) == 0)
			free(l->v[i]);
		else
			l->v[n++] = l->v[i];
	}
	l->n = n;
}

bool names_has(const struct names *l, const char *name)
{
	return l->n && bsearch(&name, l->v, l->n, sizeof(*l->v), by_text);
}

void names_copy(struct names *to, const struct names *from)
{
	*to = (struct names){ 0 };
	for (size_t i = 0; i < from->n; i++)
		names_add(to, from->v[i]);
}

void names_free(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct names){ 0 };
}
