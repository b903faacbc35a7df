/* namesrv_conf.h: every key of namesrv.conf, written once: struct, rows and `mq-namesrv --print-config` come from this list.
 * Defaults and meanings are the peer's 5.2.0 (NamesrvConfig, NettyServerConfig).
 *
 *      K(type, key, default, min, max, flags, help)
 *   CONF_IGNORED: stands for something that is not there here (thread pools, buffers of Netty): accepted, shown, without effect. */
#ifndef NAMESRV_NAMESRV_CONF_H
#define NAMESRV_NAMESRV_CONF_H

#include <base/conf.h>

#define NAMESRV_CONF(K) \
	K(str, bindAddress, "0.0.0.0", 0, 0, CONF_FIXED, "address to listen on") \
	K(i32, listenPort, "9876", 0, 65535, CONF_FIXED, "port; 0: any free port") \
	K(str, kvConfigPath, "", 0, 0, CONF_FIXED, "file of the key-value settings; empty: ~/namesrv/kvConfig.json") \
	K(str, configStorePath, "", 0, 0, CONF_FIXED, "where changes by request are saved") \
	K(str, configBlackList, "configBlackList;configStorePath;kvConfigPath", 0, 0, CONF_FIXED, "keys that no request may change") \
	K(str, rocketmqHome, "", 0, 0, CONF_FIXED | CONF_IGNORED, "the peer's home directory") \
	K(boolean, orderMessageEnable, "false", 0, 0, CONF_RUNTIME, "put the queues of ordered topics into routes") \
	K(boolean, returnOrderTopicConfigToBroker, "true", 0, 0, CONF_RUNTIME, "tell brokers the settings of ordered topics") \
	K(i64, scanNotActiveBrokerInterval, "5000", 10, INT32_MAX, CONF_RUNTIME, "ms between looks for brokers that went silent") \
	K(boolean, enableAllTopicList, "true", 0, 0, CONF_RUNTIME, "answer requests for the list of all topics") \
	K(boolean, enableTopicList, "true", 0, 0, CONF_RUNTIME, "answer requests for lists by cluster or unit") \
	K(boolean, needWaitForService, "false", 0, 0, CONF_RUNTIME, "give no routes before waitSecondsForService have passed") \
	K(i32, waitSecondsForService, "45", 0, INT32_MAX, CONF_RUNTIME, "seconds after the start, for brokers to come back") \
	K(boolean, deleteTopicWithBrokerRegistration, "false", 0, 0, CONF_RUNTIME, "topics missing in a broker's registration are gone") \
	K(boolean, supportActingMaster, "false", 0, 0, CONF_RUNTIME, "show a slave as master while there is none") \
	K(boolean, notifyMinBrokerIdChanged, "false", 0, 0, CONF_RUNTIME, "tell the replicas of a broker who is first among them now") \
	K(i32, serverChannelMaxIdleTimeSeconds, "120", 0, INT32_MAX, CONF_FIXED, "close a connection without traffic after; 0: never") \
	K(i32, serverSocketBacklog, "1024", 1, 65535, CONF_FIXED, "connections that may wait to be accepted") \
	K(enum_log_level, logLevel, "info", 0, 0, CONF_RUNTIME, "error, warn, info, debug, trace (our own key)") \
	K(str, productEnvName, "center", 0, 0, CONF_IGNORED, "tests of clusters") \
	K(boolean, clusterTest, "false", 0, 0, CONF_IGNORED, "tests of clusters") \
	K(boolean, enableControllerInNamesrv, "false", 0, 0, CONF_FIXED, "serve as controller too: elect masters") \
	K(str, controllerDLegerGroup, "", 0, 0, CONF_FIXED, "name of the controllers' group, for people") \
	K(str, controllerDLegerPeers, "", 0, 0, CONF_FIXED, "all controllers: ID-HOST:PORT;...; one or three") \
	K(str, controllerDLegerSelfId, "", 0, 0, CONF_FIXED, "which of them this is; its port is listened on") \
	K(i32, controllerRaftPortOffset, "100", 1, 65535, CONF_FIXED, "from a controller's port to its Raft port (our own key)") \
	K(str, controllerStorePath, "", 0, 0, CONF_FIXED, "directory of the controller's log; empty: ~/controller/ID") \
	K(boolean, enableElectUncleanMaster, "false", 0, 0, CONF_RUNTIME, "elect a replica that is not in sync rather than none") \
	K(boolean, notifyBrokerRoleChanged, "true", 0, 0, CONF_RUNTIME, "tell brokers at once who is master") \
	K(str, controllerType, "DLedger", 0, 0, CONF_IGNORED, "ours is Raft, whatever is said") \
	K(boolean, isProcessReadEvent, "false", 0, 0, CONF_IGNORED, "the leader answers from what it knows") \
	K(i32, electMasterMaxRetryCount, "3", 0, 0, CONF_IGNORED, "elections are tried with every look at who lives") \
	K(i64, scanInactiveMasterInterval, "5000", 0, 0, CONF_IGNORED, "scanNotActiveBrokerInterval serves for both") \
	K(i32, controllerThreadPoolNums, "16", 0, 0, CONF_IGNORED, "") \
	K(i32, controllerRequestThreadPoolQueueCapacity, "50000", 0, 0, CONF_IGNORED, "") \
	K(boolean, enableShutdownGracefully, "false", 0, 0, CONF_IGNORED, "answers always leave before the end") \
	K(i32, shutdownWaitTimeSeconds, "30", 0, 0, CONF_IGNORED, "") \
	K(i32, clientRequestThreadPoolNums, "8", 0, 0, CONF_IGNORED, "one loop does all") \
	K(i32, defaultThreadPoolNums, "16", 0, 0, CONF_IGNORED, "") \
	K(i32, clientRequestThreadPoolQueueCapacity, "50000", 0, 0, CONF_IGNORED, "") \
	K(i32, defaultThreadPoolQueueCapacity, "10000", 0, 0, CONF_IGNORED, "") \
	K(i32, unRegisterBrokerQueueCapacity, "3000", 0, 0, CONF_IGNORED, "brokers leave at once") \
	K(i32, serverWorkerThreads, "8", 0, 0, CONF_IGNORED, "") \
	K(i32, serverCallbackExecutorThreads, "0", 0, 0, CONF_IGNORED, "") \
	K(i32, serverSelectorThreads, "3", 0, 0, CONF_IGNORED, "") \
	K(i32, serverOnewaySemaphoreValue, "256", 0, 0, CONF_IGNORED, "") \
	K(i32, serverAsyncSemaphoreValue, "64", 0, 0, CONF_IGNORED, "") \
	K(i32, serverSocketSndBufSize, "0", 0, 0, CONF_IGNORED, "") \
	K(i32, serverSocketRcvBufSize, "0", 0, 0, CONF_IGNORED, "") \
	K(i32, writeBufferHighWaterMark, "0", 0, 0, CONF_IGNORED, "") \
	K(i32, writeBufferLowWaterMark, "0", 0, 0, CONF_IGNORED, "") \
	K(boolean, serverPooledByteBufAllocatorEnable, "true", 0, 0, CONF_IGNORED, "") \
	K(boolean, useEpollNativeSelector, "false", 0, 0, CONF_IGNORED, "")

