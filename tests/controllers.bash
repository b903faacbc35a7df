# controllers.bash: name servers with a controller each.  load helpers; load controllers; mq_setup, then controllers_setup.
# pid[c0], pid[c1] ... are the processes, port[c0] ... the ports of the controllers, port[n0] ... those of the name servers.

controllers_setup() {
	declare -gA pid=() port=()
	until_s=60 # elections take seconds
}

controllers_teardown() {
	local p
	for p in "${pid[@]}"; do kill -CONT "$p" 2>/dev/null; kill -9 "$p" 2>/dev/null || :; done
	wait 2>/dev/null || :
}

controllers() { # controllers N: that many, started and with a leader; sets all, addrs, ns
	local i
	all= addrs= ns=
	for i in $(seq 0 $(($1 - 1))); do
		port[c$i]=$(free_ports) port[n$i]=$(free_ports)
		all=$all"n$i-127.0.0.1:${port[c$i]};" addrs=$addrs"127.0.0.1:${port[c$i]};" ns=$ns"127.0.0.1:${port[n$i]};"
	done
	for i in $(seq 0 $(($1 - 1))); do controller "$i"; done
	until_true has_leader "$addrs"
}

controller() { # controller I: start it, until it is ready
	mkfifo "c$1.ready"
	mq-namesrv -p listenPort="${port[n$1]}" -p bindAddress=127.0.0.1 -p enableControllerInNamesrv=true -p controllerDLegerGroup=g \
		-p controllerDLegerPeers="$all" -p controllerDLegerSelfId="n$1" -p controllerStorePath="$PWD/c$1" \
		-p kvConfigPath="$PWD/kv$1" -p configStorePath="$PWD/n$1.properties" --ready-fd 9 9>"c$1.ready" 2>>"c$1.log" 5>&- 6>&- &
	pid[c$1]=$!
	read -r -t 60 _ <"c$1.ready" || { cat "c$1.log"; return 1; }
	rm "c$1.ready"
}

kill_controller() { # kill_controller I
	kill -9 "${pid[c$1]}"
	wait "${pid[c$1]}" || :
}

has_leader() { # has_leader ADDRS: one of them knows who leads
	mq-admin -o json getControllerMetaData -a "$1" | jq -e '.controllerLeaderId | startswith("n")'
}
