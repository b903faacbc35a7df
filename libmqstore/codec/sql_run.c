/* sql_run.c: runs the program of an SQL92 expression over the properties of a message. */
#include "sql_op.h"
#include "../base/str.h"
#include <math.h>

enum { NUMBER_TEXT_MAX = 1024 };        /* a longer text is no number */

/* ---- Numbers in texts ---------------------------------------------------------------------------------------------------- */

bool sql_whole(struct mq_str s, int64_t min, int64_t max, int64_t *v)
{
	size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
	bool minus = i && s.p[0] == '-';
	int64_t x = 0;

	if (i == s.n)
		return false;
	for (; i < s.n; i++) {
		uint32_t digit = (uint8_t)s.p[i] - (uint32_t)'0';

		/* Counted below zero: there is one more number there. */
		if (digit > 9 || __builtin_mul_overflow(x, 10, &x) || __builtin_sub_overflow(x, (int64_t)digit, &x))
			return false;
	}
	if (!minus && x == INT64_MIN)
		return false;
	*v = minus ? x : -x;
	return *v >= min && *v <= max;
}

static bool is_digit(char c, bool hex)
{
	return (c >= '0' && c <= '9') || (hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
}

/* Is it a number as Java writes one, without sign and blanks?  *plain: digits and a point only. */
static bool is_number(struct mq_str s, bool *plain)
{
	bool hex = s.n > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'X');
	size_t i = hex ? 2 : 0, n = 0, before;

	for (; i < s.n && is_digit(s.p[i], hex); i++)
		n++;
	if (i < s.n && s.p[i] == '.')
		for (i++; i < s.n && is_digit(s.p[i], hex); i++)
			n++;
	*plain = !hex && i == s.n;
	if (!n)
		return false;
	if (i < s.n && (hex ? s.p[i] == 'p' || s.p[i] == 'P' : s.p[i] == 'e' || s.p[i] == 'E')) {
		i++;
		if (i < s.n && (s.p[i] == '+' || s.p[i] == '-'))
			i++;
		for (before = i; i < s.n && is_digit(s.p[i], false); i++)
			;
		if (i == before)
			return false;
	} else if (hex) {
		return false;
	}
	if (i < s.n && strchr("fFdD", s.p[i]) && s.p[i])
		i++;
	return i == s.n;
}

/* Few enough digits that one division is exact; false: too many. */
static bool short_decimal(struct mq_str s, double *v)
{
	static const double ten[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
	int64_t x = 0;
	size_t point = s.n;

	if (s.n > 15)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '.')
			point = i + 1;
		else
			x = x * 10 + (s.p[i] - '0');
	*v = (double)x / ten[s.n - point];
	return true;
}

bool sql_double(struct mq_str s, double *v)
{
	char text[NUMBER_TEXT_MAX];
	bool minus, plain;

	while (s.n && (uint8_t)s.p[0] <= ' ')
		s.p++, s.n--;
	while (s.n && (uint8_t)s.p[s.n - 1] <= ' ')
		s.n--;
	minus = s.n && s.p[0] == '-';
	if (minus || (s.n && s.p[0] == '+'))
		s.p++, s.n--;
	if (s.n >= sizeof text)
		return false;
	if (str_is(s, "NaN"))
		*v = NAN;
	else if (str_is(s, "Infinity"))
		*v = INFINITY;
	else if (!is_number(s, &plain))
		return false;
	else if (!plain || !short_decimal(s, v)) {
		memcpy(text, s.p, s.n);
		text[s.n] = '\0';
		*v = str_strtod(text, NULL); /* the letter of a suffix ends it */
	}
	if (minus)
		*v = -*v;
	return true;
}

int sql_double_cmp(double a, double b)
{
	if (a < b)
		return -1;
	if (a > b)
		return 1;
	if (isnan(a) || isnan(b))
		return !!isnan(a) - !!isnan(b);
	return !!signbit(b) - !!signbit(a);
}

/* ---- Values -------------------------------------------------------------------------------------------------------------- */

int sql_text_cmp(const void *a, const void *b)
{
	const struct mq_str *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return x->n ? memcmp(x->p, y->p, x->n) : 0;
}

