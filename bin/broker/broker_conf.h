/* broker_conf.h: every key of broker.conf, written once: the struct, the table of rows and `mq-broker --print-config` come
 * from this list.  Defaults and meanings: mq-broker.conf(5); keys below "our own" do not exist in the peer.
 *
 *      K(type, key, default, min, max, flags, help)
 *   type: str i32 i64 boolean size, or an enum of BROKER_ENUMS;  default: as text.
 *   CONF_RUNTIME: felt at once; 0: with the next start; CONF_FIXED: never over the wire.
 *   CONF_IGNORED: a key of the peer that stands for something that is not there here (thread pools, Java heap tricks) or that
 *   belongs to a feature which this broker does not offer; it is accepted and shown, and changes nothing. */
#ifndef BROKER_BROKER_CONF_H
#define BROKER_BROKER_CONF_H

#include <base/conf.h>

/* E(type, names): the value is the position. */
#define BROKER_ENUMS(E) \
	E(flush_disk_type, "ASYNC_FLUSH|SYNC_FLUSH") \
	E(broker_role, "ASYNC_MASTER|SYNC_MASTER|SLAVE") \
	E(log_level, "error|warn|info|debug|trace")
enum { FLUSH_ASYNC, FLUSH_SYNC };
enum { ROLE_ASYNC_MASTER, ROLE_SYNC_MASTER, ROLE_SLAVE };

#define BROKER_CONF_IDENTITY(K) \
	K(str, brokerName, "", 0, 0, 0, "name that the replicas of one broker share; empty: this host's") \
	K(str, brokerClusterName, "DefaultCluster", 0, 0, 0, "cluster that the broker belongs to") \
	K(i64, brokerId, "0", 0, INT64_MAX, 0, "0: the master; others are slaves") \
	K(str, brokerIP1, "", 0, 0, 0, "address told to clients, part of message ids; empty: the first of this machine") \
	K(str, brokerIP2, "", 0, 0, 0, "address told to slaves; empty: brokerIP1") \
	K(str, bindAddress, "0.0.0.0", 0, 0, CONF_FIXED, "address to listen on") \
	K(i32, listenPort, "10911", 0, 65535, 0, "port; the fast port is two below; 0: any free port") \
	K(i32, haListenPort, "0", 0, 65535, 0, "replication port of a master; 0: listenPort + 1") \
	K(str, namesrvAddr, "", 0, 0, CONF_RUNTIME, "name servers, host:port[;host:port...]") \
	K(boolean, fetchNamesrvAddrByAddressServer, "false", 0, 0, CONF_RUNTIME, "ask an http address server for namesrvAddr") \
	K(str, rmqAddressServerDomain, "jmenv.tbsite.net", 0, 0, CONF_RUNTIME, "host, or host:port, of the address server") \
	K(str, rmqAddressServerSubGroup, "nsaddr", 0, 0, CONF_RUNTIME, "last part of the address server's path") \
	K(i32, fetchNamesrvAddrInterval, "10000", 1000, INT32_MAX, CONF_RUNTIME, "ms between questions to the address server") \
	K(boolean, fetchNameSrvAddrByDnsLookup, "false", 0, 0, CONF_IGNORED, "names are looked up at each connect anyhow") \
	K(i32, registerNameServerPeriod, "30000", 10000, 60000, CONF_RUNTIME, "ms between registrations with the name servers") \
	K(i32, registerBrokerTimeoutMills, "24000", 100, INT32_MAX, CONF_RUNTIME, "ms to wait for a name server's answer") \
	K(boolean, forceRegister, "true", 0, 0, CONF_IGNORED, "registrations are always sent") \
	K(boolean, compressedRegister, "false", 0, 0, CONF_IGNORED, "broken in the peer; plain bodies are sent") \
	K(str, regionId, "DefaultRegion", 0, 0, CONF_RUNTIME, "property MSG_REGION of every message") \
	K(i32, brokerPermission, "6", 0, 7, CONF_RUNTIME, "4 read + 2 write, for all topics") \
	K(enum_broker_role, brokerRole, "ASYNC_MASTER", 0, 0, 0, "ASYNC_MASTER, SYNC_MASTER or SLAVE") \
	K(i32, serverChannelMaxIdleTimeSeconds, "120", 0, INT32_MAX, 0, "close a connection without traffic after; 0: never") \
	K(i32, serverSocketBacklog, "1024", 1, 65535, 0, "connections that may wait to be accepted")

