#!/usr/bin/env bats
# A broker that checks rights (aclEnable): who has no account, a wrong secret or no right to a topic or group is refused in words; files
# of accounts are read again when they change, and changed by request.

load helpers
load mqfs

setup() {
	mq_setup
	start_namesrv
	write_accounts
}
teardown() { [ -z "${M:-}" ] || umount -l "$M" 2>/dev/null || :; mq_teardown; }

write_accounts() {
	(umask 077; cat >plain_acl.yml) <<-'EOF'
	globalWhiteRemoteAddresses: []
	accounts:
	- accessKey: the-admin
	  secretKey: admin-secret
	  admin: true
	- accessKey: orders-app
	  secretKey: orders-secret
	  defaultTopicPerm: DENY
	  defaultGroupPerm: SUB
	  topicPerms:
	  - orders=PUB|SUB
	  - audit=PUB
	  - news=SUB
	  groupPerms: [ secret-readers=DENY ]
	EOF
}

guarded() { start_broker -p aclEnable=true -p aclFile="$PWD/plain_acl.yml" "$@"; }

admin() { MQ_ACCESS_KEY=the-admin MQ_SECRET_KEY=admin-secret "$@"; }
app() { MQ_ACCESS_KEY=orders-app MQ_SECRET_KEY=orders-secret "$@"; }
make_topics() { local t; for t in "$@"; do admin mq-admin updateTopic -t "$t" -c DefaultCluster -r 1 -w 1 >/dev/null; done; }
broker_addr() { echo "127.0.0.1:$broker_port"; }

@test "without an account nothing is served, and the answer says why" {
	guarded
	make_topics orders
	run -4 mq-send orders <<<one
	assert_output --partial 'org.apache.rocketmq.acl.common.AclException: No accessKey is configured'
	run -4 env MQ_ACCESS_KEY=somebody MQ_SECRET_KEY=else-secret mq-send orders <<<two
	assert_output --partial 'No acl config for somebody'
	run -4 env MQ_ACCESS_KEY=orders-app MQ_SECRET_KEY=wrong-secret mq-send orders <<<three
	assert_output --partial 'Check signature failed for accessKey=orders-app'
	run -4 mq-admin brokerStatus -b "$(broker_addr)"
	assert_output --partial 'No accessKey is configured'
	run -0 admin mq-admin -o json topicStatus -t orders
	refute_output --partial '"maxOffset": 1'
	run -0 admin mq-admin brokerStatus -b "$(broker_addr)"
	refute_output --partial wrong-secret
	run ! grep -q 'secret' broker.log
}

@test "an account sends and receives what it has a right to, and nothing else" {
	guarded
	make_topics orders audit news other
	seq 5 | app mq-send orders
	assert_equal "$(app mq-recv -e -g readers orders | sort -n | tr '\n' ' ')" '1 2 3 4 5 '
	app mq-send audit <<<noted
	run -4 app mq-recv -e -g readers audit
	assert_output --partial 'No permission for topic:audit'
	run -4 app mq-send news <<<mine
	assert_output --partial 'No permission for topic:news'
	run -4 app mq-send other <<<mine
	assert_output --partial 'No default permission for topic:other'
	run -4 app mq-recv -e -g secret-readers orders
	assert_output --partial 'No permission for group:secret-readers'
	admin mq-send other <<<'all may'
	assert_equal "$(admin mq-recv -e other)" 'all may'
}

@test "pops, acks, batches, one-way sends, retries and transactions go by the same rights" {
	guarded
	make_topics orders news
	seq 20 | app mq-send --batch 5 orders
	assert_equal "$(app mq-recv --pop -n "$NAMESRV_ADDR" -c 20 -g poppers orders | sort -n | tail -n 1)" 20
	run -4 app mq-recv --pop -e -g secret-readers orders
	assert_output --partial 'No permission for group:secret-readers'
	app mq-send --transaction true --check true -g tx orders <<<'all or nothing'
	assert_equal "$(app mq-recv -e -g readers orders | tail -n 1)" 'all or nothing'
	# What fails comes again, from the retry topic of a group that may.
	app mq-send orders <<<again
	# Not by app(): it is the program itself that is to be killed at the end, not a shell around it.
	MQ_ACCESS_KEY=orders-app MQ_SECRET_KEY=orders-secret mq-recv -g readers --on-exit 1=retry:1s -x '{ cat; echo; } >>seen; [ "$(wc -l <seen)" -gt 1 ]' orders 3>&- &
	pids+=($!)
	twice() { [ "$(wc -l <seen)" = 2 ]; }
	until_s=60 until_true twice
	assert_equal "$(sort -u seen)" again
}

