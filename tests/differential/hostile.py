"""Writes programs that try to get out of the box: sh and Python, chosen and varied by a seed.

Each is one or more attempts of `ATTEMPTS`. They name places of the scene alone, so that a box that fails costs
the scene and nothing else; what would hurt the machine (such as a signal to everybody) is tried only where the
process namespace is known to stand.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

Language = Literal["sh", "python"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the programs aim at."""

    outside: Path
    """A folder beside the workspace, with `secret`, `folder/` and `socket` in it."""
    workspace: Path
    tcp: Sequence[tuple[str, int]]
    udp: Sequence[tuple[str, int]]
    victim: int
    """A process outside that must not be signalled."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program and what it tries."""

    language: Language
    text: str
    kinds: tuple[str, ...]


Attempt = Callable[[Random, Scene], str]

SH: dict[str, Attempt] = {}
PYTHON: dict[str, Attempt] = {}


def sh(attempt: Attempt) -> Attempt:
    """Register an attempt in sh."""
    SH[attempt.__name__] = attempt
    return attempt


def python(attempt: Attempt) -> Attempt:
    """Register an attempt in Python."""
    PYTHON[attempt.__name__] = attempt
    return attempt


def write_program(random: Random, scene: Scene) -> Program:
    """Return a program of one to three attempts, which go on when one fails."""
    language: Language = random.choice(("sh", "python"))
    table = SH if language == "sh" else PYTHON
    names = random.sample(sorted(table), random.randint(1, 3))
    parts = [table[name](random, scene) for name in names]
    if language == "sh":
        return Program(language, "\n".join(f"( {part}\n)" for part in parts), tuple(names))
    wrapped = [
        f"try:\n{_indent(part)}\nexcept BaseException as e: print(type(e))" for part in parts
    ]
    head = (
        "import ctypes, os, socket, subprocess, sys, struct, time, threading, shutil, signal, fcntl"
    )
    return Program(language, "\n".join([head, *wrapped]), tuple(names))


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def target(random: Random, scene: Scene) -> str:
    """Return a path outside, by one of its spellings."""
    name = random.choice(("secret", "new", "folder/kept", "folder", "."))
    path = scene.outside / name
    up = f"../{scene.outside.name}/{name}"
    return str(
        random.choice(
            (path, up, f"/proc/self/cwd/{up}", f"/proc/1/root{path}", f"{scene.workspace}/{up}")
        )
    )


def protected(random: Random, _scene: Scene) -> str:
    """Return a protected name of the workspace."""
    return random.choice(
        (
            *(".env", "deep/.env.local", "keys/.ssh/id_rsa", ".claude/settings.json", ".claude"),
            *(
                "CLAUDE.md",
                ".git/config",
                ".git/hooks/pre-commit",
                ".git/hooks",
                ".git",
                "lib/.git",
            ),
            *(
                "lib/.git/config",
                "lib/.git/hooks/update",
                "deep",
                "keys",
                "lib",
                ".git/info/attributes",
            ),
        )
    )


def acting(random: Random, _scene: Scene) -> str:
    """Return a protected name that is free."""
    folder = random.choice(("", "a/", "a/b/", "deep/", "lib/", ".git/"))
    name = random.choice(
        (
            *(".claude/settings.json", ".mcp.json", "AGENTS.md", ".vscode/tasks.json", ".CLAUDE/x"),
            *(
                ".git/hooks/post-commit",
                "hooks/post-commit",
                ".gitattributes",
                ".bashrc",
                "CLAUDE.local.md",
            ),
        )
    )
    return folder + name


# --- sh ---------------------------------------------------------------------------------------------------------


@sh
def writes(r: Random, s: Scene) -> str:
    path = shlex.quote(target(r, s))
    return r.choice(
        (
            f"echo evil > {path}",
            f"echo evil >> {path}",
            f"touch {path}",
            f"cp /bin/true {path}",
            f"rm -rf {path}",
            f"mv {path} taken",
            f"chmod 777 {path}",
            f"mkdir -p {path}/made",
            f"ln -s /etc {path}/link",
            f"tee {path} < /etc/hosts",
            f"dd if=/dev/zero of={path} bs=1 count=9",
            f"truncate -s 0 {path}",
            f"install -m 777 /bin/true {path}",
        )
    )


@sh
def reads(r: Random, s: Scene) -> str:
    path = shlex.quote(target(r, s))
    return r.choice(
        (
            f"cat {path} {path}/*",
            f"grep -r . {path}",
            f"tar cf - {path} | tar xOf -",
            f"cp -r {path} copied; cat copied copied/*",
            f"while read -r l; do echo $l; done < {path}",
            f"ln {path} hard; cat hard",
            f"find {path} -type f -exec cat {{}} +",
            f"diff {path} /dev/null",
        )
    )


