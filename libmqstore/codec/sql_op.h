/* sql_op.h: the program that an SQL92 expression is compiled to (sql.c) and that is run for each message (sql_run.c).
 *
 * Steps work on a stack of values; a jump goes forward only, so that a program ends. */
#ifndef CODEC_SQL_OP_H
#define CODEC_SQL_OP_H

#include "property.h"
#include "sql.h"

enum { SQL_STACK_MAX = 256 };

enum sql_type { SQL_V_NULL, SQL_V_BOOL, SQL_V_INT, SQL_V_LONG, SQL_V_DOUBLE, SQL_V_TEXT };

struct sql_value {
	enum sql_type type;
	union {
		int64_t i;              /* BOOL, INT, LONG */
		double d;
		struct mq_str s;
	};
};

enum sql_code {
	SQL_OP_NULL, SQL_OP_BOOL, SQL_OP_INT, SQL_OP_LONG, SQL_OP_DOUBLE,       /* push: i, d */
	SQL_OP_TEXT,                    /* push list[a] */
	SQL_OP_NAME,                    /* push the property of name a */
	SQL_OP_CAST, SQL_OP_NOT, SQL_OP_NEGATE, SQL_OP_IS_NULL,
	SQL_OP_CONTAINS, SQL_OP_STARTS, SQL_OP_ENDS,                            /* list[a]; i: not */
	SQL_OP_IN,                      /* list[a], b of them, sorted; i: not */
	SQL_OP_EQ, SQL_OP_GT, SQL_OP_GE, SQL_OP_LT, SQL_OP_LE,                  /* pop two, push a truth value */
	SQL_OP_IF_TRUE, SQL_OP_IF_FALSE, SQL_OP_IF_NULL,                        /* a steps on if the top is so; it stays */
	SQL_OP_AND, SQL_OP_OR,
};

struct sql_op {
	uint16_t code;
	uint16_t b;
	uint32_t a;
	union {
		int64_t i;
		double d;
	};
};

struct sql {
	char *text;                     /* names and texts point into it */
	struct sql_op *op;
	uint32_t n, cap;
	struct mq_str *list;            /* texts */
	uint32_t nlist, list_cap;
	struct property_set names;
};

/* By length, then by bytes: the order of an IN list. */
int sql_text_cmp(const void *a, const void *b);
/* The whole text as Java's Double.valueOf() reads it; false: none. */
bool sql_double(struct mq_str s, double *v);
/* As Java's Integer.valueOf() and Long.valueOf(), but for digits outside of ASCII. */
bool sql_whole(struct mq_str s, int64_t min, int64_t max, int64_t *v);
/* -1, 0, 1 by Double.compare(): -0 < 0, NaN above all. */
int sql_double_cmp(double a, double b);

#endif
