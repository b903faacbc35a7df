#!/usr/bin/env bats
# How messages are delivered, as a shell sees it: in order, to all, later, again, in a transaction, with a reply, sealed.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

background() { # background COMMAND...: sets pid
	"$@" 3>&- &
	pid=$!
	pids+=("$pid")
}

lines() { # lines FILE N: at least
	[ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge "$2" ]
}

# ---- In order -----------------------------------------------------------------------------------------------------------

# "KEY N" lines: for each key all numbers from 1 to COUNT, none before its predecessor, repeats allowed.
in_order() { # in_order COUNT
	awk -v count="$1" '
		{ if ($2 > last[$1] + 1) { print "gap:", $1, last[$1], $2; bad = 1; exit }
		  if ($2 < last[$1]) { print "back:", $1, last[$1], $2; bad = 1; exit }
		  last[$1] = $2 }
		END { for (k in last) if (last[k] != count) { print "missing:", k, last[k]; bad = 1 } exit bad }'
}

# 30 numbered messages for each of 8 keys.
fill_orders() { # fill_orders QUEUES
	local key
	mq-admin updateTopic -t orders -c DefaultCluster -r "$1" -w "$1"
	for key in a b c d e f g h; do
		seq 30 | sed "s/^/$key /" | mq-send -s $key orders
	done
}

@test "orders: each key stays in order while three readers come and go" {
	start_cluster
	fill_orders 6
	# The work takes a moment, and what is written down is what was begun: an overlap of two readers would show.
	work='read k n; echo "$k $n" >>log; sleep 0.01'
	for i in 1 2 3; do
		background mq-recv -g packers -o begin --orderly -x "$work" orders
		eval "reader$i=$pid"
		until_true lines log $((i * 20))
	done
	kill "$reader1"; ended "$reader1"
	until_true lines log 100
	background mq-recv -g packers -o begin --orderly -x "$work" orders
	until_true lines log 130
	kill "$reader2"; ended "$reader2"
	all_done() { [ "$(committed packers orders)" = 240 ]; }
	until_true all_done
	in_order 30 <log
	assert_equal "$(wc -l <log)" 240
}

@test "--orderly: what fails waits at its place, and its successors with it" {
	seq 5 | mq-send -q local:0 t
	run -0 --separate-stderr mq-recv -g g -o begin -e --orderly \
		-x 'read n; echo "$n.$MQ_ATTEMPT"; [ $n != 3 ] || [ $MQ_ATTEMPT = 3 ]' --on-exit other=retry:1s t
	assert_equal "$(xargs <<<"$output")" "1.1 2.1 3.1 3.2 3.3 4.1 5.1"
	assert_equal "$stderr" 'mq-recv: -x: exit code 1 at t local:0 offset 2: tried again, and what is behind it waits'
}

@test "--orderly: after --max-attempts a message is a dead letter, and the next one comes" {
	seq 3 | mq-send -q local:0 t
	run -0 mq-recv -g g -o begin -e --orderly --max-attempts 2 -x 'read n; echo $n >>log; [ $n != 2 ]' t
	assert_equal "$(xargs <log)" "1 2 2 3"
	run -0 mq-recv -e '%DLQ%g'
	assert_output 2
	assert_equal "$(committed g t)" 3
}

@test "--orderly: a queue is one reader's; when that dies its lock runs out or is given back" {
	start_cluster
	mq-admin updateTopic -t t -c DefaultCluster -r 1 -w 1
	echo 1 | mq-send t
	background mq-recv -g g -o begin --orderly -x 'cat >>log; exec sleep 0.5' t
	first=$pid
	until_true test -s log
	# The second one takes over only when the first has left; the command that runs is waited for.
	background mq-recv -g g -o begin --orderly t >out
	kill "$first"
	ended "$first"
	echo 2 | mq-send t
	until_true lines out 1
	assert_equal "$(cat out)" 2
	assert_equal "$(cat log)" 1
}

