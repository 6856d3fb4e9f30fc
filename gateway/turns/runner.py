"""Runs turns from their queue to their stored results."""

from gateway.conversations.eventlog import TurnEvents
from gateway.conversations.model import Conversation, Turn
from gateway.turns.control import TurnControl
from gateway.turns.evidence import Evidence
from gateway.turns.parts import TurnLimits, TurnParts
from gateway.turns.scene import Scene
from gateway.turns.telling import Teller
from gateway.turns.work import TurnWork

__all__ = ["TurnLimits", "TurnParts", "TurnRunner"]


class TurnRunner:
    """Runs turns; many at once, one a conversation."""

    def __init__(self, parts: TurnParts) -> None:
        self._parts = parts
        self._teller = Teller(parts.paths, parts.mask)

    async def run(
        self, turn: Turn, conversation: Conversation, events: TurnEvents, control: TurnControl
    ) -> None:
        """Run a queued turn to its stored result. Never raises but on cancellation."""
        parts = self._parts
        scene = Scene(
            parts=parts,
            turn=turn,
            conversation=conversation,
            events=events,
            control=control,
            teller=self._teller,
            evidence=Evidence(model=conversation.model or parts.default_model or ""),
            started_at=parts.now(),
        )
        await TurnWork(scene, conversation).perform()
