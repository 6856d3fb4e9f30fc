"""The words of a question with their weights.

Stop words (the, 的, 什么) are left out. A repeated word weighs more, and the end of a question,
which may be a dialogue's history, weighs more than its beginning.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Final

from memory.text.terms import characters, terms

MAX_TERMS: Final = 48
MAX_CHARACTERS: Final = 64
MAX_QUESTION_CHARS: Final = 4000
"""The end of a longer question is used, because the present request stands there."""

_SAID: Final = 0.4
_JUST_SAID: Final = 0.6
_FADES_OVER: Final = 60
"""Words, about two or three sentences."""

_LISTS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
STOP_TERMS: Final = frozenset((_LISTS["stop_english"] + _LISTS["stop_chinese"]).split())
STOP_CHARACTERS: Final = frozenset(_LISTS["stop_characters"])
ASKING_TERMS: Final = frozenset((_LISTS["asking_english"] + _LISTS["asking_chinese"]).split())
"""Words of asking; an answer need not contain them."""


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """The terms of a question, at most 48, and its single characters, at most 64."""

    weights: Mapping[str, float]
    """Of each term, heaviest first."""
    characters: Sequence[str]
    """Single Chinese, Japanese and Korean characters, each once."""

    @property
    def of_the_matter(self) -> Sequence[str]:
        """The terms without words of asking, heaviest first."""
        return [term for term in self.weights if term not in ASKING_TERMS]

    @classmethod
    def of(cls, text: str, *, with_compounds: bool = True) -> "QuestionWords":
        """Return the words of a question; without compounds, only the parts of a compound name."""
        asked = text[-MAX_QUESTION_CHARS:]
        split = terms(asked, with_compounds=with_compounds)
        found = [term for term in split if not is_stop(term)]
        weights: dict[str, float] = {}
        for place, term in enumerate(found, start=1):
            behind = len(found) - place
            weights[term] = weights.get(term, 0.0) + _SAID + _JUST_SAID * exp(-behind / _FADES_OVER)
        ordered = sorted(weights.items(), key=lambda value: -value[1])
        telling = set("".join(weights))
        single = [
            char for char in characters(asked) if char in telling and char not in STOP_CHARACTERS
        ]
        return cls(dict(ordered[:MAX_TERMS]), tuple(single[-MAX_CHARACTERS:]))


def is_stop(term: str) -> bool:
    """Return whether a term is a stop word, or has stop characters alone."""
    return term in STOP_TERMS or STOP_CHARACTERS.issuperset(term)
