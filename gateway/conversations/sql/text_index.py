"""The index of titles and of what was said in turns, for each engine."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from gateway.conversations.model import TextMatch, Turn
from gateway.conversations.sql.excerpts import Copy
from gateway.conversations.sql.search import TriggeredTextIndex
from gateway.conversations.sql.stored_texts import StoredTextIndex
from gateway.ids import ConversationId, UserId
from memory.stores.database import Connection


class TextIndex(Protocol):
    """Finds texts that hold all words of a query, letter case ignored; a part of a word counts.

    A text is a title, or a turn's message with its reply. It is written in the transactions of
    the stores.
    """

    def title_changed_blocking(self, writer: Connection, conversation_id: ConversationId) -> None:
        """Index the title that a conversation has now."""

    def turns_ended_blocking(self, writer: Connection, turns: Sequence[Turn]) -> None:
        """Index messages and replies of those that are completed; the others are searched as they
        are.
        """

    def turns_copied_blocking(self, writer: Connection, copies: Sequence[Copy]) -> None:
        """Index completed turns that a fork copied; all have the same target."""

    def matching_blocking(
        self, reader: Connection, user_id: UserId, query: str
    ) -> tuple[str, list[Any]]:
        """Return when a user's conversation has a text that holds `query`: a condition on
        `conversations c`, its values.
        """

    def find_blocking(
        self, reader: Connection, conversation_id: ConversationId, query: str, *, limit: int
    ) -> Sequence[TextMatch]:
        """See `ConversationStore.find`."""


TEXT_INDEXES: Final[Mapping[str, TextIndex]] = {
    "sqlite": TriggeredTextIndex(),
    "postgresql": StoredTextIndex(),
}
"""By the engine of a database."""
