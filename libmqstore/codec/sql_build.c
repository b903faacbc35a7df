/* sql_build.c: appends steps, texts and names to the program of an SQL92 expression, within its bounds. */
#include "sql_build.h"
#include "../base/mem.h"

int sql_build_too_much(struct sql_build *p, const char *what, int max)
{
	return sql_token_error(p->text, p->t.at, p->e, "too large: more than %d %s", max, what);
}

/* By how much a step changes the height of the stack. */
static int grows(enum sql_code code)
{
	switch (code) {
	case SQL_OP_NULL:
	case SQL_OP_BOOL:
	case SQL_OP_INT:
	case SQL_OP_LONG:
	case SQL_OP_DOUBLE:
	case SQL_OP_TEXT:
	case SQL_OP_NAME:
		return 1;
	case SQL_OP_EQ:
	case SQL_OP_GT:
	case SQL_OP_GE:
	case SQL_OP_LT:
	case SQL_OP_LE:
	case SQL_OP_AND:
	case SQL_OP_OR:
		return -1;
	default:
		return 0;
	}
}

int sql_build_step(struct sql_build *p, struct sql_op op)
{
	struct sql *s = p->s;

	if (s->n == SQL_STEPS_MAX)
		return sql_build_too_much(p, "steps", SQL_STEPS_MAX);
	p->stack += grows(op.code);
	if (p->stack > SQL_STACK_MAX)
		return sql_build_too_much(p, "values at once", SQL_STACK_MAX);
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->op = mem_realloc(s->op, s->cap * sizeof *s->op);
	}
	s->op[s->n++] = op;
	return 0;
}

int sql_build_simple(struct sql_build *p, enum sql_code code)
{
	return sql_build_step(p, (struct sql_op){ .code = (uint16_t)code });
}

int sql_build_repeat(struct sql_build *p, uint32_t from, uint32_t to)
{
	int rc = 0;

	for (uint32_t i = from; i < to && rc == 0; i++)
		rc = sql_build_step(p, p->s->op[i]);
	return rc;
}

void sql_build_land(struct sql_build *p, uint32_t at)
{
	p->s->op[at].a = p->s->n - at - 1;
}

/* A copy that lives as long as the program, without the quotes if it has any. */
static struct mq_str keep(struct sql_build *p, struct mq_str s, bool quoted)
{
	char *to = p->s->text + p->copied, *from = to;

	for (size_t i = quoted; i < s.n - quoted; i++) {
		*to++ = s.p[i];
		if (quoted && s.p[i] == '\'')
			i++;
	}
	p->copied += (size_t)(to - from);
	return (struct mq_str){ from, (size_t)(to - from) };
}

int sql_build_text(struct sql_build *p, struct mq_str quoted)
{
	struct sql *s = p->s;

	if (++p->literals > SQL_LITERALS_MAX)
		return sql_build_too_much(p, "literals", SQL_LITERALS_MAX);
	if (s->nlist == s->list_cap) {
		s->list_cap = s->list_cap ? s->list_cap * 2 : 8;
		s->list = mem_realloc(s->list, s->list_cap * sizeof *s->list);
	}
	s->list[s->nlist++] = keep(p, quoted, true);
	return 0;
}

int sql_build_name(struct sql_build *p)
{
	struct property_set *names = &p->s->names;
	uint32_t before = names->n;
	int i = property_set_add(names, p->t.text);

	if (i < 0)
		return sql_build_too_much(p, "names of properties", PROPERTY_SET_MAX);
	if (names->n > before)
		names->name[i] = keep(p, p->t.text, false);
	return sql_build_step(p, (struct sql_op){ .code = SQL_OP_NAME, .a = (uint32_t)i });
}
