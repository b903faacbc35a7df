/* ring.c: see ring.h. */
#include "ring.h"
#include "mem.h"
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 };

static void grow(struct ring *r, size_t size)
{
	size_t cap = r->cap ? r->cap * 2 : FIRST_CAP, behind = r->cap - r->at;
	char *v = mem_alloc(cap * size);

	/* Called when it is full: the first to the end of the old place, then what had gone round. */
	if (r->n) {
		memcpy(v, r->v + r->at * size, behind * size);
		memcpy(v + behind * size, r->v, r->at * size);
	}
	free(r->v);
	r->v = v;
	r->cap = cap;
	r->at = 0;
}

void *ring_push(struct ring *r, size_t size)
{
	if (r->n == r->cap)
		grow(r, size);
	r->n++;
	return ring_item(r, size, r->n - 1);
}

void ring_free(struct ring *r)
{
	free(r->v);
	*r = (struct ring){ 0 };
}
