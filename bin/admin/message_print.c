/* message_print.c: all messages of a topic or a queue, as rows.  Looking changes nothing: no offset is stored. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

static const struct mq_str no_body = { NULL, 0 };

enum { PULL_MESSAGES = 32, PULL_SUBSCRIPTION = 4 /* sysFlag: the request carries its own */ };

int message_pull(struct admin *a, const char *addr, const char *topic, int64_t queue, const char *expression, int64_t *off, int64_t n,
                 struct mqclient_answer *ans)
{
	static const int also[] = { 19, 20, 21, 0 };
	struct admin_fields f = { .n = 0 };
	char num[6][24];
	admin_field(&f, "consumerGroup", "TOOLS_CONSUMER");
	admin_field(&f, "topic", topic);
	admin_field_int(&f, "queueId", queue, num[0]);
	admin_field_int(&f, "queueOffset", *off, num[1]);
	admin_field_int(&f, "maxMsgNums", n, num[2]);
	admin_field_int(&f, "sysFlag", PULL_SUBSCRIPTION, num[3]);
	admin_field_int(&f, "commitOffset", 0, num[4]);
	admin_field(&f, "suspendTimeoutMillis", "0");
	admin_field(&f, "subscription", expression);
	admin_field_int(&f, "subVersion", 0, num[5]);
	admin_field(&f, "expressionType", "TAG");
	int code = admin_ask(a, addr, 11, &f, no_body, also, ans);
	const struct mqclient_field *next = admin_answer_field(ans, "nextBeginOffset");
	char text[24];
	snprintf(text, sizeof text, MQ_STR_FMT, MQ_STR_ARG(next ? next->value : no_body));
	int64_t to = next ? atoll(text) : *off;
	if (code == 19 || (code != 0 && to <= *off))
		return -1;
	*off = to;
	return code == 0 ? 0 : 1;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------ */

static const struct show_col cols[] = {
	{ "#Message ID", "msgId" }, { "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Offset", "offset" },
	{ "#Stored", "storeTimestamp" },
	{ "#Tags", "tags" }, { "#Keys", "keys" }, { "#Body", "body" },
};
enum { COLS = sizeof cols / sizeof cols[0] };

struct print {
	struct admin *a;
	struct show *rows;      /* NULL: not shown, only counted */
	const char *topic, *expression, *charset;
	bool bodies;
	json_t *tags;           /* how many of each; NULL: not counted */
	int64_t left;           /* messages that may still be shown */
};

static void print_message(struct print *p, const char *broker, const struct mq_message *m)
{
	char id[MQ_ID_TEXT], name[300];
	struct mq_str uniq = mq_prop_get(m->props, "UNIQ_KEY"), tag = mq_prop_get(m->props, "TAGS"), keys = mq_prop_get(m->props, "KEYS");
	struct mq_str offset_id = { id, mq_offset_id(&m->store_host, m->log_off, id) };
	if (p->tags && tag.n) {
		snprintf(name, sizeof name, MQ_STR_FMT, MQ_STR_ARG(tag));
		json_object_set_new(p->tags, name, json_integer(admin_i64(p->tags, name, 0) + 1));
	}
	if (!p->rows)
		return;
	show_str(p->rows, uniq.n ? uniq : offset_id);
	show_cstr(p->rows, broker);
	show_i64(p->rows, m->queue_id);
	show_i64(p->rows, m->queue_off);
	show_time(p->rows, m->store_ms);
	show_str(p->rows, tag.n ? tag : no_body);
	show_str(p->rows, keys.n ? keys : no_body);
	if (p->bodies) {
		size_t size;
		bool hex;
		char *text = message_body_text(m, p->charset, &size, &hex);
		show_cstr(p->rows, text);
		free(text);
	} else {
		show_cstr(p->rows, NULL);
	}
}

/* Messages of one queue in [from, to). */
static void print_queue(struct print *p, const char *addr, const char *broker, int64_t queue, int64_t from, int64_t to)
{
	while (from < to && p->left > 0) {
		struct mqclient_answer ans;
		struct mq_message m;
		int64_t next = from, want = p->left < PULL_MESSAGES ? p->left : PULL_MESSAGES;
		int rc = message_pull(p->a, addr, p->topic, queue, p->expression, &next, want, &ans);
		if (rc < 0)
			break;
		for (size_t at = 0; rc == 0 && at < ans.body.n && p->left > 0;) {
			int32_t n = mq_message_decode(ans.body.p + at, ans.body.n - at, true, &m);
			if (n <= 0)
				cli_die(CLI_SYSTEM, "%s: %s sent bytes that are no message", p->a->command->name, addr);
			at += (size_t)n;
			if (m.queue_off >= to)
				return;
			print_message(p, broker, &m);
			p->left--;
		}
		if (p->rows)
			show_flush(p->rows);
		from = next;
	}
}

/* The part of a queue that -b and -e (printMsg) or -s and -e (consumeMessage) leave. */
static void span(struct admin *a, const char *addr, const char *topic, int64_t queue, int64_t begin_ms, int64_t end_ms, int64_t *from,
                 int64_t *to)
{
	*from = begin_ms >= 0 ? offset_ask(a, addr, 29, topic, queue, begin_ms) : offset_ask(a, addr, 31, topic, queue, 0);
	*to = end_ms >= 0 ? offset_ask(a, addr, 29, topic, queue, end_ms) : offset_ask(a, addr, 30, topic, queue, 0);
}

static void print_topic(struct print *p, int64_t begin_ms, int64_t end_ms)
{
	json_t *route = admin_route_of(p->a, p->topic), *q;
	size_t i;
	json_array_foreach(json_object_get(route, "queueDatas"), i, q) {
		const char *broker = admin_text(q, "brokerName", ""), *addr = admin_route_addr(route, broker);
		if (!addr || !(admin_i64(q, "perm", 0) & 4))
			continue;
		for (int64_t k = 0; k < admin_i64(q, "readQueueNums", 0) && p->left > 0; k++) {
			int64_t from, to;
			span(p->a, addr, p->topic, k, begin_ms, end_ms, &from, &to);
			print_queue(p, addr, broker, k, from, to);
		}
	}
	json_decref(route);
}

/* ---- printMsg -------------------------------------------------------------------------------------------------------- */

static int print_msg(struct admin *a)
{
	struct print p = { .a = a, .topic = admin_opt(a, "topic"), .charset = admin_opt(a, "charsetName"),
		.expression = admin_opt(a, "subExpression") ? admin_opt(a, "subExpression") : "*",
		.bodies = admin_bool(a, "printBody", true),
		.left = INT64_MAX };
	int64_t begin = admin_time(a, "beginTimestamp", -1), end = admin_time(a, "endTimestamp", -1);
	p.rows = show_rows(a->format, cols, COLS);
	print_topic(&p, begin, end);
	show_close(p.rows);
	return CLI_OK;
}

/* ---- printMsgByQueue ------------------------------------------------------------------------------------------------- */

/* The address of the broker in the topic's route. */
static const char *addr_of(struct admin *a, const char *topic, const char *broker)
{
	static char addr[300];
	json_t *route = admin_route_of(a, topic);
	const char *found = admin_route_addr(route, broker);
	if (!found)
		cli_die(CLI_NONE, "%s: broker '%s' does not serve topic '%s'", a->command->name, broker, topic);
	snprintf(addr, sizeof addr, "%s", found);
	json_decref(route);
	return addr;
}

struct tag_count {
	const char *tag;
	int64_t n;
};

static int by_count(const void *x, const void *y)
{
	const struct tag_count *a = x, *b = y;
	return a->n != b->n ? (a->n < b->n) - (a->n > b->n) : strcmp(a->tag, b->tag);
}

static void show_tags(struct admin *a, json_t *tags)
{
	static const struct show_col tag_cols[] = { { "#Tag", "tag" }, { "#Count", "count" } };
	struct tag_count *v = calloc(json_object_size(tags) + 1, sizeof *v);
	const char *tag;
	json_t *count;
	size_t n = 0;
	if (!v)
		cli_die(CLI_SYSTEM, "out of memory");
	json_object_foreach(tags, tag, count)
		v[n++] = (struct tag_count){ tag, json_integer_value(count) };
	qsort(v, n, sizeof *v, by_count);
	struct show *s = show_rows(a->format, tag_cols, 2);
	for (size_t i = 0; i < n; i++) {
		show_cstr(s, v[i].tag);
		show_i64(s, v[i].n);
	}
	show_close(s);
	free(v);
}

static int print_msg_by_queue(struct admin *a)
{
	struct print p = { .a = a, .topic = admin_opt(a, "topic"), .charset = admin_opt(a, "charsetName"),
		.expression = admin_opt(a, "subExpression") ? admin_opt(a, "subExpression") : "*",
		.bodies = admin_bool(a, "printBody", false),
		.left = INT64_MAX };
	const char *broker = admin_opt(a, "brokerName"), *addr = addr_of(a, p.topic, broker);
	int64_t queue = admin_int(a, "queueId", 0, 0, 65535), from, to;
	bool print = admin_bool(a, "printMsg", false), count = admin_bool(a, "calculate", false);
	if (!print && !count)
		admin_usage(a, "nothing to do: -p true prints the messages, -f true counts the tags");
	if (print && count && a->format == SHOW_JSON)
		admin_usage(a, "-o json: either -p or -f");
	span(a, addr, p.topic, queue, admin_time(a, "beginTimestamp", -1), admin_time(a, "endTimestamp", -1), &from, &to);
	p.rows = print ? show_rows(a->format, cols, COLS) : NULL;
	p.tags = count ? json_object() : NULL;
	print_queue(&p, addr, broker, queue, from, to);
	if (p.rows)
		show_close(p.rows);
	if (p.tags)
		show_tags(a, p.tags);
	json_decref(p.tags);
	return CLI_OK;
}

/* ---- consumeMessage -------------------------------------------------------------------------------------------------- */

static int consume(struct admin *a)
{
	struct print p = { .a = a, .topic = admin_opt(a, "topic"), .expression = "*", .bodies = true,
		.left = admin_int(a, "messageNumber", 128, 1, INT64_MAX) };
	const char *broker = admin_opt(a, "brokerName");
	int64_t queue = admin_int(a, "queueId", -1, 0, 65535), off = admin_int(a, "offset", 0, 0, INT64_MAX);
	int64_t begin = admin_time(a, "beginTimestamp", -1), end = admin_time(a, "endTimestamp", -1), from, to;
	if (queue >= 0 && !broker)
		admin_usage(a, "-i: a queue of which broker? give its name with -b");
	if (admin_opt(a, "offset") && queue < 0)
		admin_usage(a, "-o: an offset in which queue? give it with -b and -i");
	if (begin >= 0 && end >= 0 && begin > end)
		admin_usage(a, "--beginTimestamp is after --endTimestamp");
	p.rows = show_rows(a->format, cols, COLS);
	if (queue < 0) {
		print_topic(&p, begin, end);
	} else {
		const char *addr = addr_of(a, p.topic, broker);
		span(a, addr, p.topic, queue, begin, end, &from, &to);
		print_queue(&p, addr, broker, queue, off > from ? off : from, to);
	}
	size_t n = show_count(p.rows);
	show_close(p.rows);
	if (!n)
		cli_warn("consumeMessage: there is no message");
	return n ? CLI_OK : CLI_NONE;
}

static const struct command_opt print_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 's', "subExpression", "TAGS", false, "tags, such as TagA || TagB (*)" },
	{ 'b', "beginTimestamp", "TIME", false, "stored at or after" },
	{ 'e', "endTimestamp", "TIME", false, "stored before" },
	{ 'd', "printBody", "BOOL", false, "with their bodies (true)" },
	{ 'c', "charsetName", "CHARSET", false, "charset of the bodies (UTF-8)" },
	{ 0 },
};
static const struct command_opt queue_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'a', "brokerName", "NAME", true, "name of the broker" },
	{ 'i', "queueId", "N", true, "the queue" },
	{ 's', "subExpression", "TAGS", false, "tags, such as TagA || TagB (*)" },
	{ 'b', "beginTimestamp", "TIME", false, "stored at or after" },
	{ 'e', "endTimestamp", "TIME", false, "stored before" },
	{ 'p', "printMsg", "BOOL", false, "print the messages (false)" },
	{ 'd', "printBody", "BOOL", false, "with their bodies (false)" },
	{ 'f', "calculate", "BOOL", false, "count the messages of each tag (false)" },
	{ 'c', "charsetName", "CHARSET", false, "charset of the bodies (UTF-8)" },
	{ 0 },
};
static const struct command_opt consume_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'b', "brokerName", "NAME", false, "with -i: name of the broker" },
	{ 'i', "queueId", "N", false, "this queue only" },
	{ 'o', "offset", "N", false, "with -i: from this offset on" },
	{ 'g', "consumerGroup", "GROUP", false, "taken for mqadmin's sake: nothing is stored for any group" },
	{ 's', "beginTimestamp", "TIME", false, "stored at or after" },
	{ 'e', "endTimestamp", "TIME", false, "stored before" },
	{ 'c', "messageNumber", "N", false, "at most so many messages (128)" },
	{ 0 },
};

const struct command message_print_commands[] = {
	{ "printMsg", print_opts, print_msg, COMMAND_CLUSTER, "all messages of a topic" },
	{ "printMsgByQueue", queue_opts, print_msg_by_queue, COMMAND_CLUSTER, "all messages of a queue, or how many of each tag" },
	{ "consumeMessage", consume_opts, consume, COMMAND_CLUSTER, "some messages of a topic, from a time or a place on" },
	{ 0 },
};
