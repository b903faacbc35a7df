#!/usr/bin/env bats
# mqfs when servers are away, or it itself is: no call hangs, nothing has to be mounted again, and a mount goes away cleanly.

quick=500ms limit=5 # and more for a slow server, see mqfs.bash; a path is some calls, each within its timeout

setup() {
	load helpers
	load mqfs
	mqfs_setup
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t T -r 1 -w 1
	echo x | mq-send T
	mount_mqfs
	T=$M/topics/T
	Q=$T/queues/b:0
}

# Mount it again: who waits is to wait so long.
patience() { # patience DURATION
	unmount
	mount_mqfs -o timeout="$1"
}

teardown() {
	kill -CONT "$broker_pid" "$ns_pid" 2>/dev/null || :
	mqfs_teardown
	[ -z "${far:-}" ] || no_far_cluster
}

# Run CODE with `path` set; prints the name of its errno, or OK; it must not take longer than $limit s.
errno_of() { # errno_of PATH CODE
	within 20 python3 -c 'import errno, os, sys, time
path = sys.argv[1]; start = time.time(); why = "OK"
try: exec(sys.argv[2])
except OSError as e: why = errno.errorcode[e.errno]
took = time.time() - start
print(why if took < float(sys.argv[3]) else "%s after %.1f s" % (why, took))' "$@" "$limit"
}

read_all='open(path, "rb").read()'
send='fd = os.open(path, os.O_WRONLY); os.write(fd, b"x"); os.fsync(fd)'
wait_for='fd = os.open(path, os.O_RDONLY); os.read(fd, 10)'

all_end_with() { # all_end_with ERRNO-REGEX
	local f
	for f in "$Q/max" "$T/stats" "$T/config" "$M/brokers/b/0/status" "$M/groups/G/lag"; do
		run -0 errno_of "$f" "$read_all"
		assert_output --regexp "^($1|ENOENT)\$"
	done
	run -0 errno_of "$T/send" "$send"
	assert_output --regexp "^($1)\$"
	run -0 errno_of "$T/lines" "$send"
	assert_output --regexp "^($1)\$"
	run -0 errno_of "$T/queues/b:0/messages/0" "$read_all"
	assert_output --regexp "^($1|OK)\$"
	run -0 errno_of "$Q" 'os.listdir(path + "/messages")'
	assert_output --regexp "^($1)\$"
	run -0 errno_of "$T/tail" "$wait_for"
	assert_output --regexp "^($1)\$"
	run -0 errno_of "$Q/from@1" "$wait_for"
	assert_output --regexp "^($1)\$"
	within 2 ls "$M" >/dev/null
	within 2 cat "$M/status" "$M/README" >/dev/null
}

works_again() {
	until_true sh -c 'echo again >"$1" && cat "$2" "$3"' - "$T/lines" "$Q/max" "$M/brokers/b/0/status"
	run -0 cat "$Q/messages/0"
	assert_output x
}

@test "a broker that is stopped: every call ends with ETIMEDOUT, and works again when it goes on" {
	patience $quick
	kill -STOP "$broker_pid"
	all_end_with 'ETIMEDOUT|EHOSTDOWN'
	kill -CONT "$broker_pid"
	works_again
}

@test "a broker that was killed: every call ends with EHOSTDOWN, and works again when there is a new one" {
	patience $quick
	stop_broker KILL
	all_end_with 'EHOSTDOWN|ETIMEDOUT'
	start_broker
	works_again
}

@test "a broker that is started again within the timeout: who reads a stream goes on" {
	patience 60s
	mq-admin updateSubGroup -c DefaultCluster -g G
	cat "$T/tail" >tail.out 2>tail.err 3>&- &
	pids+=($!)
	until_true opened $!
	cat "$M/groups/G/recv/T" >recv.out 2>recv.err 3>&- &
	pids+=($!)
	until_true sh -c '[ -s "$1" ]' - "$M/groups/G/clients"
	echo one >"$T/send"
	until_true grep -qx one tail.out
	until_true grep -qx one recv.out
	stop_broker KILL
	sleep 1 # long enough to be noticed, which must have no effect
	start_broker
	until_true sh -c 'echo two >"$1"' - "$T/lines"
	until_true grep -qx two tail.out
	until_true grep -qx two recv.out
	assert_equal "$(cat tail.err recv.err)" ""
}

@test "no name server either: what is known goes on, the rest ends" {
	patience $quick
	kill -STOP "$ns_pid"
	run -0 errno_of "$M/topics/unknown" 'os.stat(path)'
	assert_output --regexp '^(ETIMEDOUT|EHOSTDOWN)$'
	run -0 errno_of "$M/topics" 'os.listdir(path)'
	assert_output --regexp '^(ETIMEDOUT|EHOSTDOWN)$'
	kill -CONT "$ns_pid"
	until_true ls "$M/topics/T"
}

