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

#define inlined static inline __attribute__((always_inline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum { SCAN_BLOCK = 64 };

/* Quotes and backslashes are found a block of 64 bytes at a time, as bits, and then taken one after the other: that the next
 * string is found does not have to wait for the end of the one before. */
struct scan {
	char *p, *end;          /* where reading is; `marks` holds none before p */
	char *block;            /* what bit 0 of marks stands for */
	uint64_t marks;         /* quotes and backslashes not yet taken */
	const char *why;        /* what was wrong, when a step fails */
};

/* ---- Finding ----------------------------------------------------------------------------------------------------- */

#ifdef __SSE2__
static inline uint64_t marks16(const char *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)p);

	return (uint64_t)(unsigned)_mm_movemask_epi8(
		_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));
}

static inline uint64_t marks64(const char *p)
{
	return marks16(p) | marks16(p + 16) << 16 | marks16(p + 32) << 32 | marks16(p + 48) << 48;
}
#else
static inline uint64_t marks64(const char *p)
{
	uint64_t marks = 0;

	for (int i = 0; i < SCAN_BLOCK; i++)
		marks |= (uint64_t)(p[i] == '"' || p[i] == '\\') << i;
	return marks;
}
#endif

/* Of the last block, which is shorter. */
static __attribute__((noinline)) uint64_t marks_last(const char *p, const char *end)
{
	char last[SCAN_BLOCK] = { 0 };

	memcpy(last, p, (size_t)(end - p));
	return marks64(last);
}

