#!/usr/bin/env bats
# mq-send and mq-recv in pipes: everything arrives, in order, and a group moves by exactly what its reader took.
# MQ_TEST_LINES and MQ_TEST_BYTES make the big ones bigger (5000000 and 200000000 are what the manual's promises were tried with).

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

@test "lines through a topic and back: the same, and in order in each queue" {
	local n=${MQ_TEST_LINES:-500000}
	start_cluster
	seq "$n" | mq-send t
	mq-recv -e -f '%q\t%s\n' t >got
	rising <got
	cut -f2 got | sort -n --buffer-size=500M | cmp - <(seq "$n")
}

@test "random bytes with lengths in front: the same stream comes out" {
	python3 - "${MQ_TEST_BYTES:-40000000}" >records <<'END'
import os, random, struct, sys
left = int(sys.argv[1])
while left > 0:
    n = min(left, random.choice([1, 10, 100, 1000, 10000, 100000, 1000000, 4194304, random.randint(1, 65536)]))
    sys.stdout.buffer.write(struct.pack('>I', n) + os.urandom(n))
    left -= n
END
	mq-send -B -q local:0 t <records
	assert_equal "$(mq-recv -e -B t | sha256sum)" "$(sha256sum <records)"
	# and through a pipe that cuts them anywhere
	dd if=records bs=7777 status=none | mq-send -B -q local:0 u
	assert_equal "$(mq-recv -e -B u | dd bs=3333 status=none | sha256sum)" "$(sha256sum <records)"
}

@test "lines of one byte to 4 MiB" {
	python3 -c '
n = 1
while n <= 4194304:
    print("x" * n)
    n *= 2' >lines
	mq-send t <lines
	mq-recv -e t | awk '{ print length($0) }' | sort -n >got
	awk '{ print length($0) }' lines | cmp - got
}

@test "what mq-recv -J prints, mq-send -J sends: a whole topic with all that belongs to it" {
	seq 1000 | awk '{ print "k" $1 ":body " $1 }' | mq-send -K : -T tag -H a=b one
	head -c 1000 /dev/urandom | mq-send -w one
	mq-recv -e -J one | mq-send -J two
	show() { mq-recv -e -f '%k|%T|%h|%x\n' "$1" | sort; }
	show one >one
	show two | cmp - one
	assert_equal "$(wc -l <one)" 1001
}

# ---- What is committed --------------------------------------------------------------------------------------------------

@test "mq-recv -g g | head -3 moves the group by three" {
	seq 100000 | mq-send t
	for n in 1 3 10 1000 4000; do
		mq-recv -g "g$n" t | head -n "$n" >got
		assert_equal "$(wc -l <got)" "$n"
		assert_equal "$(committed "g$n" t)" "$n"
	done
	# again and again, nothing is left out and nothing comes twice
	for _ in $(seq 20); do mq-recv -g again t | head -3; done >got
	assert_equal "$(sort -u got | wc -l)" 60
	assert_equal "$(committed again t)" 60
}

@test "readers of other manners: sed 3q, a shell's read, a reader of bytes" {
	seq 100000 | mq-send t
	mq-recv -g sed t | sed 3q >got
	assert_equal "$(committed sed t)" 3
	mq-recv -g sh t | (for _ in 1 2 3; do read -r line; sleep 0.01; done)
	assert_equal "$(committed sh t)" 3
	printf 'aaaa\nbbbb\ncccc\ndddd\n' | mq-send -q local:0 u
	mq-recv -g bytes -q local:0 u | head -c 12 >got
	assert_equal "$(committed bytes u)" 2
}

@test "everything is committed that a fast reader took" {
	seq 100000 | mq-send t
	mq-recv -g g -e t | cat >got
	assert_equal "$(wc -l <got)" 100000
	assert_equal "$(committed g t)" 100000
}

@test "what a reader left in the pipe when it was killed is not committed" {
	seq 100000 | awk '{ printf "%09d\n", $1 }' | mq-send -q local:0 t
	mkfifo pipe
	mq-recv -g g -q local:0 t >pipe &
	reader=$!
	# It takes 60,000 records of 10 bytes in blocks, and a part of the next.
	python3 -c '
import os, sys
left = 600003
while left > 0:
    left -= len(os.read(0, min(left, 65536)))
' <pipe
	ended $reader
	assert_equal "$status" 141
	assert_equal "$(committed g t)" 60000
	run -0 bash -c 'mq-recv -g g -q local:0 -e t | head -1'
	assert_output 000060001
}

@test "-u: never more than one in the pipe, however long it goes on" {
	seq 100000 | mq-send t
	mq-recv -u -g g t | head -n 20000 >got
	assert_equal "$(committed g t)" 20000
}

# ---- Readers that go ----------------------------------------------------------------------------------------------------

@test "a reader that goes ends it at once, quietly, by SIGPIPE" {
	seq 10 | mq-send t
	local before=${EPOCHREALTIME/./}
	mq-recv t 2>told | head -1 || assert_equal "${PIPESTATUS[*]}" "141 0"
	[ $((${EPOCHREALTIME/./} - before)) -lt 10000000 ]
	refute [ -s told ]
}

@test "also when no message comes" {
	mq-send t <<<x
	local before=${EPOCHREALTIME/./}
	{ mq-recv -g g -o end t 2>told; echo ${EPOCHREALTIME/./} >when; } | (exec <&-; sleep 3)
	[ $(($(cat when) - before)) -lt 10000000 ]
	refute [ -s told ]
}

@test "a reader that takes nothing does not make it deaf: SIGTERM ends it, nothing is committed" {
	seq 100000 | mq-send t
	mkfifo pipe
	sleep 60 <pipe &
	sleeper=$!
	mq-recv -g g t >pipe &
	until_true committed_by_nobody
	kill -TERM $!
	local before=$SECONDS
	ended $!
	assert_equal "$status" 143
	[ $((SECONDS - before)) -lt 5 ]
	kill $sleeper
	assert_equal "$(committed g t)" 0
}

committed_by_nobody() { # the group is there
	mq-admin consumerProgress -g g -t t
}

@test "terminals: lines come at once" {
	command -v script >/dev/null || skip "no script(1)"
	seq 3 | mq-send -q local:0 t
	script -qec "mq-recv -e -q local:0 t" typescript </dev/null >got
	run -0 tr -d '\r' <got
	assert_output $'1\n2\n3'
}
