"""Very many of something in one broker: queues, connections, pulls that wait, groups."""
import os
import resource
import signal
import statistics
import time

from long import AT_REST_S, retire
from machine import cpu_seconds, memory, note
from rocketmq import System
from wire import Wire, group, pull, send, topic

MILLION = 1_000_000
MANY = 10_000           # connections, pulls
QUEUES = 100_000
WIDE = 50_000           # queues of a topic: it may have 65,535
GROUPS = 1000
PAIRS = 5
SETTLE_S = 3            # then what was freed has been given back


def files_max():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections(system, n=MANY):
    files_max()
    return [Wire(system.port) for _ in range(n)]


def held_pulls(system, wires):
    """One on each connection, of ten groups, in 1,000 queues."""
    wires[0].ask_all([topic("idle", 1000)])
    for i, wire in enumerate(wires):
        wire.send(*pull("idle", i % 1000, f"waits{i % 10}"))


def wide_topics(system):
    """100,000 queues of which each has a message; CPU time of one of these, us."""
    wire = Wire(system.port)
    names = [f"wide{i}" for i in range(QUEUES // WIDE)]
    wire.ask_all(topic(name, WIDE) for name in names)
    wire.close()
    costs = [system.load("send", "--in-flight", 256, "--queues", WIDE, "-t", name, "--count", WIDE)["cpu_us_per_message"]
             for name in names]
    return names, statistics.mean(costs)


def until_files(system, names, seconds=120):
    """Seconds until the files of all queues are made; None: not in time."""
    begun = time.monotonic()
    folders = [os.path.join(system.store(), "consumequeue", name) for name in names]
    while time.monotonic() - begun < seconds:
        if sum(len(os.listdir(f)) for f in folders if os.path.isdir(f)) >= QUEUES:
            return time.monotonic() - begun
        time.sleep(0.5)
    return None


def opened(pid):
    """Descriptors and mappings."""
    with open(f"/proc/{pid}/maps") as f:
        return len(os.listdir(f"/proc/{pid}/fd")), sum(1 for _ in f)


# ---- Scenes --------------------------------------------------------------------------------------------------------------

def memory_of_many(o, take):
    """A broker each, so that none has what another has left."""
    def messages(system):
        system.load("batch", "--in-flight", 64, "--count", 10 * MILLION)

    def sending(system):
        wires = connections(system)
        round_of_sends(wires)
        return wires

    def waiting(system):
        wires = connections(system)
        held_pulls(system, wires)
        return wires

    def groups(system):
        wire = Wire(system.port)
        wire.ask_all(group(f"group{i}") for i in range(GROUPS))
        return [wire]

    for what, act in (("at rest", lambda system: None), ("after 10 million messages", messages),
                      ("with 10,000 connections", connections), ("the same, each has sent a message", sending),
                      ("with 10,000 connections, on each a pull that waits", waiting), ("with 1,000 groups", groups),
                      ("with 100,000 queues, a message in each", wide_topics)):
        system = System("ours", o.dir, o.build)
        try:
            kept = act(system)
            time.sleep(SETTLE_S)
            take(f"anonymous memory {what}, MiB", memory(system.pid())[1])
            for wire in kept if isinstance(kept, list) else ():
                wire.close()
        finally:
            # A stop in order would make 100,000 files, only for them to be removed.
            os.kill(system.pid(), signal.SIGKILL)
            system.stop()


def round_of_sends(wires):
    for i, wire in enumerate(wires):
        wire.send(*send("bench", i % 8))
    for wire in wires:
        wire.take()


def many_connections(system, o, take):
    what = "10,000 connections"
    wires = connections(system)
    costs = {}
    for n in (100, MANY) * 3:
        begun = cpu_seconds(system.pid())
        for _ in range(2 * MANY // n):
            round_of_sends(wires[:n])
        costs.setdefault(n, []).append((cpu_seconds(system.pid()) - begun) / (2 * MANY) * 1e6)
    take(f"{what}, each sends now and then: CPU of a send, us", statistics.median(costs[MANY]))
    take(f"{what}, each sends now and then: CPU of a send / with 100 connections",
         statistics.median(costs[MANY]) / statistics.median(costs[100]))
    few = system.load("send", "--in-flight", 256, "--seconds", o.seconds, "--warmup", 1)
    held_pulls(system, wires)
    time.sleep(1)
    many = system.load("send", "--in-flight", 256, "--seconds", o.seconds, "--warmup", 1)
    take(f"{what}, a pull waits on each: CPU of a send beside / before", many["cpu_us_per_message"] / few["cpu_us_per_message"])
    take(f"{what}, a pull waits on each: anonymous, MiB", memory(system.pid())[1])
    begun = cpu_seconds(system.pid()), time.monotonic()
    time.sleep(5)
    take(f"{what}, a pull waits on each: CPU at rest, us per second",
         (cpu_seconds(system.pid()) - begun[0]) / (time.monotonic() - begun[1]) * 1e6)
    for wire in wires:
        wire.close()
    wires = []
    time.sleep(1)
    r = system.load("send", "--in-flight", 1, "--conns", MANY, "--seconds", o.seconds)
    take(f"{what}, all send all the time: sends/s / over one with 256 in flight", r["rate"] / few["rate"])


def many_queues(system, o, take):
    what = "100,000 queues"
    names, first = wide_topics(system)
    take(f"{what}: CPU of the first send to each, us", first)
    made = until_files(system, names)
    if made is not None:
        take(f"{what}: files of all are made after, s", made)
    o.fill()
    costs, rates = ([], []), ([], [])
    for _ in range(PAIRS):
        for i, more in enumerate((("--queues", 8), ("--queues", WIDE, "-t", names[0]))):
            r = system.load("send", "--in-flight", 256, "--seconds", max(1, o.seconds / 2), "--warmup", 0.2, *more)
            costs[i].append(r["cpu_us_per_message"])
            rates[i].append(r["rate"])
    take(f"{what}: CPU of a send / with 8", statistics.median(costs[1]) / statistics.median(costs[0]))
    take(f"{what}: sends/s / with 8", statistics.median(rates[1]) / statistics.median(rates[0]))
    take(f"{what}: anonymous, MiB", memory(system.pid())[1])
    files, maps = opened(system.pid())
    take(f"{what}: descriptors", files)
    take(f"{what}: mappings", maps)
    stop, start = system.restart()
    take(f"{what}, half of them just written to: stop, ms", stop)
    take(f"{what}: start after that, ms", start)
    take(f"{what}: mappings after the start", opened(system.pid())[1])
    again = [system.load("send", "--in-flight", 256, "--queues", WIDE, "-t", name, "--count", WIDE)["cpu_us_per_message"] for name in names]
    take(f"{what}: CPU of the first send to each after it, us", statistics.mean(again))
    take(f"{what}: start after kill -9 under load, ms", system.restart(signal.SIGKILL)[1])
    system.until_registered()
    time.sleep(AT_REST_S)
    stop, start = system.restart()
    take(f"{what}, at rest: stop, ms", stop)
    system.until_registered()
    seconds, files = retire(system)
    note(f"    {files} segments removed")
    take(f"{what}: all segments but the newest removed, s", seconds)
    take(f"{what}: mappings at the end", opened(system.pid())[1])
