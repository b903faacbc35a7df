/* group.c: consumer groups: settings and progress. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

static const struct mq_str no_body = { NULL, 0 };

/* ---- updateSubGroup -------------------------------------------------------------------------------------------------- */

/* What the broker has for the group, or the defaults of a new one: an option that is not given changes nothing.
 * compat: mqadmin 5.2.0 sends its own defaults for what is not given and so turns broadcasting off. */
static json_t *group_config(struct admin *a, const char *addr, const char *group)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "group", group);
	if (admin_ask(a, addr, 352, &f, no_body, (const int[]){ 1, 26, 0 }, &ans) == 0)
		return admin_json(&ans);
	return json_pack("{s:s, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:i, s:i, s:i, s:{s:s}, s:{}}", "groupName", group, "consumeEnable", 1,
	                 "consumeFromMinEnable", 1, "consumeBroadcastEnable", 1, "consumeMessageOrderly", 0,
	                 "notifyConsumerIdsChangedEnable", 1, "retryQueueNums", 1, "retryMaxTimes", 16, "brokerId", 0,
	                 "whichBrokerWhenConsumeSlowly", 1, "groupSysFlag", 0, "groupRetryPolicy", "type", "CUSTOMIZED", "attributes");
}

static void set_bool(struct admin *a, json_t *o, const char *opt, const char *key)
{
	if (admin_opt(a, opt))
		json_object_set_new(o, key, json_boolean(admin_bool(a, opt, false)));
}

static void set_int(struct admin *a, json_t *o, const char *key, int64_t min, int64_t max)
{
	if (admin_opt(a, key))
		json_object_set_new(o, key, json_integer(admin_int(a, key, 0, min, max)));
}

static void set_retry_policy(struct admin *a, json_t *o)
{
	const char *text = admin_opt(a, "groupRetryPolicy");
	if (!text)
		return;
	json_error_t e;
	json_t *policy = json_loads(text, 0, &e);
	if (!policy)
		admin_usage(a, "--groupRetryPolicy: no JSON object: %s", e.text);
	json_object_set_new(o, "groupRetryPolicy", policy);
}

/* Tell a broker; o is freed.  name: of one of many, NULL = the only one. */
static void put_group(struct admin *a, const char *addr, const char *name, json_t *o)
{
	struct mqclient_answer ans;
	char *body = json_dumps(o, JSON_COMPACT);
	if (!body)
		cli_die(CLI_SYSTEM, "out of memory");
	admin_ask(a, addr, 200, NULL, (struct mq_str){ body, strlen(body) }, NULL, &ans);
	printf("create subscription group %s%s%sto %s success.\n", name ? "[" : "", name ? name : "", name ? "] " : "", addr);
	free(body);
	json_decref(o);
}

static int update_sub_group(struct admin *a)
{
	static struct admin_brokers targets;
	const char *group = admin_opt(a, "groupName");
	struct mq_error err;
	if (mq_check_group((struct mq_str){ group, strlen(group) }, &err) < 0)
		cli_usage_error("updateSubGroup: %s", err.text);
	admin_targets(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		json_t *o = group_config(a, targets.b[i].addr, group);
		set_bool(a, o, "consumeEnable", "consumeEnable");
		set_bool(a, o, "consumeFromMinEnable", "consumeFromMinEnable");
		set_bool(a, o, "consumeBroadcastEnable", "consumeBroadcastEnable");
		set_bool(a, o, "consumeMessageOrderly", "consumeMessageOrderly");
		set_bool(a, o, "notifyConsumerIdsChanged", "notifyConsumerIdsChangedEnable");
		set_int(a, o, "retryQueueNums", 0, 65536);
		set_int(a, o, "retryMaxTimes", -1, INT32_MAX);
		set_int(a, o, "brokerId", 0, INT32_MAX);
		set_int(a, o, "whichBrokerWhenConsumeSlowly", 0, INT32_MAX);
		set_retry_policy(a, o);
		put_group(a, targets.b[i].addr, NULL, o);
	}
	admin_brokers_free(&targets);
	return CLI_OK;
}

