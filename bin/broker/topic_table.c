/* topic_table.c: the topics of this broker, by name. */
#include "topic_table.h"
#include "broker.h"
#include "hold.h"
#include "member.h"
#include "pop_hold.h"
#include "offset_table.h"
#include "register.h"
#include "topic_attr.h"
#include <base/clock.h>
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <assert.h>
#include <stdlib.h>

#define LOG_MODULE "topic"

/* ---- The table --------------------------------------------------------------------------------------------------------- */

struct topic *topic_table_find(struct topic_table *t, struct mq_str name)
{
	struct topic *x;

	HASH_FIND(hh, t->all, name.p, name.n, x);
	return x;
}

/* ---- Queues of the store ----------------------------------------------------------------------------------------------- */

struct mqstore_queue *topic_queue(struct topic_table *t, struct topic *topic, int32_t id, bool create)
{
	if (id < topic->nqueues && topic->queue[id])
		return topic->queue[id];
	if (id >= topic->nqueues) {
		int32_t n = topic->conf.read > topic->conf.write ? topic->conf.read : topic->conf.write;

		if (n <= id)
			n = id + 1;
		topic->queue = mem_realloc(topic->queue, n * sizeof *topic->queue);
		memset(topic->queue + topic->nqueues, 0, (n - topic->nqueues) * sizeof *topic->queue);
		topic->nqueues = n;
	}
	return topic->queue[id] = mqstore_queue(t->b->store, topic->conf.name, id, create);
}

struct mqstore_queue *topic_table_queue(struct topic_table *t, struct mq_str topic, int32_t id)
{
	struct topic *x = topic_table_find(t, topic);

	return x && id >= 0 && id < TOPIC_QUEUES_MAX ? topic_queue(t, x, id, true) : mqstore_queue(t->b->store, topic, id, true);
}

void topic_table_forget_queues(struct topic_table *t)
{
	struct topic *x, *tmp;

	HASH_ITER(hh, t->all, x, tmp)
		if (x->queue)
			memset(x->queue, 0, x->nqueues * sizeof *x->queue);
}

/* ---- The file and what is made at the start ------------------------------------------------------------------------------- */

static struct topic *add(struct topic_table *t, const struct body_topic *conf)
{
	struct topic *x = topic_new(conf->name);
	struct mq_str name = x->conf.name;

	x->conf = *conf;
	x->conf.name = name;
	topic_attr_set(x, conf->attr, conf->nattrs);
	HASH_ADD_KEYPTR(hh, t->all, x->name, name.n, x);
	return x;
}

/* Under a controller a version names the epoch first. */
static int64_t epoch(const struct broker *b)
{
	return b->opt.member ? member_epoch(b->opt.member) : 0;
}

/* Something that is saved and registered has changed: x, or (NULL) what the topics that are there do not tell. */
static void changed(struct topic_table *t, struct topic *x)
{
	body_version_next(&t->version, clock_wall_ms(), epoch(t->b));
	table_file_changed(&t->file);
	if (x)
		x->changed = t->file.version;
	else
		t->whole = t->file.version;
	if (t->b->reg)
		register_soon(t->b->reg);
}

void topic_table_touch(struct topic_table *t)
{
	changed(t, NULL);
}

static void write_file(void *table, struct buf *out)
{
	struct topic_table *t = table;
	struct json_out o = json_to(out);
	struct topic *x, *tmp;

	json_open(&o, '{');
	body_version_put(&o, "dataVersion", &t->version);
	json_key(&o, "topicConfigTable");
	json_open(&o, '{');
	HASH_ITER(hh, t->all, x, tmp) { /* a line each, for people, grep and diff */
		buf_cstr(out, o.comma ? ",\n" : "\n");
		o.comma = false;
		json_key_str(&o, x->conf.name);
		body_topic_put(&o, &x->conf);
	}
	json_close(&o, '}');
	json_close(&o, '}');
	buf_char(out, '\n');
}

