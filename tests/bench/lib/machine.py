"""What every measurement needs of the machine: facts, free ports, processes and what they cost."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
PEER = os.path.join(os.path.dirname(BENCH), "peer")
CACHE = os.environ.get("INTEROP_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "rmq-interop")


def fail(text):
    sys.exit("bench: " + text)


def note(text):
    print(text, file=sys.stderr, flush=True)


def facts():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown")
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) // 1048576
    return (f"{os.cpu_count()} cores, {model}, {memory} GiB, Linux {os.uname().release}, "
            f"load before {os.getloadavg()[0]:.1f}, {time.strftime('%d %B %Y')}")


def free_port():
    """A port whose neighbours are free: a broker also takes two below (fast) and one above (replication)."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        try:
            for p in (port - 2, port, port + 1):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", p))
            return port
        except OSError:
            pass


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def wait_for(what, test, seconds=60, pause=0.0005):
    """Milliseconds until test() is true."""
    begun = time.monotonic()
    while not test():
        if time.monotonic() - begun > seconds:
            fail(f"{what}: not within {seconds} s")
        time.sleep(pause)
    return (time.monotonic() - begun) * 1e3


def memory(pid):
    """Resident and anonymous memory, MiB."""
    with open(f"/proc/{pid}/status") as f:
        rows = dict(line.split(":", 1) for line in f if ":" in line)
    return tuple(int(rows[k].split()[0]) / 1024 for k in ("VmRSS", "RssAnon"))


def cpu_seconds(pid):
    """CPU time that a process has used so far."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            # A thread that waits for the disk ends later than the rest, and holds the store for as long.
            return f.read().rsplit(")", 1)[1].split()[0] == "Z" and len(os.listdir(f"/proc/{pid}/task")) < 2
    except OSError:
        return True


def end(process, how=signal.SIGTERM):
    if process and process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def output(argv, **more):
    """Standard output of a command that must succeed."""
    r = subprocess.run(argv, capture_output=True, text=True, **more)
    if r.returncode:
        fail(f"{' '.join(map(str, argv))}: status {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout


def ms_of(argv):
    begun = time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.monotonic() - begun) * 1e3


def need(program, package):
    """The program, installed by its package if we may."""
    if not shutil.which(program):
        if os.getuid() or not shutil.which("apt-get"):
            fail(f"{program} is not here; install {package}")
        note(f"installing {package}")
        subprocess.run(["apt-get", "install", "-y", "-qq", package], check=True, stdout=sys.stderr,
                       env=dict(os.environ, DEBIAN_FRONTEND="noninteractive", RUNLEVEL="1"))
    return shutil.which(program)


class Ballast:
    """A file without blocks, read so far that memory is full of what can be forgotten at once.

    A server that writes a log lives on a machine whose memory is full of it: a new page is an old one that is forgotten.  Where
    memory was never used, or was given back, a new page of a virtual machine must first come from its host, which costs ten times as
    much as all that is done with it; that would be measured instead of the servers.
    """
    ROUND = 1 << 20
    SPARE = 384         # MiB: less is never free for long, the kernel sees to that

    def __init__(self, base):
        self.file = tempfile.TemporaryFile(prefix="ballast.", dir=base)
        self.size = 4 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        os.ftruncate(self.file.fileno(), self.size)
        self.at = 0

    def fill(self):
        """Bytes that were read."""
        part = bytearray(4 * self.ROUND)
        left = (free_mib() - self.SPARE) * self.ROUND
        begun, done = time.monotonic(), 0
        while done < left and time.monotonic() - begun < 120:
            done += os.preadv(self.file.fileno(), [part], self.at)
            self.at = (self.at + len(part)) % (self.size // len(part) * len(part))
        return done


def free_mib():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemFree:")) // 1024


def plain_write(base, mib=512):
    """MB/s of write() alone to a new file there, 256 KiB at a time: a limit of everything that keeps what it is sent.  The better one
    of two: the pages of the second are those of the first."""
    part, best = bytes(256 * 1024), 0
    for _ in range(2):
        with tempfile.TemporaryFile(prefix="write.", dir=base) as f:
            os.posix_fallocate(f.fileno(), 0, mib << 20)
            begun = time.monotonic()
            for i in range(mib * 4):
                os.pwrite(f.fileno(), part, i * len(part))
            best = max(best, (mib << 20) / 1e6 / (time.monotonic() - begun))
    return best


def disk_write(base, mib=512):
    """MB/s when the disk must have it in the end: what can be written for longer than memory holds it back."""
    part = bytes(1 << 20)
    with tempfile.TemporaryFile(prefix="write.", dir=base) as f:
        begun = time.monotonic()
        for i in range(mib):
            os.pwrite(f.fileno(), part, i * len(part))
        os.fdatasync(f.fileno())
        return (mib << 20) / 1e6 / (time.monotonic() - begun)


def syncs(base, seconds=1):
    """Calls of fdatasync() a second, each for 4 KiB that were written behind the last: the limit of one who waits for the disk."""
    part = bytes(4096)
    with tempfile.TemporaryFile(prefix="sync.", dir=base) as f:
        os.posix_fallocate(f.fileno(), 0, 64 << 20)
        begun, n = time.monotonic(), 0
        while time.monotonic() - begun < seconds:
            os.pwrite(f.fileno(), part, n % (64 << 8) * len(part))
            os.fdatasync(f.fileno())
            n += 1
        return n / (time.monotonic() - begun)


def drop_from_memory(folder):
    """Let the system forget the contents of all files below: what is read next comes from the disk."""
    os.sync()
    for at, _, names in os.walk(folder):
        for name in names:
            fd = os.open(os.path.join(at, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
