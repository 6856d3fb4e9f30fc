"""The words of a section that tell something, brought to one form.

What names one occasion and not its cause is left out: numbers, moments, versions, addresses, hosts,
digests, the tail of a pod's name. A code stays, and so does the name of a service, a table or a file, as
one word that is marked as such. Different words for one matter become its name, in English and Chinese
alike, so that the same cause told twice has the same words. A negation stays, as a word of its own, and
so does what was before or after; both stand ahead of the word that they are about.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from memory.cases.codes import CODE_MARK, parts_of
from memory.cases.lexicon import (
    BACKGROUND,
    BEARINGS,
    COMPARISONS_ZH,
    EFFECTS,
    FAULTS,
    LIGHT,
    LIGHT_ZH,
    THINGS,
)

Kind = Literal[
    "fault", "effect", "thing", "background", "bearing", "negation", "name", "code", "word", "han"
]
"""Of a telling word: five of matters; a name of a service, a table or the like; a code; a word that is in
no list; a piece of such a Chinese one."""

NOT: Final = "not"
FAILED: Final = "failed"
NEGATIVE: Final = frozenset({NOT, FAILED})
"""What says that something was not done, or not brought about."""
MAX_CHARS: Final = 4000
"""So much of a section is compared, from its beginning."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNIT: Final = "%|ms|s|m|h|d|min|sec|seconds?|minutes?|hours?|days?|[kmgt]i?b?|qps|rps|次|秒|毫秒|分钟|小时|天|万|千|个|条|点"
_OCCASION: Final = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b"
    r"|(?<=[a-z])-(?=[a-z]*\d)[a-z0-9]{6,10}-[a-z0-9]{5}\b"
    r"|(?<![a-z0-9_])v\d+(?:\.\d+)*(?![a-z0-9_])"
    r"|\b(?!utf-)[a-z]+(?:-\d+)+\b"
    r"|\b(?:inc|chg|prb|req|ritm|sctask)\d{4,}\b"
    r"|\b0x[0-9a-f]+\b"
    rf"|(?<![a-z0-9_])\d+(?:[.,:]\d+)*\s?(?:{_UNIT})?(?![a-z0-9_])",
    re.IGNORECASE,
)
_NEGATIONS: Final = frozenset(
    (
        "no",
        "not",
        "never",
        "none",
        "nothing",
        "nobody",
        "without",
        "cannot",
        "neither",
        "nor",
        "unless",
        "hardly",
    )
)
_NEGATING_PHRASES: Final = ("instead of", "rather than")
_BETWEEN: Final = frozenset(("been", "being", "yet", "ever"))
"""Words that stand between those of a phrase."""
_NEGATIONS_ZH: Final = (
    *("不", "没", "没有", "未", "无", "无法", "并非", "非"),
    *(
        "不要",
        "不再",
        "不会",
        "不能",
        "不应",
        "不得",
        "不是",
        "没能",
        "未能",
        "尚未",
        "从未",
        "切勿",
        "请勿",
    ),
)
_ENDINGS: Final = (
    ("ations", ""), ("ation", ""), ("ings", ""), ("ing", ""), ("ies", "y"), ("ied", "y"), ("sses", "ss"),
    ("edly", ""), ("ed", ""), ("ions", ""), ("ion", ""), ("es", ""), ("ly", ""), ("ss", "ss"), ("us", "us"),
    ("s", ""), ("e", ""),
)  # fmt: skip
_LEAST_STEM: Final = 3
_REMEMBERED: Final = 8_192
_REMEMBERED_TEXTS: Final = 128
"""Enough for one case beside many; a long one's words take some 40 kB."""
_DASH: Final = re.compile(r"[\u2010-\u2015\u2212](?=\d)")
"""What a page writes in place of the hyphen of `ORA-00060`."""

_HAN_CHAR: Final = re.compile(rf"[{_CJK}]")
_RUN: Final = re.compile(rf"(?P<han>[{_CJK}]+)|[^{_CJK}]+")
_LATIN: Final = re.compile(r"[^\W_]+(?:'t\b)?(?:[-_./:@]+[^\W_]+)*")
_PART: Final = re.compile(r"[^\W_]+(?:'t\b)?")
_NAME_MARK: Final = "@"
_OF_THE_WORD_AHEAD: Final = "<"
"""Marks the Chinese for before and after, which follow what they are about."""
_FIRST: Final = "first"
"""The one that stands ahead of it in Chinese too."""
_SERVICES: Final = frozenset(
    (
        *(
            "svc",
            "service",
            "job",
            "worker",
            "writer",
            "reader",
            "api",
            "gateway",
            "center",
            "web",
            "app",
            "db",
        ),
        *("dashboard", "server", "proxy", "consumer", "producer", "scheduler", "manager", "agent"),
    )
)
"""What the name of a service ends in."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLAIN: Final = re.compile(r"[a-z0-9]+")
_NEXT_MATTER: Final = re.compile(r"\n(?! )")


@lru_cache(maxsize=_REMEMBERED)
def stem(word: str) -> str:
    """Take a word's ending off; roughly, but alike for the forms of most words."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word[: len(word) - len(ending)] + instead
    return word


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def telling_words(text: str) -> tuple[str, ...]:
    """Give the telling words in their order, repeated ones repeated."""
    clean = unicodedata.normalize("NFKC", text[:MAX_CHARS]).replace("’", "'")
    clean = _DASH.sub("-", clean)[:MAX_CHARS]
    words: list[str] = []
    for part, codes in parts_of(clean):
        for word in _telling(_OCCASION.sub(" ", part)):
            if word.startswith(_OF_THE_WORD_AHEAD):
                words.insert(max(0, len(words) - 1), word.removeprefix(_OF_THE_WORD_AHEAD))
            else:
                words.append(word)
        words += codes
    return tuple(words)


