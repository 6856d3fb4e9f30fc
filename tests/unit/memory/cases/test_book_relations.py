"""Which cases become one, which are related, and which stay hidden."""

import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from memory.cases import book, changes, similarity
from memory.cases.case import CaseContent
from memory.cases.relations import Nearby
from memory.items.scope import Scope
from tests.support.cases import (
    INCIDENT,
    INCIDENT_ZH,
    OTHER_INCIDENT,
    CaseWorld,
    Listed,
    caller,
    case_world,
    retold,
)


async def test_look_alikes_with_another_root_cause_are_not_merged(world: CaseWorld) -> None:
    await world.upsert(caller(), **INCIDENT)
    other = await world.upsert(
        caller("cnv_2"),
        **{**INCIDENT, "root_cause": "a deadlock between the order and the stock tables"},
    )
    assert other.status == "created"
    assert await world.count() == 2


async def test_what_is_recorded_already_is_not_recorded_twice(world: CaseWorld) -> None:
    one = (await world.upsert(caller(), **INCIDENT)).case
    for who in (caller(), caller("cnv_2"), caller(None, by="person")):
        answer = await world.upsert(who, **{**retold(INCIDENT), "confidence": 1})
        assert (answer.status, answer.case) == ("unchanged", one)
    assert await world.count() == 1
    assert world.told == ["changed"]


async def test_the_same_few_words_about_another_service_are_another_case(world: CaseWorld) -> None:
    words = {
        "symptom_summary": "pods restart",
        "diagnosis": "out of memory",
        "root_cause": "the limit is too low",
        "resolution": "raise the limit",
        "confidence": 0.8,
    }
    for service, layer in (("checkout", "jvm"), ("ledger", "os")):
        known = {"related_services": [service], "failure_layer": layer}
        answer = await world.upsert(caller(f"cnv_{service}"), **words, metadata=known)
        assert answer.status == "created"


@pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
@pytest.mark.parametrize("lifecycle", ["rejected", "stale"])
@pytest.mark.parametrize("left_out", ["region", "root_cause"], ids=["with-a-cause", "without"])
async def test_what_search_hides_does_not_come_back_by_another_number(
    world: CaseWorld, incident: Mapping[str, Any], lifecycle: str, left_out: str
) -> None:
    told = {name: text for name, text in incident.items() if name != left_out}
    confidence = {"rejected": 0.3, "stale": 0.8}[lifecycle]
    one = (await world.upsert(caller(), **{**told, "confidence": confidence})).case.case_id
    vote: dict[str, Any] = {"helpful": False} if lifecycle == "rejected" else {"signal": "stale"}
    await world.vote(caller("cnv_2"), one, **vote)
    answer = await world.upsert(caller("cnv_3"), **{**retold(told), "confidence": 1})
    assert (answer.status, answer.case.case_id) == ("unchanged", one)
    assert answer.case.lifecycle == lifecycle
    assert await world.count() == 1
    assert not await world.database.rows("SELECT id FROM items")


async def test_another_cause_scope_or_service_is_another_case(
    world: CaseWorld,
) -> None:
    one = (await world.upsert(caller(), **INCIDENT)).case.case_id
    await world.vote(caller("cnv_2"), one, signal="stale")
    other_cause = {**retold(INCIDENT), "root_cause": "the price import opens too few threads"}
    elsewhere = {**retold(INCIDENT), "metadata": {"related_services": ["ledger"]}}
    for who, told in (
        (caller("cnv_3"), other_cause),
        (caller("cnv_4", environment="staging"), retold(INCIDENT)),
        (caller("cnv_5", app=None), retold(INCIDENT)),
        (caller("cnv_6", owner="bob"), retold(INCIDENT)),
        (caller("cnv_7"), elsewhere),
    ):
        answer = await world.upsert(who, **told)
        assert answer.status == "created", told
        assert one not in {known.case_id for known in answer.similar_cases}


async def test_relations_to_another_apps_case_or_a_stale_one_are_not_told(world: CaseWorld) -> None:
    common = (await world.upsert(caller("cnv_0", app=None), **INCIDENT)).case.case_id
    bank = (await world.upsert(caller("cnv_1", app="bank"), **INCIDENT)).case.case_id
    stale = (await world.upsert(caller("cnv_2", environment="e"), **INCIDENT)).case.case_id
    mine = (await world.upsert(caller("cnv_3"), **INCIDENT)).case.case_id
    everywhere = caller("cnv_4", app=None)
    told = await world.upsert(everywhere, case_id=common, **INCIDENT)
    assert {case.case_id for case in told.similar_cases} == {bank, stale, mine}
    await world.vote(caller("cnv_5"), stale, signal="stale")
    by_person = caller(None, by="person")
    unchanged = await world.upsert(caller("cnv_6"), case_id=common, **INCIDENT)
    updated = await world.upsert(by_person, case_id=common, resolution="close them")
    stored = {relation.case_id for relation in (await world.store.related([common]))[common]}
    assert stored == {bank, stale, mine}
    assert (unchanged.status, updated.status) == ("unchanged", "updated")
    for answer in (unchanged, updated):
        assert [case.case_id for case in answer.similar_cases] == [mine]
    again = await world.upsert(caller("cnv_7"), **retold(INCIDENT))
    assert (again.status, again.case.case_id) == ("unchanged", mine)
    assert [case.case_id for case in again.similar_cases] == [common]


