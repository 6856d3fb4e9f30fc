"""The gate of one turn: the policy, the doom-loop guard, and a person's answer.

`judge` is called in the agent's hook for every call; `decide` makes the final decision. Denials are
added to the evidence with their reasons, every final verdict to the journal.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import anyio

from gateway.turns.approvals import Answer
from gateway.turns.control import TurnClock, TurnControl
from gateway.turns.evidence import Evidence
from gateway.turns.guards import DoomLoop
from gateway.turns.questions import FOR_PERSONS
from policies.permits import Effect, effect_of_input
from policies.tools import ToolCall
from policies.verdict import Allow, Ask, Deny, Verdict

_log = logging.getLogger(__name__)


class Policy(Protocol):
    """Decides what may happen; `policies.tools.ToolGate` is the one in use."""

    def judge(self, call: ToolCall) -> Verdict:
        """Return whether a call may run. Blocks on the file system; called in a worker thread."""


WritePermission = Callable[[ToolCall, Allow | Deny], None]
"""Records a final verdict."""
Asker = Callable[[ToolCall, Effect], Awaitable[Answer]]
"""Asks a person about a call; see `ApprovalDesk.ask`."""

_JUDGE_S = 20.0
"""A policy takes milliseconds; one that has not answered by then never will."""
_MOST_STUCK = 4
"""Worker threads that judgements of one turn may hold: one that hangs cannot be ended."""
_MOST_FORBIDDEN = 3
_LOOKS_FIRST = frozenset({"Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"})
"""Tools whose files the agent program looks at before it asks."""
_TOOLS_FORBIDDEN = Deny(
    rule="summary_only", reason="No tool may be called now.", hint="Answer in words alone."
)
_POLICY_BROKEN = Deny(
    rule="policy_error", reason="The policy could not judge this call, so it is denied."
)
_POLICY_SLOW = Deny(
    rule="policy_timeout", reason="The policy did not answer in time, so the call is denied."
)
_DOOM_LOOP = Deny(
    rule="doom_loop",
    reason="The same calls were repeated too many times in a row; the turn is ended.",
    interrupt=True,
)
_NOT_ASKED = Deny(
    rule="approval_not_stored",
    reason="The question to the person could not be stored, so nobody was asked.",
)
_STOPPING = Deny(rule="turn_stopping", reason="The turn is being stopped.", interrupt=True)


@dataclass(slots=True, kw_only=True)
class TurnGate:
    """Implements `ToolGatekeeper` for one turn."""

    policy: Policy
    evidence: Evidence
    control: TurnControl
    clock: TurnClock
    doom_loop: DoomLoop
    asker: Asker | None
    """None: nobody can be asked, so `Ask` becomes a denial."""
    ask_changes: bool
    """True if a person is asked about every allowed call that changes something."""
    write_permission: WritePermission
    before_call: Callable[[Allow], Awaitable[None]]
    """Called with each final permission; the call runs when it returns."""
    refuse: Callable[[ToolCall], Awaitable[Deny | None]]
    """Called with each permitted call; returns why it must not run although the policy allows it."""
    describe: Callable[[Deny], str]
    """Returns a denial's reason as the person sees it."""
    tools_forbidden: bool = False
    """Set for the forced summary."""
    _forbidden: int = field(default=0, init=False)
    _threads: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(_MOST_STUCK), init=False
    )
    _asked: set[int] = field(default_factory=set, init=False)
    """The calls that the agent program asked about."""
    _judged: dict[int, tuple[Mapping[str, Any], Verdict]] = field(default_factory=dict, init=False)

    async def judge(self, call: ToolCall) -> Verdict:
        self._asked.add(call.index)
        self.evidence.call_began(call.index, anyio.current_time())
        verdict = await self._verdict(call)
        self._judged[call.index] = (call.input, verdict)
        if isinstance(verdict, Deny) and not verdict.interrupt:
            self._denied(call, verdict)
        return verdict

    async def judge_unasked(self, call: ToolCall) -> None:
        """Judge a call that the agent program refused without asking; add a denial to the evidence.

        The program looks at the file before it asks. Its own reason would reveal what is outside the
        workspace.
        """
        if call.index in self._asked or call.name not in _LOOKS_FIRST:
            return
        verdict = _TOOLS_FORBIDDEN if self.tools_forbidden else await self._ask_policy(call)
        if isinstance(verdict, Deny) and verdict.rule != "tool_input":
            self._denied(call, verdict)

    async def decide(self, call: ToolCall) -> Allow | Deny:
        judged_input, verdict = self._judged.pop(call.index, (None, None))
        if verdict is None or judged_input != call.input:
            verdict = await self._verdict(call)
        elif self.control.is_stopping and not isinstance(verdict, Deny):
            verdict = _STOPPING
        final = await self._last_word(call, verdict)
        if isinstance(final, Allow):
            final = await self.refuse(call) or final
        if isinstance(final, Allow) and self.control.is_stopping:
            final = _STOPPING
        if isinstance(final, Deny):
            self._denied(call, final)
            if final.interrupt and not self.tools_forbidden:
                self.control.stop("policy_interrupt")
        else:
            if isinstance(final.updated_input, Mapping):  # a faulty policy may say anything
                self.evidence.rewritten[call.index] = final.updated_input
            self.write_permission(call, final)
            await self.before_call(final)
        return final

    async def _verdict(self, call: ToolCall) -> Verdict:
        if self.tools_forbidden:  # a summary that goes on calling is interrupted
            self._forbidden += 1
            return replace(_TOOLS_FORBIDDEN, interrupt=self._forbidden >= _MOST_FORBIDDEN)
        if self.doom_loop.observe(call.index, call.name, call.input):
            self.control.stop("doom_loop")
            return _DOOM_LOOP
        if self.control.is_stopping:
            return _STOPPING
        return await self._ask_policy(call)

    async def _ask_policy(self, call: ToolCall) -> Verdict:
        """Ask the policy; deny if it raises, returns no verdict, or does not answer in time.

        A judgement that hangs is abandoned, so that the turn can still be stopped.
        """
        try:
            with anyio.fail_after(_JUDGE_S):
                verdict: object = await anyio.to_thread.run_sync(
                    self.policy.judge, call, abandon_on_cancel=True, limiter=self._threads
                )
        except TimeoutError:
            _log.error("policy_timed_out", extra={"tool": call.name})
            return _POLICY_SLOW
        except Exception:  # noqa: BLE001  a policy that fails must not let a call through
            _log.exception("policy_failed")
            return _POLICY_BROKEN
        if isinstance(verdict, Allow | Ask | Deny):
            return verdict
        _log.error("policy_gave_no_verdict", extra={"kind": type(verdict).__name__})
        return _POLICY_BROKEN

    async def _last_word(self, call: ToolCall, verdict: Verdict) -> Allow | Deny:
        if isinstance(verdict, Deny):
            return verdict
        if key := FOR_PERSONS.get(call.name):  # answers that the agent gave itself are left out
            shown = {key: call.input.get(key)}
            verdict = Ask(verdict.rule, verdict.reason, shown, changes=False)
        wanted = isinstance(verdict, Ask) or (self.ask_changes and verdict.changes)
        if not wanted:
            return _allowed(verdict)
        if self.asker is None:
            return Deny(rule=verdict.rule, reason=f"{verdict.reason} Nobody can be asked.")
        self.clock.pause()
        try:
            given = verdict.updated_input or call.input
            effect = verdict.effect or effect_of_input(call.name, given, call.cwd)
            answer = await self.asker(replace(call, input=given), effect)
        finally:
            self.clock.go_on()
        if answer.answers is not None:
            verdict = replace(verdict, updated_input={**given, "answers": answer.answers})
        return _answered(verdict, answer)

    def _denied(self, call: ToolCall, verdict: Deny) -> None:
        if verdict is not _STOPPING:  # not denied, only kept from running by the turn's end
            self.evidence.denials[call.index] = self.describe(verdict)
        self.write_permission(call, verdict)


def _allowed(verdict: Allow | Ask) -> Allow:
    given, changes = verdict.updated_input, verdict.changes
    return Allow(verdict.rule, verdict.reason, given, changes, paths=verdict.paths)


def _answered(verdict: Allow | Ask, answer: Answer) -> Allow | Deny:
    if answer.decision == "allow":
        return _allowed(verdict)
    if answer.by == "not_stored":
        return _NOT_ASKED
    if answer.by != "user":
        return _STOPPING
    said = f" They said: {answer.message}" if answer.message else ""
    return Deny(
        rule="approval_denied",
        reason=f"A person was asked and denied this call.{said}",
        quoted=answer.message or None,
    )
