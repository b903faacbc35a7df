/* controller.c: controllers: who leads them, who is master and in sync, elections, what they are to forget. */
#include "admin.h"
#include "../cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALTERNATE = 2011 }; /* CONTROLLER_MASTER_STILL_EXIST: an answer with all that a success has */

static const struct mq_str no_body = { NULL, 0 };

static struct mq_str field(const struct mqclient_answer *ans, const char *name)
{
	const struct mqclient_field *f = admin_answer_field(ans, name);

	return f ? f->value : (struct mq_str){ NULL, 0 };
}

/* The first controller of the list `left`, into out; the rest stays in it.  false: there is none. */
static bool next_controller(const char **left, char *out, size_t cap)
{
	size_t n;

	while (**left == ';')
		++*left;
	n = strcspn(*left, ";");
	snprintf(out, cap, "%.*s", (int)n, *left);
	*left += n;
	return n > 0;
}

/* The metadata of the first controller of -a that answers. */
static void metadata(struct admin *a, struct mqclient_answer *ans)
{
	const char *left = admin_opt(a, "controllerAddress");
	char addr[300];
	int rc = MQ_EINVAL;

	while (next_controller(&left, addr, sizeof(addr))) {
		rc = mqclient_ask_wait(a->client, addr, 1005, NULL, 0, no_body, a->timeout_ms, ans);
		if (rc == 0 && ans->code == 0)
			return;
	}
	if (rc == 0)
		cli_die(CLI_REFUSED, "%s: '%s' is no controller", a->command->name, admin_opt(a, "controllerAddress"));
	cli_die(CLI_SYSTEM, "%s: no controller of '%s' answers: %s", a->command->name, admin_opt(a, "controllerAddress"),
		mq_strerror(rc));
}

/* The leader's address. */
static const char *leader(struct admin *a)
{
	static char addr[300];
	struct mqclient_answer ans;
	struct mq_str v;

	metadata(a, &ans);
	v = field(&ans, "controllerLeaderAddress");
	if (!v.n)
		cli_die(CLI_SYSTEM, "%s: no controller leads at the moment", a->command->name);
	snprintf(addr, sizeof(addr), MQ_STR_FMT, MQ_STR_ARG(v));
	return addr;
}

static void member(struct show *s, const char *key, struct mq_str v)
{
	show_key(s, key);
	show_str(s, v);
}

static int get_metadata(struct admin *a)
{
	struct show *s = show_record(a->format);
	struct mqclient_answer ans;

	metadata(a, &ans);
	member(s, "controllerGroup", field(&ans, "group"));
	member(s, "controllerLeaderId", field(&ans, "controllerLeaderId"));
	member(s, "controllerLeaderAddress", field(&ans, "controllerLeaderAddress"));
	member(s, "peers", field(&ans, "peers"));
	show_close(s);
	return CLI_OK;
}

/* ---- getSyncStateSet ------------------------------------------------------------------------------------------------- */

static const struct show_col replica_cols[] = {
	{ "BROKER", "brokerName" }, { "ID", "brokerId" }, { "ADDRESS", "brokerAddress" }, { "MASTER", "master" }, { "IN SYNC", "inSync" },
	{ "ALIVE", "alive" }, { "EPOCH", "masterEpoch" }, { "SET EPOCH", "syncStateSetEpoch" },
};

static void show_replicas(struct show *s, const char *name, const json_t *group, const char *key, bool in_sync)
{
	const json_t *list = json_object_get(group, key), *r;
	size_t i;

	json_array_foreach((json_t *)list, i, r) {
		show_cstr(s, name);
		show_i64(s, admin_i64(r, "brokerId", -1));
		show_cstr(s, admin_text(r, "brokerAddress", NULL));
		show_bool(s, admin_i64(r, "brokerId", -1) == admin_i64(group, "masterBrokerId", -2));
		show_bool(s, in_sync);
		show_bool(s, json_is_true(json_object_get(r, "alive")));
		show_i64(s, admin_i64(group, "masterEpoch", 0));
		show_i64(s, admin_i64(group, "syncStateSetEpoch", 0));
	}
}

