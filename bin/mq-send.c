/* mq-send.c: stdin or files -> topic.  Options, the loop, the end; the parts:
 *
 *   send_input    records as they come              compose     record -> message
 *   send_flight   sends under way, what became      send_resume how far an earlier run came
 *
 * The loop: as long as sends may leave, gather what records are there, never waiting for more, and hand them to the client as one
 * batch; then let the loop turn until an answer or input comes.  So one line that comes alone leaves alone and at once, and
 * when the input is faster than the servers what has come meanwhile shares a request.  Consumers cannot tell the difference. */
#include "cli.h"
#include "compose.h"
#include "progress.h"
#include "record_out.h"
#include "send_flight.h"
#include "send_input.h"
#include "send_resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH_DEFAULT 64
#define BATCH_BYTES ((size_t)256 * 1024)  /* bodies of one batch; a bigger message goes alone */
#define IN_FLIGHT_DEFAULT 64
#define COMPRESS_OVER 4096                /* as the peer's clients */
#define SAVE_EVERY_MS 1000

static const char help[] =
	"usage: mq-send [-0BhJlVvw] [-g GROUP] [-H NAME=VALUE] [-K DELIM] [-k KEY] [-n ADDRESS]\n"
	"               [-q BROKER:ID] [-s SHARDING-KEY] [-T TAG] [--batch N] [--compress TYPE]\n"
	"               [--failed FILE] [--in-flight N] [--oneway] [--progress] [--rate N]\n"
	"               [--resume FILE] [--skip-empty] [--strict] [--timeout DURATION]\n"
	"               TOPIC [FILE ...]\n"
	"\n"
	"Send standard input, or each FILE, to TOPIC.\n"
	"\n"
	"What is one message:\n"
	"  -l, --line                a line (default)\n"
	"  -0, --null                what ends with a NUL byte\n"
	"  -w, --whole               all of standard input, or of each FILE\n"
	"  -B, --binary              what follows a length of 4 bytes, big-endian\n"
	"  -J, --json                a JSON text a line, as mq-recv -J prints it; TOPIC - and\n"
	"                            -q - take topic and queue from there\n"
	"      --skip-empty          leave empty ones out instead of refusing them\n"
	"What goes with it:\n"
	"  -k, --key KEY             a key by which it can be found (repeatable)\n"
	"  -K, --key-delimiter DELIM what stands before DELIM is its key\n"
	"  -T, --tag TAG             a tag by which consumers choose\n"
	"  -H, --property NAME=VALUE a property (repeatable)\n"
	"Where it goes:\n"
	"  -n, --nameserver ADDRESS  host:port[;host:port], http://..., file:DIR; see mq(7)\n"
	"  -q, --queue BROKER:ID     this queue, in order\n"
	"  -s, --sharding-key KEY    the queue that belongs to KEY, in order\n"
	"  -g, --group GROUP         name of the producer group\n"
	"How it is sent:\n"
	"      --batch N             at most N messages in one request (64; 1: each alone)\n"
	"      --in-flight N         at most N requests without an answer (64; with -q, -s: 1)\n"
	"      --rate N              at most N messages a second\n"
	"      --oneway              do not wait for answers\n"
	"      --compress TYPE       zlib, lz4 or zstd for bodies of 4096 bytes and more\n"
	"      --timeout DURATION    how long to try a message: 500ms, 3s (default), 1m\n"
	"What is told:\n"
	"  -v, --verbose             id, queue and offset of each message on standard output\n"
	"      --failed FILE         append what was not accepted, and go on\n"
	"      --resume FILE         remember in FILE what was accepted; go on there next time\n"
	"      --strict              stop at the first message that is refused\n"
	"      --progress            messages and rate on standard error\n"
	"  -h, --help                this\n"
	"  -V, --version\n";

enum { OPT_BATCH = 256, OPT_COMPRESS, OPT_FAILED, OPT_IN_FLIGHT, OPT_ONEWAY, OPT_PROGRESS, OPT_RATE, OPT_RESUME,
       OPT_SKIP_EMPTY, OPT_STRICT, OPT_TIMEOUT };

