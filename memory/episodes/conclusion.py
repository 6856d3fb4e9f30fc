"""What a turn came to, from its words: the conclusion, decisions, causes.

Sentences of the person count as well as those of the reply; questions and offers do not.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from memory.own_words import own_sentences
from memory.text_lines import one_line

MAX_CONCLUSION_CHARS: Final = 600
_MAX_STATED: Final = 5
_MAX_STATED_CHARS: Final = 300

_DECISION: Final = re.compile(
    r"\b(?:decided|decision|(?:we|i) (?:chose|picked)|opted (?:for|to)|settled on|going with|let's go with|agreed (?:on|to))\b"
    r"|决定|选定|选择了|最终采用|最终方案|定为|约定",
    re.IGNORECASE,
)
_REVERSAL: Final = re.compile(
    r"\b(?:stay(?:ing)?|stick(?:ing)?|going back|revert(?:ing)?|switch(?:ing|ed)?|back) (?:with|to)\b"
    r"|\bchanged (?:my|our) minds?\b|\bscrap (?:that|the)\b|\bafter all\b"
    r"|还是用|还是(?:保留|保持|继续)|维持原|沿用|改用|换回|改回|不再用|放弃",
    re.IGNORECASE,
)
_CAUSE: Final = re.compile(
    r"\b(?:root cause|the (?:cause|reason|culprit) (?:is|was)|(?:is|was|were) caused by|turned out|it was because|is why)\b"
    r"|根因|根本原因|原因(?:是|在于)|是由于|是因为|导致的",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(
    r"\?|？|\b(?:not (?:yet )?decided|undecided|no decision|to be decided|need(?:s)? (?:a|your|to) deci\w+|you decide|if you decide)\b"
    r"|尚未决定|还没决定|未决定|待决定|由你决定|[请帮]我?决定|需要你?决定|取决|决定于",
    re.IGNORECASE,
)
_OFFER: Final = re.compile(
    r"\?\s*$|？\s*$|^(?:let me know|feel free|if you(?:'d| would)? (?:like|want|need)|i can also|happy to)\b"
    r"|^(?:如果?需要|如需|需要的话|有(?:其他|什么)问题|随时)",
    re.IGNORECASE,
)
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
