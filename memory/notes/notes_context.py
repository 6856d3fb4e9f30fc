"""Quotes the notes for a message that asks about memory, within bounds and without stale items.

A model asked "what do you remember?" may answer that it has no memory without having looked, so the
notes are put before it.
"""

import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from memory.intents.masking import Mask
from memory.items.scope import WORKSPACE_OWNER
from memory.notes.folder import FOLDER, NoteFile, NoteText, list_notes_blocking, read_note_blocking
from memory.notes.sections import Piece, pieces_of
from memory.recall.memory_questions import asks_about_memory
from memory.recall.query import MAX_ITEMS, HeldBack, QuotedItem, QuotedNotes
from memory.recall.question_words import QuestionWords
from memory.recall.stale_schema import hold_back
from policies.content.tool_usage import ActiveTools
from policies.secrets import mask_secrets

LEAST_LINE: Final = 40
"""Minimum room for the beginning of a line that does not fit whole."""
_QUOTE: Final = "\n> "
_CUT: Final = f"{_QUOTE}…"

DEFAULT_BUDGET_CHARS: Final = 3000
_MAX_READ: Final = 200
"""Files read for one message: those whose names fit it, then the newest."""
_MAX_READ_BYTES: Final = 16_384
"""Bytes read of each file; more than any budget takes."""
_MAX_FIT_CHARS: Final = 4000
_MAX_SHARES: Final = 4
_LEAST_SHARE: Final = 200
_QUOTING: Final = 40
"""Approximate characters around a note's text."""
_NAMES_SHARE: Final = 10
"""A tenth of the budget is kept for the names of files without room."""
_MAX_HELD_BACK: Final = 60
"""After so many stale items no more are judged."""

_TOLD: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_LEAD, _NONE, _ALL_HELD_BACK = _TOLD["lead"], _TOLD["none"], _TOLD["all_held_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesBounds:
    """The bounds of the notes for one message."""

    budget_chars: int = DEFAULT_BUDGET_CHARS
    most_items: int = MAX_ITEMS
    active_tools: Sequence[str] = ()
    """The tools in use; what the notes say of their schemas is held back."""
    mask: Mask = mask_secrets
    owner_id: str = WORKSPACE_OWNER
    """The owner of the notes."""


def build_memory_context(
    workspace: Path,
    message: str,
    budget_chars: int = DEFAULT_BUDGET_CHARS,
    *,
    mask: Mask = mask_secrets,
) -> str:
    """Return the notes for a message that asks about memory as a text, for embedders of memory.
    Blocking.
    """
    return quoted_notes(workspace, message, NotesBounds(budget_chars=budget_chars, mask=mask)).text


def quoted_notes(workspace: Path, message: str, bounds: NotesBounds) -> QuotedNotes:
    """Return the notes for a message that asks about memory; empty if it does not ask. Blocking.

    What fits the message comes first, then the newest; a long file is quoted in part, and files
    without room are named as far as they fit. The text has at most `budget_chars` characters, and
    none if the lead does not fit. Stale items are left out as in search.
    """
    if not asks_about_memory(message):
        return QuotedNotes()
    asked = _words(message)
    files = sorted(
        list_notes_blocking(workspace),
        key=lambda file: (-_fit(asked, file.name), -file.mtime_ns),
    )
    notes = [  # masked when it is known what is quoted
        note
        for file in files[:_MAX_READ]
        if (note := read_note_blocking(workspace, file, str, most_bytes=_MAX_READ_BYTES))
        and note.text.strip()
    ]
    if not notes:
        return QuotedNotes(text=_NONE if len(_NONE) <= bounds.budget_chars else "")
    if len(_LEAD) > bounds.budget_chars:
        return QuotedNotes()
    notes.sort(
        key=lambda note: (-_fit(asked, f"{note.file.name}\n{note.text}"), -note.file.mtime_ns)
    )
    return _Quoter(workspace, bounds).quote(notes, files)


async def build_memory_context_async(
    workspace: Path,
    message: str,
    budget_chars: int = DEFAULT_BUDGET_CHARS,
    *,
    mask: Mask = mask_secrets,
    limiter: anyio.CapacityLimiter | None = None,
) -> str:
    """Do the same in a worker thread, which ends by itself if the caller is cancelled."""
    bounds = NotesBounds(budget_chars=budget_chars, mask=mask)
    told = await quoted_notes_async(workspace, message, bounds, limiter=limiter)
    return told.text


async def quoted_notes_async(
    workspace: Path,
    message: str,
    bounds: NotesBounds,
    *,
    limiter: anyio.CapacityLimiter | None = None,
) -> QuotedNotes:
    """Return the notes from a worker thread, which ends by itself if the caller is cancelled."""
    work = partial(quoted_notes, workspace, message, bounds)
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)


def _words(message: str) -> frozenset[str]:
    return frozenset(QuestionWords.of(message).weights) - {"memory", "memories", "记忆", "記憶"}


