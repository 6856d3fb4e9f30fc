"""The four tools: each wrong call has its code, none raises, and together they work on the real search."""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from memory.background import NoOthers
from memory.cases import unit_of_work
from memory.cases.case import Case, CaseCaller, CaseContent
from memory.cases.case_reader import CaseReader
from memory.cases.relations import Nearby
from memory.cases.results import Refusal, RenderAnswer, SearchAnswer, UpsertAnswer
from memory.cases.store import SqlCaseStore
from memory.cases.tools import CaseTools
from memory.errors import StoreUnavailable
from memory.items.scope import Scope
from memory.service.memory import Memory
from tests.support.cases import INCIDENT, OTHER_INCIDENT, CaseWorld, caller, case_world, ticking
from tests.support.memories import whole_memory


class Asked:
    """A finder that notes who asked."""

    def __init__(self) -> None:
        self.by: list[CaseCaller] = []
        self.counts: list[object] = []

    async def find(
        self,
        caller: CaseCaller,
        query: object,
        top_k: object = 5,
        *,
        deadline_s: float | None = None,
    ) -> SearchAnswer:
        del query
        self.counts.append(top_k)
        assert deadline_s is not None
        await anyio.lowlevel.checkpoint()
        self.by.append(caller)
        return SearchAnswer(cases=[])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWorld:
    """Tools on a world, and who reached the finder."""

    world: CaseWorld
    tools: CaseTools
    finder: Asked

    async def record(self, who: CaseCaller | None = None, **fields: Any) -> Case:
        """Record a case."""
        answer = await self.tools.upsert(who or caller(), {**INCIDENT, **fields})
        assert isinstance(answer, UpsertAnswer)
        return answer.case


@asynccontextmanager
async def tool_world(
    directory: Path, *, limit_s: float = 10, **options: Any
) -> AsyncIterator[ToolWorld]:
    async with case_world(directory, **options) as world:
        finder = Asked()
        tools = CaseTools(world.book, finder.find, CaseReader(world.store), limit_s=limit_s)
        yield ToolWorld(world=world, tools=tools, finder=finder)


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[ToolWorld]:
    async with tool_world(tmp_path) as one:
        yield one


CALLS: dict[tuple[str, str], list[tuple[Any, ...]]] = {
    ("MISSING_CASE", "upsert"): [(None,), ({},)],
    ("INVALID_CASE", "upsert"): [
        ("text",),
        ({"diagnosis": 7},),
        ({**INCIDENT, "resolution": "待补充"},),
    ],
    ("CASE_NOT_FOUND", "upsert"): [({**INCIDENT, "case_id": "cas_madeup"},)],
    ("MISSING_CASE_ID", "feedback"): [(None, True), ("  ", True), (7, True)],
    ("INVALID_FEEDBACK", "feedback"): [
        ("cas_1",),
        ("cas_1", "yes"),
        *(("cas_1", None, signal) for signal in ("great", ["stale"], "")),
    ],
    ("CASE_NOT_FOUND", "feedback"): [("cas_madeup", True), ("half a letter \ud800", True)],
    ("MISSING_CASE_ID", "render"): [(None,), ([],), ([None],), ({"a": 1},)],
    ("TOO_MANY_CASES", "render"): [([f"cas_{n}" for n in range(6)],)],
    ("CASE_NOT_FOUND", "render"): [(["cas_madeup", "\ud800"],)],
}


async def test_a_wrong_call_is_answered_with_its_code_and_a_sentence(opened: ToolWorld) -> None:
    misses = []
    for (code, tool), calls in CALLS.items():
        for arguments in calls:
            answer = await getattr(opened.tools, tool)(caller(), *arguments)
            assert isinstance(answer, Refusal), (tool, arguments)
            if answer.code != code or not 10 < len(answer.message) < 200:
                misses.append((tool, arguments, answer))
    assert misses == []
    assert await opened.world.count() == 0
    assert opened.world.told == []


Call = Callable[[CaseTools, CaseCaller, str], Coroutine[Any, Any, Any]]
ALL_FOUR: list[Call] = [
    lambda tools, who, _: tools.search(who, "503"),
    lambda tools, who, case_id: tools.upsert(who, {"case_id": case_id, "diagnosis": "again"}),
    lambda tools, who, case_id: tools.feedback(who, case_id, helpful=True),
    lambda tools, who, case_id: tools.render(who, [case_id]),
]