# A reader that is killed gives nothing back: its locks run out, within a minute of when it last asked for them.
@test "--orderly: a reader is killed: another goes on in its place, in order, without a gap" {
	start_cluster
	fill_orders 4
	work='read k n; echo "$k $n" >>log; sleep 0.02'
	background mq-recv -g packers -o begin --orderly -x "$work" orders
	reader1=$pid
	until_true lines log 40
	kill -9 "$reader1"; ended "$reader1"
	background mq-recv -g packers -o begin --orderly -x "$work" orders
	all_done() { sleep 0.5; [ "$(committed packers orders)" = 240 ]; } # a minute is long: no hurry
	until_s=150 until_true all_done
	# What the dead one had not committed comes again, so each key may go back, once, and never leaves one out.
	run -0 awk '
		$2 > last[$1] + 1 { print "gap:", $0; bad = 1 }
		$2 <= last[$1] && ++back[$1] > 1 { print "twice back:", $0; bad = 1 }
		{ last[$1] = $2 }
		END { for (k in last) { n++; if (last[k] != 30) { print "missing:", k, last[k]; bad = 1 } } exit bad || n != 8 }' log
}

# ---- To all -------------------------------------------------------------------------------------------------------------

@test "--broadcast: every member gets everything, and goes on where it was" {
	seq 3 | mq-send t
	mq-recv -g g --broadcast -o begin -e t | sort -n | cmp - <(seq 3)
	mq-recv -g g --broadcast -o begin -e --resume other t | sort -n | cmp - <(seq 3)
	seq 4 6 | mq-send t
	mq-recv -g g --broadcast -e t | sort -n | cmp - <(seq 4 6)
	mq-recv -g g --broadcast -e --resume other t | sort -n | cmp - <(seq 4 6)
	assert_equal "$(sed -n 1p .local/state/mq/broadcast/g)" "mq-recv 1"
	assert_equal "$(committed g t)" 0
}

@test "--broadcast: a reader that takes three moves its file by three" {
	seq 10 | mq-send -q local:0 t
	mq-recv -g g --broadcast -o begin t | head -n 3 | cmp - <(seq 3)
	mq-recv -g g --broadcast -e t | cmp - <(seq 4 10)
}

@test "--broadcast: two members of one account need two files" {
	echo x | mq-send t
	background mq-recv -g g --broadcast -o begin t >out
	until_true lines out 1
	run -3 mq-recv -g g --broadcast -o begin -e t
	assert_output --partial "is in use by another process: --resume FILE names another file"
	run -0 mq-recv -g g --broadcast -o begin -e --resume mine t
	assert_output x
	kill "$pid"
}

# ---- Popped ---------------------------------------------------------------------------------------------------------------

@test "--pop: three members share one queue, and each message is one member's" {
	start_cluster
	mq-admin updateTopic -t t -c DefaultCluster -r 1 -w 1
	seq 90 | mq-send t
	for i in 1 2 3; do
		background mq-recv -g g -o begin --pop -x "read n; echo \$n >>log$i; sleep 0.02" t
		eval "reader$i=$pid"
	done
	all_done() { [ "$(cat log? 2>/dev/null | wc -l)" -ge 90 ]; }
	until_true all_done
	for i in 1 2 3; do
		eval "kill \$reader$i; ended \$reader$i"
		[ -s log$i ]
	done
	sort -n log? | cmp - <(seq 90)
	run -0 mq-recv -g g --pop -e t
	assert_output ''
}

@test "--pop: what a reader had in hand when it was killed comes again, what it acknowledged does not" {
	seq 5 | mq-send -q local:0 t
	background mq-recv -g g -o begin --pop --lease 1s -x 'read n; echo $n >>log; [ $n = 1 ] || exec sleep 60' t
	until_true lines log 2
	kill -9 "$pid"; ended "$pid"
	again() { mq-recv -g g --pop -e t >>out; lines out 4; }
	until_true again
	sort -n out | cmp - <(seq 2 5)
}

@test "--pop: what is not acknowledged when it ends is given back at once" {
	seq 5 | mq-send -q local:0 t
	run -0 mq-recv -g g -o begin --pop -c 2 t
	assert_output $'1\n2'
	again() { mq-recv -g g --pop -e t >>out; lines out 3; }
	until_true again
	sort -n out | cmp - <(seq 3 5)
}

@test "--pop: a failing command's message comes again, and ends as a dead letter" {
	echo bad | mq-send t
	background mq-recv -g g -o begin --pop --max-attempts 2 --on-exit other=retry:1s -x 'echo >>log; exit 1' t
	until_true lines log 2
	dead() { [ "$(mq-recv -e %DLQ%g 2>/dev/null)" = bad ]; }
	until_true dead
	kill "$pid"; ended "$pid"
	assert_equal "$(wc -l <log)" 2
}

