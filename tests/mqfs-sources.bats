#!/usr/bin/env bats
# mqfs over a queue in a directory, and over a store directory without a server: ours and one that Java wrote.

setup() {
	load helpers
	load mqfs
	mqfs_setup
	sums=
}

teardown() {
	mqfs_teardown
}

@test "file: the queue in a directory has it all, without any server" {
	mount_mqfs -n "file:$Q"
	seq 5 | mq-send T
	run -0 cat "$M"/topics/T/queues/local:*/messages/*
	assert_equal "$(bodies T | grep -o . | sort)" "$(seq 5)"
	echo six >"$M/topics/T/send"
	assert_equal "$(total T)" 6
	run -0 cat "$M/by-id/$(getfattr --absolute-names --only-values -n user.mq.id "$M/topics/T/send")"
	assert_output six
	cat "$M/topics/T/tail" >out 3>&- &
	pids+=($!)
	until_true opened $!
	echo seven >"$M/topics/T/lines"
	until_true grep -qx seven out
	kill $!
}

# Everything below a directory: names, sizes, times and sums.
state() { # state DIR
	(cd "$1" && find . -printf '%p %s %T@\n' | sort && find . -type f ! -name lock -exec sha256sum {} + | sort)
}

@test "store: a store directory is read without a server and without changing one byte" {
	seq 100 | mq-send -n "file:$Q" -k key -q local:1 T
	echo other | mq-send -n "file:$Q" T2
	stop_embedded "$Q"
	before=$(state "$Q")
	mount_mqfs -n "store:$Q"
	run -0 ls "$M/topics"
	assert_output "$(printf 'T\nT2')"
	run -0 ls "$M"
	refute_line groups
	run -0 ls "$M/topics/T"
	refute_line send
	D=$M/topics/T/queues/store:1
	assert_equal "$(cat "$D/max")" 100
	assert_equal "$(cat "$D/messages/41")" 42
	assert_equal "$(cat "$D"/messages/* | wc -c)" 192
	jq -e '.offset == 41' "$D/meta/41.json"
	run -0 within 10 head -n 100 "$M/topics/T/from@0"
	assert_output "$(seq 100)"
	run -0 within 10 head -n 2 "$D/from@-2"
	assert_output "$(printf '99\n100')"
	run -0 ls "$M/topics/T/by-time/2001-01-01"
	assert_output store:1
	id=$(getfattr --absolute-names --only-values -n user.mq.offset-id "$D/messages/7")
	assert_equal "$(cat "$M/by-id/$id")" 8
	within 20 grep -r nothing-like-this "$M" || [ $? = 1 ]
	within 20 tar cf x.tar "$M"
	assert_equal "$(find "$M/topics" -path '*/messages/*' -newermt '1 hour ago' -size -4c | wc -l)" 100
	for act in 'mkdir "$1"/new' 'touch "$1"/T/new' 'rm "$1"/T/stats' 'mv "$1"/T "$1"/T9' \
		'chmod 600 "$1"/T' ': >"$1"/T/queues/store:1/messages/0'; do
		run ! bash -c "$act" - "$M/topics"
		assert_output --partial "Read-only file system"
	done
	grep -q " $M fuse.mqfs ro," /proc/mounts
	unmount
	assert_equal "$(state "$Q")" "$before"
}

both_read() { # the queue that a message goes to is the producer's choice: either may come first
	bodies T | grep -xE 'onetwo|twoone'
}

@test "store: what a running broker adds is seen" {
	start_cluster
	echo one | mq-send T
	mount_mqfs -n "store:$PWD/store"
	cat "$M/topics/T/tail" >out 3>&- &
	pids+=($!)
	until_true opened $!
	echo two | mq-send T
	until_true grep -qx two out
	until_true both_read
	kill $!
}

@test "store: that is none, or is not there, is an error in words" {
	mkdir empty
	run -1 mqfs -n "store:$PWD/empty" "$M"
	assert_output --partial empty
	run ! mountpoint -q "$M"
}

@test "store: what the Java broker wrote, after a clean stop, a crash, and deletions" {
	for name in clean crashed features trimmed; do
		mkdir "$name"
		tar --zstd -xSf "$src/tests/golden/store/$name/store.tar.zst" -C "$name" --strip-components=1
		before=$(state "$name")
		mount_mqfs -n "store:$PWD/$name" -o system,list=100000
		for t in $(mq-admin -n "store:$PWD/$name" topicList); do
			mq-recv -n "store:$PWD/$name" -e -J "$t"
		done | jq -r '.body64 // (.body // "" | @base64)' | sort >want
		python3 -c 'import base64, glob, os, sys
for t in os.listdir(sys.argv[1]):
    for f in glob.glob(sys.argv[1] + "/" + t + "/queues/*/messages/*"): print(base64.b64encode(open(f, "rb").read()).decode())' \
			"$M/topics" | sort >got
		cmp want got
		[ -n "$(ls "$M/topics")" ]
		within 20 grep -r nothing-like-this "$M" >/dev/null || [ $? = 1 ]
		unmount
		assert_equal "$(state "$name")" "$before"
	done
}
