/* mq-admin: every administrative act, by the names and options of mqadmin.  Looks its words up in the tables of admin/. */
#include "admin/admin.h"
#include "cli.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command *const tables[] = {
	topic_commands, topic_change_commands, group_commands, client_commands, offset_commands, offset_change_commands,
	cluster_commands, broker_commands, namesrv_commands, stats_commands, message_commands, message_find_commands,
	message_print_commands, message_send_commands, timers_commands, trace_commands, key_commands,
	controller_commands, promote_commands, acl_commands,
	store_find_commands, store_du_commands, store_dump_commands, store_check_commands, store_repair_commands,
};
enum { TABLES = sizeof tables / sizeof tables[0] };

static const char head[] =
	"usage: mq-admin [-hV] [-n address] [-o format] [--timeout duration] [--trace]\n"
	"                command [options]\n"
	"\n"
	"  -n, --nameserver ADDR  cluster, file:DIR or store:DIR (default: $NAMESRV_ADDR, ...)\n"
	"  -o, --output FORMAT    table, tsv or json (table on a terminal, else tsv)\n"
	"      --timeout D        give up on an answer after this long (5s)\n"
	"      --trace            every request and answer on stderr\n"
	"  -h, --help             this, or of a command: mq-admin COMMAND -h\n"
	"  -V, --version\n"
	"\n"
	"Commands (* also on store:DIR, + only there):\n";

static void help(void)
{
	char text[16384];
	size_t n = (size_t)snprintf(text, sizeof text, "%s", head);
	for (size_t t = 0; t < TABLES; t++)
		for (const struct command *c = tables[t]; c->name; c++)
			n += (size_t)snprintf(text + n, sizeof text - n, "  %-22s %c %s\n", c->name,
				c->where & COMMAND_FILES ? '+' : c->where & COMMAND_STORE ? '*' : ' ', c->help);
	cli_help(text);
}

static void help_command(const struct command *c)
{
	char text[8192];
	size_t n = (size_t)snprintf(text, sizeof text, "usage: mq-admin %s", c->name);
	for (const struct command_opt *o = c->opts; o->name; o++) {
		if (o->letter)
			n += (size_t)snprintf(text + n, sizeof text - n, o->required ? " -%c%s%s" : " [-%c%s%s]", o->letter,
				o->meta ? " " : "",
			                      o->meta ? o->meta : "");
		else
			n += (size_t)snprintf(text + n, sizeof text - n, o->required ? " --%s%s%s" : " [--%s%s%s]", o->name,
				o->meta ? " " : "",
			                      o->meta ? o->meta : "");
	}
	const char *where = c->where & COMMAND_FILES ? " (of store:DIR)" : c->where & COMMAND_STORE ? " (also on store:DIR)" : "";
	n += (size_t)snprintf(text + n, sizeof text - n, "\n%s%s.\n\n", c->help, where);
	for (const struct command_opt *o = c->opts; o->name; o++)
		n += (size_t)snprintf(text + n, sizeof text - n, "  %c%c%c --%-30s %s%s\n", o->letter ? '-' : ' ',
		                      o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name, o->help,
		                      o->required ? " (required)" : "");
	cli_help(text);
}

static const struct command *find(const char *name)
{
	for (size_t t = 0; t < TABLES; t++)
		for (const struct command *c = tables[t]; c->name; c++)
			if (strcmp(c->name, name) == 0)
				return c;
	return NULL;
}

/* The command that the first word names, or the first two; *words says which. */
static const struct command *find_words(int argc, char **argv, int *words)
{
	const struct command *c = find(argv[0]);
	char two[80];

	*words = 1;
	if (c)
		return c;
	if (argc > 1) {
		*words = 2;
		snprintf(two, sizeof two, "%s %s", argv[0], argv[1]);
		c = find(two);
	}
	if (!c)
		cli_usage_error("no command '%s'", argc > 1 && argv[1][0] != '-' ? two : argv[0]);
	return c;
}

struct global {
	const char *addr;
	const char *output;
	int64_t timeout_ms;
	bool trace;
};

enum { OPT_TIMEOUT = 256, OPT_TRACE, OPT_OUTPUT, OPT_OWN };

