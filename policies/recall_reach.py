"""How far a text goes on about a tool that it has begun to tell of.

"The Write tool takes two fields. The input schema: …": the second sentence names no tool and is about
that one all the same. So it goes to the end of the paragraph, unless a line between begins something else:
a heading, a title that ends in a colon, the next entry of a list.
"""

import re
from collections.abc import Iterable
from typing import Final

from policies.recall_markers import UNATTRIBUTED_USAGE, UNATTRIBUTED_WORDS

REACH_CHARS: Final = 1200
"""So far from a tool's name something is still about that tool; a title reaches over the whole item."""
SENTENCE_END: Final = re.compile(r"[\n。！？；!?;]+|\.(?=\s)")
_CLAUSE_END: Final = re.compile(r"[。！？；!?;]+|\.(?=\s)")
_ENTRY: Final = re.compile(r"\s{0,3}(?:[\-*•]|\d{1,2}[.)、])\s")
_TITLE: Final = re.compile(r"[^\n]{0,60}[^\s:：][:：]\s*")
_HEADING: Final = re.compile(r"#{1,6}\s")


def goes_on_about_a_call(text: str, begun: Iterable[int]) -> bool:
    """Whether a paragraph goes on with how a tool is called; `begun` are the places right behind the names.

    In their order. What was read for one name is not read again for the next.
    """
    read_to = 0
    for at in begun:
        if at >= read_to:
            read_to = _read_on(text, at)
            if read_to < 0:
                return True
    return False


def _read_on(text: str, at: int) -> int:
    """Read from a name on; gives where the text stops to be about that tool, -1 where a call is told."""
    rest, *lines = text[at : at + REACH_CHARS].split("\n")
    if any(map(_is_about_a_call, _CLAUSE_END.split(rest)[1:])):
        return -1
    in_a_list = _ENTRY.match(text, text.rfind("\n", 0, at) + 1) is not None
    read_to = at + len(rest) + 1
    for line in lines:
        if _begins_something_else(line, in_a_list=in_a_list):
            return read_to
        if any(map(_is_about_a_call, _CLAUSE_END.split(line))):
            return -1
        read_to += len(line) + 1
    return read_to


def _begins_something_else(line: str, *, in_a_list: bool) -> bool:
    if not line.strip() or _HEADING.match(line) or (in_a_list and _ENTRY.match(line)):
        return True
    return _TITLE.fullmatch(line) is not None and not _is_about_a_call(line)


def _is_about_a_call(clause: str) -> bool:
    return bool(UNATTRIBUTED_USAGE.match(clause) or UNATTRIBUTED_WORDS.match(clause))
