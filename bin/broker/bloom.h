/* bloom.h: the bits of a consumer in the peer's Bloom filter over messages.  We set none; the numbers belong in consumerFilter.json,
 * which the peer throws away whole when they are not those that it would choose. */
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

#endif
