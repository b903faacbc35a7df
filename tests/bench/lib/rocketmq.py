"""Java RocketMQ and ours: a name server and a broker each, the same commands on both."""
import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from machine import PEER, end, ended, fail, free_port, output, wait_for

DEFAULTS = ["brokerPermission=6", "defaultTopicQueueNums=8"]


def answers(port):
    """One request, GET_BROKER_RUNTIME_INFO, and its answer."""
    head = json.dumps(dict(code=28, flag=0, language="OTHER", opaque=1, version=453, serializeTypeCurrentRPC="JSON")).encode()
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as s:
            s.sendall(struct.pack(">ii", 4 + len(head), len(head)) + head)
            return len(s.recv(8)) == 8
    except OSError:
        return False


class System:
    """One cluster of one broker in a fresh folder, until stop(); or one broker more of the cluster of `namesrv`."""

    def __init__(self, name, base, build, conf=(), namesrv=None):
        self.name, self.build = name, build
        self.dir = tempfile.mkdtemp(prefix=name + ".", dir=base)
        self.child = None
        self.ns, self.port = namesrv or f"127.0.0.1:{free_port()}", free_port()
        self.script = os.path.join(PEER, "java/run-reference" if name == "java" else "servers")
        self.env = dict(os.environ, MQ_BUILD=build, EXTRA_CONF="\n".join(DEFAULTS + list(conf)))
        if namesrv:
            self.env["NAMESRVS"] = namesrv
        command = ["start-broker", self.dir] if namesrv else ["start", self.dir, self.ns.split(":")[1]]
        subprocess.run([self.script, *command, str(self.port)], env=self.env, check=True, stdout=subprocess.DEVNULL)

    def pid(self):
        with open(os.path.join(self.dir, "broker.pid")) as f:
            return int(f.read())

    def store(self):
        return os.path.join(self.dir, "store")

    def restart(self, how=signal.SIGTERM):
        """End the broker, start the same command again; milliseconds of the end and of the start."""
        pid = self.pid()
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            argv = f.read().rstrip(b"\0").split(b"\0")
        with open(f"/proc/{pid}/environ", "rb") as f:
            env = dict(e.split(b"=", 1) for e in f.read().split(b"\0") if b"=" in e)
        os.kill(pid, how)
        stop = wait_for(f"end of the {self.name} broker", lambda: ended(pid), pause=0.001)
        if self.child:
            self.child.wait()
        log = open(os.path.join(self.dir, "broker.again"), "wb")
        begun = time.monotonic()
        self.child = subprocess.Popen(argv, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for(f"start of the {self.name} broker ({self.dir})", lambda: answers(self.port) or self.child.poll() is not None, 300)
        start = (time.monotonic() - begun) * 1e3
        if self.child.poll() is not None:
            fail(f"the {self.name} broker ended with status {self.child.returncode}; see {log.name}")
        with open(os.path.join(self.dir, "broker.pid"), "w") as f:
            f.write(str(self.child.pid))
        return stop, start

    def program(self, name):
        return os.path.join(self.build, "bin", name)

    def address(self):
        return self.ns

    def admin(self):
        """The administrator's tool as this system has it: words of the command."""
        if self.name == "ours":
            return [self.program("mq-admin")]
        return shlex.split(output([os.path.join(PEER, "java/run"), "--mqadmin-command"]))

    def make_topic(self, topic, queues):
        output([self.program("mq-admin"), "updateTopic", "-n", self.address(), "-b", f"127.0.0.1:{self.port}", "-t", topic,
                "-r", str(queues), "-w", str(queues)])

    def until_registered(self):
        for _ in range(600):
            out = subprocess.run([self.program("mq-admin"), "clusterList", "-n", self.address()], capture_output=True, text=True)
            if f"127.0.0.1:{self.port}" in out.stdout:
                return
            time.sleep(0.1)
        fail(f"the {self.name} broker does not register again")

    def load_command(self, mode, *options):
        return [self.program("mq-bench"), "--broker", f"127.0.0.1:{self.port}", "-o", "json", "--pid", str(self.pid()),
                *map(str, options), mode]

    def load(self, mode, *options):
        r = subprocess.run(self.load_command(mode, *options), capture_output=True, text=True)
        if not r.stdout:
            fail(f"mq-bench {mode} {' '.join(map(str, options))}: {r.stderr}")
        return json.loads(r.stdout)

    def stop(self):
        if self.child:
            end(self.child)
            os.unlink(os.path.join(self.dir, "broker.pid"))
        subprocess.run([self.script, "stop", self.dir], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)


def limit(build, seconds, mode, *options):
    """What this machine allows: answers a second of a server that only frames and answers (counted in messages)."""
    return json.loads(output([os.path.join(build, "bin/mq-bench"), "--limit", "--seconds", str(seconds), "-o", "json",
                              *map(str, options), mode]))["rate"]
