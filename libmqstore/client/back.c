/* back.c: CONSUMER_SEND_MSG_BACK: a consumer could not do with a message; the broker is to bring it again, or to bury it. */
#include "consume.h"
#include "done.h"
#include "pop.h"
#include "../codec/property.h"

int mqclient_send_back(struct mqclient_consumer *k, const struct mqclient_back *b, mqclient_done_cb *cb, void *arg, struct mq_error *e)
{
	struct frame_out o;
	struct link *l;
	int rc;

	if (!k->group)
		return err_set(e, MQ_EINVAL, "nothing can be sent back without a group");
	rc = k->pop_ms ? pop_send_back(k, b, cb, arg, e) : 0;
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = done_call(k->c, broker_get(k->c, str_of(b->broker)), REQ_CONSUMER_SEND_MSG_BACK, 0, &l, &o, cb, arg, e,
	               "send back message %s of topic '" MQ_STR_FMT "' to %s", b->id, MQ_STR_ARG(b->topic), b->broker);
	if (rc < 0)
		return rc;
	frame_i64(&o, "offset", b->log_off);
	frame_cstr(&o, "group", k->group);
	frame_i64(&o, "delayLevel", b->delay_level);
	frame_cstr(&o, "originMsgId", b->id);
	frame_str(&o, "originTopic", b->topic);
	frame_bool(&o, "unitMode", false);
	if (b->max_times >= 0)
		frame_i64(&o, "maxReconsumeTimes", b->max_times);
	frame_cstr(&o, "bname", b->broker);
	link_send(l, &o);
	return 0;
}
