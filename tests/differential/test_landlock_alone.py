"""What Landlock alone would keep of what `CANDOR_SHELL=sandboxed` promises: too little to offer it.

An older kernel is one that is asked to forbid less. `docs/decisions/0017-no-box-of-landlock-alone.md`
has the table. A line here that fails because the kernel keeps more by now is a reason to decide
again.
"""

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from gateway.engine.box.trial import attempt_blocking
from gateway.engine.environment import KEEPS
from gateway.engine.processes import launch_words
from gateway.engine.sandbox.places import AgentPlaces
from tests.support.boxes import ORDINARY
from tests.support.walls import needs_landlock

landlock = pytest.importorskip("gateway.engine.sandbox.landlock", exc_type=ImportError)

pytestmark = needs_landlock

USER = ORDINARY if os.getuid() == 0 else os.getuid()
DOCUMENT = Path(__file__).parents[2] / "docs/decisions/0017-no-box-of-landlock-alone.md"

ATTEMPTS = {
    "read a file outside": "assert open('{outside}/kept').read()",
    "write a file outside": "open('{outside}/new', 'w').close()",
    "see a file outside": "os.stat('{outside}/kept')",
    "change a mode outside": "os.chmod('{outside}/kept', 0o640)",
    "read a secret in the workspace": "assert open('.env').read()",
    "change a protected file in the workspace": "open('.git/hooks/pre-commit', 'w').close()",
    "connect over TCP": "socket.create_connection(('127.0.0.1', {tcp}), 5)",
    "send over UDP": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp}))",
    "reach a socket that is a file": "socket.socket(socket.AF_UNIX).connect('{outside}/socket')",
    "reach an abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0{outside}')",
    "signal a process outside": "os.kill({victim}, 0)",
    "read a command line outside": "assert open('/proc/{victim}/cmdline').read()",
    "leave a process behind": "subprocess.Popen(['sleep', '59.5'], start_new_session=True, stdout=-3)",
}
"""What a command tries, in Python."""
SINCE = {
    "read a file outside": 1,
    "write a file outside": 1,
    "connect over TCP": 4,
    "reach an abstract socket": 6,
    "signal a process outside": 6,
}
"""The version of Landlock that keeps it; versions up to 7 were tried, and keep none of the others."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A workspace beside a folder, both the user's whose command runs."""
    for folder in (tmp_path, *list(tmp_path.parents)[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    for name in ("ws/.git/hooks/pre-commit", "ws/.env", "outside/kept"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("kept", encoding="utf-8")
    for path in tmp_path.rglob("*"):
        os.chown(path, USER, USER)
    yield tmp_path
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", "59.5"]:
            process.kill()


def prefix(workspace: Path, version: int) -> list[str]:
    """Return the words that start a command behind Landlock alone."""
    places = AgentPlaces(program=Path("/bin/sh"), workspace=workspace, own=(), ports=())
    words = launch_words(os.getpid(), landlock.landlock_words(places, version))
    return ["/usr/bin/python3", *words[1:]]  # which every user may run


def could(place: Path, version: int) -> set[str]:
    with ExitStack() as stack:
        outside = place / "outside"
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for name in (f"{outside}/socket", f"\0{outside}"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(name)
            listener.listen()
        (outside / "socket").chmod(0o777)
        victim = stack.enter_context(
            subprocess.Popen(["/bin/sleep", "59"], user=USER, extra_groups=[])
        )
        stack.callback(victim.kill)
        known = {"outside": outside, "tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
        program = "import os, socket, subprocess\n" + "".join(
            f"try:\n  {line.format(**known, victim=victim.pid)}\n  print({what!r}, flush=True)\n"
            f"except (OSError, AssertionError): pass\n"
            for what, line in ATTEMPTS.items()
        )
        done = subprocess.run(
            [*prefix(place / "ws", version), "/usr/bin/python3", "-c", program],
            cwd=place / "ws",
            env={"PATH": os.defpath, KEEPS: "PATH"},
            user=USER,
            group=USER,
            extra_groups=[],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    left = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "59.5"]]
    return set(done.stdout.splitlines()) - (set() if left else {"leave a process behind"})


@pytest.mark.parametrize(
    "version", [version for version in (1, 4, 6, 7) if version <= landlock.landlock_version()]
)
def test_what_a_version_keeps_from_a_command(place: Path, version: int) -> None:
    kept = {what for what, since in SINCE.items() if since <= version}
    assert could(place, version) == ATTEMPTS.keys() - kept


def test_the_trial_of_boxes_finds_out_landlock_alone(place: Path) -> None:
    before = [*prefix(place / "ws", landlock.landlock_version()), "/bin/bash", "-c"]
    found = attempt_blocking(before, place / "ws", place)
    inside = ["read a secret in the workspace", "change a protected file in the workspace"]
    assert found[:2] == inside
    assert {"see other processes", "use every system call"} < set(found)


def test_the_document_says_so() -> None:
    rows = re.findall(r"^\| (.+) \| (since \d+|no) \|", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    told = {what: f"since {SINCE[what]}" if what in SINCE else "no" for what in ATTEMPTS}
    assert dict(rows) == told
