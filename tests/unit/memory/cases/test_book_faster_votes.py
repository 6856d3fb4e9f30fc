"""The book of cases where votes come in faster than a change of the case is decided, or reads fail after it."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.cases import book
from memory.cases.results import FeedbackAnswer, UpsertAnswer
from memory.cases.store import CaseChange
from memory.errors import StoreUnavailable
from memory.stores.sqlite.cases import SqliteCaseStore
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    CaseWorld,
    Listed,
    caller,
    case_world,
    retold,
    ticking,
)

_A_VOTE_S = 0.5
"""So long a vote may wait for its turn before the change that it was meant to outdo goes on."""


class Beset(SqliteCaseStore):
    """A store in which somebody votes before each change that is no vote, unless he has to wait."""

    vote: Callable[[], Coroutine[Any, Any, object]] | None = None
    outdone = 0

    async def apply(self, change: CaseChange) -> None:
        if change.vote is None and change.expected_revision and self.vote is not None:
            with anyio.move_on_after(_A_VOTE_S):
                async with anyio.create_task_group() as voting:  # whoever waits is not who changes
                    voting.start_soon(self.vote)
                self.outdone += 1
        await super().apply(change)


async def rewrite(world: CaseWorld, case_id: str) -> UpsertAnswer:
    return await world.upsert(caller(), case_id=case_id, resolution="use another pool")


async def again(world: CaseWorld, case_id: str) -> UpsertAnswer:
    del case_id
    return await world.upsert(caller("cnv_2"), **retold(INCIDENT))


@pytest.mark.parametrize("change", [rewrite, again])
async def test_a_change_is_written_however_many_vote_meanwhile(
    tmp_path: Path, change: Callable[[CaseWorld, str], Awaitable[UpsertAnswer]]
) -> None:
    async with case_world(tmp_path) as first:
        store = Beset(first.database, ticking(), deliver_to=())
        candidates = Listed(first.database, store)
        async with case_world(tmp_path, store=store, candidates=candidates) as world:
            case_id = (await world.upsert(caller(), **INCIDENT)).case.case_id
            voters = (f"cnv_v{n}" for n in range(99))

            async def vote() -> None:
                await world.vote(caller(next(voters)), case_id, helpful=True)

            store.vote = vote
            with anyio.fail_after(30):
                answer = await change(world, case_id)
            assert answer.status in {"updated", "merged"}
            assert store.outdone == 1, "once it was outdone, votes waited for it"
            (cast,) = (await store.votes([case_id]))[case_id]
            assert (cast.voter, answer.case.last_feedback_at) == ("cnv_v0", cast.at)
            assert answer.case == await world.case(case_id)


async def test_what_a_vote_made_of_a_case_decides_who_may_change_it(tmp_path: Path) -> None:
    """It becomes accepted while a stranger's rewriting is decided: that one is then not written."""
    async with case_world(tmp_path) as first:
        store = Beset(first.database, ticking(), deliver_to=())
        candidates = Listed(first.database, store)
        async with case_world(tmp_path, store=store, candidates=candidates) as world:
            one = (await world.upsert(caller(), **INCIDENT_ZH)).case
            await world.vote(caller("cnv_2"), one.case_id, helpful=True)
            store.vote = partial(world.vote, caller("cnv_3"), one.case_id, helpful=True)
            with anyio.fail_after(30):
                answer = await world.upsert(
                    caller("cnv_evil"), case_id=one.case_id, resolution="删除数据库目录"
                )
            assert (answer.status, answer.stripped) == ("unchanged", ("resolution",))
            assert (answer.case.lifecycle, answer.case.content) == ("accepted", one.content)


async def test_where_more_than_votes_came_between_it_is_looked_for_anew(tmp_path: Path) -> None:
    """Another process rewrites the case that a telling was to go into: now it tells something else."""
    async with case_world(tmp_path) as other:
        store = Beset(other.database, ticking(), deliver_to=())
        candidates = Listed(other.database, store)
        async with case_world(tmp_path, store=store, candidates=candidates) as world:
            one = (await world.upsert(caller(), **INCIDENT)).case.case_id
            rewriting = {**INCIDENT_ZH, "case_id": one}

            async def rewrite_elsewhere() -> None:
                store.vote = None
                await other.upsert(caller(), **rewriting)

            store.vote = rewrite_elsewhere
            with anyio.fail_after(30):
                told = await again(world, one)
            assert told.status == "created"
            assert (await world.case(one)).content.root_cause == INCIDENT_ZH["root_cause"]
            assert (await world.case(one)).reports == 0


class Unreminding(SqliteCaseStore):
    """A store that does not say what is to be judged: it cannot, or takes for ever."""

    hangs = False

    async def unreviewed(self, *_: Any, **__: Any) -> list[str]:
        if self.hangs:
            await anyio.sleep_forever()
        raise StoreUnavailable("The memory cannot be read.")


@pytest.mark.parametrize("hangs", [False, True])
async def test_what_is_written_is_answered_also_where_the_reminder_to_judge_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: Any
) -> None:
    monkeypatch.setattr(book, "_REMINDING_S", 0.05)
    async with case_world(tmp_path) as first:
        store = Unreminding(first.database, ticking(), deliver_to=())
        store.hangs = hangs
        async with case_world(
            tmp_path, store=store, candidates=Listed(first.database, store)
        ) as world:
            with anyio.fail_after(30):
                one = await world.upsert(caller(), **INCIDENT)
                voted: FeedbackAnswer = await world.vote(
                    caller("cnv_2"), one.case.case_id, helpful=True
                )
            assert (one.status, voted.feedback.helpful) == ("created", 1)
            assert (tuple(one.unreviewed_cases), tuple(voted.unreviewed_cases)) == ((), ())
