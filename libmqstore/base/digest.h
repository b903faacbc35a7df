/* digest.h: 64 bits for a string of bytes, eight of them at a time.
 *
 * What differs looks different in all likelihood; nobody is kept from making it look the same.  Never stored. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t digest_of(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = n * 0x9e3779b97f4a7c15u, v;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&v, p, 8);
		h = (h ^ v) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	v = 0;
	if (n)
		memcpy(&v, p, n);      /* no bytes may have no address */
	h = (h ^ v) * 0xc4ceb9fe1a85ec53u;
	/* A product carries bits upwards only: without the second one the low bits, by which tables are indexed, would know nothing of
	 * the last three bytes. */
	h = (h ^ h >> 32) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

#endif
