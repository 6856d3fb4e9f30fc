from types import SimpleNamespace
from typing import Any, cast

import anyio

from gateway.ids import LOCAL_USER
from gateway.turns.approval_request import ApprovalRequester
from gateway.turns.approvals import ApprovalDesk
from gateway.turns.context import TurnContext
from gateway.turns.control import TurnControl
from gateway.turns.evidence import Evidence
from policies.permits import Effect
from tests.support.builders import NOON, called, tool_call


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
            _, answer = await ApprovalRequester(context)(tool_call(), Effect(tool="Bash"))
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