@test "who waits for a stopped broker dies at once when killed" {
	patience 60s
	kill -STOP "$broker_pid"
	for code in "$read_all" "$send" "$wait_for" 'os.stat(path)' 'os.listdir(os.path.dirname(path) + "/queues/b:0/messages")'; do
		case $code in "$send") f=$T/send ;; "$wait_for") f=$T/tail ;; *) f=$T/stats ;; esac
		python3 -c 'import os, sys
path = sys.argv[1]; print("go", flush=True); exec(sys.argv[2])' "$f" "$code" >out 2>/dev/null 3>&- &
		pids+=($!)
		until_true grep -q go out
		sleep 0.2
		start=$(date +%s%N)
		kill -9 $!
		wait $! || :
		[ $((($(date +%s%N) - start) / 1000000)) -lt 10000 ]
		: >out
	done
}

@test "SIGTERM with files open unmounts at once, and readers are told" {
	within 20 python3 -c 'import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY); send = os.open(sys.argv[2], os.O_WRONLY); print("open", flush=True)
try: n = os.read(fd, 10)
except OSError as e: assert e.errno in (errno.ENOTCONN, errno.ECONNABORTED), e
else: assert n == b"", n' "$T/tail" "$T/send" >out 3>&- &
	pids+=($!)
	until_true grep -q open out
	start=$(date +%s%N)
	kill -TERM "$fs_pid"
	ended "$fs_pid"
	assert_equal $status 0
	[ $((($(date +%s%N) - start) / 1000000)) -lt 10000 ]
	wait "${pids[-1]}"
	fs_pid=
	run ! mountpoint -q "$M"
	assert_equal "$(ls "$M")" ""
}

@test "umount -l and fusermount3 -u end it, also when a file is open" {
	for how in "umount -l" "fusermount3 -u -z"; do
		sleep 100 <"$T/tail" 3>&- &
		pids+=($!)
		until_true opened $!
		$how "$M"
		start=$(date +%s%N)
		ended "$fs_pid"
		assert_equal $status 0
		[ $((($(date +%s%N) - start) / 1000000)) -lt 10000 ]
		kill $!
		wait $! || :
		mount_mqfs
	done
}

@test "kill -9 leaves a dead mount, which a new start replaces; a live one it does not" {
	exec 5<"$T/tail"
	kill -9 "$fs_pid"
	ended "$fs_pid"
	run -2 ls "$M/topics"
	assert_output --partial "not connected"
	mount_mqfs
	run -0 cat "$Q/messages/0"
	assert_output x
	exec 5<&-
	run -3 mqfs "$M"
	assert_output --partial "an mqfs that lives is mounted there"
	run -3 mqfs "$PWD/nowhere"
	assert_output --partial "No such file"
	run -2 mqfs -o colour=red "$M"
	run -2 mqfs
}

# A cluster in a network namespace of its own, $far, at $far_ip; $veth is its wire.
far_network() {
	local net=$((RANDOM % 250))
	[ "$(id -u)" = 0 ] && command -v ip >/dev/null && ip netns add "mqfs$$" 2>/dev/null || return 1
	far=mqfs$$ veth=mqf$((RANDOM % 10000)) far_ip=10.213.$net.2
	ip link add $veth type veth peer name eth0 netns "$far" || return 1
	ip addr add 10.213.$net.1/24 dev $veth
	ip link set $veth up
	ip -n "$far" addr add $far_ip/24 dev eth0
	ip -n "$far" link set eth0 up
	ip -n "$far" link set lo up
}

no_far_cluster() {
	stop_far_cluster
	ip link del "$veth" 2>/dev/null || :
	ip netns del "$far"
	far=
}

@test "a broker that is cut off by its network: calls end, and work again when it is back" {
	far_network || skip "no network namespaces here"
	unmount
	start_far_cluster
	until_true mq-admin updateTopic -c DefaultCluster -t T -r 1 -w 1
	until_true sh -c 'echo x | mq-send T'
	mount_mqfs -o timeout=$quick
	cat "$Q/max"
	ip link set $veth down
	run -0 errno_of "$Q/max" "$read_all"
	assert_output --regexp '^(ETIMEDOUT|EHOSTDOWN)$'
	run -0 errno_of "$T/send" "$send"
	assert_output --regexp '^(ETIMEDOUT|EHOSTDOWN)$'
	run -0 errno_of "$T/tail" "$wait_for"
	assert_output --regexp '^(ETIMEDOUT|EHOSTDOWN)$'
	ip link set $veth up
	works_again
}
