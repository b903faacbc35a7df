# load.sh: TAP, and clients that run in the background until they are told to end; to be sourced.  Wants $work, a directory.
n=0 failures=0
declare -A keep pid
ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); failures=$((failures + 1)); echo "not ok $n - $*"; }
check() { # check WHAT COMMAND...
	local what=$1; shift
	if "$@"; then ok "$what"; else not_ok "$what"; fi
}
die() { echo "Bail out! $*"; exit 1; }

until_true() { # until_true SECONDS COMMAND...
	local end=$((SECONDS + $1)); shift
	while [ $SECONDS -le $end ]; do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}

without() ( # a child must not hold the other ends of the clients' inputs
	for fd in "${keep[@]}"; do exec {fd}>&-; done
	exec "$@"
)
client() { # client NAME COMMAND...: in the background, until its standard input ends
	local name=$1 fd; shift
	mkfifo "$work/$name.fifo"
	without "$@" <"$work/$name.fifo" >"$work/$name.out" 2>"$work/$name.err" &
	pid[$name]=$!
	exec {fd}>"$work/$name.fifo"
	keep[$name]=$fd
}
end_client() { # end_client NAME: by itself, else by force
	local fd=${keep[$1]}
	exec {fd}>&-
	until_true 30 eval "! kill -0 ${pid[$1]}" || kill "${pid[$1]}"
	wait "${pid[$1]}" 2>/dev/null
	unset "pid[$1]" "keep[$1]"
}
end_all_clients() {
	local c
	for c in "${!pid[@]}"; do kill "${pid[$c]}" 2>/dev/null; done
}
