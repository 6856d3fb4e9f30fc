"""Runs turns from their queue to their stored results."""

from typing import Any

from gateway.conversations.event_log import TurnEvents
from gateway.conversations.model import Conversation, Turn
from gateway.journal.files import log_file_name
from gateway.turns.context import TurnContext
from gateway.turns.control import TurnControl
from gateway.turns.evidence import Evidence
from gateway.turns.parts import TurnLimits, TurnParts
from gateway.turns.sanitizer import OutputSanitizer
from gateway.turns.work import TurnWork

__all__ = ["TurnLimits", "TurnParts", "TurnRunner"]


class TurnRunner:
    """Runs turns; many at once, one a conversation."""

    def __init__(self, parts: TurnParts) -> None:
        self._parts = parts
        self._sanitizer = OutputSanitizer(parts.paths, parts.mask)

    async def run(
        self, turn: Turn, conversation: Conversation, events: TurnEvents, control: TurnControl
    ) -> None:
        """Run a queued turn, or one accepted as running, to its stored result.

        Never raises except on cancellation.
        """
        parts = self._parts
        context = TurnContext(
            parts=parts,
            turn=turn,
            conversation=conversation,
            events=events,
            control=control,
            sanitizer=self._sanitizer,
            evidence=Evidence(model=self._model_of(conversation)),
            started_at=turn.started_at or parts.now(),
        )
        await TurnWork(context, conversation).perform()

    def started_fields(self, turn: Turn, conversation: Conversation) -> dict[str, Any]:
        """Return the fields of `turn.started` for a turn that starts at its `started_at`."""
        log_file = log_file_name(turn.id, turn.started_at or self._parts.now())
        return {"model": self._model_of(conversation), "log_file": log_file}

    def _model_of(self, conversation: Conversation) -> str:
        return conversation.model or self._parts.default_model or ""
