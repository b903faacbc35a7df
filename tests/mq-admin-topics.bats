#!/usr/bin/env bats
# mq-admin: topics, groups, offsets and the members of groups, beyond the main job.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

make_topic() { # make_topic NAME [QUEUES]
	mq-admin updateTopic -c DefaultCluster -t "$1" -r "${2:-2}" -w "${2:-2}" >/dev/null
}

offsets_of() { # offsets_of GROUP TOPIC: committed offset of each queue
	mq-admin -o json consumerProgress -g "$1" -t "$2" | jq -c '[.[].consumerOffset]'
}

@test "topicClusterList: the cluster of a topic" {
	start_cluster
	make_topic t
	run -0 mq-admin topicClusterList -t t
	assert_output DefaultCluster
	run -1 mq-admin topicClusterList -t nowhere
}

@test "allocateMQ: runs of queues, the first clients one more" {
	start_cluster
	make_topic t 5
	run -0 mq-admin allocateMQ -t t -i x,y
	assert_output $'x\tb\t0\nx\tb\t1\nx\tb\t2\ny\tb\t3\ny\tb\t4'
	run -2 mq-admin allocateMQ -t t -i x,,y
	run -1 mq-admin allocateMQ -t nowhere -i x
}

@test "updateTopicPerm changes the permission and nothing else" {
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t t -r 3 -w 2 -o true -a +message.type=FIFO >/dev/null
	run -0 mq-admin updateTopicPerm -c DefaultCluster -t t -p 4
	assert_output "update topic perm from 6 to 4 in 127.0.0.1:$broker_port success."
	stop_broker
	run jq -c '.topicConfigTable.t | [.perm, .readQueueNums, .writeQueueNums, .order, .attributes["message.type"]]' store/config/topics.json
	assert_output '[4,3,2,true,"FIFO"]'
}

@test "updateTopicPerm of an unknown topic or to nonsense" {
	start_cluster
	run -1 mq-admin updateTopicPerm -c DefaultCluster -t t -p 4
	run -2 mq-admin updateTopicPerm -c DefaultCluster -t t -p 5
	run -2 mq-admin updateTopicPerm -c DefaultCluster -t t
}

@test "updateTopicList: the topics of a file, or of none if one name is wrong" {
	start_cluster
	cat >list <<-END
		[{"topicName":"one","readQueueNums":1,"writeQueueNums":2,"perm":6,"attributes":{"+message.type":"NORMAL"}},
		 {"topicName":"two","readQueueNums":3,"writeQueueNums":3,"perm":2}]
	END
	run -0 mq-admin updateTopicList -c DefaultCluster -f list
	run -0 mq-admin -o json topicRoute -t two
	assert_equal "$(jq -c '.queueDatas[0] | [.readQueueNums, .perm]' <<<"$output")" '[3,2]'
	run -0 mq-admin updateTopicList -b "127.0.0.1:$broker_port" -f - <<<'[{"topicName":"three"}]'
	run -2 --separate-stderr mq-admin updateTopicList -c DefaultCluster -f - <<<'[{"topicName":"four"},{"topicName":"no name"}]'
	assert_regex "$stderr" "entry 2"
	run -0 mq-admin topicList
	assert_line three
	refute_line four
	run -2 mq-admin updateTopicList -c DefaultCluster -f list.missing
	run -2 mq-admin updateTopicList -c DefaultCluster -f - <<<'{"topicName":"five"}'
}

@test "deleteTopic --dry-run says what it would do, and does nothing" {
	start_cluster
	make_topic t
	run -0 mq-admin deleteTopic -c DefaultCluster -t t --dry-run
	assert_line "would delete topic [t] from broker [127.0.0.1:$broker_port]."
	assert_line "would delete topic [t] from name server [127.0.0.1:$ns_port]."
	refute_line --partial success
	run -0 mq-admin topicRoute -t t
}

@test "updateOrderConf: put, get, delete" {
	start_cluster
	run -1 mq-admin updateOrderConf -t t -m get
	run -0 mq-admin updateOrderConf -t t -m put -v b:4
	run -0 mq-admin updateOrderConf -t t -m get
	assert_output "get orderConf success. topic=[t], orderConf=[b:4]"
	run -0 mq-admin updateOrderConf -t t -m delete --dry-run
	run -0 mq-admin updateOrderConf -t t -m get
	run -0 mq-admin updateOrderConf -t t -m delete
	run -1 mq-admin updateOrderConf -t t -m get
	run -2 mq-admin updateOrderConf -t t -m put
	run -2 mq-admin updateOrderConf -t t -m replace -v x
}

