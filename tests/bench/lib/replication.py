"""What a slave costs: the same sends to a master alone, to one with an asynchronous slave, and to one that waits for its slave.

The three masters run side by side and take their turns one after another, so that what else the machine does strikes all; the CPU
time of a slave counts from the first send until it has everything.  Master, slave and generator share the processors of one machine:
where two of them are all, a slave that needs its own share takes it from the other two.
"""
import json
import statistics
import subprocess
import time

from machine import cpu_seconds, fail, free_port, note, output, wait_for
from rocketmq import System

PAIRS = 5


def wait(system, slave):
    """Until the slave has all that its master has."""
    def status():
        out = subprocess.run([system.program("mq-admin"), "-o", "json", "haStatus", "-n", system.address(), "-b",
                              f"127.0.0.1:{system.port}"], capture_output=True, text=True).stdout
        rows = json.loads(out) if out.strip() else None
        text = json.dumps(rows)
        return '"inSyncSlaveNums": 1' in text and '"diff": 0' in text
    wait_for(f"slave of the {system.name} master ({slave.dir})", status, 120, pause=0.05)


def master(o, name, conf):
    s = System(name, o.dir, o.build, conf)
    s.make_topic("bench", 8)
    return s


def slave(of, o):
    ha = of.port + 1
    return System(of.name, o.dir, o.build, ["brokerId=1", "brokerRole=SLAVE", f"haMasterAddress=127.0.0.1:{ha}"], namesrv=of.address())


def replication(name, o, take):
    """With 256 sends in flight; the master that waits does so for each message (inSyncReplicas=2)."""
    systems, slaves = [], [None]
    try:
        for conf in ([], [], ["brokerRole=SYNC_MASTER", "inSyncReplicas=2", "minInSyncReplicas=2"]):
            systems.append(master(o, name, conf))
        for m in systems[1:]:
            slaves.append(slave(m, o))
            wait(m, slaves[-1])
        runs = [[], [], []]
        used = [0.0, 0.0, 0.0]
        masters_used = [0.0, 0.0, 0.0]
        for _ in range(PAIRS):
            o.fill()
            for i, m in enumerate(systems):
                before = cpu_seconds(slaves[i].pid()) if slaves[i] else 0
                mine = cpu_seconds(m.pid())
                r = m.load("send", "--in-flight", 256, "--seconds", max(1, o.seconds / 2), "--warmup", 0.5, "-t", "bench")
                if r["errors"]:
                    note(f"    {r['errors']} sends were refused")
                runs[i].append(r["rate"])
                if slaves[i]:
                    wait(m, slaves[i])
                    used[i] += cpu_seconds(slaves[i].pid()) - before
                masters_used[i] += cpu_seconds(m.pid()) - mine
        alone, behind, waiting = (statistics.median(x) for x in runs)
        take("sends/s of a master alone, 256 in flight", alone)
        take("sends/s with a slave / alone", behind / alone)
        take("sends/s that wait for a slave / alone", waiting / alone)
        take("CPU of a slave / of its master", used[1] / masters_used[1])
        take("the same, where the master waits", used[2] / masters_used[2])
    finally:
        for s in [s for s in slaves if s] + systems:
            s.stop()
