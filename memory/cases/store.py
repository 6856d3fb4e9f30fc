"""The store of cases.

Each change is one transaction: the case, its vote, relations, history, search item and deliveries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from memory.cases.case import Case, HistoryEntry, RelatedCase, Vote
from memory.items.item import Item

MAX_KEPT_RELATIONS: Final = 50
"""Relations of a case that are kept, nearest first."""
MAX_KEPT_JUDGEMENTS: Final = 100
"""Newest votes and lifecycle steps in the history of a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """A case's next state and all that is written with it."""

    case: Case
    expected_revision: int
    """The revision that the decision is based on; 0: the case is new."""
    fingerprint: bytes
    """See `fingerprint_of`."""
    history: Sequence[HistoryEntry]
    item: Item | None
    """What search finds of it; None: nothing."""
    relations: Sequence[RelatedCase] | None = None
    """All of its relations, stored for both cases; None: unchanged."""
    vote: Vote | None = None
    shown_to: str | None = None
    """The voter that wrote this content, and so has nothing to review."""


class CaseStore(Protocol):
    """Stores cases. Cases of another owner are treated as absent."""

    async def get(self, case_ids: Sequence[str], owner_id: str) -> list[Case]:
        """Return the owner's cases in the order of the ids; absent ones are left out."""

    async def hidden(self, owner_ids: Sequence[str] = ()) -> list[Case]:
        """Return the cases of these owners, or of all, that search does not show."""

    async def by_fingerprint(self, fingerprint: bytes, owner_id: str) -> list[Case]:
        """Return the owner's cases with this fingerprint, hidden ones too, oldest first."""

    async def apply(self, change: CaseChange) -> None:
        """Write a whole change: the case with its vote, relations, history, item and deliveries.

        An unchanged item is not delivered again; a removed one is removed from every backend. A
        relation to another owner's or an absent case is left out. See the limits above for what is
        kept.

        Raise `StoreConflict` if the case has another revision than the decision was made on, or
        another scope; `StoreUnavailable` if nothing was written.
        """

    async def votes(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[Vote]]:
        """Return each case's votes, oldest first, with an entry for every id."""

    async def related(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[RelatedCase]]:
        """Return each case's relations by `distance`, with an entry for every id."""

    async def count_related(
        self, case_ids: Sequence[str], *, app_code: str | None
    ) -> Mapping[str, int]:
        """Count each case's relations to cases that are neither rejected nor stale, with an entry
        for every id.

        With `app_code`, only to cases of this app or of none.
        """

    async def history(self, case_id: str, *, limit: int) -> Sequence[HistoryEntry]:
        """Return at most `limit` changes, oldest first.

        The creation is kept first, then rewrites and lifecycle steps, then the newest others.
        """

    async def note_shown(self, voter: str, case_ids: Sequence[str]) -> None:
        """Record that a voter was shown these cases; absent ones are left out."""

    async def unreviewed(
        self, voter: str, owner_id: str, *, app_code: str | None = None, limit: int
    ) -> list[str]:
        """Return the cases that a voter was shown and has not judged in their present content,
        latest first.

        Hidden and forgotten cases are left out, and with `app_code` cases of other apps.
        """
