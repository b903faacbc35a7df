/* broker.c: brokers: their state and configuration, what they remove when told, how far all groups on one are, their replicas. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct mq_str no_body = { NULL, 0 };

/* ---- brokerStatus ---------------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Each member of an object of texts, sorted; several brokers: each key is headed by the address. */
static void show_members(struct show *s, const char *head, json_t *table)
{
	const char **keys = calloc(json_object_size(table) + 1, sizeof *keys), *key;
	json_t *v;
	size_t n = 0;
	if (!keys)
		cli_die(CLI_SYSTEM, "out of memory");
	json_object_foreach(table, key, v)
		keys[n++] = key;
	qsort(keys, n, sizeof *keys, by_key);
	for (size_t k = 0; k < n; k++) {
		char name[600];
		snprintf(name, sizeof name, "%s%s%s", head, *head ? " " : "", keys[k]);
		show_key(s, name);
		show_cstr(s, json_string_value(json_object_get(table, keys[k])));
	}
	free(keys);
}

static int broker_status(struct admin *a)
{
	static struct admin_brokers targets;
	admin_targets(a, &targets);
	struct show *s = show_record(a->format);
	for (size_t i = 0; i < targets.n; i++) {
		struct mqclient_answer ans;
		admin_ask(a, targets.b[i].addr, 28, NULL, no_body, NULL, &ans);
		json_t *o = admin_json(&ans);
		show_members(s, targets.n > 1 ? targets.b[i].addr : "", json_object_get(o, "table"));
		json_decref(o);
	}
	admin_brokers_free(&targets);
	show_close(s);
	return CLI_OK;
}

/* ---- getBrokerConfig, updateBrokerConfig ----------------------------------------------------------------------------- */

void admin_show_config(struct show *s, const char *head, struct mq_str text)
{
	json_t *table = json_object();
	while (text.n) {
		const char *nl = memchr(text.p, '\n', text.n);
		struct mq_str line = { text.p, nl ? (size_t)(nl - text.p) : text.n };
		const char *eq = memchr(line.p, '=', line.n);
		text.p += line.n + (nl ? 1 : 0);
		text.n -= line.n + (nl ? 1 : 0);
		if (!eq || line.p[0] == '#')
			continue;
		char key[300];
		json_t *v = json_stringn(eq + 1, (size_t)(line.p + line.n - eq - 1));
		snprintf(key, sizeof key, "%.*s", (int)(eq - line.p), line.p);
		if (v)
			json_object_set_new(table, key, v);
	}
	show_members(s, head, table);
	json_decref(table);
}

static int get_broker_config(struct admin *a)
{
	static struct admin_brokers targets;
	admin_targets_and_slaves(a, &targets);
	struct show *s = show_record(a->format);
	for (size_t i = 0; i < targets.n; i++) {
		struct mqclient_answer ans;
		admin_ask(a, targets.b[i].addr, 26, NULL, no_body, NULL, &ans);
		admin_show_config(s, targets.n > 1 ? targets.b[i].addr : "", ans.body);
	}
	admin_brokers_free(&targets);
	show_close(s);
	return CLI_OK;
}

char *admin_config_line(struct admin *a)
{
	static char text[8192];
	const char *key = admin_opt(a, "key"), *value = admin_opt(a, "value");
	if (!*key || strpbrk(key, "=:# \t\r\n\\!") || strpbrk(value, "\r\n"))
		admin_usage(a, "a key without blanks and = is wanted, and a value of one line");
	if (snprintf(text, sizeof text, "%s=%s\n", key, value) >= (int)sizeof text)
		admin_usage(a, "--value: longer than 8000 bytes");
	return text;
}

static int update_broker_config(struct admin *a)
{
	static struct admin_brokers targets;
	char *line = admin_config_line(a);
	if (admin_opt(a, "updateAllBroker"))
		admin_targets_and_slaves(a, &targets);
	else
		admin_targets(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		struct mqclient_answer ans;
		admin_ask(a, targets.b[i].addr, 25, NULL, (struct mq_str){ line, strlen(line) }, NULL, &ans);
		printf("update broker config success, %s\n", targets.b[i].addr);
	}
	admin_brokers_free(&targets);
	return CLI_OK;
}

