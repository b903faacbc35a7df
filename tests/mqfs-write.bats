#!/usr/bin/env bats
# mqfs: what is written: messages, settings, offsets; made and removed topics and groups; each promise kept at close or fsync.

setup() {
	load helpers
	load mqfs
	mqfs_setup
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t T -r 1 -w 1
	mount_mqfs -o admin
	T=$M/topics/T
	Q=$T/queues/b:0
}

teardown() {
	mqfs_teardown
}

# Ours lists a message before it answers; the Java broker a moment later.
soon() { # soon COMMAND...
	if [ -n "${MQFS_CLUSTER:-}" ]; then until_true "$@"; else "$@"; fi
}

@test "one open is one message, whole and byte-equal, from 1 byte to 4 MiB" {
	n=0
	for size in 1 2 4095 4096 4097 131071 131072 131073 1048577 4194304; do
		head -c $size /dev/urandom >in
		cat in >"$T/send"
		soon cmp in "$Q/messages/$n"
		n=$((n + 1))
		cp in "$T/send"
		soon cmp in "$Q/messages/$n"
		n=$((n + 1))
		dd if=in of="$T/send" bs=777777 conv=fsync,notrunc status=none
		soon cmp in "$Q/messages/$n"
		n=$((n + 1))
		tee "$T/send" <in >copy
		soon cmp in "$Q/messages/$n"
		n=$((n + 1))
	done
	assert_equal "$(cat "$Q/max")" $n
	mq-recv -e -w -o $((n - 1)) T | cmp in -
}

@test "nothing written sends nothing" {
	: >"$T/send"
	cat /dev/null >"$T/send"
	printf '' >"$T/lines"
	: >"$T/json"
	printf '\n\n' >"$T/lines"
	touch "$T/send"
	assert_equal "$(cat "$Q/max")" 0
}

