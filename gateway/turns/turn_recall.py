"""Asking memory for a run: within a deadline, and never at the turn's expense.

The agent takes a prompt some milliseconds before it asks what is to be shown beside it. Memory is asked
meanwhile; the model is not, until memory has answered.
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
"""Of the deadline: memory leaves its slow parts out by then, and still has time to say so."""


class TurnRecall:
    """What memory gave to one turn, and the one line in the journal that says so."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._is_told = False
        self._pending: tuple[str, ...] = ()
        self._is_shown = False
        self._settled = anyio.Event()
        self.text = ""
        """What the model is shown beside the prompt."""
        self.fields: dict[str, Any] = memory_fields(ContextPack())
        """What clients see of it."""

    async def ask(self, conversation: Conversation) -> None:
        """Ask memory, unless the conversation does without; what fails is named in `degraded`."""
        if not conversation.memory_enabled:
            return
        pack = await self._recalled()
        try:
            self.fields = memory_fields(pack)
            self.text = str(pack.text)
            self._pending = tuple(pack.pending_intent_ids)
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("recall_not_understood")
            self.fields = memory_fields(ContextPack(degraded=("memory_failed",)))

    async def context(self) -> str:
        """Wait until nothing more comes, and give what the model is shown."""
        await self._settled.wait()
        self._is_shown = bool(self.text)
        return self.text

    def settle(self) -> None:
        """Say that nothing more comes: memory has answered, or the turn waits for it no longer."""
        try:
            self.tell()
        finally:
            self._settled.set()

    def tell(self) -> None:
        """Write down what was recalled, and tell it where there is something; once."""
        if self._is_told:
            return
        self._is_told = True
        told = self._context.chronicle.recalled(self.fields, self._context.parts.now())
        intent = {"intent": told["intent"]} if "intent" in told else {}
        self._context.journal.write("context", **self.fields, text=self.text, **intent)
        if any(self.fields.values()):
            self._context.events.emit("memory.injected", **self.fields)
        for reason in self.fields["degraded"]:
            self._context.parts.metrics.count_recall_degraded(reason)

    async def sent(self) -> None:
        """Note it if the text went in: what waited for this prompt waits no longer."""
        if not self._is_shown:
            return
        ids, self._pending = self._pending, ()
        if not ids:
            return
        try:
            await self._context.parts.memory.consumed(ids, self._context.turn.id)
        except StoreUnavailable:
            _log.exception("pending_context_not_marked")

    async def _recalled(self) -> ContextPack:
        parts, turn = self._context.parts, self._context.turn
        deadline_s = parts.limits.recall_deadline_s
        try:
            with anyio.move_on_after(deadline_s):
                query = QueryPack(
                    queries=(turn.message,),
                    scope=Scope(owner_id=turn.user_id),
                    kinds=RECALLED_KINDS,
                    conversation_id=turn.conversation_id,
                    active_tools=await parts.memory.tools.of(turn.conversation_id),
                    deadline_s=deadline_s * _OWN_SHARE,
                )
                return await parts.memory.reader.recall(query)
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("recall_failed")
            return ContextPack(degraded=("memory_failed",))
        return ContextPack(degraded=("memory_timeout",))
