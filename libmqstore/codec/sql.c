/* sql.c: compiles an SQL92 expression: one function for each rule of the grammar, steps in the order in which they are run.
 *
 * What the peer refuses when it builds its tree is refused here, with the place. */
#include "sql_build.h"
#include "../base/err.h"
#include "../base/mem.h"
#include "../base/str.h"
#include <float.h>
#include <stdlib.h>

/* What a rule has put on the stack. */
enum kind {
	K_NAME,                 /* a property */
	K_NUMBER,               /* a literal; also: value */
	K_TEXT, K_NULL,         /* literals */
	K_LITERAL_TRUTH,        /* TRUE, FALSE */
	K_TRUTH,                /* NOT, AND, OR, a comparison */
	K_NEGATED,              /* -x */
};

struct operand {
	enum kind kind;
	size_t at;              /* character where it begins */
	uint32_t step;          /* its first */
	bool is_double;         /* K_NUMBER */
	int64_t i;
	double d;
};

static int expression(struct sql_build *p, struct operand *o);

/* ---- Words --------------------------------------------------------------------------------------------------------------- */

static int advance(struct sql_build *p)
{
	return sql_token_next(p->text, &p->pos, &p->t, p->e);
}

static int unexpected(struct sql_build *p, const char *want)
{
	char show[64];

	if (p->t.kind == SQL_END)
		return sql_token_error(p->text, p->t.at, p->e, "the expression ends; want %s", want);
	return sql_token_error(p->text, p->t.at, p->e, "'%s': want %s", str_show(p->t.text, show, sizeof show), want);
}

static int expect(struct sql_build *p, enum sql_kind kind, const char *want)
{
	return p->t.kind == kind ? advance(p) : unexpected(p, want);
}

static int refuse(struct sql_build *p, const struct operand *o, const char *why)
{
	return sql_token_error(p->text, o->at, p->e, "%s", why);
}

/* ---- Operands ------------------------------------------------------------------------------------------------------------ */

static int whole(struct sql_build *p, struct operand *o)
{
	struct mq_str s = p->t.text;
	bool is_int;

	s.n -= s.p[s.n - 1] == 'l' || s.p[s.n - 1] == 'L';
	if (!sql_whole(s, 0, INT64_MAX, &o->i))
		return sql_token_error(p->text, p->t.at, p->e, "a whole number is at most %lld", (long long)INT64_MAX);
	o->kind = K_NUMBER;
	is_int = o->i <= INT32_MAX;
	return sql_build_step(p, (struct sql_op){ .code = is_int ? SQL_OP_INT : SQL_OP_LONG, .i = o->i });
}

static int floating(struct sql_build *p, struct operand *o)
{
	o->kind = K_NUMBER;
	o->is_double = true;
	if (!sql_double(p->t.text, &o->d) || o->d > DBL_MAX)
		return sql_token_error(p->text, p->t.at, p->e, "the number is too large");
	if (o->d < DBL_TRUE_MIN) /* compat */
		return sql_token_error(p->text, p->t.at, p->e, "a number with a point must be more than 0; 0 itself is written 0");
	return sql_build_step(p, (struct sql_op){ .code = SQL_OP_DOUBLE, .d = o->d });
}

static int literal(struct sql_build *p, struct operand *o)
{
	enum sql_kind kind = p->t.kind;
	int rc;

	if (kind != SQL_TEXT && ++p->literals > SQL_LITERALS_MAX)
		return sql_build_too_much(p, "literals", SQL_LITERALS_MAX);
	switch (kind) {
	case SQL_TEXT:
		o->kind = K_TEXT;
		rc = sql_build_text(p, p->t.text);
		if (rc == 0)
			rc = sql_build_step(p, (struct sql_op){ .code = SQL_OP_TEXT, .a = p->s->nlist - 1 });
		break;
	case SQL_WHOLE:
		rc = whole(p, o);
		break;
	case SQL_FLOAT:
		rc = floating(p, o);
		break;
	case SQL_NULL:
		o->kind = K_NULL;
		rc = sql_build_simple(p, SQL_OP_NULL);
		break;
	default:
		o->kind = K_LITERAL_TRUTH;
		rc = sql_build_step(p, (struct sql_op){ .code = SQL_OP_BOOL, .i = kind == SQL_TRUE });
	}
	return rc < 0 ? rc : advance(p);
}

