"""Forgetting: nothing of it is left anywhere, and nothing else is touched."""

from datetime import UTC, datetime

import anyio.lowlevel
import pytest

from memory.episodes.episode import EpisodeDraft
from memory.episodes.episode_worker import EpisodeWorker
from memory.episodes.writer import MemoryWriter
from memory.forgetting import Forgetting
from memory.intents.builders import Happening, intent_from_memory_injected
from memory.intents.turns import ChronicleTurns
from memory.scope import WORKSPACE_OWNER, Scope
from memory.stores.sqlite.cases import SqliteCaseStore
from memory.stores.sqlite.chronicle import SqliteChronicle
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import SqliteItemStore, put_item_blocking
from memory.transfer import export_lines, read_entries
from tests.support.episodes import dump, opened_on, recorder_on, turn_intents
from tests.support.recall import make_item

AT = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
ANN, BOB = Scope(owner_id="ann"), Scope(owner_id="bob")
WORD = "zebrafish"


def forgetting_on(database: Database, notes: list[str] | None = None) -> Forgetting:
    async def forget_note(item_id: str, owner_id: str) -> bool:
        assert notes is not None
        await anyio.lowlevel.checkpoint()
        notes.append(f"{item_id} for {owner_id}")
        return True

    return Forgetting(
        database,
        backends=["vector"],
        recording=recorder_on(database).recording,
        now=lambda: AT,
        forget_note=None if notes is None else forget_note,
    )


async def remember(database: Database, turn_id: str, command: str) -> None:
    """Have a turn end and be remembered, as the gateway has it."""
    await recorder_on(database).record_intents(turn_intents(turn_id, command=command))
    store = opened_on(database).store
    writer = MemoryWriter(store, deliver_to=["vector", "memu"], now=lambda: AT)
    await EpisodeWorker(
        ChronicleTurns(SqliteChronicle(database)), writer, store.mark_remembered
    ).drain()


async def ids(database: Database) -> list[str]:
    rows = await database.rows("SELECT id FROM items ORDER BY seq")
    return [row["id"] for row in rows]


async def test_nothing_of_it_is_left_and_the_rest_stays(database: Database) -> None:
    await remember(database, "trn_1", f"feed {WORD}")
    await remember(database, "trn_2", "water the plants")
    gone, kept = await ids(database)
    shown = Happening(owner_id="ann", occurred_at=AT, turn_id="trn_3")
    await recorder_on(database).record_intent(
        intent_from_memory_injected(shown, ids=[gone], titles=[f"feed {WORD}"])
    )
    assert WORD in await dump(database)
    assert await forgetting_on(database).forget(gone, ANN)
    found = "SELECT rowid FROM item_words WHERE item_words MATCH ?"
    assert await database.rows(found, (WORD,)) == []
    assert WORD not in await dump(database)
    assert await ids(database) == [kept]
    assert await opened_on(database).store.get(gone, ANN) is None
    marks = await database.rows("SELECT episode FROM episode_marks GROUP BY episode")
    assert len(marks) == 1
    assert list(await opened_on(database).unremembered()) == []


async def test_every_backend_that_may_have_it_is_told_and_what_waits_is_withdrawn(
    database: Database,
) -> None:
    await remember(database, "trn_1", f"feed {WORD}")
    (gone,) = await ids(database)
    await database.write(
        lambda writer: writer.execute(
            "UPDATE outbox SET status = 'delivered' WHERE backend = 'vector'"
        )
    )
    assert await forgetting_on(database).forget(gone, ANN)
    assert list(await opened_on(database).deliveries(gone)) == [
        f"memu:forget:{gone}:2",
        f"vector:forget:{gone}:2",
        f"vector:put:{gone}:1",
    ]


async def test_the_chronicle_keeps_only_that_something_was_forgotten(database: Database) -> None:
    await remember(database, "trn_1", f"feed {WORD}")
    (gone,) = await ids(database)
    await forgetting_on(database).forget(gone, ANN)
    page = await SqliteChronicle(database).page("ann", limit=50)
    assert [one.key for one in page.records] == [
        "memory.forgotten",
        "turn.completed",
        "tool.Bash.ok",
        "turn.received",
    ]
    assert [one.forgotten for one in page.records] == [False, True, True, True]
    assert gone not in repr(page)


async def test_the_sources_of_what_was_merged_into_it_are_forgotten_too(database: Database) -> None:
    await remember(database, "trn_1", f"feed {WORD}")
    await remember(database, "trn_2", f"feed {WORD}")
    (gone,) = await ids(database)
    assert await forgetting_on(database).forget(gone, ANN)
    assert WORD not in await dump(database)


async def test_only_whose_scope_covers_it_can_forget_it(database: Database) -> None:
    await remember(database, "trn_1", f"feed {WORD}")
    (mine,) = await ids(database)
    before = await dump(database)
    forgetting = forgetting_on(database)
    assert not await forgetting.forget(mine, BOB)
    assert not await forgetting.forget(mine, Scope(owner_id="ann", project_id="other"))
    assert not await forgetting.forget("epi_none", ANN)
    assert await dump(database) == before
    assert await forgetting.forget(mine, ANN)
    assert not await forgetting.forget(mine, ANN), "it is gone already"


async def test_what_comes_back_out_of_an_export_is_delivered_and_forgotten_anew(
    database: Database,
) -> None:
    await remember(database, "trn_1", f"feed {WORD}")
    (gone,) = await ids(database)
    store = opened_on(database).store
    cases = SqliteCaseStore(database, lambda: AT, deliver_to=())
    lines = [one async for one in export_lines(SqliteItemStore(database), store, cases)]
    for _ in range(2):
        assert await forgetting_on(database).forget(gone, ANN)
        await database.write(
            lambda writer: writer.execute("UPDATE outbox SET status = 'delivered'")
        )
        writer = MemoryWriter(store, deliver_to=["vector"], now=lambda: AT)
        drafts = [one for one in read_entries(lines) if isinstance(one, EpisodeDraft)]
        await writer.write_all(drafts)
        rows = await database.rows("SELECT status FROM outbox WHERE operation = 'put'")
        assert [row["status"] for row in rows if row["status"] == "pending"] == ["pending"]
    assert await forgetting_on(database).forget(gone, ANN)
    rows = await database.rows(
        "SELECT status FROM outbox WHERE operation = 'forget' AND backend = 'vector'"
    )
    assert {row["status"] for row in rows} == {"pending"}


async def test_a_note_is_forgotten_by_those_who_keep_notes(database: Database) -> None:
    note = make_item("not_1", "ops", scope=Scope(owner_id=WORKSPACE_OWNER))
    notes: list[str] = []
    await database.write(lambda writer: put_item_blocking(writer, note))
    assert not await forgetting_on(database).forget("not_1", ANN)
    assert await forgetting_on(database, notes).forget("not_1", ANN)
    assert notes == ["not_1 for ann"]


async def test_a_failure_in_the_middle_forgets_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remember(database, "trn_1", f"feed {WORD}")
    (mine,) = await ids(database)
    before = await dump(database)

    def fails(*_: object) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr("memory.forgetting.enqueue_again_blocking", fails)
    with pytest.raises(RuntimeError):
        await forgetting_on(database).forget(mine, ANN)
    assert await dump(database) == before
