#!/usr/bin/env bats
# Name server, broker and tools on ::1, where a host and its port are not parted by the first colon, and ids are longer.

setup() {
	load helpers
	mq_setup
	grep -q '^0*1 ' /proc/net/if_inet6 2>/dev/null || skip "no ::1 here"
	mkfifo ns.ready broker.ready
	mq-namesrv -p listenPort=0 -p bindAddress=::1 -p kvConfigPath="$PWD/kv.json" --ready-fd 9 9>ns.ready 2>ns.log 3>&- \
		</dev/null >/dev/null &
	pids+=($!)
	read -r -t 60 ns_port <ns.ready
	export NAMESRV_ADDR="[::1]:$ns_port"
	mq-broker -n "$NAMESRV_ADDR" -p listenPort=0 -p bindAddress=::1 -p brokerIP1=::1 -p brokerName=b -p mappedFileSizeCommitLog=1048576 \
		-p storePathRootDir="$PWD/store" --ready-fd 9 9>broker.ready 2>broker.log 3>&- </dev/null >/dev/null &
	pids+=($!)
	broker_pid=$!
	read -r -t 60 broker_port <broker.ready
	until_true eval 'mq-admin clusterList | grep -q "::1"'
}

teardown() {
	mq_teardown
}

@test "messages go and come, and are found by ids with long hosts" {
	mq-admin updateTopic -c DefaultCluster -t T -r 1 -w 1
	mq-send -k key T <<<hello
	run -0 mq-recv -e -g g T
	assert_output hello
	run -0 mq-admin -o tsv queryMsgByKey -t T -k key
	id=$(mq-admin -o json queryMsgByUniqueKey -t T -i "$(mq-recv -e -o begin -f '%i' T)" | grep -oE '"[0-9A-F]{56}"' | tr -d '"' | sort -u | tail -n 1)
	[ "${#id}" = 56 ]
	run -0 mq-admin queryMsgById -i "$id"
	assert_output --partial hello
	run -0 mq-admin DecodeMessageId -i "$id"
	assert_output --partial ::1
	kill "$broker_pid"
	ended "$broker_pid"
	[ "$status" = 0 ]
	# Hosts of twenty bytes are marked in the record, and the store says so.
	run -0 mq-admin -n "store:$PWD/store" dump -w messages -t T
	assert_output --regexp '"bornHost":"\[[0:]*:1\]:[0-9]+","storeHost":"\[[0:]*:1\]:[0-9]+"'
	run -0 mq-admin -n "store:$PWD/store" check
}