#define BROKER_CONF_TOPICS(K) \
	K(boolean, autoCreateTopicEnable, "true", 0, 0, CONF_RUNTIME, "make an unknown topic when a message comes for it") \
	K(i32, defaultTopicQueueNums, "8", 1, 65535, CONF_RUNTIME, "queues of TBW102: at most so many has a topic made by a send") \
	K(boolean, clusterTopicEnable, "true", 0, 0, 0, "topic with the cluster's name can be read and written") \
	K(boolean, brokerTopicEnable, "true", 0, 0, 0, "topic with the broker's name can be read and written") \
	K(boolean, autoCreateSubscriptionGroup, "true", 0, 0, CONF_RUNTIME, "make an unknown group when it is first named") \
	K(boolean, traceTopicEnable, "false", 0, 0, 0, "make the topic for message traces at start") \
	K(str, msgTraceTopicName, "RMQ_SYS_TRACE_TOPIC", 0, 0, 0, "that topic") \
	K(boolean, traceOn, "true", 0, 0, CONF_RUNTIME, "tell clients to trace: property TRACE_ON") \
	K(boolean, validateSystemTopicWhenUpdateTopic, "true", 0, 0, CONF_RUNTIME, "refuse to change topics of the system") \
	K(boolean, enableMixedMessageType, "false", 0, 0, CONF_RUNTIME, "allow topics of message.type MIXED") \
	K(i32, reviveQueueNum, "8", 1, 65535, 0, "queues of the topic for un-acked pops") \
	K(i64, startAcceptSendRequestTimeStamp, "0", 0, INT64_MAX, CONF_RUNTIME, "refuse sends before this time (Unix ms)") \
	K(boolean, rejectTransactionMessage, "false", 0, 0, CONF_RUNTIME, "refuse transactional messages") \
	K(boolean, storeReplyMessageEnable, "true", 0, 0, CONF_RUNTIME, "store the replies to request messages, too") \
	K(i64, transactionTimeOut, "6000", 0, INT32_MAX, CONF_RUNTIME, "ms before a producer is asked about a transaction") \
	K(i32, transactionCheckMax, "15", 1, INT32_MAX, CONF_RUNTIME, "questions before a transaction is given up") \
	K(i64, transactionCheckInterval, "30000", 10, INT32_MAX, CONF_RUNTIME, "ms between rounds of questions") \
	K(boolean, timerWheelEnable, "true", 0, 0, 0, "take messages for a given time") \
	K(i32, timerPrecisionMs, "1000", 1, INT32_MAX, 0, "step of such times: 1000, 500, 200 or 100; else the next lower of these") \
	K(i32, timerRollWindowSlot, "172800", 0, INT32_MAX, 0, "steps that the wheel looks ahead; what is due later is looked at again") \
	K(i32, transactionMetricFlushInterval, "3000", 10, INT32_MAX, CONF_RUNTIME, "ms between saves of how many halves are pending") \
	K(i32, timerMaxDelaySec, "259200", 1, INT32_MAX, CONF_RUNTIME, "seconds ahead that a message may be sent for") \
	K(i32, timerCongestNumEachSlot, "2147483647", 1, INT32_MAX, CONF_RUNTIME, "messages for one step above which some are refused, " \
	  "above twice as many all") \
	K(i32, timerFlushIntervalMs, "1000", 10, INT32_MAX, CONF_RUNTIME, "ms between saves of the timer wheel") \
	K(boolean, timerStopEnqueue, "false", 0, 0, CONF_RUNTIME, "leave messages for a given time where they are for now") \
	K(boolean, timerStopDequeue, "false", 0, 0, CONF_RUNTIME, "deliver none of them for now") \
	K(boolean, recallMessageEnable, "true", 0, 0, CONF_RUNTIME, "let clients take such a message back (the peer, from 5.3 on: false)") \
	K(size, mappedFileSizeTimerLog, "104857600", 4096, INT32_MAX, 0, "bytes of a file of the timer log") \
	K(boolean, rejectPullConsumerEnable, "false", 0, 0, CONF_RUNTIME, "refuse consumers that pull by themselves") \
	K(boolean, litePullMessageEnable, "true", 0, 0, CONF_RUNTIME, "serve LITE_PULL_MESSAGE") \
	K(boolean, notifyConsumerIdsChangedEnable, "true", 0, 0, CONF_RUNTIME, "tell the members when a group changes") \
	K(i32, channelExpiredTimeout, "120000", 1000, INT32_MAX, CONF_RUNTIME, "ms without heartbeat after which a client is gone") \
	K(i32, subscriptionExpiredTimeout, "600000", 1000, INT32_MAX, CONF_IGNORED, "subscriptions live as long as their group") \
	K(boolean, enablePropertyFilter, "false", 0, 0, 0, "filter messages by SQL92 expressions") \
	K(i32, maxErrorRateOfBloomFilter, "20", 1, 99, 0, "percent; sizes the bits of enableCalcFilterBitMap") \
	K(i32, expectConsumerNumUseFilter, "32", 1, 1000000, 0, "consumers; the same") \
	K(boolean, enableConsumeQueueExt, "false", 0, 0, 0, "keep more of a message beside its queue entry, in consumequeue_ext") \
	K(boolean, enableCalcFilterBitMap, "false", 0, 0, 0, "with it: which SQL92 filters a message passes") \
	K(size, mappedFileSizeConsumeQueueExt, "50331648", 4096, INT32_MAX, 0, "bytes of a file of consumequeue_ext") \
	K(i64, filterDataCleanTimeSpan, "86400000", 0, INT64_MAX, CONF_RUNTIME, "ms to keep the filter of a group that has left") \
	K(boolean, useServerSideResetOffset, "true", 0, 0, CONF_RUNTIME, "a reset of offsets is done by the broker alone")

