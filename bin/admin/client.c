/* client.c: producers and consumers that are connected, and what consumers say of themselves. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

static const struct mq_str no_body = { NULL, 0 };

json_t *client_connections(struct admin *a, const char *group, const char *broker, char *addr, size_t cap)
{
	char retry[300];
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	json_t *route = NULL, *o = NULL;
	snprintf(retry, sizeof retry, "%%RETRY%%%s", group);
	if (!broker) {
		route = admin_route(a, retry);
		json_t *first = json_array_get(json_object_get(route, "brokerDatas"), 0);
		broker = first ? admin_broker_addr(first) : NULL;
	}
	if (broker) {
		snprintf(addr, cap, "%s", broker);
		admin_field(&f, "consumerGroup", group);
		if (admin_ask(a, addr, 203, &f, no_body, (const int[]){ 206, 0 }, &ans) == 0)
			o = admin_json(&ans);
	}
	json_decref(route);
	return o;
}

static json_t *must_be_online(struct admin *a, const char *group, char *addr, size_t cap)
{
	json_t *o = client_connections(a, group, admin_opt(a, "brokerAddr"), addr, cap);
	if (!o)
		cli_die(CLI_NONE, "%s: no member of consumer group '%s' is online", a->command->name, group);
	return o;
}

static int by_client(const void *x, const void *y)
{
	return strcmp(admin_text(*(json_t *const *)x, "clientId", ""), admin_text(*(json_t *const *)y, "clientId", ""));
}

/* The connections, sorted by client; the block is the caller's to free. */
static json_t **sorted(json_t *set, size_t *n)
{
	json_t **v = calloc(json_array_size(set) + 1, sizeof *v), *c;
	size_t i;
	if (!v)
		cli_die(CLI_SYSTEM, "out of memory");
	*n = 0;
	json_array_foreach(set, i, c)
		v[(*n)++] = c;
	qsort(v, *n, sizeof *v, by_client);
	return v;
}

static void show_connections(struct admin *a, json_t *set)
{
	static const struct show_col cols[] = {
		{ "#ClientId", "clientId" }, { "#ClientAddr", "addr" }, { "#Language", "language" }, { "#Version", "version" },
	};
	size_t n;
	json_t **v = sorted(set, &n);
	struct show *s = show_rows(a->format, cols, 4);
	for (size_t i = 0; i < n; i++) {
		char version[32];
		show_cstr(s, admin_text(v[i], "clientId", NULL));
		show_cstr(s, admin_text(v[i], "clientAddr", NULL));
		show_cstr(s, admin_text(v[i], "language", NULL));
		show_cstr(s, admin_version(admin_i64(v[i], "version", 0), version));
	}
	free(v);
	show_close(s);
}

/* ---- consumerConnection ---------------------------------------------------------------------------------------------- */

static int consumer_connection(struct admin *a)
{
	static const struct show_col cols[] = { { "#Topic", "topic" }, { "#SubExpression", "expression" }, { "#Type", "type" } };
	char addr[300];
	const char *topic;
	json_t *o = must_be_online(a, admin_opt(a, "consumerGroup"), addr, sizeof addr), *sub;
	if (a->format == SHOW_JSON) {
		admin_dump(o);
		json_decref(o);
		return CLI_OK;
	}
	show_connections(a, json_object_get(o, "connectionSet"));
	putchar('\n');
	struct show *s = show_rows(a->format, cols, 3);
	json_object_foreach(json_object_get(o, "subscriptionTable"), topic, sub) {
		show_cstr(s, topic);
		show_cstr(s, admin_text(sub, "subString", NULL));
		show_cstr(s, admin_text(sub, "expressionType", NULL));
	}
	show_close(s);
	putchar('\n');
	s = show_record(a->format);
	show_key(s, "ConsumeType");
	show_cstr(s, admin_text(o, "consumeType", NULL));
	show_key(s, "MessageModel");
	show_cstr(s, admin_text(o, "messageModel", NULL));
	show_key(s, "ConsumeFromWhere");
	show_cstr(s, admin_text(o, "consumeFromWhere", NULL));
	show_close(s);
	json_decref(o);
	return CLI_OK;
}

/* ---- producerConnection, producer ------------------------------------------------------------------------------------ */

