/* frame_json.c: a flat scanner for the JSON header: no allocation, no tree, one pass.
 *
 * Every request passes here, so it looks 16 bytes at a time for the end of a string, and touches a string's bytes only if it
 * has escapes.  Knows the seven keys of the header; values of other keys are skipped.  It accepts what peers were seen to send
 * (numbers and booleans as field values, numbers as strings, null, any order of keys, white space) and, as the peer does,
 * refuses a text that is no JSON object or has anything but white space behind it. */
#include "frame_json.h"
#include "../base/err.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct scan {
	char *p, *end;
	const char *why;        /* what was wrong, when a step fails */
};

/* ---- Finding ----------------------------------------------------------------------------------------------------------- */

/* First quote or backslash, else end. */
static inline char *find_quote(char *p, char *end)
{
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\');

	while (end - p >= 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)p);
		int hits = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, back)));

		if (hits)
			return p + __builtin_ctz((unsigned)hits);
		p += 16;
	}
#endif
	while (p < end && *p != '"' && *p != '\\')
		p++;
	return p;
}

const char *frame_json_special(const char *p, const char *end)
{
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\'), low = _mm_set1_epi8(0x1f);

	while (end - p >= 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)p);
		__m128i bad = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, back));
		int hits;

		/* Unsigned v <= 0x1f, by way of the minimum: bytes beyond ASCII must not count. */
		bad = _mm_or_si128(bad, _mm_cmpeq_epi8(_mm_min_epu8(v, low), v));
		hits = _mm_movemask_epi8(bad);
		if (hits)
			return p + __builtin_ctz((unsigned)hits);
		p += 16;
	}
#endif
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		p++;
	return p;
}

static inline void skip_blanks(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

/* The next character that is not blank is c: step over it. */
static inline bool take(struct scan *s, char c)
{
	if (likely(s->p < s->end && *s->p == c)) {
		s->p++;
		return true;
	}
	skip_blanks(s);
	if (s->p < s->end && *s->p == c) {
		s->p++;
		return true;
	}
	return false;
}

static bool fail(struct scan *s, const char *why)
{
	s->why = why;
	return false;
}

/* ---- Strings ----------------------------------------------------------------------------------------------------------- */

static int hex4(const char *p)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

static char *put_utf8(char *w, uint32_t c)
{
	if (c < 0x80) {
		*w++ = (char)c;
	} else if (c < 0x800) {
		*w++ = (char)(0xc0 | c >> 6);
		*w++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*w++ = (char)(0xe0 | c >> 12);
		*w++ = (char)(0x80 | (c >> 6 & 0x3f));
		*w++ = (char)(0x80 | (c & 0x3f));
	} else {
		*w++ = (char)(0xf0 | c >> 18);
		*w++ = (char)(0x80 | (c >> 12 & 0x3f));
		*w++ = (char)(0x80 | (c >> 6 & 0x3f));
		*w++ = (char)(0x80 | (c & 0x3f));
	}
	return w;
}

/* \uXXXX at *r, which moves behind it.  The text it stands for is never longer than itself, so writing in place is safe. */
static char *unescape_unicode(char **r, char *end, char *w)
{
	int hi, lo;

	if (end - *r < 6 || (hi = hex4(*r + 2)) < 0)
		return NULL;
	*r += 6;
	if (hi >= 0xd800 && hi < 0xdc00 && end - *r >= 6 && (*r)[0] == '\\' && (*r)[1] == 'u') {
		lo = hex4(*r + 2);
		if (lo >= 0xdc00 && lo < 0xe000) {
			*r += 6;
			return put_utf8(w, 0x10000 + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00));
		}
	}
	/* compat: half a surrogate pair becomes '?' when the peer turns it into bytes. */
	if (hi >= 0xd800 && hi < 0xe000)
		hi = '?';
	return put_utf8(w, (uint32_t)hi);
}

