#!/usr/bin/env bats
# The shape of the tree: who may include whom, and what no file may hold.  Reads sources; runs nothing.

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	cd "${MQ_SRC:-$BATS_TEST_DIRNAME/..}"
}

# Include lines of the C files below DIR whose target begins with one of the FORBIDDEN words.
forbidden() { # forbidden DIR FORBIDDEN-REGEX
	[ -d "$1" ] || return 0
	grep -rnE --include='*.[ch]' "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"](\.\./)*($2)" "$1" || true
}

none() { # none WHAT TEXT: fails and shows the text unless it is empty
	[ -z "$2" ] || { echo "$1:"; echo "$2"; return 1; }
}

@test "the check itself sees a forbidden include" {
	mkdir -p "$BATS_TEST_TMPDIR/base"
	echo '#include <codec/frame.h>' >"$BATS_TEST_TMPDIR/base/a.c"
	echo '#  include "../net/conn.h"' >"$BATS_TEST_TMPDIR/base/b.h"
	run forbidden "$BATS_TEST_TMPDIR/base" 'codec/|net/'
	assert_line --partial 'a.c:1'
	assert_line --partial 'b.h:1'
	run none "found" "$output"
	assert_failure
}

@test "base knows nothing of messages" {
	none "base includes" "$(forbidden libmqstore/base '(libmqstore/)?(codec|store|net|client)/|mqstore\.h|mqclient\.h')"
}

@test "codec opens nothing and waits for nothing" {
	none "codec includes" "$(forbidden libmqstore/codec '(libmqstore/)?(store|net|client)/|mqstore\.h|mqclient\.h|uv\.h|base/sys\.h|sys/socket\.h')"
}

@test "the store has no network" {
	none "store includes" "$(forbidden libmqstore/store '(libmqstore/)?(net|client)/|mqclient\.h|uv\.h|sys/socket\.h')"
}

@test "the network has no store" {
	none "net includes" "$(forbidden libmqstore/net '(libmqstore/)?(store|client)/|mqstore\.h|mqclient\.h')"
}

@test "the client has no store" {
	none "client includes" "$(forbidden libmqstore/client '(libmqstore/)?store/|mqstore\.h|bin/|broker/')"
}

@test "the library includes nothing of the programs" {
	none "library includes" "$(forbidden libmqstore 'bin/|broker/|namesrv/|admin/|cli\.h')"
}

@test "the broker is no client; only embedded.c knows the name server, since it is both" {
	none "broker includes" "$(forbidden bin/broker '(libmqstore/)?client/|mqclient\.h|cli\.h|namesrv/|admin/' | grep -v '^bin/broker/embedded\.c:')"
}

@test "the name server has no store and is no client" {
	none "name server includes" "$(forbidden bin/namesrv '(libmqstore/)?(store|client)/|mqstore\.h|mqclient\.h|cli\.h|broker/|admin/')"
}

@test "the tools use the public headers only" {
	local f bad=
	for f in bin/mq-send.c bin/mq-recv.c bin/mq-admin.c bin/cli.c bin/cli.h bin/send bin/recv bin/admin mqfs; do
		[ -e "$f" ] || continue
		bad="$bad$(grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](\.\./)*(libmqstore/)?(base|codec|store|net|client)/' "$f" || true)"
	done
	none "tools include" "$bad"
}

@test "the public headers include no inner one" {
	none "public headers include" "$(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<](base|codec|store|net|client|uv)' \
		libmqstore/mq.h libmqstore/mqstore.h libmqstore/mqclient.h || true)"
}

@test "every C file says first what it is" {
	local f bad=
	while read -r f; do
		head -c 2 "$f" | grep -q '^/\*' || bad="$bad$f"$'\n'
	done < <(find libmqstore bin mqfs -name '*.[ch]')
	none "files that do not begin with a comment" "$bad"
}

@test "nothing is left to be done later" {
	none "left-overs" "$(grep -rnwE --include='*.[ch]' --include='*.bats' --include='*.bash' --include='Makefile.am' \
		'T[O]DO|F[I]XME|X[X]X' libmqstore bin mqfs tests Makefile.am configure.ac || true)"
}

@test "no line runs beyond column 140" {
	none "longer lines" "$(find libmqstore bin mqfs -name '*.[ch]' -exec awk '
		{ gsub(/\t/, "        ") }
		length($0) > 140 { print FILENAME ":" FNR ": " length($0) }' {} +)"
}

# Pages that comments send the reader to are there for the reader.
@test "no comment names a text that is not in the tree" {
	local name bad=
	for name in $(grep -rhoE --include='*.[ch]' '[A-Za-z0-9_-]+\.md\b' bin libmqstore mqfs tests | sort -u); do
		[ -n "$(find . -name "$name" -not -path './b*/*' -print -quit)" ] || bad="$bad $name"
	done
	none "named, but not there" "$bad"
}