static int producer_connection(struct admin *a)
{
	const char *group = admin_opt(a, "producerGroup");
	json_t *route = admin_route_of(a, admin_opt(a, "topic")), *d, *all = json_array();
	size_t i;
	/* compat: mqadmin asks one broker of the topic, at random; a producer may be at another. */
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "producerGroup", group);
		if (!admin_broker_addr(d) || admin_ask(a, admin_broker_addr(d), 204, &f, no_body, (const int[]){ 1, 0 }, &ans))
			continue;
		json_t *o = admin_json(&ans);
		json_array_extend(all, json_object_get(o, "connectionSet"));
		json_decref(o);
	}
	json_decref(route);
	size_t n = json_array_size(all);
	if (n)
		show_connections(a, all);
	else
		cli_warn("producerConnection: no member of producer group '%s' is online", group);
	json_decref(all);
	return n ? CLI_OK : CLI_NONE;
}

static int producer(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Group", "group" }, { "#ClientId", "clientId" }, { "#ClientAddr", "addr" },
		{ "#Language", "language" }, { "#Version", "version" },
		{ "#LastHeartbeat", "lastHeartbeat" },
	};
	struct mqclient_answer ans;
	const char *group;
	json_t *list;
	admin_ask(a, admin_opt(a, "broker"), 328, NULL, no_body, NULL, &ans);
	json_t *o = admin_json(&ans);
	struct show *s = show_rows(a->format, cols, 6);
	json_object_foreach(json_object_get(o, "data"), group, list) {
		size_t n;
		json_t **v = sorted(list, &n);
		for (size_t i = 0; i < n; i++) {
			char version[32];
			show_cstr(s, group);
			show_cstr(s, admin_text(v[i], "clientId", NULL));
			const char *addr = admin_text(v[i], "remoteIP", NULL);
			show_cstr(s, addr && *addr == '/' ? addr + 1 : addr);
			show_cstr(s, admin_text(v[i], "language", NULL));
			show_cstr(s, admin_version(admin_i64(v[i], "version", 0), version));
			show_time(s, admin_i64(v[i], "lastUpdateTimestamp", 0));
		}
		free(v);
	}
	show_close(s);
	json_decref(o);
	return CLI_OK;
}

/* ---- consumerStatus -------------------------------------------------------------------------------------------------- */

static json_t *running_info(struct admin *a, const char *addr, const char *group, const char *client, bool jstack)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "consumerGroup", group);
	admin_field(&f, "clientId", client);
	admin_field(&f, "jstackEnable", jstack ? "true" : "false");
	if (admin_ask(a, addr, 307, &f, no_body, (const int[]){ 1, 3, 206, 207, 0 }, &ans)) {
		cli_warn("consumerStatus: client '%s': " MQ_STR_FMT, client, MQ_STR_ARG(ans.remark));
		return NULL;
	}
	return admin_json(&ans);
}

static void show_properties(struct admin *a, const json_t *info)
{
	const char *key;
	json_t *v;
	struct show *s = show_record(a->format);
	puts("#Consumer Properties#");
	json_object_foreach(json_object_get(info, "properties"), key, v) {
		show_key(s, key);
		show_cstr(s, json_string_value(v));
	}
	show_close(s);
}

static void show_subscriptions(struct admin *a, const json_t *info)
{
	static const struct show_col cols[] = { { "#Topic", "topic" },
						{ "#ClassFilter", "classFilter" }, { "#SubExpression", "expression" } };
	json_t *sub;
	size_t i;
	struct show *s = show_rows(a->format, cols, 3);
	puts("\n#Consumer Subscription#");
	json_array_foreach(json_object_get(info, "subscriptionSet"), i, sub) {
		show_cstr(s, admin_text(sub, "topic", NULL));
		show_bool(s, json_is_true(json_object_get(sub, "classFilterMode")));
		show_cstr(s, admin_text(sub, "subString", NULL));
	}
	show_close(s);
}

