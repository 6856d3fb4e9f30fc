"""Near-duplicates among episodes.

The sketch of a text is a few of its word triples, chosen so that similar texts share some; candidates are
looked up by it. Two texts are near-duplicates if one has all sentences of the other, ignoring light words
such as articles, and adds little. Any other word, number or name makes them different: keeping two similar
episodes costs less than merging two that differ.
"""

import hashlib
import json
import re
import unicodedata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.episodes.episode import Episode
from policies.patterns import read_patterns

SKETCH_SIZE: Final = 6
MIN_SHARED_MARKS: Final = 2
MIN_LIKENESS: Final = 0.6
"""Minimum length of the shorter text, as a share of the longer one."""
MIN_WORDS: Final = 8
"""Shorter texts are alike only if all words are equal."""
MAX_WORDS: Final = 2500
"""Longer texts are alike only if they are equal."""
_PATTERNS = read_patterns(__file__)
_LIGHT: Final = _PATTERNS["light"]
_LIGHT_ZH: Final = _PATTERNS["light_zh"]
LIGHT: Final = frozenset({*_LIGHT.split(), *_LIGHT_ZH})
"""Words, and Chinese characters, whose change leaves the meaning."""

_WORD: Final = re.compile(_PATTERNS["word"])
_SENTENCE_END: Final = re.compile(r"(?<=[。！？!?；;])|(?<=[.:])\s+|\n+")
_BREAK: Final = "."
"""Stands between the words of two sentences."""
_TOOK: Final = re.compile(r"\bin \d{1,6}\.\d{1,4} ?s\b")
"""The duration of a test run, which differs every time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """The parts of an episode that are compared."""

    fingerprint: bytes
    """Of the text and its realm; for a record of a thread, of its place there."""
    words: Sequence[str] = ()
    """Empty for an episode that is never merged."""
    marks: Sequence[int] = ()


def likeness_of(episode: Episode) -> Likeness:
    """Prepare an episode for comparison; about a millisecond for each thousand words."""
    text, realm = compared_text(episode), realm_of(episode)
    if episode.thread is not None:
        place = json.dumps([episode.thread, episode.position])
        return Likeness(fingerprint=fingerprint(realm, place, "place"))
    words = words_of(text)
    return Likeness(fingerprint=fingerprint(realm, text), words=words, marks=sketch(words, realm))


def compared_text(episode: Episode) -> str:
    """Return the text of an episode without its variants."""
    return f"{episode.title}\n{episode.sections.text}"


def realm_of(episode: Episode) -> str:
    """Return owner and labels as one text; nothing is merged across them."""
    return json.dumps([episode.scope.owner_id, episode.scope.labels], ensure_ascii=False)


def words_of(text: str) -> list[str]:
    """Return the words, or characters in scripts without spaces, with `.` between sentences."""
    normal = _TOOK.sub("in so long", unicodedata.normalize("NFKC", text))
    words: list[str] = []
    for sentence in _SENTENCE_END.split(normal):
        if found := _WORD.findall(sentence):
            words += [_BREAK, *found] if words else found
    return words


def fingerprint(*parts: str) -> bytes:
    """Return 16 bytes that identify these texts, ignoring white space."""
    plain = "\0".join(" ".join(part.split()) for part in parts)
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def sketch(words: Sequence[str], realm: str) -> tuple[int, ...]:
    """Return the marks of a text, at most six 64-bit integers; none for a short text.

    Similar texts of one realm share most of them; texts of two realms share none.
    """
    if len(words) < MIN_WORDS:
        return ()
    triples = zip(words, words[1:], words[2:], strict=False)
    encoded = {" ".join(triple).lower().encode("utf-8", "replace") for triple in triples}
    lowest = sorted({zlib.crc32(triple) for triple in encoded})[:SKETCH_SIZE]
    return tuple(_in_realm(number, realm) for number in lowest)


def _in_realm(number: int, realm: str) -> int:
    digest = hashlib.blake2b(f"{number} {realm}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big", signed=True)


def tell_the_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two texts, given as words, are near-duplicates."""
    mine, theirs = [word.lower() for word in one], [word.lower() for word in other]
    if mine == theirs:
        return True
    least, most = sorted((len(mine), len(theirs)))
    if least < MIN_WORDS or most > MAX_WORDS or least < MIN_LIKENESS * most:
        return False
    here, there = _sentences(mine), _sentences(theirs)
    return here <= there or there <= here


def _sentences(words: Sequence[str]) -> set[tuple[str, ...]]:
    """Return the sentences without light words."""
    sentences: list[list[str]] = [[]]
    for word in words:
        if word == _BREAK:
            sentences.append([])
        elif word not in LIGHT:
            sentences[-1].append(word)
    return {tuple(sentence) for sentence in sentences if sentence}