/* The string began at `start` and r is its first backslash. */
static bool unescape(struct scan *s, char *start, char *r, struct mq_str *out)
{
	char *w = r, *next;

	for (;;) {
		if (*r == '"')
			break;
		if (s->end - r < 2)
			return fail(s, "a string does not end");
		switch (r[1]) {
		case 'u':
			w = unescape_unicode(&r, s->end, w);
			if (!w)
				return fail(s, "bad \\u escape");
			break;
		case '"': case '\\': case '/': case '\'':
			*w++ = r[1];
			r += 2;
			break;
		case 'b': *w++ = '\b'; r += 2; break;
		case 'f': *w++ = '\f'; r += 2; break;
		case 'n': *w++ = '\n'; r += 2; break;
		case 'r': *w++ = '\r'; r += 2; break;
		case 't': *w++ = '\t'; r += 2; break;
		default:
			return fail(s, "unknown escape in a string");
		}
		next = find_quote(r, s->end);
		if (next == s->end)
			return fail(s, "a string does not end");
		if (next - r < 16)
			while (r < next)
				*w++ = *r++;
		else {
			memmove(w, r, (size_t)(next - r));
			w += next - r;
			r = next;
		}
	}
	*out = (struct mq_str){ start, (size_t)(w - start) };
	s->p = r + 1;
	return true;
}

/* A string whose opening quote has been taken. */
static inline bool string(struct scan *s, struct mq_str *out)
{
	char *start = s->p, *q = find_quote(start, s->end);

	if (unlikely(q == s->end))
		return fail(s, "a string does not end");
	if (unlikely(*q == '\\'))
		return unescape(s, start, q, out);
	*out = (struct mq_str){ start, (size_t)(q - start) };
	s->p = q + 1;
	return true;
}

/* ---- Values ------------------------------------------------------------------------------------------------------------ */

static bool word(struct scan *s, const char *w, size_t n)
{
	if ((size_t)(s->end - s->p) < n || memcmp(s->p, w, n) != 0)
		return fail(s, "unknown word");
	s->p += n;
	return true;
}

/* An object or array, whatever is in it; *out is its text.  Brackets must match; more is not checked. */
static bool nested(struct scan *s, struct mq_str *out)
{
	char *start = s->p, open[FRAME_DEPTH_MAX];
	struct mq_str ignored;
	int depth = 0;

	while (s->p < s->end) {
		char c = *s->p++;

		if (c == '"') {
			if (!string(s, &ignored))
				return false;
		} else if (c == '{' || c == '[') {
			if (depth == FRAME_DEPTH_MAX)
				return fail(s, "nested too deep");
			open[depth++] = c;
		} else if (c == '}' || c == ']') {
			if (open[--depth] != (c == '}' ? '{' : '['))
				return fail(s, "brackets do not match");
			if (depth == 0) {
				*out = (struct mq_str){ start, (size_t)(s->p - start) };
				return true;
			}
		}
	}
	return fail(s, "an object or array does not end");
}

