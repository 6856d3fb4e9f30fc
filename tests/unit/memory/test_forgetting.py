"""Forgetting: nothing of it is left anywhere, nothing else is touched, and no turn that goes on brings it back."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio.lowlevel
import pytest

from memory.cases.store import SqlCaseStore
from memory.episodes.episode import EpisodeDraft, Sections
from memory.episodes.episode_worker import EpisodeWorker, ReadTurn
from memory.episodes.store import SqlEpisodeStore
from memory.episodes.turn import Turn, read_turn
from memory.episodes.writer import MemoryWriter
from memory.facts.evidence import Message, said_in
from memory.facts.fact import Fact
from memory.facts.rows import SqlFactStore
from memory.facts.told import NewFact, ToldTurn
from memory.intents.builders import (
    Happening,
    intent_from_llm_response,
    intent_from_memory_injected,
    intent_from_tool_result,
    intent_from_turn_completed,
)
from memory.intents.chronicle import SqlChronicle
from memory.intents.registry import MemoryIntent
from memory.items.scope import WORKSPACE_OWNER, Scope
from memory.record.store import SqlRecordStore
from memory.service.forgetting import Forgetting
from memory.service.transfer import export_lines, read_entries
from memory.stores.sqlite import forgotten as forgotten_module
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import SqlItemStore, put_item_blocking
from tests.support.episodes import AT, dump, opened_on, recorder_on, turn_intents
from tests.support.fact_keepers import keeper_on
from tests.support.recall import make_item

LATER = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
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
        now=lambda: LATER,
        forget_note=None if notes is None else forget_note,
    )


def writer_on(database: Database, *deliver_to: str) -> MemoryWriter:
    store = SqlEpisodeStore(database, lambda: LATER)
    return MemoryWriter(store, deliver_to=deliver_to, now=lambda: LATER)


def worker_on(
    database: Database, *, reading: ReadTurn | None = None, extract: Any = None
) -> EpisodeWorker:
    chronicle = SqlChronicle(database)
    return EpisodeWorker(
        chronicle.unremembered,
        reading or partial(read_turn, chronicle),
        writer_on(database, "vector", "memu").write,
        SqlEpisodeStore(database, lambda: LATER).mark_remembered,
        extract=extract,
    )


async def remember(database: Database, *turn_ids: str, command: str = f"feed {WORD}") -> list[str]:
    """End and remember turns as the gateway does; return the items."""
    for turn_id in turn_ids:
        await recorder_on(database).record_intents(turn_intents(turn_id, command=command))
        await worker_on(database).drain()
    return await ids(database)


async def ids(database: Database) -> list[str]:
    rows = await database.rows("SELECT id FROM items ORDER BY seq")
    return [row["id"] for row in rows]


async def test_nothing_of_it_is_left_and_the_rest_stays(database: Database) -> None:
    await remember(database, "trn_1")
    gone, kept = await remember(database, "trn_2", command="water the plants")
    shown = Happening(owner_id="ann", occurred_at=LATER, turn_id="trn_3")
    await recorder_on(database).record_intent(
        intent_from_memory_injected(shown, ids=[gone], titles=[f"feed {WORD}"])
    )
    assert WORD in await dump(database)
    assert await forgetting_on(database).forget(gone, ANN)
    if database.engine == "sqlite":  # its index has no rows that `dump` would find it in
        found = "SELECT rowid FROM item_words WHERE item_words MATCH ?"
        assert await database.rows(found, (WORD,)) == []
    assert WORD not in await dump(database)
    assert await ids(database) == [kept]
    assert await opened_on(database).store.get(gone, ANN) is None
    forms = await database.rows("SELECT episode FROM episode_forms")
    assert len(forms) == 1
    assert list(await opened_on(database).unremembered()) == []
    page = await SqlChronicle(database).page("ann", limit=50)
    of_a_turn = ("turn.completed", "tool.Bash.ok", "turn.received")
    assert [(one.key, one.forgotten) for one in page.records] == [
        ("memory.forgotten", False),
        ("memory.injected", True),
        *((key, False) for key in of_a_turn),
        *((key, True) for key in of_a_turn),
    ]
    assert gone not in repr(page)


async def test_every_backend_that_may_have_it_is_told_and_what_waits_is_withdrawn(
    database: Database,
) -> None:
    (gone,) = await remember(database, "trn_1")
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


async def test_the_sources_of_what_was_merged_into_it_are_forgotten_too(database: Database) -> None:
    (gone,) = await remember(database, "trn_1", "trn_2")
    assert await forgetting_on(database).forget(gone, ANN)
    assert WORD not in await dump(database)


@pytest.mark.parametrize("turn_id", ["trn_1", "trn_2"])
async def test_no_answer_that_was_shown_a_turn_that_was_merged_into_it_says_it(
    database: Database, turn_id: str
) -> None:
    (gone,) = await remember(database, "trn_1", "trn_2")
    shown = Happening(owner_id="ann", occurred_at=LATER, turn_id="trn_3")
    await recorder_on(database).record_intents(
        [
            intent_from_memory_injected(shown, ids=[turn_id], titles=["Feeding"]),
            intent_from_llm_response(shown, text=f"You fed the {WORD}.", model="m"),
        ]
    )
    assert await forgetting_on(database).forget(gone, ANN)
    assert WORD not in await dump(database)


async def test_only_whose_scope_covers_it_can_forget_it(database: Database) -> None:
    (mine,) = await remember(database, "trn_1")
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
    (gone,) = await remember(database, "trn_1")
    store = opened_on(database).store
    cases = SqlCaseStore(database, lambda: LATER, deliver_to=())
    lines = [
        one
        async for one in export_lines(SqlItemStore(database), store, cases, SqlFactStore(database))
    ]
    for _ in range(2):
        assert await forgetting_on(database).forget(gone, ANN)
        await database.write(
            lambda writer: writer.execute("UPDATE outbox SET status = 'delivered'")
        )
        drafts = [one for one in read_entries(lines) if isinstance(one, EpisodeDraft)]
        await writer_on(database, "vector").write_all(drafts)
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
    (mine,) = await remember(database, "trn_1")
    before = await dump(database)

    def fails(*_: object) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr("memory.service.forgetting.enqueue_again_blocking", fails)
    with pytest.raises(RuntimeError):
        await forgetting_on(database).forget(mine, ANN)
    assert await dump(database) == before


FACT = f"We decided to keep the {WORD} tank at the north wall of room 4711."
KNOWN = make_item("epi_known", FACT, title=f"Where the {WORD} is", kind="episode")


async def know(database: Database) -> None:
    await database.write(lambda writer: put_item_blocking(writer, KNOWN))


async def forget(database: Database) -> None:
    assert await forgetting_on(database).forget(KNOWN.id, ANN)


def turn() -> list[MemoryIntent]:
    """Return the intents of a turn that was shown it and repeated it."""
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


async def remembered(database: Database) -> str:
    rows = await database.rows("SELECT value FROM episodes")
    assert len(rows) == 1, "the turn is remembered all the same"
    return str(rows[0]["value"])


@pytest.mark.parametrize(
    ("moment", "has_model"),
    [("known", False), ("recorded", False), ("read", False), ("recorded", True), ("asked", True)],
)
async def test_it_is_no_part_of_an_episode_whenever_it_goes_and_no_model_is_asked_about_it(
    database: Database, moment: str, *, has_model: bool
) -> None:
    asked: list[str] = []

    async def forget_at(now: str) -> None:
        if now == moment:
            await forget(database)

    async def reading(turn_id: str) -> Turn | None:
        one = await read_turn(SqlChronicle(database), turn_id)
        await forget_at("read")
        return one

    async def extract(draft: EpisodeDraft, reply: str) -> EpisodeDraft:
        asked.append(reply)
        await forget_at("asked")
        return replace(draft, sections=replace(draft.sections, pitfalls=f"- {reply}"))

    await know(database)
    await forget_at("known")
    await recorder_on(database).record_intents(turn())
    await forget_at("recorded")
    await worker_on(database, reading=reading, extract=extract if has_model else None).drain()
    assert len(asked) == (1 if moment == "asked" else 0)
    assert WORD not in await remembered(database)
    assert "make fish" in await remembered(database)


@pytest.mark.parametrize("kind", ["turn", "fact"])
@pytest.mark.parametrize("message", [f"Keep in mind: the {WORD} is blue.", f"记住：{WORD}是蓝色的"])
async def test_a_turn_that_is_forgotten_while_a_model_reads_it_is_no_episode_with_its_words(
    database: Database, message: str, kind: str
) -> None:
    told = make_item("trn_1", message, kind="turn", turn_id="trn_1")
    where = ToldTurn(
        message=message, scope=ANN, conversation_id="cnv_1", turn_id="trn_1", occurred_at=AT
    )
    prove = partial(said_in, messages=[Message("trn_1", message)])
    new = NewFact(text=message, origin="request", evidence=message)
    fact = await keeper_on(database).remember(new, where, prove)
    await database.write(lambda writer: put_item_blocking(writer, told))
    intents = turn_intents("trn_1", command="make fish", message=message)
    await recorder_on(database).record_intents(intents)

    async def extract(draft: EpisodeDraft, reply: str) -> EpisodeDraft:
        gone = told.id if kind == "turn" else fact.id
        assert await forgetting_on(database).forget(gone, ANN)
        return replace(draft, sections=replace(draft.sections, pitfalls=f"- {reply}{message}"))

    await worker_on(database, extract=extract).drain()

    rows = await database.rows("SELECT value FROM episodes")
    assert WORD not in repr([row["value"] for row in rows])
    assert len(rows) == (0 if kind == "turn" else 1), "what a fact's turn did is remembered"


async def test_a_turn_that_is_recorded_afterwards_does_not_tell_what_it_was_shown(
    database: Database,
) -> None:
    await know(database)
    await forget(database)
    await recorder_on(database).record_intents(turn()[:2])
    page = await SqlChronicle(database).page("ann", key="memory.injected", limit=9)
    assert [(one.forgotten, one.text, one.payload) for one in page.records] == [(True, "", {})]
    assert WORD not in await dump(database)
    await recorder_on(database).record_intent(shown())
    assert WORD not in await dump(database), "also when it is recorded again"


@pytest.mark.parametrize("was_searched", [False, True])
async def test_the_answer_that_a_turn_gives_afterwards_is_not_kept(
    database: Database, *, was_searched: bool
) -> None:
    await know(database)
    await forget(database)
    where = Happening(owner_id="ann", occurred_at=LATER, conversation_id="cnv_1", turn_id="trn_2")
    found = intent_from_tool_result(
        where,
        tool_name="mcp__memory__memory_search",
        status="ok",
        index=0,
        tool_use_id="t",
        args={},
        result=KNOWN.id,
    )
    ended = intent_from_turn_completed(
        where, outcome="answered", stop_reason="end_turn", reply=FACT, tool_calls=1, duration_ms=9
    )
    answer = intent_from_llm_response(where, text=FACT, model="m")
    await recorder_on(database).record_intents(
        [turn()[0], found if was_searched else shown(), answer, ended]
    )
    page = await SqlChronicle(database).page("ann", conversation_id="cnv_1", limit=9)
    assert [record.forgotten for record in reversed(page.records)] == [False, True, True, True]
    assert WORD not in await dump(database)


@pytest.mark.parametrize("ends_before", [False, True])
async def test_a_deleted_turn_leaves_no_word_that_looks_like_the_id_of_an_item(
    database: Database, *, ends_before: bool
) -> None:
    said = turn_intents("trn_1", command=f"cannot_{WORD}", message=f"我 cannot_{WORD} 登录")
    record = SqlRecordStore(database, lambda: LATER, deliver_to=[])
    if ends_before:
        await recorder_on(database).record_intents(said)
    await record.put([], without=["trn_1"], deleted=["trn_1"], copies={})
    if not ends_before:
        await recorder_on(database).record_intents([said[0], said[-1]])
    assert WORD not in await dump(database)


async def test_a_turn_that_told_it_and_ends_afterwards_leaves_no_word(database: Database) -> None:
    """As an undo does while the turn that kept it still runs."""
    message = f"Remember that the {WORD} tank is in room 4711."
    told = ToldTurn(
        message=message, scope=ANN, conversation_id="cnv_1", turn_id="trn_2", occurred_at=AT
    )
    prove = partial(said_in, messages=[Message("trn_2", message)])
    new = NewFact(text=f"The {WORD} tank is in room 4711.", origin="request", evidence=message)
    fact = await keeper_on(database).remember(new, told, prove)
    assert await forgetting_on(database).forget(fact.id, ANN)
    await recorder_on(database).record_intents(turn_intents("trn_2", command="ls", message=message))
    item = make_item("trn_2", message, kind="turn", turn_id="trn_2")
    record = SqlRecordStore(database, lambda: LATER, deliver_to=[])
    await record.put([item], without=[], deleted=[], copies={})
    assert WORD not in await dump(database)


async def test_what_is_recorded_while_it_is_forgotten_is_found(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await know(database)
    found = forgotten_module.find_mentions

    async def then_recorded(*given: object) -> forgotten_module.Mentions:
        telling = await found(*given)  # type: ignore[arg-type]
        await recorder_on(database).record_intent(shown())
        return telling

    monkeypatch.setattr("memory.service.forgetting.find_mentions", then_recorded)
    await forget(database)
    assert WORD not in await dump(database)


@pytest.mark.parametrize("kind", ["episode", "fact"])
async def test_naming_somebody_elses_intents_as_sources_does_not_forget_them(
    database: Database, kind: str
) -> None:
    """As what was imported from another person's export does."""
    intents = turn_intents("trn_1", command="ls")
    await recorder_on(database).record_intents(intents)
    told = make_item("trn_1", "please run ls\n→ Two files.", kind="turn", turn_id="trn_1")
    await database.write(lambda writer: put_item_blocking(writer, told))
    draft = EpisodeDraft(
        episode_type="howto",
        title="mine",
        scope=BOB,
        sections=Sections(recipe="Turn the key to the left, then push the door."),
        source_refs=tuple(one.id for one in intents),
    )
    if kind == "episode":
        item_id = (await writer_on(database).write(draft)).episode_id or ""
    else:
        source = Fact(
            id="fac_1",
            text="Likes short lists.",
            scope=BOB,
            origin="person",
            valid_from=AT,
            updated_at=AT,
            turn_id="trn_1",
        )
        assert await keeper_on(database).restore(source)
        item_id = source.id
    assert await forgetting_on(database).forget(item_id, BOB)
    assert await SqlItemStore(database).get("trn_1", ANN) == told
    page = await SqlChronicle(database).page("ann", limit=9)
    assert [one.forgotten for one in page.records] == [False] * len(intents)
