"""Ask memory for a turn's context, within a deadline and never at the turn's expense.

The agent takes the prompt some milliseconds before it asks for the context to show beside it.
Memory is asked in the meantime. The model is not asked until memory has answered.
"""

import logging
from dataclasses import replace
from typing import Any, Final

import anyio

from gateway.conversations.leases import LeaseLost
from gateway.conversations.model import Conversation
from gateway.turns.context import TurnContext
from gateway.turns.conversation_memory import scope_of, seen_in
from gateway.turns.result import memory_fields
from memory.errors import StoreUnavailable
from memory.recall.memory_questions import asks_about_memory
from memory.recall.query import RECALLED_KINDS, ContextPack, QueryPack
from memory.recall.reader import UNSEARCHED_S

_log = logging.getLogger(__name__)

_ABOUT_MEMORY_S: Final = 2.0
"""The least deadline of a question about memory: a summary of memory is worth the time."""
_CATCHING_UP_SHARE: Final = 0.3
"""What the record gets of the deadline to take over turns that ended just now."""
_SELECTING_S: Final = 3.0
"""What the side model gets after the deadline to choose; the ranking decides if it is late."""
_LATE_S: Final = UNSEARCHED_S + 0.2
"""What memory gets after the deadline for what needs no search, and to report that."""
_SILENT: Final = frozenset(
    {
        *("memory_timeout", "memory_failed", "fulltext_timeout", "fulltext_error"),
        *("notes_timeout", "notes_error"),
    }
)
"""Reasons for which memory may have said less than it knows; without vectors words still answer."""
_SILENCE: Final = "Memory backend degraded"
_MAY_HAVE_MORE: Final = (
    "It did not answer for this message, or not with everything. Do not say that "
    "nothing is remembered."
)


class TurnRecall:
    """The memory shown to one turn, and its line in the journal."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._is_reported = False
        self._pending: tuple[str, ...] = ()
        self._is_shown = False
        self._settled = anyio.Event()
        self._text = ""
        self.fields: dict[str, Any] = memory_fields(ContextPack())
        """What clients see of it."""

    async def ask(self, conversation: Conversation) -> None:
        """Ask memory, unless it is off for the conversation; `degraded` names what failed."""
        if not conversation.memory_enabled:
            return
        deadline_s = self._context.parts.limits.recall_deadline_s
        if asks_about_memory(self._context.turn.message):
            deadline_s = max(deadline_s, _ABOUT_MEMORY_S)
        pack = ContextPack(degraded=("memory_timeout",))
        began = anyio.current_time()
        try:
            with anyio.move_on_after(deadline_s + self._selecting_s + _LATE_S):
                async with anyio.create_task_group() as beside:
                    beside.start_soon(self._catch_up, deadline_s * _CATCHING_UP_SHARE)
                    query = await self._query(conversation)
                left_s = began + deadline_s - anyio.current_time()
                query = replace(query, deadline_s=left_s)
                pack = await self._context.parts.memory.reader.recall(query)
            self.fields, self._text = memory_fields(pack), str(pack.text)
            self._pending = tuple(pack.pending_intent_ids)
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("recall_failed")
            self.fields = memory_fields(ContextPack(degraded=("memory_failed",)))
        finally:
            self._tell_silence()
            seconds = anyio.current_time() - began
            self._context.parts.metrics.observe_recall("whole", seconds)
            self._context.trace.step(
                "recall",
                began,
                items=len(self.fields["injected"]),
                held_back=len(self.fields["suppressed"]),
                degraded=self.fields["degraded"],
            )

    def _tell_silence(self) -> None:
        """Notify the person and the model that memory gave no answer or an incomplete one."""
        silent = [reason for reason in self.fields["degraded"] if reason in _SILENT]
        if not silent or self._context.parts.memory.is_missing:
            return  # a missing memory is reported when the turn cannot be written
        self._context.notice("memory_silent")
        if _SILENCE not in self._text:
            line = f"{_SILENCE}: {', '.join(silent)}. {_MAY_HAVE_MORE}"
            self._text = f"{self._text}\n\n{line}" if self._text else line

    async def _catch_up(self, within_s: float) -> None:
        """Hand what ended just now to the record."""
        with anyio.move_on_after(within_s):
            await self._context.parts.memory.catch_up()

    async def _query(self, conversation: Conversation) -> QueryPack:
        turn = self._context.turn
        return QueryPack(
            queries=(turn.message,),
            scope=scope_of(conversation),
            kinds=RECALLED_KINDS,
            conversation_id=turn.conversation_id,
            active_tools=await self._context.parts.memory.tools.of(turn.conversation_id),
            seen=await seen_in(self._context.parts.turns, conversation),
            mode=self._context.parts.memory.recall_mode,
            selecting_s=self._selecting_s,
        )

    @property
    def _selecting_s(self) -> float:
        return _SELECTING_S if self._context.parts.memory.recall_mode == "llm" else 0.0

    async def wait_text(self) -> str | None:
        """Wait until memory has settled and the turn is stored; return the text for the model.

        None if the turn could not be stored.
        """
        await self._settled.wait()
        if not await self._context.events.wait_decided():
            return None
        self._is_shown = bool(self._text)
        return self._text

    def settle(self) -> None:
        """Report what was recalled; from now on nothing more is waited for. Idempotent."""
        try:
            self._report()
        finally:
            self._settled.set()

    def _report(self) -> None:
        if self._is_reported:
            return
        self._is_reported = True
        context = self._context
        noted = context.chronicle.recalled(self.fields, context.parts.now())
        intent = {"intent": noted["intent"]} if "intent" in noted else {}
        context.journal.write("context", **self.fields, text=self._text, **intent)
        if any(self.fields.values()):
            context.events.emit("memory.injected", **self.fields)
        context.parts.metrics.count_recall(
            shown=len(self.fields["injected"]),
            held_back=[held["reason"] for held in self.fields["suppressed"]],
            degraded=self.fields["degraded"],
        )

    async def mark_sent(self) -> None:
        """If the text was shown, mark the pending context in it as consumed."""
        if not self._is_shown or not self._pending:
            return
        ids, self._pending = self._pending, ()
        context = self._context
        try:
            await context.parts.memory.consumed(ids, context.turn.id, context.chronicle.guard)
        except LeaseLost:
            return  # it waits for the next prompt at another server
        except StoreUnavailable:
            _log.exception("pending_context_not_marked")
