"""The side model answers before the person: it may allow what was asked for, and nothing else."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.turns.approval_views import AskKind, AskReason
from gateway.turns.call_review import MAX_CHARS, may_review
from memory.remote.small_model import ModelUnavailable
from tests.support.builders import tool_call
from tests.support.services import RunningServices, of_kind, running_services, script

WRITE = {"tool": "Write", "input": {"file_path": "b.txt", "content": "password=hunter2secret"}}
DONE = {"text": "Done."}


class Model:
    """Answers as it was told, and keeps what it was asked."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.may_answer = anyio.Event()
        self.may_answer.set()

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        self.asked.append(json.loads(prompt))
        await self.may_answer.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer)


def reviews(services: RunningServices, result: str) -> float:
    counter = services.metrics.call_reviews_total.labels(result=result)
    return float(counter._value.get())  # noqa: SLF001  prometheus has no other way


async def test_what_the_model_allows_runs_without_a_question_and_is_told_as_the_models(
    tmp_path: Path,
) -> None:
    model = Model({"allow": True})
    async with running_services(
        tmp_path, ask_model=model, approvals="on", review="model"
    ) as services:
        accepted = await services.send(script(WRITE, DONE))
        result = await services.result_of(accepted)
        events = await services.events_of(accepted)
        lines = await services.journal_of(result)
        assert (services.settings.workspace / "b.txt").exists()
        assert reviews(services, "allowed") == 1
    (use,) = result["tools"]
    assert (use["status"], use["allowed_by"]["by"]) == ("ok", "model")
    assert (use["allowed_by"]["approval_id"], use["allowed_by"]["rule"]) == (None, None)
    assert of_kind(events, "approval.requested") == []
    (resolved,) = of_kind(events, "approval.resolved")
    assert (resolved["by"], resolved["allowed_by"]) == ("model", use["allowed_by"])
    (line,) = (one for one in lines if one["kind"] == "permission")
    assert line["allowed_by"] == use["allowed_by"]
    (asked,) = model.asked
    assert asked["call"]["tool"] == "Write"
    assert asked["call"]["input"]["file_path"] == "b.txt"
    assert "hunter2secret" not in json.dumps(asked)
    assert "candor-script" in asked["request"]


LEFT: tuple[object, ...] = (
    {"allow": False},
    {"allow": "true"},
    {"allow": True, "reason": "fine"},
    [True],
    "I think that it is fine.",
    ModelUnavailable("It is gone."),
)


@pytest.mark.parametrize("answer", LEFT, ids=lambda _: "")
async def test_the_person_is_asked_unless_the_model_plainly_allows(
    tmp_path: Path, answer: object
) -> None:
    async with running_services(
        tmp_path, ask_model=Model(answer), approvals="on", review="model"
    ) as services:
        accepted = await services.send(script(WRITE, DONE))
        question = await services.question_of(accepted)
        assert not (services.settings.workspace / "b.txt").exists()
        await services.answer(question, "allow")
        result = await services.result_of(accepted)
        assert reviews(services, "allowed") == 0
    assert result["tools"][0]["allowed_by"]["by"] == "person"


async def test_nothing_is_reviewed_unless_it_is_switched_on_or_where_it_is_too_long(
    tmp_path: Path,
) -> None:
    model = Model({"allow": True})
    async with running_services(tmp_path / "off", ask_model=model, approvals="on") as services:
        await services.question_of(await services.send(script(WRITE, DONE)))
    long = {"tool": "Write", "input": {"file_path": "b.txt", "content": "x" * MAX_CHARS}}
    async with running_services(
        tmp_path / "long", ask_model=model, approvals="on", review="model"
    ) as services:
        await services.question_of(await services.send(script(long, DONE)))
    assert model.asked == []


async def test_a_turn_that_is_stopped_while_the_model_thinks_ends_and_runs_nothing(
    tmp_path: Path,
) -> None:
    model = Model({"allow": True})
    model.may_answer = anyio.Event()
    async with running_services(
        tmp_path, ask_model=model, approvals="on", review="model"
    ) as services:
        accepted = await services.send(script(WRITE, DONE))
        with anyio.fail_after(30):
            while not model.asked:
                await anyio.lowlevel.checkpoint()
            await services.interrupt(accepted.conversation_id)
        result = await services.result_of(accepted)
        events = await services.events_of(accepted)
        assert not (services.settings.workspace / "b.txt").exists()
    assert result["stop_reason"] == "user_interrupt"
    assert of_kind(events, "approval.requested") == []


def test_only_changes_and_confined_programs_are_reviewed() -> None:
    own, foreign = tool_call(), tool_call(name="mcp__mail__send")
    kinds: dict[AskKind, bool] = {
        "change": True,
        "unlisted": True,
        "rule": False,
        "person": False,
    }
    for kind, may in kinds.items():
        assert may_review(own, AskReason(kind=kind), is_confined=False) is may
        assert not may_review(foreign, AskReason(kind=kind), is_confined=True)
    program = AskReason(kind="unlisted", is_program=True)
    assert not may_review(own, program, is_confined=False)
    assert may_review(own, program, is_confined=True)