/* ---- cleanExpiredCQ, cleanUnusedTopic, deleteExpiredCommitLog -------------------------------------------------------- */

static int clean(struct admin *a, int code)
{
	static struct admin_brokers targets;
	admin_targets_or_all(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		struct mqclient_answer ans;
		if (admin_dry_run(a)) {
			printf("would ask broker [%s]: %s.\n", targets.b[i].addr, a->command->help);
		} else {
			admin_ask(a, targets.b[i].addr, code, NULL, no_body, NULL, &ans);
			printf("%s: broker [%s] success\n", a->command->name, targets.b[i].addr);
		}
	}
	admin_brokers_free(&targets);
	return CLI_OK;
}

static int clean_queues(struct admin *a) { return clean(a, 306); }
static int clean_topics(struct admin *a) { return clean(a, 316); }
static int clean_log(struct admin *a) { return clean(a, 329); }

/* ---- brokerConsumeStats ---------------------------------------------------------------------------------------------- */

struct consumed {
	const char *topic, *group, *broker;
	int64_t queue, broker_off, consumer_off, last_ms;
};
struct consumed_list {
	struct consumed *v;
	size_t n, cap;
	json_t *keys;           /* the queues that the texts of v belong to */
};

static int by_place(const void *x, const void *y)
{
	const struct consumed *a = x, *b = y;
	int c = strcmp(a->group, b->group);
	if (c == 0)
		c = strcmp(a->topic, b->topic);
	if (c == 0)
		c = strcmp(a->broker, b->broker);
	return c ? c : (a->queue > b->queue) - (a->queue < b->queue);
}

static void add_consumed(struct consumed_list *l, const char *group, const json_t *stats)
{
	const char *key;
	json_t *v;
	json_object_foreach(json_object_get(stats, "offsetTable"), key, v) {
		json_t *q = admin_queue_key(key);
		json_array_append_new(l->keys, q);
		if (l->n == l->cap) {
			l->cap = l->cap ? l->cap * 2 : 64;
			l->v = realloc(l->v, l->cap * sizeof *l->v);
			if (!l->v)
				cli_die(CLI_SYSTEM, "out of memory");
		}
		l->v[l->n++] = (struct consumed){ admin_text(q, "topic", ""), group, admin_text(q, "brokerName", ""),
			admin_i64(q, "queueId", 0),
			admin_i64(v, "brokerOffset", 0), admin_i64(v, "consumerOffset", 0), admin_i64(v, "lastTimestamp", 0) };
	}
}

static int broker_consume_stats(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Topic", "topic" }, { "#Group", "group" }, { "#Broker Name", "broker" }, { "#QID", "queue" },
		{ "#Broker Offset", "brokerOffset" }, { "#Consumer Offset", "consumerOffset" },
		{ "#Diff", "diff" }, { "#LastTime", "lastTime" },
	};
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	struct consumed_list l = { .keys = json_array() };
	int64_t level = admin_int(a, "level", 0, 0, INT64_MAX);
	const char *group;
	json_t *groups, *list, *stats;
	size_t i, k;

	a->timeout_ms = (int32_t)admin_int(a, "timeoutMillis", a->timeout_ms > 50000 ? a->timeout_ms : 50000, 1, INT32_MAX);
	admin_field(&f, "isOrder", admin_bool(a, "order", false) ? "true" : "false");
	admin_ask(a, admin_opt(a, "brokerAddr"), 317, &f, no_body, NULL, &ans);
	json_t *o = admin_json(&ans);
	json_array_foreach(json_object_get(o, "consumeStatsList"), i, groups)
		json_object_foreach(groups, group, list)
			json_array_foreach(list, k, stats)
				add_consumed(&l, group, stats);
	if (l.n)
		qsort(l.v, l.n, sizeof *l.v, by_place);
	struct show *s = show_rows(a->format, cols, 8);
	for (i = 0; i < l.n; i++) {
		int64_t diff = l.v[i].broker_off - l.v[i].consumer_off;
		/* As mqadmin: queues that the group has not begun are left out. */
		if (diff < level || l.v[i].last_ms <= 0)
			continue;
		show_cstr(s, l.v[i].topic);
		show_cstr(s, l.v[i].group);
		show_cstr(s, l.v[i].broker);
		show_i64(s, l.v[i].queue);
		show_i64(s, l.v[i].broker_off);
		show_i64(s, l.v[i].consumer_off);
		show_i64(s, diff);
		show_time(s, l.v[i].last_ms);
	}
	show_close(s);
	if (a->format == SHOW_TABLE)
		printf("\nDiff Total: %lld\n", (long long)admin_i64(o, "totalDiff", 0));
	json_decref(o);
	json_decref(l.keys);
	free(l.v);
	return CLI_OK;
}