#define BROKER_CONF_PULL(K) \
	K(boolean, longPollingEnable, "true", 0, 0, CONF_RUNTIME, "hold a pull as long as it asks; else shortPollingTimeMills") \
	K(i32, shortPollingTimeMills, "1000", 0, INT32_MAX, CONF_RUNTIME, "ms to hold a pull without long polling") \
	K(i32, maxTransferBytesOnMessageInMemory, "262144", 1, INT32_MAX, CONF_RUNTIME, "bytes in one pull answer") \
	K(i32, maxTransferCountOnMessageInMemory, "1024", 1, 1024, CONF_RUNTIME, "messages in one pull answer (the peer: 32)") \
	K(i32, accessMessageInMemoryMaxRatio, "40", 0, 100, CONF_RUNTIME, "percent of memory taken for recent messages") \
	K(boolean, slaveReadEnable, "false", 0, 0, CONF_RUNTIME, "send consumers that are far behind to a slave") \
	K(i32, defaultQueryMaxNum, "32", 1, 1024, CONF_RUNTIME, "messages in the answer to a query by unique key") \
	K(i32, maxHeldPulls, "1000000", 1, INT32_MAX, CONF_RUNTIME, "pulls that may wait; more are answered at once (our own key)") \
	K(i32, spinMicros, "50", 0, 1000, 0, "us to look for the next request before sleeping, while they come that fast (our own key)")

#define BROKER_CONF_POP(K) \
	K(i32, popPollingSize, "1024", 1, INT32_MAX, CONF_RUNTIME, "pops of one group that may wait for one queue, or for any") \
	K(i32, maxPopPollingSize, "100000", 1, INT32_MAX, CONF_RUNTIME, "pops that may wait in all") \
	K(boolean, initPopOffsetByCheckMsgInMem, "true", 0, 0, CONF_RUNTIME, "a first pop from the end begins a young queue at 0") \
	K(boolean, enableRetryTopicV2, "false", 0, 0, CONF_RUNTIME, "un-acked pops go to %RETRY%group+topic, not %RETRY%group_topic") \
	K(boolean, retrieveMessageFromPopRetryTopicV1, "true", 0, 0, CONF_RUNTIME, "with that, look into %RETRY%group_topic too") \
	K(boolean, popResponseReturnActualRetryTopic, "false", 0, 0, CONF_RUNTIME, "popped retries show the topic they lie in") \
	K(boolean, enablePopMessageThreshold, "false", 0, 0, CONF_RUNTIME, "no pop from a queue of which a group has too many un-acked") \
	K(i64, popInflightMessageThreshold, "10000", 0, INT64_MAX, CONF_RUNTIME, "that is, more than this") \
	K(boolean, serverLoadBalancerEnable, "true", 0, 0, CONF_RUNTIME, "allocate queues to members that ask (QUERY_ASSIGNMENT)") \
	K(str, defaultMessageRequestMode, "PULL", 0, 0, CONF_RUNTIME, "PULL or POP, for groups that nobody set a mode for") \
	K(i32, defaultPopShareQueueNum, "-1", -1, INT32_MAX, CONF_RUNTIME, "with POP: members whose queues one reads, too; -1: all") \
	K(i32, loadBalancePollNameServerInterval, "30000", 100, INT32_MAX, CONF_RUNTIME, "ms to keep a topic's route for that")

