/* cli.c: the manners that all tools share: how they complain, end, and read numbers, durations, sizes and times.
 *
 * Knows nothing of messages and servers.  What it prints goes to stderr in one write, with control characters escaped, so
 * that a peer's remark cannot play tricks on a terminal; nothing but --help and --version goes to stdout. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *cli_name = "mq";
static char status_line[200];   /* what stands on the terminal's last line, without a newline; see cli_status_line() */

/* ---- Start ------------------------------------------------------------------------------------------------------------ */

/* A closed stdin or stdout would give its number to the next file that is opened: messages would go into a socket.  The
 * wrong kind of /dev/null in its place makes reads and writes fail with EBADF, which is what they are. */
static void fill_std_fds(void)
{
	static const int flags[] = { O_WRONLY, O_RDONLY, O_WRONLY };

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd)
			_exit(CLI_SYSTEM);
}

void cli_start(int argc, char **argv)
{
	char *slash;

	fill_std_fds();
	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_DFL);
	if (argc > 0 && argv[0] && argv[0][0]) {
		slash = strrchr(argv[0], '/');
		cli_name = slash ? slash + 1 : argv[0];
		if (strncmp(cli_name, "lt-", 3) == 0) /* libtool's name for what is not installed yet */
			cli_name += 3;
	}
}

/* ---- Complaining ------------------------------------------------------------------------------------------------------ */

static void stderr_all(const char *p, size_t n)
{
	while (n > 0) {
		ssize_t k = write(STDERR_FILENO, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return;
		p += k;
		n -= (size_t)k;
	}
}

/* name: text\n, control characters as \xHH.  A status line is wiped first and drawn again. */
static void complain(const char *text)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = strlen(text), n = 0, wipe = strlen(status_line);
	char *out = malloc(strlen(cli_name) + 4 * len + 2 * wipe + wipe + 8);

	if (!out) {
		stderr_all(text, len);
		stderr_all("\n", 1);
		return;
	}
	if (wipe)
		n += (size_t)sprintf(out + n, "\r%*s\r", (int)wipe, "");
	n += (size_t)sprintf(out + n, "%s: ", cli_name);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 0x20 && c != 0x7f) {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '\\';
		out[n++] = 'x';
		out[n++] = hex[c >> 4];
		out[n++] = hex[c & 15];
	}
	out[n++] = '\n';
	memcpy(out + n, status_line, wipe);
	stderr_all(out, n + wipe);
	free(out);
}

static void vwarn(const char *fmt, va_list ap)
{
	char *text;
	int saved = errno;

	if (vasprintf(&text, fmt, ap) < 0) {
		complain("out of memory");
	} else {
		complain(text);
		free(text);
	}
	errno = saved;
}

void cli_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarn(fmt, ap);
	va_end(ap);
}

void cli_die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarn(fmt, ap);
	va_end(ap);
	exit(status);
}

void cli_usage_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarn(fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "try '%s --help'\n", cli_name);
	exit(CLI_USAGE);
}

void cli_check(int rc, const struct mq_error *err)
{
	if (rc != 0)
		cli_usage_error("%s", err->text);
}

void cli_status_line(const char *text)
{
	size_t old = strlen(status_line), n;
	char out[2 * sizeof(status_line) + 2];

	if (!text)
		text = "";
	n = (size_t)snprintf(out, sizeof(out), "\r%-*.*s", (int)old, (int)sizeof(status_line) - 1, text);
	if (!*text && old)
		out[n++] = '\r';
	if (*text || old)
		stderr_all(out, n);
	snprintf(status_line, sizeof(status_line), "%s", text);
}

int cli_exit_code(int code)
{
	switch (code) {
	case 0:
		return CLI_OK;
	case MQ_ENOTFOUND:
	case MQ_ENOROUTE:
		return CLI_NONE;
	case MQ_EINVAL:
		return CLI_USAGE;
	case MQ_EREFUSED:
	case MQ_ETOOBIG:
	case MQ_EREADONLY:
	case MQ_EUNSUPPORTED:
		return CLI_REFUSED;
	default:
		return CLI_SYSTEM;
	}
}

int cli_status(const struct mq_error *e)
{
	if (e->code != 0)
		cli_warn("%s", e->text);
	return cli_exit_code(e->code);
}

