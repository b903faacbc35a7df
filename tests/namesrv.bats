#!/usr/bin/env bats
# mq-namesrv as a person or a service manager starts it: options, configuration, readiness, signals, size.
# What it answers over the wire is tested in unit/test_namesrv.c.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	src=${MQ_SRC:-$BATS_TEST_DIRNAME/..}
	cd "$BATS_TEST_TMPDIR"
	export HOME=$PWD
	pid=
}

teardown() {
	[ -z "$pid" ] || { kill -9 "$pid"; wait "$pid"; } 2>/dev/null || true
}

# Start a name server on a free port; sets pid and port.
start() { # start [OPTION...]
	mkfifo ready
	mq-namesrv -p listenPort=0 -p bindAddress=127.0.0.1 --ready-fd 3 "$@" 3>ready 2>log &
	pid=$!
	read -r port <ready
	rm ready
}

# Wait until a pattern stands in the log.
logged() { # logged PATTERN
	for _ in $(seq 200); do
		grep -q -- "$1" log && return
		sleep 0.02
	done
	cat log
	return 1
}

ended() { # ended: waits for the process; its status in $ended
	local status=0
	wait "$pid" || status=$?
	ended=$status
	pid=
}

@test "is ready at once, says its port, and ends on SIGTERM at once" {
	start
	[ "$port" -gt 0 ]
	: </dev/tcp/127.0.0.1/"$port"
	local before=${EPOCHREALTIME/./}
	kill -TERM "$pid"
	ended
	assert_equal "$ended" 0
	[ $((${EPOCHREALTIME/./} - before)) -lt 10000000 ]
	run cat log
	assert_output --partial "INFO namesrv serving version="
	assert_output --partial "port=$port"
}

@test "ends on SIGTERM although a client is connected" {
	start
	exec 4<>/dev/tcp/127.0.0.1/"$port"
	local before=${EPOCHREALTIME/./}
	kill -TERM "$pid"
	ended
	exec 4>&-
	assert_equal "$ended" 0
	[ $((${EPOCHREALTIME/./} - before)) -lt 10000000 ]
}

@test "what is no frame ends the connection and nothing else" {
	start
	exec 4<>/dev/tcp/127.0.0.1/"$port"
	printf 'GET / HTTP/1.0\r\n\r\n' >&4
	# The end may come as an end or, when not all of it was read, as a reset.
	run --separate-stderr timeout 5 cat <&4
	[ "$status" -le 1 ]
	assert_output ""
	exec 4>&-
	: </dev/tcp/127.0.0.1/"$port"
	kill -0 "$pid"
}

@test "needs little memory when idle" {
	start
	local kb; kb=$(awk '/^RssAnon/ { print $2 }' /proc/"$pid"/status)
	echo "anonymous memory: $kb KiB"
	grep -q asan "/proc/$pid/maps" && skip "built with a sanitizer"
	[ "$kb" -lt 2048 ]
}

@test "two on one port: the second says so and ends with 3" {
	start
	run -3 mq-namesrv -p listenPort="$port" -p bindAddress=127.0.0.1
	assert_output --partial "$port"
	assert_output --partial "Address already in use"
}

@test "prints its configuration, which can be read again" {
	printf '# mine\norderMessageEnable=true\nscanNotActiveBrokerInterval = 1000\n' >conf
	mq-namesrv -c conf -p listenPort=1234 --print-config >printed
	run -0 cat printed
	assert_line "orderMessageEnable=true"
	assert_line "scanNotActiveBrokerInterval=1000"
	assert_line "listenPort=1234"
	assert_line "kvConfigPath=$HOME/namesrv/kvConfig.json"
	assert_line "configStorePath=conf"
	mq-namesrv -c printed --print-config >again
	diff printed again
}

@test "an option wins over the file" {
	echo listenPort=1 >conf
	run -0 mq-namesrv -p listenPort=2 -c conf --print-config
	assert_line "listenPort=2"
}

@test "an unknown key is named with the nearest known one" {
	echo listenPrt=1 >conf
	run -0 --separate-stderr mq-namesrv -c conf --print-config
	[[ $stderr == *"conf:1: unknown key 'listenPrt', nearest known: 'listenPort'"* ]]
}

@test "a value that cannot be right ends it with 2" {
	echo listenPort=many >conf
	run -2 mq-namesrv -c conf
	assert_output --partial "conf:1: listenPort: 'many' is not a whole number from 0 to 65535"
	run -2 mq-namesrv -p enableTopicList=1
	assert_output --partial "enableTopicList"
	run -2 mq-namesrv -p enableTopicList
	assert_output --partial "is not key=value"
	run -2 mq-namesrv -c nowhere
	assert_output --partial "nowhere"
}

@test "wrong usage" {
	run -2 mq-namesrv --no-such-option
	assert_output --partial "no-such-option"
	run -2 mq-namesrv argument
	assert_output --partial "unexpected argument 'argument'"
	run -2 mq-namesrv -c
	run -0 mq-namesrv --help
	assert_line --index 0 --partial "usage: mq-namesrv"
	run -0 mq-namesrv --version
	assert_output --partial "mq-namesrv"
}

@test "a full disk is an error of --help and --print-config too" {
	for option in --help --version --print-config; do
		run -3 sh -c "mq-namesrv $option >/dev/full"
	done
}

@test "SIGHUP reads the file again" {
	echo logLevel=info >conf
	start -c conf
	echo logLevel=debug >conf
	kill -HUP "$pid"
	logged "configuration read again keys=1"
	echo logLevel=loud >conf
	kill -HUP "$pid"
	logged "ERROR namesrv the configuration stays as it is: conf:1: logLevel: 'loud' is not one of"
	kill -TERM "$pid"
	ended
	assert_equal "$ended" 0
}

@test "SIGUSR1 logs what it holds" {
	start
	kill -USR1 "$pid"
	logged "state topics=0 brokers=0 settings=0"
}

@test "damaged settings are not silently forgotten" {
	mkdir namesrv
	echo '{"configTable":{"N' >namesrv/kvConfig.json
	run -3 mq-namesrv -p listenPort=0
	assert_output --partial "kvConfig.json"
	echo '{"configTable":{"N":{"k":"v"}}}' >namesrv/kvConfig.json.bak
	start
	logged "settings are taken from"
	kill -USR1 "$pid"
	logged "settings=1"
}

@test "the manual of the configuration names each key with its default" {
	# Keys, once with their default and once alone for those without effect.
	mq-namesrv --print-config | sort >all
	sed -nE 's/^\.(It )?Cm ([A-Za-z]+)( .*)?$/\2/p' "$src/man/mq-namesrv.conf.5" | grep -vxE 'error|trace' | sort -u >named
	cut -d= -f1 all | sort -u | diff - named
	sed -nE 's/^\.It Cm ([A-Za-z]+) No = Li ([^ ]+).*$/\1=\2/p' "$src/man/mq-namesrv.conf.5" | sort >defaults
	[ "$(wc -l <defaults)" -gt 10 ]
	run -0 comm -13 all defaults
	assert_output ""
}

@test "the manuals are clean, and the synopsis is that of --help" {
	for page in mq-namesrv.8 mq-namesrv.conf.5; do
		run -0 mandoc -T lint -W warning "$src/man/$page"
		assert_output ""
	done
	for option in $(mq-namesrv --help | grep -oE -- '(^|[ [])--?[a-zA-Z-]+' | sed 's/^[ [-]*//' | sort -u); do
		grep -qE "Fl -?$option( |$)" "$src/man/mq-namesrv.8" || { echo "-$option is not in the manual"; return 1; }
	done
}
