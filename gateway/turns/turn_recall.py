"""Ask memory for a turn's context, within a deadline and never at the turn's expense.

The agent takes the prompt some milliseconds before it asks for the context to show beside it. Memory is
asked in the meantime. The model is not asked until memory has answered.
"""

import logging
from typing import Any, Final

import anyio

from gateway.conversations.model import Conversation
from gateway.turns.context import TurnContext
from gateway.turns.result import memory_fields
from memory.errors import StoreUnavailable
from memory.recall.query import RECALLED_KINDS, ContextPack, QueryPack
from memory.scope import Scope

_log = logging.getLogger(__name__)

_OWN_SHARE: Final = 0.8
"""Memory's share of the deadline: by then it drops its slow parts, and has time left to report that."""


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
        pack = ContextPack(degraded=("memory_timeout",))
        try:
            with anyio.move_on_after(deadline_s):
                pack = await self._context.parts.memory.reader.recall(await self._query(deadline_s))
            self.fields, self._text = memory_fields(pack), str(pack.text)
            self._pending = tuple(pack.pending_intent_ids)
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("recall_failed")
            self.fields = memory_fields(ContextPack(degraded=("memory_failed",)))

    async def _query(self, deadline_s: float) -> QueryPack:
        turn = self._context.turn
        return QueryPack(
            queries=(turn.message,),
            scope=Scope(owner_id=turn.user_id),
            kinds=RECALLED_KINDS,
            conversation_id=turn.conversation_id,
            active_tools=await self._context.parts.memory.tools.of(turn.conversation_id),
            deadline_s=deadline_s * _OWN_SHARE,
        )

    async def wait_text(self) -> str:
        """Wait until memory has settled; return the text for the model."""
        await self._settled.wait()
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
        for reason in self.fields["degraded"]:
            context.parts.metrics.count_recall_degraded(reason)

    async def mark_sent(self) -> None:
        """If the text was shown, mark the pending context in it as consumed."""
        if not self._is_shown or not self._pending:
            return
        ids, self._pending = self._pending, ()
        try:
            await self._context.parts.memory.consumed(ids, self._context.turn.id)
        except StoreUnavailable:
            _log.exception("pending_context_not_marked")
