/* message.c: find a message by id or key and show it. */
#include "admin.h"
#include "../cli.h"
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct mq_str no_body = { NULL, 0 };

enum { INFLATED_MAX = 64 * 1024 * 1024 };

bool message_has_key(const struct mq_message *m, const char *key)
{
	struct mq_str id = mq_prop_get(m->props, "UNIQ_KEY"), keys = mq_prop_get(m->props, "KEYS");
	size_t n = strlen(key);
	if (id.n == n && memcmp(id.p, key, n) == 0)
		return true;
	for (size_t i = 0; i < keys.n;) {
		size_t end = i;
		while (end < keys.n && keys.p[end] != ' ')
			end++;
		if (end - i == n && memcmp(keys.p + i, key, n) == 0)
			return true;
		i = end + 1;
	}
	return false;
}

static void show_host(struct show *s, const char *key, const struct mq_host *h)
{
	char text[MQ_HOST_TEXT];
	show_key(s, key);
	show_cstr(s, mq_host_text(h, text));
}

static void show_named(struct show *s, const char *key, struct mq_str v)
{
	show_key(s, key);
	show_str(s, v.n ? v : no_body);
}

static void show_number(struct show *s, const char *key, int64_t v)
{
	show_key(s, key);
	show_i64(s, v);
}

/* Properties as JSON text: names and values may hold anything. */
static void show_props(struct show *s, struct mq_str props)
{
	json_t *o = json_object();
	struct mq_str name, value;
	for (size_t pos = 0; mq_prop_next(props, &pos, &name, &value);) {
		char key[1024];
		json_t *v = json_stringn(value.p, value.n);
		snprintf(key, sizeof key, MQ_STR_FMT, MQ_STR_ARG(name));
		if (v)
			json_object_set_new(o, key, v);
	}
	char *text = json_dumps(o, JSON_COMPACT);
	show_key(s, "properties");
	show_cstr(s, text);
	free(text);
	json_decref(o);
}

static bool printable(struct mq_str b)
{
	json_t *v = memchr(b.p ? b.p : "", 0, b.n) ? NULL : json_stringn(b.p ? b.p : "", b.n);
	json_decref(v);
	return v != NULL;
}

/* b in UTF-8, or NULL if it is nothing in that charset. The caller frees it. */
static char *decoded(struct mq_str b, const char *charset)
{
	iconv_t cd = iconv_open("UTF-8", charset);
	if (cd == (iconv_t)-1)
		cli_usage_error("no charset '%s'", charset);
	size_t cap = b.n * 4 + 1, left = cap - 1, in_left = b.n;
	char *text = malloc(cap), *out = text, *in = (char *)b.p;
	if (!text)
		cli_die(CLI_SYSTEM, "out of memory");
	bool ok = iconv(cd, &in, &in_left, &out, &left) != (size_t)-1;
	*out = 0;
	iconv_close(cd);
	if (ok && printable((struct mq_str){ text, (size_t)(out - text) }))
		return text;
	free(text);
	return NULL;
}

static char *hexadecimal(struct mq_str b)
{
	static const char digits[] = "0123456789abcdef";
	char *hex = malloc(b.n * 2 + 1);
	if (!hex)
		cli_die(CLI_SYSTEM, "out of memory");
	for (size_t i = 0; i < b.n; i++) {
		hex[2 * i] = digits[(unsigned char)b.p[i] >> 4];
		hex[2 * i + 1] = digits[b.p[i] & 15];
	}
	hex[b.n * 2] = 0;
	return hex;
}

char *message_body_text(const struct mq_message *m, const char *charset, size_t *size, bool *hex)
{
	void *scratch = NULL;
	size_t cap = 0;
	struct mq_str body;
	char *text = NULL;
	int rc = mq_message_body(m, INFLATED_MAX, &scratch, &cap, &body);
	if (rc < 0) {
		cli_warn("body cannot be unpacked (%s): shown as stored", mq_strerror(rc));
		body = m->body;
	}
	*size = body.n;
	if (charset && strcasecmp(charset, "UTF-8") != 0 && strcasecmp(charset, "UTF8") != 0)
		text = decoded(body, charset);
	else if (printable(body))
		text = strndup(body.p ? body.p : "", body.n);
	*hex = !text;
	if (!text)
		text = hexadecimal(body);
	free(scratch);
	return text;
}

