#!/usr/bin/env bats
# mq-top, mq-alert, mq-mirror, mq-backup, mq-restore: what operators run by hand and by cron.

setup() {
	load helpers
	mq_setup
}

teardown() {
	stop_embedded "$PWD/other"
	stop_embedded "$PWD/again"
	mq_teardown
}

# Ten messages, of which group g has three.
ten_of_three() {
	seq 10 | mq-send -q local:0 t
	mq-recv -g g -o begin -c 3 t >/dev/null
}

# ---- mq-top ------------------------------------------------------------------------------------------------------------

@test "mq-top: who is behind, once, as lines" {
	ten_of_three
	echo x | mq-send quiet
	run -0 mq-top
	assert_line --regexp $'^t\tg\t0\t7\t[0-9.]+\t[0-9.]+\t10\t[0-9]+$'
	assert_line --regexp $'^quiet\t-\t-\t-\t'
	assert_equal "$(mq-top -1 | head -n 1 | cut -f 1)" t
	assert_equal "$(mq-top -1 -s topic | cut -f 1 | head -n 1)" quiet
	run -0 mq-top -1 -g g
	assert_equal "${#lines[@]}" 1
	run -0 mq-top -1a -m 2
	assert_equal "${#lines[@]}" 2
	run -0 mq-top -t quiet
	refute_line --partial $'\tg\t'
}

@test "mq-top: on a terminal a screen that keys change, and that is gone at the end" {
	ten_of_three
	mkfifo keys
	script -qefc 'stty rows 20 cols 90; mq-top -i 1' screen <keys >/dev/null 2>&1 3>&- &
	local top=$!
	pids+=("$top")
	exec 7>keys
	until_true grep -q '^.*GONE IN' screen
	printf t >&7
	until_true grep -qE 't +g +0 +7 +0 ' screen # the second screen knows that the lag stands
	printf q >&7
	ended "$top"
	exec 7>&-
	assert_equal "$status" 0
	run -0 grep -c $'\033\\[?1049l' screen
}

@test "mq-top, mq-alert, mq-mirror, mq-backup, mq-restore: wrong words" {
	run -2 mq-top -s size
	run -2 mq-top -i 0
	run -2 mq-top t
	run -3 mq-alert --lag 5,4
	assert_line "mq-alert: --lag: '5,4': critical is before the warning"
	run -3 mq-alert --age 5x
	run -3 mq-alert --disk 85,
	run -2 mq-mirror t
	run -2 mq-mirror --to "file:$PWD/other"
	run -2 mq-mirror --to "file:$PWD/other" --batch 0 t
	run -2 mq-mirror --to "file:$PWD/other" t=
	run -2 mq-mirror --to "file:$PWD/other" t -e
	run -1 mq-mirror --to "file:$PWD/other" nosuch
	run -2 mq-backup here
	run -3 mq-backup . copy
	assert_output "mq-backup: '.' is no store directory: it has no commitlog"
	run -2 mq-restore copy
	run -3 mq-restore nowhere again
}

# ---- mq-alert ----------------------------------------------------------------------------------------------------------

@test "mq-alert: silent and 0 when all is well, else a line for each thing and its grade" {
	ten_of_three
	run -0 mq-alert --brokers 1 --lag 8 --age 1h --dlq 1
	assert_output ""
	run -1 mq-alert --lag 7
	assert_output $'WARNING\tlag\tg t\t7 messages behind'
	run -2 mq-alert --lag 5,7 --members 1
	assert_line $'CRITICAL\tlag\tg t\t7 messages behind'
	assert_line $'CRITICAL\tmembers\tg\t0 online, 1 should be'
	run -0 mq-alert --lag 5,7 -x 'g*'
	run -0 mq-alert --lag 5,7 -g other
	run -0 mq-alert -v --lag 100
	assert_output $'OK\tlag\tg t\t7 messages behind'
	run -2 mq-alert -N --lag 1,2
	assert_line --index 0 'MQ CRITICAL - 1 critical, 0 warning, 0 unknown, 0 well | critical=1 warning=0 unknown=0'
	run -0 mq-alert --disk 101
	run -2 mq-alert --disk 0,0
	assert_output --regexp $'^CRITICAL\tdisk\tlocal:0\t[0-9]+ % used$'
}

