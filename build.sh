#!/bin/sh
# build.sh: from a fresh copy of the tree to programs, outside the tree.
#
#   ./build.sh [-t] [DIR [CONFIGURE-OPTION...]]   configure if need be, and make, in DIR (build/default)
#   ./build.sh -i PACKAGE...                      only see to it that these Debian packages are there
#
# -t: also what the tests need, and the test programs.  As root on Debian it installs the packages that are missing; other
# users are told which.  Knows the packages and the order of the steps; what is built is the Makefile's affair.
set -eu
src=$(cd "$(dirname "$0")" && pwd)

build_packages='gcc libc6-dev make autoconf automake libtool pkg-config libuv1-dev libjansson-dev libinih-dev
	libsodium-dev zlib1g-dev liblz4-dev libzstd-dev libcurl4-openssl-dev uthash-dev'
test_packages='libcmocka-dev bats bats-assert bats-support mandoc jq zstd procps python3-minimal'

die() { echo "build.sh: $*" >&2; exit 3; }

# Run a command with its output in a log, which is shown when it fails.
quietly() { # quietly LOG COMMAND...
	log=$1; shift
	"$@" >"$log" 2>&1 </dev/null || { status=$?; tail -n 40 "$log" >&2; echo "build.sh: '$*' failed; all of it: $log" >&2; return $status; }
}

install_packages() {
	command -v dpkg-query >/dev/null || return 0	# not Debian: configure says what it misses
	missing=
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
	done
	[ -n "$missing" ] || return 0
	[ "$(id -u)" = 0 ] || die "packages are missing; as root: apt-get install --no-install-recommends$missing"
	echo "installing:$missing" >&2
	export DEBIAN_FRONTEND=noninteractive
	log=$(mktemp)
	for try in 1 2 3; do
		if quietly "$log" apt-get -qq -o Acquire::Retries=3 update &&
			quietly "$log" apt-get -qq -y -o Acquire::Retries=3 install --no-install-recommends $missing; then
			rm -f "$log"
			return 0
		fi
		[ $try = 3 ] || { echo "build.sh: trying again" >&2; sleep $((try * 5)); }
	done
	die "cannot install:$missing"
}

if [ "${1:-}" = -i ]; then shift; install_packages "$@"; exit 0; fi
tests=no
if [ "${1:-}" = -t ]; then tests=yes; shift; fi
case ${1:-} in -*) sed -n '4,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
dir=${1:-$src/build/default}
[ $# = 0 ] || shift

install_packages $build_packages
[ $tests = no ] || install_packages $test_packages
[ ! -e "$src/config.status" ] || die "the tree itself is configured: run 'make distclean' in $src first"

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
if [ ! -x "$src/configure" ] || [ "$src/configure.ac" -nt "$src/configure" ] || [ "$src/Makefile.am" -nt "$src/Makefile.in" ]; then
	(cd "$src" && quietly "$dir/autoreconf.log" autoreconf -fi)
fi
cd "$dir"
if [ ! -e config.status ] || [ "$src/configure" -nt config.status ] || [ "$*" != "$(cat .options 2>/dev/null)" ]; then
	quietly "$dir/configure.log" "$src/configure" "$@"
	echo "$*" >.options
fi
quietly "$dir/make.log" make -j"$jobs"
[ $tests = no ] || quietly "$dir/make-check.log" make -j"$jobs" check-norun
