"""Facts are kept, replaced, forgotten and brought back in the same way on both engines."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from memory.clock import rfc3339
from memory.facts.evidence import Message, said_in
from memory.facts.fact import Fact
from memory.facts.told import NewFact, ToldTurn
from memory.stores.database import SqlDatabase
from tests.conformance.suites.item_values import ANN, AT
from tests.support.episodes import dump, open_memory_in
from tests.support.fact_keepers import forgetting_on, keeper_on
from tests.support.postgres import empty_schema_blocking


class Facts:
    """Facts of a person on an engine."""

    def __init__(self, database: SqlDatabase) -> None:
        self.database = database
        self.forgetting = forgetting_on(database)
        self.keeper = keeper_on(database)

    async def tell(self, text: str, evidence: str, *replaces: str) -> Fact:
        new = NewFact(text=text, origin="request", evidence=evidence, replaces=replaces)
        turn = ToldTurn(
            message=evidence, scope=ANN, conversation_id="c", turn_id=text, occurred_at=AT
        )
        prove = partial(said_in, messages=[Message(text, evidence)])
        return await self.keeper.remember(new, turn, prove)

    async def held(self) -> Sequence[str]:
        holding = await self.keeper.store.holding(ANN.owner_id)
        return [fact.text for fact in reversed(holding)]


@pytest.fixture(params=["sqlite", "postgresql"])
async def facts(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Facts]:
    if request.param == "sqlite":
        async with open_memory_in(tmp_path) as database:
            yield Facts(database)
    else:
        with empty_schema_blocking("memory") as schema:
            async with open_memory_in(schema) as database:
                yield Facts(database)


async def test_what_a_fact_superseded_is_told_as_it_was_and_comes_back(facts: Facts) -> None:
    first = await facts.tell("Desk upstairs.", "my desk is upstairs")
    desk = await facts.tell("Desk downstairs.", "my desk is downstairs", first.id)
    locker = await facts.tell("Locker 12.", "my locker is 12")
    both = await facts.tell("Both in the hall.", "both are in the hall", desk.id, locker.id)
    earlier = await facts.keeper.store.earlier(both.id)
    assert earlier == [[["Desk upstairs.", "Desk downstairs."], ["Locker 12."]]]
    evidence = await facts.keeper.store.evidence_of([both.id])
    assert sorted(evidence) == [
        "both are in the hall",
        "my desk is downstairs",
        "my desk is upstairs",
        "my locker is 12",
    ]
    ids = [fact.id for fact in (first, desk, locker, both)]
    await facts.forgetting.forget_all(ids, ANN.owner_id)
    again = await facts.keeper.write(both.text, ANN, earlier=earlier)
    assert await facts.held() == ["Both in the hall."]
    await facts.forgetting.forget(again.id, ANN)
    assert await facts.held() == ["Desk downstairs.", "Locker 12."]


async def test_a_fact_that_was_corrected_very_often_can_be_forgotten(facts: Facts) -> None:
    """As by a schedule that keeps a number each day."""
    days, at = range(1_100), rfc3339(AT)
    await facts.database.execute_many(
        "INSERT INTO items (id, kind, owner_id, labels, title, summary, body, source, tags,"
        " occurred_at, updated_at, revision, valid_until)"
        " VALUES (?, 'fact', 'ann', '{}', '', '', ?, '', '[]', ?, ?, 1, ?)",
        [(f"fac_{day}", f"Count {day}.", at, at, at) for day in days],
    )
    await facts.database.execute_many(
        "INSERT INTO facts (fact_id, owner_id, form, origin, lasting, superseded_by)"
        " VALUES (?, 'ann', '', 'correction', 0, ?)",
        [(f"fac_{day}", f"fac_{day + 1}") for day in days],
    )
    told = [f"Count {day}." for day in days]
    last = f"fac_{len(days)}"
    assert [old.text for old in await facts.keeper.store.older(last)] == told
    assert await facts.keeper.store.earlier(last) == told


async def test_what_was_told_again_holds_once(facts: Facts) -> None:
    old = await facts.tell("Bus 12.", "the bus is line 12")
    newer = await facts.tell("Bus 13.", "the bus is line 13", old.id)
    again = await facts.keeper.write("Bus 12.", ANN)
    await facts.forgetting.forget(newer.id, ANN)
    assert await facts.held() == ["Bus 12."]
    assert await facts.keeper.store.replaced_by(again.id) == [old.id]


async def test_a_fact_is_restored_by_the_rules_by_which_it_is_kept(facts: Facts) -> None:
    """Once if it is held in all projects, and of no project if it lasts."""
    await facts.keeper.write("Bus 12.", ANN)
    gym = replace(ANN, project_id="gym")
    exported = Fact(
        id="fac_1", text="bus 12", scope=gym, origin="person", valid_from=AT, updated_at=AT
    )
    assert not await facts.keeper.restore(exported)
    lasting = replace(exported, id="fac_2", text="回答要简短", lasting=True)
    assert await facts.keeper.restore(lasting)
    restored = await facts.keeper.store.get("fac_2", ANN)
    assert restored is not None
    assert (restored.scope, restored.lasting) == (ANN, True)
    await facts.keeper.put_profile(ANN.owner_id, "x" * 2_000)
    assert await facts.keeper.restore(replace(lasting, id="fac_3", text="Prefers tea."))
    restored = await facts.keeper.store.get("fac_3", ANN)
    assert restored is not None
    assert (restored.scope, restored.lasting) == (gym, False)


async def test_what_an_agent_elsewhere_forgot_leaves_no_word(facts: Facts) -> None:
    bus = await facts.keeper.write("Bus 12.", ANN)
    call = ToldTurn(
        message="forget my bus", scope=ANN, conversation_id=None, turn_id="req_1", occurred_at=AT
    )
    prove = partial(said_in, messages=[Message("req_1", "forget my bus")])
    assert await facts.keeper.forget([bus.id], "forget my bus", call, prove)
    assert "bus" not in (await dump(facts.database)).casefold()


async def test_what_was_told_again_is_forgotten_with_its_first_telling(facts: Facts) -> None:
    """Both say the same: what they had replaced comes back, and not the words that are forgotten."""
    oldest = await facts.tell("公交是11路。", "the bus is line 11")
    old = await facts.tell("Bus 12.", "the bus is line 12", oldest.id)
    newer = await facts.tell("Bus 13.", "the bus is line 13", old.id)
    again = await facts.keeper.write("bus 12", ANN)
    await facts.forgetting.forget(newer.id, ANN)
    assert await facts.forgetting.forget(again.id, ANN)
    assert await facts.held() == ["公交是11路。"]
    assert await facts.keeper.store.get(old.id, ANN) is None


async def test_what_was_edited_back_to_what_it_replaced_is_forgotten_with_it(facts: Facts) -> None:
    old = await facts.tell("Bus 12.", "the bus is line 12")
    newer = await facts.tell("Bus 13.", "the bus is line 13", old.id)
    await facts.keeper.edit(newer.id, ANN, text="Bus 12.")
    assert await facts.forgetting.forget(newer.id, ANN)
    assert await facts.held() == []