/* ---- updateSubGroupList ---------------------------------------------------------------------------------------------- */

/* compat: a command of the mqadmin of 5.3; brokers before know no request for a list, so each group is asked for by itself. */
static int update_sub_group_list(struct admin *a)
{
	static struct admin_brokers targets;
	json_t *list = admin_list_file(a, "groupName", mq_check_group), *g;
	size_t k;
	admin_targets(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		json_array_foreach(list, k, g) {
			const char *name = admin_text(g, "groupName", "");
			json_t *o = group_config(a, targets.b[i].addr, name);
			json_object_update(o, g);
			put_group(a, targets.b[i].addr, name, o);
		}
	}
	json_decref(list);
	admin_brokers_free(&targets);
	return CLI_OK;
}

/* ---- deleteSubGroup -------------------------------------------------------------------------------------------------- */

static int delete_sub_group(struct admin *a)
{
	static struct admin_brokers targets;
	const char *group = admin_opt(a, "groupName"), *cluster = admin_opt(a, "clusterName");
	bool offsets = admin_bool(a, "removeOffset", false);
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	char topic[300];
	admin_targets(a, &targets);
	admin_field(&f, "groupName", group);
	admin_field(&f, "cleanOffset", offsets ? "true" : "false");
	for (size_t i = 0; i < targets.n; i++) {
		if (admin_dry_run(a)) {
			printf("would delete subscription group [%s]%s from broker [%s].\n",
			       group, offsets ? " and its offsets" : "", targets.b[i].addr);
			continue;
		}
		admin_ask(a, targets.b[i].addr, 207, &f, no_body, NULL, &ans);
		printf("delete subscription group [%s] from broker [%s]%s%s%s success.\n", group, targets.b[i].addr,
		       cluster ? " in cluster [" : "",
		       cluster ? cluster : "", cluster ? "]" : "");
	}
	admin_brokers_free(&targets);
	/* As mqadmin: its retry and dead letter topics go with it, of a whole cluster only. */
	for (int i = 0; cluster && i < 2; i++) {
		snprintf(topic, sizeof topic, "%s%s", i ? "%DLQ%" : "%RETRY%", group);
		topic_delete(a, topic, cluster);
	}
	return CLI_OK;
}

/* ---- setConsumeMode -------------------------------------------------------------------------------------------------- */

static int set_consume_mode(struct admin *a)
{
	static struct admin_brokers targets;
	const char *topic = admin_opt(a, "topicName"), *group = admin_opt(a, "groupName"), *mode = admin_opt(a, "mode");
	int64_t share = admin_int(a, "popShareQueueNum", 0, -1, INT32_MAX);
	struct mqclient_answer ans;
	json_t *o;
	char *body;

	if (strcmp(mode, "PULL") && strcmp(mode, "POP"))
		cli_usage_error("setConsumeMode: mode '%s': PULL or POP would be right", mode);
	o = json_pack("{s:s, s:s, s:s, s:I}", "topic", topic, "consumerGroup", group, "mode", mode, "popShareQueueNum", (json_int_t)share);
	body = o ? json_dumps(o, JSON_COMPACT) : NULL;
	if (!body)
		cli_usage_error("setConsumeMode: names of topics and groups are plain text");
	admin_targets(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		admin_ask(a, targets.b[i].addr, 401, NULL, (struct mq_str){ body, strlen(body) }, NULL, &ans);
		printf("set consume mode to %s success.\n", targets.b[i].addr);
	}
	printf("topic[%s] group[%s] consume mode[%s] popShareQueueNum[%lld]\n", topic, group, mode, (long long)share);
	admin_brokers_free(&targets);
	free(body);
	json_decref(o);
	return CLI_OK;
}

/* ---- getConsumerConfig ----------------------------------------------------------------------------------------------- */

