/* tree_group.c: consumer groups: which there are, settings, members, where they stand; what they gave up. */
#include "answer.h"
#include "cluster.h"
#include "fail.h"
#include "keyvalue.h"
#include "options.h"
#include "task.h"
#include "tree_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ask all masters; the first good answer is enough for `one`.  `cb` gets each good answer's JSON. */
typedef void each_cb(void *arg, const json_t *o);

static int ask_masters(const struct question *q, const char *what, const int *fine, each_cb *cb, void *arg)
{
	struct answer *a;
	char **addrs;
	size_t n;
	int rc = cluster_masters(&addrs, &n), one, good = 0;

	if (rc)
		return rc;
	a = calloc(n, sizeof(*a));
	if (!a) {
		cluster_masters_free(addrs, n);
		return -ENOMEM;
	}
	answer_ask_all((const char *const *)addrs, n, q, a);
	for (size_t i = 0; i < n; i++) {
		one = answer_rc(&a[i], what, fine);
		if (one) {
			rc = one;
		} else if (a[i].code == 0) {
			json_t *o = answer_json(&a[i]);
			good++;
			if (o && cb)
				cb(arg, o);
			json_decref(o);
		}
		answer_free(&a[i]);
	}
	free(a);
	cluster_masters_free(addrs, n);
	/* What one broker knows is there; what none knows is not, unless one did not say. */
	return good ? 0 : rc ? rc : -ENOENT;
}

/* ---- Which there are --------------------------------------------------------------------------------------------- */

