/* hash.c: Java's String.hashCode over the UTF-16 units that UTF-8 bytes stand for.
 *
 * Tag codes, index keys and key distribution of the peer all rest on it.  Bytes that are no UTF-8 count as U+FFFD, grouped
 * as the JDK's decoder groups them, because the peer hashes what it has decoded. */
#include "str.h"

static int32_t unit(int32_t h, uint32_t u)
{
	return (int32_t)(31u * (uint32_t)h + u);
}

static bool more(uint8_t b)
{
	return (b & 0xc0) == 0x80;
}

/* One character that does not begin with an ASCII byte, at p[i]; returns the place of the next. */
static size_t beyond_ascii(const uint8_t *p, size_t i, size_t n, int32_t *h)
{
	size_t left = n - i;
	uint8_t a = p[i];

	if (a >= 0xc2 && a < 0xe0) {
		if (left >= 2 && more(p[i + 1])) {
			*h = unit(*h, (a & 0x1fu) << 6 | (p[i + 1] & 0x3f));
			return i + 2;
		}
	} else if (a >= 0xe0 && a < 0xf0) {
		bool second = left >= 2 && more(p[i + 1]) && !(a == 0xe0 && p[i + 1] < 0xa0);

		if (second && left >= 3 && more(p[i + 2])) {
			uint32_t u = (a & 0x0fu) << 12 | (p[i + 1] & 0x3fu) << 6 | (p[i + 2] & 0x3f);

			*h = unit(*h, u >= 0xd800 && u < 0xe000 ? 0xfffd : u);
			return i + 3;
		}
		if (second) {
			*h = unit(*h, 0xfffd);
			return i + 2;
		}
	} else if (a >= 0xf0 && a < 0xf5) {
		bool second = left >= 2 && more(p[i + 1]) && !(a == 0xf0 && p[i + 1] < 0x90) &&
			      !(a == 0xf4 && p[i + 1] > 0x8f);
		bool third = second && left >= 3 && more(p[i + 2]);

		if (third && left >= 4 && more(p[i + 3])) {
			uint32_t u = ((a & 7u) << 18 | (p[i + 1] & 0x3fu) << 12 | (p[i + 2] & 0x3fu) << 6 | (p[i + 3] & 0x3f)) -
				     0x10000;

			*h = unit(unit(*h, 0xd800 | u >> 10), 0xdc00 | (u & 0x3ff));
			return i + 4;
		}
		if (second) {
			*h = unit(*h, 0xfffd);
			return i + (third ? 3 : 2);
		}
	}
	*h = unit(*h, 0xfffd);
	return i + 1;
}

int32_t str_java_hash_more(int32_t h, struct mq_str s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	size_t i = 0;

	while (i < s.n) {
		uint32_t four;

		/* Four ASCII bytes at once: one multiplication in the chain instead of four. */
		if (s.n - i >= 4) {
			memcpy(&four, p + i, 4);
			if (!(four & 0x80808080)) {
				h = (int32_t)(923521u * (uint32_t)h + 29791u * p[i] + 961u * p[i + 1] + 31u * p[i + 2] + p[i + 3]);
				i += 4;
				continue;
			}
		}
		if (p[i] < 0x80)
			h = unit(h, p[i++]);
		else
			i = beyond_ascii(p, i, s.n, &h);
	}
	return h;
}

int32_t str_java_hash(struct mq_str s)
{
	return str_java_hash_more(0, s);
}
