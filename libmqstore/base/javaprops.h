/* javaprops.h: the lines of a Java properties text.
 *
 * key=value, key: value or `key value`; lines that begin with # or ! are comments; a backslash at the end of a line joins the
 * next one to it; \t \n \r \f \uXXXX and \<char> are escapes.  Unlike Java, blanks at the end of a value do not count. */
#ifndef BASE_JAVAPROPS_H
#define BASE_JAVAPROPS_H

#include "buf.h"

struct javaprops {
	struct mq_str text;
	size_t at;
	int lines;              /* read so far */
	int line;               /* number of the first line of the entry last returned */
	size_t start, end;      /* its place in text, with the line feed */
	struct buf key, value;  /* unescaped; not NUL-terminated */
};
static inline struct javaprops javaprops_of(struct mq_str text) { return (struct javaprops){ .text = text }; }
bool javaprops_next(struct javaprops *p);       /* false at the end */
void javaprops_free(struct javaprops *p);
/* Append "key=value\n" so that javaprops_next() and Java read the same (beyond ASCII: \uXXXX). */
void javaprops_put(struct buf *b, struct mq_str key, struct mq_str value);

#endif