static bool number(struct scan *s, struct mq_str *out)
{
	char *start = s->p;
	bool digit = false;

	for (; s->p < s->end; s->p++) {
		char c = *s->p;

		if (c >= '0' && c <= '9')
			digit = true;
		else if (c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E')
			break;
	}
	if (!digit)
		return fail(s, "neither string, number, true, false, null, object nor array");
	*out = (struct mq_str){ start, (size_t)(s->p - start) };
	return true;
}

/* Any value as text; null gives p == NULL. */
static bool value(struct scan *s, struct mq_str *out)
{
	if (likely(take(s, '"')))
		return string(s, out);
	if (s->p == s->end)
		return fail(s, "a value is missing");
	switch (*s->p) {
	case 'n':
		*out = (struct mq_str){ NULL, 0 };
		return word(s, "null", 4);
	case 't':
		*out = (struct mq_str){ s->p, 4 };
		return word(s, "true", 4);
	case 'f':
		*out = (struct mq_str){ s->p, 5 };
		return word(s, "false", 5);
	case '{': case '[':
		return nested(s, out);
	default:
		return number(s, out);
	}
}

/* A number of 32 bits, also as a string; null leaves *v. */
static bool integer(struct scan *s, int32_t *v)
{
	struct mq_str t;
	int64_t x = 0;
	size_t i = 0;
	bool neg;

	if (!value(s, &t))
		return false;
	if (!t.p)
		return true;
	neg = t.n && t.p[0] == '-';
	i = neg;
	if (i == t.n || t.n - i > 10)
		return fail(s, "no number of 32 bits where one should be");
	for (; i < t.n; i++) {
		if (t.p[i] < '0' || t.p[i] > '9')
			return fail(s, "no number of 32 bits where one should be");
		x = x * 10 + (t.p[i] - '0');
	}
	if (neg)
		x = -x;
	if (x < INT32_MIN || x > INT32_MAX)
		return fail(s, "no number of 32 bits where one should be");
	*v = (int32_t)x;
	return true;
}

/* compat: the peer takes the name of a language or its number; what it does not know is no language. */
static bool language(struct scan *s, uint8_t *v)
{
	struct mq_str t;

	if (!value(s, &t))
		return false;
	*v = t.p ? frame_language_code(t) : 255;
	return true;
}

/* ---- The header -------------------------------------------------------------------------------------------------------- */

static bool fields(struct scan *s, struct frame *f)
{
	struct frame_field *at = f->field, *end = f->field + FRAME_FIELDS_MAX;

	skip_blanks(s);
	if (s->p < s->end && *s->p == 'n')
		return word(s, "null", 4);
	if (!take(s, '{'))
		return fail(s, "extFields is no object");
	f->has_fields = true;
	f->nfields = 0;         /* a second extFields takes the place of the first */
	if (take(s, '}'))
		return true;
	do {
		if (unlikely(at == end))
			return fail(s, "too many extFields");
		if (unlikely(!take(s, '"')))
			return fail(s, "a key is missing");
		if (!string(s, &at->key))
			return false;
		if (unlikely(!take(s, ':')))
			return fail(s, "':' is missing");
		if (!value(s, &at->value))
			return false;
		if (likely(at->value.p != NULL))
			at++;
	} while (take(s, ','));
	f->nfields = (uint32_t)(at - f->field);
	return take(s, '}') || fail(s, "extFields does not end");
}

static bool is(struct mq_str key, const char *name, size_t n)
{
	return memcmp(key.p, name, n) == 0;
}

static bool member(struct scan *s, struct mq_str key, struct frame *f)
{
	struct mq_str ignored;

	switch (key.n) {
	case 4:
		if (is(key, "code", 4))
			return integer(s, &f->code);
		if (is(key, "flag", 4))
			return integer(s, &f->flag);
		break;
	case 6:
		if (is(key, "opaque", 6))
			return integer(s, &f->opaque);
		if (is(key, "remark", 6))
			return value(s, &f->remark);
		break;
	case 7:
		if (is(key, "version", 7))
			return integer(s, &f->version);
		break;
	case 8:
		if (is(key, "language", 8))
			return language(s, &f->language);
		break;
	case 9:
		if (is(key, "extFields", 9))
			return fields(s, f);
		break;
	}
	return value(s, &ignored);
}

static bool header(struct scan *s, struct frame *f)
{
	struct mq_str key;

	if (!take(s, '{'))
		return fail(s, "no JSON object");
	if (!take(s, '}')) {
		do {
			if (!take(s, '"'))
				return fail(s, "a key is missing");
			if (!string(s, &key))
				return false;
			if (!take(s, ':'))
				return fail(s, "':' is missing");
			if (!member(s, key, f))
				return false;
		} while (take(s, ','));
		if (!take(s, '}'))
			return fail(s, "the object does not end");
	}
	skip_blanks(s);         /* the C++ client ends its header with a line feed */
	return s->p == s->end || fail(s, "something follows the object");
}

int frame_json_parse(char *p, size_t n, struct frame *f, struct mq_error *e)
{
	struct scan s = { p, p + n, NULL };

	if (unlikely(!header(&s, f)))
		return err_set(e, MQ_EPROTO, "JSON header, byte %zu: %s", (size_t)(s.p - p), s.why);
	return 0;
}
