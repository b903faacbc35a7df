/* route_table.c: how registrations, farewells and silence change the five tables. */
#include "route_private.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>

#include <stdlib.h>

#define LOG_MODULE "route"

/* ---- Finding ----------------------------------------------------------------------------------------------------- */

struct route_broker *route_find_broker(const struct route_table *t, struct mq_str name)
{
	struct route_broker *found;

	HASH_FIND(hh, t->brokers, name.p, name.n, found);
	return found;
}

struct route_cluster *route_find_cluster(const struct route_table *t, struct mq_str name)
{
	struct route_cluster *found;

	HASH_FIND(hh, t->clusters, name.p, name.n, found);
	return found;
}

static struct route_live *live_new(struct mq_str cluster, struct mq_str addr)
{
	struct route_live *l = mem_alloc(sizeof(*l) + cluster.n + 1 + addr.n + 1);

	memcpy(l->key, cluster.p, cluster.n);
	memcpy(l->key + cluster.n + 1, addr.p, addr.n);
	l->key_n = cluster.n + 1 + addr.n;
	l->addr = l->key + cluster.n + 1;
	return l;
}

struct route_live *route_find_live(const struct route_table *t, struct mq_str cluster, struct mq_str addr)
{
	struct route_live *key, *found;

	if (!t->live)
		return NULL;
	key = live_new(cluster, addr);
	HASH_FIND(hh, t->live, key->key, key->key_n, found);
	free(key);
	return found;
}

static struct mq_str live_cluster(const struct route_live *l)
{
	return str_of(l->key);
}

static struct route_addr *broker_addr(const struct route_broker *b, int64_t id)
{
	for (size_t i = 0; i < b->naddrs; i++)
		if (b->addr[i].id == id)
			return &b->addr[i];
	return NULL;
}

bool route_no_master(const struct route_broker *b)
{
	return b->naddrs == 0 || b->addr[0].id > 0;
}

/* ---- Brokers, clusters ------------------------------------------------------------------------------------------- */

static void replace(char **text, struct mq_str now)
{
	free(*text);
	*text = now.p ? str_dup(now) : NULL;
}

static void cluster_add(struct route_table *t, struct mq_str name, struct mq_str broker)
{
	struct route_cluster *c = route_find_cluster(t, name);

	if (!c) {
		c = mem_alloc(sizeof(*c) + name.n + 1);
		memcpy(c->name, name.p, name.n);
		HASH_ADD_KEYPTR(hh, t->clusters, c->name, name.n, c);
	}
	for (size_t i = 0; i < c->n; i++)
		if (str_is(broker, c->broker[i]))
			return;
	c->broker = mem_realloc(c->broker, (c->n + 1) * sizeof(*c->broker));
	c->broker[c->n++] = str_dup(broker);
}

static void cluster_free(struct route_table *t, struct route_cluster *c)
{
	HASH_DELETE(hh, t->clusters, c);
	for (size_t i = 0; i < c->n; i++)
		free(c->broker[i]);
	free(c->broker);
	free(c);
}

/* The broker's name is gone, so from every cluster. */
static void cluster_drop(struct route_table *t, const char *broker)
{
	struct route_cluster *c, *next;

	HASH_ITER(hh, t->clusters, c, next) {
		for (size_t i = c->n; i-- > 0;)
			if (strcmp(c->broker[i], broker) == 0) {
				free(c->broker[i]);
				c->broker[i] = c->broker[--c->n];
			}
		if (!c->n)
			cluster_free(t, c);
	}
}

static struct route_broker *broker_new(struct route_table *t, struct mq_str name, struct mq_str cluster)
{
	struct route_broker *b = mem_alloc(sizeof(*b));

	b->name = str_dup(name);
	b->cluster = str_dup(cluster);
	HASH_ADD_KEYPTR(hh, t->brokers, b->name, name.n, b);
	return b;
}

static void broker_free(struct route_table *t, struct route_broker *b)
{
	HASH_DELETE(hh, t->brokers, b);
	for (size_t i = 0; i < b->naddrs; i++)
		free(b->addr[i].addr);
	free(b->addr);
	free(b->name);
	free(b->cluster);
	free(b->zone);
	free(b);
}

static void broker_drop_addr(struct route_table *t, struct route_broker *b, size_t i)
{
	t->changes++;
	free(b->addr[i].addr);
	memmove(&b->addr[i], &b->addr[i + 1], (--b->naddrs - i) * sizeof(*b->addr));
}

