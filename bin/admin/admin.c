/* admin.c: options, questions and the shape of the cluster, for all commands. */
#include "admin.h"
#include "../cli.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static struct mq_str str(const char *s) { return (struct mq_str){ s, s ? strlen(s) : 0 }; }

/* ---- Options --------------------------------------------------------------------------------------------------------- */

const char *admin_opt(const struct admin *a, const char *name)
{
	for (size_t i = 0; a->command->opts[i].name; i++)
		if (strcmp(a->command->opts[i].name, name) == 0)
			return a->value[i];
	abort(); /* a command asks for an option that its table does not have */
}

bool admin_flag(const struct admin *a, const char *name) { return admin_opt(a, name) != NULL; }

void admin_usage(const struct admin *a, const char *fmt, ...)
{
	char text[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	cli_usage_error("%s: %s", a->command->name, text);
}

bool admin_bool(const struct admin *a, const char *name, bool otherwise)
{
	const char *v = admin_opt(a, name);
	if (!v)
		return otherwise;
	if (strcasecmp(v, "true") == 0)
		return true;
	if (strcasecmp(v, "false") == 0)
		return false;
	admin_usage(a, "--%s: '%s' is neither true nor false", name, v);
}

int64_t admin_int(const struct admin *a, const char *name, int64_t otherwise, int64_t min, int64_t max)
{
	const char *v = admin_opt(a, name);
	char opt[64];
	if (!v)
		return otherwise;
	snprintf(opt, sizeof opt, "--%s", name);
	return cli_int(opt, v, min, max);
}

int64_t admin_time(const struct admin *a, const char *name, int64_t otherwise)
{
	const char *v = admin_opt(a, name);
	char opt[64];
	if (!v)
		return otherwise;
	snprintf(opt, sizeof opt, "--%s", name);
	return *v && v[strspn(v, "0123456789")] == 0 ? cli_int(opt, v, 0, INT64_MAX) : cli_time_ms(opt, v);
}

bool admin_dry_run(const struct admin *a) { return admin_flag(a, "dry-run"); }

/* ---- Asking ---------------------------------------------------------------------------------------------------------- */

void admin_field(struct admin_fields *f, const char *name, const char *value)
{
	if (value)
		f->f[f->n++] = (struct mqclient_field){ name, str(value) };
}

void admin_field_int(struct admin_fields *f, const char *name, int64_t value, char scratch[24])
{
	snprintf(scratch, 24, "%lld", (long long)value);
	admin_field(f, name, scratch);
}

int admin_ask(struct admin *a, const char *to, int code, const struct admin_fields *f, struct mq_str body, const int *also,
              struct mqclient_answer *ans)
{
	if (mqclient_ask_wait(a->client, to, code, f ? f->f : NULL, f ? f->n : 0, body, a->timeout_ms, ans) < 0)
		cli_fail(&ans->err);
	if (ans->code == 0)
		return 0;
	for (; also && *also; also++)
		if (*also == ans->code)
			return ans->code;
	cli_die(CLI_REFUSED, "%s: %s refused (code %d): " MQ_STR_FMT, a->command->name, to ? to : "the name server", ans->code,
	        MQ_STR_ARG(ans->remark));
}

json_t *admin_json(const struct mqclient_answer *ans)
{
	struct mq_error err;
	if (ans->body.n == 0)
		return json_object();
	char *strict = mqclient_strict_json(ans->body, &err);
	if (!strict)
		cli_fail(&err);
	json_t *o = json_loads(strict, JSON_DECODE_ANY, NULL);
	free(strict);
	if (!o)
		cli_die(CLI_SYSTEM, "the answer is no JSON");
	return o;
}

/* A copy: those of the client live until the next turn of its loop. */
const char *const *admin_nameservers(struct admin *a)
{
	static char *copy[64];
	size_t n = 0;
	for (const char *const *ns = mqclient_nameservers(a->client); *ns && n + 1 < sizeof copy / sizeof *copy; ns++) {
		free(copy[n]);
		copy[n] = strdup(*ns);
		if (!copy[n++])
			cli_die(CLI_SYSTEM, "out of memory");
	}
	for (size_t i = n; i < sizeof copy / sizeof *copy && copy[i]; i++) {
		free(copy[i]);
		copy[i] = NULL;
	}
	return (const char *const *)copy;
}

const struct mqclient_field *admin_answer_field(const struct mqclient_answer *ans, const char *name)
{
	for (size_t i = 0; i < ans->nfields; i++)
		if (strcmp(ans->fields[i].name, name) == 0)
			return &ans->fields[i];
	return NULL;
}

/* ---- The cluster ----------------------------------------------------------------------------------------------------- */

static void add_broker(struct admin_brokers *out, const char *cluster, const char *name, int64_t id, const char *addr)
{
	if (out->n == ADMIN_BROKERS_MAX)
		cli_die(CLI_SYSTEM, "the cluster has more than %d brokers", ADMIN_BROKERS_MAX);
	struct admin_broker *b = &out->b[out->n++];
	b->cluster = strdup(cluster);
	b->name = strdup(name);
	b->addr = strdup(addr);
	b->id = id;
	if (!b->cluster || !b->name || !b->addr)
		cli_die(CLI_SYSTEM, "out of memory");
}

static int by_name(const void *x, const void *y)
{
	const struct admin_broker *a = x, *b = y;
	int c = strcmp(a->cluster, b->cluster);
	if (c == 0)
		c = strcmp(a->name, b->name);
	return c ? c : (a->id > b->id) - (a->id < b->id);
}

void admin_cluster(struct admin *a, const char *cluster, struct admin_brokers *out)
{
	struct mqclient_answer ans;
	const char *name, *id;
	json_t *members, *addr;
	size_t i;

	out->n = 0;
	admin_ask(a, NULL, 106, NULL, (struct mq_str){ 0 }, NULL, &ans);
	json_t *o = admin_json(&ans), *clusters = json_object_get(o, "clusterAddrTable");
	if (cluster && !json_object_get(clusters, cluster))
		cli_die(CLI_NONE, "%s: no cluster '%s'", a->command->name, cluster);
	json_object_foreach(clusters, name, members) {
		json_t *member;
		if (cluster && strcmp(cluster, name) != 0)
			continue;
		json_array_foreach(members, i, member) {
			const char *broker = json_string_value(member);
			json_t *data = broker ? json_object_get(json_object_get(o, "brokerAddrTable"), broker) : NULL;
			json_object_foreach(json_object_get(data, "brokerAddrs"), id, addr) {
				if (json_is_string(addr))
					add_broker(out, name, broker, atoll(id), json_string_value(addr));
			}
		}
	}
	json_decref(o);
	qsort(out->b, out->n, sizeof *out->b, by_name);
}

/* -b and -c have one letter but several long names. */
static const char *opt_of_letter(const struct admin *a, char letter)
{
	for (size_t i = 0; a->command->opts[i].name; i++)
		if (a->command->opts[i].letter == letter)
			return a->value[i];
	abort();
}

static void free_broker(struct admin_broker *b)
{
	free(b->cluster);
	free(b->name);
	free(b->addr);
}

static void targets(struct admin *a, bool slaves, bool all, struct admin_brokers *out)
{
	const char *b = opt_of_letter(a, 'b'), *c = opt_of_letter(a, 'c');
	out->n = 0;
	if ((b && c) || (!b && !c && !all))
		admin_usage(a, "give either -b BROKER-ADDRESS or -c CLUSTER");
	if (b) {
		add_broker(out, "", "", 0, b);
		return;
	}
	admin_cluster(a, c, out);
	size_t n = 0;
	for (size_t i = 0; i < out->n; i++) {
		if (slaves || out->b[i].id == 0)
			out->b[n++] = out->b[i];
		else
			free_broker(&out->b[i]);
	}
	out->n = n;
	if (n == 0 && c)
		cli_die(CLI_NONE, "%s: cluster '%s' has no master", a->command->name, c);
	if (n == 0)
		cli_die(CLI_NONE, "%s: there is no master", a->command->name);
}

void admin_targets(struct admin *a, struct admin_brokers *out) { targets(a, false, false, out); }
void admin_targets_and_slaves(struct admin *a, struct admin_brokers *out) { targets(a, true, false, out); }
void admin_targets_or_all(struct admin *a, struct admin_brokers *out) { targets(a, false, true, out); }

void admin_brokers_free(struct admin_brokers *b)
{
	for (size_t i = 0; i < b->n; i++)
		free_broker(&b->b[i]);
	b->n = 0;
}

json_t *admin_route(struct admin *a, const char *topic)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "topic", topic);
	admin_field(&f, "acceptStandardJsonOnly", "true");
	if (admin_ask(a, NULL, 105, &f, (struct mq_str){ 0 }, (const int[]){ 17, 0 }, &ans) == 17)
		return NULL;
	return admin_json(&ans);
}

