/* buf.h: bytes that grow. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <mq.h>
#include <string.h>

struct buf {
	char *p;
	size_t n;    /* bytes used */
	size_t cap;
};

void buf_grow(struct buf *b, size_t more);                 /* make room for `more` bytes behind n */
void buf_free(struct buf *b);                              /* and zero it */
void buf_printf(struct buf *b, const char *fmt, ...) MQ_PRINTF(2, 3);
void buf_drop(struct buf *b, size_t n);                    /* remove n bytes from the front */
void buf_i64(struct buf *b, int64_t v);                    /* decimal */

/* Room for n bytes at the end; the caller writes there and adds to b->n. */
static inline char *buf_room(struct buf *b, size_t n)
{
	if (b->cap - b->n < n)
		buf_grow(b, n);
	return b->p + b->n;
}
static inline void buf_put(struct buf *b, const void *p, size_t n)
{
	if (n) {
		memcpy(buf_room(b, n), p, n);
		b->n += n;
	}
}
static inline void buf_str(struct buf *b, struct mq_str s) { buf_put(b, s.p, s.n); }
static inline void buf_cstr(struct buf *b, const char *s) { buf_put(b, s, strlen(s)); }
static inline void buf_char(struct buf *b, char c) { *buf_room(b, 1) = c; b->n++; }
static inline struct mq_str buf_view(const struct buf *b) { return (struct mq_str){ b->p, b->n }; }

#endif