static const struct option longs[] = {
	{ "line", no_argument, NULL, 'l' },
	{ "null", no_argument, NULL, '0' },
	{ "whole", no_argument, NULL, 'w' },
	{ "binary", no_argument, NULL, 'B' },
	{ "json", no_argument, NULL, 'J' },
	{ "skip-empty", no_argument, NULL, OPT_SKIP_EMPTY },
	{ "key", required_argument, NULL, 'k' },
	{ "key-delimiter", required_argument, NULL, 'K' },
	{ "tag", required_argument, NULL, 'T' },
	{ "property", required_argument, NULL, 'H' },
	{ "nameserver", required_argument, NULL, 'n' },
	{ "queue", required_argument, NULL, 'q' },
	{ "sharding-key", required_argument, NULL, 's' },
	{ "group", required_argument, NULL, 'g' },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "in-flight", required_argument, NULL, OPT_IN_FLIGHT },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "oneway", no_argument, NULL, OPT_ONEWAY },
	{ "compress", required_argument, NULL, OPT_COMPRESS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "verbose", no_argument, NULL, 'v' },
	{ "failed", required_argument, NULL, OPT_FAILED },
	{ "resume", required_argument, NULL, OPT_RESUME },
	{ "strict", no_argument, NULL, OPT_STRICT },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

/* All there is of a run. */
static struct app {
	/* Options. */
	enum frame_mode framing;
	const char *addr, *topic, *queue, *sharding_key, *failed, *resume_file;
	size_t batch_max;
	int64_t in_flight, rate;
	bool skip_empty, strict, progress_wanted;
	/* Parts. */
	struct mqclient *client;
	struct compose compose;
	struct send_input input;
	struct flight flight;
	struct flight_batch batch;
	struct send_resume resume;
	struct progress progress;
	uv_signal_t signals[3];
	uv_timer_t tick;
	uv_prepare_t prepare;
	/* State. */
	struct composed composed;       /* a message that did not fit into the last batch */
	struct input_place composed_at;
	char composed_id[MQ_ID_TEXT];
	bool have_composed, input_ended;
	int got_signal;
	int64_t rate_start_ms, rate_used, saved_ms;
} a;

/* ---- Options ---------------------------------------------------------------------------------------------------------- */

static void option_error(int rc, const struct mq_error *err)
{
	if (rc != 0)
		cli_usage_error("%s", err->text);
}

static void parse_compress(const char *value)
{
	static const struct {
		const char *name;
		int32_t type;
	} types[] = { { "zlib", MQ_SYS_COMPRESS_ZLIB }, { "lz4", MQ_SYS_COMPRESS_LZ4 }, { "zstd", MQ_SYS_COMPRESS_ZSTD } };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].name, value) != 0)
			continue;
		a.flight.opt.compress_type = types[i].type;
		a.flight.opt.compress_over = COMPRESS_OVER;
		return;
	}
	cli_usage_error("--compress: '%s' is none of zlib, lz4, zstd", value);
}

static void parse_queue(const char *value)
{
	static char broker[256];
	const char *colon = strrchr(value, ':');

	if (strcmp(value, "-") == 0)
		return;
	if (!colon || colon == value || (size_t)(colon - value) >= sizeof(broker))
		cli_usage_error("-q: '%s': BROKER:ID is right", value);
	memcpy(broker, value, (size_t)(colon - value));
	a.flight.opt.queue.broker = broker;
	a.flight.opt.queue.id = (int32_t)cli_int("-q", colon + 1, 0, INT32_MAX);
}

static void set_framing(enum frame_mode mode)
{
	static bool set;

	if (set && a.framing != mode)
		cli_usage_error("-l, -0, -w, -B and -J exclude each other");
	set = true;
	a.framing = mode;
}