/* ---- haStatus -------------------------------------------------------------------------------------------------------- */

static void ha_number(struct show *s, const char *key, const json_t *o, const char *member)
{
	show_key(s, key);
	show_i64(s, admin_i64(o, member, 0));
}

/* Who was turned away, as our broker says. */
static void ha_refused(struct admin *a, json_t *list)
{
	static const struct show_col cols[] = {
		{ "#RefusedAddr", "addr" }, { "#Times", "times" }, { "#Last", "last" }, { "#Reason", "reason" },
	};
	json_t *c;
	size_t i;
	if (!json_array_size(list))
		return;
	struct show *s = show_rows(a->format, cols, 4);
	json_array_foreach(list, i, c) {
		show_cstr(s, admin_text(c, "addr", NULL));
		show_i64(s, admin_i64(c, "times", 0));
		show_time(s, admin_i64(c, "lastTimestamp", 0));
		show_cstr(s, admin_text(c, "reason", NULL));
	}
	show_close(s);
}

static void ha_master(struct admin *a, const char *addr, json_t *o)
{
	static const struct show_col cols[] = {
		{ "#SlaveAddr", "addr" }, { "#SlaveAckOffset", "ackOffset" }, { "#Diff", "diff" },
		{ "#TransferSpeed(KB/s)", "kilobytesPerSecond" },
		{ "#InSync", "inSync" }, { "#TransferFromWhere", "from" },
	};
	json_t *slaves = json_object_get(o, "haConnectionInfo"), *c;
	size_t i;
	struct show *s = show_record(a->format);
	show_key(s, "masterAddr");
	show_cstr(s, addr);
	ha_number(s, "masterCommitLogMaxOffset", o, "masterCommitLogMaxOffset");
	show_key(s, "slaves");
	show_i64(s, (int64_t)json_array_size(slaves));
	ha_number(s, "inSyncSlaves", o, "inSyncSlaveNums");
	show_close(s);
	s = json_array_size(slaves) ? show_rows(a->format, cols, 6) : NULL;
	json_array_foreach(slaves, i, c) {
		show_cstr(s, admin_text(c, "addr", NULL));
		show_i64(s, admin_i64(c, "slaveAckOffset", 0));
		show_i64(s, admin_i64(c, "diff", 0));
		show_double(s, (double)admin_i64(c, "transferredByteInSecond", 0) / 1024, 2);
		show_bool(s, json_is_true(json_object_get(c, "inSync")));
		show_i64(s, admin_i64(c, "transferFromWhere", 0));
	}
	if (s)
		show_close(s);
	ha_refused(a, json_object_get(o, "refused"));
}

