"""Numbered messages sent without pause while brokers come and go, what was said of each, and whether it held.

  history.py load NAMESRV TOPIC THREADS FILE    until its standard input ends; a line for each try in FILE:
        T ack NUMBER ADDRESS LOG_OFFSET         it was acknowledged (code 0) by the broker at ADDRESS
        T err NUMBER WHAT                       it was not, or nobody knows; it is tried again
    T is in seconds.  Others may append lines: T kill WHAT, T cut WHAT, T heal WHAT.
  history.py check FILE RECEIVED EPOCHS [lossy] RECEIVED: bodies, a line each.  EPOCHS: lines EPOCH START of the log that is left.
    Says what it has seen, and ends with 1 if an acknowledged message is missing, if two brokers acknowledged in one epoch, or
    if an offset was acknowledged twice.  lossy: an election may lose what was acknowledged, so what is missing is only counted, and
    what the rest says is looked at without it."""
import json
import random
import re
import socket
import statistics
import struct
import sys
import threading
import time


class Peer:
    def __init__(self, addr, limit=4):
        host, port = addr.rsplit(":", 1)
        self.addr, self.s = addr, socket.create_connection((host, int(port)), 1)
        self.s.settimeout(limit)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def take(self, n):
        b = b""
        while len(b) < n:
            more = self.s.recv(n - len(b))
            if not more:
                raise OSError("closed")
            b += more
        return b

    def ask(self, code, fields, body=b""):
        head = json.dumps(dict(code=code, flag=0, language="JAVA", opaque=1, version=453, extFields=fields)).encode()
        self.s.sendall(struct.pack(">ii", 4 + len(head) + len(body), len(head)) + head + body)
        n, h = struct.unpack(">ii", self.take(8))
        head = json.loads(self.take(h & 0xFFFFFF))
        return head, self.take(n - 4 - (h & 0xFFFFFF))


def master(namesrvs, topic):
    for ns in random.sample(namesrvs, len(namesrvs)):
        for name in (topic, "TBW102"):
            try:
                head, body = Peer(ns, 1).ask(105, dict(topic=name))
            except OSError:
                break
            m = re.search(rb'"?0"?:"([^"]+)"', body) if head["code"] == 0 else None
            if m:
                return m.group(1).decode()
    return None


def load(namesrvs, topic, threads, out):
    lock, stop = threading.Lock(), threading.Event()
    count = [0]

    def note(*what):
        with lock:
            out.write("%.3f %s\n" % (time.time(), " ".join(str(w) for w in what)))
            out.flush()

    def one(number, peer, queue):
        fields = dict(producerGroup="p", topic=topic, defaultTopic="TBW102", defaultTopicQueueNums="4", queueId=str(queue), sysFlag="0",
                      bornTimestamp=str(int(time.time() * 1000)), flag="0", properties="", reconsumeTimes="0", unitMode="false",
                      batch="false")
        head, _ = peer.ask(10, fields, b"%d" % number)
        if head["code"] == 0:
            note("ack", number, peer.addr, int(head["extFields"]["msgId"][-16:], 16))
            return True
        note("err", number, "code %d from %s" % (head["code"], peer.addr))
        return False

    def run(queue):
        peer = None
        while not stop.is_set():
            with lock:
                count[0] += 1
                number = count[0]
            done = False
            while not done and not stop.is_set():
                try:
                    if not peer:
                        addr = master(namesrvs, topic)
                        if not addr:
                            raise OSError("no master in the route")
                        peer = Peer(addr)
                    done = one(number, peer, queue)
                    time.sleep(0.002)
                    if not done:
                        peer = None
                        time.sleep(0.05)
                except OSError as e:
                    note("err", number, str(e) or type(e).__name__)
                    peer = None
                    time.sleep(0.05)

    all_threads = [threading.Thread(target=run, args=(i % 4,)) for i in range(threads)]
    for t in all_threads:
        t.start()
    sys.stdin.read()
    stop.set()
    for t in all_threads:
        t.join()


def check(history, received, epochs, lossy):
    history = list(history)
    tried_again = set(line.split()[2] for line in history if line.split()[1] == "err")
    got = set(line.strip() for line in received)
    starts = sorted((int(s), int(e)) for e, s in (line.split() for line in epochs if line.strip()))
    owner, at, lost, wrong, marks, acks = {}, {}, [], [], [], []
    errs = 0
    for line in history:
        t, what, *rest = line.split()
        if what == "err":
            errs += 1
        elif what != "ack":
            marks.append((float(t), what + " " + " ".join(rest)))
        else:
            number, addr, off = rest[0], rest[1], int(rest[2])
            acks.append(float(t))
            if number not in got:
                lost.append("message %s, acknowledged by %s at offset %d" % (number, addr, off))
            # What an election has cut says nothing of the log that is left; nor may one of which there can be another copy.
            if lossy and (number not in got or number in tried_again):
                continue
            epoch = max([e for s, e in starts if s <= off], default=None)
            if owner.setdefault(epoch, addr) != addr:
                wrong.append("epoch %s: both %s and %s acknowledged" % (epoch, owner[epoch], addr))
            if at.setdefault(off, number) != number:
                wrong.append("offset %d: acknowledged for messages %s and %s" % (off, at[off], number))
    acks.sort()
    gaps = []
    for t, what in marks:
        after = [a for a in acks if a > t + 0.02]
        if what.startswith("kill") and after:
            # From the kill to the first acknowledgement behind the longest pause that follows it.
            end = min([u for u, _ in marks if u > t], default=t + 60)
            near = [a for a in acks if t - 1 < a < end]
            pause = max(((b - a, b) for a, b in zip(near, near[1:]) if b > t), default=(0, t))
            gaps.append(pause[1] - t)
    print("acknowledged %d, tried again %d, epochs %d, marks %d" % (len(acks), errs, len(owner), len(marks)))
    if gaps:
        print("sends resumed after a kill: median %.2f s, longest %.2f s, kills %d" % (statistics.median(gaps), max(gaps), len(gaps)))
    for what in lost[:10]:
        print(("lost: " if lossy else "WRONG: ") + what)
    for what in wrong[:10]:
        print("WRONG: " + what)
    print("lost %d, contradictions %d" % (len(lost), len(wrong)))
    return 1 if (lost and not lossy) or wrong or not acks else 0


if __name__ == "__main__":
    if sys.argv[1] == "load":
        load([a for a in sys.argv[2].split(";") if a], sys.argv[3], int(sys.argv[4]), open(sys.argv[5], "a"))
    else:
        sys.exit(check(open(sys.argv[2]), open(sys.argv[3]), open(sys.argv[4]), sys.argv[5:] == ["lossy"]))
