#!/usr/bin/env bats
# The manuals of the library, its files and its protocol: whole against the headers and tables, and their examples work.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	src=${MQ_SRC:-$BATS_TEST_DIRNAME/..}
	build=${MQ_BUILD:-$src/build/default}
	dir=$BATS_TEST_TMPDIR
}

teardown() {
	for f in "$BATS_TEST_TMPDIR"/*.pid; do
		[ ! -e "$f" ] || { kill "$(cat "$f")" && wait "$(cat "$f")"; } 2>/dev/null || true
	done
}

# A server in the background that says its port when ready; sets `port`.
serve() { # serve NAME COMMAND...
	local name=$1; shift
	mkfifo "$dir/$name.ready"
	"$@" --ready-fd 9 9>"$dir/$name.ready" 2>"$dir/$name.log" 3>&- &
	echo $! >"$dir/$name.pid"
	read -r -t 20 port <"$dir/$name.ready" || { cat "$dir/$name.log"; return 1; }
}

# Example N (from 1) of a page: a literal block that begins with #include.
example() { # example PAGE N
	awk -v want="$2" '
		/^\.Bd -literal/ { inside = 1; first = 1; next }
		/^\.Ed/ { inside = 0; next }
		inside && first { n += /^#include/; mine = /^#include/ && n == want; first = 0 }
		inside && mine { gsub(/\\e/, "\\"); print }
	' "$src/man/$1"
}

# Built with the flags of the library, so that a sanitized library gets a sanitized program.
compile() { # compile PAGE N PROGRAM
	example "$1" "$2" >"$dir/$3.c"
	[ -s "$dir/$3.c" ] || { echo "$1 has no example $2"; return 1; }
	cd "$build"
	flags=$(sed -n 's/^BASE_CFLAGS = //p' Makefile)
	./libtool --silent --tag=CC --mode=link cc $flags -Werror -Wno-missing-prototypes -Wno-shadow -I"$src/libmqstore" \
		-o "$dir/$3" "$dir/$3.c" libmqstore.la
}

functions() { # functions HEADER: names declared with MQ_API
	grep -v '^#' "$src/libmqstore/$1" | grep -oE '^MQ_API [^(]*\(' | sed -E 's/.*[ *]([a-z_]+)\($/\1/'
}

@test "each public function is in its manual" {
	for page in "mq.h mqstore.3" "mqstore.h mqstore.3" "mqclient.h mqclient.3"; do
		set -- $page
		[ "$(functions "$1" | wc -l)" -gt 5 ]
		for f in $(functions "$1"); do
			grep -qE "^\.F[no] $f( |$)" "$src/man/$2" || { echo "$f of $1 is not in the SYNOPSIS of $2"; return 1; }
		done
	done
}

@test "the manuals name no function that does not exist" {
	all=" $(functions mq.h) $(functions mqstore.h) $(functions mqclient.h) "
	for f in $(sed -nE 's/^\.F[no] ([a-z_]+).*/\1/p' "$src/man/mqstore.3" "$src/man/mqclient.3"); do
		grep -qw -- "$f" <<<"$all" || { echo "$f"; return 1; }
	done
}

@test "each request that is served is in mq-wire(7) with its number" {
	local n=0
	for name in $(cat "$src"/bin/broker/dispatch.c "$src"/bin/namesrv/*.c 2>/dev/null | grep -oE '\{ *REQ_[A-Z0-9_]+' | sed 's/.*REQ_//' | sort -u); do
		code=$(grep -oE "R\([0-9]+, *$name\)" "$src/libmqstore/codec/request.h" | grep -oE '[0-9]+' | head -1)
		grep -qE "(Li|,) ([^,]*, )*$code $name( |$)" "$src/man/mq-wire.7" || { echo "$code $name"; return 1; }
		n=$((n + 1))
	done
	[ "$n" -ge 30 ]
}

@test "mq-wire(7) gives each request its true number" {
	local n=0
	while read -r code name; do
		grep -qE "R\($code, *$name\)" "$src/libmqstore/codec/request.h" || { echo "$code $name"; return 1; }
		n=$((n + 1))
	done < <(grep '^\.It Li' "$src/man/mq-wire.7" | grep -oE '[0-9]+ [A-Z][A-Z0-9_]{5,}')
	[ "$n" -ge 80 ]
}

@test "the pages are clean" {
	for page in mqstore.5 mqstore.3 mqclient.3 mq-wire.7; do
		run mandoc -T lint -W warning "$src/man/$page"
		assert_output ""
	done
}

@test "mqstore(3): what the second example appends the first one prints" {
	compile mqstore.3 1 dump
	compile mqstore.3 2 append
	run -0 "$dir/append" "$dir/store" greetings hello
	assert_output "queue offset 0, log offset 0"
	run -0 "$dir/append" "$dir/store" greetings world
	assert_output --partial "queue offset 1, "
	run -0 "$dir/dump" "$dir/store" greetings
	assert_output $'0 0 hello\n0 1 world'
	run -0 "$dir/dump" "$dir/store" nothing
	assert_output ""
	run -3 "$dir/dump" "$dir/nowhere" greetings
	assert_output --partial "$dir/nowhere"
	run -3 "$dir/append" "$dir/store" 'a b' hello
	assert_output --partial "invalid argument"
}

@test "mqclient(3): the examples compile, and say what is wrong without a cluster" {
	compile mqclient.3 1 send
	compile mqclient.3 2 print
	compile mqclient.3 3 ask
	export NAMESRV_ADDR=127.0.0.1:1
	run -3 "$dir/send" greetings hello
	assert_output --partial "127.0.0.1:1"
	run -3 "$dir/print" greetings
	assert_output --partial "127.0.0.1:1"
	run -3 "$dir/ask"
	assert_output --partial "127.0.0.1:1"
	export NAMESRV_ADDR=nowhere
	run -3 "$dir/send" greetings hello
	assert_output --partial "nowhere"
}

@test "mqclient(3): what the first example sends the second prints, and the third sees the cluster" {
	compile mqclient.3 1 send
	compile mqclient.3 2 print
	compile mqclient.3 3 ask
	serve namesrv mq-namesrv -p listenPort=0
	export NAMESRV_ADDR=127.0.0.1:$port
	serve broker mq-broker -n "$NAMESRV_ADDR" -p listenPort=0 -p brokerIP1=127.0.0.1 -p brokerName=solo -p storePathRootDir="$dir/store"
	run -0 "$dir/send" greetings hello
	assert_output --regexp '^[0-9A-F]{32} solo:[0-3] 0$'
	run -0 "$dir/print" greetings
	assert_output --regexp '^solo:[0-3] 0 hello$'
	run -0 "$dir/ask"
	assert_output --partial '"clusterAddrTable":{"DefaultCluster":["solo"]}'
}
