/* cluster.c: see cluster.h. */
#include "cluster.h"
#include "answer.h"
#include "fail.h"
#include "options.h"
#include "task.h"
#include "../bin/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { ROUTES_MAX = 2000 };

struct route {
	UT_hash_handle hh;
	char *text;                     /* strict JSON; NULL: there is no such topic */
	int64_t at_ms;
	char topic[];
};

static struct {
	struct mqclient *client;
	struct cluster_brokers brokers;
	int64_t brokers_ms;             /* when asked, monotonic; 0 = never */
	struct names topics;
	int64_t topics_ms;
	struct route *routes;
	/* What changes counts this up: what was asked before is then not kept for new. */
	unsigned changes;
} c;

/* ---- Life -------------------------------------------------------------------------------------------------------- */

static void on_log(void *arg, int level, const char *line)
{
	if (options.debug)
		cli_warn("%s", line);
}

int cluster_open(const char *addr, uv_loop_t *loop, struct mq_error *err)
{
	struct mqclient_opt opt = { .addr = addr, .loop = loop, .timeout_ms = (int32_t)options.timeout_ms, .log = on_log };

	return mqclient_open(&c.client, &opt, err);
}

struct mqclient *cluster_client(void) { return c.client; }

static void free_brokers(void)
{
	for (size_t i = 0; i < c.brokers.n; i++) {
		free(c.brokers.v[i].cluster);
		free(c.brokers.v[i].name);
		free(c.brokers.v[i].addr);
	}
	free(c.brokers.v);
	c.brokers = (struct cluster_brokers){ 0 };
}

static void free_route(struct route *r)
{
	HASH_DEL(c.routes, r);
	free(r->text);
	free(r);
}

void cluster_close(int timeout_ms)
{
	struct route *r, *tmp;

	mqclient_free(c.client, timeout_ms);
	c.client = NULL;
	free_brokers();
	names_free(&c.topics);
	HASH_ITER(hh, c.routes, r, tmp)
		free_route(r);
}

static bool fresh(int64_t at_ms) { return at_ms && task_now_ms() - at_ms < CLUSTER_CACHE_MS; }

void cluster_changed(void)
{
	struct route *r, *tmp;

	c.changes++;
	c.brokers_ms = c.topics_ms = 0;
	HASH_ITER(hh, c.routes, r, tmp)
		free_route(r);
}

int64_t cluster_age_ms(void) { return c.brokers_ms ? task_now_ms() - c.brokers_ms : -1; }

/* ---- Brokers ----------------------------------------------------------------------------------------------------- */

static char *copy(const char *s)
{
	char *p = strdup(s);

	if (!p)
		cli_die(CLI_SYSTEM, "out of memory");
	return p;
}

static int by_place(const void *x, const void *y)
{
	const struct cluster_broker *a = x, *b = y;
	int r = strcmp(a->cluster, b->cluster);

	if (r == 0)
		r = strcmp(a->name, b->name);
	return r ? r : (a->id > b->id) - (a->id < b->id);
}

/* A name that can be a file's. */
static bool good_name(const char *s) { return *s && !strchr(s, '/') && s[0] != '.' && strlen(s) < 256; }

static void take_brokers(const json_t *o)
{
	const char *name, *id;
	json_t *data, *addr;

	free_brokers();
	json_object_foreach(json_object_get(o, "brokerAddrTable"), name, data) {
		json_object_foreach(json_object_get(data, "brokerAddrs"), id, addr) {
			if (!json_is_string(addr) || !good_name(name) || strlen(json_string_value(addr)) > 298)
				continue;
			c.brokers.v = realloc(c.brokers.v, (c.brokers.n + 1) * sizeof(*c.brokers.v));
			if (!c.brokers.v)
				cli_die(CLI_SYSTEM, "out of memory");
			const char *cluster = member_text(data, "cluster", "DefaultCluster");
			c.brokers.v[c.brokers.n++] = (struct cluster_broker){ copy(good_name(cluster) ? cluster : "?"), copy(name),
			                                                       copy(json_string_value(addr)), strtoll(id, NULL, 10) };
		}
	}
	if (c.brokers.n)
		qsort(c.brokers.v, c.brokers.n, sizeof(*c.brokers.v), by_place);
}

