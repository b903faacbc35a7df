/* message_send.c: one message to a topic; how long sends take. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- One send, waited for -------------------------------------------------------------------------------------------- */

struct sent {
	bool done;
	int rc, status;
	struct mq_error err;
	char broker[300], id[MQ_ID_TEXT];
	int32_t queue;
	int64_t off;
};

static void on_sent(void *arg, const struct mqclient_sent *r)
{
	struct sent *s = arg;
	s->done = true;
	s->rc = r->rc;
	s->status = r->status;
	s->err = r->err;
	s->queue = r->queue.id;
	s->off = r->queue_off;
	snprintf(s->broker, sizeof s->broker, "%s", r->queue.broker ? r->queue.broker : "");
	snprintf(s->id, sizeof s->id, MQ_STR_FMT, MQ_STR_ARG(r->uniq_key));
}

static int send_wait(struct admin *a, const struct mq_message *m, const struct mqclient_send_opt *opt, struct sent *s)
{
	*s = (struct sent){ .done = false };
	int rc = mqclient_send(a->client, m, 1, opt, on_sent, s, &s->err);
	if (rc < 0)
		return s->rc = rc;
	while (!s->done)
		mqclient_run(a->client, -1);
	return s->rc;
}

/* ---- sendMessage ----------------------------------------------------------------------------------------------------- */

/* In the words of mqadmin. */
static const char *send_status(int status)
{
	switch (status) {
	case 0: return "SEND_OK";
	case 10: return "FLUSH_DISK_TIMEOUT";
	case 11: return "SLAVE_NOT_AVAILABLE";
	case 12: return "FLUSH_SLAVE_TIMEOUT";
	default: return "UNKNOWN";
	}
}

static size_t property(char *out, size_t cap, size_t n, const char *name, const char *value)
{
	return value && *value ? n + (size_t)snprintf(out + n, cap - n, "%s\001%s\002", name, value) : n;
}

static int send_message(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Send Result", "result" },
		{ "#MsgId", "msgId" }, { "#Offset", "offset" },
	};
	static char props[MQ_PROPS_MAX + 1];
	const char *topic = admin_opt(a, "topic"), *body = admin_opt(a, "body"), *broker = admin_opt(a, "broker");
	const char *keys = admin_opt(a, "key"), *tags = admin_opt(a, "tags");
	int64_t queue = admin_int(a, "qid", -1, 0, 65535);
	struct mqclient_send_opt opt = { .group = "mq-admin", .retries = -1, .timeout_ms = a->timeout_ms };
	struct mq_message m = { .topic = { topic, strlen(topic) }, .body = { body, strlen(body) }, .queue_id = -1 };
	struct sent s;
	if (queue >= 0 && !broker)
		admin_usage(a, "-i: broker name must be set if the queue is chosen (-b)");
	if (broker && queue < 0)
		admin_usage(a, "-b: which of its queues? give it with -i");
	if (admin_bool(a, "msgTraceEnable", false))
		admin_usage(a, "-m true: traces of messages are not sent by this program");
	if ((keys && strpbrk(keys, "\001\002")) || (tags && strpbrk(tags, "\001\002")) ||
	    (keys && tags && strlen(keys) + strlen(tags) > 30000))
		admin_usage(a, "keys and tags: no control characters, and at most 30000 bytes");
	m.props = (struct mq_str){ props, property(props, sizeof props, property(props, sizeof props, 0, "KEYS", keys), "TAGS", tags) };
	if (broker)
		opt.queue = (struct mqclient_queue){ broker, (int32_t)queue };
	if (send_wait(a, &m, &opt, &s) < 0)
		cli_fail(&s.err);
	struct show *rows = show_rows(a->format, cols, 5);
	show_cstr(rows, s.broker);
	show_i64(rows, s.queue);
	show_cstr(rows, send_status(s.status));
	show_cstr(rows, s.id);
	show_i64(rows, s.off);
	show_close(rows);
	return CLI_OK;
}

/* ---- checkMsgSendRT -------------------------------------------------------------------------------------------------- */

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static int check_send_rt(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Send Result", "sent" }, { "#RT", "ms" },
	};
	const char *topic = admin_opt(a, "topic");
	int64_t amount = admin_int(a, "amount", 100, 1, 1000000), size = admin_int(a, "size", 128, 1, MQ_BODY_MAX), failed = 0;
	struct mqclient_queue queue[1024];
	struct mq_error err;
	struct mq_str name = { topic, strlen(topic) };
	char *body = malloc((size_t)size);
	double sum = 0;
	if (!body)
		cli_die(CLI_SYSTEM, "out of memory");
	memset(body, 'a', (size_t)size);
	int n = mqclient_queues_wait(a->client, name, true, queue, 1024, &err);
	if (n < 0)
		cli_fail(&err);
	if (n == 0)
		cli_die(CLI_NONE, "checkMsgSendRT: topic '%s' has no queue that can be written to", topic);
	n = n < 1024 ? n : 1024;
	struct show *rows = show_rows(a->format, cols, 4);
	for (int64_t i = 0; i < amount; i++) {
		struct mqclient_send_opt opt = { .group = "mq-admin", .queue = queue[i % n], .timeout_ms = a->timeout_ms };
		struct mq_message m = { .topic = name, .body = { body, (size_t)size }, .queue_id = -1 };
		struct sent s;
		double start = now_ms(), took;
		send_wait(a, &m, &opt, &s);
		took = now_ms() - start;
		if (s.rc < 0) {
			failed++;
			cli_warn("checkMsgSendRT: %s", s.err.text);
		}
		/* As mqadmin: the first one, which connects, does not count. */
		sum += i ? took : 0;
		show_cstr(rows, queue[i % n].broker);
		show_i64(rows, queue[i % n].id);
		show_bool(rows, s.rc == 0);
		show_double(rows, took, 3);
		show_flush(rows);
	}
	show_close(rows);
	free(body);
	if (a->format == SHOW_TABLE && amount > 1)
		printf("Avg RT: %.3f\n", sum / (double)(amount - 1));
	return failed ? CLI_SYSTEM : CLI_OK;
}

static const struct command_opt send_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'p', "body", "TEXT", true, "the body" },
	{ 'k', "key", "KEYS", false, "keys, with blanks between" },
	{ 'c', "tags", "TAG", false, "tag" },
	{ 'b', "broker", "NAME", false, "with -i: name of the broker" },
	{ 'i', "qid", "N", false, "with -b: to this queue" },
	{ 'm', "msgTraceEnable", "BOOL", false, "only false is taken" },
	{ 0 },
};
static const struct command_opt rt_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'a', "amount", "N", false, "messages (100)" },
	{ 's', "size", "BYTES", false, "of each body (128)" },
	{ 0 },
};

const struct command message_send_commands[] = {
	{ "sendMessage", send_opts, send_message, COMMAND_CLUSTER, "send a message" },
	{ "checkMsgSendRT", rt_opts, check_send_rt, COMMAND_CLUSTER, "send messages and time each" },
	{ 0 },
};
