"""Scenes that take their time: a store with very many messages, and hours (or minutes) under load."""
import glob
import json
import os
import signal
import subprocess
import time

from machine import drop_from_memory, memory, note, output

MILLION = 1_000_000
AT_REST_S = 15      # then what was sent before is on the disk, and the checkpoint says so
OLD_S = 100 * 3600  # segments that were last written so long ago are past their time (fileReservedTime, 72 hours)


def retire(system):
    """All segments but the newest two are of the past; the administrator asks to remove them.  Seconds until that was done, and how
    many there were."""
    files = sorted(glob.glob(os.path.join(system.store(), "commitlog/*")))[:-2]
    then = time.time() - OLD_S
    for name in files:
        os.utime(name, (then, then))
    begun = time.monotonic()
    output([system.program("mq-admin"), "deleteExpiredCommitLog", "-b", f"127.0.0.1:{system.port}"])
    while any(os.path.exists(name) for name in files) and time.monotonic() - begun < 120:
        output([system.program("mq-admin"), "deleteExpiredCommitLog", "-b", f"127.0.0.1:{system.port}"])
        time.sleep(0.05)
    return time.monotonic() - begun, len(files)


def many_messages(system, o, take):
    """o.millions of messages in 8 queues, with keys in the index."""
    what = f"{o.millions} million messages"
    few = system.load("send", "--in-flight", 256, "--seconds", o.seconds, "--warmup", 1)
    r = system.load("batch", "--in-flight", 64, "--size", 16, "--count", o.millions * MILLION)
    take(f"{what}: messages/s stored (16 bytes, batches of 32)", r["rate"])
    many = system.load("send", "--in-flight", 256, "--seconds", o.seconds, "--warmup", 1)
    take(f"{what}: CPU of a send / with few", many["cpu_us_per_message"] / few["cpu_us_per_message"])
    take(f"{what}: anonymous, MiB", memory(system.pid())[1])
    take(f"{what}: start to first answer after kill -9 under load, ms", system.restart(signal.SIGKILL)[1])
    time.sleep(AT_REST_S)
    take(f"{what}: after kill -9 at rest, ms", system.restart(signal.SIGKILL)[1])
    time.sleep(AT_REST_S)
    drop_from_memory(system.store())
    take(f"{what}: the same, nothing of it in memory, ms", system.restart(signal.SIGKILL)[1])
    system.until_registered()
    sender = subprocess.Popen(system.load_command("send", "--rate", 20000, "--in-flight", 256, "--seconds", 10),
                              stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    seconds, files = retire(system)
    beside = json.loads(sender.communicate()[0])
    note(f"    {files} segments removed")
    take(f"{what}: all but the newest removed, s", seconds)
    take(f"{what}: a send meanwhile (20,000/s), p99, us", beside["p99_us"])
    take(f"{what}: refused meanwhile", beside["errors"])


def soak(system, o, take):
    """o.soak minutes of sends at a fixed rate, with what is past its time removed again and again."""
    step, samples = 15, []
    sender = subprocess.Popen(system.load_command("send", "--rate", o.soak_rate, "--in-flight", 1024, "--seconds", o.soak * 60),
                              stdout=subprocess.PIPE, text=True)
    begun = time.monotonic()
    try:
        while sender.poll() is None:
            time.sleep(step)
            resident, anonymous = memory(system.pid())
            samples.append(anonymous)
            _, files = retire(system)
            note(f"    {time.monotonic() - begun:.0f} s: {anonymous:.2f} MiB anonymous, {files} segments removed, "
                 f"{len(os.listdir(os.path.join(system.store(), 'commitlog')))} left")
    finally:
        sender.kill() if sender.poll() is None else None
    r = json.loads(sender.communicate()[0])
    what = f"{o.soak} minutes at {o.soak_rate:,}/s"
    take(f"{what}: sends/s", r["rate"])
    take(f"{what}: refused", r["errors"])
    take(f"{what}: anonymous after the first minute, MiB", samples[min(3, len(samples) - 1)])
    take(f"{what}: anonymous at the end, MiB", samples[-1])
    take(f"{what}: anonymous at most, MiB", max(samples))
    take(f"{what}: p99, us", r["p99_us"])