/* Take the next quote or backslash; NULL if there is none. */
inlined char *next_mark(struct scan *s)
{
	char *at;

	while (unlikely(!s->marks)) {
		if (s->end - s->block <= SCAN_BLOCK)
			return NULL;
		s->block += SCAN_BLOCK;
		s->marks = likely(s->end - s->block >= SCAN_BLOCK) ? marks64(s->block) : marks_last(s->block, s->end);
	}
	at = s->block + __builtin_ctzll(s->marks);
	s->marks &= s->marks - 1;
	return at;
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

/* ---- Strings ----------------------------------------------------------------------------------------------------- */

/* Value of a hex digit; others: 0x80. */
static inline unsigned hex1(char c)
{
	static const uint8_t value[256] = {
		[0 ... '0' - 1] = 0x80, ['0'] = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ['9' + 1 ... 'A' - 1] = 0x80,
		['A'] = 10, 11, 12, 13, 14, 15, ['F' + 1 ... 'a' - 1] = 0x80,
		['a'] = 10, 11, 12, 13, 14, 15, ['f' + 1 ... 255] = 0x80,
	};

	return value[(unsigned char)c];
}

static inline int hex4(const char *p)
{
	unsigned a = hex1(p[0]), b = hex1(p[1]), c = hex1(p[2]), d = hex1(p[3]);

	return (a | b | c | d) & 0x80 ? -1 : (int)(a << 12 | b << 8 | c << 4 | d);
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
static inline char *unescape_unicode(struct scan *s, char **r, char *w)
{
	int hi, lo;

	/* Nearly all are the separators of properties, \u0001 and \u0002. */
	if (likely(s->end - *r >= 6 && memcmp(*r + 1, "u000", 4) == 0 && hex1((*r)[5]) < 16)) {
		*w = (char)hex1((*r)[5]);
		*r += 6;
		return w + 1;
	}
	if (s->end - *r < 6 || (hi = hex4(*r + 2)) < 0)
		return NULL;
	*r += 6;
	if (hi >= 0xd800 && hi < 0xdc00 && s->end - *r >= 6 && (*r)[0] == '\\' && (*r)[1] == 'u') {
		lo = hex4(*r + 2);
		if (lo >= 0xdc00 && lo < 0xe000) {
			next_mark(s);
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

	while (*r != '"') {
		if (s->end - r < 2)
			return fail(s, "a string does not end");
		switch (r[1]) {
		case 'u':
			w = unescape_unicode(s, &r, w);
			if (unlikely(!w))
				return fail(s, "bad \\u escape");
			break;
		case '"': case '\\':
			next_mark(s);           /* it is none any more */
			*w++ = r[1];
			r += 2;
			break;
		case '/': case '\'': *w++ = r[1]; r += 2; break;
		case 'b': *w++ = '\b'; r += 2; break;
		case 'f': *w++ = '\f'; r += 2; break;
		case 'n': *w++ = '\n'; r += 2; break;
		case 'r': *w++ = '\r'; r += 2; break;
		case 't': *w++ = '\t'; r += 2; break;
		default:
			return fail(s, "unknown escape in a string");
		}
		next = next_mark(s);
		if (!next)
			return fail(s, "a string does not end");
		w = frame_move(w, r, (size_t)(next - r));
		r = next;
	}
	*out = (struct mq_str){ start, (size_t)(w - start) };
	s->p = r + 1;
	return true;
}

/* A string; *s->p is its opening quote.  Returns its first backslash instead of reading on, NULL if the string was whole;
 * one that does not end gives s->end. */
inlined char *plain_string(struct scan *s, struct mq_str *out)
{
	char *start = s->p + 1, *q;

	next_mark(s);
	q = next_mark(s);
	if (unlikely(!q))
		return s->end;
	if (unlikely(*q == '\\'))
		return q;
	*out = (struct mq_str){ start, (size_t)(q - start) };
	s->p = q + 1;
	return NULL;
}

static bool string_end(struct scan *s, char *back, struct mq_str *out)
{
	if (back == s->end)
		return fail(s, "a string does not end");
	return unescape(s, s->p + 1, back, out);
}

static bool string(struct scan *s, struct mq_str *out)
{
	char *back = plain_string(s, out);

	return likely(!back) || string_end(s, back, out);
}

inlined bool at_quote(const struct scan *s)
{
	return s->p < s->end && *s->p == '"';
}

static inline bool key(struct scan *s, struct mq_str *out)
{
	if (unlikely(!at_quote(s))) {
		skip_blanks(s);
		if (!at_quote(s))
			return fail(s, "a key is missing");
	}
	return string(s, out);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

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
		char c = *s->p;

		if (c == '"') {
			if (!string(s, &ignored))
				return false;
			continue;
		}
		s->p++;
		if (c == '\\')
			return fail(s, "a backslash outside of a string");
		if (c == '{' || c == '[') {
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
	if (unlikely(!at_quote(s)))
		skip_blanks(s);
	if (s->p == s->end)
		return fail(s, "a value is missing");
	switch (*s->p) {
	case '"':
		return string(s, out);
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
	struct mq_str t = { NULL, 0 };
	int64_t x = 0;
	size_t i;
	bool neg;

	/* By far most are bare digits. */
	while (s->p + t.n < s->end && t.n < 10 && s->p[t.n] >= '0' && s->p[t.n] <= '9')
		x = x * 10 + (s->p[t.n++] - '0');
	if (likely(t.n && x <= INT32_MAX && s->p + t.n < s->end && (s->p[t.n] == ',' || s->p[t.n] == '}'))) {
		s->p += t.n;
		*v = (int32_t)x;
		return true;
	}
	if (!value(s, &t))
		return false;
	if (!t.p)
		return true;
	neg = t.n && t.p[0] == '-';
	i = neg;
	if (i == t.n || t.n - i > 10)
		return fail(s, "no number of 32 bits where one should be");
	for (x = 0; i < t.n; i++) {
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

/* ---- The header -------------------------------------------------------------------------------------------------- */

/* The hot loop: `l` is a copy of *s that can live in registers, written back around what is rare. */
static bool fields(struct scan *s, struct frame *f)
{
	struct frame_field *at = f->field, *end = f->field + FRAME_FIELDS_MAX;
	struct scan l;
	char *back;

	skip_blanks(s);
	if (s->p < s->end && *s->p == 'n')
		return word(s, "null", 4);
	if (!take(s, '{'))
		return fail(s, "extFields is no object");
	f->has_fields = true;
	f->nfields = 0;         /* a second extFields takes the place of the first */
	if (take(s, '}'))
		return true;
	l = *s;
	for (;;) {
		if (unlikely(at == end))
			return fail(s, "too many extFields");
		back = NULL;
		if (unlikely(!at_quote(&l) || (back = plain_string(&l, &at->key)))) {
			*s = l;
			if (!(back ? string_end(s, back, &at->key) : key(s, &at->key)))
				return false;
			l = *s;
		}
		if (likely(l.end - l.p > 2 && l.p[0] == ':' && l.p[1] == '"')) {
			l.p++;
			back = plain_string(&l, &at->value);
			if (unlikely(back != NULL)) {
				*s = l;
				if (!string_end(s, back, &at->value))
					return false;
				l = *s;
			}
			at++;
		} else {
			*s = l;
			if (!take(s, ':'))
				return fail(s, "':' is missing");
			if (!value(s, &at->value))
				return false;
			l = *s;
			at += at->value.p != NULL;
		}
		if (unlikely(l.p == l.end || *l.p != ',')) {
			*s = l;
			if (!take(s, ','))
				break;
			l = *s;
			continue;
		}
		l.p++;
	}
	f->nfields = (uint32_t)(at - f->field);
	return take(s, '}') || fail(s, "extFields does not end");
}

static inline bool is(struct mq_str name, const char *known, size_t n)
{
	return memcmp(name.p, known, n) == 0;
}

static bool member(struct scan *s, struct mq_str name, struct frame *f)
{
	struct mq_str ignored;

	switch (name.n) {
	case 4:
		if (is(name, "code", 4))
			return integer(s, &f->code);
		if (is(name, "flag", 4))
			return integer(s, &f->flag);
		break;
	case 6:
		if (is(name, "opaque", 6))
			return integer(s, &f->opaque);
		if (is(name, "remark", 6))
			return value(s, &f->remark);
		break;
	case 7:
		if (is(name, "version", 7))
			return integer(s, &f->version);
		break;
	case 8:
		if (is(name, "language", 8))
			return language(s, &f->language);
		break;
	case 9:
		if (is(name, "extFields", 9))
			return fields(s, f);
		break;
	}
	return value(s, &ignored);
}

static bool header(struct scan *s, struct frame *f)
{
	struct mq_str name;

	if (!take(s, '{'))
		return fail(s, "no JSON object");
	if (!take(s, '}')) {
		do {
			if (!key(s, &name))
				return false;
			if (!take(s, ':'))
				return fail(s, "':' is missing");
			if (!member(s, name, f))
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
	struct scan s = {
		.p = p, .end = p + n, .block = p, .marks = n >= SCAN_BLOCK ? marks64(p) : marks_last(p, p + n)
	};

	if (unlikely(!header(&s, f)))
		return err_set(e, MQ_EPROTO, "JSON header, byte %zu: %s", (size_t)(s.p - p), s.why);
	return 0;
}