@test "what changes the broker is for admins" {
	guarded
	make_topics orders
	for words in 'updateTopic -t orders -c DefaultCluster' 'deleteTopic -t orders -c DefaultCluster' \
		"updateBrokerConfig -b $(broker_addr) -k fileReservedTime -v 5" 'updateSubGroup -c DefaultCluster -g readers' \
		"deleteSubGroup -b $(broker_addr) -g readers" "cleanUnusedTopic -b $(broker_addr)" \
		"updateAclConfig -b $(broker_addr) -a orders-app -s orders-secret -m true" \
		"deleteAclConfig -b $(broker_addr) -a the-admin" "updateGlobalWhiteAddr -b $(broker_addr) -g *"; do
		set -f
		run -4 app mq-admin $words
		set +f
		assert_output --partial 'Need admin permission for request code='
	done
	run -4 app mq-admin updateBrokerConfig -b "$(broker_addr)" -k aclEnable -v false
	run -4 admin mq-admin updateBrokerConfig -b "$(broker_addr)" -k aclEnable -v false
	run -4 mq-send orders <<<one
}

@test "accounts by request: made, changed, deleted, and so they stand in the file" {
	guarded
	make_topics orders
	b=$(broker_addr)
	run -0 admin mq-admin updateAclConfig -b "$b" -a new-reader -s - -t orders=SUB,audit=DENY -u SUB <<<reader-secret
	assert_output "create or update plain access config to $b success."
	admin mq-send orders <<<hello
	assert_equal "$(MQ_ACCESS_KEY=new-reader MQ_SECRET_KEY=reader-secret mq-recv -e -g g orders)" hello
	run -4 env MQ_ACCESS_KEY=new-reader MQ_SECRET_KEY=reader-secret mq-send orders <<<no
	assert_output --partial 'No permission for topic:orders'
	admin mq-admin updateAclConfig -b "$b" -a new-reader -s other-secret -t 'orders=PUB|SUB'
	MQ_ACCESS_KEY=new-reader MQ_SECRET_KEY=other-secret mq-send orders <<<yes
	run -4 admin mq-admin updateAclConfig -b "$b" -a new-reader -s other-secret -t orders=READ
	assert_output --partial "'READ' is no right: DENY, PUB, SUB or PUB|SUB"
	run -0 admin mq-admin -o json clusterAclConfigVersion -b "$b"
	assert_equal "$(jq -r '.[0].counter' <<<"$output")" 2
	assert_equal "$(jq -r '.[0].file' <<<"$output")" "$PWD/plain_acl.yml"
	assert_equal "$(stat -c %a plain_acl.yml)" 600
	# As the file stands it is taken by the next start too.
	kill "$broker_pid"; ended "$broker_pid"
	guarded
	MQ_ACCESS_KEY=new-reader MQ_SECRET_KEY=other-secret mq-send orders <<<'and again'
	admin mq-admin deleteAclConfig -b "$(broker_addr)" -a new-reader
	run -4 env MQ_ACCESS_KEY=new-reader MQ_SECRET_KEY=other-secret mq-send orders <<<no
	assert_output --partial 'No acl config for new-reader'
	run -4 admin mq-admin deleteAclConfig -b "$(broker_addr)" -a new-reader
	assert_output --partial 'The accessKey[new-reader] corresponding to accessConfig has been deleted failed.'
}

@test "who comes from an address in the list needs no account" {
	guarded
	make_topics orders
	b=$(broker_addr)
	admin mq-admin updateGlobalWhiteAddr -b "$b" -g '10.0.0.{1,2},10.9.9.9' || :
	run -4 mq-send orders <<<one
	admin mq-admin updateGlobalWhiteAddr -b "$b" -g '10.1.2-9.*,127.0.0.*'
	mq-send orders <<<two
	run -4 mq-admin updateGlobalWhiteAddr -b "$b" -g '127.0.*'
	assert_output --partial "'127.0.*' is no address"
	run -4 mq-admin updateGlobalWhiteAddr -b "$b" -g '*' -p /etc/passwd
	assert_output --partial "'/etc/passwd' is none of the files of accounts"
	assert_equal "$(mq-recv -e orders)" two
}

