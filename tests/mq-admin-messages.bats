#!/usr/bin/env bats
# mq-admin: finding, printing and sending messages.

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

make_topic() { # make_topic NAME [QUEUES]
	mq-admin updateTopic -c DefaultCluster -t "$1" -r "${2:-2}" -w "${2:-2}" >/dev/null
}

@test "sendMessage: to the queue named, with key and tag" {
	start_cluster
	make_topic t
	run -0 mq-admin sendMessage -t t -p 'hello world' -k 'k1 k2' -c red -b b -i 1
	assert_output --regexp $'^b\t1\tSEND_OK\t[0-9A-F]{32}\t0$'
	run -0 mq-recv -e -f '%q %o %k %T %s\n' t
	assert_output 'b:1 0 k1 k2 red hello world'
	run -2 mq-admin sendMessage -t t -p x -i 1
	run -2 mq-admin sendMessage -t t -p x -b b
	run -2 mq-admin sendMessage -t t -p x -m true
	run -2 mq-admin sendMessage -t 'a b' -p x
	run -2 mq-admin sendMessage -t t -p ''
}

@test "queryMsgByUniqueKey, queryMsgByOffset, queryMsgById show the same message" {
	start_cluster
	make_topic t
	mq-send -q b:1 t <<<"before"
	local id; id=$(mq-admin -o json sendMessage -t t -p hello -k key1 -c red -b b -i 1 | jq -r '.[0].msgId')
	until_true mq-admin queryMsgByUniqueKey -t t -i "$id"
	run -0 mq-admin -o json queryMsgByUniqueKey -t t -i "$id"
	local one=$output
	assert_equal "$(jq -r '[.topic, .keys, .tags, .body, .queueId, .queueOffset] | @csv' <<<"$one")" '"t","key1","red","hello",1,1'
	run -0 mq-admin -o json queryMsgByOffset -t t -b b -i 1 -o 1
	assert_equal "$output" "$one"
	run -0 mq-admin -o json queryMsgById -i "$(jq -r .offsetMsgId <<<"$one")"
	assert_equal "$output" "$one"
	run -1 mq-admin queryMsgByOffset -t t -b b -i 1 -o 2
	run -1 mq-admin queryMsgByOffset -t t -b nobody -i 1 -o 1
	run -1 mq-admin queryMsgByUniqueKey -t t -i "${id}0"
	run -1 mq-admin queryMsgByUniqueKey -t nowhere -i "$id"
}

@test "DecodeMessageId: address and time in an id, asking nobody" {
	start_cluster
	make_topic t
	local before id at; before=$(date +%s%3N)
	id=$(mq-admin -o json sendMessage -t t -p x | jq -r '.[0].msgId')
	run -0 mq-admin -n 127.0.0.1:1 -o json DecodeMessageId -i "$id"
	at=$(jq .date <<<"$output")
	assert [ "$at" -ge $((before - 1)) -a "$at" -le "$(date +%s%3N)" ]
	assert_regex "$(jq -r .ip <<<"$output")" '^[0-9.]+$'
	run -2 mq-admin DecodeMessageId -i 0123
	run -2 mq-admin DecodeMessageId
}

@test "printMsg: every message once, in order of queue and offset, by tag and by time" {
	start_cluster
	make_topic t 2
	seq 70 | mq-send -q b:0 -T odd t
	local between; between=$(date +%s%3N)
	sleep 0.1
	seq 71 100 | mq-send -q b:1 -T even t
	run -0 mq-admin -o tsv printMsg -t t
	assert_equal "$(cut -f8 <<<"$output")" "$(seq 100)"
	run -0 mq-admin -o json printMsg -t t -s even
	assert_equal "$(jq -c '[.[].body | tonumber] | [length, min, max]' <<<"$output")" '[30,71,100]'
	assert_equal "$(mq-admin printMsg -t t -s 'odd || even' | wc -l)" 100
	assert_equal "$(mq-admin printMsg -t t -e $((between + 50)) | wc -l)" 70
	assert_equal "$(mq-admin printMsg -t t -b $((between + 50)) | wc -l)" 30
	run -0 mq-admin printMsg -t t -d false -s even
	assert_line --regexp $'\t-$'
	run -0 mq-admin -o json printMsg -t t -s neither
	assert_equal "$(jq -c . <<<"$output")" '[]'
	run -1 mq-admin printMsg -t nowhere
	run -2 mq-admin printMsg -t t -d maybe
}

@test "printMsg: looking is no consuming" {
	start_cluster
	make_topic t 1
	seq 3 | mq-send t
	mq-admin printMsg -t t >/dev/null
	run -0 mq-admin -o tsv topicList -c
	assert_line $'DefaultCluster\tt\t-'
}

