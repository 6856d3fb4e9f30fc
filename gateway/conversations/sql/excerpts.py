"""What the indexes of texts share: what a fork copied, and how a text that was found is shown."""

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final, TypedDict

from gateway.conversations.model import TextMatch
from gateway.ids import ConversationId, TurnId, UserId
from memory.stores.sqlite.query_words import words_of

_AROUND_CHARS: Final = 60
"""How much of a message is shown on either side of what was found."""


class Copy(TypedDict):
    """A turn that a fork copied."""

    id: TurnId
    copied: TurnId
    target: ConversationId
    user: UserId


def excerpt(turn_id: TurnId, message: str, reply: str, query: str) -> TextMatch:
    """Return the first place where a turn holds `query` as it stands, or else one of its words.

    The turn holds its words if letter case is ignored.
    """
    text, found = _found(message, reply, query)
    at = text.casefold().index(found)
    lengths = list(accumulate(map(len, map(str.casefold, text)), initial=0))
    start, end = bisect_right(lengths, at) - 1, bisect_left(lengths, at + len(found))
    before, after = text[:start], text[end:]
    return TextMatch(
        turn_id=turn_id,
        before=("…" if len(before) > _AROUND_CHARS else "") + before[-_AROUND_CHARS:],
        text=text[start:end],
        after=after[:_AROUND_CHARS] + ("…" if len(after) > _AROUND_CHARS else ""),
    )


def _found(message: str, reply: str, query: str) -> tuple[str, str]:
    """Return the text of a turn that is to be shown, and what it holds, with its case folded."""
    folded = query.casefold()
    for text in (message, reply, f"{message}\n{reply}"):
        if folded in text.casefold():
            return text, folded
    words = words_of(query)
    text = message if any(word in message.casefold() for word in words) else reply
    shown = text.casefold()
    return text, min((word for word in words if word in shown), key=shown.index)
