#!/usr/bin/env bats
# What the Java servers answered to real clients, ours answer too: each captured request is asked again, in a state that is like the
# one it was asked in.  What may differ stands in tests/lib/replay.py, request by request.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

@test "every captured request is answered as the Java servers answered it" {
	start_namesrv
	# The broker of the captures is registered by the replay, at a name server of its own.
	mkfifo broker.ready ns2.ready
	mq-namesrv -p listenPort=0 -p bindAddress=127.0.0.1 -p kvConfigPath="$PWD/kv2.json" --ready-fd 9 9>ns2.ready 2>ns2.log 3>&- \
		</dev/null >/dev/null &
	pids+=($!)
	read -r -t 60 ns2_port <ns2.ready
	mq-broker -n "127.0.0.1:$ns2_port" -p listenPort=0 -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 -p brokerName=broker-a \
		-p storePathRootDir="$PWD/store" -p mappedFileSizeCommitLog=16777216 -p longPollingEnable=false -p shortPollingTimeMills=1 \
		-p enablePropertyFilter=true -p traceTopicEnable=true -p maxHashSlotNum=5000 -p maxIndexNum=20000 \
		--ready-fd 9 9>broker.ready 2>broker.log 3>&- </dev/null >/dev/null &
	pids+=($!)
	read -r -t 60 broker_port <broker.ready
	mkdir wire
	tar --zstd -xf "$src/tests/golden/wire/exchanges.tar.zst" -C wire
	timeout 300 python3 "$src/tests/lib/replay.py" "$NAMESRV_ADDR" "127.0.0.1:$broker_port" wire/* >said || :
	grep -A3 '^not ok' said && false
	[ "$(grep -c '^ok' said)" -ge 327 ]
	[ "$(grep -c '^skip' said)" -le 36 ]
	kill -0 "${pids[1]}" "${pids[2]}"
}
