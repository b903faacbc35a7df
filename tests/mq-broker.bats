#!/usr/bin/env bats
# mq-broker as a program: options, readiness, signals, its lock, its name servers, embedded.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	src=${MQ_SRC:-$BATS_TEST_DIRNAME/..}
	dir=$BATS_TEST_TMPDIR
	unset NAMESRV_ADDR
	export HOME=$dir XDG_CONFIG_HOME=$dir/config XDG_DATA_HOME=$dir/data
	pids=()
}

teardown() {
	for p in ${pids[@]+"${pids[@]}"}; do
		kill "$p" 2>/dev/null || continue
		wait "$p" || :
	done
}

# start NAME COMMAND...: in the background until it is ready; sets $pid and $port; its log is $dir/NAME.log
start() {
	local name=$1; shift
	rm -f "$dir/$name.ready"
	mkfifo "$dir/$name.ready"
	"$@" --ready-fd 4 4>"$dir/$name.ready" 2>>"$dir/$name.log" 3>&- &
	pid=$!
	pids+=("$pid")
	read -r -t 20 port <"$dir/$name.ready" || { cat "$dir/$name.log" >&2; return 1; }
}

start_broker() { # start_broker [OPTION...]
	start broker mq-broker -p listenPort=0 -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 -p brokerName=b -p brokerClusterName=C \
		-p storePathRootDir="$dir/store" -p mappedFileSizeCommitLog=1048576 -p diskSpaceWarningLevelRatio=100 "$@"
}

start_namesrv() {
	start namesrv mq-namesrv -p listenPort=0 -p bindAddress=127.0.0.1 -p kvConfigPath="$dir/kv.json"
	ns=127.0.0.1:$port
}

# ends PID: wait for its end, at most 5 s; sets $status
ends() {
	for _ in $(seq 500); do
		[ -e "/proc/$1" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null || break
		sleep 0.01
	done
	status=0
	wait "$1" || status=$?
}

log_has() { # log_has NAME PATTERN: within 5 s
	for _ in $(seq 500); do
		grep -q -- "$2" "$dir/$1.log" && return
		sleep 0.01
	done
	cat "$dir/$1.log" >&2
	return 1
}

@test "help goes to stdout, wrong usage to stderr with status 2" {
	run -0 --separate-stderr mq-broker --help
	assert_line --index 0 --partial 'usage: mq-broker'
	assert_equal "$stderr" ''
	run -2 --separate-stderr mq-broker --no-such
	assert_equal "$output" ''
	[[ $stderr == mq-broker:* ]]
	run -2 mq-broker surplus
	assert_output --partial "unexpected argument 'surplus'"
}

@test "a configuration that cannot be right ends it with status 2 and says why" {
	run -2 mq-broker -p maxMessageSize=lots
	assert_output --partial maxMessageSize
	run -2 mq-broker -p listenPort=70000
	assert_output --partial listenPort
	run -2 mq-broker -p brokerRole=SLAVE
	assert_output --partial 'brokerId 0'
	run -2 mq-broker -p aclEnable=true
	assert_output --partial 'aclEnable'
	for pair in useTLS=true enableDLegerCommitLog=true storeType=defaultRocksDB readOnlyCommitLogStorePaths=/a \
	            storePathCommitLog=/a,/b; do
		run -2 mq-broker -p $pair
		assert_output --partial "${pair%%=*}"
	done
	run -2 mq-broker -p 'brokerName=a b'
	assert_output --partial "brokerName 'a b'"
	run -2 mq-broker -n 'nowhere'
	assert_output --partial "namesrvAddr 'nowhere'"
	run -2 mq-broker -c "$dir/absent.conf"
	assert_output --partial "$dir/absent.conf"
}

@test "an unknown key is a warning that names the nearest known one; one without effect is told, unless it is the default" {
	printf 'flushDiskTyp=SYNC_FLUSH\nsendMessageThreadPoolNums=4\nenableLmq=false\nstoreType=default\n' >"$dir/broker.conf"
	run -0 --separate-stderr mq-broker -c "$dir/broker.conf" --print-config
	[[ $stderr == *flushDiskTyp*flushDiskType* ]]
	[[ $stderr == *'without effect here: sendMessageThreadPoolNums=4'* ]]
	[[ $stderr != *enableLmq* && $stderr != *storeType* ]]
	assert_line sendMessageThreadPoolNums=4
}

@test "the printed configuration can be read back" {
	mq-broker -p maxStoreBytes=5G -p brokerName=x -p deleteWhen='04;16' --print-config >"$dir/a.conf"
	mq-broker -c "$dir/a.conf" --print-config >"$dir/b.conf"
	run -0 diff "$dir/a.conf" "$dir/b.conf"
	grep -q '^maxStoreBytes=5368709120$' "$dir/a.conf"
}

@test "the manual has the defaults that the program has" {
	mq-broker --print-config >"$dir/default.conf"
	sed -n 's/^\.It Cm \([A-Za-z0-9]*\) No = Li \([^ ]*\).*/\1=\2/p' "$src/man/mq-broker.conf.5" | grep -v '"' >"$dir/manual"
	[ "$(wc -l <"$dir/manual")" -gt 50 ]
	while read -r line; do
		case $line in
		haListenPort=*) ;; # depends on listenPort
		*) grep -qxF -- "$line" "$dir/default.conf" || fail "the manual says $line" ;;
		esac
	done <"$dir/manual"
}