/* Returns true if the id is new. */
static bool broker_set_addr(struct route_table *t, struct route_broker *b, int64_t id, struct mq_str addr)
{
	struct route_addr *a = broker_addr(b, id);
	size_t i = 0;

	if (a && str_is(addr, a->addr))
		return false;
	t->changes++;
	if (a) {
		replace(&a->addr, addr);
		return false;
	}
	b->addr = mem_realloc(b->addr, (b->naddrs + 1) * sizeof(*b->addr));
	while (i < b->naddrs && b->addr[i].id < id)
		i++;
	memmove(&b->addr[i + 1], &b->addr[i], (b->naddrs++ - i) * sizeof(*b->addr));
	b->addr[i] = (struct route_addr){ id, str_dup(addr) };
	return true;
}

/* ---- Who is first ------------------------------------------------------------------------------------------------ */

void route_table_on_first(struct route_table *t, void (*cb)(void *arg, const struct route_first *f), void *arg)
{
	t->on_first = cb;
	t->on_first_arg = arg;
}

/* A new first is told to the others; that one left, to all who remain. */
static void tell_first(struct route_table *t, const struct route_broker *b, struct mq_str offline, struct mq_str ha)
{
	struct mq_str tell[ROUTE_REPLICAS_MAX];
	struct route_first f = {
		.broker = str_of(b->name), .offline = offline, .ha = ha, .acting_master = b->acting_master, .tell = tell
	};

	if (!t->on_first || !b->naddrs)
		return;
	f.id = b->addr[0].id;
	f.addr = str_of(b->addr[0].addr);
	for (size_t i = 0; i < b->naddrs; i++)
		if (i > 0 || offline.p || b->naddrs == 1)
			tell[f.n++] = str_of(b->addr[i].addr);
	t->on_first(t->on_first_arg, &f);
}

/* ---- Who lives --------------------------------------------------------------------------------------------------- */

static void live_free(struct route_table *t, struct route_live *l)
{
	HASH_DELETE(hh, t->live, l);
	for (size_t i = 0; i < l->nfilters; i++)
		free(l->filter[i]);
	free(l->filter);
	free(l->ha_addr);
	free(l);
}

static void live_touch(struct route_live *l, const struct route_registration *r, int64_t now_ms)
{
	l->last_ms = now_ms;
	l->timeout_ms = r->timeout_ms > 0 ? r->timeout_ms : ROUTE_TIMEOUT_MS;
	l->conn = r->conn;
}

static void live_set(struct route_table *t, const struct route_registration *r, int64_t now_ms)
{
	struct route_live *l = route_find_live(t, r->cluster, r->addr);

	if (!l) {
		l = live_new(r->cluster, r->addr);
		HASH_ADD_KEYPTR(hh, t->live, l->key, l->key_n, l);
		log_info("new broker cluster=" MQ_STR_FMT " broker=" MQ_STR_FMT " id=%lld addr=" MQ_STR_FMT
		         " ha=" MQ_STR_FMT,
		         MQ_STR_ARG(r->cluster), MQ_STR_ARG(r->name), (long long)r->id, MQ_STR_ARG(r->addr),
		         MQ_STR_ARG(r->ha_addr));
	}
	live_touch(l, r, now_ms);
	replace(&l->ha_addr, r->ha_addr);
	l->version = r->body->topics.version;
	l->digest = r->digest;
	l->changes = t->changes;
	for (size_t i = 0; i < l->nfilters; i++)
		free(l->filter[i]);
	l->nfilters = r->body->nfilters;
	l->filter = mem_realloc(l->filter, l->nfilters * sizeof(*l->filter) + 1);
	for (size_t i = 0; i < l->nfilters; i++)
		l->filter[i] = str_dup(r->body->filter[i]);
}

void route_table_touch(struct route_table *t, struct mq_str cluster, struct mq_str addr, const void *conn,
                       int64_t now_ms)
{
	struct route_live *l = route_find_live(t, cluster, addr);

	if (!l)
		return;
	l->last_ms = now_ms;
	/* A broker that has connected anew but has nothing new to register must not fall with its old connection. */
	l->conn = conn;
}

const struct body_version *route_table_version(const struct route_table *t, struct mq_str cluster, struct mq_str addr)
{
	const struct route_live *l = route_find_live(t, cluster, addr);

	return l ? &l->version : NULL;
}

/* ---- Registration ------------------------------------------------------------------------------------------------ */

