#!/usr/bin/env bats
# mq-recv: which messages, how they are written, when it ends, what is committed.  Pipes between the two tools: pipe.bats.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

# ---- Which messages -----------------------------------------------------------------------------------------------------

@test "a first message in an empty home with nothing running" {
	echo hello | mq-send greetings
	run -0 mq-recv -e greetings
	assert_output hello
}

@test "looking changes nothing: every look sees all" {
	seq 10 | mq-send t
	for _ in 1 2; do
		mq-recv -e t | sort -n | cmp - <(seq 10)
	done
}

@test "several topics" {
	mq-send a <<<1
	mq-send b <<<2
	run -0 bash -c 'mq-recv -e -f "%t %s\n" a b | sort'
	assert_output $'a 1\nb 2'
}

@test "-o: begin, end, offset, the last N of each queue, a time" {
	mq-send t <<<make
	seq 10 | mq-send -q local:0 u
	look() { mq-recv -e -q local:0 "$@" u | xargs; }
	assert_equal "$(look)" "1 2 3 4 5 6 7 8 9 10"
	assert_equal "$(look -o begin)" "1 2 3 4 5 6 7 8 9 10"
	assert_equal "$(look -o end)" ""
	assert_equal "$(look -o 7)" "8 9 10"
	assert_equal "$(look -o -2)" "9 10"
	assert_equal "$(look -o -200)" "1 2 3 4 5 6 7 8 9 10"
	assert_equal "$(look -o 99)" ""
	sleep 0.05
	local now=$(($(date +%s%N) / 1000000))
	sleep 0.05
	seq 11 12 | mq-send -q local:0 u
	assert_equal "$(look -o "@$now")" "11 12"
	assert_equal "$(look -o @1970-01-02 | wc -w)" 12
	assert_equal "$(look -o @-1h | wc -w)" 12
	assert_equal "$(look -o @now)" ""
}

@test "-o: what is none of these is wrong usage" {
	run -2 mq-recv -o yesterday t
	run -2 mq-recv -o @tomorrow t
	run -2 mq-recv -o stored t
	assert_line 'mq-recv: -o stored: only a group (-g) has stored offsets'
}

@test "-q: one queue only" {
	seq 100 | mq-send --batch 1 t
	run -0 bash -c 'mq-recv -e -q local:1 -f "%q\n" t | sort -u'
	assert_output local:1
	run -2 mq-recv -e -q 1 t
}

@test "-T: only these tags" {
	for tag in red green blue; do mq-send -T $tag t <<<"$tag"; done
	mq-send t <<<none
	run -0 bash -c "mq-recv -e -T 'red||blue' t | sort"
	assert_output $'blue\nred'
	run -0 mq-recv -e -T green t
	assert_output green
	run -0 bash -c 'mq-recv -e -T "*" t | wc -l'
	assert_output 4
	run -0 mq-recv -e -T nosuch t
	refute_output
}

@test "compressed bodies of all types come out plain" {
	head -c 100000 /dev/zero | tr '\0' x >big
	for type in zlib lz4 zstd; do mq-send -w --compress $type t big; done
	mq-recv -e -w t | cmp - <(cat big big big)
}

@test "a topic that is not there" {
	mq-send t <<<x
	run -1 --separate-stderr mq-recv -e nosuch
	assert_equal "$output" ''
	assert_equal "${stderr_lines[0]}" "mq-recv: topic 'nosuch': no broker serves it"
	run -2 mq-recv -e 'a b'
}

@test "a name server that is not there: exit 3 within the time-out" {
	run -3 timeout 10 mq-recv -n 127.0.0.1:1 -e t
	assert_line --partial 'Connection refused'
}

# ---- How a message is written -------------------------------------------------------------------------------------------

@test "-l -0 -w -B" {
	printf 'a\nb' | mq-send -w t
	assert_equal "$(mq-recv -e t | od -An -tx1 | xargs)" "61 0a 62 0a"
	assert_equal "$(mq-recv -e -0 t | od -An -tx1 | xargs)" "61 0a 62 00"
	assert_equal "$(mq-recv -e -w t | od -An -tx1 | xargs)" "61 0a 62"
	assert_equal "$(mq-recv -e -B t | od -An -tx1 | xargs)" "00 00 00 03 61 0a 62"
}

