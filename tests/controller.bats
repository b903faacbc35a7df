#!/usr/bin/env bats
# A controller as brokers and administrators meet it: ids, elections, what is kept over a kill, three of them.
# The rules are tested in unit/test_controller.c; real Java brokers in peer/controller.

load helpers
load controllers

setup() {
	mq_setup
	controllers_setup
}

teardown() {
	exec 5>&- 6>&-
	controllers_teardown
	mq_teardown
}

# Requests of a broker, one after the other: CODE JSON-OF-FIELDS [BODY] on each line; prints the code, fields and body of each answer.
# What is asked stays connected until its input ends, so heartbeats count as long.
ask() { # ask PORT
	python3 -c '
import json, socket, struct, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
s.settimeout(10)
def take(n):
    b = b""
    while len(b) < n:
        more = s.recv(n - len(b))
        if not more: raise SystemExit("closed")
        b += more
    return b
for line in sys.stdin:
    code, fields, *body = line.rstrip("\n").split(" ", 2)
    head = json.dumps(dict(code=int(code), flag=0, language="JAVA", opaque=1, version=453, extFields=json.loads(fields))).encode()
    body = body[0].encode() if body else b""
    s.sendall(struct.pack(">ii", 4 + len(head) + len(body), len(head)) + head + body)
    n, h = struct.unpack(">ii", take(8))
    head, body = json.loads(take(h)), take(n - 4 - h)
    print(head["code"], json.dumps(head.get("extFields", {}), sort_keys=True), body.decode() or "-", flush=True)
' "$1"
}

broker() { # broker ID: its fields
	echo '"clusterName":"C","brokerName":"a","brokerId":"'"$1"'","brokerAddr":"127.0.0.1:1'"$1"'","brokerAddress":"127.0.0.1:1'"$1"'","appliedBrokerId":"'"$1"'","registerCheckCode":"127.0.0.1:1'"$1"';7"'
}

group() { mq-admin -o json getSyncStateSet -a "$addrs" -b a | jq -r '"\(.[] | [.brokerId, .master, .inSync, .alive, .masterEpoch] | @text)"'; }

@test "gives out ids, elects the first who asks, and knows all that after a kill" {
	controllers 1
	run -0 ask "${port[c0]}" <<-E
	1012 {$(broker 1)}
	1013 {$(broker 1)}
	1003 {$(broker 1)}
	904 {$(broker 1)}
	1002 {$(broker 1)}
	1012 {$(broker 2)}
	1013 {$(broker 2)}
	904 {$(broker 2)}
	1004 {"brokerName":"a"}
	1001 {"brokerName":"a","masterBrokerId":"1","masterEpoch":"1"} {"syncStateSet":[1,2],"syncStateSetEpoch":1}
	1001 {"brokerName":"a","masterBrokerId":"2","masterEpoch":"1"} {"syncStateSet":[2],"syncStateSetEpoch":2}
	E
	assert_line -n 0 --partial '"nextBrokerId": "1"'
	assert_line -n 1 --regexp '^0 '
	assert_line -n 2 '0 {"brokerName": "a", "clusterName": "C"} {"syncStateSet":[],"syncStateSetEpoch":0}'
	assert_line -n 4 --partial '0 {"masterAddress": "127.0.0.1:11", "masterBrokerId": "1", "masterEpoch": "1", "syncStateSetEpoch": "1"} {"brokerMemberGroup":{"brokerAddrs":{'
	assert_line -n 5 --partial '"nextBrokerId": "2"'
	assert_line -n 8 '0 {"masterAddress": "127.0.0.1:11", "masterBrokerId": "1", "masterEpoch": "1"} {"syncStateSet":[1],"syncStateSetEpoch":1}'
	assert_line -n 9 '0 {"newSyncStateSetEpoch": "2"} {"syncStateSet":[1,2],"syncStateSetEpoch":2}'
	assert_line -n 10 --regexp '^2002 '

	kill_controller 0
	controller 0
	until_true has_leader "$addrs"
	run -0 ask "${port[c0]}" <<<'1004 {"brokerName":"a"}'
	assert_output '0 {"masterAddress": "127.0.0.1:11", "masterBrokerId": "1", "masterEpoch": "1"} {"syncStateSet":[1,2],"syncStateSetEpoch":2}'
	kill -TERM "${pid[c0]}"
	wait "${pid[c0]}"
	unset 'pid[c0]'
}

