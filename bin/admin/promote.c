/* promote.c: a slave becomes the master, by hand or by a script: fenced, so that the old master does not serve beside it. */
#include "admin.h"
#include "../cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FENCE_NAMESPACE "MQ_PROMOTED" /* of the name servers' settings: key = broker's name, value = who is master */

enum { LATELY_MS = 10000, LEVEL_MS = 30000, ROLE_MS = 60000 };

static const struct mq_str no_body = { NULL, 0 };

struct promotion {
	struct admin *a;
	const char *addr;
	char name[256], old[300];
	bool is_master, follows;
};

static int64_t now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* The line of the key in a configuration. */
static bool config_key(struct mq_str text, const char *key, char *out, size_t cap)
{
	size_t n = strlen(key);

	for (const char *p = text.p, *end = text.p + text.n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t line = nl ? (size_t)(nl - p) : (size_t)(end - p);

		if (line > n && memcmp(p, key, n) == 0 && p[n] == '=') {
			snprintf(out, cap, "%.*s", (int)(line - n - 1), p + n + 1);
			return true;
		}
		p += line + 1;
	}
	return false;
}

/* Does it answer as a broker does? */
static bool answers(struct admin *a, const char *addr, struct mqclient_answer *ans)
{
	return mqclient_ask_wait(a->client, addr, 28, NULL, 0, no_body, a->timeout_ms, ans) == 0 && ans->code == 0;
}

static int64_t log_end(struct admin *a, const char *addr)
{
	struct mqclient_answer ans;
	int64_t end = -1;
	json_t *all;

	if (!answers(a, addr, &ans))
		return -1;
	all = admin_json(&ans);
	end = strtoll(admin_text(json_object_get(all, "table"), "commitLogMaxOffset", "-1"), NULL, 10);
	json_decref(all);
	return end;
}

/* What the broker that is to be master says of itself. */
static void look(struct promotion *p)
{
	struct mqclient_answer ans;
	const json_t *client;
	json_t *all;

	admin_ask(p->a, p->addr, 26, NULL, no_body, NULL, &ans);
	if (!config_key(ans.body, "brokerName", p->name, sizeof(p->name)))
		cli_die(CLI_REFUSED, "promote: %s does not say the name of its brokers", p->addr);
	admin_ask(p->a, p->addr, 907, NULL, no_body, NULL, &ans);
	all = admin_json(&ans);
	client = json_object_get(all, "haClientRuntimeInfo");
	p->is_master = json_is_true(json_object_get(all, "master"));
	p->follows = json_is_true(json_object_get(client, "activated")) &&
		     now_ms(CLOCK_REALTIME) - admin_i64(client, "lastReadTimestamp", 0) < LATELY_MS;
	json_decref(all);
}

static void find_old(struct promotion *p)
{
	static struct admin_brokers brokers;
	const char *given = admin_opt(p->a, "master");

	if (given) {
		snprintf(p->old, sizeof(p->old), "%s", given);
		return;
	}
	admin_cluster(p->a, NULL, &brokers);
	for (size_t i = 0; i < brokers.n; i++)
		if (strcmp(brokers.b[i].name, p->name) == 0 && brokers.b[i].id == 0 && strcmp(brokers.b[i].addr, p->addr) != 0)
			snprintf(p->old, sizeof(p->old), "%s", brokers.b[i].addr);
	admin_brokers_free(&brokers);
}

/* A master that lives takes nothing more, and the slave gets the rest of its log. */
static void quiet(struct promotion *p)
{
	static const char line[] = "brokerPermission=4\n";
	int64_t until = now_ms(CLOCK_MONOTONIC) + LEVEL_MS, there = -1, here = -2;
	struct mqclient_answer ans;

	admin_ask(p->a, p->old, 25, NULL, (struct mq_str){ line, sizeof(line) - 1 }, NULL, &ans);
	while (now_ms(CLOCK_MONOTONIC) < until) {
		int64_t before = there;

		there = log_end(p->a, p->old);
		here = log_end(p->a, p->addr);
		if (there >= 0 && there == before && here == there)
			return;
		pause_ms(200);
	}
	cli_die(CLI_REFUSED, "promote: %s does not get level with %s (log ends at %lld and %lld); nothing was promoted, the master is "
		"read-only now (brokerPermission=4)", p->addr, p->old, (long long)here, (long long)there);
}

static void run(struct promotion *p, const char *opt)
{
	const char *command = admin_opt(p->a, opt);
	int rc;

	if (!command)
		return;
	setenv("MQ_BROKER", p->addr, 1);
	setenv("MQ_BROKER_NAME", p->name, 1);
	setenv("MQ_OLD_MASTER", p->old, 1);
	fflush(stdout);
	rc = system(command);
	if (rc != 0)
		cli_die(CLI_SYSTEM, "promote: the command of --%s ended with %d%s", opt, rc > 255 ? rc >> 8 : rc,
			strcmp(opt, "fence") == 0 ? "; nothing was promoted" : "");
}

