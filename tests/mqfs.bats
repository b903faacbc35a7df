#!/usr/bin/env bats
# mqfs over a live cluster: what is there, what reading gives, and that looking neither waits nor consumes.

setup() {
	load helpers
	load mqfs
	mqfs_setup
	start_cluster
}

teardown() {
	mqfs_teardown
}

@test "the root shows what there is, and every entry has a number of its own that stays" {
	seq 20 | mq-send T
	mount_mqfs
	run -0 ls "$M"
	assert_output "$(printf '%s\n' README brokers by-id cluster delayed dlq groups status topics transactions)"
	run -0 ls -iR "$M/topics"
	first=$output
	run -0 ls -iR "$M/topics"
	assert_output "$first"
	awk '$1 ~ /^[0-9]+$/ && NF == 2 { if ($1 == 0 || seen[$1]++) exit 1; n++ } END { exit n < 20 }' <<<"$first"
	run -0 python3 -c 'import os, sys
for e in os.scandir(sys.argv[1]): assert e.inode() == e.stat(follow_symlinks=False).st_ino != 0, e.name' "$M/topics/T"
}

@test "a message is a file with its body, its size and the time it was stored" {
	before=$(date +%s)
	printf 'first' | mq-send -w -q b:0 -k key1 -T tagA -H colour=blue T
	after=$(date +%s)
	mount_mqfs
	f=$M/topics/T/queues/b:0/messages/0
	run -0 cat "$f"
	assert_output first
	assert_equal "$(stat -c %s "$f")" 5
	stored=$(stat -c %Y "$f")
	[ "$stored" -ge "$before" ] && [ "$stored" -le "$after" ]
	assert_equal "$(stat -c %F "$f")" "regular file"
	run -0 getfattr --absolute-names --only-values -n user.mq.keys "$f"
	assert_output key1
	run -0 getfattr --absolute-names --only-values -n user.mq.tags "$f"
	assert_output tagA
	run -0 getfattr --absolute-names --only-values -n user.mq.prop.colour "$f"
	assert_output blue
	run -0 jq -r '.keys + " " + .tags + " " + .properties.colour + " " + (.offset | tostring)' "$M/topics/T/queues/b:0/meta/0.json"
	assert_output "key1 tagA blue 0"
	run -1 cat "$M/topics/T/queues/b:0/messages/1"
	assert_output --partial "No such file"
	run -2 ls "$M/topics/T/queues/b:9"
	run -2 ls "$M/topics/unknown"
	run -1 cat "$M/topics/T/queues/b:0/messages/00"
}

@test "reading past the end is the end, at any offset" {
	printf 0123456789 | mq-send -w -q b:0 T
	mount_mqfs
	run -0 python3 -c 'import os, sys
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    assert size > 0 and len(os.pread(fd, 100000, 0)) == size, path
    for off in size, size + 1, 1 << 62: assert os.pread(fd, 10, off) == b"", (path, off)
    os.close(fd)' "$M/topics/T/queues/b:0/messages/0" "$M/topics/T/queues/b:0/max" "$M/README" "$M/topics/T/config"
}