#define BROKER_CONF_REPLICATION(K) \
	K(str, haMasterAddress, "", 0, 0, 0, "slave: host:port of the master's replication port; empty: as the name servers say") \
	K(str, haAllowedAddresses, "", 0, 0, CONF_RUNTIME, "who may follow: 10.1.2.3;10.2.0.0/16; empty: everybody (our own key)") \
	K(str, haSecretFile, "", 0, 0, CONF_FIXED, \
	  "file of a secret that master and slave prove to one another; empty: no proof (our own key)") \
	K(i32, haSendHeartbeatInterval, "5000", 10, INT32_MAX, CONF_RUNTIME, "ms without data after which a slave gets a heartbeat") \
	K(i32, haHousekeepingInterval, "20000", 10, INT32_MAX, CONF_RUNTIME, "ms of silence that end a replication connection") \
	K(size, haTransferBatchSize, "32768", 1, 4194292, CONF_RUNTIME, "bytes of log in one block") \
	K(boolean, haFlowControlEnable, "false", 0, 0, CONF_RUNTIME, "send a slave no more than maxHaTransferByteInSecond") \
	K(size, maxHaTransferByteInSecond, "104857600", 1, INT64_MAX, CONF_RUNTIME, "bytes of log that a slave is sent in a second") \
	K(size, haMaxGapNotInSync, "268435456", 1, INT64_MAX, CONF_RUNTIME, "bytes behind from which on a slave is not in sync") \
	K(i32, slaveTimeout, "3000", 1, INT32_MAX, CONF_RUNTIME, "ms after which a send that is on too few machines gets code 12") \
	K(i32, inSyncReplicas, "1", 1, 16, CONF_RUNTIME, "SYNC_MASTER: machines that must have a message, this one included") \
	K(i32, minInSyncReplicas, "1", 1, 16, CONF_RUNTIME, "SYNC_MASTER: with fewer in sync, sends are refused (if above 1)") \
	K(boolean, enableAutoInSyncReplicas, "false", 0, 0, CONF_RUNTIME, \
	  "SYNC_MASTER: wait for as many as are in sync, between the two numbers") \
	K(boolean, allAckInSyncStateSet, "false", 0, 0, CONF_RUNTIME, "SYNC_MASTER: wait for every slave that is in sync") \
	K(boolean, ackOnTwoMachines, "false", 0, 0, CONF_RUNTIME, \
	  "a message is on two machines at least, or its send is not answered with success (our own key)") \
	K(boolean, enableControllerMode, "false", 0, 0, 0, "role and id come from a controller; brokerRole and brokerId do not count") \
	K(str, controllerAddr, "", 0, 0, 0, "controllers: host:port[;host:port...]") \
	K(str, storePathEpochFile, "", 0, 0, 0, "which master wrote what; empty: storePathRootDir/epochFileCheckpoint") \
	K(str, storePathBrokerIdentity, "", 0, 0, 0, "the id that a controller gave; empty: storePathRootDir/brokerIdentity") \
	K(i32, syncBrokerMetadataPeriod, "5000", 10, INT32_MAX, CONF_RUNTIME, "ms between questions to the controller for the master") \
	K(i32, syncControllerMetadataPeriod, "10000", 10, INT32_MAX, CONF_RUNTIME, "ms between questions which controller leads") \
	K(i32, checkSyncStateSetPeriod, "5000", 10, INT32_MAX, CONF_RUNTIME, "ms between looks for replicas that are no longer in sync") \
	K(i32, haMaxTimeSlaveNotCatchup, "15000", 10, INT32_MAX, CONF_RUNTIME, "ms behind after which a replica is not in sync") \
	K(i32, brokerHeartbeatInterval, "1000", 10, INT32_MAX, CONF_RUNTIME, "ms between heartbeats to controllers") \
	K(i32, controllerHeartBeatTimeoutMills, "10000", 10, INT32_MAX, CONF_RUNTIME, "ms without one after which the broker is dead") \
	K(i32, brokerElectionPriority, "2147483647", 0, INT32_MAX, CONF_RUNTIME, "among equals the lowest is elected") \
	K(boolean, asyncLearner, "false", 0, 0, 0, "slave of a controller's group that never is in sync, nor master") \
	K(boolean, masterFence, "false", 0, 0, 0, \
	  "master: takes no message before a name server has said that nobody was promoted in its place (our own key)") \
	K(boolean, syncFromLastFile, "false", 0, 0, 0, "slave without a log: take the master's last segment only") \
	K(boolean, syncMasterFlushOffsetWhenStartup, "false", 0, 0, CONF_RUNTIME, "slave: show masterFlushOffset as request 906 has it") \
	K(boolean, offsetCheckInSlave, "false", 0, 0, CONF_RUNTIME, "slave: tell consumers that their offset has moved, as a master does")

