/* bytes.c: growing bytes, base64, hex, and whether bytes are text.  Knows nothing of messages. */
#include "bytes.h"
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
	cli_die(CLI_SYSTEM, "out of memory");
}

char *bytes_room(struct bytes *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 256;

	if (b->cap - b->n >= more)
		return b->p + b->n;
	while (cap - b->n < more) {
		if (cap > SIZE_MAX / 2)
			out_of_memory();
		cap *= 2;
	}
	b->p = realloc(b->p, cap);
	if (!b->p)
		out_of_memory();
	b->cap = cap;
	return b->p + b->n;
}

void bytes_add(struct bytes *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	memcpy(bytes_room(b, n), p, n);
	b->n += n;
}

void bytes_str(struct bytes *b, const char *s)
{
	bytes_add(b, s, strlen(s));
}

void bytes_byte(struct bytes *b, char c)
{
	*bytes_room(b, 1) = c;
	b->n++;
}

void bytes_printf(struct bytes *b, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	bytes_add(b, text, (size_t)n);
	free(text);
}

void bytes_int(struct bytes *b, int64_t v)
{
	char text[24], *p = text + sizeof(text);
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;

	do {
		*--p = (char)('0' + u % 10);
		u /= 10;
	} while (u);
	if (v < 0)
		*--p = '-';
	bytes_add(b, p, (size_t)(text + sizeof(text) - p));
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void bytes_base64(struct bytes *b, struct mq_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	char *out = bytes_room(b, (s.n + 2) / 3 * 4);
	size_t i;

	b->n += (s.n + 2) / 3 * 4;
	for (i = 0; i + 2 < s.n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];

		*out++ = base64_digits[v >> 18];
		*out++ = base64_digits[v >> 12 & 63];
		*out++ = base64_digits[v >> 6 & 63];
		*out++ = base64_digits[v & 63];
	}
	if (i < s.n) {
		uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < s.n ? (uint32_t)p[i + 1] << 8 : 0);

		*out++ = base64_digits[v >> 18];
		*out++ = base64_digits[v >> 12 & 63];
		*out++ = i + 1 < s.n ? base64_digits[v >> 6 & 63] : '=';
		*out++ = '=';
	}
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool bytes_unbase64(struct bytes *b, struct mq_str s)
{
	char *out = bytes_room(b, s.n / 4 * 3 + 1);
	size_t pad = 0;

	if (s.n % 4 != 0)
		return false;
	while (pad < 2 && pad < s.n && s.p[s.n - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < s.n; i += 4) {
		size_t have = i + 4 == s.n ? 4 - pad : 4;
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++) {
			int d = k < have ? base64_value(s.p[i + k]) : 0;

			if (d < 0)
				return false;
			v = v << 6 | (uint32_t)d;
		}
		*out++ = (char)(v >> 16);
		if (have > 2)
			*out++ = (char)(v >> 8);
		if (have > 3)
			*out++ = (char)v;
	}
	b->n = (size_t)(out - b->p);
	return true;
}

void bytes_hex(struct bytes *b, struct mq_str s)
{
	static const char digits[] = "0123456789abcdef";
	char *out = bytes_room(b, 2 * s.n);

	for (size_t i = 0; i < s.n; i++) {
		*out++ = digits[(unsigned char)s.p[i] >> 4];
		*out++ = digits[s.p[i] & 15];
	}
	b->n += 2 * s.n;
}

void bytes_drop(struct bytes *b, size_t n)
{
	if (n == 0)
		return;
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

void bytes_free(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){ 0 };
}

/* Bytes that follow the first one of a character, with the lowest second byte and the highest; 0 = no first byte. */
static size_t utf8_tail(unsigned char c, unsigned char *lo, unsigned char *hi)
{
	*lo = 0x80;
	*hi = 0xbf;
	if (c >= 0xc2 && c <= 0xdf)
		return 1;
	if (c == 0xe0)
		*lo = 0xa0; /* no long forms */
	if (c == 0xed)
		*hi = 0x9f; /* no surrogates */
	if (c >= 0xe0 && c <= 0xef)
		return 2;
	if (c == 0xf0)
		*lo = 0x90;
	if (c == 0xf4)
		*hi = 0x8f; /* up to U+10FFFF */
	return c >= 0xf0 && c <= 0xf4 ? 3 : 0;
}

bool bytes_is_text(struct mq_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t i = 0;

	while (i < s.n) {
		unsigned char lo, hi;
		size_t tail;
		uint64_t eight;

		while (i + 8 <= s.n) { /* eight at once while they are ASCII and none is NUL */
			memcpy(&eight, p + i, 8);
			if ((eight | ((eight - 0x0101010101010101u) & ~eight)) & 0x8080808080808080u)
				break;
			i += 8;
		}
		if (i == s.n)
			break;
		if (p[i] == 0)
			return false;
		if (p[i] < 0x80) {
			i++;
			continue;
		}
		tail = utf8_tail(p[i], &lo, &hi);
		if (tail == 0 || s.n - i <= tail || p[i + 1] < lo || p[i + 1] > hi)
			return false;
		for (size_t k = 2; k <= tail; k++)
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
		i += tail + 1;
	}
	return true;
}
