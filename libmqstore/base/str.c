/* str.c: views of bytes: compare, split, numbers in.  Knows UTF-8 only as far as logs need it; the Java hash is in hash.c. */
#include "str.h"
#include "mem.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

bool str_is_nocase(struct mq_str a, const char *s)
{
	return a.n == strlen(s) && (a.n == 0 || strncasecmp(a.p, s, a.n) == 0);
}

int str_cmp(struct mq_str a, struct mq_str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int d = n ? memcmp(a.p, b.p, n) : 0;

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

struct mq_str str_trim(struct mq_str s)
{
	while (s.n && blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool str_split(struct mq_str *rest, char sep, struct mq_str *piece)
{
	const char *at;

	if (!rest->p)
		return false;
	at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
	if (at) {
		*piece = (struct mq_str){ rest->p, (size_t)(at - rest->p) };
		rest->n -= piece->n + 1;
		rest->p = at + 1;
	} else {
		*piece = *rest;
		*rest = (struct mq_str){ NULL, 0 };
	}
	return true;
}

char *str_dup(struct mq_str s)
{
	return mem_strndup(s.p, s.n);
}

int str_i64(struct mq_str s, int64_t *v)
{
	bool neg = s.n && s.p[0] == '-';
	size_t i = neg || (s.n && s.p[0] == '+');
	int64_t x = 0;

	if (i == s.n)
		return MQ_EINVAL;
	/* Downwards, because the smallest number has no positive twin. */
	for (; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return MQ_EINVAL;
		if (__builtin_mul_overflow(x, 10, &x) || __builtin_sub_overflow(x, s.p[i] - '0', &x))
			return MQ_EINVAL;
	}
	if (!neg && x == INT64_MIN)
		return MQ_EINVAL;
	*v = neg ? x : -x;
	return 0;
}

int str_i32(struct mq_str s, int32_t *v)
{
	int64_t x;

	if (str_i64(s, &x) || x < INT32_MIN || x > INT32_MAX)
		return MQ_EINVAL;
	*v = (int32_t)x;
	return 0;
}

bool str_bool(struct mq_str s)
{
	return str_is_nocase(s, "true");
}

static locale_t c_locale;
static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double str_strtod(const char *s, char **end)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_c_locale);
	return strtod_l(s, end, c_locale);
}

int str_double(struct mq_str s, double *v)
{
	char text[64], *end;
	double x;

	/* No hexadecimal, "inf" or "nan": no file or peer of ours writes them. */
	if (s.n == 0 || s.n >= sizeof(text))
		return MQ_EINVAL;
	for (size_t i = 0; i < s.n; i++)
		if (!strchr("0123456789+-.eE", s.p[i]) || s.p[i] == '\0')
			return MQ_EINVAL;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	x = str_strtod(text, &end);
	if (*end || end == text || x - x != 0)
		return MQ_EINVAL;
	*v = x;
	return 0;
}

struct unit {
	const char *name;
	int64_t each;
};

/* "1.5G": digits, perhaps a fraction, then one of the units (in any case), or none. */
static int with_unit(struct mq_str s, const struct unit *units, int64_t bare, int64_t *out)
{
	int64_t whole = 0, part = 0, scale = 1, each = bare;
	size_t i = 0;

	s = str_trim(s);
	for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, s.p[i] - '0', &whole))
			return MQ_EINVAL;
	if (i == 0)
		return MQ_EINVAL;
	if (i < s.n && s.p[i] == '.') {
		size_t first = ++i;

		for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
			if (scale < 1000000) {
				part = part * 10 + (s.p[i] - '0');
				scale *= 10;
			}
		if (i == first)
			return MQ_EINVAL;
	}
	s = str_trim((struct mq_str){ s.p + i, s.n - i });
	if (s.n) {
		while (units->name && !str_is_nocase(s, units->name))
			units++;
		if (!units->name)
			return MQ_EINVAL;
		each = units->each;
	}
	/* each <= 2^40 and part < 10^6: the product fits */
	if (__builtin_mul_overflow(whole, each, &whole) || __builtin_add_overflow(whole, part * each / scale, &whole))
		return MQ_EINVAL;
	*out = whole;
	return 0;
}

int str_size(struct mq_str s, int64_t *bytes)
{
	static const struct unit units[] = {
		{ "B", 1 },
		{ "K", 1 << 10 }, { "KB", 1 << 10 }, { "KiB", 1 << 10 },
		{ "M", 1 << 20 }, { "MB", 1 << 20 }, { "MiB", 1 << 20 },
		{ "G", 1 << 30 }, { "GB", 1 << 30 }, { "GiB", 1 << 30 },
		{ "T", 1LL << 40 }, { "TB", 1LL << 40 }, { "TiB", 1LL << 40 },
		{ NULL, 0 },
	};

	return with_unit(s, units, 1, bytes);
}

int str_duration(struct mq_str s, int64_t unit_ms, int64_t *ms)
{
	static const struct unit units[] = {
		{ "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }, { NULL, 0 },
	};

	return with_unit(s, units, unit_ms, ms);
}

size_t str_utf8(const char *text, size_t n, uint32_t *u)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
	uint32_t c = len < 2 ? p[0] : p[0] & (0x7fu >> len);

	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if ((len == 3 && c < 0x800) || (c >= 0xd800 && c < 0xe000) || (len == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	*u = c;
	return len;
}

char *str_show(struct mq_str s, char *out, size_t cap)
{
	static const char hex[] = "0123456789abcdef";
	size_t i = 0, o = 0, cut = 0; /* cut: the last place where dots still fit */

	if (!cap)
		return out;
	while (i < s.n) {
		uint32_t u = 0;
		size_t len = str_utf8(s.p + i, s.n - i, &u);
		/* C0, DEL and C1 move cursors and change terminals. */
		bool plain = len && u >= 0x20 && !(u >= 0x7f && u < 0xa0);
		size_t took = plain ? len : 1, need = plain ? len : 4;

		if (o + 3 < cap)
			cut = o;
		if (o + need >= cap) {
			for (o = cut; o < cut + 3 && o + 1 < cap; o++)
				out[o] = '.';
			break;
		}
		if (plain) {
			memcpy(out + o, s.p + i, len);
		} else {
			memcpy(out + o, "\\x", 2);
			out[o + 2] = hex[(unsigned char)s.p[i] >> 4];
			out[o + 3] = hex[s.p[i] & 15];
		}
		i += took;
		o += need;
	}
	out[o] = '\0';
	return out;
}
