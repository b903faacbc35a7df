/* send_options.c: what mq-send was asked to do: the words, what they mean, and which of them go together. */
#include "send_options.h"
#include "cli.h"
#include "record_out.h"
#include "send_flight.h"

#include <string.h>

#define BATCH_DEFAULT 64
#define IN_FLIGHT_DEFAULT 64
#define COMPRESS_OVER 4096                /* as the peer's clients */

static const char help[] =
	"usage: mq-send [-0BhJlVvw] [-d DELAY] [-g GROUP] [-H NAME=VALUE] [-K DELIM] [-k KEY]\n"
	"               [-n ADDRESS] [-q BROKER:ID] [-s SHARDING-KEY] [-T TAG] [--at TIME]\n"
	"               [--batch N] [--check COMMAND] [--compress TYPE] [--failed FILE]\n"
	"               [--in-flight N] [--oneway] [--progress] [--rate N] [--request]\n"
	"               [--resume FILE] [--seal KEY] [--sign KEY] [--skip-empty] [--strict]\n"
	"               [--timeout DURATION] [--transaction COMMAND] [--wait DURATION]\n"
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
	"      --seal KEY            only the owner of KEY (a file) can open it\n"
	"      --sign KEY            proves who has sent it\n"
	"When it is delivered:\n"
	"  -d, --delay DELAY         so long after it was stored: 10s, 5m, level:N\n"
	"      --at TIME             at a time: 2026-11-30T12:00:00, +90m\n"
	"      --transaction COMMAND when COMMAND, which is run for it, has exited with 0; else never\n"
	"      --check COMMAND       asked whether to deliver it if that is not known\n"
	"      --wait DURATION       go on answering the brokers' questions after the input has ended\n"
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
	"      --request             the reply to each message\n"
	"  -v, --verbose             id, queue and offset of each message on standard output\n"
	"      --failed FILE         append what was not accepted, and go on\n"
	"      --resume FILE         remember in FILE what was accepted; go on there next time\n"
	"      --strict              stop at the first message that is refused\n"
	"      --progress            messages and rate on standard error\n"
	"  -h, --help                this\n"
	"  -V, --version\n";

enum { OPT_AT = 256, OPT_BATCH, OPT_CHECK, OPT_COMPRESS, OPT_FAILED, OPT_IN_FLIGHT, OPT_ONEWAY, OPT_PROGRESS, OPT_RATE, OPT_REQUEST,
       OPT_RESUME, OPT_SEAL, OPT_SIGN, OPT_SKIP_EMPTY, OPT_STRICT, OPT_TIMEOUT, OPT_TRANSACTION, OPT_WAIT };

static const struct cli_option options[] = {
	{ 'l', "line", false },
	{ '0', "null", false },
	{ 'w', "whole", false },
	{ 'B', "binary", false },
	{ 'J', "json", false },
	{ OPT_SKIP_EMPTY, "skip-empty", false },
	{ 'k', "key", true },
	{ 'K', "key-delimiter", true },
	{ 'T', "tag", true },
	{ 'H', "property", true },
	{ OPT_SEAL, "seal", true },
	{ OPT_SIGN, "sign", true },
	{ 'd', "delay", true },
	{ OPT_AT, "at", true },
	{ OPT_TRANSACTION, "transaction", true },
	{ OPT_CHECK, "check", true },
	{ OPT_WAIT, "wait", true },
	{ 'n', "nameserver", true },
	{ 'q', "queue", true },
	{ 's', "sharding-key", true },
	{ 'g', "group", true },
	{ OPT_BATCH, "batch", true },
	{ OPT_IN_FLIGHT, "in-flight", true },
	{ OPT_RATE, "rate", true },
	{ OPT_ONEWAY, "oneway", false },
	{ OPT_COMPRESS, "compress", true },
	{ OPT_TIMEOUT, "timeout", true },
	{ OPT_REQUEST, "request", false },
	{ 'v', "verbose", false },
	{ OPT_FAILED, "failed", true },
	{ OPT_RESUME, "resume", true },
	{ OPT_STRICT, "strict", false },
	{ OPT_PROGRESS, "progress", false },
	{ 0 },
};

static void parse_compress(struct send_options *o, const char *value)
{
	static const struct {
		const char *name;
		int32_t type;
	} types[] = { { "zlib", MQ_SYS_COMPRESS_ZLIB }, { "lz4", MQ_SYS_COMPRESS_LZ4 }, { "zstd", MQ_SYS_COMPRESS_ZSTD } };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].name, value) != 0)
			continue;
		o->send.compress_type = types[i].type;
		o->send.compress_over = COMPRESS_OVER;
		return;
	}
	cli_usage_error("--compress: '%s' is none of zlib, lz4, zstd", value);
}

static void set_framing(struct send_options *o, enum frame_mode mode)
{
	static bool set;

	if (set && o->framing != mode)
		cli_usage_error("-l, -0, -w, -B and -J exclude each other");
	set = true;
	o->framing = mode;
}

static void set_when(struct send_options *o, int rc, const char *opt, const struct mq_error *err)
{
	static bool set;

	if (rc != 0)
		cli_usage_error("%s: %s", opt, err->text);
	if (set)
		cli_usage_error("-d and --at: one time is enough");
	set = true;
}

