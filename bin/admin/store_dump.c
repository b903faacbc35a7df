/* store_dump.c: everything that stands in the files of a store, as JSON lines, with nothing made better. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

enum { INFLATED_MAX = 256 * 1024 * 1024 };
enum { MESSAGES = 1, QUEUES = 2, INDEX = 4, CHECKPOINT = 8 };

struct dump {
	const char *topic;      /* only this one; NULL = all */
	void *scratch;
	size_t scratch_cap;
};

static const char *const piece_kinds[] = { "message", "blank", "damaged", "hole", "torn", "free" };

static bool wanted(const struct dump *d, struct mq_str topic)
{
	return !d->topic || (topic.n == strlen(d->topic) && memcmp(topic.p, d->topic, topic.n) == 0);
}

/* One line; 1 when nobody reads any more, which ends the walk. */
static int print(json_t *o)
{
	int rc = json_dumpf(o, stdout, JSON_COMPACT) < 0 || putchar('\n') == EOF;
	json_decref(o);
	return rc;
}

static json_t *hex(struct mq_str v)
{
	static const char digits[] = "0123456789abcdef";
	char *text = malloc(v.n * 2 + 1);
	if (!text)
		cli_die(CLI_SYSTEM, "out of memory");
	for (size_t i = 0; i < v.n; i++) {
		text[2 * i] = digits[(unsigned char)v.p[i] >> 4];
		text[2 * i + 1] = digits[v.p[i] & 15];
	}
	json_t *o = json_stringn(text, v.n * 2);
	free(text);
	return o;
}

/* NAME if it is text, else NAMEHex. */
static void set_bytes(json_t *o, const char *name, struct mq_str v)
{
	char key[64];
	json_t *text = store_json_text(v);
	snprintf(key, sizeof key, text ? "%s" : "%sHex", name);
	json_object_set_new(o, key, text ? text : hex(v));
}

static void set_int(json_t *o, const char *name, int64_t v) { json_object_set_new(o, name, json_integer(v)); }

static void set_host(json_t *o, const char *name, const struct mq_host *h)
{
	char text[MQ_HOST_TEXT];
	json_object_set_new(o, name, json_string(mq_host_text(h, text)));
}

static void set_properties(json_t *o, struct mq_str props)
{
	json_t *all = json_object();
	struct mq_str name, value;
	for (size_t pos = 0; mq_prop_next(props, &pos, &name, &value);) {
		json_t *n = store_json_text(name), *v = store_json_text(value);
		if (!n)
			n = hex(name);
		json_object_set_new(all, json_string_value(n), v ? v : hex(value));
		json_decref(n);
	}
	json_object_set_new(o, "properties", all);
}

static void set_body(struct dump *d, json_t *o, const struct mq_message *m)
{
	struct mq_str body;
	set_int(o, "storedBodyLen", (int64_t)m->body.n);
	if (mq_message_body(m, INFLATED_MAX, &d->scratch, &d->scratch_cap, &body) < 0)
		json_object_set_new(o, "storedBodyHex", hex(m->body));
	else
		set_bytes(o, "body", body);
}

static int on_piece(void *arg, const struct mqstore_piece *p)
{
	struct dump *d = arg;
	const struct mq_message *m = &p->m;
	char id[MQ_ID_TEXT];
	if (p->kind == MQSTORE_FREE || (p->kind == MQSTORE_RECORD ? !wanted(d, m->topic) : d->topic != NULL))
		return 0;
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string(piece_kinds[p->kind]));
	set_int(o, "commitLogOffset", p->from);
	if (p->kind != MQSTORE_RECORD) {
		set_int(o, "size", p->to - p->from);
		return print(o);
	}
	set_int(o, "storeSize", m->size);
	set_bytes(o, "topic", m->topic);
	set_int(o, "queueId", m->queue_id);
	set_int(o, "queueOffset", m->queue_off);
	size_t n = mq_offset_id(&m->store_host, m->log_off, id);
	json_object_set_new(o, "offsetMsgId", json_stringn(id, n));
	set_int(o, "flag", m->flag);
	set_int(o, "sysFlag", m->sys_flag);
	set_int(o, "bornTimestamp", m->born_ms);
	set_int(o, "storeTimestamp", m->store_ms);
	set_host(o, "bornHost", &m->born_host);
	set_host(o, "storeHost", &m->store_host);
	set_int(o, "reconsumeTimes", m->reconsume_times);
	set_int(o, "preparedTransactionOffset", m->prepared_off);
	set_int(o, "bodyCRC", m->body_crc);
	set_properties(o, m->props);
	set_body(d, o, m);
	return print(o);
}

