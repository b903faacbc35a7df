/* compose.c: makes messages of records: which part is the key, which the body, and the properties that all get.
 *
 * For plain records without -K there is nothing to build: every message gets the same properties, a view. */
#include "compose.h"
#include "cli.h"
#include "compose_json.h"
#include "delay_level.h"
#include "userprop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME(literal) MQ_STR(literal)

void compose_init(struct compose *c)
{
	*c = (struct compose){ .max_body = MQ_BODY_MAX };
}

void compose_free(struct compose *c)
{
	struct bytes *const all[] = { &c->keys, &c->tag, &c->fixed, &c->when, &c->own_when, &c->all, &c->props, &c->body,
	                              &c->sharding, &c->topic_text,
	                              &c->own_keys, &c->own_tag, &c->own_props };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		bytes_free(all[i]);
}

static int put_keys(struct bytes *b, struct mq_str keys, struct mq_error *err)
{
	return keys.n ? userprop_put(b, NAME("KEYS"), keys, true, "key", err) : 0;
}

static int put_tag(struct bytes *b, struct mq_str tag, struct mq_error *err)
{
	return tag.n ? userprop_put(b, NAME("TAGS"), tag, true, "tag", err) : 0;
}

/* What every message gets has changed. */
static int renew(struct compose *c, struct mq_error *err)
{
	int rc;

	c->all.n = 0;
	bytes_add(&c->all, c->fixed.p, c->fixed.n);
	bytes_add(&c->all, c->when.p, c->when.n);
	rc = put_tag(&c->all, bytes_view(&c->tag), err);
	return rc ? rc : put_keys(&c->all, bytes_view(&c->keys), err);
}

int compose_key(struct compose *c, const char *key, struct mq_error *err)
{
	if (c->keys.n)
		bytes_byte(&c->keys, ' ');
	bytes_str(&c->keys, key);
	return renew(c, err);
}

int compose_tag(struct compose *c, const char *tag, struct mq_error *err)
{
	c->tag.n = 0;
	bytes_str(&c->tag, tag);
	return renew(c, err);
}

int compose_property(struct compose *c, const char *name_value, struct mq_error *err)
{
	const char *eq = strchr(name_value, '=');
	int rc;

	if (!eq || eq == name_value) {
		err->code = MQ_EINVAL;
		err->response = 0;
		snprintf(err->text, sizeof(err->text), "property '%.200s': NAME=VALUE is right", name_value);
		return MQ_EINVAL;
	}
	rc = userprop_put(&c->fixed, (struct mq_str){ name_value, (size_t)(eq - name_value) },
	               (struct mq_str){ eq + 1, strlen(eq + 1) }, false, NULL, err);
	return rc ? rc : renew(c, err);
}

/* ---- When it is delivered --------------------------------------------------------------------------------------------- */

static int put_when(struct bytes *b, const char *name, int64_t v, struct mq_error *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, v);
	return userprop_put(b, (struct mq_str){ name, strlen(name) }, (struct mq_str){ text, strlen(text) }, true, name, err);
}

static int no_delay(struct mq_error *err, const char *fmt, const char *value)
{
	err->code = MQ_EINVAL;
	err->response = 0;
	snprintf(err->text, sizeof(err->text), fmt, value);
	return MQ_EINVAL;
}

/* compat: a delay that is a level goes as one, which every broker since 3.x has; others need timers, as of 5.0. */
int compose_put_delay(struct bytes *b, const char *delay, struct mq_error *err)
{
	int64_t ms, level;
	char *end;

	if (strncmp(delay, "level:", 6) == 0) {
		level = strtoll(delay + 6, &end, 10);
		if (end == delay + 6 || *end || level < 1 || level > DELAY_LEVEL_MAX)
			return no_delay(err, "delay '%.100s': level:1 to level:1000 are allowed", delay);
		return put_when(b, "DELAY", level, err);
	}
	if (!cli_duration_parse(delay, &ms))
		return no_delay(err, "delay '%.100s': 10s, 5m, 2h, 3d or level:N is right", delay);
	level = delay_level_of(ms);
	return level ? put_when(b, "DELAY", level, err) : ms ? put_when(b, "TIMER_DELAY_MS", ms, err) : 0;
}

int compose_put_at(struct bytes *b, const char *time, struct mq_error *err)
{
	int64_t ms;

	if (!cli_time_parse(time, &ms))
		return no_delay(err, "time '%.100s': 2026-11-30T12:00:00[Z], +10m, or seconds or milliseconds since 1970 are right", time);
	return put_when(b, "TIMER_DELIVER_MS", ms, err);
}

int compose_delay(struct compose *c, const char *delay, struct mq_error *err)
{
	int rc = compose_put_delay(&c->when, delay, err);

	return rc ? rc : renew(c, err);
}

