"""Approvals: questions, answers, rules of a conversation, and ends."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from gateway.conversations.model import Approval, ApprovalAnswer, ApprovalState
from gateway.conversations.sql.approvals import ApprovalStore
from gateway.errors import Conflict, NotFound, UnprocessableEntity
from gateway.ids import LOCAL_USER, ConversationId, TurnId, UserId
from gateway.turns.approval_answer import Answer, Reply
from gateway.turns.approval_request import ApprovalRequester
from gateway.turns.approval_views import Question
from gateway.turns.approvals import ApprovalDesk
from gateway.turns.context import TurnContext
from gateway.turns.control import TurnControl
from gateway.turns.evidence import Evidence
from memory.errors import CommitUnknown
from policies.calls import ToolCall
from policies.permits import Effect, Reach
from tests.support.builders import NOON, asked_about, called, tool_call

ANN, BOB = UserId("ann"), UserId("bob")
HERE, THERE = ConversationId("cnv_here"), ConversationId("cnv_there")
TURN = TurnId("trn_1")
WAITING = Answer(decision="deny", by="waiting")


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
            asked_about(call, user_id, conversation_id, TURN, show=str.upper),
            announce=self.announce,
        )
        self.announced.set()

    @property
    def id(self) -> str:
        assert self.question is not None
        return self.question.id


class Kept:
    """A store of approvals in memory."""

    def __init__(self) -> None:
        self.approvals: dict[str, Approval] = {}

    async def add(self, approval: Approval, **_: int) -> None:
        await anyio.lowlevel.checkpoint()
        self.approvals[approval.id] = approval

    async def get(self, approval_id: str, user_id: UserId) -> Approval | None:
        await anyio.lowlevel.checkpoint()
        found = self.approvals.get(approval_id)
        return found if found is not None and found.user_id == user_id else None

    async def answer(self, answer: ApprovalAnswer) -> bool:
        await anyio.lowlevel.checkpoint()
        return self._move(answer.approval_id, "open", "answered")

    async def withdraw(self, approval_id: str, _: datetime, **__: int) -> None:
        await anyio.lowlevel.checkpoint()
        self._move(approval_id, "open", "withdrawn")

    async def reopen(self, approval_id: str, **_: int) -> None:
        await anyio.lowlevel.checkpoint()
        self._move(approval_id, "answered", "open")

    def _move(self, approval_id: str, before: ApprovalState, after: ApprovalState) -> bool:
        is_there = self.approvals[approval_id].state == before
        if is_there:
            self.approvals[approval_id] = replace(self.approvals[approval_id], state=after)
        return is_there

    def states(self) -> list[ApprovalState]:
        """List the states of all approvals, oldest first."""
        return [approval.state for approval in self.approvals.values()]


def a_desk(timeout_s: float = 60, store: Kept | None = None) -> ApprovalDesk:
    kept = cast("ApprovalStore", store or Kept())
    return ApprovalDesk(kept, timeout_s=timeout_s, now=lambda: NOON)


ALLOW = Reply(decision="allow")


async def test_without_an_answer_in_time_the_run_ends_and_the_approval_waits() -> None:
    store = Kept()
    desk = a_desk(0.01, store)
    asked = Asked(desk)
    with anyio.fail_after(30):
        await asked.ask(tool_call())
    assert asked.result == WAITING
    assert asked.question is not None
    assert asked.question.expires_at == NOON + timedelta(seconds=0.01)
    assert asked.question.fields()["expires_at"] == "2026-11-20T12:00:00.010Z"
    assert (store.states(), desk.pending(ANN)) == (["open"], [])
    assert await desk.answer(ANN, asked.id, ALLOW) is None, "no run waits for it"
    assert (await desk.find(ANN, asked.id)).id == asked.id
    with pytest.raises(NotFound):
        await desk.find(BOB, asked.id)


async def test_an_extended_approval_has_its_whole_time_again() -> None:
    clock = [NOON]
    store = cast("ApprovalStore", Kept())
    desk = ApprovalDesk(store, timeout_s=60, now=lambda: clock[0])
    asked = Asked(desk)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, tool_call())
            await asked.announced.wait()
            clock[0] += timedelta(seconds=59)
            with pytest.raises(NotFound):
                await desk.extend(BOB, asked.id)
            extended = await desk.extend(ANN, asked.id)
            assert extended is not None
            assert extended.expires_at == NOON + timedelta(seconds=59 + 60)
            assert desk.pending(ANN) == [extended]
            await desk.answer(ANN, asked.id, ALLOW)
    assert await desk.extend(ANN, asked.id) is None


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_a_yes_that_is_stored_while_the_turn_ends_starts_a_run_or_is_refused(
    *, is_waiting: bool
) -> None:
    """The call does not run in the turn that ends; the yes is not lost unless the person ended it."""

    class Slow(Kept):
        async def answer(self, answer: ApprovalAnswer) -> bool:
            desk.end_turn(TURN, is_waiting=is_waiting)
            return await super().answer(answer)

    store = Slow()
    desk = a_desk(60, store)
    asked = Asked(desk)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, tool_call())
            await asked.announced.wait()
            if is_waiting:
                assert await desk.answer(ANN, asked.id, ALLOW) is None
                assert store.states() == ["open"]
            else:
                with pytest.raises(Conflict):
                    await desk.answer(ANN, asked.id, ALLOW)
    assert asked.result is not None
    assert asked.result.decision == "deny"


async def test_of_two_answers_at_once_one_counts() -> None:
    desk = a_desk()
    asked = Asked(desk)
    outcomes: list[str] = []

    async def answer(reply: Reply) -> None:
        try:
            await desk.answer(ANN, asked.id, reply)
            outcomes.append(reply.decision)
        except Conflict as exc:
            outcomes.append(exc.specific_code)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, tool_call())
            await asked.announced.wait()
            tasks.start_soon(answer, ALLOW)
            tasks.start_soon(answer, Reply(decision="deny"))
    assert sorted(outcomes) == ["allow", "already_answered"]
    assert asked.result is not None
    assert asked.result.decision == "allow"


async def allow_for_the_conversation(desk: ApprovalDesk, call: ToolCall, reach: Reach) -> Question:
    asked = Asked(desk)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, call)
            await asked.announced.wait()
            always = Reply(decision="allow", remember="conversation", reach="folder")
            with pytest.raises(UnprocessableEntity):
                await desk.answer(ANN, asked.id, always)
            await desk.answer(ANN, asked.id, replace(always, reach=reach))
    assert asked.question is not None
    return asked.question


async def test_a_call_to_which_no_rule_can_be_given_is_answered_once_alone() -> None:
    desk = a_desk()
    asked = Asked(desk)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, tool_call("AskUserQuestion"))
            await asked.announced.wait()
            with pytest.raises(UnprocessableEntity) as refused:
                await desk.answer(ANN, asked.id, replace(ALLOW, remember="conversation"))
            await desk.answer(ANN, asked.id, ALLOW)
    assert refused.value.details == {"field": "remember"}


async def test_a_rule_for_the_conversation_lets_pass_what_it_covers_until_it_is_withdrawn() -> None:
    desk = a_desk()
    add = tool_call("mcp__notes__add", tool_input={"text": "a"})
    question = await allow_for_the_conversation(desk, add, "exact")
    assert [rule["reach"] for rule in question.permits] == ["exact", "any"]
    assert [rule.fields() for rule in desk.rules.of(HERE)] == [
        {"approval_id": question.id, **question.permits[0]}
    ]
    assert question.permits[0]["call"] == '{"TEXT": "A"}', "made safe to show"

    async def ask(text: str, where: ConversationId = HERE) -> Answer | None:
        asked = Asked(desk)
        call = tool_call("mcp__notes__add", tool_input={"text": text})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, call, where)
            await asked.announced.wait()
            desk.end_turn(TURN, is_waiting=True)
        return asked.result

    expires, passes = (
        WAITING,
        Answer(
            decision="allow",
            by="remembered",
            permit=question.permits[0],
            approval_id=question.id,
            at=NOON,
        ),
    )
    assert passes.allowed_by == {
        "by": "rule",
        "approval_id": question.id,
        "rule": question.permits[0],
        "at": "2026-11-20T12:00:00.000Z",
    }
    assert [await ask("a"), await ask("b"), await ask("a", THERE)] == [passes, expires, expires]
    desk.rules.withdraw(HERE, question.id)
    with pytest.raises(NotFound):
        desk.rules.withdraw(HERE, question.id)
    assert await ask("a") == expires
    further = await allow_for_the_conversation(desk, add, "any")
    passed = await ask("b")
    assert passed is not None
    assert (passed.by, passed.approval_id) == ("remembered", further.id)
    desk.rules.forget(HERE)
    assert await ask("b") == expires


async def test_the_end_of_a_turn_denies_its_questions_and_no_others() -> None:
    desk = a_desk()
    asked = Asked(desk)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.ask, tool_call())
            await asked.announced.wait()
            desk.end_turn(TurnId("trn_other"), is_waiting=False)
            assert len(desk.pending(ANN)) == 1
            desk.end_turn(TURN, is_waiting=False)
    assert asked.result == Answer(decision="deny", by="turn_ended")


async def test_a_cancelled_question_is_withdrawn() -> None:
    desk = a_desk()
    asked = Asked(desk)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.ask, tool_call())
        await asked.announced.wait()
        tasks.cancel_scope.cancel()
    assert desk.pending(ANN) == []


async def test_a_question_whose_storing_got_no_answer_is_withdrawn() -> None:
    """Its call is denied; a question that is still listed would tell of one that waits."""

    class Lost(Kept):
        async def add(self, approval: Approval, **_: int) -> None:
            await super().add(approval)
            raise CommitUnknown("The database's answer was lost.")

    store = Lost()
    asked = Asked(a_desk(store=store))
    with pytest.raises(CommitUnknown):
        await asked.ask(tool_call())
    assert (store.states(), asked.announced.is_set()) == (["withdrawn"], False)


class Events:
    """Takes events; they are stored when a test says so."""

    epoch = 0

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
        parts=SimpleNamespace(approvals=desk, now=lambda: NOON, secrets=(), reviewer=None),
        workspace=SimpleNamespace(root=PurePath("/ws")),
        language="en",
        sanitizer=SimpleNamespace(summary=lambda _: "ls", command_line=str, input=dict, text=str),
        control=TurnControl(),
        events=events,
        chronicle=nothing,
        evidence=evidence,
        is_over=False,
    )
    return cast("TurnContext", context)


async def test_a_permission_counts_when_it_is_stored_and_a_stopped_turn_waits_for_no_disk() -> None:
    for stopped in (False, True):
        events, desk = Events(), a_desk()
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
                await desk.answer(LOCAL_USER, question.id, ALLOW)
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
