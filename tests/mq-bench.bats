#!/usr/bin/env bats
# mq-bench: against its own server that does nothing, against mq-broker, and against nobody.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	src=${MQ_SRC:-$BATS_TEST_DIRNAME/..}
	unset NAMESRV_ADDR
}

teardown() {
	[ -z "${broker:-}" ] || { kill "$broker"; wait "$broker" || :; }
}

# A broker on a free port: $broker, $port.
start_broker() {
	mkfifo "$BATS_TEST_TMPDIR/ready"
	mq-broker -p listenPort=0 -p brokerIP1=127.0.0.1 -p namesrvAddr= -p storePathRootDir="$BATS_TEST_TMPDIR/store" \
		-p mappedFileSizeCommitLog=16777216 "$@" --ready-fd 4 4>"$BATS_TEST_TMPDIR/ready" 2>"$BATS_TEST_TMPDIR/broker.log" 3>&- &
	broker=$!
	read -r -t 20 port <"$BATS_TEST_TMPDIR/ready"
}

# value NAME: from the JSON of $output
value() {
	python3 -c 'import json, sys; v = json.loads(sys.argv[1])[sys.argv[2]]; print(v)' "$output" "$1"
}

@test "each mode runs against the server that does nothing" {
	for mode in send batch consume latency; do
		run -0 mq-bench --limit --seconds 300ms -o json "$mode"
		assert_equal "$(value mode)" "$mode"
		assert_equal "$(value errors)" 0
		[ "$(value messages)" -gt 10 ]
		[ "$(value rate)" -gt 10 ]
	done
}

@test "a count is kept, in whole requests" {
	run -0 mq-bench --limit --count 1000 --conns 3 --in-flight 7 -o json send
	assert_equal "$(value messages)" 1000
	run -0 mq-bench --limit --count 5 --conns 3 --in-flight 7 -o json send
	assert_equal "$(value messages)" 5
	run -0 mq-bench --limit --count 1000 --batch 32 -o json batch
	assert_equal "$(value messages)" 1024
}

@test "a rate is kept, and is not for reading" {
	run -0 mq-bench --limit --rate 2000 --seconds 1 --in-flight 8 -o json send
	[ "$(value messages)" -ge 1500 ] && [ "$(value messages)" -le 2100 ]
	run -0 mq-bench --limit --rate 10000 --count 640 -o json batch
	assert_equal "$(value messages)" 640
	run -2 mq-bench --limit --rate 10 consume
	assert_output --partial "--rate goes with send and batch"
}

@test "TSV is one line with as many cells as JSON has members" {
	run -0 mq-bench --limit --count 1 -o json send
	members=$(python3 -c 'import json, sys; print(len(json.loads(sys.argv[1])))' "$output")
	run -0 mq-bench --limit --count 1 send
	assert_equal "${#lines[@]}" 1
	assert_equal "$(tr -cd '\t' <<<"$output" | wc -c)" $((members - 1))
}

@test "what was sent to a broker is what is read from it" {
	start_broker
	run -0 mq-bench --broker "127.0.0.1:$port" --pid "$broker" --count 5000 --size 1000 -o json send
	assert_equal "$(value messages)" 5000
	[ "$(value anon_kib)" -gt 100 ]
	run -0 mq-bench --broker "127.0.0.1:$port" --count 3200 --size 50 -o json batch
	assert_equal "$(value messages)" 3200
	run -0 mq-bench --broker "127.0.0.1:$port" -o json consume
	assert_equal "$(value messages)" 8200
	run -0 mq-bench --broker "127.0.0.1:$port" --conns 3 --seconds 500ms -o json consume
	[ "$(value messages)" -gt 8200 ]
	run -0 mq-bench --broker "127.0.0.1:$port" -t quick --count 20 -o json latency
	assert_equal "$(value messages)" 20
	[ "$(value p50_us)" -lt 100000 ]
}

@test "a refusal is told and is the exit status" {
	start_broker -p autoCreateTopicEnable=false
	run --separate-stderr -4 mq-bench --broker "127.0.0.1:$port" -t nobody-made-it --seconds 200ms -o json send
	assert_equal "$(value messages)" 0
	[ "$(value errors)" -gt 0 ]
	[[ $stderr == *TOPIC_NOT_EXIST* ]]
}

