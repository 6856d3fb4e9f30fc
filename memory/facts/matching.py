"""Which of a person's facts, or lines of notes, a new statement repeats, corrects, or means."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Final

from memory.facts.fact import Fact
from memory.recall.question_words import STOP_CHARACTERS, STOP_TERMS
from memory.terms import characters, is_character
from memory.wording import contradicts, has_other_value, subject_of, value_of, words_of
from policies.patterns import read_patterns

_NEGATED: Final = re.compile(read_patterns(__file__)["negated"], re.IGNORECASE)
_SINGLE_CHARACTER: Final = 0.3
"""The weight of a single Chinese character beside a pair of them."""
MIN_SHARED: Final = 0.1
"""Of the weight of a fact's words, for a sentence that says that it corrects something."""
MIN_TO_FORGET: Final = 0.2
"""The same, for a sentence that asks to forget something: with less, another fact about a person named in it goes."""
MIN_SHARED_UNSAID: Final = 0.5
"""The same, for a sentence that may be an ordinary one."""
MIN_SHARED_CHANGE: Final = 0.34
"""The same, for one that has another value of the same kind as well."""
MIN_SHARED_CHANGED_LINE: Final = 0.2
"""The same, for a line: nothing ends by it."""
MIN_SHARED_LINE: Final = 0.3
"""Of the weight of a line's words, for a sentence that says that it corrects or forgets something."""
_MIN_SAID: Final = 0.6
"""Of the words of a fact, for a line that says the same."""
_ALL: Final = re.compile(r"\b(?:all|both|every(?:thing)?|anything)\b|所有|全部|一切|都")


def repeated(text: str, facts: Sequence[Fact]) -> Fact | None:
    """Return the fact that says the same already; one without a searchable word, if it is the same text."""
    if not words_of(text):
        plain = text.casefold()
        return next((fact for fact in facts if fact.text.casefold() == plain), None)
    form, subject, value = words_of(text), subject_of(text), value_of(text)
    for fact in facts:
        if words_of(fact.text) == form:
            return fact
        if subject and (subject, value) == (subject_of(fact.text), value_of(fact.text)):
            return fact
    return None


def corrected(
    text: str, known: Sequence[str], min_shared: float | None, min_near: float = MIN_SHARED_CHANGE
) -> str | None:
    """Return the statement that a correction is about, if there is just one.

    The correction contradicts it, or it is `nearest` with `min_shared`; or with `min_near`, and the correction has
    another value of the same kind, such as a weekday, or denies a word of it.
    """
    asked = _words(text)  # looked for first: reading a line's subject takes up to a millisecond
    known = [old for old in known if any(word in old.casefold() for word in asked)]
    same = [old for old in known if contradicts(text, old)]
    if not same and min_shared is not None:
        same = nearest(text, known, min_shared)
    if not same:
        near = nearest(text, known, min_near)
        same = [old for old in near if _replaces_value(text, old)]
    return same[0] if len(set(same)) == 1 else None


def asks_for_all(text: str) -> bool:
    """Return whether a request is for everything that fits it."""
    return _ALL.search(text.casefold()) is not None


def says(line: str, fact: str) -> bool:
    """Return whether a line has most of a fact's words, and all of its value."""
    words, said = _words(fact), _words(line)
    value = set(value_of(fact)) - STOP_TERMS if subject_of(fact) else set()
    return value <= said and 0 < _MIN_SAID * len(words) <= len(words & said)


def _replaces_value(text: str, old: str) -> bool:
    """Return whether a statement has another value of a kind that an older one has, or denies a word of it."""
    denied = {word for found in _NEGATED.findall(text) for word in words_of(" ".join(found))}
    if denied & set(words_of(old)):
        return True
    return has_other_value(text, old)


def nearest(text: str, texts: Sequence[str], min_shared: float) -> list[str]:
    """Return the texts that share the most weight of words, and at least this part of their own.

    A word of fewer texts weighs more. Several may be equally near.
    """
    asked = _words(text)
    words = [_words(known) for known in texts]
    counts = Counter(word for each in words for word in each)
    base = {word: _SINGLE_CHARACTER if is_character(word) else 1.0 for word in counts}
    weight = {word: base[word] * log(1 + len(texts) / counts[word]) for word in counts}
    shared = [sum(weight[word] for word in each & asked) for each in words]
    best = max(shared, default=0.0)
    return [
        known
        for known, each, score in zip(texts, words, shared, strict=True)
        if score == best and score >= min_shared * sum(weight[word] for word in each) > 0
    ]


def _words(text: str) -> set[str]:
    return {*words_of(text), *characters(text)} - STOP_TERMS - STOP_CHARACTERS
