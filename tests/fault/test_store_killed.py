"""A store whose process is killed or whose disk is full."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.streams.text
import pytest

from gateway.ids import ConversationId, TurnId
from tests.conformance.suites.conversation_values import ANN, Stores
from tests.support.stores import open_file, stores_on

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


KILLED_SCRIPT = Path(__file__).with_name("writing_until_killed.py")


async def written_until_killed(directory: Path, lines: int) -> dict[str, set[str]]:
    """Run the writer, kill it after so many lines, and give what it had said until its end."""
    said: dict[str, set[str]] = defaultdict(set)
    text = ""
    async with await anyio.open_process(
        [sys.executable, str(KILLED_SCRIPT), str(directory)], stderr=None
    ) as process:
        assert process.stdout is not None
        async for chunk in anyio.streams.text.TextReceiveStream(process.stdout):
            text += chunk
            if text.count("\n") >= lines and process.returncode is None:
                process.kill()
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            what, name = line.split()
            said[what].add(name)
    return said


async def all_turns(stores: Stores) -> set[str]:
    page = await stores.conversations.page(ANN, limit=100_000)
    return {conversation.id.removeprefix("cnv_") for conversation in page.conversations}


async def check_killed(stores: Stores, said: dict[str, set[str]]) -> None:
    names = await all_turns(stores)
    assert said["accepted"] <= names
    assert len(names - said["accepted"]) <= 1, "one may be committed and not yet acknowledged"
    unfinished = {entry.id for entry in await stores.turns.unfinished()}
    for name in names:
        turn_id, conversation_id = TurnId(f"trn_{name}"), ConversationId(f"cnv_{name}")
        one = await stores.turns.get(turn_id)
        found = await stores.conversations.get(conversation_id, ANN)
        assert one is not None
        assert found is not None
        assert found.turns == 1
        assert await stores.turns.find_key(ANN, name) is not None
        assert len(one.message) == 2000
        stored = [event.n for event in await stores.events.after(conversation_id, 0, limit=9)]
        if name in said["finished"]:
            assert one.state == "completed"
        if name in said["appended"]:
            assert stored[:2] == [1, 2]
        assert stored == ([1, 2, 3] if one.state == "completed" else stored[:2])
        assert stored in ([], [1, 2], [1, 2, 3])
        assert (one.state in {"queued", "running"}) == (turn_id in unfinished)


async def test_a_kill_in_mid_write_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Killed again and again, each time after it went on on what was left."""
    said: dict[str, set[str]] = defaultdict(set)
    with anyio.fail_after(120):
        for lines in (1, 7, 40, 111, 200):
            for what, names in (await written_until_killed(tmp_path, lines)).items():
                said[what] |= names
            async with open_file(tmp_path) as database:
                await check_killed(stores_on(database), said)
                rows = await database.rows("PRAGMA integrity_check")
                assert rows[0][0] == "ok"
                last = await stores_on(database).events.last_seq()
                gone = await database.rows("SELECT max(seq) AS last FROM events")
                assert last == (gone[0]["last"] or 0)
            said["accepted"] = said["accepted"] or set()
