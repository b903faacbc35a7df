/* broker_conf.c: the rows of broker.conf made from the list in the header, and what rows cannot check one by one. */
#include "broker_conf.h"
#include "ha_allow.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <net/server.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_MODULE "conf"

#define CONF_T_str CONF_STR
#define CONF_T_i32 CONF_I32
#define CONF_T_i64 CONF_I64
#define CONF_T_boolean CONF_BOOL
#define CONF_T_size CONF_SIZE
#define CONF_T_enum_flush_disk_type CONF_ENUM
#define CONF_T_enum_broker_role CONF_ENUM
#define CONF_T_enum_log_level CONF_ENUM
#define CONF_N_str NULL
#define CONF_N_i32 NULL
#define CONF_N_i64 NULL
#define CONF_N_boolean NULL
#define CONF_N_size NULL
#define CONF_N_enum_flush_disk_type "ASYNC_FLUSH|SYNC_FLUSH"
#define CONF_N_enum_broker_role "ASYNC_MASTER|SYNC_MASTER|SLAVE"
#define CONF_N_enum_log_level "error|warn|info|debug|trace"

#define CONF_ROW(type, key, otherwise, min, max, flags, help) \
	{ #key, CONF_T_##type, offsetof(struct broker_conf, key), otherwise, min, max, CONF_N_##type, flags, help },
#define CONF_IGNORED_ROW(key, otherwise) \
	{ #key, CONF_STR, offsetof(struct broker_conf, key), otherwise, 0, 0, NULL, CONF_IGNORED, "no meaning here" },

static const struct conf_row broker_conf_rows[] = {
	BROKER_CONF_IDENTITY(CONF_ROW)
	BROKER_CONF_TOPICS(CONF_ROW)
	BROKER_CONF_PULL(CONF_ROW)
	BROKER_CONF_POP(CONF_ROW)
	BROKER_CONF_REPLICATION(CONF_ROW)
	BROKER_CONF_STORE(CONF_ROW)
	BROKER_CONF_IGNORED(CONF_IGNORED_ROW)
	BROKER_CONF_FOREIGN(CONF_IGNORED_ROW)
};

struct conf *broker_conf_new(struct broker_conf *c)
{
	return conf_new(broker_conf_rows, sizeof broker_conf_rows / sizeof broker_conf_rows[0], c);
}

static int set(struct conf *rows, const char *key, const char *value, struct mq_error *e)
{
	return conf_set(rows, str_of(key), str_of(value), e);
}

int broker_conf_embedded(struct conf *rows, const char *dir, struct mq_error *e)
{
	static const char *const small[][2] = {
		{ "brokerName", "local" },
		{ "brokerClusterName", "local" },
		{ "brokerIP1", "127.0.0.1" },
		{ "mappedFileSizeCommitLog", "67108864" },
		{ "mappedFileSizeConsumeQueue", "600000" },
		{ "mappedFileSizeTimerLog", "1048576" },
		{ "maxHashSlotNum", "65536" },
		{ "maxIndexNum", "262144" },
		{ "fileReservedTime", "876000" },
		{ "serverChannelMaxIdleTimeSeconds", "0" },
		{ "logLevel", "warn" },
	};
	int rc;

	for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
		if ((rc = set(rows, small[i][0], small[i][1], e)) < 0)
			return rc;
	return set(rows, "storePathRootDir", dir, e);
}

/* The values that are left empty.  They go through the rows, so that --print-config and 26 show them. */
static int fill_in(struct conf *rows, struct broker_conf *c, struct mq_error *e)
{
	char text[1024];
	int rc = 0;

	if (!*c->brokerName) {
		if (gethostname(text, sizeof text) < 0 || !*text)
			strcpy(text, "DEFAULT_BROKER");
		text[sizeof text - 1] = 0;
		rc = set(rows, "brokerName", text, e);
	}
	if (rc == 0 && !*c->brokerIP1) {
		addr_local(text, sizeof text);
		rc = set(rows, "brokerIP1", text, e);
	}
	if (rc == 0 && !*c->brokerIP2)
		rc = set(rows, "brokerIP2", c->brokerIP1, e);
	if (rc == 0 && !*c->storePathRootDir) {
		const char *home = getenv("HOME");

		snprintf(text, sizeof text, "%s/store", home && *home ? home : ".");
		rc = set(rows, "storePathRootDir", text, e);
	}
	if (rc == 0 && !*c->storePathCommitLog) {
		snprintf(text, sizeof text, "%s/commitlog", c->storePathRootDir);
		rc = set(rows, "storePathCommitLog", text, e);
	}
	if (rc == 0 && !*c->storePathEpochFile) {
		snprintf(text, sizeof text, "%s/epochFileCheckpoint", c->storePathRootDir);
		rc = set(rows, "storePathEpochFile", text, e);
	}
	if (rc == 0 && !*c->storePathBrokerIdentity) {
		snprintf(text, sizeof text, "%s/brokerIdentity", c->storePathRootDir);
		rc = set(rows, "storePathBrokerIdentity", text, e);
	}
	if (rc == 0 && c->haListenPort == 0 && c->listenPort != 0) {
		snprintf(text, sizeof text, "%d", c->listenPort + 1);
		rc = set(rows, "haListenPort", text, e);
	}
	return rc;
}

static int check_name(const char *key, const char *name, struct mq_error *e)
{
	struct mq_error why;

	if (mq_check_topic(str_of(name), &why) < 0) /* a topic of this name is made at start */
		return err_set(e, MQ_EINVAL, "%s '%s': %s", key, name, why.text);
	return 0;
}

static int check_controllers(const struct broker_conf *c, struct mq_error *e)
{
	struct mq_str rest = str_of(c->controllerAddr), piece;
	char host[ADDR_HOST_MAX], addr[ADDR_HOST_MAX + 16];
	int port, n = 0, rc;

	if (strchr(c->brokerName, '#') || strchr(c->brokerClusterName, '#'))
		return err_set(e, MQ_EINVAL, "brokerName and brokerClusterName: with enableControllerMode=true they may not have a '#'");
	while (str_split(&rest, ';', &piece)) {
		piece = str_trim(piece);
		if (!piece.n)
			continue;
		snprintf(addr, sizeof addr, MQ_STR_FMT, MQ_STR_ARG(piece));
		if ((rc = addr_split(addr, host, &port, e)) < 0)
			return err_wrap(e, "controllerAddr '%s'", c->controllerAddr);
		n++;
	}
	return n ? 0 : err_set(e, MQ_EINVAL, "controllerAddr is empty: with enableControllerMode=true it says where controllers are");
}

static int check_role(const struct broker_conf *c, struct mq_error *e)
{
	char host[ADDR_HOST_MAX];
	int port, rc;

	if (c->enableControllerMode && (rc = check_controllers(c, e)) < 0)
		return rc;
	if (!c->enableControllerMode && c->brokerRole == ROLE_SLAVE && c->brokerId <= 0)
		return err_set(e, MQ_EINVAL, "brokerId %lld: a slave's is above 0, and its own", (long long)c->brokerId);
	if (!c->enableControllerMode && c->brokerRole != ROLE_SLAVE && c->brokerId != 0)
		return err_set(e, MQ_EINVAL, "brokerId %lld: a master's is 0; of a slave, brokerRole is SLAVE", (long long)c->brokerId);
	if (*c->haMasterAddress && (rc = addr_split(c->haMasterAddress, host, &port, e)) < 0)
		return err_wrap(e, "haMasterAddress");
	if ((rc = ha_allow_check(str_of(c->haAllowedAddresses), e)) < 0)
		return rc;
	if (c->minInSyncReplicas > c->inSyncReplicas && !c->ackOnTwoMachines && !(c->enableControllerMode && c->allAckInSyncStateSet))
		return err_set(e, MQ_EINVAL, "minInSyncReplicas %d is above inSyncReplicas %d", c->minInSyncReplicas, c->inSyncReplicas);
	return 0;
}

char *broker_conf_acl_file(const struct broker_conf *c)
{
	const char *home = *c->rocketmqHome ? c->rocketmqHome : getenv("ROCKETMQ_HOME");

	if (*c->aclFile)
		return mem_strdup(c->aclFile);
	return home && *home ? mem_printf("%s/conf/plain_acl.yml", home) : NULL;
}

static int check_accounts(const struct broker_conf *c, struct mq_error *e)
{
	char *path = broker_conf_acl_file(c);
	bool named = path != NULL;

	free(path);
	return !c->aclEnable || named ? 0 :
	       err_set(e, MQ_EINVAL, "aclEnable=true: aclFile has to name the file of accounts (or rocketmqHome, or ROCKETMQ_HOME in the "
		       "environment, where conf/plain_acl.yml is)");
}

/* Settings without effect here that would lose or open something if they were passed over. */
static int check_unserved(const struct broker_conf *c, struct mq_error *e)
{
	if (str_bool(str_of(c->useTLS)))
		return err_set(e, MQ_EUNSUPPORTED, "useTLS=true: this broker does not speak TLS; name servers would be asked in the open");
	if (str_bool(str_of(c->enableDLegerCommitLog)))
		return err_set(e, MQ_EUNSUPPORTED, "enableDLegerCommitLog=true: a log of DLedger is not read, and its messages would "
		               "not be there; enableControllerMode=true is the replication that elects masters");
	if (*c->storeType && strcasecmp(c->storeType, "default"))
		return err_set(e, MQ_EUNSUPPORTED, "storeType=%s: topics and offsets that are kept in RocksDB are not read; "
		               "default is right", c->storeType);
	if (*c->readOnlyCommitLogStorePaths || strchr(c->storePathCommitLog, ','))
		return err_set(e, MQ_EUNSUPPORTED, "%s: a log in more than one directory is not read, and its messages would not be there",
		               *c->readOnlyCommitLogStorePaths ? "readOnlyCommitLogStorePaths" : "storePathCommitLog");
	return 0;
}

int broker_conf_check(struct conf *rows, struct broker_conf *c, struct mq_error *e)
{
	struct mq_str rest = str_of(c->namesrvAddr), piece;
	char host[ADDR_HOST_MAX];
	int port, rc;

	if ((rc = fill_in(rows, c, e)) < 0)
		return rc;
	if ((rc = check_name("brokerName", c->brokerName, e)) < 0 ||
	    (rc = check_name("brokerClusterName", c->brokerClusterName, e)) < 0)
		return rc;
	while (str_split(&rest, ';', &piece)) {
		char *addr;

		piece = str_trim(piece);
		if (!piece.n)
			continue;
		addr = str_dup(piece);
		rc = strncmp(addr, "http://", 7) && strlen(addr) < ADDR_HOST_MAX ? addr_split(addr, host, &port, e) : 0;
		if (rc < 0) {
			err_wrap(e, "namesrvAddr '%s'", c->namesrvAddr);
			free(addr);
			return rc;
		}
		free(addr);
	}
	if ((rc = check_accounts(c, e)) < 0)
		return rc;
	if ((rc = check_role(c, e)) < 0)
		return rc;
	if (c->listenPort != 0 && c->listenPort < 3)
		return err_set(e, MQ_EINVAL, "listenPort %d: the fast port, two below, would not be a port", c->listenPort);
	return check_unserved(c, e);
}

void broker_conf_tell_unserved(const struct conf *rows)
{
	enum { LINE = 200 };
	struct buf line = { 0 };

	for (size_t i = 0; i < sizeof broker_conf_rows / sizeof broker_conf_rows[0]; i++) {
		const struct conf_row *r = &broker_conf_rows[i];
		struct mq_str have = conf_get(rows, str_of(r->key));

		if (!(r->flags & CONF_IGNORED) || str_is_nocase(have, r->otherwise))
			continue;
		if (line.n && line.n + strlen(r->key) + have.n > LINE) {
			log_warn("without effect here: " MQ_STR_FMT, MQ_STR_ARG(buf_view(&line)));
			line.n = 0;
		}
		buf_printf(&line, "%s%s=" MQ_STR_FMT, line.n ? ", " : "", r->key, MQ_STR_ARG(have));
	}
	if (line.n)
		log_warn("without effect here: " MQ_STR_FMT, MQ_STR_ARG(buf_view(&line)));
	buf_free(&line);
}

int broker_conf_take(struct conf *rows, const struct conf *fresh)
{
	int changed = 0;

	for (size_t i = 0; i < sizeof broker_conf_rows / sizeof broker_conf_rows[0]; i++) {
		const struct conf_row *r = &broker_conf_rows[i];
		struct mq_str have, want;
		struct mq_error e;

		have = conf_get(rows, str_of(r->key));
		want = conf_get(fresh, str_of(r->key));
		if (str_eq(have, want))
			continue;
		if (r->flags & CONF_IGNORED)
			log_warn("without effect here: %s=" MQ_STR_FMT, r->key, MQ_STR_ARG(want));
		else if (!(r->flags & CONF_RUNTIME))
			log_warn("key needs a new start: %s=" MQ_STR_FMT, r->key, MQ_STR_ARG(want));
		else if (conf_set(rows, str_of(r->key), want, &e) < 0)
			log_error("%s", e.text);
		else
			changed++;
	}
	return changed;
}
