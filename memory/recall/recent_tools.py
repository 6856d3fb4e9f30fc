"""Which tools a conversation used last.

What memory says of a tool's schema is held back while the tool is in use. A call counts when it came
back; at most 20 a conversation, the one used last at the end; a new conversation begins with none.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_TOOLS: Final = 20
MAX_CONVERSATIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One half of a tool call as a conversation's history has it."""

    tool_use_id: str
    name: str | None
    """None exactly where this is the result."""


class RecentTools:
    """Bounded in tools and in conversations: who was silent longest is forgotten first."""

    def __init__(
        self, *, per_conversation: int = MAX_TOOLS, max_conversations: int = MAX_CONVERSATIONS
    ) -> None:
        self._per_conversation = per_conversation
        self._max_conversations = max_conversations
        self._tools: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def note(self, conversation_id: str, tool: str) -> None:
        """Note that a call of a tool came back."""
        tools = self._of(conversation_id)
        tools.pop(tool, None)
        tools[tool] = None
        while len(tools) > self._per_conversation:
            tools.popitem(last=False)

    def seed(self, conversation_id: str, calls: Iterable[RecordedCall]) -> None:
        """Take a conversation's history, oldest first, unless something is known of it already.

        A call counts only where a result with its id follows.
        """
        if self.known(conversation_id):
            return
        self._of(conversation_id)
        waiting: dict[str, str] = {}
        for call in calls:
            if call.name is not None:
                waiting[call.tool_use_id] = call.name
            elif call.tool_use_id in waiting:
                self.note(conversation_id, waiting.pop(call.tool_use_id))

    def forget(self, conversation_id: str) -> None:
        """Forget a conversation that was left or deleted."""
        self._tools.pop(conversation_id, None)

    def known(self, conversation_id: str) -> bool:
        """Whether anything is known of a conversation; if not, `seed` it from its history."""
        return conversation_id in self._tools

    def of(self, conversation_id: str) -> tuple[str, ...]:
        """Give its tools, the one that was used last at the end."""
        return tuple(self._tools.get(conversation_id, ()))

    def _of(self, conversation_id: str) -> OrderedDict[str, None]:
        tools = self._tools.setdefault(conversation_id, OrderedDict())
        self._tools.move_to_end(conversation_id)
        while len(self._tools) > self._max_conversations:
            self._tools.popitem(last=False)
        return tools
