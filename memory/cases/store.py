"""Where cases are kept.

Each change is one transaction: the case, its votes, relations, history, its place in the search and the
deliveries that tell the vector index.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from memory.cases.case import Case, HistoryEntry, RelatedCase, Report, Vote
from memory.items import Item

MAX_KEPT_REPORTS: Final = 50
"""Of a case; the newest stay, `Case.reports` counts all of them."""
MAX_KEPT_OF_ONE: Final = 3
"""Of these of one conversation: however often it tells, what others reported stays."""
MAX_KEPT_RELATIONS: Final = 50
"""Of a case, at either end; the nearest stay."""
MAX_KEPT_VOTINGS: Final = 10
"""Of one conversation on a case since it wrote to it last; the newest stay in the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """A case's next state, decided, and all that goes with it."""

    case: Case
    expected_revision: int
    """The revision that the decision was made on; 0: the case is new."""
    fingerprint: bytes
    """See `fingerprint_of`."""
    history: Sequence[HistoryEntry]
    item: Item | None
    """What search finds of it from now on; None: nothing."""
    relations: Sequence[RelatedCase] | None = None
    """All of its relations from now on, known at both ends; None: they stay."""
    vote: Vote | None = None
    report: Report | None = None
    shown_to: str | None = None
    """A voter that wrote to the case by this very change: nothing of it is unreviewed there."""


class CaseStore(Protocol):
    """Keeps cases. Whose they are is checked here: what the owner has not is not there."""

    async def get(self, case_ids: Sequence[str], owner_id: str) -> list[Case]:
        """Give the owner's cases in the order of the ids; those that are not there are left out."""
        ...

    async def by_fingerprint(self, fingerprint: bytes, owner_id: str) -> list[Case]:
        """Return the owner's cases with this fingerprint, hidden ones too, oldest first."""
        ...

    async def apply(self, change: CaseChange) -> None:
        """Write a change, whole: the case with its vote, relations, report, history, item and deliveries.

        An item that says what it said is not delivered again; one that is gone is told to all who may
        have it. A relation to what is not the owner's, or is gone, is left out; of very many the nearest stay.
        Of reports the newest of each conversation stay, and of all of them the newest.

        In the history a `feedback` takes the place of the one that the same conversation or person gave just
        before, where nothing else of theirs on the case came between; its details then say as `replaced` of
        how many. Of their `feedback` and `lifecycle` entries since they wrote to it, the newest stay; of the
        `merged` entries that changed nothing of the case, as many of the newest as of reports.

        Raises:
            StoreConflict: the case has another revision than the decision was made on, or another scope.
            StoreUnavailable: nothing was written.
        """
        ...

    async def votes(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[Vote]]:
        """Give each case's votes, oldest first; each id is there."""
        ...

    async def related(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[RelatedCase]]:
        """Give each case's relations, from both ends, by their `distance`; each id is there."""
        ...

    async def count_related(
        self, case_ids: Sequence[str], *, app_code: str | None
    ) -> Mapping[str, int]:
        """Count each case's relations to what is neither rejected nor stale; each id is there.

        Where an app is named, to what is of it or of none.
        """
        ...

    async def history(self, case_id: str, *, limit: int) -> Sequence[HistoryEntry]:
        """Give so many changes, oldest first.

        Before the others stay how it began, then what was rewritten and the steps of its lifecycle, then the
        newest.
        """
        ...

    async def history_length(self, case_id: str) -> int:
        """Tell how many changes its history holds."""
        ...

    async def reports(self, case_id: str, *, limit: int) -> Sequence[Report]:
        """Give the newest merged reports, oldest first."""
        ...

    async def note_shown(self, voter: str, shown: Mapping[str, int]) -> None:
        """Note that a voter was shown these cases, each with its `content_revision`.

        Where the same or newer words were shown before, that stays as it is. A case that is not there is
        left out.
        """
        ...

    async def shown_words(self, voter: str, case_id: str) -> int | None:
        """Tell the `content_revision` of what a voter was shown of a case, or wrote, last; None: not known."""
        ...

    async def unreviewed(
        self, voter: str, owner_id: str, *, app_code: str | None = None, limit: int
    ) -> list[str]:
        """List what a voter was shown and has not voted on as it says now, what was shown last first.

        What search does not show, or was forgotten since, is left out; where an app is named, what is neither
        of it nor of none is, too.
        """
        ...
