/* compose_json.c: reads a message from a line of JSON.
 *
 * A field that is not known is refused, since what it asked for would be lost in silence.  Fields that only tell where a message
 * came from (offset, id, born...) are known and not used. */
#include "compose_json.h"
#include "userprop.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong(struct mq_error *err, const char *fmt, ...) MQ_PRINTF(2, 3);
static int wrong(struct mq_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	err->code = MQ_EINVAL;
	err->response = 0;
	return MQ_EINVAL;
}

static struct mq_str view(const json_t *v)
{
	return (struct mq_str){ json_string_value(v), json_string_length(v) };
}

/* A text, or a number or truth value as text; from base64 if `coded`.  Appended to out. */
static int value(const char *field, const json_t *v, bool coded, struct bytes *out, struct mq_error *err)
{
	struct mq_str s;

	if (!coded && json_is_integer(v)) {
		bytes_int(out, json_integer_value(v));
		return 0;
	}
	if (!coded && json_is_boolean(v)) {
		bytes_str(out, json_is_true(v) ? "true" : "false");
		return 0;
	}
	if (!json_is_string(v))
		return wrong(err, "field '%s': a text is wanted", field);
	s = view(v);
	if (!coded) {
		bytes_add(out, s.p, s.n);
		return 0;
	}
	return bytes_unbase64(out, s) ? 0 : wrong(err, "field '%s': no base64", field);
}

static int read_props(const char *field, const json_t *v, bool coded, struct compose_json *j, struct mq_error *err)
{
	struct bytes text = { 0 };
	const char *name;
	json_t *entry;
	int rc = 0;

	if (!json_is_object(v))
		return wrong(err, "field '%s': an object is wanted", field);
	json_object_foreach ((json_t *)v, name, entry) {
		text.n = 0;
		rc = value(name, entry, coded, &text, err);
		if (rc == 0)
			rc = userprop_put(j->props, (struct mq_str){ name, strlen(name) }, bytes_view(&text), false, NULL, err);
		if (rc != 0)
			break;
	}
	bytes_free(&text);
	return rc;
}

/* A text, or a list of them, which is joined with blanks. */
static int read_keys(const char *field, const json_t *v, bool coded, struct compose_json *j, struct mq_error *err)
{
	size_t i;
	json_t *entry;
	int rc;

	if (!json_is_array(v))
		return value(field, v, coded, j->keys, err);
	json_array_foreach (v, i, entry) {
		if (j->keys->n)
			bytes_byte(j->keys, ' ');
		rc = value(field, entry, coded, j->keys, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int read_queue(const json_t *v, struct compose_json *j, struct mq_error *err)
{
	struct mq_str s = json_is_string(v) ? view(v) : (struct mq_str){ NULL, 0 };
	const char *colon = s.n ? memrchr(s.p, ':', s.n) : NULL;
	char *end;
	long id;

	if (!colon || colon == s.p || (size_t)(colon - s.p) >= sizeof(j->broker) || memchr(s.p, 0, s.n))
		return wrong(err, "field 'queue': \"BROKER:ID\" is wanted");
	id = strtol(colon + 1, &end, 10);
	if (end == colon + 1 || *end || id < 0 || id > INT32_MAX)
		return wrong(err, "field 'queue': \"BROKER:ID\" is wanted");
	memcpy(j->broker, s.p, (size_t)(colon - s.p));
	j->broker[colon - s.p] = '\0';
	j->queue_id = (int32_t)id;
	return 0;
}

/* "delay":"10s", "at":"2026-11-30T12:00" or milliseconds. */
static int read_when(const char *field, const json_t *v, struct compose_json *j, struct mq_error *err)
{
	struct bytes text = { 0 };
	int rc;

	if (j->has_when)
		return wrong(err, "'delay' and 'at' in one line");
	j->has_when = true;
	rc = value(field, v, false, &text, err);
	if (rc == 0) {
		bytes_byte(&text, '\0');
		rc = strcmp(field, "at") == 0 ? compose_put_at(j->when, text.p, err) : compose_put_delay(j->when, text.p, err);
	}
	bytes_free(&text);
	return rc;
}

static bool is(const char *field, const char *name, bool *coded)
{
	size_t n = strlen(name);

	*coded = strncmp(field, name, n) == 0 && strcmp(field + n, "64") == 0;
	return *coded || strcmp(field, name) == 0;
}

static bool only_tells(const char *field)
{
	static const char *const names[] = { "offset", "id", "id64", "system", "retries", "born", "stored", "bornHost",
	                                     "storeHost", NULL };

	for (const char *const *n = names; *n; n++)
		if (strcmp(field, *n) == 0)
			return true;
	return false;
}

static int read_field(struct compose_json *j, const char *field, const json_t *v, struct mq_error *err)
{
	bool coded;

	if (only_tells(field))
		return 0;
	if (is(field, "body", &coded)) {
		if (j->has_body)
			return wrong(err, "'body' and 'body64' in one line");
		j->has_body = true;
		return value(field, v, coded, j->body, err);
	}
	if (is(field, "topic", &coded)) {
		j->has_topic = true;
		return value(field, v, coded, j->topic, err);
	}
	if (is(field, "keys", &coded)) {
		j->has_keys = true;
		return read_keys(field, v, coded, j, err);
	}
	if (is(field, "tags", &coded)) {
		j->has_tag = true;
		return value(field, v, coded, j->tag, err);
	}
	if (is(field, "properties", &coded))
		return read_props(field, v, coded, j, err);
	if (strcmp(field, "delay") == 0 || strcmp(field, "at") == 0)
		return read_when(field, v, j, err);
	if (strcmp(field, "queue") == 0)
		return read_queue(v, j, err);
	if (strcmp(field, "shardingKey") == 0) {
		j->has_sharding = true;
		return value(field, v, false, j->sharding, err);
	}
	if (strcmp(field, "flag") == 0) {
		if (!json_is_integer(v) || json_integer_value(v) < INT32_MIN || json_integer_value(v) > INT32_MAX)
			return wrong(err, "field 'flag': a number of 32 bits is wanted");
		j->flag = (int32_t)json_integer_value(v);
		return 0;
	}
	return wrong(err, "unknown field '%s'; known are topic, body, body64, keys, tags, properties, queue, shardingKey, delay, at, "
	             "flag",
	             field);
}

int compose_json_read(struct compose_json *j, struct mq_str line, struct mq_error *err)
{
	json_error_t e;
	json_t *doc = json_loadb(line.n ? line.p : "", line.n, JSON_ALLOW_NUL, &e), *v;
	const char *field;
	int rc = 0;

	if (!doc)
		return wrong(err, "no JSON: %s at column %d", e.text, e.column);
	if (!json_is_object(doc)) {
		json_decref(doc);
		return wrong(err, "an object is wanted: {\"body\":\"...\"}");
	}
	j->topic->n = j->body->n = j->keys->n = j->tag->n = j->props->n = j->when->n = j->sharding->n = 0;
	j->has_topic = j->has_body = j->has_keys = j->has_tag = j->has_when = j->has_sharding = false;
	j->broker[0] = '\0';
	j->queue_id = -1;
	j->flag = 0;
	json_object_foreach (doc, field, v) {
		rc = read_field(j, field, v, err);
		if (rc != 0)
			break;
	}
	json_decref(doc);
	if (rc == 0 && !j->has_body)
		rc = wrong(err, "no field 'body' or 'body64'");
	return rc;
}
