/* topic.c: topics as they are: list, route, status, clusters, and how their queues are shared out. */
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
	json_t *route = admin_route_of(a, topic), *q;
	size_t i, k;
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
	json_t *route = admin_route_of(a, topic), *d, *off;
	struct status_row *rows = NULL;
	size_t n = 0, i;
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

/* ---- topicClusterList ------------------------------------------------------------------------------------------------ */

static int topic_cluster_list(struct admin *a)
{
	static const struct show_col cols[] = { { "#Cluster Name", "cluster" } };
	const char *topic = admin_opt(a, "topic");
	json_t *route = admin_route_of(a, topic), *names = json_array(), *d;
	size_t i, n;
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		json_t *cluster = json_object_get(d, "cluster"), *known;
		size_t k;
		bool seen = !json_is_string(cluster);
		json_array_foreach(names, k, known)
			seen |= json_equal(known, cluster);
		if (!seen)
			json_array_append(names, cluster);
	}
	struct show *s = show_rows(a->format, cols, 1);
	const char **v = sorted_names(names, &n);
	for (i = 0; i < n; i++)
		show_cstr(s, v[i]);
	free(v);
	json_decref(names);
	json_decref(route);
	show_close(s);
	return CLI_OK;
}

/* ---- allocateMQ ------------------------------------------------------------------------------------------------------ */

struct place {
	const char *broker;
	int64_t queue;
};

static int by_broker(const void *x, const void *y)
{
	const struct place *a = x, *b = y;
	int c = strcmp(a->broker, b->broker);
	return c ? c : (a->queue > b->queue) - (a->queue < b->queue);
}

/* The queues that can be read, sorted as clients sort them; the block is the caller's to free. */
static struct place *readable(const json_t *route, size_t *n)
{
	struct place *v = NULL;
	json_t *q;
	size_t i;
	*n = 0;
	json_array_foreach(json_object_get(route, "queueDatas"), i, q) {
		int64_t queues = admin_i64(q, "readQueueNums", 0);
		if (!(admin_i64(q, "perm", 0) & 4) || queues <= 0 || queues > 65536)
			continue;
		v = realloc(v, (*n + (size_t)queues) * sizeof *v);
		if (!v)
			cli_die(CLI_SYSTEM, "out of memory");
		for (int64_t k = 0; k < queues; k++)
			v[(*n)++] = (struct place){ admin_text(q, "brokerName", ""), k };
	}
	if (*n)
		qsort(v, *n, sizeof *v, by_broker);
	return v;
}

/* The average allocation of the peer's clients: each gets a run of queues, the first ones one more if it does not come out even. */
static int allocate_mq(struct admin *a)
{
	static const struct show_col cols[] = { { "#Client", "client" }, { "#Broker Name", "broker" }, { "#QID", "queue" } };
	char *list = strdup(admin_opt(a, "ipList")), *rest = list, *word;
	const char *client[1024];
	size_t clients = 0, n;
	if (!list)
		cli_die(CLI_SYSTEM, "out of memory");
	while ((word = strsep(&rest, ","))) {
		if (!*word || clients == 1024)
			admin_usage(a, "--ipList: '%s' is no list of 1 to 1024 names with commas between", admin_opt(a, "ipList"));
		client[clients++] = word;
	}
	json_t *route = admin_route_of(a, admin_opt(a, "topic"));
	struct place *v = readable(route, &n);
	struct show *s = show_rows(a->format, cols, 3);
	for (size_t c = 0, at = 0; c < clients; c++) {
		size_t share = n / clients + (c < n % clients ? 1 : 0);
		for (size_t end = at + share; at < end; at++) {
			show_cstr(s, client[c]);
			show_cstr(s, v[at].broker);
			show_i64(s, v[at].queue);
		}
	}
	show_close(s);
	free(v);
	free(list);
	json_decref(route);
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
static const struct command_opt allocate_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'i', "ipList", "NAME,...", true, "the clients" },
	{ 0 },
};

const struct command topic_commands[] = {
	{ "topicList", list_opts, topic_list, COMMAND_CLUSTER | COMMAND_STORE, "names of all topics" },
	{ "topicRoute", route_opts, topic_route, COMMAND_CLUSTER, "which brokers and queues serve a topic" },
	{ "topicStatus", status_opts, topic_status, COMMAND_CLUSTER | COMMAND_STORE, "offsets of each queue of a topic" },
	{ "topicClusterList", status_opts, topic_cluster_list, COMMAND_CLUSTER, "clusters that serve a topic" },
	{ "allocateMQ", allocate_opts, allocate_mq, COMMAND_CLUSTER, "how the queues of a topic would be shared out to clients" },
	{ 0 },
};
