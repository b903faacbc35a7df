#!/usr/bin/env bats
# mq-admin: the acts of the main job, on a cluster, an embedded queue and a directory of the Java broker.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

make_topic() { # make_topic NAME [QUEUES]
	mq-admin updateTopic -c DefaultCluster -t "$1" -r "${2:-4}" -w "${2:-4}" >/dev/null
}

golden() { # golden NAME: unpack a store of the Java broker
	mkdir -p "$1"
	tar --zstd -xSf "$src/tests/golden/store/$1/store.tar.zst" -C "$1"
	echo "store:$PWD/$1/store"
}

@test "topicList: names, sorted, one a line" {
	start_cluster
	make_topic zebra
	make_topic apple
	run -0 mq-admin topicList
	assert_line zebra
	assert_line apple
	assert_equal "$output" "$(sort <<<"$output")"
}

@test "topicList -c: cluster and groups of each topic" {
	start_cluster
	make_topic t 1
	echo x | mq-send t
	mq-recv -g readers -c 1 -o begin t
	run -0 mq-admin -o tsv topicList -c
	assert_line $'DefaultCluster\tt\treaders'
}

@test "updateTopic makes a topic with the queues and permission asked for" {
	start_cluster
	run -0 mq-admin updateTopic -c DefaultCluster -t t -r 3 -w 2 -p 4
	assert_output "create topic to 127.0.0.1:$broker_port success."
	run -0 mq-admin -o tsv topicRoute -t t -l
	assert_output $'DefaultCluster\tb\t{"0":"127.0.0.1:'"$broker_port"$'"}\t3\t2\t4'
}

@test "topicRoute without -l is the route as JSON" {
	start_cluster
	make_topic t 2
	run -0 --separate-stderr mq-admin topicRoute -t t
	assert_equal "$(jq -r '.queueDatas[0].writeQueueNums' <<<"$output")" 2
	assert_equal "$(jq -r '.brokerDatas[0].brokerAddrs["0"]' <<<"$output")" "127.0.0.1:$broker_port"
}

@test "topicStatus: each queue's first and next offset, whole names" {
	start_cluster
	local long; long=$(printf 'x%.0s' $(seq 127))
	make_topic "$long" 2
	seq 5 | mq-send -q b:1 "$long"
	run -0 mq-admin -o tsv topicStatus -t "$long"
	assert_line --regexp $'^b\t0\t0\t0\t-$'
	assert_line --regexp $'^b\t1\t0\t5\t[0-9]{13}$'
	run -0 mq-admin topicList
	assert_line "$long"
}

@test "a topic that is not there: exit 1 and nothing on stdout" {
	start_cluster
	local c
	for c in topicStatus topicRoute; do
		run -1 --separate-stderr mq-admin $c -t nowhere
		assert_output ""
		assert_equal "$stderr" "mq-admin: $c: no topic 'nowhere'"
	done
}

@test "deleteTopic: gone from broker and name server at once" {
	start_cluster
	make_topic t
	echo x | mq-send t
	run -0 mq-admin deleteTopic -c DefaultCluster -t t
	run -1 mq-admin topicRoute -t t
	run -0 mq-admin topicList
	refute_line t
	[ ! -e store/consumequeue/t ]
}

@test "clusterList: a row for each broker; JSON has the documented keys" {
	start_cluster
	run -0 --separate-stderr mq-admin -o json clusterList
	assert_equal "$(jq -r '.[0] | [.cluster, .broker, .brokerId, .addr, .version, .active] | @csv' <<<"$output")" \
		"\"DefaultCluster\",\"b\",0,\"127.0.0.1:$broker_port\",\"V5_2_0\",true"
	run -0 mq-admin -o tsv clusterList -m
	assert_output $'DefaultCluster\tb\t0\t0\t0\t0'
}

@test "brokerStatus: counters go up with what is sent" {
	start_cluster
	make_topic t 1
	seq 7 | mq-send t
	run -0 mq-admin -o tsv brokerStatus -b "127.0.0.1:$broker_port"
	assert_line $'putMessageTimesTotal\t7'
	assert_line $'brokerVersionDesc\tV5_2_0'
	run -0 mq-admin -o json brokerStatus -c DefaultCluster
	assert_equal "$(jq -r .putMessageTimesTotal <<<"$output")" 7
}

@test "updateSubGroup: what is not given stays as it was" {
	start_cluster
	run -0 mq-admin updateSubGroup -c DefaultCluster -g g -r 3
	run -0 mq-admin updateSubGroup -c DefaultCluster -g g -s false
	stop_broker
	run jq -c '.subscriptionGroupTable.g | [.retryMaxTimes, .consumeEnable, .consumeBroadcastEnable]' store/config/subscriptionGroup.json
	assert_output '[3,false,true]'
}

