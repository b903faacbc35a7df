/* tree_topic.c: topics: which there are, settings, route, made and deleted. */
#include "answer.h"
#include "cluster.h"
#include "fail.h"
#include "keyvalue.h"
#include "options.h"
#include "task.h"
#include "tree_nodes.h"
#include "when.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which there are --------------------------------------------------------------------------------------------- */

/* What servers keep for themselves: peer, TopicValidator and NamespaceUtil. */
static bool is_system(const char *t)
{
	static const char *const names[] = { "TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "OFFSET_MOVED_EVENT", "SELF_TEST_TOPIC",
	                                     "DefaultCluster", "DefaultHeartBeatSyncerTopic", NULL };
	static const char *const begins[] = { "%RETRY%", "%DLQ%", "RMQ_SYS_", "rmq_sys_", "TRANS_CHECK_MAX_TIME_TOPIC", NULL };
	size_t n = strlen(t);

	for (const char *const *p = names; *p; p++)
		if (strcmp(*p, t) == 0)
			return true;
	for (const char *const *p = begins; *p; p++)
		if (strncmp(*p, t, strlen(*p)) == 0)
			return true;
	return n > 12 && strcmp(t + n - 12, "_REPLY_TOPIC") == 0;
}

/* A topic with the name of a broker or a cluster is theirs. */
static bool is_broker(const char *t)
{
	const struct cluster_brokers *b;

	if (!source->cluster || cluster_brokers(&b))
		return false;
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->v[i].name, t) == 0 || strcmp(b->v[i].cluster, t) == 0)
			return true;
	return false;
}

int topic_names(struct node *dir, struct names *out)
{
	struct names all;
	int rc = source->topics(&all);

	for (size_t i = 0; rc == 0 && i < all.n; i++)
		if (options.system || (!is_system(all.v[i]) && !is_broker(all.v[i])))
			names_add(out, all.v[i]);
	names_free(&all);
	return rc;
}

int topic_find(struct node *dir, const char *name) { return source->has_topic(name); }

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

/* The settings at one broker; NULL with *rc. */
static json_t *config_at(const char *addr, const char *topic, int *rc)
{
	struct question q = { .code = 351 };
	struct answer a;
	json_t *o;

	question_str(&q, "topic", topic);
	question_bool(&q, "lo", false);
	answer_ask(addr, &q, &a);
	*rc = answer_rc(&a, topic, NULL);
	o = *rc ? NULL : answer_json(&a);
	if (!*rc && !json_is_object(o))
		*rc = -EPROTO;
	answer_free(&a);
	/* Java has more in this answer than a topic has. */
	json_object_del(o, "mappingDetail");
	json_object_del(o, "topicQueueMappingDetail");
	return o;
}

/* Those of the first broker by name; where another differs a comment says so. */
int topic_config(struct node *n, struct bytes *out)
{
	const char *topic = tree_name(n, K_TOPIC);
	struct cluster_route_queue *route;
	json_t *first = NULL, *o;
	size_t count;
	int rc = cluster_route(topic, &route, &count);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		o = config_at(route[i].addr, topic, &rc);
		if (rc)
			break;
		if (!first) {
			keyvalue_text(o, out);
			first = json_incref(o);
		} else if (!json_equal(o, first)) {
			char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
			bytes_printf(out, "# broker %s: ", route[i].broker);
			bytes_str(out, text ? text : "");
			bytes_byte(out, '\n');
			free(text);
		}
		json_decref(o);
	}
	json_decref(first);
	free(route);
	return rc;
}

/* "+key=value,-key": from the attributes that were to those that shall be. */
static void attributes_text(const json_t *was, const json_t *now, struct bytes *out)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)now, key, v)
		if (!json_equal(v, json_object_get(was, key)) && json_is_string(v))
			bytes_printf(out, "%s+%s=%s", out->n ? "," : "", key, json_string_value(v));
	json_object_foreach((json_t *)was, key, v)
		if (!json_object_get(now, key))
			bytes_printf(out, "%s-%s", out->n ? "," : "", key);
	bytes_byte(out, '\0');
}

/* Create or change it: request 17. */
static int put(const char *addr, const char *topic, const json_t *o, const char *attributes)
{
	struct question q = { .code = 17 };
	struct answer a;
	int rc;

	question_str(&q, "topic", topic);
	question_str(&q, "defaultTopic", "TBW102");
	question_int(&q, "readQueueNums", member_i64(o, "readQueueNums", 8));
	question_int(&q, "writeQueueNums", member_i64(o, "writeQueueNums", 8));
	question_int(&q, "perm", member_i64(o, "perm", 6));
	question_str(&q, "topicFilterType", member_text(o, "topicFilterType", "SINGLE_TAG"));
	question_int(&q, "topicSysFlag", member_i64(o, "topicSysFlag", 0));
	question_bool(&q, "order", json_is_true(json_object_get(o, "order")));
	if (attributes && *attributes)
		question_str(&q, "attributes", attributes);
	answer_ask(addr, &q, &a);
	rc = answer_rc(&a, topic, NULL);
	answer_free(&a);
	return rc;
}

