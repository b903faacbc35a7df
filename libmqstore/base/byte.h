/* byte.h: big-endian integers, and a cursor that cannot run past its end. */
#ifndef BASE_BYTE_H
#define BASE_BYTE_H

#include <mq.h>
#include <string.h>

static inline uint16_t be16(const void *p) { uint16_t v; memcpy(&v, p, 2); return __builtin_bswap16(v); }
static inline uint32_t be32(const void *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
static inline uint64_t be64(const void *p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
static inline void put_be16(void *p, uint16_t v) { v = __builtin_bswap16(v); memcpy(p, &v, 2); }
static inline void put_be32(void *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
static inline void put_be64(void *p, uint64_t v) { v = __builtin_bswap64(v); memcpy(p, &v, 8); }

/* Read front to back.  A read past the end gives 0 or an empty view and sets `bad` for good; check it once at the end. */
struct cursor {
	const uint8_t *p, *end;
	bool bad;
};
static inline struct cursor cursor_of(const void *p, size_t n) { return (struct cursor){ p, (const uint8_t *)p + n, false }; }
static inline size_t cursor_left(const struct cursor *c) { return (size_t)(c->end - c->p); }
static inline const uint8_t *cursor_take(struct cursor *c, size_t n)
{
	if (c->bad || cursor_left(c) < n) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return c->p - n;
}
static inline uint8_t cursor_u8(struct cursor *c) { const uint8_t *p = cursor_take(c, 1); return p ? *p : 0; }
static inline uint16_t cursor_u16(struct cursor *c) { const uint8_t *p = cursor_take(c, 2); return p ? be16(p) : 0; }
static inline uint32_t cursor_u32(struct cursor *c) { const uint8_t *p = cursor_take(c, 4); return p ? be32(p) : 0; }
static inline uint64_t cursor_u64(struct cursor *c) { const uint8_t *p = cursor_take(c, 8); return p ? be64(p) : 0; }
static inline struct mq_str cursor_str(struct cursor *c, size_t n)
{
	const uint8_t *p = cursor_take(c, n);
	return (struct mq_str){ (const char *)p, p ? n : 0 };
}

#endif
