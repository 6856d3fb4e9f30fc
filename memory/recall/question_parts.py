"""The parts of a long message that carry its question.

People paste a log, a file or a text before or after what they ask. Its words would outweigh theirs,
so a long message is asked by its own parts: the first and the last line and paragraph, and
sentences that are questions.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_SHORT_CHARS: Final = 1200
"""A message up to this length is asked as a whole."""
_PART_CHARS: Final = 400
_QUOTED_LINE: Final = re.compile(r"^ {0,3}>.*$", re.MULTILINE)
_FENCED: Final = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_READ_CHARS: Final = 40_000
"""Of a longer message the beginning and the end are read, half each."""
_ENDS: Final = re.compile(r"([\n.!?。！？])")
QUESTION_MARKS: Final = frozenset("?？؟")
_LEAST_QUESTION_CHARS: Final = 4
_MOST_QUESTION_CHARS: Final = 300


def question_parts(message: str) -> Sequence[str]:
    """Return what to ask for a message, each part once.

    A short message is asked as a whole, and without what it quotes as well.
    """
    if len(message) > _READ_CHARS:
        message = f"{message[: _READ_CHARS // 2]}\n\n{message[-_READ_CHARS // 2 :]}"
    own = _QUOTED_LINE.sub("", _FENCED.sub("\n\n", message)).strip() or message
    if len(message) <= _SHORT_CHARS:
        return [message] if own == message.strip() else [own, message]
    parts = [own] if len(own) <= _SHORT_CHARS else _parts(own)
    return list(dict.fromkeys(part for part in parts if part.strip()))


def _parts(text: str) -> Iterator[str]:
    lines = text.strip().splitlines()
    yield lines[0][:_PART_CHARS]
    yield lines[-1][-_PART_CHARS:]
    paragraphs = _PARAGRAPHS.split(text)
    yield from (part for part in (paragraphs[0], paragraphs[-1]) if len(part) <= _PART_CHARS)
    questions = list(_questions(text))
    yield from (*questions[:1], *questions[-1:])


def _questions(text: str) -> Iterator[str]:
    """Yield the sentences that end in a question mark, which is not part of an address (`?a=b`).

    An expression that looks for a sentence of bounded length tries again from each character; this
    reads each character once.
    """
    pieces = _ENDS.split(text)
    for at in range(0, len(pieces) - 2, 2):
        sentence, mark, after = pieces[at], pieces[at + 1], (pieces[at + 2] or " ")[0]
        is_end = not (after.isalnum() or after in "_=&")
        if mark in QUESTION_MARKS and is_end and len(sentence) >= _LEAST_QUESTION_CHARS:
            yield f"{sentence[-_MOST_QUESTION_CHARS:]}{mark}".strip()
