/* handle_admin_topic.c: make, change, delete and show topics.  Answers to changes wait until config/topics.json and the name
 * servers have them: the asker's next question is for the route. */
#include "broker.h"
#include "handle.h"
#include "offset_table.h"
#include "settle.h"
#include "topic_table.h"
#include <base/err.h>
#include <base/json.h>
#include <base/log.h>
#include <base/str.h>
#include <stdlib.h>

#define LOG_MODULE "topic"

void handle_create_topic(struct req *q)
{
	const struct create_topic_header *h = q->h;
	struct body_topic to = { .name = h->topic, .read = h->readQueueNums, .write = h->writeQueueNums, .perm = h->perm,
				 .sys_flag = h->topicSysFlag, .order = h->order,
				 .multi_tag = str_is(h->topicFilterType, "MULTI_TAG") };
	struct mq_error e;
	bool changed;

	if (topic_table_set(q->b->topics, &to, h->attributes, &changed, &e) < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
		return;
	}
	settle_topics(q->b->settle, q);
}

/* Attributes of a topic in a list are a map; with the sign in front of the name, as in the text of a single one. */
static void attributes_text(const struct body_topic *t, struct buf *out)
{
	out->n = 0;
	for (size_t i = 0; i < t->nattrs; i++) {
		buf_printf(out, "%s" MQ_STR_FMT, i ? "," : "", MQ_STR_ARG(t->attr[i].key));
		if (t->attr[i].key.n && t->attr[i].key.p[0] == '+')
			buf_printf(out, "=" MQ_STR_FMT, MQ_STR_ARG(t->attr[i].value));
	}
}

/* Of 5.3 and later.  The first that is refused ends it; those before it stay. */
void handle_create_topics(struct req *q)
{
	struct body_keep keep = { 0 };
	struct buf attributes = { 0 };
	struct mq_error e;
	json_t *list, *one;
	size_t i;
	bool changed;
	int rc = body_parse(&keep, q->f->body, "list of topics", &e);

	list = rc ? NULL : json_array_at(keep.json, "topicConfigList");
	if (!rc && !list)
		rc = err_set(&e, MQ_EINVAL, "the body has no topicConfigList");
	json_array_foreach(list, i, one) {
		struct body_topic t;

		body_topic_get(&keep, one, &t);
		attributes_text(&t, &attributes);
		rc = topic_table_set(q->b->topics, &t, buf_view(&attributes), &changed, &e);
		if (rc < 0)
			break;
	}
	buf_free(&attributes);
	body_free(&keep);
	if (rc < 0)
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
	else
		settle_topics(q->b->settle, q);
}

/* Names of pop retry topics to delete: collected first, since deleting changes the table that is walked. */
struct retry_names {
	struct broker *b;
	struct buf names;       /* NUL-terminated, one after the other */
};

static void collect_retry(void *arg, struct offsets *o)
{
	struct retry_names *r = arg;
	struct mq_str group = offsets_group(o), topic = offsets_topic(o);

	for (const char *sep = "_+"; *sep; sep++) {
		buf_printf(&r->names, "%s" MQ_STR_FMT "%c" MQ_STR_FMT, TOPIC_RETRY_PREFIX, MQ_STR_ARG(group), *sep, MQ_STR_ARG(topic));
		buf_char(&r->names, 0);
	}
}

void handle_delete_topic(struct req *q)
{
	const struct delete_topic_header *h = q->h;
	struct broker *b = q->b;
	struct topic *t = topic_table_find(b->topics, h->topic);
	struct retry_names retry = { .b = b };
	struct mq_error e;
	int rc = 0;

	if (str_trim(h->topic).n == 0) {
		reply(q, RESP_SYSTEM_ERROR, "The specified topic is blank.");
		return;
	}
	if (b->conf->validateSystemTopicWhenUpdateTopic && (topic_is_system(h->topic) || (t && t->system))) {
		reply(q, RESP_SYSTEM_ERROR, "The topic[" MQ_STR_FMT "] is conflict with system topic.", MQ_STR_ARG(h->topic));
		return;
	}
	offset_table_each(b->offsets, h->topic, (struct mq_str){ 0 }, collect_retry, &retry);
	for (size_t at = 0; at < retry.names.n; at += strlen(retry.names.p + at) + 1) {
		struct mq_str name = str_of(retry.names.p + at);

		if (topic_table_find(b->topics, name) && topic_table_delete(b->topics, name, &e) < 0)
			log_error("delete topic '" MQ_STR_FMT "': %s", MQ_STR_ARG(name), e.text);
	}
	buf_free(&retry.names);
	if (mq_check_topic(h->topic, NULL) == 0) /* no topic has another name */
		rc = topic_table_delete(b->topics, h->topic, &e);
	if (rc < 0)
		reply(q, RESP_SYSTEM_ERROR, "%s", e.text);
	else
		settle_topics(b->settle, q);
}

void handle_all_topics(struct req *q)
{
	struct body_topic_table table;
	struct frame_out o;

	topic_table_body(q->b->topics, ~0, &table);
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	body_topic_table_encode(&table, o.buf);
	reply_end(q, &o);
	free(table.topic);
}

void handle_topic_config(struct req *q)
{
	const struct topic_config_header *h = q->h;
	struct topic *t = topic_table_find(q->b->topics, h->topic);
	struct frame_out o;

	if (!t) {
		reply(q, RESP_TOPIC_NOT_EXIST, "No topic in this broker. topic: " MQ_STR_FMT, MQ_STR_ARG(h->topic));
		return;
	}
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	body_topic_encode(&t->conf, o.buf);
	reply_end(q, &o);
}
