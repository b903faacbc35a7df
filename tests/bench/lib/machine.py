"""What every measurement needs of the machine: facts, free ports, processes and what they cost."""
import os
import shutil
import signal
import socket
import subprocess
import sys
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


def ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
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


def drop_from_memory(folder):
    """Let the system forget the contents of all files below: what is read next comes from the disk."""
    os.sync()
    for at, _, names in os.walk(folder):
        for name in names:
            fd = os.open(os.path.join(at, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
