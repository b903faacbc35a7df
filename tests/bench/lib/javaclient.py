"""The unmodified Java producer (DefaultMQProducer of RocketMQ's own client), under which both brokers can be put."""
import os
import subprocess

from machine import BENCH, PEER, cpu_seconds, end, fail, output

THREADS = 64


def java_producer(system, o, take):
    """Sends a second, and CPU time of the broker for each."""
    jars = output([os.path.join(PEER, "java/run-reference"), "jars"]).split()[-1]
    system.make_topic("produced", 8)
    argv = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-Duser.home=" + system.dir, "-Djava.net.preferIPv4Stack=true", "-cp", jars + "/*",
            os.path.join(BENCH, "java/Produce.java"), system.address(), "produced", str(THREADS), str(max(4, o.seconds * 2)),
            str(max(4, o.seconds)), "128"]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = []
        while not said or said[-1] not in ("begin\n", ""):  # its client says other things too
            said.append(p.stdout.readline())
        if not said[-1]:
            fail(f"the Java producer ends with {p.wait()} before it begins:\n" + "".join(said[-20:]) + p.stderr.read())
        before = cpu_seconds(system.pid())
        _, messages, seconds, failures = p.stdout.readline().split()
        spent = cpu_seconds(system.pid()) - before
        p.communicate(timeout=60)
    finally:
        end(p)
    if int(failures):
        fail(f"{failures} sends of the Java producer failed")
    take(f"Java producer, {THREADS} threads: sends/s", int(messages) / float(seconds))
    take(f"Java producer, {THREADS} threads: broker CPU per send, us", spent * 1e6 / max(1, int(messages)))
