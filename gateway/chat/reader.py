"""Read turns: their results and their events."""

from typing import Any

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts, ConversationAccess
from gateway.conversations.feed import Subscription
from gateway.conversations.model import Conversation
from gateway.errors import NotFound
from gateway.ids import TurnId, UserId
from gateway.turns.control import run_until_first
from gateway.turns.requests import Accepted, finished_result
from memory.errors import StoreDamaged

_N_DIGITS = 18


class TurnReader:
    """Reads the turns of users."""

    def __init__(self, parts: ChatParts, access: ConversationAccess, intake: Intake) -> None:
        self._parts = parts
        self._access = access
        self._intake = intake

    async def result(self, user_id: UserId, turn_id: TurnId) -> dict[str, Any]:
        """Wait for a turn's result.

        Raises:
            NotFound: no such turn, or it was deleted meanwhile.
            StoreDamaged: the turn ran and the store does not find it.
            ShuttingDown, NotStored: see `finished_result`.
        """
        ticket = self._parts.lanes.find(turn_id)
        if ticket is not None:
            await run_until_first(
                ticket.control.finished.wait,
                self._intake.wait_shut_down,
                self._parts.log.until_stuck,
            )
        turn = await self._parts.turns.get(turn_id)
        if turn is None and ticket is not None:
            await self._access.find(user_id, ticket.turn.conversation_id)
            raise StoreDamaged("The turn ran, but the database does not find it: it is damaged.")
        if turn is None or turn.user_id != user_id:
            raise NotFound("There is no such turn.")
        return finished_result(turn, is_shutting_down=self._intake.is_shut_down)

    async def owns_turn(self, user_id: UserId, turn_id: str) -> bool:
        """Return whether a turn, and so its log, is the user's."""
        turn = await self._parts.turns.get(TurnId(turn_id))
        return turn is not None and turn.user_id == user_id

    def follow_turn(self, accepted: Accepted) -> Subscription:
        """Read a turn's events from its first one; `async with` it."""
        return self._parts.log.subscribe(accepted.conversation_id, 0, turn_id=accepted.turn_id)

    async def follow(
        self, user_id: UserId, conversation_id: str, after: str | None = None
    ) -> Subscription:
        """Read a conversation's events after the one with the id `after`; without one, live from now.

        `<turn_id>:0` is the moment before a turn's first event.

        Raises:
            NotFound: no such conversation, or it has no such event.
        """
        conversation = await self._access.find(user_id, conversation_id)
        seq = (
            self._parts.log.stored_seq if after is None else await self._seq_of(conversation, after)
        )
        return self._parts.log.subscribe(conversation.id, seq)

    async def _seq_of(self, conversation: Conversation, after: str) -> int:
        turn_id, _, n = after.rpartition(":")
        turn = await self._parts.turns.get(TurnId(turn_id))
        if turn is not None and turn.conversation_id == conversation.id and n.isdecimal():
            number = int(n[:_N_DIGITS])
            found = await self._parts.events.find(turn.id, number or 1)
            if number == 0:
                return self._parts.log.stored_seq if found is None else found - 1
            if found is not None:
                return found
        raise NotFound("There is no such event in this conversation.", code="unknown_event")
