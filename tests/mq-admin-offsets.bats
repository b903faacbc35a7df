#!/usr/bin/env bats
# mq-admin: offsets of groups set exactly, moved, copied, written and read; traces; groups in batch; keys; and what holds for all commands.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

# Topic t of two queues with ten messages each, group g at 4 and 6.
ten_and_ten() {
	start_cluster
	mq-admin updateTopic -t t -c DefaultCluster -r 2 -w 2
	seq 10 | mq-send -q b:0 t
	seq 10 | mq-send -q b:1 t
	mq-admin updateSubGroup -g g -c DefaultCluster
	mq-admin resetOffsetByTime -g g -t t -s 0 -b "127.0.0.1:$broker_port" -q 0 -o 4
	mq-admin resetOffsetByTime -g g -t t -s 0 -b "127.0.0.1:$broker_port" -q 1 -o 6
}

offsets() { # offsets GROUP: of queue 0 and 1
	mq-admin offset get -g "$1" -t t | cut -f 6 | xargs
}

@test "offset get: where a group stands, with ends and lag" {
	ten_and_ten
	run -0 mq-admin offset get -g g -t t
	assert_output $'t\tb\t0\t0\t10\t4\t6\nt\tb\t1\t0\t10\t6\t4'
	run -0 mq-admin -o json offset get -g g
	assert_equal "$(jq -c 'map([.topic, .broker, .queue, .min, .max, .offset, .lag])' <<<"$output")" \
		'[["t","b",0,0,10,4,6],["t","b",1,0,10,6,4]]'
	run -1 mq-admin offset get -g g -t nosuch
	run -1 mq-admin offset get -g nosuch
}

@test "offset set: an offset, the ends, a time; in all queues or in one" {
	ten_and_ten
	run -0 mq-admin offset set -g g -t t -o 3
	assert_output $'t\tb\t0\t4\t3\nt\tb\t1\t6\t3'
	assert_equal "$(offsets g)" "3 3"
	mq-admin offset set -g g -t t -o end -q b:1
	assert_equal "$(offsets g)" "3 10"
	mq-admin offset set -g g -t t -o begin -q b:1
	assert_equal "$(offsets g)" "3 0"
	mq-admin offset set -g g -t t -o @1970-01-02
	assert_equal "$(offsets g)" "0 0"
	mq-admin offset set -g g -t t -o @now
	assert_equal "$(offsets g)" "10 10"
	run -2 mq-admin offset set -g g -t t -o 11
	assert_line --partial "queue b:0 has offsets 0 to 10"
	run -2 mq-admin offset set -g g -t t -o soon
	run -1 mq-admin offset set -g g -t t -o 1 -q b:7
	assert_equal "$(offsets g)" "10 10"
}

@test "offset set reaches members that are online" {
	ten_and_ten
	mkfifo hold
	mq-recv -g g -f '%q %s\n' t >out 2>/dev/null 3>&- &
	pids+=($!)
	got() { [ "$(wc -l <out)" -ge "$1" ]; }
	until_true got 10
	mq-admin offset set -g g -t t -o 8 -q b:0
	until_true got 12
	assert_equal "$(tail -n 2 out)" $'b:0 9\nb:0 10'
}

@test "offset shift: on and back, never beyond what is there" {
	ten_and_ten
	mq-admin offset shift -g g -t t -i 2
	assert_equal "$(offsets g)" "6 8"
	mq-admin offset shift -g g -t t -i -7
	assert_equal "$(offsets g)" "0 1"
	mq-admin offset shift -g g -t t -i 100 -q b:0
	assert_equal "$(offsets g)" "10 1"
}

