"""Cuts out of a text what stands around the words of a question."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from memory.recall.question_words import QuestionWords
from memory.text.lines import one_line, without_marks
from memory.text.terms import beginning

_READ_CHARS: Final = 12_000
_SENTENCES: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
"""Between sentences; a line ends one, too."""
_FIRST_CHARS: Final = 400
_LAST_CHARS: Final = 1000
"""Read of a question: it stands before or after what was pasted."""


def words_of(queries: Sequence[str]) -> frozenset[str]:
    """Return what the words of the questions begin with, in whatever form they stand in a text."""
    parts = [
        query
        if len(query) <= _FIRST_CHARS + _LAST_CHARS
        else f"{query[:_FIRST_CHARS]} {query[-_LAST_CHARS:]}"
        for query in queries
    ]
    return frozenset(beginning(term) for term in QuestionWords.of("\n".join(parts)).weights)


def extract(text: str, words: Collection[str], chars: int) -> str:
    """Return the sentences with most of the words, in at most so many characters and in one line.

    `…` stands for what is left out.
    """
    sentences = [
        sentence.strip()
        for line in without_marks(text[:_READ_CHARS])
        for sentence in _SENTENCES.split(line)
        if sentence.strip()
    ]
    whole = " ".join(sentences)
    if len(whole) <= chars and len(text) <= _READ_CHARS:
        return whole
    found = [_found(sentence, words) for sentence in sentences]
    best, most = range(0), -1
    for start in range(len(sentences)):
        window = _window(sentences, start, chars - 4)
        count = len(frozenset().union(*(found[place] for place in window)))
        if count > most:
            best, most = window, count
    before = "… " if best.start else ""
    after = " …" if best.stop < len(sentences) else ""
    return one_line(f"{before}{' '.join(sentences[best.start : best.stop])}{after}", chars)


def _found(sentence: str, words: Collection[str]) -> frozenset[str]:
    folded = sentence.casefold()
    return frozenset(word for word in words if word in folded)


def _window(sentences: Sequence[str], start: int, chars: int) -> range:
    """Return the places of the sentences from one on that fit; at least this one."""
    stop, left = start + 1, chars - len(sentences[start])
    while stop < len(sentences) and left > len(sentences[stop]):
        left -= len(sentences[stop]) + 1
        stop += 1
    return range(start, stop)
