"""Asking memory before a run: within a deadline, and never at the turn's expense."""

import logging
from typing import Any

import anyio

from gateway.conversations.model import Conversation
from gateway.turns.result import memory_fields
from gateway.turns.scene import Scene
from memory.context import ContextPack, RecallRequest

_log = logging.getLogger(__name__)


class Recalling:
    """What memory gave to one turn, and the one line in the journal that says so."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._is_told = False
        self.text = ""
        """What the model is shown beside the prompt."""
        self.fields: dict[str, Any] = memory_fields(ContextPack())
        """What clients see of it."""

    async def ask(self, conversation: Conversation) -> None:
        """Ask memory, unless the conversation does without; what fails is named in `degraded`."""
        if not conversation.memory_enabled:
            return
        pack = await self._recalled(conversation)
        try:
            self.fields = memory_fields(pack)
            self.text = str(pack.text)
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("recall_not_understood")
            self.fields = memory_fields(ContextPack(degraded=("memory_failed",)))

    def tell(self) -> None:
        """Write down what was recalled, and tell it where there is something; once."""
        if self._is_told:
            return
        self._is_told = True
        self._scene.journal.write("context", **self.fields, text=self.text)
        if any(self.fields.values()):
            self._scene.events.emit("memory.injected", **self.fields)
        for reason in self.fields["degraded"]:
            self._scene.parts.metrics.count_recall_degraded(reason)

    async def _recalled(self, conversation: Conversation) -> ContextPack:
        parts, turn = self._scene.parts, self._scene.turn
        request = RecallRequest(
            conversation_id=conversation.id, user_id=turn.user_id, prompt=turn.message
        )
        try:
            with anyio.move_on_after(parts.limits.recall_deadline_s):
                return await parts.memory.recall(request)
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("recall_failed")
            return ContextPack(degraded=("memory_failed",))
        return ContextPack(degraded=("memory_timeout",))