@test "--pop: what takes longer than the lease is renewed, and runs once" {
	echo slow | mq-send t
	run -0 mq-recv -g g -o begin --pop --lease 1s -c 1 -x 'echo >>log; sleep 3' t
	run -1 mq-recv -g g --pop --timeout 1s t
	assert_output ''
	assert_equal "$(wc -l <log)" 1
}

@test "--pop: in order, one batch at a time" {
	seq 6 | mq-send -q local:0 t
	run -0 mq-recv -g g -o begin --pop --orderly -e -x 'read n; echo $n >>log' t
	cmp log <(seq 6)
}

@test "--pop: what does not go together" {
	run -2 mq-recv --pop t
	run -2 mq-recv -g g --pop --broadcast t
	run -2 mq-recv -g g --pop -o 5 t
	run -2 mq-recv -g g --lease 5s t
	run -2 mq-recv -g g --pop --lease 1ms t
}

@test "--orderly and --broadcast: what does not go together" {
	run -2 mq-recv --orderly t
	run -2 mq-recv --broadcast t
	run -2 mq-recv -g g --orderly --broadcast t
	run -2 mq-recv --max-attempts 2 t
	run -2 mq-recv --reply cat t
	run -2 mq-recv -x cat --reply cat -g g t
}

# ---- Again, and dead letters ----------------------------------------------------------------------------------------------

@test "a work queue: failures end as dead letters, are looked at, mended and replayed" {
	printf 'add 1 2\nadd 3\nadd 4 5\ndiv 1 0\n' | mq-send -q local:0 -k sums sums
	cat >work <<-'SH'
		#!/bin/sh
		read op a b
		case $op in add) [ -n "$b" ] || exit 100; echo $((a + b)) ;; *) exit 100 ;; esac
	SH
	chmod +x work
	run -0 --separate-stderr mq-recv -g workers -o begin -e -x ./work sums
	assert_output $'3\n9'
	run -0 mq-dlq list
	assert_output $'workers\t2\t2'
	run -0 bash -c "mq-dlq show workers | cut -f 1,3,4,6,7"
	assert_output $'local:0/0\tsums\t1\tsums\tadd 3\nlocal:0/1\tsums\t1\tsums\tdiv 1 0'
	# A dry run shows what would go, and sends nothing.
	run -0 bash -c "mq-dlq replay --dry-run --jq 'select(.body | startswith(\"add\")) | .body += \" 0\"' workers | jq -c '[.topic, .body]'"
	assert_output '["sums","add 3 0"]'
	assert_equal "$(stored sums)" 4
	run -0 bash -c "mq-dlq replay --rate 50 --jq 'select(.body | startswith(\"add\")) | .body += \" 0\"' workers | cut -f 1,3"
	assert_output $'local:0/0\tsums'
	run -0 mq-dlq list
	assert_output $'workers\t2\t0'
	run -0 mq-recv -g workers -e -x ./work sums
	assert_output 3
	# Nothing waits any more; what was replayed is still there for who wants to look.
	run -0 mq-dlq show workers
	assert_output ""
	run -0 bash -c "mq-dlq show -aJ workers | jq -r .body"
	assert_output $'add 3\ndiv 1 0'
	run -0 bash -c "mq-dlq edit -a workers '.body |= ascii_upcase' | mq-send -J - && mq-recv -e -f '%s\t%{MQ_REPLAYED}\n' -T '*' sums | grep [A-Z] | cut -f 1 | grep -v '^add\|^div' | sort"
	assert_output $'ADD 3\nDIV 1 0'
}

@test "what the broker does not take back is not committed: it says why, and ends" {
	start_cluster
	mq-send t <<<x
	# The retry topic is there, and nothing may be written to it.
	timeout 20 mq-recv -g g -o begin -c 1 t
	mq-admin updateTopic -t '%RETRY%g' -c DefaultCluster -r 1 -w 1 -p 4
	mq-send t <<<y
	run -3 --separate-stderr timeout 30 mq-recv -g g -e -x false t
	assert_regex "$stderr" "NO_PERMISSION"
	assert_regex "$stderr" "stopped, not committed"
	assert_equal "$(committed g t)" 1
	mq-admin updateTopic -t '%RETRY%g' -c DefaultCluster -r 1 -w 1 -p 6
	run -0 timeout 30 mq-recv -g g -c 1 t
	assert_output y
}

