"""Which of a person's facts, or lines of notes, a new statement repeats, corrects, or means."""

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Final

from memory.facts.fact import Fact, supersedes
from memory.facts.wording import subject_of, value_of, words_of
from memory.recall.question_words import STOP_TERMS
from memory.terms import characters

_SINGLE_CHARACTER: Final = 0.3
"""The weight of a single Chinese character beside a pair of them."""
_MIN_SHARED: Final = 0.1
"""Of the weight of a fact's words, for a sentence that says that it corrects or forgets something."""
_MIN_SHARED_UNSAID: Final = 0.5
"""The same, for a sentence that may be an ordinary one."""
_MIN_SHARED_NOTE: Final = 0.3
"""Of the weight of a note's line, for a correction of no fact."""
_MAX_MEANT: Final = 3
"""A request to forget that fits more facts equally well is too vague to act on."""


def repeated(text: str, facts: Sequence[Fact]) -> Fact | None:
    """Return the fact that says the same already."""
    form, subject, value = words_of(text), subject_of(text), value_of(text)
    for fact in facts:
        if words_of(fact.text) == form:
            return fact
        if subject and (subject, value) == (subject_of(fact.text), value_of(fact.text)):
            return fact
    return None


def superseded(text: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that give the statement's subject another value."""
    return [fact for fact in facts if supersedes(text, fact.text)]


def corrected(text: str, facts: Sequence[Fact], *, is_firm: bool) -> Fact | None:
    """Return the fact that a correction is about: of its subject, or else the one nearest in words."""
    of_subject = superseded(text, facts)
    if of_subject:
        return of_subject[0]
    nearest = _nearest_facts(text, facts, _MIN_SHARED if is_firm else _MIN_SHARED_UNSAID)
    return nearest[0] if len(nearest) == 1 else None


def corrected_line(text: str, lines: Sequence[str], *, says_so: bool) -> str | None:
    """Return the line of a note that a statement corrects: of its subject, or the nearest if it says so."""
    same = [line for line in lines if supersedes(text, line)]
    if not same and says_so:
        same = [lines[at] for at in _nearest(text, lines, _MIN_SHARED_NOTE)]
    return same[0] if len(set(same)) == 1 else None


def meant(text: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts that a request to forget means: the nearest in words."""
    nearest = _nearest_facts(text, facts, _MIN_SHARED)
    return nearest if len(nearest) <= _MAX_MEANT else []


def _nearest_facts(text: str, facts: Sequence[Fact], min_shared: float) -> list[Fact]:
    return [facts[at] for at in _nearest(text, [fact.text for fact in facts], min_shared)]


def _nearest(text: str, texts: Sequence[str], min_shared: float) -> list[int]:
    """Return the places of the texts that share the most weight of words; a word of fewer texts weighs more."""
    asked = _words(text)
    words = [_words(known) for known in texts]
    known = Counter(word for each in words for word in each)
    weight = {word: _base(word) * log(1 + len(texts) / known[word]) for word in known}
    shared = [sum(weight[word] for word in each & asked) for each in words]
    best = max(shared, default=0.0)
    return [
        at
        for at, (each, score) in enumerate(zip(words, shared, strict=True))
        if score == best and score >= min_shared * sum(weight[word] for word in each) > 0
    ]


def _words(text: str) -> set[str]:
    return ({*words_of(text), *characters(text)}) - STOP_TERMS


def _base(word: str) -> float:
    return _SINGLE_CHARACTER if len(word) == 1 and not word.isascii() else 1.0
