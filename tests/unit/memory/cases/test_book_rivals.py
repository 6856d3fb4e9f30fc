"""The book of cases: others are faster, somebody gives up waiting, the store is gone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.cases import book
from memory.cases.case import CaseCaller, CaseContent
from memory.cases.relations import Nearby
from memory.cases.results import CaseRefused, FeedbackAnswer
from memory.cases.store import CaseChange
from memory.errors import StoreConflict, StoreUnavailable
from memory.scope import Scope
from memory.stores.sqlite.cases import SqliteCaseStore
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    Listed,
    caller,
    case_world,
    ticking,
)


class Rival(SqliteCaseStore):
    """A store in which somebody else is always faster, so and so often."""

    faster = 0

    async def apply(self, change: CaseChange) -> None:
        if self.faster:
            self.faster -= 1
            raise StoreConflict("somebody was faster")
        await super().apply(change)


@pytest.mark.parametrize("rivals", [1, 7, 8])
async def test_it_decides_anew_where_somebody_was_faster_and_gives_up_in_words(
    tmp_path: Path, rivals: int
) -> None:
    async with case_world(tmp_path) as first:
        store = Rival(first.database, ticking(), deliver_to=())
        async with case_world(
            tmp_path, store=store, candidates=Listed(first.database, store)
        ) as world:
            case_id = (await world.upsert(caller(), **INCIDENT)).case.case_id
            store.faster = rivals
            if rivals < 8:
                answer = await world.vote(caller("cnv_2"), case_id, helpful=True)
                assert answer.case.confidence == 0.9
                return
            with pytest.raises(CaseRefused) as caught:
                await world.vote(caller("cnv_2"), case_id, helpful=True)
            assert caught.value.code == "STORE_UNAVAILABLE"


class Slow:
    """Candidates that nobody gives before they are let go."""

    def __init__(self) -> None:
        self.asking, self.asked = anyio.create_memory_object_stream[str](9)
        self.let_go = anyio.Event()

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        del content, limit
        await self.asking.send(scope.owner_id)
        await self.let_go.wait()
        return Nearby(cases=())


async def test_whoever_gives_up_waiting_does_not_keep_others_from_their_turn(
    tmp_path: Path,
) -> None:
    slow = Slow()
    async with case_world(tmp_path, candidates=slow) as world:
        answers = []

        async def record(who: CaseCaller, incident: Mapping[str, Any]) -> None:
            answers.append(await world.upsert(who, **incident))

        with anyio.fail_after(30), slow.asking, slow.asked:
            async with anyio.create_task_group() as group:
                group.start_soon(record, caller(), INCIDENT)
                assert await slow.asked.receive() == "ann"
                with anyio.move_on_after(0.05):
                    await record(caller("cnv_2"), INCIDENT_ZH)
                group.start_soon(record, caller("cnv_3", owner="bob"), INCIDENT)
                assert await slow.asked.receive() == "bob", "no other of Ann's is looked at yet"
                slow.let_go.set()
            await record(caller("cnv_2"), INCIDENT_ZH)
        assert [answer.status for answer in answers] == ["created"] * 3


async def test_nothing_is_written_where_the_store_is_gone(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        await world.database.close()
        with pytest.raises(StoreUnavailable):
            await world.upsert(caller(), **INCIDENT)
        assert world.told == []


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
    monkeypatch.setattr(book, "_UNREVIEWED_S", 0.05)
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