@test "a master whose connection ends is followed by one that is in sync" {
	controllers 1
	mkfifo one two
	ask "${port[c0]}" <one >one.out & pid[one]=$!
	ask "${port[c0]}" <two >two.out & pid[two]=$!
	exec 5>one 6>two
	printf '1013 {%s}\n904 {%s}\n1002 {%s}\n' "$(broker 1)" "$(broker 1)" "$(broker 1)" >&5
	until_true eval '[ "$(wc -l <one.out)" = 3 ]'
	printf '1013 {%s}\n904 {%s}\n' "$(broker 2)" "$(broker 2)" >&6
	until_true eval '[ "$(wc -l <two.out)" = 2 ]'
	echo '1001 {"brokerName":"a","masterBrokerId":"1","masterEpoch":"1"} {"syncStateSet":[1,2],"syncStateSetEpoch":1}' >&5
	until_true eval '[ "$(wc -l <one.out)" = 4 ]'
	run -0 group
	assert_line '[1,true,true,true,1]'
	assert_line '[2,false,true,true,1]'
	exec 5>&-
	until_true eval 'group | grep -qF "[2,true,true,true,2]"'
	run -0 group
	assert_line '[1,false,false,false,2]'

	# Nobody but those in sync, unless that is asked for; and what lives is not forgotten.
	run -4 mq-admin electMaster -a "$addrs" -b 1 -bn a -c C
	run -4 mq-admin cleanBrokerMetadata -a "$addrs" -b 2 -bn a -c C
	assert_output --partial 'still alive'
	run -0 mq-admin cleanBrokerMetadata -a "$addrs" -b 1 -bn a -c C --dry-run
	run -0 mq-admin cleanBrokerMetadata -a "$addrs" -b 1 -bn a -c C
	run -0 group
	assert_output '[2,true,true,true,2]'
}

@test "of three controllers the rest goes on when the leader is killed" {
	controllers 3
	name=$(mq-admin -o json getControllerMetaData -a "$addrs" | jq -r .controllerLeaderId)
	i=${name#n}
	run -0 ask "${port[c$i]}" <<-E
	1013 {$(broker 1)}
	904 {$(broker 1)}
	1002 {$(broker 1)}
	E
	# Those that do not lead say so.
	for p in 0 1 2; do ask "${port[c$p]}" <<<"1012 {$(broker 2)}"; done >answers
	grep -q '^2007 ' answers
	run grep -v '^2007 \|"nextBrokerId": "2"' answers
	assert_output ''
	kill_controller "$i"
	until_true eval '[ "$(group)" = "[1,true,true,false,1]" ]'
	controller "$i"
	until_true has_leader "127.0.0.1:${port[c$i]}"
}

@test "a configuration that cannot be right is refused with its name" {
	run -2 mq-namesrv -p listenPort=0 -p enableControllerInNamesrv=true -p controllerDLegerPeers=n0-127.0.0.1:9877 \
		-p controllerDLegerSelfId=n1 -p controllerStorePath="$PWD/c"
	assert_output --partial "controllerDLegerSelfId 'n1' is not among controllerDLegerPeers"
	run -2 mq-namesrv -p listenPort=0 -p enableControllerInNamesrv=true -p controllerDLegerPeers=127.0.0.1:9877 \
		-p controllerDLegerSelfId=n0 -p controllerStorePath="$PWD/c"
	assert_output --partial "is not ID-HOST:PORT"
	run -3 mq-admin getControllerMetaData -a 127.0.0.1:1
	assert_output --partial "no controller of '127.0.0.1:1' answers"
}

@test "keys of the controller's configuration are changed by request, but not those of its place" {
	controllers 1
	run -0 mq-admin updateControllerConfig -a "$addrs" -k enableElectUncleanMaster -v true
	run -0 mq-admin -o json getControllerConfig -a "${addrs%;}"
	assert_output --partial '"enableElectUncleanMaster":"true"'
	run -4 mq-admin updateControllerConfig -a "$addrs" -k controllerStorePath -v /elsewhere
	grep -q '^enableElectUncleanMaster=true' n0.properties
}