@test "echo, a loop, cp and split publish once each" {
	for i in 1 2 3; do echo "m$i" >"$T/send"; done
	echo by-cp >f
	cp f "$T/send"
	seq 10 | split -l 5 --filter="cat >'$T/send'"
	run -0 cat "$Q"/messages/*
	assert_output "$(printf 'm1\nm2\nm3\nby-cp\n'; seq 10)"
	assert_equal "$(cat "$Q/max")" 6
}

@test "processes that share one open file make one message" {
	(echo a; /bin/echo b; sh -c 'echo c') >"$T/send"
	assert_equal "$(cat "$Q/max")" 1
	run -0 cat "$Q/messages/0"
	assert_output "$(printf 'a\nb\nc')"
	sh -c 'exec 3>"$1"; /bin/echo d >&3; exec 3>&-' sh "$T/send"
	run -0 cat "$Q/messages/1"
	assert_output d
}

@test "a writer that is killed sends no half of a message" {
	sh -c 'echo half; kill -9 $$' >"$T/send" || :
	assert_equal "$(cat "$Q/max")" 0
}

@test "fsync sends what is there; what follows is another message" {
	python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
os.write(fd, b"one"); os.fsync(fd); os.write(fd, b"t"); os.write(fd, b"wo"); os.close(fd)' "$T/send"
	assert_equal "$(cat "$Q/max")" 2
	assert_equal "$(cat "$Q/messages/1")" two
}

# A Java broker may store what is under way together in another order.
in_order() {
	if [ -n "${MQFS_CLUSTER:-}" ]; then sort; else cat; fi
}

@test "each line is a message, and the last one needs no newline" {
	seq 5000 >"$T/lines"
	printf 'a\n\nb' >"$T/lines"
	all_listed() { [ "$(cat "$Q/max")" = 5002 ]; }
	soon all_listed
	mq-recv -e T >out
	(seq 5000; printf 'a\nb\n') | in_order | cmp - <(in_order <out)
}

@test "JSON lines carry keys, tags and properties" {
	echo '{"body":"hello","keys":"k9","tags":"t9","properties":{"p":"v"}}' >"$T/json"
	until_true test -e "$Q/messages/0"
	run -0 cat "$Q/messages/0"
	assert_output hello
	run -0 getfattr --absolute-names --only-values -n user.mq.prop.p "$Q/messages/0"
	assert_output v
	mq-recv -e -J T >copy
	cat copy >"$T/json"
	until_true test -e "$Q/messages/1"
	run -0 getfattr --absolute-names --only-values -n user.mq.keys "$Q/messages/1"
	assert_output k9
	run -1 bash -c 'echo "{\"body\"" >"$1"' - "$T/json"
	assert_output --partial "Invalid argument"
	assert_equal "$(cat "$Q/max")" 2
}

@test "properties are set on the open file, and the result is read from it" {
	python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
os.setxattr(fd, "user.mq.keys", b"order-7"); os.setxattr(fd, "user.mq.tags", b"urgent"); os.setxattr(fd, "user.mq.prop.colour", b"red")
os.write(fd, b"body"); os.fsync(fd)
print(os.getxattr(fd, "user.mq.queue").decode(), os.getxattr(fd, "user.mq.offset").decode(), len(os.getxattr(fd, "user.mq.id")))' \
		"$T/send" >out
	assert_equal "$(cat out)" "b:0 0 32"
	for pair in keys=order-7 tags=urgent prop.colour=red; do
		assert_equal "$(getfattr --absolute-names --only-values -n "user.mq.${pair%%=*}" "$Q/messages/0")" "${pair#*=}"
	done
	exec 5>"$T/send"
	setfattr -n user.mq.keys -v by-shell "$T/send"
	echo x >&5
	exec 5>&-
	assert_equal "$(getfattr --absolute-names --only-values -n user.mq.keys "$Q/messages/1")" by-shell
	run -1 setfattr -n user.mq.keys -v nobody "$T/send"
	run -1 setfattr -n user.other -v x "$T/send"
}

@test "what the broker refuses is the error of close or fsync" {
	run -1 bash -c 'head -c 4194305 /dev/zero >"$1"' - "$T/send"
	assert_output --partial "Message too long"
	run -1 dd if=/dev/zero of="$T/send" bs=5000000 count=1 conv=fsync,notrunc
	assert_output --partial "Message too long"
	assert_equal "$(cat "$Q/max")" 0
	stop_broker
	start_broker -p maxMessageSize=1000
	within 10 bash -c 'head -c 1001 /dev/zero | dd of="$1" conv=notrunc status=none' - "$T/send" 2>err && false
	grep -q "Message too long" err
	until_true sh -c 'head -c 1000 /dev/zero | cat >"$1"' - "$T/send"
	getfattr --absolute-names -n user.mq.id "$T/send"
	stop_broker
	start_broker -p minFreeBytes=1000000000000000
	until_true refused ENOSPC
	cat "$Q/messages/0" | cmp - <(head -c 1000 /dev/zero)
	stop_broker
	start_broker
	until_true refused OK
	grep -q lastError "$M/status"
}

refused() { # refused ERRNO: so ends a send
	python3 -c 'import errno, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
os.write(fd, b"x")
try: os.fsync(fd); why = "OK"
except OSError as e: why = errno.errorcode[e.errno]
print(why)
sys.exit(why != sys.argv[2])' "$T/send" "$@"
}

@test "a topic that may not be written to is EACCES, not a broker that is away" {
	echo perm=4 >"$T/config"
	until_true refused EACCES
	run -1 bash -c 'seq 3 | tee "$1" >/dev/null' - "$T/lines"
	assert_output --partial "Permission denied"
	echo perm=6 >"$T/config"
	until_true refused OK
	run -0 cat "$Q"/messages/*
	assert_output x
}

@test "settings are edited as a file, also as vi does it" {
	sed 's/^readQueueNums=.*/readQueueNums=3/' "$T/config" >new
	cat new >"$T/config"
	run -0 grep '^readQueueNums' "$T/config"
	assert_output readQueueNums=3
	mq-admin topicRoute -t T -l | awk '$4 == 3 { ok = 1 } END { exit !ok }'
	python3 -c 'import os, sys
text = open(sys.argv[1]).read().replace("writeQueueNums=1", "writeQueueNums=2")
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
os.write(fd, text.encode()); os.fsync(fd); os.fchmod(fd, 0o644); os.close(fd); os.utime(sys.argv[1])' "$T/config"
	run -0 grep '^writeQueueNums' "$T/config"
	assert_output writeQueueNums=2
	if command -v vim >/dev/null; then
		within 20 vim -u NONE -es -c 'set directory=/tmp backupdir=/tmp' -c '%s/^perm=6/perm=4/' -c wq "$T/config" </dev/null
		run -0 grep '^perm' "$T/config"
		assert_output perm=4
	fi
	run -1 bash -c 'echo colour=red >"$1"' - "$T/config"
	assert_output --partial "Invalid argument"
	grep -q "there is no setting 'colour'" fs.log
	run -1 bash -c 'echo perm=many >"$1"' - "$T/config"
	cp "$M/brokers/b/0/config" broker.conf
	sed -i 's/^fileReservedTime=.*/fileReservedTime=71/' broker.conf
	cp broker.conf "$M/brokers/b/0/config"
	run -0 grep '^fileReservedTime=' "$M/brokers/b/0/config"
	assert_output fileReservedTime=71
}

