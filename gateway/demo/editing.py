"""Changes inside of files: write whole, add a line, replace a text.

A file that is there has to be read before it may be changed, and reading one that is not there is a failure: so what
may be missing is looked for first.
"""

import re
from collections.abc import Sequence

from gateway.demo.calling import (
    Calls,
    Missing,
    Round,
    Workplace,
    call_tool,
    read_files,
    read_lines,
)

NOTES_PATH = "memory/notes.md"

_NOT_THERE = re.compile(r"does not exist|no such file|not found|ENOENT", re.IGNORECASE)
_UNREAD = re.compile(r"has not been read", re.IGNORECASE)


def write_file(path: str, text: str, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    """Write at once; a file that turns out to be there already is read and then replaced."""
    writing = _write(path, text, place)
    if not rounds:
        return writing
    last = rounds[-1][-1]
    if len(rounds) == 1 and last.is_error and _UNREAD.search(last.text):
        return read_files((path,), place)
    if len(rounds) == 2 and last.name == "Read" and not last.is_error:  # noqa: PLR2004 - refused, read, write again
        return writing
    return ()


def note_fact(fact: str, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    """A line in the notes, unless it stands there."""
    line = f"- {fact}"
    head, rest = _look_and_read(NOTES_PATH, f"# Notes\n\n{line}\n", rounds, place)
    if head is not None:
        return head
    if line in rest:
        return ()
    return _add_line(NOTES_PATH, line, rest, place) or _write(
        NOTES_PATH, f"# Notes\n\n{line}\n", place
    )


def forget_notes(about: str, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    """The notes without the lines that name it; nothing where none does."""
    if not rounds and "Glob" in place.tools:
        return call_tool("Glob", {"pattern": NOTES_PATH}, place)
    if rounds and rounds[0][-1].name == "Glob":
        listing = rounds[0][-1]
        if listing.is_error or NOTES_PATH not in listing.text:
            return ()
        rounds = rounds[1:]
    if not rounds:
        return read_files((NOTES_PATH,), place)
    if len(rounds) > 1 or rounds[0][-1].is_error:
        return ()
    lines = read_lines(rounds[0][-1].text)
    named = re.compile(
        rf"(?<![a-z0-9]){re.escape(about)}(?![a-z0-9])", re.IGNORECASE
    )  # whole words: "tea" leaves "team" alone
    kept = [one for one in lines if not (one.startswith("- ") and named.search(one))]
    if len(kept) == len(lines):
        return ()
    return _write(NOTES_PATH, "\n".join(kept).rstrip("\n") + "\n", place)


def append_text(path: str, text: str, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    """The text as the last line of a file, which is made where it is not there."""
    head, rest = _look_and_read(path, f"{text}\n", rounds, place)
    if head is not None:
        return head
    return _add_line(path, text, rest, place) or _write(path, f"{text}\n", place)


def replace_text(
    path: str, old: str, new: str, rounds: Sequence[Round], place: Workplace
) -> Calls | Missing:
    """Every place of a text in a file; nothing where the file does not hold it."""
    if not rounds:
        return read_files((path,), place)
    found = rounds[0][-1]
    if len(rounds) > 1 or found.is_error or old not in "\n".join(read_lines(found.text)):
        return ()
    change = {"old_string": old, "new_string": new, "replace_all": True}
    return call_tool("Edit", {"file_path": place.absolute(path), **change}, place)


def _look_and_read(
    path: str, first_text: str, rounds: Sequence[Round], place: Workplace
) -> tuple[Calls | Missing | None, Sequence[str]]:
    """What comes before the change itself, or `None` and the lines that the file has."""
    if not rounds:
        can_look = "Glob" in place.tools and not path.startswith(("/", "~"))
        return (
            call_tool("Glob", {"pattern": path}, place) if can_look else read_files((path,), place)
        ), ()
    if rounds[0][-1].name == "Glob":
        listing = rounds[0][-1]
        rounds = rounds[1:]
        is_there = any(line.rstrip().endswith(path) for line in listing.text.splitlines())
        if listing.is_error or (rounds and not is_there):
            return (), ()
        if not rounds:
            step = read_files((path,), place) if is_there else _write(path, first_text, place)
            return step, ()
    if len(rounds) > 1:
        return (), ()
    found = rounds[0][-1]
    if found.is_error:
        is_missing = _NOT_THERE.search(found.text) is not None
        return _write(path, first_text, place) if is_missing else (), ()
    return None, read_lines(found.text)


def _add_line(path: str, text: str, lines: Sequence[str], place: Workplace) -> Calls | Missing:
    """Empty where the file has no line to add to."""
    anchor = next((line for line in reversed(lines) if line.strip()), "")
    if not anchor:
        return ()
    if "\n".join(lines).count(anchor) == 1 and "Edit" in place.tools:
        change = {"old_string": anchor, "new_string": f"{anchor}\n{text}"}
        return call_tool("Edit", {"file_path": place.absolute(path), **change}, place)
    whole = "\n".join(lines).rstrip("\n")
    return _write(path, f"{whole}\n{text}\n", place)


def _write(path: str, text: str, place: Workplace) -> Calls | Missing:
    return call_tool("Write", {"file_path": place.absolute(path), "content": text}, place)
