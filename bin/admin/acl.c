/* acl.c: accounts of brokers that check rights. */
#include "admin.h"
#include "../cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_LEAST = 7 };         /* of access and secret keys, as brokers want them */

static const struct mq_str no_body = { NULL, 0 };

/* The request goes to each broker of -b or -c, slaves too: each has its own file. */
static void tell_all(struct admin *a, int code, const struct admin_fields *f, const char *done)
{
	static struct admin_brokers targets;
	struct mqclient_answer ans;

	admin_targets_and_slaves(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		admin_ask(a, targets.b[i].addr, code, f, no_body, NULL, &ans);
		printf("%s %s success.\n", done, targets.b[i].addr);
	}
	admin_brokers_free(&targets);
}

/* The secret; "-": a line of standard input, where no list of processes shows it. */
static const char *secret(struct admin *a)
{
	static char line[1024];
	const char *given = admin_opt(a, "secretKey");

	if (strcmp(given, "-") != 0)
		return given;
	if (!fgets(line, sizeof line, stdin))
		cli_die(CLI_USAGE, "-s -: there is no line on standard input");
	line[strcspn(line, "\r\n")] = 0;
	return line;
}

static int update(struct admin *a)
{
	static const char *const as_they_are[] = {
		"whiteRemoteAddress", "defaultTopicPerm", "defaultGroupPerm", "topicPerms", "groupPerms",
	};
	const char *key = admin_opt(a, "accessKey"), *hidden = secret(a);
	struct admin_fields f = { .n = 0 };

	if (strlen(key) < KEY_LEAST || strlen(hidden) < KEY_LEAST)
		admin_usage(a, "-a and -s: more than %d characters each", KEY_LEAST - 1);
	admin_field(&f, "accessKey", key);
	admin_field(&f, "secretKey", hidden);
	admin_field(&f, "admin", admin_bool(a, "admin", false) ? "true" : "false");
	for (size_t i = 0; i < sizeof as_they_are / sizeof *as_they_are; i++)
		if (admin_opt(a, as_they_are[i]))
			admin_field(&f, as_they_are[i], admin_opt(a, as_they_are[i]));
	tell_all(a, 50, &f, "create or update plain access config to");
	return CLI_OK;
}

static int delete(struct admin *a)
{
	struct admin_fields f = { .n = 0 };

	if (admin_dry_run(a)) {
		printf("would delete the account with accessKey %s.\n", admin_opt(a, "accessKey"));
		return CLI_OK;
	}
	admin_field(&f, "accessKey", admin_opt(a, "accessKey"));
	tell_all(a, 51, &f, "delete plain access config account from");
	printf("account's accessKey is:%s\n", admin_opt(a, "accessKey"));
	return CLI_OK;
}

static int update_white(struct admin *a)
{
	struct admin_fields f = { .n = 0 };

	admin_field(&f, "globalWhiteAddrs", admin_opt(a, "globalWhiteRemoteAddresses"));
	admin_field(&f, "aclFileFullPath", admin_opt(a, "aclFileFullPath") ? admin_opt(a, "aclFileFullPath") : "");
	tell_all(a, 53, &f, "update global white remote addresses to");
	return CLI_OK;
}

/* compat: a broker of 5.2.0 tells of its main file alone, and not its name. */
static json_t *only_main(const struct mqclient_answer *ans)
{
	const struct mqclient_field *one = admin_answer_field(ans, "version");
	json_t *files = json_object();

	if (one)
		json_object_set_new(files, "plain_acl.yml", json_loadb(one->value.p, one->value.n, 0, NULL));
	return files;
}

static int versions(struct admin *a)
{
	static const struct show_col cols[] = {
		{ "Cluster Name", "cluster" }, { "Broker Name", "broker" }, { "Broker Addr", "addr" },
		{ "AclFilePath", "file" }, { "AclConfigVersionNum", "counter" }, { "AclLastUpdateTime", "time" },
	};
	static struct admin_brokers targets;
	struct show *s = show_rows(a->format, cols, sizeof cols / sizeof *cols);

	admin_targets(a, &targets);
	for (size_t i = 0; i < targets.n; i++) {
		const struct mqclient_field *all, *cluster, *broker;
		struct mqclient_answer ans;
		const char *path;
		json_t *files, *v;

		admin_ask(a, targets.b[i].addr, 52, NULL, no_body, NULL, &ans);
		all = admin_answer_field(&ans, "allAclFileVersion");
		cluster = admin_answer_field(&ans, "clusterName");
		broker = admin_answer_field(&ans, "brokerName");
		files = all ? json_loadb(all->value.p, all->value.n, 0, NULL) : only_main(&ans);
		json_object_foreach(files, path, v) {
			show_str(s, cluster ? cluster->value : no_body);
			show_str(s, broker ? broker->value : no_body);
			show_cstr(s, targets.b[i].addr);
			show_cstr(s, path);
			show_i64(s, admin_i64(v, "counter", 0));
			show_time(s, admin_i64(v, "timestamp", 0));
		}
		json_decref(files);
	}
	admin_brokers_free(&targets);
	return show_close(s) < 0 ? CLI_SYSTEM : CLI_OK;
}

static const struct command_opt update_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "of this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "of every broker of this cluster" },
	{ 'a', "accessKey", "KEY", true, "name of the account" },
	{ 's', "secretKey", "KEY", true, "its secret; -: a line of standard input" },
	{ 'w', "whiteRemoteAddress", "ADDRS", false, "from where it needs no signature" },
	{ 'i', "defaultTopicPerm", "RIGHT", false, "to topics that are not named: DENY, PUB, SUB, PUB|SUB" },
	{ 'u', "defaultGroupPerm", "RIGHT", false, "to groups that are not named" },
	{ 't', "topicPerms", "LIST", false, "rights to topics: orders=PUB,audit=DENY" },
	{ 'g', "groupPerms", "LIST", false, "rights to groups: readers=SUB" },
	{ 'm', "admin", "BOOL", false, "may do everything (false)" },
	{ 0 },
};
static const struct command_opt delete_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "of this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "of every broker of this cluster" },
	{ 'a', "accessKey", "KEY", true, "name of the account" },
	ADMIN_DRY_RUN,
	{ 0 },
};
static const struct command_opt white_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "of this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "of every broker of this cluster" },
	{ 'g', "globalWhiteRemoteAddresses", "LIST", true, "all that need no account: 10.1.2.*,10.3.0.7" },
	{ 'p', "aclFileFullPath", "FILE", false, "in this of the broker's files" },
	{ 0 },
};
static const struct command_opt version_opts[] = {
	{ 'b', "brokerAddr", "ADDR", false, "of this broker" },
	{ 'c', "clusterName", "CLUSTER", false, "of every master of this cluster" },
	{ 0 },
};

const struct command acl_commands[] = {
	{ "updateAclConfig", update_opts, update, COMMAND_CLUSTER, "make or change an account" },
	{ "deleteAclConfig", delete_opts, delete, COMMAND_CLUSTER, "delete an account" },
	{ "updateGlobalWhiteAddr", white_opts, update_white, COMMAND_CLUSTER, "who needs no account" },
	{ "clusterAclConfigVersion", version_opts, versions, COMMAND_CLUSTER, "versions of the files of accounts" },
	{ 0 },
};
