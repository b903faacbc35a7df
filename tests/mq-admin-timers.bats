#!/usr/bin/env bats
# mq-admin timers: what waits for its time, shown and taken back, on a running broker and in its directory.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

be32() { # be32 N: its bytes
	printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))"
	printf "\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"
}

# A message as any client sends it: its text is its body and, with U- before it, its unique id.
send_for() { # send_for TOPIC TEXT DELIVER_MS
	local head="{\"code\":10,\"language\":\"JAVA\",\"version\":453,\"opaque\":1,\"flag\":0,\"extFields\":{\"producerGroup\":\"pg\",\
\"topic\":\"$1\",\"defaultTopic\":\"TBW102\",\"defaultTopicQueueNums\":\"1\",\"queueId\":\"0\",\"sysFlag\":\"0\",\"bornTimestamp\":\"1\",\
\"flag\":\"0\",\"properties\":\"UNIQ_KEY\\u0001U-$2\\u0002TIMER_DELIVER_MS\\u0001$3\\u0002\"}}" answer
	exec 8<>"/dev/tcp/127.0.0.1/$broker_port"
	{ be32 $((4 + ${#head} + ${#2})); be32 ${#head}; printf %s "$head$2"; } >&8
	read -r -N 20 -t 20 answer <&8 || :
	exec 8>&-
}

in_ms() { echo $(($(date +%s%3N) + $1)); }
listed() { [ "$(mq-admin timers list "${@:2}" | wc -l)" = "$1" ]; }

@test "timers list, show and cancel on a broker, and the cancelled one does not come" {
	start_cluster
	local soon far; soon=$(in_ms 4000) far=$(in_ms 7200000)
	send_for T keep "$soon"
	send_for T drop "$soon"
	send_for Other far "$far"
	until_true listed 3
	run -0 mq-admin -o json timers list
	assert_equal "$(jq -rc '[.[] | .key] | sort' <<<"$output")" '["U-drop","U-far","U-keep"]'
	assert_equal "$(jq -r '.[-1] | "\(.key) \(.topic) \(.queue) \(.bytes) \(.broker) \(.state)"' <<<"$output")" 'U-far Other 0 3 b waits'
	assert_equal "$(jq -r '.[-1].due' <<<"$output")" $(((far - 1) / 1000 * 1000))
	run -0 mq-admin timers list -t Other
	assert_output --partial U-far
	refute_output --partial U-keep
	run -0 mq-admin timers list -m 2
	assert_equal "${#lines[@]}" 2
	run -0 mq-admin -o json timers show -k U-far
	assert_equal "$(jq -r '.body' <<<"$output")" far
	run -0 mq-admin timers cancel -k U-drop --dry-run
	assert_output --partial U-drop
	run -0 mq-admin timers cancel -k U-drop
	assert_output --partial U-drop
	run -0 mq-admin -o json timers list -k U-drop
	assert_equal "$(jq -r '.[0].state' <<<"$output")" cancelled
	run -1 mq-admin timers cancel -k U-drop
	assert_output --partial 'cancelled before'
	run -0 mq-admin timers cancel -k U-far -b "127.0.0.1:$broker_port"
	until_true holds T 1
	until_true listed 1
	run -0 mq-recv -e -f '%s\n' T
	assert_output keep
}

@test "timers list and show in a directory, timers cancel not there" {
	start_cluster
	send_for T one "$(in_ms 7200000)"
	send_for T two "$(in_ms 7300000)"
	until_true listed 2
	stop_broker
	run -0 mq-admin -n "store:$PWD/store" -o json timers list
	assert_equal "$(jq -rc '[.[] | .key]' <<<"$output")" '["U-one","U-two"]'
	run -0 mq-admin -n "store:$PWD/store" -o json timers show -k U-two
	assert_equal "$(jq -r '.body' <<<"$output")" two
	run -1 mq-admin -n "store:$PWD/store" timers show -k U-three
	run -2 mq-admin -n "store:$PWD/store" timers cancel -k U-two
}

@test "timers: a name that no message has, and words that are none of its commands" {
	start_cluster
	run -1 mq-admin timers cancel -k nothing
	assert_output --partial "no message 'nothing' waits"
	run -1 mq-admin timers show -k nothing
	run -0 mq-admin timers list
	assert_output ""
	run -2 mq-admin timers forget -k x
	run -2 mq-admin timers cancel
}