/* What servers and tools use: peer, MixAll. */
static bool is_system(const char *g)
{
	static const char *const names[] = { "TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
	                                     "CID_ONSAPI_OWNER", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_PULL", "CID_HOUSEKEEPING", NULL };

	for (const char *const *p = names; *p; p++)
		if (strcmp(*p, g) == 0)
			return true;
	return strncmp(g, "CID_RMQ_SYS_", 12) == 0 || strncmp(g, "CID_DefaultHeartBeatSyncerTopic", 31) == 0;
}

static void take_groups(void *arg, const json_t *o)
{
	const char *name;
	json_t *v;

	json_object_foreach(json_object_get(o, "subscriptionGroupTable"), name, v)
		if (mq_check_group((struct mq_str){ name, strlen(name) }, NULL) == 0 && (options.system || !is_system(name)))
			names_add(arg, name);
}

int group_names(struct node *dir, struct names *out)
{
	struct question q = { .code = 201 };
	int rc = ask_masters(&q, "groups", NULL, take_groups, out);

	names_sort(out);
	return rc;
}

static void take_first(void *arg, const json_t *o)
{
	json_t **out = arg;

	if (!*out)
		*out = json_incref((json_t *)o);
}

/* Brokers say code 1 or 26 of a group that they do not know; one that makes groups by itself gives its defaults. */
static int config_of(const char *group, json_t **out)
{
	struct question q = { .code = 352 };

	*out = NULL;
	question_str(&q, "group", group);
	return ask_masters(&q, group, (const int[]){ 1, 26, 0 }, take_first, out);
}

int group_find(struct node *dir, const char *name)
{
	struct names all = { 0 };
	int rc;

	if (mq_check_group((struct mq_str){ name, strlen(name) }, NULL) < 0)
		return -ENOENT;
	if (is_system(name))
		return 0;
	rc = group_names(dir, &all);
	if (rc == 0 && !names_has(&all, name))
		rc = -ENOENT;
	names_free(&all);
	return rc;
}

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

int group_config(struct node *n, struct bytes *out)
{
	json_t *o;
	int rc = config_of(tree_name(n, K_GROUP), &o);

	if (rc == 0)
		keyvalue_text(o, out);
	json_decref(o);
	return rc;
}

static int put(const char *group, const json_t *o)
{
	struct question q = { .code = 200 };
	char *text = json_dumps(o, JSON_COMPACT);
	int rc;

	if (!text)
		return -ENOMEM;
	q.body = (struct mq_str){ text, strlen(text) };
	rc = ask_masters(&q, group, NULL, NULL, NULL);
	free(text);
	return rc;
}

int group_set_config(struct node *n, struct mq_str text)
{
	const char *group = tree_name(n, K_GROUP);
	json_t *o;
	int rc = config_of(group, &o);

	if (rc == 0)
		rc = keyvalue_apply(o, text, group);
	if (rc > 0 && strcmp(member_text(o, "groupName", group), group) != 0)
		rc = fail(-EINVAL, "%s: groupName: a group cannot be renamed", group);
	if (rc > 0)
		rc = put(group, o);
	json_decref(o);
	return rc;
}

int group_make(struct node *dir, const char *group)
{
	struct mq_error err;
	json_t *o;
	int rc;

	if (mq_check_group((struct mq_str){ group, strlen(group) }, &err) < 0)
		return fail(-EINVAL, "%s", err.text);
	rc = group_find(dir, group);
	if (rc != -ENOENT)
		return rc ? rc : -EEXIST;
	o = json_pack("{s:s, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:i, s:i, s:i}", "groupName", group, "consumeEnable", 1,
	              "consumeFromMinEnable", 1, "consumeBroadcastEnable", 1, "consumeMessageOrderly", 0,
	              "notifyConsumerIdsChangedEnable", 1, "retryQueueNums", 1, "retryMaxTimes", 16, "brokerId", 0,
	              "whichBrokerWhenConsumeSlowly", 1, "groupSysFlag", 0);
	rc = put(group, o);
	json_decref(o);
	return rc;
}

/* Its offsets go with it: a group that is made again under this name begins anew. */
int group_remove(struct node *dir, const char *group)
{
	struct question q = { .code = 207 };

	question_str(&q, "groupName", group);
	question_bool(&q, "cleanOffset", true);
	return ask_masters(&q, group, NULL, NULL, NULL);
}

/* ---- Members and progress ---------------------------------------------------------------------------------------- */

static void take_clients(void *arg, const json_t *o)
{
	json_t *c;
	size_t i;

	json_array_foreach(json_object_get(o, "connectionSet"), i, c)
		names_printf(arg, "%s\t%s\t%s", member_text(c, "clientId", ""), member_text(c, "clientAddr", ""),
		             member_text(c, "language", ""));
}

int group_clients(struct node *n, struct bytes *out)
{
	struct question q = { .code = 203 };
	struct names all = { 0 };
	int rc;

	question_str(&q, "consumerGroup", tree_name(n, K_GROUP));
	/* Code 1 or 206: nobody is online. */
	rc = ask_masters(&q, "clients", (const int[]){ 1, 206, 0 }, take_clients, &all);
	names_sort(&all);
	for (size_t i = 0; i < all.n; i++)
		bytes_printf(out, "%s\n", all.v[i]);
	names_free(&all);
	return rc == -ENOENT ? 0 : rc;
}

/* Rows "topic TAB broker:id TAB broker offset TAB consumer offset TAB lag"; sorted as text. */
static void take_progress(void *arg, const json_t *o)
{
	const char *key;
	json_t *v;

	json_object_foreach(json_object_get(o, "offsetTable"), key, v) {
		json_t *q = json_loads(key, 0, NULL);
		int64_t end = member_i64(v, "brokerOffset", 0), off = member_i64(v, "consumerOffset", 0);
		names_printf(arg, "%s\t%s:%lld\t%lld\t%lld\t%lld", member_text(q, "topic", ""), member_text(q, "brokerName", ""),
		             (long long)member_i64(q, "queueId", 0), (long long)end, (long long)off, (long long)(end - off));
		json_decref(q);
	}
}

static int progress(const char *group, struct names *out)
{
	struct question q = { .code = 208 };
	int rc;

	question_str(&q, "consumerGroup", group);
	rc = ask_masters(&q, "lag", (const int[]){ 17, 26, 0 }, take_progress, out);
	names_sort(out);
	return rc == -ENOENT ? 0 : rc;
}

int group_lag(struct node *n, struct bytes *out)
{
	struct names all = { 0 };
	int rc = progress(tree_name(n, K_GROUP), &all);

	for (size_t i = 0; rc == 0 && i < all.n; i++)
		bytes_printf(out, "%s\n", all.v[i]);
	names_free(&all);
	return rc;
}

/* ---- Offsets ----------------------------------------------------------------------------------------------------- */

/* Topics in which the group stands somewhere; not its own retry topic. */
int group_offset_topics(struct node *dir, struct names *out)
{
	struct names all = { 0 };
	int rc = progress(tree_name(dir, K_GROUP), &all);

	for (size_t i = 0; rc == 0 && i < all.n; i++) {
		all.v[i][strcspn(all.v[i], "\t")] = '\0';
		if (strncmp(all.v[i], "%RETRY%", 7) != 0)
			names_add(out, all.v[i]);
	}
	names_free(&all);
	names_sort(out);
	return rc;
}

int group_find_offset_topic(struct node *dir, const char *name) { return source->has_topic(name); }

int group_offsets(struct node *dir, struct names *out)
{
	struct queue_states s;
	int rc = source->queues(tree_name(dir, K_OFFSET_TOPIC), &s);

	for (size_t i = 0; rc == 0 && i < s.n; i++)
		names_printf(out, "%s:%d", s.v[i].q.broker, s.v[i].q.id);
	if (rc == 0)
		queue_states_free(&s);
	return rc;
}

int group_find_offset(struct node *dir, const char *name)
{
	struct queue_name q;

	return tree_queue_name(name, &q) ? source->has_queue(tree_name(dir, K_OFFSET_TOPIC), &q) : -ENOENT;
}

static int offset_question(struct node *n, int code, struct question *q, char addr[300])
{
	struct queue_name name;

	*q = (struct question){ .code = code };
	if (!tree_queue_name(n->name, &name))
		return -ENOENT;
	question_str(q, "consumerGroup", tree_name(n, K_GROUP));
	question_str(q, "topic", tree_name(n, K_OFFSET_TOPIC));
	question_int(q, "queueId", name.id);
	return cluster_addr(name.broker, 0, addr);
}

/* -1: the group stands nowhere in this queue. */
int group_offset(struct node *n, struct bytes *out)
{
	struct question q;
	struct answer a;
	char addr[300];
	int rc = offset_question(n, 14, &q, addr);

	if (rc)
		return rc;
	question_bool(&q, "setZeroIfNotFound", false);
	answer_ask(addr, &q, &a);
	rc = answer_rc(&a, "offset", (const int[]){ 22, 0 });
	if (rc == 0)
		bytes_printf(out, "%lld\n", a.code ? -1LL : (long long)a.offset);
	answer_free(&a);
	return rc;
}

/* The last line that is not blank counts, so that >> does what > does. */
static bool last_number(struct mq_str text, int64_t *v)
{
	char line[32];
	size_t n = text.n, from;

	while (n && strchr(" \t\r\n", text.p[n - 1]))
		n--;
	for (from = n; from && text.p[from - 1] != '\n'; from--)
		;
	while (from < n && strchr(" \t", text.p[from]))
		from++;
	if (n - from >= sizeof(line) || from == n)
		return false;
	memcpy(line, text.p + from, n - from);
	line[n - from] = '\0';
	return tree_offset(line, v);
}

int group_set_offset(struct node *n, struct mq_str text)
{
	struct question q;
	struct answer a;
	char addr[300];
	int64_t off;
	int rc;

	if (!last_number(text, &off))
		return fail(-EINVAL, "groups/%s/offsets: an offset is a number, 0 or more", tree_name(n, K_GROUP));
	rc = offset_question(n, 15, &q, addr);
	if (rc)
		return rc;
	question_int(&q, "commitOffset", off);
	answer_ask(addr, &q, &a);
	rc = answer_rc(&a, "offset", NULL);
	answer_free(&a);
	return rc;
}

/* ---- recv and dlq ------------------------------------------------------------------------------------------------ */

int group_find_recv(struct node *dir, const char *name) { return source->has_topic(name); }

int group_recv(struct node *n, struct bytes *out)
{
	bytes_printf(out, "../../../.streams/recv/%s@%s", tree_name(n, K_GROUP), n->name);
	return 0;
}

int group_dlqs(struct node *dir, struct names *out)
{
	struct names all;
	int rc = source->topics(&all);

	for (size_t i = 0; rc == 0 && i < all.n; i++)
		if (strncmp(all.v[i], "%DLQ%", 5) == 0)
			names_add(out, all.v[i] + 5);
	names_free(&all);
	return rc;
}

int group_find_dlq(struct node *dir, const char *name)
{
	char topic[300];

	snprintf(topic, sizeof(topic), "%%DLQ%%%s", name);
	return source->has_topic(topic);
}

int group_dlq(struct node *n, struct bytes *out)
{
	bytes_printf(out, "../topics/%%DLQ%%%s", n->name);
	return 0;
}
