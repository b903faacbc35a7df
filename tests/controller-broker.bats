#!/usr/bin/env bats
# Brokers under a controller as users meet them: who is master, what a kill of it costs, what becomes of the one that comes back.
# The rules are tested in unit/test_role.c and unit/test_ha_switch_role.c; brokers and controllers of Java in peer/controller.

load helpers
load controllers

setup() {
	mq_setup
	controllers_setup
}

teardown() {
	exec 5>&-
	controllers_teardown
	mq_teardown
}

broker() { # broker I [OPTION...]
	local i=$1
	shift
	port[$i]=${port[$i]:-$(free_ports)}
	mq-broker -n "$ns" -p brokerName=a -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 -p listenPort="${port[$i]}" \
		-p storePathRootDir="$PWD/s$i" -p mappedFileSizeCommitLog=1048576 -p mappedFileSizeConsumeQueue=20000 \
		-p enableControllerMode=true -p controllerAddr="$addrs" -p allAckInSyncStateSet=true -p minInSyncReplicas=1 \
		-p syncBrokerMetadataPeriod=1000 -p checkSyncStateSetPeriod=500 "$@" 2>>"log$i" 5>&- &
	pid[$i]=$!
}

sets() { mq-admin -o json getSyncStateSet -a "$addrs" -b a | jq -c '[.[] | select(.inSync and .alive)] | length'; }
in_sync() { [ "$(sets)" = "$1" ] && master >/dev/null; }
master() { # which of ours is master: its number here
	local addr
	addr=$(mq-admin -o json getSyncStateSet -a "$addrs" -b a | jq -r '.[] | select(.master and .alive) | .brokerAddress')
	for k in 1 2 3; do
		[ -z "${port[$k]:-}" ] || [ "$addr" != "127.0.0.1:${port[$k]}" ] || { echo "$k"; return 0; }
	done
	return 1
}
logs_equal() { # logs_equal I...: the same segments, byte for byte, and they follow the same epochs
	local first=$1 i f
	for i; do
		[ "$(ls "s$first/commitlog")" = "$(ls "s$i/commitlog")" ] || return 1
		for f in "s$first"/commitlog/*; do cmp -s "$f" "s$i/commitlog/${f##*/}" || return 1; done
		cmp -s "s$first/epochFileCheckpoint" "s$i/epochFileCheckpoint" || return 1
	done
}
epochs() { tail -n +3 "s$1/epochFileCheckpoint" | tr - ' '; }
mark() { echo "$(date +%s.%N) $*" >>history; }

@test "the first becomes master, others follow it, and what they have is the same" {
	controllers 1
	broker 1
	until_true in_sync 1
	[ "$(cat s1/brokerIdentity)" = 'DefaultCluster#a#1' ]
	broker 2
	broker 3
	until_true in_sync 3
	run -0 mq-send -n "$ns" t <<<$'one\ntwo\nthree'
	until_true logs_equal 1 2 3
	run -0 mq-recv -n "$ns" --end t
	assert_equal "$(sort <<<"$output")" $'one\nthree\ntwo'
	run -0 mq-admin -n "$ns" -o json getBrokerEpoch -b a
	assert_equal "$(jq -c '[.[] | [.epoch, .startOffset]] | unique' <<<"$output")" '[[1,0]]'
	run -0 mq-admin -n "$ns" -o json clusterList
	assert_equal "$(jq -r '.[] | select(.brokerId == 0) | .brokerAddr // .addr' <<<"$output")" "127.0.0.1:${port[1]}"
	# In order: it leaves, another one goes on, and it comes back as a slave with the number it has.
	kill -TERM "${pid[1]}"
	wait "${pid[1]}"
	# A send meanwhile waits for the new master.
	run -0 mq-send -n "$ns" --timeout 1m t <<<four
	broker 1
	until_true in_sync 3
	until_true logs_equal 1 2 3
	[ "$(cat s1/brokerIdentity)" = 'DefaultCluster#a#1' ]
	[ "$(epochs 1 | cut -d' ' -f1 | tr '\n' ' ')" = '1 2 ' ]
}

