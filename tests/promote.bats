#!/usr/bin/env bats
# Two brokers and no quorum: `mq-admin promote` makes the slave the master, and the old master finds that out before it serves again.

load helpers

# Ports with free neighbours, out of the range from which connections take theirs: a slave's replication port is free until it is master.
setup() {
	mq_setup
	m_port=$(free_ports)
	s_port=$m_port
	while [ $((s_port - m_port)) -lt 8 ] && [ $((m_port - s_port)) -lt 8 ]; do s_port=$(free_ports); done
	start_namesrv
}
teardown() { mq_teardown; }

# up NAME: the broker whose configuration is NAME.conf, with its store in ./NAME; sets NAME_pid, NAME_port; later starts take the same ports.
up() {
	local name=$1 port=$1_port
	mkfifo "$name.ready"
	mq-broker -c "$PWD/$name.conf" -n "$NAMESRV_ADDR" -p listenPort="${!port:-$(free_ports)}" -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 \
		-p brokerName=b -p storePathRootDir="$PWD/$name" -p mappedFileSizeCommitLog=1048576 \
		--ready-fd 9 9>"$name.ready" 2>>"$name.log" 3>&- </dev/null >/dev/null &
	printf -v "${name}_pid" %s $!
	echo $! >"$name.pid"
	pids+=($!)
	read -r -t 60 "${name}_port" <"$name.ready"
	rm "$name.ready"
}

known() { mq-admin clusterList | grep -q "127.0.0.1:$1"; }
log_end() { mq-admin brokerStatus -b "127.0.0.1:$1" | awk -F'\t' '$1 == "commitLogMaxOffset" { print $2 }'; }
level() { [ "$(log_end "$m_port")" = "$(log_end "$s_port")" ]; }
follows() { mq-admin -o json haStatus -b "127.0.0.1:$s_port" | grep -q '"activated": *true'; }

pair() { # a master and a slave that has everything
	printf 'brokerRole=ASYNC_MASTER\nbrokerId=0\nmasterFence=true\n' >m.conf
	printf 'brokerRole=SLAVE\nbrokerId=1\nmasterFence=true\n' >s.conf
	up m
	until_true known "$m_port"
	seq 100 | mq-send numbers
	up s
	until_true known "$s_port"
	until_true follows
	until_true level
}

# What restarts the slave, as an init system would.
restarter() {
	cat >restart <<-END
		#!/bin/sh
		kill \$(cat $PWD/s.pid)
		while kill -0 \$(cat $PWD/s.pid) 2>/dev/null && ! grep -q '^State:.Z' /proc/\$(cat $PWD/s.pid)/status; do sleep 0.05; done
		( for try in \$(seq 20); do
		mq-broker -c $PWD/s.conf -n $NAMESRV_ADDR -p listenPort=$s_port -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 \\
			-p brokerName=b -p storePathRootDir=$PWD/s -p mappedFileSizeCommitLog=1048576 2>>$PWD/s.log </dev/null >/dev/null &
		echo \$! >$PWD/s.pid
		wait \$! && break
		sleep 0.5
		done ) >/dev/null 2>&1 &
	END
	chmod +x restart
}

stop_restarted() { kill "$(cat s.pid)" 2>/dev/null || :; }

kill_master() {
	kill -9 "$m_pid"
	wait "$m_pid" 2>/dev/null || :
}

unfollowed() { ! follows; }

received() { mq-recv -e --timeout 20s numbers 2>/dev/null | sort -n; }

@test "a slave takes the place of a dead master, which finds that out when it comes back" {
	pair
	restarter
	kill_master
	until_true unfollowed
	run mq-admin promote -b "127.0.0.1:$s_port" --restart ./restart 3>&-
	assert_success
	assert_output --partial "127.0.0.1:$s_port is master of b"
	until_true known "$s_port"
	seq 101 200 | mq-send numbers
	up m
	until_true grep -q "another broker was made master" m.log
	run mq-send numbers <<<"after"
	assert_success
	[ "$(log_end "$m_port")" -lt "$(log_end "$s_port")" ]
	run mq-admin clusterList
	refute_output --partial "127.0.0.1:$m_port"
	# A second call changes nothing.
	run mq-admin promote -b "127.0.0.1:$s_port"
	assert_success
	assert_output --partial "already"
	# As a slave it is welcome.
	kill "$m_pid"
	wait "$m_pid" 2>/dev/null || :
	printf 'brokerRole=SLAVE\nbrokerId=2\n' >m.conf
	up m
	until_true level
	stop_restarted
}

@test "a master that lives is not replaced without --force; with it nothing is lost" {
	pair
	restarter
	run mq-admin promote -b "127.0.0.1:$s_port" --restart ./restart
	assert_failure 4
	assert_output --partial "lives"
	grep -q brokerRole=SLAVE s.conf
	run mq-admin promote -b "127.0.0.1:$s_port" --force --dry-run
	assert_success
	grep -q brokerRole=SLAVE s.conf
	seq 101 300 | mq-send numbers
	run mq-admin promote -b "127.0.0.1:$s_port" --force --restart ./restart 3>&-
	assert_success
	grep -q brokerPermission=4 m.conf
	grep -q brokerRole=ASYNC_MASTER s.conf
	until_true level
	stop_restarted
}

@test "nothing is promoted when the old master cannot be fenced" {
	pair
	kill_master
	until_true unfollowed
	run mq-admin promote -b "127.0.0.1:$s_port" --fence 'echo "$MQ_BROKER_NAME" >fenced; exit 7'
	assert_failure 3
	assert_output --partial "ended with 7; nothing was promoted"
	[ "$(cat fenced)" = b ]
	grep -q brokerRole=SLAVE s.conf
}

@test "a master with masterFence takes nothing before a name server has answered" {
	printf 'brokerRole=ASYNC_MASTER\nbrokerId=0\nmasterFence=true\n' >m.conf
	up m
	until_true known "$m_port"
	kill "$m_pid"
	wait "$m_pid" 2>/dev/null || :
	NAMESRV_ADDR=127.0.0.1:1 up m
	run mq-send -b "127.0.0.1:$m_port" numbers <<<"x"
	assert_failure
	kill "$m_pid"
}