#define NAMESRV_LOG_LEVELS "error|warn|info|debug|trace"

#define NAMESRV_CONF_C_str char *
#define NAMESRV_CONF_C_i32 int32_t
#define NAMESRV_CONF_C_i64 int64_t
#define NAMESRV_CONF_C_boolean bool
#define NAMESRV_CONF_C_enum_log_level int32_t

struct namesrv_conf {
#define NAMESRV_CONF_FIELD(type, key, otherwise, min, max, flags, help) NAMESRV_CONF_C_##type key;
	NAMESRV_CONF(NAMESRV_CONF_FIELD)
#undef NAMESRV_CONF_FIELD
};

/* A new table of all keys, with their defaults in *c; the strings in *c belong to it. */
struct conf *namesrv_conf_new(struct namesrv_conf *c);
/* Fill in the paths that are empty; conf_path: of -c, or NULL.  0 or MQ_EINVAL. */
int namesrv_conf_check(struct conf *rows, struct namesrv_conf *c, const char *conf_path, struct mq_error *e);
/* Give `into` the values of `from` for all keys that may change while running; *changed counts. */
int namesrv_conf_take(struct conf *into, const struct conf *from, int *changed, struct mq_error *e);
/* Write them to configStorePath; its directory is made when it is first needed. */
int namesrv_conf_save(struct conf *rows, const struct namesrv_conf *c, struct mq_error *e);
/* No request may change this key: FIXED, or named in configBlackList. */
bool namesrv_conf_locked(const struct conf *rows, const struct namesrv_conf *c, struct mq_str key);

#endif
