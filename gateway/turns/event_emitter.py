"""What happens in a run, told to readers as it happens, and written down."""

from collections.abc import Callable
from dataclasses import replace

import anyio

from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    MessageBegun,
    MessageEnded,
    ModelRetrying,
    Observed,
    RunFinished,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ToolCalled,
)
from gateway.turns.context import TurnContext
from gateway.turns.evidence import ToolUse
from gateway.turns.guards import DoomLoop
from gateway.turns.sanitizer import off_loop
from gateway.turns.stream_masker import StreamMasker

HOPELESS = frozenset({400, 401, 403, 404})
"""Statuses of the model's service that asking again does not change."""

_NAMED_STATUSES = frozenset({429, 529})


class EventEmitter:
    """Tells one turn's engine events; one that ends the turn by itself stops it."""

    def __init__(self, context: TurnContext, doom_loop: DoomLoop) -> None:
        self._context = context
        self._doom_loop = doom_loop
        self._spoken = False
        self._apart = ""
        self._text_masker = StreamMasker(context.sanitizer)
        self._thinking_masker = StreamMasker(context.sanitizer)
        self.on_first_text: Callable[[], None] = lambda: None

    async def tell(self, event: EngineEvent) -> None:
        """Tell an event that is not in the evidence yet."""
        context = self._context
        if not isinstance(event, Observed | ThinkingDelta):
            self._emit_thinking(self._thinking_masker.rest())
        match event:
            case Observed():
                context.journal.write("message", message=event.message, solicited=event.solicited)
                if not event.solicited:
                    context.parts.metrics.unsolicited_messages_total.inc()
            case ToolCalled():
                await self._tool_called(event)
            case ThinkingDelta():
                self._emit_thinking(await self._fed(self._thinking_masker, event.text))
            case ModelRetrying():
                self._retrying(event)
            case MessageEnded(stop_reason="model_context_window_exceeded"):
                context.control.stop("context_window")  # the agent would go on asking
            case _:
                await self._tell_text(event)

    async def _tell_text(self, event: EngineEvent) -> None:
        match event:
            case TextDelta():
                await self._text(event.text)
            case TextDone():
                if rest := self._rest_of(event.text):
                    await self._text(rest)
                self._emit_text(self._text_masker.rest())
            case MessageBegun():
                self._text_masker.rest()  # the answer was broken off and begins again
            case RunFinished() | ClientLost():
                self._emit_text(self._text_masker.rest())
            case _:
                return

    def _rest_of(self, block: str) -> str:
        """Return what of a finished block was not streamed; usually nothing.

        After a stream that broke, the agent may ask again without streaming.
        """
        streamed = self._context.evidence.partial
        if block.startswith(streamed):
            return block[len(streamed) :]
        if block.strip() == streamed.strip():
            return ""
        self._text_masker.rest()
        self._apart = "\n\n" if self._spoken else ""
        return block

    async def _text(self, text: str) -> None:
        """Tell a piece of text; a new block, or one begun again, stands apart from the last."""
        if self._spoken and not self._context.evidence.partial:
            self._apart = "\n\n"
        self._emit_text(await self._fed(self._text_masker, text))

    async def _fed(self, masker: StreamMasker, text: str) -> str:
        return await off_loop(masker.feed, text, more_chars=masker.waiting_chars)

    def _emit_text(self, text: str) -> None:
        if not text:
            return
        if not self._spoken:
            self.on_first_text()
        self._spoken = True
        self._context.events.emit("text.delta", text=self._apart + text)
        self._apart = ""

    def _emit_thinking(self, text: str) -> None:
        if text:
            self._context.events.emit("thinking.delta", text=text)

    async def _tool_called(self, call: ToolCalled) -> None:
        context = self._context
        told = context.sanitizer.text
        shown = replace(
            call,
            tool_use_id=told(call.tool_use_id),
            name=told(call.name),
            input=await off_loop(context.sanitizer.input, call.input),
        )
        summary = context.sanitizer.summary(call.input)
        context.evidence.tool_called(shown, summary, context.parts.now())
        context.events.emit(
            "tool.started",
            index=shown.index,
            tool_use_id=shown.tool_use_id,
            name=shown.name,
            summary=summary,
            input=shown.input,
        )
        context.call_seen.set()
        context.call_seen = anyio.Event()
        if self._doom_loop.observe(call.index, call.name, call.input):
            context.control.stop("doom_loop")

    def tool_finished(self, use: ToolUse) -> None:
        """Tell and write down what became of a call."""
        fields = {
            "index": use.index,
            "tool_use_id": use.tool_use_id,
            "name": use.name,
            "status": use.status,
            "error": use.error,
            "output": use.output,
            "duration_ms": use.duration_ms,
        }
        self._context.events.emit("tool.finished", **fields)
        told = self._context.chronicle.tool(use, self._context.parts.now())
        self._context.journal.write("tool", **fields, summary=use.summary, **told)

    def _retrying(self, event: ModelRetrying) -> None:
        context = self._context
        context.journal.write("error", where="model", retry=event)
        context.parts.metrics.model_retries_total.inc()
        if event.status in HOPELESS:
            context.control.stop("api_error")
        if context.control.is_stopping:
            return
        context.notice(
            "model_retrying",
            what=self._what_failed(event.status),
            attempt=event.attempt,
            max_attempts=event.max_attempts,
            seconds=f"{event.delay_ms / 1000:.1f}",
        )

    def _what_failed(self, status: int | None) -> str:
        if status is None:
            return self._context.say("what_connection")
        if status in _NAMED_STATUSES:
            return self._context.say(f"what_{status}")
        return self._context.say("what_status", status=status)
