/* mq-recv.c: topic -> stdout, or -> a command per message.  Options, the loop, the end; the parts:
 *
 *   recv_flow     message -> destination, and back   sink        what stdout has accepted
 *   recv_store    a store directory as the source    runner      a command per message
 *   record_out    how a message is written           recv_resume offsets in a file
 *
 * The end comes in this order: take no more; let what is under way arrive; have one last look at what a pipe's reader took; commit
 * that; leave the group. */
#include "cli.h"
#include "interrupt.h"
#include "progress.h"
#include "recv_flow.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 100
#define HURRY_MS 300            /* after a signal a reader has so long to take what lies in the pipe */
#define LEAVE_MS 3000           /* for the last commit */
#define WINDOW 4096             /* messages of a queue under way; of commands fewer, since another member may want them */
#define WINDOW_COMMAND 64
#define BATCH 1024              /* messages per pull, at most */

static const char help[] =
	"usage: mq-recv [-0BehJluVw] [-c N] [-f FORMAT] [-g GROUP] [-n ADDRESS] [-o WHERE]\n"
	"               [-q BROKER:ID] [-T TAGS] [-x COMMAND] [--jobs N] [--progress]\n"
	"               [--resume FILE] [--timeout DURATION] TOPIC ...\n"
	"\n"
	"Receive messages of each TOPIC and write them to standard output.\n"
	"\n"
	"Which messages:\n"
	"  -n, --nameserver ADDR   host:port[;host:port], http://..., file:DIR, store:DIR; see mq(7)\n"
	"  -g, --group GROUP       consume as a member of GROUP: what was accepted is committed\n"
	"                          (without it: just look, at all queues)\n"
	"  -o, --from WHERE        begin (default), end, N: offset, -N: the last N of each queue,\n"
	"                          @TIME; with -g: where GROUP stands nowhere yet (default stored)\n"
	"  -q, --queue BROKER:ID   this queue only\n"
	"  -T, --tags TAGS         with one of these tags: 'A||B'\n"
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
	"Or run a command:\n"
	"  -x, --exec COMMAND      per message, body on its standard input; exit code 0: consumed\n"
	"      --jobs N            N at once, in order for each queue (1)\n"
	"Besides:\n"
	"      --resume FILE       remember in FILE what was accepted; go on there next time\n"
	"      --progress          messages, rate and backlog on standard error\n"
	"  -h, --help              this\n"
	"  -V, --version\n";

enum { OPT_JOBS = 256, OPT_PROGRESS, OPT_RESUME, OPT_TIMEOUT };

static const struct cli_option options[] = {
	{ 'n', "nameserver", true },
	{ 'g', "group", true },
	{ 'o', "from", true },
	{ 'q', "queue", true },
	{ 'T', "tags", true },
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
	{ 'x', "exec", true },
	{ OPT_JOBS, "jobs", true },
	{ OPT_RESUME, "resume", true },
	{ OPT_PROGRESS, "progress", false },
	{ 0 },
};

static struct app {
	/* Options. */
	const char *addr_given, *from, *command, *resume_file;
	int64_t timeout_ms;             /* -1 = none */
	int jobs;
	bool progress_wanted, format_given;
	struct mqclient_consume_opt consume;
	/* Parts. */
	char addr[4096];
	struct mqclient *client;
	struct recv_flow flow;
	struct progress progress;
	struct interrupt interrupt;
	uv_timer_t tick;
	uv_prepare_t prepare;
	/* State. */
	bool timed_out, leaving;
	int64_t signal_ms, saved_ms;
} a;

/* ---- Options ---------------------------------------------------------------------------------------------------------- */

static void parse_from(const char *value)
{
	static const struct {
		const char *name;
		enum mqclient_start start;
	} words[] = { { "begin", MQCLIENT_BEGIN }, { "end", MQCLIENT_END }, { "stored", MQCLIENT_STORED } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, value) == 0) {
			a.consume.start = words[i].start;
			return;
		}
	if (value[0] == '@') {
		a.consume.start = MQCLIENT_AT_TIME;
		a.consume.start_value = cli_time_ms("-o", value);
	} else if (value[0] == '-') {
		a.consume.start = MQCLIENT_LAST_N;
		a.consume.start_value = cli_int("-o", value + 1, 0, INT64_MAX);
	} else if (value[0] >= '0' && value[0] <= '9') {
		a.consume.start = MQCLIENT_AT_OFFSET;
		a.consume.start_value = cli_int("-o", value, 0, INT64_MAX);
	} else {
		cli_usage_error("-o: '%s' is none of begin, end, stored, N (offset), -N (the last N), @TIME", value);
	}
}

static void set_mode(enum record_mode mode)
{
	static bool set;

	if (set && a.flow.out.mode != mode)
		cli_usage_error("-l, -0, -w, -B, -J and -f exclude each other");
	set = true;
	a.flow.out.mode = mode;
}

