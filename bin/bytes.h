/* bytes.h: growing bytes for the pipe tools.  A tool that is out of memory says so and ends; nobody checks a return code. */
#ifndef BIN_BYTES_H
#define BIN_BYTES_H

#include <mq.h>

struct bytes {
	char *p;
	size_t n, cap;
};

/* Make room for `more` bytes behind the end and return where they go; the caller adds to n what it wrote. */
char *bytes_room(struct bytes *b, size_t more);
void bytes_add(struct bytes *b, const void *p, size_t n);
void bytes_str(struct bytes *b, const char *s);
void bytes_byte(struct bytes *b, char c);
void bytes_printf(struct bytes *b, const char *fmt, ...) MQ_PRINTF(2, 3);
void bytes_int(struct bytes *b, int64_t v);
/* Standard base64 with padding. */
void bytes_base64(struct bytes *b, struct mq_str s);
/* The reverse: false if `s` is no base64 (blanks are none); what was added stays. */
bool bytes_unbase64(struct bytes *b, struct mq_str s);
void bytes_hex(struct bytes *b, struct mq_str s);
/* Drop the first `n` bytes. */
void bytes_drop(struct bytes *b, size_t n);
void bytes_free(struct bytes *b);

static inline struct mq_str bytes_view(const struct bytes *b)
{
	return (struct mq_str){ b->p, b->n };
}

/* True if s is UTF-8 without NUL: what a JSON text can carry to any reader. */
bool bytes_is_text(struct mq_str s);

#endif
