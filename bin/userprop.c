/* userprop.c: names and values of properties as the pipe tools take and show them. */
#include "userprop.h"

#include <stdio.h>
#include <string.h>

/* compat: MessageConst.STRING_HASH_SET of 5.2.0, and behind the blank line what else the servers set by themselves. */
static const char *const system_names[] = {
	"1ST_POP_TIME", "ARRIVE_TIME", "BORN_TIMESTAMP", "BUYER_ID", "CLUSTER", "CONSUME_START_TIME", "CORRECTION_FLAG",
	"CORRELATION_ID", "DELAY", "DLQ_ORIGIN_MESSAGE_ID", "DLQ_ORIGIN_TOPIC", "DUP_INFO", "EXTEND_UNIQ_INFO",
	"INNER_MULTI_QUEUE_OFFSET", "INSTANCE_ID", "KEYS", "MAX_OFFSET", "MAX_RECONSUME_TIMES", "MIN_OFFSET", "MQ2_FLAG",
	"MSG_REGION", "MSG_TYPE", "ORIGIN_MESSAGE_ID", "PGROUP", "POP_CK", "POP_CK_OFFSET", "PUSH_REPLY_TIME", "REAL_QID",
	"REAL_TOPIC", "RECONSUME_TIME", "REPLY_TO_CLIENT", "RETRY_TOPIC", "TAGS", "TIMER_DELAY_LEVEL", "TIMER_DELAY_MS",
	"TIMER_DELAY_SEC", "TIMER_DELIVER_MS", "TIMER_DEL_UNIQKEY", "TIMER_DEQUEUE_MS", "TIMER_ENQUEUE_MS", "TIMER_OUT_MS",
	"TIMER_ROLL_TIMES", "TRACE_ON", "TRANSFER_FLAG", "TRAN_MSG", "TRAN_PREPARED_QUEUE_OFFSET", "TTL", "UNIQ_KEY", "WAIT",
	"__BORNHOST", "__CRC32#",

	"CHECK_IMMUNITY_TIME_IN_SECONDS", "INNER_BASE", "INNER_MULTI_DISPATCH", "INNER_NUM", "PROPERTY_FORWARD_QUEUE_ID",
	"REDIRECT", "TRANSACTION_CHECK_TIMES", "__transactionId__",
};

bool userprop_is_system(struct mq_str name)
{
	static const char transient[] = "__RMQ.TRANSIENT.";

	if (name.n == 0 || (name.p[0] >= 'a' && name.p[0] <= 'z')) /* the usual case, at once */
		return false;
	for (size_t i = 0; i < sizeof(system_names) / sizeof(system_names[0]); i++)
		if (strncmp(system_names[i], name.p, name.n) == 0 && system_names[i][name.n] == '\0')
			return true;
	return name.n >= sizeof(transient) - 1 && memcmp(name.p, transient, sizeof(transient) - 1) == 0;
}

static int refuse(struct mq_error *err, const char *what, struct mq_str name, const char *why)
{
	if (err) {
		err->code = MQ_EINVAL;
		err->response = 0;
		if (what)
			snprintf(err->text, sizeof(err->text), "%s: %s", what, why);
		else
			snprintf(err->text, sizeof(err->text), "property '%.*s': %s", name.n > 200 ? 200 : (int)name.n, name.p, why);
	}
	return MQ_EINVAL;
}

static bool has_separator(struct mq_str s)
{
	return s.n && (memchr(s.p, 1, s.n) || memchr(s.p, 2, s.n));
}

int userprop_put(struct bytes *b, struct mq_str name, struct mq_str value, bool system, const char *what, struct mq_error *err)
{
	if (name.n == 0)
		return refuse(err, "property without a name", name, "NAME=VALUE is right");
	if (value.n == 0) /* compat: the peer's readers take such an entry for absent, its clients refuse to make it */
		return refuse(err, what, name, "an empty value is not kept by the servers");
	if (!system && userprop_is_system(name))
		return refuse(err, what, name, "this name is the system's");
	if (has_separator(name) || has_separator(value))
		return refuse(err, what, name, "holds byte 0x01 or 0x02, which separate properties");
	bytes_add(b, name.p, name.n);
	bytes_byte(b, 1);
	bytes_add(b, value.p, value.n);
	bytes_byte(b, 2);
	return 0;
}