static void show_body(struct show *s, const struct mq_message *m, const char *charset)
{
	size_t size;
	bool hex;
	char *text = message_body_text(m, charset, &size, &hex);
	show_number(s, "bodySize", (int64_t)size);
	show_key(s, hex ? "bodyHex" : "body");
	show_cstr(s, text);
	free(text);
}

void message_show(struct admin *a, const struct mq_message *m, const char *charset)
{
	char id[MQ_ID_TEXT];
	struct show *s = show_record(a->format);
	show_key(s, "offsetMsgId");
	show_str(s, (struct mq_str){ id, mq_offset_id(&m->store_host, m->log_off, id) });
	show_named(s, "msgId", mq_prop_get(m->props, "UNIQ_KEY"));
	show_named(s, "topic", m->topic);
	show_named(s, "tags", mq_prop_get(m->props, "TAGS"));
	show_named(s, "keys", mq_prop_get(m->props, "KEYS"));
	show_number(s, "queueId", m->queue_id);
	show_number(s, "queueOffset", m->queue_off);
	show_number(s, "commitLogOffset", m->log_off);
	show_number(s, "reconsumeTimes", m->reconsume_times);
	show_key(s, "bornTimestamp");
	show_time(s, m->born_ms);
	show_key(s, "storeTimestamp");
	show_time(s, m->store_ms);
	show_host(s, "bornHost", &m->born_host);
	show_host(s, "storeHost", &m->store_host);
	show_number(s, "flag", m->flag);
	show_number(s, "sysFlag", m->sys_flag);
	show_props(s, m->props);
	show_body(s, m, charset);
	show_close(s);
}

/* ---- Who has consumed it (mqadmin's message track) -------------------------------------------------------------------- */

/* State of one group for the message, in the words of mqadmin. */
static const char *track_state(struct admin *a, const char *addr, const char *group, const char *topic, int64_t queue, int64_t off)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	const char *key, *state = "NOT_CONSUME_YET";
	json_t *v;

	admin_field(&f, "consumerGroup", group);
	if (admin_ask(a, addr, 203, &f, no_body, (const int[]){ 1, 206, 0 }, &ans))
		return "NOT_ONLINE";
	json_t *c = admin_json(&ans);
	bool pull = strcmp(admin_text(c, "consumeType", ""), "CONSUME_ACTIVELY") == 0;
	bool broadcast = strcmp(admin_text(c, "messageModel", ""), "BROADCASTING") == 0;
	json_decref(c);
	if (pull || broadcast)
		return pull ? "PULL" : "CONSUME_BROADCASTING";
	admin_field(&f, "topic", topic);
	if (admin_ask(a, addr, 208, &f, no_body, (const int[]){ 1, 17, 0 }, &ans))
		return "UNKNOWN";
	json_t *o = admin_json(&ans);
	json_object_foreach(json_object_get(o, "offsetTable"), key, v) {
		json_t *q = admin_queue_key(key);
		if (admin_i64(q, "queueId", -1) == queue && strcmp(admin_text(q, "topic", ""), topic) == 0 && admin_i64(v,
			"consumerOffset", 0) > off)
			state = "CONSUMED";
		json_decref(q);
	}
	json_decref(o);
	return state;
}

void message_track(struct admin *a, const char *addr, const char *topic, int64_t queue, int64_t off)
{
	static const struct show_col cols[] = { { "#Group", "group" }, { "#Track", "track" } };
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	json_t *g;
	size_t i;
	admin_field(&f, "topic", topic);
	if (admin_ask(a, addr, 300, &f, no_body, (const int[]){ 1, 3, 17, 0 }, &ans))
		return;
	json_t *o = admin_json(&ans), *list = json_object_get(o, "groupList");
	if (json_array_size(list)) {
		struct show *s = show_rows(a->format, cols, 2);
		json_array_foreach(list, i, g) {
			show_cstr(s, json_string_value(g));
			show_cstr(s, track_state(a, addr, json_string_value(g), topic, queue, off));
		}
		putchar('\n');
		show_close(s);
	}
	json_decref(o);
}