@test "-f" {
	mq-send -k 'k1 k2' -T red -H a=b t <<<body
	run -0 mq-recv -e -f '%t|%q|%o|%k|%T|%h|%{a}|%S|%s|%x|%b|%%\t\x41\\' t
	assert_output --regexp $'^t\\|local:[0-3]\\|0\\|k1 k2\\|red\\|\\{"a":"b"\\}\\|b\\|4\\|body\\|626f6479\\|Ym9keQ==\\|%\tA\\\\$'
	run -0 mq-recv -e -f '%i %d %D' t
	assert_output --regexp '^[0-9A-F]{32} 20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9:]{8}\.[0-9]{3}Z [0-9]{13}$'
	run -2 mq-recv -f '%y' t
	assert_line --partial "unknown field"
}

@test "-J: a line of JSON per message" {
	mq-send -k k1 -T red -H a=b t <<<'say "hi"'
	run -0 bash -c 'mq-recv -e -J t | jq -c "[.topic, .keys, .tags, .properties.a, .body, .offset]"'
	assert_output '["t","k1","red","b","say \"hi\"",0]'
	printf '\0\1\xff' | mq-send -w u
	run -0 bash -c 'mq-recv -e -J u | jq -r .body64 | base64 -d | od -An -tx1'
	assert_output ' 00 01 ff'
}

# ---- When it ends -------------------------------------------------------------------------------------------------------

@test "-e in an empty topic: nothing, and no error" {
	mq-send t <<<x
	run -0 mq-recv -e -o end t
	refute_output
}

@test "-c: so many, and 1 if there are fewer" {
	seq 10 | mq-send t
	run -0 mq-recv -c 3 t
	assert_equal "${#lines[@]}" 3
	run -1 mq-recv -e -c 11 t
	assert_equal "${#lines[@]}" 10
	run -2 mq-recv -c 0 t
}

@test "--timeout counts from the last message; 1 if none came" {
	mq-send t <<<x
	local before=${EPOCHREALTIME/./}
	run -1 mq-recv -o end --timeout 0.5 t
	local took=$(((${EPOCHREALTIME/./} - before) / 1000))
	[ $took -ge 500 ]
	[ $took -lt 10000 ]
	before=${EPOCHREALTIME/./}
	(for i in 1 2 3 4; do sleep 0.4; echo $i; done) | mq-send t &
	mq-recv -o begin --timeout 3 t >got
	took=$(((${EPOCHREALTIME/./} - before) / 1000))
	run -0 sort got
	assert_output $'1\n2\n3\n4\nx'
	[ $took -ge 4600 ]
}

@test "without an end it waits, and shows what comes at once" {
	mq-send t <<<first
	mq-recv t >got &
	until_true grep -q first got
	mq-send t <<<second
	until_true grep -q second got
	kill -TERM $!
	ended $!
	assert_equal "$status" 143
}

@test "SIGINT and SIGTERM: it ends by the signal" {
	mq-send t <<<first
	for sig in INT TERM; do
		# A shell without job control starts what is in the background deaf to SIGINT.
		env --default-signal=INT mq-recv t >got &
		until_true grep -q first got
		kill -$sig $!
		ended $!
		assert_equal "$status" $((128 + $(kill -l $sig)))
	done
}

@test "wrong usage is 2, with a hint" {
	run -2 mq-recv
	assert_line "mq-recv: no TOPIC"
	assert_line "try 'mq-recv --help'"
	run -2 mq-recv -l -0 t
	run -2 mq-recv --jobs 2 t
	run -2 mq-recv -g 'a b' t
	run -2 mq-recv -g g --resume f t
	run -2 mq-recv -x cat -0 t
	run -0 mq-recv --version
}

# ---- What is committed --------------------------------------------------------------------------------------------------

@test "a group goes on where it stopped" {
	seq 10 | mq-send t
	mq-recv -g g -c 4 t >one
	mq-recv -g g -e t >two
	run -0 mq-recv -g g -e t
	refute_output
	sort -n one two | cmp - <(seq 10)
	assert_equal "$(committed g t)" 10
	# another group has its own place
	run -0 bash -c 'mq-recv -g other -e t | wc -l'
	assert_output 10
}