@test "--dry-run changes nothing, --undo can be taken back" {
	ten_and_ten
	run -0 --separate-stderr mq-admin offset shift -g g -t t -i 1 --undo before --dry-run
	assert_output $'t\tb\t0\t4\t5\nt\tb\t1\t6\t7'
	assert_equal "$stderr" "mq-admin: offset shift: nothing was changed (--dry-run)"
	assert [ ! -e before ]
	assert_equal "$(offsets g)" "4 6"
	mq-admin offset set -g g -t t -o end --undo before
	assert_equal "$(cat before)" $'4\tg\tt\tb:0\n6\tg\tt\tb:1'
	run -4 mq-admin offset set -g g -t t -o begin --undo before
	assert_equal "$(offsets g)" "10 10"
	mq-admin offset import -f before
	assert_equal "$(offsets g)" "4 6"
}

@test "offset copy, export and import" {
	ten_and_ten
	mq-admin updateSubGroup -g h -c DefaultCluster
	mq-admin offset copy -s g -d h -t t
	assert_equal "$(offsets h)" "4 6"
	run -0 mq-admin offset export -g h
	assert_output $'4\th\tt\tb:0\n6\th\tt\tb:1'
	mq-admin offset export -g g | sed 's/^4/5/; s/\tg\t/\th\t/' | mq-admin offset import -f -
	assert_equal "$(offsets h)" "5 6"
	run -2 mq-admin offset import -f - <<<'x y z'
	assert_line --partial "line 1: OFFSET, GROUP, TOPIC, BROKER:ID with tabs between are right"
	run -3 mq-admin offset import -f nosuch
}

@test "updateSubGroupList: the groups of a file, or none if one name is wrong" {
	start_cluster
	echo '[{"groupName":"g1","retryMaxTimes":3},{"groupName":"g2","consumeBroadcastEnable":false}]' >groups
	run -0 mq-admin updateSubGroupList -f groups -c DefaultCluster
	assert_line "create subscription group [g1] to 127.0.0.1:$broker_port success."
	assert_equal "$(mq-admin -o json getConsumerConfig -g g1 | jq -r '."DefaultCluster:b retryMaxTimes"')" 3
	assert_equal "$(mq-admin -o json getConsumerConfig -g g2 | jq -r '."DefaultCluster:b consumeBroadcastEnable"')" false
	run -2 mq-admin updateSubGroupList -f - -c DefaultCluster <<<'[{"groupName":"g3"},{"groupName":"a b"}]'
	run -1 mq-admin getConsumerConfig -g g3
	run -2 mq-admin updateSubGroupList -f - -c DefaultCluster <<<'{}'
}

@test "queryMsgTraceById: what clients wrote down, in the order of time" {
	start_cluster
	id=7F00000100002A9F0000000000000001
	other=7F00000100002A9F0000000000000002
	# As the Java client writes it: contexts end with \2, fields are separated by \1.
	{
		printf 'SubBefore\0011002\001region\001readers\001req\001%s\0010\001key\002' $id
		printf 'SubAfter\001req\001%s\00112\001true\001key\0010\0011003\001readers\002' $id
	} | mq-send -w -k $id RMQ_SYS_TRACE_TOPIC
	printf 'Pub\0011001\001region\001writers\001t\001%s\001tag\001key\001127.0.0.1:1\0015\0017\0010\001off\001true\002' $id |
		mq-send -w -k $id RMQ_SYS_TRACE_TOPIC
	printf 'Pub\0011001\001region\001writers\001t\001%s\001tag\001key\001127.0.0.1:1\0015\0017\0010\001off\001false\002' $other |
		mq-send -w -k $other RMQ_SYS_TRACE_TOPIC
	found() { [ "$(mq-admin queryMsgTraceById -i $id | wc -l)" = 3 ]; }
	until_true found
	run -0 bash -c "mq-admin queryMsgTraceById -i $id | cut -f 1,2,4-6"
	assert_output $'Pub\twriters\t1001\t7\tsuccess\nSubBefore\treaders\t1002\t-\tbegun\nSubAfter\treaders\t1003\t12\tsuccess'
	run -0 bash -c "mq-admin -o json queryMsgTraceById -i $other | jq -r '.[].status'"
	assert_output failed
	run -1 mq-admin queryMsgTraceById -i 7F00000100002A9F0000000000000003
	# Pieces that are no context of the format are passed over.
	printf 'Pub\001\002SubAfter\002\001\001\002' | mq-send -w -k $id RMQ_SYS_TRACE_TOPIC
	found
}

