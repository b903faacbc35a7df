/* sql_build.h: the program of an SQL92 expression as it grows: what the rules of sql.c have in common.
 *
 * All return 0, or MQ_EINVAL when a bound is passed. */
#ifndef CODEC_SQL_BUILD_H
#define CODEC_SQL_BUILD_H

#include "sql_op.h"
#include "sql_token.h"

struct sql_build {
	struct mq_str text;
	size_t pos;
	struct sql_token t;     /* the next one */
	struct sql *s;
	size_t copied;          /* bytes used of s->text */
	uint32_t literals;
	int depth, stack;
	struct mq_error *e;
};

int sql_build_step(struct sql_build *p, struct sql_op op);
int sql_build_simple(struct sql_build *p, enum sql_code code);      /* one without arguments */
/* The steps [from, to) once more: they run a second time. */
int sql_build_repeat(struct sql_build *p, uint32_t from, uint32_t to);
/* The jump that is step `at` ends behind the last step. */
void sql_build_land(struct sql_build *p, uint32_t at);
/* A text with its quotes, as the last of s->list. */
int sql_build_text(struct sql_build *p, struct mq_str quoted);
/* The name that is the next token is pushed. */
int sql_build_name(struct sql_build *p);
/* "too large: more than MAX WHAT", at the next token. */
int sql_build_too_much(struct sql_build *p, const char *what, int max);

#endif
