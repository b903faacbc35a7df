/* trace.c: what clients wrote down about a message in the trace topic. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

/* compat: TraceDataEncoder: contexts end with \002, their fields are separated by \001. */
enum { FIELD_SEP = 1, CONTEXT_SEP = 2, TRACE_FIELDS = 20 };
#define TRACE_TOPIC "RMQ_SYS_TRACE_TOPIC"

struct event {
	char *type, *group, *topic, *status, *host;
	int64_t ms, cost_ms;    /* cost -1 = not told */
};
struct events {
	struct event *v;
	size_t n;
};

static size_t split(char *line, char *field[TRACE_FIELDS])
{
	size_t n = 0;
	for (char *rest = line; rest && n < TRACE_FIELDS;)
		field[n++] = strsep(&rest, "\001");
	return n;
}

static const char *success(const char *word) { return strcmp(word, "true") == 0 ? "success" : "failed"; }

/* One context; ids of other messages are left out.  What has too few fields is none of ours to guess at. */
static bool read_event(char *line, const char *id, struct event *e)
{
	char *f[TRACE_FIELDS];
	size_t n = split(line, f);
	*e = (struct event){ .type = f[0], .group = "", .topic = "", .status = "", .cost_ms = -1 };
	if (strcmp(f[0], "Pub") == 0 && n >= 13 && strcmp(f[5], id) == 0) {
		e->ms = atoll(f[1]);
		e->group = f[3];
		e->topic = f[4];
		e->cost_ms = atoll(f[10]);
		e->status = (char *)success(f[n == 13 ? 12 : 13]);
		return true;
	}
	if (strcmp(f[0], "SubBefore") == 0 && n >= 7 && strcmp(f[5], id) == 0) {
		e->ms = atoll(f[1]);
		e->group = f[3];
		e->status = "begun";
		return true;
	}
	if (strcmp(f[0], "SubAfter") == 0 && n >= 5 && strcmp(f[2], id) == 0) {
		e->cost_ms = atoll(f[3]);
		e->status = (char *)success(f[4]);
		e->ms = n >= 9 ? atoll(f[7]) : 0;
		e->group = n >= 9 ? f[8] : "";
		return true;
	}
	if (strcmp(f[0], "EndTransaction") == 0 && n >= 13 && strcmp(f[5], id) == 0) {
		e->ms = atoll(f[1]);
		e->group = f[3];
		e->topic = f[4];
		e->status = f[11];
		return true;
	}
	return false;
}

static char *copy(const char *s)
{
	char *c = strdup(s);
	if (!c)
		cli_die(CLI_SYSTEM, "out of memory");
	return c;
}

static void add(struct events *l, const struct event *e, const char *host)
{
	l->v = realloc(l->v, (l->n + 1) * sizeof *l->v);
	if (!l->v)
		cli_die(CLI_SYSTEM, "out of memory");
	l->v[l->n++] = (struct event){ .type = copy(e->type), .group = copy(e->group), .topic = copy(e->topic), .status = copy(e->status),
				       .host = copy(host), .ms = e->ms, .cost_ms = e->cost_ms };
}

static void read_message(const struct mq_message *m, const char *id, struct events *out)
{
	size_t size;
	bool hex;
	char *text = message_body_text(m, NULL, &size, &hex), *rest = text, *line, host[MQ_HOST_TEXT];
	while (!hex && (line = strsep(&rest, "\002"))) {
		struct event e;
		if (*line && read_event(line, id, &e))
			add(out, &e, mq_host_text(&m->born_host, host));
	}
	free(text);
}

static void read_answer(struct mq_str body, const char *topic, const char *id, struct events *out)
{
	struct mq_message m;
	for (size_t at = 0; at < body.n;) {
		int32_t n = mq_message_decode(body.p + at, body.n - at, false, &m);
		if (n <= 0)
			break;
		at += (size_t)n;
		if (m.topic.n == strlen(topic) && memcmp(m.topic.p, topic, m.topic.n) == 0)
			read_message(&m, id, out);
	}
}

static int by_time(const void *x, const void *y)
{
	const struct event *a = x, *b = y;
	int c = (a->ms > b->ms) - (a->ms < b->ms);
	return c ? c : strcmp(a->type, b->type);
}

static void show_events(struct admin *a, struct events *l)
{
	static const struct show_col cols[] = {
		{ "#Type", "type" }, { "#Group", "group" }, { "#ClientHost", "clientHost" }, { "#Time", "timestamp" },
		{ "#Cost(ms)", "costMs" }, { "#Status", "status" },
	};
	struct show *s = show_rows(a->format, cols, 6);
	for (size_t i = 0; i < l->n; i++) {
		struct event *e = &l->v[i];
		show_cstr(s, e->type);
		show_cstr(s, *e->group ? e->group : NULL);
		show_cstr(s, e->host);
		show_time(s, e->ms);
		if (e->cost_ms >= 0)
			show_i64(s, e->cost_ms);
		else
			show_cstr(s, NULL);
		show_cstr(s, e->status);
		free(e->type);
		free(e->group);
		free(e->topic);
		free(e->status);
		free(e->host);
	}
	show_close(s);
	free(l->v);
}

static int query_trace(struct admin *a)
{
	const char *id = admin_opt(a, "msgId"), *topic = admin_opt(a, "traceTopic") ? admin_opt(a, "traceTopic") : TRACE_TOPIC;
	struct events l = { 0 };
	json_t *route = admin_route_of(a, topic), *d;
	size_t i;
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		struct mqclient_answer ans;
		if (admin_broker_addr(d) && message_ask_key(a, admin_broker_addr(d), topic, id, &ans))
			read_answer(ans.body, topic, id, &l);
	}
	json_decref(route);
	size_t n = l.n;
	if (n)
		qsort(l.v, n, sizeof *l.v, by_time);
	else
		cli_warn("queryMsgTraceById: topic '%s' has no trace of message '%s'", topic, id);
	show_events(a, &l);
	return n ? CLI_OK : CLI_NONE;
}

static const struct command_opt trace_opts[] = {
	{ 'i', "msgId", "ID", true, "unique id of the message" },
	{ 't', "traceTopic", "TOPIC", false, "where traces are (" TRACE_TOPIC ")" },
	{ 'b', "beginTimestamp", "MS", false, "stored at or after (0)" },
	{ 'e', "endTimestamp", "MS", false, "stored at or before" },
	{ 'c', "maxNum", "N", false, "at most so many messages of the topic (64)" },
	{ 0 },
};

const struct command trace_commands[] = {
	{ "queryMsgTraceById", trace_opts, query_trace, COMMAND_CLUSTER, "what clients wrote down about a message" },
	{ 0 },
};