/* Topics are taken from the master, or from the slave with the least id; slaves of old brokers have no say. */
static void register_topics(struct route_table *t, const struct route_registration *r, struct route_broker *b,
                            bool first)
{
	const struct body_version *before = route_table_version(t, r->cluster, r->addr);
	bool changed = first || !before || !body_version_eq(before, &r->body->topics.version);
	bool prime_slave = r->knows_acting_master && r->id != 0 && b->addr[0].id == r->id;

	if (r->id != 0 && !prime_slave)
		return;
	t->registrations++;
	for (size_t i = 0; i < r->body->topics.n; i++) {
		const struct body_topic *topic = &r->body->topics.topic[i];
		struct body_queues_of q = { { NULL, 0 }, topic->read, topic->write, topic->perm, topic->sys_flag };
		struct route_queues *known;

		if (!topic->name.n)
			continue;
		known = changed ? NULL : route_topic_queues(route_find_topic(t, topic->name), b);
		if (known) {
			known->seen = t->registrations;
			continue;
		}
		/* With an acting master, what the slave stands in for can be read only. */
		if (prime_slave && b->acting_master)
			q.perm &= ~PERM_WRITE;
		route_topic_set(t, topic->name, b, &q);
	}
	if (r->full)
		route_topics_sweep(t, b);
}

/* Is another address with this id ahead?  Then this one is an old master that does not know of its end yet. */
static bool overtaken(const struct route_table *t, const struct route_registration *r, const struct route_broker *b)
{
	const struct route_addr *other = broker_addr(b, r->id);
	const struct body_version *version;

	if (!other || str_is(r->addr, other->addr))
		return false;
	version = route_table_version(t, r->cluster, str_of(other->addr));
	return version && version->state > r->body->topics.version.state;
}

static void find_master(const struct route_table *t, const struct route_registration *r, const struct route_broker *b,
                        struct route_master *master)
{
	const struct route_addr *a = r->id ? broker_addr(b, 0) : NULL;
	const struct route_live *l = a ? route_find_live(t, r->cluster, str_of(a->addr)) : NULL;

	if (l)
		*master = (struct route_master){ str_of(a->addr), str_of(l->ha_addr) };
}

int route_table_register(struct route_table *t, const struct route_registration *r, int64_t now_ms,
                         struct route_master *master, struct mq_error *e)
{
	struct route_broker *b = route_find_broker(t, r->name);
	struct route_live *l;
	bool first = !b, new_first;

	*master = (struct route_master){ 0 };
	if (HASH_COUNT(t->topics) + r->body->topics.n > 2 * (size_t)ROUTE_TOPICS_MAX ||
	    HASH_COUNT(t->topics) > ROUTE_TOPICS_MAX)
		return err_set(e, MQ_EREFUSED, "more than %d topics", ROUTE_TOPICS_MAX);
	if (!route_find_live(t, r->cluster, r->addr) &&
	    (HASH_COUNT(t->live) >= ROUTE_BROKERS_MAX || HASH_COUNT(t->brokers) >= ROUTE_BROKERS_MAX ||
	     (b && b->naddrs >= ROUTE_REPLICAS_MAX)))
		return err_set(e, MQ_EREFUSED, "more than %d brokers or %d replicas of one", ROUTE_BROKERS_MAX,
		               ROUTE_REPLICAS_MAX);
	if (r->body->topics.n == 1 && !r->full && (!b || !broker_addr(b, r->id)))
		return err_set(e, MQ_EREFUSED, "register broker failed");
	cluster_add(t, r->cluster, r->name);
	if (!b)
		b = broker_new(t, r->name, r->cluster);
	b->acting_master = r->knows_acting_master && r->acting_master;
	replace(&b->zone, r->zone);
	new_first = r->id < (b->naddrs ? b->addr[0].id : 0);
	/* A slave that became master (or the reverse) is known under one id only. */
	for (size_t i = b->naddrs; i-- > 0;)
		if (str_is(r->addr, b->addr[i].addr) && b->addr[i].id != r->id)
			broker_drop_addr(t, b, i);
	if (overtaken(t, r, b)) {
		log_warn("ignored: another broker with this id is ahead broker=%s id=%lld addr=" MQ_STR_FMT, b->name,
		         (long long)r->id, MQ_STR_ARG(r->addr));
		l = route_find_live(t, r->cluster, r->addr);
		if (l)
			live_free(t, l);
		return 0;
	}
	if (broker_set_addr(t, b, r->id, r->addr))
		first = true;
	register_topics(t, r, b, first);
	live_set(t, r, now_ms);
	find_master(t, r, b, master);
	if (new_first)
		tell_first(t, b, (struct mq_str){ NULL, 0 }, r->ha_addr);
	return 0;
}

static bool same_text(struct mq_str a, const char *b)
{
	return a.p ? b && str_is(a, b) : !b;
}

