#!/usr/bin/env bats
# The manuals: clean, in step with the programs, and their examples work as they stand.

scripts=(mq-alert mq-backup mq-dlq mq-mirror mq-restore mq-top)

setup() {
	load helpers
	mq_setup
}

teardown() {
	mq_teardown
}

# The literal blocks below EXAMPLES of a page, as a shell script.
examples() { # examples PAGE
	awk '/^\.Sh / { on = /EXAMPLES/ } /^\.Bd -literal/ { code = on; next } /^\.Ed/ { code = 0 } code' "$1" | sed 's/\\e/\\/g; s/\\&//g'
}

@test "every page is clean mdoc" {
	local page bad=
	for page in "$src"/man/*.[1-8]; do
		bad+=$(mandoc -T lint -W warning "$page" || true)
	done
	[ -z "$bad" ] || { echo "$bad"; false; }
}

@test "every program has a page, and its --help goes to stdout with status 0" {
	local p
	for p in mq-send mq-recv mq-admin mq-bench mq-broker mq-namesrv mqfs "${scripts[@]}"; do
		ls "$src"/man/$p.[18]
		run -0 --separate-stderr "$p" --help
		[ -n "$output" ]
		assert_equal "$stderr" ""
		run -0 "$p" --version
		assert_output --regexp '^mq-?[a-z]+ [0-9]+\.[0-9]+'
	done
}

@test "each option of --help is in the page" {
	local p o page bad=
	for p in mq-send mq-recv mq-admin mq-bench mq-broker mq-namesrv mqfs "${scripts[@]}"; do
		page=$(mandoc -T ascii "$src"/man/$p.[18] | sed "s/.\x08//g")
		while read -r o; do
			grep -qE -- "(^|[^a-zA-Z-])$o([^a-zA-Z-]|\$)" <<<"$page" || bad+="$p: $o is not in the manual"$'\n'
		done < <("$p" --help | grep -oE -- '(^|[ ,])--[a-z][a-z-]+' | tr -d ' ,' | sort -u)
	done
	[ -z "$bad" ] || { echo "$bad"; false; }
}

# Words of a usage, whatever their case and however they are broken into lines.
words() {
	tr -s ' \t\n' ' ' | tr A-Z a-z | sed 's/^ //; s/ $//'
}

@test "the usage in --help is the SYNOPSIS of the page" {
	local p bad=
	for p in mq-send mq-recv mq-admin mq-bench "${scripts[@]}"; do
		mandoc -T ascii "$src"/man/$p.1 | col -b | sed -n '/^SYNOPSIS/,/^DESCRIPTION/p' | sed '1d;$d' | words >synopsis
		"$p" --help | sed -n '1,/^$/p' | sed 's/^usage: //; /^[A-Z]/d' | words >usage
		[ -s synopsis ]
		cmp -s synopsis usage || bad+="$p: $(cat synopsis usage)"$'\n'
	done
	[ -z "$bad" ] || { echo "$bad"; false; }
}

@test "each command of mq-admin is in its page" {
	mq-admin --help | sed -nE 's/^  ([a-zA-Z]+( [a-z]+)?) +[*+ ] .*/\1/p' | sort >commands
	[ -s commands ]
	grep -oE '^(\.It )?(\.)?Cm [a-zA-Z]+( [a-z]+)?' "$src/man/mq-admin.1" | sed 's/.*Cm //' | sort -u >page
	run comm -23 commands page
	assert_output ""
}

@test "the examples of mq(7), of the tools and of the scripts on top of them work in a fresh home" {
	local page
	for page in mq.7 mq-send.1 mq-recv.1 mq-admin.1 "${scripts[@]/%/.1}"; do
		mkdir "$page.d"
		examples "$src/man/$page" >"$page.sh"
		[ -s "$page.sh" ]
		(
			cd "$page.d"
			export HOME=$PWD XDG_DATA_HOME=$PWD/share
			status=0
			timeout 60 bash -eu ../"$page.sh" >out 2>err || status=$?
			Q=$XDG_DATA_HOME/mq
			stop_embedded "$Q"
			[ $status = 0 ] || { echo "$page: status $status"; cat "../$page.sh" out err; exit 1; }
		)
	done
}