static void option(int c)
{
	struct mq_error err;

	switch (c) {
	case 'n': a.addr_given = optarg; break;
	case 'g':
		cli_check(mq_check_group((struct mq_str){ optarg, strlen(optarg) }, &err), &err);
		a.consume.group = optarg;
		break;
	case 'o': a.from = optarg; break;
	case 'q': cli_queue("-q", optarg, &a.consume.queue.broker, &a.consume.queue.id); break;
	case 'T': a.consume.filter = optarg; break;
	case 'e': a.consume.stop_at_end = true; break;
	case 'c': a.flow.count = cli_int("-c", optarg, 1, INT64_MAX); break;
	case OPT_TIMEOUT: a.timeout_ms = cli_duration_ms("--timeout", optarg); break;
	case 'l': set_mode(RECORD_LINE); break;
	case '0': set_mode(RECORD_NUL); break;
	case 'w': set_mode(RECORD_RAW); break;
	case 'B': set_mode(RECORD_LENGTH); break;
	case 'J': set_mode(RECORD_JSON); break;
	case 'f':
		if (a.format_given)
			cli_usage_error("-f: given twice");
		a.format_given = true;
		set_mode(RECORD_FORMAT);
		if (record_out_format(&a.flow.out, optarg, &err) != 0)
			cli_usage_error("-f: %s", err.text);
		break;
	case 'u': a.flow.sink.one_by_one = true; break;
	case 'x': a.command = optarg; break;
	case OPT_JOBS: a.jobs = (int)cli_int("--jobs", optarg, 1, 1000); break;
	case OPT_RESUME: a.resume_file = optarg; break;
	case OPT_PROGRESS: a.progress_wanted = true; break;
	}
}

static void parse(int argc, char **argv)
{
	struct mq_error err;
	struct mq_str *topics;
	int c;

	a.timeout_ms = -1;
	while ((c = cli_option(argc, argv, options, help)) != -1)
		option(c);
	if (optind == argc)
		cli_usage_error("no TOPIC");
	topics = calloc((size_t)(argc - optind), sizeof(*topics));
	if (!topics)
		cli_die(CLI_SYSTEM, "out of memory");
	for (int i = optind; i < argc; i++) {
		topics[i - optind] = (struct mq_str){ argv[i], strlen(argv[i]) };
		cli_check(mq_check_topic(topics[i - optind], &err), &err);
	}
	a.consume.topics = topics;
	a.consume.ntopics = (size_t)(argc - optind);
	a.consume.start = a.consume.group ? MQCLIENT_STORED : MQCLIENT_BEGIN;
	if (a.from)
		parse_from(a.from);
	if (!a.consume.group && a.consume.start == MQCLIENT_STORED)
		cli_usage_error("-o stored: only a group (-g) has stored offsets");
	if (a.consume.group && a.resume_file)
		cli_usage_error("--resume and -g exclude each other: the servers remember where a group stands");
	if (a.jobs && !a.command)
		cli_usage_error("--jobs: there is no -x");
	if (a.command && (a.flow.out.mode != RECORD_LINE || a.format_given))
		cli_usage_error("-x: the command gets the body as it is; -0, -w, -B, -J and -f are for standard output");
	a.consume.window = a.command ? WINDOW_COMMAND : WINDOW;
	a.consume.batch = a.command ? WINDOW_COMMAND / 2 : BATCH;
}

/* ---- Begin ------------------------------------------------------------------------------------------------------------ */

static void on_interrupt(void *arg)
{
	a.signal_ms = (int64_t)uv_now(a.flow.loop);
	recv_flow_stop(&a.flow);
	runner_stop(&a.flow.runner);
}

static void on_tick(uv_timer_t *t)
{
	/* It is enough that the loop turned. */
}

static void open_source(uv_loop_t *loop)
{
	struct mqclient_opt opt = { .addr = a.addr, .loop = loop };
	struct mq_error err;
	int rc;

	if (mqclient_addr_kind(a.addr) == MQCLIENT_STORE) {
		if (a.consume.group)
			cli_usage_error("-g: a store directory has no groups that could be moved; leave -g out to look");
		if (a.consume.queue.broker && strcmp(a.consume.queue.broker, RECV_STORE_BROKER) != 0)
			cli_usage_error("-q: the queues of a store directory are called %s:ID", RECV_STORE_BROKER);
		rc = recv_store_open(&a.flow.store, mqclient_addr_dir(a.addr), loop, &a.consume, &recv_flow_ops, &a.flow, &err);
	} else {
		rc = mqclient_open(&a.client, &opt, &err);
		if (rc == 0)
			rc = mqclient_consume(a.client, &a.flow.consumer, &a.consume, &recv_flow_ops, &a.flow, &err);
	}
	if (rc != 0)
		cli_fail(&err);
}

