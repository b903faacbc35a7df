/* bloom.h: the bits of a consumer in the peer's Bloom filter over messages: which groups' SQL filters a message passes.  The numbers
 * also belong in consumerFilter.json, which the peer throws away whole when they are not those that it would choose.
 * Source: the peer's filter.util.BloomFilter. */
#ifndef BROKER_BLOOM_H
#define BROKER_BLOOM_H

#include <mq.h>

enum { BLOOM_HASHES_MAX = 7 };
struct bloom {
	int32_t bits, hashes;   /* hashes <= BLOOM_HASHES_MAX */
};

/* For an error of 1 to 99 percent with so many consumers. */
struct bloom bloom_make(int32_t error_percent, int32_t consumers);
/* Where `text` has its bits: hashes numbers. */
void bloom_positions(const struct bloom *b, struct mq_str text, int32_t *at);

static inline size_t bloom_bytes(const struct bloom *b) { return (size_t)b->bits / 8; }
static inline void bloom_set(const struct bloom *b, const int32_t *at, uint8_t *bits)
{
	for (int32_t i = 0; i < b->hashes; i++)
		bits[at[i] / 8] |= (uint8_t)(1 << at[i] % 8);
}
/* Are all of them set?  If not, the message does not pass. */
static inline bool bloom_hit(const struct bloom *b, const int32_t *at, const uint8_t *bits)
{
	for (int32_t i = 0; i < b->hashes; i++)
		if (!(bits[at[i] / 8] & 1 << at[i] % 8))
			return false;
	return true;
}

#endif
