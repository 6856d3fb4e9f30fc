"""Which tools a conversation used last, and with which parameters.

A tool is in use from its first returned call on. At most 20 a conversation are kept, the latest one last, and
of each at most 20 names of parameters; never a value.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from policies.content.parameters import MAX_PARAMETERS, signature, split_signature

MAX_TOOLS: Final = 20
MAX_CONVERSATIONS: Final = 1000


class RecentTools:
    """The tools in use by conversation; the conversations used least recently are dropped."""

    def __init__(
        self, *, per_conversation: int = MAX_TOOLS, max_conversations: int = MAX_CONVERSATIONS
    ) -> None:
        self._per_conversation = per_conversation
        self._max_conversations = max_conversations
        self._tools: OrderedDict[str, OrderedDict[str, list[str]]] = OrderedDict()

    def note(self, conversation_id: str, tool: str) -> None:
        """Record that a call returned, given by the tool's name or signature."""
        tools = self._of(conversation_id)
        name, parameters = split_signature(tool)
        tools[name] = list(dict.fromkeys([*parameters, *tools.pop(name, ())]))[:MAX_PARAMETERS]
        while len(tools) > self._per_conversation:
            tools.popitem(last=False)

    def seed(self, conversation_id: str, tools: Iterable[str]) -> None:
        """Take over the returned calls of a history, oldest first, unless the conversation is known."""
        if self.known(conversation_id):
            return
        self._of(conversation_id)
        for tool in tools:
            self.note(conversation_id, tool)

    def forget(self, conversation_id: str) -> None:
        """Drop a conversation."""
        self._tools.pop(conversation_id, None)

    def known(self, conversation_id: str) -> bool:
        """Return whether anything is known of a conversation; otherwise `seed` it."""
        return conversation_id in self._tools

    def of(self, conversation_id: str) -> tuple[str, ...]:
        """Return the signatures of a conversation's tools, the latest one last."""
        tools = self._tools.get(conversation_id)
        return tuple(signature(*tool) for tool in tools.items()) if tools else ()

    def _of(self, conversation_id: str) -> OrderedDict[str, list[str]]:
        tools = self._tools.setdefault(conversation_id, OrderedDict())
        self._tools.move_to_end(conversation_id)
        while len(self._tools) > self._max_conversations:
            self._tools.popitem(last=False)
        return tools
