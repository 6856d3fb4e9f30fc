"""Expansion of file name patterns as bash does it by default, inside the workspace, with bounded
work.

The policy expands patterns itself so that every name is judged, and hands the names on quoted.
Hidden names are never matched. A pattern without a match stays as it is, as in bash.
"""

import fnmatch
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.denials import denied
from policies.paths.workspace import Workspace
from policies.shell.words import Word
from policies.visible_text import show

MAX_HITS = 500
MAX_EXAMINED = 20_000
MAX_WILDCARDS = 16

_SPECIAL = "*?["
_SIGN = re.compile(r"\[[^\]]*\]?|.", re.DOTALL)
_BRACKET = re.compile(r"\[[\w\-]+\]")


@dataclass(slots=True)
class Budget:
    """The work that the patterns of one command may still do."""

    examined: int = MAX_EXAMINED
    hits: int = MAX_HITS

    def examine(self) -> None:
        """Count a name or file; refuse more than the budget allows."""
        self.examined -= 1
        if self.examined < 0:
            raise denied("glob_too_wide")


@dataclass(frozen=True, slots=True)
class _Component:
    text: str
    pattern: re.Pattern[str] | None
    """`None`: a literal name."""
    has_literal: bool
    """A part of it stands for itself; a dot does not count, because `*.*` takes nearly
    everything."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The names that a word stands for."""

    names: tuple[str, ...]
    base: str | None = None
    """The folder that the first wildcard looks through; `None`: nothing was expanded."""
    names_nothing: bool = False
    """From the first wildcard on, the pattern consists of wildcards alone."""


def _translate(text: str, unquoted: str) -> str:
    """Return a component as a pattern of `fnmatch`."""

    def write(sign: re.Match[str]) -> str:
        if sign[0][0] == "[" and not _BRACKET.fullmatch(sign[0]):
            raise denied("glob_bracket")
        char = text[sign.start()]
        return sign[0] if sign[0][0] in _SPECIAL else f"[{char}]" if char in _SPECIAL else char

    return _SIGN.sub(write, unquoted)


def _read_component(text: str, unquoted: str) -> _Component:
    """Read a component; `unquoted` has a NUL in place of each quoted character."""
    if not any(char in _SPECIAL for char in unquoted):
        return _Component(text, None, has_literal=True)
    if text[0] == ".":
        raise denied("glob_hidden")
    if sum(char in _SPECIAL for char in text) > MAX_WILDCARDS:
        raise denied("glob_too_wide")
    translated = _translate(text, unquoted)
    outside_brackets = re.sub(r"\[[^\]]*\]", "", translated)
    literal = not set(outside_brackets) <= set("*?.")
    return _Component(text, re.compile(fnmatch.translate(translated)), has_literal=literal)


def _read_components(word: Word) -> list[_Component]:
    chars = zip(word.text, word.quoted, strict=True)
    unquoted = "".join("\0" if quoted and char != "/" else char for char, quoted in chars)
    return list(map(_read_component, word.text.split("/"), unquoted.split("/")))


def _list_folder(
    prefix: str, pattern: re.Pattern[str], tail: str, workspace: Workspace, budget: Budget
) -> list[str]:
    """Return the spellings below `prefix` that a pattern takes; with a `tail`, folders alone."""
    place = workspace.locate(prefix or ".")
    if not Path(place.real).is_dir():
        return []
    found: list[str] = []
    try:
        with os.scandir(place.real) as entries:
            for entry in entries:
                budget.examine()
                if entry.name.startswith(".") or not pattern.match(entry.name):
                    continue
                if not tail or Path(entry.path).is_dir():
                    found.append(f"{prefix}{entry.name}{tail}")
    except OSError:
        raise denied("glob_unreadable") from None
    return sorted(found)


def _walk(components: Sequence[_Component], workspace: Workspace, budget: Budget) -> list[str]:
    reached = [""]
    for i, component in enumerate(components):
        tail = "/" if i < len(components) - 1 else ""
        extended: list[str] = []
        for prefix in reached:
            if component.pattern is not None:
                extended += _list_folder(prefix, component.pattern, tail, workspace, budget)
                continue
            budget.examine()
            path = f"{prefix}{component.text}"
            if not path or os.path.lexists(workspace.join(path)):
                extended.append(f"{path}{tail}")
        reached = extended
    return reached


def expand(word: Word, workspace: Workspace, budget: Budget) -> Expansion:
    """Return the names that a word stands for, sorted, or refuse the pattern.

    Looks only into folders inside the workspace. All words of one command share the `budget`.
    """
    if not word.is_glob:
        return Expansion((word.text,))
    components = _read_components(word)
    first = next(i for i, c in enumerate(components) if c.pattern is not None)
    if any(c.pattern is None and c.text == ".." for c in components[first:]):
        raise denied("glob_parent")
    names = _walk(components, workspace, budget)
    for name in names:
        if name.startswith("-"):
            raise denied("glob_option", show(name))
    budget.hits -= len(names)
    if budget.hits < 0:
        raise denied("glob_too_wide")
    base = "/".join(c.text for c in components[:first])
    base = f"{base}/" if first else "."
    empty = not any(c.has_literal for c in components[first:] if c.text)
    return Expansion(tuple(names) or (word.text,), base, empty)
