/* sql.h: SQL92 filters: an expression over the properties of a message, compiled once, asked for each message.
 *
 * Grammar and meaning are those of the peer (its filter module, 5.2.0), also where they surprise:
 *	operand		NAME | 'text' (a quote doubled) | 5 | 5L | 5.5 | .5 | 5E3 | TRUE | FALSE | NULL | ( expression )
 *	NOT x, -x, +x	bind closest: NOT a = 1 is (NOT a) = 1
 *	>, >=, <, <=, [NOT] BETWEEN x AND y, [NOT] IN ('a', ...), [NOT] CONTAINS | STARTSWITH | ENDSWITH 'text'
 *	=, <>, IS [NOT] NULL
 *	AND, then OR; words in any case; names with case; comments as slash-star and as -- to the end of a line
 *   - Properties are text.  Beside a number the text is read as a number of the same kind: '5.5' beside 5 (a whole number of 32 bits)
 *     is none, nor is '3000000000'; beside 5.0 it is.  What is then no number, and two texts with <, make the whole expression fail
 *     at that point: no match, whatever OR would follow.
 *   - Three-valued: an absent property is NULL; a match is TRUE and nothing else.  But NULL = NULL is TRUE and x = NULL is FALSE
 *     where NULL is a property on the right.  CONTAINS and its kin are FALSE for NULL, also with NOT.
 *   - A floating-point literal must be more than 0; IN, CONTAINS and kin take texts only; text and truth values cannot be ordered.
 *   - What follows a complete expression is not looked at, but for the next word: a = 1 b is a = 1. */
#ifndef CODEC_SQL_H
#define CODEC_SQL_H

#include <mq.h>

/* Bounds; the peer has none.  An expression beyond is refused. */
enum {
	SQL_TEXT_MAX = 64 * 1024,       /* bytes */
	SQL_LITERALS_MAX = 4096,
	SQL_DEPTH_MAX = 128,            /* parentheses, signs and NOTs inside each other */
	SQL_STEPS_MAX = 32768,          /* of the program */
};                                      /* and PROPERTY_SET_MAX names */

struct sql;

/* The program of text, which is copied; sql_free() it.  MQ_EINVAL: e has the character (counted from 1) and the reason. */
int sql_compile(struct sql **s, struct mq_str text, struct mq_error *e);
void sql_free(struct sql *s);       /* NULL is fine */
/* Does a message with these properties match?  Allocates nothing; may run in any number of threads. */
bool sql_match(const struct sql *s, struct mq_str props);

#endif