async def test_default_empty_and_missing_mean_any_for_all_four_tools(opened: ToolWorld) -> None:
    for nothing in (None, "", "  ", "default", "DEFAULT"):
        who = caller("cnv_2", app=nothing, environment=nothing)
        one = await opened.record(who)
        for call in ALL_FOUR:
            assert not isinstance(await call(opened.tools, who, one.case_id), Refusal)
    assert {asked.scope for asked in opened.finder.by} == {Scope(owner_id="ann")}


async def test_an_impossible_scope_is_refused_and_anothers_case_is_not_there_by_its_id_either(
    opened: ToolWorld,
) -> None:
    one = await opened.record()
    impossible = [caller(app=app) for app in ("x" * 201, "two\nlines", "nul\0")]
    others = [caller("cnv_2", owner="bob"), caller("cnv_2", app="bank")]
    expected = [("INVALID_SCOPE", who, call) for who in impossible for call in ALL_FOUR]
    expected += [("CASE_NOT_FOUND", who, call) for who in others for call in ALL_FOUR[1:]]
    for code, who, call in expected:
        answer = await call(opened.tools, who, one.case_id)
        assert isinstance(answer, Refusal)
        assert answer.code == code, who
    assert await opened.world.case(one.case_id) == one


async def test_an_id_that_can_be_nobodys_is_told_in_short(opened: ToolWorld) -> None:
    answer = await opened.tools.render(caller(), ["x" * 100_000])
    assert isinstance(answer, Refusal)
    assert answer.details == {"missing": ["x" * 100]}


async def test_cases_come_whole_in_the_order_of_the_ids(opened: ToolWorld) -> None:
    first = (await opened.record()).case_id
    second = (await opened.record(caller("cnv_2"), **OTHER_INCIDENT)).case_id
    await opened.tools.feedback(caller("cnv_3"), first, helpful=True)
    answer = await opened.tools.render(caller("cnv_5"), [second, "cas_none", first, second])
    assert isinstance(answer, RenderAnswer)
    assert [each_case.case.case_id for each_case in answer.cases] == [second, first]
    assert answer.missing == ("cas_none",)
    whole = answer.cases[1]
    assert [entry.event for entry in whole.history] == ["created", "feedback"]
    assert (whole.feedback.helpful, whole.feedback.conversations) == (1, 1)
    assert INCIDENT["root_cause"] in whole.markdown
    assert isinstance(await opened.tools.render(caller(), first), RenderAnswer)


class Unwritable(SqlCaseStore):
    """A store that cannot note what was shown: it fails, or never ends."""

    failing = "fails"

    async def note_shown(self, voter: str, case_ids: Sequence[str]) -> None:
        if self.failing != "fails":
            await anyio.sleep_forever()
        raise StoreUnavailable("It cannot be written.")


