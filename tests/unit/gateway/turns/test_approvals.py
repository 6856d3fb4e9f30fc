"""Approvals: questions, answers, rules of a conversation, and ends."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from gateway.errors import Conflict, NotFound, UnprocessableEntity
from gateway.ids import LOCAL_USER, ConversationId, TurnId, UserId
from gateway.turns.approval_request import ApprovalRequester
from gateway.turns.approvals import Answer, ApprovalDesk, Question
from gateway.turns.context import TurnContext
from gateway.turns.control import TurnControl
from gateway.turns.evidence import Evidence
from policies.permits import Effect, Reach
from policies.tools import ToolCall
from tests.support.builders import NOON, asked_about, called, tool_call

ANN, BOB = UserId("ann"), UserId("bob")
HERE, THERE = ConversationId("cnv_here"), ConversationId("cnv_there")
TURN = TurnId("trn_1")


class Asked:
    """One question being asked, beside the test."""

    def __init__(self, desk: ApprovalDesk) -> None:
        self.desk = desk
        self.question: Question | None = None
        self.result: Answer | None = None
        self.announced = anyio.Event()

    def announce(self, question: Question) -> None:
        self.question = question
        self.announced.set()

    async def ask(
        self, call: ToolCall, conversation_id: ConversationId = HERE, user_id: UserId = ANN
    ) -> None:
        self.result = await self.desk.ask(
            asked_about(call, show=str.upper),
            user_id=user_id,
            conversation_id=conversation_id,
            turn_id=TURN,
            announce=self.announce,
        )
        self.announced.set()

    @property
    def id(self) -> str:
        assert self.question is not None
        return self.question.id


def a_desk(timeout_s: float = 60) -> ApprovalDesk:
    return ApprovalDesk(timeout_s=timeout_s, now=lambda: NOON)


async def test_a_question_says_when_it_expires_and_no_answer_in_time_denies() -> None:
    desk, asked = a_desk(0.01), Asked(a_desk())
    asked.desk = desk
    with anyio.fail_after(30):
        await asked.ask(tool_call())
    assert asked.result == Answer(decision="deny", by="timeout")
    assert asked.question is not None
    assert asked.question.expires_at == NOON + timedelta(seconds=0.01)
    assert asked.question.fields()["expires_at"] == "2026-11-20T12:00:00.010Z"
    with pytest.raises(Conflict):
        desk.answer(ANN, asked.id, "allow")


async def allow_for_the_conversation(desk: ApprovalDesk, call: ToolCall, reach: Reach) -> Question:
    asked = Asked(desk)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, call)
            await asked.announced.wait()
            with pytest.raises(UnprocessableEntity):
                desk.answer(ANN, asked.id, "allow", remember="conversation", reach="folder")
            desk.answer(ANN, asked.id, "allow", remember="conversation", reach=reach)
    assert asked.question is not None
    return asked.question


async def test_a_rule_for_the_conversation_lets_pass_what_it_covers_until_it_is_withdrawn() -> None:
    desk = a_desk(0.01)
    add = tool_call("mcp__notes__add", tool_input={"text": "a"})
    question = await allow_for_the_conversation(desk, add, "exact")
    assert [rule["reach"] for rule in question.permits] == ["exact", "any"]
    assert [rule.fields() for rule in desk.allowed(HERE)] == [
        {"approval_id": question.id, **question.permits[0]}
    ]
    assert question.permits[0]["call"] == '{"TEXT": "A"}', "made safe to show"

    async def ask(text: str, where: ConversationId = HERE) -> Answer | None:
        asked = Asked(desk)
        await asked.ask(tool_call("mcp__notes__add", tool_input={"text": text}), where)
        return asked.result

    passes, expires = (
        Answer(decision="allow", by="remembered"),
        Answer(decision="deny", by="timeout"),
    )
    assert [await ask("a"), await ask("b"), await ask("a", THERE)] == [passes, expires, expires]
    desk.withdraw(HERE, question.id)
    with pytest.raises(NotFound):
        desk.withdraw(HERE, question.id)
    assert await ask("a") == expires
    await allow_for_the_conversation(desk, add, "any")
    assert await ask("b") == passes
    desk.forget(HERE)
    assert await ask("b") == expires


async def test_the_end_of_a_turn_denies_its_questions_and_no_others() -> None:
    desk = a_desk()
    asked = Asked(desk)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, tool_call())
            await asked.announced.wait()
            desk.end_turn(TurnId("trn_other"))
            assert len(desk.pending(ANN)) == 1
            desk.end_turn(TURN)
    assert asked.result == Answer(decision="deny", by="turn_ended")


async def test_a_cancelled_question_is_withdrawn() -> None:
    desk = a_desk()
    asked = Asked(desk)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.ask, tool_call())
        await asked.announced.wait()
        tasks.cancel_scope.cancel()
    assert desk.pending(ANN) == []


class Events:
    """Takes events; they are stored when a test says so."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.is_stored = anyio.Event()
        self.is_waited_for = anyio.Event()

    def emit(self, kind: str, **_: Any) -> None:
        self.told.append(kind)

    async def flush(self) -> None:
        self.is_waited_for.set()
        await self.is_stored.wait()


def context_with(events: Events, desk: ApprovalDesk) -> TurnContext:
    evidence = Evidence()
    evidence.tool_called(called(), "ls", 0)
    nothing = SimpleNamespace(note=lambda *_: {})
    context = SimpleNamespace(
        turn=SimpleNamespace(user_id=LOCAL_USER, conversation_id="cnv_1", id="trn_1"),
        parts=SimpleNamespace(approvals=desk, now=lambda: NOON),
        sanitizer=SimpleNamespace(summary=lambda _: "ls", line=str, input=dict, text=str),
        control=TurnControl(),
        events=events,
        chronicle=nothing,
        evidence=evidence,
        is_over=False,
    )
    return cast("TurnContext", context)


async def test_a_permission_counts_when_it_is_stored_and_a_stopped_turn_waits_for_no_disk() -> None:
    for stopped in (False, True):
        events, desk = Events(), ApprovalDesk(timeout_s=60, now=lambda: NOON)
        context = context_with(events, desk)
        answers: list[str] = []

        async def ask(context: TurnContext = context, answers: list[str] = answers) -> None:
            answer = await ApprovalRequester(context)(tool_call(), Effect(tool="Bash"))
            answers.append(answer.decision)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                (question,) = desk.pending(LOCAL_USER)
                desk.answer(LOCAL_USER, question.id, "allow")
                await events.is_waited_for.wait()
                await anyio.wait_all_tasks_blocked()
                assert events.told == ["approval.requested", "approval.resolved"]
                assert answers == []
                if stopped:
                    context.control.stop("user_interrupt")
                else:
                    events.is_stored.set()
        assert answers == ["allow"]
        assert context.evidence.tools[1].waited_s > 0
