/* group_table.c: settings of consumer groups, by name. */
#include "group_table.h"
#include "broker.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <stdlib.h>

#define LOG_MODULE "group"

/* Made at each start, as by the peer's SubscriptionGroupManager. */
static const char *const group_system[] = {
	"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL",
	"CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_RMQ_SYS_TRANS",
};

bool group_is_system(struct mq_str name)
{
	if (str_starts(name, GROUP_SYSTEM_PREFIX))
		return true;
	for (size_t i = 0; i < sizeof group_system / sizeof group_system[0]; i++)
		if (str_is(name, group_system[i]))
			return true;
	return false;
}

static struct group *add(struct group_table *t, struct mq_str name)
{
	struct group *g = mem_alloc(sizeof *g + name.n + 1);

	memcpy(g->name, name.p, name.n);
	body_group_init(&g->conf, (struct mq_str){ g->name, name.n });
	HASH_ADD_KEYPTR(hh, t->all, g->name, name.n, g);
	return g;
}

/* Everything of *conf but its name; `conf` may hold views into g->keep. */
static void set(struct group *g, const struct body_group *conf)
{
	struct mq_str name = g->conf.name;
	struct body_keep keep = { 0 };
	struct body_group copy = *conf;

	copy.name = name;
	if (conf->nattrs) {
		copy.attr = body_alloc(&keep, conf->nattrs * sizeof *copy.attr);
		for (size_t i = 0; i < conf->nattrs; i++)
			copy.attr[i] = (struct body_pair){ body_copy(&keep, conf->attr[i].key),
							   body_copy(&keep, conf->attr[i].value) };
	}
	if (conf->retry_policy.p)
		copy.retry_policy = body_copy(&keep, conf->retry_policy);
	if (conf->subscriptions.p)
		copy.subscriptions = body_copy(&keep, conf->subscriptions);
	body_free(&g->keep);
	g->keep = keep;
	g->conf = copy;
}

static void forbid(struct group *g, struct mq_str topic, int32_t value)
{
	struct group_forbidden **at = &g->forbidden, *f;

	while (*at && !str_eq((struct mq_str){ (*at)->topic, (*at)->topic_n }, topic))
		at = &(*at)->next;
	f = *at;
	if (value == 0) {
		if (f) {
			*at = f->next;
			free(f);
		}
		return;
	}
	if (!f) {
		*at = f = mem_alloc(sizeof *f + topic.n);
		f->topic_n = topic.n;
		memcpy(f->topic, topic.p, topic.n);
	}
	f->value = value;
}

static void drop(struct group_table *t, struct group *g)
{
	while (g->forbidden)
		forbid(g, (struct mq_str){ g->forbidden->topic, g->forbidden->topic_n }, 0);
	HASH_DEL(t->all, g);
	body_free(&g->keep);
	free(g);
}

static void changed(struct group_table *t)
{
	body_version_next(&t->version, clock_wall_ms(), 0);
	table_file_changed(&t->file);
}

struct group *group_table_look(struct group_table *t, struct mq_str name)
{
	struct group *g;

	HASH_FIND(hh, t->all, name.p, name.n, g);
	return g;
}

struct group *group_table_find(struct group_table *t, struct mq_str name)
{
	struct group *g = group_table_look(t, name);

	if (g || !(t->b->conf->autoCreateSubscriptionGroup || group_is_system(name)) || mq_check_group(name, NULL) < 0)
		return g;
	g = add(t, name);
	changed(t);
	log_info("group made name=%s", g->name);
	return g;
}

int group_table_set(struct group_table *t, const struct body_group *conf, struct mq_error *e)
{
	struct group *g;
	int rc = mq_check_group(conf->name, e);

	if (rc < 0)
		return rc;
	if (conf->retry_queues > TOPIC_QUEUES_MAX)
		return err_set(e, MQ_EINVAL, "retryQueueNums %d: at most %d would be right", conf->retry_queues, TOPIC_QUEUES_MAX);
	g = group_table_look(t, conf->name);
	if (!g)
		g = add(t, conf->name);
	set(g, conf);
	changed(t);
	log_info("group set name=%s consume=%d broadcast=%d retries=%d", g->name, g->conf.consume, g->conf.consume_broadcast,
		 g->conf.retry_max);
	return 0;
}

bool group_table_delete(struct group_table *t, struct mq_str name)
{
	struct group *g = group_table_look(t, name);

	if (!g)
		return false;
	log_info("group deleted name=%s", g->name);
	drop(t, g);
	changed(t);
	return true;
}

static bool has(const struct body_group_table *to, struct mq_str name)
{
	for (size_t i = 0; i < to->n; i++)
		if (str_eq(to->group[i].name, name))
			return true;
	return false;
}

