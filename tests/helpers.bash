# helpers.bash: a fresh home for each test, servers on free ports, and words for what the tests look at.
# load helpers; then mq_setup in setup() and mq_teardown in teardown().

bats_require_minimum_version 1.5.0

# A fresh directory and home; nothing of the user's configuration is seen.  $Q is the embedded queue of this home.
mq_setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	src=${MQ_SRC:-$BATS_TEST_DIRNAME/..}
	. "$src/tests/peer/ports.sh"
	cd "$BATS_TEST_TMPDIR" || return
	export HOME=$PWD XDG_CONFIG_HOME=$PWD/etc XDG_DATA_HOME=$PWD/share
	unset NAMESRV_ADDR
	Q=$XDG_DATA_HOME/mq
	pids=()
}

mq_teardown() {
	stop_embedded "$Q"
	for pid in "${pids[@]}"; do
		kill -9 "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	return 0
}

# The broker that a tool has started for DIR ends now, not half a minute later.
stop_embedded() { # stop_embedded DIR
	local pid
	[ -s "$1/abort" ] || return 0
	pid=$(cat "$1/abort")
	grep -qzx -- --embedded "/proc/$pid/cmdline" 2>/dev/null || return 0
	kill -TERM "$pid" 2>/dev/null || return 0
	until_true ! kill -0 "$pid"
}

# Run a command until it succeeds; at most 20 s, or $until_s.
until_true() { # until_true [!] COMMAND...
	local end=$((SECONDS + ${until_s:-20})) want=0
	[ "$1" != '!' ] || { want=1; shift; }
	while [ $SECONDS -lt $end ]; do
		if "$@" >/dev/null 2>&1; then [ $want = 1 ] || return 0; else [ $want = 0 ] || return 0; fi
		sleep 0.02
	done
	echo "still not so after ${until_s:-20} s: $*" >&2
	return 1
}

# Wait for a process that this test has started; its exit status in $status.  (run would ask a subshell, which has no children.)
ended() { # ended PID
	status=0
	wait "$1" || status=$?
}

# ---- A cluster: a name server and a broker, two processes, free ports ---------------------------------------------------

start_namesrv() { # sets ns_pid, ns_port, NAMESRV_ADDR
	mkfifo ns.ready
	mq-namesrv -p listenPort="${ns_port:-$(free_ports)}" -p bindAddress=127.0.0.1 --ready-fd 9 9>ns.ready 2>>ns.log 3>&- </dev/null >/dev/null &
	ns_pid=$!
	pids+=("$ns_pid")
	read -r -t 60 ns_port <ns.ready
	rm ns.ready
	export NAMESRV_ADDR=127.0.0.1:$ns_port
}

# The port is none of those that clients are given: a second start must find it free.
start_broker() { # start_broker [OPTION...]; sets broker_pid, broker_port; a second start takes the same port and store
	mkfifo broker.ready
	mq-broker -n "$NAMESRV_ADDR" -p listenPort="${broker_port:-$(free_ports)}" -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 \
		-p brokerName=b -p storePathRootDir="$PWD/store" -p mappedFileSizeCommitLog=67108864 "$@" \
		--ready-fd 9 9>broker.ready 2>>broker.log 3>&- </dev/null >/dev/null &
	broker_pid=$!
	pids+=("$broker_pid")
	read -r -t 60 broker_port <broker.ready
	rm broker.ready
	until_true broker_known
}

broker_known() {
	mq-admin clusterList | grep -q "127.0.0.1:$broker_port"
}

start_cluster() {
	start_namesrv
	start_broker "$@"
}

stop_broker() { # stop_broker [SIGNAL]
	kill "-${1:-TERM}" "$broker_pid"
	wait "$broker_pid" 2>/dev/null || :
}

# ---- What there is ------------------------------------------------------------------------------------------------------

# How many messages of a topic a group has committed.
committed() { # committed GROUP TOPIC
	mq-admin consumerProgress -g "$1" -t "$2" 2>/dev/null | awk -F'\t' '{ n += $5 } END { print n + 0 }'
}

# How many messages a topic holds.
stored() { # stored TOPIC
	mq-recv -e -f '%o\n' "$1" | wc -l
}

holds() { # holds TOPIC N: at least
	[ "$(stored "$1")" -ge "$2" ]
}

# Lines of "QUEUE<TAB>NUMBER" on stdin: within each queue the numbers must rise.
rising() {
	awk -F'\t' '$1 in last && $2 <= last[$1] { print "not rising:", last[$1], $2, "in", $1; bad = 1; exit }
	            { last[$1] = $2 } END { exit bad }'
}
