/* recv_options.c: what mq-recv was asked to do: the words, what they mean, and which of them go together. */
#include "recv_options.h"
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW 4096             /* messages of a queue under way; of commands fewer, since another member may want them */
#define WINDOW_COMMAND 64
#define BATCH 1024              /* messages per pull, at most */

static const char help[] =
	"usage: mq-recv [-0BehJluVw] [-c N] [-f FORMAT] [-g GROUP] [-n ADDRESS] [-o WHERE]\n"
	"               [-q BROKER:ID] [-T TAGS] [-x COMMAND] [--broadcast]\n"
	"               [--exec-timeout DURATION] [--filter EXPRESSION] [--jobs N]\n"
	"               [--lease DURATION] [--max-attempts N] [--on-exit MAP] [--open KEY]\n"
	"               [--orderly] [--pop] [--progress] [--reply COMMAND] [--resume FILE]\n"
	"               [--timeout DURATION] [--verify KEY] TOPIC ...\n"
	"\n"
	"Receive messages of each TOPIC and write them to standard output.\n"
	"\n"
	"Which messages:\n"
	"  -n, --nameserver ADDR   host:port[;host:port], http://..., file:DIR, store:DIR; see mq(7)\n"
	"  -g, --group GROUP       consume as a member of GROUP: what was accepted is committed\n"
	"                          (without it: just look, at all queues)\n"
	"      --orderly           a queue is one member's at a time, in order whatever happens\n"
	"      --broadcast         every member gets everything\n"
	"      --pop               the servers lend messages to any member, whatever the queue\n"
	"      --lease DURATION    with it: for so long; renewed while it is needed (60s)\n"
	"  -o, --from WHERE        begin (default), end, N: offset, -N: the last N of each queue,\n"
	"                          @TIME; with -g: where GROUP stands nowhere yet (default stored)\n"
	"  -q, --queue BROKER:ID   this queue only\n"
	"  -T, --tags TAGS         with one of these tags: 'A||B'\n"
	"      --filter EXPRESSION whose properties fit an SQL92 expression: 'a > 5'\n"
	"When to end:\n"
	"  -e, --end               at the end of what is there now\n"
	"  -c, --count N           after N messages\n"
	"      --timeout DURATION  so long after the last message: 500ms, 10s, 5m\n"
	"How a message is written:\n"
	"  -l, --line              its body and a newline (default)\n"
	"  -0, --null              its body and a NUL byte\n"
	"  -w, --whole             its body, nothing else\n"
	"  -B, --binary            4 bytes of length, big-endian, and its body\n"
	"  -J, --json              a line of JSON, which mq-send -J reads\n"
	"  -f, --format FORMAT     %s body %k keys %T tag %h properties %{NAME} a property\n"
	"                          %t topic %q queue %o offset %i id %S size %d time %D ms\n"
	"                          %x body in hex %b base64 %%, and \\n \\t \\r \\0 \\\\ \\xHH\n"
	"  -u, --unbuffered        never more than one message in a pipe\n"
	"      --open KEY          what was sealed for the owner of KEY (a file)\n"
	"      --verify KEY        only what the owner of KEY has signed (repeatable)\n"
	"Or run a command:\n"
	"  -x, --exec COMMAND      per message, body (with -J: JSON) on its standard input; exit code\n"
	"                          0: consumed, 100: dead letter, 126, 127: stop, else: retried\n"
	"      --reply COMMAND     the same; what it writes is the reply to a request\n"
	"      --jobs N            N at once, in order for each queue (1)\n"
	"      --on-exit MAP       CODES=ACTION,...: 1-9=dead,75=retry:10s,other=stop\n"
	"      --max-attempts N    so often, then to the dead letters\n"
	"      --exec-timeout DURATION  kill a command that takes longer\n"
	"Besides:\n"
	"      --resume FILE       remember in FILE what was accepted; go on there next time\n"
	"      --progress          messages, rate and backlog on standard error\n"
	"  -h, --help              this\n"
	"  -V, --version\n";

enum { OPT_BROADCAST = 256, OPT_EXEC_TIMEOUT, OPT_FILTER, OPT_JOBS, OPT_LEASE, OPT_MAX_ATTEMPTS, OPT_ON_EXIT, OPT_OPEN, OPT_ORDERLY,
       OPT_POP, OPT_PROGRESS, OPT_REPLY, OPT_RESUME, OPT_TIMEOUT, OPT_VERIFY };

