/* request.c: the table of request codes with their headers, and the names of response codes. */
#include "request.h"

#include <stdio.h>

/*      code name                       header of the request       of the answer ("none": no fields) */
#define REQUEST_HEADERS(M) \
	M(SEND_MESSAGE,                 send_header,                send_answer) \
	M(PULL_MESSAGE,                 pull_header,                pull_answer) \
	M(QUERY_MESSAGE,                query_message_header,       query_message_answer) \
	M(QUERY_CONSUMER_OFFSET,        query_offset_header,        query_offset_answer) \
	M(UPDATE_CONSUMER_OFFSET,       update_offset_header,       none_header) \
	M(UPDATE_AND_CREATE_TOPIC,      create_topic_header,        none_header) \
	M(UPDATE_AND_CREATE_TOPIC_LIST, none_header,                none_header) \
	M(GET_ALL_TOPIC_CONFIG,         none_header,                none_header) \
	M(UPDATE_BROKER_CONFIG,         none_header,                none_header) \
	M(GET_BROKER_CONFIG,            none_header,                config_answer) \
	M(GET_BROKER_RUNTIME_INFO,      none_header,                none_header) \
	M(SEARCH_OFFSET_BY_TIMESTAMP,   search_offset_header,       search_offset_answer) \
	M(GET_MAX_OFFSET,               max_offset_header,          max_offset_answer) \
	M(GET_MIN_OFFSET,               min_offset_header,          min_offset_answer) \
	M(GET_EARLIEST_MSG_STORETIME,   earliest_time_header,       earliest_time_answer) \
	M(VIEW_MESSAGE_BY_ID,           view_message_header,        none_header) \
	M(HEART_BEAT,                   none_header,                heartbeat_answer) \
	M(UNREGISTER_CLIENT,            unregister_client_header,   none_header) \
	M(CONSUMER_SEND_MSG_BACK,       send_back_header,           none_header) \
	M(END_TRANSACTION,              end_transaction_header,     none_header) \
	M(GET_CONSUMER_LIST_BY_GROUP,   consumer_list_header,       none_header) \
	M(CHECK_TRANSACTION_STATE,      check_transaction_header,   none_header) \
	M(NOTIFY_CONSUMER_IDS_CHANGED,  ids_changed_header,         none_header) \
	M(LOCK_BATCH_MQ,                none_header,                none_header) \
	M(UNLOCK_BATCH_MQ,              none_header,                none_header) \
	M(GET_ALL_CONSUMER_OFFSET,      none_header,                none_header) \
	M(GET_ALL_DELAY_OFFSET,         none_header,                none_header) \
	M(CHECK_CLIENT_CONFIG,          none_header,                none_header) \
	M(UPDATE_AND_CREATE_ACL_CONFIG, acl_config_header,          none_header) \
	M(DELETE_ACL_CONFIG,            delete_acl_header,          none_header) \
	M(GET_BROKER_CLUSTER_ACL_INFO,  none_header,                acl_info_answer) \
	M(UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, white_addrs_header,     none_header) \
	M(GET_TIMER_CHECK_POINT,        none_header,                none_header) \
	M(GET_TIMER_METRICS,            none_header,                none_header) \
	M(PUT_KV_CONFIG,                put_kv_header,              none_header) \
	M(GET_KV_CONFIG,                get_kv_header,              get_kv_answer) \
	M(DELETE_KV_CONFIG,             delete_kv_header,           none_header) \
	M(REGISTER_BROKER,              register_broker_header,     register_broker_answer) \
	M(UNREGISTER_BROKER,            unregister_broker_header,   none_header) \
	M(GET_ROUTEINFO_BY_TOPIC,       route_header,               none_header) \
	M(GET_BROKER_CLUSTER_INFO,      none_header,                none_header) \
	M(UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, none_header,         none_header) \
	M(GET_ALL_SUBSCRIPTIONGROUP_CONFIG, none_header,            none_header) \
	M(GET_TOPIC_STATS_INFO,         topic_stats_header,         none_header) \
	M(GET_CONSUMER_CONNECTION_LIST, consumer_connection_header, none_header) \
	M(GET_PRODUCER_CONNECTION_LIST, producer_connection_header, none_header) \
	M(WIPE_WRITE_PERM_OF_BROKER,    wipe_perm_header,           wipe_perm_answer) \
	M(GET_ALL_TOPIC_LIST_FROM_NAMESERVER, none_header,          none_header) \
	M(DELETE_SUBSCRIPTIONGROUP,     delete_group_header,        none_header) \
	M(GET_CONSUME_STATS,            consume_stats_header,       none_header) \
	M(DELETE_TOPIC_IN_BROKER,       delete_topic_header,        none_header) \
	M(DELETE_TOPIC_IN_NAMESRV,      delete_route_header,        none_header) \
	M(REGISTER_TOPIC_IN_NAMESRV,    register_topic_header,      none_header) \
	M(GET_KVLIST_BY_NAMESPACE,      kv_list_header,             none_header) \
	M(RESET_CONSUMER_CLIENT_OFFSET, reset_client_offset_header, none_header) \
	M(GET_CONSUMER_STATUS_FROM_CLIENT, client_status_header,    none_header) \
	M(INVOKE_BROKER_TO_RESET_OFFSET, reset_offset_header,       none_header) \
	M(INVOKE_BROKER_TO_GET_CONSUMER_STATUS, consumer_status_header, none_header) \
	M(GET_TOPICS_BY_CLUSTER,        cluster_topics_header,      none_header) \
	M(QUERY_TOPIC_CONSUME_BY_WHO,   topic_groups_header,        none_header) \
	M(QUERY_CONSUME_TIME_SPAN,      consume_span_header,        none_header) \
	M(GET_SYSTEM_TOPIC_LIST_FROM_NS, none_header,               none_header) \
	M(GET_SYSTEM_TOPIC_LIST_FROM_BROKER, none_header,           none_header) \
	M(CLEAN_EXPIRED_CONSUMEQUEUE,   none_header,                none_header) \
	M(GET_CONSUMER_RUNNING_INFO,    running_info_header,        none_header) \
	M(QUERY_CORRECTION_OFFSET,      correction_offset_header,   none_header) \
	M(CONSUME_MESSAGE_DIRECTLY,     consume_directly_header,    none_header) \
	M(SEND_MESSAGE_V2,              send_header,                send_answer) \
	M(GET_UNIT_TOPIC_LIST,          none_header,                none_header) \
	M(GET_HAS_UNIT_SUB_TOPIC_LIST,  none_header,                none_header) \
	M(GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, none_header,          none_header) \
	M(CLONE_GROUP_OFFSET,           clone_offset_header,        none_header) \
	M(VIEW_BROKER_STATS_DATA,       broker_stats_header,        none_header) \
	M(CLEAN_UNUSED_TOPIC,           none_header,                none_header) \
	M(GET_BROKER_CONSUME_STATS,     broker_consume_stats_header, none_header) \
	M(UPDATE_NAMESRV_CONFIG,        none_header,                none_header) \
	M(GET_NAMESRV_CONFIG,           none_header,                none_header) \
	M(SEND_BATCH_MESSAGE,           send_header,                send_answer) \
	M(QUERY_CONSUME_QUEUE,          consume_queue_header,       none_header) \
	M(QUERY_DATA_VERSION,           data_version_header,        data_version_answer) \
	M(RESUME_CHECK_HALF_MESSAGE,    resume_check_header,        none_header) \
	M(SEND_REPLY_MESSAGE,           send_header,                send_answer) \
	M(SEND_REPLY_MESSAGE_V2,        send_header,                send_answer) \
	M(PUSH_REPLY_MESSAGE_TO_CLIENT, push_reply_header,          none_header) \
	M(ADD_WRITE_PERM_OF_BROKER,     add_perm_header,            add_perm_answer) \
	M(GET_ALL_PRODUCER_INFO,        none_header,                none_header) \
	M(DELETE_EXPIRED_COMMITLOG,     none_header,                none_header) \
	M(QUERY_TOPICS_BY_CONSUMER,     group_topics_header,        none_header) \
	M(QUERY_SUBSCRIPTION_BY_CONSUMER, group_subscription_header, none_header) \
	M(GET_TOPIC_CONFIG,             topic_config_header,        none_header) \
	M(GET_SUBSCRIPTIONGROUP_CONFIG, group_config_header,        none_header) \
	M(UPDATE_AND_GET_GROUP_FORBIDDEN, group_forbidden_header,   none_header) \
	M(LITE_PULL_MESSAGE,            pull_header,                pull_answer) \
	M(RECALL_MESSAGE,               recall_message_header,      recall_message_answer) \
	M(LIST_TIMERS,                  list_timers_header,         list_timers_answer) \
	M(QUERY_ASSIGNMENT,             none_header,                none_header) \
	M(SET_MESSAGE_REQUEST_MODE,     none_header,                none_header) \
	M(GET_ALL_MESSAGE_REQUEST_MODE, none_header,                none_header) \
	M(GET_BROKER_MEMBER_GROUP,      member_group_header,        none_header) \
	M(BROKER_HEARTBEAT,             broker_heartbeat_header,    none_header) \
	M(NOTIFY_MIN_BROKER_ID_CHANGE,  min_broker_change_header,   none_header) \
	M(EXCHANGE_BROKER_HA_INFO,      exchange_ha_header,         exchange_ha_answer) \
	M(GET_BROKER_HA_STATUS,         none_header,                none_header) \
	M(RESET_MASTER_FLUSH_OFFSET,    flush_offset_header,        none_header) \
	M(CONTROLLER_ALTER_SYNC_STATE_SET, alter_sync_set_header,   alter_sync_set_answer) \
	M(CONTROLLER_ELECT_MASTER,      elect_master_header,        elect_master_answer) \
	M(CONTROLLER_REGISTER_BROKER,   controller_register_header, controller_register_answer) \
	M(CONTROLLER_GET_REPLICA_INFO,  replica_info_header,        replica_info_answer) \
	M(CONTROLLER_GET_METADATA_INFO, none_header,                controller_metadata_answer) \
	M(CONTROLLER_GET_SYNC_STATE_DATA, none_header,              none_header) \
	M(GET_BROKER_EPOCH_CACHE,       none_header,                none_header) \
	M(NOTIFY_BROKER_ROLE_CHANGED,   role_changed_header,        none_header) \
	M(UPDATE_CONTROLLER_CONFIG,     none_header,                none_header) \
	M(GET_CONTROLLER_CONFIG,        none_header,                none_header) \
	M(CLEAN_BROKER_DATA,            clean_broker_header,        none_header) \
	M(CONTROLLER_GET_NEXT_BROKER_ID, next_broker_id_header,     next_broker_id_answer) \
	M(CONTROLLER_APPLY_BROKER_ID,   apply_broker_id_header,     apply_broker_id_answer) \
	M(POP_MESSAGE,                  pop_header,                 pop_answer) \
	M(ACK_MESSAGE,                  ack_header,                 none_header) \
	M(PEEK_MESSAGE,                 peek_header,                pop_answer) \
	M(CHANGE_MESSAGE_INVISIBLETIME, change_invisible_header,    change_invisible_answer) \
	M(NOTIFICATION,                 notification_header,        notification_answer) \
	M(POLLING_INFO,                 polling_info_header,        polling_info_answer) \
	M(BATCH_ACK_MESSAGE,            none_header,                none_header)

