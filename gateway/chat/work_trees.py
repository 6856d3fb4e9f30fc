"""The work trees of a user's conversations: look, merge, throw away."""

from contextlib import ExitStack

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts, ConversationAccess
from gateway.ids import UserId
from gateway.turns.workspaces import OpenWorkspace
from gateway.turns.worktrees import TreeView
from gateway.worktrees.worktrees import Merged


class WorkTrees:
    """A method that is given the id of no conversation of the user raises `NotFound`."""

    def __init__(self, parts: ChatParts, access: ConversationAccess, intake: Intake) -> None:
        self._parts = parts
        self._access = access
        self._intake = intake

    async def view(self, user_id: UserId, conversation_id: str) -> TreeView | None:
        """Return how a conversation's work tree differs; None: it has none."""
        conversation = await self._access.find(user_id, conversation_id)
        return await self._parts.worktrees.view(conversation)

    async def find(self, user_id: UserId, conversation_id: str) -> OpenWorkspace:
        """Return where the files of a conversation are."""
        conversation = await self._access.find(user_id, conversation_id)
        return await self._parts.worktrees.find(conversation)

    async def merge(self, user_id: UserId, conversation_id: str) -> Merged:
        """Merge a conversation's work tree into the workspace; see `Worktrees.merge`."""
        conversation = await self._access.find(user_id, conversation_id)
        await self._parts.ownership.hold(conversation.id)
        is_busy = self._parts.lanes.is_busy(conversation.id)
        return await self._parts.worktrees.merge(conversation, is_busy=is_busy)

    async def discard(self, user_id: UserId, conversation_id: str) -> None:
        """Throw a work tree away; messages to its conversation wait meanwhile, so that no turn
        begins in it.
        """
        conversation = await self._access.find(user_id, conversation_id)
        with ExitStack() as meanwhile:
            async with self._intake.accepting_in(conversation.id):
                await self._parts.ownership.hold(conversation.id)
                is_busy = self._parts.lanes.is_busy(conversation.id)
                if not is_busy:
                    meanwhile.enter_context(self._access.occupied(conversation.id))
            if not is_busy:
                await self._parts.pool.drop(conversation.id)
            await self._parts.worktrees.discard(conversation, is_busy=is_busy)
