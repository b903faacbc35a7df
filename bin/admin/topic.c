/* topic.c: topics: list, route, status, create, delete. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

static const struct mq_str no_body = { NULL, 0 };

/* ---- topicList ------------------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Names of a JSON array of strings, sorted; the block is the caller's to free, the names belong to the array. */
static const char **sorted_names(const json_t *array, size_t *n)
{
	const char **v = calloc(json_array_size(array) + 1, sizeof *v);
	json_t *e;
	size_t i;
	if (!v)
		cli_die(CLI_SYSTEM, "out of memory");
	*n = 0;
	json_array_foreach(array, i, e)
		if (json_is_string(e))
			v[(*n)++] = json_string_value(e);
	qsort(v, *n, sizeof *v, by_text);
	return v;
}

/* Cluster that serves a topic: that of the first broker of its route. */
static void topic_row(struct admin *a, struct show *s, const char *topic)
{
	json_t *route = admin_route(a, topic), *first = json_array_get(json_object_get(route, "brokerDatas"), 0);
	const char *cluster = admin_text(first, "cluster", NULL);
	size_t rows = show_count(s), n = 0;

	if (first && admin_broker_addr(first)) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "topic", topic);
		admin_ask(a, admin_broker_addr(first), 300, &f, no_body, NULL, &ans);
		json_t *o = admin_json(&ans);
		const char **groups = sorted_names(json_object_get(o, "groupList"), &n);
		for (size_t i = 0; i < n; i++) {
			show_cstr(s, cluster);
			show_cstr(s, topic);
			show_cstr(s, groups[i]);
		}
		free(groups);
		json_decref(o);
	}
	if (show_count(s) == rows) {
		show_cstr(s, cluster);
		show_cstr(s, topic);
		show_cstr(s, NULL);
	}
	json_decref(route);
}

static int topic_list(struct admin *a)
{
	static const struct show_col names[] = { { "#Topic", "topic" } };
	static const struct show_col model[] = {
		{ "#Cluster Name", "cluster" }, { "#Topic", "topic" }, { "#Consumer Group", "group" },
	};
	bool with_cluster = admin_flag(a, "clusterModel");
	if (a->store)
		return store_topic_list(a);
	struct show *s = with_cluster ? show_rows(a->format, model, 3) : show_rows(a->format, names, 1);
	json_t *topics = admin_topics(a);
	size_t n;
	const char **v = sorted_names(topics, &n);
	for (size_t i = 0; i < n; i++) {
		if (with_cluster && (strncmp(v[i], "%RETRY%", 7) == 0 || strncmp(v[i], "%DLQ%", 5) == 0))
			continue;
		if (with_cluster)
			topic_row(a, s, v[i]);
		else
			show_cstr(s, v[i]);
	}
	free(v);
	json_decref(topics);
	show_close(s);
	return CLI_OK;
}

/* ---- topicRoute ------------------------------------------------------------------------------------------------------ */

static int topic_route(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#ClusterName", "cluster" }, { "#BrokerName", "broker" },    { "#BrokerAddrs", "addrs" },
		{ "#ReadQueue", "readQueueNums" }, { "#WriteQueue", "writeQueueNums" }, { "#Perm", "perm" },
	};
	const char *topic = admin_opt(a, "topic");
	json_t *route = admin_route(a, topic), *q;
	size_t i, k;
	if (!route)
		cli_die(CLI_NONE, "topicRoute: no topic '%s'", topic);
	/* As with mqadmin the route itself is the answer; -l gives rows. */
	if (!admin_flag(a, "list")) {
		char *text = json_dumps(route, a->format == SHOW_TSV ? JSON_COMPACT : JSON_INDENT(2));
		if (!text)
			cli_die(CLI_SYSTEM, "out of memory");
		puts(text);
		free(text);
		json_decref(route);
		return CLI_OK;
	}
	struct show *s = show_rows(a->format, cols, 6);
	json_array_foreach(json_object_get(route, "queueDatas"), i, q) {
		const char *broker = admin_text(q, "brokerName", "");
		json_t *d, *addrs = NULL;
		const char *cluster = NULL;
		json_array_foreach(json_object_get(route, "brokerDatas"), k, d) {
			if (strcmp(admin_text(d, "brokerName", ""), broker) == 0) {
				cluster = admin_text(d, "cluster", NULL);
				addrs = json_object_get(d, "brokerAddrs");
			}
		}
		show_cstr(s, cluster);
		show_cstr(s, broker);
		char *text = addrs ? json_dumps(addrs, JSON_COMPACT) : NULL;
		show_cstr(s, text);
		free(text);
		show_i64(s, admin_i64(q, "readQueueNums", 0));
		show_i64(s, admin_i64(q, "writeQueueNums", 0));
		show_i64(s, admin_i64(q, "perm", 0));
	}
	json_decref(route);
	show_close(s);
	return CLI_OK;
}

