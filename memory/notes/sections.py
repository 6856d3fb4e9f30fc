"""Splits a note into searchable items: the sections of Markdown, the top-level keys of YAML.

A heading without a text of its own, and the front matter, belong to the section that follows; one
with a date line alone does so only if that section is below it.
Tables of contents are no items. A section's date is that of its heading or of a line that says it,
of a heading above it, of the file's front matter or name, and otherwise of the file.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise, takewhile
from pathlib import PurePosixPath
from typing import Final

from memory.items.ids import derived_id
from memory.items.item import BETWEEN_HEADINGS, Item
from memory.items.scope import WORKSPACE_OWNER, Scope
from memory.notes.dates import date_in
from memory.notes.folder import NoteText
from memory.text.lines import one_line

_MAX_SECTIONS: Final = 200
_MAX_TITLE_CHARS: Final = 200
_MAX_SUMMARY_CHARS: Final = 300
_HEADING: Final = re.compile(r" {0,3}(#{1,3})[ \t]+\S")
_FENCE: Final = re.compile(r" {0,3}(```|~~~)")
_KEY: Final = re.compile(r"""(?:[^\s#"'\[{:-][^\s:]*|"[^"]*"|'[^']*')[ \t]*:(?=\s|$)""")
_DATE_LINE: Final = re.compile(r"[\s>*_-]*(?:date|日期)[\s*_]*[:：]", re.IGNORECASE)
_LINKED: Final = re.compile(
    r"\s*(?:[-*+]|\d+[.)])\s+\[[^\]]*\]\((?![a-z]+://)[^)\s]*\)[^.。]{0,80}$"
)
_FRONT: Final = "---"
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    """Its own heading or key, or the file's name."""
    path: Sequence[str]
    """The headings above it."""
    lines: Sequence[str]
    text: Sequence[str]
    """The lines without front matter and headings."""
    heading: Sequence[str]
    """Its heading, if it is not in the text."""
    dated: datetime | None


@dataclass(frozen=True, slots=True)
class Piece:
    """An item of a note with its lines."""

    item: Item
    lines: Sequence[str]


def items_of(note: NoteText, owner_id: str = WORKSPACE_OWNER) -> list[Item]:
    """Return a note's items; ids are derived from the owner, the file's name and the section's
    heading.
    """
    return [piece.item for piece in pieces_of(note, owner_id)]


def pieces_of(note: NoteText, owner_id: str = WORKSPACE_OWNER) -> list[Piece]:
    """Return a note's items with their lines, in the order of the text."""
    whose = () if owner_id == WORKSPACE_OWNER else (owner_id,)
    changed_at = datetime.fromtimestamp(note.file.mtime_ns // _NS, UTC)
    made: list[Piece] = []
    seen: dict[str, int] = {}
    for section in _sections(note):
        body = "\n".join(section.lines).strip()
        if not body or _is_table_of_contents(section.text):
            continue
        number = seen[section.name] = seen.get(section.name, -1) + 1
        item = Item(
            id=derived_id("not", *whose, note.file.name, section.name, str(number)),
            kind="note",
            scope=Scope(owner_id=owner_id),
            title=one_line(BETWEEN_HEADINGS.join([*section.path, section.name]), _MAX_TITLE_CHARS),
            summary=one_line("\n".join([*section.heading, *section.text]), _MAX_SUMMARY_CHARS),
            body=body,
            source=note.file.name,
            tags=(PurePosixPath(note.file.name).stem,),
            occurred_at=section.dated or changed_at,
            updated_at=changed_at,
        )
        made.append(Piece(item, section.lines))
    return made


def _sections(note: NoteText) -> Iterator[_Section]:
    path = PurePosixPath(note.file.name)
    lines = note.text.split("\n")
    body = len(lines) - len(_without_front(lines))
    dated = _dated(lines[:body]) or date_in(path.stem)
    if path.suffix.lower() == ".md":
        yield from _of_markdown(path.stem, lines, body, dated)
    else:
        yield from _of_yaml(path.stem, lines, dated)


def _of_markdown(
    stem: str, lines: Sequence[str], body: int, dated: datetime | None
) -> Iterator[_Section]:
    headings = list(_headings(lines, body))[:_MAX_SECTIONS]
    first = headings[0][0] if headings else len(lines)
    text = lines[body:first]
    dated = dated or _dated(text)
    above: list[tuple[int, str, datetime | None]] = []
    begin = 0
    if _has_text(text):
        yield _Section(stem, (), lines[:first], text, (), dated)
        begin = first
    for (start, level), (end, next_level) in pairwise([*headings, (len(lines), 0)]):
        name = _title(lines[start])
        above = [heading for heading in above if heading[0] < level]
        path = [heading for _, heading, _ in above]
        text = lines[start + 1 : end]
        own = date_in(name) or _dated(text) or next((at for *_, at in reversed(above) if at), dated)
        above.append((level, name, own))
        is_dated_leaf = next_level <= level and _dated(text) is not None
        if end == len(lines) or _has_text(text) or is_dated_leaf:
            yield _Section(name, path, lines[begin:end], text, (name,), own)
            begin = end


def _of_yaml(stem: str, lines: Sequence[str], dated: datetime | None) -> Iterator[_Section]:
    keys = [place for place, line in enumerate(lines) if _KEY.match(line)][:_MAX_SECTIONS]
    if len(keys) < 2:  # noqa: PLR2004  one key or none: the file as a whole
        yield _Section(stem, (), lines, lines, (), dated or _dated(lines))
        return
    starts = [_above(lines, place) for place in keys]
    starts[0] = 0
    for place, start, end in zip(keys, starts, [*starts[1:], len(lines)], strict=True):
        name = one_line(lines[place].partition(":")[0].strip("\"' "), _MAX_TITLE_CHARS)
        yield _Section(name, (stem,), lines[start:end], lines[start:end], (), dated)


def _above(lines: Sequence[str], place: int) -> int:
    above = takewhile(lambda line: line.startswith("#"), reversed(lines[:place]))
    return place - sum(1 for _ in above)


def _headings(lines: Sequence[str], start: int) -> Iterator[tuple[int, int]]:
    """Yield the indices and levels of headings outside of the front matter and code blocks."""
    fence = ""
    for place in range(start, len(lines)):
        line = lines[place]
        mark = _FENCE.match(line)
        if mark and fence in {"", mark[1]}:
            fence = "" if fence else mark[1]
        elif not fence and (heading := _HEADING.match(line)):
            yield place, len(heading[1])


def _has_text(lines: Sequence[str]) -> bool:
    """Return whether any line says more than a date."""
    return any(line.strip() and not _DATE_LINE.match(line) for line in lines)


def _dated(lines: Sequence[str]) -> datetime | None:
    """Return the date of the first line that says one: `Date: 2026-10-02`."""
    return next((at for line in lines if _DATE_LINE.match(line) and (at := date_in(line))), None)


def _is_table_of_contents(lines: Sequence[str]) -> bool:
    """Return whether the lines are a list of links to other notes or headings, and nothing else."""
    filled = [line for line in lines if line.strip()]
    return len(filled) > 1 and all(_LINKED.match(line) for line in filled)


def _without_front(lines: Sequence[str]) -> Sequence[str]:
    if lines and lines[0].rstrip() == _FRONT:
        for place, line in enumerate(lines[1:], start=1):
            if line.rstrip() == _FRONT:
                return lines[place + 1 :]
    return lines


def _title(line: str) -> str:
    bare = line.strip().lstrip("#").strip()
    return one_line(bare.rstrip("#").rstrip() or bare, _MAX_TITLE_CHARS)
