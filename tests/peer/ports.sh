# ports.sh: free ports on the loopback address; to be sourced.

port_used() { # by anybody, in any state
	local hex; hex=$(printf ':%04X ' "$1")
	grep -q "^ *[0-9]*: [0-9A-F]*$hex" /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

free_ports() { # a port with free neighbours: a broker also takes two below (fast) and one above (replication)
	local p
	for _ in $(seq 200); do
		p=$((20000 + (RANDOM * 32768 + RANDOM) % 10000))
		port_used $((p - 2)) || port_used $((p - 1)) || port_used $p || port_used $((p + 1)) || { echo $p; return; }
	done
	echo "no free ports" >&2; exit 3
}
