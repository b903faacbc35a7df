/* mq-recv.c: topic -> stdout, or -> a command per message.  The loop and the end; the parts:
 *
 *   recv_options  what was asked for                 recv_flow   message -> destination, and back
 *   recv_store    a store directory as the source    sink        what stdout has accepted
 *   record_out    how a message is written           runner      a command per message
 *   seal          opening what is sealed             exit_map    what its exit code means
 *   recv_resume   offsets in a file
 *
 * The end comes in this order: take no more; let what is under way arrive; have one last look at what a pipe's reader took; commit
 * that; leave the group. */
#include "cli.h"
#include "interrupt.h"
#include "progress.h"
#include "recv_flow.h"
#include "recv_options.h"
#include "state_file.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 100
#define HURRY_MS 300            /* after a signal a reader has so long to take what lies in the pipe */
#define LEAVE_MS 3000           /* for the last commit */

static struct app {
	struct recv_options o;
	/* Parts. */
	char addr[4096];
	struct recv_flow flow;
	struct progress progress;
	struct interrupt interrupt;
	uv_timer_t tick;
	uv_prepare_t prepare;
	/* State. */
	bool timed_out, leaving;
	int64_t signal_ms, saved_ms;
} a;

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
		if (a.o.consume.group)
			cli_usage_error("-g: a store directory has no groups that could be moved; leave -g out to look");
		if (a.o.consume.queue.broker && strcmp(a.o.consume.queue.broker, RECV_STORE_BROKER) != 0)
			cli_usage_error("-q: the queues of a store directory are called %s:ID", RECV_STORE_BROKER);
		if (a.o.consume.sql)
			cli_usage_error("--filter: it is the brokers that know SQL92, not a store directory");
		rc = recv_store_open(&a.flow.store, mqclient_addr_dir(a.addr), loop, &a.o.consume, &recv_flow_ops, &a.flow, &err);
	} else {
		rc = mqclient_open(&a.flow.client, &opt, &err);
		if (rc == 0)
			rc = mqclient_consume(a.flow.client, &a.flow.consumer, &a.o.consume, &recv_flow_ops, &a.flow, &err);
	}
	if (rc != 0)
		cli_fail(&err);
}

/* Who broadcasts keeps the offsets on this side: in the file of --resume, or one of the group. */
static void open_resume(void)
{
	const char *path = a.o.resume;
	struct mq_error err;

	if (!path && a.o.consume.broadcast)
		path = state_file_home("broadcast", a.o.consume.group, &err);
	if (a.o.consume.broadcast && (!path || state_file_lock(path, &err) != 0))
		cli_fail(&err);
	if (recv_resume_open(&a.flow.resume, path, &err) != 0)
		cli_fail(&err);
}

static void take_options(struct recv_flow *f, const struct recv_options *o)
{
	f->out = o->out;
	f->count = o->count;
	f->reply = o->reply;
	f->json_input = o->json_input;
	f->broadcast = o->consume.broadcast;
	f->in_place = o->consume.orderly || o->consume.broadcast;
	f->max_attempts = o->max_attempts;
	f->on_exit = o->on_exit;
	f->seal = o->seal;
	f->group = o->consume.group;
	f->sink.one_by_one = o->one_by_one;
	f->runner.jobs = o->jobs;
	f->runner.timeout_ms = o->exec_timeout_ms;
}

static void open_all(void)
{
	uv_loop_t *loop = uv_default_loop();
	struct mq_error err;
	int rc;

	take_options(&a.flow, &a.o);
	if (mqclient_address(a.o.addr, a.addr, sizeof(a.addr), &err) != 0)
		cli_fail(&err);
	open_resume();
	rc = recv_flow_open(&a.flow, loop, a.o.command_opt, a.o.command);
	if (rc != 0)
		cli_die(CLI_SYSTEM, "standard output: %s", strerror(-rc));
	a.interrupt.cb = on_interrupt;
	interrupt_catch(&a.interrupt, loop);
	open_source(loop);
	progress_open(&a.progress, a.o.progress, STDOUT_FILENO);
	uv_timer_init(loop, &a.tick);
	if (a.o.timeout_ms >= 0 || a.progress.on || a.flow.resume.path)
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
	if (a.o.timeout_ms >= 0 && recv_flow_idle(f) && (int64_t)uv_now(f->loop) - f->last_ms >= a.o.timeout_ms)
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
	f->consumer = NULL;
	if (f->client)
		mqclient_free(f->client, LEAVE_MS);
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
	free((void *)a.o.consume.topics);
	return cli_close_stdout(status);
}

int main(int argc, char **argv)
{
	int status;

	cli_start(argc, argv);
	recv_options(&a.o, argc, argv);
	open_all();
	run();
	status = close_all();
	interrupt_end(&a.interrupt);
	return status;
}
