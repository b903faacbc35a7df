/* body_topic.c: topic configurations, tables of them, lists of names. */
#include "body_topic.h"
#include "../base/str.h"

/* ---- TopicConfig ------------------------------------------------------------------------------------------------- */

static const char *const filter_types[] = { "SINGLE_TAG", "MULTI_TAG" };

void body_topic_get(struct body_keep *k, const json_t *o, struct body_topic *t)
{
	*t = (struct body_topic){
		.name = json_str(o, "topicName"),
		.read = body_i32(o, "readQueueNums", 16),
		.write = body_i32(o, "writeQueueNums", 16),
		.perm = body_i32(o, "perm", PERM_READ | PERM_WRITE),
		.sys_flag = body_i32(o, "topicSysFlag", 0),
		.order = json_bool(o, "order", false),
		.multi_tag = body_enum(o, "topicFilterType", filter_types, 2, 0) == 1,
	};
	t->nattrs = body_pairs_get(k, json_object_at(o, "attributes"), &t->attr);
}

void body_topic_put(struct json_out *o, const struct body_topic *t)
{
	json_open(o, '{');
	body_pairs_put(o, "attributes", t->attr, t->nattrs);
	json_member_bool(o, "order", t->order);
	json_member_i64(o, "perm", t->perm);
	json_member_i64(o, "readQueueNums", t->read);
	json_member_cstr(o, "topicFilterType", filter_types[t->multi_tag]);
	json_member_str(o, "topicName", t->name);
	json_member_i64(o, "topicSysFlag", t->sys_flag);
	json_member_i64(o, "writeQueueNums", t->write);
	json_close(o, '}');
}

int body_topic_decode(struct mq_str body, struct body_topic_one *t, struct mq_error *e)
{
	int rc;

	*t = (struct body_topic_one){ 0 };
	rc = body_parse(&t->keep, body, "topic config", e);
	if (rc)
		return rc;
	body_topic_get(&t->keep, t->keep.json, &t->topic);
	return 0;
}

void body_topic_encode(const struct body_topic *t, struct buf *out)
{
	struct json_out o = json_to(out);

	body_topic_put(&o, t);
}

void body_topic_free(struct body_topic_one *t)
{
	body_free(&t->keep);
}

/* ---- TopicConfigAndMappingSerializeWrapper ----------------------------------------------------------------------- */

void body_topic_table_get(struct body_keep *k, const json_t *o, struct body_topic_table *t)
{
	json_t *table = json_object_at(o, "topicConfigTable"), *one;
	const char *key;

	body_version_get(json_object_at(o, "dataVersion"), &t->version);
	body_version_get(json_object_at(o, "mappingDataVersion"), &t->mapping_version);
	t->topic = body_alloc(k, body_size(table) * sizeof(*t->topic));
	json_object_foreach(table, key, one) {
		struct body_topic *topic = &t->topic[t->n];

		if (!json_is_object(one))
			continue;
		body_topic_get(k, one, topic);
		if (!topic->name.p)
			topic->name = str_of(key);
		t->n++;
	}
}

void body_topic_table_put(struct json_out *o, const struct body_topic_table *t)
{
	json_open(o, '{');
	body_version_put(o, "dataVersion", &t->version);
	body_version_put(o, "mappingDataVersion", &t->mapping_version);
	json_key(o, "topicConfigTable");
	json_open(o, '{');
	for (size_t i = 0; i < t->n; i++) {
		json_key_str(o, t->topic[i].name);
		body_topic_put(o, &t->topic[i]);
	}
	json_close(o, '}');
	json_key(o, "topicQueueMappingDetailMap");
	json_put_raw(o, MQ_STR("{}"));
	json_key(o, "topicQueueMappingInfoMap");
	json_put_raw(o, MQ_STR("{}"));
	json_close(o, '}');
}

int body_topic_table_decode(struct mq_str body, struct body_topic_table *t, struct mq_error *e)
{
	int rc;

	*t = (struct body_topic_table){ 0 };
	rc = body_parse(&t->keep, body, "topic table", e);
	if (rc)
		return rc;
	body_topic_table_get(&t->keep, t->keep.json, t);
	return 0;
}

void body_topic_table_encode(const struct body_topic_table *t, struct buf *out)
{
	struct json_out o = json_to(out);

	body_topic_table_put(&o, t);
}

void body_topic_table_free(struct body_topic_table *t)
{
	body_free(&t->keep);
}

/* ---- TopicList --------------------------------------------------------------------------------------------------- */

int body_topic_list_decode(struct mq_str body, struct body_topic_list *l, struct mq_error *e)
{
	int rc;

	*l = (struct body_topic_list){ 0 };
	rc = body_parse(&l->keep, body, "topic list", e);
	if (rc)
		return rc;
	l->broker_addr = json_str(l->keep.json, "brokerAddr");
	l->n = body_strings_get(&l->keep, json_array_at(l->keep.json, "topicList"), &l->topic);
	return 0;
}

void body_topic_list_encode(const struct body_topic_list *l, struct buf *out)
{
	struct json_out o = json_to(out);

	json_open(&o, '{');
	if (l->broker_addr.p)
		json_member_str(&o, "brokerAddr", l->broker_addr);
	body_strings_put(&o, "topicList", l->topic, l->n);
	json_close(&o, '}');
}

void body_topic_list_free(struct body_topic_list *l)
{
	body_free(&l->keep);
}
