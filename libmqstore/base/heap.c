/* heap.c: a binary heap over pointers to nodes that their owners hold; each node knows its place, so removal is O(log n). */
#include "heap.h"
#include "mem.h"

#include <stdlib.h>

static void put(struct heap *h, size_t i, struct heap_node *n)
{
	h->v[i] = n;
	n->at = i + 1;
}

static void sift_up(struct heap *h, size_t i, struct heap_node *n)
{
	while (i > 0) {
		size_t up = (i - 1) / 2;

		if (h->v[up]->due <= n->due)
			break;
		put(h, i, h->v[up]);
		i = up;
	}
	put(h, i, n);
}

static void sift_down(struct heap *h, size_t i, struct heap_node *n)
{
	for (;;) {
		size_t kid = 2 * i + 1;

		if (kid >= h->n)
			break;
		if (kid + 1 < h->n && h->v[kid + 1]->due < h->v[kid]->due)
			kid++;
		if (n->due <= h->v[kid]->due)
			break;
		put(h, i, h->v[kid]);
		i = kid;
	}
	put(h, i, n);
}

void heap_push(struct heap *h, struct heap_node *n, int64_t due)
{
	heap_remove(h, n);
	n->due = due;
	if (h->n == h->cap) {
		h->cap = h->cap ? h->cap * 2 : 16;
		h->v = mem_realloc(h->v, h->cap * sizeof(*h->v));
	}
	sift_up(h, h->n++, n);
}

void heap_remove(struct heap *h, struct heap_node *n)
{
	size_t i = n->at;
	struct heap_node *last;

	if (!i--)
		return;
	n->at = 0;
	last = h->v[--h->n];
	if (last == n)
		return;
	/* The last node takes the free place, and moves whichever way its due time wants. */
	if (i > 0 && last->due < h->v[(i - 1) / 2]->due)
		sift_up(h, i, last);
	else
		sift_down(h, i, last);
}

void heap_free(struct heap *h)
{
	free(h->v);
	*h = (struct heap){ 0 };
}