static const struct cli_option options[] = {
	{ 'n', "nameserver", true },
	{ 'g', "group", true },
	{ OPT_ORDERLY, "orderly", false },
	{ OPT_BROADCAST, "broadcast", false },
	{ OPT_POP, "pop", false },
	{ OPT_LEASE, "lease", true },
	{ 'o', "from", true },
	{ 'q', "queue", true },
	{ 'T', "tags", true },
	{ OPT_FILTER, "filter", true },
	{ 'e', "end", false },
	{ 'c', "count", true },
	{ OPT_TIMEOUT, "timeout", true },
	{ 'l', "line", false },
	{ '0', "null", false },
	{ 'w', "whole", false },
	{ 'B', "binary", false },
	{ 'J', "json", false },
	{ 'f', "format", true },
	{ 'u', "unbuffered", false },
	{ OPT_OPEN, "open", true },
	{ OPT_VERIFY, "verify", true },
	{ 'x', "exec", true },
	{ OPT_REPLY, "reply", true },
	{ OPT_JOBS, "jobs", true },
	{ OPT_ON_EXIT, "on-exit", true },
	{ OPT_MAX_ATTEMPTS, "max-attempts", true },
	{ OPT_EXEC_TIMEOUT, "exec-timeout", true },
	{ OPT_RESUME, "resume", true },
	{ OPT_PROGRESS, "progress", false },
	{ 0 },
};

static void parse_from(struct recv_options *o, const char *value)
{
	static const struct {
		const char *name;
		enum mqclient_start start;
	} words[] = { { "begin", MQCLIENT_BEGIN }, { "end", MQCLIENT_END }, { "stored", MQCLIENT_STORED } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, value) == 0) {
			o->consume.start = words[i].start;
			return;
		}
	if (value[0] == '@') {
		o->consume.start = MQCLIENT_AT_TIME;
		o->consume.start_value = cli_time_ms("-o", value);
	} else if (value[0] == '-') {
		o->consume.start = MQCLIENT_LAST_N;
		o->consume.start_value = cli_int("-o", value + 1, 0, INT64_MAX);
	} else if (value[0] >= '0' && value[0] <= '9') {
		o->consume.start = MQCLIENT_AT_OFFSET;
		o->consume.start_value = cli_int("-o", value, 0, INT64_MAX);
	} else {
		cli_usage_error("-o: '%s' is none of begin, end, stored, N (offset), -N (the last N), @TIME", value);
	}
}

static void set_mode(struct recv_options *o, enum record_mode mode)
{
	static bool set;

	if (set && o->out.mode != mode)
		cli_usage_error("-l, -0, -w, -B, -J and -f exclude each other");
	if (set && mode == RECORD_FORMAT)
		cli_usage_error("-f: given twice");
	set = true;
	o->out.mode = mode;
}

static void set_command(struct recv_options *o, const char *opt, const char *command)
{
	if (o->command)
		cli_usage_error("-x and --reply: one command is enough");
	o->command = command;
	o->command_opt = opt;
}

static void set_filter(struct recv_options *o, const char *expression, bool sql)
{
	if (o->consume.filter && o->consume.sql != sql)
		cli_usage_error("-T and --filter exclude each other");
	o->consume.filter = expression;
	o->consume.sql = sql;
}

static void option(struct recv_options *o, int c, const char **from)
{
	struct mq_error err;

	switch (c) {
	case 'n': o->addr = optarg; break;
	case 'g':
		cli_check(mq_check_group((struct mq_str){ optarg, strlen(optarg) }, &err), &err);
		o->consume.group = optarg;
		break;
	case OPT_ORDERLY: o->consume.orderly = true; break;
	case OPT_BROADCAST: o->consume.broadcast = true; break;
	case OPT_POP: o->consume.pop = true; break;
	case OPT_LEASE:
		o->consume.pop_ms = cli_duration_ms("--lease", optarg);
		if (o->consume.pop_ms < 1000 || o->consume.pop_ms > 259200000)
			cli_usage_error("--lease: '%s': 1s to 3d are allowed", optarg);
		break;
	case 'o': *from = optarg; break;
	case 'q': cli_queue("-q", optarg, &o->consume.queue.broker, &o->consume.queue.id); break;
	case 'T': set_filter(o, optarg, false); break;
	case OPT_FILTER: set_filter(o, optarg, true); break;
	case 'e': o->consume.stop_at_end = true; break;
	case 'c': o->count = cli_int("-c", optarg, 1, INT64_MAX); break;
	case OPT_TIMEOUT: o->timeout_ms = cli_duration_ms("--timeout", optarg); break;
	case 'l': set_mode(o, RECORD_LINE); break;
	case '0': set_mode(o, RECORD_NUL); break;
	case 'w': set_mode(o, RECORD_RAW); break;
	case 'B': set_mode(o, RECORD_LENGTH); break;
	case 'J': set_mode(o, RECORD_JSON); break;
	case 'f':
		set_mode(o, RECORD_FORMAT);
		if (record_out_format(&o->out, optarg, &err) != 0)
			cli_usage_error("-f: %s", err.text);
		break;
	case 'u': o->one_by_one = true; break;
	case OPT_OPEN: seal_option(&o->seal, "--open", optarg); break;
	case OPT_VERIFY: seal_option(&o->seal, "--verify", optarg); break;
	case 'x': set_command(o, "-x", optarg); break;
	case OPT_REPLY:
		set_command(o, "--reply", optarg);
		o->reply = true;
		break;
	case OPT_JOBS: o->jobs = (int)cli_int("--jobs", optarg, 1, 1000); break;
	case OPT_ON_EXIT: exit_map_change(&o->on_exit, optarg); break;
	case OPT_MAX_ATTEMPTS: o->max_attempts = (int32_t)cli_int("--max-attempts", optarg, 1, 1000000); break;
	case OPT_EXEC_TIMEOUT:
		o->exec_timeout_ms = cli_duration_ms("--exec-timeout", optarg);
		if (o->exec_timeout_ms < 1)
			cli_usage_error("--exec-timeout: '%s': 1ms and more are allowed", optarg);
		break;
	case OPT_RESUME: o->resume = optarg; break;
	case OPT_PROGRESS: o->progress = true; break;
	}
}