static void open_all(void)
{
	uv_loop_t *loop = uv_default_loop();
	struct mq_error err;
	int rc;

	if (mqclient_address(a.addr_given, a.addr, sizeof(a.addr), &err) != 0)
		cli_fail(&err);
	if (recv_resume_open(&a.flow.resume, a.resume_file, &err) != 0)
		cli_fail(&err);
	rc = recv_flow_open(&a.flow, loop, a.command, a.jobs ? a.jobs : 1);
	if (rc != 0)
		cli_die(CLI_SYSTEM, "standard output: %s", strerror(-rc));
	a.interrupt.cb = on_interrupt;
	interrupt_catch(&a.interrupt, loop);
	open_source(loop);
	progress_open(&a.progress, a.progress_wanted, STDOUT_FILENO);
	uv_timer_init(loop, &a.tick);
	if (a.timeout_ms >= 0 || a.progress.on || a.resume_file)
		uv_timer_start(&a.tick, on_tick, TICK_MS, TICK_MS);
}

/* ---- The loop --------------------------------------------------------------------------------------------------------- */

static void save(bool now)
{
	int64_t now_ms = (int64_t)uv_now(a.flow.loop);
	struct mq_error err;

	if (!now && now_ms - a.saved_ms < 1000)
		return;
	a.saved_ms = now_ms;
	if (recv_resume_save(&a.flow.resume, &err) != 0 && !a.flow.fatal) {
		a.flow.fatal = true;
		a.flow.why = err;
		recv_flow_stop(&a.flow);
	}
}

static void show_progress(void)
{
	char more[64];

	if (!a.progress.on)
		return;
	snprintf(more, sizeof(more), ", %" PRId64 " to go", recv_flow_lag(&a.flow));
	progress_tick(&a.progress, (int64_t)uv_now(a.flow.loop), a.flow.accepted, "received", more);
}

/* Is it over, but for what is under way? */
static bool over(void)
{
	struct recv_flow *f = &a.flow;

	if (f->fatal || f->broken || f->command_failed || a.interrupt.got || f->ended)
		return true;
	if (f->count && f->taken >= f->count)
		return true;
	if (a.timeout_ms >= 0 && recv_flow_idle(f) && (int64_t)uv_now(f->loop) - f->last_ms >= a.timeout_ms)
		a.timed_out = true;
	return a.timed_out;
}

/* Before the loop goes to sleep.  (Not between two turns of UV_RUN_ONCE: that sleeps after timers that were due.) */
static void on_prepare(uv_prepare_t *h)
{
	int64_t now = (int64_t)uv_now(h->loop);

	recv_flow_turn(&a.flow);
	save(false);
	show_progress();
	if (!a.leaving && over()) {
		a.leaving = true;
		recv_flow_stop(&a.flow);
		uv_timer_start(&a.tick, on_tick, TICK_MS, TICK_MS);
	}
	if (a.leaving && (recv_flow_idle(&a.flow) || (a.interrupt.got && !a.flow.run && now - a.signal_ms >= HURRY_MS)))
		uv_stop(h->loop);
}

static void run(void)
{
	uv_prepare_init(a.flow.loop, &a.prepare);
	uv_prepare_start(&a.prepare, on_prepare);
	uv_run(a.flow.loop, UV_RUN_DEFAULT);
	uv_prepare_stop(&a.prepare);
}

static int close_all(void)
{
	struct recv_flow *f = &a.flow;
	struct mq_error err;
	int status = CLI_OK, rc;

	if (!f->run)
		sink_close(&f->sink);
	recv_flow_note(f);
	save(true);
	progress_close(&a.progress);
	if (f->consumer && (rc = mqclient_consumer_free(f->consumer, LEAVE_MS, &err)) != 0)
		status = cli_status(&err);
	if (a.client)
		mqclient_free(a.client, LEAVE_MS);
	if (f->store)
		recv_store_close(f->store);
	if (f->fatal || f->command_failed)
		status = cli_status(&f->why);
	if (f->broken && f->broken != -EPIPE)
		cli_die(CLI_SYSTEM, "standard output: %s", strerror(-f->broken));
	if (f->broken) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	if (status == CLI_OK && ((f->count && f->accepted < f->count) || (a.timed_out && f->accepted == 0)))
		status = CLI_NONE;
	runner_close(&f->runner);
	recv_flow_free(f);
	free((void *)a.consume.topics);
	return cli_close_stdout(status);
}

int main(int argc, char **argv)
{
	int status;

	cli_start(argc, argv);
	parse(argc, argv);
	open_all();
	run();
	status = close_all();
	interrupt_end(&a.interrupt);
	return status;
}
