"""Quotes a note's items within a bound, without stale ones."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from memory.items import Item
from memory.notes.sections import Piece
from memory.recall.query import HeldBack, QuotedItem
from memory.recall.stale_schema import StaleSchemaFilter

LEAST_LINE: Final = 40
"""Minimum room for the beginning of a line that does not fit whole."""
_QUOTE: Final = "\n> "
_CUT: Final = f"{_QUOTE}…"


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
    """Quote a note under its name: whole if it fits, otherwise its beginning."""
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
    """Return the lines that may be shown, until they exceed the room."""
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
    """Return its lines, split at every kind of line break."""
    for line in piece.lines:
        yield from f"{line}\n".splitlines()


def _trimmed(lines: Sequence[_Line]) -> list[_Line]:
    """Remove empty lines and blanks at both ends."""
    places = [place for place, one in enumerate(lines) if _says_something(one)]
    if not places:
        return []
    kept = list(lines[places[0] : places[-1] + 1])
    first = kept[0].text.removeprefix(_QUOTE).lstrip()
    kept[0] = _Line(f"{_QUOTE}{first}", kept[0].item)
    kept[-1] = _Line(kept[-1].text.rstrip(), kept[-1].item)
    return kept


def _beginning(lines: Sequence[_Line], room: int) -> list[_Line]:
    """Return the lines that fit, and the beginning of the next one if there is enough room."""
    kept: list[_Line] = []
    for line in lines:
        if len(line.text) > room:
            kept += [line.cut(room)] * (room >= LEAST_LINE)
            break
        kept.append(line)
        room -= len(line.text)
    return kept


def _told(kept: Sequence[_Line], lines: Sequence[_Line]) -> list[QuotedItem]:
    """Return the items of the kept lines, and whether all their lines were kept."""
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
