"""Stores uploads in processes that are killed before one of their file operations; run by `test_uploads_killed.py`."""

import io
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

from gateway.files.upload_journal import JOURNALS, store_whole_blocking, undo_cut_uploads_blocking
from tests.support.child_programs import say

EXISTING = "plan.pdf"
FILES = {"plan.pdf": b"first", "notes.txt": b"second" * 20_000, "empty": b""}


def _kill_before(step: int) -> None:
    """Kill this process before the file operation of this number."""
    passed = 0

    def count_operation(event: str, _arguments: tuple[object, ...]) -> None:
        nonlocal passed
        if event == "open" or event.startswith("os."):
            passed += 1
            if passed == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_operation)


def _was_killed(step: int, work: Callable[[], object]) -> bool:
    """Do some work in a forked process; return whether it was killed."""
    child = os.fork()
    if child == 0:
        _kill_before(step)
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _was_upload_killed(root: Path, step: int) -> bool:
    uploads = root / "workspace" / "uploads"
    uploads.mkdir(parents=True)
    (uploads / EXISTING).write_bytes(b"of the person")
    (root / "data").mkdir()
    files = [(name, io.BytesIO(content)) for name, content in FILES.items()]
    store = partial(
        store_whole_blocking, root / "data" / JOURNALS, root / "workspace", "uploads", files
    )
    return _was_killed(step, store)


def contents(root: Path) -> dict[str, str]:
    """Return the uploads, with all hidden entries; each file by its first words."""
    return {
        path.name: path.read_bytes()[:20].decode() if path.is_file() else "a folder"
        for path in sorted((root / "workspace" / "uploads").iterdir())
    }


async def kill_at(directory: str, step: str) -> None:  # noqa: RUF029  run as a program
    """Leave what a process that is killed before this step leaves."""
    killed = _was_upload_killed(Path(directory), int(step))
    say(killed=killed, left=contents(Path(directory)))


async def kill_at_each_step(directory: str) -> None:  # noqa: RUF029  run as a program
    """Kill before the first step, the second and so on until none is left, and likewise each start after it.

    Report what each upload left, and what its last start did.
    """
    for step in count(1):
        root = Path(directory) / str(step)
        killed, left = _was_upload_killed(root, step), contents(root)
        journals = root / "data" / JOURNALS
        undo = partial(undo_cut_uploads_blocking, journals)
        starts = next(number for number in count(1) if not _was_killed(number, undo))
        say(
            killed=killed,
            left=left,
            starts=starts,
            undone=contents(root),
            journals=len(list(journals.glob("*.json"))) if journals.exists() else 0,
        )
        if not killed:
            return
