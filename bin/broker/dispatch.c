/* dispatch.c: THE table of what this broker serves, and the way of a request through it. */
#include "acl.h"
#include "broker.h"
#include "fence.h"
#include "handle.h"
#include <base/err.h>
#include <assert.h>
#include <stdarg.h>

enum { HEADER_BYTES = 512 };    /* of the largest header struct */

static const struct dispatch_row dispatch_rows[] = {
	{ REQ_SEND_MESSAGE,           handle_send, 0 },
	{ REQ_SEND_MESSAGE_V2,        handle_send, 0 },
	{ REQ_SEND_BATCH_MESSAGE,     handle_send, 0 },
	{ REQ_SEND_REPLY_MESSAGE,     handle_reply, 0 },
	{ REQ_SEND_REPLY_MESSAGE_V2,  handle_reply, 0 },
	{ REQ_PULL_MESSAGE,           handle_pull, DISPATCH_MAIN_ONLY },
	{ REQ_LITE_PULL_MESSAGE,      handle_pull, DISPATCH_MAIN_ONLY },
	{ REQ_QUERY_CONSUMER_OFFSET,  handle_query_offset, 0 },
	{ REQ_UPDATE_CONSUMER_OFFSET, handle_update_offset, 0 },
	{ REQ_SEARCH_OFFSET_BY_TIMESTAMP, handle_search_offset, 0 },
	{ REQ_GET_MAX_OFFSET,         handle_max_offset, 0 },
	{ REQ_GET_MIN_OFFSET,         handle_min_offset, 0 },
	{ REQ_GET_EARLIEST_MSG_STORETIME, handle_earliest_time, 0 },
	{ REQ_HEART_BEAT,             handle_heartbeat, 0 },
	{ REQ_UNREGISTER_CLIENT,      handle_unregister_client, 0 },
	{ REQ_CONSUMER_SEND_MSG_BACK, handle_send_back, 0 },
	{ REQ_END_TRANSACTION,        handle_end_transaction, 0 },
	{ REQ_GET_CONSUMER_LIST_BY_GROUP, handle_consumer_list, 0 },
	{ REQ_LOCK_BATCH_MQ,          handle_lock, 0 },
	{ REQ_UNLOCK_BATCH_MQ,        handle_unlock, 0 },
	{ REQ_CHECK_CLIENT_CONFIG,    handle_check_client, 0 },
	{ REQ_QUERY_MESSAGE,          handle_query_message, 0 },
	{ REQ_VIEW_MESSAGE_BY_ID,     handle_view_message, 0 },
	{ REQ_UPDATE_AND_CREATE_TOPIC, handle_create_topic, 0 },
	{ REQ_UPDATE_AND_CREATE_TOPIC_LIST, handle_create_topics, 0 },
	{ REQ_GET_ALL_TOPIC_CONFIG,   handle_all_topics, 0 },
	{ REQ_DELETE_TOPIC_IN_BROKER, handle_delete_topic, 0 },
	{ REQ_GET_TOPIC_CONFIG,       handle_topic_config, 0 },
	{ REQ_UPDATE_BROKER_CONFIG,   handle_update_config, 0 },
	{ REQ_GET_BROKER_CONFIG,      handle_get_config, 0 },
	{ REQ_GET_BROKER_RUNTIME_INFO, handle_runtime_info, 0 },
	{ REQ_GET_ALL_CONSUMER_OFFSET, handle_all_offsets, 0 },
	{ REQ_GET_ALL_DELAY_OFFSET,   handle_all_delay_offsets, 0 },
	{ REQ_UPDATE_AND_CREATE_ACL_CONFIG, handle_acl_set, 0 },
	{ REQ_DELETE_ACL_CONFIG,      handle_acl_delete, 0 },
	{ REQ_GET_BROKER_CLUSTER_ACL_INFO, handle_acl_versions, 0 },
	{ REQ_UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, handle_acl_white, 0 },
	{ REQ_GET_TIMER_CHECK_POINT,  handle_timer_check, 0 },
	{ REQ_GET_TIMER_METRICS,      handle_timer_metrics, 0 },
	{ REQ_RECALL_MESSAGE,         handle_recall, 0 },
	{ REQ_LIST_TIMERS,            handle_list_timers, 0 },
	{ REQ_UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, handle_create_group, 0 },
	{ REQ_GET_ALL_SUBSCRIPTIONGROUP_CONFIG, handle_all_groups, 0 },
	{ REQ_GET_TOPIC_STATS_INFO,   handle_topic_stats, 0 },
	{ REQ_GET_CONSUMER_CONNECTION_LIST, handle_consumer_connection, 0 },
	{ REQ_GET_PRODUCER_CONNECTION_LIST, handle_producer_connection, 0 },
	{ REQ_DELETE_SUBSCRIPTIONGROUP, handle_delete_group, 0 },
	{ REQ_GET_CONSUME_STATS,      handle_consume_stats, 0 },
	{ REQ_INVOKE_BROKER_TO_RESET_OFFSET, handle_reset_offset, 0 },
	{ REQ_INVOKE_BROKER_TO_GET_CONSUMER_STATUS, handle_consumer_status, 0 },
	{ REQ_QUERY_TOPIC_CONSUME_BY_WHO, handle_topic_groups, 0 },
	{ REQ_QUERY_CONSUME_TIME_SPAN, handle_consume_span, 0 },
	{ REQ_GET_SYSTEM_TOPIC_LIST_FROM_BROKER, handle_system_topics, 0 },
	{ REQ_CLEAN_EXPIRED_CONSUMEQUEUE, handle_clean_queues, 0 },
	{ REQ_GET_CONSUMER_RUNNING_INFO, handle_running_info, 0 },
	{ REQ_QUERY_CORRECTION_OFFSET, handle_correction_offset, 0 },
	{ REQ_CONSUME_MESSAGE_DIRECTLY, handle_consume_directly, 0 },
	{ REQ_CLONE_GROUP_OFFSET,     handle_clone_offsets, 0 },
	{ REQ_VIEW_BROKER_STATS_DATA, handle_stats_data, 0 },
	{ REQ_CLEAN_UNUSED_TOPIC,     handle_clean_topics, 0 },
	{ REQ_GET_BROKER_CONSUME_STATS, handle_broker_progress, 0 },
	{ REQ_QUERY_CONSUME_QUEUE,    handle_consume_queue, 0 },
	{ REQ_GET_ALL_PRODUCER_INFO,  handle_all_producers, 0 },
	{ REQ_DELETE_EXPIRED_COMMITLOG, handle_clean_log, 0 },
	{ REQ_QUERY_TOPICS_BY_CONSUMER, handle_group_topics, 0 },
	{ REQ_QUERY_SUBSCRIPTION_BY_CONSUMER, handle_group_subscription, 0 },
	{ REQ_GET_SUBSCRIPTIONGROUP_CONFIG, handle_group_config, 0 },
	{ REQ_UPDATE_AND_GET_GROUP_FORBIDDEN, handle_group_forbidden, 0 },
	{ REQ_QUERY_ASSIGNMENT,       handle_query_assignment, 0 },
	{ REQ_SET_MESSAGE_REQUEST_MODE, handle_set_mode, 0 },
	{ REQ_GET_ALL_MESSAGE_REQUEST_MODE, handle_request_modes, 0 },
	{ REQ_POP_MESSAGE,            handle_pop, DISPATCH_MAIN_ONLY },
	{ REQ_PEEK_MESSAGE,           handle_peek, DISPATCH_MAIN_ONLY },
	{ REQ_ACK_MESSAGE,            handle_ack, 0 },
	{ REQ_BATCH_ACK_MESSAGE,      handle_batch_ack, 0 },
	{ REQ_CHANGE_MESSAGE_INVISIBLETIME, handle_change_invisible, 0 },
	{ REQ_NOTIFICATION,           handle_notification, 0 },
	{ REQ_POLLING_INFO,           handle_polling_info, 0 },
	{ REQ_GET_BROKER_HA_STATUS,   handle_ha_status, 0 },
	{ REQ_EXCHANGE_BROKER_HA_INFO, handle_ha_info, 0 },
	{ REQ_RESET_MASTER_FLUSH_OFFSET, handle_reset_flush_offset, 0 },
	{ REQ_GET_BROKER_EPOCH_CACHE, handle_epochs, 0 },
	{ REQ_NOTIFY_BROKER_ROLE_CHANGED, handle_role_changed, 0 },
};
enum { NROWS = sizeof dispatch_rows / sizeof dispatch_rows[0] };