@test "mq-alert: the oldest message that is not consumed, not the newest" {
	mq-send -q local:0 t <<<old
	mq-recv -g g -o begin -c 1 t >/dev/null
	mq-send -q local:0 t <<<waits
	sleep 2.1 # it is the age that is measured
	mq-send -q local:0 t <<<new
	run -1 mq-alert --age 2s
	assert_output --regexp $'^WARNING\tage\tg t\tthe oldest message not consumed is [0-9]+s old$'
	mq-recv -g g -e t >/dev/null
	run -0 mq-alert --age 2s -v
	assert_output --partial 'nothing waits'
}

@test "mq-alert: dead letters until they are replayed" {
	echo bad | mq-send jobs
	mq-recv -g doers -o begin -e -x 'exit 100' jobs
	run -1 mq-alert
	assert_output $'WARNING\tdlq\tdoers\t1 dead letters wait'
	run -0 mq-alert -x doers
	mq-dlq replay doers
	run -0 mq-alert
	assert_output ""
}

@test "mq-alert: brokers that are missing, and a cluster that cannot be asked" {
	start_cluster
	run -0 mq-alert --broker b --brokers 1
	run -2 mq-alert --broker b --broker c --brokers 2
	assert_line $'CRITICAL\tbroker\tc:0\tno master of this name is known'
	assert_line $'CRITICAL\tbrokers\t-\t1 are known, 2 should be'
	stop_broker KILL
	until_true mq_alert_says 'no master of this name'
	kill "$ns_pid"
	wait "$ns_pid" || :
	run -2 mq-alert --brokers 1
	assert_output --partial "$NAMESRV_ADDR"
	run -3 mq-alert --dlq 1
}

mq_alert_says() {
	mq-alert --broker b | grep -q "$1"
}

# ---- mq-mirror ---------------------------------------------------------------------------------------------------------

@test "mq-mirror: all there is of each message, in order, once, and on from there" {
	mq-admin updateTopic -t t -c local -r 2 -w 2
	printf '{"body":"one","keys":"k1 k2","tags":"T","properties":{"a":"1"}}\n{"body64":"AP8="}\n' | mq-send -J -q local:1 t
	seq 200 | mq-send -q local:0 t
	run -0 mq-mirror -e --batch 50 --to "file:$PWD/other" t=copy
	run -0 mq-mirror -e --to "file:$PWD/other" t=copy
	assert_output ""
	run -0 bash -c "mq-admin -n file:$PWD/other topicRoute -t copy | jq .queueDatas[0].writeQueueNums"
	assert_output 2
	mq-recv -n "file:$PWD/other" -e -J copy >got
	assert_equal "$(wc -l <got)" 202
	run -0 jq -c 'select(.keys) | [.body, .keys, .tags, .properties.a, (.properties.MQ_MIRRORED | split(" ") | .[0:3])]' got
	assert_output '["one","k1 k2","T","1",["t","local:1","0"]]'
	run -0 jq -r 'select(.body64) | .body64' got
	assert_output 'AP8='
	jq -r 'select(.body and (.body | test("^[0-9]+$"))) | "\(.queue)\t\(.body)"' got >numbers
	assert_equal "$(cut -f 1 numbers | sort -u | wc -l)" 1
	assert_equal "$(cut -f 2 numbers)" "$(seq 200)"
	echo more | mq-send t
	mq-mirror -e -q --to "file:$PWD/other" t=copy
	assert_equal "$(mq-recv -n "file:$PWD/other" -e copy | wc -l)" 203
	assert_equal "$(mq-admin consumerProgress -g mq-mirror -t t | awk -F'\t' '{ n += $7 } END { print n }')" 0
}

@test "mq-mirror: from now on" {
	seq 10 | mq-send t
	mq-mirror -e -q -o end --to "file:$PWD/other" t
	seq 11 12 | mq-send t
	mq-mirror -e -q -o end --to "file:$PWD/other" t
	assert_equal "$(mq-recv -n "file:$PWD/other" -e t | sort | paste -sd,)" 11,12
}

@test "mq-mirror: there and back: nothing goes round in circles" {
	echo here | mq-send t
	mq-mirror -e -q --to "file:$PWD/other" t
	echo there | mq-send -n "file:$PWD/other" t
	mq-mirror -e -q -n "file:$PWD/other" --to "file:$Q" t
	mq-mirror -e -q --to "file:$PWD/other" t
	assert_equal "$(mq-recv -e t | sort | paste -sd,)" here,there
	assert_equal "$(mq-recv -n "file:$PWD/other" -e t | sort | paste -sd,)" here,there
}

