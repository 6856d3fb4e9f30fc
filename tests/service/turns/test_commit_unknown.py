"""Messages and answers whose storing got no answer: they are stored, or not, and count once."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.model import ApprovalAnswer, Decision, Turn
from gateway.conversations.sql.approvals import ApprovalStore
from gateway.conversations.sql.turns import TurnStore
from gateway.errors import Conflict
from memory.errors import CommitUnknown, StoreUnavailable
from tests.support.services import HANG, kinds, running_services, script

_ACCEPT, _GET = TurnStore.accept, TurnStore.get
_ANSWER, _APPROVAL = ApprovalStore.answer, ApprovalStore.get
WRITE = {"tool": "Write", "input": {"file_path": "b.txt", "content": "x"}}


def lose_answer(monkeypatch: pytest.MonkeyPatch, *, is_stored: bool) -> None:
    """Lose the answer to the storing of the next turn."""

    lost: list[Turn] = []

    async def accept(store: TurnStore, turn: Turn, **more: Any) -> Turn:
        if lost:
            return await _ACCEPT(store, turn, **more)
        lost.append(turn)
        if is_stored:
            await _ACCEPT(store, turn, **more)
        raise CommitUnknown("The database's answer was lost.")

    monkeypatch.setattr(TurnStore, "accept", accept)


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("where", ["new", "free", "busy"])
@pytest.mark.parametrize("max_user_running_turns", [None, 2])
async def test_a_message_whose_storing_got_no_answer_is_answered_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    *,
    is_stored: bool,
    max_user_running_turns: int | None,
) -> None:
    async with running_services(
        tmp_path, max_user_running_turns=max_user_running_turns
    ) as services:
        begun = None
        if where == "free":
            begun = (await services.ask("hello"))["conversation_id"]
        elif where == "busy":
            begun = (await services.begin()).conversation_id
        lose_answer(monkeypatch, is_stored=is_stored)
        accepted = await services.send(script({"text": "Once."}), begun)
        if where == "busy":
            await services.interrupt(accepted.conversation_id)
        assert (await services.result_of(accepted))["reply"] == "Once."
        turns = await services.messages_of(accepted.conversation_id)
        assert [turn.id for turn in turns].count(accepted.turn_id) == 1
        assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
        assert len(turns) == (1 if begun is None else 2)
        events = await services.events_of(accepted)
        assert kinds(events).count("turn.started") == 1
        assert [event.n for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("where", ["new", "free", "busy"])
async def test_a_message_that_may_be_stored_ends_when_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It would be running without an end, and who sends it again would wait for that."""
    monkeypatch.setattr("gateway.chat.intake._IN_DOUBT_S", 0)

    async def away(*_: object) -> None:  # noqa: RUF029  as `get`
        raise StoreUnavailable("The database cannot be read.")

    async with running_services(tmp_path) as services:
        begun = None
        if where == "free":
            begun = (await services.ask("hello"))["conversation_id"]
        elif where == "busy":
            begun = (await services.begin(HANG)).conversation_id
        lose_answer(monkeypatch, is_stored=True)
        monkeypatch.setattr(TurnStore, "get", away)
        with pytest.raises(CommitUnknown):
            await services.send("hello", begun, idempotency_key="k")
        monkeypatch.setattr(TurnStore, "get", _GET)
        await services.ownership.beat()
        with anyio.fail_after(30):
            again = await services.ask("hello", begun, idempotency_key="k")
        turns = await services.messages_of(again["conversation_id"])
        assert [turn.state for turn in turns] == ["completed"] * len(turns)
        assert len(turns) == (1 if begun is None else 2)
        if where == "busy":  # it had not begun, and runs when the turn before it has ended
            assert again["outcome"] == "answered"
            assert turns[0].result is not None
            assert turns[0].result["cause"] == "database_lost"
        else:
            assert again["cause"] == "database_lost"


def lose_answer_to_answer(monkeypatch: pytest.MonkeyPatch, *, is_stored: bool) -> None:
    """Lose the answer to the storing of the next answer of a person."""

    async def answer(store: ApprovalStore, given: ApprovalAnswer) -> bool:
        monkeypatch.setattr(ApprovalStore, "answer", _ANSWER)
        if is_stored:
            await _ANSWER(store, given)
        raise CommitUnknown("The database's answer was lost.")

    monkeypatch.setattr(ApprovalStore, "answer", answer)


@pytest.mark.parametrize("message", ["", "不要动 a.txt", "not a.txt"])
@pytest.mark.parametrize("decision", ["allow", "deny"])
@pytest.mark.parametrize("can_look", [True, False])
async def test_a_persons_answer_that_is_stored_counts_for_the_run_that_waits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    decision: Decision,
    message: str,
    *,
    can_look: bool,
) -> None:
    """Otherwise the run waits for one that counts no more: each further one is too late."""

    async def away(*_: object) -> None:  # noqa: RUF029  as `get`
        raise StoreUnavailable("The database cannot be read.")

    async with running_services(tmp_path, approvals="on") as services:
        accepted = await services.send(script(WRITE, {"text": "Done."}))
        question = await services.question_of(accepted)
        lose_answer_to_answer(monkeypatch, is_stored=True)
        if not can_look:
            monkeypatch.setattr(ApprovalStore, "get", away)
            with pytest.raises(StoreUnavailable):
                await services.answer(question, decision, message=message)
            monkeypatch.setattr(ApprovalStore, "get", _APPROVAL)
        await services.answer(question, decision, message=message)
        with pytest.raises(Conflict):
            await services.answer(question, decision, message=message)
        result = await services.result_of(accepted)
        assert (services.settings.workspace / "b.txt").exists() == (decision == "allow")
    status = "ok" if decision == "allow" else "denied"
    assert [tool["status"] for tool in result["tools"]] == [status]


async def test_a_persons_answer_that_is_not_stored_can_be_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await services.send(script(WRITE, {"text": "Done."}))
        question = await services.question_of(accepted)
        lose_answer_to_answer(monkeypatch, is_stored=False)
        with pytest.raises(CommitUnknown):
            await services.answer(question, "allow")
        await services.answer(question, "deny")
        result = await services.result_of(accepted)
    assert [tool["status"] for tool in result["tools"]] == ["denied"]