static int name(struct sql_build *p, struct operand *o)
{
	int rc = sql_build_name(p);

	o->kind = K_NAME;
	return rc < 0 ? rc : advance(p);
}

static int primary(struct sql_build *p, struct operand *o)
{
	int rc;

	switch (p->t.kind) {
	case SQL_TEXT:
	case SQL_WHOLE:
	case SQL_FLOAT:
	case SQL_TRUE:
	case SQL_FALSE:
	case SQL_NULL:
		return literal(p, o);
	case SQL_NAME:
		return name(p, o);
	case SQL_OPEN:
		rc = advance(p);
		if (rc == 0)
			rc = expression(p, o);
		return rc < 0 ? rc : expect(p, SQL_CLOSE, "')'");
	default:
		return unexpected(p, "a property, a literal, NOT or '('");
	}
}

/* Make it a truth value, as NOT, AND and OR want it. */
static int as_truth(struct sql_build *p, const struct operand *o)
{
	switch (o->kind) {
	case K_TRUTH:
	case K_LITERAL_TRUTH:
	case K_NULL:
		return 0;
	case K_NAME:
		return sql_build_simple(p, SQL_OP_CAST);
	case K_NUMBER:
	case K_TEXT:
	case K_NEGATED:
		break;
	}
	return refuse(p, o, "this is not true or false; a comparison would be");
}

static int unary(struct sql_build *p, struct operand *o)
{
	enum sql_kind kind = p->t.kind;
	size_t at = p->t.at;
	uint32_t first = p->s->n;
	int rc;

	if (++p->depth > SQL_DEPTH_MAX)
		return sql_build_too_much(p, "levels", SQL_DEPTH_MAX);
	if (kind != SQL_PLUS && kind != SQL_MINUS && kind != SQL_NOT) {
		rc = primary(p, o);
	} else {
		rc = advance(p);
		if (rc == 0)
			rc = unary(p, o);
		if (rc == 0 && kind == SQL_MINUS) {
			o->kind = K_NEGATED;
			rc = sql_build_simple(p, SQL_OP_NEGATE);
		} else if (rc == 0 && kind == SQL_NOT) {
			rc = as_truth(p, o);
			o->kind = K_TRUTH;
			if (rc == 0)
				rc = sql_build_simple(p, SQL_OP_NOT);
		}
	}
	p->depth--;
	o->at = at;
	o->step = first;
	return rc;
}

/* ---- Comparisons --------------------------------------------------------------------------------------------------------- */

static int check_ordered(struct sql_build *p, const struct operand *o)
{
	if (o->kind == K_NAME || o->kind == K_NUMBER || o->kind == K_NEGATED)
		return 0;
	return refuse(p, o, "this has no order: want a property or a number");
}

/* The right side of a comparison, and its step.  It is not asked for beside NULL: that matters if it could fail. */
static int against(struct sql_build *p, struct operand *right, enum sql_code code)
{
	bool plain = p->t.kind == SQL_NAME || p->t.kind == SQL_WHOLE || p->t.kind == SQL_FLOAT;
	uint32_t jump = p->s->n;
	int rc = plain ? 0 : sql_build_simple(p, SQL_OP_IF_NULL);

	if (rc == 0)
		rc = unary(p, right);
	if (rc == 0)
		rc = check_ordered(p, right);
	if (rc == 0)
		rc = sql_build_simple(p, code);
	if (rc == 0 && !plain)
		sql_build_land(p, jump);
	return rc;
}

static int ordered(struct sql_build *p, struct operand *left, enum sql_code code)
{
	struct operand right = { 0 };
	int rc = check_ordered(p, left);

	if (rc == 0)
		rc = advance(p);
	left->kind = K_TRUTH;
	return rc < 0 ? rc : against(p, &right, code);
}

static bool is_more(const struct operand *a, const struct operand *b)
{
	if (a->is_double || b->is_double)
		return (a->is_double ? a->d : (double)a->i) > (b->is_double ? b->d : (double)b->i);
	return a->i > b->i;
}