/* Codes below 1024 are found by index, the few others by looking. */
static struct dispatch_entry {
	const struct dispatch_row *row;
	const struct request_row *request;
} dispatch_low[1024], dispatch_high[NROWS];
static size_t dispatch_nhigh;
static bool dispatch_ready;

static void dispatch_init(void)
{
	for (size_t i = 0; i < NROWS; i++) {
		const struct dispatch_row *r = &dispatch_rows[i];
		struct dispatch_entry e = { r, request_find(r->code) };

		assert(e.request && e.request->header->size <= HEADER_BYTES);
		if ((uint32_t)r->code < 1024)
			dispatch_low[r->code] = e;
		else
			dispatch_high[dispatch_nhigh++] = e;
	}
	dispatch_ready = true;
}

static const struct dispatch_entry *dispatch_entry(int32_t code)
{
	if (!dispatch_ready)
		dispatch_init();
	if ((uint32_t)code < 1024)
		return dispatch_low[code].row ? &dispatch_low[code] : NULL;
	for (size_t i = 0; i < dispatch_nhigh; i++)
		if (dispatch_high[i].row->code == code)
			return &dispatch_high[i];
	return NULL;
}

const struct dispatch_row *dispatch_find(int32_t code)
{
	const struct dispatch_entry *e = dispatch_entry(code);

	return e ? e->row : NULL;
}