#define BROKER_CONF_STORE(K) \
	K(str, storePathRootDir, "", 0, 0, CONF_FIXED, "the store; empty: ~/store") \
	K(str, storePathCommitLog, "", 0, 0, CONF_FIXED, "the log; empty: storePathRootDir/commitlog") \
	K(size, mappedFileSizeCommitLog, "1073741824", 4096, INT32_MAX, 0, "bytes of a log segment") \
	K(size, mappedFileSizeConsumeQueue, "6000000", 20, INT32_MAX, 0, "bytes of a consume queue's segment") \
	K(i32, maxHashSlotNum, "5000000", 1, INT32_MAX / 8, 0, "slots of an index file") \
	K(i32, maxIndexNum, "20000000", 2, INT32_MAX / 24, 0, "entries of an index file") \
	K(boolean, messageIndexEnable, "true", 0, 0, 0, "index messages by key") \
	K(boolean, messageIndexSafe, "false", 0, 0, 0, "trust the index after a crash only as far as the checkpoint says") \
	K(boolean, checkCRCOnRecover, "true", 0, 0, 0, "check every body when a store is recovered") \
	K(size, maxMessageSize, "4194304", 1, 15728640, 0, "bytes of a message's body") \
	K(enum_flush_disk_type, flushDiskType, "ASYNC_FLUSH", 0, 0, 0, "SYNC_FLUSH: answer a send when it is on the disk") \
	K(i32, flushIntervalCommitLog, "500", 1, INT32_MAX, CONF_RUNTIME, "ms between flushes of the log (ASYNC_FLUSH)") \
	K(i32, flushIntervalConsumeQueue, "1000", 1, INT32_MAX, CONF_RUNTIME, "ms between flushes of queues, index and checkpoint") \
	K(i32, syncFlushTimeout, "5000", 1, INT32_MAX, CONF_RUNTIME, "ms after which a send that is not on the disk gets code 10") \
	K(i32, flushConsumerOffsetInterval, "5000", 10, INT32_MAX, CONF_RUNTIME, "ms between saves of the groups' offsets") \
	K(str, deleteWhen, "04", 0, 0, CONF_RUNTIME, "hours at which old segments go, such as 04;16") \
	K(i32, fileReservedTime, "72", 0, INT32_MAX, CONF_RUNTIME, "hours that a segment is kept") \
	K(i32, diskMaxUsedSpaceRatio, "75", 10, 95, CONF_RUNTIME, "percent of the disk above which old segments go at any hour") \
	K(i32, diskSpaceCleanForciblyRatio, "85", 30, 100, CONF_RUNTIME, "percent above which segments go before their time") \
	K(i32, diskSpaceWarningLevelRatio, "90", 35, 100, CONF_RUNTIME, "percent above which sends are refused") \
	K(boolean, cleanFileForciblyEnable, "true", 0, 0, CONF_RUNTIME, "allow diskSpaceCleanForciblyRatio") \
	K(i32, cleanResourceInterval, "10000", 100, INT32_MAX, CONF_RUNTIME, "ms between rounds of removing old segments") \
	K(size, maxStoreBytes, "0", 0, INT64_MAX, CONF_RUNTIME, "bytes of log to keep; 0: no limit (our own key)") \
	K(size, minFreeBytes, "0", 0, INT64_MAX, CONF_RUNTIME, "free bytes below which sends are refused; 0: by ratio (our own key)") \
	K(boolean, adoptSegmentSizes, "true", 0, 0, 0, "take segment sizes from the files that exist (our own key)") \
	K(str, messageDelayLevel, "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", 0, 0, 0, \
	  "how long a message with property DELAY=1, 2, ... waits; units s m h d") \
	K(i32, flushDelayOffsetInterval, "10000", 10, INT32_MAX, CONF_RUNTIME, "ms between saves of how far delay levels have got") \
	K(i32, delayOffsetUpdateVersionStep, "200", 1, INT32_MAX, CONF_RUNTIME, "deliveries per new version of that table") \
	K(i32, consumerOffsetUpdateVersionStep, "500", 1, INT32_MAX, CONF_RUNTIME, "commits per new version of the offset table") \
	K(str, rocketmqHome, "", 0, 0, CONF_FIXED, "where conf/plain_acl.yml is; empty: what ROCKETMQ_HOME says") \
	K(boolean, aclEnable, "false", 0, 0, CONF_FIXED, "requests need an account that has the right to what they ask for") \
	K(str, aclFile, "", 0, 0, CONF_FIXED, \
	  "file of accounts and rights; empty: conf/plain_acl.yml in rocketmqHome; others beside it, in acl/ (our own key)") \
	K(enum_log_level, logLevel, "info", 0, 0, CONF_RUNTIME, "error, warn, info, debug, trace (our own key)")