static void global_options(int argc, char **argv, struct global *g)
{
	static const struct option longs[] = {
		{ "nameserver", 1, NULL, 'n' },       { "namesrvAddr", 1, NULL, 'n' }, { "output", 1, NULL, 'o' },
		{ "timeout", 1, NULL, OPT_TIMEOUT }, { "trace", 0, NULL, OPT_TRACE }, { "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'V' },         { 0 },
	};
	for (int c; (c = getopt_long(argc, argv, "+n:o:hV", longs, NULL)) != -1;) {
		switch (c) {
		case 'n': g->addr = optarg; break;
		case 'o': g->output = optarg; break;
		case OPT_TIMEOUT: g->timeout_ms = cli_duration_ms("--timeout", optarg); break;
		case OPT_TRACE: g->trace = true; break;
		case 'h': help(); break;
		case 'V': cli_version();
		default: cli_usage_error("wrong usage");
		}
	}
}

/* The command's own options, from its table; -n, -h and the long global ones are understood here too, as mqadmin has them. */
static void command_options(int argc, char **argv, struct admin *a, struct global *g)
{
	struct option longs[ADMIN_OPTS_MAX + 8];
	char shorts[3 * ADMIN_OPTS_MAX + 8] = "+n:h";
	size_t n = 0, own = 0;
	for (; a->command->opts[own].name; own++) {
		const struct command_opt *o = &a->command->opts[own];
		if (own == ADMIN_OPTS_MAX)
			abort();
		longs[n++] = (struct option){ o->name, o->meta ? 1 : 0, NULL, OPT_OWN + (int)own };
		if (o->letter) {
			char s[3] = { o->letter, o->meta ? ':' : 0, 0 };
			strcat(shorts, s);
		}
	}
	longs[n++] = (struct option){ "nameserver", 1, NULL, 'n' };
	longs[n++] = (struct option){ "namesrvAddr", 1, NULL, 'n' };
	longs[n++] = (struct option){ "output", 1, NULL, OPT_OUTPUT };
	longs[n++] = (struct option){ "timeout", 1, NULL, OPT_TIMEOUT };
	longs[n++] = (struct option){ "trace", 0, NULL, OPT_TRACE };
	longs[n++] = (struct option){ "help", 0, NULL, 'h' };
	longs[n] = (struct option){ 0 };
	/* compat: the one option of mqadmin with a short name of two letters. */
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-bn") == 0)
			argv[i] = "--brokerName";
	optind = 0;
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
		size_t i = own;
		if (c >= OPT_OWN)
			i = (size_t)(c - OPT_OWN);
		else if (c < 256)
			for (i = 0; i < own && a->command->opts[i].letter != c;)
				i++;
		if (i < own)
			a->value[i] = a->command->opts[i].meta ? optarg : "";
		else if (c == 'n')
			g->addr = optarg;
		else if (c == OPT_OUTPUT)
			g->output = optarg;
		else if (c == OPT_TIMEOUT)
			g->timeout_ms = cli_duration_ms("--timeout", optarg);
		else if (c == OPT_TRACE)
			g->trace = true;
		else if (c == 'h')
			help_command(a->command);
		else
			admin_usage(a, "'%s' is no option of it, or lacks its value; see 'mq-admin %s -h'", argv[optind - 1],
				a->command->name);
	}
	if (optind < argc)
		admin_usage(a, "'%s' is one word too many", argv[optind]);
	for (size_t i = 0; i < own; i++)
		if (a->command->opts[i].required && !a->value[i])
			admin_usage(a, a->command->opts[i].letter ? "--%s (-%c) is missing" : "--%s is missing", a->command->opts[i].name,
				    a->command->opts[i].letter);
}

static enum show_format format_of(const char *output)
{
	if (!output)
		return isatty(STDOUT_FILENO) ? SHOW_TABLE : SHOW_TSV;
	if (strcmp(output, "table") == 0)
		return SHOW_TABLE;
	if (strcmp(output, "tsv") == 0)
		return SHOW_TSV;
	if (strcmp(output, "json") == 0)
		return SHOW_JSON;
	cli_usage_error("-o: '%s' is none of table, tsv, json", output);
}

static void join(struct admin *a, bool trace)
{
	struct mq_error err;
	struct mqclient_opt opt = { .addr = a->addr, .timeout_ms = a->timeout_ms, .trace = trace };
	if (mqclient_open(&a->client, &opt, &err) < 0)
		cli_fail(&err);
}

int main(int argc, char **argv)
{
	static struct admin a;
	static char addr[4096];
	struct global g = { .timeout_ms = 5000 };
	struct mq_error err;
	int words;

	cli_start(argc, argv);
	global_options(argc, argv, &g);
	if (optind == argc)
		cli_usage_error("a command is missing");
	argc -= optind;
	argv += optind;
	a.command = find_words(argc, argv, &words);
	command_options(argc - words + 1, argv + words - 1, &a, &g);
	a.format = format_of(g.output);
	a.timeout_ms = (int32_t)g.timeout_ms;
	if (a.command->where & COMMAND_ALONE)
		return cli_close_stdout(a.command->run(&a));
	/* A client must have somebody to ask, even if it never will. */
	if (a.command->where & COMMAND_CONTROLLER && !g.addr && !getenv("NAMESRV_ADDR"))
		g.addr = admin_opt(&a, "controllerAddress");
	if (mqclient_address(g.addr, addr, sizeof addr, &err) < 0)
		cli_fail(&err);
	a.addr = addr;

	bool offline = mqclient_addr_kind(addr) == MQCLIENT_STORE;
	if (offline && !(a.command->where & (COMMAND_STORE | COMMAND_FILES)))
		cli_usage_error("%s needs a running cluster, not %s", a.command->name, addr);
	if (!offline && a.command->where & COMMAND_FILES)
		cli_usage_error("%s needs the address of a directory, store:DIR, not %s", a.command->name, addr);
	if (offline && a.command->where & COMMAND_STORE)
		store_open(&a);
	else if (!offline)
		join(&a, g.trace);
	int status = a.command->run(&a);
	if (a.store)
		store_close(&a);
	if (a.client)
		mqclient_free(a.client, 1000);
	return cli_close_stdout(status);
}
