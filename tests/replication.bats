#!/usr/bin/env bats
# Two brokers of one name: the slave has every byte of the master's log, its tables, and serves readers; either may die; a slave
# that has something else gives it up, and keeps a copy of what that was.

load helpers

setup() { mq_setup; start_namesrv; }
teardown() { mq_teardown; }

# up NAME [OPTION...]: a broker with its store in ./NAME; sets NAME_pid, NAME_port; later starts take the same ports.
up() {
	local name=$1 port=$1_port; shift
	mkfifo "$name.ready"
	mq-broker -n "$NAMESRV_ADDR" -p listenPort="${!port:-$(free_ports)}" -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 \
		-p brokerName=b -p storePathRootDir="$PWD/$name" -p mappedFileSizeCommitLog=1048576 \
		-p flushConsumerOffsetInterval=100 "$@" \
		--ready-fd 9 9>"$name.ready" 2>>"$name.log" 3>&- </dev/null >/dev/null &
	printf -v "${name}_pid" %s $!
	pids+=($!)
	read -r -t 60 "${name}_port" <"$name.ready"
	rm "$name.ready"
}

master() { up m "$@" && until_true known "$m_port"; }
slave() { up s -p brokerRole=SLAVE -p brokerId=1 -p slaveReadEnable=true "$@" && until_true known "$s_port"; }
known() { mq-admin clusterList | grep -q "127.0.0.1:$1"; }

kill_it() { # kill_it PID [SIGNAL]
	kill "-${2:-9}" "$1"
	wait "$1" 2>/dev/null || :
}

status() { mq-admin -o json haStatus -b "127.0.0.1:$1" | tr -d '\n'; }
says() { status "$1" | grep -q -- "$2"; } # says PORT REGEX
log_end() { mq-admin brokerStatus -b "127.0.0.1:$1" | awk -F'\t' '$1 == "commitLogMaxOffset" { print $2 }'; }
level() { [ "$(log_end "$m_port")" = "$(log_end "$s_port")" ]; }

# Both logs end at the same place, and every segment of the slave's is the master's, byte by byte.
same_logs() {
	local f
	until_true level
	for f in s/commitlog/*; do cmp "$f" "m/commitlog/${f##*/}" || return 1; done
}

# What the queues of a store list, one message a line.
listed() { mq-recv -e -n "store:$PWD/$1" -f '%q %o %s\n' "$2" | sort; }

