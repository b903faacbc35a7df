/* mq-bench: load for any RocketMQ-compatible server, and what it did with it.  Options; the rest is in bench/. */
#include "bench/bench.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: mq-bench [-n nameserver | --broker host:port | --limit] [-t topic] [-g group]\n"
	"                [--size n] [--in-flight n] [--conns n] [--queues n] [--batch n]\n"
	"                [--pull-max n] [--seconds n] [--count n] [--rate n] [--warmup n]\n"
	"                [--interval n] [--spin us] [--pid pid] [-o format] send | batch | consume | latency\n"
	"Measure a message broker.\n"
	"\n"
	"  send                     single messages\n"
	"  batch                    many messages in a request\n"
	"  consume                  read all that the topic holds\n"
	"  latency                  one message at a time, from send to receive\n"
	"\n"
	"  -n, --nameserver ADDR    ask host:port for the topic's broker ($NAMESRV_ADDR)\n"
	"      --broker ADDR        go to this broker: host:port or unix:PATH\n"
	"      --limit              start a server that only frames and answers, and measure it\n"
	"  -t, --topic TOPIC        (bench)\n"
	"  -g, --group GROUP        of producer or consumer (bench)\n"
	"      --size N             bytes of a body (128)\n"
	"      --in-flight N        requests on their way per connection (64)\n"
	"      --conns N            connections (1)\n"
	"      --queues N           queues to use; default: as the route says, or 4\n"
	"      --batch N            messages in a request of batch (32)\n"
	"      --pull-max N         messages asked for in a pull (32)\n"
	"      --seconds N          for so long (10; consume: once through); 500ms, 2m\n"
	"      --count N            so many messages\n"
	"      --rate N             send so many messages a second, evenly; default: as answers come\n"
	"      --warmup N           seconds that are not counted, before (0)\n"
	"      --interval N         latency: pause between messages (1ms)\n"
	"      --spin US            look for answers for so long before sleeping, while they come that fast (0)\n"
	"      --pid PID            the broker's: tell its CPU time and memory\n"
	"  -o, --output FORMAT      table, tsv or json (table on a terminal, else tsv)\n"
	"  -h, --help               print this and end\n"
	"  -V, --version            print the version and end\n";

enum { OPT_BROKER = 256, OPT_LIMIT, OPT_SIZE, OPT_IN_FLIGHT, OPT_CONNS, OPT_QUEUES, OPT_BATCH, OPT_PULL_MAX, OPT_SECONDS, OPT_COUNT,
       OPT_RATE, OPT_WARMUP, OPT_INTERVAL, OPT_SPIN, OPT_PID };

static const struct cli_option options[] = {
	{ 'n', "nameserver", true },
	{ OPT_BROKER, "broker", true },
	{ OPT_LIMIT, "limit", false },
	{ 't', "topic", true },
	{ 'g', "group", true },
	{ OPT_SIZE, "size", true },
	{ OPT_IN_FLIGHT, "in-flight", true },
	{ OPT_CONNS, "conns", true },
	{ OPT_QUEUES, "queues", true },
	{ OPT_BATCH, "batch", true },
	{ OPT_PULL_MAX, "pull-max", true },
	{ OPT_SECONDS, "seconds", true },
	{ OPT_COUNT, "count", true },
	{ OPT_RATE, "rate", true },
	{ OPT_WARMUP, "warmup", true },
	{ OPT_INTERVAL, "interval", true },
	{ OPT_SPIN, "spin", true },
	{ OPT_PID, "pid", true },
	{ 'o', "output", true },
	{ 0 },
};

static int format_of(const char *name)
{
	if (strcmp(name, "table") == 0)
		return BENCH_TABLE;
	if (strcmp(name, "tsv") == 0)
		return BENCH_TSV;
	if (strcmp(name, "json") == 0)
		return BENCH_JSON;
	cli_usage_error("--output: '%s' is none of table, tsv, json", name);
}

static enum bench_mode mode_of(const char *name)
{
	static const char *const names[] = { "send", "batch", "consume", "latency" };

	for (int i = 0; i < 4; i++)
		if (strcmp(name, names[i]) == 0)
			return (enum bench_mode)i;
	cli_usage_error("'%s' is none of send, batch, consume, latency", name);
}

