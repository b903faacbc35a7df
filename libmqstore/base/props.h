/* props.h: the lines of a Java properties text.
 *
 * key=value, key: value or `key value`; lines that begin with # or ! are comments; a backslash at the end of a line joins the
 * next one to it; \t \n \r \f \uXXXX and \<char> are escapes.  Unlike Java, blanks at the end of a value do not count. */
#ifndef BASE_PROPS_H
#define BASE_PROPS_H

#include "buf.h"

struct props {
	struct mq_str text;
	size_t at;
	int lines;              /* read so far */
	int line;               /* number of the first line of the entry last returned */
	size_t start, end;      /* its place in text, with the line feed */
	struct buf key, value;  /* unescaped; not NUL-terminated */
};
static inline struct props props_of(struct mq_str text) { return (struct props){ .text = text }; }
bool props_next(struct props *p);       /* false at the end */
void props_free(struct props *p);
/* Append "key=value\n" so that props_next() and Java read the same (beyond ASCII: \uXXXX). */
void props_put(struct buf *b, struct mq_str key, struct mq_str value);

#endif
