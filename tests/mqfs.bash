# mqfs.bash: mounts for the tests of mqfs.  load helpers; load mqfs; then mqfs_setup and mqfs_teardown around mq_setup, mq_teardown.

# Where FUSE cannot be used nothing can be mounted; a file system of all tests that skip is told once.
mqfs_usable() {
	[ -r /dev/fuse ] && [ -w /dev/fuse ] && { [ "$(id -u)" = 0 ] || command -v fusermount3 >/dev/null; }
}

mqfs_setup() {
	mqfs_usable || skip "FUSE is not usable here"
	mq_setup
	M=$PWD/m
	mkdir "$M"
	fs_pid=
}

mqfs_teardown() {
	unmount
	umount -l "$M" 2>/dev/null || fusermount3 -u -z -q "$M" 2>/dev/null || :
	mq_teardown
}

# mount_mqfs [OPTION...]: at $M, of $NAMESRV_ADDR unless -n says otherwise; sets fs_pid
mount_mqfs() {
	mkfifo fs.ready
	mqfs "$@" --ready-fd 9 "$M" 9>fs.ready 2>>fs.log 3>&- </dev/null >/dev/null &
	fs_pid=$!
	pids+=("$fs_pid")
	read -r -t 60 _ <fs.ready || { cat fs.log; return 1; }
	rm fs.ready
}

unmount() { # ends the mount; its status in $status
	[ -n "$fs_pid" ] || return 0
	kill -TERM "$fs_pid" 2>/dev/null || :
	ended "$fs_pid"
	fs_pid=
}

# A command that must end within N seconds; its status, 124 if it did not.
within() { # within SECONDS COMMAND...
	timeout -k 1 "$@"
}

# The stream is open: the kernel has it among the files of the process.
opened() { # opened PID
	ls -l "/proc/$1/fd" | grep -q "/.streams/\|/from@"
}

bodies() { # bodies TOPIC: all of them, sorted, through the mount
	cat "$M"/topics/"$1"/queues/*/messages/* 2>/dev/null | sort
}

total() { # total TOPIC: messages
	awk -F'\t' '{ n += $3 - $2 } END { print n + 0 }' "$M/topics/$1/stats"
}

# In the network namespace $far, at $far_ip.
start_far_cluster() {
	ip netns exec "$far" mq-namesrv -p listenPort=9876 2>ns2.log 3>&- &
	pids+=($!)
	ip netns exec "$far" mq-broker -n "$far_ip:9876" -p listenPort=10911 -p brokerIP1="$far_ip" -p brokerName=b \
		-p storePathRootDir="$PWD/store2" -p mappedFileSizeCommitLog=67108864 2>broker2.log 3>&- &
	pids+=($!)
	export NAMESRV_ADDR=$far_ip:9876
}
stop_far_cluster() { :; }

# ---- Against a cluster that is there: MQFS_CLUSTER=NAMESRV:PORT MQFS_CLUSTER_DIR=DIR (of tests/peer/java/run-reference) ------

if [ -n "${MQFS_CLUSTER:-}" ]; then
	quick=2s limit=15 # as far as a Java server is
	reference() { "$src/tests/peer/java/run-reference" "$@" 3>&-; }
	start_cluster() {
		local t
		export NAMESRV_ADDR=$MQFS_CLUSTER
		kill -0 "$(cat "$MQFS_CLUSTER_DIR/broker.pid")" 2>/dev/null || start_broker
		broker_pid=$(cat "$MQFS_CLUSTER_DIR/broker.pid")
		ns_pid=$(cat "$MQFS_CLUSTER_DIR/namesrv.pid")
		broker_port=$(mq-admin clusterList | awk -F'[\t:]' 'NR == 1 { print $5 }')
		for t in T T2 new; do mq-admin deleteTopic -c DefaultCluster -t $t >/dev/null; done
		for t in G G9; do mq-admin deleteSubGroup -c DefaultCluster -g $t -r true >/dev/null; done
	}
	stop_broker() { # with SIGKILL only: it comes back as it was
		[ "${1:-}" = KILL ] || skip "this broker cannot be started with other settings"
		reference kill-broker "$MQFS_CLUSTER_DIR"
	}
	start_broker() {
		reference start-broker "$MQFS_CLUSTER_DIR"
		broker_pid=$(cat "$MQFS_CLUSTER_DIR/broker.pid")
	}
	start_far_cluster() {
		BIND=$far_ip NAMESRVS=$far_ip:9876 EXTRA_CONF=brokerIP1=$far_ip BROKER_NAME=b \
			ip netns exec "$far" "$src/tests/peer/java/run-reference" start "$PWD/far" 9876 10911 3>&-
		export NAMESRV_ADDR=$far_ip:9876
	}
	stop_far_cluster() { reference stop "$PWD/far" || :; }
fi