/* ---- Handed to a client ---------------------------------------------------------------------------------------------- */

int message_push(struct admin *a, const char *addr, const char *topic, const char *id)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	const char *key;
	json_t *v;
	admin_field(&f, "consumerGroup", admin_opt(a, "consumerGroup"));
	admin_field(&f, "clientId", admin_opt(a, "clientId"));
	admin_field(&f, "msgId", id);
	admin_field(&f, "topic", topic);
	admin_ask(a, addr, 309, &f, no_body, NULL, &ans);
	json_t *o = admin_json(&ans);
	struct show *s = show_record(a->format);
	json_object_foreach(o, key, v) {
		char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		show_key(s, key);
		show_cstr(s, text ? text : json_string_value(v));
		free(text);
	}
	show_close(s);
	int status = strcmp(admin_text(o, "consumeResult", ""), "CR_SUCCESS") == 0 ? CLI_OK : CLI_REFUSED;
	json_decref(o);
	return status;
}

bool message_wants_push(struct admin *a)
{
	bool group = admin_opt(a, "consumerGroup"), client = admin_opt(a, "clientId");
	if (group != client)
		admin_usage(a, "-g GROUP and -d CLIENT go together: the message is handed to that member");
	return group;
}

/* ---- Commands -------------------------------------------------------------------------------------------------------- */

static int query_by_id(struct admin *a)
{
	const char *id = admin_opt(a, "msgId");
	struct mq_host host;
	struct mq_message m;
	int64_t off;
	char addr[MQ_HOST_TEXT], num[24];
	if (a->store)
		return store_query_by_id(a);
	if (mq_offset_id_parse((struct mq_str){ id, strlen(id) }, &host, &off) < 0)
		cli_usage_error("queryMsgById: '%s' is no offset id: 32 or 56 hexadecimal digits, as mq-send -v prints them", id);
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field_int(&f, "offset", off, num);
	/* The address stands in the id; an embedded broker has none that can be dialled and is asked by its socket. */
	const char *to = mqclient_addr_kind(a->addr) == MQCLIENT_FILE ? NULL : mq_host_text(&host, addr);
	if (admin_ask(a, to, 33, &f, no_body, (const int[]){ 1, 0 }, &ans))
		cli_die(CLI_NONE, "queryMsgById: no message '%s': " MQ_STR_FMT, id, MQ_STR_ARG(ans.remark));
	if (mq_message_decode(ans.body.p, ans.body.n, true, &m) <= 0)
		cli_die(CLI_SYSTEM, "queryMsgById: %s sent bytes that are no message", to ? to : a->addr);
	char topic[300];
	int64_t queue = m.queue_id, queue_off = m.queue_off;
	snprintf(topic, sizeof topic, MQ_STR_FMT, MQ_STR_ARG(m.topic));
	if (message_wants_push(a))
		return message_push(a, to, topic, id);
	message_show(a, &m, admin_opt(a, "bodyFormat"));
	if (a->format == SHOW_TABLE && to)
		message_track(a, to, topic, queue, queue_off);
	return CLI_OK;
}

/* Rows of the answer's messages that really have the key (the index knows hashes only). */
static void key_rows(struct show *s, struct mq_str body, const char *topic, const char *key)
{
	struct mq_message m;
	for (size_t at = 0; at < body.n;) {
		int32_t n = mq_message_decode(body.p + at, body.n - at, false, &m);
		if (n <= 0)
			break;
		at += (size_t)n;
		if (m.topic.n != strlen(topic) || memcmp(m.topic.p, topic, m.topic.n) != 0 || !message_has_key(&m, key))
			continue;
		char id[MQ_ID_TEXT];
		struct mq_str uniq = mq_prop_get(m.props, "UNIQ_KEY");
		struct mq_str off = { id, mq_offset_id(&m.store_host, m.log_off, id) };
		show_str(s, uniq.n ? uniq : off);
		show_str(s, off);
		show_i64(s, m.queue_id);
		show_i64(s, m.queue_off);
		show_time(s, m.store_ms);
	}
}