static int on_entry(void *arg, const struct mqstore_file_entry *e)
{
	struct dump *d = arg;
	if (!wanted(d, e->topic))
		return 0;
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string("queue"));
	set_bytes(o, "topic", e->topic);
	set_int(o, "queueId", e->queue_id);
	set_int(o, "queueOffset", e->off);
	set_int(o, "commitLogOffset", e->e.log_off);
	set_int(o, "size", e->e.size);
	set_int(o, "tagsCode", e->e.tags_code);
	if (e->count > 0) {
		set_int(o, "count", e->count);
		set_int(o, "storeTimestamp", e->store_ms);
	}
	return print(o);
}

static int on_index(void *arg, const struct mqstore_file_index *i)
{
	(void)arg;
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string("index"));
	json_object_set_new(o, "file", json_string(i->file));
	if (i->n == 0) {
		set_int(o, "beginTimestamp", i->begin_ms);
		set_int(o, "endTimestamp", i->end_ms);
		set_int(o, "beginPhyOffset", i->begin_off);
		set_int(o, "endPhyOffset", i->end_off);
		set_int(o, "hashSlotCount", i->used_slots);
		set_int(o, "indexCount", i->count);
		set_int(o, "slots", i->slots);
		set_int(o, "capacity", i->entries);
		return print(o);
	}
	set_int(o, "n", i->n);
	set_int(o, "keyHash", i->hash);
	set_int(o, "slot", i->hash % i->slots);
	set_int(o, "commitLogOffset", i->log_off);
	set_int(o, "timeDiffSeconds", i->seconds);
	set_int(o, "prev", i->previous);
	return print(o);
}

static int print_checkpoint(struct mqstore_files *f)
{
	struct mqstore_files_info info;
	mqstore_files_info(f, &info);
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string("checkpoint"));
	set_int(o, "bytes", info.checkpoint_bytes);
	set_int(o, "physicMsgTimestamp", info.log_ms);
	set_int(o, "logicsMsgTimestamp", info.queue_ms);
	set_int(o, "indexMsgTimestamp", info.index_ms);
	set_int(o, "masterFlushedOffset", info.master_flushed_off);
	set_int(o, "confirmPhyOffset", info.confirm_off);
	json_object_set_new(o, "abort", json_boolean(info.abort));
	json_object_set_new(o, "inUse", json_boolean(info.in_use));
	return print(o);
}

static int parts_of(struct admin *a, const char *what)
{
	static const struct { const char *name; int part; } names[] = {
		{ "messages", MESSAGES }, { "queues", QUEUES }, { "index", INDEX }, { "checkpoint", CHECKPOINT },
		{ "all", MESSAGES | QUEUES | INDEX | CHECKPOINT },
	};
	int parts = 0;
	while (*what) {
		size_t n = strcspn(what, ","), i = 0;
		while (i < 5 && (strlen(names[i].name) != n || memcmp(names[i].name, what, n) != 0))
			i++;
		if (i == 5)
			admin_usage(a, "--what: '%.*s' is none of messages, queues, index, checkpoint, all", (int)n, what);
		parts |= names[i].part;
		what += n + (what[n] == ',');
	}
	return parts;
}

static int dump(struct admin *a)
{
	const char *what = admin_opt(a, "what");
	struct dump d = { .topic = admin_opt(a, "topic") };
	int parts = parts_of(a, what ? what : "all"), rc = 0;
	struct mq_error err;
	struct mqstore_files *f = store_files(a);
	if (parts & MESSAGES)
		rc = mqstore_files_log(f, on_piece, &d, &err);
	if (rc == 0 && parts & QUEUES)
		rc = mqstore_files_queues(f, on_entry, &d, &err);
	if (rc == 0 && parts & INDEX)
		rc = mqstore_files_index(f, on_index, &d, &err);
	if (rc == 0 && parts & CHECKPOINT)
		rc = print_checkpoint(f);
	if (rc < 0)
		cli_fail(&err);
	free(d.scratch);
	mqstore_files_close(f);
	return CLI_OK;
}

static const struct command_opt dump_opts[] = {
	{ 'w', "what", "PARTS", false, "messages, queues, index, checkpoint: one or more with commas (all)" },
	{ 't', "topic", "TOPIC", false, "messages and queue entries of this topic only" },
	{ 0 },
};

const struct command store_dump_commands[] = {
	{ "dump", dump_opts, dump, COMMAND_FILES, "everything in the files as JSON lines" },
	{ 0 },
};
