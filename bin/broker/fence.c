/* fence.c: one question, and what its answer means. */
#include "fence.h"
#include "broker.h"
#include <base/log.h>
#include <base/mem.h>
#include <base/str.h>

#include <stdlib.h>

#define LOG_MODULE "fence"

struct question {
	struct broker *b;
	void (*done)(void *arg, bool closed);
	void *arg;
};

bool fence_applies(const struct broker *b)
{
	return b->conf->brokerRole != ROLE_SLAVE && !b->opt.embedded_dir && !b->opt.member;
}

static void judge(struct broker *b, const struct frame *f)
{
	struct mq_str other = f->code == RESP_SUCCESS ? frame_get(f, "value") : (struct mq_str){ NULL, 0 };
	bool deposed = other.n && !str_is(other, b->addr);

	if (f->code != RESP_SUCCESS && f->code != RESP_QUERY_NOT_FOUND)
		return;
	if (deposed && b->deposed != DEPOSED_BY_OTHER)
		log_error("another broker was made master name=%s master=" MQ_STR_FMT " this=%s: no message is taken here; make this one "
			  "a slave (brokerRole=SLAVE, brokerId above 0)", b->conf->brokerName, MQ_STR_ARG(other), b->addr);
	else if (!deposed && b->deposed != DEPOSED_NOT)
		log_info("master of its name name=%s this=%s", b->conf->brokerName, b->addr);
	b->deposed = deposed ? DEPOSED_BY_OTHER : DEPOSED_NOT;
}

static void on_answer(void *arg, int rc, struct frame *f)
{
	struct question q = *(struct question *)arg;

	free(arg);
	if (rc == 0)
		judge(q.b, f);
	q.done(q.arg, rc == MQ_ECLOSED);
}

void fence_ask(struct broker *b, struct conn *c, void (*done)(void *arg, bool closed), void *arg)
{
	struct question *q = mem_alloc(sizeof(*q));
	struct frame_out o;

	*q = (struct question){ b, done, arg };
	conn_call(c, &o, REQ_GET_KV_CONFIG, FRAME_JSON, b->conf->registerBrokerTimeoutMills, on_answer, q);
	frame_cstr(&o, "namespace", FENCE_NAMESPACE);
	frame_cstr(&o, "key", b->conf->brokerName);
	frame_end(&o);
	conn_kick(c);
}

bool fence_stops(int32_t code)
{
	switch (code) {
	case REQ_SEND_MESSAGE:
	case REQ_SEND_MESSAGE_V2:
	case REQ_SEND_BATCH_MESSAGE:
	case REQ_SEND_REPLY_MESSAGE:
	case REQ_SEND_REPLY_MESSAGE_V2:
	case REQ_CONSUMER_SEND_MSG_BACK:
	case REQ_END_TRANSACTION:
	case REQ_RECALL_MESSAGE:
		return true;
	default:
		return false;
	}
}
