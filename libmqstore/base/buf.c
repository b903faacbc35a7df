/* buf.c: bytes that grow.  Never shrinks by itself: owners of long-lived buffers decide when to give memory back. */
#include "buf.h"
#include "mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUF_FIRST = 256 };

void buf_grow(struct buf *b, size_t more)
{
	size_t need, cap;

	if (__builtin_add_overflow(b->n, more, &need))
		need = SIZE_MAX;
	if (need <= b->cap)
		return;
	cap = b->cap < BUF_FIRST ? BUF_FIRST : b->cap;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	b->p = mem_realloc(b->p, cap);
	b->cap = cap;
}

void buf_free(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ 0 };
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	size_t room = b->cap - b->n;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(room ? b->p + b->n : NULL, room, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= room) {
		buf_grow(b, (size_t)n + 1);
		va_start(ap, fmt);
		vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	b->n += (size_t)n;
}

void buf_drop(struct buf *b, size_t n)
{
	if (n >= b->n) {
		b->n = 0;
		return;
	}
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

void buf_i64(struct buf *b, int64_t v)
{
	char digits[20], *p = digits + sizeof(digits);
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;

	do {
		*--p = (char)('0' + u % 10);
		u /= 10;
	} while (u);
	if (v < 0)
		*--p = '-';
	buf_put(b, p, (size_t)(digits + sizeof(digits) - p));
}