def _fit(asked: frozenset[str], text: str) -> int:
    """Return how many of the words are in the beginning of a text."""
    folded = unicodedata.normalize("NFKC", text[:_MAX_FIT_CHARS]).casefold()
    return sum(word in folded for word in asked)


class _Quoter:
    """Quotes notes one after another into the room."""

    def __init__(self, workspace: Path, bounds: NotesBounds) -> None:
        self._workspace = workspace
        self._bounds = bounds
        self._mask = bounds.mask
        self._tools = ActiveTools.of(bounds.active_tools)
        self._parts: list[str] = []
        self._items: list[QuotedItem] = []
        self._held_back: list[HeldBack] = []

    def quote(self, notes: Sequence[NoteText], files: Sequence[NoteFile]) -> QuotedNotes:
        """Quote the notes in their order, and name the files without room."""
        budget_chars = self._bounds.budget_chars
        for_names = budget_chars // _NAMES_SHARE if len(files) > 1 else 0
        room = budget_chars - len(_LEAD) - for_names
        seen: set[str] = set()
        for place, note in enumerate(notes):
            if room < LEAST_LINE or self._has_enough():
                break
            share = _share(room, notes[place + 1 : place + _MAX_SHARES])
            room -= self._add(note, min(room, share), seen)
        lead = _LEAD if self._items or not self._held_back else _ALL_HELD_BACK
        rest = [file.name for file in files if file.name not in seen]
        names = self._named(rest, room + for_names)
        return QuotedNotes(
            text="".join([lead, *self._parts, names]), items=self._items, held_back=self._held_back
        )

    def _has_enough(self) -> bool:
        return len(self._items) >= self._bounds.most_items or len(self._held_back) >= _MAX_HELD_BACK

    def _add(self, note: NoteText, room: int, seen: set[str]) -> int:
        """Quote a note under its name, whole or its beginning; return the room that it took.

        It counts as seen unless nothing of it fitted.
        """
        name = note.file.name
        if self._mask(name) != name:  # a file whose name holds a secret is no note
            return 0
        text = f"\n\n{name}:"
        is_all, already = True, len(self._items)
        for piece in self._pieces(note):
            if len(self._items) == self._bounds.most_items or not is_all:
                is_all = False
                break
            if (held := hold_back(piece.item, self._tools)) is not None:
                self._held_back.append(held)
                seen.add(name)
                continue
            between = _QUOTE if len(self._items) > already else ""
            quoted, is_all = _quoted(piece, room - len(text) - len(between) - len(_CUT))
            if quoted:
                text += between + quoted
                line = quoted.split("\n")[1]
                self._items.append(QuotedItem(item=piece.item, line=line, is_whole=is_all))
        if len(self._items) == already:
            return 0
        seen.add(name)
        self._parts.append(text if is_all else f"{text}{_CUT}")
        return len(self._parts[-1])

    def _pieces(self, note: NoteText) -> Iterator[Piece]:
        """Yield a note's pieces; read a note that was read in part again before its last piece is
        judged.
        """
        owner_id = self._bounds.owner_id
        pieces = pieces_of(replace(note, text=self._mask(note.text)), owner_id)
        if note.file.size <= _MAX_READ_BYTES or not self._bounds.active_tools:
            yield from pieces
            return
        yield from pieces[:-1]
        whole = read_note_blocking(self._workspace, note.file, self._mask)
        if whole is not None:
            yield from pieces_of(whole, owner_id)[max(0, len(pieces) - 1) :]

    def _named(self, names: Sequence[str], room: int) -> str:
        shown = [name for name in names if not self._tools.is_stale(name, "")]
        text = f"\n\nAlso there, {len(shown)} more: "
        if not shown or len(text) + LEAST_LINE > room:
            return ""
        for place, name in enumerate(shown):
            more = self._mask(name.removeprefix(f"{FOLDER}/"))
            more += ", " if place + 1 < len(shown) else ""
            if len(text) + len(more) >= room:
                return f"{text}…"
            text += more
        return text


def _quoted(piece: Piece, room: int) -> tuple[str, bool]:
    """Return the lines of a piece that fit, quoted, and whether these are all."""
    lines = "\n".join(piece.lines).strip().splitlines()  # at every kind of line break
    whole = "".join(f"{_QUOTE}{line}" for line in lines)
    if len(whole) <= room:
        return whole, True
    before, _, last = whole[: max(0, room)].rpartition("\n")
    return f"{before}\n{last}" if len(last) >= LEAST_LINE else before, False


def _share(room: int, others: Sequence[NoteText]) -> int:
    """Return the room of a note: its part, and what the next ones cannot use of theirs."""
    part = room // (len(others) + 1)
    kept = sum(min(part, len(other.file.name) + len(other.text) + _QUOTING) for other in others)
    return max(_LEAST_SHARE, room - kept)