bool route_table_again(struct route_table *t, const struct route_registration *r, int64_t now_ms, struct route_master *master)
{
	const struct route_broker *b = route_find_broker(t, r->name);
	const struct route_addr *a = b ? broker_addr(b, r->id) : NULL;
	struct route_live *l = a ? route_find_live(t, r->cluster, r->addr) : NULL;

	if (!l || l->digest != r->digest || l->changes != t->changes || !str_is(r->addr, a->addr) || !same_text(r->zone, b->zone) ||
	    !same_text(r->ha_addr, l->ha_addr) || b->acting_master != (r->knows_acting_master && r->acting_master))
		return false;
	*master = (struct route_master){ 0 };
	live_touch(l, r, now_ms);
	find_master(t, r, b, master);
	return true;
}

/* ---- Leaving ----------------------------------------------------------------------------------------------------- */

static void leave(struct route_table *t, struct mq_str cluster, struct mq_str name, struct mq_str addr, int64_t id)
{
	struct route_live *l = route_find_live(t, cluster, addr);
	struct route_broker *b = route_find_broker(t, name);
	bool was_first;

	log_info("broker leaves cluster=" MQ_STR_FMT " broker=" MQ_STR_FMT " id=%lld addr=" MQ_STR_FMT,
	         MQ_STR_ARG(cluster), MQ_STR_ARG(name), (long long)id, MQ_STR_ARG(addr));
	if (b) {
		was_first = b->naddrs && b->addr[0].id == id;
		for (size_t i = b->naddrs; i-- > 0;)
			if (str_is(addr, b->addr[i].addr))
				broker_drop_addr(t, b, i);
		if (!b->naddrs) {
			route_topics_forget(t, b);
			cluster_drop(t, b->name);
			broker_free(t, b);
		} else {
			if (b->acting_master && route_no_master(b))
				route_table_wipe_write(t, name);
			if (was_first)
				tell_first(t, b, addr, (struct mq_str){ NULL, 0 });
		}
	}
	if (l)
		live_free(t, l);
}

bool route_table_unregister(struct route_table *t, struct mq_str cluster, struct mq_str name, struct mq_str addr,
                            int64_t id, const void *conn)
{
	const struct route_live *l = route_find_live(t, cluster, addr);

	if (l && l->conn != conn) {
		log_info("late farewell of an older process ignored broker=" MQ_STR_FMT " addr=" MQ_STR_FMT,
		         MQ_STR_ARG(name), MQ_STR_ARG(addr));
		return false;
	}
	leave(t, cluster, name, addr, id);
	return true;
}

/* The broker behind a live entry leaves; the entry goes in any case. */
static void live_leave(struct route_table *t, struct route_live *l)
{
	struct mq_str cluster = live_cluster(l), addr = str_of(l->addr);
	struct route_broker *b, *next;

	HASH_ITER(hh, t->brokers, b, next)
		for (size_t i = 0; str_is(cluster, b->cluster) && i < b->naddrs; i++)
			if (str_is(addr, b->addr[i].addr)) {
				char *name = mem_strdup(b->name);

				leave(t, cluster, str_of(name), addr, b->addr[i].id);
				free(name);
				return;
			}
	live_free(t, l);
}

void route_table_lost(struct route_table *t, const void *conn)
{
	struct route_live *l, *next;

	HASH_ITER(hh, t->live, l, next)
		if (l->conn == conn)
			live_leave(t, l);
}

void route_table_scan(struct route_table *t, int64_t now_ms, void (*expired)(void *arg, const void *conn), void *arg)
{
	struct route_live *l, *next;

	HASH_ITER(hh, t->live, l, next) {
		const void *conn = l->conn;

		if (l->last_ms + l->timeout_ms >= now_ms)
			continue;
		log_warn("broker went silent addr=%s ms=%lld", l->addr, (long long)(now_ms - l->last_ms));
		live_leave(t, l);
		if (expired)
			expired(arg, conn);
	}
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

struct route_table *route_table_new(void)
{
	return mem_alloc(sizeof(struct route_table));
}

void route_table_free(struct route_table *t)
{
	struct route_topic *topic, *next_topic;
	struct route_broker *broker, *next_broker;
	struct route_cluster *cluster, *next_cluster;
	struct route_live *live, *next_live;

	HASH_ITER(hh, t->topics, topic, next_topic)
		route_topic_free(t, topic);
	HASH_ITER(hh, t->brokers, broker, next_broker)
		broker_free(t, broker);
	HASH_ITER(hh, t->clusters, cluster, next_cluster)
		cluster_free(t, cluster);
	HASH_ITER(hh, t->live, live, next_live)
		live_free(t, live);
	free(t);
}

size_t route_table_ntopics(const struct route_table *t)
{
	return HASH_COUNT(t->topics);
}

size_t route_table_nbrokers(const struct route_table *t)
{
	return HASH_COUNT(t->live);
}
