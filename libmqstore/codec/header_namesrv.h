/* header_namesrv.h: header fields of what brokers, clients and administrators ask the name server.
 *
 * Included by header.h, which explains the lists.  Source: the peer's remoting.protocol.header. */
#ifndef CODEC_HEADER_NAMESRV_H
#define CODEC_HEADER_NAMESRV_H

/* ---- Small settings ---------------------------------------------------------------------------------------------- */

#define PUT_KV_HEADER(F, T) /* 100 */ \
	F(T, str, namespace, "namespace", NULL, REQUIRED, 0) \
	F(T, str, key, "key", NULL, REQUIRED, 0) \
	F(T, str, value, "value", NULL, REQUIRED, 0)

#define GET_KV_HEADER(F, T) /* 101 */ \
	F(T, str, namespace, "namespace", NULL, REQUIRED, 0) \
	F(T, str, key, "key", NULL, REQUIRED, 0)

#define GET_KV_ANSWER(F, T) \
	F(T, str, value, "value", NULL, OPTIONAL, 0)

#define DELETE_KV_HEADER(F, T) /* 102 */ \
	F(T, str, namespace, "namespace", NULL, REQUIRED, 0) \
	F(T, str, key, "key", NULL, REQUIRED, 0)

#define KV_LIST_HEADER(F, T) /* 219 */ \
	F(T, str, namespace, "namespace", NULL, REQUIRED, 0)

/* ---- Brokers ----------------------------------------------------------------------------------------------------- */

/* heartbeatTimeoutMillis absent: 120 s.  enableActingMaster absent: a broker that does not know of it.  bodyCrc32 0: not
 * checked, else CRC-32 of the body with its top bit cleared.  fullTable (our own, unknown to the peer): the body holds all
 * topics of the broker, so that those it does not hold are gone; the peer cannot tell that from a few that changed. */
#define REGISTER_BROKER_HEADER(F, T) /* 103 */ \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, str, brokerAddr, "brokerAddr", NULL, REQUIRED, 0) \
	F(T, str, clusterName, "clusterName", NULL, REQUIRED, 0) \
	F(T, str, haServerAddr, "haServerAddr", NULL, OPTIONAL, 0) \
	F(T, i64, brokerId, "brokerId", NULL, REQUIRED, 0) \
	F(T, i64, heartbeatTimeoutMillis, "heartbeatTimeoutMillis", NULL, OPTIONAL, 0) \
	F(T, boolean, enableActingMaster, "enableActingMaster", NULL, OPTIONAL, 0) \
	F(T, boolean, compressed, "compressed", NULL, OPTIONAL, 0) \
	F(T, i32, bodyCrc32, "bodyCrc32", NULL, OPTIONAL, 0) \
	F(T, str, zoneName, "__ZONE_NAME", NULL, OPTIONAL, 0) \
	F(T, boolean, fullTable, "fullTable", NULL, OPTIONAL, 0)

#define REGISTER_BROKER_ANSWER(F, T) \
	F(T, str, haServerAddr, "haServerAddr", NULL, OPTIONAL, 0) \
	F(T, str, masterAddr, "masterAddr", NULL, OPTIONAL, 0)

#define UNREGISTER_BROKER_HEADER(F, T) /* 104 */ \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, str, brokerAddr, "brokerAddr", NULL, REQUIRED, 0) \
	F(T, str, clusterName, "clusterName", NULL, REQUIRED, 0) \
	F(T, i64, brokerId, "brokerId", NULL, REQUIRED, 0)

#define DATA_VERSION_HEADER(F, T) /* 322 */ \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, str, brokerAddr, "brokerAddr", NULL, REQUIRED, 0) \
	F(T, str, clusterName, "clusterName", NULL, REQUIRED, 0) \
	F(T, i64, brokerId, "brokerId", NULL, OPTIONAL, 0)

#define DATA_VERSION_ANSWER(F, T) \
	F(T, boolean, changed, "changed", NULL, REQUIRED, 0)

