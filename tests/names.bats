#!/usr/bin/env bats
# Names of topics and groups: the same verdict at each door, and what is allowed works from end to end.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

@test "what is no name of a topic is refused at each door with the same words, and nothing is made" {
	local name words
	start_cluster
	for name in '≈∂ç' a.b 'a b' a/b .. . $'a\nb' '' "$(printf 'x%.0s' {1..128})"; do
		run -2 --separate-stderr mq-send -- "$name" <<<x
		words=${stderr%%$'\n'*}
		words=${words#mq-send: }
		run -2 --separate-stderr mq-recv -e -- "$name"
		assert_equal "${stderr%%$'\n'*}" "mq-recv: $words"
		run -2 --separate-stderr mq-admin updateTopic -c DefaultCluster -t "$name"
		[[ $stderr == *"${words%%:*}"* ]] || { echo "$name: $stderr"; false; }
	done
	run -0 mq-admin -o tsv topicList
	refute_output --partial xxx
	refute_output --partial a.b
}

@test "a topic of 127 characters, and a group of 248, work from end to end" {
	local topic group
	topic=$(printf 't%.0s' {1..127}) group=$(printf 'g%.0s' {1..248})  # %RETRY% in front: 255
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t "$topic" -r 1 -w 1
	run -0 mq-send "$topic" <<<long
	run -0 mq-recv -c 1 --timeout 10s -g "$group" -o begin "$topic"
	assert_output long
	run -0 mq-admin -o tsv consumerProgress -g "$group"
	assert_output --partial "$topic"
}

@test "a bar in names: sent, consumed, listed" {
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t 'a|b' -r 1 -w 1
	run -0 mq-send 'a|b' <<<barred
	run -0 mq-recv -c 1 --timeout 10s -g 'c|d' -o begin 'a|b'
	assert_output barred
	run -0 mq-admin -o json consumerProgress -g 'c|d'
	assert_output --partial '"a|b"'
	run -0 mq-admin -o tsv topicList
	assert_line 'a|b'
}

@test "an option-like name needs --, and names of the system are not for senders" {
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t -n -r 1 -w 1
	run -0 mq-send -- -n <<<dashed
	run -0 mq-recv -e -o begin -- -n
	assert_output dashed
	run -4 --separate-stderr mq-send SCHEDULE_TOPIC_XXXX <<<x
	assert_regex "$stderr" SCHEDULE_TOPIC_XXXX
}
