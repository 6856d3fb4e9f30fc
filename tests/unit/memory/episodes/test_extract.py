"""What a model adds to an episode, and that it cannot do harm."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from memory.episodes.episode import EpisodeDraft, Sections
from memory.episodes.extract import EXTRACTION_GUARD, Extractor
from memory.scope import Scope
from memory.small_model import ModelUnavailable

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


@pytest.mark.parametrize(
    "answer",
    [
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
    ],
    ids=range(12),
)
async def test_an_answer_of_another_form_changes_nothing(answer: Any) -> None:
    assert await extractor(Model(answer)).extract(DRAFT, "") is DRAFT


@pytest.mark.parametrize(
    "sentence",
    [
        "The parameter schema of mcp__ata__article_query is {topic: string}.",
        "article_query takes the argument topic.",
        "猜测的调用格式是先 topic 再 page。",
        "The pool must be 500 connections.",
        "ok",
        "",
        "x" * 401,
    ],
    ids=range(7),
)
async def test_what_must_not_be_saved_or_was_made_up_is_left_out(sentence: str) -> None:
    model = Model(json.dumps({"decisions": [sentence], "pitfalls": []}))
    assert await extractor(model).extract(DRAFT, "") is DRAFT


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
