"""The agent program's sessions, kept where another server can resume them.

A session has a transcript, and one for each of its sub-agents under a subpath. A transcript is the
lines of the agent program's file, JSON of which only the `uuid` is read that most of them have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.ids import ConversationId

MAIN: Final = ""
"""The subpath of the session's own transcript."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a transcript, without its end."""

    data: bytes
    uuid: str | None = None
    """Of an entry that a transcript has once, however often it is appended."""


@dataclass(frozen=True, slots=True)
class TranscriptEnd:
    """How far a transcript goes."""

    entries: int
    uuids: int
    """How many of the entries have one."""
    last_uuid: str | None
    """None if no entry has one."""


class SessionOwner(Protocol):
    """The turn for which a session is written; see `TurnEvents`."""

    conversation_id: ConversationId
    epoch: int
    """Of the conversation's lease. Of a new conversation's turn: known once it is decided."""

    async def wait_decided(self) -> bool:
        """Wait until the turn is stored or refused; return whether it is stored, and not lost."""


class TranscriptStore(Protocol):
    """Transcripts in the database. An append or replacement is stored whole or not at all.

    `session` is a name of a session that is the same on all servers. Writing takes the epoch of the
    conversation's lease: with another one than the lease has nothing is written, the owner is told
    and None returned. All raise `StoreUnavailable`.
    """

    is_fed: bool
    """False: it has what was copied from another database, and gets no more."""

    async def append(
        self,
        session: str,
        subpath: str,
        entries: Sequence[Entry],
        owner: tuple[ConversationId, int],
    ) -> int | None:
        """Append entries in their order, but none whose `uuid` the transcript has; return how many
        it has then. Without entries nothing is made.
        """

    async def replace(
        self,
        session: str,
        transcripts: Mapping[str, Sequence[Entry]],
        owner: tuple[ConversationId, int],
    ) -> int | None:
        """Set all transcripts of a session; return how many entries its own has then."""

    async def load(self, session: str, subpath: str = MAIN) -> list[bytes] | None:
        """Return a transcript's lines in their order; None if there is no such transcript."""

    async def ends(self, session: str) -> Mapping[str, TranscriptEnd]:
        """Return how far each transcript of a session goes, by subpath."""

    async def delete(self, session: str, subpath: str = MAIN) -> None:
        """Delete the transcript of a sub-agent, or the session with all of them. Idempotent."""

    async def deleted(self, sessions: Sequence[str]) -> set[str]:
        """Return those of some sessions that were deleted, on whichever server."""
