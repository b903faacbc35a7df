/* mq-broker.c: options, configuration, open, run, close. */
#include "broker/member.h"
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

enum { OPT_EMBEDDED = SERVE_OWN, OPT_IDLE };

static const struct cli_option options[] = {
	SERVE_OPTIONS,
	{ 'n', "nameserver", true },
	{ OPT_EMBEDDED, "embedded", true },
	{ OPT_IDLE, "idle-exit", true },
	{ 0 },
};

/* Where the configuration comes from: kept, so that SIGHUP can go there again. */
struct source {
	struct serve_options common;
	const char *nameserver, *embedded;
};

static struct conf *load(void *arg, struct broker_conf *c, struct mq_error *e)
{
	struct source *s = arg;
	struct conf *rows = broker_conf_new(c);
	int rc = s->embedded ? broker_conf_embedded(rows, s->embedded, e) : 0;

	if (rc == 0)
		rc = serve_configure(&s->common, rows, e);
	if (rc == 0 && s->nameserver)
		rc = conf_set(rows, MQ_STR("namesrvAddr"), (struct mq_str){ s->nameserver, strlen(s->nameserver) }, e);
	if (rc == 0)
		rc = broker_conf_check(rows, c, e);
	if (rc == 0)
		return rows;
	conf_free(rows);
	return NULL;
}

/* What is served: a broker, or under a controller one after the other. */
struct served {
	struct broker *b;
	struct member *m;
	int rc;
};

static struct broker *now(const struct served *s)
{
	return s->m ? member_broker(s->m) : s->b;
}

static void on_stop(void *arg)
{
	struct served *s = arg;

	serve_stopping();
	if (s->m)
		member_stop(s->m);
	else
		broker_stop(s->b);
}

static void on_reload(void *arg)
{
	if (now(arg))
		broker_reload(now(arg));
}

static void on_dump(void *arg)
{
	if (now(arg))
		metrics_log(&now(arg)->metrics);
}

static void on_stopped(void *arg, int rc)
{
	serve_signals_close();
	((struct served *)arg)->rc = rc;
}

static int serve(struct source *s, struct conf *rows, struct broker_conf *c, int64_t idle_ms)
{
	static const struct serve_ops ops = { .stop = on_stop, .reload = on_reload, .dump = on_dump };
	struct broker_opt opt = { .rows = rows, .conf = c, .conf_path = s->common.file, .load = load, .load_arg = s,
				  .embedded_dir = s->embedded, .names = &embedded_names,
			          .idle_exit_ms = s->embedded ? idle_ms : 0, .stopped = on_stopped };
	struct mq_error e = { 0 };
	struct served served = { 0 };
	uv_loop_t loop;
	int rc;

	opt.stopped_arg = &served;
	rc = uv_loop_init(&loop);
	if (rc < 0)
		cli_die(CLI_SYSTEM, "event loop: %s", mq_strerror(rc));
	rc = c->enableControllerMode ? member_start(&served.m, &loop, &opt, &e) : broker_start(&served.b, &loop, &opt, &e);
	if (rc == 0) {
		serve_signals(&loop, &ops, &served);
		serve_ready(s->common.ready_fd, broker_port(now(&served)));
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	if (rc < 0)
		return cli_status(&e);
	return served.rc < 0 ? CLI_SYSTEM : CLI_OK;
}

int main(int argc, char **argv)
{
	struct source s = { .common = SERVE_OPTIONS_INIT };
	int64_t idle_ms = 30000;
	int c, status;
	struct broker_conf conf;
	struct conf *rows;
	struct mq_error e = { 0 };

	cli_start(argc, argv);
	while ((c = cli_option(argc, argv, options, usage)) != -1)
		switch (c) {
		case 'n':
			s.nameserver = optarg;
			break;
		case OPT_EMBEDDED:
			s.embedded = optarg;
			break;
		case OPT_IDLE:
			idle_ms = cli_duration_ms("--idle-exit", optarg);
			break;
		default:
			serve_option(&s.common, c);
		}
	if (optind < argc)
		cli_usage_error("unexpected argument '%s'", argv[optind]);
	rows = load(&s, &conf, &e);
	if (!rows)
		cli_die(CLI_USAGE, "%s", e.text);
	broker_conf_tell_unserved(rows);
	status = s.common.print ? serve_print_config(rows) : serve(&s, rows, &conf, idle_ms);
	conf_free(rows);
	serve_options_free(&s.common);
	return status;
}