/* The value is asked for twice, as its own text is: left >= low AND left <= high; with NOT: left < low OR left > high. */
static int between(struct sql_build *p, struct operand *left, bool not)
{
	struct operand low = { 0 }, high = { 0 };
	uint32_t end = p->s->n, jump;
	int rc = check_ordered(p, left);

	if (rc == 0)
		rc = advance(p);
	if (rc == 0)
		rc = against(p, &low, not ? SQL_OP_LT : SQL_OP_GE);
	if (rc == 0)
		rc = expect(p, SQL_AND, "AND, of BETWEEN");
	jump = p->s->n;
	if (rc == 0)
		rc = sql_build_simple(p, not ? SQL_OP_IF_TRUE : SQL_OP_IF_FALSE);
	if (rc == 0)
		rc = sql_build_repeat(p, left->step, end);
	if (rc == 0)
		rc = against(p, &high, not ? SQL_OP_GT : SQL_OP_LE);
	if (rc == 0 && !not && low.kind == K_NUMBER && high.kind == K_NUMBER && is_more(&low, &high))
		rc = refuse(p, &low, "BETWEEN: the first bound is more than the second");
	if (rc == 0)
		rc = sql_build_simple(p, not ? SQL_OP_OR : SQL_OP_AND);
	if (rc < 0)
		return rc;
	sql_build_land(p, jump);
	left->kind = K_TRUTH;
	return 0;
}

/* IN ('a', 'b'): behind the word. */
static int in_list(struct sql_build *p, struct operand *left, bool not)
{
	uint32_t first = p->s->nlist;
	int rc;

	if (left->kind != K_NAME)
		return refuse(p, left, "IN wants a property on its left");
	rc = advance(p);
	if (rc == 0)
		rc = expect(p, SQL_OPEN, "'('");
	while (rc == 0) {
		if (p->t.kind != SQL_TEXT)
			return unexpected(p, "a text in single quotes");
		rc = sql_build_text(p, p->t.text);
		if (rc == 0)
			rc = advance(p);
		if (rc < 0 || p->t.kind != SQL_COMMA)
			break;
		rc = advance(p);
	}
	if (rc == 0)
		rc = expect(p, SQL_CLOSE, "',' or ')'");
	if (rc < 0)
		return rc;
	qsort(p->s->list + first, p->s->nlist - first, sizeof *p->s->list, sql_text_cmp);
	left->kind = K_TRUTH;
	return sql_build_step(p, (struct sql_op){ .code = SQL_OP_IN, .a = first, .b = (uint16_t)(p->s->nlist - first), .i = not });
}

/* CONTAINS 'a' and its kin: behind the word. */
static int holds(struct sql_build *p, struct operand *left, enum sql_code code, bool not)
{
	int rc = advance(p);

	if (rc < 0)
		return rc;
	if (p->t.kind != SQL_TEXT)
		return unexpected(p, "a text in single quotes");
	rc = sql_build_text(p, p->t.text);
	if (rc < 0)
		return rc;
	left->kind = K_TRUTH;
	if (p->s->list[p->s->nlist - 1].n) {
		rc = sql_build_step(p, (struct sql_op){ .code = (uint16_t)code, .a = p->s->nlist - 1, .i = not });
	} else { /* compat: FALSE, before what is on the left is asked for */
		p->s->n = left->step;
		p->stack--;
		rc = sql_build_step(p, (struct sql_op){ .code = SQL_OP_BOOL });
	}
	return rc < 0 ? rc : advance(p);
}

static int comparison(struct sql_build *p, struct operand *o)
{
	int rc = unary(p, o);

	while (rc == 0) {
		bool not = p->t.kind == SQL_NOT;

		if (not && (rc = advance(p)) < 0)
			break;
		switch (p->t.kind) {
		case SQL_BETWEEN: rc = between(p, o, not); continue;
		case SQL_IN: rc = in_list(p, o, not); continue;
		case SQL_CONTAINS: rc = holds(p, o, SQL_OP_CONTAINS, not); continue;
		case SQL_STARTSWITH: rc = holds(p, o, SQL_OP_STARTS, not); continue;
		case SQL_ENDSWITH: rc = holds(p, o, SQL_OP_ENDS, not); continue;
		default: break;
		}
		if (not)
			return unexpected(p, "BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT");
		switch (p->t.kind) {
		case SQL_GT: rc = ordered(p, o, SQL_OP_GT); continue;
		case SQL_GE: rc = ordered(p, o, SQL_OP_GE); continue;
		case SQL_LT: rc = ordered(p, o, SQL_OP_LT); continue;
		case SQL_LE: rc = ordered(p, o, SQL_OP_LE); continue;
		default: return 0;
		}
	}
	return rc;
}

