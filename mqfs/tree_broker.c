/* tree_broker.c: clusters and brokers: who is there, how it fares, its settings. */
#include "answer.h"
#include "cluster.h"
#include "fail.h"
#include "keyvalue.h"
#include "tree_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Clusters ---------------------------------------------------------------------------------------------------- */

int broker_clusters(struct node *dir, struct names *out)
{
	const struct cluster_brokers *b;
	int rc = cluster_brokers(&b);

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		names_add(out, b->v[i].cluster);
	names_sort(out);
	return rc;
}

int broker_find_cluster(struct node *dir, const char *name)
{
	const struct cluster_brokers *b;
	int rc = cluster_brokers(&b);

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (strcmp(b->v[i].cluster, name) == 0)
			return 0;
	return rc ? rc : -ENOENT;
}

int broker_cluster_text(struct node *n, struct bytes *out)
{
	const struct cluster_brokers *b;
	int rc = cluster_brokers(&b);

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (strcmp(b->v[i].cluster, tree_name(n, K_CLUSTER)) == 0)
			bytes_printf(out, "%s\t%lld\t%s\n", b->v[i].name, (long long)b->v[i].id, b->v[i].addr);
	return rc;
}

/* ---- Brokers ----------------------------------------------------------------------------------------------------- */

int broker_names(struct node *dir, struct names *out)
{
	const struct cluster_brokers *b;
	int rc = cluster_brokers(&b);

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		names_add(out, b->v[i].name);
	names_sort(out);
	return rc;
}

int broker_find(struct node *dir, const char *name)
{
	const struct cluster_brokers *b;
	int rc = cluster_brokers(&b);

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (strcmp(b->v[i].name, name) == 0)
			return 0;
	return rc ? rc : -ENOENT;
}

int broker_ids(struct node *dir, struct names *out)
{
	const struct cluster_brokers *b;
	int rc = cluster_brokers(&b);

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (strcmp(b->v[i].name, dir->name) == 0)
			names_printf(out, "%lld", (long long)b->v[i].id);
	return rc;
}

int broker_find_id(struct node *dir, const char *name)
{
	const struct cluster_brokers *b;
	int64_t id;
	int rc = tree_offset(name, &id) ? cluster_brokers(&b) : -ENOENT;

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		if (strcmp(b->v[i].name, dir->name) == 0 && b->v[i].id == id)
			return 0;
	return rc ? rc : -ENOENT;
}

/* Ask the broker whose directory this node is in. */
static int ask(struct node *n, const struct question *q, struct answer *a)
{
	char addr[300];
	int rc = cluster_addr(tree_name(n, K_BROKER), strtoll(tree_name(n, K_BROKER_ID), NULL, 10), addr);

	memset(a, 0, sizeof(*a));
	if (rc == 0) {
		answer_ask(addr, q, a);
		rc = answer_rc(a, "broker", NULL);
	}
	return rc;
}

static int runtime_info(struct node *n, json_t **table)
{
	struct question q = { .code = 28 };
	struct answer a;
	json_t *o = NULL;
	int rc = ask(n, &q, &a);

	*table = NULL;
	if (rc == 0) {
		o = answer_json(&a);
		*table = json_incref(json_object_get(o, "table"));
		rc = *table ? 0 : -EPROTO;
	}
	json_decref(o);
	answer_free(&a);
	return rc;
}

int broker_status(struct node *n, struct bytes *out)
{
	json_t *table;
	int rc = runtime_info(n, &table);

	if (rc == 0)
		keyvalue_text(table, out);
	json_decref(table);
	return rc;
}

/* Prometheus text: what of the status is a number, its name in snake_case. */
static void metric(struct bytes *out, const char *broker, const char *id, const char *key, const char *value)
{
	char name[200], *end;
	size_t at = 0;
	double v = strtod(value, &end);

	if (end == value || *end)
		return;
	for (const char *p = key; *p && at + 3 < sizeof(name); p++) {
		bool upper = *p >= 'A' && *p <= 'Z', word = upper || (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
		if (upper && p > key && at && name[at - 1] != '_')
			name[at++] = '_';
		name[at++] = upper ? (char)(*p + 'a' - 'A') : word ? *p : '_';
	}
	name[at] = '\0';
	bytes_printf(out, "# TYPE mq_broker_%s gauge\nmq_broker_%s{broker=\"%s\",id=\"%s\"} %.17g\n", name, name, broker, id, v);
}

int broker_metrics(struct node *n, struct bytes *out)
{
	json_t *table, *v;
	const char *key;
	int rc = runtime_info(n, &table);

	json_object_foreach(table, key, v)
		if (json_is_string(v))
			metric(out, tree_name(n, K_BROKER), tree_name(n, K_BROKER_ID), key, json_string_value(v));
	json_decref(table);
	return rc;
}

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

int broker_config(struct node *n, struct bytes *out)
{
	struct question q = { .code = 26 };
	struct answer a;
	int rc = ask(n, &q, &a);

	if (rc == 0 && a.body.n) {
		bytes_add(out, a.body.p, a.body.n);
		if (out->p[out->n - 1] != '\n')
			bytes_byte(out, '\n');
	}
	answer_free(&a);
	return rc;
}

static bool is_set(struct mq_str text, struct mq_str key, struct mq_str value, bool *known)
{
	struct mq_str k, v;

	*known = false;
	while (keyvalue_next(&text, &k, &v, "config") > 0)
		if (k.n == key.n && memcmp(k.p, key.p, k.n) == 0) {
			*known = true;
			return v.n == value.n && memcmp(v.p, value.p, v.n) == 0;
		}
	return false;
}

/* Only what differs from what is set is sent: a broker refuses what cannot be changed while it runs, even to what it is. */
int broker_set_config(struct node *n, struct mq_str text)
{
	struct question q = { .code = 25 };
	struct bytes now = { 0 }, body = { 0 };
	struct mq_str key, value;
	struct answer a = { 0 };
	bool known;
	int rc = broker_config(n, &now), more = 0;

	while (rc == 0 && (more = keyvalue_next(&text, &key, &value, "config")) > 0) {
		if (is_set(bytes_view(&now), key, value, &known))
			continue;
		if (!known)
			rc = fail(-EINVAL, "config: there is no setting '" MQ_STR_FMT "'", MQ_STR_ARG(key));
		bytes_printf(&body, MQ_STR_FMT "=" MQ_STR_FMT "\n", MQ_STR_ARG(key), MQ_STR_ARG(value));
	}
	if (rc == 0)
		rc = more;
	if (rc == 0 && body.n) {
		q.body = bytes_view(&body);
		rc = ask(n, &q, &a);
	}
	answer_free(&a);
	bytes_free(&now);
	bytes_free(&body);
	return rc;
}
