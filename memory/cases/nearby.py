"""The cases that may tell of the same as one that is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.cases.case import Case, CaseContent
from memory.recall.query import Degradation
from memory.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearby:
    """What was found near to a content."""

    cases: Sequence[Case]
    """Likeliest first."""
    degraded: Sequence[Degradation] = ()
    """What of the search did not take part: one that tells the same may be missing."""


class Candidates(Protocol):
    """Where cases are found that may tell of the same."""

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        """Give so many cases nearest to a content that the scope may see, likeliest first."""
        ...
