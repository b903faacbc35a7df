/* ring.h: a queue in memory that grows: items of one size, added behind, taken in front, looked at by their number.
 *
 * The owner says the size of an item with each call, always the same.  It frees with ring_free().  Items move when the ring
 * grows: a pointer to one is good until the next ring_push(). */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stddef.h>

/* Zeroed is empty. */
struct ring {
	char *v;
	size_t at, n;       /* the first item, how many there are */
	size_t cap;         /* a power of two */
};

/* Item i, 0 = the first; i < r->n. */
static inline void *ring_item(const struct ring *r, size_t size, size_t i)
{
	return r->v + ((r->at + i) & (r->cap - 1)) * size;
}

/* NULL: it is empty. */
static inline void *ring_first(const struct ring *r, size_t size)
{
	return r->n ? ring_item(r, size, 0) : NULL;
}

/* A new last item; what is in it is to be written over. */
void *ring_push(struct ring *r, size_t size);
/* The first leaves; there is one. */
static inline void ring_pop(struct ring *r)
{
	r->at = (r->at + 1) & (r->cap - 1);
	r->n--;
}
void ring_free(struct ring *r);

#endif
