/* json_out.c: writes messages as JSON, by hand, for speed: a message is one pass over its bytes.
 *
 * Nothing is lost: what is not UTF-8, or holds NUL, goes as base64 under the same name with 64 behind it. */
#include "json_out.h"
#include "userprop.h"

#include <string.h>

static void escaped(struct bytes *b, struct mq_str s)
{
	static const char hex[] = "0123456789abcdef";
	size_t from = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		char esc[] = "\\u00xx";

		if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
			continue;
		bytes_add(b, s.p + from, i - from);
		from = i + 1;
		switch (c) {
		case '"':
		case '\\':
			bytes_byte(b, '\\');
			bytes_byte(b, (char)c);
			break;
		case '\n':
			bytes_add(b, "\\n", 2);
			break;
		case '\t':
			bytes_add(b, "\\t", 2);
			break;
		case '\r':
			bytes_add(b, "\\r", 2);
			break;
		default:
			esc[4] = hex[c >> 4];
			esc[5] = hex[c & 15];
			bytes_add(b, esc, 6);
		}
	}
	bytes_add(b, s.p + from, s.n - from);
}

void json_out_text(struct bytes *b, struct mq_str s)
{
	bytes_byte(b, '"');
	escaped(b, s);
	bytes_byte(b, '"');
}

/* ,"name":  with the comma unless it is the first of its object. */
static void name(struct bytes *b, const char *n)
{
	if (b->p[b->n - 1] != '{')
		bytes_byte(b, ',');
	bytes_byte(b, '"');
	bytes_str(b, n);
	bytes_add(b, "\":", 2);
}

/* "name":"text", or "name64":"base64". */
static void text(struct bytes *b, const char *n, const char *n64, struct mq_str s)
{
	if (bytes_is_text(s)) {
		name(b, n);
		json_out_text(b, s);
		return;
	}
	name(b, n64);
	bytes_byte(b, '"');
	bytes_base64(b, s);
	bytes_byte(b, '"');
}

static void number(struct bytes *b, const char *n, int64_t v)
{
	name(b, n);
	bytes_int(b, v);
}

static void host(struct bytes *b, const char *n, const struct mq_host *h)
{
	char out[MQ_HOST_TEXT];

	if (h->len == 0)
		return;
	name(b, n);
	bytes_byte(b, '"');
	bytes_str(b, mq_host_text(h, out));
	bytes_byte(b, '"');
}

enum which { USER_TEXT, USER_BINARY, SYSTEM };

static enum which kind(struct mq_str n, struct mq_str v)
{
	if (userprop_is_system(n))
		return SYSTEM;
	return bytes_is_text(v) ? USER_TEXT : USER_BINARY;
}

/* These stand in fields of their own. */
static bool has_own_field(struct mq_str n)
{
	return (n.n == 4 && (memcmp(n.p, "KEYS", 4) == 0 || memcmp(n.p, "TAGS", 4) == 0)) ||
	       (n.n == 8 && memcmp(n.p, "UNIQ_KEY", 8) == 0);
}

/* "name<suffix>":"value", the value in base64 if it is no text.  A name that is no text cannot be a name in JSON: its bytes above
 * 0x7f become '?'. */
static void property(struct bytes *b, struct mq_str n, struct mq_str v, const char *suffix)
{
	size_t at;

	if (b->p[b->n - 1] != '{')
		bytes_byte(b, ',');
	bytes_byte(b, '"');
	at = b->n;
	escaped(b, n);
	if (!bytes_is_text(n))
		for (size_t i = at; i < b->n; i++)
			if ((unsigned char)b->p[i] >= 0x80)
				b->p[i] = '?';
	bytes_str(b, suffix);
	bytes_add(b, "\":\"", 3);
	if (bytes_is_text(v))
		escaped(b, v);
	else
		bytes_base64(b, v);
	bytes_byte(b, '"');
}

/* The properties of one kind as an object; nothing if there are none. */
static void properties(struct bytes *b, const char *field, struct mq_str props, enum which which)
{
	struct mq_str n, v;
	size_t pos = 0;
	bool any = false;

	while (mq_prop_next(props, &pos, &n, &v)) {
		if (has_own_field(n) || kind(n, v) != which)
			continue;
		if (!any) {
			name(b, field);
			bytes_byte(b, '{');
			any = true;
		}
		property(b, n, v, "");
	}
	if (any)
		bytes_byte(b, '}');
}

void json_out_props(struct bytes *b, struct mq_str props)
{
	struct mq_str n, v;
	size_t pos = 0;

	bytes_byte(b, '{');
	while (mq_prop_next(props, &pos, &n, &v))
		if (!userprop_is_system(n))
			property(b, n, v, bytes_is_text(v) ? "" : "64");
	bytes_byte(b, '}');
}

void json_out_message(struct bytes *b, const struct mq_message *m, struct mq_str body, const char *broker)
{
	struct mq_str keys = mq_prop_get(m->props, "KEYS"), tags = mq_prop_get(m->props, "TAGS");
	struct mq_str id = mq_prop_get(m->props, "UNIQ_KEY");
	char offset_id[MQ_ID_TEXT];

	bytes_byte(b, '{');
	text(b, "topic", "topic64", m->topic);
	if (broker) {
		name(b, "queue");
		bytes_byte(b, '"');
		escaped(b, (struct mq_str){ broker, strlen(broker) });
		bytes_byte(b, ':');
		bytes_int(b, m->queue_id);
		bytes_byte(b, '"');
	}
	if (m->queue_off >= 0)
		number(b, "offset", m->queue_off);
	if (id.n == 0 && m->store_host.len) {
		id.p = offset_id;
		id.n = mq_offset_id(&m->store_host, m->log_off, offset_id);
	}
	if (id.n)
		text(b, "id", "id64", id);
	if (keys.n)
		text(b, "keys", "keys64", keys);
	if (tags.n)
		text(b, "tags", "tags64", tags);
	properties(b, "properties", m->props, USER_TEXT);
	properties(b, "properties64", m->props, USER_BINARY);
	properties(b, "system", m->props, SYSTEM);
	if (m->flag)
		number(b, "flag", m->flag);
	if (m->reconsume_times)
		number(b, "retries", m->reconsume_times);
	if (m->born_ms > 0)
		number(b, "born", m->born_ms);
	if (m->store_ms > 0)
		number(b, "stored", m->store_ms);
	host(b, "bornHost", &m->born_host);
	host(b, "storeHost", &m->store_host);
	text(b, "body", "body64", body);
	bytes_add(b, "}\n", 2);
}