@test "-c moves the group by what was printed, though more was on its way" {
	seq 1000 | mq-send t
	mq-recv -g g -c 7 t >/dev/null
	assert_equal "$(committed g t)" 7
}

@test "stdout that cannot take it: fails, and commits nothing" {
	seq 10 | mq-send t
	run -3 bash -c 'mq-recv -g g -e t 2>&1 >/dev/full'
	assert_output 'mq-recv: standard output: No space left on device'
	assert_equal "$(committed g t)" 0
	run -3 bash -c 'mq-recv -g g -e t 2>&1 >&-'
	assert_output 'mq-recv: standard output: Bad file descriptor'
	assert_equal "$(committed g t)" 0
	run -0 bash -c 'mq-recv -g g -e t | wc -l'
	assert_output 10
}

@test "SIGTERM commits what was printed" {
	seq 100 | mq-send t
	mq-recv -g g t >got &
	until_true [ -s got ]
	until_true eval '[ $(wc -l <got) = 100 ]'
	kill -TERM $!
	ended $!
	assert_equal "$status" 143
	assert_equal "$(committed g t)" 100
}

@test "two members share the queues; what one that is killed had not committed the other gets" {
	start_cluster
	mq-admin updateTopic -t t -r 4 -w 4 -c DefaultCluster
	mq-recv -g g t >one &
	one=$!
	mq-recv -g g t >two &
	two=$!
	seq 2000 | mq-send --batch 1 --rate 200 t &
	sender=$!
	until_true [ -s one ]
	until_true [ -s two ]
	sleep 0.5
	kill -KILL $one
	ended $one
	wait $sender
	all() { [ "$(sort -u one two | wc -l)" = 2000 ]; }
	until_true all
	kill -TERM $two
	ended $two
	assert_equal "$(committed g t)" 2000
}

@test "--resume: without a group, but with a memory" {
	seq 10 | mq-send t
	mq-recv -e --resume state t >one
	seq 11 20 | mq-send t
	mq-recv -e --resume state t >two
	run -0 mq-recv -e --resume state t
	refute_output
	sort -n one | cmp - <(seq 10)
	sort -n two | cmp - <(seq 11 20)
}

@test "--resume: a start at the end is remembered although nothing came" {
	mq-send t <<<old
	mq-recv -e -o end --resume state t
	mq-send t <<<new
	run -0 mq-recv -e -o end --resume state t
	assert_output new
	run -2 mq-recv -e --resume /etc/passwd t
}

@test "--resume: only what stdout took is remembered" {
	seq 1000 | mq-send t
	mq-recv -e --resume state t | head -n 3 >one
	mq-recv -e --resume state t >two
	sort -n one two | cmp - <(seq 1000)
}

# ---- Commands -----------------------------------------------------------------------------------------------------------

@test "-x: body on stdin, the message in the environment; exit 0 consumes" {
	mq-send -k key -T red -H my-prop=v t <<<body
	run -0 mq-recv -g g -e -x 'cat; echo "|$MQ_TOPIC $MQ_QUEUE $MQ_OFFSET $MQ_KEYS $MQ_TAGS $MQ_PROP_my_prop $MQ_SIZE"' t
	assert_output --regexp '^body\|t local:[0-3] 0 key red v 4$'
	assert_equal "$(committed g t)" 1
}

@test "-x: a binary body arrives whole" {
	head -c 1000000 /dev/urandom >big
	mq-send -w t big
	mq-recv -e -x 'cat >copy' t
	cmp big copy
}

@test "-x: without a group any other exit stops it" {
	seq 5 | mq-send -q local:0 t
	run -3 --separate-stderr mq-recv -e -x 'read n; [ "$n" != 3 ] || exit 75; echo "$n"' t
	assert_equal "$output" $'1\n2'
	assert_equal "${stderr_lines[0]}" 'mq-recv: -x: exit code 75 at t local:0 offset 2: stopped, not committed'
}