@test "an offset is read and set" {
	for i in $(seq 10); do echo $i >"$T/send"; done
	mq-recv -g G -o begin -c 4 T >/dev/null
	O=$M/groups/G/offsets/T/b:0
	assert_equal "$(cat "$O")" 4
	echo 5 >"$O"
	assert_equal "$(cat "$O")" 5
	assert_equal "$(stat -c %s "$O")" 2
	echo 10 >>"$O"
	assert_equal "$(cat "$O")" 10
	echo 7 >"$O"
	assert_equal "$(cat "$O")" 7
	assert_equal "$(stat -c %s "$O")" 2
	run -1 bash -c 'echo seven >"$1"' - "$O"
	assert_equal "$(cat "$O")" 7
	assert_equal "$(ls "$M/groups/G/offsets")" T
	assert_equal "$(ls "$M/groups/G/offsets/T")" "$(ls "$T/queues")"
	run -0 mq-recv -g G -c 1 T
	assert_output 8
	run -0 awk -F'\t' '$1 == "T" { print $2, $3, $4, $5 }' "$M/groups/G/lag"
	assert_output "b:0 10 8 2"
	: >"$O"
	assert_equal "$(cat "$O")" 8
}

@test "mkdir and rmdir make and delete topics and groups" {
	mkdir "$M/topics/new"
	echo hello >"$M/topics/new/send"
	assert_equal "$(mq-recv -e new)" hello
	run -1 mkdir "$M/topics/new"
	assert_output --partial "File exists"
	run -1 mkdir "$M/topics/a b"
	assert_output --partial "Invalid argument"
	rmdir "$M/topics/new"
	run -2 ls "$M/topics/new"
	run -0 ls "$M/topics"
	refute_line new
	mkdir "$M/groups/G9"
	run -0 ls "$M/groups"
	assert_line G9
	run -0 grep retryMaxTimes "$M/groups/G9/config"
	sed 's/^retryMaxTimes=.*/retryMaxTimes=3/' "$M/groups/G9/config" >g
	cat g >"$M/groups/G9/config"
	run -0 grep retryMaxTimes "$M/groups/G9/config"
	assert_output retryMaxTimes=3
	run -0 cat "$M/groups/G9/clients"
	assert_output ""
	rmdir "$M/groups/G9"
	run -2 ls "$M/groups/G9"
	run -1 rmdir "$M/topics"
	run -1 rmdir "$T/queues"
}