const char *admin_broker_addr(const json_t *broker_data)
{
	json_t *addrs = json_object_get(broker_data, "brokerAddrs"), *addr = json_object_get(addrs, "0");
	if (!addr)
		addr = json_object_iter_value(json_object_iter(addrs));
	return json_string_value(addr);
}

json_t *admin_route_of(struct admin *a, const char *topic)
{
	json_t *route = admin_route(a, topic);
	if (!route)
		cli_die(CLI_NONE, "%s: no topic '%s'", a->command->name, topic);
	return route;
}

const char *admin_route_addr(const json_t *route, const char *broker)
{
	json_t *d;
	size_t i;
	json_array_foreach(json_object_get(route, "brokerDatas"), i, d)
		if (strcmp(admin_text(d, "brokerName", ""), broker) == 0)
			return admin_broker_addr(d);
	return NULL;
}

json_t *admin_topics(struct admin *a)
{
	struct mqclient_answer ans;
	admin_ask(a, NULL, 206, NULL, (struct mq_str){ 0 }, NULL, &ans);
	json_t *o = admin_json(&ans), *list = json_incref(json_object_get(o, "topicList"));
	json_decref(o);
	return list ? list : json_array();
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

const char *admin_text(const json_t *o, const char *key, const char *otherwise)
{
	const char *v = json_string_value(json_object_get(o, key));
	return v ? v : otherwise;
}

int64_t admin_i64(const json_t *o, const char *key, int64_t otherwise)
{
	json_t *v = json_object_get(o, key);
	if (json_is_string(v))
		return atoll(json_string_value(v));
	return json_is_integer(v) ? json_integer_value(v) : json_is_real(v) ? (int64_t)json_real_value(v) : otherwise;
}

json_t *admin_queue_key(const char *key)
{
	json_t *o = json_loads(key, 0, NULL);
	return o ? o : json_object();
}

void admin_dump(const json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!text)
		cli_die(CLI_SYSTEM, "out of memory");
	puts(text);
	free(text);
}