void cli_fail(const struct mq_error *e)
{
	int status = cli_status(e);

	exit(status ? status : CLI_SYSTEM);
}

void cli_help(const char *text)
{
	fputs(text, stdout);
	exit(cli_close_stdout(CLI_OK));
}

void cli_version(void)
{
	printf("%s %s\n", cli_name, MQ_VERSION);
	exit(cli_close_stdout(CLI_OK));
}

/* ---- Options ---------------------------------------------------------------------------------------------------------- */

static _Noreturn void bad_option(int c, char **argv)
{
	const char *word = argv[optind - 1] ? argv[optind - 1] : "";
	bool is_long = strncmp(word, "--", 2) == 0;

	if (c == ':' && is_long)
		cli_usage_error("option '%s' needs a value", word);
	if (c == ':')
		cli_usage_error("option '-%c' needs a value", optopt);
	if (optopt == 0 || is_long)
		cli_usage_error(optopt ? "option '%s' takes no value" : "no option '%s' (or more than one begins so)", word);
	cli_usage_error("no option '-%c'", optopt);
}

int cli_option(int argc, char **argv, const struct cli_option *rows, const char *help)
{
	struct option longs[CLI_OPTIONS_MAX + 3] = { { "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' } };
	char shorts[2 * CLI_OPTIONS_MAX + 8] = ":hV";
	size_t n = 2, s = 3;
	int c;

	for (const struct cli_option *r = rows; r->name && n < CLI_OPTIONS_MAX + 2; r++) {
		longs[n++] = (struct option){ r->name, r->value ? required_argument : no_argument, NULL, r->id };
		if (r->id > 255)
			continue;
		shorts[s++] = (char)r->id;
		if (r->value)
			shorts[s++] = ':';
	}
	opterr = 0;
	c = getopt_long(argc, argv, shorts, longs, NULL);
	switch (c) {
	case 'h': cli_help(help);
	case 'V': cli_version();
	case '?':
	case ':': bad_option(c, argv);
	default: return c;
	}
}

/* ---- Values of options ------------------------------------------------------------------------------------------------ */

int64_t cli_int(const char *opt, const char *value, int64_t min, int64_t max)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(value, &end, 10);
	if (end == value || *end || isspace((unsigned char)value[0]))
		cli_usage_error("%s: '%s' is no number", opt, value);
	if (errno == ERANGE || v < min || v > max)
		cli_usage_error("%s: %s is out of range: %" PRId64 " to %" PRId64, opt, value, min, max);
	return v;
}

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit durations[] = {
	{ "ms", 1 }, { "", 1000 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }, { NULL, 0 },
};
static const struct unit sizes[] = {
	{ "", 1 }, { "K", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 }, { "T", (int64_t)1 << 40 }, { NULL, 0 },
};

/* Digits with an optional fraction and a unit -> *out.  False if it is none, or does not fit. */
static bool with_unit(const char *value, const struct unit *units, int64_t *out)
{
	char *end;
	double v;

	if (!isdigit((unsigned char)value[0]))
		return false;
	errno = 0;
	if (value[strspn(value, "0123456789")] == '.') {
		v = strtod(value, &end);
	} else {
		long long whole = strtoll(value, &end, 10);

		for (const struct unit *u = units; errno == 0 && u->name; u++)
			if (strcmp(u->name, end) == 0)
				return !__builtin_mul_overflow((int64_t)whole, u->factor, out);
		return false;
	}
	for (const struct unit *u = units; u->name; u++) {
		if (strcmp(u->name, end) != 0)
			continue;
		v *= (double)u->factor;
		if (v > 9e18)
			return false;
		*out = (int64_t)v;
		return true;
	}
	return false;
}

int64_t cli_duration_ms(const char *opt, const char *value)
{
	int64_t ms;

	if (!with_unit(value, durations, &ms))
		cli_usage_error("%s: '%s' is no duration: 500ms, 10s (or 10), 5m, 2h, 3d", opt, value);
	return ms;
}

int64_t cli_size(const char *opt, const char *value)
{
	int64_t n;

	if (!with_unit(value, sizes, &n))
		cli_usage_error("%s: '%s' is no size: bytes, or 64K, 1M, 2G", opt, value);
	return n;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Exactly `n` digits at *p, moved past. */
static bool digits(const char **p, int n, int *out)
{
	int v = 0;

	for (int i = 0; i < n; i++, (*p)++) {
		if (!isdigit((unsigned char)**p))
			return false;
		v = v * 10 + (**p - '0');
	}
	*out = v;
	return true;
}

/* .5 .123: up to three digits as milliseconds. */
static bool fraction(const char **p, int *ms)
{
	int scale = 100;

	if (!isdigit((unsigned char)**p))
		return false;
	for (*ms = 0; isdigit((unsigned char)**p); (*p)++, scale /= 10)
		*ms += (**p - '0') * scale;
	return true;
}

/* 2026-11-30, 2026-11-30T12:00, ...:30, ...:30.123, with Z for UTC, else local time.  Blank or '#' may stand for the T and ':'
 * for the point, as the peer's mqadmin has it. */
static bool date(const char *p, int64_t *out)
{
	struct tm tm = { .tm_isdst = -1 }, back;
	int year, month, ms = 0;
	bool utc;
	time_t t;

	if (!digits(&p, 4, &year) || *p++ != '-' || !digits(&p, 2, &month) || *p++ != '-' || !digits(&p, 2, &tm.tm_mday))
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	if (*p == 'T' || *p == ' ' || *p == '#') {
		p++;
		if (!digits(&p, 2, &tm.tm_hour) || *p++ != ':' || !digits(&p, 2, &tm.tm_min))
			return false;
		if (*p == ':') {
			p++;
			if (!digits(&p, 2, &tm.tm_sec))
				return false;
			if (*p == '.' || *p == ':') {
				p++;
				if (!fraction(&p, &ms))
					return false;
			}
		}
	}
	utc = *p == 'Z';
	p += utc;
	if (*p || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 59)
		return false;
	back = tm;
	t = utc ? timegm(&tm) : mktime(&tm);
	if (tm.tm_mday != back.tm_mday || tm.tm_mon != back.tm_mon) /* the 31st of a short month was moved on */
		return false;
	*out = (int64_t)t * 1000 + ms;
	return true;
}

bool cli_duration_parse(const char *value, int64_t *ms)
{
	return with_unit(value, durations, ms);
}

bool cli_time_parse(const char *value, int64_t *ms)
{
	const char *p = value[0] == '@' ? value + 1 : value;
	int64_t v;

	if (strcmp(p, "now") == 0) {
		*ms = now_ms();
		return true;
	}
	if ((p[0] == '-' || p[0] == '+') && with_unit(p + 1, durations, &v)) {
		*ms = p[0] == '-' ? now_ms() - v : now_ms() + v;
		return true;
	}
	if (p[0] && p[strspn(p, "0123456789")] == '\0') {
		errno = 0;
		v = strtoll(p, NULL, 10);
		*ms = v >= 100000000000 ? v : v * 1000; /* seconds reach that in the year 5138, milliseconds did in 1973 */
		return errno == 0;
	}
	return date(p, ms);
}

int64_t cli_time_ms(const char *opt, const char *value)
{
	int64_t ms;

	if (!cli_time_parse(value, &ms))
		cli_usage_error("%s: '%s' is no time: 2026-11-30, 2026-11-30T12:00:00[.123][Z], -10m, +10m, now, or seconds or "
		                "milliseconds since 1970", opt, value);
	return ms;
}

void cli_queue(const char *opt, const char *value, const char **broker, int32_t *id)
{
	const char *colon = strrchr(value, ':');

	if (!colon || colon == value)
		cli_usage_error("%s: '%s': BROKER:ID is right", opt, value);
	*id = (int32_t)cli_int(opt, colon + 1, 0, INT32_MAX);
	*broker = strndup(value, (size_t)(colon - value));
	if (!*broker)
		cli_die(CLI_SYSTEM, "out of memory");
}

/* ---- Standard output -------------------------------------------------------------------------------------------------- */

int cli_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return errno ? -errno : -EIO;
}

int cli_close_stdout(int status)
{
	int rc;

	errno = 0;
	rc = cli_flush();
	if (fclose(stdout) != 0 && rc == 0)
		rc = errno ? -errno : -EIO;
	if (rc == 0)
		return status;
	if (rc != -EPIPE)
		cli_warn("standard output: %s", strerror(-rc));
	return status == CLI_OK ? CLI_SYSTEM : status;
}