@test "printMsg: bodies that are no text come as hexadecimal, others from their charset" {
	start_cluster
	make_topic t 1
	printf 'a\0b' | mq-send -w t
	printf '\344\366' | mq-send -w t
	run -0 mq-admin printMsg -t t
	assert_equal "$(cut -f8 <<<"$output")" $'610062\ne4f6'
	run -0 mq-admin printMsg -t t -c ISO-8859-1
	assert_equal "$(cut -f8 <<<"$output")" $'610062\näö'
	run -2 mq-admin printMsg -t t -c KLINGON
}

@test "printMsgByQueue: one queue, and how many of each tag" {
	start_cluster
	make_topic t 2
	seq 3 | mq-send -q b:0 -T a t
	seq 4 5 | mq-send -q b:0 -T b t
	seq 6 9 | mq-send -q b:1 -T a t
	run -0 mq-admin printMsgByQueue -t t -a b -i 0 -p true -d true
	assert_equal "$(cut -f8 <<<"$output")" "$(seq 5)"
	run -0 mq-admin printMsgByQueue -t t -a b -i 0 -f true
	assert_output $'a\t3\nb\t2'
	run -2 mq-admin printMsgByQueue -t t -a b -i 0
	run -1 mq-admin printMsgByQueue -t t -a nobody -i 0 -p true
}

@test "consumeMessage: so many from a place on, and no offset is stored" {
	start_cluster
	make_topic t 2
	seq 10 | mq-send -q b:0 t
	seq 11 20 | mq-send -q b:1 t
	run -0 mq-admin consumeMessage -t t -b b -i 0 -o 4 -c 3 -g g
	assert_equal "$(cut -f8 <<<"$output")" $'5\n6\n7'
	assert_equal "$(mq-admin consumeMessage -t t -c 12 | wc -l)" 12
	assert_equal "$(mq-admin consumeMessage -t t | wc -l)" 20
	run -1 mq-admin consumerProgress -g g
	run -1 mq-admin consumeMessage -t t -b b -i 0 -o 10
	run -2 mq-admin consumeMessage -t t -i 0
	run -2 mq-admin consumeMessage -t t -b b -o 3
	run -2 mq-admin consumeMessage -t t -c 0
}

@test "queryCq: entries of a queue as the index of the log has them" {
	start_cluster
	make_topic t 1
	seq 5 | mq-send -T tagA t
	run -0 mq-admin -o tsv queryCq -t t -q 0 -i 1 -c 2
	assert_equal "${#lines[@]}" 2
	assert_regex "${lines[0]}" $'^1\t[0-9]+\t[0-9]+\t3552231$'
	run -0 mq-admin -o json queryCq -t t -q 0 -i 0 -b "127.0.0.1:$broker_port"
	assert_equal "$(jq -c '[.minQueueIndex, .maxQueueIndex, (.queueData | length)]' <<<"$output")" '[0,5,5]'
	run -1 --separate-stderr mq-admin queryCq -t t -q 0 -i 5
	assert_regex "$stderr" "Index 5 of 0@t is not exist!"
	run -1 mq-admin queryCq -t t -q 3 -i 0
}

@test "checkMsgSendRT: each send timed" {
	start_cluster
	make_topic t 2
	run -0 mq-admin -o json checkMsgSendRT -t t -a 5 -s 16
	assert_equal "$(jq -c '[length, ([.[].queue] | unique), (map(.sent) | all), (map(.ms > 0) | all)]' <<<"$output")" '[5,[0,1],true,true]'
	run -0 mq-recv -e t
	assert_equal "$output" "$(printf 'aaaaaaaaaaaaaaaa\n%.0s' 1 2 3 4 5)"
	run -0 mq-admin -o table checkMsgSendRT -t t -a 2
	assert_line --regexp '^Avg RT: [0-9.]+$'
}

@test "checkMsgSendRT: a topic that is not there and is not made" {
	start_cluster -p autoCreateTopicEnable=false
	run -1 --separate-stderr mq-admin checkMsgSendRT -t nowhere -a 1
	assert_output ""
	assert_regex "$stderr" "nowhere"
}

@test "the table of many rows is printed as they come" {
	start_cluster
	make_topic t 1
	seq 100 | mq-send t
	run -0 mq-admin -o table printMsg -t t
	assert_equal "${#lines[@]}" 101
	assert_regex "${lines[0]}" '^#Message ID +#Broker Name +#QID +#Offset +#Stored'
	run -0 bash -c 'mq-admin printMsg -t t | head -n 1'
	assert_equal "${#lines[@]}" 1
	run -3 bash -c 'mq-admin printMsg -t t >/dev/full'
}