/* On every name server that can be reached; one at least. */
static void write_fence(struct promotion *p)
{
	struct admin_fields f = { .n = 0 };
	int written = 0;

	admin_field(&f, "namespace", FENCE_NAMESPACE);
	admin_field(&f, "key", p->name);
	admin_field(&f, "value", p->addr);
	for (const char *const *ns = admin_nameservers(p->a); *ns; ns++) {
		struct mqclient_answer ans;

		if (mqclient_ask_wait(p->a->client, *ns, 100, f.f, f.n, no_body, p->a->timeout_ms, &ans) == 0 && ans.code == 0)
			written++;
		else
			cli_warn("promote: name server %s does not take the fence: an old master that only asks there is not stopped", *ns);
	}
	if (!written)
		cli_die(CLI_SYSTEM, "promote: no name server takes the fence; nothing was promoted");
}

static void await_master(struct promotion *p)
{
	int64_t until = now_ms(CLOCK_MONOTONIC) + ROLE_MS;

	while (now_ms(CLOCK_MONOTONIC) < until) {
		struct mqclient_answer ans;

		if (mqclient_ask_wait(p->a->client, p->addr, 907, NULL, 0, no_body, p->a->timeout_ms, &ans) == 0 && ans.code == 0) {
			json_t *all = admin_json(&ans);
			bool is = json_is_true(json_object_get(all, "master"));

			json_decref(all);
			if (is)
				return;
		}
		pause_ms(200);
	}
	cli_die(CLI_SYSTEM, "promote: %s is not back as master after %d s: it takes brokerRole from its file, if it has one (-c), and no "
		"option -p says otherwise", p->addr, ROLE_MS / 1000);
}

static int promote(struct admin *a)
{
	struct promotion p = { .a = a, .addr = admin_opt(a, "brokerAddr") };
	const char *role = admin_opt(a, "role");
	struct mqclient_answer ans;
	bool alive;
	char line[100];

	if (role && strcmp(role, "ASYNC_MASTER") != 0 && strcmp(role, "SYNC_MASTER") != 0)
		admin_usage(a, "--role is ASYNC_MASTER or SYNC_MASTER, not '%s'", role);
	look(&p);
	if (p.is_master) {
		write_fence(&p);
		printf("%s is master of %s already\n", p.addr, p.name);
		return CLI_OK;
	}
	find_old(&p);
	alive = (p.old[0] && answers(a, p.old, &ans)) || p.follows;
	if (alive && !admin_flag(a, "force"))
		cli_die(CLI_REFUSED, "promote: the master of %s%s%s lives%s; --force promotes all the same", p.name,
			p.old[0] ? ", " : "", p.old, p.follows ? ", and the slave follows it" : "");
	if (admin_dry_run(a)) {
		printf("would make %s master of %s%s%s\n", p.addr, p.name, p.old[0] ? " in place of " : "", p.old);
		return CLI_OK;
	}
	if (p.old[0] && answers(a, p.old, &ans))
		quiet(&p);
	run(&p, "fence");
	write_fence(&p);
	snprintf(line, sizeof(line), "brokerRole=%s\nbrokerId=0\n", role ? role : "ASYNC_MASTER");
	admin_ask(a, p.addr, 25, NULL, (struct mq_str){ line, strlen(line) }, NULL, &ans);
	run(&p, "restart");
	if (!admin_opt(a, "restart")) {
		printf("%s is to be master of %s with its next start: restart it now\n", p.addr, p.name);
		return CLI_OK;
	}
	await_master(&p);
	printf("%s is master of %s\n", p.addr, p.name);
	return CLI_OK;
}

static const struct command_opt promote_opts[] = {
	{ 'b', "brokerAddr", "ADDR", true, "the slave that is to be master" },
	{ 'f', "force", NULL, false, "also if its master lives: that one is made read-only first, and the slave gets the rest" },
	{ 0, "fence", "COMMAND", false, "run this before: it makes sure that the old master is off, or fails" },
	{ 0, "master", "ADDR", false, "the old master; default: what the name servers know" },
	{ 0, "restart", "COMMAND", false, "run this to restart the broker, and wait until it is master" },
	{ 0, "role", "ROLE", false, "ASYNC_MASTER (default) or SYNC_MASTER" },
	ADMIN_DRY_RUN,
	{ 0 },
};

const struct command promote_commands[] = {
	{ "promote", promote_opts, promote, COMMAND_CLUSTER, "make a slave the master, and fence the old one" },
	{ 0 },
};
