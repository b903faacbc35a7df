/* mq-send.c: stdin or files -> topic.  The loop and the end; the parts:
 *
 *   send_options  what was asked for                send_input   records as they come
 *   compose       record -> message                 send_gather  messages -> batches
 *   send_flight   sends under way, what became      send_resume  how far an earlier run came
 *   send_txn      transactions and their commands   seal         sealing and signing
 *
 * The loop: as long as sends may leave, gather what records are there, never waiting for more, and hand them to the client as one
 * batch; then let the loop turn until an answer or input comes.  So one line that comes alone leaves alone and at once, and
 * when the input is faster than the servers what has come meanwhile shares a request.  Consumers cannot tell the difference. */
#include "cli.h"
#include "interrupt.h"
#include "progress.h"
#include "send_flight.h"
#include "send_gather.h"
#include "send_input.h"
#include "send_options.h"
#include "send_resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAVE_EVERY_MS 1000

/* All there is of a run. */
static struct app {
	struct send_options o;
	/* Parts. */
	struct mqclient *client;
	struct send_input input;
	struct send_gather gather;
	struct flight flight;
	struct flight_batch batch;
	struct send_txn txn;
	struct send_resume resume;
	struct progress progress;
	struct interrupt interrupt;
	uv_timer_t tick, waited;
	uv_prepare_t prepare;
	/* State. */
	int64_t rate_start_ms, rate_used, saved_ms;
	int64_t ended_ms;               /* when the input had ended; 0 = not yet */
} a;

/* ---- The loop --------------------------------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

/* Messages that --rate lets go now; at most a hundredth of a second's worth is made up for. */
static int64_t rate_room(void)
{
	int64_t now = now_ms(), due;

	if (a.o.rate == 0 || a.interrupt.got)
		return INT64_MAX;
	if (a.rate_start_ms == 0)
		a.rate_start_ms = now;
	due = (now - a.rate_start_ms) * a.o.rate / 1000 + 1;
	if (due - a.rate_used > a.o.rate / 100 + 1) {
		a.rate_start_ms = now;
		a.rate_used = 0;
		due = a.o.rate / 100 + 1;
	}
	return due - a.rate_used;
}

static void on_tick(uv_timer_t *t)
{
	/* It is enough that the loop turned. */
}

/* Wake the loop for --rate, and once a second for those who want to be told. */
static void set_tick(void)
{
	int64_t ms = a.progress.on || a.resume.path ? 1000 : -1, wait;

	if (a.o.rate && !a.gather.ended && rate_room() <= 0) {
		wait = (a.rate_used + 1) * 1000 / a.o.rate - (now_ms() - a.rate_start_ms);
		wait = wait < 1 ? 1 : wait;
		ms = ms < 0 || wait < ms ? wait : ms;
	}
	if (ms >= 0)
		uv_timer_start(&a.tick, on_tick, (uint64_t)ms, 0);
}

static void feed(void)
{
	while (!a.flight.stop && !send_gather_done(&a.gather) && flight_room(&a.flight)) {
		int64_t room = rate_room();

		if (room <= 0)
			return;
		send_gather(&a.gather, &a.batch, room < FLIGHT_BATCH_MAX ? (size_t)room : FLIGHT_BATCH_MAX);
		if (a.batch.n == 0)
			return;
		a.rate_used += (int64_t)a.batch.n;
		flight_send(&a.flight, &a.batch);
		if (a.o.strict && a.flight.refused)
			a.flight.stop = true;
	}
}

static void save(bool now)
{
	struct mq_error err;

	if (!a.resume.path || (!now && now_ms() - a.saved_ms < SAVE_EVERY_MS))
		return;
	a.saved_ms = now_ms();
	if (send_resume_save(&a.resume, &a.flight, send_gather_place(&a.gather), &err) != 0) {
		cli_warn("--resume: %s", err.text);
		flight_status(&a.flight, CLI_SYSTEM);
		a.flight.stop = true;
	}
}

static void on_interrupt(void *arg)
{
	send_input_drain(&a.input);
}

