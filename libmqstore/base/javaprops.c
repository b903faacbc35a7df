/* javaprops.c: Java properties, read entry by entry.  Knows the syntax and where each entry stands, not what a key means. */
#include "javaprops.h"
#include "str.h"

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\f';
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* \uXXXX at s[i], i at the 'u': the unit, or -1. */
static int32_t unit_at(struct mq_str s, size_t i)
{
	int32_t u = 0;

	if (s.n - i < 5)
		return -1;
	for (size_t k = 1; k <= 4; k++) {
		int d = hex(s.p[i + k]);

		if (d < 0)
			return -1;
		u = u << 4 | d;
	}
	return u;
}

static void put_utf8(struct buf *b, uint32_t u)
{
	if (u < 0x80) {
		buf_char(b, (char)u);
		return;
	}
	if (u < 0x800) {
		buf_char(b, (char)(0xc0 | u >> 6));
	} else {
		if (u < 0x10000) {
			buf_char(b, (char)(0xe0 | u >> 12));
		} else {
			buf_char(b, (char)(0xf0 | u >> 18));
			buf_char(b, (char)(0x80 | (u >> 12 & 0x3f)));
		}
		buf_char(b, (char)(0x80 | (u >> 6 & 0x3f)));
	}
	buf_char(b, (char)(0x80 | (u & 0x3f)));
}

/* The escape whose backslash is at s[i]; returns the place after it. */
static size_t unescape(struct mq_str s, size_t i, struct buf *out)
{
	char c = s.p[++i];
	int32_t u, low;

	if (c == 'u' && (u = unit_at(s, i)) >= 0) {
		i += 5;
		if (u >= 0xd800 && u < 0xe000) {
			low = u < 0xdc00 && i + 1 < s.n && s.p[i] == '\\' && s.p[i + 1] == 'u' ? unit_at(s, i + 1) : -1;
			if (low >= 0xdc00 && low < 0xe000) {
				put_utf8(out, 0x10000u + (((uint32_t)u & 0x3ff) << 10) + ((uint32_t)low & 0x3ff));
				return i + 6;
			}
			u = 0xfffd;
		}
		put_utf8(out, (uint32_t)u);
		return i;
	}
	buf_char(out, c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 'f' ? '\f' : c);
	return i + 1;
}

static struct mq_str natural_line(struct javaprops *p)
{
	const char *from = p->text.p + p->at;
	size_t left = p->text.n - p->at;
	const char *lf = memchr(from, '\n', left);
	size_t n = lf ? (size_t)(lf - from) : left;

	p->at += lf ? n + 1 : n;
	p->lines++;
	if (n && from[n - 1] == '\r')
		n--;
	while (n && blank(*from)) {
		from++;
		n--;
	}
	return (struct mq_str){ from, n };
}

static bool continues(struct mq_str line)
{
	size_t slashes = 0;

	while (slashes < line.n && line.p[line.n - 1 - slashes] == '\\')
		slashes++;
	return slashes & 1;
}

/* One logical line: pieces are unescaped one after the other, which is the same as joining them first, since a backslash at the
 * end of a piece is not part of it. */
bool javaprops_next(struct javaprops *p)
{
	struct mq_str piece = { NULL, 0 };
	enum { KEY, GAP, VALUE } part = KEY;
	bool separator = false, more = true;
	size_t solid = 0; /* of the value: up to here nothing may be trimmed */

	do {
		if (p->at >= p->text.n)
			return false;
		p->start = p->at;
		piece = natural_line(p);
		p->end = p->at;
		p->line = p->lines;
	} while (piece.n == 0 || piece.p[0] == '#' || piece.p[0] == '!');

	p->key.n = p->value.n = 0;
	while (more) {
		size_t i = 0;

		more = continues(piece);
		piece.n -= more;
		while (i < piece.n) {
			char c = piece.p[i];

			if (part == KEY && (c == '=' || c == ':' || blank(c))) {
				part = GAP;
				continue;
			}
			if (part == GAP) {
				if (blank(c) || (!separator && (c == '=' || c == ':'))) {
					separator |= !blank(c);
					i++;
					continue;
				}
				part = VALUE;
			}
			if (c == '\\' && i + 1 < piece.n) {
				i = unescape(piece, i, part == KEY ? &p->key : &p->value);
				solid = p->value.n;
			} else {
				buf_char(part == KEY ? &p->key : &p->value, c);
				i++;
			}
		}
		if (more) {
			more = p->at < p->text.n;
			piece = more ? natural_line(p) : piece;
			p->end = p->at;
		}
	}
	while (p->value.n > solid && blank(p->value.p[p->value.n - 1]))
		p->value.n--;
	return true;
}

void javaprops_free(struct javaprops *p)
{
	buf_free(&p->key);
	buf_free(&p->value);
}

static void put_escaped(struct buf *b, struct mq_str s, bool key)
{
	for (size_t i = 0, len; i < s.n; i += len) {
		char c = s.p[i];
		const char *letter = memchr("\nn\rr\tt\ff", c, 8);
		uint32_t u;

		len = str_utf8(s.p + i, s.n - i, &u);
		if (len > 1) {
			uint32_t low = u - 0x10000;

			if (u < 0x10000)
				buf_printf(b, "\\u%04X", u);
			else
				buf_printf(b, "\\u%04X\\u%04X", 0xd800 | low >> 10, 0xdc00 | (low & 0x3ff));
			continue;
		}
		len = 1;
		if (letter && c < ' ') {
			buf_char(b, '\\');
			buf_char(b, letter[1]);
			continue;
		}
		if (c == '\\' || (key && memchr("=: ", c, 3)) || (key && i == 0 && (c == '#' || c == '!')) ||
		    (!key && c == ' ' && (i == 0 || i + 1 == s.n)))
			buf_char(b, '\\');
		buf_char(b, c);
	}
}

void javaprops_put(struct buf *b, struct mq_str key, struct mq_str value)
{
	put_escaped(b, key, true);
	buf_char(b, '=');
	put_escaped(b, value, false);
	buf_char(b, '\n');
}