@test "-x: 0 consumes, 75 and the others come again, 100 is a dead letter, a kill comes again" {
	seq 6 | mq-send -q local:0 t
	run -0 --separate-stderr mq-recv -g g -o begin -e -x 'read n; case $n in 2) exit 75;; 3) exit 100;; 4) kill -9 $$;; 5) exit 1;; esac' t
	assert_equal "${stderr_lines[0]}" 'mq-recv: -x: exit code 75 at t local:0 offset 1: sent back'
	assert_equal "${stderr_lines[1]}" 'mq-recv: -x: exit code 100 at t local:0 offset 2: to the dead letters'
	assert_equal "${stderr_lines[2]}" 'mq-recv: -x: killed by signal 9 at t local:0 offset 3: sent back'
	assert_equal "${stderr_lines[3]}" 'mq-recv: -x: exit code 1 at t local:0 offset 4: sent back'
	assert_equal "$(committed g t)" 6
	run -0 mq-recv -e '%DLQ%g'
	assert_output 3
	# They come again as members of the group, ten seconds later; here it is enough that they wait for their time.
	run -0 bash -c "mq-recv -e -f '%s %{REAL_TOPIC}\n' SCHEDULE_TOPIC_XXXX | sort"
	assert_output $'2 %RETRY%g\n4 %RETRY%g\n5 %RETRY%g'
}

@test "-x: what was sent back comes again with the topic along, and its attempts are counted" {
	echo x | mq-send t
	mq-recv -g g -o begin -c 1 --on-exit 'other=retry:1s' -x 'exit 1' t
	run -0 timeout 30 mq-recv -g g -c 1 -x 'echo "$MQ_TOPIC $MQ_RETRIES $MQ_ATTEMPT $(cat)"' t
	assert_output 't 1 2 x'
}

@test "-x: --max-attempts: then it is a dead letter, at once" {
	echo x | mq-send t
	timeout 30 mq-recv -g g -o begin -c 3 --max-attempts 3 --on-exit 'other=retry:1s' -x 'echo $MQ_ATTEMPT >>log; exit 1' t
	assert_equal "$(xargs <log)" "1 2 3"
	run -0 mq-recv -e -f '%s %{RETRY_TOPIC} %{DELAY}\n' '%DLQ%g'
	assert_output 'x t '
}

@test "--on-exit: what an exit code means" {
	seq 3 | mq-send -q local:0 t
	run -3 --separate-stderr mq-recv -g g -o begin --on-exit '4-5=ok,other=stop' -x 'read n; exit $((n + 3))' t
	assert_equal "${stderr_lines[0]}" 'mq-recv: -x: exit code 6 at t local:0 offset 2: stopped, not committed'
	assert_equal "$(committed g t)" 2
	mq-recv -g g -e --on-exit '7=dead' --on-exit 'signal=ok' -x 'exit 7' t
	run -0 mq-recv -e '%DLQ%g'
	assert_output 3
	run -2 mq-recv --on-exit '1=maybe' -x true t
	run -2 mq-recv --on-exit 'x=ok' -x true t
	run -2 mq-recv --on-exit '300=ok' -x true t
	run -2 mq-recv --on-exit '1=retry:11s' -x true t
	assert_line --partial "'11s' is no level"
}

@test "-x: 126 and 127 of a command that was started stop it as well" {
	echo x | mq-send -q local:0 t
	run -3 --separate-stderr mq-recv -g g -o begin -x 'exec ./gone 2>/dev/null' t
	assert_equal "${stderr_lines[0]}" 'mq-recv: -x: exit code 127 at t local:0 offset 0: stopped, not committed'
	assert_equal "$(committed g t)" 0
}

@test "-x: --exec-timeout: a command that takes too long is killed, its message comes again" {
	echo x | mq-send -q local:0 t
	run -0 --separate-stderr mq-recv -g g -o begin -c 1 --exec-timeout 200ms -x 'exec sleep 60' t
	assert_equal "$stderr" 'mq-recv: -x: killed, it took too long at t local:0 offset 0: sent back'
}

@test "-x -J: the command gets all there is as JSON" {
	echo x | mq-send -k key -T tag t
	run -0 mq-recv -e -J -x 'jq -r ".topic, .keys, .tags, .body"' t
	assert_output $'t\nkey\ntag\nx'
}

