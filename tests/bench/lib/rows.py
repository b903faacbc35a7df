"""What is measured of RocketMQ and of ours.  A scene is one broker with a fresh store and the rows that are read from it."""
import signal
import statistics
import time

from machine import drop_from_memory, memory, ms_of, note
from cold import cold_reader
from flat import flat
from javaclient import java_producer
from long import many_messages, soak
from replication import replication
from rocketmq import System
from scale import many_connections, many_queues, memory_of_many

BODY = 128
QUEUES = 8          # that a topic has with both brokers (rocketmq.DEFAULTS)
PACE_MAX = 20_000_000


class Scene:
    """Systems it makes sense for, configuration, and what it does with one of them: run(system, o, take)."""

    def __init__(self, name, run, systems=("java", "ours"), conf=(), quick=True):
        self.name, self.run, self.systems, self.conf, self.quick = name, run, systems, conf, quick

    def play(self, name, base, build, o, take):
        system = System(name, base, build, self.conf)
        try:
            self.run(system, o, take)
        finally:
            system.stop()


# ---- Life, sends, deliveries ---------------------------------------------------------------------------------------------

def life(system, o, take):
    stop, start = system.restart()
    take("start to first answer, ms", start)
    take("stop, ms", stop)
    system.until_registered()
    time.sleep(o.idle)
    resident, anonymous = memory(system.pid())
    take("idle: resident, MiB", resident)
    take("idle: anonymous, MiB", anonymous)
    command = system.admin() + ["topicList", "-n", system.address()]
    take("CLI call (topicList), ms", statistics.median(ms_of(command) for _ in range(3)))


def best_of(system, mode, ways, *options):
    """What the system does best with, of some ways to ask it for the same: the run with the highest rate."""
    return max((system.load(mode, *options, *way) for way in ways), key=lambda r: r["rate"])


# A generator that sleeps between answers, or looks for them; the second is not good for a server that wants both processors.
WAYS = [(), ("--spin", 100)]
# As many messages in a pull as clients ask for if nobody tells them otherwise, and as somebody who reads much asks for.
PULLS = [("--pull-max", 32), ("--pull-max", 512)]


def load(system, o, take):
    runs = []
    for i, flight in enumerate((1024, 256, 64)):
        r = best_of(system, "send", WAYS, "--in-flight", flight, "--seconds", o.seconds,
                    "--warmup", o.seconds if i == 0 else 1)
        runs.append(r)
        take(f"sends/s, {flight} in flight", r["rate"])
        take(f"refused of these, {flight} in flight", r["errors"])
    best = max(runs, key=lambda r: r["rate"])
    take("sends/s, best", best["rate"])
    take("broker CPU per send at best, us", best["cpu_us_per_message"])
    rates(system, o, take)
    b = best_of(system, "batch", [("--in-flight", 64), ("--in-flight", 128)], "--queues", QUEUES, "--seconds", o.seconds, "--warmup", 1)
    take("messages/s in batches", b["rate"])
    take("broker CPU per message in batches, us", b["cpu_us_per_message"])
    c = best_of(system, "consume", [p + w for p in PULLS for w in WAYS], "--queues", QUEUES, "--seconds", o.seconds)
    take("messages/s to one consumer", c["rate"])
    take("broker CPU per message delivered, us", c["cpu_us_per_message"])
    time.sleep(2)
    r = system.load("latency", "--seconds", o.seconds, "-t", "latency")
    take("send to receive, idle system, p50, us", r["p50_us"])
    take("send to receive, idle system, p99, us", r["p99_us"])
    take("after the load: anonymous, MiB", memory(system.pid())[1])


def rates(system, o, take):
    # Waiting for the time when a request is due takes the generator a processor, which a server with answers as they come does not
    # have to share: so the top is what the two can keep up for longer in this way.
    def paced(rate, seconds):
        return system.load("send", "--in-flight", 1024, "--rate", rate, "--seconds", seconds, "--warmup", 1)

    top = paced(PACE_MAX, o.seconds)["rate"]
    take("sends/s that are asked for by the clock, most", top)
    for percent in (10, 50, 90):
        r = paced(max(1, int(top * percent / 100)), o.seconds)
        for p in ("p50", "p99", "p999"):
            take(f"a send at {percent} % of that, {p}, us", r[p + "_us"])


def sync(system, o, take):
    r = system.load("send", "--in-flight", 64, "--seconds", o.seconds, "--warmup", o.seconds)
    take("sends/s under SYNC_FLUSH, 64 in flight", r["rate"])


# ---- Scale: ours alone ---------------------------------------------------------------------------------------------------

def large_store(system, o, take):
    size = 64 * 1024
    system.load("batch", "--in-flight", 16, "--size", size, "--batch", 32, "--count", o.gigabytes * (1 << 30) // size)
    wide = system.load("send", "--in-flight", 256, "--seconds", 1)
    note(f"store of {o.gigabytes} GiB, {wide['messages']} small messages at its end")
    take(f"start to first answer after kill -9, {o.gigabytes} GiB, ms", system.restart(signal.SIGKILL)[1])
    drop_from_memory(system.store())
    take(f"the same, nothing of it in memory, ms", system.restart(signal.SIGKILL)[1])


class Own(Scene):
    """Has brokers of its own."""

    def play(self, name, base, build, o, take):
        self.run(o, take)


class Replication(Scene):
    """Has brokers of its own: masters and slaves."""

    def play(self, name, base, build, o, take):
        replication(name, o, take)


SCENES = [
    Scene("life", life),
    Scene("load", load),
    Scene("sync", sync, conf=["flushDiskType=SYNC_FLUSH"]),
    Scene("java-producer", java_producer, quick=False),
    Replication("replication", replication, quick=False),
    Own("memory", memory_of_many, systems=("ours",), quick=False),
    Scene("many-connections", many_connections, systems=("ours",), quick=False),
    Scene("many-queues", many_queues, systems=("ours",), conf=["mappedFileSizeCommitLog=134217728"], quick=False),
    Scene("cold-reader", cold_reader, systems=("ours",), quick=False),
    Scene("large-store", large_store, systems=("ours",), quick=False),
    Scene("many-messages", many_messages, systems=("ours",), quick=False),
    Scene("soak", soak, systems=("ours",), conf=["mappedFileSizeCommitLog=134217728"], quick=False),
    Own("flat", flat, systems=("ours",), quick=False),
]
