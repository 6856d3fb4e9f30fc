"""One damaged row of events or turns: the server starts, and the other conversations work."""

import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.ids import ConversationId
from gateway.lost_data import DATABASE
from gateway.turns.requests import Accepted
from memory.errors import StoreDamaged
from memory.stores.sqlite.connections import connect_blocking
from tests.support.builders import codes
from tests.support.engine_talk import until
from tests.support.services import kinds, of_kind, running_services, script

LS = {"tool": "Bash", "input": {"command": "ls"}}
CUT = script(LS, {"thinking": "Well."}, {"text": "I have listed "}, {"hang": True})
COLUMNS = {
    "events": ("place", "own_seq", "conversation_id", "turn_id", "n", "type", "data"),
    "turns": (
        *("id", "conversation_id", "user_id", "seq", "state", "message", "created_at"),
        *("started_at", "finished_at", "result", "session_id", "last_entry_id"),
    ),
}
NUMBERS = frozenset({"place", "own_seq", "seq", "n"})
INVALID = b"\xff\xfe{"
"""No UTF-8."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a server left that was killed while a turn ran in each of its conversations."""

    root: Path
    running: Mapping[str, Accepted]
    """The turns that were cut off, by conversation."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    root = tmp_path_factory.mktemp("written")
    running: dict[str, Accepted] = {}

    async def serve() -> None:
        async with running_services(root / "before") as services:
            for _ in range(2):
                done = await services.ask(script(LS, {"text": "完成"}))
                accepted = await services.begin(CUT, done["conversation_id"])
                running[accepted.conversation_id] = accepted
                await services.send(script({"text": "late"}), accepted.conversation_id)
            await services.copy_as_after_a_crash(root / "after")
            for conversation_id in running:
                await services.interrupt(conversation_id)

    anyio.run(serve)
    return Written(root / "after", running)


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to a row: another value in a column, or the row is gone."""

    table: str
    row: int
    """Its place in the table, counted around."""
    column: str
    value: Any
    """None for a column: NULL. A value of the wrong kind is refused by the table, which is no damage."""
    is_gone: bool = False

    def do(self, file: Path) -> str:
        """Damage a database; return the conversation whose row it was."""
        with closing(connect_blocking(file)) as connection:
            connection.execute("PRAGMA foreign_keys=OFF")
            rows = connection.execute(
                f"SELECT rowid AS row, * FROM {self.table} ORDER BY rowid"
            ).fetchall()
            row = rows[self.row % len(rows)]
            if self.is_gone:
                connection.execute(f"DELETE FROM {self.table} WHERE rowid = ?", (row["row"],))
            else:
                value = "?" if not isinstance(self.value, bytes) else "CAST(? AS TEXT)"
                try:
                    connection.execute(
                        f"UPDATE {self.table} SET {self.column} = {value} WHERE rowid = ?",
                        (self.value, row["row"]),
                    )
                except sqlite3.Error:
                    return ""
            return str(row["conversation_id"])


JSON_TEXTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
).map(json.dumps)
TEXTS = st.one_of(
    JSON_TEXTS,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["", "{", INVALID, "completed", "running", "turn.completed", "tool.finished"]),
)


@st.composite
def damages(draw: st.DrawFn) -> Damage:
    table = draw(st.sampled_from(sorted(COLUMNS)))
    column = draw(st.sampled_from(COLUMNS[table]))
    number = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 60)
    value = draw(st.none() | (number if column in NUMBERS else TEXTS))
    return Damage(
        table, draw(st.integers(0, 60)), column, value, draw(st.sampled_from([False] * 5 + [True]))
    )


@given(damage=damages())
@example(Damage("turns", 1, "result", "{"))
@example(Damage("turns", 1, "created_at", "never"))
@example(Damage("turns", 1, "message", INVALID))
@example(Damage("events", 8, "n", 2**63 - 1))
@example(Damage("events", 1, "place", 2**63 - 1))
@example(Damage("events", 1, "own_seq", 2**63 - 1))
def test_the_server_starts_and_the_other_conversations_work(
    written: Written, tmp_path_factory: pytest.TempPathFactory, damage: Damage
) -> None:
    root = tmp_path_factory.mktemp("damaged") / "root"
    shutil.copytree(written.root, root)
    where = damage.do(root / "data" / DATABASE)
    (root / "data" / f"{DATABASE}-open").unlink()  # its log was merged when the damage was done
    anyio.run(_use, root, written, where)
    shutil.rmtree(root)