static void option(int c, char **argv)
{
	static struct bytes delim;
	struct mq_error err;

	switch (c) {
	case 'l': set_framing(FRAME_LINE); break;
	case '0': set_framing(FRAME_NUL); break;
	case 'w': set_framing(FRAME_WHOLE); break;
	case 'B': set_framing(FRAME_LENGTH); break;
	case 'J': set_framing(FRAME_JSON); break;
	case OPT_SKIP_EMPTY: a.skip_empty = true; break;
	case 'k': option_error(compose_key(&a.compose, optarg, &err), &err); break;
	case 'K':
		delim.n = 0;
		option_error(record_out_unescape(&delim, optarg, &err), &err);
		if (delim.n == 0)
			cli_usage_error("-K: the delimiter is empty");
		a.compose.key_delim = bytes_view(&delim);
		break;
	case 'T': option_error(compose_tag(&a.compose, optarg, &err), &err); break;
	case 'H': option_error(compose_property(&a.compose, optarg, &err), &err); break;
	case 'n': a.addr = optarg; break;
	case 'q': a.queue = optarg; break;
	case 's': a.sharding_key = optarg; break;
	case 'g':
		option_error(mq_check_group((struct mq_str){ optarg, strlen(optarg) }, &err), &err);
		a.flight.opt.group = optarg;
		break;
	case OPT_BATCH: a.batch_max = (size_t)cli_int("--batch", optarg, 1, FLIGHT_BATCH_MAX); break;
	case OPT_IN_FLIGHT: a.in_flight = cli_int("--in-flight", optarg, 1, 65536); break;
	case OPT_RATE: a.rate = cli_int("--rate", optarg, 1, 1000000000); break;
	case OPT_ONEWAY: a.flight.opt.oneway = true; break;
	case OPT_COMPRESS: parse_compress(optarg); break;
	case OPT_TIMEOUT:
		a.flight.opt.timeout_ms = (int32_t)cli_duration_ms("--timeout", optarg);
		if (a.flight.opt.timeout_ms < 1)
			cli_usage_error("--timeout: '%s': 1ms to 24d are allowed", optarg);
		break;
	case 'v': a.flight.verbose = true; break;
	case OPT_FAILED: a.failed = optarg; break;
	case OPT_RESUME: a.resume_file = optarg; break;
	case OPT_STRICT: a.strict = true; break;
	case OPT_PROGRESS: a.progress_wanted = true; break;
	case 'h': cli_help(help);
	case 'V': cli_version();
	default: cli_bad_option(c, argv);
	}
}

static void parse(int argc, char **argv)
{
	struct mq_error err;
	int c;

	compose_init(&a.compose);
	flight_init(&a.flight);
	a.framing = FRAME_LINE;
	a.batch_max = BATCH_DEFAULT;
	a.flight.opt.retries = -1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":l0wBJk:K:T:H:n:q:s:g:vhV", longs, NULL)) != -1)
		option(c, argv);
	if (optind == argc)
		cli_usage_error("no TOPIC");
	a.topic = argv[optind++];
	if (strcmp(a.topic, "-") == 0 && a.framing == FRAME_JSON) {
		a.flight.topic_per_record = true;
	} else {
		a.compose.topic = (struct mq_str){ a.topic, strlen(a.topic) };
		option_error(mq_check_topic(a.compose.topic, &err), &err);
	}
	if (a.queue && strcmp(a.queue, "-") == 0 && a.framing != FRAME_JSON)
		cli_usage_error("-q -: only -J says the queue of a message");
	if (a.queue)
		parse_queue(a.queue);
	a.compose.queue_from_record = a.queue && strcmp(a.queue, "-") == 0;
	if (a.queue && a.sharding_key)
		cli_usage_error("-q and -s exclude each other");
	if (a.compose.key_delim.n && a.framing == FRAME_JSON)
		cli_usage_error("-K and -J exclude each other: a JSON line says its keys itself");
	if (a.sharding_key)
		a.flight.opt.sharding_key = (struct mq_str){ a.sharding_key, strlen(a.sharding_key) };
	/* One request after the other: then the order holds with any server, and over a repeated send. */
	if (a.in_flight == 0)
		a.in_flight = a.queue || a.sharding_key ? 1 : IN_FLIGHT_DEFAULT;
	a.flight.max_sends = (int)a.in_flight;
}

