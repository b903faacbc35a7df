/* acl.c: the question whether a request may be served.  What the files say: acl_rules.c; changes to them: acl_edit.c. */
#include "acl_private.h"
#include "topic.h"
#include <base/err.h>
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>
#include <base/sys.h>
#include <codec/body_heartbeat.h>
#include <codec/body_pop.h>
#include <codec/request.h>
#include <codec/sign.h>
#include <stdlib.h>

#define LOG_MODULE "acl"
enum { RETRY_N = sizeof TOPIC_RETRY_PREFIX - 1, NAME_BYTES = 512 };

/* ---- What a request asks for --------------------------------------------------------------------------------------------------- */

enum kind { TOPIC, GROUP };

/* The field of a request that names what it needs a right to. */
static const struct need {
	int32_t code;
	const char *field;
	enum kind kind;
	int perm;
} needs[] = {
	{ REQ_SEND_MESSAGE, "topic", TOPIC, ACL_PUB },
	{ REQ_SEND_MESSAGE_V2, "b", TOPIC, ACL_PUB },
	{ REQ_SEND_BATCH_MESSAGE, "b", TOPIC, ACL_PUB },
	{ REQ_CONSUMER_SEND_MSG_BACK, "group", GROUP, ACL_SUB },
	{ REQ_PULL_MESSAGE, "topic", TOPIC, ACL_SUB },
	{ REQ_PULL_MESSAGE, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_LITE_PULL_MESSAGE, "topic", TOPIC, ACL_SUB },
	{ REQ_LITE_PULL_MESSAGE, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_QUERY_MESSAGE, "topic", TOPIC, ACL_SUB },
	{ REQ_UNREGISTER_CLIENT, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_GET_CONSUMER_LIST_BY_GROUP, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_UPDATE_CONSUMER_OFFSET, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_UPDATE_CONSUMER_OFFSET, "topic", TOPIC, ACL_SUB },
	{ REQ_END_TRANSACTION, "topic", TOPIC, ACL_PUB },
	{ REQ_RECALL_MESSAGE, "topic", TOPIC, ACL_PUB },
	{ REQ_POP_MESSAGE, "topic", TOPIC, ACL_SUB },
	{ REQ_POP_MESSAGE, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_PEEK_MESSAGE, "topic", TOPIC, ACL_SUB },
	{ REQ_PEEK_MESSAGE, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_ACK_MESSAGE, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_ACK_MESSAGE, "topic", TOPIC, ACL_SUB },
	{ REQ_CHANGE_MESSAGE_INVISIBLETIME, "consumerGroup", GROUP, ACL_SUB },
	{ REQ_CHANGE_MESSAGE_INVISIBLETIME, "topic", TOPIC, ACL_SUB },
};

static const int32_t admin_codes[] = {
	/* as with the peer */
	REQ_UPDATE_AND_CREATE_TOPIC, REQ_UPDATE_BROKER_CONFIG, REQ_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, REQ_DELETE_SUBSCRIPTIONGROUP,
	REQ_DELETE_TOPIC_IN_BROKER,
	/* and these */
	REQ_UPDATE_AND_CREATE_TOPIC_LIST, REQ_UPDATE_AND_CREATE_ACL_CONFIG, REQ_DELETE_ACL_CONFIG, REQ_UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
	REQ_INVOKE_BROKER_TO_RESET_OFFSET, REQ_CLEAN_EXPIRED_CONSUMEQUEUE, REQ_CLONE_GROUP_OFFSET, REQ_CLEAN_UNUSED_TOPIC,
	REQ_DELETE_EXPIRED_COMMITLOG, REQ_UPDATE_AND_GET_GROUP_FORBIDDEN, REQ_SET_MESSAGE_REQUEST_MODE, REQ_RESET_MASTER_FLUSH_OFFSET,
	REQ_NOTIFY_BROKER_ROLE_CHANGED,
};

static bool is_for_admins(int32_t code)
{
	for (size_t i = 0; i < sizeof admin_codes / sizeof *admin_codes; i++)
		if (admin_codes[i] == code)
			return true;
	return false;
}

/* Has the account the right?  A retry topic stands for its group. */
static bool has(const struct acl_account *o, enum kind kind, struct mq_str name, int perm, struct mq_error *why)
{
	char text[NAME_BYTES], show[NAME_BYTES];
	const struct acl_perm *p;
	bool group;
	int own;

	if (!name.p)
		return true;
	if (name.n + RETRY_N >= sizeof text || memchr(name.p, 0, name.n)) { /* longer than any name, or none */
		err_set(why, MQ_EREFUSED, "No permission for topic:%s", str_show(name, show, sizeof show));
		return false;
	}
	snprintf(text, sizeof text, "%s" MQ_STR_FMT, kind == GROUP ? TOPIC_RETRY_PREFIX : "", MQ_STR_ARG(name));
	group = str_starts(str_of(text), TOPIC_RETRY_PREFIX);
	HASH_FIND_STR(o->perms, text, p);
	own = p ? p->perm : group ? o->group_perm : o->topic_perm;
	/* A message that goes to a retry topic is one that the group gives back. */
	if (!(own & ACL_DENY) && (own & (group ? ACL_SUB : perm)))
		return true;
	err_set(why, MQ_EREFUSED, "No %spermission for %s:%s", p ? "" : "default ", group ? "group" : "topic",
		str_show(str_of(group ? text + RETRY_N : text), show, sizeof show));
	return false;
}

