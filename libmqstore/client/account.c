/* account.c: where the keys are written down. */
#include "account.h"
#include "../base/conf.h"
#include "../base/err.h"
#include "../base/json.h"
#include "../base/mem.h"
#include "../base/str.h"
#include "../base/yaml.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

enum { KEY_MAX = 1024 };

/* In one block, so that it is wiped and freed as one. */
static struct sign_key *make(struct mq_str access, struct mq_str secret, struct mq_str token)
{
	struct sign_key *k = mem_alloc(sizeof *k + access.n + secret.n + token.n + 1);
	char *to = (char *)(k + 1);

	memcpy(to, access.p, access.n);
	memcpy(to + access.n, secret.p, secret.n);
	if (token.n)
		memcpy(to + access.n + secret.n, token.p, token.n);
	k->access = (struct mq_str){ to, access.n };
	k->secret = (struct mq_str){ to + access.n, secret.n };
	if (token.n)
		k->token = (struct mq_str){ to + access.n + secret.n, token.n };
	return k;
}

/* Both, neither (1), or why half of it is wrong. */
static int take(struct sign_key **key, const char *from, struct mq_str access, struct mq_str secret, struct mq_str token,
		struct mq_error *e)
{
	if (!access.n && !secret.n)
		return 1;
	if (!access.n || !secret.n)
		return err_set(e, MQ_EINVAL, "%s: %s is there and %s is not; both are wanted, or neither", from,
			       access.n ? "the access key" : "the secret key", access.n ? "the secret key" : "the access key");
	*key = make(access, secret, token);
	return 0;
}

/* A key of the user's configuration; empty if it is not there. */
static int user_key(const char *name, char text[KEY_MAX], struct mq_error *e)
{
	int rc = conf_user_key(name, text, KEY_MAX, e);

	if (rc == MQ_ENOTFOUND) {
		text[0] = 0;
		rc = 0;
	}
	return rc;
}

static int from_config(struct sign_key **key, struct mq_error *e)
{
	char access[KEY_MAX], secret[KEY_MAX], token[KEY_MAX] = "";
	int rc = user_key("accessKey", access, e);

	if (rc == 0)
		rc = user_key("secretKey", secret, e);
	if (rc == 0 && access[0])
		rc = user_key("securityToken", token, e);
	if (rc == 0)
		rc = take(key, "configuration of mq", str_of(access), str_of(secret), str_of(token), e);
	sodium_memzero(secret, sizeof secret);
	return rc;
}

/* What the peer's mqadmin reads. */
static int from_tools(struct sign_key **key, struct mq_error *e)
{
	const char *home = getenv("ROCKETMQ_HOME");
	json_t *doc;
	char *path;
	int rc;

	if (!home || !*home)
		return 1;
	path = mem_printf("%s/conf/tools.yml", home);
	rc = yaml_read(path, &doc, e);
	if (rc == 0) {
		rc = take(key, path, json_str(doc, "accessKey"), json_str(doc, "secretKey"), (struct mq_str){ 0 }, e);
		json_decref(doc);
	} else if (rc == -ENOENT || rc == -ENOTDIR || rc == -EACCES) {
		rc = 1;
	}
	free(path);
	return rc;
}

int account_find(struct sign_key **key, const struct mqclient_opt *opt, struct mq_error *e)
{
	int rc;

	*key = NULL;
	if (mqclient_addr_kind(opt->addr) == MQCLIENT_FILE || mqclient_addr_kind(opt->addr) == MQCLIENT_STORE)
		return 0; /* whose directory it is may do everything */
	rc = take(key, "mqclient_opt", str_of(opt->access_key), str_of(opt->secret_key), str_of(opt->security_token), e);
	if (rc == 1)
		rc = take(key, "MQ_ACCESS_KEY, MQ_SECRET_KEY", str_of(getenv("MQ_ACCESS_KEY")), str_of(getenv("MQ_SECRET_KEY")),
			  str_of(getenv("MQ_SECURITY_TOKEN")), e);
	if (rc == 1)
		rc = from_config(key, e);
	if (rc == 1)
		rc = from_tools(key, e);
	return rc == 1 ? 0 : rc;
}

void account_free(struct sign_key *key)
{
	if (!key)
		return;
	sodium_memzero((char *)key->secret.p, key->secret.n);
	free(key);
}
