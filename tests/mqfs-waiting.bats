#!/usr/bin/env bats
# mqfs: what waits for its time, and what was given up.

setup() {
	load helpers
	load mqfs
	mqfs_setup
	start_cluster
	mount_mqfs
}

teardown() {
	mqfs_teardown
}

@test "delayed messages are links by the time when they are due, until they are" {
	echo later | mq-send -d level:15 T
	echo sooner | mq-send -d level:14 T
	shown() { [ "$(ls "$M/delayed" | wc -l)" = 2 ]; }
	until_true shown
	run -0 cat "$M"/delayed/*
	assert_output "soonerlater"
	due=$(ls "$M/delayed" | head -n 1)
	left=$(($(date -d "${due%%_*}" +%s) - $(date +%s)))
	[ $left -ge 500 ] && [ $left -le 601 ]
	run -2 ls -d "$M/delayed/${due}9"
	echo now | mq-send -d level:1 T
	arrived() { grep -qr now "$M/topics/T/queues"; }
	until_true arrived
	until_true shown
}

@test "messages for a given time are files by the time when they are due, until they are" {
	echo later | mq-send -d 90s T
	printf soon | mq-send -d 10s T
	shown() { [ "$(ls "$M/delayed" | wc -l)" = "$1" ]; }
	until_true shown 2
	run -0 cat "$M"/delayed/*
	assert_output "soonlater"
	due=$(ls "$M/delayed" | tail -n 1)
	left=$(($(date -d "${due%%_*}" +%s) - $(date +%s)))
	[ $left -ge 60 ] && [ $left -le 91 ]
	[ -f "$M/delayed/$due" ]
	assert_equal "$(stat -c %s "$M/delayed/$due")" 5
	run -2 ls "$M/delayed/${due}0"
	run -2 ls "$M/delayed/2001${due#????}"
	until_true shown 1
	mq-admin timers cancel -k "$(mq-admin -o json timers list | jq -r 'if type == "array" then .[0] else . end | .key')"
	until_true shown 0
}

@test "halves of transactions are there until they are decided" {
	echo half | mq-send -g P --transaction 'sleep 3' T 3>&- &
	pids+=($!)
	shown() { [ "$(cat "$M"/transactions/*)" = half ]; }
	until_true shown
	decided() { [ -z "$(ls "$M/transactions")" ]; }
	until_true decided
}

@test "dead letters are found by group" {
	mq-admin updateTopic -c DefaultCluster -t %DLQ%G -r 1 -w 1
	echo dead | mq-send %DLQ%G
	run -0 ls "$M/dlq"
	assert_output G
	run -0 cat "$M/dlq/G/queues/b:0/messages/0"
	assert_output dead
	run -2 ls "$M/dlq/other"
}
