#!/usr/bin/env bats
# mq-admin: configuration and upkeep of brokers and name servers.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

@test "getBrokerConfig, updateBrokerConfig: a changed key changes one line of the file" {
	start_namesrv
	printf '# ours\nfileReservedTime=48\nbrokerName=b\n# the end\n' >broker.conf
	start_broker -c broker.conf
	run -0 mq-admin getBrokerConfig -b "127.0.0.1:$broker_port"
	assert_line $'fileReservedTime\t48'
	assert_line $'brokerName\tb'
	run -0 mq-admin updateBrokerConfig -b "127.0.0.1:$broker_port" -k fileReservedTime -v 49
	assert_output "update broker config success, 127.0.0.1:$broker_port"
	run -0 mq-admin -o json getBrokerConfig -c DefaultCluster
	assert_equal "$(jq -r .fileReservedTime <<<"$output")" 49
	run cat broker.conf
	assert_output $'# ours\nfileReservedTime=49\nbrokerName=b\n# the end'
}

@test "updateBrokerConfig: what the broker refuses, and wrong usage" {
	start_cluster
	run -4 --separate-stderr mq-admin updateBrokerConfig -b "127.0.0.1:$broker_port" -k fileReservedTime -v many
	assert_regex "$stderr" "fileReservedTime"
	run -2 mq-admin updateBrokerConfig -b "127.0.0.1:$broker_port" -k 'a=b' -v 1
	run -2 mq-admin updateBrokerConfig -b "127.0.0.1:$broker_port" -k a -v $'1\nb=2'
	run -2 mq-admin updateBrokerConfig -k a -v 1
	run -1 mq-admin updateBrokerConfig -c nowhere -k fileReservedTime -v 1
}

@test "getNamesrvConfig, updateNamesrvConfig" {
	start_namesrv
	run -0 mq-admin getNamesrvConfig
	assert_line $'enableTopicList\ttrue'
	run -0 mq-admin updateNamesrvConfig -k enableTopicList -v false
	assert_line 'enableTopicList : false'
	run -0 mq-admin getNamesrvConfig
	assert_line $'enableTopicList\tfalse'
	run -4 mq-admin updateNamesrvConfig -k kvConfigPath -v /tmp/x
}

@test "updateKvConfig, deleteKvConfig: kept by the name server" {
	start_namesrv
	run -0 mq-admin updateKvConfig -s NS -k key -v 'some value'
	assert_output "create or update kv config to namespace success."
	run jq -r '.configTable.NS.key' namesrv/kvConfig.json
	assert_output 'some value'
	run -0 mq-admin deleteKvConfig -s NS -k key --dry-run
	assert_output "would delete key [key] of namespace [NS] from name server [127.0.0.1:$ns_port]."
	run jq -r '.configTable.NS.key' namesrv/kvConfig.json
	assert_output 'some value'
	run -0 mq-admin deleteKvConfig -s NS -k key
	run jq -r '.configTable.NS.key' namesrv/kvConfig.json
	assert_output null
}

@test "wipeWritePerm takes the right to write out of the routes, addWritePerm gives it back" {
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t t -r 1 -w 1
	run -0 mq-admin wipeWritePerm -b b
	assert_output --regexp "^wipe write perm of broker\[b\] in name server\[127.0.0.1:$ns_port\] OK, [1-9][0-9]*$"
	run -0 mq-admin topicRoute -t t -l
	assert_output --regexp $'\t4$'
	run -1 --separate-stderr mq-send --timeout 1s t <<<x
	assert_regex "$stderr" "no queue may be written"
	run -0 mq-admin addWritePerm -b b
	run -0 mq-send t <<<x
}

@test "cleanUnusedTopic, cleanExpiredCQ, deleteExpiredCommitLog" {
	start_cluster -p fileReservedTime=0 -p deleteWhen=99 -p flushDiskType=SYNC_FLUSH -p mappedFileSizeCommitLog=65536
	local i
	mq-admin updateTopic -c DefaultCluster -t t -r 1 -w 1 >/dev/null
	mq-admin updateTopic -c DefaultCluster -t old -r 1 -w 1 >/dev/null
	mq-send old <<<first
	head -c 300000 /dev/zero | tr '\0' x | fold -w 500 | mq-send t
	until_true test -e store/consumequeue/old/0 -a -e store/consumequeue/t/0 # written behind
	[ -e store/commitlog/00000000000000000000 ]
	run -0 mq-admin deleteExpiredCommitLog -b "127.0.0.1:$broker_port" --dry-run
	assert_output "would ask broker [127.0.0.1:$broker_port]: remove segments past their time now."
	[ -e store/commitlog/00000000000000000000 ]
	run -0 mq-admin deleteExpiredCommitLog
	[ ! -e store/commitlog/00000000000000000000 ]
	[ -e store/consumequeue/old/0 ]
	run -0 mq-admin cleanExpiredCQ -c DefaultCluster
	assert_output "cleanExpiredCQ: broker [127.0.0.1:$broker_port] success"
	[ ! -e store/consumequeue/old/0 ]
	stop_broker
	rm -f store/config/topics.json*
	start_broker
	run -0 mq-admin cleanUnusedTopic
	[ ! -e store/consumequeue/t ]
	run -2 mq-admin cleanUnusedTopic -b a:1 -c c
}

@test "haStatus: a master without replicas, with the true end of its log" {
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t t -r 1 -w 1 >/dev/null
	mq-send t <<<x
	run -0 mq-admin -o json haStatus -b "127.0.0.1:$broker_port"
	assert_equal "$(jq -c '[.master, .inSyncSlaveNums, .haConnectionInfo]' <<<"$output")" '[true,0,[]]'
	local end; end=$(jq .masterCommitLogMaxOffset <<<"$output")
	run -0 mq-admin haStatus -c DefaultCluster
	assert_line $'masterCommitLogMaxOffset\t'"$end"
	run -0 mq-admin brokerStatus -b "127.0.0.1:$broker_port"
	assert_line $'commitLogMaxOffset\t'"$end"
}

@test "each command has --help that names its options, and refuses what it does not know" {
	local c
	mq-admin --help | sed -nE 's/^  ([a-zA-Z]+) +[*+ ] .*/\1/p' >commands
	assert [ "$(wc -l <commands)" -gt 40 ]
	while read -r c; do
		run -0 --separate-stderr mq-admin "$c" --help
		assert_regex "$output" "^usage: mq-admin $c"
		assert_equal "$stderr" ""
		run -2 --separate-stderr mq-admin "$c" --no-such-option
		assert_equal "$output" ""
	done <commands
}
