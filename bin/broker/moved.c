/* moved.c: one event for each pull that was moved. */
#include "moved.h"
#include "broker.h"
#include "topic_table.h"
#include <base/clock.h>
#include <base/json.h>
#include <base/log.h>
#include <codec/property.h>

#define LOG_MODULE "pull"
#define TOPIC_MOVED "OFFSET_MOVED_EVENT"

static void write_body(const struct broker *b, const struct pull *p, int64_t to, struct buf *out)
{
	struct json_out j = json_to(out);

	json_open(&j, '{');
	json_member_str(&j, "consumerGroup", p->group);
	json_key(&j, "messageQueue");
	json_open(&j, '{');
	json_member_cstr(&j, "brokerName", b->conf->brokerName);
	json_member_i64(&j, "queueId", p->queue_id);
	json_member_str(&j, "topic", p->topic->conf.name);
	json_close(&j, '}');
	json_member_i64(&j, "offsetNew", to);
	json_member_i64(&j, "offsetRequest", p->off);
	json_close(&j, '}');
}

void moved_publish(struct broker *b, const struct pull *p, int64_t to)
{
	struct topic *t = topic_table_need(b->topics, MQ_STR(TOPIC_MOVED), 1);
	struct mqstore_record r = { .born_ms = clock_now_ms(), .born_host = b->store_host, .store_host = b->store_host };
	struct buf body = { 0 }, props = { 0 };
	struct mqstore_place place;
	struct mq_error e;

	write_body(b, p, to, &body);
	property_put(&props, MQ_STR(PROP_TAGS), p->group);
	property_put(&props, MQ_STR(PROP_KEYS), p->group);
	r.queue = topic_queue(b->topics, t, 0, true);
	r.body = buf_view(&body);
	r.props[0] = buf_view(&props);
	if (r.queue && mqstore_append(b->store, &r, 1, &place, &e) < 0)
		log_debug("no event of a moved offset group=" MQ_STR_FMT ": %s", MQ_STR_ARG(p->group), e.text);
	buf_free(&body);
	buf_free(&props);
}
