"""A user's conversations: list, show, change, fork and delete them."""

from collections.abc import Sequence

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts, ConversationAccess
from gateway.conversations.model import (
    Conversation,
    ConversationChange,
    Turn,
    forked_conversation,
    fresh_conversation,
)
from gateway.errors import Conflict, NotFound
from gateway.ids import ConversationId, TurnId, UserId
from gateway.turns.requests import ConversationView, State


class Conversations:
    """The conversations of users."""

    def __init__(self, parts: ChatParts, access: ConversationAccess, intake: Intake) -> None:
        self._parts = parts
        self._access = access
        self._intake = intake

    async def create(
        self, user_id: UserId, *, leaving: str | None = None, title: str = ""
    ) -> ConversationId:
        """Start a conversation; the one being left, if any, becomes stale at once.

        Raises:
            NotFound: no such conversation to leave.
        """
        left = None if leaving is None else await self._access.find(user_id, leaving)
        if left is not None:
            await self._intake.leave(left)
        fresh = fresh_conversation(user_id, self._parts.now(), like=left, title=title)
        await self._parts.conversations.create(fresh)
        self._parts.memory.started(fresh, left, self._parts.now())
        return fresh.id

    async def page(
        self, user_id: UserId, *, limit: int, cursor: str | None, query: str | None
    ) -> tuple[list[ConversationView], str | None]:
        """List a user's conversations, newest first, with the cursor of the next page."""
        page = await self._parts.conversations.page(
            user_id, limit=limit, cursor=cursor, query=query
        )
        return [self._view(conversation) for conversation in page.conversations], page.next_cursor

    async def get(self, user_id: UserId, conversation_id: str) -> ConversationView:
        """Return one conversation with its queue.

        Raises:
            NotFound: no such conversation.
        """
        return self._view(await self._access.find(user_id, conversation_id))

    async def change(
        self, user_id: UserId, conversation_id: str, change: ConversationChange
    ) -> ConversationView:
        """Apply a change; a new model is used from the next turn on.

        Raises:
            NotFound: no such conversation.
        """
        conversation = await self._access.find(user_id, conversation_id)
        await self._parts.conversations.change(conversation.id, change)
        return await self.get(user_id, conversation_id)

    async def delete(self, user_id: UserId, conversation_id: str) -> None:
        """End its process, delete its messages, events and the agent's sessions.

        The conversation itself is deleted last: if something before fails it is still there, and
        deleting it again continues.

        Raises:
            NotFound: no such conversation.
        """
        known = (await self._access.find(user_id, conversation_id)).id
        with self._access.hidden(known):
            await self._intake.clear(known)
            await self._parts.pool.drop(known)
            self._parts.approvals.forget(known)
            for session_id in await self._parts.conversations.own_sessions(known):
                await self._parts.engine.forget_session(session_id)
            await self._parts.memory.deleted(known)
            await self._parts.conversations.delete(known, self._parts.now())
            self._parts.log.end_conversation(known)

    async def messages(
        self, user_id: UserId, conversation_id: str, *, limit: int, before_seq: int | None
    ) -> Sequence[Turn]:
        """List a conversation's last turns, oldest first.

        Raises:
            NotFound: no such conversation.
        """
        conversation = await self._access.find(user_id, conversation_id)
        return await self._parts.turns.history(conversation.id, limit=limit, before_seq=before_seq)

    async def fork(self, user_id: UserId, conversation_id: str, turn_id: str) -> ConversationId:
        """Create a conversation that remembers this one up to a completed turn.

        Raises:
            NotFound: no such conversation or turn.
            Conflict: the turn is not finished, or its agent session cannot be forked.
        """
        conversation = await self._access.find(user_id, conversation_id)
        turn = await self._parts.turns.get(TurnId(turn_id))
        if turn is None or turn.conversation_id != conversation.id or turn.state == "withdrawn":
            raise NotFound("There is no such turn in this conversation.")
        if turn.state != "completed":
            raise Conflict("This turn is not finished yet.", code="turn_not_finished")
        point = await self._parts.turns.fork_point(conversation.id, turn.seq)
        fork = forked_conversation(conversation, point, self._parts.now())
        async with self._intake.accepting:  # a deletion waits, or has begun and hides the source
            await self._access.find(user_id, conversation_id)
            await self._parts.turns.copy_history(conversation.id, turn.seq, fork)
        self._parts.memory.forked(fork, conversation, self._parts.now())
        return fork.id

    async def recent_tools(self, user_id: UserId, conversation_id: str) -> tuple[str, ...]:
        """Return the tools in use in a conversation, the last used one at the end.

        Raises:
            NotFound: no such conversation.
        """
        conversation = await self._access.find(user_id, conversation_id)
        return await self._parts.memory.tools_of(conversation.id)

    def _view(self, conversation: Conversation) -> ConversationView:
        current = self._parts.lanes.current(conversation.id)
        state: State = "running" if self._parts.lanes.is_busy(conversation.id) else "idle"
        if current is not None and current.control.is_stopping:
            state = "stopping"
        return ConversationView(
            conversation=conversation,
            state=state,
            hot=self._parts.pool.is_hot(conversation.id),
            queue=[ticket.turn for ticket in self._parts.lanes.waiting(conversation.id)],
        )
