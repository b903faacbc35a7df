/* body_group.c: group configurations, tables of them, lists of names. */
#include "body_group.h"
#include "../base/str.h"

#include <stdlib.h>

/* ---- SubscriptionGroupConfig ------------------------------------------------------------------------------------- */

#define RETRY_POLICY_DEFAULT "{\"type\":\"CUSTOMIZED\"}"

void body_group_init(struct body_group *g, struct mq_str name)
{
	*g = (struct body_group){
		.name = name,
		.consume = true,
		.consume_from_min = true,
		.consume_broadcast = true,
		.notify_ids_changed = true,
		.retry_queues = 1,
		.retry_max = 16,
		.broker_when_slow = 1,
		.timeout_minutes = 15,
	};
}

/* A member as JSON text; p == NULL: absent. */
static struct mq_str json_member_text(struct body_keep *k, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	struct mq_str copy = { NULL, 0 };
	char *text;

	if (!v || json_is_null(v))
		return copy;
	text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	copy = body_copy(k, str_of(text));
	free(text);
	return copy;
}

void body_group_get(struct body_keep *k, const json_t *o, struct body_group *g)
{
	struct body_group d;

	body_group_init(&d, (struct mq_str){ NULL, 0 });
	*g = (struct body_group){
		.name = json_str(o, "groupName"),
		.consume = json_bool(o, "consumeEnable", d.consume),
		.consume_from_min = json_bool(o, "consumeFromMinEnable", d.consume_from_min),
		.consume_broadcast = json_bool(o, "consumeBroadcastEnable", d.consume_broadcast),
		.orderly = json_bool(o, "consumeMessageOrderly", d.orderly),
		.notify_ids_changed = json_bool(o, "notifyConsumerIdsChangedEnable", d.notify_ids_changed),
		.retry_queues = body_i32(o, "retryQueueNums", d.retry_queues),
		.retry_max = body_i32(o, "retryMaxTimes", d.retry_max),
		.broker_id = json_i64(o, "brokerId", d.broker_id),
		.broker_when_slow = json_i64(o, "whichBrokerWhenConsumeSlowly", d.broker_when_slow),
		.sys_flag = body_i32(o, "groupSysFlag", d.sys_flag),
		.timeout_minutes = body_i32(o, "consumeTimeoutMinute", d.timeout_minutes),
		.retry_policy = json_member_text(k, o, "groupRetryPolicy"),
		.subscriptions = json_member_text(k, o, "subscriptionDataSet"),
	};
	g->nattrs = body_pairs_get(k, json_object_at(o, "attributes"), &g->attr);
}

void body_group_put(struct json_out *o, const struct body_group *g)
{
	json_open(o, '{');
	body_pairs_put(o, "attributes", g->attr, g->nattrs);
	json_member_i64(o, "brokerId", g->broker_id);
	json_member_bool(o, "consumeBroadcastEnable", g->consume_broadcast);
	json_member_bool(o, "consumeEnable", g->consume);
	json_member_bool(o, "consumeFromMinEnable", g->consume_from_min);
	json_member_bool(o, "consumeMessageOrderly", g->orderly);
	json_member_i64(o, "consumeTimeoutMinute", g->timeout_minutes);
	json_member_str(o, "groupName", g->name);
	json_key(o, "groupRetryPolicy");
	json_put_raw(o, g->retry_policy.p ? g->retry_policy : MQ_STR(RETRY_POLICY_DEFAULT));
	json_member_i64(o, "groupSysFlag", g->sys_flag);
	json_member_bool(o, "notifyConsumerIdsChangedEnable", g->notify_ids_changed);
	json_member_i64(o, "retryMaxTimes", g->retry_max);
	json_member_i64(o, "retryQueueNums", g->retry_queues);
	if (g->subscriptions.p) {
		json_key(o, "subscriptionDataSet");
		json_put_raw(o, g->subscriptions);
	}
	json_member_i64(o, "whichBrokerWhenConsumeSlowly", g->broker_when_slow);
	json_close(o, '}');
}