@test "-x: a command that cannot be started is told before any message is taken" {
	mq-send t <<<x
	echo >noexec
	run -126 mq-recv -g g -e -x ./noexec t
	assert_line "mq-recv: -x: './noexec': cannot be executed"
	run -127 mq-recv -g g -e -x ./missing t
	run -127 mq-recv -g g -e -x mq-nosuch t
	run -2 mq-recv -g g -e -x 'cat | (' t
	assert_equal "$(committed g t)" 0
	# also with no message and no server
	run -127 mq-recv -n 127.0.0.1:1 -x mq-nosuch t
}

@test "--jobs: beside each other, in order for each queue" {
	mq-send t <<<make
	seq 400 | mq-send --batch 1 u
	mq-recv -g g -e --jobs 4 -x 'read n; printf "%s\t%s\n" "$MQ_QUEUE" "$n" >>log' u
	rising <log
	cut -f2 log | sort -n | cmp - <(seq 400)
	for i in 0 1 2 3; do mq-send -q local:$i v <<<x; done
	# Each waits until all four have begun.
	run -0 timeout 60 mq-recv -e --jobs 4 -x 'touch "began.$MQ_QUEUE"; until [ "$(ls began.* | wc -l)" = 4 ]; do sleep 0.05; done' v
}

@test "-x: SIGTERM lets the command that runs end, and commits it" {
	seq 3 | mq-send -q local:0 t
	mq-recv -g g -x 'touch began; until [ -e go ]; do sleep 0.05; done; echo x >>log' t &
	until_true [ -e began ]
	kill -TERM $!
	touch go
	ended $!
	assert_equal "$status" 143
	assert_equal "$(committed g t)" 1
	assert_equal "$(wc -l <log)" 1
}

# ---- A store directory --------------------------------------------------------------------------------------------------

@test "store:DIR: the same messages without a server, in the order in which they were stored, nothing changed" {
	seq 1000 | mq-send --batch 1 t
	mq-send -T red -k key other <<<x
	mq-recv -e -f '%q\t%o\t%s\t%i\n' t | sed s/local/store/ | sort >want
	stop_embedded "$Q"
	find "$Q" -type f -exec sha256sum {} + | sort >before
	mq-recv -n "store:$Q" -e -f '%q\t%o\t%s\t%i\n' t | sort | cmp - want
	mq-recv -n "store:$Q" -e t | cmp - <(seq 1000)
	run -0 mq-recv -n "store:$Q" -e -T red -f '%k' other
	assert_output key
	run -0 mq-recv -n "store:$Q" -e -T blue other
	refute_output
	run -0 bash -c 'mq-recv -n "store:$1" -e -o -1 t | wc -l' - "$Q"
	assert_output 4
	run -0 bash -c 'mq-recv -n "store:$1" -e -c 3 t' - "$Q"
	assert_output $'1\n2\n3'
	run -0 mq-recv -n "store:$Q" -e -q store:1 -c 1 -f %q t
	assert_output store:1
	find "$Q" -type f -exec sha256sum {} + | sort | cmp - before
}

@test "store:DIR: a broker that writes is followed" {
	mq-send t <<<first
	mq-recv -n "store:$Q" t >got &
	until_true grep -q first got
	seq 100 | mq-send t
	until_true eval '[ $(wc -l <got) = 101 ]'
	kill -TERM $!
	ended $!
}

@test "store:DIR: what cannot be done there" {
	run -2 mq-recv -n store:/tmp -g g t
	run -1 mq-recv -n "store:$PWD/nosuch" -e t
	mq-send t <<<x
	run -1 mq-recv -n "store:$Q" -e nosuch
	assert_line --partial "topic 'nosuch' has no message"
	run -2 mq-recv -n "store:$Q" -q b:1 t
}

@test "--progress on stderr, a line a second" {
	mq-send t <<<x
	run -1 --separate-stderr mq-recv -o end --progress --timeout 1.5s t
	assert_regex "${stderr_lines[0]}" '^mq-recv: 0 received, 0/s, 0 to go$'
}
