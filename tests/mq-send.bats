#!/usr/bin/env bats
# mq-send: what one message is, what goes with it, what is refused and told, and how it ends.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

# ---- What is one message ------------------------------------------------------------------------------------------------

@test "a line is a message, also the last without a newline" {
	printf 'a\nb' | mq-send t
	run -0 mq-recv -e -f '%s|' t
	assert_output 'a|b|'
}

@test "an empty input sends nothing and is no error" {
	run -0 mq-send t </dev/null
	refute_output
	run -0 mq-send -B t </dev/null
	run -0 mq-send -w t </dev/null
	run -1 mq-recv -e t
}

@test "NUL bytes and other bytes of a line are kept" {
	printf 'a\0b\n\xff\r\n' | mq-send t
	run -0 bash -c 'mq-recv -e -f "%x\n" t | sort'
	assert_output $'610062\nff0d'
}

@test "-0: a NUL byte ends a message" {
	printf 'a\0b\nc\0d' | mq-send -0 t
	run -0 bash -c 'mq-recv -e -f "%x\n" t | sort'
	assert_output $'61\n620a63\n64'
}

@test "-w: all of stdin is one message; each FILE is one" {
	head -c 1048576 /dev/urandom >one
	mq-send -w t <one
	mq-recv -w -c 1 t | cmp - one
	printf 1 >a
	printf '1\n' >b
	mq-send -w u a b
	run -0 bash -c 'mq-recv -e -f "%x\n" u | sort'
	assert_output $'31\n310a'
}

@test "-B: lengths in front; what -B writes, -B reads" {
	printf '\0\0\0\2a\n\0\0\0\1b' | mq-send -B t
	mq-recv -e -B t | mq-send -B u
	run -0 bash -c 'mq-recv -e -f "%x\n" u | sort'
	assert_output $'610a\n62'
}

@test "-B: an input that ends inside of a record is told, what was whole is sent" {
	run -4 --separate-stderr mq-send -B t < <(printf '\0\0\0\1a\0\0\0\3b')
	assert_equal "${stderr_lines[0]}" 'mq-send: record 2: the input ends inside of it: 1 of 3 bytes came'
	run -0 mq-recv -e t
	assert_output a
}

@test "-J: what mq-recv -J prints can be sent: body, keys, tags, properties, flag" {
	mq-send -J t <<'END'
{"body":"text \u00e9 \"quoted\"","keys":["k1","k2"],"tags":"red","properties":{"place":"Beijing,China","eq":"a=b=c"},"flag":7}
{"body64":"AAH/","properties64":{"bin":"/w=="}}
END
	mq-recv -e -J t | mq-send -J u
	fields='{body,body64,keys,tags,properties,properties64,flag}'
	mq-recv -e -J t | jq -cS "$fields" | sort >t.json
	mq-recv -e -J u | jq -cS "$fields" | sort >u.json
	run -0 cat u.json
	assert_line '{"body":"text é \"quoted\"","body64":null,"flag":7,"keys":"k1 k2","properties":{"eq":"a=b=c","place":"Beijing,China"},"properties64":null,"tags":"red"}'
	assert_line '{"body":null,"body64":"AAH/","flag":null,"keys":null,"properties":null,"properties64":{"bin":"/w=="},"tags":null}'
	cmp t.json u.json
}

@test "-J with topic and queue of each line" {
	mq-send a <<<x
	mq-send -J - <<'END'
{"topic":"a","body":"1"}
{"topic":"b","body":"2"}
END
	run -0 bash -c 'mq-recv -e a | sort; mq-recv -e b'
	assert_output $'1\nx\n2'
	mq-send -q - -J a <<<'{"queue":"local:2","body":"in 2"}'
	run -0 mq-recv -e -q local:2 a
	assert_line 'in 2'
}

