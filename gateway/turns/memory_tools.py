"""The agent's tools of memory, bound to the conversation by the server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.conversations.model import Conversation
from gateway.engine.own_tools import OwnAnswer, OwnServer, OwnTool, OwnToolCaller
from gateway.turns.conversation_memory import ConversationTools, scope_of
from memory.recall.tools import DESCRIPTIONS, GET, SCHEMAS, SEARCH, SERVER, Lookup, MemoryTools

MEMORY_SERVER: Final = OwnServer(
    SERVER,
    tuple(OwnTool(name, DESCRIPTIONS[name], SCHEMAS[name]) for name in (SEARCH, GET)),
)


@dataclass(frozen=True, slots=True)
class MemoryCalls:
    """Answers the tools of memory in one turn."""

    memory: MemoryTools
    conversation: Conversation
    tools: ConversationTools

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call."""
        lookup = Lookup(
            scope=scope_of(self.conversation),
            active_tools=await self.tools.of(self.conversation.id),
        )
        if name.rpartition("__")[2] == SEARCH:
            return OwnAnswer(await self.memory.search(lookup, arguments))
        text = await self.memory.get(lookup, arguments)
        return OwnAnswer(text or "There is no such item in memory.", is_error=text is None)


@dataclass(frozen=True, slots=True)
class OwnCalls:
    """Passes each call to the caller of its server."""

    callers: Mapping[str, OwnToolCaller]
    """By the server's name."""

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call of a tool that this conversation has."""
        caller = self.callers.get(name.split("__")[1])
        if caller is None:
            return OwnAnswer("This conversation does not have this tool.", is_error=True)
        return await caller(name, arguments)