/* ---- topicStatus ----------------------------------------------------------------------------------------------------- */

struct status_row {
	char *broker;
	int64_t queue, min, max, updated;
};

static int by_queue(const void *x, const void *y)
{
	const struct status_row *a = x, *b = y;
	int c = strcmp(a->broker, b->broker);
	return c ? c : (a->queue > b->queue) - (a->queue < b->queue);
}

static int topic_status(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Min Offset", "minOffset" },
		{ "#Max Offset", "maxOffset" }, { "#Last Updated", "lastUpdated" },
	};
	if (a->store)
		return store_topic_status(a);
	const char *topic = admin_opt(a, "topic"), *key;
	json_t *route = admin_route(a, topic), *d, *off;
	struct status_row *rows = NULL;
	size_t n = 0, i;
	if (!route)
		cli_die(CLI_NONE, "topicStatus: no topic '%s'", topic);
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		struct admin_fields f = { .n = 0 };
		struct mqclient_answer ans;
		admin_field(&f, "topic", topic);
		if (!admin_broker_addr(d) || admin_ask(a, admin_broker_addr(d), 202, &f, no_body, (const int[]){ 17, 0 }, &ans))
			continue;
		json_t *o = admin_json(&ans), *table = json_object_get(o, "offsetTable");
		rows = realloc(rows, (n + json_object_size(table) + 1) * sizeof *rows);
		if (!rows)
			cli_die(CLI_SYSTEM, "out of memory");
		json_object_foreach(table, key, off) {
			json_t *q = admin_queue_key(key);
			rows[n++] = (struct status_row){ strdup(admin_text(q, "brokerName", "")), admin_i64(q, "queueId", 0),
				admin_i64(off, "minOffset", 0), admin_i64(off, "maxOffset", 0), admin_i64(off, "lastUpdateTimestamp", 0) };
			json_decref(q);
		}
		json_decref(o);
	}
	json_decref(route);
	if (n)
		qsort(rows, n, sizeof *rows, by_queue);
	struct show *s = show_rows(a->format, cols, 5);
	for (i = 0; i < n; i++) {
		show_cstr(s, rows[i].broker);
		show_i64(s, rows[i].queue);
		show_i64(s, rows[i].min);
		show_i64(s, rows[i].max);
		show_time(s, rows[i].updated);
		free(rows[i].broker);
	}
	free(rows);
	show_close(s);
	return CLI_OK;
}

/* ---- updateTopic, deleteTopic ---------------------------------------------------------------------------------------- */

/* Name server setting ORDER_TOPIC_CONFIG: "brokerA:8;brokerB:8", merged with what is there. */
static void set_order_conf(struct admin *a, const char *topic, const struct admin_brokers *t, int64_t queues)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	char conf[4096] = "";
	admin_field(&f, "namespace", "ORDER_TOPIC_CONFIG");
	admin_field(&f, "key", topic);
	if (admin_ask(a, NULL, 101, &f, no_body, (const int[]){ 22, 0 }, &ans) == 0) {
		const struct mqclient_field *v = admin_answer_field(&ans, "value");
		struct mq_str rest = v ? v->value : no_body;
		while (rest.n) {
			const char *semi = memchr(rest.p, ';', rest.n);
			struct mq_str part = { rest.p, semi ? (size_t)(semi - rest.p) : rest.n };
			rest.p += part.n + (semi ? 1 : 0);
			rest.n -= part.n + (semi ? 1 : 0);
			const char *colon = memchr(part.p, ':', part.n);
			bool ours = false;
			for (size_t i = 0; colon && i < t->n; i++)
				ours |= strlen(t->b[i].name) == (size_t)(colon - part.p) && memcmp(t->b[i].name, part.p,
					strlen(t->b[i].name)) == 0;
			if (part.n && !ours)
				snprintf(conf + strlen(conf), sizeof conf - strlen(conf), "%s" MQ_STR_FMT, *conf ? ";" : "",
					MQ_STR_ARG(part));
		}
	}
	for (size_t i = 0; i < t->n; i++)
		snprintf(conf + strlen(conf), sizeof conf - strlen(conf), "%s%s:%lld", *conf ? ";" : "", t->b[i].name, (long long)queues);
	admin_field(&f, "value", conf);
	for (const char *const *ns = mqclient_nameservers(a->client); *ns; ns++)
		admin_ask(a, *ns, 100, &f, no_body, NULL, &ans);
}

/* With -b the name of the broker at that address is needed for the order configuration. */
static void find_names(struct admin *a, struct admin_brokers *t)
{
	static struct admin_brokers all;
	admin_cluster(a, NULL, &all);
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < all.n; k++)
			if (!*t->b[i].name && strcmp(t->b[i].addr, all.b[k].addr) == 0) {
				free(t->b[i].name);
				t->b[i].name = strdup(all.b[k].name);
			}
	admin_brokers_free(&all);
}

