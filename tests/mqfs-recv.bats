#!/usr/bin/env bats
# mqfs: groups/G/recv/T: what was read is acknowledged, what was not is handed back.

setup() {
	load helpers
	load mqfs
	mqfs_setup
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t T -r 1 -w 1
	mq-admin updateSubGroup -c DefaultCluster -g G
	mount_mqfs
	T=$M/topics/T
	R=$M/groups/G/recv/T
}

teardown() {
	mqfs_teardown
}

stands_at() { # stands_at N: what the group has committed
	[ "$(cat "$M/groups/G/offsets/T/b:0")" = "$1" ]
}

@test "a consumer in three lines of shell" {
	for i in $(seq 10); do echo $i >"$T/send"; done
	echo 0 >"$M/groups/G/offsets/T/b:0"
	while read -r m; do
		echo "got $m"; [ "$m" != 10 ] || break
	done <"$R" >out
	assert_equal "$(cat out)" "$(seq -f 'got %g' 10)"
	until_true stands_at 10
}

@test "head -n 3 moves the group by three, and the next reader goes on there" {
	for i in $(seq 10); do echo $i >"$T/send"; done
	echo 0 >"$M/groups/G/offsets/T/b:0"
	run -0 within 20 head -n 3 "$R"
	assert_output "$(seq 3)"
	until_true stands_at 3
	run -0 within 20 head -n 2 "$R"
	assert_output "$(seq 4 5)"
	until_true stands_at 5
	run -0 mq-recv -g G -c 1 T
	assert_output 6
}

@test "a body with newlines is one record" {
	printf 'a\nb\nc' >"$T/send"
	printf 'second' >"$T/send"
	echo 0 >"$M/groups/G/offsets/T/b:0"
	python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
assert os.read(fd, 1000) == b"a\nb\nc\n"
assert os.read(fd, 3) == b"sec"
assert os.read(fd, 1000) == b"ond\n"' "$R"
	until_true stands_at 2
}

@test "a record that was read in part is not acknowledged" {
	printf '0123456789' >"$T/send"
	echo 0 >"$M/groups/G/offsets/T/b:0"
	run -0 within 20 head -c 4 "$R"
	assert_output 0123
	sleep 0.5
	stands_at 0 || stands_at -1
	run -0 within 20 head -n 1 "$R"
	assert_output 0123456789
	until_true stands_at 1
}

@test "kill -9 hands the last one back" {
	for i in $(seq 5); do echo $i >"$T/send"; done
	echo 0 >"$M/groups/G/offsets/T/b:0"
	python3 -c 'import os, signal, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for i in range(3): os.read(fd, 1000)
os.kill(os.getpid(), signal.SIGKILL)' "$R" || :
	until_true stands_at 2
	run -0 within 20 head -n 1 "$R"
	assert_output 3
	until_true stands_at 3
	within 20 sh -c 'read -r m; echo "$m"; kill -9 $$' <"$R" >out || :
	assert_equal "$(cat out)" 4
	until_true head_is 4
}

head_is() { # the next that mq-recv gets
	[ "$(mq-recv -g G -c 1 --timeout 5s T)" = "$1" ]
}

@test "who ends with another status than 0 hands back" {
	for i in 1 2 3; do echo $i >"$T/send"; done
	echo 0 >"$M/groups/G/offsets/T/b:0"
	within 20 python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY); os.read(fd, 1000); os._exit(3)' "$R" || :
	run -0 within 20 head -n 1 "$R"
	assert_output 1
	within 20 bash -c 'read -r m; /bin/true' <"$R"
	until_true stands_at 2
}

@test "two readers share the messages, and none gets what the other has" {
	mq-admin updateTopic -c DefaultCluster -t T2 -r 4 -w 4
	seq 40 >"$M/topics/T2/lines"
	for q in 0 1 2 3; do echo 0 >"$M/groups/G/offsets/T2/b:$q"; done
	for i in 1 2; do
		python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for i in range(20): print(os.read(fd, 1000).decode(), end="")' "$M/groups/G/recv/T2" >out$i 3>&- &
		eval "reader$i=\$!"
	done
	wait $reader1 $reader2
	assert_equal "$(sort -n out1 out2)" "$(seq 40)"
	[ -s out1 ] && [ -s out2 ]
}

@test "a mount and mq-recv are members of one group, and what the mount leaves goes to the other" {
	mq-admin updateTopic -c DefaultCluster -t T2 -r 4 -w 4
	timeout 30 cat "$M/groups/G/recv/T2" >out1 3>&- &
	pids+=($!); cat_pid=$!
	until_true sh -c '[ "$(wc -l <"$1")" = 1 ]' - "$M/groups/G/clients"
	mq-recv -g G T2 >out2 3>&- &
	pids+=($!)
	until_true sh -c '[ "$(wc -l <"$1")" = 2 ]' - "$M/groups/G/clients"
	n=0
	both() { seq 20 >"$M/topics/T2/lines"; n=$((n + 20)); sleep 0.3; [ -s out1 ] && [ -s out2 ]; }
	until_true both
	kill $cat_pid
	until_true sh -c '[ "$(wc -l <"$1")" = 1 ]' - "$M/groups/G/clients"
	whole() { [ "$(cat out1 out2 | wc -l)" -ge $n ]; }
	until_true whole
}

@test "an idle reader can be polled, is interrupted, and leaves the group" {
	python3 -c 'import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
try: os.read(fd, 100); sys.exit("read something")
except BlockingIOError: pass
e = select.epoll(); e.register(fd, select.EPOLLIN); print("ready", flush=True)
assert e.poll(20)
assert os.read(fd, 100) == b"woken\n"' "$R" >out 3>&- &
	pids+=($!)
	until_true grep -q ready out
	sleep 0.5
	echo woken >"$T/send"
	wait $!
	until_true sh -c '[ ! -s "$1" ]' - "$M/groups/G/clients"
	timeout 20 cat "$R" >/dev/null 3>&- &
	pids+=($!)
	sleep 0.5
	start=$(date +%s%N)
	kill $!
	wait $! || :
	[ $((($(date +%s%N) - start) / 1000000)) -lt 10000 ]
}

@test "members of a group read the same topic" {
	mq-admin updateTopic -c DefaultCluster -t T2 -r 1 -w 1
	timeout 20 cat "$R" >/dev/null 3>&- &
	pids+=($!)
	until_true sh -c '[ -s "$1" ]' - "$M/groups/G/clients"
	run -1 cat "$M/groups/G/recv/T2"
	assert_output --partial "busy"
	run -1 cat "$M/groups/G/recv/unknown"
	run -1 bash -c 'echo x >"$1"' - "$R"
}
