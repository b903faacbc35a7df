/* bloom.c: size and bit positions of the peer's Bloom filter: the first half of MurmurHash3 x64 128 (seed 0), taken apart.
 * Source: the peer's filter.util.BloomFilter. */
#include "bloom.h"
#include <endian.h>
#include <math.h>
#include <string.h>

struct bloom bloom_make(int32_t error_percent, int32_t consumers)
{
	double rate = error_percent / 100.0;
	int32_t bits = (int32_t)ceil(consumers * (log(1 / rate) / log(2)) * (1 / log(2)));

	return (struct bloom){ .bits = (bits + 7) / 8 * 8, .hashes = (int32_t)ceil(log(rate) / log(0.5)) };
}

static uint64_t rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

static uint64_t murmur(struct mq_str s)
{
	const uint64_t c1 = 0x87c37b91114253d5ULL, c2 = 0x4cf5ad432745937fULL;
	uint64_t h1 = 0, h2 = 0, k[2];
	size_t left = s.n;

	for (const char *p = s.p; left >= 16; p += 16, left -= 16) {
		memcpy(k, p, 16);
		h1 ^= rotate(le64toh(k[0]) * c1, 31) * c2;
		h1 = (rotate(h1, 27) + h2) * 5 + 0x52dce729;
		h2 ^= rotate(le64toh(k[1]) * c2, 33) * c1;
		h2 = (rotate(h2, 31) + h1) * 5 + 0x38495ab5;
	}
	memset(k, 0, sizeof k);
	if (left)
		memcpy(k, s.p + s.n - left, left);
	h2 ^= rotate(le64toh(k[1]) * c2, 33) * c1;
	h1 ^= rotate(le64toh(k[0]) * c1, 31) * c2;
	h1 ^= s.n;
	h2 ^= s.n;
	h1 += h2;
	h2 += h1;
	return mix(h1) + mix(h2);
}

void bloom_positions(const struct bloom *b, struct mq_str text, int32_t *at)
{
	uint64_t h = murmur(text);

	for (uint32_t i = 1; i <= (uint32_t)b->hashes; i++) {
		int32_t x = (int32_t)((uint32_t)h + i * (uint32_t)(h >> 32));

		at[i - 1] = (x < 0 ? ~x : x) % b->bits;
	}
}