static int whole_cmp(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* A text beside a number: *c is how the text compares to it.  False: it is no such number. */
static bool text_cmp(struct mq_str s, const struct sql_value *number, int *c)
{
	bool is_int = number->type == SQL_V_INT;
	int64_t i;
	double d;

	if (number->type == SQL_V_DOUBLE) {
		if (!sql_double(s, &d))
			return false;
		*c = sql_double_cmp(d, number->d);
		return true;
	}
	if (!sql_whole(s, is_int ? INT32_MIN : INT64_MIN, is_int ? INT32_MAX : INT64_MAX, &i))
		return false;
	*c = whole_cmp(i, number->i);
	return true;
}

static double as_double(const struct sql_value *v)
{
	return v->type == SQL_V_DOUBLE ? v->d : (double)v->i;
}

/* How l compares to r, none of them NULL.  False: the peer throws. */
static bool compare(const struct sql_value *l, const struct sql_value *r, bool order, int *c)
{
	double a, b;

	if (l->type == SQL_V_TEXT && r->type == SQL_V_TEXT) {
		if (!order) {
			*c = !str_eq(l->s, r->s);
			return true;
		}
		if (!sql_double(l->s, &a) || !sql_double(r->s, &b))
			return false;
		*c = sql_double_cmp(a, b);
	} else if (l->type == SQL_V_BOOL) {
		if (r->type == SQL_V_TEXT)
			return false;
		*c = r->type == SQL_V_BOOL ? whole_cmp(l->i, r->i) : -1;
	} else if (r->type == SQL_V_BOOL) {
		*c = l->type == SQL_V_TEXT ? whole_cmp(str_bool(l->s), r->i) : -1;
	} else if (l->type == SQL_V_TEXT) {
		return text_cmp(l->s, r, c);
	} else if (r->type == SQL_V_TEXT) {
		if (!text_cmp(r->s, l, c))
			return false;
		*c = -*c;
	} else if (l->type == SQL_V_DOUBLE || r->type == SQL_V_DOUBLE) {
		*c = sql_double_cmp(as_double(l), as_double(r));
	} else {
		*c = whole_cmp(l->i, r->i);
	}
	return true;
}

static struct sql_value truth(bool b)
{
	return (struct sql_value){ .type = SQL_V_BOOL, .i = b };
}

static bool is_truth(const struct sql_value *v, bool b)
{
	return v->type == SQL_V_BOOL && v->i == b;
}

/* l and r become l; false: the peer throws. */
static bool equal(struct sql_value *l, const struct sql_value *r)
{
	int c;

	if (l->type == SQL_V_NULL) {
		if (r->type == SQL_V_NULL)
			*l = truth(true);
		return true;
	}
	if (r->type == SQL_V_NULL) { /* compat */
		*l = truth(false);
		return true;
	}
	if (!compare(l, r, false, &c))
		return false;
	*l = truth(c == 0);
	return true;
}

static bool ordered(struct sql_value *l, const struct sql_value *r, enum sql_code code)
{
	int c;

	if (l->type == SQL_V_NULL)
		return true;
	if (r->type == SQL_V_NULL) {
		l->type = SQL_V_NULL;
		return true;
	}
	if (!compare(l, r, true, &c))
		return false;
	switch (code) {
	case SQL_OP_GT: *l = truth(c > 0); break;
	case SQL_OP_GE: *l = truth(c >= 0); break;
	case SQL_OP_LT: *l = truth(c < 0); break;
	default: *l = truth(c <= 0); break;
	}
	return true;
}

/* One of the two is false (AND) or true (OR): that wins; else NULL wins. */
static void both(struct sql_value *l, const struct sql_value *r, bool winner)
{
	if (is_truth(l, winner) || is_truth(r, winner))
		*l = truth(winner);
	else if (l->type == SQL_V_NULL || r->type == SQL_V_NULL)
		l->type = SQL_V_NULL;
	else
		*l = truth(!winner);
}

static bool holds(struct mq_str s, struct mq_str part, enum sql_code code)
{
	if (part.n > s.n)
		return false;
	if (code == SQL_OP_CONTAINS)
		return memmem(s.p, s.n, part.p, part.n) != NULL;
	return memcmp(code == SQL_OP_STARTS ? s.p : s.p + (s.n - part.n), part.p, part.n) == 0;
}

static bool in_list(const struct mq_str *list, uint32_t n, struct mq_str s)
{
	uint32_t lo = 0;

	while (n) { /* list[lo, lo + n) may hold it */
		uint32_t half = n / 2;
		int c = sql_text_cmp(&s, &list[lo + half]);

		if (c == 0)
			return true;
		if (c > 0) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return false;
}

static void negate(struct sql_value *v)
{
	switch (v->type) {
	case SQL_V_INT: v->i = (int32_t)-(uint32_t)v->i; break;
	case SQL_V_LONG: v->i = (int64_t)-(uint64_t)v->i; break;
	case SQL_V_DOUBLE: v->d = -v->d; break;
	default: v->type = SQL_V_NULL; break;
	}
}

/* ---- The program --------------------------------------------------------------------------------------------------------- */

bool sql_match(const struct sql *s, struct mq_str props)
{
	struct mq_str value[PROPERTY_SET_MAX];
	struct sql_value stack[1 + SQL_STACK_MAX], *top = stack; /* stack[0] is never used */
	const struct sql_op *op = s->op, *end = op + s->n;

	if (s->names.n)
		property_set_find(&s->names, props, value);
	for (; op < end; op++) {
		switch ((enum sql_code)op->code) {
		case SQL_OP_NULL: (++top)->type = SQL_V_NULL; break;
		case SQL_OP_BOOL: *++top = truth(op->i); break;
		case SQL_OP_INT: *++top = (struct sql_value){ .type = SQL_V_INT, .i = op->i }; break;
		case SQL_OP_LONG: *++top = (struct sql_value){ .type = SQL_V_LONG, .i = op->i }; break;
		case SQL_OP_DOUBLE: *++top = (struct sql_value){ .type = SQL_V_DOUBLE, .d = op->d }; break;
		case SQL_OP_TEXT: *++top = (struct sql_value){ .type = SQL_V_TEXT, .s = s->list[op->a] }; break;
		case SQL_OP_NAME:
			(++top)->type = value[op->a].p ? SQL_V_TEXT : SQL_V_NULL;
			top->s = value[op->a];
			break;
		case SQL_OP_CAST: /* of a property: compat: a text is not true, whatever it says */
			if (top->type != SQL_V_NULL)
				*top = truth(false);
			break;
		case SQL_OP_NOT:
			if (top->type != SQL_V_NULL)
				*top = truth(!top->i);
			break;
		case SQL_OP_NEGATE: negate(top); break;
		case SQL_OP_IS_NULL: *top = truth(top->type == SQL_V_NULL); break;
		case SQL_OP_CONTAINS:
		case SQL_OP_STARTS:
		case SQL_OP_ENDS:
			*top = truth(top->type == SQL_V_TEXT && holds(top->s, s->list[op->a], op->code) != (bool)op->i);
			break;
		case SQL_OP_IN:
			if (top->type != SQL_V_NULL)
				*top = truth(in_list(s->list + op->a, op->b, top->s) != (bool)op->i);
			break;
		case SQL_OP_EQ:
			top--;
			if (!equal(top, top + 1))
				return false;
			break;
		case SQL_OP_GT:
		case SQL_OP_GE:
		case SQL_OP_LT:
		case SQL_OP_LE:
			top--;
			if (!ordered(top, top + 1, op->code))
				return false;
			break;
		case SQL_OP_IF_TRUE:
			if (is_truth(top, true))
				op += op->a;
			break;
		case SQL_OP_IF_FALSE:
			if (is_truth(top, false))
				op += op->a;
			break;
		case SQL_OP_IF_NULL:
			if (top->type == SQL_V_NULL)
				op += op->a;
			break;
		case SQL_OP_AND: top--; both(top, top + 1, false); break;
		case SQL_OP_OR: top--; both(top, top + 1, true); break;
		}
	}
	return is_truth(top, true);
}