@test "mq-dlq: a replay that fails goes on with the same message next time" {
	printf '1\n2\n3\n' | mq-send -q local:0 t
	mq-recv -g g -o begin -e -x 'exit 100' t
	run -3 mq-dlq replay --jq 'if .body == "2" then .topic = "a b" else . end' g
	assert_line --partial "illegal character"
	run -0 mq-dlq list
	assert_output $'g\t3\t2'
	run -0 bash -c 'mq-dlq replay -c 1 g | cut -f 1'
	assert_output local:0/1
	mq-dlq replay --to elsewhere g
	run -0 mq-recv -e elsewhere
	assert_output 3
}

@test "mq-dlq: wrong words, and groups without dead letters" {
	mq-send t <<<x
	run -2 mq-dlq
	run -2 mq-dlq show
	run -2 mq-dlq bury g
	run -2 mq-dlq replay --rate fast g
	run -2 mq-dlq replay --jq '.body |=' g
	run -2 mq-dlq list g
	run -1 mq-dlq show g
	assert_output "mq-dlq: group 'g' has no dead letters"
	run -0 mq-dlq list
	assert_output ""
}

@test "a message handed to a member by an administrator: its command says what it makes of it" {
	start_cluster
	printf '1\n2\n' | mq-send t
	background mq-recv -g g -o begin -x 'read n; echo "$n" >>log; [ "$n" != 2 ] || exit 100' t
	until_true lines log 2
	client=$(mq-admin -o json consumerConnection -g g | jq -r '.connectionSet[0].clientId')
	id_of() { mq-recv -e -J t | jq -r "select(.body == \"$1\") | .id"; }
	run -0 mq-admin -o json queryMsgByUniqueKey -t t -i "$(id_of 1)" -g g -d "$client"
	assert_equal "$(jq -r .consumeResult <<<"$output")" CR_SUCCESS
	run -4 mq-admin -o json queryMsgByUniqueKey -t t -i "$(id_of 2)" -g g -d "$client"
	assert_equal "$(jq -r '.consumeResult + " " + .remark' <<<"$output")" "CR_LATER exit code 100"
	assert_equal "$(sort log | xargs)" "1 1 2 2"
	# Only what was consumed in the usual way became a dead letter.
	assert_equal "$(stored %DLQ%g)" 1
	kill "$pid"
	background mq-recv -g h -o begin t >out
	until_true lines out 2
	client=$(mq-admin -o json consumerConnection -g h | jq -r '.connectionSet[0].clientId')
	run -4 mq-admin -o json queryMsgByUniqueKey -t t -i "$(id_of 1)" -g h -d "$client"
	assert_output --partial "has no command that could be run"
}

# ---- Later --------------------------------------------------------------------------------------------------------------

@test "a reminder: -d delivers later, not before and not much after" {
	start_cluster
	mq-send t <<<make
	now=$(($(date +%s%N) / 1000000))
	mq-send -d 1s -k tea t <<<'tea is ready'
	run -0 timeout 20 mq-recv -g g -o begin -c 2 -f '%D %k %s\n' t
	read -r at key text < <(grep tea <<<"$output")
	assert_equal "$key $text" "tea tea is ready"
	[ $((at - now)) -ge 1000 ]
	[ $((at - now)) -lt 3000 ]
}

@test "-d and --at: any time, not before and not much after" {
	start_cluster
	mq-send t <<<make
	now=$(($(date +%s%N) / 1000000))
	mq-send -d 1300ms t <<<delayed
	mq-send --at +1700ms t <<<timed
	run -0 timeout 20 mq-recv -g g -o begin -c 3 -f '%D %s\n' t
	read -r at _ < <(grep delayed <<<"$output")
	[ $((at - now)) -ge 1300 ] && [ $((at - now)) -lt 4000 ]
	read -r at _ < <(grep timed <<<"$output")
	[ $((at - now)) -ge 1700 ] && [ $((at - now)) -lt 4500 ]
	# A time that has passed is now.
	mq-send --at @1000 t <<<past
	run -0 timeout 20 mq-recv -g g -c 1 t
	assert_output past
}

