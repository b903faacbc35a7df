/* message_find.c: messages by unique id and by place, entries of queues, and what stands in an id. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct mq_str no_body = { NULL, 0 };

/* ---- queryMsgByUniqueKey --------------------------------------------------------------------------------------------- */

struct found {
	char *bytes;            /* the stored message */
	size_t n;
	int64_t store_ms;
	char addr[300];         /* of the broker that has it */
};
struct found_list {
	struct found v[64];
	size_t n;
};

static int by_time(const void *x, const void *y)
{
	const struct found *a = x, *b = y;
	return (a->store_ms > b->store_ms) - (a->store_ms < b->store_ms);
}

static void keep(struct found_list *l, const char *addr, struct mq_str body, const char *topic, const char *id)
{
	struct mq_message m;
	for (size_t at = 0; at < body.n && l->n < sizeof l->v / sizeof *l->v;) {
		int32_t n = mq_message_decode(body.p + at, body.n - at, false, &m);
		if (n <= 0)
			return;
		struct mq_str uniq = mq_prop_get(m.props, "UNIQ_KEY");
		if (m.topic.n == strlen(topic) && memcmp(m.topic.p, topic, m.topic.n) == 0 &&
		    uniq.n == strlen(id) && memcmp(uniq.p, id, uniq.n) == 0) {
			struct found *f = &l->v[l->n++];
			f->bytes = malloc((size_t)n);
			if (!f->bytes)
				cli_die(CLI_SYSTEM, "out of memory");
			memcpy(f->bytes, body.p + at, (size_t)n);
			f->n = (size_t)n;
			f->store_ms = m.store_ms;
			snprintf(f->addr, sizeof f->addr, "%s", addr);
		}
		at += (size_t)n;
	}
}

static void find(struct admin *a, const char *topic, const char *id, struct found_list *l)
{
	json_t *route = admin_route_of(a, topic), *d;
	char num[3][24];
	size_t i;
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "topic", topic);
		admin_field(&f, "key", id);
		admin_field_int(&f, "maxNum", 32, num[0]);
		admin_field_int(&f, "beginTimestamp", 0, num[1]);
		admin_field_int(&f, "endTimestamp", INT64_MAX, num[2]);
		admin_field(&f, "_UNIQUE_KEY_QUERY", "true");
		if (admin_broker_addr(d) && admin_ask(a, admin_broker_addr(d), 12, &f, no_body, (const int[]){ 22, 0 }, &ans) == 0)
			keep(l, admin_broker_addr(d), ans.body, topic, id);
	}
	json_decref(route);
	qsort(l->v, l->n, sizeof *l->v, by_time);
}

static int query_by_unique_key(struct admin *a)
{
	static struct found_list l;
	const char *topic = admin_opt(a, "topic"), *id = admin_opt(a, "msgId");
	bool push = message_wants_push(a);
	int status = CLI_OK;
	find(a, topic, id, &l);
	if (l.n == 0)
		cli_die(CLI_NONE, "queryMsgByUniqueKey: topic '%s' has no message '%s'", topic, id);
	for (size_t i = 0; i < (admin_flag(a, "showAll") && !push ? l.n : 1); i++) {
		struct mq_message m;
		char offset_id[MQ_ID_TEXT];
		if (mq_message_decode(l.v[i].bytes, l.v[i].n, false, &m) <= 0)
			continue;
		if (push) {
			mq_offset_id(&m.store_host, m.log_off, offset_id);
			status = message_push(a, l.v[i].addr, topic, offset_id);
			continue;
		}
		if (i && a->format != SHOW_JSON)
			putchar('\n');
		message_show(a, &m, NULL);
		if (a->format == SHOW_TABLE)
			message_track(a, l.v[i].addr, topic, m.queue_id, m.queue_off);
	}
	for (size_t i = 0; i < l.n; i++)
		free(l.v[i].bytes);
	return status;
}

/* ---- queryMsgByOffset ------------------------------------------------------------------------------------------------ */

