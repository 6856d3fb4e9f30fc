"""Identifies the tool calls of a run.

A call is identified by its position among the calls of the turn. Its `tool_use_id` comes from the
model, which may repeat it, leave it out or send something else. The message stream, the hooks and
the results name a call by that id alone; `RunCalls` pairs them by id, name and input, in order of
occurrence. If a pairing is ambiguous, no result is attributed, so that no call counts as done that
may not have run.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from gateway.engine.events import ToolCalled, ToolReturned, WholeOutput
from gateway.engine.result_text import report_of
from policies.calls import ToolCall
from policies.verdict import Allow, Deny

STREAM_LAG_S = 0.25
"""How long a hook waits for its call in the message stream, which is read concurrently."""

_SHELLS = frozenset({"Bash", "PowerShell"})
"""Tools that start processes."""
_SUBAGENT = "Agent"
"""The tool that runs a sub-agent."""
_REFUSED_BY_AGENT = "<tool_use_error>"
"""The start of a result if the agent program refused the call before it asked any hook."""


@dataclass(slots=True, eq=False)
class _Call:
    index: int
    name: str
    input: Mapping[str, Any]
    is_streamed: bool
    shown: ToolCall | None = None
    """The call in the `PreToolUse` hook; the agent program may have completed its input."""
    answer: Allow | Deny | None = None
    """The verdict that the agent program received."""
    has_returned: bool = False
    whole: WholeOutput | None = None
    """What it returned, if that was cut for the model."""
    is_certain: bool = True
    """Verdict and result belong to this call, not to another call with the same id."""

    @property
    def shown_cwd(self) -> str:
        return self.shown.cwd if self.shown else ""

    @property
    def shown_input(self) -> Mapping[str, Any]:
        return self.shown.input if self.shown else self.input

    @property
    def is_running(self) -> bool:
        return isinstance(self.answer, Allow) and not self.has_returned


class RunCalls:
    """The calls of one run, numbered in the order of the message stream."""

    def __init__(
        self,
        tell: Callable[[ToolCalled], None],
        *,
        calls_before: int = 0,
        stream_lag_s: float = STREAM_LAG_S,
    ) -> None:
        """Number calls from `calls_before` + 1; `tell` receives each call once, with its index."""
        self._tell = tell
        self._next_index = calls_before + 1
        self._stream_lag_s = stream_lag_s
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, list[_Call]] = {}
        self._changed = anyio.Event()
        self._has_ended = False
        self.on_returned: Callable[[int], None] = lambda _: None
        """Called with the index of each call that runs no more."""

    def __len__(self) -> int:
        return len(self._by_index)

    def stream(self, event: ToolCalled) -> None:
        """Record a call of the message stream."""
        unseen = [known for known in self._under(event.tool_use_id) if not known.is_streamed]
        call = self._choose(
            event.tool_use_id,
            unseen,
            lambda one: _grade(one, event.name, one.input, event.input, one.shown_cwd),
        )
        if call is None:
            self._add(event, is_streamed=True)
        else:
            call.is_streamed = True
        self._notify()

    async def show(self, call: ToolCall) -> ToolCall:
        """Record a call of the `PreToolUse` hook and return it with its index."""
        grade = _grade_shown(call)
        with anyio.move_on_after(self._stream_lag_s):
            while not any(
                grade(known) < _WEAK
                for known in self._unshown(call.tool_use_id)
                if not known.has_returned
            ):
                await self._changed.wait()
        found = self._choose(call.tool_use_id, self._unshown(call.tool_use_id), grade)
        if found is None:
            event = ToolCalled(tool_use_id=call.tool_use_id, name=call.name, input=call.input)
            if call.agent_id is not None:
                event = replace(event, parent_tool_use_id=self._only_subagent())
            found = self._add(event, is_streamed=False)
        elif found.has_returned:  # an earlier result was wrongly attributed to this call
            self._doubt(call.tool_use_id, has_returned=True)
        found.shown = replace(call, index=found.index)
        return found.shown

    def ask(self, tool_use_id: str, name: str, tool_input: Mapping[str, Any]) -> ToolCall | None:
        """Return the call that the permission callback asks about; None if no hook saw it."""
        waiting = [
            known for known in self._under(tool_use_id) if known.shown and known.answer is None
        ]
        call = self._choose(
            tool_use_id,
            waiting,
            lambda one: _grade(one, name, tool_input, one.shown_input, one.shown_cwd),
        )
        return None if call is None else call.shown

    async def allow(self, call: ToolCall, verdict: Allow) -> None:
        """Record that a call runs, once no other call with its id does: results carry
        the id alone.
        """
        one = self._by_index[call.index]
        others = [other for other in self._under(call.tool_use_id) if other is not one]
        while not self._has_ended and any(other.is_running for other in others):
            await self._changed.wait()
        one.answer = verdict

    @property
    def is_changing(self) -> bool:
        """A command is running that changes something."""
        return any(
            call.is_running and call.name in _SHELLS and call.answer.changes
            for call in self._by_index.values()
            if isinstance(call.answer, Allow)
        )

    @property
    def running_command(self) -> int | None:
        """The index of the command that runs; None if none does, or several do."""
        running = [call for call in self._by_index.values() if call.is_running]
        found = [call.index for call in running if call.name in _SHELLS]
        return found[0] if len(found) == 1 else None

    @property
    def runs_subagent(self) -> bool:
        """A sub-agent is at work; the agent program passes on no pieces of the model's answers to
        it.
        """
        return any(call.name == _SUBAGENT and call.is_running for call in self._by_index.values())

    def keep_whole(self, tool_use_id: str, whole: WholeOutput) -> None:
        """Keep the whole output of the call with this id that runs; no other call with it does."""
        running = [call for call in self._under(tool_use_id) if call.is_running]
        if len(running) == 1:
            running[0].whole = whole

    def end(self) -> None:
        """End all waiting: the run is over."""
        self._has_ended = True
        self._notify()

    def deny(self, call: ToolCall, verdict: Deny) -> None:
        """Record that a call does not run."""
        self._by_index[call.index].answer = verdict

    def take_result(self, event: ToolReturned) -> ToolReturned:
        """Return a result with the index of its call, or unchanged if it cannot be attributed."""
        pending = [known for known in self._under(event.tool_use_id) if not known.has_returned]
        call = _returning(pending, event)
        if call is None:
            for known in self._under(event.tool_use_id):
                self.on_returned(known.index)
            return event
        self.on_returned(call.index)
        call.has_returned = True
        self._notify()
        if call.name == _SUBAGENT:
            event = replace(event, text=report_of(event.text))
        is_known = call.is_certain and (event.is_error or isinstance(call.answer, Allow))
        return (
            replace(event, index=call.index, whole=call.whole or event.whole) if is_known else event
        )

    def denied_by_agent(self, denials: object) -> tuple[int, ...]:
        """Return the indexes of the calls in the agent program's list of denials."""
        entries = denials if isinstance(denials, list) else []
        found = [self._find(entry) for entry in entries if isinstance(entry, dict)]
        return tuple(call.index for call in found if call is not None)

    def _find(self, denial: Mapping[str, Any]) -> _Call | None:
        calls = self._under(str(denial.get("tool_use_id")))
        if len(calls) > 1:
            name, tool_input = denial.get("tool_name"), denial.get("tool_input")
            calls = [call for call in calls if (call.name, call.input) == (name, tool_input)]
        return calls[0] if len(calls) == 1 else None

    def _under(self, tool_use_id: str) -> list[_Call]:
        return self._by_id.get(tool_use_id, [])

    def _unshown(self, tool_use_id: str) -> list[_Call]:
        return [call for call in self._under(tool_use_id) if call.shown is None]

    def _add(self, event: ToolCalled, *, is_streamed: bool) -> _Call:
        call = _Call(self._next_index, event.name, event.input, is_streamed)
        self._next_index += 1
        self._by_index[call.index] = call
        self._by_id.setdefault(event.tool_use_id, []).append(call)
        self._tell(replace(event, index=call.index, parent_index=self._parent_of(event)))
        return call

    def _parent_of(self, event: ToolCalled) -> int | None:
        parents = self._under(event.parent_tool_use_id or "")
        found = [call.index for call in parents if call.name == _SUBAGENT and not call.has_returned]
        return found[0] if len(found) == 1 else None

    def _only_subagent(self) -> str | None:
        """Return the id of the call whose sub-agent runs; None if several do."""
        running = [
            tool_use_id
            for tool_use_id, calls in self._by_id.items()
            for call in calls
            if call.name == _SUBAGENT and call.is_running
        ]
        return running[0] if len(running) == 1 else None

    def _choose(
        self,
        tool_use_id: str,
        candidates: Sequence[_Call],
        grade: "_Grade",
    ) -> _Call | None:
        """Return the best match, the first of equals; if that is a guess, mark all calls of the id
        uncertain.
        """
        if not candidates:
            return None
        grades = [grade(call) for call in candidates]
        best = min(grades)
        found = [call for call, its in zip(candidates, grades, strict=True) if its == best]
        are_alike = best < _WEAK and all(call.input == found[0].input for call in found)
        if not are_alike and len(self._under(tool_use_id)) > 1:
            self._doubt(tool_use_id)
        return min(found, key=lambda one: one.has_returned)

    def _doubt(self, tool_use_id: str, *, has_returned: bool = False) -> None:
        for call in self._under(tool_use_id):
            call.is_certain = False
            if has_returned:
                call.has_returned = True
                self.on_returned(call.index)
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


