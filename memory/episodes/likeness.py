"""When two episodes tell the same, and how the candidates for that are found without reading all.

A text's sketch is a few of its word triples, chosen so that like texts choose the same ones; they are
looked up in a table. Whoever shares some is compared word by word. Texts that differ in a number, a
file's name, a code, a name, a negation or a word of direction tell different things, however much else
they share: these must be the same, in the same order. What was said with another light word, another
form of a word or in an added sentence is alike; what was said with another word of its own is not.
"""

import hashlib
import json
import re
import unicodedata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from memory.episodes.episode import Episode
from memory.episodes.word_classes import LIGHT, canonical, is_telling

SKETCH_SIZE: Final = 6
MIN_SHARED_MARKS: Final = 2
MIN_LIKENESS: Final = 0.6
"""Of word triples, those that both have: shared / all."""
MIN_WORDS: Final = 8
"""Shorter texts are alike only where all words are the same."""
MAX_WORDS: Final = 2500
"""So much of a text is compared; what is longer must be wholly equal."""

_WORD: Final = re.compile(
    r"--?[A-Za-z][\w\-]*|[A-Za-z0-9_À-ɏͰ-ӿ$@%+#]+(?:[./\\:'’\-]+[A-Za-z0-9_À-ɏͰ-ӿ]+)*"
    r"|[^\W\d_]|\d+"
)
_TOOK: Final = re.compile(r"\bin \d{1,6}\.\d{1,4} ?s\b")
"""How long a run of tests took: it says nothing, and is never the same twice."""
_SENTENCE_BEGIN: Final = re.compile(
    r"(?:^|[\n.!?:;。！？：；•*\-]\s{0,8})([A-Z][a-z]+)(?![\w./:\-])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """What of an episode is compared with others."""

    fingerprint: bytes
    """Stands for exactly this text in exactly this realm; of a thread's record, for its place there."""
    words: Sequence[str] = ()
    """None of what is never like another one."""
    marks: Sequence[int] = ()


def likeness_of(episode: Episode) -> Likeness:
    """Prepare an episode for comparison; takes about a millisecond for each thousand words."""
    text, realm = compared_text(episode), realm_of(episode)
    if episode.thread is not None:
        place = json.dumps([episode.thread, episode.position])
        return Likeness(fingerprint=fingerprint(realm, place, "place"))
    words = words_of(text)
    return Likeness(fingerprint=fingerprint(realm, text), words=words, marks=sketch(words, realm))


def compared_text(episode: Episode) -> str:
    """Give what an episode says, its variants apart."""
    return f"{episode.title}\n{episode.sections.text}"


def realm_of(episode: Episode) -> str:
    """Name the owner and the labels as one text: nothing is merged across them."""
    return json.dumps([episode.scope.owner_id, episode.scope.labels], ensure_ascii=False)


def words_of(text: str) -> list[str]:
    """Split into words; of scripts without spaces each character is one. Case stays."""
    normal = _TOOK.sub("in so long", unicodedata.normalize("NFKC", text))
    lowered = _SENTENCE_BEGIN.sub(
        lambda match: match[0].replace(match[1], match[1].lower()), normal
    )
    return _WORD.findall(canonical(lowered))


def fingerprint(*parts: str) -> bytes:
    """Give 16 bytes that stand for exactly these texts, white space apart."""
    plain = "\0".join(" ".join(part.split()) for part in parts)
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def sketch(words: Sequence[str], realm: str) -> tuple[int, ...]:
    """Choose the marks of a text, at most six, as 64-bit integers; none of a short text.

    Like texts of one realm (an owner and labels) have most of them in common, and texts of two
    realms have none.
    """
    if len(words) < MIN_WORDS:
        return ()
    lowest = sorted({zlib.crc32(triple) for triple in _encoded_triples(words)})[:SKETCH_SIZE]
    return tuple(_in_realm(number, realm) for number in lowest)


def _encoded_triples(words: Sequence[str]) -> list[bytes]:
    return [" ".join(triple).lower().encode("utf-8", "replace") for triple in _triples(words)]


def _triples(words: Sequence[str]) -> list[tuple[str, ...]]:
    return list(zip(words, words[1:], words[2:], strict=False))


def _in_realm(number: int, realm: str) -> int:
    digest = hashlib.blake2b(f"{number} {realm}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big", signed=True)


def tell_the_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two texts, given as words, are near-duplicates."""
    if [*map(str.lower, one)] == [*map(str.lower, other)] and _telling(one) == _telling(other):
        return True
    if min(len(one), len(other)) < MIN_WORDS or max(len(one), len(other)) > MAX_WORDS:
        return False
    if _telling(one) != _telling(other):
        return False
    mine, theirs = set(_triples([*map(str.lower, one)])), set(_triples([*map(str.lower, other)]))
    if len(mine & theirs) < MIN_LIKENESS * len(mine | theirs):
        return False
    return not _contradict([*map(str.lower, one)], [*map(str.lower, other)])


def _telling(words: Sequence[str]) -> list[str]:
    """The words that must be the same and in the same order."""
    return [word for word in words if is_telling(word)]


def _contradict(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether somewhere a word of its own stands in the place of another such word."""
    steps = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return any(
        kind == "replace" and _heavy(one[a:b]) and _heavy(other[c:d]) for kind, a, b, c, d in steps
    )


def _heavy(words: Sequence[str]) -> bool:
    return any(word not in LIGHT for word in words)