int body_group_decode(struct mq_str body, struct body_group_one *g, struct mq_error *e)
{
	int rc;

	*g = (struct body_group_one){ 0 };
	rc = body_parse(&g->keep, body, "group config", e);
	if (rc)
		return rc;
	body_group_get(&g->keep, g->keep.json, &g->group);
	return 0;
}

void body_group_encode(const struct body_group *g, struct buf *out)
{
	struct json_out o = json_to(out);

	body_group_put(&o, g);
}

void body_group_free(struct body_group_one *g)
{
	body_free(&g->keep);
}

/* ---- SubscriptionGroupWrapper ------------------------------------------------------------------------------------ */

static void forbidden_get(struct body_group_table *t, json_t *table)
{
	const char *group, *topic;
	json_t *topics, *value;
	size_t n = 0;

	json_object_foreach(table, group, topics)
		n += json_object_size(topics);
	t->forbidden = body_alloc(&t->keep, n * sizeof(*t->forbidden));
	json_object_foreach(table, group, topics)
		json_object_foreach(topics, topic, value)
			t->forbidden[t->nforbidden++] = (struct body_forbidden){ str_of(group), str_of(topic),
			                                                         body_i32(topics, topic, 0) };
}

int body_group_table_decode(struct mq_str body, struct body_group_table *t, struct mq_error *e)
{
	json_t *groups, *one;
	const char *key;
	int rc;

	*t = (struct body_group_table){ 0 };
	rc = body_parse(&t->keep, body, "group table", e);
	if (rc)
		return rc;
	body_version_get(json_object_at(t->keep.json, "dataVersion"), &t->version);
	groups = json_object_at(t->keep.json, "subscriptionGroupTable");
	t->group = body_alloc(&t->keep, body_size(groups) * sizeof(*t->group));
	json_object_foreach(groups, key, one) {
		struct body_group *g = &t->group[t->n];

		if (!json_is_object(one))
			continue;
		body_group_get(&t->keep, one, g);
		if (!g->name.p)
			g->name = str_of(key);
		t->n++;
	}
	forbidden_get(t, json_object_at(t->keep.json, "forbiddenTable"));
	return 0;
}

void body_group_table_encode(const struct body_group_table *t, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	body_version_put(&o, "dataVersion", &t->version);
	json_key(&o, "forbiddenTable");
	json_open(&o, '{');
	for (size_t i = 0; i < t->nforbidden; i++) {
		if (i == 0 || !str_eq(t->forbidden[i].group, t->forbidden[i - 1].group)) {
			if (i)
				json_close(&o, '}');
			json_key_str(&o, t->forbidden[i].group);
			json_open(&o, '{');
		}
		json_key_str(&o, t->forbidden[i].topic);
		json_put_i64(&o, t->forbidden[i].value);
	}
	if (t->nforbidden)
		json_close(&o, '}');
	json_close(&o, '}');
	json_key(&o, "subscriptionGroupTable");
	json_open(&o, '{');
	for (size_t i = 0; i < t->n; i++) {
		json_key_str(&o, t->group[i].name);
		body_group_put(&o, &t->group[i]);
	}
	json_close(&o, '}');
	json_close(&o, '}');
}

void body_group_table_free(struct body_group_table *t)
{
	body_free(&t->keep);
}

/* ---- GroupList --------------------------------------------------------------------------------------------------- */

int body_group_list_decode(struct mq_str body, struct body_group_list *l, struct mq_error *e)
{
	int rc;

	*l = (struct body_group_list){ 0 };
	rc = body_parse(&l->keep, body, "group list", e);
	if (rc)
		return rc;
	l->n = body_strings_get(&l->keep, json_array_at(l->keep.json, "groupList"), &l->group);
	return 0;
}

void body_group_list_encode(const struct body_group_list *l, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	body_strings_put(&o, "groupList", l->group, l->n);
	json_close(&o, '}');
}

void body_group_list_free(struct body_group_list *l)
{
	body_free(&l->keep);
}
