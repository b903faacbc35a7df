#!/usr/bin/env bats
# mq-admin on store:DIR: stores that the Java broker left, whole and damaged: looked at, measured, checked, repaired.
# What is in them stands in tests/golden/store/README and the manifests.

bats_require_minimum_version 1.5.0

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	src=${MQ_SRC:-$BATS_TEST_DIRNAME/..}
	dir=$BATS_TEST_TMPDIR
	export TZ=UTC
	unset NAMESRV_ADDR
}

teardown() {
	for f in "$dir"/*.pid; do
		[ ! -e "$f" ] || { kill "$(cat "$f")" && wait "$(cat "$f")"; } 2>/dev/null || true
	done
}

# A server in the background that says its port when ready; sets `port`.
serve() { # serve NAME COMMAND...
	local name=$1; shift
	mkfifo "$dir/$name.ready"
	"$@" --ready-fd 9 9>"$dir/$name.ready" 2>"$dir/$name.log" 3>&- &
	echo $! >"$dir/$name.pid"
	read -r -t 20 port <"$dir/$name.ready" || { cat "$dir/$name.log"; return 1; }
}

golden() { # golden NAME [AS]: its store in $dir/AS
	mkdir -p "$dir/${2:-$1}"
	tar --zstd -xSf "$src/tests/golden/store/$1/store.tar.zst" -C "$dir/${2:-$1}" --strip-components=1
}

offline() { # offline NAME COMMAND...
	local name=$1; shift
	timeout 60 mq-admin -n "store:$dir/$name" -o tsv "$@"
}

sums() { # every file of a store and what is in it, times too
	(cd "$dir/$1" && find . -printf '%p %s %T@\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

all=(clean crashed torn trimmed features features-nocrc ipv6 v4.9.7 v5.3.2)

@test "the files are the sum of what du says, whatever the rows" {
	for name in "${all[@]}"; do
		golden "$name"
		bytes=$(cat "$dir/$name"/commitlog/* | wc -c)
		for by in topic queue day topic,queue,day; do
			[ "$(offline "$name" du --by $by | awk -F'\t' '{ n += $6 } END { print n }')" = "$bytes" ]
		done
	done
}

@test "du counts the messages of each queue" {
	golden trimmed
	run -0 offline trimmed du --by queue
	assert_line $'messages\tTrimB\t0\t-\t21\t20517'
	assert_line $'messages\tTrimB\t1\t-\t22\t24068'
	assert_line $'free\t-\t-\t-\t0\t20951'
	run -0 offline trimmed du --by day
	assert_line $'messages\t-\t-\t2026-11-30\t43\t44585'
	run -2 offline trimmed du --by week
	assert_output --partial "'week'"
}

# Records of light message queues end with junk inside of their properties where the Java broker wrote no checksum.
text_properties='with_entries(select(.key | test("^[A-Za-z_][A-Za-z0-9_%#.-]*$")))'

@test "dump has each message that the Java client saw" {
	for name in "${all[@]}"; do
		golden "$name"
		jq -Sc '.messages[] | select(has("view") | not) | [.commitLogOffset, .topic, .queueId, .queueOffset, .storeSize, .offsetMsgId,
			.flag, .sysFlag, .bornTimestamp, .storeTimestamp, .reconsumeTimes, .bodyCRC, (.properties | '"$text_properties"')]' \
			"$src/tests/golden/store/$name/manifest.json" | sort >"$dir/want"
		offline "$name" dump -w messages | jq -Sc 'select(.kind == "message") | [.commitLogOffset, .topic, .queueId, .queueOffset,
			.storeSize, .offsetMsgId, .flag, .sysFlag, .bornTimestamp, .storeTimestamp, .reconsumeTimes, .bodyCRC,
			(.properties | '"$text_properties"')]' | sort >"$dir/have"
		[ "$(wc -l <"$dir/want")" -gt 5 ]
		run -0 bash -c "comm -23 $dir/want $dir/have | head -3"
		assert_output ""
	done
}

@test "dump has each entry of queues and index, and the checkpoint" {
	golden clean
	run -0 offline clean dump --what queues,index,checkpoint
	[ "$(grep -c '"kind":"queue"' <<<"$output")" = 462 ]
	[ "$(grep -c '"keyHash"' <<<"$output")" = 918 ]
	[ "$(grep -c '"indexCount"' <<<"$output")" = 3 ]
	[ "$(grep -c '"slots":500,"capacity":400' <<<"$output")" = 3 ]
	assert_line --partial '"kind":"checkpoint","bytes":4096,'
	refute_line --partial '"kind":"message"'
	run -0 offline clean dump -t FxPlain
	[ "$(grep -c '"topic":"FxPlain"' <<<"$output")" -gt 10 ]
	refute_line --partial '"topic":"FxZip"'
	run -2 offline clean dump -w everything
}

@test "find knows topic, key, tag, time and text" {
	golden clean
	m=$src/tests/golden/store/clean/manifest.json
	[ "$(offline clean find -t FxPlain | wc -l)" = "$(jq '[.messages[] | select(.topic == "FxPlain")] | length' "$m")" ]
	while IFS=$'\t' read -r topic key offs; do
		[ "$(offline clean find -t "$topic" -k "$key" | wc -l)" = "$offs" ] || { echo "$topic $key $offs"; return 1; }
	done < <(jq -r '.queryByKey[] | select(has("error") | not) | select(.commitLogOffsets | length > 0) |
		[.topic, .key, (.commitLogOffsets | length)] | @tsv' "$m" | head -20)
	read -r tag n < <(jq -r '[.messages[].properties.TAGS | select(. != null and test("^[A-Za-z0-9]+$"))] |
		group_by(.)[0] | "\(.[0]) \(length)"' "$m")
	[ "$(offline clean find -g "$tag" | wc -l)" -ge "$n" ]
	read -r at n < <(jq -r '[.messages[] | select(has("view") | not) | .storeTimestamp] | sort | .[9] as $t |
		"\($t) \(map(select(. <= $t)) | length)"' "$m")
	[ "$(offline clean find -e "@$at" | wc -l)" -ge "$n" ]
	[ "$(offline clean find -c 3 | wc -l)" = 3 ]
	run -1 offline clean find -t FxPlain -k no-such-key
	body=$(offline clean dump -w messages -t FxZip | jq -r 'select(.body) | .body' | head -1 | cut -c1-12)
	run -0 offline clean find -t FxZip -B "$body"
	assert_line --index 0 --regexp $'^[0-9A-F]+\t[0-9A-F]{32}\t[0-9]+\t[0-9]+\t[0-9]+\tFxZip$'
}

@test "stat tells sizes, times, and how it was left" {
	golden clean
	golden crashed
	run -0 offline clean stat
	assert_line $'logFileBytes\t196608'
	assert_line $'segments\t3'
	assert_line $'firstStored\t1796057368586'
	assert_line $'lastStored\t1796057439604'
	assert_line $'cleanStop\ttrue'
	assert_line $'inUse\tfalse'
	run -0 offline crashed stat
	assert_line $'cleanStop\tfalse'
}

@test "none of them changes a byte or a time" {
	for name in clean torn; do
		golden "$name"
		before=$(sums "$name")
		for command in stat du dump find check "repair --dry-run"; do
			run offline "$name" $command
			[ "$status" -le 1 ]
		done
		[ "$(sums "$name")" = "$before" ]
	done
}

@test "they need a directory" {
	for command in du dump find check repair; do
		run -2 mq-admin -n 127.0.0.1:1 "$command"
		assert_output --partial "store:DIR"
	done
	run -1 offline nowhere du
	assert_output --partial "$dir/nowhere/commitlog"
}

# ---- check and repair ---------------------------------------------------------------------------------------------------

whole() { # whole NAME
	run --separate-stderr offline "$1" check
	[ "$status" = 0 ] || { echo "$output"; return 1; }
	assert_output ""
	[[ $stderr == *": whole" ]]
}

# What of a store must be there for good: every message.
messages() { offline "$1" dump -w messages | grep '"kind":"message"' | jq -Sc . | sort; }

mended() { # mended NAME MESSAGES: repair it, all that was a message still is one
	messages "$1" >"$dir/before"
	run -0 offline "$1" repair
	whole "$1"
	messages "$1" >"$dir/after"
	[ "$(wc -l <"$dir/after")" = "$2" ]
	cmp "$dir/before" "$dir/after"
}

poke() { # poke FILE OFFSET HEX
	printf "$(sed 's/../\\x&/g' <<<"$3")" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

saved() { # saved NAME FILE: where repair has put it
	local found=("$dir/$1"/repair-*/"$2")
	[ -e "${found[0]}" ] || { find "$dir/$1"/repair-*; return 1; }
	echo "${found[0]}"
}