@test "a line of 4 MiB is sent, one byte more is refused with both numbers, and the next line is sent" {
	{
		head -c 4194304 /dev/zero | tr '\0' x
		echo
		head -c 4194305 /dev/zero | tr '\0' y
		echo
		echo z
	} >lines
	run -4 --separate-stderr mq-send t <lines
	assert_equal "${stderr_lines[0]}" 'mq-send: line 2: 4194305 bytes are over the limit of 4194304'
	assert_equal "${stderr_lines[1]}" 'mq-send: 2 messages acknowledged, 1 refused'
	run -0 bash -c 'mq-recv -e -f "%S\n" t | sort -n'
	assert_output $'1\n4194304'
}

@test "an endless input that is to be one message is refused at once" {
	run -4 --separate-stderr timeout 10 mq-send -w t </dev/zero
	assert_regex "${stderr_lines[0]}" '^mq-send: standard input: at least [0-9]+ bytes are over the limit of 4194304$'
}

@test "an empty body is refused with its line number, the others are sent" {
	run -4 --separate-stderr mq-send t < <(printf 'a\n\nb\n')
	assert_equal "${stderr_lines[0]}" 'mq-send: line 2: empty body: brokers refuse it (--skip-empty leaves it out)'
	assert_equal "${stderr_lines[1]}" 'mq-send: 2 messages acknowledged, 1 refused'
	run -0 bash -c 'mq-recv -e t | sort'
	assert_output $'a\nb'
}

@test "--skip-empty leaves empty ones out" {
	run -0 --separate-stderr mq-send --skip-empty t < <(printf '\na\n\n\nb\n\n')
	refute [ -n "$stderr" ]
	run -0 bash -c 'mq-recv -e t | sort'
	assert_output $'a\nb'
}

@test "--strict stops at the first that is refused" {
	run -4 --separate-stderr mq-send --strict --batch 1 t < <(printf 'a\n\nb\n')
	assert_equal "${stderr_lines[1]}" 'mq-send: 1 messages acknowledged, 1 refused'
	run -0 mq-recv -e t
	assert_output a
}

@test "every hundredth record of ten thousand is broken: the rest is stored, each broken one is told with its number" {
	seq 10000 | awk '$1 % 100 == 0 { print "{\"topic\":\"a b\",\"body\":\"x\"}"; next } { print "{\"topic\":\"t\",\"body\":\"" $1 "\"}" }' >lines
	run -4 --separate-stderr mq-send -J - <lines
	assert_equal "$(grep -c "topic 'a b'" <<<"$stderr")" 100
	assert_regex "${stderr_lines[0]}" "^mq-send: line 100: topic 'a b'"
	assert_equal "${stderr_lines[100]}" 'mq-send: 9900 messages acknowledged, 100 refused'
	assert_equal "$(stored t)" 9900
}

@test "several FILEs; what is wrong in one is told with its name" {
	printf 'a\n\n' >one
	printf 'b\nc' >two
	run -4 --separate-stderr mq-send t one - two <<<stdin
	assert_equal "${stderr_lines[0]}" 'mq-send: one: line 2: empty body: brokers refuse it (--skip-empty leaves it out)'
	run -0 bash -c 'mq-recv -e t | sort'
	assert_output $'a\nb\nc\nstdin'
	run -3 mq-send t missing
	assert_line "mq-send: open 'missing': No such file or directory"
	run -3 mq-send t /
	assert_line "mq-send: read '/': Is a directory"
	run -4 mq-send -w t /dev/null
	assert_line --partial 'mq-send: /dev/null: empty body'
}

@test "a closed stdin is a clear error" {
	run -3 --separate-stderr bash -c 'mq-send t <&-'
	assert_equal "${stderr_lines[0]}" 'mq-send: read standard input: Bad file descriptor'
}

# ---- What goes with it --------------------------------------------------------------------------------------------------

@test "keys, tag and properties" {
	mq-send -k k1 -k 'k2 k3' -T red -H place=Beijing,China -H eq=a=b=c t <<<x
	run -0 mq-recv -e -f '[%k][%T][%{place}][%{eq}]' t
	assert_output '[k1 k2 k3][red][Beijing,China][a=b=c]'
}

@test "-K: the key stands before the delimiter" {
	printf 'k1:body:1\nnone\n' | mq-send -K : t
	run -0 bash -c 'mq-recv -e -f "%k|%s\n" t | sort'
	assert_output $'k1|body:1\n|none'
	printf 'k2--\nbody\0' | mq-send -0 -K '--\n' u
	run -0 mq-recv -e -f '%k|%s' u
	assert_output 'k2|body'
	run -2 mq-send -K '' u
	run -2 mq-send -K '\q' u
}

