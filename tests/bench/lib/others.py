"""Queues of another kind, each under its own load generator with the settings that its makers advise for throughput.

Their figures are for orientation: another protocol, another generator, other promises.  All of them write to a file before or soon
after they answer and keep what they took over a restart, as the brokers of RocketMQ's kind do.
"""
import os
import re
import shutil
import subprocess
import tempfile
import time
import uuid

from machine import BENCH, CACHE, end, fail, free_port, listens, need, note, output, wait_for

BODY = 128


class Kafka:
    """One broker and controller in one process; 8 partitions; acks=1, batches up to 128 KiB, linger 5 ms, no compression."""
    VERSION = "4.4.0"
    HEAP = ["-Xms1g", "-Xmx1g"]
    PRODUCER = ["acks=1", "linger.ms=5", "batch.size=131072", "buffer.memory=134217728", "compression.type=none"]

    def __init__(self, base):
        self.dir = tempfile.mkdtemp(prefix="kafka.", dir=base)
        self.jars = os.path.join(CACHE, "kafka-" + self.VERSION)
        self.fetch()
        self.port, controller = free_port(), free_port()
        self.conf = os.path.join(self.dir, "server.properties")
        with open(self.conf, "w") as f:
            f.write(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={self.dir}/data
num.partitions=8
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
""")
        cluster = uuid.uuid4().hex[:22]
        output(self.java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", self.conf))
        with open(os.path.join(self.dir, "log"), "w") as log:
            self.process = subprocess.Popen(self.java("kafka.Kafka", self.conf), stdout=log, stderr=log)
        wait_for(f"start of Kafka ({self.dir}/log)", lambda: listens(self.port), pause=0.05)
        self.tool("TopicCommand", "--create", "--topic", "bench", "--partitions", "8")

    def fetch(self):
        if os.path.exists(os.path.join(self.jars, ".complete")):
            return
        note(f"collecting the jars of Kafka {self.VERSION}")
        output(["mvn", "-q", "-B", "-f", os.path.join(BENCH, "kafka/pom.xml"), "-Dkafka.version=" + self.VERSION,
                "dependency:copy-dependencies", "-DoutputDirectory=" + self.jars, "-DincludeScope=runtime"])
        open(os.path.join(self.jars, ".complete"), "w").close()

    def java(self, *words):
        return ["java", *self.HEAP, "-cp", self.jars + "/*", *words]

    def tool(self, name, *words):
        return output(self.java("org.apache.kafka.tools." + name, "--bootstrap-server", f"127.0.0.1:{self.port}", *words))

    def send(self, count):
        out = output(self.java("org.apache.kafka.tools.ProducerPerformance", "--topic", "bench", "--num-records", str(count),
                               "--record-size", str(BODY), "--throughput", "-1", "--producer-props",
                               f"bootstrap.servers=127.0.0.1:{self.port}", *self.PRODUCER))
        return float(re.findall(r"records sent, ([0-9.]+) records/sec", out)[-1])

    def consume(self, count):
        out = self.tool("ConsumerPerformance", "--topic", "bench", "--num-records", str(count), "--timeout", "30000")
        return float(out.strip().splitlines()[-1].split(",")[-1])

    def measure(self, seconds, take):
        self.send(200_000)  # the first ones go through cold code
        rate = self.send(200_000)
        count = max(200_000, int(rate * seconds))
        take("messages/s in batches", self.send(count))
        take("messages/s to one consumer", self.consume(count))

    def stop(self):
        end(self.process)
        shutil.rmtree(self.dir, ignore_errors=True)


class Redis:
    """Streams (XADD), append-only file with fsync every second; redis-benchmark with 64 clients, alone and pipelined by 32."""

    def __init__(self, base):
        server = need("redis-server", "redis-server")
        self.tool = need("redis-benchmark", "redis-tools")
        self.dir = tempfile.mkdtemp(prefix="redis.", dir=base)
        self.port = free_port()
        self.process = subprocess.Popen([server, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.dir, "--appendonly",
                                         "yes", "--save", ""], stdout=subprocess.DEVNULL)
        wait_for("start of Redis", lambda: listens(self.port))

    def add(self, count, pipeline):
        out = output([self.tool, "-p", str(self.port), "-n", str(count), "-c", "64", "-P", str(pipeline), "--csv",
                      "XADD", "bench", "MAXLEN", "~", "1000000", "*", "body", "x" * BODY])
        return float(out.strip().splitlines()[-1].split(",")[1].strip('"'))

    def measure(self, seconds, take):
        for row, pipeline in (("sends/s, best", 1), ("messages/s in batches", 32)):
            rate = self.add(50_000, pipeline)
            take(row, self.add(max(50_000, int(rate * seconds)), pipeline))

    def stop(self):
        end(self.process)
        shutil.rmtree(self.dir, ignore_errors=True)


class Nats:
    """JetStream, file storage, one replica; its command `nats bench`, asynchronous publishing in batches of 500."""
    TOOL = "github.com/nats-io/natscli/nats@v0.5.0"

    def __init__(self, base):
        server = need("nats-server", "nats-server")
        self.tool = os.path.join(CACHE, "nats-bin", "nats")
        if not os.path.exists(self.tool):
            note("building the command nats")
            output(["go", "install", self.TOOL], env=dict(os.environ, GOBIN=os.path.dirname(self.tool), GOFLAGS="-p=1"))
        self.dir = tempfile.mkdtemp(prefix="nats.", dir=base)
        self.port = free_port()
        self.process = subprocess.Popen([server, "-js", "-a", "127.0.0.1", "-p", str(self.port), "-sd", self.dir],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("start of NATS", lambda: listens(self.port))
        self.made = False

    def bench(self, count, *words):
        out = output([self.tool, "-s", f"nats://127.0.0.1:{self.port}", "bench", "js", *words, "--msgs", str(count),
                      "--no-progress"])
        rates = re.findall(r"([0-9,]+) msgs/sec", out)
        if not rates:
            fail("nats bench says no rate:\n" + out)
        return float(rates[-1].replace(",", ""))

    def publish(self, count):
        create = [] if self.made else ["--create"]
        self.made = True
        return self.bench(count, "pub", "async", "bench.js", "--size", str(BODY), "--storage", "file", "--batch", "500", *create)

    def measure(self, seconds, take):
        rate = self.publish(50_000)
        count = max(50_000, int(rate * seconds))
        take("messages/s in batches", self.publish(count))
        take("messages/s to one consumer", self.bench(count, "ordered"))

    def stop(self):
        end(self.process)
        shutil.rmtree(self.dir, ignore_errors=True)


KINDS = {"kafka": Kafka, "redis": Redis, "nats": Nats}
