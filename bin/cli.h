/* cli.h: manners that all tools share: usage, options, numbers, exit codes, lines in and out. */
#ifndef BIN_CLI_H
#define BIN_CLI_H

#include <mq.h>
#include <getopt.h>
#include <stdio.h>

/* Exit status of every tool; the same list stands in EXIT STATUS of each manual. */
enum {
	CLI_OK = 0,
	CLI_NONE = 1,       /* asked for one thing and it is not there */
	CLI_USAGE = 2,
	CLI_SYSTEM = 3,     /* system or network: trying again may help */
	CLI_REFUSED = 4,    /* the server's answer was no; its remark is on stderr */
};

extern const char *cli_name;            /* "mq-send" */
void cli_start(int argc, char **argv);  /* name, locale, SIGPIPE back to default, no closed fd 0-2 */

void cli_warn(const char *fmt, ...) MQ_PRINTF(1, 2);                       /* "mq-send: ..." on stderr */
_Noreturn void cli_die(int status, const char *fmt, ...) MQ_PRINTF(2, 3);
_Noreturn void cli_usage_error(const char *fmt, ...) MQ_PRINTF(1, 2);      /* + "try 'mq-send --help'", exit 2 */
/* Exit 2 with the reason if rc is not 0: for checks of what was given as an option. */
void cli_check(int rc, const struct mq_error *err);
/* Progress on a terminal: the text stays on the last line of stderr until the next call; "" or NULL wipes it.  Warnings make
 * room for it. */
void cli_status_line(const char *text);
/* Exit status for an mq_err or -errno. */
int cli_exit_code(int code);
/* The same for a failure, its text to stderr. */
int cli_status(const struct mq_error *e);
_Noreturn void cli_fail(const struct mq_error *e);
/* --help: text to stdout, exit 0.  --version likewise. */
_Noreturn void cli_help(const char *text);
_Noreturn void cli_version(void);

/* Options: a table, from which both forms are understood; -h, --help and -V, --version are always there. */
struct cli_option {
	int id;             /* its letter, or a number above 255 if it has none */
	const char *name;
	bool value;         /* takes one */
};
enum { CLI_OPTIONS_MAX = 64 };
/* The id of the next option, its value in optarg; -1 at the end: optind is the first argument that is none.  rows end with an
 * all-zero one.  Wrong ones end the program with exit 2, --help (the text) and --version with 0. */
int cli_option(int argc, char **argv, const struct cli_option *rows, const char *help);

/* Values of options; wrong ones end the program with exit 2, naming the option. */
int64_t cli_int(const char *opt, const char *value, int64_t min, int64_t max);
int64_t cli_duration_ms(const char *opt, const char *value);   /* 10s 5m 2h 3d 500ms; a bare number is seconds */
int64_t cli_size(const char *opt, const char *value);          /* 64K 1M 2G */
int64_t cli_time_ms(const char *opt, const char *value);       /* @ms, @s, 2026-11-30[T12:00[:00[.123]]][Z], -10m, +10m, now */

/* The last two of these without ending the program: false if value is none. */
bool cli_duration_parse(const char *value, int64_t *ms);
bool cli_time_parse(const char *value, int64_t *ms);

/* BROKER:ID.  *broker is allocated and stays. */
void cli_queue(const char *opt, const char *value, const char **broker, int32_t *id);

/* Flush and check stdout: a full disk or a gone reader is an error, not silence.  0 or -errno. */
int cli_flush(void);
/* Close stdout at the end of a tool; turns success into CLI_SYSTEM if that fails. */
int cli_close_stdout(int status);

#endif