#define BROKER_HEARTBEAT_HEADER(F, T) /* 904; heartbeatTimeoutMills is the peer's spelling */ \
	F(T, str, clusterName, "clusterName", NULL, REQUIRED, 0) \
	F(T, str, brokerAddr, "brokerAddr", NULL, REQUIRED, 0) \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, i64, brokerId, "brokerId", NULL, OPTIONAL, 0) \
	F(T, i32, epoch, "epoch", NULL, OPTIONAL, 0) \
	F(T, i64, maxOffset, "maxOffset", NULL, OPTIONAL, 0) \
	F(T, i64, confirmOffset, "confirmOffset", NULL, OPTIONAL, 0) \
	F(T, i64, heartbeatTimeoutMills, "heartbeatTimeoutMills", NULL, OPTIONAL, 0) \
	F(T, i32, electionPriority, "electionPriority", NULL, OPTIONAL, 0)

#define MEMBER_GROUP_HEADER(F, T) /* 901 */ \
	F(T, str, clusterName, "clusterName", NULL, REQUIRED, 0) \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0)

#define WIPE_PERM_HEADER(F, T) /* 205 */ \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0)

#define WIPE_PERM_ANSWER(F, T) \
	F(T, i32, wipeTopicCount, "wipeTopicCount", NULL, REQUIRED, 0)

#define ADD_PERM_HEADER(F, T) /* 327 */ \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0)

#define ADD_PERM_ANSWER(F, T) \
	F(T, i32, addTopicCount, "addTopicCount", NULL, REQUIRED, 0)

/* ---- Topics ------------------------------------------------------------------------------------------------------ */

#define ROUTE_HEADER(F, T) /* 105 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, boolean, acceptStandardJsonOnly, "acceptStandardJsonOnly", NULL, OPTIONAL, 0) \
	F(T, boolean, zoneMode, "__ZONE_MODE", NULL, OPTIONAL, 0) \
	F(T, str, zoneName, "__ZONE_NAME", NULL, OPTIONAL, 0)

#define DELETE_ROUTE_HEADER(F, T) /* 216 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0) \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0)

#define REGISTER_TOPIC_HEADER(F, T) /* 217 */ \
	F(T, str, topic, "topic", NULL, REQUIRED, 0)

#define CLUSTER_TOPICS_HEADER(F, T) /* 224 */ \
	F(T, str, cluster, "cluster", NULL, REQUIRED, 0)

#define HEADER_NAMESRV_ALL(H) \
	H(PUT_KV_HEADER, put_kv_header) \
	H(GET_KV_HEADER, get_kv_header) H(GET_KV_ANSWER, get_kv_answer) \
	H(DELETE_KV_HEADER, delete_kv_header) \
	H(KV_LIST_HEADER, kv_list_header) \
	H(REGISTER_BROKER_HEADER, register_broker_header) H(REGISTER_BROKER_ANSWER, register_broker_answer) \
	H(UNREGISTER_BROKER_HEADER, unregister_broker_header) \
	H(DATA_VERSION_HEADER, data_version_header) H(DATA_VERSION_ANSWER, data_version_answer) \
	H(BROKER_HEARTBEAT_HEADER, broker_heartbeat_header) \
	H(MEMBER_GROUP_HEADER, member_group_header) \
	H(WIPE_PERM_HEADER, wipe_perm_header) H(WIPE_PERM_ANSWER, wipe_perm_answer) \
	H(ADD_PERM_HEADER, add_perm_header) H(ADD_PERM_ANSWER, add_perm_answer) \
	H(ROUTE_HEADER, route_header) \
	H(DELETE_ROUTE_HEADER, delete_route_header) \
	H(REGISTER_TOPIC_HEADER, register_topic_header) \
	H(CLUSTER_TOPICS_HEADER, cluster_topics_header)
HEADER_NAMESRV_ALL(HEADER_DECLARE)

#endif