static int get_consumer_config(struct admin *a)
{
	static struct admin_brokers all;
	const char *group = admin_opt(a, "groupName"), *key;
	struct show *s = show_record(a->format);
	size_t found = 0;
	json_t *v;
	admin_cluster(a, NULL, &all);
	for (size_t i = 0; i < all.n; i++) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "group", group);
		if (all.b[i].id != 0 || admin_ask(a, all.b[i].addr, 352, &f, no_body, (const int[]){ 1, 26, 0 }, &ans))
			continue;
		json_t *o = admin_json(&ans);
		found++;
		json_object_foreach(o, key, v) {
			char name[600];
			char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
			snprintf(name, sizeof name, "%s:%s %s", all.b[i].cluster, all.b[i].name, key);
			show_key(s, name);
			show_cstr(s, text ? text : json_string_value(v));
			free(text);
		}
		json_decref(o);
	}
	admin_brokers_free(&all);
	if (found)
		show_close(s);
	else
		cli_warn("getConsumerConfig: no broker knows the group '%s'", group);
	return found ? CLI_OK : CLI_NONE;
}

/* ---- consumerProgress ------------------------------------------------------------------------------------------------ */

struct progress {
	char *topic, *broker, *client;
	int64_t queue, broker_off, consumer_off, pull_off, last_ms;
};
struct progress_list {
	struct progress *v;
	size_t n;
	double tps;
};

static int by_place(const void *x, const void *y)
{
	const struct progress *a = x, *b = y;
	int c = strcmp(a->topic, b->topic);
	if (c == 0)
		c = strcmp(a->broker, b->broker);
	return c ? c : (a->queue > b->queue) - (a->queue < b->queue);
}

/* Progress on every broker that may know the group: those of its retry topic, or, when it has none yet, all masters. */
static void collect(struct admin *a, const char *group, const char *topic, struct progress_list *out)
{
	static struct admin_brokers all;
	char retry[300];
	const char *key;
	json_t *d, *v;
	size_t i;

	snprintf(retry, sizeof retry, "%%RETRY%%%s", group);
	json_t *route = admin_route(a, retry), *addrs = json_array();
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d)
		if (admin_broker_addr(d))
			json_array_append_new(addrs, json_string(admin_broker_addr(d)));
	if (!route) {
		admin_cluster(a, NULL, &all);
		for (i = 0; i < all.n; i++)
			if (all.b[i].id == 0)
				json_array_append_new(addrs, json_string(all.b[i].addr));
		admin_brokers_free(&all);
	}
	*out = (struct progress_list){ 0 };
	json_array_foreach(addrs, i, d) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "consumerGroup", group);
		admin_field(&f, "topic", topic);
		if (admin_ask(a, json_string_value(d), 208, &f, no_body, (const int[]){ 17, 26, 0 }, &ans))
			continue;
		json_t *o = admin_json(&ans), *table = json_object_get(o, "offsetTable");
		out->tps += json_number_value(json_object_get(o, "consumeTps"));
		out->v = realloc(out->v, (out->n + json_object_size(table) + 1) * sizeof *out->v);
		if (!out->v)
			cli_die(CLI_SYSTEM, "out of memory");
		json_object_foreach(table, key, v) {
			json_t *q = admin_queue_key(key);
			out->v[out->n++] = (struct progress){
				.topic = strdup(admin_text(q, "topic", "")), .broker = strdup(admin_text(q, "brokerName", "")),
				.queue = admin_i64(q, "queueId", 0), .broker_off = admin_i64(v, "brokerOffset", 0),
				.consumer_off = admin_i64(v, "consumerOffset", 0), .pull_off = admin_i64(v, "pullOffset", 0),
				.last_ms = admin_i64(v, "lastTimestamp", 0),
			};
			json_decref(q);
		}
		json_decref(o);
	}
	json_decref(addrs);
	json_decref(route);
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, by_place);
}

static void progress_free(struct progress_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].topic);
		free(l->v[i].broker);
		free(l->v[i].client);
	}
	free(l->v);
}