enum {
#define REQUEST_AT(code, name) AT_##name,
	REQUEST_CODES(REQUEST_AT)
#undef REQUEST_AT
	REQUESTS,
};

static const struct request_row rows[] = {
#define REQUEST_ROW(name, header, answer) [AT_##name] = { REQ_##name, #name, &header##_desc, &answer##_desc },
	REQUEST_HEADERS(REQUEST_ROW)
#undef REQUEST_ROW
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) == REQUESTS, "each code of request.h has a row here");

const struct request_row *request_find(int32_t code)
{
	switch (code) {
#define REQUEST_CASE(number, name) case number: return &rows[AT_##name];
	REQUEST_CODES(REQUEST_CASE)
#undef REQUEST_CASE
	default:
		return NULL;
	}
}

const struct request_row *request_rows(size_t *n)
{
	*n = REQUESTS;
	return rows;
}

const char *response_name(int32_t code)
{
	static __thread char unknown[4][24];
	static __thread unsigned turn;
	char *text;

	switch (code) {
#define RESPONSE_CASE(number, name) case number: return #name;
	RESPONSE_CODES(RESPONSE_CASE)
#undef RESPONSE_CASE
	default:
		text = unknown[turn++ % 4];
		snprintf(text, sizeof(unknown[0]), "RESPONSE_%d", code);
		return text;
	}
}
