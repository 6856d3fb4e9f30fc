"""Decides what of a search goes into a prompt unasked: the best five, newest first among near
equals.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeVar

from memory.recall.query import MAX_SHOWN, Found, Hit

_LEAST_NEARNESS: Final = 0.6
"""Fewer items for the same answers: measured on a person's questions, see `bench/README.md`."""
_LEAST_BY_WORDS: Final = 0.4
"""The same where no other retriever found anything: each lets some more items pass, and one alone
must let as many pass.
"""
_NEARLY_EQUAL: Final = 0.9
"""Of the fit of the better one."""


class _Fitting(Protocol):
    """What was found, with how well it fits; see `Hit`."""

    @property
    def nearness(self) -> float: ...

    @property
    def is_weak(self) -> bool: ...


_Found = TypeVar("_Found", bound=_Fitting)


def likely(found: Sequence[_Found], *, is_by_words: bool) -> list[_Found]:
    """Return what is worth showing unasked, in the same order."""
    least = _LEAST_BY_WORDS if is_by_words else _LEAST_NEARNESS
    return [hit for hit in found if not hit.is_weak and hit.nearness >= least]


def worth_showing(found: Found) -> Found:
    """Return the hits worth showing, best first."""
    near = likely((*found.hits, *found.more), is_by_words=found.is_by_words)
    return replace(found, hits=newest_of_equals(near[:MAX_SHOWN]), more=near[MAX_SHOWN:])


def newest_of_equals(hits: Sequence[Hit]) -> list[Hit]:
    """Put hits that fit about as well as the best of the remaining ones in the order of time."""
    ordered: list[Hit] = []
    rest = list(hits)
    while rest:
        least = _NEARLY_EQUAL * rest[0].fit
        equals = [hit for hit in rest if hit.fit >= least]
        ordered += sorted(equals, key=lambda hit: hit.item.occurred_at, reverse=True)
        rest = [hit for hit in rest if hit.fit < least]
    return ordered
