"""Emit a run's engine events to readers and to the journal, as they happen."""

from dataclasses import replace
from typing import Any

import anyio

from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    MessageBegun,
    MessageEnded,
    ModelRetrying,
    Observed,
    PictureRefused,
    RunFinished,
    ServiceFailed,
    Summarised,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ToolCalled,
    ToolOutput,
)
from gateway.observability.masking import clip
from gateway.turns.context import TurnContext
from gateway.turns.evidence import Notice, ToolUse
from gateway.turns.guards import DoomLoop
from gateway.turns.reply import describe_failure, report_of
from gateway.turns.result import tool_fields
from gateway.turns.sanitizer import StreamMasker, off_loop
from gateway.turns.task_list import tasks_of
from policies.calls import TASK_LIST_TOOLS

HOPELESS = frozenset({400, 401, 403, 404})
"""HTTP statuses of the model's service that retrying does not change."""

_ADDED_CHARS = 200
"""Kept of what the gate added to an input, besides twice the length of what it replaced."""


class EventEmitter:
    """Emits one turn's engine events; stops the turn on an event that must end it."""

    def __init__(self, context: TurnContext, doom_loop: DoomLoop) -> None:
        self._context = context
        self._doom_loop = doom_loop
        self._apart = ""
        self._kept_chars = 0
        """Characters of text that readers have and keep."""
        self._open_chars = {"text": 0, "thinking": 0}
        """Characters that readers have of blocks that are not finished."""
        self._blank: list[str] = []
        """Blank text of the block that is being written, after what readers have of it."""
        self._in_block = False
        """Readers have something of that block."""
        self._text_masker = StreamMasker(context.sanitizer, context.masked)
        self._thinking_masker = StreamMasker(context.sanitizer, context.masked)
        self._output_maskers: dict[int, StreamMasker] = {}
        """Of commands that run, by the calls' numbers."""
        self.first_text_s: float | None = None
        """Seconds from the turn's begin to its first text."""

    async def emit(self, event: EngineEvent) -> None:
        """Emit an event that is not in the evidence yet."""
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
            case ServiceFailed() | ModelRetrying() | PictureRefused():
                self._emit_failure(event)
            case Summarised():
                message = context.say("conversation_summarised")
                context.events.emit(
                    "conversation_summarised", trigger=event.trigger, message=message
                )
                context.add_notice(Notice("conversation_summarised", message))
            case MessageEnded():
                self._open_chars["thinking"] = 0
                if event.stop_reason == "model_context_window_exceeded":
                    context.control.stop("context_window")  # the agent would go on asking
            case _:
                await self._emit_text_event(event)

    def _emit_failure(self, event: ServiceFailed | ModelRetrying | PictureRefused) -> None:
        context = self._context
        match event:
            case ServiceFailed():
                context.journal.write("error", where="service", report=event.report)
            case ModelRetrying():
                self._retrying(event)
            case PictureRefused() if context.evidence.has_picture:  # else an earlier turn told it
                context.add_notice(Notice("picture_left_out", context.say("picture_refused")))
            case PictureRefused():
                pass

    async def _emit_text_event(self, event: EngineEvent) -> None:
        match event:
            case ToolOutput():
                await self._tool_output(event)
            case TextDelta():
                await self._text(event.text)
            case TextDone() if self._context.evidence.steps.is_repeated(event.text):
                if void := self._void():
                    self._context.notice("answer_restarted", void)
            case TextDone():
                if rest := self._rest_of(event.text):
                    await self._text(rest)
                self._emit_text(self._text_masker.rest())
                self._kept_chars += self._open_chars["text"]
                self._open_chars = dict.fromkeys(self._open_chars, 0)
            case MessageBegun():
                if void := self._void():
                    self._context.notice("answer_restarted", void)
            case RunFinished() | ClientLost():
                self._emit_text(self._text_masker.rest())
            case _:
                return

    def _rest_of(self, block: str) -> str:
        """Return the part of a finished block that was not streamed; usually nothing.

        After a stream that broke, the agent may ask again without streaming.
        """
        streamed = self._context.evidence.steps.partial
        if block.startswith(streamed):
            return block[len(streamed) :]
        if block.strip() == streamed.strip():
            return ""
        if void := self._void():
            self._context.notice("answer_restarted", void)
        self._set_apart()
        return block

    async def _text(self, text: str) -> None:
        """Emit a piece of text; a new or restarted block is set apart from the last."""
        if not self._context.evidence.steps.is_writing:
            self._set_apart()
            self._begin_block()
        self._emit_text(await self._fed(self._text_masker, text))

    def _begin_block(self) -> None:
        """Drop blank text at the end of the last block."""
        self._blank.clear()
        self._in_block = False

    async def _fed(self, masker: StreamMasker, text: str) -> str:
        return await off_loop(masker.feed, text, more_chars=masker.waiting_chars)

    def _emit_text(self, text: str) -> None:
        """Emit masked text. Blank text waits for what follows, so that a block has
        none around it.
        """
        self._blank.append(text)
        if not text.strip():
            return
        whole = "".join(self._blank)
        text = whole.rstrip()
        self._blank = [whole[len(text) :]]
        text = text if self._in_block else text.lstrip()
        self._in_block = True
        if self.first_text_s is None:
            self.first_text_s = self._context.elapsed_s
            self._context.parts.pool.text_began(self._context.turn.conversation_id)
        text = self._apart + text
        self._context.events.emit("text.delta", text=text)
        self._open_chars["text"] += len(text)
        self._apart = ""

    def _set_apart(self) -> None:
        self._apart = "\n\n" if self._kept_chars + self._open_chars["text"] else ""

    def _emit_thinking(self, text: str) -> None:
        if text:
            self._context.events.emit("thinking.delta", text=text)
            self._open_chars["thinking"] += len(text)

    def _void(self) -> dict[str, int]:
        """Discard what was shown of unfinished blocks; return what readers must drop,
        for a notice.
        """
        self._text_masker.rest()
        self._thinking_masker.rest()
        self._begin_block()
        void = {f"void_{kind}_chars": count for kind, count in self._open_chars.items() if count}
        self._open_chars = dict.fromkeys(self._open_chars, 0)
        return void

    async def _tool_called(self, call: ToolCalled) -> None:
        context = self._context
        self._open_chars["thinking"] = 0
        shown = replace(
            call,
            tool_use_id=context.sanitizer.text(call.tool_use_id),
            name=context.sanitizer.text(call.name),
            parent_tool_use_id=context.sanitizer.text(call.parent_tool_use_id or "") or None,
            input=await off_loop(context.sanitizer.input, call.input),
        )
        summary = context.sanitizer.summary(call.input)
        use = context.evidence.tool_called(shown, summary, anyio.current_time())
        context.trace.tool_called(use)
        context.events.emit(
            "tool.started",
            index=shown.index,
            tool_use_id=shown.tool_use_id,
            name=shown.name,
            summary=summary,
            input=shown.input,
            parent_index=shown.parent_index,
            parent_tool_use_id=shown.parent_tool_use_id,
        )
        context.call_seen.set()
        context.call_seen = anyio.Event()
        if self._doom_loop.observe(call.index, call.name, call.input, str(call.parent_index or "")):
            context.control.stop("doom_loop")

    async def _tool_output(self, output: ToolOutput) -> None:
        """Emit what a command writes while it runs; its result brings all of it."""
        context, index = self._context, output.index
        if index not in context.evidence.tools:
            return
        masker = self._output_maskers.get(index)
        if masker is None:
            masker = StreamMasker(context.sanitizer, context.masked)
            self._output_maskers[index] = masker
        if shown := await self._fed(masker, output.text):
            context.events.emit("tool.output", index=index, text=shown)

    async def tool_finished(self, use: ToolUse) -> None:
        """Emit and record the result of a call."""
        self._output_maskers.pop(use.index, None)
        if not use.has_begun and use.index not in self._context.evidence.waiting:
            use.error = self._context.say("not_begun")
        self._context.trace.tool_finished(use, self._context.evidence)
        use.ran = await self._rewritten(use)
        fields = {
            **tool_fields(use),
            "output": use.output,
            "output_chars": use.output_chars,
            "ran": use.ran,
        }
        with anyio.CancelScope(shield=True):  # a result that is cut off here would be lost
            noted = await self._context.chronicle.tool(use, self._context.parts.now())
        self._context.journal.write("tool", frozenset({use.output}), **fields, **noted)
        del fields["summary"]  # the start's event has it
        self._context.events.emit("tool.finished", **fields)
        if use.name in TASK_LIST_TOOLS and use.status == "ok":
            tasks = tasks_of(self._context.evidence.tools.values())
            self._context.events.emit("tasks.changed", tasks=tasks)

    async def _rewritten(self, use: ToolUse) -> dict[str, Any] | None:
        """Return what the gate replaced in a call's input, as far as a person sees a difference."""
        rewritten = self._context.evidence.rewritten.get(use.index)
        if rewritten is None:
            return None
        shown = await off_loop(self._context.sanitizer.input, rewritten)
        return {
            key: _short(value, use.input.get(key))
            for key, value in shown.items()
            if use.input.get(key) != value
        } or None

    def _retrying(self, event: ModelRetrying) -> None:
        context = self._context
        context.journal.write("error", where="model", retry=event)
        context.parts.metrics.model_retries_total.inc()
        if event.status in HOPELESS:
            context.control.stop("api_error")
        if context.control.is_stopping:
            return
        seen = context.evidence.service or report_of(event)
        context.notice(
            "model_retrying",
            self._void(),
            what=describe_failure(seen, context.language),
            attempt=event.attempt,
            seconds=f"{event.delay_ms / 1000:.1f}",
        )


def _short(value: Any, replaced: Any) -> Any:
    """Clip a canonical value: a search gets a long list of files that it may not read."""
    if not isinstance(value, str):
        return value
    return clip(value, _ADDED_CHARS + 2 * (len(replaced) if isinstance(replaced, str) else 0))