static void ha_slave(struct admin *a, json_t *o)
{
	struct show *s = show_record(a->format);
	show_key(s, "masterAddr");
	show_cstr(s, admin_text(o, "masterAddr", NULL));
	if (json_object_get(o, "state")) { /* our broker's */
		show_key(s, "state");
		show_cstr(s, admin_text(o, "state", NULL));
		show_key(s, "lastError");
		show_cstr(s, admin_text(o, "lastError", NULL));
	}
	ha_number(s, "commitLogMaxOffset", o, "maxOffset");
	ha_number(s, "bytesPerSecond", o, "transferredByteInSecond");
	show_key(s, "lastReadTime");
	show_time(s, admin_i64(o, "lastReadTimestamp", 0));
	show_key(s, "lastWriteTime");
	show_time(s, admin_i64(o, "lastWriteTimestamp", 0));
	ha_number(s, "masterFlushOffset", o, "masterFlushOffset");
	show_close(s);
}

static int ha_status(struct admin *a)
{
	static struct admin_brokers targets;
	int64_t every = admin_int(a, "interval", 0, 1, 86400);
	do {
		admin_targets(a, &targets);
		for (size_t i = 0; i < targets.n; i++) {
			struct mqclient_answer ans;
			admin_ask(a, targets.b[i].addr, 907, NULL, no_body, NULL, &ans);
			json_t *o = admin_json(&ans);
			if (a->format == SHOW_JSON)
				admin_dump(o);
			else if (json_is_true(json_object_get(o, "master")))
				ha_master(a, targets.b[i].addr, o);
			else
				ha_slave(a, json_object_get(o, "haClientRuntimeInfo"));
			json_decref(o);
		}
		admin_brokers_free(&targets);
		if (cli_flush() < 0)
			return CLI_SYSTEM;
		if (every)
			sleep((unsigned)every);
	} while (every);
	return CLI_OK;
}

static const struct command_opt status_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "every master of this cluster" },
	{ 0 },
};
static const struct command_opt get_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "of this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "of every broker of this cluster" },
	{ 0 },
};
static const struct command_opt update_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "of this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "of every master of this cluster" },
	{ 'a', "updateAllBroker", "BOOL", false, "with -c: of the slaves too" },
	{ 'k', "key", "KEY", true, "the key" },
	{ 'v', "value", "VALUE", true, "its new value" },
	{ 0 },
};
static const struct command_opt clean_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "this broker" },
	{ 'c', "cluster", "CLUSTER", false, "every master of this cluster (all clusters)" },
	ADMIN_DRY_RUN,
	{ 0 },
};
static const struct command_opt consume_opts[] = {
	{ 'b', "brokerAddr", "ADDR", true, "this broker" },
	{ 't', "timeoutMillis", "MS", false, "give up after this long (50000)" },
	{ 'l', "level", "N", false, "only queues that are at least so far behind (0)" },
	{ 'o', "order", "BOOL", false, "only topics in order (false)" },
	{ 0 },
};
static const struct command_opt ha_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "every master of this cluster" },
	{ 'i', "interval", "SECONDS", false, "again and again" },
	{ 0 },
};

const struct command broker_commands[] = {
	{ "brokerStatus", status_opts, broker_status, COMMAND_CLUSTER, "counters and state of a broker" },
	{ "getBrokerConfig", get_opts, get_broker_config, COMMAND_CLUSTER, "configuration of a broker" },
	{ "updateBrokerConfig", update_opts, update_broker_config, COMMAND_CLUSTER, "change a key of a broker's configuration" },
	{ "brokerConsumeStats", consume_opts, broker_consume_stats, COMMAND_CLUSTER, "how far all groups of a broker are behind" },
	{ "haStatus", ha_opts, ha_status, COMMAND_CLUSTER, "a broker and its replicas" },
	{ "cleanExpiredCQ", clean_opts, clean_queues, COMMAND_CLUSTER, "remove queues whose messages are all gone" },
	{ "cleanUnusedTopic", clean_opts, clean_topics, COMMAND_CLUSTER, "remove queues of topics that are not there" },
	{ "deleteExpiredCommitLog", clean_opts, clean_log, COMMAND_CLUSTER, "remove segments past their time now" },
	{ 0 },
};