static int get_sync_set(struct admin *a)
{
	const char *name = admin_opt(a, "brokerName"), *cluster = admin_opt(a, "clusterName"), *key;
	json_t *names = json_array(), *all, *group;
	struct mqclient_answer ans;
	struct show *s;
	char *body;
	size_t n;

	if (!name == !cluster)
		admin_usage(a, "one of --brokerName and --clusterName");
	if (name) {
		json_array_append_new(names, json_string(name));
	} else {
		static struct admin_brokers brokers;

		admin_cluster(a, cluster, &brokers);
		for (size_t i = 0; i < brokers.n; i++)
			if (i == 0 || strcmp(brokers.b[i].name, brokers.b[i - 1].name) != 0)
				json_array_append_new(names, json_string(brokers.b[i].name));
		admin_brokers_free(&brokers);
	}
	body = json_dumps(names, JSON_COMPACT);
	admin_ask(a, leader(a), 1006, NULL, (struct mq_str){ body, strlen(body) }, NULL, &ans);
	all = admin_json(&ans);
	s = show_rows(a->format, replica_cols, sizeof(replica_cols) / sizeof(replica_cols[0]));
	json_object_foreach(json_object_get(all, "replicasInfoTable"), key, group) {
		show_replicas(s, key, group, "inSyncReplicas", true);
		show_replicas(s, key, group, "notInSyncReplicas", false);
	}
	n = show_count(s);
	show_close(s);
	json_decref(all);
	json_decref(names);
	free(body);
	return n ? CLI_OK : CLI_NONE;
}

/* ---- getBrokerEpoch -------------------------------------------------------------------------------------------------- */

static const struct show_col epoch_cols[] = {
	{ "BROKER", "brokerName" }, { "ID", "brokerId" }, { "ADDRESS", "brokerAddress" }, { "EPOCH", "epoch" }, { "FROM", "startOffset" },
	{ "TO", "endOffset" },
};

static int get_epoch(struct admin *a)
{
	const char *name = admin_opt(a, "brokerName"), *cluster = admin_opt(a, "clusterName");
	static struct admin_brokers brokers;
	struct show *s;
	size_t n;

	if (!name == !cluster)
		admin_usage(a, "one of --brokerName and --clusterName");
	admin_cluster(a, cluster, &brokers);
	s = show_rows(a->format, epoch_cols, sizeof(epoch_cols) / sizeof(epoch_cols[0]));
	for (size_t i = 0; i < brokers.n; i++) {
		struct mqclient_answer ans;
		json_t *all, *e;
		size_t k;

		if (name && strcmp(brokers.b[i].name, name) != 0)
			continue;
		admin_ask(a, brokers.b[i].addr, 1007, NULL, no_body, NULL, &ans);
		all = admin_json(&ans);
		json_array_foreach(json_object_get(all, "epochList"), k, e) {
			show_cstr(s, brokers.b[i].name);
			show_i64(s, admin_i64(all, "brokerId", brokers.b[i].id));
			show_cstr(s, brokers.b[i].addr);
			show_i64(s, admin_i64(e, "epoch", 0));
			show_i64(s, admin_i64(e, "startOffset", 0));
			/* The last one is open: up to what there is. */
			show_i64(s, k + 1 == json_array_size(json_object_get(all, "epochList")) ? admin_i64(all, "maxOffset", 0)
											       : admin_i64(e, "endOffset", 0));
		}
		json_decref(all);
	}
	n = show_count(s);
	show_close(s);
	admin_brokers_free(&brokers);
	return n ? CLI_OK : CLI_NONE;
}

/* ---- electMaster, cleanBrokerMetadata -------------------------------------------------------------------------------- */

static int elect(struct admin *a)
{
	static const int also[] = { ALTERNATE, 0 };
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	struct show *s;
	char id[24];

	admin_field(&f, "clusterName", admin_opt(a, "clusterName"));
	admin_field(&f, "brokerName", admin_opt(a, "brokerName"));
	admin_field_int(&f, "brokerId", admin_int(a, "brokerId", -1, 0, INT64_MAX), id);
	admin_field(&f, "designateElect", "true");
	if (admin_ask(a, leader(a), 1002, &f, no_body, also, &ans) == ALTERNATE)
		cli_warn("electMaster: it is the master already");
	s = show_record(a->format);
	member(s, "masterBrokerId", field(&ans, "masterBrokerId"));
	member(s, "masterAddress", field(&ans, "masterAddress"));
	member(s, "masterEpoch", field(&ans, "masterEpoch"));
	member(s, "syncStateSetEpoch", field(&ans, "syncStateSetEpoch"));
	show_close(s);
	return CLI_OK;
}