/* ---- Gathering -------------------------------------------------------------------------------------------------------- */

/* A record that is no message. */
static void refuse(struct input_place at, const struct mq_error *err)
{
	flight_refuse(&a.flight, at.file, at.record, err);
	if (a.strict)
		a.flight.stop = true;
}

static void input_failed(const struct mq_error *err)
{
	cli_warn("%s", err->text);
	flight_status(&a.flight, cli_exit_code(err->code));
	a.input_ended = true;
}

/* The next message of the input, in a.composed.  False: none now, or none any more. */
static bool take(void)
{
	static const struct mq_error empty = { MQ_EINVAL, 13, "empty body: brokers refuse it (--skip-empty leaves it out)" };
	struct mq_error err = { 0 };
	struct mq_str rec;
	int rc;

	while (!a.flight.stop) {
		a.composed_at = send_input_place(&a.input);
		switch (send_input_next(&a.input, &rec, &err)) {
		case INPUT_RECORD:
			break;
		case INPUT_BAD:
			refuse(send_input_place(&a.input), &err);
			continue;
		case INPUT_WAIT:
			return false;
		case INPUT_END:
			a.input_ended = true;
			return false;
		case INPUT_FAILED:
			input_failed(&err);
			return false;
		}
		if (a.composed_at.file != a.input.file) /* the first of another FILE */
			a.composed_at = (struct input_place){ a.input.file, 0, 0 };
		if (a.resume.ndone && send_resume_done(&a.resume, a.input.file, a.input.frames.number))
			continue;
		if (a.flight.verbose)
			mqclient_new_id(a.client, a.composed_id);
		rc = compose_record(&a.compose, a.framing, rec, a.flight.verbose ? a.composed_id : NULL, &a.composed, &err);
		if (rc == 0 && a.flight.topic_per_record)
			rc = mq_check_topic(a.composed.m.topic, &err);
		if (rc == 0)
			return true;
		if (rc != COMPOSE_EMPTY)
			refuse(send_input_place(&a.input), &err);
		else if (!a.skip_empty)
			refuse(send_input_place(&a.input), &empty);
	}
	return false;
}

static bool same(const char *text, struct mq_str s)
{
	return strlen(text) == s.n && memcmp(text, s.p, s.n) == 0;
}

/* May the message at hand go with those in the batch? */
static bool fits(const struct flight_batch *b)
{
	const struct mq_message *m = &a.composed.m;

	if (b->n == 0)
		return true;
	if (a.flight.opt.compress_over && (m->body.n >= COMPRESS_OVER || b->part[0].body_n >= COMPRESS_OVER))
		return false; /* in a batch nothing is compressed */
	return b->body_bytes + m->body.n + m->props.n <= BATCH_BYTES && b->part[0].start.file == a.composed_at.file &&
	       same(b->topic, m->topic) && b->queue_id == m->queue_id && strcmp(b->broker, a.composed.broker) == 0 &&
	       !b->has_sharding && !a.composed.sharding_key.p;
}

static void add(struct flight_batch *b)
{
	const struct mq_message *m = &a.composed.m;
	struct flight_part *part = &b->part[b->n];

	if (b->n == 0) {
		memcpy(b->topic, m->topic.p, m->topic.n);
		b->topic[m->topic.n] = '\0';
		memcpy(b->broker, a.composed.broker, strlen(a.composed.broker) + 1);
		b->queue_id = m->queue_id;
		b->sharding.n = 0;
		b->has_sharding = a.composed.sharding_key.p != NULL;
		if (b->has_sharding)
			bytes_add(&b->sharding, a.composed.sharding_key.p, a.composed.sharding_key.n);
	}
	*part = (struct flight_part){ .body = b->bytes.n, .body_n = m->body.n, .flag = m->flag, .start = a.composed_at };
	bytes_add(&b->bytes, m->body.p, m->body.n);
	part->props = b->bytes.n;
	part->props_n = m->props.n;
	bytes_add(&b->bytes, m->props.p, m->props.n);
	if (a.flight.verbose)
		memcpy(b->ids[b->n], a.composed_id, sizeof(b->ids[0]));
	b->body_bytes += m->body.n + m->props.n;
	b->n++;
}

