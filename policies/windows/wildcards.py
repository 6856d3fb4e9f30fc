"""The files that a pattern of cmd or PowerShell may take: `*` and `?` in the last name of a path.

Both take names that begin with a dot, so `*` includes `.env`. cmd also compares with the short name that NTFS
may keep beside the long one (`ENV~1` for `.env`), and lets `?` stand for nothing. In doubt a pattern is read
as taking a name, because every name that it may take is judged.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from policies.denials import denied
from policies.paths.workspace import Place
from policies.visible_text import show
from policies.windows.workspace import WindowsWorkspace, check_colon, check_name, unify

MAX_EXAMINED = 20_000
MAX_HITS = 2000
MAX_WILDCARDS = 16

_UNKNOWN = "\0"
"""Stands in a short name for a character that cannot be predicted."""
_SHORT_NAME = re.compile(r"~[*?]")
_SHORT_STEM_CHARS = 6
_HASHED_STEM_CHARS = 2
_SHORT_EXTENSION_CHARS = 3


@dataclass(slots=True)
class Budget:
    """The work that the patterns of one command may still do."""

    examined: int = MAX_EXAMINED
    hits: int = MAX_HITS


def takes(pattern: str, name: str) -> bool:
    """Return whether a pattern in lower case takes a name, or may take it by its short one."""
    folded = name.casefold()
    names = (folded, f"{folded}.", *_short_names(folded))
    return any(_matches(pattern, form) for form in names)


def _matches(pattern: str, name: str) -> bool:
    """Follow all readings at once, so that no pattern takes long."""
    reached = _skip(pattern, {0})
    for char in name:
        stepped = {at for at in reached if at < len(pattern) and fits(pattern[at], char)}
        reached = _skip(pattern, {at + (pattern[at] != "*") for at in stepped})
    return len(pattern) in reached


def fits(sign: str, char: str) -> bool:
    """Return whether a character of a pattern takes one of a name."""
    return char == _UNKNOWN or sign in ("*", "?", char)


def _skip(pattern: str, reached: set[int]) -> set[int]:
    """Add the places that are reached by letting wildcards stand for nothing."""
    for at, char in enumerate(pattern):
        if at in reached and char in "*?":
            reached.add(at + 1)
    return reached


def _short_names(name: str) -> tuple[str, ...]:
    """Return the forms that the short name of a name may have, in lower case."""
    kept = re.sub(r"[+,;=\[\]]", "_", name.lstrip(".").replace(" ", ""))
    stem, _, extension = kept.rpartition(".") if "." in kept else (kept, "", "")
    stem = "".join(c if c.isascii() else _UNKNOWN for c in stem.replace(".", ""))
    extension = "".join(c if c.isascii() else _UNKNOWN for c in extension[:_SHORT_EXTENSION_CHARS])
    tail = f"~{_UNKNOWN}" + (f".{extension}" if extension else "")
    hashed = stem[:_HASHED_STEM_CHARS] + _UNKNOWN * 4
    forms = (stem[:_SHORT_STEM_CHARS] + tail, hashed + tail)
    return forms if extension else (*forms, *(f"{form}." for form in forms))


def has_wildcard(text: str) -> bool:
    """Return whether a shell takes the text for a pattern; cmd's lines hold no brackets."""
    return any(char in text for char in "*?[]")


def read_pattern(component: str) -> str:
    """Return the last name of a path as a pattern in lower case, or refuse it."""
    if sum(char in "*?" for char in component) > MAX_WILDCARDS:
        raise denied("glob_too_wide.windows")
    check_colon(component)
    check_name(component)
    if _SHORT_NAME.search(component):
        raise denied("path_short_name.pattern", show(component))
    return component.casefold()


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a pattern takes, and from where."""

    base: Place
    """The folder that it looks through."""
    places: tuple[Place, ...]
    names_nothing: bool
    """It consists of wildcards alone."""


def expand(text: str, workspace: WindowsWorkspace, budget: Budget) -> Expansion:
    """Return the places that a pattern may take, each inside, or refuse it; `budget` is used up."""
    workspace.check_root(text)
    folder, slash, last = unify(text).rpartition("/")
    if "[" in text or "]" in text:
        raise denied("glob_bracket.pattern", show(text))
    if has_wildcard(folder) or last in {"", ".."}:
        raise denied("glob_folder")
    pattern = read_pattern(last)
    base = workspace.locate(f"{folder}{slash}" or ".")
    if not Path(base.real).is_dir():
        raise denied("folder_missing.pattern", show(folder))
    found: list[Place] = []
    with os.scandir(base.real) as entries:
        for entry in entries:
            budget.examined -= 1
            if budget.examined < 0 or budget.hits < 0:
                raise denied("glob_too_wide.windows")
            if takes(pattern, entry.name):
                found.append(workspace.locate(f"{base.absolute}/{entry.name}"))
                budget.hits -= 1
    return Expansion(base, tuple(found), names_nothing=not any(map(str.isalnum, pattern)))