@test "separator bytes, empty values and system names are refused" {
	run -2 mq-send -H $'a=x\x01b\x02c' t <<<x
	assert_line "mq-send: property 'a': holds byte 0x01 or 0x02, which separate properties"
	run -2 mq-send -k $'\x01' t <<<x
	run -2 mq-send -T $'\x02' t <<<x
	run -2 mq-send -H 'empty=' t <<<x
	run -2 mq-send -H 'DELAY=3' t <<<x
	assert_line "mq-send: property 'DELAY': this name is the system's"
	run -4 mq-send -K : t < <(printf 'a\x01:x\n')
	assert_line 'mq-send: line 1: key: holds byte 0x01 or 0x02, which separate properties'
	run -1 mq-recv -e t
}

@test "properties up to the limit; over it both numbers are told" {
	fits() { mq-send -J t <<<"{\"body\":\"x\",\"properties\":{\"p\":\"$(head -c "$1" /dev/zero | tr '\0' v)\"}}"; }
	run -0 fits 32600
	run -4 fits 32760
	assert_line --regexp 'mq-send: line 1: .*3[0-9]{4} bytes.* 32767 '
	run -0 mq-recv -e -f '%{p}' t
	assert_equal "${#output}" 32600
}

@test "illegal topics and groups are wrong usage, with the reason" {
	for topic in 'a b' 'a.b' 'a/b' .. '' $'a\nb' '≈∂ç' "$(head -c 128 /dev/zero | tr '\0' t)"; do
		run -2 --separate-stderr mq-send -- "$topic" <<<x
		assert [ -n "$stderr" ]
	done
	run -2 mq-send -g 'a b' t <<<x
	refute [ -e "$Q/commitlog" ]
	mq-send "$(head -c 127 /dev/zero | tr '\0' t)" <<<x
	mq-send -- '-n' <<<x
	run -0 mq-recv -e -- -n
	assert_output x
}

@test "--compress: consumers see the same, the store holds less" {
	head -c 200000 /dev/zero | tr '\0' x >big
	for type in zlib lz4 zstd; do
		mq-send -w --compress $type "t-$type" big
		mq-recv -w -e "t-$type" | cmp - big
	done
	stop_embedded "$Q"
	[ "$(du -sk --apparent-size "$Q/commitlog" | cut -f1)" -gt 0 ]
	run -0 mq-recv -n "store:$Q" -e -f '%S' t-zstd
	assert_output 200000
	[ "$(grep -c xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx "$Q"/commitlog/*)" = 0 ]
	run -2 mq-send --compress gzip t <<<x
}

# ---- Where it goes ------------------------------------------------------------------------------------------------------

@test "-q: into this queue, in order" {
	mq-send t <<<first
	seq 10000 | mq-send -q local:2 u
	run -0 bash -c 'mq-recv -e u | cmp - <(seq 10000)'
	run -0 bash -c 'mq-recv -e -f "%q\n" u | sort -u'
	assert_output local:2
}

@test "-q: a queue that is not there" {
	mq-send t <<<x
	run ! mq-send -q local:99 t <<<x
	assert_line --partial 'local:99'
	run -2 mq-send -q 3 t <<<x
	assert_line "mq-send: -q: '3': BROKER:ID is right"
}

@test "-s: the queue of a sharding key, as Java chooses it" {
	mq-admin updateTopic -t t -r 3 -w 3 -c local || skip "no updateTopic here"
	# Its hash is the smallest number of 32 bits: remainder first, then abs.
	mq-send -s polygenelubricants t <<<x
	run -0 mq-recv -e -f '%q' t
	assert_output local:2
	seq 1000 | mq-send -s k u
	run -0 bash -c 'mq-recv -e u | cmp - <(seq 1000)'
}

