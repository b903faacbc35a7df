/* mqfs.c: a message queue as files: options, the loop, the end.  The parts:
 *
 *   tree, tree_*   what there is           node      numbers and references
 *   ops, ops_*     the kernel's requests   session   the connection to it; mount: where
 *   source, ...    a cluster, or a store   task      straight-line code on the loop
 *   feed, share    streams                 post      what is sent
 *
 * The end comes in this order: whoever waits is told; unmount; what was acknowledged is committed; leave.  Signals stay
 * caught to the last: a second SIGTERM must not end what the first one began. */
#include "cluster.h"
#include "feed.h"
#include "message.h"
#include "ops.h"
#include "options.h"
#include "session.h"
#include "share.h"
#include "source.h"
#include "task.h"
#include "tree.h"
#include "../bin/cli.h"
#include "../bin/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 100, LEAVE_MS = 2000 };

static uv_timer_t tick;
static uv_prepare_t before_sleep;
static bool stopping;
static int parent = -1;                 /* of --background: told when mounted */

static void on_tick(uv_timer_t *t)
{
	feed_tick();
	share_tick();
}

static void on_prepare(uv_prepare_t *h) { feed_turn(); }

static void stop(void *arg)
{
	stopping = true;
	uv_stop(uv_default_loop());
}

static void on_gone(void) { stop(NULL); }

static void on_ready(void)
{
	serve_ready(options.ready_fd, 0);
	if (parent < 0)
		return;
	if (write(parent, "", 1) < 0)
		cli_warn("--background: %s", strerror(errno));
	close(parent);
	/* Nobody is there to read it any more. */
	int null_fd = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3 && null_fd >= 0; fd++)
		dup2(null_fd, fd);
	if (null_fd > 2)
		close(null_fd);
}

/* The one who called waits until we are mounted, or have failed. */
static void go_to_background(void)
{
	int fd[2], status;
	char byte;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		cli_die(CLI_SYSTEM, "--background: %s", strerror(errno));
	if (pid == 0) {
		setsid();
		close(fd[0]);
		parent = fd[1];
		return;
	}
	close(fd[1]);
	if (read(fd[0], &byte, 1) == 1)
		_exit(0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : CLI_SYSTEM);
}

static void open_all(uv_loop_t *loop)
{
	static const struct serve_ops signals = { .stop = stop };
	struct mq_error err;

	task_init(loop);
	ops_init();
	node_root(&tree[K_ROOT]);
	if (source_open(options.addr, loop, &err) != 0)
		cli_fail(&err);
	serve_signals(loop, &signals, NULL);
	if (session_open(loop, on_ready, on_gone, &err) != 0) {
		source->close(0);
		cli_fail(&err);
	}
	uv_timer_init(loop, &tick);
	uv_timer_start(&tick, on_tick, TICK_MS, TICK_MS);
	uv_prepare_init(loop, &before_sleep);
	uv_prepare_start(&before_sleep, on_prepare);
}

static void close_all(uv_loop_t *loop)
{
	serve_stopping();
	uv_timer_stop(&tick);
	uv_prepare_stop(&before_sleep);
	feed_close_all();
	share_close_all();
	ops_end_all();
	session_close();
	file_close_all();
	source->close(LEAVE_MS);
	uv_run(loop, UV_RUN_NOWAIT);
	ops_free_all();
	message_drop_all();
	node_free_all();
	task_free_stacks();
	free(options.mountpoint);
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();

	cli_start(argc, argv);
	options_parse(argc, argv);
	if (options.background)
		go_to_background();
	open_all(loop);
	while (!stopping)
		uv_run(loop, UV_RUN_DEFAULT);
	close_all(loop);
	return CLI_OK;
}
