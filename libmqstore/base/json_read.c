/* json_read.c: the dialect of fastjson 1.x, brought into strict JSON in one pass and given to jansson.
 *
 * compat (fastjson 1.2, its default features): keys may be numbers, words or whole objects; single quotes; any number of commas;
 * comments; \xHH, \v, \' and octal escapes; number suffixes; NaN and undefined.  What no encoding allows (bad UTF-8, a lone
 * surrogate) becomes U+FFFD, an integer beyond 64 bits a real.  Depth is bounded here, so recursion is too. */
#include "err.h"
#include "json.h"
#include "str.h"

struct reader {
	const char *text, *p, *end;
	struct buf out;
	struct mq_error *e;
};

static int bad(struct reader *r, const char *wanted)
{
	char near[24];

	str_show((struct mq_str){ r->p, (size_t)(r->end - r->p) }, near, sizeof(near));
	return err_set(r->e, MQ_EINVAL, "JSON byte %zu: expected %s, found %s%s%s", (size_t)(r->p - r->text), wanted,
		       *near ? "'" : "the end", near, *near ? "'" : "");
}

static void skip(struct reader *r)
{
	while (r->p < r->end) {
		const char *stop;
		size_t left = (size_t)(r->end - r->p);

		if (memchr(" \t\r\n\f\b", *r->p, 6)) {
			r->p++;
		} else if (left >= 2 && r->p[0] == '/' && r->p[1] == '/') {
			stop = memchr(r->p, '\n', left);
			r->p = stop ? stop + 1 : r->end;
		} else if (left >= 4 && r->p[0] == '/' && r->p[1] == '*') {
			stop = memmem(r->p + 2, left - 2, "*/", 2);
			if (!stop)
				return;
			r->p = stop + 2;
		} else {
			return;
		}
	}
}

static bool skip_commas(struct reader *r)
{
	bool any = false;

	for (skip(r); r->p < r->end && *r->p == ','; skip(r)) {
		r->p++;
		any = true;
	}
	return any;
}

static int digit(char c, int base)
{
	int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;

	return d < base ? d : -1;
}

/* Up to `max` digits at r->p, at least `min`; -1 if there are fewer. */
static int number_of(struct reader *r, int base, int min, int max)
{
	int v = 0, n = 0;

	for (; n < max && r->p < r->end && digit(*r->p, base) >= 0; n++)
		v = v * base + digit(*r->p++, base);
	return n < min ? -1 : v;
}

static void put_unit(struct reader *r, int u)
{
	buf_printf(&r->out, "\\u%04X", (unsigned)u);
}

/* After a backslash. */
static int escape(struct reader *r)
{
	char c = *r->p++;
	int u, low;

	switch (c) {
	case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
		buf_char(&r->out, '\\');
		buf_char(&r->out, c);
		return 0;
	case 'F':
		buf_cstr(&r->out, "\\f");
		return 0;
	case '\'':
		buf_char(&r->out, c);
		return 0;
	case 'v':
		put_unit(r, '\v');
		return 0;
	case 'x':
		u = number_of(r, 16, 2, 2);
		if (u < 0)
			return bad(r, "two hexadecimal digits after \\x");
		put_unit(r, u);
		return 0;
	case 'u':
		u = number_of(r, 16, 4, 4);
		if (u < 0)
			return bad(r, "four hexadecimal digits after \\u");
		if (u >= 0xd800 && u < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
			const char *back = r->p;

			r->p += 2;
			low = number_of(r, 16, 4, 4);
			if (low >= 0xdc00 && low < 0xe000) {
				put_unit(r, u);
				put_unit(r, low);
				return 0;
			}
			r->p = back;
		}
		put_unit(r, u >= 0xd800 && u < 0xe000 ? 0xfffd : u);
		return 0;
	}
	if (c >= '0' && c <= '7') {
		put_unit(r, c - '0');
		return 0;
	}
	r->p--;
	return bad(r, "a known escape after \\");
}

static int string(struct reader *r)
{
	char quote = *r->p++;

	buf_char(&r->out, '"');
	while (r->p < r->end) {
		const char *from = r->p;
		uint32_t u;
		size_t len;
		int rc;

		while (r->p < r->end && *r->p >= ' ' && *r->p != quote && *r->p != '\\' && *r->p != '"' && *r->p < 0x7f)
			r->p++;
		buf_put(&r->out, from, (size_t)(r->p - from));
		if (r->p == r->end)
			break;
		if (*r->p == quote) {
			r->p++;
			buf_char(&r->out, '"');
			return 0;
		}
		if (*r->p == '\\') {
			if (++r->p == r->end)
				break;
			rc = escape(r);
			if (rc)
				return rc;
			continue;
		}
		len = str_utf8(r->p, (size_t)(r->end - r->p), &u);
		if (*r->p == '"')
			buf_cstr(&r->out, "\\\"");
		else if (len == 0 || u < ' ')
			put_unit(r, len ? (int)u : 0xfffd);
		else
			buf_put(&r->out, r->p, len);
		r->p += len ? len : 1;
	}
	return bad(r, quote == '"' ? "\" at the end of a string" : "' at the end of a string");
}

static bool word_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c && strchr("_$.+-", c)) || (c & 0x80);
}

static struct mq_str word(struct reader *r)
{
	const char *from = r->p;

