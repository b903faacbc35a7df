#!/usr/bin/env bats
# mqfs: files that wait for messages: tail, from@... and recv; how they are read, polled, interrupted and acknowledged.

setup() {
	load helpers
	load mqfs
	mqfs_setup
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t T -r 2 -w 2
	mount_mqfs
	T=$M/topics/T
}

teardown() {
	mqfs_teardown
}

lines_in() { # lines_in FILE N: at least
	[ "$(wc -l <"$1")" -ge "$2" ]
}

# Something reads in the background until the end of the test; $reader
reader() { # reader COMMAND...
	"$@" >out 2>err 3>&- &
	reader=$!
	pids+=("$reader")
}

@test "cat tail shows what comes from now on, at once" {
	seq 5 | mq-send T
	reader cat "$T/tail"
	until_true opened $reader
	seq 6 10 >"$T/lines"
	until_true lines_in out 5
	assert_equal "$(sort -n out)" "$(seq 6 10)"
	kill $reader
}

@test "tail of one queue shows that queue only" {
	reader cat "$T/queues/b:1/tail"
	until_true opened $reader
	echo zero | mq-send -q b:0 T
	echo one | mq-send -q b:1 T
	until_true lines_in out 1
	assert_equal "$(cat out)" one
	kill $reader
}

@test "tail -f and tail -F of a stream show each message once, while it goes on" {
	for option in -f -F; do
		reader tail $option "$T/tail"
		until_true opened $reader
		for i in 1 2 3; do
			sleep 0.3
			echo "$option$i" >"$T/send"
		done
		start=$(date +%s%N)
		until_true lines_in out 3
		# tail looks every second; the rest is for a machine that is busy.
		[ $((($(date +%s%N) - start) / 1000000)) -lt 15000 ]
		for i in 4 5 6; do
			sleep 0.7
			echo "$option$i" >"$T/send"
		done
		until_true lines_in out 6
		kill $reader
		wait $reader || :
		assert_equal "$(sort out)" "$(for i in 1 2 3 4 5 6; do echo "$option$i"; done)"
		assert_equal "$(cat err)" ""
	done
}

@test "from@ an offset, the last N, a time" {
	seq 10 | mq-send -q b:0 T
	run -0 within 10 head -n 3 "$T/queues/b:0/from@4"
	assert_output "$(seq 5 7)"
	run -0 within 10 head -n 2 "$T/queues/b:0/from@-2"
	assert_output "$(seq 9 10)"
	run -0 within 10 head -n 10 "$T/from@0"
	assert_output "$(seq 10)"
	run -0 within 10 head -n 10 "$T/from@2001-01-01T00:00"
	assert_output "$(seq 10)"
	sleep 1.1
	now=$(date +%Y-%m-%dT%H:%M:%S)
	echo late | mq-send -q b:0 T
	run -0 within 10 head -n 1 "$T/queues/b:0/from@$now"
	assert_output late
	run -1 cat "$T/from@x" 
	run -1 cat "$T/queues/b:0/from@-"
	run -0 ls "$T" "$T/queues/b:0"
	refute_output --partial from@
}

@test "a stream gives all of many messages in order of the queue" {
	seq 100000 | mq-send --batch=100 -q b:0 T
	within 30 head -n 100000 "$T/queues/b:0/from@0" >out
	seq 100000 | cmp - out
	within 30 dd if="$T/queues/b:0/from@0" bs=13 count=1000 iflag=fullblock status=none | cmp - <(seq 100000 | head -c 13000)
}

@test "a shell reads a stream line by line" {
	seq 300 | mq-send -q b:0 T
	n=0
	while read -r line; do
		n=$((n + 1))
		[ "$line" = $n ]
		[ $n -lt 300 ] || break
	done <"$T/queues/b:0/from@0"
	assert_equal $n 300
}

@test "a stream that is opened without waiting says EAGAIN, and poll and epoll wake up" {
	cat >poll.py <<'EOF'
import errno, os, select, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
try: os.read(fd, 100); sys.exit("read something")
except BlockingIOError: pass
assert select.select([fd], [], [], 0.1)[0] == []
e = select.epoll(); e.register(fd, select.EPOLLIN)
assert e.poll(0.1) == []
print("ready", flush=True)
assert e.poll(10) == [(fd, select.EPOLLIN)]
assert select.poll().register(fd, select.POLLIN) is None
print(os.read(fd, 100).decode(), end="", flush=True)
try: os.read(fd, 100); sys.exit("read something")
except BlockingIOError: pass
EOF
	reader python3 poll.py "$T/tail"
	until_true lines_in out 1
	echo woken >"$T/send"
	ended $reader
	assert_equal $status 0
	assert_equal "$(tail -n 1 out)" woken
}

@test "a blocked reader ends at once, whatever the signal" {
	for signal in TERM INT KILL; do
		for f in "$T/tail" "$T/queues/b:0/tail" "$T/from@0"; do
			python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
fd = os.open(sys.argv[1], os.O_RDONLY); print("open", flush=True); os.read(fd, 100)' "$f" >out 3>&- &
			pids+=($!)
			until_true lines_in out 1
			sleep 0.1
			start=$(date +%s%N)
			kill -$signal $!
			wait $! || :
			[ $((($(date +%s%N) - start) / 1000000)) -lt 10000 ]
			: >out
		done
	done
}

@test "streams cannot be written, and with -o nostreams there are none" {
	run -1 bash -c 'echo x >"$1"' - "$T/tail"
	assert_output --partial "Permission denied"
	unmount
	mount_mqfs -o nostreams
	run -1 cat "$T/tail"
	run -1 cat "$T/from@0"
	run -2 ls "$M/groups/G/recv"
	run -0 ls "$T"
	refute_line tail
}
