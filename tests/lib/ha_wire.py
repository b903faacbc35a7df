"""What somebody between two brokers that replicate can do.

  ha_wire.py relay MASTER SENT ANSWERED READY   one connection after the other is passed on to MASTER (host:port); what the last one's
                                                slave sent first is in SENT, what the master did in ANSWERED; the port is written to READY
  ha_wire.py play FILE READY                    the same port for a slave, but a master that says FILE, what was heard from another one
  ha_wire.py replay MASTER FILE                 a slave that says what is in FILE; prints how many bytes it was told after that
  ha_wire.py idle MASTER N                      N connections at once that say nothing; ends when all have been ended by the master"""
import select
import socket
import sys

FIRST = 48 + 80  # bytes of a proof, both of its messages that go the same way


def dial(addr):
    host, port = addr.rsplit(":", 1)
    return socket.create_connection((host, int(port)), 10)


def listener(ready):
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(8)
    with open(ready, "w") as f:
        f.write("%d\n" % s.getsockname()[1])
    return s


def rest(s):
    """Bytes until the peer ends."""
    n = 0
    s.settimeout(20)
    while True:
        try:
            got = s.recv(65536)
        except ConnectionResetError:
            return n
        if not got:
            return n
        n += len(got)


def take(s, n):
    got = b""
    while len(got) < n:
        more = s.recv(n - len(got))
        if not more:
            raise SystemExit("the master ended after %d bytes" % len(got))
        got += more
    return got


def relay(master, sent, answered, ready):
    door = listener(ready)
    while True:
        slave, _ = door.accept()
        up = dial(master)
        heard = {slave: b"", up: b""}
        while True:
            ended = False
            for s in select.select([slave, up], [], [])[0]:
                try:
                    b = s.recv(65536)
                except ConnectionResetError:
                    b = b""
                ended = ended or not b
                (up if s is slave else slave).sendall(b)
                if len(heard[s]) < FIRST:
                    heard[s] = (heard[s] + b)[:FIRST]
                    for file, side in ((sent, slave), (answered, up)):
                        with open(file, "wb") as f:
                            f.write(heard[side])
            if ended:
                break
        slave.close()
        up.close()


def play(file, ready):
    door, what = listener(ready), open(file, "rb").read()
    while True:
        slave, _ = door.accept()
        try:
            slave.sendall(what)
            rest(slave)
        except OSError:
            pass
        slave.close()


def replay(master, file):
    s = dial(master)
    take(s, 48)
    s.sendall(open(file, "rb").read())
    print(rest(s))


def idle(master, n):
    all_of_them = [dial(master) for _ in range(n)]
    for s in all_of_them:
        rest(s)


if __name__ == "__main__":
    what, args = sys.argv[1], sys.argv[2:]
    if what == "relay":
        relay(*args)
    elif what == "play":
        play(*args)
    elif what == "replay":
        replay(*args)
    else:
        idle(args[0], int(args[1]))