def kind_of(word: str) -> Kind:
    """Say what kind of telling word it is."""
    if word in NEGATIVE:
        return "negation"
    if word.startswith(_NAME_MARK):
        return "name"
    if word.startswith(CODE_MARK):
        return "code"
    return _KINDS.get(word) or ("han" if _HAN_CHAR.match(word) else "word")


def is_rest(word: str) -> bool:
    """Whether it is a single Chinese character: what cutting left over."""
    return len(word) == 1 and kind_of(word) == "han"


def _telling(text: str) -> Iterator[str]:
    for match in _RUN.finditer(text):
        if match["han"]:
            yield from _han(match["han"])
        else:
            yield from _latin(list(_latin_words(match.group())))


def _latin_words(text: str) -> Iterator[str]:
    for joined in _LATIN.findall(text):
        yield from _parts(joined)


@lru_cache(maxsize=_REMEMBERED)
def _parts(joined: str) -> tuple[str, ...]:
    """Take words that are written as one apart, unless they are a name."""
    parts = _PART.findall(_HUMP.sub(" ", joined).casefold())
    if not joined.isalnum() and _is_name(parts):
        return (_NAME_MARK + "-".join(parts),)
    return tuple(part for part in parts if part not in _BETWEEN)


def _is_name(parts: list[str]) -> bool:
    """Whether words that are written as one are a name, and not what goes wrong or what it happens to."""
    if len(parts) == 1:
        return False
    matters = list(_latin(parts))
    if any(kind_of(one) in {"fault", "effect"} for one in matters):
        return False
    if parts[-1] in _SERVICES:
        return True
    return any(kind_of(one) == "word" for one in matters)


def _latin(words: list[str]) -> Iterator[str]:
    at = 0
    while at < len(words):
        length, name = _matter(words, at)
        at += length
        yield from name.split()


def _matter(words: list[str], at: int) -> tuple[int, str]:
    """Give how many words from here on are one, and its name, after a no where it says no to it.

    An empty one: it tells nothing.
    """
    for length in range(min(_LONGEST, len(words) - at), 1, -1):
        name = _PHRASES.get(" ".join(words[at : at + length]))
        if name is not None:
            return length, name
    word = words[at]
    if word.startswith(_NAME_MARK):
        return 1, word
    if word in _NEGATIONS or word.endswith("n't"):
        return 1, NOT
    if (name := _WORDS.get(word) or _WORDS.get(stem(word))) is not None:
        return 1, name
    if word.startswith("un") and word.endswith("ed") and (name := _WORDS.get(stem(word[2:]))):
        return 1, f"{NOT} {name}"
    light = len(word) == 1 or word in _LIGHT or stem(word) in _LIGHT_STEMS
    return 1, "" if light else stem(word)


def _han(run: str) -> Iterator[str]:
    at = 0
    for match in _HAN.finditer(run):
        yield from _pairs(run[at : match.start()])
        yield from _HAN_WORDS[match.group()].split()
        at = match.end()
    yield from _pairs(run[at:])


def _pairs(rest: str) -> Iterator[str]:
    if len(rest) == 1:
        yield rest
    for first, second in pairwise(rest):
        yield first + second


_PHRASES: Final[dict[str, str]] = dict.fromkeys(_NEGATING_PHRASES, NOT)
_WORDS: Final[dict[str, str]] = {}
_HAN_WORDS: Final[dict[str, str]] = dict.fromkeys(_NEGATIONS_ZH, NOT) | dict.fromkeys(
    LIGHT_ZH.split(), ""
)
_KINDS: Final[dict[str, Kind]] = {}
_LIGHT: Final = frozenset(LIGHT.split())
_LIGHT_STEMS: Final = frozenset(map(stem, _LIGHT))


def _learn(kind: Kind, matters: str) -> None:
    for line in _NEXT_MATTER.split(matters.strip()):
        name, _, rest = line.partition(":")
        english, _, chinese = rest.partition(";")
        _KINDS[name] = kind
        mark = _OF_THE_WORD_AHEAD if kind == "bearing" and name != _FIRST else ""
        _HAN_WORDS.update(dict.fromkeys(chinese.split(), mark + name))
        for one in (name, *english.split(",")):
            words = _PLAIN.findall(one)
            if len(words) == 1:
                _WORDS[words[0]] = name
                _WORDS.setdefault(stem(words[0]), name)
            elif words:
                _PHRASES[" ".join(words)] = name


_learn("fault", FAULTS)
_learn("effect", EFFECTS)
_learn("thing", THINGS)
_learn("background", BACKGROUND)
_learn("bearing", BEARINGS)
for _name, _chinese in COMPARISONS_ZH.items():
    _HAN_WORDS.update(dict.fromkeys(_chinese.split(), _name))
_LONGEST: Final = max(one.count(" ") + 1 for one in _PHRASES)
_HAN: Final = re.compile("|".join(sorted(map(re.escape, _HAN_WORDS), key=len, reverse=True)))