static int update_topic(struct admin *a)
{
	static struct admin_brokers targets;
	const char *topic = admin_opt(a, "topic");
	struct mq_error err;
	char num[4][24];
	int64_t read = admin_int(a, "readQueueNums", 8, 1, 65536), write = admin_int(a, "writeQueueNums", 8, 1, 65536);
	int64_t perm = admin_int(a, "perm", 6, 2, 6);
	bool order = admin_bool(a, "order", false);

	if (mq_check_topic((struct mq_str){ topic, strlen(topic) }, &err) < 0)
		cli_usage_error("updateTopic: %s", err.text);
	if (perm != 2 && perm != 4 && perm != 6)
		admin_usage(a, "--perm: %lld is none of 2 (write), 4 (read), 6 (both)", (long long)perm);
	admin_targets(a, &targets);

	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "topic", topic);
	admin_field(&f, "defaultTopic", "TBW102");
	admin_field_int(&f, "readQueueNums", read, num[0]);
	admin_field_int(&f, "writeQueueNums", write, num[1]);
	admin_field_int(&f, "perm", perm, num[2]);
	admin_field(&f, "topicFilterType", "SINGLE_TAG");
	admin_field_int(&f, "topicSysFlag", (admin_bool(a, "unit", false) ? 1 : 0) | (admin_bool(a, "hasUnitSub", false) ? 2 : 0), num[3]);
	admin_field(&f, "order", order ? "true" : "false");
	admin_field(&f, "attributes", admin_opt(a, "attributes"));
	for (size_t i = 0; i < targets.n; i++) {
		admin_ask(a, targets.b[i].addr, 17, &f, no_body, NULL, &ans);
		printf("create topic to %s success.\n", targets.b[i].addr);
	}
	if (order) {
		find_names(a, &targets);
		set_order_conf(a, topic, &targets, write);
	}
	admin_brokers_free(&targets);
	return CLI_OK;
}

static int delete_topic(struct admin *a)
{
	static struct admin_brokers targets;
	const char *topic = admin_opt(a, "topic"), *cluster = admin_opt(a, "clusterName");
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;

	admin_cluster(a, cluster, &targets);
	admin_field(&f, "topic", topic);
	for (size_t i = 0; i < targets.n; i++)
		if (targets.b[i].id == 0)
			admin_ask(a, targets.b[i].addr, 215, &f, no_body, NULL, &ans);
	printf("delete topic [%s] from cluster [%s] success.\n", topic, cluster);
	admin_field(&f, "clusterName", cluster);
	for (const char *const *ns = mqclient_nameservers(a->client); *ns; ns++)
		admin_ask(a, *ns, 216, &f, no_body, NULL, &ans);
	printf("delete topic [%s] from NameServer success.\n", topic);
	admin_brokers_free(&targets);
	return CLI_OK;
}

static const struct command_opt list_opts[] = {
	{ 'c', "clusterModel", NULL, false, "with the cluster and the consumer groups of each topic" },
	{ 0 },
};
static const struct command_opt route_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'l', "list", NULL, false, "a row for each broker" },
	{ 0 },
};
static const struct command_opt status_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 0 },
};
static const struct command_opt update_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'b', "brokerAddr", "ADDR", false, "on this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "on every master of this cluster" },
	{ 'r', "readQueueNums", "N", false, "queues to read (8)" },
	{ 'w', "writeQueueNums", "N", false, "queues to write (8)" },
	{ 'p', "perm", "2|4|6", false, "2 write, 4 read, 6 both (6)" },
	{ 'o', "order", "BOOL", false, "list it as ordered (false)" },
	{ 'u', "unit", "BOOL", false, "unit topic (false)" },
	{ 's', "hasUnitSub", "BOOL", false, "has unit subscriptions (false)" },
	{ 'a', "attributes", "+K=V,-K", false, "set and remove attributes" },
	{ 0 },
};
static const struct command_opt delete_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'c', "clusterName", "CLUSTER", true, "from this cluster" },
	{ 0 },
};

const struct command topic_commands[] = {
	{ "topicList", list_opts, topic_list, COMMAND_CLUSTER | COMMAND_STORE, "names of all topics" },
	{ "topicRoute", route_opts, topic_route, COMMAND_CLUSTER, "which brokers and queues serve a topic" },
	{ "topicStatus", status_opts, topic_status, COMMAND_CLUSTER | COMMAND_STORE, "offsets of each queue of a topic" },
	{ "updateTopic", update_opts, update_topic, COMMAND_CLUSTER, "create or change a topic" },
	{ "deleteTopic", delete_opts, delete_topic, COMMAND_CLUSTER, "delete a topic from brokers and name servers" },
	{ 0 },
};