async def test_both_ends_know_of_a_relation_also_after_a_rewriting(world: CaseWorld) -> None:
    first = (await world.upsert(caller(), **INCIDENT)).case.case_id
    second = await world.upsert(caller("cnv_2", environment="staging"), **INCIDENT)
    (relation,) = second.similar_cases
    assert (relation.case_id, relation.relation) == (first, "same_root_cause")
    known = await world.store.related([first])
    assert [relation.case_id for relation in known[first]] == [second.case.case_id]
    rewritten = {**OTHER_INCIDENT, "case_id": first, "metadata": {"failure_layer": "os"}}
    assert (await world.upsert(caller(), **rewritten)).similar_cases == ()
    assert (await world.store.related([second.case.case_id]))[second.case.case_id] == []


class Forgetful(Listed):
    """Candidates that bring nothing any more once they are tired."""

    tired = False

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        nothing = Nearby(cases=())
        return nothing if self.tired else await super().candidates(content, scope, limit)


async def test_what_was_related_stays_so_where_the_search_does_not_bring_it(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as first:
        candidates = Forgetful(first.database, first.store)
        async with case_world(tmp_path, candidates=candidates.candidates) as world:
            one = (await world.upsert(caller(), **INCIDENT)).case.case_id
            other = await world.upsert(caller("cnv_2", environment="staging"), **INCIDENT)
            candidates.tired = True
            answer = await world.upsert(caller(), case_id=one, resolution="close them at once")
            assert [known.case_id for known in answer.similar_cases] == [other.case.case_id]


async def test_a_case_that_many_name_keeps_them_all_when_it_is_rewritten(tmp_path: Path) -> None:
    ids = (f"cas_{n}" for n in range(9))  # of equally near ones the lesser ids are named
    async with case_world(tmp_path, new_id=lambda: next(ids)) as world:
        for n in range(9):
            await world.upsert(caller(f"cnv_{n}", environment=f"e{n}"), **INCIDENT)
        before = {relation.case_id for relation in (await world.store.related(["cas_0"]))["cas_0"]}
        assert before == {f"cas_{n}" for n in range(1, 9)}
        answer = await world.upsert(caller("cnv_0"), case_id="cas_0", resolution="close them")
        assert {case.case_id for case in answer.similar_cases} == before
        after = (await world.store.related(["cas_0"]))["cas_0"]
        assert list(answer.similar_cases) == list(after)


AGAIN = {**INCIDENT, "symptom_summary": "checkout answers 503 after the deploy (10:42)"}
_AT_MOST_S = 20
"""So long a thread that nobody lets go is there at most."""


class Slow:
    """A decision that takes until it is let go, and says when it began."""

    def __init__(self, decide: Callable[..., Any]) -> None:
        self._decide = decide
        self.began, self._let_go = threading.Event(), threading.Event()
        self.was_on_loop = False

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.began.set()
        if threading.current_thread() is threading.main_thread():
            self.was_on_loop = True  # waiting here would hang for good
        else:
            self._let_go.wait(_AT_MOST_S)
        return self._decide(*args, **named)

    def let_go(self) -> None:
        self._let_go.set()


async def begun(slow: Slow) -> None:
    """Wait for it to begin; the loop has to turn for this to end."""
    await anyio.to_thread.run_sync(slow.began.wait, abandon_on_cancel=True)


WORKS: dict[str, Callable[[CaseWorld, str], Coroutine[Any, Any, object]]] = {
    "again": lambda world, _: world.upsert(caller("cnv_2"), **AGAIN),
    "anew": lambda world, _: world.upsert(
        caller("cnv_2"), **{**INCIDENT, "root_cause": "a broken disk"}
    ),
    "rewrite": lambda world, one: world.upsert(caller(), case_id=one, resolution="another pool"),
    "vote": lambda world, one: world.vote(caller("cnv_2"), one, helpful=True),
}


@pytest.mark.parametrize(
    ("room", "name", "work"),
    [
        (book, "fingerprint_of", "again"),
        (similarity, "words", "anew"),
        (changes, "to_item", "anew"),
        (changes, "to_item", "rewrite"),
        (changes, "to_item", "vote"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)).rpartition(".")[2],
)
async def test_the_loop_goes_on_turning_while_it_is_decided(
    world: CaseWorld, monkeypatch: pytest.MonkeyPatch, room: Any, name: str, work: str
) -> None:
    case_id = (await world.upsert(caller(), **INCIDENT)).case.case_id
    await world.upsert(caller("cnv_0"), **OTHER_INCIDENT)
    slow = Slow(getattr(room, name))
    monkeypatch.setattr(room, name, slow)
    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(WORKS[work], world, case_id)
                await begun(slow)
                assert not slow.was_on_loop
                assert (await world.case(case_id)).case_id == case_id
                slow.let_go()
    finally:
        slow.let_go()
    assert not slow.was_on_loop


class Partly(Listed):
    """Candidates of a search that did not take part whole."""

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        del content, scope, limit
        return Nearby(cases=(), degraded=("fulltext_error", "vector_timeout"))


async def test_where_not_all_of_the_search_took_part_the_answer_names_it(tmp_path: Path) -> None:
    async with case_world(tmp_path) as first:
        partly = Partly(first.database, first.store)
        async with case_world(tmp_path, candidates=partly.candidates) as world:
            answer = await world.upsert(caller("cnv_2"), **INCIDENT)
    assert answer.status == "created"
    (told,) = answer.notes
    assert "fulltext_error, vector_timeout" in told
    assert "related cases may be missing" in told
