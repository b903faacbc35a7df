/* store_find.c: messages of a store directory by anything that is in them; reads the whole log. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

enum { INFLATED_MAX = 256 * 1024 * 1024 };

struct search {
	struct show *s;
	const char *topic, *key, *tag, *text;   /* NULL = any */
	int64_t begin, end, left;
	void *scratch;
	size_t scratch_cap;
};

static bool is(struct mq_str v, const char *want)
{
	return v.n == strlen(want) && memcmp(v.p ? v.p : "", want, v.n) == 0;
}

static bool in_body(struct search *f, const struct mq_message *m)
{
	struct mq_str body;
	if (mq_message_body(m, INFLATED_MAX, &f->scratch, &f->scratch_cap, &body) < 0)
		body = m->body;
	return body.n && memmem(body.p, body.n, f->text, strlen(f->text));
}

static bool matches(struct search *f, const struct mq_message *m)
{
	return m->store_ms >= f->begin && m->store_ms <= f->end && (!f->topic || is(m->topic, f->topic)) &&
	       (!f->tag || is(mq_prop_get(m->props, "TAGS"), f->tag)) && (!f->key || message_has_key(m, f->key)) &&
	       (!f->text || in_body(f, m));
}

static int on_piece(void *arg, const struct mqstore_piece *p)
{
	struct search *f = arg;
	const struct mq_message *m = &p->m;
	char id[MQ_ID_TEXT];
	if (p->kind != MQSTORE_RECORD || !matches(f, m))
		return 0;
	struct mq_str uniq = mq_prop_get(m->props, "UNIQ_KEY"), off = { id, mq_offset_id(&m->store_host, m->log_off, id) };
	show_str(f->s, uniq.n ? uniq : off);
	show_str(f->s, off);
	show_i64(f->s, m->queue_id);
	show_i64(f->s, m->queue_off);
	show_time(f->s, m->store_ms);
	show_str(f->s, m->topic);
	return --f->left == 0;
}

static int find(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Message ID", "msgId" }, { "#Offset ID", "offsetMsgId" }, { "#QID", "queueId" }, { "#Offset", "queueOffset" },
		{ "#Stored", "storeTimestamp" }, { "#Topic", "topic" },
	};
	const char *begin = admin_opt(a, "begin"), *end = admin_opt(a, "end");
	struct search f = {
		.topic = admin_opt(a, "topic"), .key = admin_opt(a, "msgKey"), .tag = admin_opt(a, "tag"), .text = admin_opt(a, "body"),
		.begin = begin ? cli_time_ms("--begin", begin) : 0, .end = end ? cli_time_ms("--end", end) : INT64_MAX,
		.left = admin_int(a, "maxNum", INT64_MAX, 1, INT64_MAX),
	};
	if (f.begin > f.end)
		admin_usage(a, "--begin is not before --end");
	struct mq_error err;
	struct mqstore_files *files = store_files(a);
	f.s = show_rows(a->format, cols, 6);
	if (mqstore_files_log(files, on_piece, &f, &err) < 0)
		cli_fail(&err);
	size_t rows = show_count(f.s);
	show_close(f.s);
	free(f.scratch);
	mqstore_files_close(files);
	if (!rows)
		cli_warn("find: no such message in %s", a->addr);
	return rows ? CLI_OK : CLI_NONE;
}

static const struct command_opt find_opts[] = {
	{ 't', "topic", "TOPIC", false, "of this topic" },
	{ 'k', "msgKey", "KEY", false, "with this key or unique id" },
	{ 'g', "tag", "TAG", false, "with this tag" },
	{ 'b', "begin", "TIME", false, "stored at or after, as mq-recv -o has it: @MS, 2026-11-30T12:00, -10m" },
	{ 'e', "end", "TIME", false, "stored at or before" },
	{ 'B', "body", "TEXT", false, "with this text in the (unpacked) body" },
	{ 'c', "maxNum", "N", false, "stop after so many, the oldest" },
	{ 0 },
};

const struct command store_find_commands[] = {
	{ "find", find_opts, find, COMMAND_FILES, "messages by topic, key, tag, time, text" },
	{ 0 },
};
