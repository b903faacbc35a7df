"""Consumers that run while brokers come and go, what each received and committed, and whether it held.

  consumed.py run NAMESRV TOPIC END FILE        until the file END is there and each queue is read to its end.  Two groups, a line
                                                for each event in FILE, GROUP and QUEUE in front:
        T GROUP QUEUE from OFFSET ADDRESS       it reads on there: at the start, and whenever the master is another or the connection new
        T GROUP QUEUE moved OFFSET              the broker said that there is nothing at its offset, and sent it there
        T GROUP QUEUE got OFFSET NUMBER         received
        T GROUP QUEUE commit OFFSET             about to be stored; all below was received
    "keeps" reads on where it is, as a client that lives on does; "anew" asks for the stored offset, as one that is started again does.
  consumed.py check FILE HISTORY                HISTORY: of history.py.
    Says what it has seen, and ends with 1 if a group did not receive an acknowledged message, if a queue was not received offset by
    offset but where it was read anew, if a stored offset was ahead of what was received, or if anything came again without a kill or a
    cut in the minute before."""
import struct
import sys
import threading
import time
from os.path import exists

from history import Peer, master

QUEUES, ROUTE_S, COMMIT_S, AROUND_S = 4, 1, 0.3, 60
NOT_FOUND, RETRY, MOVED, NO_OFFSET = 19, 20, 21, 22


def messages(b):
    at = 0
    while at < len(b):
        size, = struct.unpack_from(">i", b, at)
        off, = struct.unpack_from(">q", b, at + 20)
        flags, = struct.unpack_from(">i", b, at + 36)
        body = at + 48 + (20 if flags & 16 else 8) + 8 + (20 if flags & 32 else 8) + 12
        n, = struct.unpack_from(">i", b, body)
        yield off, int(b[body + 4:body + 4 + n])
        at += size


class Consumer:
    def __init__(self, namesrvs, topic, group, queue, end, note):
        self.namesrvs, self.topic, self.group, self.queue, self.end = namesrvs, topic, group, queue, end
        self.note = lambda *what: note(group, queue, *what)
        self.peer, self.at, self.stored, self.looked, self.stored_at = None, None, None, 0, 0

    def fields(self, **more):
        return dict(consumerGroup=self.group, topic=self.topic, queueId=str(self.queue), **more)

    def connect(self):
        if self.peer and time.time() - self.looked < ROUTE_S:
            return
        addr = master(self.namesrvs, self.topic)
        self.looked = time.time()
        if not addr:
            raise OSError("no master in the route")
        if self.peer and self.peer.addr == addr:
            return
        self.peer = None
        peer = Peer(addr)
        if self.at is None or self.group == "anew":
            head, _ = peer.ask(14, self.fields())
            if head["code"] not in (0, NO_OFFSET):
                raise OSError("no offset: code %d" % head["code"])
            self.at = int(head["extFields"]["offset"]) if head["code"] == 0 else 0
        self.peer, self.stored = peer, self.at
        self.note("from", self.at, addr)

    def commit(self):
        if self.at != self.stored and time.time() - self.stored_at >= COMMIT_S:
            self.note("commit", self.at)
            head, _ = self.peer.ask(15, self.fields(commitOffset=str(self.at)))
            if head["code"] == 0:
                self.stored = self.at
            self.stored_at = time.time()

    def pull(self):
        """False: there is nothing more."""
        head, body = self.peer.ask(11, self.fields(
            queueOffset=str(self.at), maxMsgNums="32", sysFlag="6", commitOffset="0", suspendTimeoutMillis="500", subVersion="0",
            subscription="*", expressionType="TAG"))
        if head["code"] == 0:
            for off, number in messages(body):
                self.note("got", off, number)
                self.at = off + 1
        elif head["code"] == MOVED:
            self.at = int(head["extFields"]["nextBeginOffset"])
            self.note("moved", self.at)
        elif head["code"] not in (NOT_FOUND, RETRY):
            raise OSError("code %d" % head["code"])
        return head["code"] != NOT_FOUND

    def run(self):
        last = False
        while True:
            try:
                ended = exists(self.end)
                self.connect()
                more = self.pull()
                self.commit()
                if ended and last and not more:
                    return
                last = ended and not more
            except OSError:
                self.peer = None
                time.sleep(0.05)


def run(namesrvs, topic, end, out):
    lock = threading.Lock()

    def note(*what):
        with lock:
            out.write("%.3f %s\n" % (time.time(), " ".join(str(w) for w in what)))
            out.flush()

    threads = [threading.Thread(target=Consumer(namesrvs, topic, group, queue, end, note).run)
               for group in ("keeps", "anew") for queue in range(QUEUES)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def check(lines, history):
    acked, tried, marks, wrong = {}, set(), [], []
    for line in history:
        t, what, *rest = line.split()
        if what == "ack":
            acked[rest[0]] = True
        elif what == "err":
            tried.add(rest[0])
        else:
            marks.append(float(t))
    got, seen, high, at = {}, {}, {}, {}
    again, back, switches, commits = {}, {}, 0, 0
    for line in lines:
        t, group, queue, what, off, *rest = line.split()
        key, off = (group, queue), int(off)
        who = "%s queue %s, %s: " % (group, queue, t)
        if what == "got":
            if key not in at or off != at[key]:
                wrong.append(who + "offset %d came where %s is next" % (off, at.get(key)))
            if off < high.get(key, 0):
                again[group] = again.get(group, 0) + 1
            old = seen.setdefault((queue, off), rest[0])
            if old != rest[0] and old not in tried and old in acked:
                wrong.append(who + "offset %d was message %s and is %s" % (off, old, rest[0]))
            seen[(queue, off)] = rest[0]
            got.setdefault(group, set()).add(rest[0])
            at[key], high[key] = off + 1, max(high.get(key, 0), off + 1)
        elif what == "commit":
            commits += 1
            if off > at.get(key, 0):
                wrong.append(who + "%d is committed, received is up to %d" % (off, at.get(key, 0)))
        else:
            if off > high.get(key, 0):
                wrong.append(who + "it goes on at %d, received is up to %d" % (off, high.get(key, 0)))
            if key in at:
                switches += 1
                back[group] = max(back.get(group, 0), at[key] - off)
                if off < at[key] and not any(0 <= float(t) - m <= AROUND_S for m in marks):
                    wrong.append(who + "it goes back from %d to %d for no reason" % (at[key], off))
            at[key] = off
    for group in ("keeps", "anew"):
        lost = [n for n in acked if n not in got.get(group, ())]
        wrong += ["%s: message %s was acknowledged and never received" % (group, n) for n in lost[:5]]
        print("%s: received %d, again %d, most steps back %d, acknowledged and not received %d" % (
            group, len(got.get(group, ())), again.get(group, 0), back.get(group, 0), len(lost)))
    for what in wrong[:10]:
        print("WRONG: " + what)
    print("acknowledged %d, read on elsewhere %d times, commits %d, contradictions %d" % (len(acked), switches, commits, len(wrong)))
    return 1 if wrong or not acked or not commits else 0


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run([a for a in sys.argv[2].split(";") if a], sys.argv[3], sys.argv[4], open(sys.argv[5], "a"))
    else:
        sys.exit(check(open(sys.argv[2]), list(open(sys.argv[3]))))