void group_table_replace(struct group_table *t, const struct body_group_table *to)
{
	struct group *g, *tmp;
	struct mq_error e;

	if (body_version_eq(&t->version, &to->version))
		return;
	HASH_ITER(hh, t->all, g, tmp) {
		while (g->forbidden)
			forbid(g, (struct mq_str){ g->forbidden->topic, g->forbidden->topic_n }, 0);
		if (!group_is_system(g->conf.name) && !has(to, g->conf.name))
			drop(t, g);
	}
	for (size_t i = 0; i < to->n; i++) {
		if (mq_check_group(to->group[i].name, &e) < 0) {
			log_warn("group of the master left out: %s", e.text);
			continue;
		}
		g = group_table_look(t, to->group[i].name);
		set(g ? g : add(t, to->group[i].name), &to->group[i]);
	}
	for (size_t i = 0; i < to->nforbidden; i++) {
		g = group_table_look(t, to->forbidden[i].group);
		if (g)
			forbid(g, to->forbidden[i].topic, to->forbidden[i].value);
	}
	changed(t);
	t->version = to->version;
	log_info("groups taken from the master groups=%zu", to->n);
}

void group_table_forbid(struct group_table *t, struct group *g, struct mq_str topic, bool readable)
{
	if (group_is_forbidden(g, topic) != readable)
		return;
	forbid(g, topic, readable ? 0 : 1);
	changed(t);
}

bool group_is_forbidden(const struct group *g, struct mq_str topic)
{
	for (const struct group_forbidden *f = g->forbidden; f; f = f->next)
		if (str_eq((struct mq_str){ f->topic, f->topic_n }, topic))
			return f->value & 1;
	return false;
}

void group_table_write(struct group_table *t, struct buf *out)
{
	struct json_out o = json_to(out);
	struct group *g, *tmp;

	json_open(&o, '{');
	body_version_put(&o, "dataVersion", &t->version);
	json_key(&o, "forbiddenTable");
	json_open(&o, '{');
	HASH_ITER(hh, t->all, g, tmp) {
		if (!g->forbidden)
			continue;
		json_key_str(&o, g->conf.name);
		json_open(&o, '{');
		for (struct group_forbidden *f = g->forbidden; f; f = f->next) {
			json_key_str(&o, (struct mq_str){ f->topic, f->topic_n });
			json_put_i64(&o, f->value);
		}
		json_close(&o, '}');
	}
	json_close(&o, '}');
	json_key(&o, "subscriptionGroupTable");
	json_open(&o, '{');
	HASH_ITER(hh, t->all, g, tmp) { /* a line each, as in topics.json */
		buf_cstr(out, o.comma ? ",\n" : "\n");
		o.comma = false;
		json_key_str(&o, g->conf.name);
		body_group_put(&o, &g->conf);
	}
	json_close(&o, '}');
	json_close(&o, '}');
	buf_char(out, '\n');
}

static void write_file(void *table, struct buf *out)
{
	group_table_write(table, out);
}

static void load(void *table, const json_t *json)
{
	struct group_table *t = table;
	struct body_keep keep = { 0 };
	const json_t *groups = json_object_at(json, "subscriptionGroupTable"), *forbidden = json_object_at(json, "forbiddenTable");
	const char *name, *topic;
	json_t *value, *bits;

	body_version_get(json_object_at(json, "dataVersion"), &t->version);
	json_object_foreach((json_t *)groups, name, value) {
		struct body_group conf;
		struct mq_error why;

		body_group_get(&keep, value, &conf);
		if (!conf.name.n)
			conf.name = str_of(name);
		if (mq_check_group(conf.name, &why) < 0)
			log_warn("subscriptionGroup.json: group left out: %s", why.text);
		else if (!group_table_look(t, conf.name))
			set(add(t, conf.name), &conf);
	}
	json_object_foreach((json_t *)forbidden, name, value) {
		struct group *g = group_table_look(t, str_of(name));

		if (g)
			json_object_foreach(value, topic, bits)
				forbid(g, str_of(topic), (int32_t)json_integer_value(bits));
	}
	body_free(&keep);
}

static const struct table_kind kind = { .name = "subscriptionGroup", .write = write_file, .load = load };

int group_table_open(struct group_table **out, struct broker *b, struct mq_error *e)
{
	struct group_table *t = mem_alloc(sizeof *t);
	int rc;

	*out = NULL;
	t->b = b;
	rc = table_file_open(&t->file, b, &kind, t, e);
	if (rc < 0) {
		free(t);
		return rc;
	}
	for (size_t i = 0; i < sizeof group_system / sizeof group_system[0]; i++)
		if (!group_table_look(t, str_of(group_system[i]))) {
			add(t, str_of(group_system[i]));
			table_file_changed(&t->file);
		}
	*out = t;
	return 0;
}

void group_table_free(struct group_table *t)
{
	struct group *g, *tmp;

	if (!t)
		return;
	HASH_ITER(hh, t->all, g, tmp)
		drop(t, g);
	table_file_close(&t->file);
	free(t);
}
