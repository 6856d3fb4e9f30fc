"""Generated hostile programs run in the box, and nothing outside notices: no file, secret, packet or process."""

import os
import re
import select
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import psutil
import pytest

from tests.differential.hostile import Language, Program, write_program
from tests.differential.hostile_places import Scene
from tests.differential.hostile_python import PYTHON
from tests.differential.hostile_sh import SH
from tests.support.boxes import USERS, Bench, User, box_bench
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

IN_ORDINARY_RUN = 60
IN_SOAK = 5000
PROGRAMS_A_GROUND = 8
"""So many programs meet the workspace as the ones before them left it; then it is made anew."""
SECRET = "S3CR3T"
LIMITS = """
import gateway.engine.box.broker as broker
usual = broker.Limits
broker.Limits = lambda **given: usual(**{**given, "wall_s": 5.0, "processes": 200})
"""
HOLES = {
    "files": f"{LIMITS}\nimport gateway.engine.box.search as search\nsearch.find_secret = search.find_acting = lambda parts: None\nsearch._is_git = lambda name: False\nsearch._REPOSITORY = frozenset('x')",
    "network": f"{LIMITS}\nimport gateway.engine.box.plan as plan\nplan._NAMESPACES = tuple(w for w in plan._NAMESPACES if w != '--unshare-net')",
}
"""A box without a part of what it keeps."""


class Decoys:
    """Sockets that nobody in the box may reach, on loopback, another address of the machine, and in files."""

    def __init__(self, stack: ExitStack, files: Sequence[Path]) -> None:
        hosts = ["127.0.0.1", *other_addresses()]
        self._streams = [stack.enter_context(socket.create_server((host, 0))) for host in hosts]
        self._datagrams = [
            stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in hosts
        ]
        for one, host in zip(self._datagrams, hosts, strict=True):
            one.bind((host, 0))
        self.tcp = [one.getsockname()[:2] for one in self._streams]
        self.udp = [one.getsockname()[:2] for one in self._datagrams]
        for name in (*map(str, files), f"\0evil-decoy-{files[0]}"):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.bind(name)
            one.listen()
            self._streams.append(one)
            if not name.startswith("\0"):
                Path(name).chmod(0o777)

    def reached(self) -> list[str]:
        """Return which of them heard something."""
        ready, _, _ = select.select([*self._streams, *self._datagrams], [], [], 0)
        for one in ready:
            one.accept()[0].close() if one in self._streams else one.recv(99)
        return [f"reached {one.getsockname()!r}" for one in ready]


def other_addresses() -> list[str]:
    """Return an address of the machine besides loopback, if it has one."""
    found = (
        a.address
        for all_ in psutil.net_if_addrs().values()
        for a in all_
        if a.family == socket.AF_INET
    )
    return [address for address in found if not address.startswith("127.")][:1]