@test "setConsumeMode: whether a group pops a topic, kept by each broker" {
	start_cluster
	make_topic t 1
	run -0 mq-admin setConsumeMode -c DefaultCluster -t t -g g -m POP -q 2
	assert_line --partial 'set consume mode to 127.0.0.1:'
	assert_line 'topic[t] group[g] consume mode[POP] popShareQueueNum[2]'
	run -0 cat store/config/messageRequestMode.json # answered: so it is there
	assert_output --partial '"t":{"g":{"consumerGroup":"g","mode":"POP","popShareQueueNum":2,"topic":"t"}}'
	run -2 mq-admin setConsumeMode -c DefaultCluster -t t -g g -m PUSH
	assert_output --partial "mode 'PUSH'"
	run -4 mq-admin setConsumeMode -c DefaultCluster -t %RETRY%g -g g -m POP
	assert_output --partial 'retry topic is not allowed to set mode'
}

@test "getConsumerConfig and deleteSubGroup: a group with its offsets and topics" {
	start_cluster
	make_topic t 1
	seq 5 | mq-send t
	mq-recv -g g -o begin -c 3 t >/dev/null
	mq-admin updateSubGroup -c DefaultCluster -g g -r 7
	run -0 mq-admin getConsumerConfig -g g
	assert_line $'DefaultCluster:b retryMaxTimes\t7'
	run -0 mq-admin deleteSubGroup -c DefaultCluster -g g -r true --dry-run
	assert_line "would delete subscription group [g] and its offsets from broker [127.0.0.1:$broker_port]."
	assert_line "would delete topic [%RETRY%g] from broker [127.0.0.1:$broker_port]."
	run -0 mq-admin getConsumerConfig -g g
	run -0 mq-admin deleteSubGroup -c DefaultCluster -g g -r true
	run -1 mq-admin getConsumerConfig -g g
	run -1 mq-admin consumerProgress -g g
	run -0 mq-admin topicList
	refute_line %RETRY%g
}

@test "consumerConnection, consumerStatus: the members of a group, what they want and how far they are" {
	start_cluster
	make_topic t
	seq 6 | mq-send t
	mq-recv -g g -o begin t >got 3>&- & pids+=($!)
	until_true mq-admin consumerConnection -g g
	run -0 mq-admin -o json consumerConnection -g g
	assert_equal "$(jq -c '[(.connectionSet | length), .connectionSet[0].version, .subscriptionTable.t.subString, .messageModel]' <<<"$output")" \
		'[1,453,"*","CLUSTERING"]'
	local client; client=$(jq -r '.connectionSet[0].clientId' <<<"$output")
	run -0 mq-admin -o tsv consumerConnection -g g
	assert_line --regexp "^$client"$'\t127\.0\.0\.1:[0-9]+\tJAVA\tV5_2_0$'
	assert_line $'t\t*\tTAG'
	until_true sh -c '[ $(wc -l <got) = 6 ]'
	until_true sh -c "mq-admin consumerStatus -g g | grep -q '^$client	V5_2_0	3\$'" # both queues and the retry topic's
	run -0 mq-admin consumerStatus -g g
	assert_line "Same subscription in the same group of consumer"
	run -0 mq-admin -o json consumerStatus -g g -i "$client"
	assert_equal "$(jq -r '.properties.PROP_CONSUME_TYPE' <<<"$output")" CONSUME_PASSIVELY
	run -0 mq-admin getConsumerStatus -g g -t t
	assert_line --regexp "^$client"$'\tb\t1\t[0-9]+$'
	run -1 mq-admin consumerStatus -g g -i nobody
	run -1 --separate-stderr mq-admin consumerConnection -g nobody
	assert_equal "$stderr" "mq-admin: consumerConnection: no member of consumer group 'nobody' is online"
}

