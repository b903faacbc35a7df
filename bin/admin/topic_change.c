/* topic_change.c: topics made, changed and deleted; which of them are in order. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

static const struct mq_str no_body = { NULL, 0 };

/* ---- updateTopic ----------------------------------------------------------------------------------------------------- */

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
	for (const char *const *ns = admin_nameservers(a); *ns; ns++)
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

/* ---- updateTopicPerm ------------------------------------------------------------------------------------------------- */

/* What the broker has for the topic; NULL if it has none. */
static json_t *topic_config(struct admin *a, const char *addr, const char *topic)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "topic", topic);
	admin_field(&f, "lo", "false");
	return admin_ask(a, addr, 351, &f, no_body, (const int[]){ 17, 0 }, &ans) ? NULL : admin_json(&ans);
}

/* Code 17 with what stands in a TopicConfig; attributes NULL: as they are. */
static void put_topic(struct admin *a, const char *addr, const json_t *t, const char *attributes)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	char num[4][24];
	admin_field(&f, "topic", admin_text(t, "topicName", ""));
	admin_field(&f, "defaultTopic", "TBW102");
	admin_field_int(&f, "readQueueNums", admin_i64(t, "readQueueNums", 16), num[0]);
	admin_field_int(&f, "writeQueueNums", admin_i64(t, "writeQueueNums", 16), num[1]);
	admin_field_int(&f, "perm", admin_i64(t, "perm", 6), num[2]);
	admin_field(&f, "topicFilterType", admin_text(t, "topicFilterType", "SINGLE_TAG"));
	admin_field_int(&f, "topicSysFlag", admin_i64(t, "topicSysFlag", 0), num[3]);
	admin_field(&f, "order", json_is_true(json_object_get(t, "order")) ? "true" : "false");
	admin_field(&f, "attributes", attributes);
	admin_ask(a, addr, 17, &f, no_body, NULL, &ans);
}

/* compat: mqadmin 5.2.0 gives every broker the queue numbers of the first one in the route and takes `order` away. */
static int update_topic_perm(struct admin *a)
{
	static struct admin_brokers targets;
	const char *topic = admin_opt(a, "topic");
	int64_t perm = admin_int(a, "perm", 6, 2, 6);
	size_t changed = 0;
	if (perm != 2 && perm != 4 && perm != 6)
		admin_usage(a, "--perm: %lld is none of 2 (write), 4 (read), 6 (both)", (long long)perm);
	admin_targets(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		json_t *t = topic_config(a, targets.b[i].addr, topic);
		int64_t old = admin_i64(t, "perm", 0);
		if (!t)
			continue;
		changed++;
		if (old == perm) {
			cli_warn("updateTopicPerm: %s: new perm equals to the old one", targets.b[i].addr);
		} else {
			json_object_set_new(t, "perm", json_integer(perm));
			put_topic(a, targets.b[i].addr, t, NULL);
			printf("update topic perm from %lld to %lld in %s success.\n", (long long)old, (long long)perm, targets.b[i].addr);
		}
		json_decref(t);
	}
	admin_brokers_free(&targets);
	if (!changed)
		cli_die(CLI_NONE, "updateTopicPerm: no topic '%s' there", topic);
	return CLI_OK;
}

/* ---- updateTopicList ------------------------------------------------------------------------------------------------- */

/* {"+k":"v","-k":""} as "+k=v,-k". */
static char *attributes_text(struct admin *a, const json_t *t)
{
	static char text[4096];
	const char *key;
	json_t *v;
	size_t n = 0;
	text[0] = 0;
	json_object_foreach(json_object_get(t, "attributes"), key, v) {
		const char *value = json_string_value(v);
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%s%s", n ? "," : "", key, *key == '+' ? "=" : "",
		                      *key == '+' && value ? value : "");
		if (n >= sizeof text)
			admin_usage(a, "the attributes of topic '%s' are too many", admin_text(t, "topicName", ""));
	}
	return n ? text : NULL;
}

/* compat: brokers before 5.3 do not know the request for a list: each topic is asked for by itself. */
static int update_topic_list(struct admin *a)
{
	static struct admin_brokers targets;
	json_t *list = admin_list_file(a, "topicName", mq_check_topic), *t;
	size_t k;
	admin_targets(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		json_array_foreach(list, k, t) {
			put_topic(a, targets.b[i].addr, t, attributes_text(a, t));
			printf("create topic [%s] to %s success.\n", admin_text(t, "topicName", ""), targets.b[i].addr);
		}
	}
	admin_brokers_free(&targets);
	json_decref(list);
	return CLI_OK;
}

/* ---- deleteTopic ----------------------------------------------------------------------------------------------------- */

