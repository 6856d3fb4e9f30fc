"""Expands file name patterns as bash does by default, inside the workspace alone, with bounded work.

The policy expands them itself so that every name is judged, and hands the names on quoted: what was seen
is what runs. Hidden names are never matched. A pattern that matches nothing stays as it is, as in bash.
"""

import fnmatch
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from policies.paths.workspace import Workspace, show
from policies.shell.words import Word
from policies.verdict import Deny

MAX_HITS = 500
MAX_EXAMINED = 20_000
MAX_WILDCARDS = 16

_BRACKET = re.compile(r"[\w\-]+")
_Chars = list[tuple[str, bool]]

_TOO_WIDE = Deny(
    "glob_too_wide",
    "The pattern looks at or matches too many files.",
    "Name a folder, or a narrower pattern.",
)


@dataclass(slots=True)
class Budget:
    """How much work the globs of one command may still do."""

    examined: int = field(default=MAX_EXAMINED)
    hits: int = field(default=MAX_HITS)


@dataclass(frozen=True, slots=True)
class _Component:
    text: str
    pattern: re.Pattern[str] | None
    """`None`: a literal name."""
    has_literal: bool
    """Something in it stands for itself; a dot does not count, because `*.*` takes nearly everything."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The names that a word stands for."""

    names: tuple[str, ...]
    base: str | None = None
    """The folder that the first wildcard looks through; `None`: nothing was expanded."""
    names_nothing: bool = False
    """The pattern consists of wildcards alone from there on."""


def _translate(chars: _Chars) -> str | Deny:
    out: list[str] = []
    i = 0
    while i < len(chars):
        char, quoted = chars[i]
        if quoted or char not in "*?[":
            out.append(f"[{char}]" if char in "*?[" else char)
            i += 1
        elif char == "[":
            end = next((j for j in range(i + 1, len(chars)) if chars[j] == ("]", False)), None)
            inner = chars[i + 1 : end]
            text = "".join(c for c, _ in inner)
            if end is None or any(q for _, q in inner) or not _BRACKET.fullmatch(text):
                return Deny(
                    "glob_bracket",
                    "A bracket pattern may hold letters, digits and ranges alone.",
                    "Put the name in single quotes if the bracket belongs to it.",
                )
            out.append(f"[{text}]")
            i = end + 1
        else:
            out.append(char)
            i += 1
    return "".join(out)


def _read_component(chars: _Chars) -> _Component | Deny:
    text = "".join(c for c, _ in chars)
    if not any(c in "*?[" and not q for c, q in chars):
        return _Component(text, None, has_literal=True)
    if chars[0][0] == ".":
        return Deny(
            "glob_hidden",
            "A pattern must not begin with a dot: it would match hidden and protected files.",
            "Name the hidden files one by one.",
        )
    if sum(c in "*?[" for c, _ in chars) > MAX_WILDCARDS:
        return _TOO_WIDE
    translated = _translate(chars)
    if isinstance(translated, Deny):
        return translated
    outside_brackets = re.sub(r"\[[^\]]*\]", "", translated)
    literal = not set(outside_brackets) <= set("*?.")
    return _Component(text, re.compile(fnmatch.translate(translated)), has_literal=literal)


def _read_components(word: Word) -> list[_Component] | Deny:
    components: list[_Component] = []
    chars: _Chars = []
    for pair in [*zip(word.text, word.quoted, strict=True), ("/", False)]:
        if pair[0] != "/":
            chars.append(pair)
            continue
        component = _read_component(chars)
        if isinstance(component, Deny):
            return component
        components.append(component)
        chars = []
    return components


class _Walk:
    """The expansion of one word; `prefixes` are the spellings reached so far."""

    def __init__(self, workspace: Workspace, budget: Budget) -> None:
        self.workspace = workspace
        self.budget = budget

    def extend(self, prefix: str, component: _Component, *, last: bool) -> list[str] | Deny:
        tail = "" if last else "/"
        if component.pattern is None:
            return self._extend_literal(f"{prefix}{component.text}", tail)
        place = self.workspace.locate(prefix or ".")
        if isinstance(place, Deny):
            return place
        if not Path(place.real).is_dir():
            return []
        try:
            return self._list_matches(place.real, prefix, component.pattern, tail)
        except OSError:
            return Deny(
                "glob_unreadable",
                "The pattern's folder cannot be looked through.",
                "Name the files.",
            )

    def _list_matches(
        self, folder: str, prefix: str, pattern: re.Pattern[str], tail: str
    ) -> list[str] | Deny:
        found: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self.budget.examined -= 1
                if self.budget.examined < 0:
                    return _TOO_WIDE
                if entry.name.startswith(".") or not pattern.match(entry.name):
                    continue
                if not tail or Path(entry.path).is_dir():  # a link to itself is none
                    found.append(f"{prefix}{entry.name}{tail}")
        return sorted(found)

    def _extend_literal(self, path: str, tail: str) -> list[str] | Deny:
        self.budget.examined -= 1
        if self.budget.examined < 0:
            return _TOO_WIDE
        there = not path or os.path.lexists(self.workspace.join(path))
        return [f"{path}{tail}"] if there else []


def expand(word: Word, workspace: Workspace, budget: Budget) -> Expansion | Deny:
    """Give the names that a word stands for, sorted, or refuse the pattern.

    Looks only into folders inside the workspace; `budget` is used up by this and the command's other words.
    """
    if not word.is_glob:
        return Expansion((word.text,))
    components = _read_components(word)
    if isinstance(components, Deny):
        return components
    first = next(i for i, c in enumerate(components) if c.pattern is not None)
    if any(c.pattern is None and c.text == ".." for c in components[first:]):
        return Deny("glob_parent", "A pattern must not go up again with ..", "Name the folder.")
    names = _walk(components, _Walk(workspace, budget))
    if isinstance(names, Deny):
        return names
    for name in names:
        if name.startswith("-"):
            return Deny(
                "glob_option",
                f"The pattern matches {show(name)}, which looks like an option.",
                "Put ./ before the pattern.",
            )
    budget.hits -= len(names)
    if budget.hits < 0:
        return _TOO_WIDE
    base = "/".join(c.text for c in components[:first])
    base = f"{base}/" if first else "."
    empty = not any(c.has_literal for c in components[first:] if c.text)
    return Expansion(tuple(names) or (word.text,), base, empty)


def _walk(components: list[_Component], walk: _Walk) -> list[str] | Deny:
    prefixes = [""]
    for i, component in enumerate(components):
        reached: list[str] = []
        for prefix in prefixes:
            extended = walk.extend(prefix, component, last=i == len(components) - 1)
            if isinstance(extended, Deny):
                return extended
            reached += extended
        prefixes = reached
    return prefixes