@test "a slave has the master's log, its queues, topics, groups and offsets" {
	master
	seq 3000 | mq-send -K ' ' numbers
	mq-recv -e -c 500 -g readers numbers >/dev/null
	mq-admin updateTopic -b "127.0.0.1:$m_port" -t made -r 3 -w 5 >/dev/null
	slave
	same_logs
	seq 3000 | mq-send later
	same_logs
	until_true says "$m_port" '"inSyncSlaveNums": *1'
	until_true grep -q '"made"' s/config/topics.json
	until_true grep -q '"readers"' s/config/subscriptionGroup.json
	until_true grep -q 'numbers@readers' s/config/consumerOffset.json
	kill_it "$s_pid" TERM
	kill_it "$m_pid" TERM
	listed m later >m.listed
	listed s later >s.listed
	[ "$(wc -l <m.listed)" = 3000 ]
	cmp m.listed s.listed
	cmp <(mq-admin check -n "store:$PWD/s" 2>&1 | grep -c DAMAGE) <(echo 0)
	for f in m/consumequeue/later/*/*; do cmp "$f" "s/${f#m/}"; done
}

@test "a slave is killed under load and catches up" {
	master
	slave
	seq 60000 | mq-send load &
	local sender=$!
	until_true grep -q load m/config/topics.json
	kill_it "$s_pid"
	slave
	ended $sender
	[ "$status" = 0 ]
	same_logs
	[ "$(stored load)" = 60000 ]
}

@test "the master is killed: readers go to the slave, and back when it is there again" {
	master -p ackOnTwoMachines=true
	slave
	until_true says "$m_port" '"inSyncSlaveNums": *1'
	seq 5000 | mq-send kept
	until_true grep -q '"kept"' s/config/topics.json
	kill_it "$m_pid"
	until_true ! known "$m_port"
	# Every message that was acknowledged is on the slave.
	run -0 mq-recv -e kept
	assert_equal "$(sort -n <<<"$output" | uniq | wc -l)" 5000
	run mq-send kept <<<"no master, no message"
	assert_failure
	master -p ackOnTwoMachines=true
	until_true says "$m_port" '"inSyncSlaveNums": *1'
	seq 5001 5100 | mq-send kept
	same_logs
	[ "$(stored kept)" = 5100 ]
}

@test "a slave that does not say slaveReadEnable sends readers away" {
	master
	seq 10 | mq-send t
	slave -p slaveReadEnable=false
	same_logs
	kill_it "$m_pid"
	until_true ! known "$m_port"
	run timeout 5 mq-recv -e t
	assert_failure
	refute_output --partial 1
}

@test "what a slave has and the master has not is cut, saved, and said" {
	master
	slave
	seq 1000 | mq-send t
	same_logs
	kill_it "$s_pid"
	# The slave's store lives a life of its own for a while.
	up own -p storePathRootDir="$PWD/s" -p brokerName=own
	until_true known "$own_port"
	mq-admin updateTopic -b "127.0.0.1:$own_port" -t t >/dev/null
	for i in $(seq 50); do echo "own$i"; done | mq-send -q own:0 t
	kill_it "$own_pid" TERM
	until_true ! known "$own_port"
	seq 1001 1500 | mq-send t
	slave
	same_logs
	run grep -c 'WARN ha cut: the master does not have it' s.log
	assert_output 1
	assert [ "$(ls -d s/cut/* | wc -l)" = 1 ]
	run mq-recv -e -n "store:$(ls -d "$PWD"/s/cut/*)" t
	assert_line own1
	assert_line own50
	# The master's messages, and no others, are read from it.
	kill_it "$m_pid"
	until_true ! known "$m_port"
	run -0 mq-recv -e t
	refute_line --partial own
	assert_equal "$(sort -n <<<"$output" | uniq | wc -l)" 1500
}

@test "a slave with the same length and other bytes is found out too" {
	master
	slave
	seq 100 | mq-send t
	same_logs
	kill_it "$s_pid"
	local at
	# The last record differs: a byte of its body.
	at=$(grep -obUa 'TRACE_ON' s/commitlog/00000000000000000000 | tail -n 1 | cut -d: -f1)
	printf x | dd of=s/commitlog/00000000000000000000 bs=1 seek=$((at + 2)) conv=notrunc status=none
	slave
	same_logs
	run -0 grep 'WARN ha cut: the master does not have it' s.log
}

@test "a master that has lost its store takes nothing from the slave" {
	master
	slave
	seq 1000 | mq-send t
	same_logs
	until_true grep -q '"t"' s/config/topics.json
	kill_it "$m_pid"
	mv m lost
	master
	echo anew | mq-send t
	until_true says "$s_port" 'have no record in common: nothing is touched'
	assert [ ! -e s/cut ]
	kill_it "$m_pid"
	until_true ! known "$m_port"
	[ "$(stored t)" = 1000 ]
}

@test "a slave that is too old begins anew with the master's first byte" {
	master -p mappedFileSizeCommitLog=65536
	slave -p mappedFileSizeCommitLog=65536
	seq 100 | mq-send t
	same_logs
	kill_it "$s_pid" TERM
	seq 6000 | mq-send t
	mq-admin updateBrokerConfig -b "127.0.0.1:$m_port" -k maxStoreBytes -v 300000 >/dev/null
	trimmed() { mq-admin deleteExpiredCommitLog -b "127.0.0.1:$m_port" && [ ! -e m/commitlog/00000000000000000000 ]; }
	until_true trimmed # what is not on the disk yet is not removed
	slave -p mappedFileSizeCommitLog=65536
	same_logs
	assert_equal "$(ls s/commitlog | grep -v '\.' | head -n 1)" "$(ls m/commitlog | grep -v '\.' | head -n 1)"
	run -0 grep 'the log is set aside and begins anew' s.log
	assert [ -d s/cut ]
}

@test "segments of another size are refused with the key to change" {
	master
	echo hello | mq-send t
	slave -p mappedFileSizeCommitLog=2097152
	until_true says "$s_port" 'mappedFileSizeCommitLog is 2097152 here and 1048576 at the master'
}

@test "ackOnTwoMachines: no success without a second machine" {
	master -p ackOnTwoMachines=true -p slaveTimeout=700
	run mq-send t <<<alone
	assert_failure
	assert_output --partial 'in-sync replicas not enough'
	slave
	until_true says "$m_port" '"inSyncSlaveNums": *1'
	run -0 mq-send t <<<two
	# A slave that hangs: stored, and not acknowledged.
	kill -STOP "$s_pid"
	run mq-send t <<<hangs
	assert_failure
	kill -CONT "$s_pid"
	same_logs
	run -0 mq-send t <<<again
	run -0 mq-recv -e t
	refute_line alone
	assert_line two
	assert_line again
}

@test "SYNC_MASTER: the reference's words and codes" {
	master -p brokerRole=SYNC_MASTER -p slaveTimeout=300
	run -0 mq-send t <<<"waits for nobody"
	run -0 grep 'inSyncReplicas=1 waits for no slave' m.log
	kill_it "$m_pid" TERM
	master -p brokerRole=SYNC_MASTER -p slaveTimeout=300 -p inSyncReplicas=2
	run mq-send t <<<"nobody is there"
	assert_output --partial SLAVE_NOT_AVAILABLE
	slave
	until_true says "$m_port" '"inSyncSlaveNums": *1'
	run -0 mq-send t <<<"there is one"
	refute_output
	kill -STOP "$s_pid"
	run mq-send t <<<"it is late"
	assert_output --partial FLUSH_SLAVE_TIMEOUT
	kill -CONT "$s_pid"
	# With the switch on, as many as there are.
	kill_it "$s_pid"
	mq-admin updateBrokerConfig -b "127.0.0.1:$m_port" -k enableAutoInSyncReplicas -v true >/dev/null
	until_true says "$m_port" '"inSyncSlaveNums": *0'
	run -0 mq-send t <<<"alone again"
	refute_output
}

# A connection to the master's replication port, as descriptor 8.
ha_connect() { exec 8<>"/dev/tcp/127.0.0.1/$((m_port + 1))"; }

@test "a forged number acknowledges nothing" {
	master -p ackOnTwoMachines=true -p slaveTimeout=500
	ha_connect
	printf '\177\377\377\377\377\377\377\377' >&8
	run timeout 10 cat <&8
	assert_success # the master ends the connection
	run mq-send t <<<forged
	assert_failure
	exec 8>&-
	until_true says "$m_port" 'it is ahead: it has bytes up to 9223372036854775807'
	run -0 grep 'WARN ha slave turned away addr=127.0.0.1' m.log
}

@test "only who is allowed may follow" {
	master -p haAllowedAddresses='10.0.0.0/8;192.168.7.7'
	echo hello | mq-send t
	slave
	until_true says "$m_port" 'haAllowedAddresses does not have its address'
	[ "$(log_end "$s_port")" = 0 ]
	mq-admin updateBrokerConfig -b "127.0.0.1:$m_port" -k haAllowedAddresses -v 127.0.0.0/8 >/dev/null
	same_logs
	run mq-broker -p haAllowedAddresses=example.org -p storePathRootDir="$PWD/x"
	assert_failure
	assert_output --partial 'is no address'
}

# Files of secrets, as their manual has them made.
secrets() {
	local f
	for f; do (umask 077; head -c 32 /dev/urandom | base64 >"$f"); done
}

@test "with a secret only who proves it follows" {
	secrets one two
	master -p haSecretFile="$PWD/one"
	seq 100 | mq-send t
	slave -p haSecretFile="$PWD/one"
	same_logs
	run -0 grep -c 'replication only with brokers of ours that prove the secret' m.log
	# Another one.
	kill_it "$s_pid" TERM
	seq 100 | mq-send t
	local had; had=$(stat -c %s s/commitlog/* | head -n 1; cksum <s/commitlog/00000000000000000000)
	slave -p haSecretFile="$PWD/two"
	until_true says "$m_port" 'its proof of the secret is wrong: haSecretFile has to be the same'
	until_true says "$s_port" 'the master has not proved the secret: haSecretFile has to be the same'
	run -0 grep 'WARN ha slave turned away addr=127.0.0.1' m.log
	# None.
	kill_it "$s_pid" TERM
	slave
	until_true says "$m_port" '"haConnectionInfo": *\[ *\]'
	until_true says "$s_port" 'the master wants a proof of a secret: haSecretFile'
	kill_it "$s_pid" TERM
	assert_equal "$(stat -c %s s/commitlog/* | head -n 1; cksum <s/commitlog/00000000000000000000)" "$had"
	# The secret is changed while the master runs: it is read again.
	cp two one
	kill -HUP "$m_pid"
	slave -p haSecretFile="$PWD/two"
	same_logs
	run ! grep -q -f two m.log s.log
}

@test "a slave with a secret takes nothing from a master that cannot prove it" {
	secrets one
	master
	seq 100 | mq-send t
	slave -p haSecretFile="$PWD/one"
	until_true says "$s_port" 'the master asks for no proof: haSecretFile is set here'
	assert_equal "$(log_end "$s_port")" 0
	run -0 grep 'WARN ha not following the master .* asks for no proof' s.log
	kill_it "$m_pid" TERM
	master -p haSecretFile="$PWD/one"
	same_logs
}

@test "a file of a secret that others may read, or that can be guessed, is refused" {
	secrets one
	chmod 640 one
	run -2 mq-broker -p haSecretFile="$PWD/one" -p storePathRootDir="$PWD/x" -p listenPort=0
	assert_output --partial "haSecretFile '$PWD/one' is open to others (mode 640): chmod 600"
	chmod 600 one
	echo secret >one
	run -2 mq-broker -p haSecretFile="$PWD/one" -p storePathRootDir="$PWD/x" -p listenPort=0
	assert_output --partial 'has fewer than 32 bytes, which can be guessed'
	refute_output --partial "'secret'"
	run ! mq-broker -p haSecretFile="$PWD/none" -p storePathRootDir="$PWD/x" -p listenPort=0
	assert_output --partial "haSecretFile '$PWD/none'"
}

wire() { python3 "$src/tests/lib/ha_wire.py" "$@"; }
# In the background it is not by wire(): the program itself is to be ended, not a shell around it.
wire_up() { # wire_up WHAT ARG...: in the background; its port in $wire_port
	python3 "$src/tests/lib/ha_wire.py" "$@" wire.ready 3>&- &
	pids+=($!)
	until_true test -s wire.ready
	wire_port=$(cat wire.ready)
	rm wire.ready
}

@test "what somebody hears on the way is no proof" {
	secrets one
	master -p haSecretFile="$PWD/one"
	seq 100 | mq-send t
	wire_up relay "127.0.0.1:$((m_port + 1))" sent answered
	slave -p haSecretFile="$PWD/one" -p haMasterAddress="127.0.0.1:$wire_port"
	same_logs
	kill_it "$s_pid" TERM
	# A slave that says what another one said gets nothing.
	[ "$(stat -c %s sent)" -ge 80 ]
	head -c 80 sent >answer
	run -0 wire replay "127.0.0.1:$((m_port + 1))" answer
	assert_output 0
	until_true says "$m_port" 'its proof of the secret is wrong'
	# A master that says what another one said is not followed.
	local had; had=$(cksum <s/commitlog/00000000000000000000)
	head -c 96 answered >master
	wire_up play master
	slave -p haSecretFile="$PWD/one" -p haMasterAddress="127.0.0.1:$wire_port"
	until_true says "$s_port" "the master's proof of the secret is wrong"
	kill_it "$s_pid" TERM
	assert_equal "$(cksum <s/commitlog/00000000000000000000)" "$had"
}

@test "who proves nothing is sent away, and keeps nobody out meanwhile" {
	secrets one
	master -p haSecretFile="$PWD/one"
	seq 100 | mq-send t
	local before; before=$(ls "/proc/$m_pid/fd" | wc -l)
	python3 "$src/tests/lib/ha_wire.py" idle "127.0.0.1:$((m_port + 1))" 100 3>&- &
	local idle=$!
	pids+=("$idle")
	until_true says "$m_port" 'others came while it had not proved the secret'
	slave -p haSecretFile="$PWD/one"
	same_logs
	ended $idle # the master has ended all of them
	[ "$status" = 0 ]
	until_true says "$m_port" 'has not proved the secret: .*5 s have passed'
	few() { [ "$(ls "/proc/$m_pid/fd" | wc -l)" -le $((before + 12)) ]; }
	until_true few
	says "$m_port" '"inSyncSlaveNums": *1'
}

@test "a slave that catches up is sent no more in a second than is allowed" {
	master -p haFlowControlEnable=true -p maxHaTransferByteInSecond=200000
	head -c 600000 /dev/zero | tr '\0' x | fold -w 6000 | mq-send t
	local begun=$EPOCHREALTIME
	slave
	same_logs
	local took=$(((${EPOCHREALTIME/./} - ${begun/./}) / 1000)) bytes; bytes=$(log_end "$m_port")
	# The first second may be short.
	[ "$took" -ge $((bytes / 200 - 2000)) ] || { echo "$bytes bytes in $took ms"; false; }
	run -0 grep 'slave is sent no more than haFlowControlEnable allows .* max_bytes_per_s=200000' m.log
	# While nothing is to be caught up it is not in the way.
	seq 10 | mq-send t
	same_logs
	mq-admin updateBrokerConfig -b "127.0.0.1:$m_port" -k haFlowControlEnable -v false >/dev/null
	head -c 6000000 /dev/zero | tr '\0' x | fold -w 6000 | mq-send t
	same_logs # in less than 20 s: with the limit it would be 30
}

be32() { # be32 N: its bytes
	printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))"
	printf "\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"
}

# A message for DELIVER_MS to the broker at PORT; its text is its body and, with U- before it, its unique id.
send_for() { # send_for PORT TOPIC TEXT DELIVER_MS
	local head="{\"code\":10,\"language\":\"JAVA\",\"version\":453,\"opaque\":1,\"flag\":0,\"extFields\":{\"producerGroup\":\"pg\",\
\"topic\":\"$2\",\"defaultTopic\":\"TBW102\",\"defaultTopicQueueNums\":\"1\",\"queueId\":\"0\",\"sysFlag\":\"0\",\"bornTimestamp\":\"1\",\
\"flag\":\"0\",\"properties\":\"UNIQ_KEY\\u0001U-$3\\u0002TIMER_DELIVER_MS\\u0001$4\\u0002\"}}" answer
	exec 8<>"/dev/tcp/127.0.0.1/$1"
	{ be32 $((4 + ${#head} + ${#3})); be32 ${#head}; printf %s "$head$3"; } >&8
	read -r -N 20 -t 20 answer <&8 || :
	exec 8>&-
}

@test "a slave that becomes master goes on with timers where the master was" {
	master
	slave
	seq 20000 | mq-send filler
	local now; now=$(date +%s%3N)
	send_for "$m_port" T late $((now + 3600000))
	send_for "$m_port" T soon $((now + 4500))
	until_true holds T 1
	# It is looked for three seconds farther back than the master says, for clocks.
	told() {
		mq-send "fresh$RANDOM" <<<"a new topic: tables are copied"
		[ "$(od -An -tu8 -N8 --endian=big s/config/timercheck)" -gt $((now + 5000)) ]
	}
	until_true told
	same_logs
	kill_it "$m_pid"
	kill_it "$s_pid"
	until_true ! known "$m_port"
	up new -p storePathRootDir="$PWD/s"
	until_true known "$new_port"
	run -0 grep 'timers: looked for deliveries since the last check-point' new.log
	[[ $output =~ bytes=([0-9]+) ]]
	[ "${BASH_REMATCH[1]}" -lt 1000000 ] # of more than 4 MB
	[ "$(stat -c %s s/commitlog/* | awk '{ n += $1 } END { print n }')" -gt 4000000 ]
	run -0 mq-admin -o json timers list
	assert_output --partial U-late
	refute_output --partial U-soon
	assert_equal "$(mq-recv -e T)" soon
}

@test "what a slave knows of timers goes before what it speaks of is cut" {
	master
	seq 50 | mq-send t
	kill_it "$m_pid" TERM
	cp -r m before
	master
	slave
	send_for "$m_port" T soon $(($(date +%s%3N) + 1500))
	seq 50 | mq-send t
	same_logs
	until_true test -s s/config/timercheck
	kill_it "$m_pid" TERM
	rm -r m
	mv before m
	master -p timerWheelEnable=false # so it says nothing of timers
	seq 51 60 | mq-send t
	until_true grep -q 'WARN ha cut: the master does not have it' s.log
	same_logs
	until_true ! test -e s/config/timercheck
}

# ask PORT CODE [FIELD=VALUE...]: the answer's code, and its remark.
ask() {
	python3 - "$@" <<-'P'
		import json, socket, struct, sys
		port, code, fields = int(sys.argv[1]), int(sys.argv[2]), dict(f.split("=", 1) for f in sys.argv[3:])
		s = socket.create_connection(("127.0.0.1", port), 10)
		head = json.dumps(dict(code=code, flag=0, language="JAVA", opaque=1, version=453, extFields=fields)).encode()
		s.sendall(struct.pack(">ii", 4 + len(head), len(head)) + head)
		f = s.makefile("rb")
		n, h = struct.unpack(">ii", f.read(8))
		head = json.loads(f.read(h & 0xFFFFFF))
		print(head["code"], head.get("remark") or "")
	P
}

@test "a slave is told by a request whom to follow" {
	master
	seq 100 | mq-send t
	# A slave whose name servers know of no master.
	up s -n 127.0.0.1:1 -p brokerRole=SLAVE -p brokerId=1 -p syncMasterFlushOffsetWhenStartup=true
	until_true says "$s_port" 'no master known'
	run -0 ask "$s_port" 906 masterHaAddress=nowhere masterAddress=127.0.0.1:1
	assert_output --partial '1 '
	run -0 ask "$s_port" 906 "masterHaAddress=127.0.0.1:$((m_port + 1))" "masterAddress=127.0.0.1:$m_port" masterFlushOffset=77
	assert_output --regexp '^0 *$'
	same_logs
	says "$s_port" '"masterFlushOffset": *77'
	run -0 ask "$s_port" 908 masterFlushOffset=78
	assert_output --regexp '^0 *$'
	says "$s_port" '"masterFlushOffset": *78'
	run -0 ask "$m_port" 908 masterFlushOffset=78
	assert_output --regexp '^0 *$'
	says "$m_port" '"masterFlushOffset": *0'
	run -0 ask "$m_port" 906 "masterHaAddress=127.0.0.1:$((s_port + 1))" masterAddress=x
	assert_output --partial '16 masterHaAddress: only a slave'
}

@test "a port scanner leaves nothing behind and disturbs nobody" {
	master
	slave
	seq 100 | mq-send t
	same_logs
	local before; before=$(ls "/proc/$m_pid/fd" | wc -l)
	for i in $(seq 500); do
		(exec 8<>"/dev/tcp/127.0.0.1/$((m_port + 1))") 2>/dev/null
	done
	# Some come and go with files and flushes.
	few() { [ "$(ls "/proc/$m_pid/fd" | wc -l)" -le $((before + 10)) ]; }
	until_true few
	seq 100 | mq-send t
	same_logs
}

@test "a topic deleted at the master goes from the slave, with its files" {
	master
	slave
	seq 100 | mq-send gone
	same_logs
	until_true grep -q '"gone"' s/config/topics.json
	mq-admin deleteTopic -c DefaultCluster -t gone >/dev/null
	until_true ! grep -q '"gone"' s/config/topics.json
	assert [ ! -e s/consumequeue/gone ]
}