/* The peer's keys that change nothing here.  X(key, default) */
#define BROKER_CONF_IGNORED(X) \
	X(serverWorkerThreads, "8") X(serverSelectorThreads, "3") X(serverCallbackExecutorThreads, "0") \
	X(serverOnewaySemaphoreValue, "256") X(serverAsyncSemaphoreValue, "64") X(serverSocketSndBufSize, "0") \
	X(serverSocketRcvBufSize, "0") X(writeBufferHighWaterMark, "0") X(writeBufferLowWaterMark, "0") \
	X(useEpollNativeSelector, "false") X(enableShutdownGracefully, "false") X(shutdownWaitTimeSeconds, "30") \
	X(serverPooledByteBufAllocatorEnable, "true") X(sendMessageThreadPoolNums, "") X(putMessageFutureThreadPoolNums, "") \
	X(pullMessageThreadPoolNums, "") X(litePullMessageThreadPoolNums, "") X(ackMessageThreadPoolNums, "3") \
	X(processReplyMessageThreadPoolNums, "") X(queryMessageThreadPoolNums, "") X(adminBrokerThreadPoolNums, "16") \
	X(clientManageThreadPoolNums, "32") X(consumerManageThreadPoolNums, "32") X(loadBalanceProcessorThreadPoolNums, "32") \
	X(heartbeatThreadPoolNums, "") X(endTransactionThreadPoolNums, "") X(recoverThreadPoolNums, "32") \
	X(sendThreadPoolQueueCapacity, "10000") X(putThreadPoolQueueCapacity, "10000") X(pullThreadPoolQueueCapacity, "100000") \
	X(litePullThreadPoolQueueCapacity, "100000") X(ackThreadPoolQueueCapacity, "100000") \
	X(replyThreadPoolQueueCapacity, "10000") X(queryThreadPoolQueueCapacity, "20000") \
	X(clientManagerThreadPoolQueueCapacity, "1000000") X(consumerManagerThreadPoolQueueCapacity, "1000000") \
	X(heartbeatThreadPoolQueueCapacity, "50000") X(endTransactionPoolQueueCapacity, "100000") \
	X(adminBrokerThreadPoolQueueCapacity, "10000") X(brokerFastFailureEnable, "true") X(waitTimeMillsInSendQueue, "200") \
	X(waitTimeMillsInPullQueue, "5000") X(waitTimeMillsInLitePullQueue, "5000") X(waitTimeMillsInHeartbeatQueue, "31000") \
	X(waitTimeMillsInTransactionQueue, "3000") X(waitTimeMillsInAckQueue, "3000") X(asyncSendEnable, "true") \
	X(realTimeNotifyConsumerChange, "true") X(useStaticSubscription, "false") X(enableSingleTopicRegister, "false") \
	X(enableSplitRegistration, "false") X(splitRegistrationSize, "800") \
	X(brokerNotActiveTimeoutMillis, "10000") X(transferMsgByHeap, "true") X(maxTransferBytesOnMessageInDisk, "65536") \
	X(maxTransferCountOnMessageInDisk, "8") X(maxFilterMessageSize, "16000") X(travelCqFileNumWhenGetMessage, "1") \
	X(diskFallRecorded, "true") X(disableConsumeIfConsumerReadSlowly, "false") \
	X(consumerFallbehindThreshold, "17179869184") X(enableBroadcastOffsetStore, "true") \
	X(broadcastOffsetExpireSecond, "120") X(broadcastOffsetExpireMaxSecond, "300") \
	X(lockInStrictMode, "false") X(popPollingMapSize, "100000") \
	X(bitMapLengthConsumeQueueExt, "64") \
	X(filterSupportRetry, "false") X(readOnlyCommitLogStorePaths, "") \
	 X(storePathDLedgerCommitLog, "") \
	X(mapperFileSizeBatchConsumeQueue, "13800000") \
	X(compactionMappedFileSize, "104857600") X(compactionCqMappedFileSize, "10485760") \
	X(maxMsgsNumBatch, "64") X(autoMessageVersionOnTopicLen, "true") X(enabledAppendPropCRC, "false") \
	X(forceVerifyPropCRC, "false") X(duplicationEnable, "false") X(enableCompaction, "true") X(compactionThreadNum, "6") \
	X(compactionScheduleInternal, "900000") X(maxOffsetMapSize, "104857600") X(enableLmq, "false") \
	X(enableMultiDispatch, "false") X(maxLmqConsumeQueueNum, "20000") X(storeType, "default") \
	X(warmMapedFileEnable, "false") X(mappedFileSwapEnable, "true") X(recheckReputOffsetFromCq, "false") \
	X(enableBuildConsumeQueueConcurrently, "false") X(batchDispatchRequestThreadPoolNums, "16") X(recoverConcurrently, "false") \
	X(topicQueueLockNum, "32") X(useReentrantLockWhenPutMessage, "true") X(osPageCacheBusyTimeOutMills, "1000") \
	X(flushCommitLogTimed, "true") X(flushCommitLogLeastPages, "4") X(flushCommitLogThoroughInterval, "10000") \
	X(flushConsumeQueueLeastPages, "2") X(flushConsumeQueueThoroughInterval, "60000") X(transientStorePoolEnable, "false") \
	X(transientStorePoolSize, "5") X(fastFailIfNoBufferInStorePool, "false") X(commitIntervalCommitLog, "200") \
	X(commitCommitLogLeastPages, "4") X(commitCommitLogThoroughInterval, "200") \
	X(deleteFileBatchMax, "10") X(deleteCommitLogFilesInterval, "100") X(deleteConsumeQueueFilesInterval, "100") \
	X(destroyMapedFileIntervalForcibly, "120000") X(redeleteHangedFileInterval, "120000") X(replicasPerDiskPartition, "1") \
	X(logicalDiskSpaceCleanForciblyThreshold, "0.8") X(enableScheduleMessageStats, "true") \
	X(enableScheduleAsyncDeliver, "false") X(scheduleAsyncDeliverMaxPendingLimit, "2000") \
	X(scheduleAsyncDeliverMaxResendNum2Blocked, "3") \
	X(timerGetMessageThreadNum, "3") X(timerPutMessageThreadNum, "3") \
	X(timerSkipUnknownError, "false") X(timerEnableCheckMetrics, "true") \
	X(timerCheckMetricsWhen, "05") X(timerInterceptDelayLevel, "false") X(disappearTimeAfterStart, "-1") \
	X(transactionOpMsgMaxSize, "4096") X(transactionOpBatchInterval, "3000") \
	X(reviveInterval, "1000") X(reviveMaxSlow, "3") X(reviveScanTime, "10000") X(enableSkipLongAwaitingAck, "false") \
	X(reviveAckWaitMs, "180000") X(enablePopBufferMerge, "false") X(popCkStayBufferTime, "10000") \
	X(popCkStayBufferTimeOut, "3000") X(popCkMaxBufferSize, "200000") X(popCkOffsetMaxQueueSize, "20000") \
	X(enablePopBatchAck, "false") X(enableNotifyAfterPopOrderLockRelease, "true") \
	X(totalReplicas, "1") \
	X(maxChecksumRange, "1073741824") X(enableSlaveActingMaster, "false") X(enableRemoteEscape, "false") \
	X(skipPreOnline, "false") X(syncBrokerMemberGroupPeriod, "1000") X(compatibleWithOldNameSrv, "true") \
	X(forwardTimeout, "3000") X(fetchControllerAddrByDnsLookup, "false") \
	 X(enableDLegerCommitLog, "false") \
	X(dLegerGroup, "") X(dLegerPeers, "") X(dLegerSelfId, "") X(preferredLeaderId, "") X(coldDataFlowControlEnable, "false") \
	X(coldDataScanEnable, "false") X(coldCtrStrategyEnable, "false") X(usePIDColdCtrStrategy, "true") \
	X(cgColdReadThreshold, "3145728") X(globalColdReadThreshold, "104857600") X(dataReadAheadEnable, "true") \
	X(enableCleanExpiredOffset, "false") X(maxBatchDeleteFilesNum, "50") \
	X(pullBatchMaxMessageCount, "160") X(putMsgIndexHightWater, "600000") X(flushConsumerOffsetHistoryInterval, "60000") \
	X(highSpeedMode, "false") X(maxTopicLength, "255") X(dispatchFromSenderThread, "false") X(dispatchCqThreads, "10") \
	X(dispatchCqCacheNum, "4096") X(enableAsyncReput, "true") X(wakeCommitWhenPutMessage, "true") \
	X(wakeFlushWhenPutMessage, "false") X(putMessageTimeout, "8000") X(maxSlaveResendLength, "268435456")