static int is_null(struct sql_build *p)
{
	bool not;
	int rc = advance(p);

	if (rc < 0)
		return rc;
	not = p->t.kind == SQL_NOT;
	if (not && (rc = advance(p)) < 0)
		return rc;
	rc = expect(p, SQL_NULL, not ? "NULL" : "NULL or NOT NULL");
	if (rc == 0)
		rc = sql_build_simple(p, SQL_OP_IS_NULL);
	return rc == 0 && not ? sql_build_simple(p, SQL_OP_NOT) : rc;
}

static int equal(struct sql_build *p, struct operand *left, bool not)
{
	struct operand right = { 0 };
	int rc;

	if (left->kind == K_NULL)
		return refuse(p, left, "NULL is compared with IS NULL");
	rc = advance(p);
	if (rc == 0)
		rc = comparison(p, &right);
	if (rc < 0)
		return rc;
	if (right.kind == K_NULL)
		return refuse(p, &right, "NULL is compared with IS NULL");
	if (left->kind == K_LITERAL_TRUTH && (right.kind == K_NUMBER || right.kind == K_TEXT)) /* compat: the other way round it may */
		return refuse(p, &right, "this is not true or false, and never equal to it");
	rc = sql_build_simple(p, SQL_OP_EQ);
	return rc == 0 && not ? sql_build_simple(p, SQL_OP_NOT) : rc;
}

static int equality(struct sql_build *p, struct operand *o)
{
	int rc = comparison(p, o);

	while (rc == 0) {
		switch (p->t.kind) {
		case SQL_EQ: rc = equal(p, o, false); break;
		case SQL_NE: rc = equal(p, o, true); break;
		case SQL_IS: rc = is_null(p); break;
		default: return 0;
		}
		o->kind = K_TRUTH;
	}
	return rc;
}

/* ---- AND, OR ------------------------------------------------------------------------------------------------------------- */

static int chain(struct sql_build *p, struct operand *o, enum sql_kind word, int (*part)(struct sql_build *, struct operand *))
{
	bool is_and = word == SQL_AND;
	int rc = part(p, o);

	while (rc == 0 && p->t.kind == word) {
		struct operand right = { 0 };
		uint32_t jump;

		rc = as_truth(p, o);
		jump = p->s->n;
		if (rc == 0)
			rc = sql_build_simple(p, is_and ? SQL_OP_IF_FALSE : SQL_OP_IF_TRUE);
		if (rc == 0)
			rc = advance(p);
		if (rc == 0)
			rc = part(p, &right);
		if (rc == 0)
			rc = as_truth(p, &right);
		if (rc == 0)
			rc = sql_build_simple(p, is_and ? SQL_OP_AND : SQL_OP_OR);
		if (rc == 0)
			sql_build_land(p, jump);
		o->kind = K_TRUTH;
	}
	return rc;
}

static int conjunction(struct sql_build *p, struct operand *o)
{
	return chain(p, o, SQL_AND, equality);
}

static int expression(struct sql_build *p, struct operand *o)
{
	return chain(p, o, SQL_OR, conjunction);
}

int sql_compile(struct sql **out, struct mq_str text, struct mq_error *e)
{
	struct sql_build p = { .text = text, .e = e };
	struct operand o = { 0 };
	int rc;

	*out = NULL;
	if (text.n > SQL_TEXT_MAX)
		return err_set(e, MQ_EINVAL, "SQL92 expression of %zu bytes; at most %d would be right", text.n, SQL_TEXT_MAX);
	p.s = mem_alloc(sizeof *p.s);
	p.s->text = mem_alloc(text.n + 1);
	rc = advance(&p);
	if (rc == 0)
		rc = expression(&p, &o);
	if (rc == 0)
		rc = as_truth(&p, &o);
	if (rc < 0) {
		sql_free(p.s);
		return rc;
	}
	*out = p.s;
	return 0;
}

void sql_free(struct sql *s)
{
	if (!s)
		return;
	free(s->text);
	free(s->op);
	free(s->list);
	free(s);
}