# Each round: the master dies under load, another one takes over, the dead one comes back.
rounds() { # rounds N CONTROLLERS
	controllers "$2"
	for i in 1 2 3; do broker $i; done
	until_true in_sync 3
	mkfifo go
	python3 "$src/tests/lib/history.py" load "$ns" t 8 history <go & pid[load]=$!
	exec 5>go
	for n in $(seq "$1"); do
		until_true eval '[ "$(grep -c " ack " history)" -gt $((n * 50)) ]'
		until_true in_sync 3
		m=$(master)
		mark kill "$m"
		kill -9 "${pid[$m]}"
		wait "${pid[$m]}" || true
		until_true eval '! [ "$(master)" = "$m" ] && master'
		acks=$(grep -c ' ack ' history)
		until_true eval '[ "$(grep -c " ack " history)" -gt $((acks + 20)) ]'
		broker "$m"
	done
	until_true in_sync 3
	exec 5>&-
	wait "${pid[load]}"
	until_true logs_equal 1 2 3
	mq-recv -n "$ns" --end t >received
	epochs 1 >epochs
	run -0 python3 "$src/tests/lib/history.py" check history received epochs
	assert_line 'lost 0, contradictions 0'
	echo "# $(grep resumed <<<"$output")" >&3
}

@test "a master is killed again and again: nothing acknowledged is lost, sends go on" {
	rounds 3 1
}

@test "the same with three controllers" {
	rounds 2 3
}

@test "a master that is cut off acknowledges nothing, and gives up what only it has" {
	controllers 1
	for i in 1 2 3; do broker $i; done
	until_true in_sync 3
	mq-send -n "$ns" t <<<before
	m=$(master)
	# It does not move while another one is elected; then it has a message that nobody else has.
	kill -STOP "${pid[$m]}"
	mq-send -n "$ns" --timeout 1s -q "a:0" t <<<late 2>/dev/null || true
	until_true eval '! [ "$(master)" = "$m" ] && master'
	until_true eval 'mq-send -n "$ns" t <<<after'
	kill -CONT "${pid[$m]}"
	until_true in_sync 3
	until_true logs_equal 1 2 3
	run -0 mq-recv -n "$ns" --end t
	assert_line before
	assert_line after
	run -0 mq-admin -n "$ns" -o json getBrokerEpoch -b a
	assert_equal "$(jq -c '[.[] | .epoch] | unique' <<<"$output")" '[1,2]'
}

@test "under a controller too only who proves the secret follows" {
	(umask 077; for f in one two; do head -c 32 /dev/urandom | base64 >$f; done)
	controllers 1
	broker 1 -p haSecretFile="$PWD/one"
	until_true in_sync 1
	broker 2 -p haSecretFile="$PWD/one"
	until_true in_sync 2
	broker 3 -p haSecretFile="$PWD/two"
	until_true grep -q 'slave turned away .*its proof of the secret is wrong' log1
	kill -9 "${pid[3]}"
	wait "${pid[3]}" 2>/dev/null || true
	broker 3
	until_true grep -q 'slave turned away .*only a broker of ours with the same secret may follow' log1
	until_true grep -q 'not following the master .*the master wants a proof of a secret' log3
	run -0 mq-send -n "$ns" t <<<one
	assert_equal "$(sets)" 2
	assert_equal "$(cat s3/commitlog/* 2>/dev/null | tr -d '\0' | wc -c)" 0
	# The other one is master, with the same secret, and the first one comes back.
	kill -9 "${pid[1]}"
	wait "${pid[1]}" 2>/dev/null || true
	until_true eval '[ "$(master)" = 2 ]'
	broker 1 -p haSecretFile="$PWD/one"
	until_true in_sync 2
	run -0 mq-send -n "$ns" t <<<two
	until_true logs_equal 1 2
}

@test "a configuration that cannot be right is refused with its name" {
	run -2 mq-broker -p listenPort=0 -p enableControllerMode=true -p storePathRootDir="$PWD/s"
	assert_output --partial 'controllerAddr is empty'
	run -2 mq-broker -p listenPort=0 -p enableControllerMode=true -p controllerAddr=nowhere -p storePathRootDir="$PWD/s"
	assert_output --partial "controllerAddr 'nowhere'"
	mkdir s
	echo 'DefaultCluster#b#3' >s/brokerIdentity
	run -2 mq-broker -p listenPort=0 -p brokerName=a -p enableControllerMode=true -p controllerAddr=127.0.0.1:1 \
		-p storePathRootDir="$PWD/s"
	assert_output --partial "belongs to broker 'b'"
}