@test "mq-mirror: what the other side does not take is not passed over" {
	echo x | mq-send t
	mq-admin -n "file:$PWD/other" updateTopic -t t -c local -r 1 -w 1 -p 4
	run -3 mq-mirror -e -q --to "file:$PWD/other" t
	assert_output --partial "no queue may be written"
	mq-admin -n "file:$PWD/other" updateTopic -t t -c local -r 1 -w 1 -p 6
	mq-mirror -e -q --to "file:$PWD/other" t
	assert_equal "$(mq-recv -n "file:$PWD/other" -e t)" x
	# What is refused for good ends it, also when it is to go on.
	head -c 3000 /dev/zero | mq-send -w t
	start_cluster -p maxMessageSize=2000
	run -4 mq-mirror -e -q -n "file:$Q" --to "$NAMESRV_ADDR" -g second t
	run -4 mq-mirror -q -n "file:$Q" --to "$NAMESRV_ADDR" -g second t
	assert_output --partial "line "
	mq-admin -n "file:$Q" offset set -g second -t t -o end
	echo y | mq-send -n "file:$Q" t
	mq-mirror -e -q -n "file:$Q" --to "$NAMESRV_ADDR" -g second t
	run -0 mq-recv -e t
	assert_line y
}

@test "mq-mirror: goes on while messages come, over a kill, without a broker, and ends when asked to" {
	start_cluster
	seq 50 | mq-send t
	mq-mirror -q --to "file:$PWD/other" t 3>&- &
	local mirror=$!
	pids+=("$mirror")
	until_true other_has 50
	kill -9 "$mirror"
	ended "$mirror"
	seq 51 80 | mq-send t
	mq-mirror -q --to "file:$PWD/other" t 2>said 3>&- &
	mirror=$!
	pids+=("$mirror")
	until_true other_has 80
	seq 81 100 | mq-send t
	until_true other_has 100
	# The source is away for a while.
	stop_broker
	until_true grep -q mq- said
	start_broker
	seq 101 110 | mq-send t
	until_true other_has 110
	kill -TERM "$mirror"
	ended "$mirror"
	assert_equal "$status" 143
}

other_has() {
	[ "$(mq-recv -n "file:$PWD/other" -e t | sort -un | wc -l)" -eq "$1" ]
}

# ---- mq-backup, mq-restore ---------------------------------------------------------------------------------------------

@test "mq-backup, mq-restore: a broker goes on from the copy of one that was running" {
	start_cluster
	seq 1000 | mq-send -k key t
	mq-recv -g g -o begin -c 400 t >/dev/null
	mq-send --at +1h later <<<hello
	until_true test -s store/config/consumerOffset.json
	until_true test -s store/config/timercheck
	run -0 mq-backup store copy
	assert_output --partial 'whole'
	# What comes while it copies, and after, is no matter.
	seq 1001 1500 | mq-send t
	stop_broker
	run -0 mq-restore -q copy again
	assert_output ""
	run -0 mq-admin -n "store:$PWD/again" check
	start_broker -p storePathRootDir="$PWD/again"
	assert_equal "$(mq-recv -e t | sort -n | paste -sd,)" "$(seq 1000 | paste -sd,)"
	assert_equal "$(mq-admin -o json queryMsgByKey -t t -k key -c 2000 | grep -c msgId)" 1000
	assert_equal "$(mq-admin timers list | cut -f 3)" later
	seq 1001 1010 | mq-send t
	mq-recv -g g -e t >rest
	[ "$(wc -l <rest)" -ge 610 ]
}