static int change_at(const char *addr, const char *topic, struct mq_str text)
{
	struct bytes attributes = { 0 };
	int rc;
	json_t *o = config_at(addr, topic, &rc), *was = json_deep_copy(o);

	if (rc == 0)
		rc = keyvalue_apply(o, text, topic);
	if (rc > 0 && strcmp(member_text(o, "topicName", topic), topic) != 0)
		rc = fail(-EINVAL, "%s: topicName: a topic cannot be renamed", topic);
	if (rc > 0) {
		attributes_text(json_object_get(was, "attributes"), json_object_get(o, "attributes"), &attributes);
		rc = put(addr, topic, o, attributes.p);
	}
	bytes_free(&attributes);
	json_decref(was);
	json_decref(o);
	return rc;
}

int topic_set_config(struct node *n, struct mq_str text)
{
	const char *topic = tree_name(n, K_TOPIC);
	struct cluster_route_queue *route;
	size_t count;
	int rc = cluster_route(topic, &route, &count);

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = change_at(route[i].addr, topic, text);
	free(route);
	cluster_changed();
	return rc;
}

/* ---- Route and queues -------------------------------------------------------------------------------------------- */

int topic_route(struct node *n, struct bytes *out)
{
	char *text;
	json_t *o;
	int rc = cluster_route_text(tree_name(n, K_TOPIC), &text);

	if (rc)
		return rc;
	o = json_loads(text, 0, NULL);
	free(text);
	text = json_dumps(o, JSON_INDENT(2) | JSON_SORT_KEYS);
	bytes_str(out, text ? text : "{}");
	bytes_byte(out, '\n');
	free(text);
	json_decref(o);
	return 0;
}

int topic_stats(struct node *n, struct bytes *out)
{
	struct queue_states s;
	char when[40];
	int rc = source->queues(tree_name(n, K_TOPIC), &s);

	if (rc)
		return rc;
	for (size_t i = 0; i < s.n; i++)
		bytes_printf(out, "%s:%d\t%lld\t%lld\t%s\n", s.v[i].q.broker, s.v[i].q.id, (long long)s.v[i].min, (long long)s.v[i].max,
		             s.v[i].last_ms > 0 ? when_text(s.v[i].last_ms, when, sizeof(when)) : "-");
	queue_states_free(&s);
	return 0;
}

int topic_tail(struct node *n, struct bytes *out)
{
	bytes_printf(out, "../../.streams/tail/%s", tree_name(n, K_TOPIC));
	return 0;
}

/* ---- Made and deleted -------------------------------------------------------------------------------------------- */

enum { ROUTE_TRIES = 20 };

int topic_make(struct node *dir, const char *topic)
{
	struct mq_error err;
	json_t *empty;
	char **addrs;
	size_t n;
	int rc;

	if (mq_check_topic((struct mq_str){ topic, strlen(topic) }, &err) < 0)
		return fail(-EINVAL, "%s", err.text);
	rc = source->has_topic(topic);
	if (rc != -ENOENT)
		return rc ? rc : -EEXIST;
	rc = cluster_masters(&addrs, &n);
	if (rc)
		return rc;
	empty = json_object();
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = put(addrs[i], topic, empty, NULL);
	json_decref(empty);
	cluster_masters_free(addrs, n);
	/* Brokers tell the name servers; it takes them a moment. */
	for (int i = 0; rc == 0 && i < ROUTE_TRIES; i++) {
		cluster_changed();
		rc = source->has_topic(topic);
		if (rc != -ENOENT || i + 1 == ROUTE_TRIES)
			break;
		rc = 0;
		task_sleep(50);
	}
	return rc;
}

int topic_remove(struct node *dir, const char *topic)
{
	struct question q = { .code = 215 };
	struct answer a;
	char **addrs;
	size_t n;
	int rc = cluster_masters(&addrs, &n);

	question_str(&q, "topic", topic);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		answer_ask(addrs[i], &q, &a);
		rc = answer_rc(&a, topic, NULL);
		answer_free(&a);
	}
	cluster_masters_free(addrs, n);
	q.code = 216;
	for (const char *const *ns = mqclient_nameservers(cluster_client()); rc == 0 && *ns; ns++) {
		char to[300];
		size_t at = (size_t)(ns - mqclient_nameservers(cluster_client()));
		snprintf(to, sizeof(to), "%s", *ns);
		answer_ask(to, &q, &a);
		rc = answer_rc(&a, topic, NULL);
		answer_free(&a);
		/* The list lives until the loop turns, which it did. */
		ns = mqclient_nameservers(cluster_client()) + at;
	}
	cluster_changed();
	message_drop_all();
	return rc;
}