/* -s: which client has which queue, asked of the clients themselves through the broker. */
static void find_clients(struct admin *a, const char *group, struct progress_list *l)
{
	char addr[300];
	json_t *o = client_connections(a, group, NULL, addr, sizeof addr), *c;
	size_t i, k;
	json_array_foreach(json_object_get(o, "connectionSet"), i, c) {
		const char *id = admin_text(c, "clientId", ""), *key;
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		json_t *v;
		admin_field(&f, "consumerGroup", group);
		admin_field(&f, "clientId", id);
		admin_field(&f, "jstackEnable", "false");
		if (admin_ask(a, addr, 307, &f, no_body, (const int[]){ 1, 3, 206, 207, 0 }, &ans))
			continue;
		json_t *info = admin_json(&ans);
		json_object_foreach(json_object_get(info, "mqTable"), key, v) {
			json_t *q = admin_queue_key(key);
			for (k = 0; k < l->n; k++)
				if (!l->v[k].client && l->v[k].queue == admin_i64(q, "queueId", -1) &&
				    strcmp(l->v[k].broker, admin_text(q, "brokerName", "")) == 0 &&
				    strcmp(l->v[k].topic, admin_text(q, "topic", "")) == 0)
					l->v[k].client = strdup(id);
			json_decref(q);
		}
		json_decref(info);
	}
	json_decref(o);
}

static int one_group(struct admin *a, const char *group)
{
	static const struct show_col cols[] = {
		{ "#Topic", "topic" }, { "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Broker Offset", "brokerOffset" },
		{ "#Consumer Offset", "consumerOffset" }, { "#Client", "client" }, { "#Diff", "diff" }, { "#Inflight", "inflight" },
		{ "#LastTime", "lastTime" },
	};
	struct progress_list l;
	int64_t diff = 0, inflight = 0;
	collect(a, group, admin_opt(a, "topicName"), &l);
	if (admin_bool(a, "showClientIP", false))
		find_clients(a, group, &l);
	struct show *s = show_rows(a->format, cols, 9);
	for (size_t i = 0; i < l.n; i++) {
		const struct progress *p = &l.v[i];
		int64_t in = p->pull_off - p->consumer_off;
		show_cstr(s, p->topic);
		show_cstr(s, p->broker);
		show_i64(s, p->queue);
		show_i64(s, p->broker_off);
		show_i64(s, p->consumer_off);
		show_cstr(s, p->client);
		show_i64(s, p->broker_off - p->consumer_off);
		show_i64(s, in > 0 ? in : 0);
		show_time(s, p->last_ms);
		diff += p->broker_off - p->consumer_off;
		inflight += in > 0 ? in : 0;
	}
	int status = l.n ? CLI_OK : CLI_NONE;
	if (!l.n)
		cli_warn("consumerProgress: group '%s' has consumed nothing here", group);
	show_close(s);
	if (a->format == SHOW_TABLE && l.n)
		printf("\nConsume TPS: %.2f\nConsume Diff Total: %lld\nConsume Inflight Total: %lld\n", l.tps,
			(long long)diff, (long long)inflight);
	progress_free(&l);
	return status;
}

static void group_row(struct admin *a, struct show *s, const char *group)
{
	char addr[300], version[32];
	struct progress_list l;
	int64_t diff = 0;
	collect(a, group, NULL, &l);
	for (size_t i = 0; i < l.n; i++)
		diff += l.v[i].broker_off - l.v[i].consumer_off;
	json_t *o = client_connections(a, group, NULL, addr, sizeof addr), *set = json_object_get(o, "connectionSet");
	show_cstr(s, group);
	show_i64(s, (int64_t)json_array_size(set));
	if (json_array_size(set))
		show_cstr(s, admin_version(admin_i64(json_array_get(set, 0), "version", 0), version));
	else
		show_cstr(s, NULL);
	show_cstr(s, admin_text(o, "consumeType", NULL));
	show_cstr(s, admin_text(o, "messageModel", NULL));
	show_double(s, l.tps, 2);
	show_i64(s, diff);
	json_decref(o);
	progress_free(&l);
}