@test "check: what the Java broker left is whole, after a kill too" {
	for name in clean crashed trimmed features features-nocrc ipv6 v4.9.7 v5.3.2; do
		golden "$name"
		whole "$name"
	done
	run -0 offline crashed check --notes
	assert_output --partial $'note\tunclean\tabort'
}

@test "check: of the torn store exactly what was torn, and what follows" {
	golden torn
	run --separate-stderr -1 offline torn check
	assert_equal "$(cut -f1-6 <<<"$output" | sort)" "$(sort <<-E
		damage	entries-missing	FxCrash/1	128	131	3
		damage	torn	commitlog	333974	334367	393
		follows	entries-beyond	FxCrash/0	131	132	1
		follows	index-beyond	commitlog	333974	333974	2
		E
	)"
}

@test "repair: the torn store is whole, each whole message is there, what was cut is saved" {
	golden torn
	run -0 offline torn repair --dry-run
	[ "${#lines[@]}" -ge 4 ]
	[ ! -e "$(echo "$dir"/torn/repair-*)" ]
	mended torn 724
	[ "$(stat -c %s "$(saved torn commitlog/00000000000000333974)")" = 393 ]
	golden torn old
	cmp <(tail -c +$((333974 - 327680 + 1)) "$dir/old/commitlog/00000000000000327680" | head -c 393) \
		"$(saved torn commitlog/00000000000000333974)"
	cmp "$dir/old/consumequeue/FxCrash/1/00000000000000002000" "$(saved torn consumequeue/FxCrash/1/00000000000000002000)"
	cmp "$dir/old/checkpoint" "$(saved torn checkpoint)"
	run -0 offline torn dump -w queues -t FxCrash
	[ "$(grep -c '"queueId":1' <<<"$output")" = 131 ]
	[ "$(grep -c '"queueId":0' <<<"$output")" = 131 ]
	run -0 offline torn stat
	assert_line $'cleanStop\ttrue'
	run -0 offline torn repair
	assert_output --partial "nothing to mend"
}

