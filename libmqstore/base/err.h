/* err.h: filling in a struct mq_error on the way up.
 *
 * The level that fails says what; each level that knows a name puts it in front ("open store '/x': segment '0000': ...");
 * nobody logs and returns.  `e` may be NULL everywhere.  All return the code, so `return err_set(e, MQ_EINVAL, ...)`. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <mq.h>

int err_set(struct mq_error *e, int code, const char *fmt, ...) MQ_PRINTF(3, 4);
/* As err_set, with ": " and mq_strerror(code) at the end. */
int err_sys(struct mq_error *e, int code, const char *fmt, ...) MQ_PRINTF(3, 4);
/* Put "<words>: " in front of what e holds; code stays. */
int err_wrap(struct mq_error *e, const char *fmt, ...) MQ_PRINTF(2, 3);

#endif