@test "it starts in less than 50 ms, idles in less than 8 MB, ends in less than a second" {
	local before after
	mq-broker --version >/dev/null # the file is in memory
	before=$(date +%s%N)
	start_broker
	after=$(date +%s%N)
	[ -n "${ASAN_OPTIONS##*detect_leaks=1*}" ] || [ $(((after - before) / 1000000)) -lt 500 ] # the machine may be busy
	if ! ldd "$(command -v mq-broker)" | grep -q libasan; then
		[ "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" -lt 8192 ]
	fi
	before=$(date +%s%N)
	kill "$pid"
	ends "$pid"
	after=$(date +%s%N)
	assert_equal "$status" 0
	[ $(((after - before) / 1000000)) -lt 1000 ]
	[ ! -e "$dir/store/abort" ]
}

@test "a second broker on one store is refused, and the first goes on" {
	start_broker
	first=$pid
	run -3 mq-broker -p listenPort=0 -p bindAddress=127.0.0.1 -p storePathRootDir="$dir/store"
	assert_output --partial "store '$dir/store' is in use by another broker"
	kill -0 "$first"
	mq-bench --broker "127.0.0.1:$port" --count 10 send >/dev/null
}

@test "a port that is taken is said, and nothing is left behind" {
	start_broker
	run -3 mq-broker -p listenPort="$port" -p bindAddress=127.0.0.1 -p storePathRootDir="$dir/store2"
	assert_output --partial "listenPort $port"
	[ ! -e "$dir/store2/abort" ]
}

@test "SIGHUP takes what may change and says what needs a new start" {
	printf 'brokerPermission=6\nfileReservedTime=72\nbrokerName=b\n' >"$dir/broker.conf"
	start_broker -c "$dir/broker.conf"
	printf 'brokerPermission=4\nfileReservedTime=24\nmaxMessageSize=1024\n' >"$dir/broker.conf"
	kill -HUP "$pid"
	log_has broker 'configuration read again keys=2'
	log_has broker 'needs a new start: maxMessageSize=1024'
	echo 'brokerPermission=lots' >"$dir/broker.conf"
	kill -HUP "$pid"
	log_has broker 'the configuration stays as it is'
	kill -0 "$pid"
}

@test "SIGUSR1 logs every counter" {
	start_broker
	mq-bench --broker "127.0.0.1:$port" --count 10 send >/dev/null
	kill -USR1 "$pid"
	log_has broker 'conns_opened='
	log_has broker 'messages_in=10$'
	log_has broker 'busy_answers=0$'
}

@test "it is known to the name server while it runs" {
	start_namesrv
	start_broker -n "$ns"
	log_has broker registered
	run -0 mq-admin clusterList -n "$ns"
	assert_output --partial "127.0.0.1:$port"
	kill "$pid"
	ends "$pid"
	run mq-admin clusterList -n "$ns"
	refute_output --partial "127.0.0.1:$port"
}

@test "a name server that comes later, or again, is told within seconds" {
	start_namesrv
	kill "$pid"
	ends "$pid"
	start_broker -n "$ns"
	log_has broker 'name server\|register'
	brport=$port
	start namesrv mq-namesrv -p listenPort="${ns#*:}" -p bindAddress=127.0.0.1 -p kvConfigPath="$dir/kv.json"
	log_has broker 'registered name=b'
	run -0 mq-admin clusterList -n "$ns"
	assert_output --partial "127.0.0.1:$brport"
}

@test "an http address server tells where the name servers are" {
	start_namesrv
	mkfifo "$dir/http.ready"
	# Answers every request with the list; bash has no listener of its own.
	perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", LocalPort => 0, ReuseAddr => 1) or die;
		open my $r, ">", $ARGV[1]; print $r $s->sockport, "\n"; close $r;
		while (my $c = $s->accept) {
			while (<$c>) { last if /^\r?\n$/ }
			print $c "HTTP/1.0 200 OK\r\n\r\n$ARGV[0]\n"; close $c;
		}' "$ns" "$dir/http.ready" 3>&- &
	pids+=($!)
	read -r -t 10 httpport <"$dir/http.ready"
	start_broker -p fetchNamesrvAddrByAddressServer=true -p rmqAddressServerDomain="127.0.0.1:$httpport" -p logLevel=info
	log_has broker "registered name=b .*at=$ns"
}

@test "embedded: one socket for its owner alone, and it leaves when nobody is there" {
	mq-broker --embedded "$dir/home/q" --idle-exit 1 2>"$dir/broker.log" 3>&- &
	pid=$!
	pids+=("$pid")
	for _ in $(seq 500); do [ -S "$dir/home/q/mq.sock" ] && break; sleep 0.01; done
	assert_equal "$(stat -c %a "$dir/home/q/mq.sock")" 600
	mq-bench --broker "unix:$dir/home/q/mq.sock" --count 100 send >/dev/null
	ends "$pid"
	assert_equal "$status" 0
	[ ! -e "$dir/home/q/mq.sock" ]
	[ ! -e "$dir/home/q/abort" ]
	[ "$(du -sk "$dir/home/q" | cut -f1)" -lt 65536 ] # with what is reserved ahead
}

@test "embedded: routes and topics without a name server" {
	run -0 mq-admin topicList -n "file:$dir/q"
	assert_line TBW102
	run -0 mq-admin updateTopic -n "file:$dir/q" -c local -t hello -r 2 -w 2
	run -0 mq-admin topicRoute -n "file:$dir/q" -t hello
	assert_output --partial "unix:$dir/q/mq.sock"
	pids+=("$(cat "$dir/q/abort")")
}

@test "embedded: settings that cannot be read end it, and nothing is left listening" {
	mkdir -p "$dir/q/config"
	echo '{' | tee "$dir/q/config/kvConfig.json" >"$dir/q/config/kvConfig.json.bak"
	run -3 timeout 10 mq-broker --embedded "$dir/q"
	assert_output --partial kvConfig.json
	[ ! -e "$dir/q/mq.sock" ]
}
