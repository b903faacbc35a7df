/* serve.c: options, readiness and signals of the servers. */
#include "serve.h"
#include <base/mem.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
	const struct serve_ops *ops;
	void *arg;
	uv_signal_t signal[4];
	size_t n;
	int stopping;
} serve;

/* ---- Options ------------------------------------------------------------------------------------------------------------ */

void serve_option(struct serve_options *o, int id)
{
	switch (id) {
	case 'c':
		o->file = optarg;
		break;
	case 'p':
		o->property = mem_realloc(o->property, (o->nproperties + 1) * sizeof *o->property);
		o->property[o->nproperties++] = optarg;
		break;
	case SERVE_PRINT_CONFIG:
		o->print = true;
		break;
	case SERVE_READY_FD:
		o->ready_fd = (int)cli_int("--ready-fd", optarg, 0, INT32_MAX);
		break;
	}
}

int serve_configure(const struct serve_options *o, struct conf *rows, struct mq_error *e)
{
	int rc = o->file ? conf_file(rows, o->file, e) : 0;

	for (size_t i = 0; rc == 0 && i < o->nproperties; i++)
		rc = conf_arg(rows, o->property[i], e);
	return rc;
}

int serve_print_config(const struct conf *rows)
{
	struct buf text = { 0 };

	conf_print(rows, &text);
	fwrite(text.p, 1, text.n, stdout);
	buf_free(&text);
	return cli_close_stdout(CLI_OK);
}

void serve_options_free(struct serve_options *o)
{
	free(o->property);
}

/* ---- Signals ------------------------------------------------------------------------------------------------------------ */

static void on_signal(uv_signal_t *s, int number)
{
	switch (number) {
	case SIGHUP:
		serve.ops->reload(serve.arg);
		break;
	case SIGUSR1:
		serve.ops->dump(serve.arg);
		break;
	default:
		if (!serve.stopping++)
			serve.ops->stop(serve.arg);
	}
}

static void catch(uv_loop_t *loop, int number, void *handler)
{
	uv_signal_t *s = &serve.signal[serve.n];

	if (!handler) {
		signal(number, SIG_IGN);
		return;
	}
	uv_signal_init(loop, s);
	uv_signal_start(s, on_signal, number);
	uv_unref((uv_handle_t *)s);
	serve.n++;
}

void serve_signals(uv_loop_t *loop, const struct serve_ops *ops, void *arg)
{
	serve.ops = ops;
	serve.arg = arg;
	signal(SIGPIPE, SIG_IGN);
	catch(loop, SIGTERM, (void *)ops->stop);
	catch(loop, SIGINT, (void *)ops->stop);
	catch(loop, SIGHUP, (void *)ops->reload);
	catch(loop, SIGUSR1, (void *)ops->dump);
}

void serve_signals_close(void)
{
	while (serve.n)
		uv_close((uv_handle_t *)&serve.signal[--serve.n], NULL);
}

/* ---- Readiness ---------------------------------------------------------------------------------------------------------- */

/* The protocol of sd_notify(3): a datagram to the socket that $NOTIFY_SOCKET names; @ stands for an abstract one. */
static void notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd;

	if (!path || !*path || strlen(path) >= sizeof to.sun_path)
		return;
	memcpy(to.sun_path, path, strlen(path));
	if (*path == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) < 0)
		fprintf(stderr, "WARN serve systemd could not be told: %s\n", text);
	close(fd);
}

void serve_ready(int fd, int port)
{
	char line[16];

	notify("READY=1");
	if (fd < 0)
		return;
	snprintf(line, sizeof line, "%d\n", port);
	if (write(fd, line, strlen(line)) < 0)
		perror("WARN serve --ready-fd");
	close(fd);
}

void serve_stopping(void)
{
	notify("STOPPING=1");
}
