/* golden.h: the files in tests/golden, which real programs of the peer wrote. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <stddef.h>

/* The bytes of tests/golden/NAME, malloc'd to their exact size (so that a sanitizer sees a step beyond); fails the test if missing. */
char *golden_read(const char *name, size_t *n);
/* Every file of tests/golden/DIR in order of names; name is "DIR/FILE".  Returns how many. */
size_t golden_each(const char *dir, void (*cb)(void *arg, const char *name, const char *bytes, size_t n), void *arg);

#endif
