/* handle_acl.c: accounts by request (50, 51, 52, 53).  Who may ask: acl.c. */
#include "acl.h"
#include "broker.h"
#include "handle.h"
#include <base/log.h>
#include <base/str.h>

#define LOG_MODULE "acl"
/* As the peer numbers them; pop uses the first two for something else. */
enum { ACL_SET_FAILED = 209, ACL_DELETE_FAILED = 210, ACL_WHITE_FAILED = 211 };

/* There are accounts; else the answer was given.  (The peer does not answer at all.) */
static bool has_accounts(struct req *q)
{
	if (!q->b->acl)
		reply(q, RESP_SYSTEM_ERROR, "aclEnable=false: this broker has no accounts");
	return q->b->acl != NULL;
}

static void done(struct req *q, int rc, int32_t code, struct mq_str what, const struct mq_error *e)
{
	char show[128];

	str_show(what, show, sizeof show);
	if (rc < 0)
		reply(q, code, "%s", e->text);
	else
		reply(q, RESP_SUCCESS, NULL);
	log_info("rights changed by request code=%d of=%s done=%d", q->f->code, show, rc == 0);
}

void handle_acl_set(struct req *q)
{
	const struct acl_config_header *h = q->h;
	struct mq_error e = { 0 };

	if (has_accounts(q))
		done(q, acl_account_set(q->b->acl, h, &e), ACL_SET_FAILED, h->accessKey, &e);
}

void handle_acl_delete(struct req *q)
{
	const struct delete_acl_header *h = q->h;
	struct mq_error e = { 0 };
	int rc;

	if (!has_accounts(q))
		return;
	rc = acl_account_delete(q->b->acl, h->accessKey, &e);
	if (rc == MQ_ENOTFOUND) /* compat: the peer's words */
		snprintf(e.text, sizeof e.text, "The accessKey[" MQ_STR_FMT "] corresponding to accessConfig has been deleted failed.",
			 MQ_STR_ARG(h->accessKey));
	done(q, rc, ACL_DELETE_FAILED, h->accessKey, &e);
}

void handle_acl_white(struct req *q)
{
	const struct white_addrs_header *h = q->h;
	struct mq_error e = { 0 };

	if (has_accounts(q))
		done(q, acl_white_set(q->b->acl, h->globalWhiteAddrs, h->aclFileFullPath, &e),
		     ACL_WHITE_FAILED, h->globalWhiteAddrs, &e);
}

void handle_acl_versions(struct req *q)
{
	struct buf one = { 0 }, all = { 0 };
	struct acl_info_answer a;
	struct frame_out o;

	if (!has_accounts(q))
		return;
	acl_versions(q->b->acl, &one, &all);
	a = (struct acl_info_answer){
		.version = buf_view(&one), .allAclFileVersion = buf_view(&all), .brokerName = str_of(q->b->conf->brokerName),
		.brokerAddr = str_of(q->b->addr), .clusterName = str_of(q->b->conf->brokerClusterName),
	};
	reply_begin(q, &o, RESP_SUCCESS, NULL);
	header_encode(&acl_info_answer_desc, &a, false, &o);
	reply_end(q, &o);
	buf_free(&one);
	buf_free(&all);
}