/* What does not go together. */
static void check(const struct recv_options *o)
{
	const struct mqclient_consume_opt *k = &o->consume;

	if (!k->group && k->start == MQCLIENT_STORED)
		cli_usage_error("-o stored: only a group (-g) has stored offsets");
	if (k->orderly && k->broadcast)
		cli_usage_error("--orderly and --broadcast exclude each other");
	if ((k->orderly || k->broadcast || k->pop) && !k->group)
		cli_usage_error("--%s: a group is missing (-g)", k->orderly ? "orderly" : k->broadcast ? "broadcast" : "pop");
	if (k->pop && k->broadcast)
		cli_usage_error("--pop and --broadcast exclude each other");
	if (k->pop && k->start != MQCLIENT_STORED && k->start != MQCLIENT_BEGIN && k->start != MQCLIENT_END)
		cli_usage_error("-o: with --pop a group begins at begin or end");
	if (k->pop_ms && !k->pop)
		cli_usage_error("--lease: there is no --pop");
	if (o->reply && !k->group)
		cli_usage_error("--reply: a group is missing (-g): its members share the requests");
	if (k->group && o->resume && !k->broadcast)
		cli_usage_error("--resume and -g exclude each other: the servers remember where a group stands");
	if ((o->jobs || o->max_attempts || o->exec_timeout_ms) && !o->command)
		cli_usage_error("--%s: there is no -x", o->jobs ? "jobs" : o->max_attempts ? "max-attempts" : "exec-timeout");
	if (o->command && o->out.mode != RECORD_LINE && o->out.mode != RECORD_JSON)
		cli_usage_error("%s: the command gets the body as it is, or with -J a line of JSON; -0, -w, -B and -f are for "
		                "standard output", o->command_opt);
}

void recv_options(struct recv_options *o, int argc, char **argv)
{
	const char *from = NULL;
	struct mq_error err;
	struct mq_str *topics;
	int c;

	o->timeout_ms = -1;
	exit_map_init(&o->on_exit);
	while ((c = cli_option(argc, argv, options, help)) != -1)
		option(o, c, &from);
	if (optind == argc)
		cli_usage_error("no TOPIC");
	topics = calloc((size_t)(argc - optind), sizeof(*topics));
	if (!topics)
		cli_die(CLI_SYSTEM, "out of memory");
	for (int i = optind; i < argc; i++) {
		topics[i - optind] = (struct mq_str){ argv[i], strlen(argv[i]) };
		cli_check(mq_check_topic(topics[i - optind], &err), &err);
	}
	o->consume.topics = topics;
	o->consume.ntopics = (size_t)(argc - optind);
	o->consume.start = o->consume.group ? MQCLIENT_STORED : MQCLIENT_BEGIN;
	if (from)
		parse_from(o, from);
	check(o);
	o->json_input = o->command && o->out.mode == RECORD_JSON;
	o->consume.window = o->command ? WINDOW_COMMAND : WINDOW;
	o->consume.batch = o->command ? WINDOW_COMMAND / 2 : BATCH;
	if (o->consume.pop && o->command) /* what waits here could run elsewhere */
		o->consume.window = o->consume.batch = o->jobs ? o->jobs + 1 : 2;
	if (!o->jobs)
		o->jobs = 1;
}
