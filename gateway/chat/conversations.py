"""A user's conversations: list, show, change, fork and delete them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts, ConversationAccess
from gateway.chat.quotas import quota_fields
from gateway.conversations.model import (
    Branch,
    Conversation,
    ConversationChange,
    Spending,
    TextMatch,
    Turn,
    forked_conversation,
    fresh_conversation,
    title_of,
)
from gateway.errors import Conflict, NotFound
from gateway.ids import ConversationId, TurnId, UserId
from gateway.turns.conversation_memory import scope_of, seen_in
from gateway.turns.requests import ConversationView, State
from memory.recall.query import QueryPack

_HISTORY_TURNS = 50
"""How many turns are read at once."""


class Conversations:
    """The conversations of users. A method that is given the id of no conversation of the user
    raises `NotFound`.
    """

    def __init__(self, parts: ChatParts, access: ConversationAccess, intake: Intake) -> None:
        self._parts = parts
        self._access = access
        self._intake = intake

    async def create(
        self,
        user_id: UserId,
        *,
        leaving: str | None = None,
        title: str = "",
        project_id: str | None = None,
    ) -> ConversationId:
        """Start a conversation; the one being left, if any, becomes stale at once."""
        left = None if leaving is None else await self._access.find(user_id, leaving)
        fresh = fresh_conversation(
            user_id, self._parts.now(), like=left, title=title, project_id=project_id
        )
        await self._parts.conversations.create(fresh)
        self._parts.on_created()
        if left is not None:  # not before: nothing is left for a conversation that was not stored
            await self._intake.leave(left)
        self._parts.memory.started(fresh, left, self._parts.now())
        return fresh.id

    async def page(
        self, user_id: UserId, *, limit: int, cursor: str | None, query: str | None
    ) -> tuple[list[ConversationView], str | None]:
        """List a user's conversations, newest first, with the cursor of the next page."""
        store = self._parts.conversations
        page = await store.page(user_id, limit=limit, cursor=cursor, query=query)
        ids = [conversation.id for conversation in page.conversations]
        matches = await store.matches(ids, query) if query else {}
        views = await self._views(page.conversations)
        return [
            replace(view, match=matches.get(view.conversation.id)) for view in views
        ], page.next_cursor

    async def find(
        self, user_id: UserId, conversation_id: str, query: str, limit: int
    ) -> Sequence[TextMatch]:
        """Return where a conversation holds a text, the latest turn first."""
        known = await self.get(user_id, conversation_id)
        store, conversation = self._parts.conversations, known.conversation
        return await store.find(conversation.id, query, limit=limit) if query else ()

    async def pinned(self, user_id: UserId) -> list[ConversationView]:
        """List a user's pinned conversations, newest first."""
        return await self._views(await self._parts.conversations.pinned(user_id))

    async def get(self, user_id: UserId, conversation_id: str) -> ConversationView:
        """Return one conversation with its queue."""
        return self._view(await self._access.find(user_id, conversation_id))

    async def require(self, user_id: UserId, conversation_id: str) -> None:
        """Return if there is such a conversation, whoever holds it."""
        await self._access.find_stored(user_id, conversation_id)

    async def change(
        self, user_id: UserId, conversation_id: str, change: ConversationChange
    ) -> ConversationView:
        """Apply a change; a new model is used from the next turn on."""
        conversation = await self._access.find(user_id, conversation_id)
        await self._parts.conversations.change(conversation.id, change)
        await self._parts.memory.changed()
        return await self.get(user_id, conversation_id)

    async def delete(self, user_id: UserId, conversation_id: str) -> None:
        """End its process, delete its messages, events and the agent's sessions; nothing finds them
        again.

        The audit log has it before anything is gone. The conversation itself is deleted last: if
        something before fails it is still there, and deleting it again continues.
        """
        conversation = await self._access.find(user_id, conversation_id)
        known = conversation.id
        with self._access.hidden(known):
            await self._parts.record(user_id, "conversation.deleted", known)
            await self._intake.clear(known)
            await self._parts.pool.drop(known)
            self._parts.approvals.rules.forget(known)
            for session_id in await self._parts.conversations.own_sessions(known):
                await self._parts.engine.forget_session(session_id)
            await self._parts.worktrees.end(conversation)
            await self._parts.outputs.forget(known)
            await self._parts.memory.deleted(known)
            await self._parts.conversations.delete(known, self._parts.now())
            self._parts.ownership.forget(known)
            await self._parts.memory.changed()
            self._parts.log.feed.delete(known)  # its readers find it deleted

    async def messages(
        self, user_id: UserId, conversation_id: str, *, limit: int, before_seq: int | None
    ) -> Sequence[Turn]:
        """List a conversation's last turns, oldest first; the latest ones open it."""
        look = self._access.open if before_seq is None else self._access.find
        conversation = await look(user_id, conversation_id)
        return await self._parts.turns.history(conversation.id, limit=limit, before_seq=before_seq)

    async def history(self, user_id: UserId, conversation_id: str) -> AsyncIterator[Turn]:
        """Yield all turns of a conversation, oldest first."""
        turns, known = self._parts.turns, await self._access.find(user_id, conversation_id)
        latest = await turns.history(known.id, limit=1)
        for seq in range(1, latest[0].seq + 1 if latest else 0, _HISTORY_TURNS):
            until = seq + _HISTORY_TURNS
            for turn in await turns.history(known.id, limit=_HISTORY_TURNS, before_seq=until):
                if turn.seq >= seq:
                    yield turn

    async def show_quota(self, user_id: UserId) -> Mapping[str, Any]:
        """Return what a user may use, and has used today, in UTC."""
        turns, today = self._parts.turns, self._parts.now().astimezone(UTC).date()
        used = await turns.used_on(user_id, today)
        return quota_fields(
            await turns.quota_of(user_id, self._parts.quota),
            running_turns=await turns.count_unfinished(user_id),
            live_agents=await turns.count_at_work(user_id),
            daily_turns=used.turns,
            daily_usd=round(used.cost_usd, 6),
        )

    async def spending(self, user_id: UserId, conversation_id: str) -> Spending:
        """Return what a conversation's own turns have used, whoever holds it."""
        conversation = await self._access.find_stored(user_id, conversation_id)
        return await self._parts.turns.spending(conversation.id)

    async def branches(self, user_id: UserId, conversation_id: str) -> Sequence[Branch]:
        """List the other branches of a conversation's line, oldest first."""
        conversation = await self._access.find(user_id, conversation_id)
        return await self._parts.conversations.branches(conversation)

    async def fork(
        self, user_id: UserId, conversation_id: str, turn_id: str, *, before: bool = False
    ) -> ConversationId:
        """Create a conversation that remembers this one up to a completed turn.

        With `before` it remembers what came before that turn only, which may still be running.

        Raises:
            NotFound: the conversation has no such turn.
            Conflict: the turn is not finished.
        """
        conversation = await self._access.find(user_id, conversation_id)
        turn = await self._parts.turns.get(TurnId(turn_id))
        if turn is None or turn.conversation_id != conversation.id or turn.state == "withdrawn":
            raise NotFound("There is no such turn in this conversation.")
        if turn.state == "queued" or (turn.state == "running" and not before):
            raise Conflict("This turn is not finished yet.", code="turn_not_finished")
        until = turn.seq - 1 if before else turn.seq
        point = await self._parts.turns.fork_point(conversation.id, until)
        is_renamed = conversation.title != title_of(turn.message)
        title = conversation.title if until or is_renamed else ""  # its first message makes it
        fork = forked_conversation(conversation, point, self._parts.now(), title=title)
        async with self._intake.accepting:  # a deletion waits, or has begun and hides the source
            await self._access.find(user_id, conversation_id)
            await self._parts.turns.copy_history(conversation.id, until, fork)
        self._parts.on_created()
        self._parts.memory.forked(fork, conversation, self._parts.now())
        return fork.id

    async def recent_tools(self, user_id: UserId, conversation_id: str) -> tuple[str, ...]:
        """Return the tools in use in a conversation, the last used one at the end."""
        conversation = await self._access.find(user_id, conversation_id)
        return await self._parts.memory.tools_of(conversation.id)

    async def query_in(self, user_id: UserId, conversation_id: str, query: QueryPack) -> QueryPack:
        """Return a query as a turn of a conversation would ask it, in its project unless one is
        named.
        """
        conversation = await self._access.find(user_id, conversation_id)
        await self._parts.memory.changed()  # with the turns that have just ended
        is_labelled = bool(query.scope.labels)
        return replace(
            query,
            scope=query.scope if is_labelled else scope_of(conversation),
            active_tools=await self._parts.memory.tools_of(conversation.id),
            seen=await seen_in(self._parts.turns, conversation),
        )

    async def _views(self, conversations: Sequence[Conversation]) -> list[ConversationView]:
        """Return conversations for a list, which tells of those that other servers run what is
        stored: that something runs or waits.
        """
        views = [self._view(conversation) for conversation in conversations]
        idle = [view.conversation.id for view in views if view.state == "idle"]
        if not idle or not self._parts.duty.is_shared:
            return views
        busy = await self._parts.conversations.busy(idle)
        return [
            replace(view, state="running", hot=True) if view.conversation.id in busy else view
            for view in views
        ]

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
