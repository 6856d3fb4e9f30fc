"""The chronicle against its suite, and the suite against deliberately wrong chronicles."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.intents import chronicle as sqlite_chronicle
from memory.intents.chronicle import (
    Guard,
    IntentPage,
    IntentRecord,
    Recording,
    SqlChronicle,
    mark_remembered_blocking,
    record_blocking,
    scrub_blocking,
    unguarded,
)
from memory.stores.database import Connection
from memory.stores.sqlite.database import Database
from tests.conformance.suites.cancellation import cut_by_scope, cut_by_task
from tests.conformance.suites.chronicle import AT, ChronicleSuite, OpenChronicle, Opening
from tests.conformance.suites.opened import run_test
from tests.support.episodes import open_memory_in
from tests.support.other_words import CAUGHT, Speak, expect_all_caught, expect_parts_caught
from tests.support.postgres import empty_schema_blocking


def opening(place: Path | str, make: Callable[[Any], SqlChronicle] = SqlChronicle) -> Opening:
    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenChronicle]:
        async with open_memory_in(place) as database:

            async def mark(turn_id: str) -> None:
                await database.write(partial(mark_remembered_blocking, turn_id=turn_id, now=AT))

            async def scrub(intent_ids: Sequence[str]) -> None:
                # by its module: a wrong part may stand there
                await database.write(
                    lambda writer: sqlite_chronicle.scrub_blocking(
                        writer, intent_ids, AT, owner_id="ann"
                    )
                )

            yield OpenChronicle(chronicle=make(database), mark_remembered=mark, scrub=scrub)

    return opens


class TestSqliteChronicle(ChronicleSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


class TestPostgresChronicle(ChronicleSuite):
    @pytest.fixture
    def opens(self) -> Iterator[Opening]:
        with empty_schema_blocking("memory") as schema:
            yield opening(schema)


class OneByOne(SqlChronicle):
    async def record(
        self, recordings: Sequence[Recording], guard: Guard = unguarded, **how: bool
    ) -> Sequence[str]:
        first = await super().record(recordings[:1], guard, **how)
        return [*first, *await super().record(recordings[1:], guard, **how)]


class Overwriting(SqlChronicle):
    async def record(
        self, recordings: Sequence[Recording], guard: Guard = unguarded, **how: bool
    ) -> Sequence[str]:
        def work(writer: Connection) -> list[str]:
            guard(writer)
            for recording in recordings:
                writer.execute("DELETE FROM intents WHERE id = ?", (recording.intent_id,))
                writer.execute(
                    "DELETE FROM pending_context WHERE intent_id = ?", (recording.intent_id,)
                )
            return record_blocking(writer, recordings)

        return await self._database.write(work, **how)


class TellingAll(SqlChronicle):
    """Reports each as new."""

    async def record(
        self, recordings: Sequence[Recording], guard: Guard = unguarded, **how: bool
    ) -> Sequence[str]:
        await super().record(recordings, guard, **how)
        return [recording.intent_id for recording in recordings]


class TrustingCursor(SqlChronicle):
    async def page(self, owner_id: str, *, cursor: str | None = None, **query: Any) -> IntentPage:
        known = cursor if cursor is not None and cursor.isdigit() and len(cursor) < 19 else None
        return await super().page(owner_id, cursor=known, **query)


class Sharing(SqlChronicle):
    """Caches what it read and returns that again."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._read: dict[str, Sequence[IntentRecord]] = {}

    async def intents_of_turn(self, turn_id: str) -> Sequence[IntentRecord]:
        if turn_id not in self._read:
            self._read[turn_id] = await super().intents_of_turn(turn_id)
        return self._read[turn_id]


class InTwoSteps(SqlChronicle):
    """Notes that the turn ended in a transaction of its own."""

    async def record(
        self, recordings: Sequence[Recording], guard: Guard = unguarded, **how: bool
    ) -> Sequence[str]:
        new = await super().record(
            [replace(recording, turn_id=recording.turn_id) for recording in recordings[:-1]],
            guard,
            **how,
        )
        return [*new, *await super().record(recordings[-1:], guard, **how)]


class Unguarded(SqlChronicle):
    async def record(
        self, recordings: Sequence[Recording], guard: Guard = unguarded, **how: bool
    ) -> Sequence[str]:
        del guard
        return await super().record(recordings, unguarded, **how)


class GuardedApart(SqlChronicle):
    """Asks the guard in a transaction before."""

    async def record(
        self, recordings: Sequence[Recording], guard: Guard = unguarded, **how: bool
    ) -> Sequence[str]:
        await self._database.write(guard)
        return await super().record(recordings, unguarded, **how)

    async def consumed(
        self, intent_ids: Sequence[str], turn_id: str, guard: Guard = unguarded
    ) -> None:
        await super().consumed(intent_ids, turn_id)


S = ChronicleSuite()
WRONG: list[tuple[type[SqlChronicle], Any, dict[str, Any]]] = [
    (OneByOne, S.test_what_fails_leaves_nothing_behind, {}),
    *[
        (InTwoSteps, S.test_a_recording_that_is_cancelled_anywhere_is_whole_or_absent, {"cut": cut})
        for cut in (cut_by_scope, cut_by_task)
    ],
    (Overwriting, S.test_recording_again_changes_nothing_in_no_sink, {}),
    (Overwriting, S.test_what_is_scrubbed_tells_nothing_but_that_it_was, {}),
    (TellingAll, S.test_the_same_twice_at_once_is_recorded_once, {}),
    (TrustingCursor, S.test_a_cursor_that_was_not_given_out_is_refused, {"cursor": "x"}),
    (Sharing, S.test_what_was_read_is_a_copy, {}),
    (Unguarded, S.test_what_a_guard_refuses_is_not_written, {}),
    (GuardedApart, S.test_what_a_guard_refuses_is_not_written, {}),
    (GuardedApart, S.test_a_guard_reads_what_the_write_reads, {}),
]


@pytest.mark.parametrize(("make", "test", "case"), WRONG, ids=range(len(WRONG)))
async def test_the_suite_catches_a_wrong_chronicle(
    tmp_path: Path, make: type[SqlChronicle], test: Any, case: dict[str, Any]
) -> None:
    with pytest.raises(CAUGHT):
        await run_test(test, opening(tmp_path, make), **case)


async def test_the_suite_catches_wrong_statements(tmp_path: Path) -> None:
    def speaking(directory: Path, speak: Speak) -> Opening:
        return opening(directory, lambda database: SqlChronicle(speak(database)))

    await expect_all_caught("chronicle", tmp_path, speaking, S)


def _scrub_text_alone(
    connection: sqlite3.Connection, ids: Sequence[str], now: Any, *, owner_id: str | None
) -> None:
    scrub_blocking(connection, [], now, owner_id=owner_id)
    for item_id in ids:
        connection.execute("UPDATE intents SET text = NULL WHERE id = ?", (item_id,))


WRONG_PARTS: list[tuple[str, Any, str, dict[str, Any]]] = [
    ("_IS_TOLD", "1", "what_the_policy_keeps_out", {}),
    ("scrub_blocking", _scrub_text_alone, "what_is_scrubbed", {}),
    (
        "_content_of",
        lambda _, new: {"text": new.text, "payload": "{}", "forgotten_at": None},
        "comes_back_as_it_was_recorded",
        {"text": "plain"},
    ),
]


async def test_the_suite_catches_wrong_parts(tmp_path: Path) -> None:
    await expect_parts_caught(
        tmp_path, opening, S, [(sqlite_chronicle, *wrong) for wrong in WRONG_PARTS]
    )