/* Topics that exist in every broker, as by the peer's TopicConfigManager. */
static void add_system_topics(struct topic_table *t)
{
	const struct broker_conf *c = t->b->conf;
	char reply[MQ_TOPIC_MAX + 16], revive[MQ_TOPIC_MAX + 32], sync[MQ_TOPIC_MAX + 32];
	const struct {
		const char *name;
		int32_t queues, perm;
		bool wanted;
	} row[] = {
		{ "SELF_TEST_TOPIC", 1, 6, true },
		{ TOPIC_DEFAULT, c->defaultTopicQueueNums, 7, c->autoCreateTopicEnable },
		{ "BenchmarkTest", 1024, 6, true },
		{ c->brokerClusterName, 16, c->clusterTopicEnable ? 7 : 1, true },
		{ c->brokerName, 1, c->brokerTopicEnable ? 7 : 1, true },
		{ "OFFSET_MOVED_EVENT", 1, 6, true },
		{ TOPIC_SCHEDULE, 18, 6, true },
		{ c->msgTraceTopicName, 1, 6, c->traceTopicEnable },
		{ reply, 1, 6, true },
		{ revive, c->reviveQueueNum, 6, true },
		{ sync, 1, 1, true },
		{ TOPIC_HALF, 1, 6, true },
		{ TOPIC_OP_HALF, 1, 6, true },
	};

	snprintf(reply, sizeof reply, "%s_REPLY_TOPIC", c->brokerClusterName);
	snprintf(revive, sizeof revive, "rmq_sys_REVIVE_LOG_%s", c->brokerClusterName);
	snprintf(sync, sizeof sync, "rmq_sys_SYNC_BROKER_MEMBER_%s", c->brokerName);
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct topic *x = row[i].wanted ? topic_table_find(t, str_of(row[i].name)) : NULL;

		if (row[i].wanted && !x) {
			x = add(t, &(struct body_topic){ .name = str_of(row[i].name), .read = row[i].queues,
							 .write = row[i].queues, .perm = row[i].perm });
			table_file_changed(&t->file);
		}
		if (x)
			x->system = true; /* also the cluster's and the broker's: not deleted by request */
	}
}

static void load(void *table, const json_t *json)
{
	struct topic_table *t = table;
	struct body_topic_table body = { 0 };

	body_topic_table_get(&body.keep, json, &body);
	for (size_t i = 0; i < body.n; i++) {
		struct mq_error why;

		if (mq_check_topic(body.topic[i].name, &why) < 0)
			log_warn("topics.json: topic left out: %s", why.text);
		else if (!topic_table_find(t, body.topic[i].name))
			add(t, &body.topic[i]);
	}
	t->version = body.version;
	body_topic_table_free(&body);
}

static const struct table_kind kind = { .name = "topics", .write = write_file, .load = load };

int topic_table_open(struct topic_table **out, struct broker *b, struct mq_error *e)
{
	struct topic_table *t = mem_alloc(sizeof *t);
	int rc;

	*out = NULL;
	t->b = b;
	rc = table_file_open(&t->file, b, &kind, t, e);
	if (rc < 0) {
		free(t);
		return rc;
	}
	t->file.version = t->file.saved = 1; /* 0 is nothing yet, for those who are told */
	add_system_topics(t);
	/* Name servers take the table of a broker that has started anew only if its version is another one. */
	body_version_next(&t->version, clock_wall_ms(), epoch(t->b));
	*out = t;
	return 0;
}

void topic_table_free(struct topic_table *t)
{
	struct topic *x, *tmp;

	if (!t)
		return;
	HASH_ITER(hh, t->all, x, tmp) {
		HASH_DEL(t->all, x);
		topic_put(x);
	}
	table_file_close(&t->file);
	free(t);
}

static struct topic *create(struct topic_table *t, const struct body_topic *conf, const char *why)
{
	struct topic *x = add(t, conf);

	changed(t, x);
	x->since = t->file.version;
	log_info("topic made name=%s read=%d write=%d perm=%d%s", x->name, conf->read, conf->write, conf->perm, why);
	return x;
}

