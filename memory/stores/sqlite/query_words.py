"""What a search for parts of texts asks for: the words of a query, letter case ignored.

Words are split at white space alone, and a part of a word counts, so that a Chinese word within a
sentence is found.
"""

from collections.abc import Sequence
from typing import Final

LOOKED_UP: Final = 4
"""How many words of a query are looked up in an index. What it names is compared with all words."""


def words_of(query: str) -> Sequence[str]:
    """Return the words of a query with their case folded, each once, the longest first: they are
    the rarest. A query of white space alone is one word.
    """
    folded = query.casefold()
    return sorted(dict.fromkeys(folded.split()), key=len, reverse=True) or [folded]


def holds(text: str, words: Sequence[str]) -> bool:
    """Return whether a text holds all of these words."""
    folded = text.casefold()
    return all(word in folded for word in words)


def holds_joined(text: str, words: str) -> bool:
    """Return whether a text holds all of these words, which spaces join.

    SQLite calls it as `holds_words`, once for each text, however many words there are.
    """
    return holds(text, words.split(" "))