@test "repair: a store that is whole is left alone" {
	golden clean
	golden crashed
	for name in clean crashed; do
		before=$(find "$dir/$name" -type f ! -name lock -print0 | sort -z | xargs -0 sha256sum)
		run -0 offline "$name" repair
		assert_output --partial "nothing to mend"
		[ "$(find "$dir/$name" -type f ! -name lock -print0 | sort -z | xargs -0 sha256sum)" = "$before" ]
	done
}

@test "a queue that was damaged is written again: an entry, a file, all of it" {
	golden clean
	cp -a "$dir/clean" "$dir/good"
	q=$dir/clean/consumequeue/FxLong/0
	poke "$q/00000000000000000000" 200 0000000000000007
	run -1 offline clean check
	assert_output --regexp $'damage\tentries-wrong\tFxLong/0\t10\t11\t1'
	mended clean 462
	diff -r "$dir/good/consumequeue" "$dir/clean/consumequeue"

	poke "$q/00000000000000000000" 400 0000000000000000000000000000000000000000
	run -1 offline clean check
	assert_output --regexp $'damage\tentries-missing\tFxLong/0\t20\t21\t1'
	rm -rf "$dir"/clean/repair-*
	mended clean 462
	diff -r "$dir/good/consumequeue" "$dir/clean/consumequeue"

	# A size: the right place, but more than the message is read there.
	poke "$q/00000000000000000000" 408 00007fff
	run -1 offline clean check
	assert_output --regexp $'damage\tentries-wrong\tFxLong/0\t20\t21\t1'
	rm -rf "$dir"/clean/repair-*
	mended clean 462
	diff -r "$dir/good/consumequeue" "$dir/clean/consumequeue"

	# The code of a tag: filters go by it.
	poke "$q/00000000000000000000" 412 00000000000000aa
	run -1 offline clean check
	assert_output --regexp $'damage\tentries-tag\tFxLong/0\t20\t21\t1'
	rm -rf "$dir"/clean/repair-*
	mended clean 462

	truncate -s 1000 "$q/00000000000000002000"
	run -1 offline clean check
	assert_output --regexp $'damage\tfile\tconsumequeue/FxLong/0/00000000000000002000'
	rm -rf "$dir"/clean/repair-*
	mended clean 462
	diff -r "$dir/good/consumequeue" "$dir/clean/consumequeue"

	rm -r "$dir/clean/consumequeue/FxPlain"
	run -1 offline clean check
	assert_output --regexp $'damage\tqueue-missing\tFxPlain/0'
	rm -rf "$dir"/clean/repair-*
	mended clean 462
	diff -r "$dir/good/consumequeue" "$dir/clean/consumequeue"
}

@test "messages of a deleted topic are no damage and do not come back" {
	golden clean
	rm -r "$dir/clean/consumequeue/FxZip"
	sed -i 's/"FxZip"/"Other"/g' "$dir/clean/config/topics.json"
	run -0 offline clean check --notes
	assert_output --regexp $'note\tqueue-missing\tFxZip/0'
	rm "$dir/clean/checkpoint"
	mended clean 462
	[ ! -e "$dir/clean/consumequeue/FxZip" ]
}

