"""Sends beside those who want what is not in memory any more: they wait for the disk, the others must not."""
import json
import os
import random
import signal
import subprocess
import threading
import time

from machine import drop_from_memory, end
from wire import Wire

MILLION = 1_000_000
COUNT = 3 * MILLION
QUEUES = 8


def sends(system, seconds, *options):
    return system.load("send", "--in-flight", 256, "-t", "hot", "--seconds", seconds, *options)


def beside(system, seconds, reader, *options):
    """What sends are like while reader() runs, which returns what ends it; what it returns; and what they are like alone."""
    alone = sends(system, seconds, *options, "--warmup", 1)
    drop_from_memory(system.store())
    stop = reader(seconds + 2)
    time.sleep(1)
    both = sends(system, seconds, *options)
    return both, alone, stop()


def consumer(system):
    def start(seconds):
        p = subprocess.Popen(system.load_command("consume", "--seconds", seconds), stdout=subprocess.PIPE, text=True)
        return lambda: json.loads(p.communicate()[0])["rate"]
    return start


def popper(system):
    """mq-recv as a group that pops: lines a second."""
    def start(seconds):
        p = subprocess.Popen([system.program("mq-recv"), "-n", system.address(), "-g", "popper", "-o", "begin", "--pop", "-f", "%o\\n",
                              "bench"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        begun, lines = time.monotonic(), [0]

        def count():
            for part in iter(lambda: os.read(p.stdout.fileno(), 1 << 16), b""):
                lines[0] += part.count(b"\n")
        thread = threading.Thread(target=count)
        thread.start()

        def stop():
            rate = lines[0] / (time.monotonic() - begun)
            end(p, signal.SIGTERM)
            thread.join()
            return rate
        return stop
    return start


def questions(system):
    """Searches by time, one after the other, for times anywhere in the store, each followed by one message by its id: in pairs a second."""
    def start(seconds):
        folder = os.path.join(system.store(), "commitlog")
        segments = [os.stat(os.path.join(folder, name)) for name in os.listdir(folder)]
        first, log = min(s.st_mtime for s in segments), sum(s.st_size for s in segments)
        rng, wire, done, over = random.Random(7), Wire(system.port), [0], threading.Event()
        begun = time.monotonic()

        def ask():
            while not over.is_set():
                ms = int((first - 30 + rng.random() * 40) * 1000)
                wire.send(29, dict(topic="bench", queueId=str(rng.randrange(QUEUES)), timestamp=str(ms)))
                wire.answer()
                wire.send(33, dict(offset=str(rng.randrange(log))))
                wire.answer()
                done[0] += 1
        thread = threading.Thread(target=ask)
        thread.start()

        def stop():
            over.set()
            thread.join()
            wire.close()
            return done[0] / (time.monotonic() - begun)
        return stop
    return start


def cold_reader(system, o, take):
    # More than a consumer reads in the time that is measured.
    system.load("batch", "--in-flight", 64, "--size", 1024, "--count", COUNT)
    both, alone, rate = beside(system, o.seconds, consumer(system))
    take("sends/s beside a cold reader / alone", both["rate"] / alone["rate"])
    take("messages/s (1 KiB) to the cold reader", rate)
    # The reader takes a share of the processors; what it may not do is to make the others wait for the disk.
    for i, (who, reader, what) in enumerate((("a cold reader", consumer, "messages/s to it"), ("a cold popper", popper, "messages/s to it"),
                                             ("cold questions", questions, "searches by time and messages by id, each per second"))):
        both, alone, rate = beside(system, o.seconds, reader(system), "--rate", 20000)
        for p in ("p50", "p99", "p999"):
            if i == 0:
                take(f"20,000 sends/s alone, {p}, us", alone[p + "_us"])
            take(f"20,000 sends/s beside {who}, {p}, us", both[p + "_us"])
        take(f"beside 20,000 sends/s, {who}: {what}", rate)