/* Nothing more to answer for the brokers? */
static bool answered(void)
{
	int64_t now = now_ms();

	if (a.txn.busy)
		return false;
	if (!a.o.wait_ms || a.interrupt.got || a.flight.stop)
		return true;
	if (!a.ended_ms) {
		a.ended_ms = now;
		uv_timer_start(&a.waited, on_tick, (uint64_t)a.o.wait_ms, 0);
	}
	return now - a.ended_ms >= a.o.wait_ms;
}

/* Before the loop goes to sleep: send what is there; and is that all?  (Not between two turns of UV_RUN_ONCE: that sleeps after
 * timers that were due.) */
static void on_prepare(uv_prepare_t *h)
{
	feed();
	save(false);
	progress_tick(&a.progress, now_ms(), a.flight.accepted, a.flight.opt.oneway ? "sent" : "acknowledged", "");
	if (a.flight.under_way == 0 && (a.flight.stop || send_gather_done(&a.gather)) && answered())
		uv_stop(h->loop);
	else
		set_tick();
}

static void run(void)
{
	uv_loop_t *loop = mqclient_loop(a.client);

	uv_timer_init(loop, &a.tick);
	uv_timer_init(loop, &a.waited);
	uv_prepare_init(loop, &a.prepare);
	uv_prepare_start(&a.prepare, on_prepare);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_prepare_stop(&a.prepare);
}

/* Who is interrupted or refused wants to know how much arrived. */
static void sum_up(void)
{
	const char *word = a.flight.opt.oneway ? "sent" : a.o.transaction ? "committed" : a.o.request ? "answered" : "acknowledged";
	char more[400] = "";

	if (a.flight.lost)
		snprintf(more, sizeof(more), ", %" PRId64 " not", a.flight.lost);
	if (a.flight.refused)
		snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %" PRId64 " refused", a.flight.refused);
	if (a.flight.rolled_back)
		snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %" PRId64 " rolled back", a.flight.rolled_back);
	if (a.flight.undecided)
		snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %" PRId64 " not decided: the brokers ask group '%.60s'",
		         a.flight.undecided, a.o.send.group);
	for (int i = 0; i < 3; i++)
		if (a.flight.late[i])
			snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %" PRId64 " with code %d", a.flight.late[i], 10 + i);
	if (a.interrupt.got)
		cli_warn("interrupted: %" PRId64 " messages %s%s", a.flight.accepted, word, more);
	else if (a.flight.status != CLI_OK)
		cli_warn("%" PRId64 " messages %s%s", a.flight.accepted, word, more);
	if (send_input_left(&a.input))
		cli_warn("%zu bytes of a message that had not come whole were not sent", send_input_left(&a.input));
}

/* ---- Begin and end ---------------------------------------------------------------------------------------------------- */

/* Messages that are more than sent. */
static void open_modes(void)
{
	static const enum record_mode replies[] = { [FRAME_LINE] = RECORD_LINE, [FRAME_NUL] = RECORD_NUL, [FRAME_WHOLE] = RECORD_RAW,
	                                            [FRAME_LENGTH] = RECORD_LENGTH, [FRAME_JSON] = RECORD_JSON };
	struct mq_error err;

	a.flight.request = a.o.request;
	a.flight.replies.mode = replies[a.o.framing];
	if (seal_out(&a.o.seal))
		a.flight.seal = &a.o.seal;
	if (!a.o.transaction && !a.o.check)
		return;
	a.txn.client = a.client;
	a.txn.loop = mqclient_loop(a.client);
	a.txn.group = a.o.send.group;
	if (a.o.transaction) {
		a.flight.txn = &a.txn;
		a.flight.opt.half = true;
	}
	if (send_txn_answer(&a.txn, a.o.compose.topic, &err) != 0)
		cli_fail(&err);
}