@test "-d and --at: what is said to the servers" {
	mq-send -d level:3 t <<<x
	run -0 mq-recv -e -f '%{REAL_TOPIC} %{DELAY} %s\n' SCHEDULE_TOPIC_XXXX
	assert_output 't 3 x'
	run -0 bash -c "echo '{\"body\":\"j\",\"delay\":\"level:4\"}' | mq-send -J t; mq-recv -e -f '%{DELAY} %s\n' SCHEDULE_TOPIC_XXXX | sort"
	assert_output $'3 x\n4 j'
	run -2 mq-send -d soon t
	run -2 mq-send --at noon t
	run -2 mq-send -d 1s --at now t
}

# ---- Transactions -------------------------------------------------------------------------------------------------------

# A command as psql would be: books its input, fails, or dies, as the line says.
bank() {
	cat >bank <<-'SH'
		#!/bin/sh
		read what n
		case $what in
		good) echo "$n" >>books ;;
		bad) exit 3 ;;
		dies-before) kill -9 $$ ;;
		dies-after) echo "$n" >>books; kill -9 $$ ;;
		esac
	SH
	cat >look <<-'SH'
		#!/bin/sh
		read what n
		echo "$n" >>asked
		grep -qx "$n" books
	SH
	chmod +x bank look
	touch books asked
}

@test "a transaction: committed when the command succeeds, rolled back when it fails" {
	bank
	run -1 --separate-stderr mq-send -g bank --transaction ./bank paid <<<$'good 1\nbad 2\ngood 3'
	assert_equal "${stderr_lines[0]}" "mq-send: line 2: --transaction: exit code 3: rolled back"
	assert_equal "${stderr_lines[1]}" "mq-send: 2 messages committed, 1 rolled back"
	run -0 bash -c 'mq-recv -e paid | sort'
	assert_output $'good 1\ngood 3'
	assert_equal "$(xargs <books)" "1 3"
}

@test "a transaction whose command dies: --check says what was done" {
	bank
	run -1 --separate-stderr mq-send -g bank --transaction ./bank --check ./look paid <<<$'dies-before 1\ndies-after 2\ngood 3'
	assert_equal "${stderr_lines[0]}" "mq-send: line 1: --check: exit code 1: rolled back"
	run -0 bash -c 'mq-recv -e paid | sort'
	assert_output $'dies-after 2\ngood 3'
	assert_equal "$(xargs <asked)" "1 2"
}

@test "a transaction that nobody knows about is asked for later, also of another run" {
	start_cluster -p transactionTimeOut=100 -p transactionCheckInterval=200
	mq-send paid <<<make
	bank
	run -3 --separate-stderr mq-send -g bank --transaction ./bank paid <<<$'dies-after 1\ndies-before 2'
	assert_equal "${stderr_lines[2]}" "mq-send: 0 messages committed, 2 not decided: the brokers ask group 'bank'"
	run -0 mq-recv -e paid
	assert_output make
	# The next run of the group answers, though it has nothing to send.
	background mq-send -g bank --check ./look --wait 60s paid </dev/null
	came() { mq-recv -e paid | grep -qx 'dies-after 1' && grep -qx 2 asked; }
	until_true came
	kill "$pid"
	run -0 bash -c 'mq-recv -e paid | sort'
	assert_output $'dies-after 1\nmake'
}

@test "a transaction whose sender is killed between half and commit is ended by the next" {
	start_cluster -p transactionTimeOut=100 -p transactionCheckInterval=200
	mq-send paid <<<make
	bank
	echo 'good 7' >order
	background mq-send -g bank --transaction 'read w n; echo $n >>books; exec sleep 60' paid order
	until_true lines books 1
	kill -9 "$pid"
	background mq-send -g bank --check ./look --wait 60s paid </dev/null
	came() { mq-recv -e paid | grep -qx 'good 7'; }
	until_true came
	kill "$pid"
}

@test "a transaction: what cannot be started is told before anything is sent" {
	mq-send t <<<make
	run -127 mq-send -g g --transaction ./missing t <<<x
	run -127 mq-send -g g --transaction true --check ./missing t <<<x
	run -2 mq-send --transaction true t <<<x
	run -2 mq-send -g g --transaction true -d 1s t <<<x
	run -2 mq-send -g g --wait 1s t <<<x
	run -0 mq-recv -e t
	assert_output make
}