static int query_by_offset(struct admin *a)
{
	const char *topic = admin_opt(a, "topic"), *broker = admin_opt(a, "brokerName");
	int64_t queue = admin_int(a, "queueId", 0, 0, 65535), off = admin_int(a, "offset", 0, 0, INT64_MAX), at = off;
	json_t *route = admin_route_of(a, topic);
	const char *addr = admin_route_addr(route, broker);
	struct mqclient_answer ans;
	struct mq_message m;
	if (!addr)
		cli_die(CLI_NONE, "queryMsgByOffset: broker '%s' does not serve topic '%s'", broker, topic);
	int rc = message_pull(a, addr, topic, queue, "*", &at, 1, &ans);
	json_decref(route);
	if (rc != 0 || mq_message_decode(ans.body.p, ans.body.n, true, &m) <= 0 || m.queue_off != off)
		cli_die(CLI_NONE, "queryMsgByOffset: no message at offset %lld of queue %lld of topic '%s' at %s",
		        (long long)off, (long long)queue,
		        topic, broker);
	message_show(a, &m, admin_opt(a, "bodyFormat"));
	return CLI_OK;
}

/* ---- queryCq --------------------------------------------------------------------------------------------------------- */

static int query_cq(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Index", "index" }, { "#PhysicOffset", "physicOffset" }, { "#PhysicSize", "physicSize" }, { "#TagsCode", "tagsCode" },
	};
	const char *topic = admin_opt(a, "topic"), *broker = admin_opt(a, "broker");
	int64_t queue = admin_int(a, "queue", 0, 0, 65535), index = admin_int(a, "index", 0, 0, INT64_MAX);
	int64_t count = admin_int(a, "count", 10, 1, 65536);
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	char num[3][24], addr[300];
	json_t *e;
	size_t i;
	if (broker) {
		snprintf(addr, sizeof addr, "%s", broker);
	} else {
		json_t *route = admin_route_of(a, topic);
		const char *first = admin_broker_addr(json_array_get(json_object_get(route, "brokerDatas"), 0));
		snprintf(addr, sizeof addr, "%s", first ? first : "");
		json_decref(route);
	}
	admin_field(&f, "topic", topic);
	admin_field_int(&f, "queueId", queue, num[0]);
	admin_field_int(&f, "index", index, num[1]);
	admin_field_int(&f, "count", count, num[2]);
	admin_field(&f, "consumerGroup", admin_opt(a, "consumer"));
	if (admin_ask(a, addr, 321, &f, no_body, (const int[]){ 1, 0 }, &ans) || !ans.body.n)
		cli_die(CLI_NONE, "queryCq: " MQ_STR_FMT, MQ_STR_ARG(ans.remark));
	json_t *o = admin_json(&ans);
	if (a->format == SHOW_JSON) {
		admin_dump(o);
		json_decref(o);
		return CLI_OK;
	}
	if (a->format == SHOW_TABLE) {
		char *sub = json_object_get(o, "subscriptionData") ?
		            json_dumps(json_object_get(o, "subscriptionData"), JSON_COMPACT) : NULL;
		if (sub)
			printf("Subscription data: %s\n", sub);
		else if (admin_opt(a, "consumer"))
			printf("%s\n", admin_text(o, "filterData", ""));
		printf("Queue data: max: %lld, min: %lld\n", (long long)admin_i64(o, "maxQueueIndex", 0),
		       (long long)admin_i64(o, "minQueueIndex", 0));
		free(sub);
	}
	struct show *s = show_rows(a->format, cols, 4);
	json_array_foreach(json_object_get(o, "queueData"), i, e) {
		show_i64(s, index + (int64_t)i);
		show_i64(s, admin_i64(e, "physicOffset", 0));
		show_i64(s, admin_i64(e, "physicSize", 0));
		show_i64(s, admin_i64(e, "tagsCode", 0));
	}
	show_close(s);
	json_decref(o);
	return CLI_OK;
}

/* ---- DecodeMessageId ------------------------------------------------------------------------------------------------- */

