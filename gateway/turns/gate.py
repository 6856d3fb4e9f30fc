"""The gate of one turn: the policy, the doom-loop guard, and a person's answer.

`judge` is called in the agent's hook for every call; `decide` makes the final decision. A call that
changes something runs under the lock of the workspace, from its last verdict until the engine says
that it has ended; nobody holds the lock while a person is asked. Denials are added to the evidence
with their reasons, every final verdict to the journal.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import anyio

from gateway.turns.approval_answer import Answer
from gateway.turns.approval_views import AskReason
from gateway.turns.control import TurnClock, TurnControl
from gateway.turns.evidence import Evidence
from gateway.turns.guards import DoomLoop
from gateway.turns.questions import FOR_PERSONS
from gateway.turns.workspace_lock import WorkspaceLock
from policies.calls import ToolCall
from policies.permits import Effect, effect_of_input
from policies.verdict import Allow, Ask, Deny, Verdict

_log = logging.getLogger(__name__)


class Policy(Protocol):
    """Decides what may happen; `policies.tools.ToolGate` is the one in use."""

    def judge(self, call: ToolCall) -> Verdict:
        """Return whether a call may run. Blocks on the file system; called in a worker thread."""


WritePermission = Callable[[ToolCall, Allow | Deny], None]
"""Records a final verdict."""
Asker = Callable[[ToolCall, Effect, AskReason], Awaitable[Answer]]
"""Asks a person about a call; see `ApprovalDesk.ask`."""

_JUDGE_S = 20.0
"""A policy takes milliseconds; one that has not answered by then never will."""
_MOST_STUCK = 4
"""Worker threads that judgements of one turn may hold: one that hangs cannot be ended."""
_MOST_FORBIDDEN = 3
_LOOKS_FIRST = frozenset({"Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"})
"""Tools whose files the agent program looks at before it asks."""
_WRITES = frozenset({"Write", "Edit", "NotebookEdit"})
"""Tools that write a file, also where that counts as no change, as for a plan."""
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
_BUSY = Deny(
    rule="workspace_busy",
    reason="Other calls were changing the workspace all the time, so this one did not run.",
    hint="Try it again.",
)
_CHANGED = Deny(
    rule="changed_meanwhile",
    reason="What this call would do has changed since it was judged, so it did not run.",
    hint="Look at the files that it names, then call it again.",
)
_STOPPING = Deny(rule="turn_stopping", reason="The turn is being stopped.", interrupt=True)


@dataclass(slots=True, kw_only=True)
class TurnGate:
    """Implements `ToolGatekeeper` for one turn."""

    policy: Policy
    lock: WorkspaceLock
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
    """Called with each permitted call; returns why it must not run although the policy allows
    it."""
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
    _holds: dict[int, object] = field(default_factory=dict, init=False)
    """What holds the lock for a call."""
    _run: object = field(default_factory=object, init=False)
    """Stands for the run in progress."""
    _passed: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Declare in the evidence that every call passes this gate."""
        self.evidence.passed = self._passed

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

        The program looks at the file before it asks. Its own reason would reveal what is outside
        the workspace.
        """
        if call.index in self._asked or call.name not in _LOOKS_FIRST:
            return
        verdict = _TOOLS_FORBIDDEN if self.tools_forbidden else await self._ask_policy(call)
        if isinstance(verdict, Deny) and verdict.rule != "tool_input":
            self._denied(call, verdict)

    async def decide(self, call: ToolCall) -> Allow | Deny:
        try:
            final = await self._decide(call)
        except BaseException:
            self.returned(call.index)
            raise
        if isinstance(final, Deny):
            self.returned(call.index)
        return final

    def returned(self, index: int) -> None:
        hold = self._holds.pop(index, None)
        if hold is not None:
            self.lock.release(hold)

    def end_run(self) -> None:
        """Release the lock, whatever became of the run's calls: no process of theirs is left."""
        self._run = object()
        for index in list(self._holds):
            self.returned(index)

    async def _decide(self, call: ToolCall) -> Allow | Deny:
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
            self._passed.add(call.index)
            self.write_permission(call, final)
            await self.before_call(final)
        return final

    async def _verdict(self, call: ToolCall) -> Verdict:
        if self.tools_forbidden:  # a summary that goes on calling is interrupted
            self._forbidden += 1
            return replace(_TOOLS_FORBIDDEN, interrupt=self._forbidden >= _MOST_FORBIDDEN)
        if self.doom_loop.observe(call.index, call.name, call.input, call.agent_id or ""):
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
        if isinstance(verdict, Deny) and self.asker is not None:
            question = verdict.question  # what is forbidden has none
            return question if isinstance(question, Ask) else verdict
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
        if not self._needs_person(verdict):
            return await self._before_running(call, verdict, _allowed(verdict))
        if self.asker is None:
            return Deny(rule=verdict.rule, reason=f"{verdict.reason} Nobody can be asked.")
        self.clock.pause()
        try:
            given = verdict.updated_input or call.input
            effect = verdict.effect or effect_of_input(call.name, given, call.cwd)
            reason = self._reason_to_ask(call, verdict, effect)
            answer = await self.asker(replace(call, input=given), effect, reason)
        finally:
            self.clock.go_on()
        if answer.answers is not None:
            verdict = replace(verdict, updated_input={**given, "answers": answer.answers})
        final = _answered(verdict, answer)
        if isinstance(final, Deny) or call.name in FOR_PERSONS:
            return final
        return await self._before_running(call, verdict, final)

    def _reason_to_ask(self, call: ToolCall, verdict: Allow | Ask, effect: Effect) -> AskReason:
        if call.name in FOR_PERSONS:
            return AskReason(kind="person")
        if effect.is_unknown:
            why = self.describe(Deny(verdict.rule, verdict.reason))
            return AskReason(kind="unlisted", why=why, is_program=verdict.paths is None)
        return AskReason(kind="rule" if isinstance(verdict, Ask) else "change")

    def _needs_person(self, verdict: Allow | Ask) -> bool:
        return isinstance(verdict, Ask) or (
            self.ask_changes and verdict.changes and not verdict.unasked
        )

    async def _before_running(
        self, call: ToolCall, verdict: Allow | Ask, allowed: Allow
    ) -> Allow | Deny:
        """Judge a call once more when it may run: what it touches may be another file by now.

        What a person was asked about must still be exactly that.
        """
        was_asked, changes = self._needs_person(verdict), call.name in _WRITES or verdict.changes
        if not (was_asked or changes):
            return allowed
        if changes and (refused := await self._take_lock(call)) is not None:
            return refused
        fresh = await self._ask_policy(call)
        if isinstance(fresh, Deny):
            return fresh
        if was_asked:
            return allowed if _is_same(fresh, verdict) else _CHANGED
        return _CHANGED if self._needs_person(fresh) else _allowed(fresh)

    async def _take_lock(self, call: ToolCall) -> Deny | None:
        """Take the lock for a call; return why it has not got it."""
        run, hold, has_it = self._run, object(), False

        async def wait() -> None:
            nonlocal has_it
            has_it = await self.lock.acquire(hold)

        await self.control.run_unless_stopped(wait)
        if not has_it:
            return _STOPPING if self.control.is_stopping else _BUSY
        self._holds[call.index] = hold
        return None if self._run is run else _STOPPING

    def _denied(self, call: ToolCall, verdict: Deny) -> None:
        if verdict is not _STOPPING:  # not denied, only kept from running by the turn's end
            self.evidence.denials[call.index] = self.describe(verdict)
        self.write_permission(call, verdict)


def _allowed(verdict: Allow | Ask) -> Allow:
    given, changes = verdict.updated_input, verdict.changes
    return Allow(verdict.rule, verdict.reason, given, changes, paths=verdict.paths)


def _is_same(one: Allow | Ask, other: Allow | Ask) -> bool:
    """Return whether two verdicts on a call let it do the same, by what runs and where its paths
    lead.
    """
    return one == other and one.effect == other.effect


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
