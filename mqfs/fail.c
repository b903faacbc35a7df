/* fail.c: see fail.h.  The same line is not told more than once a second: a script in a loop would fill a disk with it. */
#include "fail.h"
#include "task.h"
#include "../bin/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

static char last[600];
static int64_t count, last_ms, last_mono_ms;

/* Response codes of the peer: reference of mq-wire(7), RESPONSE CODES. */
int fail_response(int code, struct mq_str remark)
{
	switch (code) {
	case 0: return 0;
	case 1:                         /* SYSTEM_ERROR: no account, or one without the right (mq-broker(8), Rights) */
		return remark.n && memmem(remark.p, remark.n, "AclException", 12) ? -EACCES : -EIO;
	case 2: return -EAGAIN;         /* SYSTEM_BUSY */
	case 3: return -EOPNOTSUPP;     /* REQUEST_CODE_NOT_SUPPORTED */
	case 13: return -EMSGSIZE;      /* MESSAGE_ILLEGAL: names were looked at before */
	case 14:                        /* SERVICE_NOT_AVAILABLE: the disk, or it is about to stop */
		return remark.n && memmem(remark.p, remark.n, "disk", 4) ? -ENOSPC : -EAGAIN;
	case 16: return -EACCES;        /* NO_PERMISSION */
	case 17: case 22: case 26: return -ENOENT; /* no such topic, message or offset, group */
	case 21: return -ESTALE;        /* the offset is gone */
	case 206: return -ENOENT;       /* no member online */
	case 1500: return -EAGAIN;      /* GO_AWAY */
	default:
		return -EIO;
	}
}

int fail_errno(const struct mq_error *e)
{
	switch (e->code) {
	case 0: return 0;
	case MQ_EINVAL: return -EINVAL;
	case MQ_ENOTFOUND: return -ENOENT;
	case MQ_ETOOBIG: return -EMSGSIZE;
	case MQ_EFULL: return -ENOSPC;
	case MQ_EREADONLY: return -EROFS;
	case MQ_EPROTO: return -EPROTO;
	case MQ_ETIMEOUT: return -ETIMEDOUT;
	case MQ_ECLOSED: return -EHOSTDOWN;
	case MQ_EREFUSED: return fail_response(e->response, (struct mq_str){ e->text, strlen(e->text) });
	case MQ_EBUSY: return -EBUSY;
	case MQ_ENOROUTE: return -ENOENT;
	case MQ_ECANCELLED: return -ENOTCONN;
	case MQ_EUNSUPPORTED: return -EOPNOTSUPP;
	case -ECONNREFUSED: case -EHOSTUNREACH: case -ENETUNREACH: case -ECONNRESET: case -ECONNABORTED: case -EPIPE: case -ENETDOWN:
	case -ENOTCONN: return -EHOSTDOWN;
	case -ETIMEDOUT: return -ETIMEDOUT;
	default:
		return e->code <= -10000 || e->code > 0 ? -EIO : e->code < -4000 || e->code < -133 ? -EHOSTDOWN : e->code;
	}
}

static void tell(const char *text)
{
	struct timespec t;
	int64_t now = task_now_ms();
	bool again = strcmp(text, last) == 0 && now - last_mono_ms < 1000;

	clock_gettime(CLOCK_REALTIME, &t);
	count++;
	last_ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
	if (again)
		return;
	last_mono_ms = now;
	snprintf(last, sizeof(last), "%s", text);
	cli_warn("%s", text);
}

int fail(int rc, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell(text);
	return rc;
}

int fail_error(const char *what, const struct mq_error *e)
{
	char text[600];

	snprintf(text, sizeof(text), "%.80s: %s", what, e->text[0] ? e->text : mq_strerror(e->code));
	tell(text);
	return fail_errno(e);
}

const char *fail_last(int64_t *n, int64_t *when_ms)
{
	*n = count;
	*when_ms = last_ms;
	return last;
}