static void show_queues(struct admin *a, const json_t *info)
{
	static const struct show_col cols[] = {
		{ "#Topic", "topic" }, { "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Consumer Offset", "consumerOffset" },
		{ "#Cached", "cached" }, { "#CachedMin", "cachedMin" }, { "#CachedMax", "cachedMax" }, { "#Locked", "locked" },
		{ "#Dropped", "dropped" }, { "#LastPull", "lastPull" }, { "#LastConsume", "lastConsume" },
	};
	const char *key;
	json_t *v;
	struct show *s = show_rows(a->format, cols, 11);
	puts("\n#Consumer MQ Detail#");
	json_object_foreach(json_object_get(info, "mqTable"), key, v) {
		json_t *q = admin_queue_key(key);
		show_cstr(s, admin_text(q, "topic", NULL));
		show_cstr(s, admin_text(q, "brokerName", NULL));
		show_i64(s, admin_i64(q, "queueId", 0));
		show_i64(s, admin_i64(v, "commitOffset", 0));
		show_i64(s, admin_i64(v, "cachedMsgCount", 0));
		show_i64(s, admin_i64(v, "cachedMsgMinOffset", 0));
		show_i64(s, admin_i64(v, "cachedMsgMaxOffset", 0));
		show_bool(s, json_is_true(json_object_get(v, "locked")));
		show_bool(s, json_is_true(json_object_get(v, "droped")));
		show_time(s, admin_i64(v, "lastPullTimestamp", 0));
		show_time(s, admin_i64(v, "lastConsumeTimestamp", 0));
		json_decref(q);
	}
	show_close(s);
}

static void show_rates(struct admin *a, const json_t *info)
{
	static const struct show_col cols[] = {
		{ "#Topic", "topic" }, { "#Pull RT", "pullRt" }, { "#Pull TPS", "pullTps" }, { "#Consume RT", "consumeRt" },
		{ "#ConsumeOK TPS", "consumeOkTps" },
		{ "#ConsumeFailed TPS", "consumeFailedTps" }, { "#Failed in an hour", "consumeFailed" },
	};
	static const char *const rate[] = { "pullRT", "pullTPS", "consumeRT", "consumeOKTPS", "consumeFailedTPS" };
	const char *topic;
	json_t *v;
	struct show *s = show_rows(a->format, cols, 7);
	puts("\n#Consumer RT&TPS#");
	json_object_foreach(json_object_get(info, "statusTable"), topic, v) {
		show_cstr(s, topic);
		for (size_t i = 0; i < sizeof rate / sizeof rate[0]; i++)
			show_double(s, json_number_value(json_object_get(v, rate[i])), 2);
		show_i64(s, admin_i64(v, "consumeFailedMsgs", 0));
	}
	show_close(s);
}

static int one_client(struct admin *a, const char *addr, const char *group, const char *client, bool jstack)
{
	json_t *info = running_info(a, addr, group, client, jstack);
	if (!info)
		return CLI_NONE;
	if (a->format == SHOW_JSON) {
		admin_dump(info);
	} else {
		show_properties(a, info);
		show_subscriptions(a, info);
		show_queues(a, info);
		show_rates(a, info);
		if (jstack)
			printf("\n#Consumer jstack#\n%s\n", admin_text(info, "jstack", ""));
	}
	json_decref(info);
	return CLI_OK;
}

/* Topics and expressions of a client, to compare. */
static json_t *what_it_wants(const json_t *info)
{
	json_t *o = json_object(), *sub;
	size_t i;
	json_array_foreach(json_object_get(info, "subscriptionSet"), i, sub)
		json_object_set_new(o, admin_text(sub, "topic", ""), json_string(admin_text(sub, "subString", "")));
	return o;
}

/* Every member of a group must want the same: the broker knows one subscription a group. */
static int all_clients(struct admin *a, const char *addr, const char *group, json_t *connections, bool jstack)
{
	static const struct show_col cols[] = { { "#ClientId", "clientId" }, { "#Version", "version" }, { "#Queues", "queues" } };
	json_t *first = NULL;
	bool same = true;
	size_t n, told = 0;
	json_t **v = sorted(json_object_get(connections, "connectionSet"), &n);
	struct show *s = show_rows(a->format, cols, 3);
	for (size_t i = 0; i < n; i++) {
		char version[32];
		json_t *info = running_info(a, addr, group, admin_text(v[i], "clientId", ""), jstack);
		if (!info)
			continue;
		json_t *wants = what_it_wants(info);
		told++;
		same = same && (!first || json_equal(first, wants));
		if (!first)
			first = json_incref(wants);
		show_cstr(s, admin_text(v[i], "clientId", NULL));
		show_cstr(s, admin_version(admin_i64(v[i], "version", 0), version));
		show_i64(s, (int64_t)json_object_size(json_object_get(info, "mqTable")));
		json_decref(wants);
		json_decref(info);
	}
	json_decref(first);
	free(v);
	show_close(s);
	if (told && a->format != SHOW_JSON)
		printf("\n%s in the same group of consumer\n", same ? "Same subscription" : "WARN: Different subscription");
	return told ? CLI_OK : CLI_NONE;
}

