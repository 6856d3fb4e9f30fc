"""A normal form of a report's words, equal for reports of the same incident.

Case, white space, punctuation and what belongs to one occasion (dates, addresses, digests,
quantities with a unit) are left out, and numbers everywhere but in the root cause: `exit code 137`
and `139` are two causes.
"""

import hashlib
import json
import re
import unicodedata
from typing import Final

from memory.cases.case import CaseContent
from memory.items.scope import Scope

MAX_CHARS: Final = 8_000
"""Characters of a section that are read."""

_BYTES: Final = 16
_UNITS: Final = (
    "%|ms|us|s|m|h|d|min|sec|seconds?|minutes?|hours?|days?|[kmgt]i?b?|qps|rps"
    "|次|秒|毫秒|分钟|小时|天|万|千|个|条|点"
)
_OCCASION: Final = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?"  # date, time
    r"|\b\d\d:\d\d(?::\d\d(?:\.\d+)?)?\b"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b"  # IPv4 address
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"  # UUID
    r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b|\b0x[0-9a-f]+\b"  # digest, address in memory
    r"|(?<=[a-z])-(?=[a-z]*\d)[a-z0-9]{6,10}-[a-z0-9]{5}\b"  # tail of a pod's name
    rf"|(?<![a-z0-9_.])\d+(?:[.,]\d+)*\s?(?:{_UNITS})(?![a-z0-9_])"  # quantity
)
_WORD: Final = re.compile(r"[^\W_]+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")


def fingerprint_of(content: CaseContent, scope: Scope) -> bytes:
    """Return 16 bytes that reports of the same incident in the same words and scope share.

    The resolution plays a part only if no root cause is known: one cause can be resolved in several
    ways. Metadata play none: they grow with each update.
    """
    cause = content.root_cause.strip()
    texts = (content.symptom_summary, content.diagnosis, cause or content.resolution)
    told = [
        *(scope.owner_id, scope.app_code, scope.environment, bool(cause), numbers(cause)),
        *(plain_words(text) for text in texts),
    ]
    return hashlib.sha256(json.dumps(told).encode()).digest()[:_BYTES]


def words(text: str) -> list[str]:
    """Return the words of a text in their order, case folded, without what names one occasion."""
    return _WORD.findall(_without_occasion(text))


def plain_words(text: str) -> list[str]:
    """Return the words of a text without digits: what is the same on another occasion."""
    return _LETTERS.findall(_without_occasion(text))


def numbers(text: str) -> list[str]:
    """Return the words with a digit that name no occasion: codes, ports, versions."""
    return [word for word in words(text) if any(map(str.isdigit, word))]


def _without_occasion(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold()
    return _OCCASION.sub(" ", folded)