_EQUAL, _RESTATED, _WEAK, _OTHER = range(4)

_Grade = Callable[[_Call], int]


def _grade(
    call: _Call, name: str, full: Mapping[str, Any], given: Mapping[str, Any], cwd: str
) -> int:
    """Grade how well a call's name and input match; lower is better. `full`
    may complete `given`.
    """
    if call.name != name:
        return _OTHER
    if full == given:
        return _EQUAL
    return _RESTATED if given and _restates(full, given, cwd) else _WEAK


def _grade_shown(call: ToolCall) -> _Grade:
    return lambda one: _grade(one, call.name, call.input, one.input, call.cwd)


def _restates(full: Mapping[str, Any], given: Mapping[str, Any], cwd: str) -> bool:
    """Return whether `full` is `given` with defaults filled in and paths made absolute."""
    return all(key in full and _is_same(full[key], value, cwd) for key, value in given.items())


def _is_same(full: object, given: object, cwd: str) -> bool:
    if full == given:
        return True
    if not (isinstance(full, str) and isinstance(given, str) and cwd):
        return False
    return full == os.path.normpath(os.path.join(cwd, given))  # noqa: PTH118  follows no link


def _returning(pending: Sequence[_Call], event: ToolReturned) -> _Call | None:
    """Return the call, of those with the result's id, that the result is of."""
    if len(pending) <= 1:
        return next(iter(pending), None)
    running = [call for call in pending if call.is_running]
    if not event.is_error:
        return next(iter(running), None)
    denied = [
        call
        for call in pending
        if isinstance(call.answer, Deny) and call.answer.message in event.text
    ]
    if denied:
        return denied[0]
    unanswered = [call for call in pending if call.answer is None]
    if unanswered and (not running or event.text.startswith(_REFUSED_BY_AGENT)):
        return unanswered[0]
    return (running or pending)[0]
