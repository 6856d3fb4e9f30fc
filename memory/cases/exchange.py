"""When two root causes are told in the same words but for one, or with who does it and whom it hits turned round.

A lock that writers hold and one that readers hold, a disk that is full and one that is slow, a consumer that
waits for the producer and the other way round: nearly every word agrees, and they are two causes. What is
retold freely has other words in other places, and is left to be judged by what it says.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from typing import Final

from memory.cases.opposition import can_be_compared
from memory.cases.wording import is_rest, kind_of

MAX_WORDS: Final = 100
"""Of each that are laid side by side, from the beginning."""

_BUILT_ALIKE: Final = 0.6
"""Share of the words that both have in the same order."""
_BESIDE: Final = frozenset({"background", "effect"})
_VAGUE: Final = frozenset({"count", "size", "value", "config", "change", "frequent"})
"""Words that come and go with the way it is put."""
_ALIKE: Final = {"exhausted": "full", "call": "request", "traffic": "request"}
"""What is taken for one another."""
_ONE_TO_ANOTHER: Final = frozenset({"untrusted", "信任", "rejected", "call", "blocked", "lag"})
"""What one thing does to another or is against it: who to whom decides."""
_EITHER: Final = frozenset({"read", "write", "arm64", "amd64"})
"""Two that stand on either side of one, or are what is done to another."""


def told_beside(words: Sequence[str]) -> set[str]:
    """Give what stands beside the matter of a root cause and still tells something."""
    told = {_ALIKE.get(word, word) for word in words if kind_of(word) in _BESIDE}
    return told - _VAGUE


def exchanged(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two root causes, given as telling words, are built alike with one word in place of another.

    Only of what stands beside and of what cutting Chinese left over (入库, 出库); the order of the two plays
    no part.
    """
    first, second = sorted((_laid_out(one), _laid_out(other)))
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    if matcher.quick_ratio() < _BUILT_ALIKE or matcher.ratio() < _BUILT_ALIKE:
        return False
    return any(
        _excludes(here, second) and _excludes(there, first)
        for step, a, b, c, d in matcher.get_opcodes()
        if step == "replace" and b - a == d - c == 1
        for here, there in [(first[a], second[c])]
    )


def turned_round(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether both tell that one does something to another, and who to whom is not the same; in either order."""
    both = {*one} & {*other}
    if not both & (_ONE_TO_ANOTHER | _EITHER):
        return False
    return _in_order(one, both) != _in_order(other, both)


def _laid_out(words: Sequence[str]) -> list[str]:
    told = [_ALIKE.get(word, word) for word in words if kind_of(word) != "bearing"]
    return told[:MAX_WORDS]


def _excludes(word: str, others: Sequence[str]) -> bool:
    """Whether a word says something against texts that do not have it."""
    says_something = is_rest(word) or (kind_of(word) in _BESIDE and word not in _VAGUE)
    return says_something and word not in others


def _in_order(words: Sequence[str], some: AbstractSet[str]) -> list[str]:
    """Give some of the words, those that can do something or have it done, by their first places."""
    kept = (word for word in words if word in _EITHER or can_be_compared(word))
    return list(dict.fromkeys(word for word in kept if word in some))