@test "consumerProgress: how far a group is, per queue and in all" {
	start_cluster
	make_topic t 2
	seq 10 | mq-send -q b:0 t
	mq-recv -g g -o begin -c 4 t >/dev/null
	run -0 mq-admin -o json consumerProgress -g g
	assert_equal "$(jq -c '[.[] | select(.topic == "t" and .queue == 0) | .brokerOffset, .consumerOffset, .diff]' <<<"$output")" '[10,4,6]'
	run -0 mq-admin -o tsv consumerProgress
	assert_line --regexp $'^g\t0\t.*\t6$'
}

@test "consumerProgress of a group that nobody knows: exit 1" {
	start_cluster
	run -1 --separate-stderr mq-admin consumerProgress -g nobody
	assert_output ""
}

@test "queryMsgById and queryMsgByKey find what mq-send -v told" {
	start_cluster
	make_topic t 1
	run -0 mq-send -v -k order-17 -T blue t <<<"hello"
	run -0 mq-admin -o json queryMsgByKey -t t -k order-17
	local id; id=$(jq -r '.[0].offsetMsgId' <<<"$output")
	assert_equal "$(jq -r '.[0].queueOffset' <<<"$output")" 0
	run -0 mq-admin -o json queryMsgById -i "$id"
	assert_equal "$(jq -r '[.topic, .keys, .tags, .body] | @csv' <<<"$output")" '"t","order-17","blue","hello"'
	run -1 mq-admin queryMsgByKey -t t -k order-18
}

@test "keys with one hash are told apart" {
	start_cluster
	make_topic t 1
	echo first | mq-send -k Aa t
	echo second | mq-send -k BB t
	run -0 mq-admin -o json queryMsgByKey -t t -k Aa
	assert_equal "$(jq length <<<"$output")" 1
}

@test "wrong usage: exit 2, the option named, no request" {
	local args
	while read -r args; do
		run -2 --separate-stderr mq-admin -n 127.0.0.1:1 $args
		assert_output ""
		assert_regex "$stderr" "^mq-admin: "
	done <<-END
		nosuch
		topicStatus
		topicStatus -t
		topicList extra
		updateTopic -t t
		updateTopic -t t -b a:1 -c c
		updateTopic -c c -t a.b
		updateTopic -c c -t t -p 5
		updateTopic -c c -t t -r many
		queryMsgById -i xyz
		queryMsgByKey -t t -k k -b 200 -e 100
		queryMsgByKey -t t -k k -b tomorrow
		-o xml topicList
	END
}

@test "no name server: exit 3 within the time-out" {
	local start=$SECONDS
	run -3 --separate-stderr mq-admin -n 127.0.0.1:1 --timeout 1s topicList
	assert_output ""
	[ $((SECONDS - start)) -le 3 ]
}

@test "a server that accepts and says nothing: exit 3 within the time-out" {
	# A server that is stopped still accepts: the kernel does.
	start_namesrv
	kill -STOP "$ns_pid"
	local start=$SECONDS port=$ns_port
	run -3 mq-admin -n "127.0.0.1:$port" --timeout 1s topicList
	[ $((SECONDS - start)) -le 3 ]
}

@test "the server's refusal: exit 4 with its words" {
	start_cluster
	run -4 --separate-stderr mq-admin updateTopic -c DefaultCluster -t TBW102
	assert_regex "$stderr" "TBW102"
}

@test "an embedded queue answers the same questions" {
	mq-admin -n "file:$PWD/q" updateTopic -c local -t t -r 1 -w 1
	echo x | mq-send -n "file:$PWD/q" t
	run -0 mq-admin -n "file:$PWD/q" -o json topicStatus -t t
	assert_equal "$(jq -c '[.[0].minOffset, .[0].maxOffset]' <<<"$output")" '[0,1]'
}

@test "a directory of the Java broker is read offline and not changed" {
	local addr; addr=$(golden clean)
	(cd clean && find . -type f -exec sha256sum {} +) | sort >before
	run -0 mq-admin -n "$addr" topicList
	assert_line FxPlain
	run -0 mq-admin -n "$addr" -o json topicStatus -t FxPlain
	assert_equal "$(jq -c '[.[].maxOffset]' <<<"$output")" '[6,6,6,6]'
	run -0 mq-admin -n "$addr" -o json consumerProgress -g FxGroupPlain -t FxPlain
	assert_equal "$(jq -c '[.[].consumerOffset]' <<<"$output")" '[1,2,3,4]'
	local id; id=$(jq -r 'first(.sent[] | select(.topic == "FxPlain")).offsetMsgId' "$src/tests/golden/store/clean/manifest.json")
	run -0 mq-admin -n "$addr" -o json queryMsgById -i "$id"
	assert_equal "$(jq -r .topic <<<"$output")" FxPlain
	run -2 mq-admin -n "$addr" clusterList
	(cd clean && find . -type f -exec sha256sum {} +) | sort >after
	cmp before after
}

@test "data goes to stdout, and a full disk is an error" {
	start_cluster
	run -0 --separate-stderr mq-admin topicList
	assert_equal "$stderr" ""
	run -3 bash -c 'mq-admin topicList >/dev/full'
}
