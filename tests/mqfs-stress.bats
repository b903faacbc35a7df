#!/usr/bin/env bats
# mqfs with many readers, and with many names: nothing is used after it is gone, and memory comes back.
# MQFS_ROUNDS (10) and MQFS_NAMES (50000): how many; for a long run 1000 and 1000000.

setup() {
	load helpers
	load mqfs
	mqfs_setup
	start_cluster
	mq-admin updateTopic -c DefaultCluster -t T -r 2 -w 2
	T=$M/topics/T
}

teardown() {
	mqfs_teardown
}

@test "a hundred pollers, and unmounts, closes and messages at random" {
	cat >pollers.py <<'EOF'
import errno, os, random, select, sys, time
tail, send, seed, pid = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
e = select.epoll()
fds = []
for i in range(100):
    fd = os.open(tail, os.O_RDONLY | os.O_NONBLOCK)
    e.register(fd, select.EPOLLIN)
    fds.append(fd)
gone = (errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV)
end = time.time() + 60
mount_gone = False
for step in range(random.randrange(5, 60)):
    act = random.random()
    try:
        if act < 0.3 and fds:
            fd = fds.pop(random.randrange(len(fds)))
            e.unregister(fd)
            os.close(fd)
        elif act < 0.6:
            out = os.open(send, os.O_WRONLY)
            os.write(out, b"message %d" % step)
            os.close(out)
        elif act < 0.65 and not mount_gone:
            os.kill(pid, 15)
            mount_gone = True
        elif act < 0.8:
            e.poll(0)
        elif fds:
            os.read(random.choice(fds), 100)
    except OSError as x:
        if x.errno not in gone + (errno.EAGAIN, errno.ENOENT, errno.EINTR): raise
    assert time.time() < end, "it hangs"
for fd in fds:
    try: os.close(fd)
    except OSError as x:
        if x.errno not in gone: raise
EOF
	for round in $(seq "${MQFS_ROUNDS:-10}"); do
		mount_mqfs
		within 90 python3 pollers.py "$T/tail" "$T/send" "$round" "$fs_pid" || { echo "round $round"; cat fs.log; false; }
		kill -TERM "$fs_pid" 2>/dev/null || :
		ended "$fs_pid"
		assert_equal $status 0
		fs_pid=
	done
}

rss() { # MiB
	awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$fs_pid/status"
}

@test "many names looked up and forgotten: memory comes back" {
	[ -w /proc/sys/vm/drop_caches ] || skip "the kernel can be made to forget by root only"
	! grep -q __asan_init "$(command -v mqfs)" || skip "a sanitizer keeps back what was freed"
	mount_mqfs
	ls "$T" >/dev/null
	before=$(rss)
	python3 -c 'import os, sys
for i in range(1, int(sys.argv[2]) + 1): os.stat("%s/@%d" % (sys.argv[1], i))' "$T/by-time" "${MQFS_NAMES:-50000}"
	full=$(rss)
	echo 2 >/proc/sys/vm/drop_caches
	back() { [ $(($(rss) - before)) -le 16 ]; }
	until_true back
	echo "# before $before MiB, with all names $full, after $(rss)" >&3
	ls "$T" >/dev/null
}

@test "two hundred processes killed while they open: all are gone within a second, and nothing is left behind" {
	mount_mqfs
	kill -STOP "$broker_pid"
	python3 -c 'import os, signal, sys, time
pids = []
for i in range(200):
    pid = os.fork()
    if pid == 0:
        try: os.read(os.open(sys.argv[1], os.O_RDONLY), 1)
        except OSError: pass
        os._exit(0)
    pids.append(pid)
time.sleep(0.3)
start = time.time()
for pid in pids: os.kill(pid, signal.SIGKILL)
for pid in pids: os.waitpid(pid, 0)
assert time.time() - start < 1, time.time() - start' "$T/tail"
	kill -CONT "$broker_pid"
	until_true cat "$T/stats"
	unmount
	assert_equal $status 0
}