/* Up to max messages that are there now go into the batch. */
static void gather(struct flight_batch *b, size_t max)
{
	/* Retry topics take no batches. */
	if (a.compose.topic.n > 7 && memcmp(a.compose.topic.p, "%RETRY%", 7) == 0)
		max = 1;
	while (b->n < max) {
		if (!a.have_composed && !take())
			return;
		a.have_composed = true;
		if (!fits(b))
			return;
		add(b);
		a.have_composed = false;
	}
}

/* ---- The loop --------------------------------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

/* Messages that --rate lets go now; at most a hundredth of a second's worth is made up for. */
static int64_t rate_room(void)
{
	int64_t now = now_ms(), due;

	if (a.rate == 0 || a.got_signal)
		return INT64_MAX;
	if (a.rate_start_ms == 0)
		a.rate_start_ms = now;
	due = (now - a.rate_start_ms) * a.rate / 1000 + 1;
	if (due - a.rate_used > a.rate / 100 + 1) {
		a.rate_start_ms = now;
		a.rate_used = 0;
		due = a.rate / 100 + 1;
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

	if (a.rate && !a.input_ended && rate_room() <= 0) {
		wait = (a.rate_used + 1) * 1000 / a.rate - (now_ms() - a.rate_start_ms);
		wait = wait < 1 ? 1 : wait;
		ms = ms < 0 || wait < ms ? wait : ms;
	}
	if (ms >= 0)
		uv_timer_start(&a.tick, on_tick, (uint64_t)ms, 0);
}

static void feed(void)
{
	while (!a.flight.stop && (!a.input_ended || a.have_composed) && flight_room(&a.flight)) {
		int64_t room = rate_room();

		if (room <= 0)
			return;
		gather(&a.batch, (int64_t)a.batch_max < room ? a.batch_max : (size_t)room);
		if (a.batch.n == 0)
			return;
		a.rate_used += (int64_t)a.batch.n;
		flight_send(&a.flight, &a.batch);
		if (a.strict && a.flight.refused)
			a.flight.stop = true;
	}
}

static struct input_place reading(void)
{
	return a.have_composed ? a.composed_at : send_input_place(&a.input);
}

static void save(bool now)
{
	struct mq_error err;

	if (!a.resume.path || (!now && now_ms() - a.saved_ms < SAVE_EVERY_MS))
		return;
	a.saved_ms = now_ms();
	if (send_resume_save(&a.resume, &a.flight, reading(), &err) != 0) {
		cli_warn("--resume: %s", err.text);
		flight_status(&a.flight, CLI_SYSTEM);
		a.flight.stop = true;
	}
}

/* The first signal ends the input, the second ends us. */
static void on_signal(uv_signal_t *h, int sig)
{
	a.got_signal = sig;
	send_input_drain(&a.input);
	for (size_t i = 0; i < sizeof(a.signals) / sizeof(a.signals[0]); i++)
		uv_signal_stop(&a.signals[i]);
}

static void catch_signals(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		uv_signal_init(mqclient_loop(a.client), &a.signals[i]);
		uv_signal_start(&a.signals[i], on_signal, sigs[i]);
	}
}

/* Before the loop goes to sleep: send what is there; and is that all?  (Not between two turns of UV_RUN_ONCE: that sleeps after
 * timers that were due.) */
static void on_prepare(uv_prepare_t *h)
{
	feed();
	save(false);
	progress_tick(&a.progress, now_ms(), a.flight.accepted, a.flight.opt.oneway ? "sent" : "acknowledged", "");
	if (a.flight.under_way == 0 && (a.flight.stop || (a.input_ended && !a.have_composed)))
		uv_stop(h->loop);
	else
		set_tick();
}

static void run(void)
{
	uv_loop_t *loop = mqclient_loop(a.client);

	uv_timer_init(loop, &a.tick);
	uv_prepare_init(loop, &a.prepare);
	uv_prepare_start(&a.prepare, on_prepare);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_prepare_stop(&a.prepare);
}

