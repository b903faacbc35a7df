/* header_controller.h: header fields of what brokers and administrators ask a controller, and what it tells brokers.
 *
 * Included by header.h, which explains the lists.  Source: the peer's remoting.protocol.header.  invokeTime, which the peer sends
 * with many of them, is not needed here. */
#ifndef CODEC_HEADER_CONTROLLER_H
#define CODEC_HEADER_CONTROLLER_H

#define ALTER_SYNC_SET_HEADER(F, T) /* 1001, body_sync_set */ \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, i64, masterBrokerId, "masterBrokerId", NULL, REQUIRED, 0) \
	F(T, i32, masterEpoch, "masterEpoch", NULL, REQUIRED, 0)

#define ALTER_SYNC_SET_ANSWER(F, T) /* body_sync_set */ \
	F(T, i32, newSyncStateSetEpoch, "newSyncStateSetEpoch", NULL, REQUIRED, 0)

/* brokerId -1: whoever is best.  designateElect: this one or nobody. */
#define ELECT_MASTER_HEADER(F, T) /* 1002 */ \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, i64, brokerId, "brokerId", NULL, OPTIONAL, -1) \
	F(T, boolean, designateElect, "designateElect", NULL, OPTIONAL, 0)

#define ELECT_MASTER_ANSWER(F, T) /* body_elected */ \
	F(T, i64, masterBrokerId, "masterBrokerId", NULL, OPTIONAL, 0) \
	F(T, str, masterAddress, "masterAddress", NULL, OPTIONAL, 0) \
	F(T, i32, masterEpoch, "masterEpoch", NULL, OPTIONAL, 0) \
	F(T, i32, syncStateSetEpoch, "syncStateSetEpoch", NULL, OPTIONAL, 0)

#define CONTROLLER_REGISTER_HEADER(F, T) /* 1003 */ \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, i64, brokerId, "brokerId", NULL, REQUIRED, 0) \
	F(T, str, brokerAddress, "brokerAddress", NULL, REQUIRED, 0)

/* The master only while there is one that lives. */
#define CONTROLLER_REGISTER_ANSWER(F, T) /* body_sync_set */ \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, OPTIONAL, 0) \
	F(T, i64, masterBrokerId, "masterBrokerId", NULL, OPTIONAL, 0) \
	F(T, str, masterAddress, "masterAddress", NULL, OPTIONAL, 0) \
	F(T, i32, masterEpoch, "masterEpoch", NULL, OPTIONAL, 0) \
	F(T, i32, syncStateSetEpoch, "syncStateSetEpoch", NULL, OPTIONAL, 0)

#define REPLICA_INFO_HEADER(F, T) /* 1004 */ \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0)

#define REPLICA_INFO_ANSWER(F, T) /* body_sync_set */ \
	F(T, i64, masterBrokerId, "masterBrokerId", NULL, OPTIONAL, 0) \
	F(T, str, masterAddress, "masterAddress", NULL, OPTIONAL, 0) \
	F(T, i32, masterEpoch, "masterEpoch", NULL, OPTIONAL, 0)

/* peers: "id:host:port;" for each. */
#define CONTROLLER_METADATA_ANSWER(F, T) /* 1005 */ \
	F(T, str, group, "group", NULL, OPTIONAL, 0) \
	F(T, str, controllerLeaderId, "controllerLeaderId", NULL, OPTIONAL, 0) \
	F(T, str, controllerLeaderAddress, "controllerLeaderAddress", NULL, OPTIONAL, 0) \
	F(T, boolean, isLeader, "isLeader", NULL, OPTIONAL, 0) \
	F(T, str, peers, "peers", NULL, OPTIONAL, 0)

#define ROLE_CHANGED_HEADER(F, T) /* 1008, controller to broker, oneway; body_sync_set */ \
	F(T, str, masterAddress, "masterAddress", NULL, OPTIONAL, 0) \
	F(T, i32, masterEpoch, "masterEpoch", NULL, OPTIONAL, 0) \
	F(T, i32, syncStateSetEpoch, "syncStateSetEpoch", NULL, OPTIONAL, 0) \
	F(T, i64, masterBrokerId, "masterBrokerId", NULL, OPTIONAL, 0)

/* brokerControllerIdsToClean: "1;2"; empty or absent: all.  isCleanLivingBroker: also those that live. */
#define CLEAN_BROKER_HEADER(F, T) /* 1011 */ \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, str, brokerControllerIdsToClean, "brokerControllerIdsToClean", NULL, OPTIONAL, 0) \
	F(T, boolean, isCleanLivingBroker, "isCleanLivingBroker", NULL, OPTIONAL, 0)

#define NEXT_BROKER_ID_HEADER(F, T) /* 1012 */ \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0)

#define NEXT_BROKER_ID_ANSWER(F, T) \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, OPTIONAL, 0) \
	F(T, i64, nextBrokerId, "nextBrokerId", NULL, REQUIRED, 0)

/* registerCheckCode: "address;ms of the first try". */
#define APPLY_BROKER_ID_HEADER(F, T) /* 1013 */ \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, REQUIRED, 0) \
	F(T, i64, appliedBrokerId, "appliedBrokerId", NULL, REQUIRED, 0) \
	F(T, str, registerCheckCode, "registerCheckCode", NULL, REQUIRED, 0)

#define APPLY_BROKER_ID_ANSWER(F, T) \
	F(T, str, clusterName, "clusterName", NULL, OPTIONAL, 0) \
	F(T, str, brokerName, "brokerName", NULL, OPTIONAL, 0)

#define HEADER_CONTROLLER_ALL(H) \
	H(ALTER_SYNC_SET_HEADER, alter_sync_set_header) H(ALTER_SYNC_SET_ANSWER, alter_sync_set_answer) \
	H(ELECT_MASTER_HEADER, elect_master_header) H(ELECT_MASTER_ANSWER, elect_master_answer) \
	H(CONTROLLER_REGISTER_HEADER, controller_register_header) H(CONTROLLER_REGISTER_ANSWER, controller_register_answer) \
	H(REPLICA_INFO_HEADER, replica_info_header) H(REPLICA_INFO_ANSWER, replica_info_answer) \
	H(CONTROLLER_METADATA_ANSWER, controller_metadata_answer) \
	H(ROLE_CHANGED_HEADER, role_changed_header) \
	H(CLEAN_BROKER_HEADER, clean_broker_header) \
	H(NEXT_BROKER_ID_HEADER, next_broker_id_header) H(NEXT_BROKER_ID_ANSWER, next_broker_id_answer) \
	H(APPLY_BROKER_ID_HEADER, apply_broker_id_header) H(APPLY_BROKER_ID_ANSWER, apply_broker_id_answer)
HEADER_CONTROLLER_ALL(HEADER_DECLARE)

#endif
