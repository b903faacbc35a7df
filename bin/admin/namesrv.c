/* namesrv.c: name servers: their configuration, the small settings they keep, the right to write to a broker. */
#include "admin.h"
#include "../cli.h"
#include <string.h>

static const struct mq_str no_body = { NULL, 0 };

/* ---- getNamesrvConfig, updateNamesrvConfig --------------------------------------------------------------------------- */

static int get_config(struct admin *a)
{
	const char *const *ns = admin_nameservers(a);
	bool several = ns[0] && ns[1];
	struct show *s = show_record(a->format);
	for (; *ns; ns++) {
		struct mqclient_answer ans;
		admin_ask(a, *ns, 319, NULL, no_body, NULL, &ans);
		admin_show_config(s, several ? *ns : "", ans.body);
	}
	show_close(s);
	return CLI_OK;
}

static int update_config(struct admin *a)
{
	const char *line = admin_config_line(a);
	for (const char *const *ns = admin_nameservers(a); *ns; ns++) {
		struct mqclient_answer ans;
		admin_ask(a, *ns, 318, NULL, (struct mq_str){ line, strlen(line) }, NULL, &ans);
	}
	printf("update name server config success!\n%s : %s\n", admin_opt(a, "key"), admin_opt(a, "value"));
	return CLI_OK;
}

/* ---- updateKvConfig, deleteKvConfig ---------------------------------------------------------------------------------- */

static int update_kv(struct admin *a)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "namespace", admin_opt(a, "namespace"));
	admin_field(&f, "key", admin_opt(a, "key"));
	admin_field(&f, "value", admin_opt(a, "value"));
	for (const char *const *ns = admin_nameservers(a); *ns; ns++)
		admin_ask(a, *ns, 100, &f, no_body, NULL, &ans);
	puts("create or update kv config to namespace success.");
	return CLI_OK;
}

static int delete_kv(struct admin *a)
{
	struct admin_fields f = { .n = 0 };
	struct mqclient_answer ans;
	admin_field(&f, "namespace", admin_opt(a, "namespace"));
	admin_field(&f, "key", admin_opt(a, "key"));
	for (const char *const *ns = admin_nameservers(a); *ns; ns++) {
		if (admin_dry_run(a))
			printf("would delete key [%s] of namespace [%s] from name server [%s].\n",
			       admin_opt(a, "key"), admin_opt(a, "namespace"), *ns);
		else
			admin_ask(a, *ns, 102, &f, no_body, NULL, &ans);
	}
	if (!admin_dry_run(a))
		puts("delete kv config from namespace success.");
	return CLI_OK;
}

/* ---- wipeWritePerm, addWritePerm ------------------------------------------------------------------------------------- */

static int write_perm(struct admin *a, int code, const char *what, const char *count)
{
	const char *broker = admin_opt(a, "brokerName");
	struct admin_fields f = { .n = 0 };
	admin_field(&f, "brokerName", broker);
	for (const char *const *ns = admin_nameservers(a); *ns; ns++) {
		struct mqclient_answer ans;
		admin_ask(a, *ns, code, &f, no_body, NULL, &ans);
		const struct mqclient_field *n = admin_answer_field(&ans, count);
		printf("%s write perm of broker[%s] in name server[%s] OK, " MQ_STR_FMT "\n", what, broker, *ns,
		       MQ_STR_ARG(n ? n->value : MQ_STR("0")));
	}
	return CLI_OK;
}

static int wipe(struct admin *a) { return write_perm(a, 205, "wipe", "wipeTopicCount"); }
static int add(struct admin *a) { return write_perm(a, 327, "add", "addTopicCount"); }

static const struct command_opt no_opts[] = {
	{ 0 },
};
static const struct command_opt update_opts[] = {
	{ 'k', "key", "KEY", true, "the key" },
	{ 'v', "value", "VALUE", true, "its new value" },
	{ 0 },
};
static const struct command_opt kv_opts[] = {
	{ 's', "namespace", "NAMESPACE", true, "the namespace" },
	{ 'k', "key", "KEY", true, "the key" },
	{ 'v', "value", "VALUE", true, "its value" },
	{ 0 },
};
static const struct command_opt kv_delete_opts[] = {
	{ 's', "namespace", "NAMESPACE", true, "the namespace" },
	{ 'k', "key", "KEY", true, "the key" },
	ADMIN_DRY_RUN,
	{ 0 },
};
static const struct command_opt perm_opts[] = {
	{ 'b', "brokerName", "NAME", true, "the broker's name" },
	{ 0 },
};

const struct command namesrv_commands[] = {
	{ "getNamesrvConfig", no_opts, get_config, COMMAND_CLUSTER, "configuration of the name servers" },
	{ "updateNamesrvConfig", update_opts, update_config, COMMAND_CLUSTER, "change a key of their configuration" },
	{ "updateKvConfig", kv_opts, update_kv, COMMAND_CLUSTER, "store a small setting" },
	{ "deleteKvConfig", kv_delete_opts, delete_kv, COMMAND_CLUSTER, "delete a small setting" },
	{ "wipeWritePerm", perm_opts, wipe, COMMAND_CLUSTER, "no more sends to a broker, by its routes" },
	{ "addWritePerm", perm_opts, add, COMMAND_CLUSTER, "sends to a broker again" },
	{ 0 },
};