static int consumer_progress(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Group", "group" }, { "#Count", "count" }, { "#Version", "version" }, { "#Type", "type" }, { "#Model", "model" },
		{ "#TPS", "tps" }, { "#Diff Total", "diff" },
	};
	const char *group = admin_opt(a, "groupName");
	if (a->store)
		return store_consumer_progress(a);
	if (group)
		return one_group(a, group);
	struct show *s = show_rows(a->format, cols, 7);
	json_t *topics = admin_topics(a), *t;
	size_t i;
	json_array_foreach(topics, i, t) {
		const char *name = json_string_value(t);
		if (name && strncmp(name, "%RETRY%", 7) == 0)
			group_row(a, s, name + 7);
	}
	json_decref(topics);
	show_close(s);
	return CLI_OK;
}

static const struct command_opt update_opts[] = {
	{ 'g', "groupName", "GROUP", true, "the group" },
	{ 'b', "brokerAddr", "ADDR", false, "on this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "on every master of this cluster" },
	{ 's', "consumeEnable", "BOOL", false, "may consume" },
	{ 'm', "consumeFromMinEnable", "BOOL", false, "may begin at the first offset" },
	{ 'd', "consumeBroadcastEnable", "BOOL", false, "may broadcast" },
	{ 'o', "consumeMessageOrderly", "BOOL", false, "consumes in order" },
	{ 'q', "retryQueueNums", "N", false, "queues of its retry topic" },
	{ 'r', "retryMaxTimes", "N", false, "deliveries before a message goes to the dead letters" },
	{ 'p', "groupRetryPolicy", "JSON", false, "times between deliveries" },
	{ 'i', "brokerId", "ID", false, "consumes from this broker id" },
	{ 'w', "whichBrokerWhenConsumeSlowly", "ID", false, "broker id to read from when far behind" },
	{ 'a', "notifyConsumerIdsChanged", "BOOL", false, "tell members when others come and go" },
	{ 0 },
};
static const struct command_opt list_opts[] = {
	{ 'f', "filename", "FILE", true, "a JSON list of groups; - is standard input" },
	{ 'b', "brokerAddr", "ADDR", false, "on this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "on every master of this cluster" },
	{ 0 },
};
static const struct command_opt delete_opts[] = {
	{ 'g', "groupName", "GROUP", true, "the group" },
	{ 'b', "brokerAddr", "ADDR", false, "from this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "from every master of this cluster, with its retry and dead letter topics" },
	{ 'r', "removeOffset", "BOOL", false, "and its offsets (false)" },
	ADMIN_DRY_RUN,
	{ 0 },
};
static const struct command_opt mode_opts[] = {
	{ 't', "topicName", "TOPIC", true, "of this topic" },
	{ 'g', "groupName", "GROUP", true, "by this group" },
	{ 'm', "mode", "MODE", true, "PULL or POP" },
	{ 'b', "brokerAddr", "ADDR", false, "on this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "on every master of this cluster" },
	{ 'q', "popShareQueueNum", "N", false, "POP: members whose queues one takes, too; 0: any queue (0)" },
	{ 0 },
};
static const struct command_opt config_opts[] = {
	{ 'g', "groupName", "GROUP", true, "the group" },
	{ 0 },
};
static const struct command_opt progress_opts[] = {
	{ 'g', "groupName", "GROUP", false, "this group; else all" },
	{ 't', "topicName", "TOPIC", false, "this topic only" },
	{ 's', "showClientIP", "BOOL", false, "which client has each queue" },
	{ 0 },
};

const struct command group_commands[] = {
	{ "updateSubGroup", update_opts, update_sub_group, COMMAND_CLUSTER, "create or change a consumer group" },
	{ "updateSubGroupList", list_opts, update_sub_group_list, COMMAND_CLUSTER, "create or change the groups of a file" },
	{ "deleteSubGroup", delete_opts, delete_sub_group, COMMAND_CLUSTER, "delete a consumer group" },
	{ "setConsumeMode", mode_opts, set_consume_mode, COMMAND_CLUSTER, "whether a group pulls or pops a topic" },
	{ "getConsumerConfig", config_opts, get_consumer_config, COMMAND_CLUSTER, "settings of a consumer group on each broker" },
	{ "consumerProgress", progress_opts, consumer_progress, COMMAND_CLUSTER | COMMAND_STORE, "how far groups have consumed" },
	{ 0 },
};
