"""The trace of one turn, by the GenAI conventions of OpenTelemetry.

    invoke_agent → request, recall, client, chat MODEL …, execute_tool NAME …, side_query …, reply

The calls of a sub-agent stand below the call of `Agent` that began it. Values are figures, ids and
words of the program. What the model or its service chose, such as a call's id, is masked, and
counts as `other` unless it has an id's form; a tool's name counts unless nobody offers that tool.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, Final, Literal, Protocol

import anyio

from gateway.conversations.model import Turn
from gateway.observability.metrics import OTHER
from gateway.observability.side_query_trace import asking_for
from gateway.observability.tracing import INCOMING, Attributes, Span, Tracer, Value
from gateway.relay.reports import ModelCall
from gateway.turns.evidence import Evidence, ToolUse
from gateway.turns.sanitizer import Mask
from gateway.version import VERSION

Step = Literal["request", "recall", "client", "reply"]

_ID: Final = re.compile(r"[A-Za-z0-9][\w.:@/+-]{0,99}", re.ASCII)
_AGENT: Final[Attributes] = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.agent.name": "candor",
    "gen_ai.agent.version": VERSION,
}
_CACHED: Final = {
    "cache_creation_input_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "cache_read_input_tokens": "gen_ai.usage.cache_read.input_tokens",
}


class TurnTrace(Protocol):
    """Takes what happens in one turn. No method waits or raises."""

    @property
    def id(self) -> str | None:
        """The trace's id; None if there is no trace."""

    def step(self, name: Step, began_s: float | None = None, **attributes: Value) -> None:
        """Add a step that ends now; it began then, or with the trace."""

    def tool_called(self, use: ToolUse) -> None:
        """Begin the step of a tool call."""

    def tool_finished(self, use: ToolUse, evidence: Evidence) -> None:
        """End the step of a tool call."""

    def model_called(self, call: ModelCall) -> None:
        """Add a call of the model's service that ends now."""

    def asking(self) -> AbstractContextManager[None]:
        """Record the questions to the small model in the block below the turn."""

    def end(self, result: Mapping[str, Any] | None) -> None:
        """End the trace with the turn's result; None: it did not run, or was not stored."""


class _NoTrace:
    """See `TurnTrace`; does nothing."""

    id = None

    def step(self, name: Step, began_s: float | None = None, **attributes: Value) -> None:
        pass

    def tool_called(self, use: ToolUse) -> None:
        pass

    def tool_finished(self, use: ToolUse, evidence: Evidence) -> None:
        pass

    def model_called(self, call: ModelCall) -> None:
        pass

    def asking(self) -> AbstractContextManager[None]:
        return nullcontext()

    def end(self, result: Mapping[str, Any] | None) -> None:
        pass


NO_TRACE: Final[TurnTrace] = _NoTrace()

BeginTrace = Callable[[Turn], TurnTrace]
"""Begins the trace of a turn that is being accepted."""


def no_traces(_turn: Turn) -> TurnTrace:
    """See `BeginTrace`; for a server that makes no traces."""
    return NO_TRACE


class TurnTracing:
    """See `BeginTrace`."""

    def __init__(self, tracer: Tracer, mask: Mask, is_offered: Callable[[str], bool]) -> None:
        """Initialise; `is_offered` returns whether a tool of this name exists."""
        self._tracer = tracer
        self._mask = mask
        self._is_offered = is_offered

    def __call__(self, turn: Turn) -> TurnTrace:
        """Begin with the request that brings the turn; its caller's trace goes on."""
        incoming = INCOMING.get()
        began_s = incoming.came_s if incoming else anyio.current_time()
        root = self._tracer.begin(
            "invoke_agent candor", began_s, incoming.caller if incoming else {}
        )
        return _SpannedTrace(self, turn, root, began_s)

    def word(self, text: str) -> str:
        """Return an id or a name that is not the program's own, if it has the form of one."""
        return text if _ID.fullmatch(text) and self._mask(text) == text else OTHER

    def tool(self, name: str) -> str:
        """Return the name of a tool that exists."""
        return self.word(name) if self._is_offered(name) else OTHER


