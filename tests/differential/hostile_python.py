"""Attempts in Python to get out of the box."""

from random import Random

from tests.differential.hostile_places import Attempt, Scene, acting, protected, target

CALLS = [
    int(number)
    for number in (
        "101 310 311 438 165 166 155 161 428 429 430 432 442 272 308 303 304 300 301 248"
        " 249 250 425 426 427 323 321 298 246 320 175 313 176 227 164 159 305 167 168 169"
        " 163 179 103 170 171 435 437 319 447 29 68 56 41 312 153 154 172 173 440 443 467"
    ).split()
]
"""Numbers of system calls on x86-64."""


def opens(r: Random, s: Scene) -> str:
    path = target(r, s)
    return r.choice(
        (
            f"print(open({path!r}).read())",
            f"open({path!r}, 'w').write('evil')",
            f"d = os.open({path!r}, os.O_PATH); print(os.listdir(d)); os.open('x', os.O_CREAT, dir_fd=d)",
            f"os.rename({path!r}, 'taken'); print(open('taken').read())",
            f"shutil.copytree({path!r}, 'tree'); shutil.rmtree({path!r})",
            f"os.link({path!r}, 'h'); print(open('h').read())",
            f"os.chmod({path!r}, 0o777); os.utime({path!r}, (0, 0)); os.truncate({path!r}, 0)",
            f"os.setxattr({path!r}, 'user.x', b'evil')",
        )
    )


def covers(r: Random, s: Scene) -> str:
    path = protected(r, s)
    return r.choice(
        (
            f"print(open({path!r}).read())",
            f"os.rename({path!r}, 'r'); print(open('r').read())",
            f"open({path!r}, 'w').write('evil')",
            f"shutil.rmtree({path!r}); os.makedirs({path!r}); open({path!r} + '/evil', 'w')",
            f"libc = ctypes.CDLL(None); print(libc.umount2({path.encode()!r}, 2)); print(open({path!r}).read())",
            "[print(os.read(os.open(f'/proc/self/fd/{n}', 0), 99)) for n in range(3, 60) if os.path.exists(f'/proc/self/fd/{n}')]",
            "[print(os.listdir(f'/proc/self/fd/{n}')) for n in range(60) if os.path.isdir(f'/proc/self/fd/{n}')]",
            f"libc = ctypes.CDLL(None); print(libc.renameat2(-100, {path.encode()!r}, -100, b'program.py', 2)); print(open('program.py').read())",
            f"os.replace('program.py', {path!r})",
        )
    )


def races(r: Random, s: Scene) -> str:
    path = protected(r, s)
    return f"""\
end = time.time() + 0.05
def flip():
    while time.time() < end:
        for do in (lambda: os.rename({path!r}, 'f'), lambda: os.symlink({str(s.outside)!r}, {path!r}), lambda: os.rename('f', {path!r})):
            try: do()
            except OSError: pass
t = threading.Thread(target=flip); t.start()
while time.time() < end:
    try: print(open({path!r}).read())
    except OSError: pass
t.join()"""


def sockets(r: Random, s: Scene) -> str:
    host, port = r.choice(s.tcp)
    uhost, uport = r.choice(s.udp)
    return r.choice(
        (
            f"c = socket.create_connection(({host!r}, {port}), 1); c.send(b'evil')",
            f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'evil', ({uhost!r}, {uport}))",
            f"u = socket.socket(socket.AF_UNIX); u.connect({str(s.outside / 'socket')!r}); u.send(b'evil')",
            f"u = socket.socket(socket.AF_UNIX); u.connect({str(s.workspace / 'socket')!r}); u.send(b'evil')",
            "u = socket.socket(socket.AF_UNIX); u.connect(chr(0) + 'evil-decoy-"
            + str(s.outside / "socket")
            + "'); u.send(b'evil')",
            f"r = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); r.sendto(b'evil', ({host!r}, 0))",
            "[print(f, socket.socket(f, t)) for f in range(1, 46) if f not in (2, 10) for t in (1, 2, 3)]",
            f"s = socket.socket(); s.setsockopt(1, 25, b'eth0'); s.connect(({host!r}, {port}))",
            f"a, b = socket.socketpair(); a.settimeout(0.1); print(socket.recv_fds(a, 1, 1)); s = socket.socket(); s.bind(('0.0.0.0', {port})); s.listen()",
        )
    )


