/* options.c: see options.h.  -o takes what fstab has: words of ours, words of mount(8) that mean nothing here, words of the kernel. */
#include "options.h"
#include "../bin/cli.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: mqfs [-bd] [-n ADDRESS] [-o OPTION[,OPTION ...]] [--ready-fd FD] DIRECTORY\n"
	"\n"
	"Mount a message queue as files: topics, queues, messages, groups, brokers.\n"
	"\n"
	"  -n, --nameserver ADDR   host:port[;host:port], http://..., file:DIR, store:DIR; see mq(7)\n"
	"  -b, --background        return when it is mounted\n"
	"  -d, --debug             what the client library has to say, on standard error\n"
	"      --ready-fd FD       write a line to this descriptor when mounted\n"
	"  -o, --options OPTIONS   of these, with commas between:\n"
	"      ro                  nothing can be changed, sent or consumed\n"
	"      admin               mkdir and rmdir make and delete topics and groups\n"
	"      system              list the topics and groups of servers, too\n"
	"      nostreams           no tail, from@... and recv\n"
	"      list=N              list the newest N messages of a queue (1000)\n"
	"      timeout=DURATION    of every call that needs an answer (3s)\n"
	"      allow_other         other users may come in, as the modes say\n"
	"      umask=M             taken off all modes, octal (022)\n"
	"      uid=N gid=N         whose the files are\n"
	"  -h, --help              this\n"
	"  -V, --version\n";

enum { OPT_READY_FD = 256 };

static const struct cli_option rows[] = {
	{ 'n', "nameserver", true },
	{ 'b', "background", false },
	{ 'd', "debug", false },
	{ 'o', "options", true },
	{ OPT_READY_FD, "ready-fd", true },
	{ 0 },
};

struct options options;

/* What mount(8) reads in fstab and leaves in. */
static bool is_mounts(const char *o)
{
	static const char *const names[] = { "rw", "auto", "noauto", "user", "nouser", "users", "group", "owner", "_netdev", "nofail",
	                                     "defaults", "async", NULL };

	for (const char *const *p = names; *p; p++)
		if (strcmp(*p, o) == 0)
			return true;
	return strncmp(o, "x-", 2) == 0 || strncmp(o, "comment=", 8) == 0;
}

static bool is_kernels(const char *o)
{
	static const char *const names[] = { "nosuid", "suid", "nodev", "dev", "noexec", "exec", "noatime", "atime", "sync", "dirsync",
	                                     "auto_unmount", "allow_root", NULL };

	for (const char *const *p = names; *p; p++)
		if (strcmp(*p, o) == 0)
			return true;
	return strncmp(o, "context=", 8) == 0 || strncmp(o, "max_read=", 9) == 0;
}

static bool flag(const char *o)
{
	static const struct {
		const char *name;
		bool *set;
	} flags[] = { { "ro", &options.read_only }, { "admin", &options.admin }, { "system", &options.system },
	              { "nostreams", &options.no_streams }, { "allow_other", &options.allow_other }, { "debug", &options.debug } };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(flags[i].name, o) == 0)
			return *flags[i].set = true;
	return false;
}

static mode_t octal(const char *value)
{
	char *end;
	unsigned long v = strtoul(value, &end, 8);

	if (!*value || *end || v > 0777)
		cli_usage_error("-o umask: '%s' is no octal mode: 022", value);
	return (mode_t)v;
}

static void value_of(const char *name, const char *value)
{
	if (strcmp(name, "list") == 0)
		options.list = cli_int("-o list", value, 0, 10000000);
	else if (strcmp(name, "timeout") == 0)
		options.timeout_ms = cli_duration_ms("-o timeout", value);
	else if (strcmp(name, "umask") == 0)
		options.umask = octal(value);
	else if (strcmp(name, "uid") == 0)
		options.uid = (uid_t)cli_int("-o uid", value, 0, UINT32_MAX);
	else if (strcmp(name, "gid") == 0)
		options.gid = (gid_t)cli_int("-o gid", value, 0, UINT32_MAX);
	else
		cli_usage_error("-o: '%s' is no option", name);
}

static void one(char *o)
{
	char *eq = strchr(o, '=');
	size_t n = strlen(options.kernel);

	if (!*o || is_mounts(o) || flag(o))
		return;
	if (is_kernels(o)) {
		if (n + strlen(o) + 2 > sizeof(options.kernel))
			cli_usage_error("-o: too many options");
		snprintf(options.kernel + n, sizeof(options.kernel) - n, "%s%s", n ? "," : "", o);
		return;
	}
	if (!eq)
		cli_usage_error("-o: '%s' is no option", o);
	*eq = '\0';
	value_of(o, eq + 1);
}

static void list(const char *text)
{
	char *copy = strdup(text), *rest = copy, *o;

	if (!copy)
		cli_die(CLI_SYSTEM, "out of memory");
	while ((o = strsep(&rest, ",")))
		one(o);
	free(copy);
}

void options_parse(int argc, char **argv)
{
	const char *addr = NULL;
	struct mq_error err;
	int c;

	options = (struct options){ .list = 1000, .timeout_ms = 3000, .umask = 022, .uid = getuid(), .gid = getgid(), .ready_fd = -1 };
	while ((c = cli_option(argc, argv, rows, help)) != -1) {
		switch (c) {
		case 'n': addr = optarg; break;
		case 'b': options.background = true; break;
		case 'd': options.debug = true; break;
		case 'o': list(optarg); break;
		case OPT_READY_FD: options.ready_fd = (int)cli_int("--ready-fd", optarg, 0, INT32_MAX); break;
		}
	}
	if (optind + 1 != argc)
		cli_usage_error(optind == argc ? "no DIRECTORY" : "one DIRECTORY is wanted");
	if (options.timeout_ms < 100 || options.timeout_ms > 600000)
		cli_usage_error("-o timeout: 100ms to 10m are allowed");
	if (mqclient_address(addr, options.addr, sizeof(options.addr), &err) != 0)
		cli_usage_error("%s", err.text);
	options.read_only |= mqclient_addr_kind(options.addr) == MQCLIENT_STORE;
	/* The directory itself may be a dead mount, which cannot be looked at; what it is in can. */
	options.mountpoint = realpath(argv[optind], NULL);
	if (!options.mountpoint) {
		const char *dir = argv[optind];
		char *cwd = dir[0] == '/' ? NULL : getcwd(NULL, 0);
		size_t n = strlen(dir);
		while (n > 1 && dir[n - 1] == '/')
			n--;
		if (asprintf(&options.mountpoint, "%s%s%.*s", cwd ? cwd : "", cwd ? "/" : "", (int)n, dir) < 0)
			cli_die(CLI_SYSTEM, "out of memory");
		free(cwd);
	}
}
