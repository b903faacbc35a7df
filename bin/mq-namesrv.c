/* mq-namesrv.c: options, configuration, open, run, close. */
#include "cli.h"
#include "namesrv/controller_node.h"
#include "namesrv/namesrv.h"
#include "serve.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>

#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: mq-namesrv [-c file] [-p key=value]... [--ready-fd n] [--print-config]\n"
	"Tell clients which broker serves which topic.\n"
	"\n"
	"  -c, --config FILE        namesrv.conf\n"
	"  -p, --property KEY=VALUE a key of it; wins over the file; may be repeated\n"
	"      --print-config       print all keys with their values and end\n"
	"      --ready-fd N         write the port and a newline to file descriptor N when ready\n"
	"  -h, --help               print this and end\n"
	"  -V, --version            print the version and end\n";

enum { GRACE_MS = 300 };

static const struct cli_option options[] = {
	SERVE_OPTIONS,
	{ 0 },
};

/* Where the configuration comes from: kept, so that SIGHUP can go there again. */
struct source {
	struct serve_options common;
};

static struct conf *load(void *arg, struct namesrv_conf *c, struct mq_error *e)
{
	struct source *s = arg;
	struct conf *rows = namesrv_conf_new(c);
	int rc = serve_configure(&s->common, rows, e);

	if (rc == 0)
		rc = namesrv_conf_check(rows, c, s->common.file, e);
	if (rc == 0)
		return rows;
	conf_free(rows);
	return NULL;
}

/* What runs: the name server, and if it is asked for a controller. */
struct parts {
	struct namesrv *ns;
	struct controller_node *controller;
	int running;
};

static void on_stopped(void *arg)
{
	struct parts *p = arg;

	if (--p->running == 0)
		serve_signals_close();
}

static void stop(struct parts *p, int grace_ms)
{
	p->running = (p->ns != NULL) + (p->controller != NULL);
	if (p->controller)
		controller_node_stop(p->controller, grace_ms, on_stopped, p);
	if (p->ns)
		namesrv_stop(p->ns, grace_ms, on_stopped, p);
}

static void on_stop(void *arg)
{
	log_line(LOG_INFO, "namesrv", "stopping");
	serve_stopping();
	stop(arg, GRACE_MS);
}

static void on_reload(void *arg)
{
	namesrv_reload(((struct parts *)arg)->ns);
}

static void on_dump(void *arg)
{
	struct parts *p = arg;

	namesrv_dump(p->ns);
	if (p->controller)
		controller_node_dump(p->controller);
}

static void on_changed(void *arg)
{
	namesrv_changed(((struct parts *)arg)->ns);
}

static int serve(struct source *s, struct conf *rows, struct namesrv_conf *c)
{
	static const struct serve_ops ops = { .stop = on_stop, .reload = on_reload, .dump = on_dump };
	struct namesrv_opt opt = { .conf = c, .rows = rows, .load = load, .load_arg = s };
	struct parts parts = { 0 };
	struct controller_node_opt controller = { .conf = c, .rows = rows, .changed = on_changed, .arg = &parts };
	struct mq_error e = { 0 };
	uv_loop_t loop;
	int rc = uv_loop_init(&loop);

	if (rc < 0)
		cli_die(CLI_SYSTEM, "event loop: %s", mq_strerror(rc));
	parts.ns = namesrv_new(&loop, &opt, &e);
	rc = parts.ns ? namesrv_listen(parts.ns, &e) : e.code;
	if (rc == 0 && c->enableControllerInNamesrv) {
		parts.controller = controller_node_start(&loop, &controller, &e);
		rc = parts.controller ? 0 : e.code;
	}
	if (rc == 0) {
		serve_signals(&loop, &ops, &parts);
		log_line(LOG_INFO, "namesrv", "serving version=%s port=%d", MQ_VERSION, namesrv_port(parts.ns));
		serve_ready(s->common.ready_fd, namesrv_port(parts.ns));
	} else if (parts.ns) {
		namesrv_stop(parts.ns, 0, NULL, NULL);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return rc < 0 ? cli_status(&e) : CLI_OK;
}

int main(int argc, char **argv)
{
	struct source s = { .common = SERVE_OPTIONS_INIT };
	int c, status;
	struct namesrv_conf conf;
	struct conf *rows;
	struct mq_error e = { 0 };

	cli_start(argc, argv);
	while ((c = cli_option(argc, argv, options, usage)) != -1)
		serve_option(&s.common, c);
	if (optind < argc)
		cli_usage_error("unexpected argument '%s'", argv[optind]);
	rows = load(&s, &conf, &e);
	if (!rows)
		cli_die(CLI_USAGE, "%s", e.text);
	status = s.common.print ? serve_print_config(rows) : serve(&s, rows, &conf);
	conf_free(rows);
	serve_options_free(&s.common);
	return status;
}