static bool may_beat(const struct acl_account *o, const struct frame *f, struct mq_error *why)
{
	struct body_heartbeat h;
	bool may = true;

	if (body_heartbeat_decode(f->body, &h, why) < 0)
		return false;
	for (size_t i = 0; i < h.nconsumers && may; i++) {
		const struct body_consumer *c = &h.consumer[i];

		may = has(o, GROUP, c->group, ACL_SUB, why);
		for (size_t k = 0; k < c->nsubs && may; k++)
			may = has(o, TOPIC, c->sub[k].topic, ACL_SUB, why);
	}
	body_heartbeat_free(&h);
	return may;
}

static bool may_ack(const struct acl_account *o, const struct frame *f, struct mq_error *why)
{
	struct body_acks acks;
	bool may = true;

	if (body_acks_decode(f->body, &acks, why) < 0)
		return false;
	for (size_t i = 0; i < acks.n && may; i++)
		may = has(o, GROUP, acks.ack[i].group, ACL_SUB, why) && has(o, TOPIC, acks.ack[i].topic, ACL_SUB, why);
	body_free(&acks.keep);
	return may;
}

static bool has_rights(const struct acl_account *o, const struct frame *f, struct mq_error *why)
{
	if (f->code == REQ_HEART_BEAT)
		return may_beat(o, f, why);
	if (f->code == REQ_BATCH_ACK_MESSAGE)
		return may_ack(o, f, why);
	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
		if (needs[i].code == f->code && !has(o, needs[i].kind, frame_get(f, needs[i].field), needs[i].perm, why))
			return false;
	return true;
}

/* compat: by it clients send traces of messages that they may not send themselves. */
static bool is_trace(const struct frame *f)
{
	struct mq_str topic = frame_get(f, f->code == REQ_SEND_MESSAGE ? "topic" : "b");

	return (f->code == REQ_SEND_MESSAGE || f->code == REQ_SEND_MESSAGE_V2 || f->code == REQ_SEND_BATCH_MESSAGE) &&
	       str_is(topic, "RMQ_SYS_TRACE_TOPIC");
}

bool acl_allows(const struct acl *a, const struct frame *f, const struct mq_host *peer, struct mq_error *why)
{
	struct mq_str access = frame_get(f, "AccessKey");
	const struct acl_account *o;
	char show[128];

	for (size_t i = 0; i < a->rules->white_n; i++)
		if (acl_addr_match(a->rules->white[i], peer))
			return true;
	if (!access.p) {
		err_set(why, MQ_EREFUSED, "No accessKey is configured");
		return false;
	}
	str_show(access, show, sizeof show);
	HASH_FIND(hh, a->rules->accounts, access.p, access.n, o);
	if (!o) {
		err_set(why, MQ_EREFUSED, "No acl config for %s", show);
		return false;
	}
	if (acl_addr_match(o->white, peer))
		return true;
	if (!sign_check(f, str_of(o->secret))) {
		err_set(why, MQ_EREFUSED, "Check signature failed for accessKey=%s", show);
		return false;
	}
	if (o->admin || is_trace(f))
		return true;
	if (is_for_admins(f->code)) {
		err_set(why, MQ_EREFUSED, "Need admin permission for request code=%d, but accessKey=%s is not", f->code, show);
		return false;
	}
	return has_rights(o, f, why);
}

/* ---- Files ----------------------------------------------------------------------------------------------------------------------- */

int acl_read(struct acl *a, struct mq_error *e)
{
	struct acl_rules *r;
	int rc = acl_rules_read(&r, a->path, a->dir, e);

	if (rc < 0)
		return rc;
	acl_rules_free(a->rules);
	a->rules = r;
	log_info("rights read accounts=%u files=%zu addresses=%zu", HASH_COUNT(r->accounts), r->file_n, r->white_n);
	return 0;
}

int acl_open(struct acl **out, const char *path, struct mq_error *e)
{
	struct acl *a = mem_alloc(sizeof *a);
	const char *slash = strrchr(path, '/');
	struct stat st;
	int rc = sys.stat(path, &st);

	a->path = mem_strdup(path);
	a->dir = slash ? mem_printf("%.*s/acl", (int)(slash - path), path) : mem_strdup("acl");
	if (rc < 0)
		err_sys(e, rc, "accounts '%s' (aclFile): without it nobody could do anything", path);
	else
		rc = acl_read(a, e);
	if (rc < 0) {
		acl_free(a);
		a = NULL;
	}
	*out = a;
	return rc;
}

void acl_look(struct acl *a)
{
	struct mq_error e = { 0 };

	if (acl_rules_are_fresh(a->rules, a->path, a->dir))
		a->trouble[0] = 0;
	else if (acl_read(a, &e) == 0)
		a->trouble[0] = 0;
	else if (strncmp(a->trouble, e.text, sizeof a->trouble - 1)) {
		snprintf(a->trouble, sizeof a->trouble, "%.*s", (int)sizeof a->trouble - 1, e.text);
		log_error("rights stay as they were: %s", e.text);
	}
}

void acl_free(struct acl *a)
{
	if (!a)
		return;
	acl_rules_free(a->rules);
	free(a->path);
	free(a->dir);
	free(a);
}
