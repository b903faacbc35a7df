"""What a send costs the broker the more there is of something: topics, queues, groups, connections, pulls that wait, messages, bytes.

Two brokers run side by side: one in which there is little of everything, one in which there is more and more of one thing.  Both take
the same sends turn by turn, so that what else the machine does strikes both; what counts is the ratio of the CPU time of a send.
"""
import os
import resource
import statistics
import time

from machine import memory, note
from rocketmq import System
from wire import Wire, group, pull, topic

MILLION = 1_000_000
PAIRS = 5
QUEUES_MAX = 50_000
ROW = "CPU of a send with so many / with few"


class Pair:
    def __init__(self, o):
        self.o = o
        self.few, self.many = System("ours", o.dir, o.build), None
        try:
            self.many = System("ours", o.dir, o.build)
        except BaseException:
            self.few.stop()
            raise

    def stop(self):
        self.few.stop()
        if self.many:
            self.many.stop()

    def compare(self, what, n, take, *options):
        """options: of the sends to the broker that has many."""
        self.o.fill()
        costs = ([], [])
        for _ in range(PAIRS):
            for system, of, more in ((self.few, costs[0], ()), (self.many, costs[1], options)):
                of.append(system.load("send", "--in-flight", 256, "--seconds", max(1, self.o.seconds / 4), "--warmup", 0.2,
                                      *more)["cpu_us_per_message"])
        take(f"{ROW}: {n} {what}", statistics.median(costs[1]) / statistics.median(costs[0]))
        note(f"    {n:,} {what}: {statistics.median(costs[1]):.2f} us, with few {statistics.median(costs[0]):.2f} us; "
             f"{memory(self.many.pid())[1]:.1f} MiB anonymous")


def until_made(folder, count):
    """A disk that takes 3 ms for an fdatasync makes some ten files of queues a second; it is not waited for all of them."""
    end = time.monotonic() + 60
    while time.monotonic() < end and not (os.path.isdir(folder) and len(os.listdir(folder)) >= count):
        time.sleep(0.2)
    made = len(os.listdir(folder)) if os.path.isdir(folder) else 0
    if made < count:
        note(f"    files of {made:,} of {count:,} queues are made after 60 s")


def topics(pair, take):
    made = 0
    wire = Wire(pair.many.port)
    for n in (10, 100, 1000, 10000):
        wire.ask_all(topic(f"topic{i}", 8) for i in range(made, n))
        made = n
        pair.compare("topics", n, take)
    wire.close()


def queues(pair, take):
    wire = Wire(pair.many.port)
    for n in (100, 1000, 10000, 100000):
        # A topic has at most 65,535: sends go round one of them, the rest is in use in another.
        parts = {f"wide{n}_{i}": min(QUEUES_MAX, n - i) for i in range(0, n, QUEUES_MAX)}
        wire.ask_all(topic(name, count) for name, count in parts.items())
        for name, count in parts.items():
            # Files are made once, and not at once: that is not what a send costs.
            pair.many.load("send", "--in-flight", 256, "--queues", count, "-t", name, "--count", count)
            until_made(os.path.join(pair.many.store(), "consumequeue", name), count)
        pair.compare("queues", n, take, "-t", f"wide{n}_0", "--queues", parts[f"wide{n}_0"])
    wire.close()


def groups(pair, take):
    made = 0
    wire = Wire(pair.many.port)
    for n in (10, 100, 1000):
        wire.ask_all(group(f"group{i}") for i in range(made, n))
        made = n
        pair.compare("groups", n, take)
    wire.close()


def connections(pair, take):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wires = []
    for n in (10, 100, 1000, 10000):
        wires += [Wire(pair.many.port) for _ in range(n - len(wires))]
        pair.compare("connections", n, take)
    for wire in wires:
        wire.close()


def pulls(pair, take):
    wire = Wire(pair.many.port)
    wire.ask_all([topic("idle", 1000)])
    made = 0
    for n in (10, 100, 1000, 10000):
        for i in range(made, n):
            wire.send(*pull("idle", i % 1000, f"group{i // 1000}"))
        made = n
        time.sleep(1)
        pair.compare("pulls that wait", n, take)
    wire.close()


def messages(pair, take):
    made = 0
    for n in (100_000, MILLION, 10 * MILLION):
        pair.many.load("batch", "--in-flight", 64, "--size", 16, "--count", n - made)
        made = n
        pair.compare("stored messages", n, take)


def stored_bytes(pair, take):
    made, size = 0, 64 * 1024
    for n in (1, 2, 4, 8):
        pair.many.load("batch", "--in-flight", 4, "--size", size, "--batch", 32, "--count", ((n - made) << 30) // size)
        made = n
        pair.compare("GiB stored", n, take)


def flat(o, take):
    for dimension in (topics, queues, groups, connections, pulls, messages, stored_bytes):
        pair = Pair(o)
        try:
            dimension(pair, take)
        finally:
            pair.stop()