int dispatch_request(struct broker *b, struct conn *c, struct frame *f, bool vip)
{
	const struct dispatch_entry *e = dispatch_entry(f->code);
	struct req q = { .b = b, .c = c, .f = f, .id = frame_id_of(f), .vip = vip };
	_Alignas(16) char header[HEADER_BYTES];
	struct mq_error err;

	b->metrics.requests++;
	if (q.id.oneway)
		b->metrics.oneway_requests++;
	if (b->stopping) { /* compat: from 5.1.5 on clients know code 1500, come anew and try again */
		if (f->version > 441)
			reply(&q, RESP_GO_AWAY, "please go away");
		else
			reply(&q, RESP_SERVICE_NOT_AVAILABLE, "service not available now. The broker is stopping");
		return 0;
	}
	if (!e || (vip && (e->row->flags & DISPATCH_MAIN_ONLY))) {
		if (b->names && b->opt.names->request(b->names, c, f))
			return 0;
		b->metrics.unknown_requests++;
		reply(&q, RESP_REQUEST_CODE_NOT_SUPPORTED, " request type %d not supported", f->code);
		return 0;
	}
	if (b->acl && !acl_allows(b->acl, f, &conn_public(c)->peer, &err)) {
		b->metrics.requests_denied++;
		/* compat: clients and tools know it by the name of the class */
		reply(&q, RESP_SYSTEM_ERROR, "org.apache.rocketmq.acl.common.AclException: %s", err.text);
		return 0;
	}
	if (header_decode(e->request->header, f, header, &err) < 0) {
		b->metrics.bad_requests++;
		reply(&q, RESP_SYSTEM_ERROR, "%s", err.text);
		return 0;
	}
	if (b->deposed && fence_stops(f->code)) {
		reply(&q, RESP_SERVICE_NOT_AVAILABLE, b->deposed == DEPOSED_BY_OTHER ? "another broker was made master of this name" :
		      "no name server has said yet that this is the master of its name");
		return 0;
	}
	q.h = header;
	e->row->handler(&q);
	return 0;
}

void dispatch_again(struct req *q, struct frame *f)
{
	const struct dispatch_entry *e = dispatch_entry(f->code);
	_Alignas(16) char header[HEADER_BYTES];
	struct mq_error err;

	if (header_decode(e->request->header, f, header, &err) < 0) {
		reply(q, RESP_SYSTEM_ERROR, "%s", err.text);
		return;
	}
	q->h = header;
	e->row->handler(q);
}

/* ---- Answers ----------------------------------------------------------------------------------------------------------- */

void reply_begin(struct req *q, struct frame_out *o, int32_t code, const char *remark)
{
	struct buf *out = conn_out(q->c);

	if (q->id.oneway) {
		out = &q->b->void_out;
		out->n = 0;
	} else {
		metrics_answer(&q->b->metrics, code);
		if (code == RESP_SYSTEM_BUSY)
			q->b->metrics.busy_answers++;
	}
	frame_answer(o, out, q->id, code, (struct mq_str){ remark, remark ? strlen(remark) : 0 });
}

void reply_end(struct req *q, struct frame_out *o)
{
	frame_end(o);
	if (!q->f)
		conn_kick(q->c);
}

void reply(struct req *q, int32_t code, const char *fmt, ...)
{
	char remark[1024] = "";
	struct frame_out o;
	va_list ap;

	if (fmt) {
		va_start(ap, fmt);
		vsnprintf(remark, sizeof remark, fmt, ap);
		va_end(ap);
	}
	reply_begin(q, &o, code, fmt ? remark : NULL);
	reply_end(q, &o);
}

void reply_body(struct req *q, struct mq_str body)
{
	struct frame_out o;

	reply_begin(q, &o, RESP_SUCCESS, NULL);
	frame_body(&o);
	buf_str(o.buf, body);
	reply_end(q, &o);
}

void reply_buf(struct req *q, struct buf *b)
{
	reply_body(q, buf_view(b));
	buf_free(b);
}

void later_take(struct later *l, const struct req *q)
{
	l->c = q->c;
	l->id = q->id;
	conn_ref(l->c);
}

struct req later_req(struct broker *b, const struct later *l)
{
	return (struct req){ .b = b, .c = l->c, .id = l->id };
}

void later_drop(struct later *l)
{
	if (l->c)
		conn_unref(l->c);
	l->c = NULL;
}