@test "mq-backup: a second run copies what is new, and takes away what the store has deleted" {
	start_cluster -p mappedFileSizeCommitLog=1048576 -p diskSpaceWarningLevelRatio=100
	head -c 3000000 /dev/zero | tr '\0' x | fold -w 1000 | mq-send t
	# The first run is cut short at the last segment: no copy yet, and the next run goes on.
	mkdir shim
	printf '#!/bin/sh\nexit 1\n' >shim/truncate
	chmod +x shim/truncate
	PATH=$PWD/shim:$PATH run -3 mq-backup store copy
	assert [ -e copy/commitlog/00000000000000000000 ]
	run -3 mq-restore copy again
	mq-backup store copy
	run -0 grep -c '^segment' copy/backup
	local whole=$output
	[ "$whole" -ge 2 ]
	seq 10 | mq-send -q b:0 u
	run -0 mq-backup store copy
	assert_line "mq-backup: 1 segments copied ($(awk -F'\t' '$1 == "end" { print $2 }' copy/backup | awk -v n="$whole" '{ print $1 - n * 1048576 }') bytes), $whole as they were, the log ends at $(awk -F'\t' '$1 == "end" { print $2 }' copy/backup)"
	assert_equal "$(mq-recv -n "store:$PWD/copy" -e u | paste -sd,)" "$(seq 10 | paste -sd,)"
	stop_broker
	cp -R copy kept
	rm store/commitlog/00000000000000000000
	run -0 mq-backup store copy
	refute [ -e copy/commitlog/00000000000000000000 ]
	run -0 mq-backup -k store kept
	assert [ -e kept/commitlog/00000000000000000000 ]
	assert_equal "$(mq-recv -n "store:$PWD/kept" -e t | wc -l)" 3000
	# Another store in its place is copied anew, although its segments have the same names.
	rm -r store
	start_broker -p mappedFileSizeCommitLog=1048576 -p diskSpaceWarningLevelRatio=100
	head -c 2500000 /dev/zero | tr '\0' y | fold -w 1000 | mq-send t
	run -0 mq-backup store copy
	assert_line --partial ' 0 as they were'
	assert_equal "$(mq-recv -n "store:$PWD/copy" -e t | grep -c y)" 2500
}

@test "mq-backup, mq-restore: a store of a Java broker, with all kinds of queues" {
	local name
	for name in clean trimmed features; do
		mkdir "$name"
		tar --zstd -xSf "$src/tests/golden/store/$name/store.tar.zst" -C "$name" --strip-components=1
		mq-backup -q "$name" "$name.copy"
		mq-restore -q "$name.copy" "$name.again"
		run diff -rq "$name" "$name.again"
		refute_line --regexp 'commitlog|queue|index|compaction'
	done
	# Without its queues: also the one of timers, which no list of topics has.
	rm -r clean.again/consumequeue
	run -1 mq-admin -n "store:$PWD/clean.again" check
	assert_line --regexp $'^damage\tqueue-missing\trmq_sys_wheel_timer/0\t'
	mq-admin -n "store:$PWD/clean.again" repair
	mq-recv -n "store:$PWD/clean" -e -f '%q %o %x\n' rmq_sys_wheel_timer >want
	assert_equal "$(wc -l <want)" 11
	mq-recv -n "store:$PWD/clean.again" -e -f '%q %o %x\n' rmq_sys_wheel_timer | diff want -
}

@test "mq-backup: while messages come each copy is whole, and no group is beyond its end" {
	start_cluster -p mappedFileSizeCommitLog=1048576 -p diskSpaceWarningLevelRatio=100 -p flushConsumerOffsetInterval=100
	mq-bench -t t --size 500 --rate 5000 --seconds 60 send >/dev/null 2>&1 3>&- &
	local bench=$!
	pids+=("$bench")
	mq-recv -g g -o begin t >/dev/null 2>&1 3>&- &
	pids+=("$!")
	until_true test -s store/config/consumerOffset.json
	local i
	for i in 1 2 3; do
		run -0 mq-backup store copy
		mq-admin -n "store:$PWD/copy" -o json consumerProgress -g g -t t >progress
		run -0 jq -e 'length > 0 and all(.brokerOffset >= .consumerOffset)' progress
	done
	kill "$bench"
}

@test "mq-backup, mq-restore: what is damaged, half done, in use or no copy is said" {
	seq 100 | mq-send -q local:0 t
	stop_embedded "$Q"
	run -3 mq-restore "$Q" again
	assert_output --partial "was not made, or not finished, by mq-backup"
	mkdir full
	touch full/file
	mq-backup -q "$Q" copy
	run -3 mq-restore copy full
	run -2 mq-backup "$Q" "$Q"
	run -3 mq-backup copy "$Q"
	mkdir copy/backup.lock
	echo $$ >copy/backup.lock/pid
	run -3 mq-backup "$Q" copy
	assert_output "mq-backup: 'copy' is being written by process $$"
	echo 999999999 >copy/backup.lock/pid # of one that was killed
	run -0 mq-backup -q "$Q" copy
	printf XXXX | dd of=copy/commitlog/00000000000000000000 bs=1 seek=5000 conv=notrunc status=none
	run -1 mq-restore copy again
	assert_output --partial "nothing is restored"
	refute [ -e again ]
	run -1 mq-restore -f copy again
	[ "$(mq-recv -n "store:$PWD/again" -e t | wc -l)" -ge 90 ]
}