@sh
def links(r: Random, s: Scene) -> str:
    path, name = target(r, s), f"l{r.randint(0, 9)}"
    then = r.choice(
        (
            f"cat {name} {name}/*",
            f"echo evil > {name}",
            f"echo evil > {name}/new",
            f"rm -rf {name}/",
            f"cp -rL {name} got; cat got",
        )
    )
    return f"ln -sfn {shlex.quote(path)} {name}; {then}"


@sh
def secrets(r: Random, s: Scene) -> str:
    path = protected(r, s)
    return r.choice(
        (
            f"cat {path}",
            f"cp -r {path} x{r.randint(0, 99)}; cat x*",
            f"mv {path} y; cat y y/* y/*/*",
            f"ln {path} z; cat z",
            "grep -r S3CR3T . /tmp /etc",
            "tar cf /tmp/t . && tar xOf /tmp/t",
            "for fd in /proc/self/fd/* /proc/1/fd/*; do cat $fd/.env $fd/../.env; done; for i in $(seq 3 40); do cat <&$i; done",
            "git add -Af . ; git commit -qm x; git grep -i s3cr3t $(git rev-list --all)",
            f"umount {path}; cat {path}",
            f"python3 -c \"print(open('{path}').read())\"",
        )
    )


@sh
def protected_names(r: Random, s: Scene) -> str:
    path = protected(r, s)
    return r.choice(
        (
            f"echo evil > {path}",
            f"rm -rf {path}",
            f"mv {path} gone{r.randint(0, 99)}",
            f"rm -rf {path}; mkdir -p {path}; echo evil > {path}/x",
            f"mv {path} g; mkdir -p $(dirname {path}); echo evil > {path}",
            f"chmod 777 {path}",
            f"ln -sf /tmp/evil {path}",
            f"cp /bin/true {path}",
            f"sed -i s/a/evil/ {path}",
            f"mv $(dirname {path}) moved && mkdir -p $(dirname {path}) && echo evil > {path}",
            f"(while :; do mv {path} q; mv q {path}; ln -sfn /tmp {path}; done) & sleep 0.05",
        )
    )


@sh
def free_names(r: Random, s: Scene) -> str:
    path = acting(r, s)
    shut = r.choice(
        ("", f"; chmod 0 $(dirname {path})", f"; chmod 500 $(dirname {path})", "; chmod 0 a")
    )
    return r.choice(
        (
            f"mkdir -p $(dirname {path}); echo evil > {path}{shut}",
            f"mkdir -p $(dirname {path}); ln -s /tmp/evil {path}",
            f"(sleep 0.05; mkdir -p $(dirname {path}); echo evil > {path}) & sleep 0.1",
            f"mkdir stage; echo evil > stage/x; mkdir -p $(dirname {path}); mv stage/x {path}",
            f"mkfifo $(basename {path})",
        )
    )


@sh
def git(r: Random, _s: Scene) -> str:
    at = r.choice((".", "lib", "new", "deep/new", "bare"))
    return r.choice(
        (
            f"git -C {at} config core.hooksPath /tmp/evil; git -C {at} config core.fsmonitor evil",
            f"git init -q {at}; mkdir -p {at}/.git/hooks; echo evil > {at}/.git/hooks/post-checkout",
            f"git init -q --bare {at}; echo '[core] fsmonitor=evil' >> {at}/config; mkdir -p {at}/hooks; echo evil > {at}/hooks/update",
            f"git -C {at} remote add evil ext::evil; git -C {at} config alias.st '!evil'",
            f"git -C {at} submodule add ./lib sub; git worktree add wt",
            f"git clone -q . {at}; echo evil > {at}/.git/hooks/pre-push; echo '[include] path=/tmp/evil' >> {at}/.git/config",
            "git config --global core.hooksPath /tmp/evil; git config --system x.y z",
            f"mkdir -p {at}/objects {at}/refs {at}/hooks; echo 'ref: refs/heads/x' > {at}/HEAD; echo evil > {at}/hooks/update; echo evil > {at}/config",
        )
    )


@sh
def network(r: Random, s: Scene) -> str:
    host, port = r.choice(s.tcp)
    uhost, uport = r.choice(s.udp)
    return r.choice(
        (
            f"exec 3<>/dev/tcp/{host}/{port}; echo evil >&3",
            f"echo evil > /dev/udp/{uhost}/{uport}",
            f"curl -s -m 1 http://{host}:{port}/",
            f"curl -s -m 1 --unix-socket {s.outside}/socket http://x/",
            f"git ls-remote http://{host}:{port}/x",
            f"wget -q -T 1 -t 1 -O - http://{host}:{port}/",
            "ip addr; ip link set lo down; ip route",
        )
    )


@sh
def signals(r: Random, s: Scene) -> str:
    return r.choice(
        (
            f"kill -9 {s.victim}",
            "kill -TERM $PPID; kill -9 1",
            "for p in $(ls /proc | grep '^[0-9]'); do kill -9 $p; done",
            f"cat /proc/{s.victim}/environ /proc/{s.victim}/cmdline; ls -l /proc/{s.victim}/fd",
            "cat /proc/*/environ /proc/*/maps | head -c 2000",
        )
    )


