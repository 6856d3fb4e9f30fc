"""What a turn came to, from its words: the conclusion, decisions, causes.

Sentences of the person count as well as those of the reply; questions and offers do not.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from memory.own_words import own_sentences
from memory.text_lines import one_line
from policies.patterns import read_patterns

MAX_CONCLUSION_CHARS: Final = 600
_MAX_STATED: Final = 5
_MAX_STATED_CHARS: Final = 300

_PATTERNS = read_patterns(__file__)
_DECISION: Final = re.compile(_PATTERNS["decision"], re.IGNORECASE)
_REVERSAL: Final = re.compile(_PATTERNS["reversal"], re.IGNORECASE)
_CAUSE: Final = re.compile(_PATTERNS["cause"], re.IGNORECASE)
_OPEN: Final = re.compile(_PATTERNS["open"], re.IGNORECASE)
_OFFER: Final = re.compile(_PATTERNS["offer"], re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[。！？!?])\s*|(?<=\.)\s+|\n+")
_FENCE: Final = re.compile(r"^```.*?(?:^```[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")


def conclusion_of(reply: str) -> str:
    """Return a short reply whole, of a longer one the last paragraph that is no offer; one line, bounded."""
    paragraphs = [
        part.strip() for part in _PARAGRAPHS.split(_FENCE.sub("\n\n", reply)) if part.strip()
    ]
    told = [paragraph for paragraph in paragraphs if not _OFFER.search(paragraph)]
    whole = " ".join(told)
    return one_line(whole if len(whole) <= MAX_CONCLUSION_CHARS else told[-1], MAX_CONCLUSION_CHARS)


def decisions_of(message: str, reply: str) -> list[str]:
    """Return the sentences that state a decision or take one back, at most five."""
    return _stated((_DECISION, _REVERSAL), message, reply)


def causes_of(message: str, reply: str) -> list[str]:
    """Return the sentences that state why something happened, at most five."""
    return _stated((_CAUSE,), message, reply)


def _stated(patterns: tuple[re.Pattern[str], ...], message: str, reply: str) -> list[str]:
    found = (
        one_line(sentence, _MAX_STATED_CHARS)
        for sentence in _sentences(message, reply)
        if any(pattern.search(sentence) for pattern in patterns) and not _OPEN.search(sentence)
    )
    return list(islice(dict.fromkeys(found), _MAX_STATED))


def _sentences(message: str, reply: str) -> Iterator[str]:
    yield from (sentence.text for sentence in own_sentences(message))
    for sentence in _SENTENCE.split(reply):
        yield sentence.strip(" -*•#>\t")
