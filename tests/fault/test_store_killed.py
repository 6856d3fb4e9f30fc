"""The process is killed in the middle of writing: what was acknowledged is there, and whole."""

import sys
from collections import defaultdict
from pathlib import Path

import anyio
import anyio.streams.text
import pytest

from gateway.ids import ConversationId, TurnId
from tests.conformance.suites.conversation_values import ANN, Stores
from tests.support.stores import open_file, stores_on

SCRIPT = Path(__file__).with_name("writing_until_killed.py")
pytestmark = pytest.mark.fault


async def written_until_killed(directory: Path, lines: int) -> dict[str, set[str]]:
    """Run the writer, kill it after so many lines, and give what it had said until its end."""
    said: dict[str, set[str]] = defaultdict(set)
    text = ""
    async with await anyio.open_process(
        [sys.executable, str(SCRIPT), str(directory)], stderr=None
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


async def check(stores: Stores, said: dict[str, set[str]]) -> None:
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
                await check(stores_on(database), said)
                rows = await database.rows("PRAGMA integrity_check")
                assert rows[0][0] == "ok"
                last = await stores_on(database).events.last_seq()
                gone = await database.rows("SELECT max(seq) AS last FROM events")
                assert last == (gone[0]["last"] or 0)
            said["accepted"] = said["accepted"] or set()
