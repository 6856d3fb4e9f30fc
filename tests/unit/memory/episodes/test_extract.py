"""Extraction by the model, and the worker that writes episodes."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from memory.episodes.episode import EpisodeDraft, Sections, Written
from memory.episodes.episode_worker import EpisodeWorker
from memory.episodes.extract import EXTRACTION_GUARD, Extractor
from memory.episodes.turn import ToolCall, Turn
from memory.errors import StoreUnavailable
from memory.items.scope import Scope
from memory.remote.small_model import ModelUnavailable
from policies.content.tool_usage import describes_call
from tests.support.episodes import make_turn

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DRAFT = EpisodeDraft(
    episode_type="run",
    title="t",
    scope=Scope(owner_id="ann"),
    sections=Sections(
        context="支付超时，连接池 20 不够", actions="- Bash `curl 10.0.0.9`: ok", pitfalls="- slow"
    ),
    tools=("mcp__ata__article_query",),
)


@pytest.fixture(scope="module", autouse=True)
def _models_are_read() -> None:
    """Read the sentence models once: whichever test ran first would do it on its event loop."""
    describes_call("A sentence.")


class Model:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.waits_forever = False
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        self.asked.append({"system": system, "prompt": prompt, "timeout_s": timeout_s})
        await (anyio.sleep_forever() if self.waits_forever else anyio.lowlevel.checkpoint())
        if isinstance(self.answer, Exception):
            raise self.answer
        return str(self.answer)


def extractor(model: Model, **fields: Any) -> Extractor:
    return Extractor(model, **{"now": lambda: AT, **fields})


async def test_decisions_and_pitfalls_are_added() -> None:
    answer = {
        "decisions": ["连接池改为 20 以上。"],
        "pitfalls": ["The pool was too small.", "slow"],
    }
    model = Model(f"```json\n{json.dumps(answer, ensure_ascii=False)}\n```")
    found = await extractor(model).extract(DRAFT, "done")
    assert found.sections.decisions == "- 连接池改为 20 以上。"
    assert found.sections.pitfalls == "- slow\n- The pool was too small."
    assert found.sections.context == DRAFT.sections.context


async def test_the_prompt_carries_the_guard_and_no_secret() -> None:
    model = Model("{}")
    await extractor(model, timeout_s=7.0, known_secrets=["hunter2-prod"]).extract(
        DRAFT, "password hunter2-prod"
    )
    (asked,) = model.asked
    assert EXTRACTION_GUARD in asked["system"]
    for word in ("schemas", "field mappings", "guess", "call that failed", "workaround", "gotcha"):
        assert word in asked["system"]
    assert "10.0.0.9" not in asked["prompt"]
    assert "hunter2" not in asked["prompt"]
    assert asked["timeout_s"] == 7.0


NOTHING: list[Any] = [
    "",
    "I think we decided something.",
    "[]",
    '{"decisions": "one"}',
    '{"decisions": [1]}',
    '{"decisions": [], "tools": ["x"]}',
    '{"decisions": ["ok"]} and more',
    '{"decisions": ["' + "x" * 30_000 + '"]}',
    "[" * 5000,
    ModelUnavailable("no model"),
    TimeoutError(),
    RuntimeError("a bug on the model's side"),
    *(  # what must not be saved or was made up
        json.dumps({"decisions": [sentence], "pitfalls": []})
        for sentence in (
            "The parameter schema of mcp__ata__article_query is {topic: string}.",
            "article_query takes the argument topic.",
            "猜测的调用格式是先 topic 再 page。",
            "The pool must be 500 connections.",
            "ok",
            "",
            "x" * 401,
        )
    ),
]


async def test_an_answer_of_another_form_and_what_must_not_be_saved_change_nothing() -> None:
    for answer in NOTHING:
        assert await extractor(Model(answer)).extract(DRAFT, "") is DRAFT, answer


async def test_a_slow_model_is_not_waited_for() -> None:
    model = Model("{}")
    model.waits_forever = True
    with anyio.fail_after(30):
        assert await extractor(model, timeout_s=0.01).extract(DRAFT, "") is DRAFT
    assert len(model.asked) == 1


async def test_after_three_failures_nobody_is_asked_for_a_while() -> None:
    moment = AT
    model = Model(ModelUnavailable("no"))
    asking = Extractor(model, now=lambda: moment)
    for _ in range(5):
        assert await asking.extract(DRAFT, "") is DRAFT
    assert len(model.asked) == 3
    moment = AT + timedelta(minutes=6)
    model.answer = '{"decisions": ["Retry twice."]}'
    assert (await asking.extract(DRAFT, "")).sections.decisions == "- Retry twice."


class Memory:
    """A chronicle, a writer and the marks in one."""

    def __init__(self, *turn_ids: str) -> None:
        self.waiting = list(turn_ids)
        self.written: list[str] = []
        self.marked: list[str] = []
        self.bad: set[str] = set()
        self.down = 0
        self.looks = 0
        self.progressed = anyio.Event()

    async def unremembered(self, limit: int) -> Sequence[str]:
        self.looks += 1
        assert self.looks <= 10, "a turn that was dealt with is not marked and comes again"
        return self.waiting[:limit]

    async def turn(self, turn_id: str) -> Turn | None:
        if turn_id in self.bad:
            raise ValueError("a bad turn")
        if turn_id == "gone":
            return None
        calls = () if turn_id.startswith("talk") else (ToolCall(name="Bash", status="ok"),)
        return make_turn(turn_id=turn_id, calls=calls)

    async def write(self, draft: EpisodeDraft, *, remembers_turn: str | None = None) -> Written:
        if self.down:
            self.down -= 1
            self.progress()
            raise StoreUnavailable("down")
        assert remembers_turn is not None
        self.written.append(remembers_turn)
        self.waiting.remove(remembers_turn)
        self.progress()
        if remembers_turn.startswith("dull"):
            return Written(status="refused", reason="progress")
        return Written(status="stored", episode_id=draft.episode_id)

    async def mark_remembered(self, turn_id: str) -> None:
        self.marked.append(turn_id)
        self.waiting.remove(turn_id)

    def progress(self) -> None:
        self.progressed.set()
        self.progressed = anyio.Event()


def worker(memory: Memory, **more: Any) -> EpisodeWorker:
    return EpisodeWorker(
        memory.unremembered, memory.turn, memory.write, memory.mark_remembered, **more
    )


async def test_turns_are_written_oldest_first_and_marked_and_a_refused_one_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = Memory("a", "talk", "gone", "dull", "b")
    with caplog.at_level("INFO"):
        assert await worker(memory).drain() == 5
    assert memory.written == ["a", "dull", "b"]
    assert memory.marked == ["talk", "gone"]
    assert memory.looks == 1, "there were fewer than a look takes"
    (record,) = caplog.records
    assert (record.msg, record.turn_id, record.reason) == ("episode_refused", "dull", "progress")  # type: ignore[attr-defined]
    assert await worker(memory).drain() == 0


async def test_one_bad_turn_does_not_stop_the_rest_and_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = Memory(*(f"t{n}" for n in range(120)))
    memory.bad = {f"t{n}" for n in range(60)}
    remembering = worker(memory)
    assert await remembering.drain() == 60
    assert set(memory.waiting) == memory.bad
    told = [f"{bad.turn_id}: {bad.exc_info[1]}" for bad in caplog.records]  # type: ignore[attr-defined, index]
    assert (len(told), told[0]) == (60, "t0: a bad turn")
    assert await remembering.drain() == 0
    assert len(caplog.records) == 60, "it is not tried again before the next start"


async def test_a_store_that_is_away_is_told_and_nothing_is_skipped() -> None:
    memory = Memory("a", "b")
    memory.down = 1
    remembering = worker(memory)
    with pytest.raises(StoreUnavailable):
        await remembering.drain()
    assert await remembering.drain() == 2


async def test_it_runs_at_its_start_and_whenever_it_is_woken() -> None:
    memory = Memory("a")
    remembering = worker(memory)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            first = memory.progressed
            group.start_soon(remembering.run)
            await first.wait()
            assert memory.written == ["a"]
            second = memory.progressed
            memory.waiting.append("b")
            remembering.wake()
            await second.wait()
            assert memory.written == ["a", "b"]
            group.cancel_scope.cancel()