bool message_ask_key(struct admin *a, const char *addr, const char *topic, const char *key, struct mqclient_answer *ans)
{
	struct admin_fields f = { .n = 0 };
	char num[3][24];
	admin_field(&f, "topic", topic);
	admin_field(&f, "key", key);
	admin_field_int(&f, "maxNum", admin_int(a, "maxNum", 64, 1, 1000000), num[0]);
	admin_field_int(&f, "beginTimestamp", admin_int(a, "beginTimestamp", 0, 0, INT64_MAX), num[1]);
	admin_field_int(&f, "endTimestamp", admin_int(a, "endTimestamp", INT64_MAX, 0, INT64_MAX), num[2]);
	return admin_ask(a, addr, 12, &f, no_body, (const int[]){ 22, 0 }, ans) == 0;
}

static int query_by_key(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "#Message ID", "msgId" }, { "#Offset ID", "offsetMsgId" }, { "#QID", "queueId" }, { "#Offset", "queueOffset" },
		{ "#Stored", "storeTimestamp" },
	};
	const char *topic = admin_opt(a, "topic"), *key = admin_opt(a, "msgKey");
	int64_t begin = admin_int(a, "beginTimestamp", 0, 0, INT64_MAX), end = admin_int(a, "endTimestamp", INT64_MAX, 0, INT64_MAX);
	int64_t max = admin_int(a, "maxNum", 64, 1, 1000000);
	json_t *d;
	size_t i;
	if (begin >= end)
		admin_usage(a, "--beginTimestamp %lld is not before --endTimestamp %lld", (long long)begin, (long long)end);
	if (a->store)
		return store_query_by_key(a);
	json_t *route = admin_route(a, topic);
	if (!route)
		cli_die(CLI_NONE, "queryMsgByKey: no topic '%s'", topic);
	struct show *s = show_rows(a->format, cols, 5);
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d) {
		struct mqclient_answer ans;
		if (admin_broker_addr(d) && message_ask_key(a, admin_broker_addr(d), topic, key, &ans))
			key_rows(s, ans.body, topic, key);
	}
	json_decref(route);
	size_t n = show_count(s);
	show_close(s);
	if (n == 0)
		cli_warn("queryMsgByKey: no message of topic '%s' has the key '%s'", topic, key);
	else if (n >= (size_t)max)
		cli_warn("queryMsgByKey: the newest %zu; there may be more (-c)", n);
	return n ? CLI_OK : CLI_NONE;
}

static const struct command_opt id_opts[] = {
	{ 'i', "msgId", "ID", true, "offset id of the message" },
	{ 'g', "consumerGroup", "GROUP", false, "with -d: hand it to a member of this group" },
	{ 'd', "clientId", "CLIENT", false, "that member" },
	{ 'f', "bodyFormat", "CHARSET", false, "charset of the body (UTF-8)" },
	{ 0 },
};
static const struct command_opt key_opts[] = {
	{ 't', "topic", "TOPIC", true, "the topic" },
	{ 'k', "msgKey", "KEY", true, "a key of the message, or its unique id" },
	{ 'b', "beginTimestamp", "MS", false, "stored at or after (0)" },
	{ 'e', "endTimestamp", "MS", false, "stored at or before" },
	{ 'c', "maxNum", "N", false, "at most so many, the newest (64)" },
	{ 0 },
};

const struct command message_commands[] = {
	{ "queryMsgById", id_opts, query_by_id, COMMAND_CLUSTER | COMMAND_STORE, "show a message" },
	{ "queryMsgByKey", key_opts, query_by_key, COMMAND_CLUSTER | COMMAND_STORE, "find messages by key" },
	{ 0 },
};