/* Who is interrupted or refused wants to know how much arrived. */
static void sum_up(void)
{
	const char *word = a.flight.opt.oneway ? "sent" : "acknowledged";
	char more[200] = "";

	if (a.flight.lost)
		snprintf(more, sizeof(more), ", %" PRId64 " not", a.flight.lost);
	if (a.flight.refused)
		snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %" PRId64 " refused", a.flight.refused);
	for (int i = 0; i < 3; i++)
		if (a.flight.late[i])
			snprintf(more + strlen(more), sizeof(more) - strlen(more), ", %" PRId64 " with code %d", a.flight.late[i], 10 + i);
	if (a.got_signal)
		cli_warn("interrupted: %" PRId64 " messages %s%s", a.flight.accepted, word, more);
	else if (a.flight.status != CLI_OK)
		cli_warn("%" PRId64 " messages %s%s", a.flight.accepted, word, more);
	if (send_input_left(&a.input))
		cli_warn("%zu bytes of a message that had not come whole were not sent", send_input_left(&a.input));
}

/* ---- Begin and end ---------------------------------------------------------------------------------------------------- */

static void open_all(char **files, int nfiles)
{
	static const char *const framings[] = { [FRAME_LINE] = "-l", [FRAME_NUL] = "-0", [FRAME_WHOLE] = "-w",
	                                        [FRAME_LENGTH] = "-B", [FRAME_JSON] = "-J" };
	static char addr[4096];
	struct mqclient_opt opt = { .addr = addr, .loop = uv_default_loop() };
	size_t max = MQ_BODY_MAX;
	struct mq_error err;

	if (mqclient_address(a.addr, addr, sizeof(addr), &err) != 0)
		cli_fail(&err);
	if (mqclient_addr_kind(addr) == MQCLIENT_STORE)
		cli_usage_error("'%s' is read-only: nothing can be sent there", addr);
	if (send_resume_open(&a.resume, a.resume_file, a.topic, framings[a.framing], (const char *const *)files, nfiles, &err) != 0)
		cli_fail(&err);
	if (a.failed) {
		a.flight.failed_fd = open(a.failed, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (a.flight.failed_fd < 0)
			cli_die(CLI_SYSTEM, "--failed: open '%s': %s", a.failed, strerror(errno));
	}
	if (a.flight.verbose) {
		a.batch.ids = malloc(FLIGHT_BATCH_MAX * sizeof(*a.batch.ids));
		if (!a.batch.ids)
			cli_die(CLI_SYSTEM, "out of memory");
	}
	if (mqclient_open(&a.client, &opt, &err) != 0)
		cli_fail(&err);
	a.flight.client = a.client;
	a.flight.input = &a.input;
	/* A key may stand before the body; JSON may need six bytes for one. */
	if (a.framing == FRAME_JSON)
		max = 8 * (size_t)MQ_BODY_MAX;
	else if (a.compose.key_delim.n)
		max += MQ_PROPS_MAX;
	send_input_init(&a.input, mqclient_loop(a.client), (const char *const *)files, nfiles, a.framing, max);
	if (a.resume.path)
		send_input_seek(&a.input, &a.resume.at);
	progress_open(&a.progress, a.progress_wanted, STDIN_FILENO);
	catch_signals();
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
		cli_warn("--failed: '%s': %s", a.failed, strerror(errno));
		flight_status(&a.flight, CLI_SYSTEM);
	}
	flight_free(&a.flight);
	send_resume_free(&a.resume);
	compose_free(&a.compose);
	bytes_free(&a.batch.bytes);
	bytes_free(&a.batch.sharding);
	free(a.batch.ids);
	return cli_close_stdout(a.flight.status);
}

int main(int argc, char **argv)
{
	int status;

	cli_start(argc, argv);
	parse(argc, argv);
	open_all(argv + optind, argc - optind);
	run();
	status = close_all();
	if (a.got_signal) {
		signal(a.got_signal, SIG_DFL);
		raise(a.got_signal);
	}
	return status;
}