class _SpannedTrace:
    """See `TurnTrace`."""

    def __init__(self, tracing: TurnTracing, turn: Turn, root: Span, began_s: float) -> None:
        self._tracing = tracing
        self._turn = turn
        self._root = root
        self._began_s = began_s
        self._tools: dict[int, Span] = {}
        """Of all calls, by index: a sub-agent's may come after its own call has ended."""

    @property
    def id(self) -> str | None:
        return self._root.trace_id

    def step(self, name: Step, began_s: float | None = None, **attributes: Value) -> None:
        span = self._root.begin(name, self._began_s if began_s is None else began_s)
        named = {f"candor.{name}.{key}": value for key, value in attributes.items()}
        span.end(anyio.current_time(), named)

    def tool_called(self, use: ToolUse) -> None:
        above = self._tools.get(use.parent_index or 0, self._root)
        name = f"execute_tool {self._tracing.tool(use.name)}"
        self._tools[use.index] = above.begin(name, anyio.current_time())

    def tool_finished(self, use: ToolUse, evidence: Evidence) -> None:
        span = self._tools.get(use.index)
        if span is None:
            return
        status = use.status or "unknown"
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": self._tracing.tool(use.name),
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": self._tracing.word(use.tool_use_id),
            "candor.tool.index": use.index,
            "candor.tool.status": status,
            "candor.tool.verdict": _verdict(use, evidence),
            "candor.tool.waited_ms": round(use.waited_s * 1000),
        }
        if use.allowed_by is not None:
            attributes["candor.tool.allowed_by"] = str(use.allowed_by["by"])
        span.end(anyio.current_time(), attributes, None if status == "ok" else status)

    def model_called(self, call: ModelCall) -> None:
        model, now_s = self._tracing.word(call.asked_model or call.model), anyio.current_time()
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": model,
            "candor.model.is_whole": call.is_whole,
            **_usage(call.tokens),
        }
        if call.model:
            attributes["gen_ai.response.model"] = self._tracing.word(call.model)
        if call.status is not None:
            attributes["http.response.status_code"] = call.status
        if call.first_s is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = call.first_s
        span = self._root.begin(f"chat {model}", now_s - call.seconds, "client")
        span.end(now_s, attributes, call.fault or (None if call.is_whole else "cancelled"))

    def asking(self) -> AbstractContextManager[None]:
        return asking_for(self._root)

    def end(self, result: Mapping[str, Any] | None) -> None:
        attributes: dict[str, Value] = {
            **_AGENT,
            "gen_ai.conversation.id": self._turn.conversation_id,
            "candor.turn.id": self._turn.id,
        }
        error = "not_run"
        if result is not None:
            attributes |= self._of_result(result)
            error = str(result["stop_reason"]) if result["outcome"] == "engine_failed" else ""
        self._root.end(anyio.current_time(), attributes, error or None)

    def _of_result(self, result: Mapping[str, Any]) -> Attributes:
        cause = {"candor.turn.cause": result["cause"]} if result["cause"] else {}
        started_at = datetime.fromisoformat(result["started_at"])
        queued_s = (started_at - self._turn.created_at).total_seconds()
        return {
            "gen_ai.request.model": self._tracing.word(result["model"]),
            "gen_ai.response.finish_reasons": [result["stop_reason"]],
            "candor.turn.outcome": result["outcome"],
            "candor.turn.stop_reason": result["stop_reason"],
            "candor.turn.tool_calls": len(result["tools"]),
            "candor.turn.cost_usd": result["cost_usd"],
            "candor.turn.queued_ms": max(0, round(queued_s * 1000)),
            **cause,
            **_usage(result["usage"]),
        }


def _verdict(use: ToolUse, evidence: Evidence) -> str:
    if use.index in evidence.denials:
        return "deny"
    return "allow" if use.index in (evidence.passed or ()) else "none"


def _usage(tokens: Mapping[Any, int]) -> Attributes:
    """Return figures of a usage; by the conventions the input includes what was cached."""
    cached = {_CACHED[name]: tokens[name] for name in _CACHED if name in tokens}
    return {
        "gen_ai.usage.input_tokens": tokens.get("input_tokens", 0) + sum(cached.values()),
        "gen_ai.usage.output_tokens": tokens.get("output_tokens", 0),
        **cached,
    }