static void open_all(char **files, int nfiles)
{
	static const char *const framings[] = { [FRAME_LINE] = "-l", [FRAME_NUL] = "-0", [FRAME_WHOLE] = "-w",
	                                        [FRAME_LENGTH] = "-B", [FRAME_JSON] = "-J" };
	static char addr[4096];
	struct mqclient_opt opt = { .addr = addr, .loop = uv_default_loop() };
	size_t max = MQ_BODY_MAX;
	struct mq_error err;

	flight_init(&a.flight);
	a.flight.opt = a.o.send;
	a.flight.verbose = a.o.verbose;
	a.flight.topic_per_record = a.o.topic_per_record;
	a.flight.max_sends = (int)a.o.in_flight;
	send_txn_open(&a.txn, a.o.transaction, a.o.check);
	if (mqclient_address(a.o.addr, addr, sizeof(addr), &err) != 0)
		cli_fail(&err);
	if (mqclient_addr_kind(addr) == MQCLIENT_STORE)
		cli_usage_error("'%s' is read-only: nothing can be sent there", addr);
	if (send_resume_open(&a.resume, a.o.resume, a.o.topic, framings[a.o.framing], (const char *const *)files, nfiles, &err) != 0)
		cli_fail(&err);
	if (a.o.failed) {
		a.flight.failed_fd = open(a.o.failed, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (a.flight.failed_fd < 0)
			cli_die(CLI_SYSTEM, "--failed: open '%s': %s", a.o.failed, strerror(errno));
	}
	if (a.flight.verbose || a.o.transaction) {
		a.batch.ids = malloc(FLIGHT_BATCH_MAX * sizeof(*a.batch.ids));
		if (!a.batch.ids)
			cli_die(CLI_SYSTEM, "out of memory");
	}
	if (mqclient_open(&a.client, &opt, &err) != 0)
		cli_fail(&err);
	a.flight.client = a.client;
	a.flight.input = &a.input;
	open_modes();
	a.gather = (struct send_gather){ .input = &a.input, .compose = &a.o.compose, .flight = &a.flight, .resume = &a.resume,
	                                 .framing = a.o.framing, .batch_max = a.o.batch_max, .skip_empty = a.o.skip_empty,
	                                 .strict = a.o.strict,
	                                 .alone = a.o.request || a.o.transaction || seal_out(&a.o.seal),
	                                 .with_id = a.o.verbose || a.o.transaction };
	/* A key may stand before the body; JSON may need six bytes for one. */
	if (a.o.framing == FRAME_JSON)
		max = 8 * (size_t)MQ_BODY_MAX;
	else if (a.o.compose.key_delim.n)
		max += MQ_PROPS_MAX;
	send_input_init(&a.input, mqclient_loop(a.client), (const char *const *)files, nfiles, a.o.framing, max);
	if (a.resume.path)
		send_input_seek(&a.input, &a.resume.at);
	progress_open(&a.progress, a.o.progress, STDIN_FILENO);
	a.interrupt.cb = on_interrupt;
	interrupt_catch(&a.interrupt, mqclient_loop(a.client));
}

static int close_all(void)
{
	save(true);
	flight_finish(&a.flight);
	progress_close(&a.progress);
	sum_up();
	send_input_close(&a.input);
	mqclient_free(a.client, 1000);
	if (a.flight.failed_fd >= 0 && close(a.flight.failed_fd) != 0) {
		cli_warn("--failed: '%s': %s", a.o.failed, strerror(errno));
		flight_status(&a.flight, CLI_SYSTEM);
	}
	flight_free(&a.flight);
	send_txn_free(&a.txn);
	seal_free(&a.o.seal);
	send_resume_free(&a.resume);
	compose_free(&a.o.compose);
	bytes_free(&a.batch.bytes);
	bytes_free(&a.batch.sharding);
	free(a.batch.ids);
	return cli_close_stdout(a.flight.status);
}

int main(int argc, char **argv)
{
	int status;

	cli_start(argc, argv);
	send_options(&a.o, argc, argv);
	open_all(argv + optind, argc - optind);
	run();
	status = close_all();
	interrupt_end(&a.interrupt);
	return status;
}