@test "without -q or -s each queue has its lines in the order of the input" {
	seq 200000 | mq-send t
	mq-recv -e -f '%q\t%s\n' t >got
	rising <got
	cut -f2 got | sort -n | cmp - <(seq 200000)
	[ "$(cut -f1 got | sort -u | wc -l)" -gt 1 ]
}

# ---- What is told -------------------------------------------------------------------------------------------------------

@test "-v: id, queue and offset of each message in the order of the input" {
	seq 100 >in
	mq-send -v t <in >told
	assert_equal "$(wc -l <told)" 100
	paste told in | sort >want
	mq-recv -e -f '%i\t%q\t%o\t%s\n' t | sort | cmp - want
}

@test "-v of one-way messages: what is known" {
	run -0 mq-send -v --oneway t <<<x
	assert_output --regexp $'^[0-9A-F]{32}\t-\t-$'
	until_true holds t 1
}

@test "-v into a full disk is an error" {
	run -3 bash -c 'mq-send -v t <<<x 2>&1 >/dev/full'
	assert_output 'mq-send: standard output: No space left on device'
}

@test "nothing but data on stdout, nothing at all when all is well" {
	run -0 --separate-stderr mq-send t <<<x
	refute [ -n "$output$stderr" ]
}

@test "--failed: what no broker took stands there and can be sent" {
	mq-send t <<<first
	stop_embedded "$Q"
	run -3 --separate-stderr mq-send -n 127.0.0.1:1 -T red -k key --failed failed t < <(seq 3)
	assert_equal "$(wc -l <failed)" 3
	mq-send -J - failed
	run -0 bash -c 'mq-recv -e -f "%s %k %T\n" t | sort'
	assert_output $'1 key red\n2 key red\n3 key red\nfirst  '
}

@test "--rate" {
	local before=${EPOCHREALTIME/./}
	seq 60 | mq-send --rate 100 t
	local took=$(((${EPOCHREALTIME/./} - before) / 1000))
	assert_equal "$(stored t)" 60
	[ $took -ge 550 ]
	[ $took -lt 12000 ]
}

@test "a line that comes alone is sent at once" {
	mkfifo in
	mq-send t <in &
	exec 5>in
	for i in 1 2 3; do
		echo $i >&5
		until_true holds t $i
	done
	exec 5>&-
	wait $!
}

@test "half a line waits for its other half" {
	(printf 'ab'; sleep 0.3; printf 'cd\nef'; sleep 0.1; printf g) | mq-send t
	run -0 bash -c 'mq-recv -e t | sort'
	assert_output $'abcd\nefg'
}

@test "memory stays bounded whatever the input" {
	! ldd "$(command -v mq-send)" | grep -q asan || skip "built with a sanitizer"
	head -c 200000000 /dev/zero | tr '\0' x >line
	(ulimit -v 1500000; mq-send t <line) || assert_equal $? 4
	seq 1000000 >lines
	mq-send t <lines &
	until_true ! kill -0 $!
	run -0 bash -c '/usr/bin/env bash -c "ulimit -v 400000; seq 300000 | mq-send u"'
}

# ---- How it ends --------------------------------------------------------------------------------------------------------

@test "a name server that is not there: exit 3 within the time-out" {
	local before=$SECONDS
	run -3 mq-send -n 127.0.0.1:1 t <<<x
	assert_line --partial 'Connection refused'
	run -3 mq-send -n nosuch.invalid:9876 t <<<x
	run -2 mq-send -n store:/tmp t <<<x
	[ $((SECONDS - before)) -lt 10 ]
}

@test "a host that has no address: exit 3" {
	run -3 timeout 20 mq-send -n nosuch.invalid:9876 t <<<x
	assert_output --partial "nosuch.invalid"
}

@test "stdin is read under a terminal, without one, and in the background" {
	mq-send t <<<make
	echo under >in
	script -qc 'mq-send t <in' /dev/null </dev/null
	setsid mq-send t <<<without
	echo behind | nohup mq-send t 2>/dev/null &
	wait $!
	run -0 bash -c 'mq-recv -e t | sort'
	assert_output $'behind\nmake\nunder\nwithout'
}

has_read() { # pid, bytes
	[ "$(awk '/^rchar/ { print $2 }' "/proc/$1/io")" -ge "$2" ]
}

