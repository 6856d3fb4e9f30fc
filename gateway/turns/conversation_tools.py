"""Which tools a conversation used last, also after a restart: then its stored results tell."""

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.conversations.model import Turn
from gateway.conversations.store import TurnStore
from gateway.ids import ConversationId
from gateway.turns.evidence import ToolStatus
from memory.recall.recent_tools import RecentTools, RecordedCall

_TURNS: Final = 20
CAME_BACK: Final[frozenset[ToolStatus | None]] = frozenset({"ok", "failed"})
"""What became of the calls that count; one that was cut off, or never ran, is no tool in use."""


class ConversationTools:
    """The tools in use, by conversation."""

    def __init__(self, turns: TurnStore | None = None) -> None:
        self._turns = turns
        self._recent = RecentTools()

    def note(self, conversation_id: str, tool: str) -> None:
        """Note that a call came back."""
        self._recent.note(conversation_id, tool)

    def forget(self, conversation_id: str) -> None:
        """Forget a conversation that was left or deleted."""
        self._recent.forget(conversation_id)

    async def of(self, conversation_id: str) -> tuple[str, ...]:
        """Give a conversation's tools, the one that was used last at the end.

        Raises:
            StoreUnavailable: its history cannot be read.
        """
        if self._turns is not None and not self._recent.known(conversation_id):
            history = await self._turns.history(ConversationId(conversation_id), limit=_TURNS)
            self._recent.seed(conversation_id, _calls(history))
        return self._recent.of(conversation_id)


def _calls(history: Sequence[Turn]) -> Iterator[RecordedCall]:
    """Give the calls of some turns as they were made, each with its result if it had one."""
    for turn in history:
        for tool in (turn.result or {}).get("tools", ()):
            yield RecordedCall(tool["tool_use_id"], tool["name"])
            if tool["status"] in CAME_BACK:
                yield RecordedCall(tool["tool_use_id"], None)