async def _use(root: Path, written: Written, where: str) -> None:
    with anyio.fail_after(60):
        async with running_services(root) as services:
            await services.views()
            for conversation_id, accepted in written.running.items():
                if conversation_id == where:
                    continue
                cut = await services.result_of(accepted)
                assert cut["stop_reason"] == "engine_crash"
                assert cut["reply"].startswith("I have listed")
                again = await services.ask(script({"text": "still here"}), conversation_id)
                assert (again["outcome"], again["reply"]) == ("answered", "still here")
                turns = await services.messages_of(conversation_id)
                assert [turn.state for turn in turns] == ["completed"] * 4
            fresh = await services.ask(script({"text": "new"}))
            assert fresh["reply"] == "new"


def change(root: Path, statement: str, *values: object) -> None:
    """Run one statement on the database of a server that does not run."""
    file = root / "data" / DATABASE
    with closing(connect_blocking(file)) as connection:
        assert connection.execute(statement, values).rowcount == 1
    file.with_name(f"{DATABASE}-open").unlink()


CALLS = {
    "the start is gone": ("DELETE FROM events WHERE turn_id = ? AND type = 'tool.started'", "ok"),
    "the start is no JSON": (
        "UPDATE events SET data = '{' WHERE turn_id = ? AND type = 'tool.started'",
        "ok",
    ),
    "the end is no JSON": (
        "UPDATE events SET data = '{' WHERE turn_id = ? AND type = 'tool.finished'",
        "unknown",
    ),
    "the end has another shape": (
        "UPDATE events SET data = '{\"status\": 7}' WHERE turn_id = ? AND type = 'tool.finished'",
        "unknown",
    ),
}


@pytest.mark.parametrize("case", CALLS)
async def test_what_can_be_read_of_a_turn_is_told_and_that_something_cannot(
    written: Written, tmp_path: Path, case: str
) -> None:
    statement, status = CALLS[case]
    accepted = next(iter(written.running.values()))
    root = tmp_path / "root"
    await anyio.to_thread.run_sync(shutil.copytree, written.root, root)
    await anyio.to_thread.run_sync(change, root, statement, accepted.turn_id)
    async with running_services(root) as services:
        result = await services.result_of(accepted)
        events = await services.events_of(accepted)
        assert await services.pings["turns"]() is None
    assert [(tool["name"], tool["status"]) for tool in result["tools"]] == [("Bash", status)]
    assert "record_damaged" in codes(result["notices"])
    assert "record_damaged" in codes(of_kind(events, "notice"))
    assert result["reply"].startswith("I have listed")
    assert result["changes"]["complete"] is False
    assert kinds(events).count("turn.completed") == 1


@pytest.mark.parametrize("result", ["[", "[]", "{}"])
async def test_a_turn_whose_end_is_damaged_is_told_by_its_events(
    written: Written, tmp_path: Path, result: str
) -> None:
    accepted = next(iter(written.running.values()))
    root = tmp_path / "root"
    await anyio.to_thread.run_sync(shutil.copytree, written.root, root)
    sql = "UPDATE turns SET result = ? WHERE id = ?"
    await anyio.to_thread.run_sync(change, root, sql, result, accepted.turn_id)
    async with running_services(root) as services:
        told = await services.result_of(accepted)
    assert told["stop_reason"] == "engine_crash"
    assert [tool["status"] for tool in told["tools"]] == ["ok"]


async def test_a_turn_that_cannot_be_read_is_reported_and_the_server_is_ready(
    written: Written, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    accepted = next(iter(written.running.values()))
    root = tmp_path / "root"
    await anyio.to_thread.run_sync(shutil.copytree, written.root, root)
    sql = "UPDATE turns SET created_at = 'never' WHERE id = ?"
    await anyio.to_thread.run_sync(change, root, sql, accepted.turn_id)
    async with running_services(root) as services:
        told = await services.pings["turns"]()
        assert await services.pings["database"]() is None
    assert isinstance(told, Mapping)
    assert "1 turn could not be recovered" in told["detail"]
    assert "turn_damaged" in caplog.messages


async def test_a_message_that_waits_in_a_damaged_conversation_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its turn would hold a place among those that are at work until the server stops."""
    async with running_services(tmp_path) as services:
        running = await services.begin()
        where = running.conversation_id
        waiting = await services.send("hello", where)
        sql = "UPDATE conversations SET created_at = 'never' WHERE id = ?"
        await anyio.to_thread.run_sync(change, tmp_path, sql, where)
        ticket = services.lanes.running(ConversationId(where))
        assert ticket is not None
        ticket.control.stop("user_interrupt")
        await until(lambda: services.lanes.is_empty)
        assert (await services.ask("你好"))["outcome"] == "answered"
        with pytest.raises(StoreDamaged):  # who asks later does not wait for it, either
            await services.result_of(waiting)
    assert "turn_not_begun" in caplog.messages