@test "a topic without messages is exit 1" {
	start_broker
	mq-bench --broker "127.0.0.1:$port" --count 1 send
	run -1 --separate-stderr mq-bench --broker "127.0.0.1:$port" -t other consume
	assert_equal "$stderr" "mq-bench: topic 'other' holds no message"
}

@test "nobody there is exit 3" {
	run -3 --separate-stderr mq-bench --broker 127.0.0.1:1 --count 1 send
	assert_equal "$stderr" "mq-bench: 127.0.0.1:1: Connection refused"
}

@test "a broker that goes away ends the run" {
	start_broker
	mq-bench --broker "127.0.0.1:$port" --seconds 20 send >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	bench=$!
	for ((i = 0; i < 100; i++)); do
		[ -z "$(find "$BATS_TEST_TMPDIR/store/consumequeue" -name 0000\* 2>/dev/null | head -1)" ] || break
		sleep 0.05
	done
	kill -9 "$broker"
	wait "$broker" || :
	broker=
	status=0
	wait "$bench" || status=$?
	assert_equal "$status" 3
	grep -q "^mq-bench: 127.0.0.1:$port: " "$BATS_TEST_TMPDIR/out"
}

@test "SIGINT ends the measurement and tells what was counted" {
	mq-bench --limit --seconds 60 -o json send >"$BATS_TEST_TMPDIR/out" 3>&- &
	bench=$!
	# It has used a tenth of a second of CPU, so it has counted something.
	for ((i = 0; i < 400; i++)); do
		[ "$(cut -d' ' -f14 "/proc/$bench/stat")" -lt 10 ] || break
		sleep 0.05
	done
	kill -INT "$bench"
	wait "$bench"
	output=$(cat "$BATS_TEST_TMPDIR/out")
	[ "$(value messages)" -gt 0 ]
	python3 -c 'import sys; sys.exit(float(sys.argv[1]) > 25)' "$(value seconds)"
}

@test "wrong usage is exit 2 with a line that says what would be right" {
	wrong() { # WORDS… : the message
		run -2 --separate-stderr mq-bench "${@:1:$#-1}"
		[[ $stderr == *"${!#}"* ]] || { echo "$stderr"; return 1; }
	}
	wrong --limit "what is to be measured?"
	wrong --limit swim "'swim' is none of send, batch, consume, latency"
	wrong send "which server?"
	wrong --limit --broker a:1 send "one of --nameserver, --broker, --limit"
	wrong --limit --size 0 send "--size"
	wrong --limit --in-flight 0 send "--in-flight"
	wrong --limit --size 1M --batch 32 batch "more than a request may hold"
	wrong --broker nowhere send "address 'nowhere' is not host:port"
	wrong --limit -t "a b" send "a b"
	wrong --limit -o xml send "'xml' is none of table, tsv, json"
	wrong --limit --frobnicate send "frobnicate"
}

@test "a full disk is no success" {
	[ -w /dev/full ] || skip "no /dev/full here"
	run -3 --separate-stderr bash -c 'mq-bench --limit --count 1 send >/dev/full'
}

@test "the manual is clean, and its synopsis is that of the help" {
	run -0 mandoc -T lint -W warning "$src/man/mq-bench.1"
	page=$(mandoc -T ascii "$src/man/mq-bench.1" | col -b | sed -n '/^SYNOPSIS/,/^DESCRIPTION/p' | sed '1d;$d' | tr -s ' \n' '  ')
	help=$(mq-bench --help | sed -n '1,/^Measure/p' | sed '$d;s/^usage: //' | tr -s ' \n' '  ')
	assert_equal "$(xargs <<<"$page")" "$(xargs <<<"$help")"
	for option in $(mq-bench --help | grep -oE -- '--[a-z-]+' | sort -u); do
		grep -q -- "Fl -${option#--}" "$src/man/mq-bench.1"
	done
}

@test "the first example of the manual runs" {
	line=$(awk '/^\.Bd -literal/ { getline; print; exit }' "$src/man/mq-bench.1")
	run -0 bash -c "$line"
}