@test "getBrokerConfig changes nothing, however often" {
	cat >broker.conf <<<$'# a comment\nfileReservedTime = 48\nbrokerRole=ASYNC_MASTER'
	start_cluster -c broker.conf
	sum=$(sha256sum <broker.conf)
	first=$(mq-admin getBrokerConfig -b "127.0.0.1:$broker_port")
	for _ in $(seq 20); do
		assert_equal "$(mq-admin getBrokerConfig -b "127.0.0.1:$broker_port")" "$first"
	done
	assert_equal "$(sha256sum <broker.conf)" "$sum"
}

@test "consumerProgress of a group that never failed a message" {
	start_cluster
	seq 3 | mq-send t
	timeout 20 mq-recv -g fresh -o begin -c 3 t >/dev/null
	run -0 mq-admin consumerProgress -g fresh
	assert_equal "$(committed fresh t)" 3
}

# ---- All commands --------------------------------------------------------------------------------------------------------

commands() {
	mq-admin --help | sed -nE 's/^  ([a-zA-Z]+( [a-z]+)?) +[* ] .*/\1/p'
}

# A command with a value for each option that it must have.
words_of() { # words_of COMMAND: sets words
	local o
	words=($1)
	for o in $(mq-admin $1 --help | sed -n '1s/ \[[^]]*\]//g; 1s/^usage: mq-admin //p' | grep -oE -- '--?[a-zA-Z]+ [^ ]+' | tr ' ' '='); do
		words+=("${o%%=*}")
		case ${o#*=} in
		ADDR | NAME,...) words+=("127.0.0.1:${broker_port:-1}") ;;
		TIME) words+=(now) ;;
		MS | N | OFFSET) words+=(0) ;;
		BOOL) words+=(true) ;;
		WHERE) words+=(begin) ;;
		CLUSTER) words+=(DefaultCluster) ;;
		FILE) words+=(/dev/null) ;;
		PERM) words+=(6) ;;
		ID) words+=(7F00000100002A9F0000000000000001) ;;
		*) words+=(nobody) ;;
		esac
	done
}

@test "every command on a cluster where nothing is: an answer, and a status that says it" {
	start_cluster
	local c bad= n=0
	while read -r c; do
		words_of "$c"
		status=0
		timeout 20 mq-admin "${words[@]}" >out 2>err </dev/null || status=$?
		# An offset id names the broker to ask, and nobody is there.
		[ "$c" != queryMsgById ] || [ $status != 3 ] || continue
		case $status in 0 | 1 | 2 | 4) ;; *) bad+="${words[*]}: $status $(cat err)"$'\n' ;; esac
		[ $status != 0 ] || [ ! -s err ] || grep -q 'nothing was changed' err || bad+="${words[*]}: says on stderr $(cat err)"$'\n'
		[ $status = 0 ] || [ -s err ] || bad+="${words[*]}: $status without a word"$'\n'
		n=$((n + 1))
	done < <(commands)
	[ $n -gt 40 ]
	[ -z "$bad" ] || { echo "$bad"; false; }
}

@test "every command of a cluster that is not there: over within the time-out" {
	broker_port=1
	export NAMESRV_ADDR=127.0.0.1:1
	local c bad=
	while read -r c; do
		words_of "$c"
		status=0
		timeout 20 mq-admin --timeout 300ms "${words[@]}" >out 2>err </dev/null || status=$?
		case $status,$c in
		2,* | 3,*) ;;
		0,'key '* | 0,DecodeMessageId | 0,'offset import') ;; # ask nobody
		*) bad+="$c: $status $(cat err)"$'\n' ;;
		esac
	done < <(commands)
	[ -z "$bad" ] || { echo "$bad"; false; }
}
