#!/usr/bin/env bats
# The broker is killed again and again while it takes messages under SYNC_FLUSH: what was acknowledged is there afterwards, at the
# place that was told, once; it starts by itself.  MQ_CRASH_ROUNDS: how often (20).


setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

broker() {
	start_broker -p flushDiskType=SYNC_FLUSH -p mappedFileSizeCommitLog=65536 -p mappedFileSizeConsumeQueue=2000 \
		-p maxHashSlotNum=500 -p maxIndexNum=400 "$@"
}

make_topic() { # make_topic NAME QUEUES
	mq-admin updateTopic -c DefaultCluster -t "$1" -r "$2" -w "$2" >/dev/null
}

# Lines "KEY BODY", each with its own key; what is acknowledged goes to acked.N as mq-send -v tells it: "ID QUEUE OFFSET".
sender() { # sender NUMBER ROUND
	seq -f "s$1-$2-%.0f" 1000000 | awk '{ b = sprintf("%*s", 1 + NR * 37 % 900, ""); gsub(/ /, "x", b); print $1 " " b }' |
		mq-send -K " " -v --in-flight 16 --timeout 300ms t >>"acked.$1" 2>/dev/null
}

@test "kill -9 under sync flush load: nothing acknowledged is lost, no offset is given twice" {
	local rounds=${MQ_CRASH_ROUNDS:-20} r s senders
	start_namesrv
	broker
	make_topic t 3
	for ((r = 0; r < rounds; r++)); do
		senders=
		for s in 1 2 3; do
			sender $s $r &
			senders="$senders $!"
		done
		sleep "0.$((1 + RANDOM % 5))"
		stop_broker KILL
		for s in $senders; do wait "$s" || true; done
		broker
	done
	mq-recv -e -o begin -f '%k %i %q %o\n' t >stored
	# No offset twice, none left out.
	awk '{ n[$3]++; if (seen[$3 " " $4]++) { print "twice: " $0; bad = 1 } if ($4 > max[$3]) max[$3] = $4 }
		END { for (q in n) if (max[q] + 1 != n[q]) { print "gaps in queue " q; bad = 1 } exit bad }' stored
	# Everything acknowledged is there.
	awk '{ print $1 }' acked.* | sort >acked
	awk '{ print $2 }' stored | sort >there
	[ "$(wc -l <acked)" -gt $((rounds * 3)) ]
	comm -23 acked there >lost
	[ ! -s lost ] || { echo "acknowledged $(wc -l <acked), lost $(wc -l <lost):"; head -n 5 lost; false; }
	# The index finds what was acknowledged in the last round before the last kill.
	local key
	for key in $(tail -n 3 stored | cut -d' ' -f1) $(head -n 3 stored | cut -d' ' -f1); do
		run -0 mq-admin -o tsv queryMsgByKey -t t -k "$key"
	done
	stop_broker
}