/* Bytes of the hexadecimal text, or -1. */
static int unhex(const char *text, uint8_t *out, int cap)
{
	size_t n = strlen(text);
	if (n % 2 || n / 2 > (size_t)cap || strspn(text, "0123456789abcdefABCDEF") != n)
		return -1;
	for (size_t i = 0; i < n / 2; i++) {
		char two[3] = { text[2 * i], text[2 * i + 1], 0 };
		out[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return (int)(n / 2);
}

/* The time in a unique id counts from the beginning of its month, which does not stand in it: the last month that makes it past. */
static int64_t time_of_id(uint32_t diff_ms)
{
	time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	for (int i = 0; i < 2; i++) {
		struct tm month = { .tm_year = tm.tm_year, .tm_mon = tm.tm_mon - i, .tm_mday = 1, .tm_isdst = -1 };
		int64_t ms = (int64_t)mktime(&month) * 1000 + diff_ms;
		if (i == 1 || ms < (int64_t)now * 1000 + 1000)
			return ms;
	}
	return 0;
}

/* 4 or 16 bytes of address, 2 of process, 4 of class loader, 4 of time, 2 of counter. */
static int decode_id(struct admin *a)
{
	const char *id = admin_opt(a, "messageId");
	struct mq_host host = { .port = 0 };
	uint8_t b[28];
	int n = id ? unhex(id, b, sizeof b) : -1;
	if (n != 16 && n != 28)
		admin_usage(a, "-i: '%s' is no unique id: 32 or 56 hexadecimal digits", id ? id : "");
	host.len = n == 16 ? 4 : 16;
	memcpy(host.ip, b, host.len);
	const uint8_t *p = b + host.len;
	char text[MQ_HOST_TEXT], *colon;
	mq_host_text(&host, text);
	colon = strrchr(text, ':');
	if (colon)
		*colon = 0;
	struct show *s = show_record(a->format);
	show_key(s, "ip");
	show_cstr(s, text);
	show_key(s, "pid");
	show_i64(s, p[0] << 8 | p[1]);
	show_key(s, "date");
	show_time(s, time_of_id((uint32_t)p[6] << 24 | (uint32_t)p[7] << 16 | (uint32_t)p[8] << 8 | p[9]));
	show_key(s, "counter");
	show_i64(s, p[10] << 8 | p[11]);
	show_close(s);
	return CLI_OK;
}

static const struct command_opt unique_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'i', "msgId", "ID", true, "unique id of the message" },
	{ 'a', "showAll", NULL, false, "all messages with it; else the first" },
	{ 'g', "consumerGroup", "GROUP", false, "with -d: hand it to a member of this group" },
	{ 'd', "clientId", "CLIENT", false, "that member" },
	{ 0 },
};
static const struct command_opt offset_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'b', "brokerName", "NAME", true, "name of the broker" },
	{ 'i', "queueId", "N", true, "the queue" },
	{ 'o', "offset", "N", true, "offset in it" },
	{ 'f', "bodyFormat", "CHARSET", false, "charset of the body (UTF-8)" },
	{ 0 },
};
static const struct command_opt cq_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'q', "queue", "N", true, "the queue" },
	{ 'i', "index", "N", true, "first entry" },
	{ 'c', "count", "N", false, "how many (10)" },
	{ 'b', "broker", "ADDR", false, "at this broker (the first of the route)" },
	{ 'g', "consumer", "GROUP", false, "with what this group subscribes to" },
	{ 0 },
};
static const struct command_opt id_opts[] = {
	{ 'i', "messageId", "ID", true, "unique id of a message" },
	{ 0 },
};

const struct command message_find_commands[] = {
	{ "queryMsgByUniqueKey", unique_opts, query_by_unique_key, COMMAND_CLUSTER, "show a message by its unique id" },
	{ "queryMsgByOffset", offset_opts, query_by_offset, COMMAND_CLUSTER, "show the message at a place in a queue" },
	{ "queryCq", cq_opts, query_cq, COMMAND_CLUSTER, "entries of a queue" },
	{ "DecodeMessageId", id_opts, decode_id, COMMAND_ALONE, "address and time in a unique id" },
	{ 0 },
};