@test "SIGTERM reaches it also while a line never ends, or nothing but empty lines come" {
	mkfifo lines
	mq-send t /dev/zero 2>told &
	until_true has_read $! 20000000
	kill -TERM $!
	ended $!
	assert_equal "$status" 143
	run -0 cat told
	assert_line 'mq-send: interrupted: 0 messages acknowledged'
	yes '' >lines &
	mq-send --skip-empty t lines &
	until_true has_read $! 20000000
	kill -TERM $!
	ended $!
	assert_equal "$status" 143
}

@test "SIGTERM: what came is sent, the number acknowledged is told, and it ends by the signal" {
	mkfifo in
	mq-send t <in 2>told &
	exec 5>in
	printf '1\n2\n3\nhal' >&5
	until_true holds t 3
	kill -TERM $!
	ended $!
	assert_equal "$status" 143
	exec 5>&-
	run -0 cat told
	assert_line 'mq-send: interrupted: 3 messages acknowledged'
	assert_line 'mq-send: 3 bytes of a message that had not come whole were not sent'
}

@test "--resume: a rerun goes on where the last one stopped, also when the input has grown" {
	seq 1000 >in
	mq-send --resume state t in
	run -0 mq-send --resume state t in
	assert_equal "$(stored t)" 1000
	seq 1001 2000 >>in
	mq-send --resume state t in
	mq-recv -e t | sort -n | cmp - <(seq 2000)
	# stdin is read up to that place
	cat in | mq-send --resume state2 u
	(cat in; seq 2001 2100) | mq-send --resume state2 u
	mq-recv -e u | sort -n | cmp - <(seq 2100)
}

@test "--resume: a file of another input is refused, one that is shorter, too" {
	seq 10 >in
	mq-send --resume state t in
	run -2 mq-send --resume state other in
	assert_line "mq-send: --resume: 'state': belongs to another topic, framing or input; remove it to begin anew"
	run -2 mq-send --resume state -0 t in
	run -2 mq-send --resume in t in
	seq 3 >in
	run -2 mq-send --resume state t in
	assert_line --partial 'in ends before the place where the last run stopped'
}

@test "--resume: several FILEs" {
	seq 1 10 >a
	seq 11 20 >b
	mq-send --resume state t a b
	seq 21 30 >>b
	mq-send --resume state t a b
	mq-recv -e t | sort -n | cmp - <(seq 30)
}

@test "wrong usage is 2, with a hint" {
	run -2 mq-send
	assert_line "mq-send: no TOPIC"
	assert_line "try 'mq-send --help'"
	run -2 mq-send -l -0 t
	run -2 mq-send --batch 0 t
	run -2 mq-send --nosuch t
	run -2 mq-send -q - t
	run -2 mq-send -q b:1 -s k t
	run -0 mq-send --version
}

# ---- A broker that goes -------------------------------------------------------------------------------------------------

@test "the broker is killed in the middle: not 0, the number acknowledged is told, --resume sends the rest, no gap" {
	start_cluster
	seq 20000 >in
	mq-send --rate 20000 --timeout 1s --resume state t in 2>told &
	until_true holds t 3000
	stop_broker KILL
	ended $!
	assert_equal "$status" 3
	run -0 cat told
	assert_output --regexp 'mq-send: [0-9]+ messages acknowledged, [0-9]+ not'
	start_broker
	mq-send --resume state t in
	mq-recv -e t | sort -n | uniq | cmp - <(seq 20000)
}

@test "the broker is started again in the middle: nothing is lost, and 0" {
	start_cluster
	seq 20000 >in
	mq-send --rate 20000 --timeout 20s t in &
	sender=$!
	until_true holds t 3000
	stop_broker TERM
	start_broker
	wait $sender
	mq-recv -e t | sort -n | uniq | cmp - <(seq 20000)
}

@test "no topic is made when the broker may not make any: exit 1 or 4, and why" {
	start_cluster -p autoCreateTopicEnable=false
	run ! mq-send t <<<x
	[ "$status" = 1 ] || [ "$status" = 4 ]
	assert_line --partial "topic 't'"
}
