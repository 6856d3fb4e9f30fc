"""Claims that no call supports: a notice after the turn, which delays and changes nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.model import CHANGED
from gateway.ids import LOCAL_USER as ME
from memory.remote.small_model import ModelUnavailable
from tests.support.engine_talk import until
from tests.support.services import RunningServices, kinds, of_kind, running_services, script

CLAIM = "I wrote report.csv."
MESSAGE = script({"text": f"Done. {CLAIM}"})
LS = {"tool": "Bash", "input": {"command": "ls"}}


class SideModel:
    """Answers when it may, and keeps what it was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = json.dumps({"claims": [CLAIM]}) if answer is None else answer
        self.asked: list[str] = []
        self.may_answer = anyio.Event()
        self.may_answer.set()

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        self.asked.append(prompt)
        await self.may_answer.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return str(self.answer)


def counted(services: RunningServices, result: str) -> float:
    counter = services.metrics.claim_checks_total.labels(result=result)
    return float(counter._value.get())  # noqa: SLF001  prometheus has no other way


async def reached(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        await until(condition)


async def notices(services: RunningServices, conversation_id: str) -> list[str]:
    turns = await services.messages_of(conversation_id)
    return [notice["code"] for turn in turns for notice in (turn.result or {})["notices"]]


async def test_the_turn_ends_at_once_and_the_notice_is_in_the_stored_result_afterwards(
    tmp_path: Path,
) -> None:
    model = SideModel()
    model.may_answer = anyio.Event()
    async with running_services(tmp_path, ask_model=model, check="model") as services:
        accepted = await services.send(MESSAGE)
        async with await services.chat.reader.follow(ME, accepted.conversation_id) as live:
            result = await services.result_of(accepted)
            ended = await services.events_of(accepted)
            assert result["notices"] == []
            with anyio.fail_after(30):
                model.may_answer.set()
                seen = await live.next(5)
                while CHANGED not in kinds(seen):
                    seen += await live.next(5)
        told = (await services.messages_of(accepted.conversation_id))[0].result or {}
        again = await services.events_of(accepted)
        lines = await services.journal_of(result)
    assert kinds(seen)[-2:] == ["turn.completed", CHANGED]
    assert of_kind(seen, CHANGED) == [
        {"turn_id": accepted.turn_id, "conversation_id": accepted.conversation_id}
    ]
    (notice,) = told["notices"]
    assert (notice["code"], notice["quotes"]) == ("unsupported_claim", [CLAIM])
    assert CLAIM in notice["message"]
    assert {**told, "notices": []} == result
    assert kinds(again) == kinds(ended)
    assert [event.n for event in again] == list(range(1, len(again) + 1))
    assert of_kind(again, "turn.completed") == [told]
    assert (lines[-1]["kind"], lines[-1]["notices"]) == ("response", [])
    assert "no tool was called; no file was changed" in model.asked[0]
    assert CLAIM in model.asked[0]


async def test_a_reader_of_the_turn_alone_gets_nothing_after_its_last_event(tmp_path: Path) -> None:
    async with running_services(tmp_path, ask_model=SideModel(), check="model") as services:
        accepted = await services.send(MESSAGE)
        async with services.chat.reader.follow_turn(accepted) as turn_alone:
            await services.result_of(accepted)
            await reached(lambda: counted(services, "unsupported") == 1)
            assert kinds(await turn_alone.next(0))[-1] == "turn.completed"
            assert await turn_alone.next(0) == []


WRONG: dict[str, tuple[Any, str]] = {
    "all is supported": (json.dumps({"claims": []}), "supported"),
    "words that are not in the reply": (json.dumps({"claims": ["I deleted it all."]}), "supported"),
    "another form": ("The reply is a lie.", "failed"),
    "a rewritten reply": (json.dumps({"claims": [CLAIM], "reply": "No."}), "failed"),
    "no answer": (ModelUnavailable("It does not answer."), "failed"),
    "a fault": (RuntimeError("broken"), "failed"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_nothing_else_that_the_model_says_reaches_anybody(tmp_path: Path, case: str) -> None:
    answer, counts_as = WRONG[case]
    async with running_services(tmp_path, ask_model=SideModel(answer), check="model") as services:
        result = await services.ask(MESSAGE)
        await reached(lambda: counted(services, counts_as) == 1)
        assert await notices(services, result["conversation_id"]) == []
        assert (await services.ask("hello"))["outcome"] == "answered"


@pytest.mark.parametrize(("settings", "message"), [({}, MESSAGE), ({"check": "model"}, "/help-me")])
async def test_it_is_off_by_default_and_the_gateways_own_answers_are_not_checked(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    model = SideModel()
    async with running_services(tmp_path, ask_model=model, **settings) as services:
        await services.ask(message)
        await services.ask(script(LS, {"status": 401}))
        await anyio.wait_all_tasks_blocked()
    assert model.asked == []


async def test_a_conversation_that_is_deleted_meanwhile_gets_no_notice(tmp_path: Path) -> None:
    model = SideModel()
    model.may_answer = anyio.Event()
    async with running_services(tmp_path, ask_model=model, check="model") as services:
        result = await services.ask(MESSAGE)
        await reached(lambda: bool(model.asked))
        await services.delete(result["conversation_id"])
        model.may_answer.set()
        await reached(lambda: counted(services, "unsupported") == 1)
        assert await services.views() == []


async def test_more_turns_than_may_wait_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.turns.claim_check.MAX_WAITING", 1)
    model = SideModel()
    model.may_answer = anyio.Event()
    async with running_services(tmp_path, ask_model=model, check="model") as services:
        await services.ask(MESSAGE)
        await reached(lambda: bool(model.asked))
        for _ in range(2):
            await services.ask(MESSAGE)
        assert counted(services, "skipped") == 1
        model.may_answer.set()
        await reached(lambda: counted(services, "unsupported") == 2)