/* The same of the peer's client, RocksDB, OpenTelemetry and page swapping, none of which is here.  X(key, default) */
#define BROKER_CONF_FOREIGN(X) \
	X(accessMessageInMemoryHotRatio, "26") X(accountStatsEnable, "true") X(accountStatsPrintZeroValues, "true") \
	X(autoDeleteUnusedStats, "false") X(channelNotActiveInterval, "60000") \
	X(cleanOfflineBrokerInterval, "30000") X(cleanRocksDBDirtyCQIntervalMin, "60") \
	X(cleanSwapedMapInterval, "300000") X(clientAsyncSemaphoreValue, "65535") \
	X(clientCallbackExecutorThreads, "") X(clientChannelMaxIdleTimeSeconds, "120") \
	X(clientCloseSocketIfTimeout, "true") X(clientOnewaySemaphoreValue, "65535") \
	X(clientPooledByteBufAllocatorEnable, "false") X(clientSocketRcvBufSize, "0") \
	X(clientSocketSndBufSize, "0") X(clientWorkerThreads, "4") X(commercialBaseCount, "1") \
	X(commercialSizePerMsg, "4096") X(commitLogForceSwapMapInterval, "43200000") \
	X(commitLogSwapMapInterval, "3600000") X(commitLogSwapMapReserveFileNum, "100") \
	X(configBlackList, "configBlackList;brokerConfigPath") X(connectTimeoutMillis, "3000") \
	X(correctLogicMinOffsetForceInterval, "300000") X(correctLogicMinOffsetSleepInterval, "1") \
	X(debugLockEnable, "false") X(disableCallbackExecutor, "false") X(disableNettyWorkerGroup, "false") \
	X(enableBatchPush, "false") X(enableDetailStat, "true") X(enableNetWorkFlowControl, "false") \
	X(enablePopLog, "false") X(enableReconnectForGoAway, "true") X(enableRocksDBLog, "false") \
	X(enableTransparentRetry, "true") X(estimateAccumulation, "true") \
	X(flushLeastPagesWhenWarmMapedFile, "4096") X(isBrokerContainer, "false") X(isInBrokerContainer, "false") \
	X(isolateLogEnable, "false") X(loadBalanceThreadPoolQueueCapacity, "100000") \
	X(logicQueueForceSwapMapInterval, "43200000") X(logicQueueSwapMapInterval, "3600000") \
	X(logicQueueSwapMapReserveFileNum, "20") X(maxAsyncPutMessageRequests, "5000") \
	X(maxConsumeQueueScan, "20000") X(maxReconnectIntervalTimeSeconds, "60") X(maxRecoveryCommitlogFiles, "30") \
	X(memTableFlushIntervalMs, "3600000") X(messageStorePlugIn, "") \
	X(metricGrpcExporterIntervalInMills, "60000") X(metricGrpcExporterTimeOutInMills, "3000") \
	X(metricLoggingExporterIntervalInMills, "10000") X(metricsExporterType, "DISABLE") \
	X(metricsGrpcExporterHeader, "") X(metricsGrpcExporterTarget, "") X(metricsInDelta, "false") \
	X(metricsLabel, "") X(metricsOtelCardinalityLimit, "50000") X(metricsPromExporterHost, "") \
	X(metricsPromExporterPort, "5557") X(realTimePersistRocksDBConfig, "true") X(sampleCountThreshold, "5000") \
	X(sampleSteps, "32") X(searchBcqByCacheEnable, "true") X(sendHeartbeatTimeoutMillis, "1000") \
	X(socksProxyConfig, "{}") X(statRocksDBCQIntervalSec, "10") X(timerColdDataCheckIntervalMs, "60000") \
	X(timerEnableDisruptor, "false") X(timerMetricSmallThreshold, "1000000") \
	X(timerProgressLogIntervalMs, "10000") X(timerWarmEnable, "false") X(useTLS, "false")

