/* sql_token.c: words, numbers, texts, signs and comments of an SQL92 expression: the longest that fits, as with the peer. */
#include "sql_token.h"
#include "../base/err.h"
#include "../base/str.h"
#include <stdarg.h>
#include <stdio.h>

static const struct {
	const char *word;
	enum sql_kind kind;
} words[] = {
	{ "NOT", SQL_NOT }, { "AND", SQL_AND }, { "OR", SQL_OR }, { "BETWEEN", SQL_BETWEEN }, { "IN", SQL_IN }, { "TRUE", SQL_TRUE },
	{ "FALSE", SQL_FALSE }, { "NULL", SQL_NULL }, { "IS", SQL_IS }, { "CONTAINS", SQL_CONTAINS }, { "STARTSWITH", SQL_STARTSWITH },
	{ "ENDSWITH", SQL_ENDSWITH },
};

int sql_token_error(struct mq_str text, size_t at, struct mq_error *e, const char *fmt, ...)
{
	char why[256];
	size_t n = 1;
	va_list ap;

	for (size_t i = 0; i < at && i < text.n; i++)
		n += ((uint8_t)text.p[i] & 0xc0) != 0x80;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	return err_set(e, MQ_EINVAL, "SQL92 expression, character %zu: %s", n, why);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static size_t digits(struct mq_str s, size_t i)
{
	while (i < s.n && is_digit(s.p[i]))
		i++;
	return i;
}

/* Behind the exponent that begins at i, or i if none does. */
static size_t exponent(struct mq_str s, size_t i)
{
	size_t k = i + 1, end;

	if (i >= s.n || (s.p[i] != 'e' && s.p[i] != 'E'))
		return i;
	if (k < s.n && (s.p[k] == '+' || s.p[k] == '-'))
		k++;
	end = digits(s, k);
	return end > k ? end : i;
}

/* Behind the number at i. */
static size_t number(struct mq_str s, size_t i, enum sql_kind *kind)
{
	size_t whole = digits(s, i), end;

	*kind = SQL_FLOAT;
	if (whole < s.n && s.p[whole] == '.')
		return exponent(s, digits(s, whole + 1));
	end = exponent(s, whole);
	if (end > whole)
		return end;
	*kind = SQL_WHOLE;
	if (s.p[i] == '0')
		return i + 1; /* compat: 007 is 0, 0, 7 */
	return whole < s.n && (s.p[whole] == 'l' || s.p[whole] == 'L') ? whole + 1 : whole;
}

/* Behind the text at i, or 0 if it has no end.  Compat: without a single one the first of the last two ends it. */
static size_t quoted(struct mq_str s, size_t i)
{
	size_t end = 0;

	for (i++; i < s.n; i++) {
		if (s.p[i] != '\'')
			continue;
		end = i + 1;
		if (end == s.n || s.p[end] != '\'')
			return end;
		i++;
	}
	return end;
}

/* Behind the blank or comment at i, or i if there is none.  Compat: "--" without an end of line is two signs. */
static size_t blank(struct mq_str s, size_t i)
{
	const char *end;

	if (strchr(" \t\n\r\f", s.p[i]) && s.p[i])
		return i + 1;
	if (i + 1 >= s.n)
		return i;
	if (s.p[i] == '-' && s.p[i + 1] == '-') {
		for (size_t k = i + 2; k < s.n; k++)
			if (s.p[k] == '\n' || s.p[k] == '\r')
				return k + 1;
	} else if (s.p[i] == '/' && s.p[i + 1] == '*') {
		end = memmem(s.p + i + 2, s.n - i - 2, "*/", 2);
		if (end)
			return (size_t)(end - s.p) + 2;
	}
	return i;
}

static enum sql_kind sign(struct mq_str s, size_t i, size_t *end)
{
	char next = i + 1 < s.n ? s.p[i + 1] : '\0';

	*end = i + 1;
	switch (s.p[i]) {
	case '=': return SQL_EQ;
	case '(': return SQL_OPEN;
	case ')': return SQL_CLOSE;
	case ',': return SQL_COMMA;
	case '+': return SQL_PLUS;
	case '-': return SQL_MINUS;
	case '<':
	case '>':
		if (next == '=')
			++*end;
		else if (s.p[i] == '<' && next == '>')
			return ++*end, SQL_NE;
		return s.p[i] == '<' ? (next == '=' ? SQL_LE : SQL_LT) : (next == '=' ? SQL_GE : SQL_GT);
	}
	return SQL_END;
}

static enum sql_kind word(struct mq_str s)
{
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (str_is_nocase(s, words[i].word))
			return words[i].kind;
	return SQL_NAME;
}

int sql_token_next(struct mq_str s, size_t *pos, struct sql_token *t, struct mq_error *e)
{
	size_t i = *pos, end;
	char show[16];

	while (i < s.n && (end = blank(s, i)) > i)
		i = end;
	*t = (struct sql_token){ .kind = SQL_END, .at = i };
	*pos = i;
	if (i == s.n)
		return 0;
	if (is_name(s.p[i])) {
		for (end = i; end < s.n && (is_name(s.p[end]) || is_digit(s.p[end])); end++)
			;
		t->kind = word((struct mq_str){ s.p + i, end - i });
	} else if (is_digit(s.p[i]) || (s.p[i] == '.' && i + 1 < s.n && is_digit(s.p[i + 1]))) {
		end = number(s, i, &t->kind);
	} else if (s.p[i] == '\'') {
		end = quoted(s, i);
		if (!end)
			return sql_token_error(s, i, e, "the text that begins here has no closing quote");
		t->kind = SQL_TEXT;
	} else {
		t->kind = sign(s, i, &end);
		if (t->kind == SQL_END) {
			if (s.p[i] == '/' && i + 1 < s.n && s.p[i + 1] == '*')
				return sql_token_error(s, i, e, "the comment that begins here has no end");
			for (end = i + 1; end < s.n && ((uint8_t)s.p[end] & 0xc0) == 0x80; end++)
				;
			return sql_token_error(s, i, e, "'%s' has no meaning here%s",
					       str_show((struct mq_str){ s.p + i, end - i }, show, sizeof show),
					       s.p[i] == '!' ? "; <> would be right"
					       : s.p[i] == '"' ? "; texts stand in single quotes" : "");
		}
	}
	t->text = (struct mq_str){ s.p + i, end - i };
	*pos = end;
	return 0;
}