static void parse(int argc, char **argv, struct bench_opt *o)
{
	struct mq_error e;
	int c;

	while ((c = cli_option(argc, argv, options, help)) != -1) {
		switch (c) {
		case 'n': o->nameserver = optarg; break;
		case OPT_BROKER: o->broker = optarg; break;
		case OPT_LIMIT: o->limit = true; break;
		case 't': o->topic = optarg; break;
		case 'g': o->group = optarg; break;
		case OPT_SIZE: o->size = (int)cli_size("--size", optarg); break;
		case OPT_IN_FLIGHT: o->in_flight = (int)cli_int("--in-flight", optarg, 1, BENCH_IN_FLIGHT_MAX); break;
		case OPT_CONNS: o->conns = (int)cli_int("--conns", optarg, 1, BENCH_CONNS_MAX); break;
		case OPT_QUEUES: o->queues = (int)cli_int("--queues", optarg, 1, BENCH_QUEUES_MAX); break;
		case OPT_BATCH: o->batch = (int)cli_int("--batch", optarg, 1, 10000); break;
		case OPT_PULL_MAX: o->pull_max = (int)cli_int("--pull-max", optarg, 1, 10000); break;
		case OPT_SECONDS: o->time_ms = cli_duration_ms("--seconds", optarg); break;
		case OPT_COUNT: o->count = cli_int("--count", optarg, 1, INT64_MAX); break;
		case OPT_RATE: o->rate = cli_int("--rate", optarg, 1, 100000000); break;
		case OPT_WARMUP: o->warmup_ms = cli_duration_ms("--warmup", optarg); break;
		case OPT_INTERVAL: o->interval_ms = cli_duration_ms("--interval", optarg); break;
		case OPT_SPIN: o->spin_us = (int)cli_int("--spin", optarg, 0, 1000); break;
		case OPT_PID: o->pid = (int)cli_int("--pid", optarg, 1, INT32_MAX); break;
		case 'o': o->format = format_of(optarg); break;
		}
	}
	if (optind + 1 != argc)
		cli_usage_error(optind == argc ? "what is to be measured? send, batch, consume or latency" :
				"one thing at a time: send, batch, consume or latency");
	o->mode = mode_of(argv[optind]);
	if (o->size < 1 || o->size > MQ_BODY_MAX)
		cli_usage_error("--size: from 1 to %d", MQ_BODY_MAX);
	if ((int64_t)o->size * o->batch > MQ_BODY_MAX - 65536 && o->mode == BENCH_BATCH)
		cli_usage_error("--batch: %d messages of %d bytes are more than a request may hold", o->batch, o->size);
	if (o->rate && o->mode != BENCH_SEND && o->mode != BENCH_BATCH)
		cli_usage_error("--rate goes with send and batch");
	if ((int64_t)o->conns * o->in_flight > BENCH_SLOTS_MAX)
		cli_usage_error("--conns times --in-flight: at most %d", BENCH_SLOTS_MAX);
	if (mq_check_topic((struct mq_str){ o->topic, strlen(o->topic) }, &e) < 0 ||
	    mq_check_group((struct mq_str){ o->group, strlen(o->group) }, &e) < 0)
		cli_usage_error("%s", e.text);
	if (o->limit + (o->broker != NULL) + (o->nameserver != NULL) > 1)
		cli_usage_error("one of --nameserver, --broker, --limit");
}

static void choose_target(struct bench_opt *o)
{
	if (o->limit || o->broker || o->nameserver)
		return;
	o->nameserver = getenv("NAMESRV_ADDR");
	if (!o->nameserver || !*o->nameserver)
		cli_usage_error("which server? --nameserver, --broker or --limit");
}

int main(int argc, char **argv)
{
	static struct bench b;

	cli_start(argc, argv);
	b.o = (struct bench_opt){ .topic = "bench", .group = "bench", .size = 128, .in_flight = 64, .conns = 1, .batch = 32, .pull_max = 32,
				  .interval_ms = 1, .format = isatty(STDOUT_FILENO) ? BENCH_TABLE : BENCH_TSV };
	parse(argc, argv, &b.o);
	choose_target(&b.o);
	if (!b.o.time_ms && !b.o.count && (b.o.mode != BENCH_CONSUME || b.o.limit))
		b.o.time_ms = 10000;
	bench_init(&b);
	bench_find_target(&b);
	switch (b.o.mode) {
	case BENCH_SEND:
	case BENCH_BATCH: bench_send(&b); break;
	case BENCH_CONSUME: bench_consume(&b); break;
	case BENCH_LATENCY: bench_latency(&b); break;
	}
	bench_report(&b);
	if (b.errors)
		cli_warn("%lld requests were refused; the first: %s", (long long)b.errors, b.remark);
	return cli_close_stdout(b.errors ? CLI_REFUSED : CLI_OK);
}
