/* store.c: the commands that also read a store directory (store:DIR), with no server and without changing a byte. */
#include "admin.h"
#include "../cli.h"
#include <mqstore.h>
#include <stdlib.h>
#include <string.h>

struct mqstore_opt store_options(struct admin *a)
{
	struct mqstore_opt opt = { 0 };
	mqstore_defaults(&opt);
	opt.dir = mqclient_addr_dir(a->addr);
	opt.adopt_sizes = true;
	return opt;
}

void store_open(struct admin *a)
{
	struct mqstore_opt opt = store_options(a);
	struct mq_error err;
	opt.read_only = true;
	if (mqstore_open(&a->store, &opt, &err) < 0)
		cli_fail(&err);
}

void store_close(struct admin *a)
{
	mqstore_close(a->store, NULL);
	a->store = NULL;
}

struct mqstore_files *store_files(struct admin *a)
{
	struct mqstore_opt opt = store_options(a);
	struct mqstore_files *f;
	struct mq_error err;
	if (mqstore_files_open(&f, &opt, &err) < 0)
		cli_fail(&err);
	return f;
}

json_t *store_json_text(struct mq_str v)
{
	if (v.n && memchr(v.p, 0, v.n))
		return NULL;
	return json_stringn(v.p ? v.p : "", v.n);
}

struct queues {
	struct mqstore_queue **v;
	size_t n;
	const char *topic;      /* only this one; NULL = all */
};

static int gather(void *arg, struct mqstore_queue *q)
{
	struct queues *all = arg;
	struct mq_str t = mqstore_queue_topic(q);
	if (all->topic && (t.n != strlen(all->topic) || memcmp(t.p, all->topic, t.n) != 0))
		return 0;
	all->v = realloc(all->v, (all->n + 1) * sizeof *all->v);
	if (!all->v)
		cli_die(CLI_SYSTEM, "out of memory");
	all->v[all->n++] = q;
	return 0;
}

static int by_place(const void *x, const void *y)
{
	struct mqstore_queue *a = *(struct mqstore_queue *const *)x, *b = *(struct mqstore_queue *const *)y;
	struct mq_str s = mqstore_queue_topic(a), t = mqstore_queue_topic(b);
	int c = memcmp(s.p, t.p, s.n < t.n ? s.n : t.n);
	if (c == 0)
		c = (s.n > t.n) - (s.n < t.n);
	return c ? c : mqstore_queue_id(a) - mqstore_queue_id(b);
}

static struct queues queues_of(struct admin *a, const char *topic)
{
	struct queues all = { .topic = topic };
	mqstore_each_queue(a->store, gather, &all);
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_place);
	return all;
}

int store_topic_list(struct admin *a)
{
	static const struct show_col cols[] = { { "#Topic", "topic" } };
	struct queues all = queues_of(a, NULL);
	struct show *s = show_rows(a->format, cols, 1);
	struct mq_str last = { NULL, 0 };
	for (size_t i = 0; i < all.n; i++) {
		struct mq_str t = mqstore_queue_topic(all.v[i]);
		if (last.p && last.n == t.n && memcmp(last.p, t.p, t.n) == 0)
			continue;
		show_str(s, last = t);
	}
	free(all.v);
	show_close(s);
	return CLI_OK;
}

int store_topic_status(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Broker Name", "broker" }, { "#QID", "queue" }, { "#Min Offset", "minOffset" },
		{ "#Max Offset", "maxOffset" }, { "#Last Updated", "lastUpdated" },
	};
	struct queues all = queues_of(a, admin_opt(a, "topic"));
	if (!all.n)
		cli_die(CLI_NONE, "topicStatus: no queue of topic '%s' in %s", admin_opt(a, "topic"), a->addr);
	struct show *s = show_rows(a->format, cols, 5);
	for (size_t i = 0; i < all.n; i++) {
		int64_t max = mqstore_queue_max(all.v[i]);
		show_cstr(s, NULL);
		show_i64(s, mqstore_queue_id(all.v[i]));
		show_i64(s, mqstore_queue_min(all.v[i]));
		show_i64(s, max);
		show_time(s, max > 0 ? mqstore_time_at(a->store, all.v[i], max - 1) : 0);
	}
	free(all.v);
	show_close(s);
	return CLI_OK;
}

