/* broker.c: one broker's view of itself. */
#include "admin.h"
#include "../cli.h"
#include <stdlib.h>
#include <string.h>

static int by_key(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Runtime info of -b or of each master of -c.  Several brokers: each key is headed by the address. */
static int broker_status(struct admin *a)
{
	static struct admin_brokers targets;
	admin_targets(a, &targets);
	struct show *s = show_record(a->format);
	for (size_t i = 0; i < targets.n; i++) {
		struct mqclient_answer ans;
		const char *key;
		json_t *v;
		size_t n = 0;
		admin_ask(a, targets.b[i].addr, 28, NULL, (struct mq_str){ 0 }, NULL, &ans);
		json_t *o = admin_json(&ans), *table = json_object_get(o, "table");
		const char **keys = calloc(json_object_size(table) + 1, sizeof *keys);
		if (!keys)
			cli_die(CLI_SYSTEM, "out of memory");
		json_object_foreach(table, key, v)
			keys[n++] = key;
		qsort(keys, n, sizeof *keys, by_key);
		for (size_t k = 0; k < n; k++) {
			char name[400];
			snprintf(name, sizeof name, "%s%s%s", targets.n > 1 ? targets.b[i].addr : "", targets.n > 1 ? " " : "", keys[k]);
			show_key(s, name);
			show_cstr(s, json_string_value(json_object_get(table, keys[k])));
		}
		free(keys);
		json_decref(o);
	}
	admin_brokers_free(&targets);
	show_close(s);
	return CLI_OK;
}

static const struct command_opt status_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "every master of this cluster" },
	{ 0 },
};

const struct command broker_commands[] = {
	{ "brokerStatus", status_opts, broker_status, COMMAND_CLUSTER, "counters and state of a broker" },
	{ 0 },
};