static int clean(struct admin *a)
{
	const char *name = admin_opt(a, "brokerName"), *ids = admin_opt(a, "brokerControllerIdsToClean");
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;

	if (admin_dry_run(a)) {
		printf("would have the controllers forget %s%s of broker %s\n", ids ? "replicas " : "all replicas", ids ? ids : "", name);
		return CLI_OK;
	}
	if (admin_opt(a, "clusterName"))
		admin_field(&f, "clusterName", admin_opt(a, "clusterName"));
	admin_field(&f, "brokerName", name);
	if (ids)
		admin_field(&f, "brokerControllerIdsToClean", ids);
	admin_field(&f, "isCleanLivingBroker", admin_flag(a, "cleanLivingBroker") ? "true" : "false");
	admin_ask(a, leader(a), 1011, &f, no_body, NULL, &ans);
	printf("clear broker %s metadata from controller success!\n", name);
	return CLI_OK;
}

/* ---- getControllerConfig, updateControllerConfig --------------------------------------------------------------------- */

static int get_config(struct admin *a)
{
	const char *left = admin_opt(a, "controllerAddress");
	bool several = strchr(left, ';') != NULL;
	struct show *s = show_record(a->format);
	struct mqclient_answer ans;
	char addr[300];

	while (next_controller(&left, addr, sizeof(addr))) {
		admin_ask(a, addr, 1010, NULL, no_body, NULL, &ans);
		admin_show_config(s, several ? addr : "", ans.body);
	}
	show_close(s);
	return CLI_OK;
}

static int update_config(struct admin *a)
{
	const char *left = admin_opt(a, "controllerAddress"), *line = admin_config_line(a);
	struct mqclient_answer ans;
	char addr[300];

	while (next_controller(&left, addr, sizeof(addr)))
		admin_ask(a, addr, 1009, NULL, (struct mq_str){ line, strlen(line) }, NULL, &ans);
	printf("update controller config success!%s\n%s : %s\n", admin_opt(a, "controllerAddress"), admin_opt(a, "key"),
	       admin_opt(a, "value"));
	return CLI_OK;
}

#define CONTROLLER_ADDRESS { 'a', "controllerAddress", "ADDR", true, "controllers: host:port;..." }

static const struct command_opt address_opts[] = {
	CONTROLLER_ADDRESS,
	{ 0 },
};
static const struct command_opt sync_opts[] = {
	CONTROLLER_ADDRESS,
	{ 'b', "brokerName", "NAME", false, "of this group of brokers" },
	{ 'c', "clusterName", "CLUSTER", false, "of all groups of this cluster (with -n: the name server)" },
	{ 0 },
};
static const struct command_opt epoch_opts[] = {
	{ 'b', "brokerName", "NAME", false, "of this group of brokers" },
	{ 'c', "clusterName", "CLUSTER", false, "of all groups of this cluster" },
	{ 0 },
};
static const struct command_opt elect_opts[] = {
	CONTROLLER_ADDRESS,
	{ 'b', "brokerId", "ID", true, "who is to be master" },
	{ 0, "brokerName", "NAME", true, "of this group of brokers; also -bn" },
	{ 'c', "clusterName", "CLUSTER", true, "of this cluster" },
	{ 0 },
};
static const struct command_opt clean_opts[] = {
	CONTROLLER_ADDRESS,
	{ 'b', "brokerControllerIdsToClean", "IDS", false, "these replicas: 1;2;3; default: all" },
	{ 0, "brokerName", "NAME", true, "of this group of brokers; also -bn" },
	{ 'c', "clusterName", "CLUSTER", false, "of this cluster" },
	{ 'l', "cleanLivingBroker", NULL, false, "also those that live" },
	ADMIN_DRY_RUN,
	{ 0 },
};
static const struct command_opt update_opts[] = {
	CONTROLLER_ADDRESS,
	{ 'k', "key", "KEY", true, "the key" },
	{ 'v', "value", "VALUE", true, "its new value" },
	{ 0 },
};

const struct command controller_commands[] = {
	{ "getControllerMetaData", address_opts, get_metadata, COMMAND_CONTROLLER, "who leads the controllers" },
	{ "getSyncStateSet", sync_opts, get_sync_set, COMMAND_CONTROLLER, "who is master, who is in sync" },
	{ "getBrokerEpoch", epoch_opts, get_epoch, COMMAND_CLUSTER, "which master wrote what" },
	{ "electMaster", elect_opts, elect, COMMAND_CONTROLLER, "make a broker master of its group" },
	{ "cleanBrokerMetadata", clean_opts, clean, COMMAND_CONTROLLER, "have the controllers forget a broker" },
	{ "getControllerConfig", address_opts, get_config, COMMAND_CONTROLLER, "configuration of the controllers" },
	{ "updateControllerConfig", update_opts, update_config, COMMAND_CONTROLLER, "change a key of their configuration" },
	{ 0 },
};