	while (r->p < r->end && word_char(*r->p))
		r->p++;
	return (struct mq_str){ from, (size_t)(r->p - from) };
}

static int number(struct reader *r, struct mq_str w)
{
	size_t i = w.n && (w.p[0] == '-' || w.p[0] == '+'), digits, from = r->out.n;
	bool real = false;
	int64_t v;

	if (w.n > 1 && memchr("LSBFD", w.p[w.n - 1], 5))
		w.n--;
	if (i && w.p[0] == '-')
		buf_char(&r->out, '-');
	while (i + 1 < w.n && w.p[i] == '0' && digit(w.p[i + 1], 10) >= 0)
		i++;
	for (digits = i; i < w.n && digit(w.p[i], 10) >= 0; i++)
		buf_char(&r->out, w.p[i]);
	if (i == digits)
		return MQ_EINVAL;
	if (i < w.n && w.p[i] == '.') {
		size_t point = i++;

		for (; i < w.n && digit(w.p[i], 10) >= 0; i++)
			;
		buf_put(&r->out, w.p + point, i - point);
		if (i == point + 1)
			buf_char(&r->out, '0');
		real = true;
	}
	if (i < w.n && (w.p[i] | 32) == 'e') {
		size_t e = i++;

		i += i < w.n && (w.p[i] == '-' || w.p[i] == '+');
		for (digits = i; i < w.n && digit(w.p[i], 10) >= 0; i++)
			;
		if (i == digits)
			return MQ_EINVAL;
		buf_put(&r->out, w.p + e, i - e);
		real = true;
	}
	if (!real && str_i64((struct mq_str){ r->out.p + from, r->out.n - from }, &v))
		buf_cstr(&r->out, ".0");
	return i == w.n ? 0 : MQ_EINVAL;
}

static int value(struct reader *r, int depth);

/* A key that is an object or an array: the text of it, as it stands, becomes a string. */
static int object_key(struct reader *r, int depth)
{
	const char *from = r->p;
	size_t before = r->out.n;
	int rc = value(r, depth);

	if (rc)
		return rc;
	r->out.n = before;
	json_quote(&r->out, (struct mq_str){ from, (size_t)(r->p - from) }, false);
	return 0;
}

static int key(struct reader *r, int depth)
{
	struct mq_str w;

	if (*r->p == '"' || *r->p == '\'')
		return string(r);
	if (*r->p == '{' || *r->p == '[')
		return object_key(r, depth);
	w = word(r);
	if (w.n == 0)
		return bad(r, "a key");
	json_quote(&r->out, w, false);
	return 0;
}

static int container(struct reader *r, int depth)
{
	char open = *r->p, close = open == '{' ? '}' : ']';
	bool first = true;
	int rc;

	if (depth > JSON_DEPTH_MAX)
		return bad(r, "no deeper nesting");
	r->p++;
	buf_char(&r->out, open);
	for (;;) {
		bool comma = skip_commas(r);

		if (r->p == r->end)
			return bad(r, open == '{' ? "} at the end of an object" : "] at the end of an array");
		if (*r->p == close)
			break;
		if (!first && !comma)
			return bad(r, "a comma");
		if (!first)
			buf_char(&r->out, ',');
		first = false;
		if (open == '{') {
			rc = key(r, depth + 1);
			if (rc)
				return rc;
			skip(r);
			if (r->p == r->end || *r->p != ':')
				return bad(r, "a colon after the key");
			r->p++;
			buf_char(&r->out, ':');
		}
		rc = value(r, depth + 1);
		if (rc)
			return rc;
	}
	r->p++;
	buf_char(&r->out, close);
	return 0;
}

static int value(struct reader *r, int depth)
{
	struct mq_str w;

	skip(r);
	if (r->p == r->end)
		return bad(r, "a value");
	if (*r->p == '{' || *r->p == '[')
		return container(r, depth);
	if (*r->p == '"' || *r->p == '\'')
		return string(r);
	w = word(r);
	if (str_is(w, "true") || str_is(w, "false") || str_is(w, "null")) {
		buf_str(&r->out, w);
		return 0;
	}
	if (str_is(w, "NaN") || str_is(w, "undefined")) {
		buf_cstr(&r->out, "null");
		return 0;
	}
	if (number(r, w)) {
		r->p -= w.n;
		return bad(r, "a value");
	}
	return 0;
}

json_t *json_parse(struct mq_str text, struct mq_error *e)
{
	struct reader r = { .text = text.p, .p = text.p, .end = text.p + text.n, .e = e };
	json_error_t je;
	json_t *j = NULL;

	if (text.n > JSON_TEXT_MAX) {
		err_set(e, MQ_ETOOBIG, "JSON of %zu bytes: the limit is %d", text.n, JSON_TEXT_MAX);
		return NULL;
	}
	if (text.n == 0) {
		err_set(e, MQ_EINVAL, "JSON expected, found nothing");
		return NULL;
	}
	if (value(&r, 1))
		goto out;
	for (skip(&r); r.p < r.end && *r.p == '\0'; r.p++)
		;
	if (r.p < r.end) {
		bad(&r, "the end");
		goto out;
	}
	j = json_loadb(r.out.p, r.out.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &je);
	if (!j)
		err_set(e, MQ_EINVAL, "JSON: %s", je.text);
out:
	buf_free(&r.out);
	return j;
}
