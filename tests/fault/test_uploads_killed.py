"""Uploads whose process is killed at each of its steps: after the next start all files are there, or none."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.fault.upload_program import EXISTING, FILES, kill_at, kill_at_each_step
from tests.support.child_programs import command, run_blocking
from tests.support.live_server import running_server

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]

BEFORE = {EXISTING: "of the person"}
AFTER = {**BEFORE, "plan-2.pdf": "first", "notes.txt": ("second" * 4)[:20], "empty": ""}


def test_uploads_are_all_or_none_wherever_the_kill_comes(tmp_path: Path) -> None:
    *killed, whole = run_blocking(command(kill_at_each_step, tmp_path))
    assert (whole["killed"], whole["left"]) == (False, AFTER)
    assert [run["undone"] for run in killed if run["undone"] not in (BEFORE, AFTER)] == []
    assert {run["journals"] for run in killed} == {0}
    assert any(_is_partial(run) for run in killed), "a kill between two names is among them"
    assert all(run["starts"] > len(FILES) for run in killed if _is_partial(run))
    assert any(run["undone"] == AFTER for run in killed), "and one after the last name"


def _is_partial(run: dict[str, Any]) -> bool:
    return 0 < sum(name in run["left"] for name in AFTER) - len(BEFORE) < len(FILES)


async def test_the_next_start_undoes_an_upload_that_was_cut_off(tmp_path: Path) -> None:
    runs = await anyio.to_thread.run_sync(
        run_blocking, command(kill_at_each_step, tmp_path / "steps")
    )
    step = next(number for number, run in enumerate(runs, 1) if _is_partial(run))
    (cut_off,) = await anyio.to_thread.run_sync(run_blocking, command(kill_at, tmp_path, step))
    assert _is_partial(cut_off)
    async with running_server(tmp_path) as server, server.client() as client:
        listed = await client.get("/workspace?path=uploads")
    assert [entry["name"] for entry in listed["entries"]] == [EXISTING]