@test "an index that was damaged is made again: every key is found" {
	golden clean
	m=$src/tests/golden/store/clean/manifest.json
	index=$(ls "$dir"/clean/index/* | head -1)
	poke "$index" 60 00000000                       # some slot
	poke "$index" $((40 + 2000 + 20 * 7 + 4)) 0000000000000001
	run -1 offline clean check
	assert_output --regexp $'damage\tindex-'
	mended clean 462
	[ -s "$(saved clean "index/$(basename "$index")")" ]
	run -0 offline clean dump -w index
	assert_output --partial '"slots":500,"capacity":400'
	while IFS=$'\t' read -r topic key n; do
		[ "$(offline clean queryMsgByKey -t "$topic" -k "$key" | wc -l)" = "$n" ] || { echo "$topic $key $n"; return 1; }
	done < <(jq -r '.queryByKey[] | select(has("error") | not) | select(.commitLogOffsets | length > 0) |
		[.topic, .key, (.commitLogOffsets | length)] | @tsv' "$m" | head -20)

	rm "$(ls "$dir"/clean/index/* | sed -n 2p)"
	run -1 offline clean check
	assert_output --regexp $'damage\tindex-missing'
	rm -rf "$dir"/clean/repair-*
	mended clean 462
}

@test "damage in the middle of the log cannot be mended: it is named, what can be read stays" {
	golden clean
	read -r off size < <(jq -r '[.messages[] | select(.topic == "FxLong")][40] | "\(.commitLogOffset) \(.storeSize)"' \
		"$src/tests/golden/store/clean/manifest.json")
	segment=$((off / 65536 * 65536))
	poke "$dir/clean/commitlog/$(printf %020d $segment)" $((off - segment + 90)) ffff
	run -1 offline clean check
	assert_output --regexp "damage	damaged	commitlog	$off	$((off + size))	$size	"
	assert_output --regexp "follows	entries-lost	FxLong/0"
	run -1 offline clean repair
	assert_output --partial "cannot be mended"
	[ "$(messages clean | wc -l)" = 461 ]
	run -1 offline clean check
	assert_output --regexp "damage	damaged	commitlog	$off	$((off + size))	$size	"
	refute_output --partial "follows"
	[ -s "$(saved clean consumequeue/FxLong/0/00000000000000000000)" ]
}

@test "a message that does not match its own checksum" {
	golden features
	off=$(jq -r '[.messages[] | select((has("view") | not) and .properties["__CRC32#"])][3].commitLogOffset' "$src/tests/golden/store/features/manifest.json")
	poke "$dir/features/commitlog/00000000000000000000" $((off + 16)) 01020304      # its flag
	run -1 offline features check
	assert_output --regexp "damage	checksum	commitlog	$off	"
}

@test "a segment that was cut short, a checkpoint, a file of config" {
	golden clean
	truncate -s 60000 "$dir/clean/commitlog/00000000000000131072"
	run -1 offline clean check
	assert_output --regexp $'damage\tfile\tcommitlog/00000000000000131072'
	mended clean 462
	[ "$(stat -c %s "$dir/clean/commitlog/00000000000000131072")" = 65536 ]

	truncate -s 10 "$dir/clean/checkpoint"
	run -1 offline clean check
	assert_output --regexp $'damage\tcheckpoint\tcheckpoint'
	rm -rf "$dir"/clean/repair-*
	mended clean 462

	cp "$dir/clean/config/topics.json" "$dir/topics.bak"
	cp "$dir/topics.bak" "$dir/clean/config/topics.json.bak"
	echo '{"dataVersion":' >"$dir/clean/config/topics.json"
	run -1 offline clean check
	assert_output --regexp $'damage\tconfig\tconfig/topics.json'
	rm -rf "$dir"/clean/repair-*
	mended clean 462
	cmp "$dir/topics.bak" "$dir/clean/config/topics.json"
	[ "$(cat "$(saved clean config/topics.json)")" = '{"dataVersion":' ]

	: >"$dir/clean/config/topics.json"
	: >"$dir/clean/config/topics.json.bak"
	run -1 offline clean check
	run -1 offline clean repair
	assert_output --partial "no good copy"
}

@test "beside a running broker: check sees no damage, repair refuses; after a kill it mends" {
	serve broker mq-broker -p listenPort=0 -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 -p storePathRootDir="$dir/live" \
		-p diskSpaceWarningLevelRatio=100 -p mappedFileSizeCommitLog=65536 -p maxHashSlotNum=500 -p maxIndexNum=2000
	whole live
	timeout 60 mq-bench --broker "127.0.0.1:$port" --count 3000 send >"$dir/sent" 3>&- &
	bench=$!
	while kill -0 $bench 2>/dev/null; do
		whole live
	done
	wait $bench
	whole live
	run -0 offline live check --notes
	assert_output --partial $'note\tin-use\tlock'
	sent=$(messages live | wc -l)
	[ "$sent" -ge 3000 ]
	for option in "" --dry-run; do
		run -3 offline live repair $option
		assert_output --partial "$dir/live"
	done
	run -0 offline live stat
	assert_line $'inUse\ttrue'
	kill -KILL "$(cat "$dir/broker.pid")"
	wait "$(cat "$dir/broker.pid")" || true
	mended live "$sent"
}