int compose_at(struct compose *c, const char *time, struct mq_error *err)
{
	int rc = compose_put_at(&c->when, time, err);

	return rc ? rc : renew(c, err);
}

/* ---- One message ------------------------------------------------------------------------------------------------------- */

/* Properties of one message: those of all, its own, its tag and keys (or those of all). */
static int own_props(struct compose *c, struct mq_str own, struct mq_str when, struct mq_str tag, struct mq_str keys, const char *id,
                     struct composed *out, struct mq_error *err)
{
	int rc;

	c->props.n = 0;
	bytes_add(&c->props, c->fixed.p, c->fixed.n);
	bytes_add(&c->props, own.p, own.n);
	bytes_add(&c->props, when.p, when.n);
	out->delayed = when.n > 0;
	rc = put_tag(&c->props, tag, err);
	if (rc == 0)
		rc = put_keys(&c->props, keys, err);
	if (rc == 0 && id)
		rc = userprop_put(&c->props, NAME("UNIQ_KEY"), (struct mq_str){ id, strlen(id) }, true, "id", err);
	out->m.props = bytes_view(&c->props);
	return rc;
}

static int from_json(struct compose *c, struct mq_str record, const char *id, struct composed *out, struct mq_error *err)
{
	struct compose_json j = { .topic = &c->topic_text, .body = &c->body, .keys = &c->own_keys, .tag = &c->own_tag,
	                          .props = &c->own_props, .when = &c->own_when,
	                          .sharding = &c->sharding };
	int rc = compose_json_read(&j, record, err);

	if (rc == 0)
		rc = own_props(c, bytes_view(&c->own_props), bytes_view(j.has_when ? &c->own_when : &c->when),
		               bytes_view(j.has_tag ? &c->own_tag : &c->tag),
		               bytes_view(j.has_keys ? &c->own_keys : &c->keys), id, out, err);
	if (rc != 0)
		return rc;
	if (!c->topic.p) {
		if (!j.has_topic) {
			err->code = MQ_EINVAL;
			err->response = 0;
			snprintf(err->text, sizeof(err->text), "no field 'topic', and the topic '-' takes it from there");
			return MQ_EINVAL;
		}
		out->m.topic = bytes_view(&c->topic_text);
	}
	out->m.flag = j.flag;
	out->m.body = bytes_view(&c->body);
	if (j.has_sharding)
		out->sharding_key = (struct mq_str){ c->sharding.p ? c->sharding.p : "", c->sharding.n };
	if (c->queue_from_record && j.queue_id >= 0) {
		snprintf(out->broker, sizeof(out->broker), "%s", j.broker);
		out->m.queue_id = j.queue_id;
	}
	return 0;
}

static int from_record(struct compose *c, struct mq_str record, const char *id, struct composed *out, struct mq_error *err)
{
	static const struct mq_str none;
	const char *delim = NULL;
	int rc;

	out->m.body = record;
	if (c->key_delim.n && record.n)
		delim = memmem(record.p, record.n, c->key_delim.p, c->key_delim.n);
	if (!delim && !id) {
		out->m.props = bytes_view(&c->all);
		return 0;
	}
	if (!delim)
		return own_props(c, none, bytes_view(&c->when), bytes_view(&c->tag), bytes_view(&c->keys), id, out, err);
	c->own_keys.n = 0;
	bytes_add(&c->own_keys, c->keys.p, c->keys.n);
	if (c->keys.n && delim > record.p)
		bytes_byte(&c->own_keys, ' ');
	bytes_add(&c->own_keys, record.p, (size_t)(delim - record.p));
	rc = own_props(c, none, bytes_view(&c->when), bytes_view(&c->tag), bytes_view(&c->own_keys), id, out, err);
	out->m.body.p = delim + c->key_delim.n;
	out->m.body.n = record.n - (size_t)(out->m.body.p - record.p);
	return rc;
}

int compose_record(struct compose *c, enum frame_mode mode, struct mq_str record, const char *id, struct composed *out,
                   struct mq_error *err)
{
	int rc;

	memset(&out->m, 0, sizeof(out->m));
	out->m.topic = c->topic;
	out->m.queue_id = -1;
	out->broker[0] = '\0';
	out->sharding_key = (struct mq_str){ NULL, 0 };
	out->delayed = c->when.n > 0;
	if (mode == FRAME_JSON && record.n == 0)
		return COMPOSE_EMPTY;
	rc = mode == FRAME_JSON ? from_json(c, record, id, out, err) : from_record(c, record, id, out, err);
	if (rc != 0)
		return rc;
	if (out->m.body.n == 0)
		return COMPOSE_EMPTY;
	if (out->m.body.n > c->max_body) {
		err->code = MQ_ETOOBIG;
		err->response = 0;
		snprintf(err->text, sizeof(err->text), "body of %zu bytes is over the limit of %zu", out->m.body.n, c->max_body);
		return MQ_ETOOBIG;
	}
	return 0;
}
