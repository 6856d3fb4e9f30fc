"""What the indexes of texts share: what a fork copied, and how a text that was found is shown."""

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final, TypedDict

from gateway.conversations.model import TextMatch
from gateway.ids import ConversationId, TurnId, UserId

_AROUND_CHARS: Final = 60
"""How much of a message is shown on either side of what was found."""


class Copy(TypedDict):
    """A turn that a fork copied."""

    id: TurnId
    copied: TurnId
    target: ConversationId
    user: UserId


def excerpt(turn_id: TurnId, message: str, reply: str, folded: str) -> TextMatch:
    """Return the first place where a turn holds `folded`, which it does if letter
    case is ignored.
    """
    texts = (message, reply, f"{message}\n{reply}")
    text = next(text for text in texts if folded in text.casefold())
    at = text.casefold().index(folded)
    lengths = list(accumulate(map(len, map(str.casefold, text)), initial=0))
    start, end = bisect_right(lengths, at) - 1, bisect_left(lengths, at + len(folded))
    before, after = text[:start], text[end:]
    return TextMatch(
        turn_id=turn_id,
        before=("…" if len(before) > _AROUND_CHARS else "") + before[-_AROUND_CHARS:],
        text=text[start:end],
        after=after[:_AROUND_CHARS] + ("…" if len(after) > _AROUND_CHARS else ""),
    )
