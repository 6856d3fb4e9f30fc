"""Removes sentences that only repeat what memory put into the prompt.

Otherwise a recalled statement would be remembered again with each answer, a little less exact each time. A
sentence is a repetition if nearly all of its word triples, and all of its words but light ones, were
recalled.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.episodes.likeness import LIGHT, words_of
from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_LEAD: Final = re.compile(_PATTERNS["lead"], re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"(?<=[。！？!?；;])\s*|(?<=\.)\s+")
_PERSON: Final = {"your": "my", "yours": "mine", "你": "我", "您": "我"}
"""A reply says what the person said of themselves in the second person."""
_MIN_WORDS = 4
_ECHO_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Recalled:
    """Recalled texts, prepared for comparison."""

    lines: frozenset[str]
    triples: frozenset[tuple[str, ...]]
    words: frozenset[str]


def recalled_of(texts: Sequence[str]) -> Recalled:
    """Prepare recalled texts."""
    words = [_words(text) for text in texts]
    return Recalled(
        lines=frozenset(
            " ".join(_words(sentence))
            for text in texts
            for line in text.split("\n")
            for sentence in _SENTENCE_END.split(line)
        ),
        triples=frozenset(t for word in words for t in zip(word, word[1:], word[2:], strict=False)),
        words=frozenset(word for each_word in words for word in each_word),
    )


def without_self_reference(text: str, recalled: Recalled, *, output_only: bool = False) -> str:
    """Return the text without sentences that only repeat recalled texts.

    With `output_only` lines that are not indented stay: they say what was done, and the indented lines
    below them are output of tools.
    """
    if not recalled.words:
        return text
    kept_lines: list[str] = []
    for line in text.split("\n"):
        if output_only and not line.startswith(" "):
            kept_lines.append(line)
            continue
        sentences = [sentence for sentence in _SENTENCE_END.split(line) if sentence.strip()]
        kept = [sentence for sentence in sentences if not _is_echo(sentence, recalled)]
        if len(kept) == len(sentences):
            kept_lines.append(line)
        elif kept:
            kept_lines.append(" ".join(kept_line.strip() for kept_line in kept))
    return "\n".join(kept_lines)


def _words(text: str) -> list[str]:
    return [_PERSON.get(word.lower(), word.lower()) for word in words_of(text)]


def _is_echo(sentence: str, recalled: Recalled) -> bool:
    bare = _LEAD.sub("", sentence, count=1)
    lower = _words(bare)
    if not lower:
        return bare != sentence  # a lead to what was taken out, or mere punctuation
    if " ".join(lower) in recalled.lines:
        return True
    if len(lower) < _MIN_WORDS:
        return False
    if any(word not in LIGHT and word not in recalled.words for word in lower):
        return False
    triples = list(zip(lower, lower[1:], lower[2:], strict=False))
    return sum(triple in recalled.triples for triple in triples) >= _ECHO_SHARE * len(triples)
