/* mem.h: memory that is there or the process ends.
 *
 * Every length that a peer or a file can choose is checked against a named bound before it gets here, so running out means
 * that the machine is out of memory: the process says so on stderr and aborts rather than limp on. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t n);              /* zeroed */
void *mem_realloc(void *p, size_t n);   /* new part not zeroed */
char *mem_strdup(const char *s);
char *mem_strndup(const char *p, size_t n);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
