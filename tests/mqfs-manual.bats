#!/usr/bin/env bats
# mqfs as a person starts it: the examples of its manual, in the background, and by the helper of mount(8).

setup() {
	load helpers
	load mqfs
	mqfs_setup
}

teardown() {
	mqfs_teardown
}

@test "the examples of mqfs(8) work in a fresh home" {
	awk '/^\.Sh / { on = /EXAMPLES/ } /^\.Bd -literal/ { code = on; next } /^\.Ed/ { code = 0 } code' "$src/man/mqfs.8" |
		sed 's/\\e/\\/g; s/\\&//g' >examples.sh
	[ -s examples.sh ]
	mkdir fresh
	cd fresh
	status=0
	within 60 bash -eu ../examples.sh >out 2>err || status=$?
	umount -l m 2>/dev/null || :
	stop_embedded "$PWD/queue"
	[ $status = 0 ] || { cat out err; false; }
	assert_equal "$(head -n 1 out)" hello
	[ -s all.tar ]
}

@test "in the background it returns when mounted, and a failure is its status" {
	start_cluster
	echo x | mq-send T
	within 20 mqfs -b "$M"
	run -0 ls "$M/topics"
	assert_output T
	umount "$M"
	gone() { ! pgrep -f -- "mqfs -b $M" >/dev/null; }
	until_true gone
	run -3 mqfs -b "$M/nowhere"
}

@test "mount.mqfs does what mount(8) asks of it" {
	start_cluster
	echo x | mq-send T
	within 20 mount.mqfs "$NAMESRV_ADDR" "$M" -o rw,noauto,user,_netdev,x-systemd.automount,nosuid,nodev,list=5
	grep -q " $M fuse.mqfs .*nosuid" /proc/mounts
	run -0 grep options "$M/status"
	assert_output --partial list=5
	umount "$M"
	within 20 mount.mqfs none "$M" -o ro
	grep -q " $M fuse.mqfs ro," /proc/mounts
	umount "$M"
	run -2 mount.mqfs "$NAMESRV_ADDR" "$M" -o colour=red
}

@test "a line of fstab mounts it, by mount(8) itself" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	unshare -m true 2>/dev/null || skip "no mount namespace of its own can be had here"
	start_cluster
	echo x | mq-send T
	echo "$NAMESRV_ADDR $M mqfs noauto,ro,nosuid,timeout=5s 0 0" >fstab
	mkdir upper work
	# mount(8) looks for helpers in /sbin alone, and gives them its own PATH: for it, and here only, ours are there.
	cp "$(command -v mount.mqfs)" upper/mount.mqfs
	printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v mqfs)" >upper/mqfs
	chmod +x upper/mqfs
	export M
	run unshare -m bash -c 'exec 3>&-; sbin=$(realpath /sbin)
		mount -t overlay overlay -o "lowerdir=$sbin,upperdir=$PWD/upper,workdir=$PWD/work" /sbin || exit 77
		mount -T fstab "$M" && cat /proc/mounts | grep " $M " && ls "$M/topics" && umount "$M"'
	[ $status != 77 ] || skip "no overlay file system here"
	assert_success
	assert_output --partial "fuse.mqfs ro,nosuid"
	assert_line T
}

@test "the unit for systemd is one" {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze here"
	unit=${MQ_SRC:-$BATS_TEST_DIRNAME/..}/mqfs/mqfs@.service
	sed "s|^ExecStart=mqfs|ExecStart=$(command -v true)|" "$unit" >"mqfs@mnt.service"
	run -0 systemd-analyze verify --man=no "$PWD/mqfs@mnt.service"
}

@test "other users may not come in, but with allow_other what the modes allow" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	start_cluster
	printf body | mq-send -w -q b:0 T
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR"/* "$BATS_TEST_TMPDIR" 2>/dev/null
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	f=$M/topics/T/queues/b:0/messages/0
	mount_mqfs
	run ! as_nobody cat "$f"
	unmount
	mount_mqfs -o allow_other
	run -0 as_nobody cat "$f"
	assert_output body
	run ! as_nobody sh -c 'echo x >"$1"' - "$M/topics/T/send"
	assert_output --partial "Permission denied"
	unmount
	mount_mqfs -o allow_other,umask=077
	run ! as_nobody cat "$f"
	unmount
	mount_mqfs -o allow_other,uid=65534,umask=077
	run -0 as_nobody cat "$f"
	as_nobody sh -c 'echo x >"$1"' - "$M/topics/T/send"
	assert_equal "$(total T)" 2
}