@sh
def privileges(r: Random, s: Scene) -> str:
    return r.choice(
        (
            "cp /bin/bash b; chmod 4755 b; chmod u+s,g+s b; install -m 4755 /bin/bash c",
            "unshare -Urm true; unshare -n true; unshare -p -f true",
            f"mount --bind {s.outside} /tmp; mount -t proc p /proc; umount -l {s.workspace}; pivot_root . .",
            "su -c id < /dev/null; sudo -n id; newuidmap 1 0 0 1; pkexec id",
            "mknod d b 8 0; mknod c c 1 1; cat /dev/sda /dev/mem /dev/kmsg | head -c 10",
            "setcap cap_sys_admin+ep b; setpriv --reuid 0 id; chroot / id",
            "nsenter -t 1 -a id; nsenter -t 2 -m id",
        )
    )


@sh
def kernel_files(r: Random, _s: Scene) -> str:
    return r.choice(
        (
            "echo '|/tmp/evil' > /proc/sys/kernel/core_pattern; echo /tmp/evil > /proc/sys/kernel/modprobe",
            "echo h > /proc/sysrq-trigger; echo 1 > /proc/sys/vm/drop_caches",
            "echo 0 > /proc/self/oom_score_adj; echo -1000 > /proc/self/oom_score_adj",
            "echo 0 1000 1 > /proc/self/uid_map; echo deny > /proc/self/setgroups",
            "mkdir /sys/fs/cgroup/evil; echo $$ > /sys/fs/cgroup/cgroup.procs",
            "echo evil > /etc/ld.so.preload; echo evil > /etc/passwd; echo evil > /usr/bin/evil; mkdir /evil",
        )
    )


@sh
def daemons(r: Random, s: Scene) -> str:
    later = f"sleep 0.{r.randint(1, 9)}; echo evil > {shlex.quote(target(r, s))}; cat .env"
    return r.choice(
        (
            f"(setsid sh -c \"trap '' TERM HUP; {later}\" > /dev/null 2>&1 &)",
            f"nohup sh -c '{later}; sleep 100' > out.txt 2>&1 &",
            "setsid -f sleep 100; at now < /dev/null; crontab -l",
            "(sleep 100 & disown; exec sleep 100) &",
        )
    )


@sh
def homes(r: Random, s: Scene) -> str:
    return r.choice(
        (
            f"echo evil >> ~/.bashrc; HOME={s.outside} bash -ic 'echo evil > ~/new'",
            f"npm config set prefix {s.outside} ; npm config --location project set x y",
            f"pip3 config set global.target {s.outside}; python3 -m venv {s.outside}/v",
            f"PYTHONPYCACHEPREFIX={s.outside} python3 -c 'import json'",
            f"LD_PRELOAD={s.outside}/new true; TMPDIR={s.outside} mktemp; mktemp -p {s.outside}",
            "env; printenv ANTHROPIC_API_KEY; set",
        )
    )


# --- Python -----------------------------------------------------------------------------------------------------

CALLS = (
    *(
        101,
        310,
        311,
        438,
        165,
        166,
        155,
        161,
        428,
        429,
        430,
        432,
        442,
        272,
        308,
        303,
        304,
        300,
        301,
        248,
        249,
    ),
    *(
        250,
        425,
        426,
        427,
        323,
        321,
        298,
        246,
        320,
        175,
        313,
        176,
        227,
        164,
        159,
        305,
        167,
        168,
        169,
        163,
        179,
    ),
    *(103, 170, 171, 435, 437, 319, 447, 29, 68, 56, 41, 312, 153, 154, 172, 173, 440, 443, 467),
)


@python
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


@python
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


@python
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


@python
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


@python
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


@python
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


@python
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


@python
def terminals(r: Random, _s: Scene) -> str:
    return r.choice(
        (
            "fcntl.ioctl(0, 0x5412, b'x'); fcntl.ioctl(1, 0x5412, b'x')",
            "t = os.open('/dev/tty', os.O_RDWR); os.write(t, b'evil')",
            "m, w = os.openpty(); fcntl.ioctl(w, 0x540E, 0); fcntl.ioctl(w, 0x5412, b'x'); fcntl.ioctl(w, 0x541C, b'\\x02')",
            "os.setsid(); print(os.open('/dev/console', os.O_RDWR))",
        )
    )


@python
def memory(r: Random, _s: Scene) -> str:
    return r.choice(
        (
            "libc = ctypes.CDLL(None); print(libc.shmget(0, 1 << 20, 0o1777)); print(libc.msgget(0, 0o1777))",
            "import multiprocessing.shared_memory as m; print(m.SharedMemory(create=True, size=4096).name)",
            "print(os.memfd_create('x'))",
            "open('/dev/shm/x', 'w').write('x'); print(os.listdir('/dev/shm'), os.listdir('/tmp'))",
        )
    )


@python
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