/* The peer numbers its versions one after the other, each with a snapshot before it: V3_2_0_SNAPSHOT is 66; from 3.3 to 3.9 there are
 * nine a minor version, V3_3_1_SNAPSHOT is 86; from 4.0 on there are ten, V4_0_0_SNAPSHOT is 212. */
const char *admin_version(int64_t version, char out[32])
{
	int64_t n = version, minor, patch;
	if (n < 66 || n > 611) {
		snprintf(out, 32, "%lld", (long long)n);
		return out;
	}
	if (n < 86) {
		minor = 32;
		patch = (n - 66) / 2;
	} else if (n < 212) {
		minor = 33 + (n - 86) / 18;
		patch = 1 + (n - 86) % 18 / 2;
	} else {
		minor = 40 + (n - 212) / 20;
		patch = (n - 212) % 20 / 2;
	}
	snprintf(out, 32, "V%lld_%lld_%lld%s", (long long)(minor / 10), (long long)(minor % 10), (long long)patch,
	         n % 2 ? "" : "_SNAPSHOT");
	return out;
}

json_t *admin_list_file(struct admin *a, const char *name_key, int (*check)(struct mq_str name, struct mq_error *why))
{
	const char *path = admin_opt(a, "filename");
	json_error_t e;
	json_t *list = strcmp(path, "-") == 0 ? json_loadf(stdin, 0, &e) : json_load_file(path, 0, &e), *o;
	struct mq_error why;
	size_t i;
	if (!list)
		admin_usage(a, "--filename: %s: line %d: %s", path, e.line, e.text);
	if (!json_is_array(list))
		admin_usage(a, "--filename: %s: a list is wanted: [{\"%s\":\"NAME\",...},...]", path, name_key);
	json_array_foreach(list, i, o) {
		const char *name = admin_text(o, name_key, "");
		if (check((struct mq_str){ name, strlen(name) }, &why) < 0)
			admin_usage(a, "--filename: %s: entry %zu: %s", path, i + 1, why.text);
	}
	return list;
}
