/* crc.h: CRC-32 (IEEE, as zlib), by carry-less multiplication where the processor has it. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_of(const void *p, size_t n);
uint32_t crc32_more(uint32_t crc, const void *p, size_t n);     /* go on from crc; 0 = start */
/* The same without special instructions: what the two above fall back to. */
uint32_t crc32_plain(uint32_t crc, const void *p, size_t n);
/* As the peer stores it: top bit cleared. */
static inline uint32_t crc32_peer(const void *p, size_t n) { return crc32_of(p, n) & 0x7fffffff; }

#endif