/* What does not go together. */
static void check(const struct send_options *o)
{
	if ((o->transaction || o->check) && !o->send.group)
		cli_usage_error("--%s: a group is missing (-g): its members answer for its transactions",
		                o->transaction ? "transaction" : "check");
	if (o->transaction && (o->compose.when.n || o->request || o->send.oneway))
		cli_usage_error("--transaction excludes -d, --at, --request and --oneway");
	if (o->request && (o->compose.when.n || o->send.oneway || o->verbose))
		cli_usage_error("--request excludes -d, --at, --oneway and -v");
	if (o->wait_ms && !o->check)
		cli_usage_error("--wait: there is no --check that could answer");
	if (o->check && o->topic_per_record)
		cli_usage_error("--check: one topic is wanted, not '-'");
}

static void option(struct send_options *o, int c)
{
	static struct bytes delim;
	struct mq_error err;

	switch (c) {
	case 'l': set_framing(o, FRAME_LINE); break;
	case '0': set_framing(o, FRAME_NUL); break;
	case 'w': set_framing(o, FRAME_WHOLE); break;
	case 'B': set_framing(o, FRAME_LENGTH); break;
	case 'J': set_framing(o, FRAME_JSON); break;
	case OPT_SKIP_EMPTY: o->skip_empty = true; break;
	case 'k': cli_check(compose_key(&o->compose, optarg, &err), &err); break;
	case 'K':
		delim.n = 0;
		cli_check(record_out_unescape(&delim, optarg, &err), &err);
		if (delim.n == 0)
			cli_usage_error("-K: the delimiter is empty");
		o->compose.key_delim = bytes_view(&delim);
		break;
	case 'T': cli_check(compose_tag(&o->compose, optarg, &err), &err); break;
	case 'H': cli_check(compose_property(&o->compose, optarg, &err), &err); break;
	case OPT_SEAL: seal_option(&o->seal, "--seal", optarg); break;
	case OPT_SIGN: seal_option(&o->seal, "--sign", optarg); break;
	case 'd': set_when(o, compose_delay(&o->compose, optarg, &err), "-d", &err); break;
	case OPT_AT: set_when(o, compose_at(&o->compose, optarg, &err), "--at", &err); break;
	case OPT_TRANSACTION: o->transaction = optarg; break;
	case OPT_CHECK: o->check = optarg; break;
	case OPT_WAIT: o->wait_ms = cli_duration_ms("--wait", optarg); break;
	case OPT_REQUEST: o->request = true; break;
	case 'n': o->addr = optarg; break;
	case 'q': o->queue = optarg; break;
	case 's': o->sharding_key = optarg; break;
	case 'g':
		cli_check(mq_check_group((struct mq_str){ optarg, strlen(optarg) }, &err), &err);
		o->send.group = optarg;
		break;
	case OPT_BATCH: o->batch_max = (size_t)cli_int("--batch", optarg, 1, FLIGHT_BATCH_MAX); break;
	case OPT_IN_FLIGHT: o->in_flight = cli_int("--in-flight", optarg, 1, 65536); break;
	case OPT_RATE: o->rate = cli_int("--rate", optarg, 1, 1000000000); break;
	case OPT_ONEWAY: o->send.oneway = true; break;
	case OPT_COMPRESS: parse_compress(o, optarg); break;
	case OPT_TIMEOUT:
		o->send.timeout_ms = (int32_t)cli_duration_ms("--timeout", optarg);
		if (o->send.timeout_ms < 1)
			cli_usage_error("--timeout: '%s': 1ms to 24d are allowed", optarg);
		break;
	case 'v': o->verbose = true; break;
	case OPT_FAILED: o->failed = optarg; break;
	case OPT_RESUME: o->resume = optarg; break;
	case OPT_STRICT: o->strict = true; break;
	case OPT_PROGRESS: o->progress = true; break;
	}
}

void send_options(struct send_options *o, int argc, char **argv)
{
	struct mq_error err;
	int c;

	compose_init(&o->compose);
	o->framing = FRAME_LINE;
	o->batch_max = BATCH_DEFAULT;
	o->send.retries = -1;
	while ((c = cli_option(argc, argv, options, help)) != -1)
		option(o, c);
	if (optind == argc)
		cli_usage_error("no TOPIC");
	o->topic = argv[optind++];
	if (strcmp(o->topic, "-") == 0 && o->framing == FRAME_JSON) {
		o->topic_per_record = true;
	} else {
		o->compose.topic = (struct mq_str){ o->topic, strlen(o->topic) };
		cli_check(mq_check_topic(o->compose.topic, &err), &err);
	}
	if (o->queue && strcmp(o->queue, "-") == 0 && o->framing != FRAME_JSON)
		cli_usage_error("-q -: only -J says the queue of a message");
	o->compose.queue_from_record = o->queue && strcmp(o->queue, "-") == 0;
	if (o->queue && !o->compose.queue_from_record)
		cli_queue("-q", o->queue, &o->send.queue.broker, &o->send.queue.id);
	if (o->queue && o->sharding_key)
		cli_usage_error("-q and -s exclude each other");
	if (o->compose.key_delim.n && o->framing == FRAME_JSON)
		cli_usage_error("-K and -J exclude each other: a JSON line says its keys itself");
	if (o->sharding_key)
		o->send.sharding_key = (struct mq_str){ o->sharding_key, strlen(o->sharding_key) };
	check(o);
	if (o->transaction)
		o->in_flight = 1;
	/* One request after the other: then the order holds with any server, and over a repeated send. */
	if (o->in_flight == 0)
		o->in_flight = o->queue || o->sharding_key ? 1 : IN_FLIGHT_DEFAULT;
}