@test "files are read again when they change, also those beside; a wrong one changes nothing" {
	guarded
	make_topics orders
	sed -i 's/orders-secret/better-secret/' plain_acl.yml
	better() { MQ_ACCESS_KEY=orders-app MQ_SECRET_KEY=better-secret mq-send orders <<<x; }
	until_true better
	echo 'accounts: [ { accessKey: orders-app' >plain_acl.yml
	until_true grep -q "rights stay as they were: .*plain_acl.yml': line [0-9]" broker.log
	better
	write_accounts
	mkdir acl
	printf 'accounts:\n- { accessKey: the-second, secretKey: second-secret, defaultTopicPerm: PUB }\n' >acl/more.yml
	second() { MQ_ACCESS_KEY=the-second MQ_SECRET_KEY=second-secret mq-send orders <<<y; }
	until_true second
	run ! better
}

@test "a start without the file, or with a wrong one, is refused with the reason" {
	run -2 mq-broker -p aclEnable=true -p storePathRootDir=s -p listenPort=0
	assert_output --partial 'aclFile has to name the file of accounts'
	run -3 mq-broker -p aclEnable=true -p aclFile="$PWD/none.yml" -p storePathRootDir=s -p listenPort=0
	assert_output --partial "none.yml' (aclFile)"
	sed -i 's/secretKey: orders-secret/secretKey: short/' plain_acl.yml
	run -2 mq-broker -p aclEnable=true -p aclFile="$PWD/plain_acl.yml" -p storePathRootDir=s -p listenPort=0
	assert_output --partial "account 2 (no accessKey): accessKey and secretKey must be there, with more than 6 characters each"
	mkdir -p home/conf
	write_accounts
	mv plain_acl.yml home/conf
	ROCKETMQ_HOME=$PWD/home start_broker -p aclEnable=true
	admin mq-admin brokerStatus -b "$(broker_addr)" >/dev/null
}

@test "keys of the tools: from the environment, the configuration, or RocketMQ's tools.yml; half of them is an error" {
	guarded
	make_topics orders
	mkdir -p "$XDG_CONFIG_HOME/mq" home/conf
	printf 'accessKey=orders-app\nsecretKey=orders-secret\n' >"$XDG_CONFIG_HOME/mq/config"
	mq-send orders <<<one
	rm "$XDG_CONFIG_HOME/mq/config"
	printf 'accessKey: orders-app\nsecretKey: orders-secret\n' >home/conf/tools.yml
	ROCKETMQ_HOME=$PWD/home mq-send orders <<<two
	run -2 env MQ_ACCESS_KEY=orders-app mq-send orders <<<three
	assert_output --partial 'the secret key is not'
	assert_equal "$(app mq-recv -e -f '%s\n' orders | sort | tr '\n' ' ')" 'one two '
	# Not for a queue in a directory: who may write there may do everything.
	run -0 env MQ_ACCESS_KEY=orders-app mq-send -n "file:$Q" own <<<three
}

@test "a mount signs what it asks for, and who is refused gets EACCES" {
	mqfs_usable || skip "FUSE is not usable here"
	guarded
	make_topics orders news other
	M=$PWD/m; mkdir m
	app mount_mqfs
	echo 'by the mount' >m/topics/orders/send
	assert_equal "$(cat m/topics/orders/queues/*/messages/0)" 'by the mount'
	run ! ls "$M"/topics/other/queues/b:0/messages/0
	run python3 - <<-EOF
	import errno, os
	f = os.open('$M/topics/news/send', os.O_WRONLY)
	os.write(f, b'mine')
	try:
	    os.fsync(f)
	except OSError as e:
	    print(errno.errorcode[e.errno])
	EOF
	assert_output EACCES
	unmount
}

@test "a slave asks its master without an account: its address has to be in the list" {
	guarded
	make_topics orders
	app mq-send orders <<<one
	mkfifo s.ready
	mq-broker -n "$NAMESRV_ADDR" -p listenPort="$(free_ports)" -p bindAddress=127.0.0.1 -p brokerIP1=127.0.0.1 -p brokerName=b \
		-p brokerId=1 -p brokerRole=SLAVE -p storePathRootDir="$PWD/s" -p mappedFileSizeCommitLog=67108864 \
		--ready-fd 9 9>s.ready 2>>s.log 3>&- </dev/null >/dev/null &
	pids+=($!)
	read -r -t 60 _ <s.ready
	until_true grep -q 'AclException: No accessKey is configured' s.log
	run ! grep -q 'ha following the master' s.log
	admin mq-admin updateGlobalWhiteAddr -b "$(broker_addr)" -g 127.0.0.1
	until_true grep -q 'ha following the master' s.log
	until_true grep -q '"orders"' s/config/topics.json
	assert_equal "$(mq-recv -e -n "store:$PWD/s" orders)" one
}
