"""Talking to an agent client in tests: scripts, gatekeepers, and what a run told."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import anyio
import anyio.lowlevel

from gateway.engine.calls import RunCalls
from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    Observed,
    RunFinished,
    TextDelta,
    TextDone,
)
from gateway.engine.own_tools import OwnToolCaller
from gateway.engine.protocol import AgentClient, AgentRun, Prompt, ToolGatekeeper
from policies.calls import ToolCall
from policies.verdict import Allow

LONG_S = 60.0
"""A bound for what takes a real process; never a measure."""

YES = Allow(rule="test", reason="Tests may.")

Answer = object | Callable[[ToolCall], object]
E_ = TypeVar("E_", bound=EngineEvent)


def script(*steps: dict[str, Any]) -> str:
    """Write a prompt that makes the model do exactly these steps."""
    return f"```candor-script\n{json.dumps(steps, ensure_ascii=False)}\n```"


def bash(command: str, **more: Any) -> dict[str, Any]:
    """Write a step that calls Bash."""
    return {"tool": "Bash", "input": {"command": command}, **more}


def step(tool: str, **given: Any) -> dict[str, Any]:
    """Write a step that calls a tool."""
    return {"tool": tool, "input": given}


class Gate:
    """A gatekeeper that answers what it is told to, and keeps what it was asked."""

    def __init__(self, judge: Answer = YES, decide: Answer = YES) -> None:
        self.asked: list[tuple[str, ToolCall]] = []
        self.decided = anyio.Event()
        self.returns: list[int] = []
        self._judge = judge
        self._decide = decide

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.asked]

    async def judge(self, call: ToolCall) -> Any:
        self.asked.append(("judge", call))
        return _answer(self._judge, call)

    async def decide(self, call: ToolCall) -> Any:
        self.asked.append(("decide", call))
        self.decided.set()
        return _answer(self._decide, call)

    def returned(self, index: int) -> None:
        self.returns.append(index)


def _answer(answer: Answer, call: ToolCall) -> object:
    told = answer(call) if callable(answer) else answer
    if isinstance(told, Exception):
        raise told
    return told


@dataclass(frozen=True, slots=True)
class Told:
    """All events of a run."""

    events: list[EngineEvent]

    @property
    def text(self) -> str:
        return "\n".join(event.text for event in self.all(TextDone))

    @property
    def streamed(self) -> str:
        return "".join(event.text for event in self.all(TextDelta))

    @property
    def finish(self) -> RunFinished:
        last = self.events[-1]
        assert isinstance(last, RunFinished), last
        return last

    @property
    def lost(self) -> ClientLost:
        last = self.events[-1]
        assert isinstance(last, ClientLost), last
        return last

    @property
    def plain(self) -> list[EngineEvent]:
        return [event for event in self.events if not isinstance(event, Observed)]

    def all(self, kind: type[E_]) -> list[E_]:
        return [event for event in self.events if isinstance(event, kind)]

    def only(self, kind: type[E_]) -> E_:
        (one,) = self.all(kind)
        return one


class LateContext:
    """What is shown beside a prompt, once a test gives it."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self._given = anyio.Event()
        self._text = ""

    def give(self, text: str) -> None:
        """Pass it to the model."""
        self._text = text
        self._given.set()

    async def __call__(self) -> str:
        self.asked.set()
        await self._given.wait()
        return self._text


def unheard_calls() -> RunCalls:
    """Make the calls of a run whose message stream nobody reads."""
    return RunCalls(lambda _: None, stream_lag_s=0)


def prompt(
    text: str,
    gate: ToolGatekeeper | Gate | None = None,
    context: str = "",
    call_own: OwnToolCaller | None = None,
) -> Prompt:
    """Make a prompt; its gatekeeper allows everything unless another one is given."""
    gatekeeper = cast("ToolGatekeeper", gate or Gate())

    async def give() -> str:
        await anyio.lowlevel.checkpoint()
        return context

    return Prompt(text=text, gatekeeper=gatekeeper, context=give, call_own=call_own)


async def read(run: AgentRun) -> Told:
    """Read a run to its end."""
    with anyio.fail_after(LONG_S):
        return Told([event async for event in run.events()])


async def ask(
    client: AgentClient,
    text: str,
    gate: ToolGatekeeper | Gate | None = None,
    context: str = "",
    call_own: OwnToolCaller | None = None,
) -> Told:
    """Send a prompt and read its run to the end."""
    with anyio.fail_after(LONG_S):
        return await read(await client.start_run(prompt(text, gate, context, call_own)))


async def until(reached: Callable[[], bool], *, pause_s: float = 0.0) -> None:
    """Run the loop until a condition holds, within a bound."""
    with anyio.fail_after(LONG_S):
        while not reached():  # noqa: ASYNC110  what is waited for has no event
            await anyio.sleep(pause_s)
