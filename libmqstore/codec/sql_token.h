/* sql_token.h: the words of an SQL92 expression. */
#ifndef CODEC_SQL_TOKEN_H
#define CODEC_SQL_TOKEN_H

#include <mq.h>

enum sql_kind {
	SQL_END,
	SQL_NOT, SQL_AND, SQL_OR, SQL_BETWEEN, SQL_IN, SQL_TRUE, SQL_FALSE, SQL_NULL, SQL_IS, SQL_CONTAINS, SQL_STARTSWITH, SQL_ENDSWITH,
	SQL_NAME, SQL_WHOLE, SQL_FLOAT, SQL_TEXT,
	SQL_EQ, SQL_NE, SQL_GT, SQL_GE, SQL_LT, SQL_LE, SQL_OPEN, SQL_COMMA, SQL_CLOSE, SQL_PLUS, SQL_MINUS,
};

struct sql_token {
	enum sql_kind kind;
	size_t at;              /* where it begins */
	struct mq_str text;     /* with its quotes; of the text that was given */
};

/* The token that begins at *pos or behind blanks and comments there; *pos goes behind it.  0, or MQ_EINVAL. */
int sql_token_next(struct mq_str text, size_t *pos, struct sql_token *t, struct mq_error *e);
/* "character N: why", counted from 1. */
int sql_token_error(struct mq_str text, size_t at, struct mq_error *e, const char *fmt, ...) MQ_PRINTF(4, 5);

#endif
