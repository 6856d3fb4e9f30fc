"""What is forgotten while a turn goes on that was shown it comes back by none of its ways."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.episodes.episode import EpisodeDraft
from memory.episodes.episode_worker import EpisodeWorker
from memory.episodes.writer import MemoryWriter
from memory.forgetting import Forgetting
from memory.intents.builders import (
    Happening,
    intent_from_llm_response,
    intent_from_memory_injected,
)
from memory.intents.registry import MemoryIntent
from memory.intents.turns import ChronicleTurns
from memory.scope import Scope
from memory.stores.sqlite import forgotten as forgotten_module
from memory.stores.sqlite.chronicle import SqliteChronicle
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.episodes import SqliteEpisodeStore
from memory.stores.sqlite.items import put_item_blocking
from tests.support.episodes import AT, dump, open_memory, recorder_on, turn_intents
from tests.support.recall import make_item

LATER = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
ANN = Scope(owner_id="ann")
WORD = "zebrafish"
FACT = f"We decided to keep the {WORD} tank at the north wall of room 4711."
KNOWN = make_item("epi_known", FACT, title=f"Where the {WORD} is", kind="episode")


async def know(database: Database) -> None:
    await database.write(lambda writer: put_item_blocking(writer, KNOWN))


async def forget(database: Database) -> None:
    forgetting = Forgetting(
        database,
        backends=[],
        recording=recorder_on(database).recording,
        now=lambda: LATER,
    )
    assert await forgetting.forget(KNOWN.id, ANN)


def turn() -> list[MemoryIntent]:
    """Give the intents of a turn that was shown it, and said it again."""
    where = Happening(owner_id="ann", occurred_at=AT, conversation_id="cnv_1", turn_id="trn_2")
    received, call, completed = turn_intents("trn_2", command="make fish", message="what now?")
    said = {**call.payload, "result": f"done\n{FACT}"}
    return [
        received,
        intent_from_memory_injected(where, ids=[KNOWN.id], titles=[KNOWN.title]),
        replace(call, payload=said),
        intent_from_llm_response(where, text=f"I ran it. {FACT}", model="m"),
        completed,
    ]


def shown() -> MemoryIntent:
    return turn()[1]


def remembering(database: Database, extraction: "Thinking | None" = None) -> EpisodeWorker:
    store = SqliteEpisodeStore(database, lambda: LATER)
    writer = MemoryWriter(store, deliver_to=[], now=lambda: LATER)
    turns = ChronicleTurns(SqliteChronicle(database))
    extract = None if extraction is None else extraction.extract
    return EpisodeWorker(turns, writer, store.mark_remembered, extract=extract)


async def remembered(database: Database) -> str:
    rows = await database.rows("SELECT value FROM episodes")
    assert len(rows) == 1, "the turn is remembered all the same"
    return str(rows[0]["value"])


class Thinking:
    """A model that takes its time and repeats what it read."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._meanwhile = meanwhile
        self.asked = 0

    async def extract(self, draft: EpisodeDraft, reply: str) -> EpisodeDraft:
        self.asked += 1
        await self._meanwhile()
        return replace(draft, sections=replace(draft.sections, pitfalls=f"- {reply}"))


async def test_a_turn_that_is_recorded_afterwards_does_not_tell_what_it_was_shown(
    database: Database,
) -> None:
    await know(database)
    await forget(database)
    await recorder_on(database).record_intents(turn()[:2])
    page = await SqliteChronicle(database).page("ann", key="memory.injected", limit=9)
    assert [(one.forgotten, one.text, one.payload) for one in page.records] == [(True, "", {})]
    assert WORD not in await dump(database)
    await recorder_on(database).record_intent(shown())
    assert WORD not in await dump(database), "also when it is recorded again"


async def test_what_is_recorded_while_it_is_forgotten_is_found(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await know(database)
    found = forgotten_module.find_mentions

    async def then_recorded(*given: object) -> forgotten_module.Mentions:
        telling = await found(*given)  # type: ignore[arg-type]
        await recorder_on(database).record_intent(shown())
        return telling

    monkeypatch.setattr("memory.forgetting.find_mentions", then_recorded)
    await forget(database)
    assert WORD not in await dump(database)


@pytest.mark.parametrize("forgets_first", [True, False], ids=["before", "after"])
async def test_it_is_no_part_of_the_episode_that_is_made_afterwards(
    database: Database, *, forgets_first: bool
) -> None:
    await know(database)
    steps: Sequence[Callable[[], Awaitable[object]]] = [
        lambda: forget(database),
        lambda: recorder_on(database).record_intents(turn()),
    ]
    for step in steps if forgets_first else steps[::-1]:
        await step()
    await remembering(database).drain()
    assert WORD not in await remembered(database)
    assert "make fish" in await remembered(database)


async def test_it_is_no_part_of_it_either_where_it_goes_while_the_episode_is_made(
    tmp_path: Path,
) -> None:
    class ReadBefore(ChronicleTurns):
        async def turn(self, turn_id: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
            one = await super().turn(turn_id)
            await forget(database)
            return one

    async with open_memory(tmp_path) as database:
        await know(database)
        await recorder_on(database).record_intents(turn())
        store = SqliteEpisodeStore(database, lambda: LATER)
        writer = MemoryWriter(store, deliver_to=[], now=lambda: LATER)
        turns = ReadBefore(SqliteChronicle(database))
        await EpisodeWorker(turns, writer, store.mark_remembered).drain()
        assert WORD not in await remembered(database)


async def test_what_a_model_adds_to_it_meanwhile_is_left_out(database: Database) -> None:
    await know(database)
    await recorder_on(database).record_intents(turn())
    model = Thinking(lambda: forget(database))
    await remembering(database, model).drain()
    assert model.asked == 1
    assert WORD not in await remembered(database)


async def test_no_model_is_asked_about_a_turn_that_was_shown_it(database: Database) -> None:
    await know(database)
    await recorder_on(database).record_intents(turn())
    await forget(database)
    model = Thinking(lambda: forget(database))
    await remembering(database, model).drain()
    assert model.asked == 0
