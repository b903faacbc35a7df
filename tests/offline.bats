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
	[ ! -e "$dir/pid" ] || { kill "$(cat "$dir/pid")"; while kill -0 "$(cat "$dir/pid")" 2>/dev/null; do sleep 0.05; done; } 2>/dev/null || :
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

all=(clean crashed torn trimmed features features-nocrc ipv6)

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
		for command in stat du dump find; do
			run -0 offline "$name" "$command"
		done
		[ "$(sums "$name")" = "$before" ]
	done
}

@test "they need a directory" {
	for command in du dump find; do
		run -2 mq-admin -n 127.0.0.1:1 "$command"
		assert_output --partial "store:DIR"
	done
	run -1 offline nowhere du
	assert_output --partial "$dir/nowhere/commitlog"
}
