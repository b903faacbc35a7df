/* heap.h: a binary heap of timers, embedded in their owners, by due time. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_node {
	int64_t due;        /* any unit; smallest first */
	size_t at;          /* place + 1; 0 = not in a heap */
};
struct heap {
	struct heap_node **v;
	size_t n, cap;
};
void heap_push(struct heap *h, struct heap_node *n, int64_t due);
void heap_remove(struct heap *h, struct heap_node *n);          /* no-op if not in */
static inline struct heap_node *heap_top(const struct heap *h) { return h->n ? h->v[0] : NULL; }
void heap_free(struct heap *h);

#endif