def system_calls(r: Random, _s: Scene) -> str:
    numbers = [r.choice(CALLS) for _ in range(6)]
    words = [
        [r.choice((0, 1, -1, 2, 0x10000000, 0x7E020000, 4096, r.getrandbits(31))) for _ in range(5)]
        for _ in numbers
    ]
    return f"""\
libc = ctypes.CDLL(None, use_errno=True)
for n, a in zip({numbers}, {words}):
    if os.fork() == 0:
        signal.alarm(1)
        print(n, libc.syscall(n, *a), ctypes.get_errno(), flush=True)
        os._exit(0)
    os.wait()"""


def tracing(r: Random, s: Scene) -> str:
    return r.choice(
        (
            f"libc = ctypes.CDLL(None); print(libc.ptrace(16, {s.victim}, 0, 0)); os.kill({s.victim}, 9)",
            f"print(open('/proc/{s.victim}/mem', 'r+b').read(1))",
            f"libc = ctypes.CDLL(None); d = libc.syscall(434, {s.victim}, 0); print(libc.syscall(424, d, 9, 0, 0)); print(libc.syscall(438, d, 0, 0))",
            "os.kill(1, 9); os.kill(os.getppid(), 9)",
            "os.kill(-1, 9)",
            f"os.sched_setaffinity({s.victim}, [0]); os.setpriority(os.PRIO_PROCESS, {s.victim}, 19)",
        )
    )


def escapes_to_disk(r: Random, s: Scene) -> str:
    path = acting(r, s)
    return r.choice(
        (
            f"os.makedirs(os.path.dirname({path!r}) or '.', exist_ok=True); open({path!r}, 'w').write('evil')",
            f"os.makedirs(os.path.dirname({path!r}) or '.', exist_ok=True); os.symlink({str(s.outside)!r}, {path!r})",
            f"os.makedirs('n' * 200 + '/' + os.path.dirname({path!r}), exist_ok=True); open('n' * 200 + '/' + {path!r}, 'w').write('evil')",
            "os.mkfifo('.mcp.json'); os.mkfifo('CLAUDE.md2')",
            f"os.umask(0o777); os.makedirs(os.path.dirname({path!r}) or '.'); open({path!r}, 'w')",
        )
    )


def terminals(r: Random, _s: Scene) -> str:
    return r.choice(
        (
            "fcntl.ioctl(0, 0x5412, b'x'); fcntl.ioctl(1, 0x5412, b'x')",
            "t = os.open('/dev/tty', os.O_RDWR); os.write(t, b'evil')",
            "m, w = os.openpty(); fcntl.ioctl(w, 0x540E, 0); fcntl.ioctl(w, 0x5412, b'x'); fcntl.ioctl(w, 0x541C, b'\\x02')",
            "os.setsid(); print(os.open('/dev/console', os.O_RDWR))",
        )
    )


def memory(r: Random, _s: Scene) -> str:
    return r.choice(
        (
            "libc = ctypes.CDLL(None); print(libc.shmget(0, 1 << 20, 0o1777)); print(libc.msgget(0, 0o1777))",
            "import multiprocessing.shared_memory as m; print(m.SharedMemory(create=True, size=4096).name)",
            "print(os.memfd_create('x'))",
            "open('/dev/shm/x', 'w').write('x'); print(os.listdir('/dev/shm'), os.listdir('/tmp'))",
        )
    )


def background(r: Random, s: Scene) -> str:
    return f"""\
if os.fork() == 0:
    os.setsid()
    for n in range(1, 32):
        try: signal.signal(n, signal.SIG_IGN)
        except OSError: pass
    if os.fork() == 0:
        time.sleep(0.{r.randint(1, 5)})
        try: open({target(r, s)!r}, 'w').write('evil')
        finally: time.sleep(100)
    os._exit(0)"""


PYTHON: dict[str, Attempt] = {
    attempt.__name__: attempt
    for attempt in (
        opens,
        covers,
        races,
        sockets,
        system_calls,
        tracing,
        escapes_to_disk,
        terminals,
        memory,
        background,
    )
}
