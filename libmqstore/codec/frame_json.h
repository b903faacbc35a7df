/* frame_json.h: the JSON header of a frame, scanned in place. */
#ifndef CODEC_FRAME_JSON_H
#define CODEC_FRAME_JSON_H

#include "frame.h"
#include <string.h>

/* memmove() without the call for what most names and values are, up to 32 bytes: all is read before anything is written. */
static inline char *frame_move(char *to, const char *from, size_t n)
{
	uint64_t a, b, c, d;
	uint32_t e, f;

	if (n > 32) {
		memmove(to, from, n);
	} else if (n >= 16) {
		memcpy(&a, from, 8);
		memcpy(&b, from + 8, 8);
		memcpy(&c, from + n - 16, 8);
		memcpy(&d, from + n - 8, 8);
		memcpy(to, &a, 8);
		memcpy(to + 8, &b, 8);
		memcpy(to + n - 16, &c, 8);
		memcpy(to + n - 8, &d, 8);
	} else if (n >= 8) {
		memcpy(&a, from, 8);
		memcpy(&b, from + n - 8, 8);
		memcpy(to, &a, 8);
		memcpy(to + n - 8, &b, 8);
	} else if (n >= 4) {
		memcpy(&e, from, 4);
		memcpy(&f, from + n - 4, 4);
		memcpy(to, &e, 4);
		memcpy(to + n - 4, &f, 4);
	} else if (n) {
		char first = from[0], middle = from[n >> 1], last = from[n - 1];

		to[0] = first;
		to[n >> 1] = middle;
		to[n - 1] = last;
	}
	return to + n;
}

/* Fill all but type and body of *f from the n header bytes at p, which are changed where strings have escapes. */
int frame_json_parse(char *p, size_t n, struct frame *f, struct mq_error *e);
/* First byte of [p, end) that JSON cannot hold as it is inside a string (", \, below 0x20), else end. */
const char *frame_json_special(const char *p, const char *end);

#endif
