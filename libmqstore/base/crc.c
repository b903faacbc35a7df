/* crc.c: CRC-32 with the reflected polynomial 0xEDB88320, of a body per message sent: the hot path.
 *
 * Two ways, chosen once when the program starts: folding 64 bytes at a time with PCLMULQDQ (method and constants: Gopal et
 * al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009), or eight tables. */
#include "crc.h"

#include <string.h>

static uint32_t table[8][256];

uint32_t crc32_plain(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint32_t c = ~crc;

	for (; n >= 8; n -= 8, p += 8) {
		uint32_t lo, hi;

		memcpy(&lo, p, 4);
		memcpy(&hi, p + 4, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		lo = __builtin_bswap32(lo);
		hi = __builtin_bswap32(hi);
#endif
		lo ^= c;
		c = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^ table[5][lo >> 16 & 0xff] ^ table[4][lo >> 24] ^
		    table[3][hi & 0xff] ^ table[2][hi >> 8 & 0xff] ^ table[1][hi >> 16 & 0xff] ^ table[0][hi >> 24];
	}
	while (n--)
		c = table[0][(c ^ *p++) & 0xff] ^ c >> 8;
	return ~c;
}

#if defined(__x86_64__)
#include <immintrin.h>

static int has_clmul;

/* x := x * (constants of the distance) + next 16 bytes */
__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i x, __m128i k, __m128i next)
{
	return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next);
}

/* n >= 16 and a multiple of 16; c is the inverted checksum so far, as is the result. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t fold_all(uint32_t c, const uint8_t *p, size_t n)
{
	const __m128i by64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);        /* x^(512-32), x^(512+32) mod P */
	const __m128i by16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);        /* x^(128-32), x^(128+32) mod P */
	const __m128i by8 = _mm_set_epi64x(0, 0x0163cd6124);                    /* x^64 mod P */
	const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);     /* floor(x^64 / P), P */
	const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
	__m128i x, y;

#define LOAD(i) _mm_loadu_si128((const __m128i *)(p + (i)))
	x = _mm_xor_si128(LOAD(0), _mm_cvtsi32_si128((int)c));
	if (n >= 64) {
		__m128i x1 = LOAD(16), x2 = LOAD(32), x3 = LOAD(48);

		for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
			x = fold(x, by64, LOAD(0));
			x1 = fold(x1, by64, LOAD(16));
			x2 = fold(x2, by64, LOAD(32));
			x3 = fold(x3, by64, LOAD(48));
		}
		x = fold(fold(fold(x, by16, x1), by16, x2), by16, x3);
	} else {
		p += 16;
		n -= 16;
	}
	for (; n >= 16; p += 16, n -= 16)
		x = fold(x, by16, LOAD(0));
#undef LOAD
	/* 128 bits to 64, then to 32 (Barrett) */
	x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by16, 0x10));
	y = _mm_clmulepi64_si128(_mm_and_si128(x, low32), by8, 0x00);
	x = _mm_xor_si128(_mm_srli_si128(x, 4), y);
	y = _mm_clmulepi64_si128(_mm_and_si128(x, low32), barrett, 0x10);
	y = _mm_clmulepi64_si128(_mm_and_si128(y, low32), barrett, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, y), 1);
}

uint32_t crc32_more(uint32_t crc, const void *p, size_t n)
{
	size_t whole = n & ~(size_t)15;

	if (!has_clmul || whole == 0)
		return crc32_plain(crc, p, n);
	crc = ~fold_all(~crc, p, whole);
	return n > whole ? crc32_plain(crc, (const uint8_t *)p + whole, n - whole) : crc;
}
#else
uint32_t crc32_more(uint32_t crc, const void *p, size_t n)
{
	return crc32_plain(crc, p, n);
}
#endif

uint32_t crc32_of(const void *p, size_t n)
{
	return crc32_more(0, p, n);
}

__attribute__((constructor)) static void prepare(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
		table[0][i] = c;
	}
	for (int t = 1; t < 8; t++)
		for (int i = 0; i < 256; i++)
			table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
#if defined(__x86_64__)
	__builtin_cpu_init();
	has_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}