struct topic *topic_table_auto_create(struct topic_table *t, struct mq_str name, struct mq_str like, int32_t queues,
                                      int32_t sys_flag)
{
	struct topic *l = topic_table_find(t, like);
	struct body_topic conf;

	if (!l || !(l->conf.perm & PERM_INHERIT) || (str_is(like, TOPIC_DEFAULT) && !t->b->conf->autoCreateTopicEnable))
		return NULL;
	if (queues > l->conf.write)
		queues = l->conf.write;
	if (queues < 1)
		queues = 1; /* compat: 5.2.0 makes a topic without queues, which nobody can use */
	conf = (struct body_topic){ .name = name, .read = queues, .write = queues, .perm = l->conf.perm & ~PERM_INHERIT,
				    .sys_flag = sys_flag, .multi_tag = l->conf.multi_tag };
	return create(t, &conf, " by=send");
}

struct topic *topic_table_need(struct topic_table *t, struct mq_str name, int32_t queues)
{
	struct topic *x = topic_table_find(t, name);

	return x ? x : create(t, &(struct body_topic){ .name = name, .read = queues, .write = queues, .perm = PERM_READ | PERM_WRITE }, "");
}

struct topic *topic_table_of_group(struct topic_table *t, const char *prefix, struct mq_str group, int32_t queues)
{
	char name[16 + MQ_GROUP_MAX];
	size_t n = strlen(prefix);
	struct topic *x;

	assert(n + group.n <= sizeof name);
	memcpy(name, prefix, n);
	memcpy(name + n, group.p, group.n);
	x = topic_table_need(t, (struct mq_str){ name, n + group.n }, queues);
	if (x->conf.read < queues || x->conf.write < queues) {
		log_info("topic gets more queues name=%s read=%d write=%d queues=%d", x->name, x->conf.read, x->conf.write, queues);
		x->conf.read = x->conf.read < queues ? queues : x->conf.read;
		x->conf.write = x->conf.write < queues ? queues : x->conf.write;
		changed(t, x);
	}
	return x;
}

int topic_table_delete(struct topic_table *t, struct mq_str name, struct mq_error *e)
{
	struct topic *x = topic_table_find(t, name);
	int rc;

	if (x) {
		HASH_DEL(t->all, x);
		x->deleted = true;
		hold_wake_topic(t->b->hold, x, (struct mq_str){ 0 });
		pop_hold_wake(t->b->pops, x, (struct mq_str){ 0 });
		log_info("topic deleted name=%s", x->name);
		changed(t, NULL);
	}
	offset_table_drop_topic(t->b->offsets, name);
	rc = mqstore_delete_topic(t->b->store, name, e);
	if (x) {
		if (x->queue)
			memset(x->queue, 0, x->nqueues * sizeof *x->queue);
		topic_put(x);
	}
	return rc == MQ_ENOTFOUND ? 0 : rc;
}

static bool has(const struct body_topic_table *to, struct mq_str name)
{
	for (size_t i = 0; i < to->n; i++)
		if (str_eq(to->topic[i].name, name))
			return true;
	return false;
}

void topic_table_replace(struct topic_table *t, const struct body_topic_table *to)
{
	struct topic *x, *tmp;
	struct mq_error e;

	if (body_version_eq(&t->version, &to->version))
		return;
	HASH_ITER(hh, t->all, x, tmp) {
		struct mq_str name = x->conf.name;

		if (x->system || has(to, name))
			continue;
		if (topic_table_delete(t, name, &e) < 0)
			log_error("%s", e.text);
	}
	for (size_t i = 0; i < to->n; i++) {
		const struct body_topic *conf = &to->topic[i];
		struct mq_str name;

		if (mq_check_topic(conf->name, &e) < 0) {
			log_warn("topic of the master left out: %s", e.text);
			continue;
		}
		x = topic_table_find(t, conf->name);
		if (!x) {
			create(t, conf, " by=master");
			continue;
		}
		name = x->conf.name;
		topic_attr_set(x, conf->attr, conf->nattrs);
		x->conf = (struct body_topic){ .attr = x->conf.attr, .nattrs = x->conf.nattrs, .read = conf->read, .write = conf->write,
					       .perm = conf->perm, .sys_flag = conf->sys_flag, .order = conf->order,
					       .multi_tag = conf->multi_tag };
		x->conf.name = name;
	}
	changed(t, NULL);
	t->version = to->version;
	log_info("topics taken from the master topics=%zu", to->n);
}

