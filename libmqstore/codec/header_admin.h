/* header_admin.h: header fields of what administrators ask the broker, and of what brokers ask each other.
 *
 * Included by header.h, which explains the lists.  Source: the peer's remoting.protocol.header. */
#ifndef CODEC_HEADER_ADMIN_H
#define CODEC_HEADER_ADMIN_H

/* ---- Topics ------------------------------------------------------------------------------------------------------ */

/* attributes: "+key=value,-key".  topicFilterType: SINGLE_TAG, MULTI_TAG. */
#define CREATE_TOPIC_HEADER(F, T) /* 17 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, defaultTopic, "defaultTopic", NULL, OPTIONAL, 0) \
	F(T, i32, readQueueNums, "readQueueNums", NULL, REQUIRED, 0) \
	F(T, i32, writeQueueNums, "writeQueueNums", NULL, REQUIRED, 0) \
	F(T, i32, perm, "perm", NULL, REQUIRED, 0) \
	F(T, str, topicFilterType, "topicFilterType", NULL, OPTIONAL, 0) \
	F(T, i32, topicSysFlag, "topicSysFlag", NULL, OPTIONAL, 0) \
	F(T, boolean, order, "order", NULL, OPTIONAL, 0) \
	F(T, str, attributes, "attributes", NULL, OPTIONAL, 0) \
	F(T, boolean, force, "force", NULL, OPTIONAL, 0)

#define DELETE_TOPIC_HEADER(F, T) /* 215 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0)

#define TOPIC_CONFIG_HEADER(F, T) /* 351; lo: false = the physical topic only */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, boolean, lo, "lo", NULL, OPTIONAL, 0)

#define TOPIC_STATS_HEADER(F, T) /* 202 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0)

#define TOPIC_GROUPS_HEADER(F, T) /* 300: who consumes a topic */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0)

#define CONSUME_QUEUE_HEADER(F, T) /* 321 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, OPTIONAL, 0) \
	F(T, i64, index, "index", NULL, OPTIONAL, 0) \
	F(T, i32, count, "count", NULL, OPTIONAL, 0) \
	F(T, str, consumerGroup, "consumerGroup", NULL, OPTIONAL, 0)

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

#define CONSUMER_CONNECTION_HEADER(F, T) /* 203 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0)

#define PRODUCER_CONNECTION_HEADER(F, T) /* 204 */ \
	F(T, str, producerGroup, "producerGroup", NULL, REQUIRED, 0)

#define DELETE_GROUP_HEADER(F, T) /* 207 */ \
	F(T, str, groupName, "groupName", NULL, REQUIRED, 0) \
	F(T, boolean, cleanOffset, "cleanOffset", NULL, OPTIONAL, 0)

