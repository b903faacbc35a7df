/* hash.h: uthash over byte strings, with a hash that reads eight bytes at a time. */
#ifndef BROKER_HASH_H
#define BROKER_HASH_H

#include <mq.h>
#include <string.h>

static inline unsigned hash_bytes(const void *key, size_t n)
{
	const unsigned char *p = key;
	uint64_t h = n * 0x9e3779b97f4a7c15u, v;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&v, p, 8);
		h = (h ^ v) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	v = 0;
	if (n)
		memcpy(&v, p, n);      /* an empty key may have no address */
	h = (h ^ v) * 0xc4ceb9fe1a85ec53u;
	return (unsigned)(h ^ h >> 32);
}
#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = hash_bytes((keyptr), (keylen)))
#include <uthash.h>

#endif
