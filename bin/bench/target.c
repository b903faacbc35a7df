/* target.c: whom to measure: a broker found by its topic's route, one that is named, or our own that does nothing. */
#include "bench.h"
#include <base/str.h>
#include <base/sys.h>
#include <codec/body_route.h>
#include <codec/request.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_lost(struct conn *c, int why)
{
	struct bench *b = conn_public(c)->owner;

	if (why || !b->addr[0])
		bench_lost(b, c, why);
}

static const struct conn_ops route_ops = { .closed = on_lost };

static int route_of(struct bench *b, struct conn *c, const char *topic, struct bench_reply *r)
{
	struct route_header h = { .topic = str_of(topic) };

	bench_ask(b, c, REQ_GET_ROUTEINFO_BY_TOPIC, &route_header_desc, &h, r);
	return r->code;
}

/* The first broker of the route whose master can be reached and has queues to write to. */
static void take_route(struct bench *b, struct mq_str body, const char *topic)
{
	struct body_route route;
	struct mq_error e;

	if (body_route_decode(body, &route, &e) < 0)
		cli_die(CLI_SYSTEM, "route of topic '%s': %s", topic, e.text);
	for (size_t q = 0; q < route.nqueues && !b->addr[0]; q++) {
		for (size_t i = 0; i < route.nbrokers; i++) {
			struct mq_str addr = body_broker_addr_of(&route.broker[i], 0);

			if (!str_eq(route.broker[i].name, route.queue[q].broker) || !addr.p || route.queue[q].write < 1)
				continue;
			snprintf(b->addr, sizeof b->addr, MQ_STR_FMT, MQ_STR_ARG(addr));
			snprintf(b->broker_name, sizeof b->broker_name, MQ_STR_FMT, MQ_STR_ARG(route.queue[q].broker));
			b->write_queues = route.queue[q].write;
			b->read_queues = route.queue[q].read;
			break;
		}
	}
	body_route_free(&route);
	if (!b->addr[0])
		cli_die(CLI_REFUSED, "topic '%s' has no broker to write to", topic);
}

static void by_route(struct bench *b)
{
	struct mq_str first = str_of(b->o.nameserver), rest = first;
	struct bench_reply r = { 0 };
	struct conn *c;
	char addr[300];

	str_split(&rest, ';', &first);
	snprintf(addr, sizeof addr, MQ_STR_FMT, MQ_STR_ARG(first));
	c = bench_connect(b, addr, &route_ops, b);
	if (route_of(b, c, b->o.topic, &r) == RESP_SUCCESS) {
		take_route(b, buf_view(&r.body), b->o.topic);
	} else if (r.code == RESP_TOPIC_NOT_EXIST && b->o.mode != BENCH_CONSUME && route_of(b, c, "TBW102", &r) == RESP_SUCCESS) {
		/* As producers do: the first send makes it, with four queues. */
		take_route(b, buf_view(&r.body), "TBW102");
		if (b->write_queues > 4)
			b->write_queues = 4;
		b->read_queues = b->write_queues;
	} else {
		cli_die(r.code == RESP_TOPIC_NOT_EXIST ? CLI_NONE : CLI_REFUSED, "route of topic '%s': %s: %s", b->o.topic,
			response_name(r.code), r.remark);
	}
	conn_close(c);
	buf_free(&r.body);
}

void bench_find_target(struct bench *b)
{
	if (b->o.limit) {
		snprintf(b->addr, sizeof b->addr, "127.0.0.1:%d", limit_start(&b->o, &b->o.pid));
		snprintf(b->broker_name, sizeof b->broker_name, "limit");
	} else if (b->o.broker) {
		if (strlen(b->o.broker) >= sizeof b->addr)
			cli_usage_error("--broker: too long");
		strcpy(b->addr, b->o.broker);
	} else {
		by_route(b);
	}
	if (!b->write_queues)
		b->write_queues = b->read_queues = 4;
	if (b->o.queues)
		b->write_queues = b->read_queues = b->o.queues;
}

/* ---- Of the process that serves -------------------------------------------------------------------------------------- */

static char *proc_file(int pid, const char *name)
{
	char path[64], *text = NULL;
	size_t n;

	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	return pid && sys_read_file(path, 65536, &text, &n) == 0 ? text : NULL;
}

int64_t bench_cpu_us(int pid)
{
	char *text = proc_file(pid, "stat"), *p;
	unsigned long user = 0, kernel = 0;
	int64_t us = -1;

	/* The name in brackets may hold anything: fields are counted from behind it. */
	if (text && (p = strrchr(text, ')')) &&
	    sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) == 2)
		us = (int64_t)(user + kernel) * 1000000 / sysconf(_SC_CLK_TCK);
	free(text);
	return us;
}

int64_t bench_rss_kb(int pid)
{
	char *text = proc_file(pid, "status"), *p;
	int64_t kb = -1;

	if (text && (p = strstr(text, "\nRssAnon:")))
		kb = atoll(p + 9);
	free(text);
	return kb;
}