# ---- Requests -----------------------------------------------------------------------------------------------------------

@test "a server that answers requests, in ten lines of sh" {
	mq-send calc <<<warm
	cat >server <<-'SH'
		#!/bin/sh
		# Adds, divides; a division by zero is the asker's fault, and is said.
		read op a b
		case $op in
		add) echo -n $((a + b)) ;;
		div) [ "$b" != 0 ] && echo -n $((a / b)) || echo -n "no such number" ;;
		*) echo -n "what is '$op'?" ;;
		esac
	SH
	chmod +x server
	assert [ "$(wc -l <server)" -le 10 ]
	background mq-recv -g calculators -o begin --jobs 4 --reply ./server calc
	run -0 mq-send --request --timeout 20s calc <<<$'add 1 2\ndiv 7 2\ndiv 1 0\nmul 2 3'
	assert_output $'3\n3\nno such number\nwhat is \'mul\'?'
	# Many at once, the replies in the order of the questions.
	seq 100 | sed 's/.*/add & &/' | mq-send --request --timeout 20s calc | cmp - <(seq 2 2 200)
	run -0 bash -c 'echo "add 20 22" | mq-send --request --timeout 20s -w calc'
	assert_output 42
	kill "$pid"
	ended "$pid"
}

@test "a request that nobody answers: exit 3 when its time is over" {
	mq-send calc <<<warm
	run -3 --separate-stderr mq-send --request --timeout 300ms calc <<<'add 1 2'
	assert_equal "$output" ""
	assert_regex "${stderr_lines[0]}" "mq-send: line 1: request [0-9A-F]+: no reply in time"
	run -2 mq-send --request --oneway calc <<<x
}

@test "--reply: a command that fails sends no reply, and the request comes again" {
	mq-send calc <<<warm
	background mq-recv -g g -o begin --on-exit 'other=retry:1s' --reply '[ $MQ_ATTEMPT = 2 ] && echo -n late' calc
	run -0 mq-send --request --timeout 20s calc <<<x
	assert_output late
	kill "$pid"
}

@test "--reply: an asker that is gone is told about, and holds nothing up" {
	mq-send -q local:0 calc <<<warm
	run -3 mq-send -q local:0 --request --timeout 50ms calc <<<x
	run -0 --separate-stderr mq-recv -g g -o begin -e --reply cat calc
	assert_regex "$stderr" "channel of <.*> not found"
	assert_equal "$(committed g calc)" 2
}

# ---- Sealed and signed ----------------------------------------------------------------------------------------------------

@test "a sealed and signed pipe" {
	mq-admin key new -f alice
	mq-admin key new -f bob
	assert_equal "$(stat -c %a alice.key)" 600
	head -c 20000 /dev/urandom >letter
	mq-send -w --seal alice.pub --sign bob.key --compress zlib letters letter
	mq-recv -e -w --open alice.key --verify bob.pub letters | cmp - letter
	# Nobody else sees it, and what is stored says who can.
	mq-recv -e -w letters >stored
	run ! cmp -s stored letter
	assert_equal "$(wc -c <stored)" 20048
	assert_equal "$(mq-recv -e -f '%{MQ_SEALED}' letters)" "$(mq-admin -o json key show -f alice.pub | jq -r .key)"
	# Opened it shows no trace of the seal; a sealed copy is as good as the first one.
	run -0 bash -c 'mq-recv -e -J --open alice.key --verify bob.pub letters | jq -c ".properties"'
	assert_output null
	mq-recv -e -J letters | mq-send -J copies
	mq-recv -e -w --open alice.key --verify bob.pub copies | cmp - letter
}

@test "sealed and signed: the wrong key is told, and nothing is committed" {
	for who in alice bob eve; do mq-admin key new -f $who; done
	mq-send -q local:0 --seal alice.pub --sign bob.key letters <<<secret
	run -4 mq-recv -g g -o begin -e --open eve.key letters
	assert_output --regexp 'letters local:0 offset 0: sealed for another key: [0-9a-f]{16}, not [0-9a-f]{16}: stopped, not committed'
	run -4 mq-recv -g g -o begin -e --open alice.key --verify eve.pub letters
	assert_output --partial 'signed by another key'
	assert_equal "$(committed g letters)" 0
	run -0 mq-recv -g g -o begin -e --open alice.key --verify eve.pub --verify bob.pub letters
	assert_output secret
	mq-send -q local:0 letters <<<plain
	run -4 mq-recv -g g -e --verify bob.pub letters
	assert_output --partial 'local:0 offset 1: not signed'
	run -4 mq-recv -g g -e --open alice.key letters
	assert_output --partial 'local:0 offset 1: not sealed'
}

