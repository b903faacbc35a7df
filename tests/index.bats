#!/usr/bin/env bats
# Finding messages again by key and by id: keys whose hashes collide, several keys, ids that are there twice, clocks that differ.

setup() {
	load helpers
	mq_setup
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t T -r 2 -w 2 >/dev/null
}

teardown() {
	mq_teardown
}

found() { # found KEY [OPTION...]: queue and offset of each, as printed
	local key=$1; shift
	mq-admin -o tsv queryMsgByKey -t T -k "$key" "$@"
}

# A message with properties of the test's own, ids too, as a foreign client would send it.
foreign() { # foreign QUEUE BODY PROPERTY=VALUE...
	python3 - "$NAMESRV_ADDR" "127.0.0.1:$broker_port" "$@" <<-'PYTHON'
		import os, sys
		sys.path.insert(0, os.path.join(os.environ["HERE"], "tests", "lib"))
		import replay
		state = replay.State(sys.argv[1], sys.argv[2])
		state.send("T", int(sys.argv[3]), sys.argv[4].encode(), "".join("%s\x01%s\x02" % tuple(p.split("=", 1)) for p in sys.argv[5:]))
	PYTHON
}

@test "a key finds its messages and not those of another key with its hash" {
	mq-send -k Aa T <<<one
	mq-send -k BB T <<<two
	mq-send -k ajvakuzm T <<<smallest # the hash of T#ajvakuzm is the smallest integer
	for key in Aa BB ajvakuzm; do
		run -0 found $key
		[ "${#lines[@]}" = 1 ]
	done
	run -1 found C#
}

@test "each of several keys finds the message, also after a restart; of many the newest come" {
	mq-send -k 'k1 k2 k3' T <<<three
	seq 100 | sed 's/^/all /' | mq-send -K ' ' T
	stop_broker
	start_broker
	for key in k1 k2 k3; do
		run -0 found $key
		[ "${#lines[@]}" = 1 ]
	done
	run -0 --separate-stderr found all -c 10
	[ "${#lines[@]}" = 10 ]
	echo "$output" >rows; echo "$stderr" >note
	# None of those that were left out is newer.
	mq-recv -e -o begin -f '%i %b\n' T | grep -F -f <(grep -oE '[0-9A-F]{32}' rows) >chosen
	[ "$(wc -l <chosen)" = 10 ]
	cat rows note chosen
	[ "$(cut -d' ' -f2 chosen | while read -r b; do base64 -d <<<"$b"; echo; done | sort -n | head -n 1)" = 91 ]
}

@test "an id that is there twice is shown twice" {
	export HERE=$src
	id=C0A80001000018B4AAC200000000002A
	foreign 0 first UNIQ_KEY=$id WAIT=true
	foreign 1 second UNIQ_KEY=$id WAIT=true
	run -0 mq-admin -o json queryMsgByUniqueKey -t T -i $id -a
	[ "$(grep -o "\"queueId\": *[01]" <<<"$output" | sort -u | wc -l)" = 2 ]
}

@test "an id finds its message whatever the clock of the sender said" {
	export HERE=$src
	for id in 0100007F0000000000007FFFFFFF0001 0100007F000000000000000000000002 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF; do
		foreign 0 "of $id" UNIQ_KEY=$id KEYS=k$id WAIT=true
		run -0 mq-admin queryMsgByUniqueKey -t T -i $id
		run -0 found "k$id"
	done
	# From the time of storing on, to the millisecond, though entries know seconds.
	at=$(mq-recv -e -o begin -f '%d\n' T | tail -n 1)
	[ -n "$at" ]
	run -0 found kFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF -b "$(($(date +%s%3N) - 60000))" -e "$(($(date +%s%3N) + 1000))"
	[ "${#lines[@]}" = 1 ]
}

@test "times that end before they begin are wrong usage, and nobody is asked" {
	stop_broker
	run -2 found k -b 200 -e 100
	run -2 found k -b 100 -e 100
	run -2 found k -b tomorrow
}