int cluster_brokers(const struct cluster_brokers **out)
{
	struct question q = { .code = 106 };
	struct answer a;
	unsigned changes = c.changes;
	json_t *o;
	int rc;

	*out = &c.brokers;
	if (fresh(c.brokers_ms))
		return 0;
	answer_ask(NULL, &q, &a);
	rc = answer_rc(&a, "brokers", NULL);
	o = rc ? NULL : answer_json(&a);
	if (rc == 0 && !o)
		rc = -EPROTO;
	if (rc == 0) {
		take_brokers(o);
		if (changes == c.changes)
			c.brokers_ms = task_now_ms();
	}
	json_decref(o);
	answer_free(&a);
	/* Name servers may be away while the brokers serve. */
	return c.brokers.n ? 0 : rc;
}

int cluster_addr(const char *broker, int64_t id, char out[300])
{
	const struct cluster_brokers *b;
	const struct cluster_broker *found = NULL;
	int rc = cluster_brokers(&b);

	if (rc)
		return rc;
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->v[i].name, broker) == 0 && (b->v[i].id == id || (id == 0 && !found)))
			found = &b->v[i];
	if (!found)
		return -ENOENT;
	snprintf(out, 300, "%s", found->addr);
	return 0;
}

int cluster_masters(char ***addrs, size_t *n)
{
	const struct cluster_brokers *b;
	int rc = cluster_brokers(&b);

	*addrs = NULL;
	*n = 0;
	if (rc)
		return rc;
	*addrs = calloc(b->n + 1, sizeof(**addrs));
	if (!*addrs)
		cli_die(CLI_SYSTEM, "out of memory");
	/* The first of each name: they are sorted by id. */
	for (size_t i = 0; i < b->n; i++)
		if (i == 0 || strcmp(b->v[i].name, b->v[i - 1].name) != 0)
			(*addrs)[(*n)++] = copy(b->v[i].addr);
	return *n ? 0 : fail(-EHOSTDOWN, "no broker is registered at the name server");
}

void cluster_masters_free(char **addrs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(addrs[i]);
	free(addrs);
}

/* ---- Topics ------------------------------------------------------------------------------------------------------ */

static int refresh_topics(void)
{
	struct question q = { .code = 206 };
	struct answer a;
	unsigned changes = c.changes;
	json_t *o, *t;
	size_t i;
	int rc;

	if (fresh(c.topics_ms))
		return 0;
	answer_ask(NULL, &q, &a);
	rc = answer_rc(&a, "topics", NULL);
	o = rc ? NULL : answer_json(&a);
	if (rc == 0 && !o)
		rc = -EPROTO;
	if (rc == 0) {
		names_free(&c.topics);
		json_array_foreach(json_object_get(o, "topicList"), i, t)
			if (json_is_string(t) && good_name(json_string_value(t)))
				names_add(&c.topics, json_string_value(t));
		names_sort(&c.topics);
		if (changes == c.changes)
			c.topics_ms = task_now_ms();
	}
	json_decref(o);
	answer_free(&a);
	return rc;
}

int cluster_topics(struct names *out)
{
	int rc = refresh_topics();

	*out = (struct names){ 0 };
	if (rc == 0)
		names_copy(out, &c.topics);
	return rc;
}

/* ---- Routes ------------------------------------------------------------------------------------------------------ */

static void keep_route(const char *topic, const char *text)
{
	struct route *r;

	HASH_FIND_STR(c.routes, topic, r);
	if (!r) {
		if (HASH_COUNT(c.routes) >= ROUTES_MAX)
			free_route(c.routes);
		r = calloc(1, sizeof(*r) + strlen(topic) + 1);
		if (!r)
			cli_die(CLI_SYSTEM, "out of memory");
		memcpy(r->topic, topic, strlen(topic) + 1);
		HASH_ADD_STR(c.routes, topic, r);
	}
	free(r->text);
	r->text = text ? copy(text) : NULL;
	r->at_ms = task_now_ms();
}

struct route_wait {
	struct task *task;
	char *text;
	int rc;
	bool done, parked;
};

