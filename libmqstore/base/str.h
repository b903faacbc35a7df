/* str.h: views of bytes: compare, search, numbers in and out. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <mq.h>
#include <string.h>

static inline struct mq_str str_of(const char *s) { return (struct mq_str){ s, s ? strlen(s) : 0 }; }
static inline bool str_eq(struct mq_str a, struct mq_str b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }
static inline bool str_is(struct mq_str a, const char *s) { return str_eq(a, str_of(s)); }
static inline bool str_starts(struct mq_str a, const char *s) { size_t n = strlen(s); return a.n >= n && memcmp(a.p, s, n) == 0; }
bool str_is_nocase(struct mq_str a, const char *s);
int str_cmp(struct mq_str a, struct mq_str b);                   /* by bytes */
struct mq_str str_trim(struct mq_str s);                         /* blanks at both ends */
/* Next piece of *rest before `sep` (empty pieces too); false when nothing is left. */
bool str_split(struct mq_str *rest, char sep, struct mq_str *piece);
char *str_dup(struct mq_str s);                                  /* NUL-terminated copy; caller frees */

/* Decimal, whole text, in range; else MQ_EINVAL and *v unchanged. */
int str_i64(struct mq_str s, int64_t *v);
int str_i32(struct mq_str s, int32_t *v);
/* "true" in any case is true, everything else false, as in Java. */
bool str_bool(struct mq_str s);
int str_double(struct mq_str s, double *v);
/* strtod() of the C locale, whatever the program's is. */
double str_strtod(const char *s, char **end);
/* "10", "64K", "64KB", "1.5G" (powers of 1024) and "500ms", "10s", "5m", "2h", "3d" (to ms; bare number = `unit_ms`). */
int str_size(struct mq_str s, int64_t *bytes);
int str_duration(struct mq_str s, int64_t unit_ms, int64_t *ms);

/* Java String.hashCode of the text that these UTF-8 bytes are: over UTF-16 units, 32-bit wrap-around. */
int32_t str_java_hash(struct mq_str utf8);
int32_t str_java_hash_more(int32_t h, struct mq_str utf8);       /* go on from h: hash of a concatenation */
/* Bytes of the UTF-8 character at p (n > 0 bytes there) and its number in *u; 0 if these bytes are none (also: overlong, surrogate,
 * cut short). */
size_t str_utf8(const char *p, size_t n, uint32_t *u);
/* s for a log line or a terminal: control bytes and bad UTF-8 as \xNN; "..." at the end if it was cut.  out is NUL-terminated.
 * Returns out. */
char *str_show(struct mq_str s, char *out, size_t cap);

#endif
