"""The store of episodes.

One transaction writes an episode with its item, its search words, its deliveries and the mark of
its turn, and decides whether it is merged into a similar episode.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, Protocol

from memory.episodes.episode import Episode
from memory.items.scope import Scope

MERGE_WINDOW: Final = timedelta(hours=1)
"""Within this time, two episodes of the same type and tags become one."""

MAX_VARIANTS: Final = 8
"""With so many variants an episode takes no more; the next similar episode is stored as a new one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEpisode:
    """An episode to store, and what is stored with it."""

    episode: Episode
    fingerprint: bytes
    """See `fingerprint_of`; computed before the transaction."""
    deliver_to: Sequence[str] = ()
    """Names of the backends that receive it."""
    remembers_turn: str | None = None
    """The turn to mark in the same transaction."""
    comes_back: bool = False
    """True for an import, which is never merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """The result for one episode."""

    status: Literal["stored", "merged", "there"]
    episode_id: str


class EpisodeStore(Protocol):
    """Stores episodes of all owners. Every method may raise `StoreUnavailable`."""

    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        """Store or merge episodes, in their order, all in one transaction.

        An id that is stored already is left as it is and counts as stored. The same text again, of
        the same owner and labels, only adds to the count of the stored episode. An episode of the
        same type and tags within `MERGE_WINDOW` adds what it says otherwise as a variant, with new
        deliveries. A `run` or a `dialogue` merges by its text alone.

        An episode that comes back is merged with nothing. It is there already if its owner has its
        id, or the same text under the same labels; the stored episode stays as it is and nothing is
        counted. If somebody else has the id, the episode gets an id derived from its owner and that
        id, the same each time.
        """

    async def get(self, episode_id: str, scope: Scope) -> Episode | None:
        """Return an episode, or None if the scope covers none of this id."""

    async def mark_remembered(self, turn_id: str) -> None:
        """Mark a turn without an episode; idempotent."""

    async def recalled_texts(self, item_ids: Sequence[str], scope: Scope) -> Sequence[str] | None:
        """Return the texts of items that were in a prompt, without absent items; None if any of
        them was forgotten.
        """
