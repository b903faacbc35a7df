/* header_client.h: header fields of what producers and consumers ask the broker, and of what the broker asks them.
 *
 * Included by header.h, which explains the lists.  Source: the peer's remoting.protocol.header.  `bname` is the broker's name as
 * the client knows it; a broker without static topics has no use for it. */
#ifndef CODEC_HEADER_CLIENT_H
#define CODEC_HEADER_CLIENT_H

/* Requests and answers without fields of their own: all that is there is ignored. */
struct none_header { uint64_t present; };
extern const struct header_desc none_header_desc;

/* ---- Offsets ----------------------------------------------------------------------------------------------------- */

/* setZeroIfNotFound: absent means yes: look at the bit in `present` before telling false from absent. */
#define QUERY_OFFSET_HEADER(F, T) /* 14 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, boolean, setZeroIfNotFound, "setZeroIfNotFound", NULL, OPTIONAL, 1) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define QUERY_OFFSET_ANSWER(F, T) \
	F(T, i64, offset, "offset", NULL, REQUIRED, 0)

#define UPDATE_OFFSET_HEADER(F, T) /* 15; clients may send -1: it means nothing */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, i64, commitOffset, "commitOffset", NULL, REQUIRED, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

/* boundaryType: LOWER (default) or UPPER, in any case. */
#define SEARCH_OFFSET_HEADER(F, T) /* 29 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, i64, timestamp, "timestamp", NULL, REQUIRED, 0) \
	F(T, str, boundaryType, "boundaryType", NULL, OPTIONAL, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define SEARCH_OFFSET_ANSWER(F, T) \
	F(T, i64, offset, "offset", NULL, REQUIRED, 0)

#define MAX_OFFSET_HEADER(F, T) /* 30 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, boolean, committed, "committed", NULL, OPTIONAL, 1) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define MAX_OFFSET_ANSWER(F, T) \
	F(T, i64, offset, "offset", NULL, REQUIRED, 0)

#define MIN_OFFSET_HEADER(F, T) /* 31 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define MIN_OFFSET_ANSWER(F, T) \
	F(T, i64, offset, "offset", NULL, REQUIRED, 0)

#define EARLIEST_TIME_HEADER(F, T) /* 32 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define EARLIEST_TIME_ANSWER(F, T) \
	F(T, i64, timestamp, "timestamp", NULL, REQUIRED, 0)

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

#define QUERY_MESSAGE_HEADER(F, T) /* 12 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, key, "key", NULL, REQUIRED, 0) \
	F(T, i32, maxNum, "maxNum", NULL, REQUIRED, 0) \
	F(T, i64, beginTimestamp, "beginTimestamp", NULL, REQUIRED, 0) \
	F(T, i64, endTimestamp, "endTimestamp", NULL, REQUIRED, 0) \
	F(T, boolean, uniqueKeyQuery, "_UNIQUE_KEY_QUERY", NULL, OPTIONAL, 0)

#define QUERY_MESSAGE_ANSWER(F, T) \
	F(T, i64, indexLastUpdateTimestamp, "indexLastUpdateTimestamp", NULL, REQUIRED, 0) \
	F(T, i64, indexLastUpdatePhyoffset, "indexLastUpdatePhyoffset", NULL, REQUIRED, 0)

#define VIEW_MESSAGE_HEADER(F, T) /* 33: byte offset in the commit log */ \
	F(T, i64, offset, "offset", NULL, REQUIRED, 0)

/* ---- Membership -------------------------------------------------------------------------------------------------- */

#define HEARTBEAT_ANSWER(F, T) /* 34 */ \
	F(T, boolean, supportHeartbeatV2, "IS_SUPPORT_HEART_BEAT_V2", NULL, OPTIONAL, 0) \
	F(T, boolean, subChange, "IS_SUB_CHANGE", NULL, OPTIONAL, 0)

#define UNREGISTER_CLIENT_HEADER(F, T) /* 35 */ \
	F(T, str, clientID, "clientID", NULL, REQUIRED, 0) \
	F(T, str, producerGroup, "producerGroup", NULL, OPTIONAL, 0) \
	F(T, str, consumerGroup, "consumerGroup", NULL, OPTIONAL, 0)

#define CONSUMER_LIST_HEADER(F, T) /* 38 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0)

#define IDS_CHANGED_HEADER(F, T) /* 40, broker to client */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0)

/* ---- Retry and transactions -------------------------------------------------------------------------------------- */

#define SEND_BACK_HEADER(F, T) /* 36 */ \
	F(T, i64, offset, "offset", NULL, REQUIRED, 0) \
	F(T, str, group, "group", NULL, REQUIRED, 0) \
	F(T, i32, delayLevel, "delayLevel", NULL, REQUIRED, 0) \
	F(T, str, originMsgId, "originMsgId", NULL, OPTIONAL, 0) \
	F(T, str, originTopic, "originTopic", NULL, OPTIONAL, 0) \
	F(T, boolean, unitMode, "unitMode", NULL, OPTIONAL, 0) \
	F(T, i32, maxReconsumeTimes, "maxReconsumeTimes", NULL, OPTIONAL, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

/* commitOrRollback: 8 commit, 12 rollback, 0 unknown. */
#define END_TRANSACTION_HEADER(F, T) /* 37 */ \
	F(T, str, producerGroup, "producerGroup", NULL, REQUIRED, 0) \
	F(T, i64, tranStateTableOffset, "tranStateTableOffset", NULL, REQUIRED, 0) \
	F(T, i64, commitLogOffset, "commitLogOffset", NULL, REQUIRED, 0) \
	F(T, i32, commitOrRollback, "commitOrRollback", NULL, REQUIRED, 0) \
	F(T, boolean, fromTransactionCheck, "fromTransactionCheck", NULL, OPTIONAL, 0) \
	F(T, str, msgId, "msgId", NULL, OPTIONAL, 0) \
	F(T, str, transactionId, "transactionId", NULL, OPTIONAL, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define RECALL_MESSAGE_HEADER(F, T) /* 370 */ \
	F(T, str, producerGroup, "producerGroup", NULL, OPTIONAL, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, recallHandle, "recallHandle", NULL, REQUIRED, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define RECALL_MESSAGE_ANSWER(F, T) \
	F(T, str, msgId, "msgId", NULL, REQUIRED, 0)

/* Timers that wait, by the time; fromMs and before: nextMs and nextBefore of the answer before.  The body is as that of a pull. */
#define LIST_TIMERS_HEADER(F, T) /* 900370, our own */ \
	F(T, i64, fromMs, "fromMs", NULL, OPTIONAL, 0) \
	F(T, i64, before, "before", NULL, OPTIONAL, 0) \
	F(T, str, topic, "topic", NULL, OPTIONAL, 0) \
	F(T, str, key, "key", NULL, OPTIONAL, 0) \
	F(T, i32, maxMsgNums, "maxMsgNums", NULL, OPTIONAL, 0)

#define LIST_TIMERS_ANSWER(F, T) \
	F(T, i64, nextMs, "nextMs", NULL, REQUIRED, 0) \
	F(T, i64, nextBefore, "nextBefore", NULL, REQUIRED, 0) \
	F(T, i32, count, "count", NULL, REQUIRED, 0)

#define CHECK_TRANSACTION_HEADER(F, T) /* 39, broker to client */ \
	F(T, i64, tranStateTableOffset, "tranStateTableOffset", NULL, REQUIRED, 0) \
	F(T, i64, commitLogOffset, "commitLogOffset", NULL, REQUIRED, 0) \
	F(T, str, msgId, "msgId", NULL, OPTIONAL, 0) \
	F(T, str, transactionId, "transactionId", NULL, OPTIONAL, 0) \
	F(T, str, offsetMsgId, "offsetMsgId", NULL, OPTIONAL, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

/* ---- Broker asks client ------------------------------------------------------------------------------------------ */

#define RESET_CLIENT_OFFSET_HEADER(F, T) /* 220 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, group, "group", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, OPTIONAL, -1) \
	F(T, i64, offset, "offset", NULL, OPTIONAL, -1) \
	F(T, i64, timestamp, "timestamp", NULL, REQUIRED, 0) \
	F(T, boolean, isForce, "isForce", NULL, REQUIRED, 0)

#define CLIENT_STATUS_HEADER(F, T) /* 221 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, group, "group", NULL, REQUIRED, 0) \
	F(T, str, clientAddr, "clientAddr", NULL, OPTIONAL, 0)

#define RUNNING_INFO_HEADER(F, T) /* 307: admin to broker, passed on to the client */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, clientId, "clientId", NULL, REQUIRED, 0) \
	F(T, boolean, jstackEnable, "jstackEnable", NULL, OPTIONAL, 0)

#define CONSUME_DIRECTLY_HEADER(F, T) /* 309: admin to broker, passed on to the client */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, clientId, "clientId", NULL, OPTIONAL, 0) \
	F(T, str, msgId, "msgId", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, OPTIONAL, 0) \
	F(T, str, topic, "topic", NULL, OPTIONAL, 0) \
	F(T, i32, topicSysFlag, "topicSysFlag", NULL, OPTIONAL, 0) \
	F(T, i32, groupSysFlag, "groupSysFlag", NULL, OPTIONAL, 0)

#define PUSH_REPLY_HEADER(F, T) /* 326, broker to client */ \
	F(T, str, producerGroup, "producerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, defaultTopic, "defaultTopic", NULL, REQUIRED, 0) \
	F(T, i32, defaultTopicQueueNums, "defaultTopicQueueNums", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, i32, sysFlag, "sysFlag", NULL, REQUIRED, 0) \
	F(T, i64, bornTimestamp, "bornTimestamp", NULL, REQUIRED, 0) \
	F(T, i32, flag, "flag", NULL, REQUIRED, 0) \
	F(T, str, properties, "properties", NULL, OPTIONAL, 0) \
	F(T, i32, reconsumeTimes, "reconsumeTimes", NULL, OPTIONAL, 0) \
	F(T, boolean, unitMode, "unitMode", NULL, OPTIONAL, 0) \
	F(T, str, bornHost, "bornHost", NULL, REQUIRED, 0) \
	F(T, str, storeHost, "storeHost", NULL, REQUIRED, 0) \
	F(T, i64, storeTimestamp, "storeTimestamp", NULL, REQUIRED, 0)

/* ---- Pop --------------------------------------------------------------------------------------------------------- */

/* bornTime absent or 0: the time of arrival.  initMode: 0 from the least offset, 1 from the greatest. */
#define POP_HEADER(F, T) /* 200050 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, i32, maxMsgNums, "maxMsgNums", NULL, REQUIRED, 0) \
	F(T, i64, invisibleTime, "invisibleTime", NULL, REQUIRED, 0) \
	F(T, i64, pollTime, "pollTime", NULL, REQUIRED, 0) \
	F(T, i64, bornTime, "bornTime", NULL, OPTIONAL, 0) \
	F(T, i32, initMode, "initMode", NULL, OPTIONAL, 0) \
	F(T, str, expType, "expType", NULL, OPTIONAL, 0) \
	F(T, str, exp, "exp", NULL, OPTIONAL, 0) \
	F(T, boolean, order, "order", NULL, OPTIONAL, 0) \
	F(T, str, attemptId, "attemptId", NULL, OPTIONAL, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define POP_ANSWER(F, T) \
	F(T, i64, popTime, "popTime", NULL, REQUIRED, 0) \
	F(T, i64, invisibleTime, "invisibleTime", NULL, REQUIRED, 0) \
	F(T, i32, reviveQid, "reviveQid", NULL, REQUIRED, 0) \
	F(T, i64, restNum, "restNum", NULL, REQUIRED, 0) \
	F(T, str, startOffsetInfo, "startOffsetInfo", NULL, OPTIONAL, 0) \
	F(T, str, msgOffsetInfo, "msgOffsetInfo", NULL, OPTIONAL, 0) \
	F(T, str, orderCountInfo, "orderCountInfo", NULL, OPTIONAL, 0)

#define ACK_HEADER(F, T) /* 200051 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, str, extraInfo, "extraInfo", NULL, REQUIRED, 0) \
	F(T, i64, offset, "offset", NULL, REQUIRED, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define CHANGE_INVISIBLE_HEADER(F, T) /* 200053 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, str, extraInfo, "extraInfo", NULL, REQUIRED, 0) \
	F(T, i64, offset, "offset", NULL, REQUIRED, 0) \
	F(T, i64, invisibleTime, "invisibleTime", NULL, REQUIRED, 0) \
	F(T, str, bname, "bname", NULL, OPTIONAL, 0)

#define CHANGE_INVISIBLE_ANSWER(F, T) \
	F(T, i64, popTime, "popTime", NULL, REQUIRED, 0) \
	F(T, i64, invisibleTime, "invisibleTime", NULL, REQUIRED, 0) \
	F(T, i32, reviveQid, "reviveQid", NULL, REQUIRED, 0)

#define NOTIFICATION_HEADER(F, T) /* 200054 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, i64, pollTime, "pollTime", NULL, REQUIRED, 0) \
	F(T, i64, bornTime, "bornTime", NULL, REQUIRED, 0) \
	F(T, boolean, order, "order", NULL, OPTIONAL, 0) \
	F(T, str, attemptId, "attemptId", NULL, OPTIONAL, 0)

#define NOTIFICATION_ANSWER(F, T) \
	F(T, boolean, hasMsg, "hasMsg", NULL, REQUIRED, 0)

#define POLLING_INFO_HEADER(F, T) /* 200055 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0)

#define POLLING_INFO_ANSWER(F, T) \
	F(T, i32, pollingNum, "pollingNum", NULL, REQUIRED, 0)

#define PEEK_HEADER(F, T) /* 200052; its answer is pop_answer */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, REQUIRED, 0) \
	F(T, i32, maxMsgNums, "maxMsgNums", NULL, REQUIRED, 0) \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0)

#define HEADER_CLIENT_ALL(H) \
	H(QUERY_OFFSET_HEADER, query_offset_header) H(QUERY_OFFSET_ANSWER, query_offset_answer) \
	H(UPDATE_OFFSET_HEADER, update_offset_header) \
	H(SEARCH_OFFSET_HEADER, search_offset_header) H(SEARCH_OFFSET_ANSWER, search_offset_answer) \
	H(MAX_OFFSET_HEADER, max_offset_header) H(MAX_OFFSET_ANSWER, max_offset_answer) \
	H(MIN_OFFSET_HEADER, min_offset_header) H(MIN_OFFSET_ANSWER, min_offset_answer) \
	H(EARLIEST_TIME_HEADER, earliest_time_header) H(EARLIEST_TIME_ANSWER, earliest_time_answer) \
	H(QUERY_MESSAGE_HEADER, query_message_header) H(QUERY_MESSAGE_ANSWER, query_message_answer) \
	H(VIEW_MESSAGE_HEADER, view_message_header) \
	H(HEARTBEAT_ANSWER, heartbeat_answer) \
	H(UNREGISTER_CLIENT_HEADER, unregister_client_header) \
	H(CONSUMER_LIST_HEADER, consumer_list_header) \
	H(IDS_CHANGED_HEADER, ids_changed_header) \
	H(SEND_BACK_HEADER, send_back_header) \
	H(END_TRANSACTION_HEADER, end_transaction_header) \
	H(CHECK_TRANSACTION_HEADER, check_transaction_header) \
	H(RECALL_MESSAGE_HEADER, recall_message_header) H(RECALL_MESSAGE_ANSWER, recall_message_answer) \
	H(LIST_TIMERS_HEADER, list_timers_header) H(LIST_TIMERS_ANSWER, list_timers_answer) \
	H(RESET_CLIENT_OFFSET_HEADER, reset_client_offset_header) \
	H(CLIENT_STATUS_HEADER, client_status_header) \
	H(RUNNING_INFO_HEADER, running_info_header) \
	H(CONSUME_DIRECTLY_HEADER, consume_directly_header) \
	H(PUSH_REPLY_HEADER, push_reply_header) \
	H(POP_HEADER, pop_header) H(POP_ANSWER, pop_answer) \
	H(ACK_HEADER, ack_header) \
	H(CHANGE_INVISIBLE_HEADER, change_invisible_header) H(CHANGE_INVISIBLE_ANSWER, change_invisible_answer) \
	H(NOTIFICATION_HEADER, notification_header) H(NOTIFICATION_ANSWER, notification_answer) \
	H(POLLING_INFO_HEADER, polling_info_header) H(POLLING_INFO_ANSWER, polling_info_answer) \
	H(PEEK_HEADER, peek_header)
HEADER_CLIENT_ALL(HEADER_DECLARE)

#endif