#define CONSUME_STATS_HEADER(F, T) /* 208 */ \
	F(T, str, consumerGroup, "consumerGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, OPTIONAL, 0)

#define BROKER_CONSUME_STATS_HEADER(F, T) /* 317 */ \
	F(T, boolean, isOrder, "isOrder", NULL, OPTIONAL, 0)

#define GROUP_CONFIG_HEADER(F, T) /* 352 */ \
	F(T, str, group, "group", NULL, REQUIRED, 0)

#define GROUP_FORBIDDEN_HEADER(F, T) /* 353; without `readable` it only asks */ \
	F(T, str, group, "group", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, boolean, readable, "readable", NULL, OPTIONAL, 0)

#define GROUP_TOPICS_HEADER(F, T) /* 343: which topics a group consumes */ \
	F(T, str, group, "group", NULL, REQUIRED, 0)

#define GROUP_SUBSCRIPTION_HEADER(F, T) /* 345 */ \
	F(T, str, group, "group", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, OPTIONAL, 0)

#define CONSUME_SPAN_HEADER(F, T) /* 303 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, group, "group", NULL, REQUIRED, 0)

#define CORRECTION_OFFSET_HEADER(F, T) /* 308 */ \
	F(T, str, filterGroups, "filterGroups", NULL, OPTIONAL, 0) \
	F(T, str, compareGroup, "compareGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, REQUIRED, 0)

#define RESET_OFFSET_HEADER(F, T) /* 222 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, group, "group", NULL, REQUIRED, 0) \
	F(T, i32, queueId, "queueId", NULL, OPTIONAL, -1) \
	F(T, i64, offset, "offset", NULL, OPTIONAL, -1) \
	F(T, i64, timestamp, "timestamp", NULL, REQUIRED, 0) \
	F(T, boolean, isForce, "isForce", NULL, OPTIONAL, 0)

#define CONSUMER_STATUS_HEADER(F, T) /* 223 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, group, "group", NULL, REQUIRED, 0) \
	F(T, str, clientAddr, "clientAddr", NULL, OPTIONAL, 0)

#define CLONE_OFFSET_HEADER(F, T) /* 314 */ \
	F(T, str, srcGroup, "srcGroup", NULL, REQUIRED, 0) \
	F(T, str, destGroup, "destGroup", NULL, REQUIRED, 0) \
	F(T, str, topic, "topic", NULL, OPTIONAL, 0) \
	F(T, boolean, offline, "offline", NULL, OPTIONAL, 0)

/* ---- The broker itself ------------------------------------------------------------------------------------------- */

#define CONFIG_ANSWER(F, T) /* 21, 26: version is a DataVersion as JSON text */ \
	F(T, str, version, "version", NULL, OPTIONAL, 0)

#define BROKER_STATS_HEADER(F, T) /* 315 */ \
	F(T, str, statsName, "statsName", NULL, REQUIRED, 0) \
	F(T, str, statsKey, "statsKey", NULL, REQUIRED, 0)

#define RESUME_CHECK_HEADER(F, T) /* 323 */ \
	F(T, str, msgId, "msgId", NULL, REQUIRED, 0)

#define ACL_CONFIG_HEADER(F, T) /* 50; topicPerms and groupPerms: "t=PUB,u=SUB" */ \
	F(T, str, accessKey, "accessKey", NULL, REQUIRED, 0) \
	F(T, str, secretKey, "secretKey", NULL, OPTIONAL, 0) \
	F(T, str, whiteRemoteAddress, "whiteRemoteAddress", NULL, OPTIONAL, 0) \
	F(T, boolean, admin, "admin", NULL, OPTIONAL, 0) \
	F(T, str, defaultTopicPerm, "defaultTopicPerm", NULL, OPTIONAL, 0) \
	F(T, str, defaultGroupPerm, "defaultGroupPerm", NULL, OPTIONAL, 0) \
	F(T, str, topicPerms, "topicPerms", NULL, OPTIONAL, 0) \
	F(T, str, groupPerms, "groupPerms", NULL, OPTIONAL, 0)

#define DELETE_ACL_HEADER(F, T) /* 51 */ \
	F(T, str, accessKey, "accessKey", NULL, REQUIRED, 0)

#define ACL_INFO_ANSWER(F, T) /* 52 */ \
	F(T, str, version, "version", NULL, REQUIRED, 0) \
	F(T, str, allAclFileVersion, "allAclFileVersion", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, str, brokerAddr, "brokerAddr", NULL, REQUIRED, 0) \
	F(T, str, clusterName, "clusterName", NULL, REQUIRED, 0)

#define WHITE_ADDRS_HEADER(F, T) /* 53 */ \
	F(T, str, globalWhiteAddrs, "globalWhiteAddrs", NULL, REQUIRED, 0) \
	F(T, str, aclFileFullPath, "aclFileFullPath", NULL, OPTIONAL, 0)

#define MIN_BROKER_CHANGE_HEADER(F, T) /* 905, name server to broker */ \
	F(T, i64, minBrokerId, "minBrokerId", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, OPTIONAL, 0) \
	F(T, str, minBrokerAddr, "minBrokerAddr", NULL, OPTIONAL, 0) \
	F(T, str, offlineBrokerAddr, "offlineBrokerAddr", NULL, OPTIONAL, 0) \
	F(T, str, haBrokerAddr, "haBrokerAddr", NULL, OPTIONAL, 0)

#define EXCHANGE_HA_HEADER(F, T) /* 906; all absent: a question */ \
	F(T, str, masterHaAddress, "masterHaAddress", NULL, OPTIONAL, 0) \
	F(T, i64, masterFlushOffset, "masterFlushOffset", NULL, OPTIONAL, 0) \
	F(T, str, masterAddress, "masterAddress", NULL, OPTIONAL, 0)

#define EXCHANGE_HA_ANSWER(F, T) \
	F(T, str, masterHaAddress, "masterHaAddress", NULL, OPTIONAL, 0) \
	F(T, i64, masterFlushOffset, "masterFlushOffset", NULL, OPTIONAL, 0) \
	F(T, str, masterAddress, "masterAddress", NULL, OPTIONAL, 0)

#define FLUSH_OFFSET_HEADER(F, T) /* 908 */ \
	F(T, i64, masterFlushOffset, "masterFlushOffset", NULL, OPTIONAL, 0)

#define HEADER_ADMIN_ALL(H) \
	H(CREATE_TOPIC_HEADER, create_topic_header) \
	H(DELETE_TOPIC_HEADER, delete_topic_header) \
	H(TOPIC_CONFIG_HEADER, topic_config_header) \
	H(TOPIC_STATS_HEADER, topic_stats_header) \
	H(TOPIC_GROUPS_HEADER, topic_groups_header) \
	H(CONSUME_QUEUE_HEADER, consume_queue_header) \
	H(CONSUMER_CONNECTION_HEADER, consumer_connection_header) \
	H(PRODUCER_CONNECTION_HEADER, producer_connection_header) \
	H(DELETE_GROUP_HEADER, delete_group_header) \
	H(CONSUME_STATS_HEADER, consume_stats_header) \
	H(BROKER_CONSUME_STATS_HEADER, broker_consume_stats_header) \
	H(GROUP_CONFIG_HEADER, group_config_header) \
	H(GROUP_FORBIDDEN_HEADER, group_forbidden_header) \
	H(GROUP_TOPICS_HEADER, group_topics_header) \
	H(GROUP_SUBSCRIPTION_HEADER, group_subscription_header) \
	H(CONSUME_SPAN_HEADER, consume_span_header) \
	H(CORRECTION_OFFSET_HEADER, correction_offset_header) \
	H(RESET_OFFSET_HEADER, reset_offset_header) \
	H(CONSUMER_STATUS_HEADER, consumer_status_header) \
	H(CLONE_OFFSET_HEADER, clone_offset_header) \
	H(CONFIG_ANSWER, config_answer) \
	H(BROKER_STATS_HEADER, broker_stats_header) \
	H(RESUME_CHECK_HEADER, resume_check_header) \
	H(ACL_CONFIG_HEADER, acl_config_header) \
	H(DELETE_ACL_HEADER, delete_acl_header) \
	H(ACL_INFO_ANSWER, acl_info_answer) \
	H(WHITE_ADDRS_HEADER, white_addrs_header) \
	H(MIN_BROKER_CHANGE_HEADER, min_broker_change_header) \
	H(EXCHANGE_HA_HEADER, exchange_ha_header) H(EXCHANGE_HA_ANSWER, exchange_ha_answer) \
	H(FLUSH_OFFSET_HEADER, flush_offset_header)
HEADER_ADMIN_ALL(HEADER_DECLARE)

#endif