class Range:
    """A bench with what is around it, and a look at it after each program."""

    def __init__(self, bench: Bench, stack: ExitStack) -> None:
        self.bench = bench
        self.outside = bench.root / "outside"
        (self.outside / "folder").mkdir(parents=True)
        self._own(self.outside / "secret").write_text(f"{SECRET}-outside", "utf-8")
        self._own(self.outside / "folder" / "kept").write_text("kept", "utf-8")
        for path in (self.outside, *self.outside.rglob("*")):
            os.chown(path, bench.starter, bench.starter)
        self.lay()
        self._decoys = Decoys(stack, [self.outside / "socket", bench.workspace / "socket"])
        words = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        self._victim = stack.enter_context(
            subprocess.Popen(words, stdin=subprocess.PIPE, env={"CANARY": f"{SECRET}-environment"})
        )
        stack.callback(self._victim.kill)
        self.scene = Scene(
            outside=self.outside,
            workspace=bench.workspace,
            tcp=self._decoys.tcp,
            udp=self._decoys.udp,
            victim=self._victim.pid,
        )
        self._around = self._look_around()

    def _own(self, path: Path) -> Path:
        return path

    def lay(self) -> None:
        """Make the workspace anew, but for the socket in it."""
        bench = self.bench
        for entry in bench.workspace.iterdir():
            if entry.name == "socket":
                continue
            entry.unlink() if entry.is_symlink() or not entry.is_dir() else shutil.rmtree(entry)
        bench.git("init", "-q")
        files = {
            ".env": f"{SECRET}-a",
            "deep/.env.local": f"{SECRET}-b",
            "keys/.ssh/id_rsa": f"{SECRET}-c",
        }
        files |= {".claude/settings.json": "{}", "CLAUDE.md": "Be kind.\n", "readme.md": "hello\n"}
        files |= {"lib/.git/HEAD": "ref: refs/heads/main\n", "lib/.git/config": "[core]\n"}
        files |= {f"lib/.git/{folder}/.keep": "" for folder in ("objects", "refs", "hooks")}
        for name, text in files.items():
            bench.write(name, text)
        self._protected = self._look_at_protected()

    def _look_around(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for path in (self.outside, *sorted(self.outside.rglob("*"))):
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (
                content,
                status.st_mode,
                status.st_uid,
                status.st_mtime_ns,
                status.st_nlink,
            )
        return found

    def _look_at_protected(self) -> dict[str, bytes]:
        """Return everything below the workspace under a protected name, wherever it is, with its content."""
        found = {}
        for parts, path, mode in self._entries():
            if not is_protected(parts) or "node_modules" in parts or stat.S_ISDIR(mode):
                continue
            content = path.read_bytes() if stat.S_ISREG(mode) else b"special"
            if parts[-1] != "config" or not NEW_SETTINGS.fullmatch(content):
                found["/".join(parts)] = content
        return found

    def _entries(self) -> Iterator[tuple[Sequence[str], Path, int]]:
        """Yield everything in the workspace; no link is followed."""
        for path in self.bench.workspace.rglob("*"):
            yield path.relative_to(self.bench.workspace).parts, path, path.lstat().st_mode

    def run(self, program: Program) -> list[str]:
        """Run a program and return its effects."""
        bench = self.bench
        if program.language == "python":
            bench.write("program.py", program.text)
            ran = bench.run("/usr/bin/python3 -B program.py")
        else:
            ran = bench.run(program.text)
        effects = [
            *self._decoys.reached(),
            *(f"still runs: {line}" for line in bench.left_running()),
        ]
        if ran.code is None:
            effects.append("the broker gave no answer")
        if SECRET in ran.output.replace("S3CR3T .", "").replace("s3cr3t", ""):
            effects.append("a secret is in the output")
        if self._victim.poll() is not None or self._is_changed_victim():
            effects.append("the process outside was touched")
        if self._look_around() != self._around:
            effects.append("something changed outside")
        effects += self._changes_inside()
        return effects

    def _is_changed_victim(self) -> bool:
        process = psutil.Process(self._victim.pid)
        return (
            process.nice() != psutil.Process().nice() or process.status() == psutil.STATUS_STOPPED
        )

    def _changes_inside(self) -> Iterator[str]:
        now = self._look_at_protected()
        for name in {*now, *self._protected}:
            is_own_secret = name not in self._protected and is_secret(name)  # it hides nothing
            if now.get(name) != self._protected.get(name) and not is_own_secret:
                yield f"{name} is {now.get(name)!r} and was {self._protected.get(name)!r}"
        for parts, path, mode in self._entries():
            if not stat.S_ISREG(mode):
                continue
            if mode & 0o6000:
                yield f"{path} runs as its owner"
            is_kept = "/".join(parts) in self._protected or path.name == "program.py"
            if not is_kept and f"{SECRET}-".encode() in path.read_bytes():
                yield f"a secret is in {path}"


NEW_SETTINGS = re.compile(
    rb"\[core\]\n\trepositoryformatversion = 0\n\tfilemode = true\n"
    rb"\tbare = (false\n\tlogallrefupdates = true|true)\n"
    rb'(\[remote "origin"\]\n\turl = "/[\w./-]+"\n(\tfetch = "\+refs/heads/\*:refs/remotes/origin/\*"\n)?)?'
    rb'(\[branch "main"\]\n\tremote = "origin"\n\tmerge = "refs/heads/main"\n)?'
)
"""Those that a program's repository has: git's own, and of a clone its source in the workspace."""
_NAMES = {
    ".claude",
    ".mcp.json",
    "agents.md",
    "claude.md",
    "claude.local.md",
    ".vscode",
    ".bashrc",
    ".gitattributes",
    ".ssh",
}


def is_protected(parts: Sequence[str]) -> bool:
    """Return whether a path is protected, told by a list of the test's own.

    In a repository these are the names that git acts by.
    """
    low = [part.lower() for part in parts]
    repository = next((n for n, part in enumerate(low) if part in {".git", "bare"}), None)
    if repository is not None and low[repository + 1 : repository + 2]:
        return low[repository + 1] in {"hooks", "config", "info", "commondir", "modules"}
    return any(part in _NAMES or part.startswith(".env") for part in low)


def is_secret(name: str) -> bool:
    """Return whether a name is one of secrets: a program may make such files of its own."""
    return any(part == ".ssh" or part.startswith(".env") for part in name.lower().split("/"))


@contextmanager
def open_range(user: User, holes: str = LIMITS) -> Iterator[Range]:
    with box_bench(user, holes=holes) as bench, ExitStack() as stack:
        yield Range(bench, stack)


def run_many(place: Range, seed: int, count: int) -> list[str]:
    """Run so many programs; return what the first one with an effect did, and its text."""
    random = Random(seed)
    for number in range(count):
        if number and number % PROGRAMS_A_GROUND == 0:
            place.lay()
        program = write_program(random, place.scene)
        if effects := place.run(program):
            return [f"seed {seed}, program {number} ({program.kinds})", program.text, *effects]
    return []


LONG = pytest.mark.parametrize(
    "count", [IN_ORDINARY_RUN, pytest.param(IN_SOAK, marks=pytest.mark.soak)], ids=["some", "many"]
)


@LONG
@pytest.mark.parametrize("user", USERS)
def test_no_program_has_an_effect_outside(user: User, count: int) -> None:
    seed = int(os.environ.get("CANDOR_TEST_SEED", "1"))
    with open_range(user) as place:
        assert run_many(place, seed, count // len(USERS)) == []


def test_nor_has_one_of_two_boxes_at_once() -> None:
    with open_range("own") as one, open_range("own") as other:
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda p=place, s=seed: found.extend(run_many(p, s, 12)))
            for place, seed in ((one, 3), (other, 4))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == []


@pytest.mark.parametrize(
    ("hole", "attempts"),
    [
        ("files", ("secrets", "protected_names", "free_names", "covers")),
        ("network", ("network", "sockets")),
    ],
)
def test_a_box_with_a_hole_is_found_out(hole: str, attempts: Sequence[str]) -> None:
    """Else this file would prove nothing."""
    table = {**SH, **PYTHON}
    random = Random(5)
    with open_range("own", HOLES[hole]) as place:
        found = []
        for _ in range(12):
            name = random.choice(attempts)
            language: Language = "sh" if name in SH else "python"
            text = table[name](random, place.scene)
            head = "" if language == "sh" else "import ctypes, os, shutil, socket\n"
            found += place.run(Program(language, head + text, (name,)))
        assert found
