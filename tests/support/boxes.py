"""The real broker on a workspace of its own, as the tests' user or as an ordinary one, and a client for it.

Run by root, each test of a box runs twice: with a broker that root starts, which gives root up by itself, and
with one that an ordinary user starts.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from gateway.engine.box.broker_plan import BrokerPlan
from gateway.engine.box.identity import UID
from gateway.engine.box.process import Box, find_bubblewrap_blocking, system_paths_blocking

User = Literal["own", "ordinary"]
USERS: Sequence[User] = ("own", "ordinary") if os.getuid() == 0 else ("own",)
ORDINARY = 61_234
"""A user that nobody else on the machine is."""
ANSWER_S = 60.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    code: int | None
    """None: the broker gave no answer."""
    output: str
    ended_in: str


@dataclass(slots=True, kw_only=True)
class Bench:
    """A broker that runs, and its workspace."""

    root: Path
    box: Box
    process: "subprocess.Popen[bytes]"
    uid: int
    """Of the processes in the box, as the machine sees them."""
    starter: int
    key: str
    """What its requests begin with."""
    told: list[Mapping[str, Any]] = field(default_factory=list)
    _report: bytes = b""

    @property
    def workspace(self) -> Path:
        return Path(self.box.plan.workspace)

    def write(self, name: str, content: str) -> Path:
        """Write a file of the workspace, as its owner."""
        path = self.workspace / name
        missing = [one for one in path.parents if not one.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        for one in (path, *missing):
            os.chown(one, self.starter, self.starter)
        return path

    def git(self, *words: str, at: str = "") -> None:
        """Run git outside, as the workspace's owner."""
        run_as(self.starter, ["git", "-C", str(self.workspace / at), *words])

    @contextmanager
    def asked(
        self, line: str, *, cwd: Path | None = None, cwd_file: str = ""
    ) -> Iterator[socket.socket]:
        """Ask for a command; its output goes to the file `output`."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as speaker:
            os.seteuid(self.starter)  # whom the broker listens to
            try:
                speaker.connect(str(self.box.folder / "socket"))
            finally:
                os.seteuid(os.getuid())
            speaker.settimeout(ANSWER_S)
            with (self.root / "output").open("wb") as output:
                words = (f"{self.key}mark", str(cwd or self.workspace), cwd_file, line)
                request = "\0".join(words).encode("utf-8", "surrogateescape")
                socket.send_fds(speaker, [request], [output.fileno()] * 2)
            yield speaker

    def run(self, line: str, *, cwd: Path | None = None, cwd_file: str = "") -> Ran:
        """Run a command and wait for its end."""
        with self.asked(line, cwd=cwd, cwd_file=cwd_file) as speaker:
            answer = speaker.recv(65_536).decode("utf-8", "surrogateescape")
        self._read_reports()
        code, _, ended_in = answer.partition(" ")
        output = (self.root / "output").read_text("utf-8", "replace")
        return Ran(int(code) if code else None, output, ended_in)

    def python(self, program: str) -> Ran:
        """Run a program of Python, from a file of the workspace."""
        self.write("program.py", program)
        return self.run("/usr/bin/python3 -B program.py")

    def reports(self) -> list[Mapping[str, Any]]:
        """Return what the broker has reported of its commands."""
        self.run("true")  # what came before it has been reported
        return self.told

    def _read_reports(self) -> None:
        assert self.process.stdout is not None
        while select.select([self.process.stdout], [], [], 0)[0]:
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                break
            self._report += data
        *lines, self._report = self._report.split(b"\n")
        self.told += map(json.loads, lines)

    def left_running(self) -> list[str]:
        """Return the command lines of processes in a box of this workspace that are left."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                is_theirs = entry.stat().st_uid == self.uid and self._is_in_box(entry)
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if is_theirs and words != [b""]:
                found.append(" ".join(word.decode("utf-8", "replace") for word in words))
        return found

    def _is_in_box(self, process: Path) -> bool:
        own = Path("/proc/self/ns/pid").readlink()
        mounts = (process / "mountinfo").read_text("utf-8", "replace")
        return (process / "ns/pid").readlink() != own and f" {self.workspace} " in mounts


@contextmanager
def box_bench(user: User = "own", *, holes: str = "", **changes: Any) -> Iterator[Bench]:
    """Run a broker while the block does. `holes` is Python that weakens it at its start."""
    root = Path(tempfile.mkdtemp(prefix="box-"))
    starter = os.getuid() if user == "own" else ORDINARY
    program = find_bubblewrap_blocking()
    assert program is not None
    try:
        for name in ("ws", "box", "tmp"):
            (root / name).mkdir()
        for path in (root, *root.iterdir()):
            path.chmod(0o755)
            os.chown(path, starter, starter)
        plan = BrokerPlan(
            program=str(program),
            is_packaged=False,
            system=system_paths_blocking(),
            workspace=str(root / "ws"),
            folders=[],
            temporary=str(root / "tmp"),
            memory_mb=1024,
            hosts=[],
            key="of-agents",
        )
        box = Box(folder=root / "box", plan=replace(plan, **changes))
        with box.listen_blocking() as listener:
            (root / "box" / "socket").chmod(0o777)
            yield from _run(root, box, listener, starter, holes)
    finally:
        shutil.rmtree(root)


def _run(
    root: Path, box: Box, listener: socket.socket, starter: int, holes: str
) -> Iterator[Bench]:
    *start, code = box.command(listener)
    setup, _, call = code.rpartition("; ")
    become = f"os.setgroups([]); os.setresgid(*[{starter}] * 3); os.setresuid(*[{starter}] * 3)"
    drop = become if starter != os.getuid() else "pass"
    program = f"{setup}\nimport os\n{drop}\n{holes}\n{call}"
    process = subprocess.Popen(
        [*start, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[listener.fileno()],
        env={"PATH": os.defpath},
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(box.order())
            process.stdin.flush()
            first = json.loads(process.stdout.readline() or b"{}")
            assert first == {"ready": True}, first
            uid = UID if starter == 0 else starter
            key = box.plan.key
            yield Bench(root=root, box=box, process=process, uid=uid, starter=starter, key=key)
        finally:
            process.kill()


def run_as(uid: int, words: Sequence[str]) -> None:
    """Run a program outside as a user."""
    who: dict[str, Any] = (
        {} if uid == os.getuid() else {"user": uid, "group": uid, "extra_groups": []}
    )
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    subprocess.run(words, check=True, capture_output=True, env=environ, **who)