@test "sealed and signed: what was changed on the way is not taken" {
	mq-admin key new -f bob
	mq-send --sign bob.key t <<<'pay 10'
	mq-recv -e -J t | sed 's/pay 10/pay 99/' | mq-send -J forged
	run -4 mq-recv -e --verify bob.pub forged
	assert_output --regexp 'the signature of key [0-9a-f]{16} does not fit: the message was changed'
	mq-send --seal bob.pub s <<<'pay 10'
	mq-recv -e -J s | jq -c '.body64 |= (.[0:-4] + "AAAA")' | mq-send -J broken
	run -4 mq-recv -e --open bob.key broken
	assert_output --partial 'the seal is broken'
}

@test "keys: what is none, the wrong kind, or open to others" {
	mq-admin key new -f bob
	run -4 mq-admin key new -f bob
	assert_output --partial "a key is never overwritten"
	run -2 mq-send --seal bob.key t <<<x
	assert_line --partial "'bob.key' is a secret key; the public one is wanted"
	run -2 mq-send --sign bob.pub t <<<x
	assert_line --partial "'bob.pub' is a public key; the secret one is wanted"
	run -2 mq-send --seal nosuch t <<<x
	echo rubbish >rubbish
	run -2 mq-send --seal rubbish t <<<x
	assert_line --partial "'rubbish' is no key"
	chmod 644 bob.key
	run -2 mq-send --sign bob.key t <<<x
	assert_line --partial "chmod 600"
	run -2 mq-admin key show -f bob.key
}

# ---- Filters ------------------------------------------------------------------------------------------------------------

@test "enableCalcFilterBitMap: what passes a filter stands beside the queue, and the same messages come" {
	start_cluster -p enablePropertyFilter=true -p enableConsumeQueueExt=true -p enableCalcFilterBitMap=true
	mq-admin updateTopic -t t -r 1 -w 1 -c DefaultCluster
	for i in $(seq 5); do mq-send -H n=$i t <<<"$i"; done
	run -0 bash -c "timeout 20 mq-recv -g g -o begin -c 1 --filter 'n = 3' t"
	assert_output 3
	for i in $(seq 6 9); do mq-send -T tag -H n=$i t <<<"$i"; done
	run -0 bash -c "timeout 20 mq-recv -g g -c 2 --filter 'n = 3' t & sleep 0.3; mq-send -H n=3 t <<<again; mq-send -H n=3 t <<<'and again'; wait"
	assert_output $'again\nand again'
	run -0 bash -c "mq-recv -e --filter 'n > 7' t | sort"
	assert_output $'8\n9'
	run -0 mq-recv -e -T tag t
	assert_output $'6\n7\n8\n9'
	ext=$PWD/store/consumequeue_ext/t/0/00000000000000000000
	until_true eval '[ "$(od -An -tu1 -j118 -N2 "$ext" | xargs)" = "0 14" ]'
	# The first five came before anybody filtered and have no bits; those behind have 14 bytes of them.
	assert_equal "$(od -An -tu1 -j18 -N2 "$ext" | xargs)" "0 0"
	run -0 mq-admin -n "store:$PWD/store" check
}

@test "--filter: messages whose properties fit an expression" {
	start_cluster -p enablePropertyFilter=true
	for i in 1 2 3; do mq-send -H n=$i -H color=red t <<<"$i"; done
	mq-send t <<<none
	run -0 bash -c "mq-recv -e --filter \"n > 1 AND color = 'red'\" t | sort"
	assert_output $'2\n3'
	run -0 bash -c "timeout 20 mq-recv -g g -o begin -c 1 --filter 'n = 3' t"
	assert_output 3
	run -4 mq-recv -e --filter 'n >' t
	run -2 mq-recv -T a --filter 'n > 1' t
}
