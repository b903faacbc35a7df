/* fail.h: what went wrong, as an errno for the caller and as a line for the person who looks.
 *
 * Every failure that a broker, a name server or a wrong text caused is told once: a line on stderr, and as the last error in the file
 * `status`.  That a name does not exist is no failure and is not told. */
#ifndef MQFS_FAIL_H
#define MQFS_FAIL_H

#include <mqclient.h>

/* -errno for a code of mq.h or a negative errno. */
int fail_errno(const struct mq_error *e);
/* -errno for a response code of the peer with its remark. */
int fail_response(int code, struct mq_str remark);

/* Tell, and return rc (a negative errno).  `what` names the file or the act. */
int fail(int rc, const char *fmt, ...) MQ_PRINTF(2, 3);
int fail_error(const char *what, const struct mq_error *e);

/* The last one, "" if there was none yet; how many there were, and when (Unix ms). */
const char *fail_last(int64_t *count, int64_t *when_ms);

#endif
