"""The process crashes before each statement of remembering: nothing is lost, doubled or half there."""

from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from memory.episodes.episode_worker import EpisodeWorker
from memory.episodes.turn import read_turn
from memory.episodes.writer import MemoryWriter
from memory.facts.evidence import Message, said_in
from memory.facts.fact import Fact
from memory.facts.told import NewFact, ToldTurn
from memory.intents.chronicle import SqlChronicle
from memory.items.ids import derived_id
from memory.items.scope import Scope
from memory.stores.sqlite.database import Database
from tests.support.crash_images import at_points, crashed_everywhere, texts
from tests.support.episodes import AT, opened_on, recorder_on, turn_intents
from tests.support.fact_keepers import forgetting_on, keeper_on

COMMANDS = {
    "trn_1": "deploy the shop",
    "trn_2": "清理归档目录",
    "trn_3": "deploy the shop",  # the same again: merged, and only counted
    "trn_4": "rotate the keys of the ledger",
}

TOLD = (
    "the demo is on Thursday",
    "I am Ana and I like short answers",
    "no, the demo is on Friday now",
)
EPISODES = 3
"""Four turns, of which two say the same."""
pytestmark = pytest.mark.fault


async def queue(database: Database) -> None:
    """Record turns that wait to be remembered."""
    for turn_id, command in COMMANDS.items():
        intents = turn_intents(turn_id, command=command, message=f"please {command}")
        await recorder_on(database).record_intents(intents)


async def remember(database: Database) -> int:
    """Remember whatever waits."""
    store = opened_on(database).store
    writer = MemoryWriter(store, deliver_to=["vector", "memu"], now=lambda: AT)
    chronicle = SqlChronicle(database)
    return await EpisodeWorker(
        chronicle.unremembered, partial(read_turn, chronicle), writer.write, store.mark_remembered
    ).drain()


async def forget(database: Database) -> bool:
    """Forget what the first turn became."""
    return await forgetting_on(database, "vector").forget(
        derived_id("epi", "trn_1"), Scope(owner_id="ann")
    )


def turn_of(number: int, message: str) -> ToldTurn:
    return ToldTurn(
        message=message,
        scope=Scope(owner_id="ann"),
        conversation_id="cnv_1",
        turn_id=f"trn_{number}",
        occurred_at=AT + timedelta(minutes=number),
    )


async def tell(
    database: Database, number: int, message: str, *, lasting: bool = False, replaces: str = ""
) -> Fact:
    """Keep what the message of a turn says."""
    turn = turn_of(number, message)
    new = NewFact(
        text=message,
        origin="request",
        lasting=lasting,
        evidence=message,
        replaces=[replaces] if replaces else [],
    )
    prove = partial(said_in, messages=[Message(turn.turn_id, message)])
    return await keeper_on(database, "vector").remember(new, turn, prove)


async def keep(database: Database) -> None:
    """Keep what each message tells that is not kept yet; the last one replaces the first."""
    kept = set(await texts(database, "SELECT body FROM items WHERE kind = 'fact'"))
    first = derived_id("fac", "ann", "trn_0", TOLD[0])
    if TOLD[0] not in kept:
        await tell(database, 0, TOLD[0])
    if TOLD[1] not in kept:
        await tell(database, 1, TOLD[1], lasting=True)
    if TOLD[2] not in kept:
        await tell(database, 2, TOLD[2], replaces=first)


async def check_whole(database: Database) -> int:
    """Whatever is there is there with all that belongs to it; returns how many turns are marked."""
    episodes = await texts(database, "SELECT episode_id FROM episodes ORDER BY episode_id")
    assert await texts(database, "SELECT id FROM items ORDER BY id") == episodes
    deliveries = Counter(await texts(database, "SELECT item_id FROM outbox"))
    assert deliveries == Counter(dict.fromkeys(episodes, 2))
    marked = await texts(database, "SELECT turn_id FROM ended_turns WHERE remembered_at NOT NULL")
    of_turn = (
        "SELECT DISTINCT episode FROM episode_sources JOIN intents ON intents.id = intent_id"
        " WHERE turn_id = ?"
    )
    for turn_id in COMMANDS:
        assert len(await texts(database, of_turn, turn_id)) == (1 if turn_id in marked else 0)
    return len(marked)


@at_points
async def test_a_kill_between_any_two_statements_leaves_each_turn_whole_or_waiting(
    tmp_path: Path, every: int
) -> None:
    async def check(database: Database) -> int:
        marked = await check_whole(database)
        assert await remember(database) == len(COMMANDS) - marked
        assert await check_whole(database) == len(COMMANDS)
        assert len(await texts(database, "SELECT id FROM episodes")) == EPISODES
        assert await remember(database) == 0
        return marked

    marked_at = await crashed_everywhere(tmp_path, [queue, remember], check, every=every, fewest=20)
    assert marked_at == sorted(marked_at)
    assert set(marked_at) == set(range(len(COMMANDS) + 1))