static int consumer_status(struct admin *a)
{
	const char *group = admin_opt(a, "consumerGroup"), *client = admin_opt(a, "clientId");
	bool jstack = admin_flag(a, "jstack");
	char addr[300];
	json_t *o = must_be_online(a, group, addr, sizeof addr);
	int status = client ? one_client(a, addr, group, client, jstack) : all_clients(a, addr, group, o, jstack);
	json_decref(o);
	return status;
}

/* ---- getConsumerStatus ----------------------------------------------------------------------------------------------- */

static int get_consumer_status(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#clientId", "clientId" }, { "#brokerName", "broker" }, { "#queueId", "queue" }, { "#offset", "offset" },
	};
	json_t *route = admin_route_of(a, admin_opt(a, "topic")), *d, *at, *off;
	const char *client, *key;
	size_t i;
	struct show *s = show_rows(a->format, cols, 4);
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "topic", admin_opt(a, "topic"));
		admin_field(&f, "group", admin_opt(a, "group"));
		admin_field(&f, "clientAddr", admin_opt(a, "originClientId"));
		if (!admin_broker_addr(d))
			continue;
		admin_ask(a, admin_broker_addr(d), 223, &f, no_body, NULL, &ans);
		json_t *o = admin_json(&ans);
		json_object_foreach(json_object_get(o, "consumerTable"), client, at) {
			json_object_foreach(at, key, off) {
				json_t *q = admin_queue_key(key);
				show_cstr(s, client);
				show_cstr(s, admin_text(q, "brokerName", NULL));
				show_i64(s, admin_i64(q, "queueId", 0));
				show_i64(s, json_integer_value(off));
				json_decref(q);
			}
		}
		json_decref(o);
	}
	json_decref(route);
	show_close(s);
	return CLI_OK;
}

static const struct command_opt consumer_opts[] = {
	{ 'g', "consumerGroup", "GROUP", true, "the group" },
	{ 'b', "brokerAddr", "ADDR", false, "as this broker knows it" },
	{ 0 },
};
static const struct command_opt producer_opts[] = {
	{ 'g', "producerGroup", "GROUP", true, "the group" },
	{ 't', "topic", "TOPIC", true, "a topic that it sends to" },
	{ 0 },
};
static const struct command_opt all_producers_opts[] = {
	{ 'b', "broker", "ADDR", true, "the broker" },
	{ 0 },
};
static const struct command_opt status_opts[] = {
	{ 'g', "consumerGroup", "GROUP", true, "the group" },
	{ 'i', "clientId", "CLIENT", false, "all about this client; else a row for each" },
	{ 'b', "brokerAddr", "ADDR", false, "as this broker knows it" },
	{ 's', "jstack", NULL, false, "with the stacks of its threads" },
	{ 0 },
};
static const struct command_opt get_opts[] = {
	{ 'g', "group", "GROUP", true, "the group" },
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'i', "originClientId", "CLIENT", false, "of this client only" },
	{ 0 },
};

const struct command client_commands[] = {
	{ "consumerConnection", consumer_opts, consumer_connection, COMMAND_CLUSTER, "members of a consumer group" },
	{ "producerConnection", producer_opts, producer_connection, COMMAND_CLUSTER, "members of a producer group" },
	{ "producer", all_producers_opts, producer, COMMAND_CLUSTER, "all producers of a broker" },
	{ "consumerStatus", status_opts, consumer_status, COMMAND_CLUSTER, "what consumers say of themselves" },
	{ "getConsumerStatus", get_opts, get_consumer_status, COMMAND_CLUSTER, "how far consumers say that they are" },
	{ 0 },
};