#define BROKER_CONF_C_str char *
#define BROKER_CONF_C_i32 int32_t
#define BROKER_CONF_C_i64 int64_t
#define BROKER_CONF_C_boolean bool
#define BROKER_CONF_C_size int64_t
#define BROKER_CONF_C_enum_flush_disk_type int32_t
#define BROKER_CONF_C_enum_broker_role int32_t
#define BROKER_CONF_C_enum_log_level int32_t

struct broker_conf {
#define BROKER_CONF_FIELD(type, key, otherwise, min, max, flags, help) BROKER_CONF_C_##type key;
	BROKER_CONF_IDENTITY(BROKER_CONF_FIELD)
	BROKER_CONF_TOPICS(BROKER_CONF_FIELD)
	BROKER_CONF_PULL(BROKER_CONF_FIELD)
	BROKER_CONF_POP(BROKER_CONF_FIELD)
	BROKER_CONF_REPLICATION(BROKER_CONF_FIELD)
	BROKER_CONF_STORE(BROKER_CONF_FIELD)
#undef BROKER_CONF_FIELD
#define BROKER_CONF_FIELD(key, otherwise) char *key;
	BROKER_CONF_IGNORED(BROKER_CONF_FIELD)
	BROKER_CONF_FOREIGN(BROKER_CONF_FIELD)
#undef BROKER_CONF_FIELD
};

/* A new table of all keys, with their defaults in *c; the strings in *c belong to it. */
struct conf *broker_conf_new(struct broker_conf *c);
/* Smaller files and no limit of age for a queue that lives in somebody's home: as defaults, before file and -p. */
int broker_conf_embedded(struct conf *rows, const char *dir, struct mq_error *e);
/* What a single row cannot see: values that go together.  Fills in what is empty (names, addresses, paths). */
int broker_conf_check(struct conf *rows, struct broker_conf *c, struct mq_error *e);
/* Path of the file of accounts: what aclFile says, or where the peer has it; NULL: nothing says where.  The caller frees it. */
char *broker_conf_acl_file(const struct broker_conf *c);
/* Log the peer's keys that are set to what is not their default and have no effect here. */
void broker_conf_tell_unserved(const struct conf *rows);
/* Values of `fresh` that may change while running go into `rows`; others that differ are said in the log: they need a new start.
 * Returns how many were changed. */
int broker_conf_take(struct conf *rows, const struct conf *fresh);

#endif