void topic_delete(struct admin *a, const char *topic, const char *cluster)
{
	static struct admin_brokers all;
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	bool dry = admin_dry_run(a);

	admin_cluster(a, cluster, &all);
	admin_field(&f, "topic", topic);
	for (size_t i = 0; i < all.n; i++) {
		if (all.b[i].id != 0)
			continue;
		if (dry)
			printf("would delete topic [%s] from broker [%s].\n", topic, all.b[i].addr);
		else
			admin_ask(a, all.b[i].addr, 215, &f, no_body, NULL, &ans);
	}
	admin_brokers_free(&all);
	if (!dry)
		printf("delete topic [%s] from cluster [%s] success.\n", topic, cluster);
	admin_field(&f, "clusterName", cluster);
	for (const char *const *ns = admin_nameservers(a); *ns; ns++) {
		if (dry)
			printf("would delete topic [%s] from name server [%s].\n", topic, *ns);
		else
			admin_ask(a, *ns, 216, &f, no_body, NULL, &ans);
	}
	if (!dry)
		printf("delete topic [%s] from NameServer success.\n", topic);
}

static int delete_topic(struct admin *a)
{
	topic_delete(a, admin_opt(a, "topic"), admin_opt(a, "clusterName"));
	return CLI_OK;
}

/* ---- updateOrderConf ------------------------------------------------------------------------------------------------- */

static void order_value(struct admin *a, const char *topic)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "namespace", "ORDER_TOPIC_CONFIG");
	admin_field(&f, "key", topic);
	if (admin_ask(a, NULL, 101, &f, no_body, (const int[]){ 22, 0 }, &ans))
		cli_die(CLI_NONE, "updateOrderConf: topic '%s' has no order configuration", topic);
	const struct mqclient_field *v = admin_answer_field(&ans, "value");
	printf("get orderConf success. topic=[%s], orderConf=[" MQ_STR_FMT "]\n", topic, MQ_STR_ARG(v ? v->value : no_body));
}

static int update_order_conf(struct admin *a)
{
	const char *topic = admin_opt(a, "topic"), *conf = admin_opt(a, "orderConf"), *method = admin_opt(a, "method");
	bool put = strcmp(method, "put") == 0, delete = strcmp(method, "delete") == 0;
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	if (!put && !delete && strcmp(method, "get") != 0)
		admin_usage(a, "--method: '%s' is none of put, get, delete", method);
	if (put && (!conf || !*conf))
		admin_usage(a, "please set orderConf with option -v, such as broker-a:8;broker-b:8");
	if (!put && !delete) {
		order_value(a, topic);
		return CLI_OK;
	}
	admin_field(&f, "namespace", "ORDER_TOPIC_CONFIG");
	admin_field(&f, "key", topic);
	if (put)
		admin_field(&f, "value", conf);
	for (const char *const *ns = admin_nameservers(a); *ns; ns++) {
		if (delete && admin_dry_run(a))
			printf("would delete orderConf of topic [%s] from name server [%s].\n", topic, *ns);
		else
			admin_ask(a, *ns, put ? 100 : 102, &f, no_body, NULL, &ans);
	}
	if (put)
		printf("update orderConf success. topic=[%s], orderConf=[%s]\n", topic, conf);
	else if (!admin_dry_run(a))
		printf("delete orderConf success. topic=[%s]\n", topic);
	return CLI_OK;
}

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
	ADMIN_DRY_RUN,
	{ 0 },
};

static const struct command_opt perm_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'b', "brokerAddr", "ADDR", false, "on this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "on every master of this cluster" },
	{ 'p', "perm", "2|4|6", true, "2 write, 4 read, 6 both" },
	{ 0 },
};
static const struct command_opt topic_list_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "on this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "on every master of this cluster" },
	{ 'f', "filename", "FILE", true, "JSON: a list of topic configurations; - is standard input" },
	{ 0 },
};
static const struct command_opt order_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'm', "method", "put|get|delete", true, "what to do" },
	{ 'v', "orderConf", "BROKER:N;...", false, "queues of each broker" },
	ADMIN_DRY_RUN,
	{ 0 },
};

const struct command topic_change_commands[] = {
	{ "updateTopic", update_opts, update_topic, COMMAND_CLUSTER, "create or change a topic" },
	{ "updateTopicPerm", perm_opts, update_topic_perm, COMMAND_CLUSTER, "change who may read and write a topic" },
	{ "updateTopicList", topic_list_opts, update_topic_list, COMMAND_CLUSTER, "create or change the topics of a file" },
	{ "deleteTopic", delete_opts, delete_topic, COMMAND_CLUSTER, "delete a topic from brokers and name servers" },
	{ "updateOrderConf", order_opts, update_order_conf, COMMAND_CLUSTER, "list a topic as ordered, or no longer" },
	{ 0 },
};
