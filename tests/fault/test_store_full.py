"""A full disk: refused in words, nothing lost, and well again when there is room."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

SCRIPT = Path(__file__).with_name("full_disk.py")
pytestmark = pytest.mark.fault


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[list[str]]:
    """Return what the script needs for a disk of its own, or a limit where none can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        yield [str(disk), "400000"]
        return
    yield [str(disk)]
    subprocess.run(["umount", str(disk)], check=True, capture_output=True)


async def outcome(arguments: list[str]) -> dict[str, Any]:
    with anyio.fail_after(120):
        done = await anyio.run_process([sys.executable, str(SCRIPT), *arguments], stderr=None)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any], reason: str) -> None:
    refused = f"The database cannot be written: {reason}."
    assert found == {
        "refused": refused,
        "written": found["written"],
        "kept": found["written"],
        "ping_full": refused,
        "waiting": 51,
        "events": list(range(1, 52)),
        "last": "turn.completed",
        "state": "completed",
        "ping_after": None,
        "check": "ok",
    }
    assert found["written"] > 0


async def test_a_full_disk_refuses_keeps_and_recovers(small_disk: list[str]) -> None:
    limited = len(small_disk) > 1
    check(
        await outcome(small_disk), "the disk failed or is full" if limited else "the disk is full"
    )


async def test_a_file_that_may_not_grow_refuses_keeps_and_recovers(tmp_path: Path) -> None:
    check(await outcome([str(tmp_path), "400000"]), "the disk failed or is full")
