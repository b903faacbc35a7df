/* names.h: a sorted list of names, as a directory shows them. */
#ifndef MQFS_NAMES_H
#define MQFS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct names {
	char **v;
	size_t n, cap;
};

void names_add(struct names *l, const char *name);
void names_printf(struct names *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sort, and leave each in once. */
void names_sort(struct names *l);
bool names_has(const struct names *l, const char *name); /* sorted */
void names_copy(struct names *to, const struct names *from);
void names_free(struct names *l);

#endif
