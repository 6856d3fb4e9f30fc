"""The gate of a turn in tests: with a policy of fixed verdicts, and a person who agrees to everything."""

from collections.abc import Callable

import anyio

from gateway.turns.approval_answer import Answer
from gateway.turns.approval_views import CHANGE, AskReason
from gateway.turns.control import TurnClock, TurnControl
from gateway.turns.evidence import Evidence
from gateway.turns.gate import TurnGate
from gateway.turns.guards import DoomLoop
from gateway.turns.workspace_lock import WorkspaceLock
from policies.calls import ToolCall
from policies.permits import Effect
from policies.verdict import Allow, Deny, Verdict
from tests.support.builders import tool_call

READS = Allow("reads", "It only reads.", changes=False)
CHANGES = Allow("changes", "It changes something.")


class Fixed:
    """A policy that returns the verdict it was made with, and counts how often it is asked."""

    def __init__(self, verdict: Verdict | Exception) -> None:
        self.verdict = verdict
        self.asked = 0

    def judge(self, call: ToolCall) -> Verdict:
        assert call.tool_use_id
        self.asked += 1
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


class Person:
    """Somebody who agrees to everything."""

    def __init__(self) -> None:
        self.before: Callable[[], object] = lambda: None
        self.calls: list[ToolCall] = []
        self.reasons: list[AskReason] = []

    async def __call__(self, call: ToolCall, _: Effect, why: AskReason = CHANGE) -> Answer:
        self.calls.append(call)
        self.reasons.append(why)
        self.before()
        await anyio.lowlevel.checkpoint()
        return Answer(decision="allow", by="user")


async def refuse_nothing(_: ToolCall) -> None:
    """Refuse no call."""
    await anyio.lowlevel.checkpoint()


class Gate(TurnGate):
    """A gate with its policy, the person who is asked, and what it wrote down."""

    def __init__(
        self,
        verdict: Verdict | Exception,
        lock: WorkspaceLock | None = None,
        *,
        asks: bool = True,
    ) -> None:
        self.fixed = Fixed(verdict)
        self.lines: list[tuple[str, Allow | Deny]] = []
        self.person = Person()
        super().__init__(
            policy=self.fixed,
            lock=lock or WorkspaceLock(),
            evidence=Evidence(),
            control=TurnControl(),
            clock=TurnClock(60),
            doom_loop=DoomLoop(99),
            asker=self.person,
            ask_changes=asks,
            write_permission=lambda call, judged: self.lines.append((call.tool_use_id, judged)),
            before_call=lambda _: anyio.lowlevel.checkpoint(),
            refuse=refuse_nothing,
            describe=lambda judged: judged.message.upper(),
        )

    async def through(self, call: ToolCall | None = None) -> Allow | Deny:
        """Do as the engine does: judge, and decide where that was no plain denial."""
        call = call or tool_call()
        judged = await self.judge(call)
        if isinstance(judged, Deny) and not judged.interrupt:
            return judged
        return await self.decide(call)
