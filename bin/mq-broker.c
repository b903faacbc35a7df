/* mq-broker.c: options, configuration, open, run, close. */
#include "broker/broker.h"
#include "cli.h"
#include "embedded.h"
#include "serve.h"
#include <base/err.h>
#include <base/log.h>
#include <base/sys.h>
#include <stdlib.h>

static const char usage[] =
	"usage: mq-broker [-c file] [-p key=value]... [-n nameserver] [--ready-fd n] [--print-config]\n"
	"       mq-broker --embedded dir [--idle-exit seconds] [-p key=value]...\n"
	"Store messages and deliver them.\n"
	"\n"
	"  -c, --config FILE        broker.conf\n"
	"  -p, --property KEY=VALUE a key of it; wins over the file; may be repeated\n"
	"  -n, --nameserver ADDR    namesrvAddr: host:port[;host:port...]\n"
	"      --print-config       print all keys with their values and end\n"
	"      --embedded DIR       serve DIR on DIR/mq.sock, name server included, and nobody else\n"
	"      --idle-exit S        embedded: end after S seconds without a client (30; 0 = never)\n"
	"      --ready-fd N         write the port and a newline to file descriptor N when ready\n"
	"  -h, --help               print this and end\n"
	"  -V, --version            print the version and end\n";

enum { OPT_PRINT = 256, OPT_EMBEDDED, OPT_IDLE, OPT_READY };

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "property", required_argument, NULL, 'p' },
	{ "nameserver", required_argument, NULL, 'n' },
	{ "print-config", no_argument, NULL, OPT_PRINT },
	{ "embedded", required_argument, NULL, OPT_EMBEDDED },
	{ "idle-exit", required_argument, NULL, OPT_IDLE },
	{ "ready-fd", required_argument, NULL, OPT_READY },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

/* Where the configuration comes from: kept, so that SIGHUP can go there again. */
struct source {
	const char *file, *nameserver, *embedded;
	char **property;
	size_t nproperties;
};

static struct conf *load(void *arg, struct broker_conf *c, struct mq_error *e)
{
	struct source *s = arg;
	struct conf *rows = broker_conf_new(c);
	int rc = s->embedded ? broker_conf_embedded(rows, s->embedded, e) : 0;

	if (rc == 0 && s->file)
		rc = conf_file(rows, s->file, e);
	for (size_t i = 0; rc == 0 && i < s->nproperties; i++)
		rc = conf_arg(rows, s->property[i], e);
	if (rc == 0 && s->nameserver)
		rc = conf_set(rows, MQ_STR("namesrvAddr"), (struct mq_str){ s->nameserver, strlen(s->nameserver) }, e);
	if (rc == 0)
		rc = broker_conf_check(rows, c, e);
	if (rc == 0)
		return rows;
	conf_free(rows);
	return NULL;
}

static void on_stop(void *arg)
{
	serve_stopping();
	broker_stop(arg);
}

static void on_reload(void *arg)
{
	broker_reload(arg);
}

static void on_dump(void *arg)
{
	metrics_log(&((struct broker *)arg)->metrics);
}

static void on_stopped(void *arg, int rc)
{
	serve_signals_close();
	*(int *)arg = rc;
}

static int serve(struct source *s, struct conf *rows, struct broker_conf *c, int64_t idle_ms, int ready_fd)
{
	static const struct serve_ops ops = { .stop = on_stop, .reload = on_reload, .dump = on_dump };
	struct broker_opt opt = { .rows = rows, .conf = c, .conf_path = s->file, .load = load, .load_arg = s,
				  .embedded_dir = s->embedded, .names = &embedded_names,
			          .idle_exit_ms = s->embedded ? idle_ms : 0, .stopped = on_stopped };
	struct mq_error e = { 0 };
	struct broker *b;
	uv_loop_t loop;
	int rc, stop_rc = 0;

	opt.stopped_arg = &stop_rc;
	rc = uv_loop_init(&loop);
	if (rc < 0)
		cli_die(CLI_SYSTEM, "event loop: %s", mq_strerror(rc));
	rc = broker_start(&b, &loop, &opt, &e);
	if (rc == 0) {
		serve_signals(&loop, &ops, b);
		serve_ready(ready_fd, broker_port(b));
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	if (rc < 0)
		return cli_status(&e);
	return stop_rc < 0 ? CLI_SYSTEM : CLI_OK;
}

int main(int argc, char **argv)
{
	struct source s = { 0 };
	int64_t idle_ms = 30000;
	int c, status, ready_fd = -1;
	bool print = false;
	struct broker_conf conf;
	struct conf *rows;
	struct mq_error e = { 0 };

	cli_start(argc, argv);
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":c:p:n:hV", options, NULL)) != -1)
		switch (c) {
		case 'c':
			s.file = optarg;
			break;
		case 'p':
			s.property = realloc(s.property, (s.nproperties + 1) * sizeof *s.property);
			if (!s.property)
				abort();
			s.property[s.nproperties++] = optarg;
			break;
		case 'n':
			s.nameserver = optarg;
			break;
		case OPT_PRINT:
			print = true;
			break;
		case OPT_EMBEDDED:
			s.embedded = optarg;
			break;
		case OPT_IDLE:
			idle_ms = cli_duration_ms("--idle-exit", optarg);
			break;
		case OPT_READY:
			ready_fd = (int)cli_int("--ready-fd", optarg, 0, INT32_MAX);
			break;
		case 'h':
			cli_help(usage);
		case 'V':
			cli_version();
		default:
			cli_bad_option(c, argv);
		}
	if (optind < argc)
		cli_usage_error("unexpected argument '%s'", argv[optind]);
	rows = load(&s, &conf, &e);
	if (!rows)
		cli_die(CLI_USAGE, "%s", e.text);
	if (print) {
		struct buf text = { 0 };

		conf_print(rows, &text);
		fwrite(text.p, 1, text.n, stdout);
		buf_free(&text);
		status = cli_close_stdout(CLI_OK);
	} else
		status = serve(&s, rows, &conf, idle_ms, ready_fd);
	conf_free(rows);
	free(s.property);
	return status;
}