void topic_table_order(struct topic_table *t, const struct body_pair *pair, size_t n)
{
	struct topic *x, *tmp;

	HASH_ITER(hh, t->all, x, tmp) {
		bool order = false;

		for (size_t i = 0; i < n && !order; i++)
			order = str_eq(pair[i].key, x->conf.name);
		if (order != x->conf.order) {
			x->conf.order = order;
			changed(t, x);
			log_info("topic order name=%s order=%d", x->name, order);
		}
	}
}

int32_t topic_table_perm_mask(int32_t perm)
{
	return (perm & (PERM_READ | PERM_WRITE)) == (PERM_READ | PERM_WRITE) ? ~0 : perm;
}

void topic_table_changes(struct topic_table *t, uint64_t version, int32_t perm_mask, struct body_topic_table *out)
{
	struct topic *x, *tmp;

	*out = (struct body_topic_table){ .version = t->version };
	out->topic = mem_alloc((HASH_COUNT(t->all) + 1) * sizeof *out->topic);
	HASH_ITER(hh, t->all, x, tmp) {
		if (x->changed <= version && version)
			continue;
		out->topic[out->n] = x->conf;
		out->topic[out->n++].perm &= perm_mask;
	}
}

void topic_table_body(struct topic_table *t, int32_t perm_mask, struct body_topic_table *out)
{
	topic_table_changes(t, 0, perm_mask, out);
}

/* ---- Change by request -------------------------------------------------------------------------------------------------- */

int topic_table_set(struct topic_table *t, const struct body_topic *to, struct mq_str change, bool *was_changed,
                    struct mq_error *e)
{
	struct topic *x = topic_table_find(t, to->name);
	struct body_pair attr[TOPIC_ATTRS];
	struct body_topic conf = *to;
	size_t n;
	int rc;

	*was_changed = false;
	if ((rc = mq_check_topic(to->name, e)) < 0)
		return rc;
	if (t->b->conf->validateSystemTopicWhenUpdateTopic && (topic_is_system(to->name) || (x && x->system)))
		return err_set(e, MQ_EINVAL, "The topic[" MQ_STR_FMT "] is conflict with system topic.", MQ_STR_ARG(to->name));
	if (to->perm < 0 || to->perm > 15)
		return err_set(e, MQ_EINVAL, "perm %d: 2 (write), 4 (read) or 6 (both) would be right", to->perm);
	if (to->read < 0 || to->read > TOPIC_QUEUES_MAX || to->write < 0 || to->write > TOPIC_QUEUES_MAX)
		return err_set(e, MQ_EINVAL, "readQueueNums %d, writeQueueNums %d: a topic has 0 to %d queues", to->read, to->write,
			       TOPIC_QUEUES_MAX);
	if ((rc = topic_attr_change(x, change, t->b->conf->enableMixedMessageType, attr, &n, e)) < 0)
		return rc;
	conf.attr = attr;
	conf.nattrs = n;
	if (!x) {
		create(t, &conf, " by=request");
		*was_changed = true;
		return 0;
	}
	if (x->conf.read == to->read && x->conf.write == to->write && x->conf.perm == to->perm &&
	    x->conf.sys_flag == to->sys_flag && x->conf.order == to->order && x->conf.multi_tag == to->multi_tag &&
	    topic_attr_same(x, attr, n))
		return 0;
	topic_attr_set(x, attr, n);
	conf = *to;
	conf.name = x->conf.name;
	conf.attr = x->conf.attr;
	conf.nattrs = x->conf.nattrs;
	x->conf = conf;
	changed(t, x);
	pop_hold_wake(t->b->pops, x, (struct mq_str){ 0 }); /* it may have more queues to wait on */
	*was_changed = true;
	log_info("topic changed name=%s read=%d write=%d perm=%d", x->name, to->read, to->write, to->perm);
	return 0;
}