@pytest.mark.parametrize("failing", ["fails", "never ends"])
async def test_a_case_is_read_where_that_cannot_be_noted(
    opened: ToolWorld, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    monkeypatch.setattr(unit_of_work, "_NOTE_SHOWN_S", 0.01)
    monkeypatch.setattr(Unwritable, "failing", failing)
    one = await opened.record()
    store = Unwritable(opened.world.database, ticking(), deliver_to=())
    with anyio.fail_after(30):
        whole, missing = await CaseReader(store).whole(caller("cnv_2"), [one.case_id])
    assert ([whole_case.case for whole_case in whole], missing) == ([one], [])


@pytest.mark.parametrize(
    ("signal", "lifecycle", "confidence"), [("stale", "stale", 0.8), ("rollback", "rejected", 0.2)]
)
async def test_what_search_does_not_show_says_so_when_it_is_read(
    opened: ToolWorld, signal: str, lifecycle: str, confidence: float
) -> None:
    one = await opened.record(confidence=confidence)
    related = await opened.record(caller("cnv_2", environment="staging"))
    await opened.tools.feedback(caller("cnv_3"), one.case_id, signal=signal)
    answer = await opened.tools.render(caller("cnv_4"), [one.case_id, related.case_id])
    assert isinstance(answer, RenderAnswer)
    wrong, right = answer.cases
    assert wrong.case.lifecycle == lifecycle
    assert lifecycle.upper() in "\n".join(wrong.markdown.splitlines()[:4]).upper()
    assert one.case_id not in right.markdown
    assert right.similar_cases == ()


async def test_relations_are_shown_from_both_ends_within_the_callers_app(opened: ToolWorld) -> None:
    anywhere = caller("cnv_0", app=None, environment=None)
    common = await opened.record(anywhere)
    shop = await opened.record(caller("cnv_1"))
    bank = await opened.record(caller("cnv_2", app="bank"))
    seen = {}
    for name, who in (("shop", caller()), ("any", anywhere)):
        answer = await opened.tools.render(who, [common.case_id])
        assert isinstance(answer, RenderAnswer)
        seen[name] = {each_case.case_id for each_case in answer.cases[0].similar_cases}
        assert (bank.case_id in answer.cases[0].markdown) == (name == "any")
    assert seen == {"shop": {shop.case_id}, "any": {shop.case_id, bank.case_id}}


async def test_without_the_store_the_answer_says_so(opened: ToolWorld) -> None:
    await opened.world.database.close()
    for call in ALL_FOUR[1:]:
        answer = await call(opened.tools, caller(), "cas_1")
        assert isinstance(answer, Refusal)
        assert answer.code == "STORE_UNAVAILABLE"


class Hanging:
    """Candidates that never come."""

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        del content, scope, limit
        await anyio.sleep_forever()
        raise AssertionError("nobody lets it go")


async def test_the_time_limit_bounds_whoever_waits_for_his_turn_too(tmp_path: Path) -> None:
    async with tool_world(tmp_path, limit_s=0.1, candidates=Hanging().candidates) as opened:
        answers: list[Any] = []

        async def record(n: int) -> None:
            answers.append(await opened.tools.upsert(caller(f"cnv_{n}"), INCIDENT))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for n in range(5):
                    group.start_soon(record, n)
        assert [answer.code for answer in answers] == ["TOOL_TIMEOUT"] * 5


async def test_a_cancelled_call_is_cancelled_and_no_answer(tmp_path: Path) -> None:
    async with tool_world(tmp_path, candidates=Hanging().candidates) as opened:
        with anyio.move_on_after(0.05) as scope:
            await opened.tools.upsert(caller(), INCIDENT)
        assert scope.cancelled_caught


async def record(memory: Memory, who: CaseCaller, incident: Any) -> Case:
    answer = await memory.cases.upsert(who, dict(incident))
    assert isinstance(answer, UpsertAnswer)
    return answer.case


async def test_twenty_near_duplicates_at_once_are_one_case_by_the_real_search(
    tmp_path: Path,
) -> None:
    async with whole_memory(tmp_path, serves_vectors=False) as memory:
        await record(memory, caller("cnv_x"), OTHER_INCIDENT)
        ids = []

        async def tell(n: int) -> None:
            symptom = f"{INCIDENT['symptom_summary']} at 10:{n:02d} on checkout-7f{n:02d}"
            incident = {**INCIDENT, "symptom_summary": symptom}
            ids.append((await record(memory, caller(f"cnv_{n}"), incident)).case_id)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for n in range(20):
                    group.start_soon(tell, n)
        assert len(set(ids)) == 1


class OneByOne(NoOthers):
    """The duties of two servers of one process."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:
        assert what == "cases of ann"
        async with self._lock:
            yield


async def test_near_duplicates_at_once_at_two_servers_are_one_case(tmp_path: Path) -> None:
    given: dict[str, Any] = {"serves_vectors": False, "duties": OneByOne()}
    async with whole_memory(tmp_path, **given) as here, whole_memory(tmp_path, **given) as there:
        await record(here, caller("cnv_x"), OTHER_INCIDENT)
        ids = []

        async def tell(memory: Memory, n: int) -> None:
            symptom = f"{INCIDENT['symptom_summary']} at 10:{n:02d} on checkout-7f{n:02d}"
            incident = {**INCIDENT, "symptom_summary": symptom}
            ids.append((await record(memory, caller(f"cnv_{n}"), incident)).case_id)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for n in range(8):
                    group.start_soon(tell, (here, there)[n % 2], n)
        assert len(set(ids)) == 1
