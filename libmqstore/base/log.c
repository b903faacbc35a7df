/* log.c: one line per event, in one write, so that lines of several threads or processes do not mix.
 *
 * Adds no time: who collects stderr (systemd, a pipe to `ts`) stamps the lines. */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LOG_LINE_MAX = 2048 };

enum log_level log_max = LOG_INFO;
static void (*sink_fn)(void *arg, enum log_level l, const char *line);
static void *sink_arg;

static const char *const names[] = { "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };

void log_line(enum log_level l, const char *module, const char *fmt, ...)
{
	int saved = errno, n, more;
	char line[LOG_LINE_MAX];
	size_t len;
	va_list ap;

	n = snprintf(line, sizeof(line), "%s %s ", names[l], module);
	va_start(ap, fmt);
	more = vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	len = (size_t)n + (size_t)(more < 0 ? 0 : more);
	if (len > sizeof(line) - 2) {
		len = sizeof(line) - 2;
		memcpy(line + len - 3, "...", 3);
	}
	for (size_t i = 0; i < len; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	if (sink_fn) {
		line[len] = '\0';
		sink_fn(sink_arg, l, line);
	} else {
		ssize_t put;

		line[len] = '\n';
		do
			put = write(STDERR_FILENO, line, len + 1);
		while (put < 0 && errno == EINTR);
	}
	errno = saved;
}

int log_level_parse(const char *name, enum log_level *l)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasecmp(name, names[i]) == 0) {
			*l = (enum log_level)i;
			return 0;
		}
	return -EINVAL;
}

void log_to(void (*sink)(void *arg, enum log_level l, const char *line), void *arg)
{
	sink_fn = sink;
	sink_arg = arg;
}
