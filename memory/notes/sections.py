"""Splits a note into searchable items: one a section, or one for a short note."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final

from memory.ids import derived_id
from memory.items import Item
from memory.notes.folder import NoteText
from memory.scope import WORKSPACE_OWNER, Scope
from memory.text_lines import one_line

_WHOLE_CHARS: Final = 1500
"""A shorter note is one item."""
_MAX_SECTIONS: Final = 200
_MAX_TITLE_CHARS: Final = 200
_MAX_SUMMARY_CHARS: Final = 300
_HEADING: Final = re.compile(r" {0,3}#{1,3}[ \t]+\S")
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")
_FRONT: Final = "---"
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Piece:
    """An item of a note with its lines."""

    item: Item
    lines: Sequence[str]


def items_of(note: NoteText) -> list[Item]:
    """Return a note's items; ids are derived from the file's name and the section's heading."""
    return [piece.item for piece in pieces_of(note)]


def pieces_of(note: NoteText) -> list[Piece]:
    """Return a note's items with their lines, in the order of the text."""
    at = datetime.fromtimestamp(note.file.mtime_ns // _NS, UTC)
    made: list[Piece] = []
    seen: dict[str, int] = {}
    for section in _sections(note):
        body = "\n".join(section.lines).strip()
        if not body:
            continue
        number = seen[section.title] = seen.get(section.title, -1) + 1
        item = Item(
            id=derived_id("not", note.file.name, section.title, str(number)),
            kind="note",
            scope=Scope(owner_id=WORKSPACE_OWNER),
            title=section.title,
            summary=one_line("\n".join(_without_front(section.lines)), _MAX_SUMMARY_CHARS),
            body=body,
            source=note.file.name,
            tags=(PurePosixPath(note.file.name).stem,),
            occurred_at=at,
            updated_at=at,
        )
        made.append(Piece(item, section.lines))
    return made


def _sections(note: NoteText) -> Iterator[_Section]:
    path = PurePosixPath(note.file.name)
    lines = note.text.split("\n")
    starts = list(_headings(lines)) if path.suffix.lower() == ".md" else []
    if len(note.text) <= _WHOLE_CHARS or not starts:
        yield _Section(_title(lines[starts[0]]) if starts else path.stem, lines)
        return
    starts = starts[:_MAX_SECTIONS]
    yield _Section(path.stem, lines[: starts[0]])
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield _Section(_title(lines[start]), lines[start:end])


def _headings(lines: Sequence[str]) -> Iterator[int]:
    """Yield the indices of headings outside of the front matter and code blocks."""
    fence = ""
    for place in range(len(lines) - len(_without_front(lines)), len(lines)):
        line = lines[place]
        mark = _FENCE.match(line)
        if mark and fence in {"", mark[1]}:
            fence = "" if fence else mark[1]
        elif not fence and _HEADING.match(line):
            yield place


def _without_front(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines after the front matter."""
    if lines and lines[0].rstrip() == _FRONT:
        for place, line in enumerate(lines[1:], start=1):
            if line.rstrip() == _FRONT:
                return lines[place + 1 :]
    return lines


def _title(line: str) -> str:
    """Return the text of a heading."""
    bare = line.strip().lstrip("#").strip()
    return one_line(bare.rstrip("#").rstrip() or bare, _MAX_TITLE_CHARS)
