"""Expansion of file name patterns as bash does it by default, inside the workspace, with bounded work.

The policy expands patterns itself so that every name is judged, and hands the names on quoted. Hidden names
are never matched. A pattern without a match stays as it is, as in bash.
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

_BRACKET = re.compile(r"[\w\-]+")
_Chars = Sequence[tuple[str, bool]]
"""Characters, each with whether it was quoted."""


@dataclass(slots=True)
class Budget:
    """The work that the patterns of one command may still do."""

    examined: int = MAX_EXAMINED
    hits: int = MAX_HITS

    def examine(self) -> None:
        """Count one name or file; refuse one too many."""
        self.examined -= 1
        if self.examined < 0:
            raise denied("glob_too_wide")


@dataclass(frozen=True, slots=True)
class _Component:
    text: str
    pattern: re.Pattern[str] | None
    """`None`: a literal name."""
    has_literal: bool
    """A part of it stands for itself; a dot does not count, because `*.*` takes nearly everything."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The names that a word stands for."""

    names: tuple[str, ...]
    base: str | None = None
    """The folder that the first wildcard looks through; `None`: nothing was expanded."""
    names_nothing: bool = False
    """From the first wildcard on, the pattern consists of wildcards alone."""


def _translate(chars: _Chars) -> str:
    """Return a component as a pattern of `fnmatch`."""
    out: list[str] = []
    i = 0
    while i < len(chars):
        char, quoted = chars[i]
        if quoted or char not in "*?[":
            out.append(f"[{char}]" if char in "*?[" else char)
        elif char == "[":
            end = next((j for j in range(i + 1, len(chars)) if chars[j] == ("]", False)), None)
            inner = chars[i + 1 : end]
            text = "".join(c for c, _ in inner)
            if end is None or any(q for _, q in inner) or not _BRACKET.fullmatch(text):
                raise denied("glob_bracket")
            out.append(f"[{text}]")
            i = end
        else:
            out.append(char)
        i += 1
    return "".join(out)


def _read_component(chars: _Chars) -> _Component:
    text = "".join(c for c, _ in chars)
    if not any(c in "*?[" and not q for c, q in chars):
        return _Component(text, None, has_literal=True)
    if chars[0][0] == ".":
        raise denied("glob_hidden")
    if sum(c in "*?[" for c in text) > MAX_WILDCARDS:
        raise denied("glob_too_wide")
    translated = _translate(chars)
    outside_brackets = re.sub(r"\[[^\]]*\]", "", translated)
    literal = not set(outside_brackets) <= set("*?.")
    return _Component(text, re.compile(fnmatch.translate(translated)), has_literal=literal)


def _read_components(word: Word) -> list[_Component]:
    components: list[_Component] = []
    chars: list[tuple[str, bool]] = []
    for pair in [*zip(word.text, word.quoted, strict=True), ("/", False)]:
        if pair[0] != "/":
            chars.append(pair)
        else:
            components.append(_read_component(chars))
            chars = []
    return components


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