/* config/consumerOffset.json, or its .bak when that is missing or damaged; the broker writes it every 5 s. */
static json_t *saved_offsets(const char *dir)
{
	static const char *const names[] = { "consumerOffset.json", "consumerOffset.json.bak" };
	for (size_t i = 0; i < 2; i++) {
		char path[4096];
		struct mq_error err;
		snprintf(path, sizeof path, "%s/config/%s", dir, names[i]);
		FILE *f = fopen(path, "r");
		if (!f)
			continue;
		char *text = NULL;
		size_t n = 0;
		ssize_t got = getdelim(&text, &n, 0, f);
		fclose(f);
		char *strict = got > 0 ? mqclient_strict_json((struct mq_str){ text, (size_t)got }, &err) : NULL;
		json_t *o = strict ? json_loads(strict, 0, NULL) : NULL;
		free(strict);
		free(text);
		if (o)
			return o;
		cli_warn("%s cannot be read", path);
	}
	return NULL;
}

int store_consumer_progress(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Group", "group" }, { "#Topic", "topic" }, { "#QID", "queue" }, { "#Broker Offset", "brokerOffset" },
		{ "#Consumer Offset", "consumerOffset" }, { "#Diff", "diff" },
	};
	const char *group = admin_opt(a, "groupName"), *topic = admin_opt(a, "topicName"), *key, *qid;
	json_t *o = saved_offsets(mqclient_addr_dir(a->addr)), *queues, *v;
	struct show *s = show_rows(a->format, cols, 6);
	json_object_foreach(json_object_get(o, "offsetTable"), key, queues) {
		const char *at = strrchr(key, '@');
		if (!at || (group && strcmp(at + 1, group) != 0))
			continue;
		struct mq_str t = { key, (size_t)(at - key) };
		if (topic && (t.n != strlen(topic) || memcmp(t.p, topic, t.n) != 0))
			continue;
		json_object_foreach(queues, qid, v) {
			struct mqstore_queue *q = mqstore_queue(a->store, t, atoi(qid), false);
			int64_t max = q ? mqstore_queue_max(q) : 0;
			show_cstr(s, at + 1);
			show_str(s, t);
			show_i64(s, atoi(qid));
			show_i64(s, max);
			show_i64(s, json_integer_value(v));
			show_i64(s, max - json_integer_value(v));
		}
	}
	int status = group && show_count(s) == 0 ? CLI_NONE : CLI_OK;
	show_close(s);
	json_decref(o);
	return status;
}

int store_query_by_id(struct admin *a)
{
	const char *id = admin_opt(a, "msgId");
	struct mq_host host;
	struct mq_str record;
	struct mq_message m;
	int64_t off;
	if (mq_offset_id_parse((struct mq_str){ id, strlen(id) }, &host, &off) < 0)
		cli_usage_error("queryMsgById: '%s' is no offset id: 32 or 56 hexadecimal digits", id);
	if (mqstore_at(a->store, off, &record) < 0 || mq_message_decode(record.p, record.n, false, &m) <= 0)
		cli_die(CLI_NONE, "queryMsgById: no message at log offset %lld of %s", (long long)off, a->addr);
	message_show(a, &m, admin_opt(a, "bodyFormat"));
	return CLI_OK;
}

int store_query_by_key(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Message ID", "msgId" }, { "#Offset ID", "offsetMsgId" }, { "#QID", "queueId" }, { "#Offset", "queueOffset" },
		{ "#Stored", "storeTimestamp" },
	};
	const char *topic = admin_opt(a, "topic"), *key = admin_opt(a, "msgKey");
	int max = (int)admin_int(a, "maxNum", 64, 1, 1000000);
	int64_t *off = calloc((size_t)max, sizeof *off);
	if (!off)
		cli_die(CLI_SYSTEM, "out of memory");
	int n = mqstore_query(a->store, (struct mq_str){ topic, strlen(topic) }, (struct mq_str){ key, strlen(key) }, max,
	                      admin_int(a, "beginTimestamp", 0, 0, INT64_MAX), admin_int(a, "endTimestamp", INT64_MAX, 0, INT64_MAX), off,
	                      NULL, NULL);
	struct show *s = show_rows(a->format, cols, 5);
	for (int i = 0; i < n; i++) {
		struct mq_str record;
		struct mq_message m;
		char id[MQ_ID_TEXT];
		if (mqstore_at(a->store, off[i], &record) < 0 || mq_message_decode(record.p, record.n, false, &m) <= 0)
			continue;
		struct mq_str uniq = mq_prop_get(m.props, "UNIQ_KEY");
		struct mq_str offset_id = { id, mq_offset_id(&m.store_host, m.log_off, id) };
		show_str(s, uniq.n ? uniq : offset_id);
		show_str(s, offset_id);
		show_i64(s, m.queue_id);
		show_i64(s, m.queue_off);
		show_time(s, m.store_ms);
	}
	size_t rows = show_count(s);
	show_close(s);
	free(off);
	if (!rows)
		cli_warn("queryMsgByKey: no message of topic '%s' has the key '%s'", topic, key);
	return rows ? CLI_OK : CLI_NONE;
}
