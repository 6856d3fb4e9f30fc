"""A throw-away root with a shell in it, so that a command which escapes hurts nothing.

Where the system lets us (as root, or with user namespaces), the shell lives in a `chroot` with
mount, process and network namespaces of its own, as nobody; its programs are copies, and every
program that no command may run is a wrapper that writes down its name. Elsewhere it is an ordinary
shell in a temporary folder with the wrappers on `PATH` alone. One shell serves all commands: each
costs two forks.
"""

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Walls = Literal["root", "user", "none"]

NOBODY = 65534
HANG_S = 15.0
OUTSIDE = "OUTSIDE-4c1f09aa"
"""Stands in every file outside the workspace; no command says it."""
OUTSIDE_BYTES, OUTSIDE_LINES = 48_611, 7_919
"""Of every file outside: numbers that nothing inside has."""
OUTSIDE_KIND = "PDF document"
"""What `file` says of every file outside, and of none inside."""
OUTSIDE_MARK = "\x01"
"""Fills every file outside, so that a few bytes of one give it away."""
OUTSIDE_NAME = "zz-outside-7be2d1"
"""Stands in a name in every folder outside; no command says it."""

_WORKER = r"""
ulimit -f 200000 -n 128 2>/dev/null
while IFS= read -r -d '' here && IFS= read -r -d '' line; do
  cd / && cd "$here" || { printf 'no such folder\0'; continue; }
  "$SHELL" -c "$line" </dev/null >"$OUT/said" 2>&1
  printf '%s\0' "$?"
done
"""
_SETUP = r"""
set -e
mount --make-rprivate /
mount --bind "$YARD" "$JAIL$YARD"
mount --bind /dev/null "$JAIL/dev/null"
exec chroot $AS "$JAIL" /shell/bash -c "$WORKER"
"""
_NAMESPACES = ("--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one command did, as far as its process shows."""

    code: str
    said: str
    """Both outputs."""
    executed: tuple[str, ...]
    """Programs besides those that commands may run."""
    ended_in: str
    """The working directory afterwards; empty: the command failed."""
    hung: bool = False


def outside_text() -> str:
    """Write what a file outside holds."""
    head = f"%PDF-1.7\n{OUTSIDE_MARK}{OUTSIDE}{OUTSIDE_MARK}\n"
    lines = f"{OUTSIDE_MARK}\n" * (OUTSIDE_LINES - head.count("\n") - 1)
    left = OUTSIDE_BYTES - len(head) - len(lines) - 1
    return f"{head}{lines}{OUTSIDE_MARK * left}\n"


class Hung(Exception):
    """A command did not end."""


def find_walls() -> Walls:
    """Return what this system offers."""
    is_root = os.geteuid() == 0
    prefix = _unshare("root" if is_root else "user")
    tools = all(shutil.which(name) for name in ("unshare", "chroot", "mount", "ldd"))
    if sys.platform != "linux" or not tools:
        return "none"
    probe = subprocess.run(
        [*prefix, "sh", "-c", "mount --make-rprivate / && mount -t tmpfs none /mnt"],
        capture_output=True,
        check=False,
    )
    if probe.returncode != 0:
        return "none"
    return "root" if is_root else "user"


def _unshare(walls: Walls) -> list[str]:
    user = ["--user", "--map-root-user"] if walls == "user" else []
    return ["unshare", *user, *_NAMESPACES]


class ThrowawayRoot:
    """The root, its yard (what lies around a workspace, the workspace in it) and the shell."""

    def __init__(self, base: Path, programs: Collection[str], walls: Walls) -> None:
        self.walls = walls
        self.yard = base / "yard"
        self.workspace = self.yard / "ws"
        self._base = base
        self._jail = base / "jail"
        self._out = self._jail / "out"
        self._programs = programs
        self._shell: subprocess.Popen[bytes] | None = None
        self.yard.mkdir()
        self._furnish()

    def _furnish(self) -> None:
        for folder in ("bin", "shell", "out", "dev", "etc", "root", "home/other"):
            (self._jail / folder).mkdir(parents=True)
        for name in ("bin", "sbin", "local/bin"):
            link = self._jail / "usr" / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to("/bin")
        (self._jail / "dev/null").touch()
        (self._jail / str(self.yard).lstrip("/")).mkdir(parents=True)
        for place in ("etc/hostname", "etc/shadow", "root/notes.txt", "home/other/notes.txt"):
            (self._jail / place).write_text(outside_text(), encoding="utf-8")
        (self._jail / "etc/passwd").write_text(f"root:x:0:0:{OUTSIDE}:/root:\n", encoding="utf-8")
        for folder in ("", "etc", "root", "home/other"):
            (self._jail / folder / OUTSIDE_NAME).touch()
        self._put_programs()
        self._out.chmod(0o777)

    def _put_programs(self) -> None:
        """Return real programs the allowed names, and a wrapper every other name there is."""
        bash = shutil.which("bash") or "/bin/bash"
        real = {name: found for name in self._programs if (found := shutil.which(name))}
        shell = "/shell/bash" if self.walls != "none" else bash
        wrapper = self._jail / "shell/wrapper"
        log = "/out/executed" if self.walls != "none" else self._out / "executed"
        wrapper.write_text(f'#!{shell}\nprintf "%s\\n" "${{0##*/}}" >>{log}\n', encoding="utf-8")
        wrapper.chmod(0o755)
        there = {name for folder in ("/bin", "/usr/bin", "/usr/sbin") for name in _list(folder)}
        target = "/shell/wrapper" if self.walls != "none" else str(wrapper)
        for name in (there | {"bash", "sh", "python3", "curl", "git"}) - set(self._programs):
            (self._jail / "bin" / name).symlink_to(target)
        for name, found in real.items():
            if self.walls == "none":
                (self._jail / "bin" / name).symlink_to(found)
            else:
                shutil.copy(os.path.realpath(found), self._jail / "bin" / name)
        if self.walls != "none":
            shutil.copy(os.path.realpath(bash), self._jail / "shell/bash")
            for library in _libraries([bash, *real.values()]):
                target_file = self._jail / library.lstrip("/")
                target_file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(os.path.realpath(library), target_file)
            for support in ("/usr/lib/locale/C.utf8", "/usr/lib/file", "/usr/share/misc"):
                if Path(support).is_dir():  # what the shell and `file` look things up in
                    shutil.copytree(support, self._jail / support.lstrip("/"))

    def own(self) -> None:
        """Return the yard to whoever the shell runs as."""
        if self.walls == "root" or (self.walls == "none" and os.geteuid() == 0):
            subprocess.run(["chown", "-R", "-h", f"{NOBODY}:{NOBODY}", self.yard], check=True)

    def start(self) -> None:
        """Start the shell."""
        inside = self.walls != "none"
        env = {
            "PATH": "/bin" if inside else str(self._jail / "bin"),
            "LC_ALL": "C.UTF-8",
            "HOME": "/root" if inside else str(self._jail / "root"),
            "SHELL": "/shell/bash" if inside else (shutil.which("bash") or "/bin/bash"),
            "OUT": "/out" if inside else str(self._out),
            "WORKER": _WORKER,
        }
        words: Sequence[str | Path] = [env["SHELL"], "-c", _WORKER]
        account = None
        if inside:
            keep = f"PATH={os.environ.get('PATH', '')}"
            as_whom = f"--userspec={NOBODY}:{NOBODY}" if self.walls == "root" else ""
            set_up = f"export {keep}; {_SETUP.replace('exec chroot', 'exec env PATH=/bin $CHROOT')}"
            env |= {
                "YARD": str(self.yard),
                "JAIL": str(self._jail),
                "AS": as_whom,
                "CHROOT": shutil.which("chroot") or "chroot",
            }
            words = [*_unshare(self.walls), shutil.which("sh") or "sh", "-c", set_up]
        elif os.geteuid() == 0:
            account = NOBODY
        self._shell = subprocess.Popen(
            words,
            env=env,
            cwd="/",
            user=account,
            group=account,
            extra_groups=None if account is None else [],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            executable=shutil.which(str(words[0])),
            start_new_session=True,
        )

    def run(self, command: str, cwd: Path | None = None) -> Ran:
        """Run one command as the agent's program does; `Ran.hung` says that it had to be ended."""
        if self._shell is None or self._shell.poll() is not None:
            self.start()
        for name in ("said", "executed", "cwd"):
            (self._out / name).unlink(missing_ok=True)
        cwd_file = "/out/cwd" if self.walls != "none" else self._out / "cwd"
        line = f"shopt -u extglob; eval {shlex.quote(command)} && pwd -P >| {cwd_file}"
        hung = False
        try:
            code = self._talk(f"{cwd or self.workspace}\0{line}\0".encode())
        except Hung:
            code, hung = "", True
            self.stop()
        return Ran(
            code=code,
            said=self._read("said"),
            executed=tuple(self._read("executed").split()),
            ended_in=self._read("cwd").rstrip("\n"),
            hung=hung,
        )

    def _talk(self, asked: bytes) -> str:
        assert self._shell is not None
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(asked)
        self._shell.stdin.flush()
        answer = b""
        while not answer.endswith(b"\0"):
            ready, _, _ = select.select([self._shell.stdout], [], [], HANG_S)
            if not ready:
                raise Hung
            piece = os.read(self._shell.stdout.fileno(), 4096)
            if not piece:
                raise AssertionError(f"the shell ended by itself ({self._shell.wait()})")
            answer += piece
        return answer[:-1].decode()

    def _read(self, name: str) -> str:
        file = self._out / name
        return file.read_bytes().decode("utf-8", "replace") if file.exists() else ""

    def stop(self) -> None:
        """End the shell, and with it whatever it started."""
        if self._shell is None:
            return
        with suppress(ProcessLookupError):  # without namespaces: what a command left running
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.kill()  # with them, their first process: the kernel ends the rest
        self._shell.wait()
        for pipe in (self._shell.stdin, self._shell.stdout):
            assert pipe is not None
            pipe.close()
        self._shell = None


def _list(folder: str) -> list[str]:
    return os.listdir(folder) if Path(folder).is_dir() else []  # noqa: PTH208  names are all we need


def _libraries(programs: Sequence[str]) -> set[str]:
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(?<=\s)/\S+(?= \(0x)", told))


@contextmanager
def throwaway_root(
    programs: Collection[str], walls: Walls | None = None
) -> Iterator[ThrowawayRoot]:
    """Make a root and take it away again; the caller fills the yard and calls `own`."""
    with tempfile.TemporaryDirectory(prefix="candor-root-") as folder:
        base = Path(folder).resolve()
        base.chmod(0o755)
        root = ThrowawayRoot(base, programs, find_walls() if walls is None else walls)
        try:
            yield root
        finally:
            root.stop()
