"""Where episodes are kept: the seam.

A store takes an episode together with its item, its words for search, its deliveries and the mark of
the turn that it was made of, or none of these. It decides within the same transaction whether the
episode is a new one or goes into a like one, so that two equal ones at once make one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, Protocol

from memory.episodes.episode import Episode
from memory.episodes.likeness import Likeness
from memory.scope import Scope

MERGE_WINDOW: Final = timedelta(hours=1)
"""So close in time, the same type and tags are enough for two episodes to become one."""

MAX_VARIANTS: Final = 8
"""With so many, an episode takes no more; the next like one begins a new one."""

MAX_CANDIDATES: Final = 6
"""So many episodes are compared word by word with a new one, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEpisode:
    """An episode that may become memory, and what goes with it."""

    episode: Episode
    likeness: Likeness
    """`likeness_of` it; made before, so that no transaction waits for it."""
    deliver_to: Sequence[str] = ()
    """Names of the backends that get it."""
    remembers_turn: str | None = None
    """The turn that is remembered by this, marked in the same transaction."""
    comes_back: bool = False
    """It was written out once: stored as it is or found to be there, never merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """What became of it."""

    status: Literal["stored", "merged", "there"]
    episode_id: str


class EpisodeStore(Protocol):
    """Episodes of all owners. Every method raises `StoreUnavailable` where it cannot be reached."""

    async def put(self, new: Sequence[NewEpisode]) -> Sequence[Put]:
        """Store or merge episodes, in their order, all in one transaction.

        An id that is stored already is left as it is and counts as stored. The same text again, of the
        same owner and labels, only adds to the count of the one that is there. One of a like text, or
        of the same type and tags within `MERGE_WINDOW`, adds what it says otherwise as a variant, with
        new deliveries. A `run` or a `dialogue` merges by its text alone. One with a place in a thread
        is like no other; what comes to the same place again is the same line, in other words perhaps.

        One that comes back is merged with nothing. It is there already where its owner has its id, or
        the same text under the same labels; that stays as it is and nothing is counted. An id that
        somebody else has is left to them: it gets one made of its owner and that id, each time the same.

        Raises:
            StoreConflict: a place in a thread of the same owner is taken under other labels.
        """
        ...

    async def get(self, episode_id: str, scope: Scope) -> Episode | None:
        """Give an episode, or None where there is none that the scope covers."""
        ...

    async def mark_remembered(self, turn_id: str) -> None:
        """Mark a turn of which nothing is to be remembered; idempotent."""
        ...

    async def recalled_texts(self, item_ids: Sequence[str], scope: Scope) -> Sequence[str] | None:
        """Give the texts of items that went into a prompt; those that are gone are left out.

        None: one of them was forgotten.
        """
        ...