@at_points
async def test_a_kill_in_the_middle_of_forgetting_forgets_all_or_nothing(
    tmp_path: Path, every: int
) -> None:
    async def check(database: Database) -> bool:
        forgotten = not await texts(database, "SELECT id FROM items WHERE body LIKE '%shop%'")
        told = await texts(database, "SELECT backend FROM outbox WHERE operation = 'forget'")
        assert sorted(told) == (["memu", "vector"] if forgotten else [])
        assert len(await texts(database, "SELECT id FROM episodes")) == EPISODES - forgotten
        waits = "SELECT id FROM outbox WHERE operation = 'put'"
        assert len(await texts(database, waits)) == 2 * (EPISODES - forgotten)
        left = "SELECT id FROM intents WHERE payload LIKE '%shop%' OR text LIKE '%shop%'"
        assert bool(await texts(database, left)) is not forgotten
        noted = await texts(database, "SELECT id FROM intents WHERE key = 'memory.forgotten'")
        assert len(noted) == int(forgotten)
        assert await forget(database) is not forgotten
        assert await remember(database) == 0, "it does not come back"
        return forgotten

    steps = [queue, remember, forget]
    outcomes = await crashed_everywhere(tmp_path, steps, check, every=every, fewest=4)
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


async def check_facts(database: Database) -> list[str]:
    """Each fact has its item. Returns what ended."""
    facts = await texts(database, "SELECT fact_id FROM facts ORDER BY fact_id")
    assert facts == await texts(database, "SELECT id FROM items WHERE kind = 'fact' ORDER BY id")
    return await texts(database, "SELECT id FROM items WHERE valid_until NOT NULL ORDER BY id")


@at_points
async def test_a_kill_while_facts_are_kept_leaves_each_message_whole_or_untouched(
    tmp_path: Path, every: int
) -> None:
    async def check(database: Database) -> None:
        await check_facts(database)
        ids = "SELECT ids.value FROM intents, json_each(payload, '$.ids') AS ids WHERE intents.key = 'memory.saved'"
        facts = await texts(database, "SELECT fact_id FROM facts")
        assert sorted(await texts(database, ids)) == sorted(facts)
        replaced = "SELECT fact_id FROM facts WHERE superseded_by IN (SELECT fact_id FROM facts)"
        assert await check_facts(database) == await texts(database, replaced)
        await keep(database)
        assert len(await check_facts(database)) == 1
        (profile,) = await texts(database, "SELECT text FROM profiles")
        assert profile == "- I am Ana and I like short answers"
        assert len(await texts(database, "SELECT fact_id FROM facts")) == len(TOLD)

    await crashed_everywhere(tmp_path, [keep], check, every=every, fewest=len(TOLD))


@at_points
async def test_a_kill_after_a_call_that_forgot_leaves_all_or_nothing_and_is_told_at_the_next_start(
    tmp_path: Path, every: int
) -> None:
    told = ["my locker is number 12", "my locker is number 14", "the gym's locker room opens at 6"]
    words = "forget my locker number"

    async def keep_lockers(database: Database) -> None:
        first = await tell(database, 0, told[0])
        await tell(database, 1, told[1], replaces=first.id)
        await tell(database, 2, told[2])

    async def forget_one(database: Database) -> None:
        turn, keeper = turn_of(3, words), keeper_on(database, "vector")
        (fact,) = [one for one in await keeper.store.holding("ann") if one.text == told[1]]
        prove = partial(said_in, messages=[Message(turn.turn_id, words)])
        await keeper.forget([fact.id], words, turn, prove)

    async def check(database: Database) -> bool:
        facts = await texts(database, "SELECT body FROM items WHERE kind = 'fact'")
        stands: list[object] = []
        for _ in range(2):
            kept = await keeper_on(database, "vector").conclude(
                turn_of(3, words), remembered=False, forgot=False
            )
            stands = [(one.text, one.earlier) for one in kept.forgotten]
            assert kept.nothing_forgotten is (not stands)
            assert stands in ([], [(told[1], [told[0]])])
        if stands:
            assert facts == [told[2]], "the earlier value goes in the same transaction"
        await recorder_on(database).record_intents(turn_intents("trn_3", command="ls"))
        assert not await texts(database, "SELECT told FROM forgotten_on_request")
        return bool(stands)

    steps = [keep_lockers, forget_one]
    outcomes = await crashed_everywhere(tmp_path, steps, check, every=every, fewest=4)
    assert set(outcomes) == {False, True}
