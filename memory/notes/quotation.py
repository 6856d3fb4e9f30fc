"""Quotes a note's items within a bound, without stale ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memory.items import Item
from memory.notes.sections import Piece
from memory.recall.query import HeldBack, QuotedItem
from memory.recall.stale_schema import StaleSchemaFilter

LEAST_LINE: Final = 40
"""Minimum room for the beginning of a line that does not fit whole."""
_QUOTE: Final = "\n> "
_CUT: Final = f"{_QUOTE}…"

_Line = tuple[str, Item]
"""A quoted line, with the line break before it, and its item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of the quotation of one note."""

    room: int
    """Characters, including its name."""
    most_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A quotation; without text if not even a part of the first line fitted."""

    text: str = ""
    items: Sequence[QuotedItem] = ()
    held_back: Sequence[HeldBack] = ()


def quote(name: str, pieces: Iterable[Piece], bounds: Bounds, stale: StaleSchemaFilter) -> Quoted:
    """Quote a note under its name: whole if it fits, otherwise its beginning."""
    head = f"\n\n{name}:"
    room = bounds.room - len(head)
    lines: list[_Line] = []
    held_back: list[HeldBack] = []
    is_all, chars, taken = True, 0, 0
    for piece in pieces:
        if chars > room or taken == bounds.most_items:
            is_all = False
            break
        if (held := stale.judge(piece.item)) is not None:
            held_back.append(held)
            continue
        taken += 1
        for line in "\n".join([*piece.lines, ""]).splitlines():  # at every kind of line break
            lines.append((f"{_QUOTE}{line}", piece.item))
            chars += len(_QUOTE) + len(line)
    lines = _trimmed(lines)
    is_all = is_all and sum(len(text) for text, _ in lines) <= room
    kept = lines if is_all else _beginning(lines, room - len(_CUT))
    if not kept:
        return Quoted(held_back=held_back)
    text = "".join([head, *(text for text, _ in kept), "" if is_all else _CUT])
    return Quoted(text=text, items=_items(kept, lines), held_back=held_back)


def _trimmed(lines: Sequence[_Line]) -> list[_Line]:
    """Remove empty lines and blanks at both ends."""
    filled = [index for index, (text, _) in enumerate(lines) if _content(text)]
    if not filled:
        return []
    kept = list(lines[filled[0] : filled[-1] + 1])
    first, item = kept[0]
    kept[0] = (f"{_QUOTE}{first.removeprefix(_QUOTE).lstrip()}", item)
    last, item = kept[-1]
    kept[-1] = (last.rstrip(), item)
    return kept


def _beginning(lines: Sequence[_Line], room: int) -> list[_Line]:
    """Return the lines that fit, and the beginning of the next one if there is enough room."""
    kept: list[_Line] = []
    for text, item in lines:
        if len(text) > room:
            if room >= LEAST_LINE:
                kept.append((text[:room], item))
            break
        kept.append((text, item))
        room -= len(text)
    return kept


def _items(kept: Sequence[_Line], lines: Sequence[_Line]) -> list[QuotedItem]:
    """Return the items of the kept lines, and whether they were kept whole."""
    quoted: list[QuotedItem] = []
    for item_id, item in {item.id: item for _, item in kept}.items():
        mine = [text for text, owner in kept if owner.id == item_id]
        first = next((text for text in mine if _content(text)), None)
        if first is not None:
            whole = [text for text, owner in lines if owner.id == item_id]
            quoted.append(QuotedItem(item=item, line=first.strip("\n"), is_whole=mine == whole))
    return quoted


def _content(text: str) -> str:
    return text.removeprefix(_QUOTE).strip()