@test "offsets, size and content are new each time" {
	mq-admin updateTopic -c DefaultCluster -t T -r 1 -w 1
	mount_mqfs
	for i in 1 2 3 4 5 6 7 8 9 10 11; do
		echo "$i" >"$M/topics/T/send"
		assert_equal "$(cat "$M/topics/T/queues/b:0/max")" "$i"
		assert_equal "$(stat -c %s "$M/topics/T/queues/b:0/max")" $((${#i} + 1))
		assert_equal "$(wc -c <"$M/topics/T/queues/b:0/max")" $((${#i} + 1))
	done
	assert_equal "$(cat "$M/topics/T/queues/b:0/min")" 0
}

@test "a directory of messages lists the newest ones and finds every one" {
	seq 50 | mq-send -q b:0 T
	mount_mqfs -o list=10
	run -0 ls -v "$M/topics/T/queues/b:0/messages"
	assert_output "$(seq 40 49)"
	run -0 cat "$M/topics/T/queues/b:0/messages/3"
	assert_output 4
	run -0 cat $(seq -f "$M/topics/T/queues/b:0/messages/%g" 0 49)
	assert_output "$(seq 50 | tr -d '\n')"
}

@test "routes, stats, settings, status and metrics are text" {
	echo x | mq-send T
	mount_mqfs
	run -0 jq -r '.brokerDatas[0].brokerName' "$M/topics/T/route"
	assert_output b
	run -0 cat "$M/topics/T/config"
	assert_line readQueueNums=4
	run -0 cat "$M/topics/T/stats"
	assert_line --regexp '^b:0	[0-9]+	[0-9]+	'
	run -0 cat "$M/cluster/DefaultCluster/brokers"
	assert_output "b	0	127.0.0.1:$broker_port"
	run -0 cat "$M/brokers/b/0/status"
	assert_line --regexp '^brokerVersionDesc=V5'
	run -0 cat "$M/brokers/b/0/config"
	assert_line brokerName=b
	run -0 cat "$M/brokers/b/0/metrics"
	assert_line --regexp '^mq_broker_[a-z_]+\{broker="b",id="0"\} [0-9.e+]+$'
	run -0 cat "$M/status"
	assert_line "nameservers=$NAMESRV_ADDR"
	assert_line errors=0
	run -0 grep -c mqfs "$M/README"
}

@test "messages are found by key, by time and by id, as links" {
	echo old | mq-send -q b:0 T
	sleep 1.1
	from=$(date +%Y-%m-%dT%H:%M:%S)
	echo new | mq-send -q b:0 -k "k1 k2" T
	mount_mqfs
	run -0 ls "$M/topics/T/by-key/k2"
	assert_output b:0:1
	run -0 cat "$M/topics/T/by-key/k1/b:0:1"
	assert_output new
	run -2 ls "$M/topics/T/by-key/k"
	run -0 cat "$M/topics/T/by-time/$from/b:0"
	assert_output new
	run -0 ls "$M/topics/T/by-time/2001-01-01"
	assert_output b:0
	run -0 ls "$M/topics/T/by-time/2999-01-01"
	assert_output ""
	run -2 ls -d "$M/topics/T/by-time/yesterday"
	for name in id offset-id; do
		id=$(getfattr --absolute-names --only-values -n user.mq.$name "$M/topics/T/queues/b:0/messages/1")
		run -0 cat "$M/by-id/$id"
		assert_output new
	done
	run -1 cat "$M/by-id/7F00000100002A9F0000000000000000"
	run -0 ls "$M/by-id" "$M/topics/T/by-key" "$M/topics/T/by-time"
	refute_output --partial b:0
}

@test "system topics are there but listed only when asked for" {
	echo x | mq-send T
	mount_mqfs
	run -0 ls "$M/topics"
	assert_output T
	run -0 ls "$M/topics/SCHEDULE_TOPIC_XXXX"
	unmount
	mount_mqfs -o system
	run -0 ls "$M/topics"
	assert_line SCHEDULE_TOPIC_XXXX
	assert_line T
}

@test "crawlers neither wait nor consume, and find no stream" {
	seq 30 | mq-send T
	mq-recv -g G -c 5 T >/dev/null
	mount_mqfs
	before=$(cat "$M/groups/G/lag")
	within 20 find "$M" -type f -exec head -c1 {} + >/dev/null
	within 20 grep -r no-such-text "$M" || [ $? = 1 ]
	within 20 tar cf all.tar "$M"
	within 20 du -sx "$M"
	within 20 ls -lR "$M" >/dev/null
	within 20 cp -r "$M/topics/T" copy
	within 20 rsync -a "$M/topics/T/" copy2/
	assert_equal "$(cat "$M/groups/G/lag")" "$before"
	tar tf all.tar | grep -q 'messages/0$'
	diff -r --no-dereference copy/queues copy2/queues
	[ -L copy/tail ]
}

@test "without streams also programs that follow links neither wait nor consume" {
	seq 30 | mq-send T
	mq-recv -g G -c 5 T >/dev/null
	mount_mqfs -o nostreams
	before=$(cat "$M/groups/G/lag")
	within 20 grep -R no-such-text "$M/topics" "$M/groups" || [ $? = 1 ]
	within 20 cp -rL "$M/topics/T" copy
	within 20 tar chf all.tar "$M/topics" "$M/groups"
	assert_equal "$(cat "$M/groups/G/lag")" "$before"
	[ ! -e copy/tail ]
}

@test "df is quick whatever the brokers do" {
	echo x | mq-send T
	mount_mqfs
	kill -STOP "$broker_pid" "$ns_pid"
	start=$(date +%s%N)
	for i in $(seq 100); do df "$M" >/dev/null & df_pids="$df_pids $!"; done
	wait $df_pids
	took=$((($(date +%s%N) - start) / 1000000))
	kill -CONT "$broker_pid" "$ns_pid"
	[ $took -lt 10000 ]
}

@test "what is written where nothing can be written is refused" {
	echo x | mq-send T
	mount_mqfs
	run -2 sh -c "echo x >'$M/topics/T/queues/b:0/messages/0'"
	run -2 sh -c "echo x >'$M/topics/T/new'"
	run -1 rm "$M/topics/T/config"
	run -1 mv "$M/topics/T/config" "$M/topics/T/x"
	run -1 ln -s a "$M/topics/T/x"
	run -1 mkdir "$M/topics/new"
	assert_output --partial "Operation not permitted"
	unmount
	mount_mqfs -o ro
	for f in send lines json config; do
		run -2 sh -c "echo x >'$M/topics/T/$f'"
		assert_output --regexp "Read-only file system|No such file"
	done
	run -0 ls "$M/topics/T"
	refute_line send
	assert_equal "$(total T)" 1
}
