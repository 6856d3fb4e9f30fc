"""A store whose process is killed or whose disk is full."""

import subprocess
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.store import IdempotencyKey
from gateway.ids import ConversationId, TurnId
from memory.stores.sqlite.database import Database
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    Stores,
    conversation,
    ended,
    event,
    last_event,
    turn,
)
from tests.fault.store_program import fill, write
from tests.support.child_programs import command, kill_after_blocking, run_blocking
from tests.support.crash_images import crashed_everywhere, texts
from tests.support.stores import open_file, stores_on

pytestmark = pytest.mark.fault


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[list[str]]:
    """Return what the script needs for a disk of its own, or a limit where none can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1700k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        yield [str(disk), "900000"]
        return
    yield [str(disk)]
    subprocess.run(["umount", str(disk)], check=True, capture_output=True)


async def check_full(arguments: list[str], reason: str) -> None:
    (found,) = await anyio.to_thread.run_sync(run_blocking, command(fill, *arguments))
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
    reason = "the disk failed or is full" if limited else "the disk is full"
    await check_full(small_disk, reason)


async def test_a_file_that_may_not_grow_refuses_keeps_and_recovers(tmp_path: Path) -> None:
    await check_full([str(tmp_path), "900000"], "the disk failed or is full")


async def all_turns(stores: Stores) -> set[str]:
    page = await stores.conversations.page(ANN, limit=100_000)
    return {conversation.id.removeprefix("cnv_") for conversation in page.conversations}


async def check_killed(stores: Stores, said: dict[str, set[str]], before: set[str]) -> set[str]:
    """Check what is stored after a kill; `before` are the turns that were there at the start."""
    names = await all_turns(stores)
    assert said["accepted"] | before <= names
    unsaid = names - before - said["accepted"]
    assert len(unsaid) <= 1, "one may be committed and not yet acknowledged"
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
    return names


async def test_a_kill_in_mid_write_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Killed again and again, each time after it went on on what was left."""
    said: dict[str, set[str]] = defaultdict(set)
    names: set[str] = set()
    with anyio.fail_after(120):
        for count in (1, 7, 40, 111, 200):
            words = command(write, tmp_path)
            for line in await anyio.to_thread.run_sync(kill_after_blocking, words, count):
                said[line["what"]].add(line["name"])
            async with open_file(tmp_path) as database:
                names = await check_killed(stores_on(database), said, names)
                rows = await database.rows("PRAGMA integrity_check")
                assert rows[0][0] == "ok"
                lasts = "SELECT conversation_id, max(seq) AS last FROM events GROUP BY 1"
                for row in await database.rows(lasts):
                    events = stores_on(database).events
                    assert await events.last_seq(row["conversation_id"]) == row["last"]


async def accept(stores: Stores, name: str, of: str) -> None:
    key, one = IdempotencyKey(key=name, request_hash="h"), turn(name, of, state="running")
    first = event(await stores.events.last_seq(one.conversation_id) + 1, one, 1)
    new = None if await stores.conversations.get(one.conversation_id, ANN) else conversation(of)
    await stores.turns.accept(one, create=new, key=key, events=[first])


async def finish(stores: Stores, name: str, of: str) -> None:
    one = turn(name, of)
    last = await stores.events.last_seq(one.conversation_id)
    await stores.turns.finish([ended(one)], [last_event(last + 1, one, 2)])


CHANGES: dict[str, Callable[[Stores], Awaitable[None]]] = {
    "accept": lambda stores: accept(stores, "b1", "b"),
    "finish": lambda stores: finish(stores, "a2", "a"),
    "delete": lambda stores: stores.conversations.delete(conversation("a").id, AT),
    "fork": lambda stores: stores.turns.copy_history(
        conversation("a").id, 1, conversation("f", session_id="s1")
    ),
}


async def every_row(database: Database) -> str:
    kept = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
    tables = await texts(database, kept)
    found = {name: await database.rows(f"SELECT * FROM {name}") for name in tables}
    return repr({name: [tuple(row) for row in rows] for name, rows in found.items()})


async def test_a_kill_between_any_two_statements_leaves_a_change_whole_or_absent(
    tmp_path: Path,
) -> None:
    async def filled(database: Database) -> None:
        for name in ("a1", "a2"):
            await accept(stores_on(database), name, "a")
        await finish(stores_on(database), "a1", "a")

    misses = []
    for name, change in CHANGES.items():

        async def work(database: Database, change: Any = change) -> None:
            await change(stores_on(database))

        (tmp_path / name).mkdir()
        states = await crashed_everywhere(
            tmp_path / name, [filled, work], every_row, every=1, fewest=3, opening=open_file
        )
        before, *between, after = states
        assert before != after
        misses += [
            f"{name}, statement {n}"
            for n, state in enumerate(between)
            if state not in (before, after)
        ]
    assert misses == []
