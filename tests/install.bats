#!/usr/bin/env bats
# What make install brings, that others can build on it, and that make uninstall takes it away again.

bats_require_minimum_version 1.5.0

setup_file() {
	export stage=$BATS_FILE_TMPDIR/stage
	build=${MQ_BUILD:-$BATS_TEST_DIRNAME/../build/default}
	unset MAKEFLAGS MAKELEVEL MFLAGS
	make -s -C "$build" install DESTDIR="$stage" >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log"; return 1; }
	export build prefix=$stage$(sed -n 's/^prefix = //p' "$build/Makefile")
}

setup() {
	load /usr/lib/bats/bats-support/load
	load /usr/lib/bats/bats-assert/load
	unset MAKEFLAGS MAKELEVEL MFLAGS
	export PKG_CONFIG_PATH=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage
	export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	cd "$BATS_TEST_TMPDIR"
	flags=$(sed -n "s/^BASE_CFLAGS = .*\(-fsanitize=[a-z,]*\).*/\1/p" "$build/Makefile")
}

@test "the programs are there, start, and have manuals" {
	local p
	for p in mq-namesrv mq-broker mq-send mq-recv mq-admin mq-bench mqfs; do
		run -0 "$prefix/bin/$p" --version
		assert_output --regexp "^$p "
		run ls "$prefix"/share/man/man[18]/"$p".[18]
		assert_success
	done
	assert [ -x "$prefix/bin/mq-quickstart" ]
	assert [ -x "$prefix/sbin/mount.mqfs" ]
	for p in mq-alert mq-backup mq-dlq mq-mirror mq-restore mq-top; do
		assert [ -x "$prefix/bin/$p" ]
		assert [ -e "$prefix/share/man/man1/$p.1" ]
	done
	assert [ -e "$prefix/share/man/man7/mq.7" ]
}

@test "each public header stands alone, in C and in C++" {
	local h
	for h in mq mqstore mqclient; do
		echo "#include <$h.h>" >one.c
		run -0 cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only $(pkg-config --cflags mqstore) one.c
		if command -v c++ >/dev/null; then
			run -0 c++ -x c++ -std=c++17 -Wall -Werror -fsyntax-only $(pkg-config --cflags mqstore) one.c
		fi
	done
}

@test "a program of one's own finds headers and library by pkg-config" {
	cat >own.c <<-'C'
		#include <mqclient.h>
		#include <mqstore.h>
		#include <stdio.h>

		int main(void)
		{
			struct mqstore_opt opt;
			struct mqstore *s;
			struct mq_error e;

			mqstore_defaults(&opt);
			opt.dir = "no-such-store";
			opt.read_only = true;
			if (mqstore_open(&s, &opt, &e) != MQ_ENOTFOUND)
				return 1;
			printf("%s: %s\n", MQ_VERSION, e.text);
			return 0;
		}
	C
	run -0 cc -o own own.c $flags $(pkg-config --cflags --libs mqstore)
	run -0 ./own
	assert_output --regexp "^$(pkg-config --modversion mqstore): .*no-such-store"
}

@test "the shared library shows public names only" {
	run -0 nm -D --defined-only "$prefix/lib/libmqstore.so"
	# lines are: address, kind, name
	refute_line --regexp ' [A-Z] (base|codec|store|net|client|buf|str|frame|conn|server|segment|commitlog)_'
	assert_line --regexp ' T mq_'
	run -1 grep -vE ' [A-Za-z] (mq|__asan|__odr_asan|__ubsan)' <<<"$output"
}

@test "uninstall leaves no file behind" {
	run -0 make -s -C "$build" uninstall DESTDIR="$stage"
	run -0 find "$stage" ! -type d
	assert_output ''
}