@test "producer and producerConnection: nobody is there" {
	start_cluster
	make_topic t
	run -0 mq-admin producer -b "127.0.0.1:$broker_port"
	assert_output ""
	run -1 mq-admin producerConnection -g nobody -t t
	run -1 mq-admin producerConnection -g nobody -t nowhere
}

@test "resetOffsetByTime and skipAccumulatedMessage move a group that is offline" {
	start_cluster
	make_topic t 2
	seq 10 | mq-send -q b:0 t
	local between; between=$(date +%s%3N)
	sleep 0.1
	seq 6 | mq-send -q b:1 t
	mq-recv -g g -o begin -c 16 t >/dev/null
	assert_equal "$(offsets_of g t)" '[10,6]'
	run -0 mq-admin resetOffsetByTime -g g -t t -s 0
	assert_output $'b\t0\t0\nb\t1\t0'
	assert_equal "$(offsets_of g t)" '[0,0]'
	run -0 mq-admin resetOffsetByTime -g g -t t -s $((between + 50))
	assert_equal "$(offsets_of g t)" '[10,0]'
	run -0 mq-admin resetOffsetByTime -g g -t t -s 0
	run -0 mq-admin skipAccumulatedMessage -g g -t t
	assert_equal "$(offsets_of g t)" '[10,6]'
	run -0 mq-admin resetOffsetByTime -g g -t t -s now -b "127.0.0.1:$broker_port" -q 1 -o 2
	assert_equal "$(offsets_of g t)" '[10,2]'
	run -0 mq-admin resetOffsetByTime -g g -t t -s 2020-01-31#23:59:59:999
	assert_equal "$(offsets_of g t)" '[0,0]'
	run -0 mq-admin resetOffsetByTime -g g -t t -s -1h
	assert_equal "$(mq-recv -g g -c 16 t | wc -l)" 16
}

@test "resetOffsetByTime: what is not there, and wrong usage" {
	start_cluster
	make_topic t
	run -1 mq-admin resetOffsetByTime -g g -t nowhere -s 0
	run -4 --separate-stderr mq-admin resetOffsetByTime -g nobody -t t -s 0
	assert_regex "$stderr" "Group nobody does not exist"
	run -2 mq-admin resetOffsetByTime -g g -t t -s soon
	run -2 mq-admin resetOffsetByTime -g g -t t -s 2020-01-31#24:59
	run -2 mq-admin resetOffsetByTime -g g -t t -s 0 -q 1
	run -2 mq-admin resetOffsetByTime -g g -t t -s 0 -o 1
}

@test "cloneGroupOffset: a group begins where another is" {
	start_cluster
	make_topic t 1
	seq 5 | mq-send t
	mq-recv -g g -o begin -c 2 t >/dev/null
	run -0 mq-admin cloneGroupOffset -s g -d h -t t
	assert_output "clone group offset success. srcGroup[g], destGroup=[h], topic[t]"
	run -0 mq-recv -g h -c 3 t
	assert_output $'3\n4\n5'
	run -1 mq-admin cloneGroupOffset -s nobody -d h -t t
	run -2 mq-admin cloneGroupOffset -s g -d 'no name' -t t
}

@test "statsAll and brokerConsumeStats: traffic, and who is behind" {
	start_cluster
	make_topic t 1
	make_topic quiet 1
	seq 8 | mq-send t
	mq-recv -g g -o begin -c 5 t >/dev/null
	run -0 mq-admin -o json statsAll -t t
	assert_equal "$(jq -c '.[0] | [.topic, .group, .diff, .inDay, .inTps]' <<<"$output")" '["t","g",3,8,0.8]'
	assert [ "$(jq '.[0].outDay' <<<"$output")" -ge 5 ]
	run -0 mq-admin statsAll -a
	assert_line --regexp $'^t\tg\t3\t'
	refute_line --regexp $'^quiet'
	run -0 mq-admin statsAll -t quiet
	assert_output $'quiet\t-\t0\t0.00\t-\t0\t-'
	run -1 mq-admin statsAll -t nowhere
	run -0 mq-admin brokerConsumeStats -b "127.0.0.1:$broker_port"
	assert_line --regexp $'^t\tg\tb\t0\t8\t5\t3\t[0-9]{13}$'
	run -0 mq-admin brokerConsumeStats -b "127.0.0.1:$broker_port" -l 4
	assert_output ""
}
