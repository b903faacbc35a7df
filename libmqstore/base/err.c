/* err.c: codes to texts, and struct mq_error filled in on the way up.
 *
 * Knows the list of codes in mq.h.  What a failure was about is known by the callers. */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

static const struct {
	int code;
	const char *text;
} own[] = {
#define ERR_TEXT(name, code, text) { code, text },
	MQ_ERRORS(ERR_TEXT)
#undef ERR_TEXT
};

/* libuv's codes that are no errno: uv_strerror() allocates for codes it does not know, so ask it only for these. */
static const int uv_own[] = {
	UV_EAI_ADDRFAMILY, UV_EAI_AGAIN, UV_EAI_BADFLAGS, UV_EAI_BADHINTS, UV_EAI_CANCELED, UV_EAI_FAIL, UV_EAI_FAMILY,
	UV_EAI_MEMORY, UV_EAI_NODATA, UV_EAI_NONAME, UV_EAI_OVERFLOW, UV_EAI_PROTOCOL, UV_EAI_SERVICE, UV_EAI_SOCKTYPE,
	UV_ECHARSET, UV_UNKNOWN, UV_EOF,
};

const char *mq_strerror(int code)
{
	static __thread char unknown[40];
	const char *text;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i].code == code)
			return own[i].text;
	for (size_t i = 0; i < sizeof(uv_own) / sizeof(uv_own[0]); i++)
		if (uv_own[i] == code)
			return uv_strerror(code);
	if (code == 0)
		return "no error";
	text = code > -4096 && code < 4096 ? strerrordesc_np(code < 0 ? -code : code) : NULL;
	if (text)
		return text;
	snprintf(unknown, sizeof(unknown), "unknown error %d", code);
	return unknown;
}

int err_set(struct mq_error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	e->response = 0;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

int err_sys(struct mq_error *e, int code, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (!e)
		return code;
	e->code = code;
	e->response = 0;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", mq_strerror(code));
	return code;
}

int err_wrap(struct mq_error *e, const char *fmt, ...)
{
	char inner[sizeof(e->text)];
	va_list ap;
	size_t n;

	if (!e)
		return 0;
	memcpy(inner, e->text, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", inner);
	return e->code;
}