static void on_route(void *arg, int rc, const struct mq_error *err, struct mq_str text)
{
	struct route_wait *w = arg;

	w->done = true;
	if (rc == MQ_ENOROUTE)
		w->rc = -ENOENT;
	else if (rc < 0)
		w->rc = fail_error("route", err);
	else
		w->text = strndup(text.p, text.n);
	if (w->parked)
		task_wake(w->task);
}

/* That no broker serves a topic says little when there is no broker at all. */
static int nobody_is_there(void)
{
	const struct cluster_brokers *b;

	return cluster_brokers(&b) == 0 && b->n == 0 ? -EHOSTDOWN : -ENOENT;
}

int cluster_route_text(const char *topic, char **out)
{
	struct route_wait w = { .task = task_self() };
	unsigned changes = c.changes;
	struct route *r;
	int rc;

	*out = NULL;
	HASH_FIND_STR(c.routes, topic, r);
	if (r && fresh(r->at_ms)) {
		*out = r->text ? copy(r->text) : NULL;
		return r->text ? 0 : -ENOENT;
	}
	rc = mqclient_route(c.client, (struct mq_str){ topic, strlen(topic) }, on_route, &w);
	if (rc < 0)
		return -ENOENT; /* a name that no topic can have */
	if (!w.done) {
		w.parked = true;
		task_park();
	}
	if (w.rc == 0 || w.rc == -ENOENT) {
		if (w.rc == 0 && changes == c.changes)
			keep_route(topic, w.text);
		*out = w.text;
		return w.rc ? nobody_is_there() : 0;
	}
	/* The name servers are away: what was known of it is still likely. */
	HASH_FIND_STR(c.routes, topic, r);
	if (!r || !r->text)
		return w.rc;
	*out = copy(r->text);
	return 0;
}

static int by_broker(const void *a, const void *b)
{
	return strcmp(((const struct cluster_route_queue *)a)->broker, ((const struct cluster_route_queue *)b)->broker);
}

int cluster_route(const char *topic, struct cluster_route_queue **out, size_t *n)
{
	char *text;
	json_t *o, *q, *d;
	size_t i, k;
	int rc = cluster_route_text(topic, &text);

	*out = NULL;
	*n = 0;
	if (rc)
		return rc;
	o = json_loads(text, 0, NULL);
	free(text);
	if (!o)
		return fail(-EPROTO, "route of topic '%s' is no JSON", topic);
	*out = calloc(json_array_size(json_object_get(o, "queueDatas")) + 1, sizeof(**out));
	if (!*out)
		cli_die(CLI_SYSTEM, "out of memory");
	json_array_foreach(json_object_get(o, "queueDatas"), i, q) {
		struct cluster_route_queue *r = &(*out)[*n];
		const char *name = member_text(q, "brokerName", "");
		snprintf(r->broker, sizeof(r->broker), "%s", name);
		r->read = (int32_t)member_i64(q, "readQueueNums", 0);
		r->write = (int32_t)member_i64(q, "writeQueueNums", 0);
		r->perm = (int32_t)member_i64(q, "perm", 0);
		json_array_foreach(json_object_get(o, "brokerDatas"), k, d) {
			json_t *addrs = json_object_get(d, "brokerAddrs"), *addr = json_object_get(addrs, "0");
			if (strcmp(member_text(d, "brokerName", ""), name) != 0)
				continue;
			if (!addr)
				addr = json_object_iter_value(json_object_iter(addrs));
			if (json_is_string(addr))
				snprintf(r->addr, sizeof(r->addr), "%s", json_string_value(addr));
		}
		if (r->addr[0] && good_name(name))
			(*n)++;
	}
	qsort(*out, *n, sizeof(**out), by_broker);
	json_decref(o);
	return 0;
}

int cluster_has_topic(const char *topic)
{
	char *text = NULL;
	int rc;

	if (mq_check_topic((struct mq_str){ topic, strlen(topic) }, NULL) < 0)
		return -ENOENT;
	if (fresh(c.topics_ms) && names_has(&c.topics, topic))
		return 0;
	rc = cluster_route_text(topic, &text);
	free(text);
	return rc;
}
