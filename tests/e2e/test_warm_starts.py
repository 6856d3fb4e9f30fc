"""A server out of the process that has imported it already is what one from a new process is."""

import os
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.live_server import LiveServer, start_server
from tests.support.warm_starts import POSSIBLE, WarmProcess

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not POSSIBLE, reason="servers start warm on Linux alone"),
]


def seen_from_outside(server: LiveServer) -> dict[str, object]:
    """Return what a process inherits, and what could be left over from the one it came from."""
    place = Path(f"/proc/{server.process.pid}")
    status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines())
    opened = []
    for entry in (place / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed since
            opened.append(entry.readlink())
    files = [str(item) for item in opened if item.suffix not in {".py", ".pyc"}]  # it still imports
    base = str(server.workspace.parent)
    return {
        "directory": (place / "cwd").readlink(),
        "signals": {name: status[name] for name in ("SigBlk", "SigIgn", "SigCgt")},
        "mask": status["Umask"],
        "limits": (place / "limits").read_text(),
        "group": os.getpgid(server.process.pid),
        "files of others": {file for file in files if file.startswith("/") and base not in file},
        "kinds": {file.partition(":")[0] for file in files if not file.startswith("/")},
        "priority": psutil.Process(server.process.pid).nice(),
    }


def test_it_inherits_the_same_and_nothing_else(tmp_path: Path) -> None:
    seen = {}
    for fresh in (True, False):
        server = start_server(tmp_path / str(fresh), fresh=fresh, prewarmed_clients=0)
        try:
            assert isinstance(server.process, WarmProcess) is not fresh
            seen[fresh] = seen_from_outside(server)
        finally:
            assert server.stop() == 0
        assert not server.faults()
    assert seen[False] == seen[True]
