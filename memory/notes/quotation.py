"""Quotes a note's lines into a bounded room, item by item, without those that must not be shown now."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from memory.items import Item
from memory.notes.sections import Piece
from memory.recall.query import HeldBack
from memory.recall.quoted_notes import QuotedItem
from memory.recall.stale_schema import StaleSchemaFilter

LEAST_LINE: Final = 40
"""Of a line that does not fit whole its beginning goes in, where there is room for so much."""
_QUOTE: Final = "\n> "
_CUT: Final = f"{_QUOTE}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What bounds the quotation of one note."""

    room: int
    """Characters, its name counted."""
    most_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A quotation; without text there was no room even for a part of its first line, or no line."""

    text: str = ""
    items: Sequence[QuotedItem] = ()
    held_back: Sequence[HeldBack] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    item: Item
    is_whole: bool = True

    def cut(self, chars: int) -> "_Line":
        return _Line(self.text[:chars], self.item, is_whole=False)


@dataclass(slots=True)
class _Gathered:
    lines: list[_Line] = field(default_factory=list)
    held_back: list[HeldBack] = field(default_factory=list)
    is_all: bool = True


def quote(name: str, pieces: Iterable[Piece], bounds: Bounds, holding: StaleSchemaFilter) -> Quoted:
    """Quote a note under its name: whole where there is room, or else its beginning.

    No more pieces are taken, or judged, than have room.
    """
    head = f"\n\n{name}:"
    left = bounds.room - len(head)
    found = _gather(pieces, left, bounds.most_items, holding)
    lines = _trimmed(found.lines)
    is_all = found.is_all and sum(len(line.text) for line in lines) <= left
    kept = lines if is_all else _beginning(lines, left - len(_CUT))
    if not kept:
        return Quoted(held_back=found.held_back)
    text = "".join([head, *(kept_line.text for kept_line in kept), "" if is_all else _CUT])
    return Quoted(text=text, items=_told(kept, lines), held_back=found.held_back)


def _gather(
    pieces: Iterable[Piece], room: int, most_items: int, holding: StaleSchemaFilter
) -> _Gathered:
    """Give the lines of what may be shown, until they are more than there is room for."""
    found = _Gathered()
    chars = taken = 0
    for piece in pieces:
        if chars > room or taken == most_items:
            found.is_all = False
            break
        held_back = holding.judge(piece.item)
        if held_back is not None:
            found.held_back.append(held_back)
            continue
        taken += 1
        lines = [_Line(f"{_QUOTE}{line}", piece.item) for line in _lines_of(piece)]
        chars += sum(len(line.text) for line in lines)
        found.lines += lines
    return found


def _lines_of(piece: Piece) -> Iterator[str]:
    """Give its lines; every kind of line break ends one, so that each stands in the quotation."""
    for line in piece.lines:
        yield from f"{line}\n".splitlines()


def _trimmed(lines: Sequence[_Line]) -> list[_Line]:
    """Leave out the empty lines before and after, and the blanks there."""
    places = [place for place, one in enumerate(lines) if _says_something(one)]
    if not places:
        return []
    kept = list(lines[places[0] : places[-1] + 1])
    first = kept[0].text.removeprefix(_QUOTE).lstrip()
    kept[0] = _Line(f"{_QUOTE}{first}", kept[0].item)
    kept[-1] = _Line(kept[-1].text.rstrip(), kept[-1].item)
    return kept


def _beginning(lines: Sequence[_Line], room: int) -> list[_Line]:
    """Give as many lines as there is room for, and of the next one a part that is worth it."""
    kept: list[_Line] = []
    for line in lines:
        if len(line.text) > room:
            kept += [line.cut(room)] * (room >= LEAST_LINE)
            break
        kept.append(line)
        room -= len(line.text)
    return kept


def _told(kept: Sequence[_Line], lines: Sequence[_Line]) -> list[QuotedItem]:
    """Say which items the kept lines are from, and whether they are all of theirs."""
    told: list[QuotedItem] = []
    for item in {kept_line.item.id: kept_line.item for kept_line in kept}.values():
        mine = [kept_line for kept_line in kept if kept_line.item.id == item.id]
        first = next((line for line in mine if _says_something(line)), None)
        if first is not None:
            count = sum(line.item.id == item.id for line in lines)
            is_whole = len(mine) == count and all(line.is_whole for line in mine)
            told.append(QuotedItem(item=item, line=first.text.strip("\n"), is_whole=is_whole))
    return told


def _says_something(line: _Line) -> bool:
    return bool(line.text.removeprefix(_QUOTE).strip())
